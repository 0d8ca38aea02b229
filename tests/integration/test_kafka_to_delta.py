"""Kafka into Delta: nothing lost and nothing doubled, whatever happens on the way."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from gem_bundle.errors import PipelineError
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
