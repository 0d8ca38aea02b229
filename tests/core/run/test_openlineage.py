"""What a run tells others by OpenLineage's events; without Spark."""

from __future__ import annotations

import copy
import http.server
import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import ValidationError

from gem_bundle.check.checker import check_file
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError
from gem_bundle.run.openlineage.client import check_lineage
from gem_bundle.run.openlineage.datasets import named
from gem_bundle.run.openlineage.view import LineageView
from gem_bundle.run.progress import Totals
from gem_bundle.run.report import Report
from gem_bundle.run.steering import StopRequest
from gem_bundle.run.view import QuietView
from tests.core.run.openlineage_events import assert_valid
from tests.core.run.test_report_and_view import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PIPELINE = """
pipeline: orders
description: Orders with the names of products.
sources:
  orders: {gem: file, options: {format: json, path: in, schema: "id bigint, Product string, price double"}}
  products: {gem: delta, mode: batch, options: {path: s3a://lake/products}}
transforms:
  dear: {gem: filter, input: orders, options: {condition: price > 10}}
  cents:
    gem: select
    input: dear
    options: {columns: {order: id, cents: price * 100, both: "concat(Product, cast(id as string))"}}
targets:
  table: {gem: delta, input: cents, options: {path: out}}
  topic: {gem: table, input: cents, options: {table: main.cents}}
"""


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/data/in", ("file", "/data/in")),
        ("file:///data/in/**", ("file", "/data/in")),
        ("s3a://lake/raw/clicks", ("s3://lake", "raw/clicks")),
        ("s3://lake", ("s3://lake", "/")),
        ("gs://lake/raw", ("gs://lake", "raw")),
        ("abfss://box@account.dfs.core.windows.net/raw", ("abfss://box@account.dfs.core.windows.net", "raw")),
        ("hdfs://name:8020/raw/clicks", ("hdfs://name:8020", "/raw/clicks")),
        ("kafka://b1:9092/clicks", ("kafka://b1:9092", "clicks")),
        ("jdbc:postgresql://db/shop#orders", ("postgres://db:5432", "shop.public.orders")),
        ("jdbc:postgresql://db:6432/shop#sales.orders", ("postgres://db:6432", "shop.sales.orders")),
        ("table:main.sales.orders", ("own", "main.sales.orders")),
    ],
)
def test_names_follow_openlineages_rules(place: str, expected: tuple[str, str]) -> None:
    assert named(place, "own") == expected


class Run:
    """A run without Spark that tells its lineage."""

    def __init__(self, folder: Path, place: str, text: str = PIPELINE, **environment: str) -> None:
        file = folder / "orders.yaml"
        file.write_text(text)
        checked = check_file(file)
        assert checked.plan is not None, checked.diagnostics
        targets = checked.plan.definition.of_kind("target")
        self.stop = StopRequest()
        self.report = Report("orders", "0.1.0", targets={node.id: Totals(node.id) for node in targets})
        self.warnings: list[Diagnostic] = []
        self.view = LineageView(
            place, checked.plan, targets, self.stop, QuietView(), self.warnings.append, environment
        )

    def begin(self, *targets: str) -> None:
        for target in targets or self.report.targets:
            self.stop.started(target)
        self.report.start()
        self.view.started(self.report)


def read(file: Path) -> list[dict[str, Any]]:
    """The events of a file; each is as OpenLineage wants it."""
    events = [json.loads(line) for line in file.read_text().splitlines()]
    for event in events:
        assert_valid(event)
    return events


def kinds(events: list[dict[str, Any]], job: str) -> list[str]:
    return [event["eventType"] for event in events if event["job"]["name"] == job]


def test_what_a_run_tells(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    run = Run(tmp_path, str(file))
    with run.view as view:
        run.begin()
        view.progress(replace(BATCH, rows_out=7), run.report.targets["table"])
        run.stop.states["topic"] = "stopped"
        view.tick()
        run.stop.started("topic")
        view.tick()
        run.stop.failed("topic", Diagnostic("GB508", "error", "it broke"))
        run.report.diagnostics.append(run.stop.failures["topic"])
        run.stop.states["table"] = "stopped"
        run.report.end("failed", 1.0)
        view.ended(run.report)
    events = read(file)
    assert kinds(events, "orders") == ["START", "FAIL"]
    assert kinds(events, "orders.table") == ["START", "RUNNING", "COMPLETE"]
    assert kinds(events, "orders.topic") == ["START", "COMPLETE", "START", "FAIL"]
    own = {event["run"]["runId"] for event in events if event["job"]["name"] == "orders"}
    runs = [event["run"] for event in events if event["job"]["name"] == "orders.topic"]
    assert len(own) == 1
    assert len({found["runId"] for found in runs}) == 2, "a run of the job for each start of its query"
    assert {found["facets"]["parent"]["run"]["runId"] for found in runs} == own
    assert runs[-1]["facets"]["errorMessage"]["message"] == "it broke"
    assert {event["job"]["namespace"] for event in events} == {"gem-bundle"}
    assert {event["job"]["facets"]["jobType"]["processingType"] for event in events} == {"STREAMING"}
    running = next(event for event in events if event["eventType"] == "RUNNING")
    (output,) = running["outputs"]
    assert (output["namespace"], output["name"]) == ("file", str(tmp_path / "out"))
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 7
    assert run.warnings == []


def test_what_openlineage_does_not_want_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    run = Run(tmp_path, str(file))
    with run.view as view:
        run.begin("table")
        view.progress(replace(BATCH, rows_out=7), run.report.targets["table"])
    event = read(file)[-1]
    for path, value in (
        ("eventTime", "yesterday"),
        ("eventTime", "2026-01-05 09:00+00:00"),
        ("eventType", "WALKING"),
        ("producer", "gem-bundle"),
        ("producer", "https://gem bundle"),
        ("schemaURL", "https://openlineage.io/spec/1-0-0/OpenLineage.json#/$defs/RunEvent"),
        ("run.runId", "7"),
        ("run.facets.parent.job", {"name": "orders"}),
        ("run.facets.engine", event["run"]["facets"]["processing_engine"]),
        ("job.facets.jobType.processingType", 1),
        ("job.facets.parent", event["run"]["facets"]["parent"]),
        ("outputs.0.colour", "blue"),
        ("outputs.0.outputFacets.outputStatistics.rowCount", "7"),
        ("outputs.0.facets.columnLineage.fields.cents.inputFields.0.field", None),
    ):
        broken = copy.deepcopy(event)
        *parts, last = path.split(".")
        at: Any = broken
        for part in parts:
            at = at[int(part) if isinstance(at, list) else part]
        at[last] = value
        with pytest.raises((AssertionError, ValueError, ValidationError, KeyError)):
            assert_valid(broken)


def test_columns_and_where_they_come_from(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    run = Run(tmp_path, str(file), OPENLINEAGE_NAMESPACE="shop")
    with run.view:
        run.begin()
    event = next(found for found in read(file) if found["job"]["name"] == "orders.topic")
    assert event["job"]["namespace"] == "shop"
    (source,) = event["inputs"]
    assert source["name"] == str(tmp_path / "in")
    assert [(field["name"], field["type"]) for field in source["facets"]["schema"]["fields"]] == [
        ("id", "bigint"),
        ("Product", "string"),
        ("price", "double"),
    ]
    (output,) = event["outputs"]
    assert (output["namespace"], output["name"]) == ("shop", "main.cents")
    told = output["facets"]["columnLineage"]["fields"]
    columns = {name: [field["field"] for field in found["inputFields"]] for name, found in told.items()}
    assert columns == {"order": ["id"], "cents": ["price"], "both": ["id", "Product"]}
    assert {field["name"] for found in told.values() for field in found["inputFields"]} == {source["name"]}


def test_a_batch_pipeline_tells_the_rows_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    run = Run(tmp_path, str(file), PIPELINE.replace("description", "mode: batch\ndescription"))
    with run.view as view:
        run.report.start()
        view.started(run.report)
        run.report.targets["table"].rows_out = 3
        run.report.end("finished", 1.0)
        view.ended(run.report)
    events = read(file)
    assert kinds(events, "orders.table") == ["START", "COMPLETE"]
    last = [event for event in events if event["job"]["name"] == "orders.table"][-1]
    assert last["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert last["job"]["facets"]["jobType"]["processingType"] == "BATCH"


def test_a_run_that_dies_of_an_error_fails(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    run = Run(tmp_path, str(file))

    def die() -> None:
        with run.view:
            run.begin()
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError):
        die()
    events = read(file)
    assert kinds(events, "orders") == ["START", "FAIL"]
    assert kinds(events, "orders.table") == ["START", "FAIL"]


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes events, or refuses them."""

    events: list[dict[str, Any]]
    status = 201

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.events.append(json.loads(content))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base)
        """Nothing is said."""


@pytest.fixture
def receiver() -> Iterator[tuple[str, type[Receiver]]]:
    handler = type("Handler", (Receiver,), {"events": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.network
def test_events_are_sent_to_a_server(tmp_path: Path, receiver: tuple[str, type[Receiver]]) -> None:
    run = Run(tmp_path, receiver[0])
    with run.view:
        run.begin("table")
    assert kinds(receiver[1].events, "orders.table") == ["START"]
    assert run.warnings == []


@pytest.mark.network
def test_a_server_that_refuses_is_a_warning_and_no_more(
    tmp_path: Path, receiver: tuple[str, type[Receiver]]
) -> None:
    receiver[1].status = 400
    run = Run(tmp_path, receiver[0])
    with run.view:
        run.begin()
    assert [found.code for found in run.warnings] == ["GB521"]
    assert len(receiver[1].events) == 3, "the others were tried too"


def test_a_file_that_can_not_be_written_is_said_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(GemError, match="can't be written") as raised:
        check_lineage(str(tmp_path / "gone" / "events.jsonl"))
    assert raised.value.code == "GB511"
