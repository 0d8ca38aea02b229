"""Rows that are made up over a schema."""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gem_bundle.schema import StructField, fields_of
from gem_bundle.testing.rows.generate import generate
from gem_bundle.testing.values import MisfitError, Reader, Shower

EVERY_TYPE = """
    a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h decimal(5,2), i decimal(38,30),
    j string, k char(5), l varchar(3), m binary, n date, o timestamp, p timestamp_ntz, q time,
    r interval day to second, s array<int>, t map<string,double>, u struct<x: int, y: array<struct<z: date>>>
"""


def fields(ddl: str) -> tuple[StructField, ...]:
    found = fields_of(ddl)
    assert found is not None
    return found


def column(ddl: str, rows: int = 200, seed: int = 0, time_zone: str = "UTC", **shape: Any) -> list[Any]:
    """The values of a column that is made in some way."""
    return [row[0] for row in generate(fields(f"v {ddl}"), rows, seed, {"v": shape}, time_zone)]


def test_the_same_seed_gives_the_same_rows_on_every_machine() -> None:
    columns = fields(EVERY_TYPE)
    rows = generate(columns, 50, seed=7)

    assert generate(columns, 50, seed=7) == rows
    assert generate(columns, 50, seed=8) != rows
    shown = repr([Shower().row(row, columns) for row in rows])
    # The numbers themselves: they may not change with a new version of Python or of gem-bundle.
    assert hashlib.sha256(shown.encode()).hexdigest()[:16] == "1f5d4b3b14087f17"


def test_values_of_every_type_fit_their_columns() -> None:
    columns = fields(EVERY_TYPE)
    reader, shower = Reader(), Shower()

    for row in generate(columns, 200):
        assert reader.row(shower.row(row, columns), columns) == row


def test_more_rows_and_more_columns_change_nothing_in_the_others() -> None:
    few = generate(fields("a int, b array<string>"), 10)
    more = generate(fields("z int, a int, b array<string>, y map<int,int>"), 30)

    assert [row[1:3] for row in more[:10]] == few


def test_usual_values_are_small_and_readable() -> None:
    assert {0 <= value <= 1000 for value in column("int")} == {True}
    assert len(set(column("int"))) > 100
    assert {round(value, 2) == value for value in column("double")} == {True}
    assert all(isinstance(value, Decimal) and 0 <= value <= 1000 for value in column("decimal(10,2)"))
    assert max(column("decimal(3,2)")) < 10
    assert all(4 <= len(value) <= 8 and value.isalpha() for value in column("string"))
    assert {len(value) for value in column("char(5)")} == {5}
    assert set(column("boolean")) == {True, False}
    assert {type(value) for value in column("time")} == {time}


def test_timestamps_advance_by_a_minute() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)

    assert column("timestamp", 3) == [start, start + timedelta(minutes=1), start + timedelta(minutes=2)]
    assert column("timestamp", 1, time_zone="Europe/Oslo") == [start - timedelta(hours=1)]
    assert column("timestamp_ntz", 1) == [datetime(2026, 1, 1)]


def test_event_times_advance_as_they_are_told_and_come_out_of_order() -> None:
    shape = {"start": "2026-01-05 09:00:00", "step": "30 seconds", "jitter": "2 minutes"}
    found = column("timestamp", 300, **shape)
    start = datetime(2026, 1, 5, 9, tzinfo=UTC)

    away = [moment - (start + index * timedelta(seconds=30)) for index, moment in enumerate(found)]
    assert {abs(distance) <= timedelta(minutes=2) for distance in away} == {True}
    assert min(away) < timedelta(minutes=-1) < timedelta(minutes=1) < max(away)
    assert found != sorted(found)
    assert {moment.microsecond for moment in found} == {0}


@pytest.mark.parametrize(
    ("ddl", "shape", "found"),
    [
        ("int", {"start": 5}, [5, 6, 7]),
        ("bigint", {"start": 10, "step": -10}, [10, 0, -10]),
        ("decimal(4,2)", {"start": 1, "step": 0.25}, [Decimal("1.00"), Decimal("1.25"), Decimal("1.50")]),
        ("date", {"start": "2026-01-30"}, [date(2026, 1, 30), date(2026, 1, 31), date(2026, 2, 1)]),
        (
            "date",
            {"start": "2026-01-05", "step": "7 days"},
            [date(2026, 1, 5), date(2026, 1, 12), date(2026, 1, 19)],
        ),
        ("double", {"step": 0.5}, [0.0, 0.5, 1.0]),
        ("string", {"value": "Oslo"}, ["Oslo"] * 3),
        ("string", {"value": None}, [None] * 3),
        ("int", {"nulls": 1}, [None] * 3),
        ("array<int>", {"length": 2, "items": {"value": 1}}, [(1, 1)] * 3),
        ("map<string,int>", {"length": 1, "keys": {"value": "k"}, "values": {"value": 1}}, [{"k": 1}] * 3),
        (
            "struct<a: int, b: string>",
            {"fields": {"a": {"start": 1}, "b": {"value": "x"}}},
            [(1, "x"), (2, "x"), (3, "x")],
        ),
        ("string", {"length": 0}, [""] * 3),
    ],
)
def test_values_are_made_as_they_are_told(ddl: str, shape: dict[str, Any], found: list[Any]) -> None:
    assert column(ddl, 3, **shape) == found


def test_choices_come_as_often_or_by_their_weights() -> None:
    even = Counter(column("string", 3000, choices=["a", "b", None]))
    weighted = Counter(column("int", 3000, choices={"1": 9, "2": 1, "3": 0}))

    assert even.keys() == {"a", "b", None}
    assert {900 < count < 1100 for count in even.values()} == {True}
    assert weighted.keys() == {1, 2}
    assert 2600 < weighted[1] < 2800


def test_nulls_are_as_many_as_they_are_told() -> None:
    found = column("int", 2000, nulls=0.25)

    assert 400 < found.count(None) < 600
    assert len(set(found)) > 500


@pytest.mark.parametrize(
    ("ddl", "low", "high"),
    [
        ("int", -3, 3),
        ("double", 0.001, 0.002),
        ("float", 1, 1_000_000),
        ("decimal(10,2)", "0.01", "0.05"),
        ("date", "2026-01-01", "2026-01-03"),
        ("timestamp", "2026-01-01 00:00:00", "2026-01-01 00:00:05"),
        ("timestamp_ntz", "2026-01-01 00:00:00", "2026-01-01 00:00:05"),
        ("int", 5, 5),
        ("double", 5, 5),
    ],
)
def test_ranges_hold_both_their_bounds_and_nothing_beyond(ddl: str, low: Any, high: Any) -> None:
    first, last = (Reader().value(bound, fields(f"v {ddl}")[0].type) for bound in (low, high))

    found = column(ddl, 500, range=[low, high])

    assert {first <= value <= last for value in found} == {True}
    if ddl not in {"double", "float"}:
        assert {first, last} <= set(found)


@pytest.mark.parametrize(
    ("ddl", "shape", "reason"),
    [
        ("int", {"value": "x"}, "`v`: `x` is not an int: write a whole number"),
        ("int", {"choices": [1, "x"]}, "`v`: `x` is not an int: write a whole number"),
        (
            "string",
            {"range": ["a", "b"]},
            "`v`: `range` is for numbers, dates and timestamps, not for `string`",
        ),
        ("int", {"range": [2, 1]}, "`v`: `range` begins with the larger value"),
        ("string", {"start": "a"}, "`v`: `start` is for numbers, dates and timestamps, not for `string`"),
        (
            "timestamp",
            {"step": 5},
            "`v`: `5` is not an interval day to second: write one such as `1 hour 30 minutes`",
        ),
        (
            "struct<a: int>",
            {"fields": {"b": {}}},
            "`v`: there is no column `b` to make values for. Known columns: `a`.",
        ),
        ("variant", {}, "`v`: no values of the type `variant` can be made up"),
        ("array<variant>", {}, "`v.items`: no values of the type `variant` can be made up"),
    ],
)
def test_what_cant_be_made_is_refused_with_a_reason(ddl: str, shape: dict[str, Any], reason: str) -> None:
    with pytest.raises(MisfitError) as caught:
        column(ddl, **shape)

    assert str(caught.value) == reason


def test_a_shape_for_a_column_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(MisfitError, match="there is no column `shopp` to make values for"):
        generate(fields("shop string"), 1, columns={"shopp": {"value": "x"}})


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ({"value": 1, "range": [1, 2]}, "`range` and `value` don't go together"),
        ({"value": 1, "step": 1}, "`step` and `jitter` go with `start`"),
        ({"choices": {"a": 0}}, "all weights of `choices` are 0"),
        ({"choices": []}, "at least 1 item"),
        ({"nulls": 2}, "less than or equal to 1"),
        ({"value_": 1}, "Extra inputs are not permitted"),
    ],
)
def test_a_shape_that_makes_no_sense_is_refused(shape: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        column("int", **shape)


@settings(deadline=None)  # the machine may be busy
@given(st.integers(), st.integers(0, 20), st.text(max_size=5))
def test_any_seed_and_any_name_will_do(seed: int, rows: int, name: str) -> None:
    found = generate([StructField(name, fields("v int")[0].type)], rows, seed)

    assert len(found) == rows
