"""How long what waits in a source has been there: from how much there was in all, and when."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from gem_bundle.run.moments import seconds_of

if TYPE_CHECKING:
    from gem_bundle.run.progress import MicroBatch

KEPT = 512
"""So many positions are remembered for a source; then every second one is let go."""


class Behind:
    """Tells for each micro-batch of one query how long it was behind the newest of its sources when it began.

    How much there is in all is known for each micro-batch, so what lies between two of these is taken to
    have come evenly. What was there before the first one counts from that on.
    """

    def __init__(self) -> None:
        self._newest: dict[str, deque[tuple[float, int]]] = {}

    def told(self, batch: MicroBatch) -> MicroBatch:
        """The micro-batch with how long it was behind."""
        now = seconds_of(batch.timestamp)
        if now is None:
            return batch
        found = {name: self._seconds(name, now, at, batch.lag[name]) for name, at in batch.newest.items()}
        return replace(batch, lag_seconds=found) if found else batch

    def _seconds(self, source: str, now: float, newest: int, lag: int) -> float:
        """How long ago there was as much in all as has been read now.

        Args:
            source: The source.
            now: When the micro-batch began, in seconds.
            newest: How much there is in all.
            lag: How much of that waits.
        """
        seen = self._newest.setdefault(source, deque())
        if seen and newest < seen[-1][1]:
            seen.clear()  # it was made anew
        if not seen or now > seen[-1][0]:
            seen.append((now, newest))
        if len(seen) > KEPT:
            last = seen.pop()
            self._newest[source] = seen = deque([*list(seen)[::2], last])
        if lag <= 0:
            return 0.0
        read = newest - lag
        while len(seen) > 1 and seen[1][1] <= read:
            seen.popleft()
        for (before, low), (after, high) in pairwise(seen):
            if low <= read < high:
                return round(now - before - (after - before) * (read - low) / (high - low), 3)
        return round(now - seen[0][0], 3)
