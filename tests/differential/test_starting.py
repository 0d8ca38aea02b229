"""When a query that Spark lets pass has done all that it will do."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.differential.starting import is_done


@dataclass
class Batch:
    numInputRows: int  # noqa: N815 (as PySpark calls it)


@dataclass
class Query:
    """A query that gives a micro-batch each time that it is waited for.

    Args:
        rows: How many rows each of them has; 0 for ever behind them when `ends` isn't set.
        ends: Whether it ends by itself behind them.
    """

    rows: list[int]
    ends: bool
    recentProgress: list[Batch] = field(default_factory=list)  # noqa: N815

    def awaitTermination(self, _: float) -> bool:  # noqa: N802
        if len(self.recentProgress) >= len(self.rows) and self.ends:
            return True
        number = len(self.recentProgress)
        self.recentProgress.append(Batch(self.rows[number] if number < len(self.rows) else 0))
        return False


def test_a_query_that_ends_is_done_when_it_has_ended() -> None:
    query = Query([1, 0, 1, 0, 0, 1, 0, 0, 0], ends=True)
    assert is_done(query)  # type: ignore[arg-type]
    assert len(query.recentProgress) == len(query.rows)


def test_a_query_that_goes_by_the_clock_is_done_when_only_empty_micro_batches_follow() -> None:
    # `--one 20261128:31`: Spark begins one after the other, and GB329 was taken for a false alarm.
    query = Query([1, 0, 0, 1, 0, 1], ends=False)
    assert is_done(query)  # type: ignore[arg-type]
    assert [batch.numInputRows for batch in query.recentProgress[:6]] == query.rows
