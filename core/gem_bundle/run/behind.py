"""How long what waits in a topic has been there: from how far its newest record was, and when."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from gem_bundle.run.moments import seconds_of

if TYPE_CHECKING:
    from gem_bundle.run.progress import MicroBatch

KEPT = 512
"""So many positions are remembered for a topic; then every second one is let go."""


class Behind:
    """Tells for each micro-batch of one query how long it was behind the newest records when it began.

    Where the newest record was is known at the beginning of each micro-batch, so what lies between two of
    these is taken to have come evenly. What was there before the first one counts from that on.
    """

    def __init__(self) -> None:
        self._newest: dict[str, deque[tuple[float, int]]] = {}

    def told(self, batch: MicroBatch) -> MicroBatch:
        """The micro-batch with how long it was behind."""
        now = seconds_of(batch.timestamp)
        if now is None:
            return batch
        found = {topic: self._seconds(topic, now, at, batch.lag[topic]) for topic, at in batch.newest.items()}
        return replace(batch, lag_seconds=found) if found else batch

    def _seconds(self, topic: str, now: float, newest: int, lag: int) -> float:
        """How long ago the newest record was where the reading is now.

        Args:
            topic: The topic.
            now: When the micro-batch began, in seconds.
            newest: The sum of the newest offsets of its partitions.
            lag: Records behind these.
        """
        seen = self._newest.setdefault(topic, deque())
        if seen and newest < seen[-1][1]:
            seen.clear()  # it was made anew
        if not seen or now > seen[-1][0]:
            seen.append((now, newest))
        if len(seen) > KEPT:
            last = seen.pop()
            self._newest[topic] = seen = deque([*list(seen)[::2], last])
        if lag <= 0:
            return 0.0
        read = newest - lag
        while len(seen) > 1 and seen[1][1] <= read:
            seen.popleft()
        for (before, low), (after, high) in pairwise(seen):
            if low <= read < high:
                return round(now - before - (after - before) * (read - low) / (high - low), 3)
        return round(now - seen[0][0], 3)
