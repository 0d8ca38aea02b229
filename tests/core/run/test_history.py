"""The numbers of a run over time: bounded, and right in sum however much they were thinned."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from gem_bundle.run.held import HeldRows
from gem_bundle.run.serving.history import History
from tests.core.run.test_report_and_view import BATCH

if TYPE_CHECKING:
    from gem_bundle.run.progress import MicroBatch

BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)


def batch(number: int, **numbers: object) -> MicroBatch:
    at = (BEGAN + timedelta(seconds=10 * number)).isoformat().replace("+00:00", "Z")
    return replace(BATCH, batch_id=number, timestamp=at, **numbers)  # type: ignore[arg-type]


@given(
    st.integers(4, 40),
    st.lists(
        st.tuples(st.integers(0, 9), st.none() | st.integers(0, 9), st.integers(0, 3), st.integers(1, 99)),
        min_size=1,
        max_size=300,
    ),
)
@settings(deadline=None, max_examples=60)
def test_thinning_loses_no_row_and_keeps_the_order(
    most: int, numbers: list[tuple[int, int | None, int, int]]
) -> None:
    history = History(most)
    for at, (rows_in, rows_out, rejected, took) in enumerate(numbers):
        history.add(
            "table",
            batch(
                at,
                rows_in=rows_in,
                rows_out=rows_out,
                duration_ms=took,
                held=HeldRows({"parsed": rejected}),
                phases_ms={"addBatch": took, f"phase{at % 2}": 1},
            ),
        )
        assert len(history.points("table")) <= most
    points = history.points("table")
    assert sum(point.micro_batches for point in points) == len(numbers)
    assert sum(point.rows_in for point in points) == sum(one[0] for one in numbers)
    assert sum(point.rejected_rows for point in points) == sum(one[2] for one in numbers)
    assert sum(point.busy_ms for point in points) == sum(one[3] for one in numbers)
    assert sum(point.phases_ms["addBatch"] for point in points) == sum(one[3] for one in numbers)
    if all(one[1] is not None for one in numbers):
        assert sum(point.rows_out or 0 for point in points) == sum(one[1] or 0 for one in numbers)
    assert [point.time for point in points] == sorted(point.time for point in points)
    assert points[-1].micro_batches == 1, "the newest are as they were"
    spans = [point.micro_batches for point in points]
    assert len(numbers) <= most or spans[0] > spans[-1], "the oldest are the widest apart"


def test_as_json_it_is_in_columns() -> None:
    history = History()
    history.add("table", batch(0, lag={"a": 2, "b": 3}, phases_ms={"addBatch": 7}, watermark=None))
    history.add(
        "table", batch(1, phases_ms={"walCommit": 1}, watermark="2026-01-05T09:00:00.000Z", duration_ms=500)
    )
    found = json.loads(json.dumps(history.as_dict()))["targets"]["table"]
    assert (found["lag"], found["lag_seconds"]) == ({"records": [5, None]}, [None, None])
    assert found["phases_ms"] == {"addBatch": [7, 0], "walCommit": [0, 1]}
    assert found["watermark_seconds"] == [None, 10.5]
    assert found["time"][1] == BEGAN.timestamp() + 10.5


def test_what_waits_is_kept_by_unit_and_what_was_said_last_of_it() -> None:
    history = History(4)
    units = {"in": "files", "out": "files", "table": "versions"}
    told = {"lag": {"in": 4, "out": 1, "table": 2, "clicks": 900}, "lag_units": units}
    history.add("table", batch(0, **told, lag_seconds={"in": 2.5, "clicks": 61.0}))
    for number in range(1, 5):
        history.add("table", batch(number, lag={"clicks": number}))
    found = history.as_dict()["targets"]["table"]
    assert found["micro_batches"] == [2, 1, 1, 1]
    none = [None] * 3
    assert found["lag"] == {"files": [5, *none], "versions": [2, *none], "records": [1, 2, 3, 4]}
    assert found["lag_seconds"] == [61.0, *none]
