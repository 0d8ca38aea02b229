"""Rows without a value in the state of a join: which are there, and what Spark takes them for."""

from __future__ import annotations

import pytest

from tests.core.changes.edits import verdict

SHOP = """
    pipeline: shop
    sources:
      a: {gem: file, options: {format: json, path: a, schema: "n int, x int, page string"}}
      b: {gem: file, options: {format: json, path: b, schema: "n int, y int, name string"}}
    transforms:
      pairs: {gem: join, inputs: [a, b], options: {on: n, how: HOW}}
      some: {gem: filter, input: pairs, options: {condition: "CONDITION"}}
    targets:
      out: {gem: noop, input: some}
"""


def edited(old: str, new: str, how: str = "inner", shop: str = SHOP) -> str:
    texts = [shop.replace("HOW", how).replace("CONDITION", text) for text in (old, new)]
    return verdict(*texts).verdict


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Spark asks for what it compares before the join, where the condition is null without it.
        ("n > 0 or x > y", "x > y", "mixed"),
        ("x > y", "n > 0 or x > y", "mixed"),
        ("x > y", "x < y", "from_now_on"),
        # Through `round` it doesn't look.
        ("round(x, 1) > round(y, 1)", "round(x, 1) < round(y, 1)", "from_now_on"),
        ("round(x, 1) > y", "round(x, 1) > round(y, 1)", "mixed"),
        ("round(x, 1) > round(y, 1)", "round(x, 1) > y", "mixed"),
        # What lacks the key finds no partner.
        ("n > x + y or x > y", "n + x > y", "mixed"),
    ],
)
def test_what_a_condition_behind_a_join_compares_is_asked_for_before_it(
    old: str, new: str, expected: str
) -> None:
    assert edited(old, new) == expected


def test_a_join_that_has_some_columns_of_files_knows_nulls_from_zeros() -> None:
    # `page` and `name` are left out before the join, and by it Spark forgets what it asked for.
    shop = SHOP.replace("out: {gem: noop, input: some}", "out: {gem: noop, input: few}").replace(
        "    targets:", "      few: {gem: select, input: some, options: {columns: [n, x, y]}}\n    targets:"
    )
    assert edited("round(x, 1) > round(y, 1)", "round(x, 1) > y", shop=shop) == "from_now_on"
    assert edited("round(x, 1) > y", "round(x, 1) > round(y, 1)", shop=shop) == "mixed"


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("join", "refused"),
        ("left join", "refused"),
        ("right join", "from_now_on"),
        ("left semi join", "refused"),
    ],
)
def test_whether_something_is_null_that_never_is_reads_no_column_behind_a_join(
    how: str, expected: str
) -> None:
    shop = """
        pipeline: shop
        sources:
          a: {gem: file, options: {format: json, path: a, schema: "n int, x int, at timestamp"}}
          b: {gem: file, options: {format: json, path: b, schema: "n int, y int, at timestamp"}}
        transforms:
          ta: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}
          tb: {gem: watermark, input: b, options: {column: at, delay: 1 hour}}
          more: {gem: with_columns, input: ta, options: {columns: {sure: "coalesce(x, 0)"}}}
          pairs: {gem: sql, inputs: [more, tb], options: {query: "select l.* from more l HOW tb r on l.n = r.n and l.at = r.at"}}
          some: {gem: with_columns, input: pairs, options: {columns: {sure: "CONDITION"}}}
        targets:
          out: {gem: noop, input: some}
    """
    assert edited("sure is null", "sure + 1", how, shop) == expected


def test_what_another_output_of_a_route_takes_first_is_not_asked_for() -> None:
    # Spark sees that no row is left for the second of them, and that its rows may have no value then.
    shop = """
        pipeline: shop
        sources:
          a: {gem: file, options: {format: json, path: a, schema: "n int, at timestamp"}}
        transforms:
          timely: {gem: watermark, input: a, options: {column: at, delay: 1 day}}
          ways: {gem: route, input: timely, options: {conditions: CONDITIONS}}
          pairs:
            gem: join
            inputs: {l: ways.x, r: ways.x}
            options: {how: right, condition: l.at = r.at and l.n = r.n}
        targets:
          out: {gem: noop, input: pairs}
    """
    first, second = ("{x: at is not null, y: at is not null}", "{y: at is not null, x: at is not null}")
    texts = {conditions: shop.replace("CONDITIONS", conditions) for conditions in (first, second)}
    assert verdict(texts[first], texts[second]).verdict == "refused"
    assert (
        verdict(texts[first], shop.replace("CONDITIONS", "{y: n > 1, x: at is not null}")).verdict == "mixed"
    )
