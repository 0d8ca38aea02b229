"""Kafka into Delta: nothing lost and nothing doubled, whatever happens on the way."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from gem_bundle.backfill.api import BackfillOptions, run_backfill
from gem_bundle.backfill.interval import Interval
from gem_bundle.backfill.rules import Wanted
from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run.options import RunOptions
from gem_bundle.run.view import QuietView
from tests.integration.pipelines import command, events, finish, run, write_pipeline
from tests.samples import a_killed_program

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.run.progress import MicroBatch, Totals
    from tests.kafka_broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TEXT = """
pipeline: from_kafka
parameters:
  brokers: {{type: list}}
  topic: {topic}
sources:
  clicks:
    gem: kafka
    options:
      bootstrap_servers: ${{brokers}}
      subscribe: ${{topic}}
      starting_offsets: earliest
      max_offsets_per_trigger: {limit}
transforms:
  texts: {{gem: select, input: clicks, options: {{columns: {{id: cast(value as string)}}}}}}
targets:
  out: {{gem: delta, input: texts, options: {{path: out}}}}
"""

RATED = "{id: cast(value as string), at: timestamp, rate: cast(cast(value as string) as int)}"


def pipeline(tmp_path: Path, topic: str, limit: int = 50) -> Path:
    return write_pipeline(tmp_path, TEXT.format(topic=topic, limit=limit))


def ids(spark: SparkSession, tmp_path: Path) -> list[int]:
    return sorted(int(row.id) for row in spark.read.format("delta").load(str(tmp_path / "out")).collect())


def values(numbers: range) -> list[str]:
    return [str(number) for number in numbers]


@a_killed_program
def test_a_killed_run_continues_without_a_gap(spark: SparkSession, tmp_path: Path, kafka: Broker) -> None:
    topic = kafka.new_topic("killed", partitions=2)
    kafka.produce(topic, values(range(1000)))
    file = pipeline(tmp_path, topic)
    brokers = f"brokers={kafka.bootstrap}"
    running = command("run", file, "-p", brokers)
    seen = [event for event, _ in zip(_progress(running), range(3), strict=False)]
    running.send_signal(signal.SIGKILL)
    finish(running)
    assert 0 < seen[-1]["total_rows_in"] < 1000, "it was killed halfway"
    kafka.produce(topic, values(range(1000, 1100)))
    report = run(file, available_now=True, parameters={"brokers": kafka.bootstrap})
    assert report.ok
    assert ids(spark, tmp_path) == list(range(1100))


@a_killed_program
def test_the_broker_restarts_during_the_run(spark: SparkSession, tmp_path: Path, kafka: Broker) -> None:
    topic = kafka.new_topic("restarted")
    kafka.produce(topic, values(range(500)))
    running = command("run", pipeline(tmp_path, topic), "-p", f"brokers={kafka.bootstrap}")
    try:
        progress = _progress(running)
        next(progress)
        kafka.restart()
        kafka.produce(topic, values(range(500, 800)))
        for event in progress:
            if event["total_rows_in"] >= 800:
                break
    finally:
        running.send_signal(signal.SIGTERM)
        status, _, err = finish(running)
    assert status == 0, err
    assert ids(spark, tmp_path) == list(range(800))


def test_a_missing_topic(spark: SparkSession, tmp_path: Path, kafka: Broker) -> None:
    topic = kafka.new_topic("orders")
    file = pipeline(tmp_path, f"{topic}x")
    with pytest.raises(PipelineError) as raised:
        run(file, available_now=True, parameters={"brokers": kafka.bootstrap})
    (found,) = raised.value.diagnostics
    assert (found.code, found.node, found.line) == ("GB504", "clicks", 11)
    assert f"`{topic}`" in found.hint


def _progress(running: object):  # type: ignore[no-untyped-def]
    return (event for event in events(running) if event["event"] == "progress")  # type: ignore[arg-type]


def test_new_state_begins_at_the_offsets_of_the_old(
    spark: SparkSession, tmp_path: Path, kafka: Broker
) -> None:
    topic = kafka.new_topic("fresh", partitions=2)
    kafka.produce(topic, values(range(100)))
    file = pipeline(tmp_path, topic)
    brokers = {"brokers": kafka.bootstrap}
    behind: list[tuple[int, int]] = []

    class Behind(QuietView):
        def progress(self, batch: MicroBatch, totals: Totals) -> None:
            behind.append((totals.rows_in, batch.lag[topic]))

    run(file, Behind(), available_now=True, parameters=brokers)
    assert behind[-1] == (100, 0)
    assert {read + lag for read, lag in behind} == {100}
    kafka.produce(topic, values(range(100, 150)))
    report = run(file, available_now=True, parameters=brokers, fresh=("out",))
    assert report.rows_in == 50
    assert ids(spark, tmp_path) == list(range(150))


def test_a_backfill_reads_what_the_run_has_read(spark: SparkSession, tmp_path: Path, kafka: Broker) -> None:
    """A record that the run has yet to read is left to it, and a margin keeps what is older out."""
    topic = kafka.new_topic("backfilled", partitions=2)
    days = [datetime(2026, 1, day, 12, tzinfo=UTC) for day in (1, 2, 3)]
    kafka.produce(topic, ["1", "2", "3"], timestamps=days)
    text = TEXT.format(topic=topic, limit=50).replace("{id: cast(value as string)}", RATED)
    file = write_pipeline(tmp_path, text)
    brokers = {"brokers": kafka.bootstrap}
    assert run(file, available_now=True, parameters=brokers).ok
    kafka.produce(topic, ["20"], timestamps=days[1:2])
    write_pipeline(tmp_path, text.replace("as int)", "as int) * 10"))
    interval = Interval(datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))

    report = run_backfill(
        lambda load: load_file(file, load),
        RunOptions(quiet=True, parameters=brokers),
        BackfillOptions(Wanted("out", interval, "at"), margin=timedelta(hours=1)),
    )

    assert report.status == "finished", report.diagnostics
    assert [(s.replaced.written, s.replaced.removed) for s in report.steps if s.replaced] == [(1, 1)]
    assert report.sources["clicks"].startswith("from 2026-01-01 23:00:00+00:00 on, up to offsets")
    assert _rated(spark, tmp_path) == [(1, 1), (2, 20), (3, 3)]
    assert run(file, available_now=True, parameters=brokers).ok
    assert _rated(spark, tmp_path) == [(1, 1), (2, 20), (3, 3), (20, 200)]


def _rated(spark: SparkSession, tmp_path: Path) -> list[tuple[int, int]]:
    found = (
        spark.read.format("delta").load(str(tmp_path / "out")).selectExpr("int(id)", "int(rate)").collect()
    )
    return sorted((row[0], row[1]) for row in found)


@pytest.mark.sample(1)
@pytest.mark.parametrize("named", [False, True])
def test_a_source_that_begins_at_the_newest_passes_over_rows_under_another_name(
    spark: SparkSession, tmp_path: Path, kafka: Broker, named: bool
) -> None:
    """What the plan says of it is what Spark does; with `was` no row is left out."""
    topic = kafka.new_topic("renamed")
    text = TEXT.format(topic=topic, limit=50).replace("earliest", "latest")
    given = {"parameters": {"brokers": kafka.bootstrap}, "available_now": True}
    file = write_pipeline(tmp_path, text)
    assert run(file, **given).ok
    kafka.produce(topic, ["1"])
    assert run(file, **given).rows_in == 1
    kafka.produce(topic, ["2"])
    renamed = text.replace("  clicks:", "  visits:").replace("input: clicks", "input: visits")
    if named:
        renamed = renamed.replace("  visits:", "  visits:\n    was: clicks")
        assert run(write_pipeline(tmp_path, renamed), **given).rows_in == 1
        assert ids(spark, tmp_path) == [1, 2]
        return
    with pytest.raises(PipelineError) as stopped:
        run(write_pipeline(tmp_path, renamed), **given)
    assert [(d.code, d.message.partition(":")[0]) for d in stopped.value.diagnostics] == [
        ("GB412", "skipped")
    ]
    accepted = {**given, "accept": (("GB412", "visits"),)}
    assert run(file, **accepted).rows_in == 0
    kafka.produce(topic, ["3"])
    # Nothing was read then, so that no micro-batch has run it: it isn't asked again nevertheless.
    assert run(file, **given).ok
    assert ids(spark, tmp_path) == [1, 3]
