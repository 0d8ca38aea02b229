"""The numbers of a run over time, in bounded memory: the older they are, the wider apart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from gem_bundle.run.moments import seconds_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.run.progress import MicroBatch

MOST_POINTS = 360
"""So many points are kept of each target."""


@dataclass(frozen=True, slots=True)
class Point:
    """One micro-batch, or several one after the other.

    Args:
        time: When the last of them ended, in seconds since 1970.
        micro_batches: How many they are.
        rows_in: Rows read.
        rows_out: Rows written, or None where they can't be counted.
        busy_ms: How long they took, added up.
        late_rows: Rows dropped because they were late.
        rejected_rows: Rows that transforms rejected.
        state_rows: Rows in the state stores after the last of them.
        state_bytes: Memory of the state stores after the last of them.
        watermark_seconds: How far the watermark was behind the last of them, or None without one.
        lag_seconds: For how long what waits had been there, of all sources the longest; None where that
            isn't known.
        lag: How much waited, of all sources that count the same, by what they count: records, files,
            versions.
        phases_ms: How long their phases took, added up, by Spark's names.
    """

    time: float
    micro_batches: int
    rows_in: int
    rows_out: int | None
    busy_ms: int
    late_rows: int
    rejected_rows: int
    state_rows: int
    state_bytes: int
    watermark_seconds: float | None
    lag_seconds: float | None
    lag: Mapping[str, int] = field(default_factory=dict)
    phases_ms: Mapping[str, int] = field(default_factory=dict)

    def then(self, later: Point) -> Point:
        """Both as one: what happened is added up, what is so is as it was last."""
        known = self.rows_out is not None and later.rows_out is not None
        phases = {
            name: self.phases_ms.get(name, 0) + later.phases_ms.get(name, 0)
            for name in (*self.phases_ms, *later.phases_ms)
        }
        return replace(
            later,
            micro_batches=self.micro_batches + later.micro_batches,
            rows_in=self.rows_in + later.rows_in,
            rows_out=(self.rows_out or 0) + (later.rows_out or 0) if known else None,
            busy_ms=self.busy_ms + later.busy_ms,
            late_rows=self.late_rows + later.late_rows,
            rejected_rows=self.rejected_rows + later.rejected_rows,
            # Sources that take long aren't asked after each micro-batch: what they said last counts.
            lag_seconds=self.lag_seconds if later.lag_seconds is None else later.lag_seconds,
            lag={**self.lag, **later.lag},
            phases_ms=phases,
        )


class History:
    """The points of all targets; may be asked from any thread.

    Args:
        most: How many points are kept of each target, at least 4.
    """

    def __init__(self, most: int = MOST_POINTS) -> None:
        self._most = most
        self._points: dict[str, list[Point]] = {}
        self._lock = Lock()

    def add(self, target: str, batch: MicroBatch) -> None:
        """Note a micro-batch."""
        with self._lock:
            points = self._points.setdefault(target, [])
            points.append(_point(batch))
            if len(points) > self._most:
                # The older half, two at a time: what is thinned again and again gets wider apart.
                half = len(points) // 4 * 2
                pairs = zip(points[0:half:2], points[1:half:2], strict=True)
                points[:half] = [first.then(second) for first, second in pairs]

    def points(self, target: str) -> list[Point]:
        """The points of a target, the oldest first."""
        with self._lock:
            return list(self._points.get(target, ()))

    def as_dict(self) -> dict[str, Any]:
        """All points as JSON takes them: for each target the names of the numbers with their values."""
        with self._lock:
            found = {target: list(points) for target, points in self._points.items()}
        names = [name for name in Point.__slots__ if name not in {"lag", "phases_ms"}]
        columns: dict[str, Any] = {}
        for target, points in found.items():
            phases = dict.fromkeys(phase for point in points for phase in point.phases_ms)
            units = dict.fromkeys(unit for point in points for unit in point.lag)
            columns[target] = {
                **{name: [getattr(point, name) for point in points] for name in names},
                "lag": {unit: [point.lag.get(unit) for point in points] for unit in units},
                "phases_ms": {phase: [point.phases_ms.get(phase, 0) for point in points] for phase in phases},
            }
        return {"targets": columns}


def _point(batch: MicroBatch) -> Point:
    ended = (seconds_of(batch.timestamp) or 0.0) + batch.duration_ms / 1000
    watermark = seconds_of(batch.watermark)
    return Point(
        time=round(ended, 3),
        micro_batches=1,
        rows_in=batch.rows_in,
        rows_out=batch.rows_out,
        busy_ms=batch.duration_ms,
        late_rows=batch.late_rows,
        rejected_rows=sum(batch.held.rejected.values()),
        state_rows=batch.state_rows,
        state_bytes=batch.state_bytes,
        watermark_seconds=None if watermark is None else round(ended - watermark, 3),
        lag_seconds=max(batch.lag_seconds.values(), default=None),
        lag=batch.lag_by_unit,
        phases_ms=dict(batch.phases_ms),
    )
