"""What drawn pipelines name to be called: processors with state, and functions of targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StatefulProcessor

if TYPE_CHECKING:
    from collections.abc import Iterator


class Keeping(StatefulProcessor):
    """Keeps state that nothing takes away."""

    def init(self, handle: Any) -> None:
        """Ask for the state."""
        self.handle = handle
        self.counted = handle.getValueState("counted", "n bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803 (as Spark calls it)
        """Give no rows: whatever the schema is, they fit it."""
        self.counted.update((sum(1 for _ in rows),))
        return iter(())

    def close(self) -> None:
        """Leave it."""


class Timed(StatefulProcessor):
    """Keeps state until a timer is due."""

    def init(self, handle: Any) -> None:
        """Ask for the state."""
        self.handle = handle
        self.seen = handle.getListState("seen", "n bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Let a timer run."""
        self.seen.appendValue((sum(1 for _ in rows),))
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 60_000)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Forget the key."""
        self.seen.clear()
        return iter(())

    def close(self) -> None:
        """Leave it."""


class Expiring(StatefulProcessor):
    """Keeps state that has a time to live."""

    def init(self, handle: Any) -> None:
        """Ask for the state."""
        self.by_day = handle.getMapState("by_day", "day int", "n bigint", 86_400_000)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Count."""
        self.by_day.updateValue((1,), (sum(1 for _ in rows),))
        return iter(())

    def close(self) -> None:
        """Leave it."""


class Begun(Keeping):
    """Keeps state that it is given to begin with."""

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        """Begin with it."""
        self.counted.update((1,))


def take_row(row: Any) -> None:
    """Do nothing with a row."""


def judge_row(row: Any) -> str | None:
    """Refuse a row that is empty."""
    return None if len(row) else "it is empty"


def take_batch(df: Any, batch_id: int) -> None:
    """Do nothing with a micro-batch."""


def judge_batch(df: Any, batch_id: int, reject: Any) -> None:
    """Refuse no row of a micro-batch."""
