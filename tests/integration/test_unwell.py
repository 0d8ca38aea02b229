"""All that a real run can be unwell of, at once, and well of again; and queries that hang are not waited for."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.run import leaving, waiting
from gem_bundle.run.view import JsonView
from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.integration.test_health import Told, health, ids
from tests.integration.test_steering import Background, command, metrics
from tests.samples import some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

an_unwell_run = some_of("a run that is unwell", 2)

pytestmark = pytest.mark.spark

PIPELINE = """
pipeline: ailing
sources:
  events:
    gem: file
    options: {path: in, format: json, schema: "at timestamp, value double", max_files_per_trigger: 1}
transforms:
  plausible: {gem: expect, input: events, options: {rules: {cold: value < 40}}}
  timely: {gem: watermark, input: events, options: {column: at, delay: 1 hour}}
  minutes:
    gem: aggregate
    input: timely
    options: {window: {column: at, duration: 1 minute}, aggregates: {events: count(*)}}
targets:
  stuck:
    gem: foreach_batch
    input: events
    health: {no_progress: 2 seconds}
    options: {function: "waits_to_go:write"}
  windows:
    gem: delta
    input: minutes
    health: {state_rows: 2, watermark_behind: 1 day}
    options: {path: windows}
  kept:
    gem: delta
    input: plausible
    trigger: {processing_time: 2 seconds}
    health: {rejected: 10%, behind: {time: 0 seconds}}
    options: {path: kept}
"""
WAITS = """
import pathlib, time

HERE = pathlib.Path(__file__).parent

def write(df, batch_id):
    while not (HERE / "go").exists():
        time.sleep(0.05)
"""
LIMITS = {
    ("stuck", "no_progress"),
    ("windows", "state_rows"),
    ("windows", "watermark_behind"),
    ("kept", "rejected"),
    ("kept", "behind.time"),
}


class Log:
    """The lines that a run logs."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.view = JsonView(self._stream)

    def happened(self, event: str) -> list[dict[str, Any]]:
        lines = map(json.loads, self._stream.getvalue().splitlines())
        return [line for line in lines if line["event"] == event]

    def of(self, event: str) -> set[tuple[str, str]]:
        return {(line["target"], line["limit"]) for line in self.happened(event)}


@an_unwell_run
def test_a_run_is_unwell_of_all_its_limits_and_well_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long a look at the folder takes here, it is made after each micro-batch.
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 60.0)
    monkeypatch.setattr(waiting, "SHARE", 0)
    (tmp_path / "waits_to_go.py").write_text(WAITS)
    for number in range(4):
        rows = [{"at": f"2026-01-05 09:0{number}:00", "value": 30 + 4 * number}]
        add_rows(tmp_path / "in", f"{number}.json", rows)
    log = Log()
    background = Background(write_pipeline(tmp_path, PIPELINE), log.view)
    try:
        background.when(lambda _: log.of("unhealthy") == LIMITS)
        found = background.when(lambda targets: not of_limits(targets, "kept") - {"rejected"})
        address = found["address"]
        code, said = health(address)
        assert code == 503
        for target, limit in LIMITS - {("kept", "behind.time")}:
            assert f"{target}: `{limit}` is " in said["reason"]
        status = command("status", background.file)
        assert status.exit_code == 1
        assert status.stdout.count("unwell: ") == 4
        assert metrics(address)["unhealthy", "stuck"] == 2

        # What is stopped by hand is judged no more.
        assert command("stop", background.file, "--target", "kept", "--wait").exit_code == 0
        found = background.when(lambda targets: targets["kept"]["state"] == "stopped")
        assert of_limits(found["targets"], "kept") == set()
        assert "kept" not in health(address)[1]["reason"]
        assert command("resume", background.file, "--target", "kept").exit_code == 0

        (tmp_path / "go").touch()
        # Windows are over, and so many rows are good that few are rejected.
        add_rows(tmp_path / "in", "4.json", [{"at": "2999-01-05 09:00:00", "value": 1}] * 50)
        background.when(lambda targets: not any(of_limits(targets, name) for name in targets))
        assert health(address)[0] == 200
        assert command("status", background.file).exit_code == 0
        assert metrics(address)["unhealthy", "stuck"] == 0
    finally:
        (tmp_path / "go").touch()
        command("stop", background.file, "--wait")
        report = background.end()
    assert report.status == "stopped"
    assert log.of("healthy") == LIMITS


def of_limits(targets: dict[str, Any], name: str) -> set[str]:
    return {found["limit"] for found in targets[name]["unwell"]}


HANGING = """
pipeline: hanging
restarts: {max: 20, wait: 0 seconds}
health: {no_progress: 3 seconds, on_unhealthy: %s}
sources:
  numbers: {gem: file, options: {path: in, format: json, schema: "id bigint"}}
transforms:
  asked: {gem: python, input: numbers, options: {function: "%s:asked"}}
targets:
  out: {gem: file, input: asked, options: {path: out, format: json}}
"""
HANGS = """
import pathlib, time
from pyspark.sql.functions import udf

HERE = pathlib.Path("FOLDER")

def answer(number):
    if not (HERE / "answers").exists():
        (HERE / "hangs").touch()
        time.sleep(100)
        (HERE / "was waited for").touch()
    return number

def asked(df):
    return df.select(udf(answer, "bigint")("id").alias("id"))
"""


def hanging(tmp_path: Path, modules: Path, module: str, on_unhealthy: str) -> Path:
    """A pipeline whose micro-batches wait in a process of Python for an answer."""
    (modules / f"{module}.py").write_text(HANGS.replace("FOLDER", str(tmp_path)))
    if not (tmp_path / "in").exists():
        add_rows(tmp_path / "in", "0.json", [{"id": 0}, {"id": 1}])
    return write_pipeline(tmp_path, HANGING % (on_unhealthy, module))


@an_unwell_run
def test_a_query_that_hangs_is_started_again(spark: SparkSession, tmp_path: Path, user_modules: Path) -> None:
    file = hanging(tmp_path, user_modules, "hangs_once", "restart")

    class Answering(Told):
        def happened(self, event: str, facts: Any) -> None:
            super().happened(event, facts)
            if event == "unhealthy" and (tmp_path / "hangs").exists():
                (tmp_path / "answers").touch()

    told = Answering()
    background = Background(file, told)
    try:
        found = background.until({"out": 2})
        scraped = metrics(found["address"])
        assert (found["healthy"], health(found["address"])[0]) == (True, 200)
    finally:
        command("stop", file, "--wait")
        report = background.end()
    assert report.status == "stopped"
    assert not (tmp_path / "was waited for").exists()
    restarts = report.targets["out"].restarts
    assert [event for event, _ in told.events] == ["unhealthy", "restarting", "healthy"] * restarts
    assert (scraped["query_restarts_total", "out"], scraped["unhealthy", "out"]) == (restarts, 0)
    assert ids(spark, tmp_path / "out") == [0, 1]


@an_unwell_run
def test_a_run_that_hangs_is_ended(spark: SparkSession, tmp_path: Path, user_modules: Path) -> None:
    file = hanging(tmp_path, user_modules, "hangs_always", "stop")
    report = run(file)
    assert report.status == "failed"
    assert [found.code for found in report.diagnostics] == ["GB520"]
    assert "`no_progress` is" in report.diagnostics[0].message
    assert not (tmp_path / "was waited for").exists()
    (tmp_path / "answers").touch()
    assert run(hanging(tmp_path, user_modules, "hangs_always", "report"), available_now=True).ok
    assert ids(spark, tmp_path / "out") == [0, 1]


STUCK = """
pipeline: stuck
health: {no_progress: 1 second, on_unhealthy: %s}
sources:
  numbers: {gem: file, options: {path: in, format: json, schema: "id bigint"}}
targets:
  out: {gem: foreach_batch, input: numbers, options: {function: "%s:write"}}
"""


@an_unwell_run
@pytest.mark.parametrize(("on_unhealthy", "codes"), [("stop", ["GB520", "GB508"]), ("restart", ["GB508"])])
def test_a_run_ends_without_a_query_that_spark_can_not_stop(
    on_unhealthy: str,
    codes: list[str],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leaving, "STUCK_SECONDS", 0.5)
    module = f"waits_for_ever_to_{on_unhealthy}"
    (tmp_path / f"{module}.py").write_text(WAITS)
    add_rows(tmp_path / "in", "0.json", [{"id": 0}])
    try:
        report = run(write_pipeline(tmp_path, STUCK % (on_unhealthy, module)))
        (hangs,) = (query for query in spark.streams.active if query.name == "stuck_out")
    finally:
        (tmp_path / "go").touch()
    hangs.stop()
    assert (report.status, [found.code for found in report.diagnostics]) == ("failed", codes)
    assert "`out`: its query doesn't stop" in report.diagnostics[-1].message
    assert run(write_pipeline(tmp_path, STUCK % ("report", module)), available_now=True).ok
