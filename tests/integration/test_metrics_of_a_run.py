"""A real Prometheus scrapes a real run, and the next one on its checkpoints: it has the numbers of their reports."""

from __future__ import annotations

import time
import urllib.request
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.run.serving.watching import PANELS
from tests.core.run.test_prometheus import filled, promtool, scraped
from tests.integration.pipelines import add_rows, write_pipeline
from tests.integration.test_steering import Background, command
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.run.report import Report
    from tests.core.run.test_prometheus import Prometheus

pytestmark = [pytest.mark.spark, pytest.mark.programs, pytest.mark.network]

PIPELINE = """
pipeline: scraped
sources:
  readings: {gem: file, options: {path: in, format: json, schema: "at timestamp, value double"}}
transforms:
  plausible: {gem: expect, input: readings, options: {rules: {hot: value < 40, cold: {condition: value > 0, action: warn}}}}
  timely: {gem: watermark, input: plausible, options: {column: at, delay: 1 minute}}
  minutes:
    gem: aggregate
    input: timely
    options: {window: {column: at, duration: 1 minute}, aggregates: {readings: count(*)}}
targets:
  table: {gem: file, input: minutes, options: {path: table, format: json}}
  refused: {gem: file, input: plausible.rejected, options: {path: refused, format: json}}
"""
# What a run without Kafka, and that is well, has nothing to say of.
SILENT = {"Records behind", "Queries that aren't running"}


def readings(*given: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"at": f"2026-01-05 09:{at}", "value": value} for at, value in given]


def counters(targets: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The totals of targets, by the series that have to have them."""
    found: dict[str, float] = {}
    for target, totals in targets.items():

        def add(metric: str, value: float, labels: str = "", target: str = target) -> None:
            found[f'gem_bundle_{metric}{{target="{target}"{labels}}}'] = value

        add("rows_in_total", totals["rows_in"])
        add("rows_out_total", totals["rows_out"])
        add("late_rows_total", totals["late_rows"])
        add("micro_batches_total", totals["micro_batches"])
        add("micro_batch_seconds_count", totals["micro_batches"])
        add("micro_batch_seconds_sum", totals["busy_ms"] / 1000)
        add("query_restarts_total", totals["restarts"])
        for node, rows in totals["rejected"].items():
            add("rejected_rows_total", rows, f', node="{node}"')
        for node, rules in totals["broken"].items():
            for rule, rows in rules.items():
                add("rule_breaks_total", rows, f', node="{node}", rule="{rule}"')
    return found


def ended(background: Background, prometheus: Prometheus) -> Report:
    """Stop a run that has nothing more to do, once Prometheus has what it did; both have to have the same numbers."""
    prometheus.scraped_after(time.time())
    state = {
        name: prometheus.values(f'gem_bundle_state_rows{{target="{name}"}}') for name in ("table", "refused")
    }
    assert command("stop", background.file, "--wait").exit_code == 0
    report = background.end()
    of_targets = report.as_dict()["targets"]
    assert state == {name: [totals["state_rows"]] for name, totals in of_targets.items()}
    for series, value in counters(of_targets).items():
        assert prometheus.history(series)[-1] == pytest.approx(value), series
    return report


def test_what_prometheus_has_of_a_run_and_its_next_one_is_what_their_reports_say(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = write_pipeline(tmp_path, PIPELINE)
    (tmp_path / "in").mkdir()
    port = free_port()
    with scraped(tmp_path, f"127.0.0.1:{port}") as prometheus:
        background = Background(file, port=port)
        try:
            background.when(lambda targets: all(target["state"] == "running" for target in targets.values()))
            prometheus.scraped_after(time.time())
            assert prometheus.values("gem_bundle_rejected_rows_total") == [0, 0]
            add_rows(tmp_path / "in", "0.json", readings(("00:10", 1), ("02:00", 2), ("05:00", 50)))
            background.until({"refused": 1})
            add_rows(tmp_path / "in", "1.json", readings(("10:00", 3), ("10:01", -1)))
            background.until({"table": 2})
            add_rows(tmp_path / "in", "2.json", readings(("00:30", 4), ("11:00", 60)))
            found = background.when(
                lambda targets: all(target["totals"]["rows_in"] == 7 for target in targets.values())
            )
            with urllib.request.urlopen(f"{found['address']}/metrics") as answer:
                promtool("check", "metrics", given=answer.read().decode())
            prometheus.scraped_after(time.time())
            asked = {
                panel.title: any(
                    prometheus.ask("query", query=filled(query))["result"] for query, _ in panel.queries
                )
                for panel in PANELS
            }
            assert {title for title, is_seen in asked.items() if not is_seen} == SILENT
            assert prometheus.values('ALERTS{alertstate="firing"}') == []
        finally:
            first = ended(background, prometheus)
        totals = first.targets["table"]
        assert (totals.rows_in, totals.rows_out, totals.late_rows) == (7, 2, 1)
        assert (totals.held.rejected, totals.held.broken) == ({"plausible": 2}, {"plausible": {"cold": 1}})

        # It does less than the first one, so that each of its counters shows that it has begun anew.
        background = Background(file, port=port)
        try:
            add_rows(tmp_path / "in", "3.json", readings(("20:00", 5), ("20:01", 70)))
            background.until({"table": 1, "refused": 1})
        finally:
            second = ended(background, prometheus)
        both = [counters(report.as_dict()["targets"]) for report in (first, second)]
        for series in both[0].keys() & both[1].keys():
            values = prometheus.history(series)
            # As Prometheus's own `increase` takes them: one that is less than before has begun at 0.
            counted = values[0] + sum(
                now - before if now >= before else now for before, now in pairwise(values)
            )
            assert counted == pytest.approx(both[0][series] + both[1][series]), series
        assert prometheus.values('resets(gem_bundle_rows_in_total{target="table"}[1h])') == [1]
    written = {name: spark.read.json(str(tmp_path / name)).count() for name in first.targets}
    assert written == {
        name: (totals.rows_out or 0) + (second.targets[name].rows_out or 0)
        for name, totals in first.targets.items()
    }
    assert written == {"table": 3, "refused": 3}
