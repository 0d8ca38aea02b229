"""Spark's reports, added up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gem_bundle.run.progress import ROWS_OUT, ProgressReader, Totals, late_rows, micro_batch


@dataclass
class Sink:
    numOutputRows: int  # noqa: N815 (Spark's name)


@dataclass
class Operator:
    numRowsTotal: int  # noqa: N815
    numRowsDroppedByWatermark: int  # noqa: N815
    memoryUsedBytes: int = 100  # noqa: N815
    commitTimeMs: int = 20  # noqa: N815


@dataclass
class Source:
    endOffset: str | None  # noqa: N815
    latestOffset: str | None  # noqa: N815
    description: str = "KafkaV2[Subscribe[clicks]]"


@dataclass
class Progress:
    """What Spark reports, as far as it is read; recorded reports of real runs look like this."""

    batchId: int  # noqa: N815
    numInputRows: int = 10  # noqa: N815
    timestamp: str = ""
    sink: Sink = field(default_factory=lambda: Sink(-1))
    durationMs: dict[str, int] = field(default_factory=lambda: {"addBatch": 5, "triggerExecution": 9})  # noqa: N815
    observedMetrics: dict[str, Any] = field(default_factory=dict)  # noqa: N815
    processedRowsPerSecond: float | None = 100.0  # noqa: N815
    eventTime: dict[str, str] = field(default_factory=dict)  # noqa: N815
    stateOperators: list[Operator] = field(default_factory=list)  # noqa: N815
    batchDuration: int = 9  # noqa: N815
    sources: list[Source] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.timestamp = self.timestamp or f"2013-01-01T00:00:{self.batchId:02}.000Z"


@dataclass
class Query:
    recentProgress: list[Progress] = field(default_factory=list)  # noqa: N815

    @property
    def lastProgress(self) -> Progress | None:  # noqa: N802
        return self.recentProgress[-1] if self.recentProgress else None


def reader(query: Query) -> ProgressReader:
    return ProgressReader(query)  # type: ignore[arg-type]


def test_every_micro_batch_is_counted_once_however_often_one_looks() -> None:
    query = Query()
    found = reader(query)
    assert found.read() == []
    for batch_id in range(3):
        query.recentProgress.append(Progress(batch_id))
        assert [b.batch_id for b in found.read()] == [batch_id]
        assert found.read() == []


def test_micro_batches_between_two_looks_are_not_missed() -> None:
    query = Query([Progress(0)])
    found = reader(query)
    found.read()
    query.recentProgress += [Progress(1), Progress(2), Progress(3)]
    totals = Totals("t")
    for batch in found.read():
        totals.add(batch)
    assert totals.micro_batches == 3
    assert totals.rows_in == 30
    assert totals.last is not None
    assert totals.last.batch_id == 3


def test_a_restarted_query_begins_at_its_own_number() -> None:
    query = Query([Progress(17)])
    found = reader(query)
    assert [b.batch_id for b in found.read()] == [17]


def test_idle_reports_do_not_count() -> None:
    idle = Progress(1, numInputRows=0, timestamp="2013-01-01T00:01:00.000Z", durationMs={"latestOffset": 1})
    query = Query([Progress(0)])
    found = reader(query)
    found.read()
    query.recentProgress.append(idle)
    assert found.read() == []
    query.recentProgress.append(Progress(1, timestamp="2013-01-01T00:02:00.000Z"))
    assert [b.batch_id for b in found.read()] == [1]


def test_rows_out_come_from_the_sink_or_from_the_counter_or_are_unknown() -> None:
    from pyspark.sql import Row

    assert micro_batch(Progress(0, sink=Sink(7))).rows_out == 7  # type: ignore[arg-type]
    observed = Progress(0, observedMetrics={ROWS_OUT: Row(rows=5)})
    assert micro_batch(observed).rows_out == 5  # type: ignore[arg-type]
    values = Row(values=[6], schema={"type": "struct", "fields": [{"name": "rows", "type": "long"}]})
    over_connect = Progress(0, observedMetrics={ROWS_OUT: values})
    assert micro_batch(over_connect).rows_out == 6  # type: ignore[arg-type]
    assert micro_batch(Progress(0)).rows_out is None  # type: ignore[arg-type]
    totals = Totals("t")
    totals.add(micro_batch(Progress(0)))  # type: ignore[arg-type]
    totals.add(micro_batch(observed))  # type: ignore[arg-type]
    assert totals.rows_out is None


def test_a_speed_without_input_is_nothing() -> None:
    for speed in (float("nan"), None):  # None: Spark Connect leaves it out
        report = Progress(0, numInputRows=0, processedRowsPerSecond=speed)
        assert micro_batch(report).rows_per_second == 0  # type: ignore[arg-type]


def test_state_and_late_rows_are_summed_over_operators() -> None:
    report = Progress(0, stateOperators=[Operator(10, 1), Operator(5, 2)])
    batch = micro_batch(report)  # type: ignore[arg-type]
    assert (batch.state_rows, batch.late_rows) == (15, 3)


def test_a_watermark_is_shown_when_there_is_one() -> None:
    before = Progress(0, eventTime={"watermark": "1970-01-01T00:00:00.000Z"})
    after = Progress(1, eventTime={"watermark": "2013-01-01T05:00:00.000Z"})
    assert micro_batch(before).watermark is None  # type: ignore[arg-type]
    assert micro_batch(after).watermark == "2013-01-01T05:00:00.000Z"  # type: ignore[arg-type]
    totals = Totals("t")
    for report in (after, before):
        totals.add(micro_batch(report))  # type: ignore[arg-type]
    assert totals.watermark == "2013-01-01T05:00:00.000Z"


def test_a_speed_that_is_not_a_number_is_zero() -> None:
    assert micro_batch(Progress(0, processedRowsPerSecond=float("nan"))).rows_per_second == 0.0  # type: ignore[arg-type]


def test_phases_and_what_the_state_takes_are_kept() -> None:
    batch = micro_batch(Progress(0, stateOperators=[Operator(10, 1), Operator(5, 2)]))  # type: ignore[arg-type]
    assert batch.phases_ms == {"addBatch": 5, "triggerExecution": 9}
    assert (batch.state_bytes, batch.state_commit_ms) == (200, 40)


def test_lag_is_known_where_offsets_are_counted_by_topic_and_partition() -> None:
    sources = [
        Source(
            '{"clicks": {"0": 17, "1": 3}, "pages": {"0": 5}}',
            '{"clicks": {"0": 27, "1": 5}, "pages": {"0": 5}}',
        ),
        # The same topic once more, less far, and with a partition that wasn't there before.
        Source('{"clicks": {"0": 10, "1": 3}}', '{"clicks": {"0": 27, "1": 5, "2": 4}}'),
        Source('{"logOffset": 3}', '{"logOffset": 9}'),
        Source(None, None),
        Source("7", "9"),
        Source("2026-01-01", "null"),
    ]
    batch = micro_batch(Progress(0, sources=sources))  # type: ignore[arg-type]
    assert batch.lag == {"clicks": 23, "pages": 0}


def test_a_late_row_is_one_however_many_are_made_of_it() -> None:
    operators = [Operator(5, 6), Operator(7, 1)]
    assert late_rows(operators, 1) == 7  # type: ignore[arg-type]
    assert late_rows(operators, 3) == 3  # type: ignore[arg-type]
    assert late_rows([], 2) == 0
    query = Query([Progress(0, stateOperators=operators)])
    (batch,) = ProgressReader(query, copies=3).read()  # type: ignore[arg-type]
    assert batch.late_rows == 3
