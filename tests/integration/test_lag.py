"""How far behind its sources a run says it is: a topic, against what Kafka itself says; files and versions."""

from __future__ import annotations

import signal
import threading
import time
from bisect import bisect
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from gem_bundle.run import waiting
from gem_bundle.run.view import QuietView
from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.samples import some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.run.progress import MicroBatch, Totals
    from tests.kafka_broker import Broker

rows_that_wait = some_of("rows that wait", 1)

pytestmark = pytest.mark.spark

READ = 100
WRITTEN = 150
WHILE_PRODUCED = 8
PIPELINE = """
pipeline: behind
sources:
  clicks:
    gem: kafka
    options: {{bootstrap_servers: ["{brokers}"], subscribe: "{topic}", starting_offsets: earliest,
               max_offsets_per_trigger: {limit}}}
targets:
  out: {{gem: noop, input: clicks}}
"""


class Producer(threading.Thread):
    """Writes some more records than are read, beside each micro-batch, and notes where Kafka says the topic ends."""

    def __init__(self, kafka: Broker, topic: str) -> None:
        super().__init__(daemon=True)
        self.kafka, self.topic = kafka, topic
        self.more = threading.Semaphore(0)
        self.ends: list[tuple[float, int, float]] = []
        self.done = False

    def run(self) -> None:
        from kafka import KafkaConsumer, KafkaProducer, TopicPartition

        options, partition = self.kafka.client_options(), TopicPartition(self.topic, 0)
        with closing(KafkaProducer(**options)) as producer, closing(KafkaConsumer(**options)) as consumer:
            while not self.done:
                writes = self.more.acquire(timeout=0.02)
                for _ in range(3 if writes else 1):
                    if writes:
                        for _ in range(WRITTEN // 3):
                            producer.send(self.topic, b"x")
                        producer.flush()
                    asked = time.time()
                    end = consumer.end_offsets([partition])[partition]
                    self.ends.append((asked, end, time.time()))


class Watching(QuietView):
    """Lets the producer write while the run reads, then lets the run catch up, then stops it."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.seen: list[tuple[MicroBatch, int]] = []

    def progress(self, batch: MicroBatch, totals: Totals) -> None:
        self.seen.append((batch, totals.rows_in))
        if len(self.seen) <= WHILE_PRODUCED:
            self.producer.more.release()
        elif totals.rows_in == READ + WRITTEN * WHILE_PRODUCED:
            signal.raise_signal(signal.SIGTERM)


@rows_that_wait
@pytest.mark.kafka
def test_a_run_is_as_far_behind_as_kafka_says(spark: SparkSession, tmp_path: Path, kafka: Broker) -> None:
    topic = kafka.new_topic("behind")
    kafka.produce(topic, ["x"] * READ)
    producer = Producer(kafka, topic)
    file = write_pipeline(tmp_path, PIPELINE.format(brokers=kafka.bootstrap, topic=topic, limit=READ))
    view = Watching(producer)
    producer.start()
    try:
        run(file, view)
    finally:
        producer.done = True
        producer.join()

    lags = [batch.lag[topic] for batch, _ in view.seen]
    assert lags[-1] == 0
    assert max(lags) > READ, "it was more than a micro-batch behind meanwhile"
    began = [datetime.fromisoformat(batch.timestamp).timestamp() for batch, _ in view.seen]
    for (batch, read), start in zip(view.seen, began, strict=True):
        before = [end for _, end, told in producer.ends if told <= start]
        after = [end for asked, end, _ in producer.ends if asked >= start + batch.duration_ms / 1000]
        low, high = max(before, default=0), min(after, default=READ + WRITTEN * WHILE_PRODUCED)
        assert low - read <= batch.lag[topic] <= high - read

    # When a record came is known as well as when the micro-batches around it began, and it is sent a moment before.
    written = [record.timestamp / 1000 for record in kafka.consume(topic)]
    for (batch, read), start in zip(view.seen, began, strict=True):
        waited = batch.lag_seconds[topic]
        if batch.lag[topic] == 0:
            assert waited == 0
        else:
            said, true = (bisect(began, at) for at in (start - waited + 0.001, max(written[read], began[0])))
            assert abs(said - true) <= 1


FILES = """
pipeline: files
sources:
  rows: {gem: file, options: {format: json, path: in, schema: "id bigint", max_files_per_trigger: 1}}
targets:
  table: {gem: delta, input: rows, options: {path: table}}
"""
TABLE = """
pipeline: table
sources:
  rows: {gem: delta, options: {path: table, max_files_per_trigger: 1}}
targets:
  out: {gem: noop, input: rows}
"""


class Noting(QuietView):
    """Notes how far each micro-batch was behind."""

    def __init__(self) -> None:
        self.seen: list[MicroBatch] = []

    def progress(self, batch: MicroBatch, totals: Totals) -> None:
        self.seen.append(batch)


@rows_that_wait
def test_files_and_versions_that_wait(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long a look takes here, it is made after each micro-batch.
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 60.0)
    monkeypatch.setattr(waiting, "SHARE", 0)

    def arrive(*names: str) -> None:
        for name in names:
            add_rows(tmp_path / "in", f"{name} %.json", [{"id": 1}])

    def waited(text: str, name: str, unit: str) -> set[int]:
        view = Noting()
        run(write_pipeline(tmp_path, text), view, available_now=True)
        assert {batch.lag_units[str(tmp_path / name)] for batch in view.seen} == {unit}
        assert view.seen[-1].lag_seconds[str(tmp_path / name)] == 0
        return {batch.lag[str(tmp_path / name)] for batch in view.seen}

    arrive("a", "b", "c")
    # A micro-batch may have begun, and written down what it reads, when the one before is told of.
    assert waited(FILES, "in", "files") <= {2, 1, 0}
    arrive("d")
    assert waited(FILES, "in", "files") == {0}
    assert 0 in waited(TABLE, "table", "versions")
    arrive("e", "f")
    assert waited(FILES, "in", "files") <= {1, 0}
    assert waited(TABLE, "table", "versions") == {1, 0}
