"""What Spark reports of its micro-batches, added up over the run."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any

from gem_bundle.run.held import HeldRows, held_rows, values_of
from gem_bundle.waiting import Position

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql.streaming.listener import SourceProgress, StateOperatorProgress, StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

    from gem_bundle.waiting import WaitingUnit

ROWS_OUT = "gem_bundle_rows_out"


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One micro-batch.

    Args:
        batch_id: Spark's number of the micro-batch.
        timestamp: When it began, ISO 8601 in UTC.
        rows_in: Rows read from all sources.
        rows_out: Rows handed to the sink, or None where they can't be counted.
        rows_per_second: Rows read, per second of processing.
        watermark: The event-time watermark, ISO 8601 in UTC, or None without one.
        state_rows: Rows held in all state stores.
        late_rows: Rows dropped because they were older than the watermark.
        duration_ms: How long it took, in milliseconds.
        held: What transforms rejected, dropped and counted.
        phases_ms: How long its phases took, by Spark's names.
        state_bytes: Memory that the state stores use.
        state_commit_ms: How long commits of the state stores took, added up.
        lag: How much waited when it began, by source: records behind a topic's newest one; or behind it, of
            sources that tell it themselves: files of a path, versions of a table.
        lag_units: Of what, by source, where it isn't records.
        lag_seconds: For how long that had been there, by source.
        newest: How much there was in all, by source: of a topic the sum over its partitions.
        positions: Up to where it has read its sources.
    """

    batch_id: int
    timestamp: str
    rows_in: int
    rows_out: int | None
    rows_per_second: float
    watermark: str | None
    state_rows: int
    late_rows: int
    duration_ms: int
    held: HeldRows = field(default_factory=HeldRows)
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    state_bytes: int = 0
    state_commit_ms: int = 0
    lag: Mapping[str, int] = field(default_factory=dict)
    lag_units: Mapping[str, WaitingUnit] = field(default_factory=dict)
    lag_seconds: Mapping[str, float] = field(default_factory=dict)
    newest: Mapping[str, int] = field(default_factory=dict)
    positions: tuple[Position, ...] = ()

    @property
    def lag_by_unit(self) -> dict[str, int]:
        """What waits, of all sources that count the same, by what they count."""
        found: dict[str, int] = {}
        for name, count in self.lag.items():
            unit = self.lag_units.get(name, "records")
            found[unit] = found.get(unit, 0) + count
        return found

    @property
    def lag_records(self) -> int | None:
        """The records that wait, of all sources; None where none counts records."""
        return self.lag_by_unit.get("records")

    def as_dict(self) -> dict[str, Any]:
        """The numbers as JSON takes them."""
        return _flat(asdict(self))


@dataclass
class Totals:
    """One target's numbers since the start of the run.

    Args:
        target: The target's id.
        group: The group that it is in, whose targets share what they read; or an empty text.
        micro_batches: How many micro-batches ended, without the idle ones.
        rows_in: Rows read.
        rows_out: Rows written, or None where they can't be counted.
        late_rows: Rows dropped because they were late.
        state_rows: Rows in the state stores at the end.
        watermark: The last watermark.
        busy_ms: Milliseconds spent in micro-batches.
        held: What transforms rejected, dropped and counted.
        restarts: How often its query was started again by itself.
        last: The last micro-batch.
    """

    target: str
    group: str = ""
    micro_batches: int = 0
    rows_in: int = 0
    rows_out: int | None = 0
    late_rows: int = 0
    state_rows: int = 0
    watermark: str | None = None
    busy_ms: int = 0
    held: HeldRows = field(default_factory=HeldRows)
    restarts: int = 0
    last: MicroBatch | None = None

    def add(self, batch: MicroBatch) -> None:
        """Count one micro-batch."""
        self.micro_batches += 1
        self.rows_in += batch.rows_in
        if self.rows_out is not None:
            self.rows_out = None if batch.rows_out is None else self.rows_out + batch.rows_out
        self.late_rows += batch.late_rows
        self.state_rows = batch.state_rows
        self.watermark = batch.watermark or self.watermark
        self.busy_ms += batch.duration_ms
        self.held.add(batch.held)
        self.last = batch

    def as_dict(self) -> dict[str, Any]:
        """The numbers as JSON takes them."""
        found = _flat(asdict(self))
        found["last"] = None if self.last is None else self.last.as_dict()
        return found


def _flat(numbers: dict[str, Any]) -> dict[str, Any]:
    left_out = {"held", "positions"}
    return {**{name: value for name, value in numbers.items() if name not in left_out}, **numbers["held"]}


@dataclass
class ProgressReader:
    """Reads a query's progress without missing or doubling a micro-batch.

    Spark keeps the last hundred reports of a query; they are read more often than that many can arrive.

    Args:
        query: The running query.
        copies: How many rows come to its last operator with state for each row that does.
    """

    query: StreamingQuery
    copies: int = 1
    _seen: tuple[int, str] = (-1, "")
    _last_id: int | None = field(default=None)

    def read(self) -> list[MicroBatch]:
        """The micro-batches that ended since the last call, in order."""
        latest = self.query.lastProgress
        if latest is None or (latest.batchId, latest.timestamp) == self._seen:
            return []
        expected = self._last_id is not None and latest.batchId == self._last_id + 1
        reports = [latest] if expected else list(self.query.recentProgress)
        found = [micro_batch(report, self.copies) for report in reports if self._is_new(report)]
        self._seen = (latest.batchId, latest.timestamp)
        for batch in found:
            self._last_id = batch.batch_id
        return found

    def _is_new(self, report: StreamingQueryProgress) -> bool:
        # A report without an execution is Spark saying that it is idle, under the next batch's id.
        if "addBatch" not in report.durationMs and "continuous" not in str(report.durationMs):
            return False
        return self._last_id is None or report.batchId > self._last_id


def micro_batch(report: StreamingQueryProgress, copies: int = 1) -> MicroBatch:
    """One report of Spark's as the numbers people ask for.

    Args:
        report: The report.
        copies: As `ProgressReader` has it.
    """
    rows_out: int | None = report.sink.numOutputRows if report.sink is not None else -1
    metrics = {name: values_of(row) for name, row in (report.observedMetrics or {}).items()}
    if ROWS_OUT in metrics:
        rows_out = int(metrics[ROWS_OUT]["rows"])
    if rows_out is None or rows_out < 0:
        rows_out = None
    # Without input it is not a number, which progress over Spark Connect leaves out.
    speed = report.processedRowsPerSecond
    event_time = report.eventTime or {}
    operators = report.stateOperators or []
    sources = report.sources or []
    positions = tuple(Position(source.description, _parsed(source.endOffset)) for source in sources)
    lag, newest = _lag(sources, positions)
    return MicroBatch(
        batch_id=report.batchId,
        timestamp=report.timestamp,
        rows_in=report.numInputRows,
        rows_out=rows_out,
        rows_per_second=0.0 if speed is None or isnan(speed) else round(speed, 1),
        watermark=_watermark(event_time.get("watermark")),
        state_rows=sum(operator.numRowsTotal for operator in operators),
        late_rows=late_rows(operators, copies),
        duration_ms=int(report.batchDuration),
        held=held_rows(metrics),
        phases_ms={phase: int(took) for phase, took in report.durationMs.items()},
        state_bytes=sum(operator.memoryUsedBytes for operator in operators),
        state_commit_ms=sum(operator.commitTimeMs for operator in operators),
        lag=lag,
        newest=newest,
        positions=positions,
    )


def late_rows(operators: Sequence[StateOperatorProgress], copies: int) -> int:
    """How many rows operators with state dropped because they were older than the watermark.

    Args:
        operators: What Spark tells of them, the last one first.
        copies: As `ProgressReader` has it.
    """
    dropped = [operator.numRowsDroppedByWatermark for operator in operators]
    return sum(dropped[1:], dropped[0] // copies) if dropped else 0


def _lag(
    sources: Iterable[SourceProgress], positions: Iterable[Position]
) -> tuple[dict[str, int], dict[str, int]]:
    """How far behind the newest each topic is read, and where that is: of offsets by topic and partition."""
    found: dict[str, int] = {}
    ends: dict[str, int] = {}
    for source, position in zip(sources, positions, strict=True):
        newest, read = _counted(_parsed(source.latestOffset)), _counted(position.offset)
        for topic, partitions in newest.items():
            behind = sum(max(0, at - read.get(topic, {}).get(name, 0)) for name, at in partitions.items())
            # Two sources of one query may read the same topic.
            found[topic] = max(behind, found.get(topic, 0))
            ends[topic] = max(sum(partitions.values()), ends.get(topic, 0))
    return found, ends


def _counted(offsets: Any) -> dict[str, dict[str, int]]:
    """Offsets such as ``{"clicks": {"0": 17}}``; nothing for those of another shape."""
    if not isinstance(offsets, dict):
        return {}
    return {
        topic: partitions
        for topic, partitions in offsets.items()
        if isinstance(partitions, dict) and all(type(offset) is int for offset in partitions.values())
    }


def _parsed(text: str | None) -> Any:
    """An offset as its source wrote it; None for one that isn't JSON."""
    try:
        return json.loads(text or "null")
    except ValueError:
        return None


def _watermark(text: str | None) -> str | None:
    # Before the first row of event time arrives, Spark's watermark is the epoch.
    return None if text is None or text.startswith("1970-01-01T00:00:00") else text
