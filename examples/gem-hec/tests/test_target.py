"""Rows that Spark sends, in batch and as a stream, to a collector that fails at times."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from collector_server import TOKEN, LocalCollector

from gem_bundle import GemError, WriteContext
from gem_hec.target import HecTarget

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

CONTEXT = WriteContext(node="events", pipeline="clicks", query_name="clicks_events")
HASTY = {"timeout": "2 seconds", "retry_for": "30 seconds", "backoff": "10 ms", "max_backoff": "50 ms"}
FAULTS = ["", "503", "", "lose the answer", "429:0", "", "half an answer", "500", "drop", "a page", ""]


def target(collector: LocalCollector, **options: Any) -> HecTarget:
    values = {"url": collector.url, "token": TOKEN, **HASTY, **options}
    return HecTarget(HecTarget.options_type.model_validate(values))  # type: ignore[arg-type]


def send(gem: HecTarget, df: DataFrame) -> None:
    gem.write(df, CONTEXT)


# Events


def test_an_event_is_an_object_of_the_columns(session: SparkSession, collector: LocalCollector) -> None:
    rows = session.sql(
        "select 1 as id, 'Größe \"7\"\n☂' as text, timestamp '2026-01-05 09:00:00.123456' as at, "
        "map('a', 1.5d) as facts, array(1, null) as numbers, cast(null as string) as nothing, "
        "cast(1.10 as decimal(5,2)) as price"
    )

    send(target(collector), rows)

    (event,) = collector.events
    assert event == {
        "event": {
            "id": 1,
            "text": 'Größe "7"\n☂',
            "at": "2026-01-05T09:00:00.123Z",
            "facts": {"a": 1.5},
            "numbers": [1, None],
            "price": 1.10,
        }
    }


def test_columns_say_where_an_event_belongs(session: SparkSession, collector: LocalCollector) -> None:
    rows = session.sql(
        "select * from values (1, 'web', 'a.log', timestamp '2026-01-05 09:00:00.123456'), "
        "(2, null, 'b.log', null) as (id, team, `the file`, at)"
    )
    options = {"index": "main", "index_column": "TEAM", "source_column": "the file", "time_column": "at"}

    send(target(collector, **options, sourcetype="_json", host="spark"), rows.coalesce(1))

    assert collector.events == [
        {
            "time": 1767603600.123456,
            "host": "spark",
            "source": "a.log",
            "sourcetype": "_json",
            "index": "web",
            "event": {"id": 1},
        },
        {"host": "spark", "source": "b.log", "sourcetype": "_json", "index": "main", "event": {"id": 2}},
    ]


@pytest.mark.parametrize(
    ("event", "content"),
    [
        ("'a text'", "a text"),
        ("cast('bytes' as binary)", "bytes"),
        ("named_struct('id', 1)", {"id": 1}),
        ("map('a', 1)", {"a": 1}),
        ("parse_json('[1, \"b\"]')", [1, "b"]),
        ("7", 7),
    ],
)
def test_one_column_can_be_the_event(
    session: SparkSession, collector: LocalCollector, event: str, content: object
) -> None:
    send(target(collector, event_column="what"), session.sql(f"select {event} as what, 1 as other"))

    assert collector.events == [{"event": content}]


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("date '2026-01-05'", 1767571200),
        ("timestamp_ntz '2026-01-05 09:00:00'", 1767603600),
        ("1767603600", 1767603600),
        ("1767603600.25d", 1767603600.25),
        ("1767603600.123456", 1767603600.123456),
    ],
)
def test_times_are_seconds(
    session: SparkSession, collector: LocalCollector, time: str, seconds: float
) -> None:
    send(target(collector, time_column="at"), session.sql(f"select {time} as at, 1 as id"))

    assert collector.events == [{"time": seconds, "event": {"id": 1}}]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"time_column": "gone"}, "GB207"),
        ({"time_column": "text"}, "GB205"),
        ({"event_column": "gone"}, "GB207"),
        ({"host_column": "id", "source_column": "text"}, "GB207"),
    ],
)
def test_columns_that_do_not_fit_are_an_error(
    session: SparkSession, collector: LocalCollector, options: dict[str, str], code: str
) -> None:
    with pytest.raises(GemError) as caught:
        send(target(collector, **options), session.sql("select 1 as id, 'a' as text"))

    assert caught.value.code == code
    assert collector.tries == 0


# Every row arrives


def test_every_row_of_a_batch_arrives(session: SparkSession, collector: LocalCollector) -> None:
    collector.fault = lambda number: FAULTS[number % len(FAULTS)]
    rows = session.range(2_000).selectExpr("id", "repeat('x', cast(id % 50 as int)) as text").repartition(3)

    send(target(collector, max_payload=2_000, gzip=True), rows)

    assert sorted(set(collector.ids)) == list(range(2_000))
    assert all(post.size <= 2_000 and post.compressed for post in collector.posts)
    assert collector.tries > len(collector.posts) > 40


def test_every_row_of_a_stream_arrives_over_failures_and_restarts(
    session: SparkSession, collector: LocalCollector, tmp_path: Path
) -> None:
    gem = target(collector, max_payload=1_000, retry_for="400 ms")
    files = [tmp_path / "in" / f"{number}.json" for number in range(4)]
    files[0].parent.mkdir()
    for number, file in enumerate(files):
        lines = [json.dumps({"id": number * 100 + each}) for each in range(100)]
        file.write_text("\n".join(lines))
    collector.fault = lambda number: "503" if 15 < number < 40 else FAULTS[number % len(FAULTS)]

    def run() -> str | None:
        stream = session.readStream.name("files").schema("id int").option("maxFilesPerTrigger", 1)
        writer = gem.write_stream(stream.json(str(files[0].parent)), CONTEXT)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        try:
            writer.start().awaitTermination()
        except Exception as error:  # noqa: BLE001 (Spark's own kind)
            return str(error)
        return None

    ended = [run()]
    while ended[-1] is not None and len(ended) < 20:
        ended.append(run())

    assert ended[-1] is None
    assert len(ended) > 1, "the collector never failed for longer than `retry_for`"
    assert all("the collector hasn't taken some events in" in said for said in ended if said)
    assert sorted(set(collector.ids)) == list(range(400))


def test_an_event_that_is_too_large_ends_the_query_and_is_named(
    session: SparkSession, collector: LocalCollector
) -> None:
    rows = session.sql("select id, repeat('x', if(id = 3, 2000, 1)) as text from range(5)").coalesce(1)

    with pytest.raises(
        Exception, match=r'an event has 2,\d+ bytes, and `max_payload` is 1,000: `{"event":{"id":3,'
    ):
        send(target(collector, max_payload=1_000), rows)

    assert 3 not in collector.ids


def test_a_row_without_an_event_ends_the_query(session: SparkSession, collector: LocalCollector) -> None:
    rows = session.sql("select 'spark' as host, cast(null as string) as what")

    with pytest.raises(Exception, match=r'a row has no event, .*`{"host":"spark"}`'):
        send(target(collector, event_column="what", host_column="host"), rows)

    assert collector.tries == 0


def test_acknowledgements_are_waited_for(session: SparkSession, collector: LocalCollector) -> None:
    collector.acknowledges = 3

    send(target(collector, acknowledge=True), session.range(100).coalesce(1))

    assert collector.questions == 4
    assert collector.ids == list(range(100))
