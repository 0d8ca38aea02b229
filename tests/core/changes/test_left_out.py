"""What Spark's optimizer leaves out of a query, state and watermarks included: each was found by experiment."""

from __future__ import annotations

import pytest

from tests.core.changes.test_shapes import of_one, of_two

COUNTED = """
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  some: {gem: filter, input: timely, options: {condition: "CONDITION"}}
  rows: {gem: sql, inputs: [some, clicks], options: {query: "select page from some union select page from clicks"}}
  last: {gem: select, input: rows, options: {columns: COLUMNS}}
"""


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n > n", "mixed"),
        ("n != n", "mixed"),
        ("n > 0", "from_now_on"),
        ("n >= n", "from_now_on"),
        # It isn't put before what keeps state, which so has its rows.
        ("1 = 2", "from_now_on"),
    ],
)
def test_nothing_is_promised_beside_a_condition_that_is_never_true(condition: str, expected: str) -> None:
    one = COUNTED.replace("CONDITION", condition)
    assert of_one(one.replace("COLUMNS", "[page]"), one.replace("COLUMNS", "{page: upper(page)}")) == expected


@pytest.mark.parametrize(("called", "expected"), [("left_at", "refused"), ("at", "mixed")])
def test_a_condition_of_what_a_branch_lacks_lets_nothing_of_it_through(called: str, expected: str) -> None:
    """Spark puts it into the branch where no watermark is in its way, and then keeps less for the join there."""
    steps = f"""
  pairs: {{gem: join, inputs: {{l: a, r: b}}, options: {{condition: l.n = r.m and l.x > r.y}}}}
  few: {{gem: select, input: pairs, options: {{columns: {{page: page, {called}: seen}}}}}}
  both: {{gem: union, inputs: [few, a], options: {{allow_missing_columns: true}}}}
  timely: {{gem: watermark, input: both, options: {{column: at, delay: 1 hour}}}}
  hours: {{gem: with_columns, input: INPUT, options: {{columns: {{w: "window(at, '1 hour')"}}}}}}
  last: {{gem: select, input: hours, options: {{columns: [page, w]}}}}
"""
    with_it, without = (steps.replace("INPUT", name) for name in ("timely", "both"))
    assert of_two(with_it, without) == expected
    assert of_two(without, with_it) == expected


def test_it_is_no_more_than_a_rule_where_nothing_keeps_state() -> None:
    steps = '  last: {gem: filter, input: clicks, options: {condition: "CONDITION"}}'
    assert of_one(steps.replace("CONDITION", "n > n"), steps.replace("CONDITION", "n > 0")) == "from_now_on"


@pytest.mark.parametrize(("test", "expected"), [("is null", "mixed"), ("is not null", "continues")])
def test_a_window_that_is_null_is_none(test: str, expected: str) -> None:
    steps = """
  hours: {gem: aggregate, input: clicks, options: {window: {column: at, duration: 1 hour}, aggregates: {c: sum(n)}}}
  some: {gem: filter, input: hours, options: {condition: "window TEST"}}
  last: {gem: unpivot, input: some, options: {ids: [window], values: [c], include_nulls: NULLS}}
""".replace("TEST", test)
    assert of_one(steps.replace("NULLS", "true"), steps.replace("NULLS", "false"), "complete") == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("", "refused"),
        ("  some: {gem: filter, input: few, options: {condition: n > 0}}", "refused"),
        ("  some: {gem: watermark, input: few, options: {column: at, delay: 1 day}}", "mixed"),
    ],
)
def test_of_one_row_no_duplicates_are_dropped(step: str, expected: str) -> None:
    steps = f"""
  few: {{gem: limit, input: clicks, options: {{rows: ROWS}}}}
{step}
  last: {{gem: sql, inputs: [INPUT], options: {{query: "select distinct page from INPUT"}}}}
""".replace("INPUT", "some" if step else "few")
    assert of_one(steps.replace("ROWS", "1"), steps.replace("ROWS", "13"), "complete") == expected
    assert of_one(steps.replace("ROWS", "12"), steps.replace("ROWS", "13"), "complete") == "mixed"
    assert of_one(steps.replace("ROWS", "0"), steps.replace("ROWS", "1"), "complete") == "mixed"


QUERY = """  last: {gem: sql, input: clicks, options: {query: "select count(*) as c, sum(n) as s from clicks GROUP"}}"""
GROUPED = "  last: {gem: aggregate, input: clicks, options: {group_by: GROUP, aggregates: {s: sum(n)}}}"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("'x', page", "'y', page", "continues"),
        ("'x', page", "page", "continues"),
        ("page, date_add(date '2024-01-31', 7)", "page", "continues"),
        ("'x'", "cast(2 as double)", "continues"),
        ("user", "'x'", "continues"),
        ("user, page", "'x', page", "continues"),
        ("'x'", "", "refused"),
        ("", "'x'", "refused"),
        ("current_date()", "'x'", "refused"),
        ("current_date", "'x'", "refused"),
        ("'x', page", "'x'", "refused"),
        ("page, rand()", "page", "refused"),
        ("page, someones(1)", "page", "refused"),
        ("'x', page", "n", "refused"),
    ],
)
def test_groups_that_are_the_same_for_all_rows_are_none(old: str, new: str, expected: str) -> None:
    one, other = (QUERY.replace("GROUP", f"group by {text}" if text else "") for text in (old, new))
    assert of_one(one, other, "complete") == expected


def test_groups_of_an_aggregate_that_are_the_same_for_all_rows_are_none() -> None:
    def edit(old: str, new: str, mode: str) -> str:
        return of_one(GROUPED.replace("GROUP", old), GROUPED.replace("GROUP", new), mode)

    assert edit("{k: \"'x'\", page: page}", "{k: \"'y'\", page: page}", "complete") == "continues"
    assert edit("{k: \"'x'\"}", "{k: \"date_add(date '2024-01-31', 7)\"}", "complete") == "continues"
    assert edit("{k: \"'x'\"}", "{k: \"date_add(date '2024-01-31', 7)\"}", "update") == "from_now_on"
    assert edit("{k: \"'x'\", page: page}", "{k: \"'x'\"}", "complete") == "refused"


@pytest.mark.parametrize(("condition", "expected"), [("y <=> y", "refused"), ("y <=> x", "from_now_on")])
def test_what_is_the_same_as_itself_is_asked_for_nothing(condition: str, expected: str) -> None:
    steps = f"""
  pairs: {{gem: join, inputs: [a, b], options: {{condition: n = m}}}}
  some: {{gem: filter, input: pairs, options: {{condition: "{condition}"}}}}
"""
    last = "  last: {gem: select, input: some, options: {columns: [n, m, x, page, at, name, seen, y]}}"
    assert of_two(steps + last, steps + last.replace(", y]", "]")) == expected
