"""Spans of time: in steps, and as conditions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gem_bundle.backfill.interval import FIRST_MOMENT, LAST_MOMENT, Interval, length_of, moment_of

DAY = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_steps_are_the_whole_without_gaps(minutes: int, step: int) -> None:
    interval = Interval(DAY.start, DAY.start + timedelta(minutes=minutes))
    steps = interval.steps(timedelta(minutes=step))
    assert steps[0].start == interval.start
    assert steps[-1].end == interval.end
    assert all(one.end == other.start for one, other in pairwise(steps))
    assert all(one.start < one.end for one in steps)


@pytest.mark.parametrize(
    ("path", "kind", "condition"),
    [
        (
            ("at",),
            "timestamp",
            "`at` >= timestamp'2026-01-01 00:00:00 UTC' and `at` < timestamp'2026-01-02 00:00:00 UTC'",
        ),
        (("a`b",), "date", "`a``b` >= date'2026-01-01' and `a``b` < date'2026-01-02'"),
        (
            ("window", "start"),
            "timestamp_ntz",
            "`window`.`start` >= timestamp_ntz'2026-01-01 00:00:00' and "
            "`window`.`start` < timestamp_ntz'2026-01-02 00:00:00'",
        ),
    ],
)
def test_conditions(path: tuple[str, ...], kind: str, condition: str) -> None:
    assert DAY.condition(path, kind) == condition


def test_moments_have_a_zone() -> None:
    assert moment_of("2026-01-01") == DAY.start
    assert moment_of("2026-01-01T02:00:00+02:00") == DAY.start
    assert str(Interval(DAY.start, DAY.start + timedelta(hours=1))) == "2026-01-01 to 2026-01-01T01:00:00Z"
    with pytest.raises(ValueError, match="month"):
        length_of("1 month")


def test_there_is_no_moment_before_the_first_and_behind_the_last() -> None:
    ages = length_of("10000000 days")
    assert Interval(FIRST_MOMENT, LAST_MOMENT).wider(timedelta(days=1)) == Interval(FIRST_MOMENT, LAST_MOMENT)
    assert DAY.wider(ages) == Interval(FIRST_MOMENT, LAST_MOMENT)
    assert DAY.steps(ages) == [DAY]
    first = Interval(FIRST_MOMENT, FIRST_MOMENT + timedelta(days=1))
    assert first.condition(("day",), "date") == "`day` >= date'0001-01-01' and `day` < date'0001-01-02'"
    assert str(first) == "0001-01-01 to 0001-01-02"
    with pytest.raises(OverflowError):
        moment_of("9999-12-31T23:59:59-12:00")
