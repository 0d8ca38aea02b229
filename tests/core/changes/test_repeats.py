"""A source under another id, read once more: what makes nothing of its rows, and where they come too late."""

from __future__ import annotations

import pytest

from tests.core.changes.edits import verdict

SCHEMA = '"page string, n int, at timestamp, seen timestamp"'
SOURCE = f"  NAME: {{gem: file, options: {{format: json, path: data/NAME, schema: {SCHEMA}}}}}\n"
ONE = f"pipeline: shop\nsources:\n{SOURCE.replace('NAME', 'a')}transforms:STEPStargets:\n  out: {{gem: console, input: last, output_mode: MODE}}\n"
TWO = ONE.replace("transforms:", f"{SOURCE.replace('NAME', 'b')}transforms:")


def renamed(text: str, steps: str, mode: str = "append") -> str:
    """What it is called when the source `a` gets another id."""
    before = text.replace("STEPS", steps).replace("MODE", mode)
    after = before.replace("  a: {", "  ax: {").replace("input: a,", "input: ax,")
    for old, new in (("[a, ", "[ax, "), (": a}", ": ax}"), (": a,", ": ax,")):
        after = after.replace(old, new)
    return verdict(before, after).verdict


PAIRS = """
  timely: {gem: watermark, input: a, options: {column: at, delay: 10 minutes}}
  pairs:
    gem: join
    inputs: {l: timely, r: a}
    options: {how: inner, condition: "l.page = r.page and l.at between r.seen and r.seen + interval 1 hour"}
  flat: {gem: select, input: pairs, options: {columns: [l.page, l.n, r.n as m, l.at]}}
  last: {gem: deduplicate, input: flat, options: {columns: [page, n, m]}}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", "continues"),
        ("[page, n, m]}", "[page, at], within_watermark: true}", "continues"),
        # The first of them is let go of earlier than a later one is late.
        ("[page, n, m]}", "[page, n], within_watermark: true}", "again"),
        # Pairs come once more where nothing drops them, and rows without a partner are no pairs.
        ("deduplicate, input: flat, options: {columns: [page, n, m]}", "filter, input: flat, options: {condition: n > 0}", "again"),
        ("how: inner", "how: left", "again"),
    ],
)  # fmt: skip
def test_pairs_that_a_join_finds_once_more_are_dropped_as_duplicates(
    old: str, new: str, expected: str
) -> None:
    assert old in PAIRS
    steps = PAIRS.replace(old, new) if old else PAIRS
    if "left" in new:
        steps = steps.replace("r: a}", "r: later}").replace(
            "  pairs:",
            "  later: {gem: watermark, input: a, options: {column: seen, delay: 0 seconds}}\n  pairs:",
        )
    assert renamed(ONE, steps) == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # Of rows that have waited, those of the other one have set the watermark meanwhile.
        (
            """
  timely: {gem: watermark, input: both, options: {column: at, delay: 1 hour}}
  last: {gem: deduplicate, input: timely, options: {columns: [at, page]}}
""",
            "again",
        ),
        # Without a watermark nothing is late, but the first row of several is another one.
        ("\n  last: {gem: deduplicate, input: both, options: {columns: [at]}}\n", "again"),
        ("\n  last: {gem: deduplicate, input: both}\n", "continues"),
        (
            """
  once: {gem: deduplicate, input: both, options: {columns: [at]}}
  last: {gem: select, input: once, options: {columns: [at]}}
""",
            "continues",
        ),
        # What is behind takes rows by their order too.
        (
            """
  once: {gem: deduplicate, input: both}
  last: {gem: limit, input: once, options: {rows: 9}}
""",
            "again",
        ),
    ],
)
def test_a_source_that_is_behind_another_one_loses_no_row(steps: str, expected: str) -> None:
    assert renamed(TWO, f"\n  both: {{gem: union, inputs: [a, b]}}{steps}") == expected


@pytest.mark.parametrize(
    ("before", "options", "expected"),
    [
        ("", "columns: [at, page]", "continues"),
        # Rows without event time are let go of at once.
        ("", "columns: [at, page], within_watermark: true", "again"),
        ("at is not null", "columns: [at, page], within_watermark: true", "continues"),
        ("n is not null", "columns: [at, page], within_watermark: true", "again"),
        ("at is not null", "columns: [page], within_watermark: true", "again"),
    ],
)
def test_within_a_watermark_duplicates_are_remembered_by_event_time(
    before: str, options: str, expected: str
) -> None:
    steps = f"""
  timely: {{gem: watermark, input: a, options: {{column: at, delay: 1 hour}}}}
  some: {{gem: filter, input: timely, options: {{condition: {before or "true"}}}}}
  last: {{gem: deduplicate, input: some, options: {{{options}}}}}
"""
    assert renamed(ONE, steps) == expected


@pytest.mark.parametrize(
    ("function", "alone", "beside"),
    [
        ("max(n)", "continues", "continues"),
        ("first(n)", "continues", "again"),
        ("bit_or(n)", "continues", "continues"),
        ("bit_xor(n)", "again", "again"),  # a value that comes twice is gone
        ("count(n)", "again", "again"),
    ],
)
def test_what_is_kept_of_a_group_is_the_same_after_the_same_rows(
    function: str, alone: str, beside: str
) -> None:
    group = f"\n  last: {{gem: aggregate, input: INPUT, options: {{group_by: [page], aggregates: {{m: {function}}}}}}}\n"
    assert renamed(ONE, group.replace("INPUT", "a"), "complete") == alone
    both = "\n  both: {gem: union, inputs: [a, b]}" + group.replace("INPUT", "both")
    assert renamed(TWO, both, "complete") == beside
    # Each group that a row comes to is given once more.
    assert renamed(ONE, group.replace("INPUT", "a"), "update") == "again"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("date(seen)", "continues"),
        ("current_date", "again"),
        ("CURRENT_TIMESTAMP()", "again"),
        ("localtimestamp()", "again"),
        ("uniform(0, n)", "again"),
        ("input_file_name()", "again"),
        ("java_method('java.util.UUID', 'randomUUID')", "again"),
        ("n as user_id", "continues"),
    ],
)
def test_rows_that_are_made_anew_are_no_duplicates(made: str, expected: str) -> None:
    """With brackets or without: they come once more with another value."""
    steps = f"""
  more: {{gem: select, input: a, options: {{columns: ["*", "{made if " as " in made else f"{made} as c"}"]}}}}
  last: {{gem: deduplicate, input: more}}
"""
    assert renamed(ONE, steps) == expected


@pytest.mark.parametrize("inputs", ["{l: a, r: a}", "{r: a, l: timely}", "{l: timely, r: a}"])
def test_a_source_that_a_node_reads_twice_says_what_it_was(inputs: str) -> None:
    """Its second reader is named after the node and the input, and after what the source was called first."""
    before = ONE.replace("STEPS", PAIRS.replace("{l: timely, r: a}", inputs)).replace("MODE", "append")
    assert inputs in before
    after = before.replace("  a: {", "  ax: {was: a, ").replace("input: a,", "input: ax,")
    after = after.replace(": a}", ": ax}").replace(": a,", ": ax,")
    assert verdict(before, after).verdict == "continues"


ONCE = "  once: {gem: deduplicate, input: a, options: {columns: [page, n]}}\n"


@pytest.mark.parametrize(
    ("groups", "mode", "expected"),
    [
        # Groups that no row comes for don't come out, but the one of all rows does, with each micro-batch.
        ("group_by: [page], aggregates: {c: count(*)}", "update", "continues"),
        ("aggregates: {c: count(*)}", "update", "again"),
        ("aggregates: {c: count(*)}", "complete", "continues"),
    ],
)
def test_rows_that_are_dropped_as_duplicates_before_groups(groups: str, mode: str, expected: str) -> None:
    steps = f"\n{ONCE}  last: {{gem: aggregate, input: once, options: {{{groups}}}}}\n"
    assert renamed(ONE, steps, mode) == expected
