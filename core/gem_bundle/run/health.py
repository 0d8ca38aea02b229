"""How well the targets of a run are: what is measured of each, held against the limits of its pipeline."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle.run.moments import seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gem_bundle.pipeline.health import Level, Limit
    from gem_bundle.pipeline.model import Node
    from gem_bundle.run.progress import MicroBatch

RECENT = 20
"""From so many of the last micro-batches the share of rejected rows is taken."""


@dataclass(frozen=True, slots=True)
class Unwell:
    """A limit that a target breaks.

    Args:
        limit: The name of the limit.
        level: ``warn`` where it is worth a look, ``fail`` where the target is unwell.
        value: What was measured when it was broken.
        bound: What it may be.
        reason: That in words.
        since: Since when, ISO 8601 in UTC.
    """

    limit: str
    level: Level
    value: float
    bound: float
    reason: str
    since: str

    def as_dict(self) -> dict[str, Any]:
        """It as JSON takes it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is otherwise than it was at the last look.

    Args:
        event: ``unhealthy`` or ``healthy``.
        target: The target.
        unwell: The limit that it breaks, or broke.
    """

    event: Literal["unhealthy", "healthy"]
    target: str
    unwell: Unwell

    def as_dict(self) -> dict[str, Any]:
        """It as JSON takes it, and as views are told: the target, and the limit."""
        return {"target": self.target, **self.unwell.as_dict()}


class TargetHealth:
    """How well one target is.

    Args:
        node: The target.
        now: A clock that goes on evenly, in seconds.
        clock: The time of day, in seconds since 1970.
    """

    def __init__(
        self, node: Node, now: Callable[[], float] = time.monotonic, clock: Callable[[], float] = time.time
    ) -> None:
        self._node = node
        self._now = now
        self._clock = clock
        self._broken: dict[tuple[str, Level], float] = {}
        self._recent: deque[MicroBatch] = deque(maxlen=RECENT)
        self._alive = now()
        self.unwell: dict[str, Unwell] = {}

    @property
    def asks_for_progress(self) -> bool:
        """Whether it has to be told when its query is between two micro-batches."""
        return any(limit.name == "no_progress" for limit in self._node.health.limits)

    def begin(self) -> list[Change]:
        """Its query was started again: what was measured before says nothing any more, and breaks nothing."""
        self._alive = self._now()
        self._recent.clear()
        self._broken.clear()
        found = [Change("healthy", self._node.id, unwell) for unwell in self.unwell.values()]
        self.unwell.clear()
        return found

    def ended(self, batch: MicroBatch) -> None:
        """A micro-batch ended."""
        self._alive = self._now()
        self._recent.append(batch)

    def rests(self) -> None:
        """Its query has nothing to do, or waits for its trigger."""
        self._alive = self._now()

    def look(self) -> list[Change]:
        """What has changed since the last look."""
        found: list[Change] = []
        measured = self._measured()
        for limit in self._node.health.limits:
            before, now = self.unwell.get(limit.name), self._judge(limit, measured.get(limit.name))
            if now is not None and (before is None or before.level != now.level):
                self.unwell[limit.name] = now
                found.append(Change("unhealthy", self._node.id, now))
            elif now is None and before is not None:
                del self.unwell[limit.name]
                found.append(Change("healthy", self._node.id, before))
        return found

    def _measured(self) -> dict[str, float]:
        """What is measured, by the names of limits; what isn't known isn't there."""
        found = {"no_progress": self._now() - self._alive}
        last = self._recent[-1] if self._recent else None
        if last is not None:
            if last.lag_records is not None:
                found["behind.records"] = last.lag_records
            if last.lag_seconds:
                found["behind.time"] = max(last.lag_seconds.values())
            found["state_rows"] = last.state_rows
            found["batch_time"] = last.duration_ms / 1000
            rows = sum(batch.rows_in for batch in self._recent)
            rejected = sum(sum(batch.held.rejected.values()) for batch in self._recent)
            if rows:
                found["rejected"] = rejected / rows
            mark = seconds_of(last.watermark)
            if mark is not None:
                found["watermark_behind"] = self._clock() - mark
        return found

    def _judge(self, limit: Limit, value: float | None) -> Unwell | None:
        """The worst level that a value has broken for long enough."""
        worst: Unwell | None = None
        levels: tuple[tuple[Level, float | None], ...] = (("warn", limit.warn), ("fail", limit.fail))
        for level, bound in levels:
            key = (limit.name, level)
            if bound is None or value is None or value <= bound:
                self._broken.pop(key, None)
                continue
            since = self._broken.setdefault(key, self._now())
            if self._now() - since >= limit.lasting:
                worst = Unwell(
                    limit.name, level, value, bound, _words(limit, value, bound), self._time(since)
                )
        return worst

    def _time(self, since: float) -> str:
        at = datetime.fromtimestamp(self._clock() - (self._now() - since), UTC)
        return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def failing(unwell: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why a target is unwell: what it breaks of the level ``fail``, in words."""
    return [str(found.get("reason", "")) for found in unwell if found.get("level") == "fail"]


def _words(limit: Limit, value: float, bound: float) -> str:
    def said(number: float) -> str:
        if limit.unit == "share":
            return f"{100 * number:.3g}%"
        return f"{number:,.0f} s" if limit.unit == "seconds" else f"{number:,.0f}"

    return f"`{limit.name}` is {said(value)}, more than {said(bound)}"
