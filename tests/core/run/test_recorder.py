"""A run keeps its record, and takes what it is asked."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.files import NEW_CREDENTIALS, open_folder
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run import recorder as recording
from gem_bundle.run.asking import plans_of
from gem_bundle.run.found import FoundRun, lines_of, report_of, runs_in
from gem_bundle.run.held import HeldRows
from gem_bundle.run.progress import Totals
from gem_bundle.run.recorder import Recorder
from gem_bundle.run.report import Report
from gem_bundle.run.steering import StopRequest
from gem_bundle.run.view import QuietView
from gem_bundle.runs.life import judge
from gem_bundle.runs.record import KEPT, read_runs, run_ids, runs_place, write_run
from gem_bundle.runs.requests import Request, ask, take
from tests.core.run import test_report_and_view
from tests.core.runs.test_record import RECORD

if TYPE_CHECKING:
    from collections.abc import Callable

    from gem_bundle.pipeline.model import Definition
    from gem_bundle.runs.record import RunRecord
    from tests.s3_server import S3

BATCH = replace(test_report_and_view.BATCH, held=HeldRows({"plausible": 2}, {"plausible": {"even": 1}}))
PIPELINE = """
pipeline: clicks
version: 2.0.0
sources: {ticks: {gem: rate}}
targets: {table: {gem: file, input: ticks, options: {path: out, format: json}}}
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_LOOK_SECONDS", 0.01)


@pytest.fixture
def definition(tmp_path: Path) -> Definition:
    file = tmp_path / "clicks.yaml"
    file.write_text(PIPELINE)
    found = load_file(file).definition
    assert found is not None
    return found


class Run:
    """A run without Spark: its report, its steering, its record."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.report = Report(definition.name, definition.version, targets={"table": Totals("table")})
        self.stop = StopRequest()
        self.warnings: list[Diagnostic] = []
        self.recorder = Recorder(
            definition,
            {"table": definition.checkpoint("table")},
            self.report,
            QuietView(),
            self.stop,
            self.warnings.append,
        )

    def seen(self, wanted: Callable[[RunRecord], bool]) -> RunRecord:
        """The record as others see it, as soon as it is as wanted."""
        while True:
            for record in read_runs(open_folder(runs_place(self.definition))):
                if record.id == self.recorder.record.id and wanted(record):
                    return record
            threading.Event().wait(0.01)

    def end(self) -> None:
        self.report.end("finished", 12.0)


def test_the_record_follows_the_run_and_ends_with_its_report(definition: Definition) -> None:
    run = Run(definition)
    with run.recorder as recorder:
        first = run.seen(lambda record: record.state == "starting")
        assert judge(first).is_alive
        run.report.start()
        run.stop.states["table"] = "running"
        recorder.started(run.report)
        run.report.targets["table"].add(BATCH)
        recorder.progress(BATCH, run.report.targets["table"])
        run.stop.states["table"] = "stopping"
        recorder.tick()
        now = run.seen(lambda record: record.targets["table"].state == "stopping")
        assert now.state == "running"
        assert now.targets["table"].checkpoint == definition.checkpoint("table")
        assert [batch["batch_id"] for batch in now.targets["table"].recent] == [4]
        assert report_of(now).targets == run.report.targets
        recorder.stopping("SIGTERM")
        run.seen(lambda record: record.state == "stopping")
        run.stop.states["table"] = "finished"
        run.end()
        recorder.ended(run.report)
        assert run.seen(lambda _: True).state == "stopping", "the checkpoints are still locked"
    last = run.seen(lambda record: record.state == "finished")
    assert (last.ended != "", last.seconds, last.version) == (True, 12.0, "2.0.0")
    told = list(lines_of(FoundRun(last, judge(last)), progress=5))
    assert told[0].startswith("clicks 2.0.0, process ")
    assert "Finished at " in told[1]
    assert "after 12.0 s: 1 micro-batch, 12,000 rows in (1,000 rows/s), 340 rows out, 3 late rows" in told[1]
    assert told[2:] == [
        "  table: finished",
        "    micro-batch 4: 12,000 rows in, 340 rows out, 2,500 rows/s, took 4.8 s",
        "    watermark 2013-01-01 05:00:00, 77 state rows",
        "    total 12,000 rows in, 340 rows out",
        "    2013-01-01 00:00:00 micro-batch 4: 12,000 rows in, 340 rows out, 2,500 rows/s, took 4.8 s",
    ]
    assert run.warnings == []


def test_a_run_gets_older_while_nothing_happens(definition: Definition) -> None:
    run = Run(definition)
    with run.recorder as recorder:
        assert recorder.current.seconds == 0.0
        recorder.started(run.report)
        written, shown = recorder.record.seconds, recorder.current.seconds
        while recorder.current.seconds <= shown:
            threading.Event().wait(0.01)
        assert recorder.record.seconds == written
        run.end()
    assert recorder.current.seconds == 12.0


def test_what_a_run_is_asked_reaches_it(definition: Definition) -> None:
    run = Run(definition)
    with run.recorder:
        run.seen(lambda _: True)
        folder = open_folder(runs_place(definition))
        ask(folder, run.recorder.record.id, Request("stop", "table"))
        ask(folder, run.recorder.record.id, Request("stop", now=True, by="`gem-bundle` on desk"))
        while not run.stop:
            threading.Event().wait(0.01)
        assert [request.target for request in run.stop.asked()] == ["table"]
        assert list(run.stop.asked()) == []
        assert (run.stop.reason, run.stop.now) == ("asked by `gem-bundle` on desk", True)
        run.end()
    assert len(folder.names()) == 1


class Explained:
    """A query that can be asked for its plan."""

    def explain(self, extended: bool = False) -> None:
        print("== Physical Plan ==\nWriteToDataSourceV2")


def test_a_run_that_is_asked_for_plans_answers(definition: Definition) -> None:
    run = Run(definition)
    with run.recorder:
        run.seen(lambda _: True)
        (found,) = runs_in(runs_place(definition))
        assert plans_of(definition, found) == {"table": ""}, "there is no query yet"
        run.stop.queries["table"] = Explained()  # type: ignore[assignment]
        assert plans_of(definition, found) == {"table": "== Physical Plan ==\nWriteToDataSourceV2"}
        run.end()
    assert len(open_folder(runs_place(definition)).names()) == 1, "no question and no answer is left"
    with pytest.raises(GemError, match="hasn't answered"):
        plans_of(definition, found, 0.1)


@pytest.mark.parametrize("answer", ["", "../../x", "ABCDEF0123456789"])
def test_an_answer_goes_nowhere_else(definition: Definition, answer: str) -> None:
    folder = open_folder(runs_place(definition))
    ask(folder, "r", Request("plan", "table", answer=answer))
    assert take(folder, "r") == []
    assert folder.names() == []


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (PipelineError([Diagnostic("GB505", "error", "no such path")]), "failed", ["GB505"]),
        (ValueError("odd"), "failed", ["GB508"]),
        (KeyboardInterrupt(), "stopped", []),
    ],
)
def test_a_run_that_never_started_says_why(
    definition: Definition, error: BaseException, state: str, code: list[str]
) -> None:
    run = Run(definition)
    with pytest.raises(type(error)), run.recorder:
        raise error
    last = run.seen(lambda record: record.state == state)
    assert [diagnostic["code"] for diagnostic in last.diagnostics] == code


def test_without_a_place_for_the_record_the_run_goes_on(definition: Definition) -> None:
    Path(definition.checkpoints).write_text("not a folder")
    run = Run(definition)
    with run.recorder as recorder:
        recorder.started(run.report)
        run.end()
    assert [(found.code, found.severity) for found in run.warnings] == [("GB516", "warning")]
    assert str(definition.checkpoints) in run.warnings[0].message


@pytest.mark.network
def test_a_record_whose_credentials_expire_goes_on_with_new_ones(
    definition: Definition, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_LOOK_SECONDS_REMOTE", 0.5)
    there = replace(definition, checkpoints=s3.place())
    first, second = s3.credentials(), s3.credentials()
    run = Run(there)
    with s3.logged_in(first), run.recorder as recorder:
        run.seen(lambda record: record.state == "starting")
        s3.expire(first)
        unrecorded = Run(there)
        with unrecorded.recorder:
            unrecorded.end()
        (warning,) = unrecorded.warnings
        assert (warning.code, warning.hint.endswith(NEW_CREDENTIALS)) == ("GB516", True)
        with pytest.raises(GemError, match="The provided token has expired") as caught:
            list(runs_in(runs_place(there)))
        assert caught.value.code == "GB406"
        assert caught.value.hint == f"The credentials have expired. {NEW_CREDENTIALS}"
        with s3.logged_in(second):
            recorder.started(run.report)
            run.seen(lambda record: record.state == "running")
            run.end()
    with s3.logged_in(second):
        run.seen(lambda record: record.state == "finished")
    assert run.warnings == []


def test_old_records_go_and_those_of_runs_that_live_stay(definition: Definition) -> None:
    folder = open_folder(runs_place(definition))
    alive = Run(definition)
    with alive.recorder as recorder:
        alive.seen(lambda _: True)
        for number in range(KEPT + 3):
            write_run(folder, replace(RECORD, id=f"30000101T0000{number:02}-aa", state="running"))
        run = Run(definition)
        with run.recorder:
            while len(run_ids(folder.names())) > KEPT + 2:
                threading.Event().wait(0.01)
            run.end()
        assert recorder.record.id in run_ids(folder.names())
        alive.end()
    assert {found.verdict.state for found in runs_in(runs_place(definition))} == {"died", "finished"}
