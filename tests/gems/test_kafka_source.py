"""The source `kafka` against a real broker: in batch and as a stream, from every kind of starting place."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from gem_bundle import GemError, ReadContext, SourcePart, StreamReadContext
from gem_bundle.changes.checkpoint import read_checkpoint
from gem_bundle.changes.source_log import read_source_log
from gem_kafka.reading import KafkaSourceOptions
from gem_kafka.source import KafkaSource
from tests.samples import some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.kafka_broker import Broker

records_read = some_of("records read from topics", 2)

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

DAY = [datetime(2013, 1, day, tzinfo=UTC) for day in range(1, 6)]


def kafka_source(kafka: Broker, **raw: Any) -> KafkaSource:
    raw = {"bootstrap_servers": kafka.bootstrap, **raw}
    return KafkaSource(KafkaSourceOptions.model_validate(raw))


def batch(spark: SparkSession, source: KafkaSource) -> DataFrame:
    return source.read(ReadContext(node="clicks", spark=spark))


def values(df: DataFrame) -> list[str]:
    return sorted(row.value for row in df.selectExpr("cast(value as string) as value").collect())


class Drain:
    """Runs a stream until it has read what is there, again and again on one checkpoint."""

    def __init__(self, spark: SparkSession, source: KafkaSource, folder: Path) -> None:
        self.spark, self.source, self.folder = spark, source, folder
        self.batches: list[int] = []

    def __call__(self) -> list[str]:
        """The values of all runs so far."""
        df = self.source.read_stream(StreamReadContext(node="clicks", spark=self.spark, name="clicks"))
        writer = df.writeStream.format("parquet").option("path", str(self.folder / "out"))
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(60)
        self.batches = [int(progress.numInputRows) for progress in query.recentProgress]
        return values(self.spark.read.schema(df.schema).parquet(str(self.folder / "out")))


@pytest.fixture
def drain(spark: SparkSession, tmp_path: Path) -> Any:
    return lambda source: Drain(spark, source, tmp_path)


@records_read
def test_batch_reads_every_part_of_a_record(spark: SparkSession, kafka: Broker) -> None:
    topic = kafka.new_topic("clicks")
    kafka.produce(
        topic, ["a", None], keys=[None, "k"], timestamps=DAY[:2], headers=[("from", b"test"), ("from", b"")]
    )
    source = kafka_source(kafka, subscribe=topic, include_headers=True)
    df = batch(spark, source)
    columns = source.infer().columns
    assert columns is not None
    assert [(c.name, c.type) for c in columns] == [(f.name, f.dataType.simpleString()) for f in df.schema]
    first, second = df.orderBy("offset").collect()
    assert (first.key, bytes(first.value), first.topic, first.partition, first.offset) == (
        None,
        b"a",
        topic,
        0,
        0,
    )
    assert (bytes(second.key), second.value, second.offset) == (b"k", None, 1)
    assert first.timestampType == 0
    assert first.timestamp.astimezone(UTC) == DAY[0]
    assert [(h.key, bytes(h.value)) for h in first.headers] == [("from", b"test"), ("from", b"")]
    assert "headers" not in batch(spark, kafka_source(kafka, subscribe=topic)).columns


@records_read
@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ({}, ["0", "1", "2", "3", "4"]),
        ({"starting_offsets": {0: 1}}, ["1", "2", "3", "4"]),
        ({"starting_offsets": {0: "earliest"}, "ending_offsets": {0: 2}}, ["0", "1"]),
        ({"starting_offsets": {0: 3}, "ending_offsets": {0: -1}}, ["3", "4"]),
        ({"starting_timestamp": DAY[2]}, ["2", "3", "4"]),
        ({"starting_timestamp": DAY[1], "ending_timestamp": DAY[3]}, ["1", "2"]),
        (
            {"starting_offsets_by_timestamp": {0: DAY[1]}, "ending_offsets_by_timestamp": {0: DAY[2]}},
            ["1"],
        ),
        ({"ending_offsets": "latest", "min_partitions": 3, "max_records_per_partition": 1}, list("01234")),
    ],
)
def test_batch_from_here_to_there(
    spark: SparkSession, kafka: Broker, raw: dict[str, Any], wanted: list[str]
) -> None:
    topic = kafka.new_topic("days")
    kafka.produce(topic, [str(number) for number in range(5)], timestamps=DAY)
    options = {key: {topic: value} if isinstance(value, dict) else value for key, value in raw.items()}
    assert values(batch(spark, kafka_source(kafka, subscribe=[topic], **options))) == wanted


@records_read
def test_assigned_partitions_and_topics_by_pattern(spark: SparkSession, kafka: Broker) -> None:
    prefix = f"shop{uuid4().hex[:6]}"
    orders, views = kafka.new_topic(f"{prefix}.orders", partitions=2), kafka.new_topic(f"{prefix}.views")
    kafka.produce(orders, ["order 0"], partition=0)
    kafka.produce(orders, ["order 1"], partition=1)
    kafka.produce(views, ["view"])
    assert values(batch(spark, kafka_source(kafka, assign={orders: [1]}))) == ["order 1"]
    by_pattern = kafka_source(kafka, subscribe_pattern=rf"{prefix}\.(orders|views)-")
    assert values(batch(spark, by_pattern)) == ["order 0", "order 1", "view"]
    by_name = kafka_source(kafka, subscribe=f"{orders},{views}")
    assert values(batch(spark, by_name)) == ["order 0", "order 1", "view"]


def test_a_stream_continues_where_it_was(kafka: Broker, drain: Any) -> None:
    topic = kafka.new_topic("clicks")
    run = drain(kafka_source(kafka, subscribe=topic, starting_offsets="earliest"))
    kafka.produce(topic, ["a", "b"])
    assert run() == ["a", "b"]
    kafka.produce(topic, ["c"])
    assert run() == ["a", "b", "c"]
    assert run.batches == [1]
    run.source = kafka_source(kafka, subscribe_pattern=f"{topic}.*")
    change = run.source.change("subscribe", [topic])
    assert change is not None
    assert change.effect == "continues"
    kafka.produce(topic, ["d"])
    assert run() == ["a", "b", "c", "d"]
    assert run.batches == [1]


def test_a_stream_starts_with_what_is_new(kafka: Broker, drain: Any) -> None:
    topic = kafka.new_topic("clicks")
    run = drain(kafka_source(kafka, subscribe=topic))
    kafka.produce(topic, ["before"])
    assert run() == []
    kafka.produce(topic, ["after"])
    assert run() == ["after"]


def test_a_stream_starts_at_an_offset_in_each_partition(kafka: Broker, drain: Any) -> None:
    topic = kafka.new_topic("clicks", partitions=3)
    for partition in range(3):
        kafka.produce(topic, [f"{partition}-{offset}" for offset in range(3)], partition=partition)
    run = drain(kafka_source(kafka, subscribe=topic, starting_offsets={topic: {0: 2, 1: -2, 2: "latest"}}))
    assert run() == ["0-2", "1-0", "1-1", "1-2"]
    kafka.produce(topic, ["2-3"], partition=2)
    assert run() == ["0-2", "1-0", "1-1", "1-2", "2-3"]


@pytest.mark.parametrize("form", ["starting_timestamp", "starting_offsets_by_timestamp"])
def test_a_stream_starts_at_a_time(kafka: Broker, drain: Any, form: str) -> None:
    topic = kafka.new_topic("days")
    kafka.produce(topic, [str(number) for number in range(5)], timestamps=DAY)
    start: Any = "2013-01-03T12:00:00+00:00"
    if form == "starting_offsets_by_timestamp":
        start = {topic: {0: start}}
    assert drain(kafka_source(kafka, subscribe=topic, **{form: start}))() == ["3", "4"]


def test_a_time_after_all_records(kafka: Broker, drain: Any) -> None:
    topic = kafka.new_topic("days")
    kafka.produce(topic, ["old"], timestamps=DAY[:1])
    later = {"subscribe": topic, "starting_timestamp": DAY[1]}
    run = drain(kafka_source(kafka, **later, starting_offsets_by_timestamp_strategy="latest"))
    assert run() == []
    kafka.produce(topic, ["new"], timestamps=DAY[2:3])
    assert run() == ["new"]


def test_limits_of_a_micro_batch(kafka: Broker, drain: Any) -> None:
    topic = kafka.new_topic("clicks")
    kafka.produce(topic, [str(number) for number in range(5)])
    run = drain(kafka_source(kafka, subscribe=topic, starting_offsets="earliest", max_offsets_per_trigger=2))
    assert run() == list("01234")
    assert run.batches == [2, 2, 1]


def test_a_stream_waits_for_enough_offsets(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.new_topic("clicks")
    kafka.produce(topic, ["a"])
    source = kafka_source(
        kafka,
        subscribe=topic,
        starting_offsets="earliest",
        min_offsets_per_trigger=3,
        max_trigger_delay="1 hour",
    )
    df = source.read_stream(StreamReadContext(node="clicks", spark=spark, name="clicks"))
    seen: list[list[str]] = []
    writer = df.writeStream.foreachBatch(lambda batch, _: seen.append(values(batch)))
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        # The first micro-batch doesn't wait; the delay counts from there.
        query.processAllAvailable()
        kafka.produce(topic, ["b", "c"])
        query.processAllAvailable()
        kafka.produce(topic, ["d"])
        query.processAllAvailable()
    finally:
        query.stop()
    assert seen == [["a"], ["b", "c", "d"]]


@records_read
def test_the_preview_reads_old_records_and_leaves_the_stream_alone(
    spark: SparkSession, kafka: Broker, drain: Any, tmp_path: Path
) -> None:
    topic = kafka.new_topic("clicks")
    kafka.produce(topic, ["old"])
    source = kafka_source(kafka, subscribe=topic, starting_offsets="latest")
    preview = source.for_preview()
    assert isinstance(preview, KafkaSource)
    assert drain(preview)() == ["old"]
    assert values(batch(spark, preview)) == ["old"]


@pytest.mark.parametrize(
    ("raw", "option"),
    [
        ({"ending_offsets": "latest"}, "ending_offsets"),
        ({"ending_timestamp": 5}, "ending_timestamp"),
    ],
)
def test_a_stream_has_no_end(spark: SparkSession, kafka: Broker, raw: dict[str, Any], option: str) -> None:
    source = kafka_source(kafka, subscribe="clicks", **raw)
    with pytest.raises(GemError, match="a stream has no end") as caught:
        source.read_stream(StreamReadContext(node="clicks", spark=spark, name="clicks"))
    assert (caught.value.code, caught.value.option) == ("GB207", option)


@pytest.mark.parametrize(
    ("raw", "option", "said"),
    [
        ({"max_offsets_per_trigger": 5}, "max_offsets_per_trigger", "takes everything at once"),
        ({"min_offsets_per_trigger": 5}, "min_offsets_per_trigger", "takes everything at once"),
        ({"starting_offsets": "latest"}, "starting_offsets", "nothing to read"),
        ({"starting_offsets": {"clicks": {0: -1}}}, "starting_offsets", "nothing to read"),
    ],
)
def test_what_a_batch_read_does_not_take(
    spark: SparkSession, kafka: Broker, raw: dict[str, Any], option: str, said: str
) -> None:
    with pytest.raises(GemError, match=said) as caught:
        batch(spark, kafka_source(kafka, subscribe="clicks", **raw))
    assert (caught.value.code, caught.value.option) == ("GB207", option)


def test_a_stream_over_a_login(spark: SparkSession, kafka_sasl: Broker, drain: Any) -> None:
    topic = kafka_sasl.new_topic("clicks")
    kafka_sasl.produce(topic, ["secret"])
    assert kafka_sasl.sasl is not None
    user, password = kafka_sasl.sasl
    source = kafka_source(
        kafka_sasl,
        subscribe=topic,
        starting_offsets="earliest",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username=user,
        sasl_password=password,
    )
    assert drain(source)() == ["secret"]


@records_read
def test_a_backfill_reads_what_the_stream_has_read(
    spark: SparkSession, kafka: Broker, drain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.new_topic("days", partitions=2)
    kafka.produce(topic, ["0", "1", "2", "3"], timestamps=DAY[:4], partition=0)
    source = kafka_source(kafka, subscribe=topic, starting_offsets="earliest", max_offsets_per_trigger=3)
    drain(source)()
    left = read_checkpoint(str(tmp_path / "checkpoint"))
    assert left is not None
    assert left.newest is not None
    (offset,) = left.newest.sources.values()
    (name,) = left.source_logs
    log = partial(read_source_log, left.location, name)
    kafka.produce(topic, ["4"], timestamps=DAY[4:], partition=1)

    def read(**part: Any) -> list[str]:
        found = source.for_backfill(SourcePart(log=log, **part))
        assert found is not None
        return values(batch(spark, found.source))

    assert read() == ["0", "1", "2", "3", "4"]
    assert read(offset=offset, complete=True) == ["0", "1", "2", "3"]
    assert read(offset=offset, since=DAY[2], until=DAY[3], complete=True) == ["2", "3"]
    assert read(since=DAY[2], until=DAY[3]) == ["2"]
    # As it is when the broker has dropped what the stream began with.
    monkeypatch.setattr("gem_kafka.backfill.first_offsets", lambda *_: ({(topic, 0): 2, (topic, 1): 0}, {}))
    with pytest.raises(GemError, match="begins at offset 2 now, and the stream has read from 0 on") as caught:
        read(offset=offset, complete=True)
    assert caught.value.code == "GB453"
