"""Conditions about what state is kept by: they leave out whole groups, and change nothing of the others."""

from __future__ import annotations

import pytest

from tests.core.changes.edits import verdict

SHOP = """
pipeline: shop
sources:
  a: {gem: file, options: {format: json, path: a, schema: "n int, page string, user string, at timestamp"}}
transforms:
  timely: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}
  last: LAST
targets:
  out: {gem: console, input: last, output_mode: update}
"""
SUMS = "{gem: aggregate, input: a, options: {group_by: [page, upper(user) as u], aggregates: {s: sum(n)}}}"
ONCE = "{gem: deduplicate, input: a, options: {columns: [page]}}"
KEYS = "{gem: aggregate, input: a, options: {group_by: [page], aggregates: {m: max(page), f: 'last(page, true)'}}}"
TIME = "{gem: filter, input: a, options: {condition: at > '2024-01-31'}}"
PAGE, USER = "{gem: filter, input: a, options: {condition: page > 'b'}}", "{gem: filter, input: a, options: {condition: user > 'b'}}"  # fmt: skip


@pytest.mark.parametrize(
    ("last", "condition", "expected"),
    [
        (SUMS, PAGE, "from_now_on"),
        (ONCE, PAGE, "from_now_on"),
        (ONCE, "{gem: sample, input: a, options: {fraction: 0.5, by: [page], seed: 1}}", "from_now_on"),
        # Some rows of a group come, and others don't.
        (SUMS, USER, "mixed"),
        (ONCE, USER, "mixed"),
        (ONCE, PAGE.replace("page > 'b'", "page > 'b' or n > 1"), "mixed"),
        (ONCE, PAGE.replace("page > 'b'", "page > uuid()"), "mixed"),
        (ONCE, "{gem: sample, input: a, options: {fraction: 0.5, by: [page, user], seed: 1}}", "mixed"),
        # It gets before the watermark, which goes by fewer rows.
        (SUMS.replace("group_by", "window: {column: at, duration: 1 hour}, group_by"), PAGE, "mixed"),
        (ONCE.replace("[page]}", "[page, at]}"), PAGE, "mixed"),
        # What is about the watermark's column stays behind it.
        (ONCE.replace("[page]}", "[page, at]}"), TIME, "from_now_on"),
        (SUMS.replace("[page", "[page, at"), TIME, "from_now_on"),
        (SUMS.replace("group_by", "window: {column: at, duration: 1 hour}, group_by"), TIME, "mixed"),
    ],
)
def test_a_condition_that_comes(last: str, condition: str, expected: str) -> None:
    marked = " at" in last or "window:" in last
    last = last.replace("input: a", "input: timely") if marked else last
    condition = condition.replace("input: a", "input: timely") if marked else condition
    before = SHOP.replace("LAST", last)
    after = before.replace("  last:", f"  some: {condition}\n  last:").replace(
        last, last.replace("input: timely" if marked else "input: a", "input: some")
    )
    assert verdict(before, after).verdict == expected


def test_one_that_goes_lets_groups_come_that_were_left_out() -> None:
    before = SHOP.replace(
        "  last: LAST", f"  some: {PAGE}\n  last: {ONCE.replace('input: a', 'input: some')}"
    )
    assert verdict(before, SHOP.replace("LAST", ONCE)).verdict == "mixed"


def test_one_behind_groups_that_asks_for_more_of_their_keys() -> None:
    behind = SHOP.replace("last: LAST", f"sums: {SUMS}\n  last: {PAGE.replace('input: a', 'input: sums')}")
    fewer, more = (
        behind.replace("page > 'b'", "page <> 'b' and page <> 'c'"),
        behind.replace("page > 'b'", "page <> 'b'"),
    )
    assert verdict(more, fewer).verdict == "from_now_on"
    assert verdict(fewer, more).verdict == "mixed"
    complete = "output_mode: complete"
    assert verdict(*(s.replace("output_mode: update", complete) for s in (more, fewer))).verdict == "mixed"
    # Rows that a join has kept come out for those that come.
    joined = "join: {gem: join, inputs: {l: a, r: a}, options: {condition: l.user = r.user}}"
    rows = "last: {gem: filter, input: join, options: {condition: l.page > 'b'}}"
    over = SHOP.replace("last: LAST", f"{joined}\n  {rows}")
    assert verdict(over, over.replace("> 'b'", "> 'b' and l.page <> 'd'")).verdict == "mixed"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("max(n / 60)", "max(n / 121)", "mixed"),
        ("max(n / 60)", "min(n / 60)", "mixed"),
        ("max(n)", "min(n)", "from_now_on"),
        ("first(n + 1)", "first(n + 2)", "mixed"),
    ],
)
def test_other_results_of_keys_are_made_of_what_the_old_ones_have_left(
    old: str, new: str, expected: str
) -> None:
    groups = SHOP.replace(
        "LAST", "{gem: aggregate, input: a, options: {group_by: [n], aggregates: {m: OLD}}}"
    )
    assert verdict(groups.replace("OLD", old), groups.replace("OLD", new)).verdict == expected
    assert verdict(groups.replace("OLD", old), groups.replace("OLD", old)).verdict == "same"


def test_in_complete_mode_the_old_groups_stay_in_the_table() -> None:
    whole = SHOP.replace("output_mode: update", "output_mode: complete").replace("LAST", SUMS)
    after = whole.replace("  last:", f"  some: {PAGE}\n  last:").replace(
        "aggregate, input: a", "aggregate, input: some"
    )
    assert verdict(whole, after).verdict == "mixed"


@pytest.mark.parametrize(
    ("last", "old", "new", "expected"),
    [
        (ONCE, "page > 'b'", "page > 'c'", "from_now_on"),
        # What was left out has no sum that could go on.
        (SUMS, "page in ('b', 'c')", "page in ('c', 'd')", "mixed"),
        (SUMS, "page in ('b', 'c')", "page = 'c'", "from_now_on"),
        (SUMS, "page <> 'b'", "page <> 'b' and page <> 'c'", "from_now_on"),
        (SUMS, "page <> 'b' and n > 1", "page <> 'b' and page <> 'c' and n > 1", "from_now_on"),
        (SUMS, "page <> 'b' and n > 1", "page <> 'b' and n > 2", "mixed"),
        (SUMS, "page <> 'b' and page <> 'c'", "page <> 'b'", "mixed"),
        (SUMS, "page <> uuid()", "page <> uuid() and page <> 'c'", "mixed"),
        # Any row of a group tells what is the same in all of them.
        (KEYS, "n > 1", "n > 2", "from_now_on"),
        (KEYS.replace("last(page, true)", "last(n)"), "n > 1", "n > 2", "mixed"),
        (KEYS.replace("max(page)", "max(hash(*))"), "n > 1", "n > 2", "mixed"),
        (KEYS.replace("max(page)", "count(page)"), "n > 1", "n > 2", "mixed"),
        (ONCE, "page > 'b'", "page > 'c' and n > 1", "mixed"),
        (ONCE, "page > 'b' and n > 1", "page > 'b'", "mixed"),
        (ONCE.replace("[page]}", "[page, at]}"), "page > 'b'", "page > 'c'", "mixed"),
    ],
)
def test_one_that_becomes_another(last: str, old: str, new: str, expected: str) -> None:
    source = "timely" if "at]" in last else "a"
    some = f'  some: {{gem: filter, input: {source}, options: {{condition: "{old}"}}}}\n'
    before = SHOP.replace("  last: LAST", some + "  last: " + last.replace("input: a", "input: some"))
    assert verdict(before, before.replace(old, new)).verdict == expected


@pytest.mark.parametrize(("how", "expected"), [("inner", "from_now_on"), ("left", "mixed")])
def test_one_of_a_join_with_a_table(how: str, expected: str) -> None:
    table = (
        '  t: {gem: rows, mode: batch, options: {rows: [{name: home, m: 1}], schema: "name string, m int"}}\n'
    )
    joined = f"  both: {{gem: join, inputs: {{a: a, t: t}}, options: {{how: {how}, condition: a.page = t.name}}}}\n"
    last = "  last: {gem: deduplicate, input: both}"
    before = SHOP.replace("transforms:\n", table + "transforms:\n").replace("  last: LAST", joined + last)
    assert verdict(before, before.replace("a.page = t.name", "a.n = t.m")).verdict == expected
    few = before.replace("input: both}", "input: both, options: {columns: [user]}}")
    assert verdict(few, few.replace("a.page = t.name", "a.n = t.m")).verdict == "mixed"


OF_CODE = (
    "{gem: stateful, input: a, options: {processor: 'CODE', group_by: [page], schema: 'page string, n int', "
    "output_mode: append}}"
)
UNKNOWN = [
    (SUMS.replace("sum(n)", old), SUMS.replace("sum(n)", new))
    for old, new in [
        ("my_udaf(n)", "my_udaf(n * 2)"),
        ("my_udaf(n)", "other_udaf(n)"),
        ("sum(n)", "my_udaf(n)"),
        ("'approx_top_k(user, 5)'", "'approx_top_k(page, 5)'"),
        ("bitmap_construct_agg(n)", "bitmap_construct_agg(n + 1)"),
        ("theta_sketch_agg(n)", "theta_sketch_agg(n + 1)"),
    ]
] + [
    (
        '{gem: sql, input: a, options: {query: "select page, my_udaf(n) as s from a group by page"}}',
        '{gem: sql, input: a, options: {query: "select page, my_udaf(n + 1) as s from a group by page"}}',
    ),
    (OF_CODE.replace("CODE", "count:Some"), OF_CODE.replace("CODE", "count:Others")),
    (OF_CODE.replace("CODE", "count:A"), OF_CODE.replace("CODE', ", "count:A', arguments: {by: 2}, ")),
]


@pytest.mark.parametrize("mode", ["update", "complete"])
@pytest.mark.parametrize(("old", "new"), UNKNOWN)
def test_of_state_of_which_nobody_knows_how_it_is_made(old: str, new: str, mode: str) -> None:
    if "stateful" in old and mode == "complete":
        old, new = (text.replace("output_mode: append", "output_mode: update") for text in (old, new))
        mode = "update"
    shop = SHOP.replace("output_mode: update", f"output_mode: {'append' if 'append' in old else mode}")
    before, after = shop.replace("LAST", old), shop.replace("LAST", new)
    assert verdict(before, after).verdict == "mixed"
    assert verdict(before, before).verdict == "same"
    # What is computed of the results is no state.
    further = "  more: {gem: with_columns, input: last, options: {columns: {k: 'upper(page)'}}}\ntargets:"
    other = further.replace("upper", "lower")
    read = [
        text.replace("targets:", more).replace("input: last, output", "input: more, output")
        for text, more in ((before, further), (before, other))
    ]
    assert verdict(*read).verdict in {"from_now_on", "continues"}
