"""The target `kafka` against a real broker: what records are made of, in batch and under every trigger."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import GemError, StreamReadContext, WriteContext
from gem_kafka.reading import KafkaSourceOptions
from gem_kafka.source import KafkaSource
from gem_kafka.target import KafkaTarget
from gem_kafka.writing import KafkaTargetOptions
from tests.gems.draining import forget_last_commit
from tests.samples import some_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from gem_bundle.semantics import OutputMode
    from tests.kafka_broker import Broker

records_written = some_of("records written to topics", 2)

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def kafka_target(kafka: Broker, **raw: Any) -> KafkaTarget:
    raw = {"bootstrap_servers": kafka.bootstrap, **raw}
    return KafkaTarget(KafkaTargetOptions.model_validate(raw))


def context(output_mode: OutputMode = "append") -> WriteContext:
    return WriteContext(node="out", pipeline="p", output_mode=output_mode, query_name="p_out")


def records(spark: SparkSession, kafka: Broker, topic: str) -> DataFrame:
    """The topic as a stream, from its start."""
    options = {"bootstrap_servers": kafka.bootstrap, "subscribe": topic, "starting_offsets": "earliest"}
    source = KafkaSource(KafkaSourceOptions.model_validate({**options, "include_headers": True}))
    return source.read_stream(StreamReadContext(node="clicks", spark=spark, name="clicks"))


@pytest.fixture
def hours(spark: SparkSession) -> DataFrame:
    return spark.sql(
        """select * from values
             (1L, 'JFK', named_struct('late', 5), x'00ff', 'big'),
             (2L, 'EWR', null, null, 'small')
           as t(id, airport, delays, raw, topic)"""
    ).coalesce(1)


def write(target: KafkaTarget, df: DataFrame) -> None:
    target.write(df, context())


def test_a_row_is_a_json_object(hours: DataFrame, kafka: Broker) -> None:
    topic = kafka.new_topic("out")
    write(kafka_target(kafka, topic=topic), hours.drop("raw"))
    first, second = kafka.consume(topic)
    assert json.loads(first.value or b"") == {
        "id": 1,
        "airport": "JFK",
        "delays": {"late": 5},
        "topic": "big",
    }
    assert json.loads(second.value or b"") == {"id": 2, "airport": "EWR", "topic": "small"}
    assert first.key is None
    assert first.headers == ()


@records_written
@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("airport", [b"JFK", b"EWR"]),
        ("id", [b"1", b"2"]),
        ("raw", [b"\x00\xff", None]),
        ("delays", [b'{"late":5}', None]),
        ("array(id, 7)", [b"[1,7]", b"[2,7]"]),
        ("map('a', id)", [b'{"a":1}', b'{"a":2}']),
        ("id > 1", [b"false", b"true"]),
        ("concat(airport, ':', id)", [b"JFK:1", b"EWR:2"]),
    ],
)
def test_keys_and_values_are_expressions(
    hours: DataFrame, kafka: Broker, expression: str, wanted: list[bytes | None]
) -> None:
    topic = kafka.new_topic("out")
    write(kafka_target(kafka, topic=topic, key=expression, value=expression), hours)
    found = kafka.consume(topic)
    assert [record.value for record in found] == wanted
    assert [record.key for record in found] == wanted


@records_written
@pytest.mark.parametrize("column", [None, "topic", "TOPIC", "to.pic"])
def test_each_row_has_its_own_topic(spark: SparkSession, kafka: Broker, column: str | None) -> None:
    big, small = kafka.new_topic("big"), kafka.new_topic("small")
    df = spark.createDataFrame([(1, big), (2, small)], f"id int, `{(column or 'topic').lower()}` string")
    write(kafka_target(kafka, **({"topic_column": column} if column else {})), df)
    assert [record.value for record in kafka.consume(big)] == [b'{"id":1}']
    assert [record.value for record in kafka.consume(small)] == [b'{"id":2}']


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("map('from', airport, 'id', string(id))", (("from", b"JFK"), ("id", b"1"))),
        ("map('raw', x'00')", (("raw", b"\x00"),)),
        ("map('ids', array(id))", (("ids", b"[1]"),)),
        ("array(named_struct('k', 'from', 'v', airport))", (("from", b"JFK"),)),
        ("array(struct('a' as key, cast('b' as binary) as value))", (("a", b"b"),)),
    ],
)
def test_headers_are_expressions(
    hours: DataFrame, kafka: Broker, expression: str, wanted: tuple[tuple[str, bytes], ...]
) -> None:
    topic = kafka.new_topic("out")
    write(kafka_target(kafka, topic=topic, value="airport", headers=expression), hours.limit(1))
    (record,) = kafka.consume(topic)
    assert record.headers == wanted


def test_partitions_are_expressions(hours: DataFrame, kafka: Broker) -> None:
    topic = kafka.new_topic("out", partitions=3)
    write(kafka_target(kafka, topic=topic, value="airport", partition="id"), hours)
    assert [(r.partition, r.value) for r in kafka.consume(topic)] == [(1, b"JFK"), (2, b"EWR")]


def test_settings_of_the_producer(hours: DataFrame, kafka: Broker) -> None:
    topic = kafka.new_topic("out")
    settings: dict[str, Any] = {
        "acks": "all",
        "compression_type": "gzip",
        "linger_ms": 5,
        "batch_size": 1000,
        "max_request_size": 100_000,
        "buffer_memory": 1_000_000,
        "enable_idempotence": True,
        "delivery_timeout": "1 minute",
        "max_block": "20 seconds",
        "request_timeout": "10 seconds",
        "client_id": "hours",
        "spark_options": {"kafka.retries": 3},
    }
    write(kafka_target(kafka, topic=topic, value="airport", **settings), hours)
    assert [record.value for record in kafka.consume(topic)] == [b"JFK", b"EWR"]


@pytest.mark.parametrize(
    ("raw", "code", "option", "said"),
    [
        ({"key": "nowhere"}, "GB205", "key", "`key: nowhere` can't be computed from these rows: .*nowhere"),
        ({"value": "id +"}, "GB205", "value", "can't be computed"),
        ({"partition": "nowhere"}, "GB205", "partition", "can't be computed"),
        ({"headers": "airport"}, "GB205", "headers", "is string, not a map or an array of structs"),
        ({"headers": "array(id)"}, "GB205", "headers", "is array<bigint>, not a map"),
        ({"include_headers": True}, "GB207", "include_headers", "no column `headers`"),
        ({"topic": None, "topic_column": "nowhere"}, "GB207", "topic_column", "no column `nowhere`"),
    ],
)
def test_what_the_rows_do_not_give(
    hours: DataFrame, kafka: Broker, raw: dict[str, Any], code: str, option: str, said: str
) -> None:
    with pytest.raises(GemError, match=said) as caught:
        kafka_target(kafka, **{"topic": "out", **raw}).records(hours)
    assert (caught.value.code, caught.value.option) == (code, option)
    assert "\n" not in caught.value.message


def test_rows_without_a_topic(hours: DataFrame, kafka: Broker) -> None:
    with pytest.raises(GemError, match="nothing says which topic") as caught:
        kafka_target(kafka).write_stream(hours.drop("topic"), context())
    assert caught.value.code == "GB207"


def test_records_can_not_be_replaced(hours: DataFrame, kafka: Broker) -> None:
    with pytest.raises(GemError, match="only added to") as caught:
        kafka_target(kafka, topic="out").write(hours, context("complete"))
    assert caught.value.code == "GB310"


# Streams


def start(
    target: KafkaTarget, df: DataFrame, folder: Path, output_mode: OutputMode = "append", **trigger: Any
) -> StreamingQuery:
    writer = target.write_stream(df, context(output_mode)).outputMode(output_mode)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return target.start(writer.trigger(**trigger) if trigger else writer)


def test_records_are_passed_on_as_they_are(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    first, second = kafka.new_topic("in"), kafka.new_topic("out")
    written = kafka.produce(first, ["a", b"\xff", None], keys=[None, "k", b"\x00"], headers=[("from", b"x")])
    target = kafka_target(kafka, topic=second, key="key", value="value", include_headers=True)
    query = start(target, records(spark, kafka, first), tmp_path, availableNow=True)
    assert query.awaitTermination(60)
    copied = kafka.consume(second)
    assert [(r.key, r.value, r.headers) for r in copied] == [(r.key, r.value, r.headers) for r in written]
    assert sum(progress.sink.numOutputRows for progress in query.recentProgress) == 3


def test_headers_are_not_part_of_the_json(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    first, second = kafka.new_topic("in"), kafka.new_topic("out")
    kafka.produce(first, ["a"], headers=[("from", b"x")])
    df = records(spark, kafka, first).selectExpr("cast(value as string) as page", "headers")
    target = kafka_target(kafka, topic=second, include_headers=True)
    assert start(target, df, tmp_path, availableNow=True).awaitTermination(60)
    (record,) = kafka.consume(second)
    assert (record.value, record.headers) == (b'{"page":"a"}', (("from", b"x"),))


@records_written
@pytest.mark.parametrize(
    ("output_mode", "wanted"),
    [
        ("update", [b'{"page":"a","count":2}', b'{"page":"b","count":1}', b'{"page":"b","count":2}']),
        (
            "complete",
            [
                b'{"page":"a","count":2}',
                b'{"page":"a","count":2}',
                b'{"page":"b","count":1}',
                b'{"page":"b","count":2}',
            ],
        ),
    ],
)
def test_other_output_modes(
    spark: SparkSession, kafka: Broker, tmp_path: Path, output_mode: OutputMode, wanted: list[bytes]
) -> None:
    first, second = kafka.new_topic("in"), kafka.new_topic("out")
    counts = records(spark, kafka, first).groupBy(records_page()).count()
    for values in (["a", "a", "b"], ["b"]):
        kafka.produce(first, values)
        target = kafka_target(kafka, topic=second)
        assert start(target, counts, tmp_path, output_mode, availableNow=True).awaitTermination(60)
    assert sorted(record.value or b"" for record in kafka.consume(second)) == wanted


def records_page() -> Any:
    from pyspark.sql.functions import col

    return col("value").cast("string").alias("page")


def test_a_micro_batch_that_runs_again_is_written_again(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    first, second = kafka.new_topic("in"), kafka.new_topic("out")
    kafka.produce(first, ["a"])
    df = records(spark, kafka, first)
    target = kafka_target(kafka, topic=second, value="value")
    assert start(target, df, tmp_path, availableNow=True).awaitTermination(60)
    forget_last_commit(tmp_path / "checkpoint")
    assert start(target, df, tmp_path, availableNow=True).awaitTermination(60)
    assert [record.value for record in kafka.consume(second)] == [b"a", b"a"]


def wait_for(kafka: Broker, topic: str, count: int, query: StreamingQuery) -> list[bytes]:
    """The values of a topic, once it has so many: a query that never idles says nothing of progress."""
    from time import monotonic

    deadline = monotonic() + 90
    while sum(kafka.end_offsets(topic).values()) < count:
        failure = query.exception()
        assert failure is None, str(failure)
        assert monotonic() < deadline, f"only {kafka.end_offsets(topic)} after 90 seconds"
        query.awaitTermination(1)
    return sorted(record.value or b"" for record in kafka.consume(topic))


@records_written
@pytest.mark.parametrize(
    ("output_mode", "trigger"),
    [
        ("append", {"continuous": "1 second"}),
        ("update", {"realTime": "5 seconds"}),
        ("append", {"processingTime": "0 seconds"}),
    ],
    ids=["continuous", "real time", "processing time"],
)
def test_from_topic_to_topic(
    spark: SparkSession, kafka: Broker, tmp_path: Path, output_mode: OutputMode, trigger: dict[str, str]
) -> None:
    first, second = kafka.new_topic("in"), kafka.new_topic("out")
    kafka.produce(first, ["a", "b"])
    df = records(spark, kafka, first).selectExpr("upper(cast(value as string)) as page", "topic as origin")
    target = kafka_target(kafka, topic=second, key="page", value="page")
    query = start(target, df, tmp_path, output_mode, **trigger)
    try:
        assert wait_for(kafka, second, 2, query) == [b"A", b"B"]
        kafka.produce(first, ["c"])
        assert wait_for(kafka, second, 3, query) == [b"A", b"B", b"C"]
    finally:
        query.stop()


def committed(checkpoint: Path) -> list[int]:
    """The micro-batches that are done."""
    return sorted(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))


REAL_TIME = {
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # it refuses state
    "spark.sql.shuffle.partitions": "1",  # all of its tasks run at the same time
}


@pytest.fixture
def with_state(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in which real-time mode may keep state, on two cores."""
    before = {key: spark.conf.get(key, None) for key in REAL_TIME}
    for key, value in REAL_TIME.items():
        spark.conf.set(key, value)
    yield spark
    for key, former in before.items():
        spark.conf.unset(key) if former is None else spark.conf.set(key, former)


@pytest.mark.sample(0)  # a daily run has real time from its first micro-batch on
@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (lambda df: df, ["A", "A", "B", "C", "C", "D"]),
        (lambda df: df.dropDuplicates(["page"]), ["A", "B", "C", "D"]),
        (
            lambda df: df.groupBy("page").count().selectExpr("concat(page, count) as page"),
            ["A1", "A2", "B1", "C1", "C2", "D1"],
        ),
    ],
    ids=["without state", "duplicates", "groups"],
)
def test_real_time_goes_on_from_micro_batches_and_they_from_it(
    with_state: SparkSession,
    kafka: Broker,
    tmp_path: Path,
    made: Callable[[DataFrame], DataFrame],
    wanted: list[str],
) -> None:
    """What a plan says of the two triggers, GB434: no row is lost, none is there twice, and state counts."""
    first, second = kafka.new_topic("in"), kafka.new_topic("out")
    df = made(records(with_state, kafka, first).selectExpr("upper(cast(value as string)) as page"))
    target = kafka_target(kafka, topic=second, value="page")
    kafka.produce(first, ["a", "b"])
    assert start(target, df, tmp_path, "update", availableNow=True).awaitTermination(60)
    before = committed(tmp_path / "checkpoint")
    kafka.produce(first, ["c", "a"])
    query = start(target, df, tmp_path, "update", realTime="5 seconds")
    try:
        # One that is stopped in its middle is run again, as any other.
        while committed(tmp_path / "checkpoint") == before:
            assert not query.awaitTermination(1), str(query.exception())
    finally:
        query.stop()
    kafka.produce(first, ["d", "c"])
    assert start(target, df, tmp_path, "update", availableNow=True).awaitTermination(60)
    assert sorted(record.value or b"" for record in kafka.consume(second)) == [w.encode() for w in wanted]


def test_asynchronous_progress_tracking(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    first, second = kafka.new_topic("in"), kafka.new_topic("out")
    kafka.produce(first, ["a"])
    target = kafka_target(
        kafka,
        topic=second,
        value="value",
        async_progress_tracking_enabled=True,
        async_progress_tracking_checkpoint_interval_ms=0,
    )
    for wanted in (1, 2):
        query = start(target, records(spark, kafka, first), tmp_path, processingTime="0 seconds")
        try:
            assert len(wait_for(kafka, second, wanted, query)) == wanted
            query.processAllAvailable()
        finally:
            query.stop()
        kafka.produce(first, ["b"])
    assert (tmp_path / "checkpoint" / "offsets" / "0").exists()


def test_asynchronous_progress_tracking_takes_no_available_now(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    """Why a check says so (GB365): Spark refuses it, but only when the query starts."""
    topic = kafka.new_topic("in")
    target = kafka_target(kafka, topic=topic, value="value", async_progress_tracking_enabled=True)
    with pytest.raises(Exception, match=r"(?i)async.*trigger|trigger.*async"):
        start(target, records(spark, kafka, topic), tmp_path, availableNow=True).awaitTermination(60)


def test_a_stream_over_a_login(spark: SparkSession, kafka_sasl: Broker, hours: DataFrame) -> None:
    topic = kafka_sasl.new_topic("out")
    assert kafka_sasl.sasl is not None
    user, password = kafka_sasl.sasl
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    target = kafka_target(
        kafka_sasl, topic=topic, value="id", sasl_username=user, sasl_password=password, **login
    )
    write(target, hours)
    assert [record.value for record in kafka_sasl.consume(topic)] == [b"1", b"2"]
