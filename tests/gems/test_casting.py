"""Casts whose failure rejects the row: `select` and `with_columns` with `rejects: true`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import Column, Pipeline
from gem_bundle.expressions import casts_of
from gem_columns.select import Select
from gem_columns.with_columns import WithColumns
from tests.gems.transforms import findings, stream_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = stream_of(
    Column("a", "string"), Column("b", "string"), Column("at", "timestamp"), Column("k", "bigint")
)


@pytest.mark.parametrize(
    ("text", "expression", "casts"),
    [
        ("a", "a", []),
        ("cast(a as int)", "try_cast(a as int)", [("a", "int")]),
        ("CAST ( a AS decimal(9, 2) ) + 1", "try_CAST ( a AS decimal(9, 2) ) + 1", [("a", "decimal(9, 2)")]),
        ("try_cast(a as int)", "try_cast(a as int)", []),
        ("'cast(a as int)'", "'cast(a as int)'", []),
        ("forecast(a)", "forecast(a)", []),
        ("cast(a as int) as n", "try_cast(a as int) as n", [("a", "int")]),
        (
            "cast(cast(a as int) as date)",
            "try_cast(try_cast(a as int) as date)",
            [("a", "int"), ("try_cast(a as int)", "date")],
        ),
        (
            "if(b = ')', cast(trim(b) as double), 0)",
            "if(b = ')', try_cast(trim(b) as double), 0)",
            [("trim(b)", "double")],
        ),
        ("cast(`as)` as struct<x: int>)", "try_cast(`as)` as struct<x: int>)", [("`as)`", "struct<x: int>")]),
    ],
)
def test_casts_are_found_where_they_stand(text: str, expression: str, casts: list[tuple[str, str]]) -> None:
    found = casts_of(text)
    assert found.expression == expression
    assert [cast[:2] for cast in found.casts] == casts
    assert not found.signs
    assert not found.calls


def test_other_casts_are_told_apart() -> None:
    found = casts_of(
        "int(a) + decimal ( trim(b) ) + cast(a as decimal(9, 2)) + `int`(a) + a.date(b) + x::decimal(3)"
    )
    assert found.calls == (("a", "int", False), ("trim(b)", "decimal", False))
    assert found.casts == (("a", "decimal(9, 2)", False),)
    assert found.signs
    found = casts_of("aggregate(xs, cast(a as int), (acc, x) -> acc + cast(f(x, 1) as int), r -> int(r))")
    assert [(cast.operand, cast.by_lambda) for cast in found.casts] == [("a", False), ("f(x, 1)", True)]
    assert found.calls == (("r", "int", True),)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"n": "cast(a as int)"}, None),
        ({"n": "a"}, "no row can be rejected"),
        ({"n": "a::int"}, "a cast by `::`"),
        ({"n": "cast(a as int)", "m": "int(b)"}, "a cast by `int(…)`"),
        ({"n": "cast(a as int)", "m": "date(at)", "f": "double(k)", "k": "bigint(cast(a as int))"}, None),
        ({"n": "cast(a as int)", "m": "date(a)"}, "a cast by `date(…)`"),
        ({"n": "cast(a as int)", "m": "int(k)"}, "a cast by `int(…)`"),
        ({"n": "timestamp(b)"}, "a cast by `timestamp(…)`"),
        ({"n": "transform(split(a, ','), p -> cast(p as int))"}, "a cast within a lambda can't reject"),
        ({"n": "transform(split(a, ','), p -> cast(a as int))"}, "a cast within a lambda can't reject"),
        ({"n": "cast(gone as int)"}, "there is no column `gone`"),
        ({"n": "cast(concat(a, rand()) as int)"}, "rand"),
    ],
)
@pytest.mark.parametrize("gem", [Select, WithColumns])
def test_what_can_not_reject(gem: Any, columns: dict[str, str], said: str | None) -> None:
    found = [finding.message for finding in findings(gem, ROWS, columns=columns, rejects=True)]
    assert found == [] if said is None else any(said in message for message in found), found


@pytest.mark.spark
@pytest.mark.parametrize("gem", ["select", "with_columns"])
def test_a_row_whose_cast_fails_is_rejected_and_the_others_are_cast(spark: SparkSession, gem: str) -> None:
    rows = [
        ["1", "2024-05-01"],
        ["x", "2024-05-01"],
        [None, None],
        ["99999999999", "May"],
        ["-7", "2024-02-30"],
    ]
    columns = {
        "number": "cast(a as int) + 1",
        "day": "coalesce(cast(b as date), date'2000-01-01')",
        "twice": "cast(cast(a as int) as string)",
        "maybe": "try_cast(b as int)",
    }
    pipeline = (
        Pipeline("shop", mode="batch")
        .source("texts", "rows", {"schema": "a string, b string", "rows": rows})
        .transform("typed", gem, "texts", {"columns": columns, "rejects": True})
        .target("good", "noop", "typed")
    )
    good = pipeline.dataframe("typed", spark).select("number", "day", "twice", "maybe").collect()
    assert {tuple(map(str, row)) for row in good} == {
        ("2", "2024-05-01", "1", "None"),
        ("None", "2000-01-01", "None", "None"),
    }
    bad = pipeline.dataframe("typed.rejected", spark).collect()
    found = {json.loads(row.row)["a"]: [tuple(why) for why in row.reasons] for row in bad}
    assert found == {
        "x": [("wrong_type", "`a` doesn't fit int")],
        "99999999999": [("wrong_type", "`a` doesn't fit int"), ("wrong_type", "`b` doesn't fit date")],
        "-7": [("wrong_type", "`b` doesn't fit date")],
    }
    assert pipeline.run().held.rejected == {"typed": 3}
