"""Rows that Spark sends, in batch and as a stream, to a collector that fails at times."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from collector_server import TOKEN, LocalCollector

from gem_bundle import GemError, Pipeline, WriteContext
from gem_hec.target import HecTarget

if TYPE_CHECKING:
    from collections.abc import Iterator
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


# What the collector refuses

PIPELINE = """
pipeline: clicks
sources:
  clicks:
    gem: file
    options: {{path: in, format: json, schema: "id int, team string, at timestamp", max_files_per_trigger: 1}}
targets:
  collector:
    gem: hec
    input: clicks
    options:
      url: {url}
      token: {token}
      rejects: true
      index_column: team
      max_payload: 1000
      timeout: 300 ms
      retry_for: {retry_for}
      backoff: 10 ms
      max_backoff: 50 ms
  refused: {{gem: foreach_batch, input: collector.rejected, options: {{function: "jobs_of_clicks:save"}}}}
"""
JOBS = """
from pathlib import Path

def save(df, batch_id):
    df.write.mode("overwrite").json(str(Path(__file__).with_name("refused") / str(batch_id)))
"""


def clicks(folder: Path, collector: LocalCollector, retry_for: str, files: int, each: int) -> Path:
    """A pipeline over files of clicks, of which every ninth is of a team that the collector doesn't know."""
    (folder / "in").mkdir()
    for number in range(files):
        rows = [
            {"id": n, "team": None if n % 9 else "unknown"} for n in range(number * each, (number + 1) * each)
        ]
        lines = (json.dumps({**row, "at": "2026-01-05T09:00:00.123456Z"}) for row in rows)
        (folder / "in" / f"{number}.json").write_text("\n".join(lines))
    (folder / "jobs_of_clicks.py").write_text(JOBS)
    file = folder / "clicks.yaml"
    file.write_text(PIPELINE.format(url=collector.url, token=TOKEN, retry_for=retry_for))
    return file


@pytest.fixture
def fresh_module() -> Iterator[None]:
    yield
    sys.modules.pop("jobs_of_clicks", None)


@pytest.mark.usefixtures("fresh_module")
def test_every_event_is_delivered_or_rejected_whatever_the_collector_answers(
    session: SparkSession, collector: LocalCollector, tmp_path: Path
) -> None:
    faults = ["", "400", "429:0", "500", "silence", "drop", "lose the answer", "half an answer"]
    collector.fault = lambda number: faults[number % len(faults)]
    file = clicks(tmp_path, collector, "30 seconds", files=3, each=40)

    report = Pipeline.load(file).run(available_now=True)

    assert report.ok, report.diagnostics
    refused = session.read.json(str(tmp_path / "refused" / "*")).collect()
    ids = sorted(json.loads(row.row)["id"] for row in refused)
    assert set(range(0, 120, 9)) <= set(ids)
    assert len(ids) == len(set(ids)), "an event was rejected twice"
    assert set(collector.ids) | set(ids) == set(range(120))
    assert not set(collector.ids) & set(ids), "an event was delivered and rejected"
    assert {why.name for row in refused for why in row.reasons} == {"refused"}
    assert {why.words for row in refused for why in row.reasons} <= {
        "400, code 7: Incorrect index",
        "400, code 9: Server is busy",
    }
    assert report.held.rejected == {"collector": len(ids)}
    rows_out = report.targets["collector"].rows_out
    assert rows_out is not None
    assert (report.rows_in, rows_out + len(ids)) == (120, 120)


@pytest.mark.usefixtures("fresh_module")
def test_a_collector_that_is_away_rejects_nothing(
    session: SparkSession, collector: LocalCollector, tmp_path: Path
) -> None:
    collector.fault = lambda number: "500" if number < 12 else ""
    file = clicks(tmp_path, collector, "100 ms", files=1, each=20)

    ended = [Pipeline.load(file).run(available_now=True)]
    while not ended[-1].ok and len(ended) < 20:
        assert not (tmp_path / "refused").exists()
        assert ended[-1].diagnostics[0].node == "collector"
        assert "the collector hasn't taken some events in" in ended[-1].diagnostics[0].message
        ended.append(Pipeline.load(file).run(available_now=True))

    assert len(ended) > 1, "the collector was never away for longer than `retry_for`"
    assert ended[-1].ok
    assert sorted(set(collector.ids)) == [n for n in range(20) if n % 9]
    refused = session.read.json(str(tmp_path / "refused" / "*")).collect()
    assert sorted(json.loads(row.row)["id"] for row in refused) == [0, 9, 18]
