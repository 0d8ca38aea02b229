"""The last micro-batch of a query in a Delta table, by the table's history, without Spark."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gem_delta import intervals
from gem_delta.target import DeltaTargetOptions


def commit(version: int, query: str = "", batch: int = 0) -> dict[str, Any]:
    said = {"queryId": query, "epochId": str(batch)} if query else {}
    kind = "STREAMING UPDATE" if query else "WRITE"
    return {"version": version, "operation": kind, "operationParameters": said}


@pytest.mark.parametrize(
    ("history", "found", "looks"),
    [
        ([commit(2, "other", 9), commit(1, "query", 4), commit(0, "query", 3)], 4, 1),
        ([commit(1), commit(0)], None, 1),
        # Others have committed since, so often that it isn't among the newest.
        ([*(commit(n) for n in range(40, 1, -1)), commit(1, "query", 4)], 4, 2),
    ],
    ids=["newest", "none", "long ago"],
)
def test_the_last_micro_batch(
    monkeypatch: pytest.MonkeyPatch, history: list[Any], found: int | None, looks: int
) -> None:
    asked: list[int | None] = []

    def told(_: Any, __: Any, most: int | None = None) -> list[Any]:
        asked.append(most)
        return history[:most]

    monkeypatch.setattr(intervals, "_history", told)
    options = DeltaTargetOptions(table="it")
    assert intervals.last_batch(options, "query", cast("Any", None)) == found
    assert len(asked) == looks
