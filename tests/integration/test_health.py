"""Limits of health and restarts of queries on real Spark: seen from outside, and no row lost or doubled."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.reference.run_shapes import EVENTS
from gem_bundle.run.view import QuietView
from tests.integration.pipelines import add_rows, run, write_pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.run.report import Report

pytestmark = pytest.mark.spark

FAILING = """
pipeline: failing
restarts: {{max: 2, wait: 0 seconds}}
sources:
  numbers:
    gem: file
    options: {{path: in, format: json, schema: "id bigint", max_files_per_trigger: 1}}
targets:
  out:
    gem: foreach_batch
    input: numbers
    trigger: {{available_now: true}}
    options: {{function: "{module}:write"}}
"""
CODE = """
import json, pathlib

HERE = pathlib.Path(__file__).parent

def write(df, batch_id):
    rows = [row.id for row in df.collect()]
    tries = HERE / "tries.txt"
    with tries.open("a") as file:
        file.write(f"{{batch_id}}\\n")
    number = len(tries.read_text().splitlines())
    if number in {failing}:
        raise {error}
    (HERE / f"batch-{{batch_id}}.json").write_text(json.dumps(rows))
"""


class Told(QuietView):
    """Remembers what happened, which is told as the reference says."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Mapping[str, Any]]] = []

    def happened(self, event: str, facts: Mapping[str, Any]) -> None:
        EVENTS[event][0].model_validate_json(json.dumps(facts))
        self.events.append((event, facts))


def written(folder: Path) -> list[int]:
    return sorted(row for file in folder.glob("batch-*.json") for row in json.loads(file.read_text()))


def started(tmp_path: Path, module: str, failing: set[int], error: str) -> tuple[Report, Told]:
    for number in range(3):
        add_rows(tmp_path / "in", f"{number}.json", [{"id": number}])
    (tmp_path / f"{module}.py").write_text(CODE.format(failing=failing, error=error))
    told = Told()
    report = run(write_pipeline(tmp_path, FAILING.format(module=module)), told)
    return report, told


def test_a_query_that_fails_for_a_passing_reason_is_started_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    report, told = started(tmp_path, "writes_again", {2, 3}, "ConnectionResetError('gone')")
    assert report.ok
    assert written(tmp_path) == [0, 1, 2]
    assert (tmp_path / "tries.txt").read_text().split() == ["0", "1", "1", "1", "2"]
    totals = report.targets["out"]
    assert (totals.restarts, totals.rows_in, totals.micro_batches) == (2, 3, 3)
    assert [event for event, _ in told.events] == ["restarting"] * 2
    last = told.events[-1][1]
    assert (last["target"], last["restarts"], last["wait"]) == ("out", 2, 0.0)
    assert last["reason"] == "a connection failed: ConnectionResetError"
    assert "gone" in last["failure"]["message"]


def test_one_that_fails_too_often_ends_the_run(spark: SparkSession, tmp_path: Path) -> None:
    report, told = started(tmp_path, "writes_never", {2, 3, 4, 5}, "ConnectionResetError('gone')")
    assert report.status == "failed"
    assert [event for event, _ in told.events] == ["restarting"] * 2
    (failure,) = report.diagnostics
    assert (failure.code, failure.node) == ("GB507", "out")
    assert len(written(tmp_path)) == 1, "what was done stays done"
    (tmp_path / "tries.txt").write_text("\n" * 9)
    assert run(tmp_path / "pipeline.yaml").ok
    assert written(tmp_path) == [0, 1, 2], "the next run goes on there"


def test_a_mistake_in_the_pipeline_is_never_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    report, told = started(tmp_path, "writes_wrong", {2}, "KeyError('id')")
    assert report.status == "failed"
    assert told.events == []
    assert report.targets["out"].restarts == 0


WORDS = """
pipeline: words
restarts: {max: 2, wait: 0 seconds}
sources:
  texts: {gem: file, options: {path: in, format: json, schema: "text string"}}
transforms:
  numbers: {gem: with_columns, input: texts, options: {columns: {number: cast(text as bigint)}}}
targets:
  out: {gem: file, input: numbers, trigger: {available_now: true}, options: {path: out, format: json}}
"""


def test_rows_that_read_like_a_passing_failure_are_a_mistake(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path / "in", "0.json", [{"text": "Connection refused"}])
    told = Told()
    report = run(write_pipeline(tmp_path, WORDS), told)
    assert report.status == "failed"
    (failure,) = report.diagnostics
    assert (failure.code, "Connection refused" in failure.message) == ("GB508", True)
    assert told.events == []


UNWELL = """
pipeline: unwell
restarts: {max: 1, wait: 0 seconds}
health: {batch_time: 0 seconds, on_unhealthy: %s}
sources:
  numbers: {gem: file, options: {path: in, format: json, schema: "id bigint"}}
targets:
  out: {gem: file, input: numbers, options: {path: out, format: json}}
"""


def ids(spark: SparkSession, folder: Path) -> list[int]:
    return sorted(row.id for row in spark.read.schema("id bigint").json(str(folder)).collect())


def test_a_run_that_is_to_stop_when_a_target_is_unwell_stops(spark: SparkSession, tmp_path: Path) -> None:
    add_rows(tmp_path / "in", "0.json", [{"id": 0}])
    told = Told()
    report = run(write_pipeline(tmp_path, UNWELL % "stop"), told)
    assert report.status == "failed"
    (failure,) = report.diagnostics
    assert (failure.code, failure.node, failure.line) == ("GB520", "out", 4)
    assert "`batch_time` is" in failure.message
    assert [event for event, _ in told.events] == ["unhealthy"]
    assert ids(spark, tmp_path / "out") == [0], "the micro-batch has ended"


def test_a_query_that_is_unwell_is_started_again_and_at_last_ends_the_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    add_rows(tmp_path / "in", "0.json", [{"id": 0}])

    class Feeding(Told):
        def happened(self, event: str, facts: Mapping[str, Any]) -> None:
            super().happened(event, facts)
            if event == "restarting":
                add_rows(tmp_path / "in", "1.json", [{"id": 1}])

    told = Feeding()
    report = run(write_pipeline(tmp_path, UNWELL % "restart"), told)
    assert [event for event, _ in told.events] == ["unhealthy", "restarting", "healthy", "unhealthy"]
    assert [d.code for d in report.diagnostics] == ["GB520"]
    assert report.targets["out"].restarts == 1
    assert ids(spark, tmp_path / "out") == [0, 1]


def test_a_target_that_is_unwell_is_seen_from_outside(spark: SparkSession, tmp_path: Path) -> None:
    from gem_bundle.run.options import ServeOptions
    from tests.integration.test_steering import command, known

    file = write_pipeline(tmp_path, UNWELL % "report")
    add_rows(tmp_path / "in", "0.json", [{"id": 0}])
    reports: list[Report] = []
    thread = threading.Thread(target=lambda: reports.append(run(file, serve=ServeOptions())))
    thread.start()
    try:
        while thread.is_alive():
            found = known(file)
            if found and found["targets"]["out"]["unwell"]:
                break
            thread.join(0.2)
        (unwell,) = found["targets"]["out"]["unwell"]
        assert (unwell["limit"], unwell["level"], found["healthy"]) == ("batch_time", "fail", False)
        status = command("status", file)
        assert status.exit_code == 1
        assert "out: unwell: `batch_time` is" in status.stdout
        answer = health(found["address"])
        assert answer[0] == 503
        assert answer[1]["reason"].startswith("unwell: out: `batch_time` is")
    finally:
        command("stop", file, "--wait")
        thread.join()
    assert reports[0].status == "stopped"
    assert ids(spark, tmp_path / "out") == [0]


def health(address: str) -> tuple[int, dict[str, Any]]:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(f"{address}/health") as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())
