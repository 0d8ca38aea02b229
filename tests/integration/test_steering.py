"""A run is seen and steered from outside, and no row is lost or doubled by it."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from gem_bundle.cli import main
from gem_bundle.run.options import ServeOptions
from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.samples import some_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.run.report import Report
    from gem_bundle.run.supervisor import View

steering = some_of("steering a run", 1)

pytestmark = pytest.mark.spark

PIPELINE = """
pipeline: steered
sources:
  numbers: {gem: file, options: {path: in, format: json, schema: "id bigint"}}
targets:
  left: {gem: file, input: numbers, options: {path: left, format: json}}
  right: {gem: file, input: numbers, options: {path: right, format: json}}
"""


def command(*arguments: str | Path) -> Any:
    """What a command says of the runs, as JSON where it can."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def known(file: Path) -> dict[str, Any]:
    """The only run that `gem-bundle status` shows; empty before there is one."""
    text = command("status", file, "--format", "json").stdout
    found: list[dict[str, Any]] = json.loads(text)["runs"] if text else []
    return found[0] if found else {}


class Background:
    """A run in a thread of its own, with a server."""

    def __init__(self, file: Path, view: View | None = None, port: int = 0, **options: Any) -> None:
        self.file = file
        self.reports: list[Report] = []
        self.thread = threading.Thread(
            target=lambda: self.reports.append(run(file, view, serve=ServeOptions(port=port), **options))
        )
        self.thread.start()

    def when(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until something is true of the targets in the record, and give the record."""
        while self.thread.is_alive():
            found = known(self.file)
            if found.get("targets") and holds(found["targets"]):
                return found
            self.thread.join(0.2)
        raise AssertionError(f"the run has ended: {self.reports}")

    def until(self, rows: dict[str, int], **states: str) -> dict[str, Any]:
        """Wait until the record says how many rows were written, and how the targets are."""
        return self.when(
            lambda targets: all(
                targets[name]["totals"]["rows_out"] == count
                and targets[name]["state"] == states.get(name, "running")
                for name, count in rows.items()
            )
        )

    def end(self) -> Report:
        self.thread.join()
        return self.reports[0]


def metrics(address: str) -> dict[tuple[str, str], float]:
    """What a run's server says in numbers, by metric and target."""
    with urllib.request.urlopen(f"{address}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {
        (sample.name.removeprefix("gem_bundle_"), sample.labels["target"]): sample.value
        for family in families
        for sample in family.samples
        if "target" in sample.labels
    }


def ids(spark: SparkSession, folder: Path) -> list[int]:
    return sorted(row.id for row in spark.read.schema("id bigint").json(str(folder)).collect())


@steering
def test_a_run_is_seen_stopped_in_part_resumed_and_stopped_from_outside(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = write_pipeline(tmp_path, PIPELINE)
    add_rows(tmp_path / "in", "0.json", [{"id": 0}])
    background = Background(file)
    try:
        background.until({"left": 1, "right": 1})
        assert command("status", file).exit_code == 0
        plans = json.loads(command("status", file, "--plan", "--format", "json").stdout)["runs"][0]["plans"]
        assert plans.keys() == {"left", "right"}
        assert all("== Physical Plan ==" in plan and "FileScan json" in plan for plan in plans.values())

        assert command("stop", file, "--target", "left", "--wait").exit_code == 0
        add_rows(tmp_path / "in", "1.json", [{"id": 1}, {"id": 2}])
        background.until({"left": 1, "right": 3}, left="stopped")
        assert [query.name for query in spark.streams.active if query.name] == ["steered_right"]

        assert command("resume", file, "--target", "left").exit_code == 0
        found = background.until({"left": 3, "right": 3})
        scraped = metrics(found["address"])
        for target, starts in (("left", 2), ("right", 1)):
            totals = found["targets"][target]["totals"]
            assert scraped["query_starts_total", target] == starts
            assert scraped["rows_in_total", target] == totals["rows_in"]
            assert scraped["rows_out_total", target] == totals["rows_out"]
            assert scraped["micro_batches_total", target] == totals["micro_batches"]
            assert scraped["micro_batch_seconds_sum", target] == pytest.approx(totals["busy_ms"] / 1000)
    finally:
        stopped = command("stop", file, "--wait")
        report = background.end()
    assert stopped.exit_code == 0
    assert report.status == "stopped"
    assert ids(spark, tmp_path / "left") == ids(spark, tmp_path / "right") == [0, 1, 2]
    last = known(file)
    assert command("status", file).exit_code == 1
    assert (last["state"], last["reason"].startswith("asked by")) == ("stopped", True)
    assert {name: target["totals"] for name, target in last["targets"].items()} == {
        name: totals.as_dict() for name, totals in report.targets.items()
    }
    assert last["seconds"] == report.seconds

    # The next run begins where this one was stopped.
    add_rows(tmp_path / "in", "2.json", [{"id": 3}])
    assert run(file, available_now=True).rows_in == 2
    assert ids(spark, tmp_path / "left") == [0, 1, 2, 3]
    assert [
        found["state"] for found in json.loads(command("runs", file, "--format", "json").stdout)["runs"]
    ] == [
        "finished",
        "stopped",
    ]


@steering
def test_a_run_whose_queries_are_stopped_one_by_one_ends(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, PIPELINE)
    add_rows(tmp_path / "in", "0.json", [{"id": 0}])
    background = Background(file)
    background.until({"left": 1, "right": 1})
    command("stop", file, "--target", "left", "--target", "right", "--now")
    assert background.end().status == "stopped"
    assert ids(spark, tmp_path / "left") == [0]


# Ends only what would hang: a busy machine is slow.
HANGS = 120.0
APART = """
pipeline: apart
sources:
  few: {gem: file, options: {path: few, format: json, schema: "id bigint"}}
  many: {gem: file, options: {path: many, format: json, schema: "id bigint"}}
targets:
  slow: {gem: foreach_batch, input: few, options: {function: "goes_on:slow"}}
  quick: {gem: foreach_batch, input: many, options: {function: "goes_on:quick"}}
"""
GOES_ON = """
import pathlib, time

HERE = pathlib.Path(__file__).parent

def ended(name, batch_id):
    (HERE / f"{name}-{batch_id}.begun").touch()
    while not (HERE / f"{name}-{batch_id}.goes").exists():
        time.sleep(0.01)
    (HERE / f"{name}-{batch_id}.ended").touch()

def slow(df, batch_id):
    ended("slow", batch_id)

def quick(df, batch_id):
    ended("quick", batch_id)
"""


@steering
def test_no_query_that_stops_waits_for_the_micro_batch_of_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = write_pipeline(tmp_path, APART)
    (tmp_path / "goes_on.py").write_text(GOES_ON)
    for folder in ("few", "many"):
        add_rows(tmp_path / folder, "0.json", [{"id": 0}])
    background = Background(file)

    def until(*begun: str, **states: str) -> None:
        """Wait until micro-batches have begun, and targets are in their states."""
        began = time.monotonic()
        while background.thread.is_alive():
            found = {name: of["state"] for name, of in known(file).get("targets", {}).items()}
            if (
                all((tmp_path / f"{name}.begun").exists() for name in begun)
                and states.items() <= found.items()
            ):
                return
            assert time.monotonic() - began < HANGS, found
            time.sleep(0.05)
        raise AssertionError("the run has ended")

    def go(*names: str) -> None:
        for name in names:
            (tmp_path / f"{name}.goes").touch()

    try:
        until("slow-0", "quick-0")
        # One target after the other, both in the middle of a micro-batch.
        command("stop", file, "--target", "slow", "--target", "quick")
        until(slow="stopping", quick="stopping")
        go("quick-0")
        until(slow="stopping", quick="stopped")
        # What is still stopping goes on when it has stopped; others do at once.
        add_rows(tmp_path / "many", "1.json", [{"id": 1}])
        command("resume", file, "--target", "slow", "--target", "quick")
        until("quick-1", slow="stopping", quick="running")
        go("slow-0")
        until(slow="running", quick="running")
        add_rows(tmp_path / "few", "1.json", [{"id": 1}])
        until("slow-1")
        # All of the run.
        command("stop", file)
        until(slow="stopping", quick="stopping")
        go("quick-1")
        until(slow="stopping", quick="stopped")
    finally:
        go("slow-0", "slow-1", "quick-0", "quick-1")
        command("stop", file)
        report = background.end()
    assert report.status == "stopped"
    ended = sorted(path.stem for path in tmp_path.glob("*.ended"))
    assert ended == ["quick-0", "quick-1", "slow-0", "slow-1"]
