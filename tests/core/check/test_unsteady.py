"""Columns that aren't the same in each query, and rows that are told apart by them."""

from __future__ import annotations

from typing import Any

import pytest

from gem_bundle import Pipeline, PipelineError

TICKS = {"schema": "id int, page string, at timestamp", "rows": []}
PAGES = {"schema": "page string", "rows": []}


def _found(*nodes: tuple[str, str, Any, dict[str, Any]], taken: tuple[str, ...] = ()) -> list[Any]:
    """What is said of a pipeline of transforms one behind the other, of whose last one outputs are taken."""
    pipeline = Pipeline("shop", mode="batch").source("ticks", "rows", TICKS).source("pages", "rows", PAGES)
    for name, gem, inputs, options in nodes:
        pipeline = pipeline.transform(name, gem, inputs, options)
    for number, output in enumerate(taken or (nodes[-1][0], f"{nodes[-1][0]}.rejected")):
        pipeline = pipeline.target(f"t{number}", "noop", output)
    try:
        diagnostics = pipeline.check()
    except PipelineError as error:
        diagnostics = list(error.diagnostics)
    return [found for found in diagnostics if found.is_error]


DRAWN = ("drawn", "with_columns", "ticks", {"columns": {"r": "rand()", "text": "concat(page, '!')"}})
RULE = {"rules": {"half": "r > 0.5"}}


def test_a_rule_by_a_column_that_is_drawn_is_refused() -> None:
    (found,) = _found(DRAWN, ("half", "expect", "drawn", RULE))
    assert (found.code, found.node, found.path) == (
        "GB218",
        "half",
        ("transforms", "half", "options", "rules", "half"),
    )
    assert found.message == (
        "transform `half`: it goes by `r`, which `drawn` makes by `rand`: that is left to chance, so that a row could be in both "
        "outputs, or in none"
    )
    assert "Write the rows of `drawn` somewhere" in found.hint


@pytest.mark.parametrize(
    "between",
    [
        [
            ("named", "rename", "drawn", {"columns": {"r": "s"}}),
            ("n", "with_columns", "named", {"columns": {"r": "s * 2"}}),
        ],
        [("n", "select", "drawn", {"columns": ["*", "cast(r as string) as more"]})],
        [("n", "filter", "drawn", {"condition": "id > 0"})],
        [("n", "sql", "drawn", {"query": "select id, r + 1 as r from drawn"})],
        [("n", "aggregate", "drawn", {"group_by": ["id"], "aggregates": {"r": "max(r)"}})],
        [("n", "union", ["drawn", "drawn2"], {})],
        [("n", "join", ["drawn", "pages"], {"on": ["page"]})],
        [
            (
                "n",
                "unpivot",
                "drawn",
                {"ids": ["id"], "values": ["r"], "variable_column_name": "v", "value_column_name": "r"},
            )
        ],
    ],
    ids=lambda between: between[-1][1],
)
def test_what_is_made_of_it_is_not_steady_either(between: Any) -> None:
    second = ("drawn2", "with_columns", "ticks", {"columns": {"r": "0.5", "text": "page"}})
    (found,) = _found(DRAWN, second, *between, ("half", "expect", "n", RULE))
    assert found.code == "GB218"
    assert "`drawn` makes by `rand`" in found.message


@pytest.mark.parametrize(
    "made",
    ["uuid()", "current_timestamp()", "current_date", "unix_timestamp()", "monotonically_increasing_id()"],
)
def test_what_makes_a_column_unsteady(made: str) -> None:
    columns = {"columns": {"u": f"cast({made} as string)"}}
    (found,) = _found(
        ("n", "with_columns", "ticks", columns), ("e", "expect", "n", {"rules": {"a": "u <> page"}})
    )
    assert found.code == "GB218"
    assert f"`{made.removesuffix('()')}`" in found.message


@pytest.mark.parametrize(
    ("gem", "inputs", "options", "option"),
    [
        ("from_json", "n", {"column": "u", "schema": "a int", "rejects": True}, ("column",)),
        ("with_columns", "n", {"columns": {"x": "cast(u as int)"}, "rejects": True}, ("columns", "x")),
        ("join", ["n", "pages"], {"on": ["page"], "unmatched": "reject"}, ("on",)),
        ("join", ["n", "pages"], {"condition": "n.u = pages.page", "unmatched": "reject"}, ("condition",)),
        ("expect", "n", {"rules": {"a": {"column": "u", "unique": True}}}, ("rules", "a", "column")),
    ],
)
def test_all_that_reject_by_a_value_refuse_it(
    gem: str, inputs: Any, options: dict[str, Any], option: tuple[str, ...]
) -> None:
    columns = {"u": "uuid()", "page": "concat(page, uuid())"}
    (found,) = _found(("n", "with_columns", "ticks", {"columns": columns}), ("last", gem, inputs, options))
    assert (found.code, found.node, found.path) == (
        "GB218",
        "last",
        ("transforms", "last", "options", *option),
    )


def test_outputs_of_a_route_are_told_apart_by_what_is_steady() -> None:
    route = ("last", "route", "drawn", {"conditions": {"low": "r < 0.5"}, "rest": "high"})
    (found,) = _found(DRAWN, route, taken=("last.low", "last.high"))
    assert (found.code, found.path[-1]) == ("GB218", "low")
    assert _found(DRAWN, route, taken=("last.low",)) == []


def test_where_one_output_is_taken_it_does_not_matter() -> None:
    assert _found(DRAWN, ("half", "expect", "drawn", RULE), taken=("half",)) == []
    assert _found(DRAWN, ("half", "expect", "drawn", RULE), taken=("half.rejected",)) == []


def test_other_columns_are_steady() -> None:
    rules = {"rules": {"a": "text <> '' and id > 0 and at > '2024-01-01'"}}
    assert _found(DRAWN, ("e", "expect", "drawn", rules)) == []
    again = ("n", "with_columns", "drawn", {"columns": {"r": "id / 2"}})
    assert _found(DRAWN, again, ("e", "expect", "n", RULE)) == []
    assert (
        _found(
            ("n", "with_columns", "ticks", {"columns": {"r": "xxhash64(page)"}}), ("e", "expect", "n", RULE)
        )
        == []
    )
