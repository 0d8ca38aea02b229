"""What runs tell as JSON is what the reference says: exactly these keys, of these types, and all of them come."""

from __future__ import annotations

import http.client
import json
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from pyspark.sql import Row
from pyspark.sql.types import LongType, StructField, StructType

from gem_bundle.cli import main
from gem_bundle.diagnostics import Diagnostic, Place
from gem_bundle.reference import run_shapes as shapes
from gem_bundle.reference.answers import COMMANDS, HTTP, REFUSALS, answers_page, documented_shapes
from gem_bundle.reference.shapes import Shape
from gem_bundle.replay import counts as counting
from gem_bundle.run import recorder as recording
from gem_bundle.run.health import Change, Unwell
from gem_bundle.run.held import HeldRows
from gem_bundle.run.preview import Preview
from gem_bundle.run.restarts import Restarting
from gem_bundle.run.serving import events
from gem_bundle.ui import page as ui_page
from tests.core.cli.test_rejected import FOUND
from tests.core.cli.test_ui import shown as shown_file
from tests.core.run.test_page import PIPELINE, Shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


JSON = {"Content-Type": "application/json"}
FAILURE = Diagnostic(
    "GB507", "error", "too many", "raw", ("targets", "raw"), Place("a.yaml", 3, 2), "Take fewer."
)
UNWELL = Unwell("state_rows", "fail", 501.0, 500.0, "501 rows", "2026-01-05T09:07:00Z")
NUMBERS: dict[str, Any] = {
    "lag": {"clicks": 7, "in": 2},
    "lag_units": {"in": "files"},
    "lag_seconds": {"clicks": 2.5},
    "newest": {"clicks": 70},
    "held": HeldRows({"parsed": 1}, {"parsed": {"even": 1}}),
    "state_commit_ms": 7,
}


class Told:
    """Holds what is told against its shape, and remembers which keys came with a value."""

    def __init__(self) -> None:
        self.answers: set[str] = set()
        self.refusals: set[int] = set()
        self._came: dict[type[Shape], set[str]] = defaultdict(set)

    def hold(self, asked: str, shape: type[Shape], content: Any) -> None:
        self.answers.add(asked)
        self._look(shape.model_validate_json(json.dumps(content)))

    def refuse(self, status: int, shape: type[Shape], content: Any) -> None:
        self.refusals.add(status)
        self._look(shape.model_validate_json(json.dumps(content)))

    def _look(self, value: Any) -> None:
        if isinstance(value, Shape):
            for name in value.model_fields_set:
                item = getattr(value, name)
                if item is not None and item not in ([], {}, ()):
                    self._came[type(value)].add(name)
                self._look(item)
        elif isinstance(value, Mapping):
            self._look(list(value.values()))
        elif isinstance(value, list | tuple):
            for item in value:
                self._look(item)

    def never_came(self) -> list[str]:
        return [
            f"{shape.__name__}: {name}"
            for shape in documented_shapes()
            for name in shape.model_fields
            if name not in self._came[shape]
        ]


def ask(
    address: str, request: str, content: Any = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Any]:
    method, _, path = request.partition(" ")
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    body = None if content is None else json.dumps(content)
    connection.request(method, path, body, {**(JSON if content is not None else {}), **(headers or {})})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def heard(address: str) -> Iterator[tuple[str, Any]]:
    """The events that a server tells, from the first one on."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    connection.request("GET", "/api/v1/events")
    answer = connection.getresponse()
    while line := answer.readline().decode():
        if line.startswith("event: "):
            name = line.removeprefix("event: ").strip()
            yield name, json.loads(answer.readline().decode().removeprefix("data: "))


@pytest.mark.servers
def test_all_that_runs_tell_has_the_documented_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_LOOK_SECONDS", 0.01)
    told = Told()
    with ExitStack() as stack:
        (tmp_path / "run").mkdir()
        file = tmp_path / "run" / "clicks.yaml"
        file.write_text(PIPELINE)
        run = Shown(file, stack, allow_control=True)
        listening = heard(run.address)
        happening = [next(listening)]
        told_by_run(run, told)
        told_by_commands(file, run, told)
        refused(run, tmp_path, told, monkeypatch)
        run.end()
        run.report.write(tmp_path / "report.json")
        told.hold(COMMANDS[2].asked, COMMANDS[2].shape, json.loads((tmp_path / "report.json").read_text()))
        while happening[-1][0] != "ended":
            happening.append(next(listening))
    for name, content in happening:
        told.hold(name, shapes.EVENTS[name][0], content)
    told_by_page_of_file(tmp_path, told, monkeypatch)
    told_of_rejected(told, monkeypatch)
    assert told.never_came() == []
    assert told.answers == {each.asked for each in (*HTTP, *COMMANDS)} | shapes.EVENTS.keys() | {"pipeline"}
    assert told.refusals == REFUSALS.keys()


def told_by_run(run: Shown, told: Told) -> None:
    """What the server of a run answers, in trouble and without."""
    of = {each.asked: each for each in HTTP}
    told.hold("GET /ready", of["GET /ready"].shape, ask(run.address, "GET /ready")[1])
    run.report.start()
    run.server.started(run.report)
    for name in run.report.targets:
        run.stop.started(name)
    run.micro_batches(2, **NUMBERS)
    table = run.report.targets["table"]
    table.restarts, table.group = 1, "both"
    run.stop.unwell["table"] = [UNWELL.as_dict()]
    for change in (Change("unhealthy", "table", UNWELL), Change("healthy", "table", UNWELL)):
        run.server.happened(change.event, change.as_dict())
    restarting = Restarting("raw", "the broker is away", 1, 10.0, FAILURE.as_dict())
    run.server.happened("restarting", restarting.as_dict())
    run.stop.failed("raw", FAILURE)
    run.server.tick()
    for request, answer in of.items():
        if request.startswith("GET"):
            status, content = ask(run.address, request.replace("ID", "table"))
            assert status == (503 if request in {"GET /health", "GET /ready"} else 200)
            told.hold(request, answer.shape, content)
    wishes = {"stop": {"target": "table", "now": True}, "resume": {"target": "table"}}
    for action, content in wishes.items():
        answer = of[f"POST /api/v1/{action}"]
        assert answer.brings is not None
        told.hold(answer.asked, answer.brings, content)
        told.hold(answer.asked, answer.shape, ask(run.address, answer.asked, content)[1])


def told_by_commands(file: Path, run: Shown, told: Told) -> None:
    """What the commands print of it while it is alive."""
    while not list(file.parent.glob("checkpoints/clicks/.runs/run-*.json")):
        threading.Event().wait(0.01)
    for answer, arguments in zip(
        COMMANDS, (["status", str(file), "--plan"], ["runs", str(file)]), strict=False
    ):
        result = CliRunner().invoke(main, [*arguments, "--format", "json"])
        told.hold(answer.asked, answer.shape, json.loads(result.stdout))


def told_of_rejected(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed of rejected rows."""
    monkeypatch.setattr(counting, "counts", lambda *_: FOUND)
    result = CliRunner().invoke(main, ["rejected", "out/broken", "--format", "json"])
    told.hold(COMMANDS[3].asked, COMMANDS[3].shape, json.loads(result.stdout))


def refused(run: Shown, folder: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that a run doesn't answer."""

    def fail() -> None:
        raise ValueError("no history")

    def refusal(status: int, request: str, content: Any = None, **headers: str) -> None:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        found = ask(run.address, request, content, names)
        assert found[0] == status, found
        told.refuse(status, shapes.REFUSED, found[1])

    refusal(400, "POST /api/v1/stop", {"what": 1})
    refusal(403, "GET /api/v1/status", Host="evil.example")
    refusal(404, "GET /nothing")
    refusal(405, "GET /api/v1/stop")
    refusal(413, "GET /api/v1/status", Content_Length="10001")
    refusal(415, "POST /api/v1/stop", {}, Content_Type="text/plain")
    with monkeypatch.context() as patch:
        patch.setattr(run.server, "history", fail)
        refusal(500, "GET /api/v1/history")
        patch.setattr(events, "MOST_LISTENERS", 0)
        refusal(503, "GET /api/v1/events")
    (folder / "other").mkdir()
    with shown_file(folder / "run" / "clicks.yaml", token="c0ffee") as page:
        told.refuse(page.ask("/api/v1/status")[0], shapes.REFUSED, page.ask("/api/v1/status")[1])


def told_by_page_of_file(folder: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page of a file answers: of one that can't be read yet, and when it can, with its last run."""
    monkeypatch.setattr(ui_page, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(ui_page._Spark, "session", lambda *_: nullcontext())
    schema = StructType([StructField("id", LongType())])
    found = Preview("clicks", True, schema, [Row(id=1)], True)
    monkeypatch.setattr(ui_page, "preview", lambda *_: found)
    of = {each.asked: each for each in HTTP}
    file = folder / "run" / "clicks.yaml"
    file.write_text("pipeline: [")
    with shown_file(file) as page:
        told.hold("pipeline", shapes.PIPELINE, page.ask("/api/v1/pipeline")[1])
        status, content = page.ask("/api/v1/preview", {"node": "clicks"})
        told.refuse(status, shapes.NO_ROWS, content)
        assert (status, page.ask("/api/v1/status")) == (422, (200, {}))
        listening = heard(page.address)
        assert next(listening) == ("run", {})
        file.write_text(PIPELINE)
        page.page.check()
        happened = dict(next(listening) for _ in range(2))
        told.hold("pipeline", shapes.PIPELINE, happened["pipeline"])
        told.hold("run", shapes.RUN, happened["run"])
        for request in ("GET /api/v1/status", "GET /api/v1/history", "GET /api/v1/plan?target=ID"):
            path = request.removeprefix("GET ").replace("ID", "table")
            told.hold(request, of[request].shape, page.ask(path)[1])
        preview = of["POST /api/v1/preview"]
        assert preview.brings is not None
        told.hold(preview.asked, preview.brings, {"node": "clicks"})
        told.hold(preview.asked, preview.shape, page.ask("/api/v1/preview", {"node": "clicks"})[1])


def test_every_key_has_a_meaning_and_every_number_that_is_measured_a_unit() -> None:
    page = answers_page()
    for shape in documented_shapes():
        assert f"\n## {shape.__name__}\n\n{shape.__doc__}\n" in page
        for name, info in shape.model_fields.items():
            assert info.description, (shape, name)
            assert info.description.endswith((".", "…")), (shape, name)
    assert len({shape.__name__ for shape in documented_shapes()}) == len(documented_shapes())
    rows = "| `duration_ms` | whole number | milliseconds | How long it took, in milliseconds. |"
    assert rows in page
    assert "| `watermark` | text or null | UTC, ISO 8601 | The event-time watermark" in page
    assert "| `recent` | list of [Micro-batch](#micro-batch) |  | Its last micro-batches" in page
    assert "| `rows_out` | list of whole numbers or null | rows |" in page
