"""Conditions that are null for a row where Spark would end the query."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from gem_bundle import Column, Pipeline
from gem_bundle.expressions import tried
from gem_filter.expect import Expect
from tests.gems.transforms import findings, stream_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TYPES = {
    "id": "int",
    "page": "string",
    "n": "int",
    "a": "array<int>",
    "m": "map<string,int>",
    "d": "date",
    "at": "timestamp",
    "big": "bigint",
    "dbl": "double",
    "s": "struct<a:int,b:string>",
}
COLUMNS = tuple(Column(name, kind) for name, kind in TYPES.items())
FINE = """1, '12', 2, array(1, 2), map('x', 1), date'2024-01-01', timestamp'2024-01-01', 5, 1.5D,
    named_struct('a', 1, 'b', '3')"""
BROKEN = """1, 'soon', 0, array(1), map('y', 1), date'2024-01-01', timestamp'2024-01-01', -9223372036854775808, 0D,
    named_struct('a', 1, 'b', 'later')"""

RAISES = {
    "cast(page as int) > 0": "try_cast(page as int) > 0",
    "page::int > 0": "try_cast(page as int) > 0",
    "bigint(page) > 0": "try_cast(page as bigint) > 0",
    "10 / n > 1": "try_divide(10, n) > 1",
    "id / n % 2 > 0.0": "try_divide(id, n) % 2 > 0.0",
    "id % n = 0 or mod(id, n) = 1": "try_mod(id, n) = 0 or try_mod(id, n) = 1",
    "pmod(id, n) = 1": "pmod(id, nullif(n, 0)) = 1",
    "big div n > 0": "if((n) = -1, try_subtract(0, big), (big) div nullif(n, 0)) > 0",
    "big - id * 2 > 0": "try_subtract(big, try_multiply(id, 2)) > 0",
    "-big < 0": "try_subtract(0, big) < 0",
    "abs(big) > 0": "if(big < 0, try_subtract(0, big), big) > 0",
    "page > 0": "try_cast(page as bigint) > 0",
    "page <= dbl * 100": "try_cast(page as double) <= dbl * 100",
    "page between 0 and 100": "try_cast(page as bigint) between 0 and 100",
    "s.b between 0 and 4.5": "try_cast(s.b as double) between 0 and 4.5",
    "page not in (1, 2)": "try_cast(page as bigint) not in (1, 2)",
    "page + 1 > 2": "try_add(try_cast(page as bigint), 1) > 2",
    "- page < 0": "-try_cast(page as double) < 0",
    "abs(page) > 1": "abs(try_cast(page as double)) > 1",
    "coalesce(page, 0) > 0": "coalesce(try_cast(page as bigint), 0) > 0",
    "case page when 12 then true end": "case try_cast(page as bigint) when 12 then true end",
    "a[1] > 0": "get(a, 1) > 0",
    "element_at(a, 2) > 0": "try_element_at(a, 2) > 0",
    "element_at(a, n) > 0": "try_element_at(a, nullif(n, 0)) > 0",
    "exists(a, x -> x / n >= 1)": "exists(a, x -> try_divide(x, n) >= 1)",
    "to_date(page, 'dd') < d": "cast(try_to_timestamp(page, 'dd') as date) < d",
    "to_timestamp(page, 'dd') < at": "try_to_timestamp(page, 'dd') < at",
    "unix_timestamp(page, 'dd') < 9e9": "unix_timestamp(try_to_timestamp(page, 'dd')) < 9e9",
    "year(concat('20', page)) = 2012": "year(try_cast(concat('20', page) as date)) = 2012",
    "concat('20', page, '-01-01') < d": "try_cast(concat('20', page, '-01-01') as date) < d",
    "parse_json(page) is not null and cast(page as int) = 12": (
        "try_parse_json(page) is not null and try_cast(page as int) = 12"
    ),
}
STAYS = (
    "id > 0 and not page = 'x' or d > current_date",
    "id % 2 = 0 and id / 2 > 0 and n div 2 = 1",
    "dbl * 2 + id > 3.5",
    "at - interval 1 day 2 hours < at and interval '1' day > interval 1 hour",
    "m['x'] = 1 and s.a = 1 and m[page] is null",
    "page rlike '^\\\\d+$' and page like 'a!%b' escape '!' or page like any ('a%', 'b%')",
    "page in ('a', 'it''s', r'\\d')",
    "exists(a, x -> x > 1) and aggregate(a, 0L, (acc, x) -> greatest(acc, x)) > 0",
    "extract(year from at) > 2000 and trim(both 'x' from page) = 'a' and position('a' in page) >= 0",
    "substring(page from 1 for 2) <> 'a' and overlay(page placing 'x' from 1) <> 'a'",
    "case when id > 1 then page else 'x' end is not null",
    "-5 < id and id <=> 1 and id is not distinct from 1",
    "try_cast(page as int) > 0",
    "`page` = 'a' -- with a comment",
)


@pytest.mark.parametrize(("expression", "expected"), RAISES.items())
def test_what_raises_is_tried(expression: str, expected: str) -> None:
    assert tried(expression, COLUMNS) == (expected, ())


@pytest.mark.parametrize("expression", STAYS)
def test_what_raises_nothing_stays_as_it_is(expression: str) -> None:
    assert tried(expression, COLUMNS) == (expression.partition(" --")[0], ())


def test_texts_and_numbers_in_one_list_are_each_compared_as_what_they_are() -> None:
    assert tried("page in ('a', 1, 2)", COLUMNS).expression == (
        "(page in ('a') or try_cast(page as bigint) in (1, 2))"
    )
    assert tried("page not in ('a', null, 2.5)", COLUMNS).expression == (
        "(not (page in ('a') or try_cast(page as double) in (null, 2.5)))"
    )


def test_of_unknown_columns_only_what_is_written_is_tried() -> None:
    assert tried("page > 0 and a[0] = 1 and cast(page as int) > x + 1", None).expression == (
        "page > 0 and a[0] = 1 and try_cast(page as int) > try_add(x, 1)"
    )
    # What can't be read has its casts tried.
    assert (
        tried("cast(page as int) > 0 over there", None).expression == "try_cast(page as int) > 0 over there"
    )
    deep = f"{'(' * 5000}id{')' * 5000} > 0"
    assert tried(deep, COLUMNS).expression == deep


@pytest.mark.parametrize(
    ("condition", "word"),
    [
        ("if(id > 0, true, raise_error('no'))", "raise_error"),
        ("make_date(id, 1, 1) > d", "make_date"),
        ("page rlike concat('^', page)", "rlike"),
        ("split(page, page)[0] = 'a'", "split"),
        ("from_json(page, 'a int', map('mode', 'FAILFAST')).a > 1", "from_json"),
        ("cast(dbl as decimal(9, 2)) div n > 1", "div"),
        ("map(page, 1, 'b', 2)['b'] = 2", "map"),
    ],
)
def test_what_cannot_be_tried_is_warned_of(condition: str, word: str) -> None:
    (found,) = findings(Expect, stream_of(*COLUMNS), rules={"a": {"condition": condition}})
    assert (found.code, found.severity, found.option, found.word) == (
        "GB217",
        "warning",
        ("rules", "a", "condition"),
        word,
    )
    assert f"`{word}` can end the query" in found.message
    assert found.hint
    assert not findings(Expect, stream_of(*COLUMNS), rules={"a": "map('x', id)['x'] > 0 and page rlike 'a.'"})


@pytest.mark.spark
@pytest.mark.matrix
def test_spark_finds_the_same_where_it_finds_anything(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PySparkException, "_log_exception", lambda _: None, raising=False)

    def row(values: str) -> str:
        names = ", ".join(TYPES)
        return f"values ({values}) as t({names})"

    fine, broken = spark.sql(f"select * from {row(FINE)}"), spark.sql(f"select * from {row(BROKEN)}")
    texts = [tried(expression, COLUMNS).expression for expression in RAISES]
    (found,) = fine.selectExpr(*texts).collect()
    (expected,) = fine.selectExpr(*RAISES).collect()
    assert dict(zip(RAISES, found, strict=True)) == dict(zip(RAISES, expected, strict=True))
    (found,) = broken.selectExpr(*texts).collect()
    true = [expression for expression, kept in zip(RAISES, found, strict=True) if kept]
    assert true == []
    raising = []
    for expression in RAISES:
        with suppress(Exception):  # most of PySpark's, and one of Java's
            broken.selectExpr(expression).collect()
            continue
        raising.append(expression)
    assert raising == list(RAISES)


@pytest.mark.spark
def test_a_row_of_which_a_rule_cannot_be_evaluated_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    rules = {
        "whole": "cast(page as int) > 0",
        "shared": "10 / id > 1",
        "between": {"column": "page", "between": [0, 100]},
        "among": {"column": "page", "in": [7, 12]},
        "passes": {"condition": "page > 0", "null": "pass"},
        "once": {"column": "cast(page as int) / id", "unique": True, "null": "pass"},
    }
    source = {
        "schema": "id int, page string",
        "rows": [[1, "12"], [2, "7"], [0, "12"], [3, "soon"], [4, "12.5"]],
    }
    pipeline = (
        Pipeline("shop", mode="batch", folder=tmp_path)
        .source("clicks", "rows", source)
        .transform("plausible", "expect", "clicks", {"rules": rules})
        .target("good", "file", "plausible", {"format": "json", "path": "good"})
        .target("bad", "file", "plausible.rejected", {"format": "parquet", "path": "bad"})
    )
    pipeline.run()
    good = spark.read.json(str(tmp_path / "good")).collect()
    assert sorted((row.id, row.page) for row in good) == [(1, "12"), (2, "7")]
    bad = spark.read.parquet(str(tmp_path / "bad")).collect()
    why = {json.loads(row.row)["id"]: dict(row.reasons) for row in bad}
    assert {number: list(reasons) for number, reasons in why.items()} == {
        0: ["shared"],
        3: ["whole", "between", "among"],
        4: ["whole", "between", "among"],
    }
    assert why[3] == {
        "whole": "`cast(page as int) > 0` is null",
        "between": "`page between 0 and 100` is null",
        "among": "`page in (7, 12)` is null",
    }
