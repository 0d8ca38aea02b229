"""Conditions that leave out nothing but nulls: no row is different where those are left out anyway."""

from __future__ import annotations

import pytest

from tests.core.changes.edits import TOTALS, verdict
from tests.core.changes.test_shapes import of_one, of_two

HOURS = """
  HERE
  hours: {gem: aggregate, input: INPUT, options: {WINDOW, group_by: [page], aggregates: {c: count(*)}}}
  last: {gem: filter, input: hours, options: {condition: c > 1}}
"""
BY_WINDOW = "window: {column: at, duration: 1 hour}"
CLEAN = "some: {gem: clean, input: clicks, options: {columns: [COLUMNS], drop_rows: any}}"
FILTER = 'some: {gem: filter, input: clicks, options: {condition: "CONDITION"}}'


def added(step: str, window: str) -> str:
    """What it is called to put a step before groups."""
    steps = HOURS.replace("WINDOW, ", f"{window}, " if window else "")
    without = steps.replace("HERE", "").replace("INPUT", "clicks")
    given = steps.replace("HERE", step).replace("INPUT", "some")
    verdicts = {of_one(without, given, "complete"), of_one(given, without, "complete")}
    assert len(verdicts) == 1
    return verdicts.pop()


@pytest.mark.parametrize(
    ("step", "window", "expected"),
    [
        # A row without event time is in no window.
        (CLEAN.replace("COLUMNS", "at"), BY_WINDOW, "continues"),
        (CLEAN.replace("COLUMNS", "at"), "", "mixed"),
        (CLEAN.replace("COLUMNS", "at, n"), BY_WINDOW, "mixed"),
        (CLEAN.replace("COLUMNS", "at").replace("any", "all"), BY_WINDOW, "continues"),
        # What is all null has no event time either.
        (CLEAN.replace("COLUMNS", "at, n").replace("any", "all"), BY_WINDOW, "continues"),
        (CLEAN.replace("COLUMNS", "x, n").replace("any", "all"), BY_WINDOW, "mixed"),
        (FILTER.replace("CONDITION", "at is not null"), BY_WINDOW, "continues"),
        (FILTER.replace("CONDITION", "isnotnull(AT) and not (at is null)"), BY_WINDOW, "continues"),
        (FILTER.replace("CONDITION", "at is not null or n > 1"), BY_WINDOW, "mixed"),
        (
            FILTER.replace("CONDITION", "(at is not null or n is not null) and isnotnull(at)"),
            BY_WINDOW,
            "continues",
        ),
        (
            FILTER.replace("CONDITION", "(at is not null or n is not null) and isnotnull(n)"),
            BY_WINDOW,
            "mixed",
        ),
        (FILTER.replace("CONDITION", "at > timestamp '2024-01-01'"), BY_WINDOW, "mixed"),
        (FILTER.replace("CONDITION", "at is not null"), "session: {column: at, gap: 1 hour}", "continues"),
    ],
)
def test_rows_that_are_in_no_window_anyway(step: str, window: str, expected: str) -> None:
    assert added(step, window) == expected


def test_nulls_are_followed_under_other_names() -> None:
    steps = """
  some: {gem: filter, input: clicks, options: {condition: "CONDITION"}}
  named: {gem: BETWEEN}
  last: {gem: sql, input: named, options: {query: "select window(moment, '1 hour') as w, count(*) as c from named group by w"}}
"""
    renamed = steps.replace("BETWEEN", "rename, input: some, options: {columns: {at: moment}}")
    assert (
        of_one(renamed.replace("CONDITION", "at is not null"), renamed.replace("CONDITION", "true"))
        == "continues"
    )
    filled = steps.replace(
        "BETWEEN", "with_columns, input: some, options: {columns: {moment: 'coalesce(at, now())'}}"
    )
    assert (
        of_one(filled.replace("CONDITION", "at is not null"), filled.replace("CONDITION", "true")) == "mixed"
    )


def test_a_window_that_nobody_reads_leaves_out_rows() -> None:
    steps = """
  wide: {gem: with_columns, input: clicks, options: {columns: {w: "EXPRESSION"}}}
  last: {gem: aggregate, input: wide, options: {group_by: [page], aggregates: {c: count(*)}}}
"""
    one, other = (
        steps.replace("EXPRESSION", text) for text in ("date_trunc('hour', at)", "window(at, '1 hour')")
    )
    assert of_one(one, other) == "mixed"
    assert of_one(other, other.replace("1 hour", "2 hours")) == "continues"
    # Those that overlap make a row for each.
    several = steps.replace("EXPRESSION", "window(at, '1 hour', '30 minutes')")
    assert of_one(several, several.replace("1 hour", "2 hours")) == "mixed"
    assert of_one(other, several) == "mixed"


def test_what_is_never_null_isnt_asked_for() -> None:
    steps = HOURS.replace("WINDOW", BY_WINDOW).replace("HERE", "").replace("INPUT", "clicks")
    for condition, expected in (("window is not null", "continues"), ("page is not null", "mixed")):
        edited = steps.replace("condition: c > 1", f"condition: {condition}")
        assert of_one(steps.replace("condition: c > 1", "condition: 'true'"), edited, "complete") == expected


def test_a_condition_on_groups_is_asked_before_them() -> None:
    steps = "  last: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {c: count(*)}, having: HAVING}}"
    one, other, results = (steps.replace("HAVING", text) for text in ("page > 'a'", "page > 'b'", "c > 1"))
    assert of_one(one, other) == "mixed"
    assert of_one(results, results.replace("c > 1", "c > 2")) == "from_now_on"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("c0 is not null", "refused"), ("c0 > timestamp '2000-01-01'", "refused"), ("at is not null", "mixed")],
)
def test_what_is_asked_of_a_copy_of_event_time_is_asked_before_the_watermark(
    condition: str, expected: str
) -> None:
    steps = """
  named: {gem: select, input: a, options: {columns: [n, at, at as c0]}}
  marked: {gem: watermark, input: named, options: {column: at, delay: 30 seconds}}
  HERE
  wb: {gem: watermark, input: b, options: {column: seen, delay: 30 seconds}}
  last:
    gem: join
    inputs: {l: INPUT, r: wb}
    options: {condition: "l.n = r.m and l.at between r.seen - interval 1 hour and r.seen + interval 1 hour"}
"""
    some = f'some: {{gem: filter, input: marked, options: {{condition: "{condition}"}}}}'
    without = steps.replace("HERE", "").replace("INPUT", "marked")
    given = steps.replace("HERE", some).replace("INPUT", "some")
    assert of_two(without, given) == expected
    assert of_two(given, without) == "mixed"


def test_an_aggregate_that_may_be_null_is_told_from_one_that_never_is() -> None:
    counted = TOTALS.replace("sum(n)", "count(*)")
    (change,) = (one for one in verdict(counted, TOTALS).changes if one.verdict == "refused")
    assert change.code == "GB422"
    assert change.message.endswith(
        "its values (bigint) may be null now, and those in the checkpoint never are"
    )


def test_a_condition_that_contradicts_itself_by_what_is_never_null_is_not_taken_for_none() -> None:
    # Whether Spark has put it before the groups by the time that it finds that isn't followed here.
    groups = """
  groups: {gem: aggregate, input: clicks, options: {group_by: {k: isnotnull(at)}, aggregates: {n: sum(n)}}}
  NAME: {gem: select, input: groups, options: {columns: [k]}}
"""
    asked = """
  flagged: {gem: with_columns, input: keys, options: {columns: {is_so: "not (not k or k)"}}}
  last: {gem: filter, input: flagged, options: {condition: is_so}}
"""
    versions = groups.replace("NAME", "last"), groups.replace("NAME", "keys") + asked
    assert of_one(*versions, "complete") == "mixed"
