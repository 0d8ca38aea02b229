"""The source `generate`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, ReadContext
from gem_rate.generate import GenerateOptions, GenerateSource
from tests.gems.transforms import assert_agrees

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def source(**options: Any) -> GenerateSource:
    return GenerateSource(GenerateOptions.model_validate(options))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({}, "say one way"),
        ({"text": "a", "boolean": 0.5}, "say one way"),
        ({"integer": {"min": 2, "max": 1}}, "`min` is above `max`"),
        ({"integer": {"min": 0, "max": 2**60}}, "too far apart"),
        ({"number": {"min": 0, "max": float("inf")}}, "finite"),
        ({"time": {"start": "2026-01-05"}}, "either a `step` or an `end`"),
        ({"time": {"start": "2026-01-05", "step": "1 month"}}, "neither months"),
        ({"time": {"start": "2026-01-05", "end": "2026-01-05"}}, "after `start`"),
        ({"time": {"start": "soon", "step": "1 day"}}, "no time"),
        ({"choice": ["a", 1]}, "of one kind"),
        ({"choice": {"a": 0}}, "zero for all"),
        ({"choice": []}, "at least 1"),
        ("1 + 1", "one column at least"),
    ],
)
def test_options_that_cant_be(column: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        source(columns={"a": column})


def test_expressions_are_over_what_stands_before_them() -> None:
    columns = {"later": "id + 1", "id": {"sequence": {}}, "twice": "id * 2", "drawn": "rand()"}
    found = list(source(columns=columns).check())
    assert [(f.option, f.code) for f in found] == [
        (("columns", "later"), "GB210"),
        (("columns", "drawn"), "GB212"),
    ]
    known = source(columns=columns).infer().columns or ()
    assert known[1:3] == (Column("id", "bigint"), Column("twice", "bigint"))


EVERY: dict[str, Any] = {
    "id": {"sequence": {"start": 5, "step": -2}},
    "whole": {"integer": {"min": -3, "max": 3}},
    "amount": {"number": {"min": 1, "max": 2, "digits": 2}},
    "height": {"normal": {"mean": 170, "deviation": 10}},
    "paid": {"boolean": 0.25},
    "at": {"time": {"start": "2026-01-05T10:00:00+02:00", "step": "90 seconds"}},
    "seen": {"time": {"start": "2026-01-05", "end": "2026-01-06"}},
    "page": {"choice": {"it's": 3, "\\": 1, "never": 0}},
    "size": {"choice": [1, 2, 3]},
    "code": {"text": "?#-'"},
    "gap": {"integer": {"min": 1, "max": 1}, "nulls": 0.5},
    "both": "concat(page, code)",
}


@pytest.mark.spark
def test_values_are_as_they_are_described(spark: SparkSession) -> None:
    made = source(columns=EVERY, rows=2000)
    df = made.read(ReadContext("made", spark))
    assert_agrees(made.infer(), df)
    rows = df.collect()
    assert [row.id for row in rows[:3]] == [5, 3, 1]
    assert {row.whole for row in rows} == {*range(-3, 4)}
    assert all(1 <= row.amount <= 2 and round(row.amount, 2) == row.amount for row in rows)
    assert abs(sum(row.height for row in rows) / 2000 - 170) < 1
    assert 0.2 < sum(row.paid for row in rows) / 2000 < 0.3
    times = df.selectExpr("unix_seconds(at) as at", "unix_seconds(seen) as seen").collect()
    first = int(datetime(2026, 1, 5, 8, tzinfo=UTC).timestamp())
    assert [row.at - first for row in times[:3]] == [0, 90, 180]
    day = int(datetime(2026, 1, 5, tzinfo=UTC).timestamp())
    assert {(row.seen - day) // 86400 for row in times} == {0}
    assert {row.page for row in rows} == {"it's", "\\"}
    assert {row.size for row in rows} == {1, 2, 3}
    assert all(row.code[0].isalpha() and row.code[1].isdigit() and row.code[2:] == "-'" for row in rows)
    assert 800 < sum(row.gap is None for row in rows) < 1200
    assert all(row.both == row.page + row.code for row in rows)


@pytest.mark.spark
def test_a_seed_makes_the_same_rows_anywhere(spark: SparkSession) -> None:
    def rows(**options: Any) -> list[Any]:
        df = source(columns=EVERY, rows=50, **options).read(ReadContext("made", spark))
        return sorted(map(tuple, df.collect()))

    assert rows() == rows(num_partitions=7)
    assert rows() != rows(seed=1)
