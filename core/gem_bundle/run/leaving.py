"""How a query stops: when its micro-batch has ended, and without holding up others."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql.streaming.query import StreamingQuery

    from gem_bundle.run.steering import StopRequest

# Between two micro-batches there may be no more than some milliseconds.
STOP_POLL_SECONDS = 0.01
STUCK_SECONDS = 120.0
"""Spark interrupts what a query does when it stops it; what goes on for so long, it can't interrupt."""


class Leaving:
    """A query that is to stop, when its micro-batch has ended.

    A stop in the middle leaves a micro-batch that was begun and not committed; it would be run again
    at the next start, which sinks that write at least once show as doubled rows. So a query is
    stopped when it is between two triggers, or right after one has ended. That is done in a thread of its
    own: Spark waits for what it can't interrupt, and meanwhile others have to be looked at.

    Args:
        query: The query.
        stop: Whether it is to stop without waiting is asked there.
        timeout: Seconds that its micro-batch may take to end.

    Attributes:
        then: What is done when it has stopped, where it hasn't failed.
    """

    def __init__(self, query: StreamingQuery, stop: StopRequest, timeout: float) -> None:
        self.then: Callable[[], None] | None = None
        self._query = query
        self._stop = stop
        self._deadline = time.monotonic() + timeout
        self._stopping = 0.0
        self._before = query.lastProgress
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._end, name="gem-bundle-stop", daemon=True)

    def at_once(self) -> None:
        """Don't wait for the end of its micro-batch any more."""
        self._deadline = 0.0

    def is_over(self) -> bool:
        """Stop it as soon as that may be, and say whether it has stopped."""
        if self._thread.ident is None:
            if not self._may_stop():
                return False
            self._stopping = time.monotonic()
            self._thread.start()
        if self._thread.is_alive():
            return False
        if self._error is not None:
            raise self._error
        return True

    def is_stuck(self) -> bool:
        """Whether it doesn't stop, although its micro-batch had its time to end.

        It is in code that Spark can't interrupt then, such as a function that is called in this process.
        """
        began = self._stopping if self._stop.now else max(self._stopping, self._deadline)
        return self._thread.is_alive() and time.monotonic() - began > STUCK_SECONDS

    def _may_stop(self) -> bool:
        if self._stop.now or time.monotonic() >= self._deadline:
            return True
        if not (self._query.isActive and self._query.status["isTriggerActive"]):
            return True
        latest = self._query.lastProgress
        return latest is not None and (self._before is None or latest.batchId > self._before.batchId)

    def _end(self) -> None:
        try:
            self._query.stop()
        except Exception as error:  # noqa: BLE001 (raised where it is waited for)
            self._error = error


def stop_all(
    queries: Iterable[StreamingQuery], stop: StopRequest, timeout: float, tick: Callable[[], None]
) -> None:
    """Let each query end its micro-batch, then stop it.

    Args:
        queries: The queries.
        stop: Whether they are to stop without waiting is asked there.
        timeout: Seconds that a micro-batch may take to end.
        tick: Called again and again meanwhile.
    """
    leaving = [Leaving(query, stop, timeout) for query in queries]
    while leaving := [each for each in leaving if not (each.is_over() or each.is_stuck())]:
        tick()
        time.sleep(STOP_POLL_SECONDS)
