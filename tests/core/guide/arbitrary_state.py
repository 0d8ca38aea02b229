"""Sessions by state of one's own, for the guide's section *Arbitrary Stateful Operations*."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.state import GroupStateTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

ROWS = "id string, rows long"


def sessions_updated(events: DataFrame) -> DataFrame:
    """How many rows each session has, whenever that changes."""
    return events.groupBy("id").applyInPandasWithState(
        _count, ROWS, "rows long", "update", GroupStateTimeout.NoTimeout
    )


def sessions_appended(events: DataFrame) -> DataFrame:
    """How many rows each session has so far, as rows that are added."""
    return events.groupBy("id").applyInPandasWithState(
        _count, ROWS, "rows long", "append", GroupStateTimeout.NoTimeout
    )


def timed_sessions(devices: DataFrame) -> DataFrame:
    """How many rows each device has had, and when last, as soon as event time says that it is over."""
    over = (
        devices.withWatermark("time", "1 hour")
        .groupBy("device")
        .applyInPandasWithState(
            _until_it_is_over,
            "device string, rows long, time timestamp",
            "rows long, time timestamp",
            "append",
            GroupStateTimeout.EventTimeTimeout,
        )
    )
    return over.withWatermark("time", "1 hour")


def _count(key: tuple[Any, ...], frames: Iterator[Any], state: GroupState) -> Iterator[Any]:
    import pandas as pd

    (before,) = state.get if state.exists else (0,)
    rows = before + sum(len(frame) for frame in frames)
    state.update((rows,))
    yield pd.DataFrame({"id": [key[0]], "rows": [rows]})


def _until_it_is_over(key: tuple[Any, ...], frames: Iterator[Any], state: GroupState) -> Iterator[Any]:
    import pandas as pd

    if state.hasTimedOut:
        rows, time = state.get
        state.remove()
        yield pd.DataFrame({"device": [key[0]], "rows": [rows], "time": [time]})
        return
    rows, time = state.get if state.exists else (0, pd.Timestamp.min)
    for frame in frames:
        rows, time = rows + len(frame), max(time, frame["time"].max())
    state.update((rows, time))
    state.setTimeoutTimestamp(int(time.timestamp() * 1000) + 3_600_000)
