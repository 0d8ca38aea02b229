"""Columns that are only called otherwise before a join, which keeps rows by the order of their columns."""

from __future__ import annotations

import pytest

from tests.core.changes.edits import verdict

SHOP = """
pipeline: shop
sources:
  a: {gem: file, options: {format: json, path: a, schema: "n int, x double, y double, at timestamp"}}
  b: {gem: file, options: {format: json, path: b, schema: "m int, seen timestamp"}}
transforms:
  called: {gem: rename, input: a, options: {columns: NAMES}}
  wide: BETWEEN
  pairs: {gem: join, inputs: [wide, b], options: {condition: CONDITION}}
  last: LAST
targets:
  out: {gem: console, input: last}
"""
FILTER = "{gem: filter, input: called, options: {condition: n > 0}}"
ALL = "{gem: filter, input: pairs, options: {condition: n < 9}}"
X = "{gem: select, input: pairs, options: {columns: [n, x]}}"


def shop(names: str, between: str = FILTER, last: str = ALL, condition: str = "wide.n = b.m") -> str:
    text = SHOP.replace("NAMES", names).replace("BETWEEN", between).replace("LAST", last)
    return text.replace("CONDITION", condition)


@pytest.mark.parametrize(
    ("old", "new", "between", "last", "expected"),
    [
        ("{x: u}", "{x: v}", FILTER, ALL, "from_now_on"),
        ("{x: y, y: x}", "{x: x, y: y}", FILTER, ALL, "from_now_on"),
        ("{x: u}", "{y: v}", FILTER, ALL, "from_now_on"),
        # Of the two that are kept, another one is kept now.
        ("{x: y, y: x}", "{x: x, y: y}", FILTER, X, "mixed"),
        # What is made of names is another text.
        ("{x: u}", "{x: v}", "{gem: with_columns, input: called, options: {columns: {j: to_json(struct(*))}}}", ALL, "mixed"),
        ("{x: u}", "{x: v}", "{gem: sql, input: called, options: {query: 'select *, to_json(struct(called.*)) as j from called'}}", ALL, "mixed"),
        ("{x: u}", "{x: v}", "{gem: unpivot, input: called, options: {ids: [n, at]}}", ALL, "mixed"),
        ("{x: u}", "{x: v}", "{gem: deduplicate, input: called}", ALL, "from_now_on"),
        # What goes by columns with these names keeps something else.
        ("{x: y, y: x}", "{x: x, y: y}", "{gem: deduplicate, input: called, options: {columns: [n, x]}}", ALL, "mixed"),
    ],
)  # fmt: skip
def test_a_join_keeps_the_same_rows(old: str, new: str, between: str, last: str, expected: str) -> None:
    assert verdict(shop(old, between, last), shop(new, between, last)).verdict == expected


def test_a_condition_that_asks_for_it_is_told_by_itself() -> None:
    old, new = (shop(f"{{x: {name}}}", condition=f"wide.n = b.m and {name} > 1") for name in "uv")
    assert verdict(old, new).verdict == "mixed"


@pytest.mark.parametrize(
    ("names", "last", "expected"),
    [
        ("{x: u}", ALL, "from_now_on"),
        ("{x: y, y: x}", ALL, "from_now_on"),
        ("{x: y, y: x}", X, "mixed"),
    ],
)
def test_a_rename_that_comes_or_goes(names: str, last: str, expected: str) -> None:
    there = shop(names, last=last)
    gone = there.replace(f"  called: {{gem: rename, input: a, options: {{columns: {names}}}}}\n", "")
    gone = gone.replace("input: called", "input: a")
    assert verdict(there, gone).verdict == expected
    assert verdict(gone, there).verdict == expected


OTHERWISE = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: in, schema: "page string, n int"}}
transforms:
  some: {gem: filter, input: clicks, options: {condition: n > 0}}
  counts: {gem: aggregate, input: some, options: {group_by: [page], aggregates: {s: sum(n)}}}
targets:
  out: {gem: console, input: counts, output_mode: update}
"""


@pytest.mark.parametrize(
    ("replaced", "expected", "codes"),
    [
        # Spark knows no ids: it goes on, and the state was made by the old rule.
        ((("counts", "sums"), ("sum(n)", "sum(n * 2)")), "mixed", {"GB423"}),
        ((("some", "all"), ("counts", "sums"), ("n > 0", "n > -1")), "mixed", {"GB423"}),
        ((("counts", "sums"), ("sum(n)", "sum(n * 2.5)")), "refused", {"GB422"}),
        ((("counts", "sums"), ("{s: sum(n)}", "{t: sum(n)}")), "from_now_on", {"GB423"}),
    ],
)
def test_another_id_with_other_options_is_what_the_options_are(
    replaced: tuple[tuple[str, str], ...], expected: str, codes: set[str]
) -> None:
    after = OTHERWISE
    for old, new in replaced:
        after = after.replace(old, new)
    found = verdict(OTHERWISE, after)
    assert (found.verdict, {c.code for c in found.changes if c.verdict == expected}) == (expected, codes)
