"""Edits that give a state another shape, which Spark refuses, beside those that don't: each was found by experiment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import SparkCheckpoint
from gem_bundle.changes.compare import compare
from gem_bundle.changes.logs import Offsets
from gem_bundle.changes.shapes import fit
from gem_bundle.expressions import asked_by
from gem_bundle.facts import Column
from gem_bundle.lineage import NEVER_TRUE
from tests.core.changes.edits import plan, verdict

ONE = """
pipeline: shop
sources:
  clicks:
    gem: file
    options: {format: json, path: data, schema: "page string, n int, x double, d decimal(10,2), at timestamp"}
transforms:
STEPS
targets:
  out: {gem: console, input: last, output_mode: MODE}
"""
TWO = """
pipeline: shop
sources:
  a: {gem: file, options: {format: json, path: a, schema: "n int, x double, page string, at timestamp"}}
  b: {gem: file, options: {format: json, path: b, schema: "m int, y double, name string, seen timestamp"}}
transforms:
STEPS
targets:
  out: {gem: console, input: last}
"""


def of_one(old: str, new: str, mode: str = "update") -> str:
    """What an edit of steps behind one source is called."""
    text = ONE.replace("MODE", mode)
    return verdict(text.replace("STEPS", old), text.replace("STEPS", new)).verdict


def of_two(old: str, new: str) -> str:
    """The same behind two."""
    return verdict(TWO.replace("STEPS", old), TWO.replace("STEPS", new)).verdict


@pytest.mark.parametrize(
    "steps",
    [
        "  last: {gem: aggregate, input: clicks, options: {window: WINDOW, aggregates: {c: count(*)}}}",
        """
  last: {gem: sql, input: clicks, options: {query: "select count(*) as c from clicks group by window(at, WINDOW)"}}""",
        """
  wide: {gem: with_columns, input: clicks, options: {columns: {w: "window(at, WINDOW)"}}}
  last: {gem: aggregate, input: wide, options: {group_by: [w], aggregates: {c: count(*)}}}""",
    ],
    ids=["aggregate", "sql", "a column"],
)
def test_windows_that_overlap_are_keys_that_may_be_null(steps: str) -> None:
    def of(duration: str, slide: str) -> str:
        written = f"{{column: at, duration: {duration}, slide: {slide}}}"
        return steps.replace("window: WINDOW", f"window: {written}").replace(
            "WINDOW", f"'{duration}', '{slide}'"
        )

    apart, together = of("1 hour", "60 minutes"), of("1 day", "1 hour")
    assert of_one(apart, together) == "refused"
    assert of_one(together, apart) == "mixed"
    assert of_one(together, of("2 days", "1 hour")) == "mixed"
    assert of_one(apart, of("1 day", "24 hours")) == "mixed"


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        ("last: {gem: deduplicate, input: INPUT, options: {columns: [n]}}", "from_now_on"),
        (
            """once: {gem: deduplicate, input: INPUT, options: {columns: [n]}}
  last: {gem: select, input: once, options: {columns: [n]}}""",
            "continues",
        ),
        # What other rows have become a part of.
        (
            """once: {gem: deduplicate, input: INPUT, options: {columns: [n]}}
  last: {gem: aggregate, input: once, options: {group_by: [page], aggregates: {f: sum(n)}}}""",
            "mixed",
        ),
        (
            "last: {gem: aggregate, input: INPUT, options: {group_by: [n], aggregates: {f: first(x)}}}",
            "mixed",
        ),
        (
            "last: {gem: aggregate, input: INPUT, options: {group_by: [n], aggregates: {f: collect_list(x)}}}",
            "mixed",
        ),
        # Of rows that are as great the first one counts.
        (
            'last: {gem: aggregate, input: INPUT, options: {group_by: [n], aggregates: {f: "max_by(x, d)"}}}',
            "mixed",
        ),
        (
            "last: {gem: aggregate, input: INPUT, options: {group_by: [n], aggregates: {f: max(x)}}}",
            "continues",
        ),
        ("last: {gem: filter, input: INPUT, options: {condition: n > 0}}", "continues"),
    ],
)
def test_rows_in_other_partitions_are_others_where_the_first_one_counts(behind: str, expected: str) -> None:
    dealt = "  dealt: {gem: repartition, input: clicks, options: {partitions: 2}}\n  "
    plain, moved = "  " + behind.replace("INPUT", "clicks"), dealt + behind.replace("INPUT", "dealt")
    assert of_one(plain, moved) == expected
    assert of_one(moved, plain) == expected
    assert of_one(moved, moved.replace("partitions: 2", "partitions: 3")) == expected


@pytest.mark.parametrize(
    ("how", "condition", "other", "expected"),
    [
        # Spark asks for a partner before it aggregates, so that there is no state of other groups.
        ("left_semi", "sums.n = c.m", "sums.n != c.m", "mixed"),
        ("left_anti", "sums.n = c.m", "sums.n = c.m + 1", "mixed"),
        ("left_semi", "sums.n = c.m and c.y > 1", "sums.n = c.m and c.y > 2", "mixed"),
        # Not where the result is asked, nor without anything equal, nor where it says more than who stays.
        ("left_semi", "sums.n = c.m and s > 1", "sums.n = c.m and s > 2", "from_now_on"),
        ("left_anti", "sums.n < c.m", "sums.n > c.m", "from_now_on"),
        ("inner", "sums.n = c.m", "sums.n = c.m + 1", "from_now_on"),
    ],
)
def test_who_has_a_partner_is_asked_before_an_aggregation(
    how: str, condition: str, other: str, expected: str
) -> None:
    text = """
pipeline: shop
sources:
  a: {gem: file, options: {format: json, path: a, schema: "n int, x double"}}
  c: {gem: file, mode: batch, options: {format: json, path: c, schema: "m int, y double"}}
transforms:
  sums: {gem: aggregate, input: a, options: {group_by: [n], aggregates: {s: sum(x)}}}
  some: {gem: join, inputs: [sums, c], options: {how: HOW, condition: "CONDITION"}}
  last: {gem: select, input: some, options: {columns: [n, s]}}
targets:
  out: {gem: console, input: last, output_mode: update}
"""
    one, two = (text.replace("HOW", how).replace("CONDITION", said) for said in (condition, other))
    assert verdict(one, two).verdict == expected
    assert verdict(two, one).verdict == expected


def test_columns_that_a_join_keeps_are_told_by_what_comes_out_where_names_are_doubled() -> None:
    steps = """
  timely: {gem: join, inputs: {l: a, r: static}, options: {condition: r.n = l.n}}
  pairs: {gem: join, inputs: [b, timely], options: {condition: timely.x = b.y}}
  BETWEEN
  last: {gem: filter, input: INPUT, options: {condition: m > 0}}
"""
    text = TWO.replace(
        "transforms:",
        """  static: {gem: file, mode: batch, options: {format: json, path: s, schema: "n int, z int"}}
transforms:""",
    )

    def of(between: str, other: str) -> str:
        plain = steps.replace("BETWEEN", "").replace("INPUT", "pairs")
        edited = steps.replace("BETWEEN", between).replace("INPUT", "some")
        one, two = (text.replace("STEPS", said) for said in (plain, edited))
        assert verdict(two, one).verdict == other
        return verdict(one, two).verdict

    assert of("some: {gem: drop, input: pairs, options: {columns: [z]}}", "refused") == "refused"
    assert of("some: {gem: filter, input: pairs, options: {condition: m > 1}}", "mixed") == "mixed"


def test_another_range_makes_other_pairs_of_rows_that_are_kept_for_ever() -> None:
    join = """
  pairs: {gem: join, inputs: [a, b], options: {condition: "CONDITION"}}
  last: {gem: select, input: pairs, options: {columns: [n, x, m, y]}}
"""
    query = """
  pairs: {gem: sql, inputs: [a, b], options: {query: "select n, x, m, y from a join b on CONDITION"}}
  last: {gem: select, input: pairs, options: {columns: [n, x, m, y]}}
"""
    near = "a.n = b.m and a.at < b.seen + interval 1 hour"
    for steps in (join, query):
        before = steps.replace("CONDITION", near)
        assert of_two(before, before.replace("1 hour", "1 day")) == "from_now_on"
        assert of_two(before, before.replace("and a.at <", "and a.at >=")) == "from_now_on"
        # What is about one input is asked of its rows before they are kept.
        assert of_two(before, before.replace("a.n = b.m", "a.n = b.m and a.x > 1")) == "mixed"


@pytest.mark.parametrize(
    ("how", "condition", "other", "expected"),
    [
        # Spark asks for it before the join, and keeps it as what is never null.
        ("inner", "x is not null", "x is null", "refused"),
        ("inner", "y > 1 and x > 1", "x > 1", "refused"),
        ("left", "x is not null", "x is null", "refused"),
        ("inner", "coalesce(x, 0) > 1", "coalesce(x, 0) > 2", "mixed"),
        ("inner", "x > 1", "x > 2", "mixed"),
    ],
)
def test_what_is_asked_behind_a_join_is_asked_before_it(
    how: str, condition: str, other: str, expected: str
) -> None:
    steps = """
  ta: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}
  tb: {gem: watermark, input: b, options: {column: seen, delay: 1 hour}}
  some: {gem: limit, input: ta, options: {rows: 5}}
  more: {gem: limit, input: tb, options: {rows: 5}}
  pairs:
    gem: join
    inputs: {a: some, b: more}
    options: {how: HOW, condition: "a.n = b.m and a.at <= b.seen and b.seen < a.at + interval 1 hour"}
  renamed: {gem: select, input: pairs, options: {columns: [n, x, m, y]}}
  last: {gem: filter, input: renamed, options: {condition: "CONDITION"}}
"""
    one, two = (steps.replace("HOW", how).replace("CONDITION", said) for said in (condition, other))
    assert of_two(one, two) == expected


def test_what_a_column_asks_for_is_asked_before_a_join_where_it_is_a_condition() -> None:
    steps = """
  some: {gem: limit, input: a, options: {rows: 5}}
  more: {gem: limit, input: b, options: {rows: 5}}
  pairs: {gem: join, inputs: {a: some, b: more}, options: {condition: a.n = b.m}}
  flag: {gem: with_columns, input: pairs, options: {columns: {so: CONDITION}}}
  last: {gem: filter, input: flag, options: {condition: so}}
"""
    one, two = (steps.replace("CONDITION", said) for said in ("y > 1 and x > 1", "x > 1"))
    assert of_two(one, two) == "refused"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # What is filled is never null, and was a key that is never null.
        ("nulls: {number: 0}", "white_space: trim, columns: [page]", "refused"),
        ("white_space: trim, columns: [page]", "nulls: {number: 0}", "mixed"),
        ("nulls: {number: 0}", "nulls: {number: 1}", "mixed"),
    ],
)
def test_keys_that_are_cleaned_of_nulls_are_never_null(old: str, new: str, expected: str) -> None:
    steps = """
  clean: {gem: clean, input: clicks, options: {HOW}}
  last: {gem: deduplicate, input: clean, options: {columns: [n]}}
"""
    assert of_one(steps.replace("HOW", old), steps.replace("HOW", new)) == expected


def test_a_range_by_which_no_row_is_let_go_is_one_of_pairs() -> None:
    steps = """
  timely: {gem: watermark, input: a, options: {column: at, delay: 5 minutes}}
  dated: {gem: watermark, input: b, options: {column: seen, delay: 5 minutes}}
  pairs:
    gem: join
    inputs: {a: timely, b: OTHER}
    options: {condition: "a.n = b.m and a.at between b.seen - interval LOW hours and b.seen + interval HIGH hours"}
  last: {gem: select, input: pairs, options: {columns: [n, x, m, y]}}
"""

    def of(low: int, high: int, other: str) -> str:
        return steps.replace("LOW", str(low)).replace("HIGH", str(high)).replace("OTHER", other)

    # By the watermarks of both rows are let go that are too early for a partner; by one none is.
    for low, high in ((1, 3), (3, 1)):
        assert of_two(of(1, 1, "dated"), of(low, high, "dated")) == "mixed"
        assert of_two(of(1, 1, "b"), of(low, high, "b")) == "from_now_on"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # By 20261217:962 of `scripts/differential --edits`: rows that were let go lacked their partners.
        ("not (a.at < b.seen)", "not (a.at >= b.seen)", "mixed"),
        ("not (a.at < b.seen or a.n > 5)", "not (a.at >= b.seen or a.n > 5)", "mixed"),
        ("not (not (a.at >= b.seen))", "not (not (a.at < b.seen))", "mixed"),
        ("not (a.at < b.seen)", "a.at >= b.seen", "from_now_on"),
        ("not (a.x < b.y)", "not (a.x >= b.y)", "from_now_on"),
        ("not (a.x <> b.y)", "a.x < b.y", "refused"),
    ],
)
def test_a_range_is_one_behind_not_too(old: str, new: str, expected: str) -> None:
    steps = """
  timely: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}
  dated: {gem: watermark, input: b, options: {column: seen, delay: 5 minutes}}
  pairs: {gem: join, inputs: {a: timely, b: dated}, options: {condition: "a.n = b.m and RANGE"}}
  last: {gem: select, input: pairs, options: {columns: [n, x, m, y]}}
"""
    assert of_two(steps.replace("RANGE", old), steps.replace("RANGE", new)) == expected


@pytest.mark.parametrize(
    "pairs",
    [
        "{gem: join, inputs: [a, b], options: {condition: a.n = b.m and a.at < b.seen}}",
        "{gem: sql, inputs: [a, b], options: {query: 'select * from a join b on a.n = b.m and a.at < b.seen'}}",
    ],
)
def test_what_a_join_asks_for_is_there_behind_it(pairs: str) -> None:
    steps = f"""
  pairs: {pairs}
  last: {{gem: with_columns, input: pairs, options: {{columns: {{w: "EXPRESSION"}}}}}}
"""
    # A window leaves out rows without event time, of which there are none.
    plain, window = (
        steps.replace("EXPRESSION", text) for text in ("date_trunc('hour', at)", "window(at, '1 hour')")
    )
    assert of_two(plain, window) == of_two(window, plain) == "from_now_on"
    lacking = steps.replace("a.at < b.seen", "a.x < b.y")
    plain, window = (
        lacking.replace("EXPRESSION", text) for text in ("date_trunc('hour', at)", "window(at, '1 hour')")
    )
    assert of_two(plain, window) == "mixed"


def test_a_condition_on_pairs_is_asked_of_pairs() -> None:
    steps = """
  pairs: {gem: join, inputs: [a, b], options: {condition: a.n = b.m}}
  last: {gem: filter, input: pairs, options: {condition: "CONDITION"}}
"""
    before = steps.replace("CONDITION", "x is not null or name = 'a'")
    assert of_two(before, steps.replace("CONDITION", "x is null or name = 'a'")) == "from_now_on"
    # What is equal is a key, and of alternatives Spark takes out what is about one side.
    assert of_two(before, steps.replace("CONDITION", "page = name")) != "from_now_on"
    both = steps.replace("CONDITION", "(x > 1 and y > 1) or (x < 0 and y < 0)")
    assert of_two(before, both) != "from_now_on"


def test_a_query_keeps_the_rows_of_its_own_left_and_right_side() -> None:
    steps = """
  pairs: {gem: sql, inputs: [INPUTS], options: {query: "select n, x, m, name from SIDES on a.n = b.m"}}
  last: {gem: select, input: pairs, options: {columns: [n, x, m, name]}}
"""

    def of(inputs: str, sides: str) -> str:
        return steps.replace("INPUTS", inputs).replace("SIDES", sides)

    before = of("a, b", "a join b")
    assert of_two(before, of("b, a", "a join b")) == "same"
    assert of_two(before, of("a, b", "b join a")) == "refused"
    assert of_two(before, of("b, a", "b join a")) == "refused"


JOINED = """
  pairs: {gem: join, inputs: [a, b], options: {condition: "CONDITION"}}
  last: {gem: select, input: pairs, options: {columns: [n, x, m, y]}}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # What is compared is compared as the wider type, and that is the key.
        ("a.n = b.y", "a.n = b.m", "refused"),
        ("a.x = b.m", "a.n = b.y", "mixed"),
        # Whether both are null is a key of its own.
        ("a.n <=> b.m", "a.n = b.m", "refused"),
        ("a.n = b.m", "b.m = a.n", "from_now_on"),
        ("coalesce(a.n, 0) = b.m", "a.n + 1 = b.m", "refused"),
        ("a.n + 1 = b.m", "coalesce(a.n, 0) = b.m", "mixed"),
        # All rows are kept, and the pairs that come out of them go by the new condition.
        ("a.n = b.m and a.at >= b.seen", "a.n = b.m and a.at < b.seen + interval 1 hour", "from_now_on"),
        # Of what is compared no nulls are kept, and Spark reads what was kept as null as 0.
        ("a.n = b.m and a.at >= b.seen", "a.n = b.m and a.x >= b.y", "refused"),
        ("a.n = b.m and a.x >= b.m", "a.n = b.m and a.n >= b.y", "mixed"),
        ("a.n = b.m and a.x >= b.y", "a.n = b.m and coalesce(a.x, 0) >= b.y", "mixed"),
        ("a.n = b.m and a.x > 1", "a.n = b.m and a.x > 2", "mixed"),
        # Whatever is asked of pairs is asked of no row of one side.
        ("a.n = b.m and a.x > b.y is true", "a.n = b.m and a.x < b.y is true", "from_now_on"),
        ("a.n = b.m and greatest(a.x, b.y) > 1", "a.n = b.m and greatest(a.x, b.y) > 2", "from_now_on"),
        ("a.n = b.m and greatest(a.x, b.y) > 1", "a.n = b.m and a.x > b.y", "mixed"),
        ("a.n = b.m and (a.x > b.y or a.x > 1)", "a.n = b.m and (a.x > b.y or a.x > 2)", "mixed"),
        ("a.n = b.m and (a.x < b.y or a.x > b.y + 9)", "a.n = b.m and (a.x < b.y or a.x < b.y + 9)", "from_now_on"),
        ("a.n = b.m and (a.x < b.y or a.at < b.seen and a.x > 1)", "a.n = b.m and (a.x < b.y or a.at < b.seen and a.x > 2)", "mixed"),
    ],
)  # fmt: skip
def test_the_keys_of_a_join_are_what_is_compared(old: str, new: str, expected: str) -> None:
    assert of_two(JOINED.replace("CONDITION", old), JOINED.replace("CONDITION", new)) == expected


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        ("gem: filter, input: pairs, options: {condition: x > 1}", "from_now_on"),
        ("gem: select, input: pairs, options: {columns: [x, y]}", "continues"),
    ],
)
def test_columns_of_one_name_that_must_be_equal_are_a_condition(behind: str, expected: str) -> None:
    steps = (
        """
  named: {gem: rename, input: b, options: {columns: {m: n, name: page}}}
  few: {gem: select, input: a, options: {columns: [n, page, x]}}
  more: {gem: select, input: named, options: {columns: [n, page, y]}}
  pairs: {gem: join, inputs: [few, more], options: {"on": [n]}}
"""
        + f"  last: {{{behind}}}"
    )
    condition = steps.replace('"on": [n]', "condition: few.n = more.n")
    assert of_two(steps, condition) == expected
    assert of_two(condition, steps) == expected
    assert of_two(condition, steps.replace("[n]", "[n, page]")) == "refused"


QUERIED = '  last: {gem: sql, inputs: [a, b], options: {query: "QUERY"}}'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("on a.n = b.m and a.x = b.y", "on a.n = b.m and a.x != b.y", "refused"),
        ("on a.n = b.m", "on a.n = b.m + 1", "mixed"),
        ("select a.n, b.y from", "select a.n, b.y * 2 as y from", "from_now_on"),
        ("select a.n, b.y from", "select a.n, b.y, b.name from", "refused"),
        ("b.m and a.x = b.y", "b.m and a.x = b.y where a.n > 1", "mixed"),
    ],
)
def test_a_join_of_sql_keeps_what_one_does_elsewhere(old: str, new: str, expected: str) -> None:
    query = "select a.n, b.y from a join b on a.n = b.m and a.x = b.y"
    before = QUERIED.replace("QUERY", query if old in query else query.replace(" and a.x = b.y", ""))
    assert of_two(before, before.replace(old, new)) == expected


def test_a_table_that_a_query_joins_with_itself_is_kept_by_what_both_agree_in() -> None:
    query = (
        '  last: {gem: sql, input: clicks, options: {query: "select l.* from clicks l join clicks r on ON"}}'
    )
    one, both = query.replace("ON", "l.n = r.n"), query.replace("ON", "l.n = r.n and l.x = r.x")
    assert of_one(one, both, "append") == "refused"


def test_a_column_that_an_input_of_a_union_lacks_may_be_null_behind_it() -> None:
    steps = """
  timed: {gem: select, input: clicks, options: {columns: {w: "window(at, '1 hour')", n: n}}}
  more: {gem: filter, input: OTHER, options: {condition: n > 1}}
  union: {gem: union, inputs: [timed, more], options: {allow_missing_columns: true}}
  last: {gem: deduplicate, input: union, options: {columns: [w]}}
"""
    assert of_one(steps.replace("OTHER", "timed"), steps.replace("OTHER", "clicks")) == "refused"
    assert of_one(steps.replace("OTHER", "clicks"), steps.replace("OTHER", "timed")) == "mixed"


GROUPS = """
  groups: {gem: aggregate, input: clicks, options: {group_by: [n], aggregates: {c: count(*), last: max(x)}}}
"""


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("last is not null or c is not null", "refused"),
        ("c is not null", "refused"),
        ("last is not null", "from_now_on"),
        ("last is not null or n is not null", "from_now_on"),
        ("last is not null and c is not null", "from_now_on"),
    ],
)
@pytest.mark.parametrize("united", [False, True])
def test_a_condition_that_leaves_out_nothing_reads_no_column(
    condition: str, expected: str, united: bool
) -> None:
    # Of `c`, which no group lacks, Spark doesn't ask, nor then of `last`; in each input of a union by itself.
    steps = f"""{GROUPS}
  both: {{gem: union, inputs: [clicks, groups], options: {{allow_missing_columns: true}}}}
  some: {{gem: filter, input: {"both" if united else "groups"}, options: {{condition: "{condition}"}}}}
  last: {{gem: select, input: some, options: {{columns: [COLUMNS]}}}}
"""
    every, few = (steps.replace("COLUMNS", columns) for columns in ("n, c, last", "n, c"))
    assert of_one(every, few) == expected


def test_a_key_that_is_never_null_is_no_place_for_one_that_may_be() -> None:
    steps = """
  long: {gem: unpivot, input: clicks, options: {ids: [at], values: [page]}}
  last: {gem: aggregate, input: long, options: {group_by: [variable], aggregates: {n: count(*)}}}
"""
    assert of_one(steps, steps.replace("[variable]", "[value]")) == "refused"
    assert of_one(steps.replace("[variable]", "[value]"), steps) == "mixed"
    named = """
  named: {gem: with_columns, input: clicks, options: {columns: {page: "PAGE"}}}
  last: {gem: deduplicate, input: named, options: {columns: [page]}}
"""
    filled = named.replace("PAGE", "coalesce(page, '-')")
    assert of_one(filled, named.replace("PAGE", "upper(page)")) == "refused"
    assert of_one(filled, named.replace("PAGE", "case when n > 1 then 'a' else 'b' end")) == "mixed"
    assert of_one(filled, named.replace("PAGE", "case when n > 1 then 'a' end")) == "refused"
    # There is a text for each value, so that only the value decides.
    assert (
        of_one(named.replace("PAGE", "string(2D)"), named.replace("PAGE", "cast(n as string)")) == "refused"
    )
    assert of_one(filled, named.replace("PAGE", "cast(2D as string)")) == "mixed"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("sum(d)", "avg(d)", "refused"),  # one is kept with a switch, the other with a count
        # Of few digits their sums are whole numbers, and what their means are made of doubles.
        ("avg(d)", "avg(d + 1)", "mixed"),
        ("avg(d)", "'avg(cast(d as decimal(11,2)))'", "mixed"),
        ("avg(d)", "'avg(cast(d as decimal(12,2)))'", "refused"),
        ("sum(d)", "sum(d * 2)", "refused"),
        ("sum(n)", "sum(n + 1)", "mixed"),
        # Whether it has overflowed is kept of a sum of whole numbers that is tried, as of one of decimals.
        ("sum(n)", "try_sum(n)", "refused"),
        ("sum(d)", "try_sum(d)", "mixed"),
        ("avg(n)", "try_avg(n)", "mixed"),
    ],
)
def test_what_is_kept_of_decimals(old: str, new: str, expected: str) -> None:
    steps = "  last: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {r: FUNCTION}}}"
    assert of_one(steps.replace("FUNCTION", old), steps.replace("FUNCTION", new)) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # An average is kept as a sum and a count, either of which might be null; a count alone never is.
        ("avg(x)", "try_divide(sum(x), count(x))", "mixed"),
        ("try_divide(sum(x), count(x))", "avg(x)", "refused"),
        ("avg(x)", "sum(x) + sum(n)", "mixed"),
        # The same is kept for a variance and for a deviation.
        ("stddev(x)", "var_pop(x)", "from_now_on"),
        ("stddev(x)", "var_pop(x + 1)", "mixed"),
        ("skewness(x)", "kurtosis(x)", "refused"),
        # How many nulls aren't null is no question.
        ("count(1)", "count(null)", "refused"),
        # Sketches that were made otherwise can't be put together.
        ("count_min_sketch(n, 0.5d, 0.5d, 1)", "count_min_sketch(n, 0.5d, 0.5d, 2)", "refused"),
        ("count_min_sketch(n, 0.5d, 0.5d, 1)", "count_min_sketch(n + 1, 0.5d, 0.5d, 1)", "mixed"),
        # What is put in order is kept too, and what it is put in order by.
        ("listagg(page) within group (order by page)", "listagg(page) within group (order by n)", "mixed"),
        (
            "percentile_cont(0.5) within group (order by x)",
            "percentile_cont(0.5) within group (order by n)",
            "mixed",
        ),
        ("approx_count_distinct(n)", "approx_count_distinct(n, 0.05)", "mixed"),
        ("approx_count_distinct(n)", "approx_count_distinct(n, 0.01)", "refused"),
        # Of whatever it is, and next to whatever: words of bits, as many as its deviation asks for.
        ("approx_count_distinct(n)", "approx_count_distinct(page)", "mixed"),
        ("approx_count_distinct(n) + max(bigint(n))", "max(bigint(n)) + approx_count_distinct(n)", "mixed"),
        ("corr(x, n) + covar_pop(x, n)", "covar_pop(x, n) + corr(x, n)", "mixed"),
        ("covar_pop(x, n)", "covar_samp(x, n)", "from_now_on"),
        ("covar_pop(x, n)", "skewness(x)", "mixed"),
        ("covar_pop(x, n)", "kurtosis(x)", "refused"),
    ],
)
def test_functions_that_are_kept_alike(old: str, new: str, expected: str) -> None:
    steps = (
        '  last: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {r: "FUNCTION"}}}'
    )
    assert of_one(steps.replace("FUNCTION", old), steps.replace("FUNCTION", new)) == expected


@pytest.mark.parametrize(
    ("named", "old", "new", "expected"),
    [
        ("page", "{page: page}", "{page: page, path: page}", "from_now_on"),
        ("page", "{page: upper(page), path: upper(page)}", "{page: upper(page)}", "from_now_on"),
        ("page", "{page: page}", "{page: page, path: upper(page)}", "refused"),
        # Two columns are two, whatever they were made of.
        ("page, page as p", "{page: page}", "{page: page, path: p}", "refused"),
    ],
)
def test_what_is_grouped_by_twice_is_kept_once(named: str, old: str, new: str, expected: str) -> None:
    steps = f"""
  named: {{gem: select, input: clicks, options: {{columns: [{named}]}}}}
  last: {{gem: aggregate, input: named, options: {{group_by: GROUPS, aggregates: {{c: count(*)}}}}}}
"""
    assert of_one(steps.replace("GROUPS", old), steps.replace("GROUPS", new)) == expected


def test_an_aggregate_of_some_rows_is_another_one_than_of_all() -> None:
    steps = "  last: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {r: FUNCTION, all: count(*)}}}"
    some, others, every = (
        steps.replace("FUNCTION", f'"{text}"')
        for text in ("count(*) filter (where n > 1)", "count(*) filter (where n > 2)", "count(*) + 1")
    )
    assert of_one(some, others) == "mixed"
    assert of_one(some, every) == "refused"
    query = '  last: {gem: sql, input: clicks, options: {query: "select page, FUNCTION as r, count(*) as c from clicks group by page"}}'
    some, others, every = (
        query.replace("FUNCTION", text)
        for text in ("count(*) filter (where n > 1)", "count(*) filter (where n > 2)", "count(*) + 1")
    )
    assert of_one(some, others) == "mixed"
    assert of_one(some, every) == "refused"
    # Of results that nobody reads Spark keeps nothing, but what a condition asks for it keeps.
    having = query.replace("by page", "by page having count(*) > 1").replace(
        "FUNCTION", "count(*) filter (where n > 1)"
    )
    few = (
        having.replace("last", "sums") + "\n  last: {gem: select, input: sums, options: {columns: [COLUMNS]}}"
    )
    assert of_one(few.replace("COLUMNS", "page"), few.replace("COLUMNS", "page, r")) == "refused"
    assert of_one(few.replace("COLUMNS", "page"), few.replace("COLUMNS", "page, c")) == "from_now_on"


def test_columns_that_decide_on_duplicates_are_kept_in_the_order_of_their_names() -> None:
    steps = "  last: {gem: deduplicate, input: clicks, options: {columns: [page, n]}}"
    assert of_one(steps, steps.replace("[page, n]", "[n, page]"), "append") == "refused"
    assert of_one(steps, steps.replace("[page, n]", "[PAGE, n]"), "append") == "continues"


def test_a_column_by_which_rows_are_spread_is_kept_though_nobody_reads_it_after() -> None:
    steps = """
  pairs: {gem: join, inputs: [a, b], options: {condition: a.n = b.m}}
  spread: {gem: repartition, input: pairs, options: {partitions: 4, columns: [name]}}
  last: {gem: select, input: spread, options: {columns: [n, m]}}
"""
    assert of_two(steps, steps.replace(", columns: [name]}}\n  last", "}}\n  last")) == "refused"
    assert of_two(steps, steps.replace("columns: [name]}}\n  last", "columns: [m]}}\n  last")) == "refused"


FUZZY = """
  alike:
    gem: fuzzy_match
    inputs: [a, named]
    options: {id: n, fields: {page: {}}, block_by: [at], threshold: 0.5}
  last: {gem: drop, input: alike, options: {columns: [left_id]}}
"""
NAMED = "  named: {gem: rename, input: b, options: {columns: {m: n, y: x, name: page, seen: at}}}\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[left_id]", "[right_id]", "refused"),
        ("{page: {}}", "{page: {}, x: {}}", "refused"),
        ("id: n", "id: x", "refused"),
        ("block_by: [at]", "block_by: [at + interval 1 hour]", "mixed"),
        ("{page: {}}", "{page: {measure: equal}}", "from_now_on"),
        ("threshold: 0.5", "threshold: 0.75", "from_now_on"),
    ],
)
def test_pairs_that_are_nearly_the_same_are_kept_with_what_is_read_of_them(
    old: str, new: str, expected: str
) -> None:
    text = NAMED + FUZZY
    edited = text.replace(old, new)
    if old == "id: n":
        text, edited = (found.replace("columns: [left_id]", "columns: [score]") for found in (text, edited))
    assert of_two(text, edited) == expected


GROUPED = """
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  last: {gem: aggregate, input: timely, options: {group_by: [BY], aggregates: {n: count(*)}}}
"""


def test_a_group_without_event_time_is_never_let_go() -> None:
    by_page, by_time = GROUPED.replace("BY", "page"), GROUPED.replace("BY", "at")
    texts = {mode: ONE.replace("MODE", mode) for mode in ("update", "complete")}

    def to_complete(steps: str) -> str:
        return verdict(*(texts[mode].replace("STEPS", steps) for mode in ("update", "complete"))).verdict

    assert to_complete(by_page) == "continues"
    assert to_complete(by_time) == "mixed"


@pytest.mark.parametrize(
    ("by", "mode", "expected"),
    [("page", "update", "continues"), ("at", "update", "skipped"), ("at", "complete", "continues")],
)
def test_rows_of_a_new_source_are_late_only_where_event_time_decides(
    by: str, mode: str, expected: str
) -> None:
    before = ONE.replace("MODE", mode).replace("STEPS", GROUPED.replace("BY", by))
    more = before.replace(
        "transforms:",
        '  more: {gem: file, options: {format: json, path: more, schema: "page string, n int, x double, '
        'd decimal(10,2), at timestamp"}}\ntransforms:\n  both: {gem: union, inputs: [clicks, more]}',
    ).replace("input: clicks", "input: both")
    assert verdict(before, more).verdict == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("group by page, n", "group by rollup(page, n)", "refused"),
        ("group by rollup(page, n)", "group by cube(page, n)", "mixed"),
        ("group by rollup(page, n)", "group by page, n with rollup", "mixed"),
    ],
)
def test_groups_of_groups_are_told_apart_by_a_key_of_their_own(old: str, new: str, expected: str) -> None:
    query = '  last: {gem: sql, input: clicks, options: {query: "select page, n, count(*) as c from clicks GROUP"}}'
    assert of_one(query.replace("GROUP", old), query.replace("GROUP", new)) == expected


def test_a_file_source_is_refused_another_place_unless_the_last_micro_batch_had_nothing_of_it() -> None:
    steps = "  last: {gem: select, input: clicks, options: {columns: [page]}}"
    before = ONE.replace("MODE", "append").replace("STEPS", steps)
    old, new = plan(before), plan(before.replace("path: data", "path: elsewhere"))
    one, other = (Offsets(n, "v2", sources={"clicks": {"logOffset": n}}) for n in (0, 1))
    read, idle = (one, other), (other, replace(other, batch=2))
    found = {
        name: compare(
            version_of(old, "out"),
            version_of(new, "out"),
            new,
            "out",
            checkpoint=SparkCheckpoint("/none", offsets=offsets),
        )
        for name, offsets in {"read": read, "idle": idle, "unknown": idle[:1]}.items()
    }
    assert {name: changes.verdict for name, changes in found.items()} == {
        "read": "refused",
        "idle": "skipped",
        "unknown": "refused",
    }
    assert "Spark doesn't notice" in found["idle"].changes[0].message


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_what_is_grouped_by_is_what_its_name_stands_for(mode: str) -> None:
    query = (
        "select window(at, '1 minute') as w, upper(page) as page, count(*) as c from clicks group by w, page"
    )
    steps = f'  last: {{gem: sql, input: clicks, options: {{query: "{query}"}}}}'
    assert of_one(steps, steps.replace("1 minute", "3 minutes"), mode) == "mixed"
    # A column of the table comes before an item of that name, so that this is another group.
    assert of_one(steps, steps.replace("by w, page", "by w, p").replace("as page", "as p"), mode) == "mixed"
    numbers = '  last: {gem: sql, input: clicks, options: {query: "select n + 1 as k, count(*) as c from clicks group by K"}}'
    assert of_one(numbers, numbers.replace("n + 1", "x + 1"), mode) == "refused"


def test_a_query_without_a_condition_leaves_out_no_rows() -> None:
    steps = """
  more: {gem: sql, input: clicks, options: {query: "select page, n, n + 1 as m from clicks WHERE"}}
  last: {gem: deduplicate, input: more, options: {columns: [page]}}
"""
    all_rows, some = (steps.replace("WHERE", text) for text in ("", "where n > 1"))
    without = steps.partition("  last")[1:]
    bare = "".join(without).replace("input: more", "input: clicks")
    assert of_one(all_rows, bare, "append") == "from_now_on"
    assert of_one(some, bare, "append") == "mixed"
    assert of_one(all_rows, some, "append") == "mixed"
    passing = "  more: {gem: filter, input: clicks, options: {condition: 'true'}}\n" + "".join(without)
    assert of_one(bare, passing, "append") == "continues"


@pytest.mark.parametrize("pivot", ["", ", pivot: {column: n, values: ['1', '2']}"])
def test_a_filter_behind_an_aggregation_is_put_before_it_with_a_pivot_too(pivot: str) -> None:
    """Measured: with a pivot a group comes out that the filter leaves out, and one without its first rows."""
    steps = """
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  sums: {gem: aggregate, input: timely, options: {window: {column: at, duration: 1 hour}, group_by: [page], aggregates: {t: sum(n)}PIVOT}}
  last: {gem: filter, input: sums, options: {condition: "CONDITION"}}
""".replace("PIVOT", pivot)
    one, two = (steps.replace("CONDITION", text) for text in ("page = 'x'", "page = 'x' or page = 'a'"))
    assert of_one(one, two, "append") == "mixed"
    assert of_one(two, one, "append") == "mixed"


def test_a_filter_behind_a_union_is_put_before_what_is_in_its_branches() -> None:
    steps = """
  sums: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {s: sum(n)}}}
  plain: {gem: select, input: clicks, options: {columns: {page: page, s: cast(n as bigint)}}}
  both: {gem: union, inputs: [plain, sums]}
  last: {gem: filter, input: both, options: {condition: "CONDITION"}}
"""
    for old, new, expected in (("page > 'a'", "page > 'b'", "mixed"), ("s > 1", "s > 2", "from_now_on")):
        one, other = (steps.replace("CONDITION", text) for text in (old, new))
        assert of_one(one, other) == expected


def test_a_star_in_a_function_is_the_only_column_that_there_is() -> None:
    query = (
        "  few: {gem: select, input: clicks, options: {columns: [n]}}\n  last: {gem: aggregate, input: few, "
    )
    query += "options: {group_by: [n], aggregates: {r: FUNCTION}}}"
    assert of_one(query.replace("FUNCTION", "count(*)"), query.replace("FUNCTION", "sum(*)")) == "refused"
    assert of_one(query.replace("FUNCTION", "sum(n)"), query.replace("FUNCTION", "sum(*)")) != "refused"


def test_of_a_stream_that_is_joined_with_itself_each_side_is_kept_as_it_is_read() -> None:
    steps = """
  paired: {gem: join, inputs: {l: clicks, r: clicks}, options: {condition: l.n = r.n}}
  last: {gem: select, input: paired, options: {columns: [l.page]}}
"""
    assert of_one(steps, steps.replace("[l.page]", "[l.page, l.x]"), "append") == "refused"


def test_a_condition_that_is_nothing_but_a_column_decides_which_rows_come() -> None:
    text = """
        pipeline: shop
        sources:
          orders: {gem: file, options: {format: json, path: data, schema: "id int, paid boolean"}}
        transforms:
          some: {gem: filter, input: orders, options: {condition: paid}}
          last: {gem: select, input: some, options: {columns: [id]}}
        targets:
          out: {gem: console, input: last}
    """
    without = text.replace(
        "          some: {gem: filter, input: orders, options: {condition: paid}}\n", ""
    ).replace("input: some", "input: orders")
    assert verdict(text, without).verdict == "from_now_on"
    assert verdict(without, text).verdict == "from_now_on"


def test_an_aggregate_that_nobody_reads_is_kept_nowhere() -> None:
    steps = """
  sums: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {r: max(n), s: sum(n)}}}
  last: {gem: select, input: sums, options: {columns: [page, s]}}
"""
    assert of_one(steps, steps.replace("max(n)", "min(n)")) == "continues"
    assert of_one(steps, steps.replace("sum(n)", "sum(n + 1)")) == "mixed"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        # There are no distinct rows: their order, and whether they are made at all, is nothing to Spark.
        ("max(n)", "continues"),
        ("last(n, true)", "continues"),
        ("bool_or(n > 1)", "continues"),
        ("collect_set(n)", "continues"),
        ("max(n) filter (where n > 1)", "continues"),
        ("count(*) filter (where 42 <=> 10L)", "continues"),
        ("count(n)", "refused"),
        ("count(*) filter (where 1 < 2)", "refused"),
        ("approx_count_distinct(n)", "refused"),
    ],
)
def test_distinct_rows_are_left_out_before_what_is_blind_to_duplicates(function: str, expected: str) -> None:
    steps = f"""
  timely: {{gem: watermark, input: clicks, options: {{column: at, delay: 1 minute}}}}
  once: {{gem: sql, input: timely, options: {{query: "select distinct page, n, at from timely"}}}}
  last: {{gem: aggregate, input: once, options: {{group_by: [at], aggregates: {{m: "{function}"}}}}}}
"""
    assert of_one(steps, steps.replace("page, n, at", "n, page, at"), "append") == expected


def test_groups_that_nobody_reads_anything_of_are_left_out_too() -> None:
    steps = """
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 minute}}
  groups: {gem: aggregate, input: timely, options: {group_by: [page, n, at], aggregates: {c: count(*)}}}
  last: {gem: aggregate, input: groups, options: {group_by: [at], aggregates: {m: max(n)}}}
"""
    assert of_one(steps, steps.replace("[page, n, at]", "[n, page, at]"), "append") == "continues"
    assert of_one(steps, steps.replace("max(n)", "max(c)"), "append") == "refused"
    between = steps.replace(
        "  last: {gem: aggregate, input: groups", "  BETWEEN\n  last: {gem: aggregate, input: more"
    )
    computed = between.replace(
        "BETWEEN", "more: {gem: with_columns, input: groups, options: {columns: {k: n + 1}}}"
    )
    assert of_one(computed, computed.replace("[page, n, at]", "[n, page, at]"), "append") == "continues"
    spread = between.replace("BETWEEN", "more: {gem: repartition, input: groups, options: {partitions: 2}}")
    assert of_one(spread, spread.replace("[page, n, at]", "[n, page, at]"), "append") == "refused"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("s", "m", "refused"), ("s", "s + 1 as s", "from_now_on"), ("s", "s, m", "refused")],
)
def test_of_what_is_read_on_two_ways_each_keeps_what_it_needs(old: str, new: str, expected: str) -> None:
    steps = """
  sums: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {s: sum(n), m: max(x)}}}
  some: {gem: select, input: sums, options: {columns: [page, COLUMNS]}}
  last: {gem: union, inputs: [sums, some], options: {allow_missing_columns: true}}
"""
    assert of_one(steps.replace("COLUMNS", old), steps.replace("COLUMNS", new)) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("n", "x", "refused"), ("n", "n, at", "refused"), ("n", "n + 1 as n", "from_now_on")],
)
def test_so_does_a_join(old: str, new: str, expected: str) -> None:
    steps = """
  pairs: {gem: join, inputs: {l: a, r: b}, options: {condition: l.page = r.name}}
  some: {gem: select, input: pairs, options: {columns: [page, COLUMNS]}}
  last: {gem: union, inputs: [pairs, some], options: {allow_missing_columns: true}}
"""
    assert of_two(steps.replace("COLUMNS", old), steps.replace("COLUMNS", new)) == expected


def test_a_filter_behind_distinct_rows_is_put_before_them() -> None:
    steps = """
  once: {gem: sql, input: clicks, options: {query: "select distinct page, n from clicks"}}
  last: {gem: filter, input: once, options: {condition: n > 1}}
"""
    assert of_one(steps, steps.replace("n > 1", "n > 2"), "complete") == "mixed"
    assert of_one(steps, steps.replace("n > 1", "n > 2"), "update") == "from_now_on"
    dropped = """
  once: {gem: deduplicate, input: clicks, options: {columns: [page, n]}}
  last: {gem: filter, input: once, options: {condition: n > 1}}
"""
    assert of_one(dropped, dropped.replace("n > 1", "n > 2"), "append") == "from_now_on"
    timely = "  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}\n"
    dropped = dropped.replace("clicks", "timely").replace("[page, n]", "[page, n], within_watermark: true")
    assert of_one(timely + dropped, timely + dropped.replace("n > 1", "n > 2"), "append") == "from_now_on"


def test_a_filter_of_values_that_were_columns_stays_behind_what_makes_them() -> None:
    once = """
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  before: {gem: deduplicate, input: timely, options: {columns: [at], within_watermark: true}}
"""
    sums = """
  before: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {s: sum(n)}}}
"""
    long = "  last: {gem: unpivot, input: before, options: {values: [page], include_nulls: NULLS}}\n"
    for steps, mode in ((once + long, "append"), (sums + long, "complete")):
        with_nulls, without = (steps.replace("NULLS", text) for text in ("true", "false"))
        assert of_one(with_nulls, without, mode) in {"from_now_on", "continues"}
        assert of_one(without, with_nulls, mode) in {"from_now_on", "continues"}


def test_event_time_that_a_join_asks_for_is_never_null_unless_columns_are_left_out_before() -> None:
    """Spark asks for it behind the watermark, and forgets that it did where it leaves out columns."""
    text = """
        pipeline: shop
        sources:
          a: {gem: file, options: {format: json, path: a, schema: "n int, at timestamp"}}
          b: {gem: file, options: {format: json, path: b, schema: "m int, seen timestamp"}}
          pages: {gem: file, mode: batch, options: {format: json, path: c, schema: "since timestamp"}}
        transforms:
          timely: {gem: watermark, input: b, options: {column: seen, delay: 1 hour}}
          known: {gem: join, inputs: [timely, pages], options: {how: left_semi, condition: timely.seen > pages.since}}
          pairs: {gem: join, inputs: [a, known], options: {how: HOW, condition: a.at = known.seen}}
          last: {gem: select, input: pairs, options: {columns: [n, m, seen]}}
        targets:
          out: {gem: console, input: last}
    """.replace("HOW", "inner")
    assert verdict(text, text.replace("left_semi", "left")).verdict == "refused"
    assert verdict(text.replace("left_semi", "left"), text).verdict == "mixed"


def test_a_semi_join_is_put_before_an_unpivot_and_keeps_the_rows_that_there_are_there() -> None:
    """Spark asks for event time right behind its watermark, and for another column at the source."""
    steps = """
  timely: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}
  long: {gem: unpivot, input: timely, options: {ids: [at, later], values: [n]}}
  later: {gem: watermark, input: b, options: {column: seen, delay: 1 hour}}
  last: {gem: join, inputs: [long, later], options: {how: HOW, condition: long.at = later.seen}}
"""
    text = TWO.replace('a, schema: "n int, x double, page', 'a, schema: "n int, later timestamp, page')
    for how, expected in (("left_semi", "refused"), ("inner", "mixed")):
        before = text.replace("STEPS", steps.replace("HOW", how))
        assert verdict(before, before.replace("{column: at,", "{column: later,")).verdict == expected


def test_columns_that_change_places_twice_before_a_join_are_as_they_were() -> None:
    """Spark makes one projection of both, and none of one that does nothing: what it asks for it knows there."""
    steps = """
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  turned: {gem: select, input: timely, options: {columns: [n, at]}}
  some: {gem: select, input: READ, options: {columns: [at, n]}}
  last: {gem: join, inputs: {l: some, r: some}, options: {how: left_semi, "on": [at]}}
"""
    one = ONE.replace("MODE", "append").replace(
        "page string, n int, x double, d decimal(10,2), at", "at timestamp, n int, x"
    )
    plain, turned = (one.replace("STEPS", steps.replace("READ", read)) for read in ("timely", "turned"))
    assert verdict(plain, turned).verdict == "continues"
    # A semi join is put before what chooses columns of its first input, and keeps of the other what it reads.
    assert verdict(plain, plain.replace("[at, n]", "[n, at]")).verdict == "continues"
    plain = plain.replace('"on": [at]', "condition: l.at = r.at and r.n < 5 and r.n > l.n")
    assert verdict(plain, plain.replace("[at, n]", "[n, at]")).verdict == "refused"


def test_a_join_keeps_of_each_column_whether_it_may_be_null() -> None:
    steps = """
  told: {gem: with_columns, input: a, options: {columns: {x: "EXPRESSION"}}}
  pairs: {gem: join, inputs: [told, b], options: {condition: told.n = b.m}}
  last: {gem: select, input: pairs, options: {columns: [n, x, m, y]}}
"""
    filled, plain = (steps.replace("EXPRESSION", text) for text in ("coalesce(x, 0)", "x + 1"))
    assert of_two(filled, plain) == "refused"
    assert of_two(plain, filled) == "mixed"
    assert of_two(plain, steps.replace("EXPRESSION", "x + 2")) == "mixed"


ONCE_EACH = """
  once: {gem: deduplicate, input: clicks, options: {columns: [page]}}
  pairs: {gem: join, inputs: {l: READ, r: READ}, options: {"on": [page, n]}}
  last: {gem: select, input: pairs, options: {columns: [page, n]}}
"""


def test_what_a_join_asks_for_right_behind_duplicates_is_never_null() -> None:
    """Spark asks for it as early as it can, which isn't before duplicates are dropped."""
    plain = ONCE_EACH.replace("READ", "once")
    named = '  told: {gem: with_columns, input: once, options: {columns: {page: "EXPRESSION"}}}\n'
    upper, lower = (
        ONCE_EACH.replace("READ", "told").replace("  pairs", named.replace("EXPRESSION", text) + "  pairs")
        for text in ("upper(page)", "lower(page)")
    )
    packed = ONCE_EACH.replace("READ", "packed").replace(
        "  pairs",
        "  packed: {gem: to_json, input: once, options: {columns: [page, n], column: page, keep: true}}\n  pairs",
    )
    assert of_one(plain, upper, "append") == "refused"
    assert of_one(plain, packed, "append") == "refused"
    assert of_one(upper, plain, "append") == "mixed"
    assert of_one(upper, lower, "append") == "mixed"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("x > 1", "x > 2", "mixed"),
        ("x > 1", "x is not null", "mixed"),
        ("x > 1", "x is null or x > 1", "refused"),
        ("x is null or x > 1", "x > 1", "mixed"),
        ("x > 1", "coalesce(x, 0) > 1", "refused"),
        ("not (x is null)", "not (x > 1 or d > 1)", "mixed"),
        ("x > 1", "not (x between 1 and 2)", "refused"),
        # What is the same for all rows is worked out before Spark asks.
        ("x > 1 or 'x' = 'a'", "x > 1 or 'x' != 'a'", "refused"),
        ("x > 1 and lower('A') = 'a'", "x > 1 and upper('A') = 'a'", "refused"),
        ("x > 1 and 2D > 1", "x > 1", "continues"),
    ],
)
def test_a_filter_right_behind_duplicates_asks_too(old: str, new: str, expected: str) -> None:
    steps = """
  once: {gem: deduplicate, input: clicks, options: {columns: [page]}}
  some: {gem: filter, input: once, options: {condition: "CONDITION"}}
  pairs: {gem: join, inputs: {l: some, r: some}, options: {"on": [n]}}
  last: {gem: select, input: pairs, options: {columns: [n, l.page, l.x, l.d, r.page, r.x, r.d]}}
"""
    assert of_one(steps.replace("CONDITION", old), steps.replace("CONDITION", new), "append") == expected


def test_columns_of_one_name_are_read_each_for_itself() -> None:
    steps = """
  told: {gem: with_columns, input: clicks, options: {columns: {x: "EXPRESSION"}}}
  pairs: {gem: join, inputs: {l: told, r: clicks}, options: {"on": [n]}}
  last: {gem: select, input: pairs, options: {columns: [l.page, l.x, r.page, r.x]}}
"""
    filled, plain = (steps.replace("EXPRESSION", text) for text in ("coalesce(x, 0)", "x + 1"))
    assert of_one(filled, plain, "append") == "refused"
    assert of_one(plain, plain.replace("x + 1", "x + 2"), "append") == "mixed"
    assert of_one(plain, plain.replace("l.x, ", ""), "append") == "refused"


def test_a_condition_that_is_the_same_for_all_rows_is_asked_of_one_side_of_a_join() -> None:
    steps = """
  pairs: {gem: join, inputs: [a, b], options: {condition: a.n = b.m}}
  some: {gem: filter, input: pairs, options: {condition: "CONDITION"}}
  last: {gem: select, input: some, options: {columns: [n, m]}}
"""
    without = steps.replace('  some: {gem: filter, input: pairs, options: {condition: "CONDITION"}}\n', "")
    without = without.replace("input: some", "input: pairs")
    assert of_two(without, steps.replace("CONDITION", "abs(1) in (2, 3)")) == "mixed"
    assert of_two(steps.replace("CONDITION", "true"), without) != "mixed"
    sums = """
  sums: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {s: sum(n)}}}
  last: {gem: filter, input: sums, options: {condition: "CONDITION"}}
"""
    assert of_one(sums.replace("CONDITION", "1 = 1"), sums.replace("CONDITION", "1 = 2")) == "from_now_on"


def test_the_greatest_of_what_is_grouped_by_is_the_least_too() -> None:
    steps = (
        "  last: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {r: max(COLUMN)}}}"
    )
    for column, expected in (("page", "from_now_on"), ("n", "mixed")):
        before = steps.replace("COLUMN", column)
        assert of_one(before, before.replace("max(", "min(")) == expected
    query = "  last: {gem: sql, input: clicks, options: {query: 'select n + 1 as m, max(n + 1) as r from clicks group by n + 1'}}"
    assert of_one(query, query.replace("max(", "min(")) == "from_now_on"
    assert of_one(query, query.replace("max(n + 1)", "max(n + 2)")) == "mixed"
    # They are kept each for itself nevertheless.
    both = steps.replace("max(COLUMN)", "max(page) || min(page)")
    assert of_one(both, both.replace("max(page)", "min(page)")) == "refused"


def test_a_limit_of_what_an_aggregation_gives_anew_keeps_nothing() -> None:
    steps = """
  sums: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {s: sum(n)}}}
  last: {gem: limit, input: sums, options: {rows: 3}}
"""
    renamed = steps.replace(
        "gem: limit, input: sums, options: {rows: 3}", "gem: drop, input: sums, options: {columns: [s]}"
    )
    assert of_one(steps.replace("rows: 3", "rows: 4"), steps, "complete") == "continues"
    kept = (
        steps.replace("sums, options: {rows", "few, options: {rows")
        .replace("  sums", "  few")
        .replace(
            "gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {s: sum(n)}}",
            "gem: select, input: clicks, options: {columns: [page]}",
        )
    )
    assert of_one(kept, kept.replace("rows: 3", "rows: 4"), "append") == "mixed"
    assert of_one(steps, renamed, "complete") != "mixed"


def test_another_watermark_is_nothing_to_groups_without_event_time() -> None:
    by_page, by_time = GROUPED.replace("BY", "page"), GROUPED.replace("BY", "at")
    assert of_one(by_page, by_page.replace("1 hour", "2 hours")) == "continues"
    assert of_one(by_time, by_time.replace("1 hour", "2 hours")) == "from_now_on"
    without = by_page.replace(
        "  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}\n", ""
    )
    assert of_one(by_page, without.replace("input: timely", "input: clicks")) == "continues"


def test_a_group_of_all_rows_comes_out_with_each_micro_batch_that_a_watermark_makes() -> None:
    with_it = GROUPED.replace("group_by: [BY], ", "")
    without = with_it.replace(
        "  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}\n", ""
    ).replace("input: timely", "input: clicks")
    for mode, expected in (("update", "from_now_on"), ("complete", "continues")):
        assert of_one(with_it, without, mode) == expected
        assert of_one(without, with_it, mode) == expected


QUERY = """
  last: {gem: sql, inputs: INPUTS, options: {query: "select n, page from a union all select m, name from b"}}
"""


def test_sql_takes_its_inputs_by_their_names() -> None:
    assert of_two(QUERY.replace("INPUTS", "[a, b]"), QUERY.replace("INPUTS", "[b, a]")) == "same"
    named = QUERY.replace("INPUTS", "{a: a, b: b}")
    assert of_two(named, QUERY.replace("INPUTS", "{b: b, a: a}")) == "same"
    other = TWO.replace("name string, seen", "page string, at").replace("m int, y", "n int, x")
    named, crossed = (
        other.replace("STEPS", QUERY.replace("m, name", "n, page").replace("INPUTS", inputs))
        for inputs in ("{a: a, b: b}", "{a: b, b: a}")
    )
    assert verdict(named, crossed).verdict != "same"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("b is null", "from_now_on"), ("not (b is null)", "from_now_on"), ("b is true", "refused")],
)
def test_nothing_is_kept_for_whether_a_count_is_null(asked: str, expected: str) -> None:
    steps = """
  counted: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {b: count(*) > 0}}}
  last: {gem: select, input: counted, options: {columns: [page, COLUMN as w]}}"""
    before, after = (steps.replace("COLUMN", column) for column in ("1", asked))
    assert of_one(before, after) == expected


ASKED_BEHIND = """
  ta: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}
  tb: {gem: watermark, input: b, options: {column: seen, delay: 1 hour}}
  both: {gem: join, inputs: {l: ta, r: tb}, options: {how: HOW, condition: "l.n = r.m and l.at = r.seen"}}
  last: {gem: filter, input: both, options: {condition: "CONDITION"}}
"""


@pytest.mark.parametrize(
    ("how", "condition", "outer"),
    [
        ("left", "r.y > 1", False),
        ("left", "trim(r.name) rlike '^a'", False),
        ("left", "l.x > 1", True),
        ("left", "coalesce(r.y, 2) > 1", True),
        ("right", "l.x > 1", False),
        ("full", "l.x > 1 and r.y > 1", False),
        ("full", "l.x > 1", True),
    ],
)
def test_a_condition_makes_an_outer_join_an_inner_one(how: str, condition: str, outer: bool) -> None:
    before = ASKED_BEHIND.replace("HOW", how).replace("CONDITION", condition)
    inner = ASKED_BEHIND.replace("HOW", "inner").replace("CONDITION", condition)
    # An inner join doesn't keep whether a row has had a partner, and an outer one asks for that.
    assert (of_two(inner, before) == "refused") is outer


GROUPED_BEHIND = (
    ASKED_BEHIND.partition("  last")[0]
    + "  last: {gem: aggregate, input: both, options: {GROUPED, aggregates: {c: count(*)}}}"
)


@pytest.mark.parametrize(
    ("how", "grouped", "outer"),
    [
        ("left", "window: {column: seen, duration: 1 hour}", False),
        ("right", "session: {column: at, gap: 1 hour}, group_by: [page]", False),
        ("left", "group_by: [\"window(seen, '1 hour') as w\"]", False),
        ("left", "group_by: [name, at]", True),
    ],
)
def test_a_window_behind_makes_an_outer_join_an_inner_one(how: str, grouped: str, outer: bool) -> None:
    """A row without event time is in no window, and Spark asks for that before the join."""
    steps = GROUPED_BEHIND.replace("GROUPED", grouped)
    inner = steps.replace("HOW", "inner")
    assert (of_two(inner, steps.replace("HOW", how)) == "refused") is outer


@pytest.mark.parametrize(
    ("grouped", "old", "new", "expected"),
    [
        # It asks for the time of both sides then, whatever there is of a partner.
        ("window: {column: at, duration: 1 hour}", "inner", "left", "mixed"),
        ("group_by: [at]", "inner", "left", "refused"),
        ("group_by: [at]", "left", "inner", "mixed"),
    ],
)
def test_another_kind_of_join_is_refused_for_the_rows_that_it_keeps(
    grouped: str, old: str, new: str, expected: str
) -> None:
    steps = GROUPED_BEHIND.replace("GROUPED", grouped)
    assert of_two(steps.replace("HOW", old), steps.replace("HOW", new)) == expected


LIMITED = """
  few: {gem: limit, input: INPUT, options: {rows: ROWS}}
  last: {gem: filter, input: few, options: {condition: n > 1}}
"""
FREE = "  last: {gem: filter, input: INPUT, options: {condition: n > 1}}"
COUNTED = "  counted: {gem: aggregate, input: clicks, options: {group_by: [n], aggregates: {m: count(*)}}}\n"


@pytest.mark.parametrize("rows", [0, 1])
def test_a_limit_keeps_a_count_one_of_no_rows_too(rows: int) -> None:
    """As a run has it, which takes the rules from Spark's optimizer that leave such a limit out."""
    limited = LIMITED.replace("INPUT", "clicks").replace("ROWS", str(rows))
    free = FREE.replace("INPUT", "clicks")
    assert of_one(limited, free, "append") == "refused"
    assert of_one(free, limited, "append") == "refused"


def test_a_limit_of_a_table_keeps_no_count() -> None:
    table = "  pages: {gem: file, mode: batch, options: {format: json, path: p, schema: 'page string, team string'}}"
    text = f"""{ONE.replace("transforms:", f"{table}{chr(10)}transforms:")}""".replace(
        "STEPS",
        """
  few: {gem: limit, input: pages, options: {rows: 3}}
  known: {gem: join, inputs: {l: clicks, r: few}, options: {on: page}}
  last: {gem: aggregate, input: known, options: {group_by: [team], aggregates: {c: count(*)}}}""",
    )
    assert verdict(text.replace("MODE", "update"), text.replace("MODE", "complete")).verdict == "continues"


ONCE = """
pipeline: shop
sources:
  NAME: {gem: file, options: {format: json, path: data, schema: "page string, n int, at timestamp"}}
transforms:
STEPS
targets:
  out: {gem: console, input: last}
"""
FILTERED = "  some: {gem: filter, input: NAME, options: {condition: CONDITION}}\n"
TIMELY = "  timely: {gem: watermark, input: NAME, options: {column: at, delay: 1 hour}}\n"
DROPPED = "  last: {gem: deduplicate, input: INPUT}\n"
PAIRS = "  pairs: {gem: join, inputs: {l: INPUT, r: INPUT}, options: {on: [n]}}\n"
CUT = "  cut: {gem: select, input: pairs, options: {columns: [l.n, r.page]}}\n"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (DROPPED.replace("INPUT", "NAME"), "continues"),
        (FILTERED.replace("CONDITION", "n > 1") + DROPPED.replace("INPUT", "some"), "continues"),
        (FILTERED.replace("CONDITION", "rand() > 0.5") + DROPPED.replace("INPUT", "some"), "again"),
        (TIMELY + DROPPED.replace("INPUT", "timely"), "continues"),
        (PAIRS.replace("INPUT", "NAME") + DROPPED.replace("INPUT", "pairs"), "continues"),
        (TIMELY + PAIRS.replace("INPUT", "timely") + CUT + DROPPED.replace("INPUT", "cut"), "continues"),
        ("  last: {gem: filter, input: NAME, options: {condition: n > 1}}\n", "again"),
        (
            "  few: {gem: limit, input: NAME, options: {rows: 9}}\n" + DROPPED.replace("INPUT", "few"),
            "again",
        ),
        (
            "  once: {gem: deduplicate, input: NAME}\n  last: {gem: union, inputs: [once, NAME]}\n",
            "again",
        ),
    ],
)
def test_rows_that_come_again_are_dropped_as_duplicates(steps: str, expected: str) -> None:
    texts = [ONCE.replace("STEPS", steps).replace("NAME", name) for name in ("clicks", "visits")]
    assert verdict(*texts).verdict == expected


COUNTED_AGAIN = """
  timely: {gem: watermark, input: NAME, options: {column: at, delay: 1 hour}}
  last: {gem: aggregate, input: timely, options: {window: {column: at, duration: 1 hour}, group_by: [page], aggregates: {r: FUNCTION}}}
"""
READ_OF_IT = """
  few: {gem: select, input: last, options: {columns: [window, page]}}
"""


@pytest.mark.parametrize(
    ("mode", "function", "behind", "expected"),
    [
        ("append", "max(n)", "", "continues"),
        ("append", "max(n) - min(n)", "", "continues"),
        ("append", "sum(n)", "", "again"),
        ("append", "max(n) + count(*)", "", "again"),
        ("append", "last(n)", "", "again"),
        ("complete", "first(n)", "", "continues"),
        ("complete", "max(page)", "", "continues"),
        ("complete", "max(rand())", "", "again"),
        # Of the sums nobody reads anything.
        ("append", "sum(n)", READ_OF_IT, "continues"),
        # A group that rows come for comes out once more.
        ("update", "max(n)", "", "again"),
    ],
)
def test_a_greatest_value_is_the_same_of_rows_that_come_again(
    mode: str, function: str, behind: str, expected: str
) -> None:
    steps = COUNTED_AGAIN.replace("FUNCTION", function) + behind
    last = "few" if behind else "last"
    text = ONCE.replace("input: last", f"input: {last}, output_mode: {mode}").replace("STEPS", steps)
    assert verdict(*(text.replace("NAME", name) for name in ("clicks", "visits"))).verdict == expected


@pytest.mark.parametrize(("mode", "expected"), [("complete", "continues"), ("update", "again")])
def test_distinct_rows_that_come_again(mode: str, expected: str) -> None:
    query = "  last: {gem: sql, input: NAME, options: {query: 'select distinct n from NAME'}}\n"
    text = ONCE.replace("input: last", f"input: last, output_mode: {mode}").replace("STEPS", query)
    assert verdict(*(text.replace("NAME", name) for name in ("clicks", "visits"))).verdict == expected


def test_another_gem_where_a_watermark_was_gives_other_columns_too() -> None:
    timely = "  last: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}"
    parsed = '  last: {gem: from_json, input: clicks, options: {column: page, schema: "a int", keep: true}}'
    assert of_one(timely, parsed, "append") == "from_now_on"
    assert of_one(parsed, timely, "append") == "from_now_on"


def test_what_a_join_keeps_is_compared_as_far_as_it_is_known() -> None:
    steps = """
  wide: {gem: with_columns, input: a, options: {columns: {later: "timestampadd(HOUR, 1, at)"}}}
  pairs: {gem: join, inputs: [wide, b], options: {condition: "wide.n = b.m"}}
  last: {gem: filter, input: pairs, options: {condition: n > 0}}
"""
    assert of_two(steps, steps.replace("[wide, b]", "[b, wide]")) == "refused"
    assert of_two(steps, steps.replace("timestampadd(HOUR, 1, at)", "timestampadd(HOUR, 2, at)")) == "mixed"
    assert of_two(steps, steps.replace("{later:", "{x: cast(x as int), later:")) == "refused"
    fewer = steps.replace("{condition: n > 0}", "{columns: [n, x, m]}").replace("filter", "select")
    assert of_two(steps, fewer) == "refused"


def test_what_a_condition_asks_for() -> None:
    columns = [
        Column("x", "double"),
        Column("s", "struct<name: string>"),
        Column("t", "string"),
        Column("at", "timestamp"),
        Column("tags", "array<string>"),
    ]
    asked = {
        "x > 1 and t like 'a%'": {"0:x", "0:t"},
        "not (x is null)": {"0:x"},
        "x > 1 or t = 'a'": set(),
        # A field that isn't null is one of something.
        "s.name = 'a'": {"0:s"},
        "round(x, 1) > 2": set(),
        "unix_timestamp(t, 'yyyy') > 2": set(),
        "coalesce(x, 0) > 1": set(),
        "array_contains(tags, 'a')": {"0:tags"},
        "tags[0] = 'a' and date_format(at, 'yyyy') = '2024'": {"0:tags", "0:at"},
        "timestampadd(HOUR, 1, at) > timestamp '2024-01-01'": {"0:at"},
        "regexp_extract(t, '(a)', 1) = 'a' and pmod(x, 7) = 1": {"0:t", "0:x"},
        "trim(t) = 'a' or x is null": set(),
        "trim(t) = 'a'": set(),
        "floor(x) > 1": {"0:x"},
        "floor(x, 1) > 1": set(),
        # What both sides ask for.
        "(x > 1 and t = 'a') or (t = 'b' and x > 1)": {"0:x"},
        "x > 1 or (x > 1 and t = 'a')": {"0:x"},
        "x is not null or x > 1": set(),
        "x in (1)": {"0:x"},
        "x in (1, 2)": set(),
        # What never holds, by its form.
        "x != x": {NEVER_TRUE},
        "x = x": {"0:x"},
        "x = 1 and x = 2": {NEVER_TRUE},
        "x = 1 and x > 2": {NEVER_TRUE},
        "x > 1 and x < 0": {"0:x"},
        "x > 1 and not (x > 1)": {NEVER_TRUE},
        "x > 1 and t = 'a' and x <= 1": {"0:x", "0:t"},
        "t like 'a%' and not t like 'a%'": {NEVER_TRUE},
        "x > null or x in (null)": {NEVER_TRUE},
        "x > 1 and 1 = 2": {NEVER_TRUE},
    }
    assert {condition: asked_by(condition, [columns]) for condition in asked} == asked


def test_columns_of_two_inputs_that_have_one_name_are_two() -> None:
    one = [Column("at", "timestamp", qualifier="a"), Column("n", "int", qualifier="a")]
    other = [Column("at", "timestamp", qualifier="b"), Column("m", "int", qualifier="b")]
    asked = {
        "a.at < b.at": {"0:at", "1:at"},
        "a.at != b.at and a.at > b.at": {"0:at", "1:at"},
        "a.at = 1 and b.at = 2": {"0:at", "1:at"},
        "a.at < a.at": {NEVER_TRUE},
        "a.n < n": {NEVER_TRUE},
    }
    assert {condition: asked_by(condition, [one, other]) for condition in asked} == asked
    # Of what isn't known it isn't known either.
    assert asked_by("a.at < b.at", [None, None]) == set()


PIVOTED = """
  timed: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  last:
    gem: aggregate
    input: timed
    options:
      window: {column: at, duration: 1 hour}
      aggregates: {v: "FUNCTION"}
      pivot: {column: page, values: [a, b]}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("sum(n)", "sum( n )", "continues"),
        # Numbers are aggregated by the pivot's values first, and then once more.
        ("count(n)", "sum(n)", "refused"),
        ("sum(n)", "count(n)", "mixed"),
        ("min(n)", "max(n)", "mixed"),
        ("sum(n)", "max(n)", "refused"),
        ("avg(n)", "avg(x)", "mixed"),
        ("sum(x)", "max(x)", "mixed"),
        # Others are aggregated once, by an argument that is null for other values.
        ("max(page)", "min(page)", "mixed"),
        ("max(page)", "max(n)", "refused"),
        ("count(n)", "max(page)", "refused"),
    ],
)
def test_what_is_kept_of_pivots(old: str, new: str, expected: str) -> None:
    said = of_one(PIVOTED.replace("FUNCTION", old), PIVOTED.replace("FUNCTION", new), "append")
    assert said == expected


def test_values_of_two_types_have_the_type_that_spark_finds_for_both() -> None:
    steps = """
  long: {gem: unpivot, input: clicks, options: {ids: [page], values: [n, x]}}
  some: {gem: dynamic_select, input: long, options: {types: [string, number]}}
  last: {gem: aggregate, input: some, options: {group_by: [variable], aggregates: {r: FUNCTION}}}
"""
    one, more = (steps.replace("FUNCTION", function) for function in ("count(*)", "count(*) + 1"))
    assert of_one(one, more, "complete") == "continues"
    # They are kept as doubles, whichever of the two they were.
    once = """
  long: {gem: unpivot, input: clicks, options: {ids: [page], values: [n, x]}}
  last: {gem: deduplicate, input: long, options: {columns: [value]}}
"""
    assert of_one(once, once.replace("[n, x]", "[n]"), "append") == "refused"
    assert of_one(once, once.replace("[n, x]", "[x]"), "append") == "mixed"


def test_columns_of_one_name_from_one_input_are_kept_in_their_order() -> None:
    text = """
        pipeline: shop
        sources:
          a: {gem: file, options: {format: json, path: a, schema: "id int, at timestamp"}}
          b: {gem: file, mode: batch, options: {format: json, path: b, schema: "n int, at timestamp"}}
          c: {gem: file, options: {format: json, path: c, schema: "id int, m double"}}
        transforms:
          both: {gem: join, inputs: [a, b], options: {condition: a.id = b.n}}
          pairs: {gem: join, inputs: [c, both], options: {on: [id]}}
        targets:
          out: {gem: console, input: pairs}
    """
    # They are (id, m) and (id, at, n, at), and which of the two sides is kept as which is told by the order.
    assert verdict(text, text.replace("[c, both]", "[both, c]")).verdict == "refused"
    assert verdict(text, text.replace("n int, at timestamp", "n int, at date")).verdict == "refused"
    assert verdict(text, text.replace("a.id = b.n", "a.id = b.n and n > 1")).verdict == "mixed"


def test_overlapping_windows_behind_groups_that_are_never_null_leave_their_state_as_it_is() -> None:
    steps = """
  days: {gem: aggregate, input: clicks, options: {WINDOW group_by: [at], aggregates: {rows: count(*)}}}
  last: {gem: select, input: days, options: {columns: {at: at, rows: rows HOUR}}}
"""
    hour = ''', hour: "window(at, '1 hour', '30 minutes')"'''
    never, maybe = (steps.replace("WINDOW", text) for text in ("window: {column: at, duration: 1 day},", ""))

    def of(text: str) -> str:
        return of_one(text.replace("HOUR", hour), text.replace("HOUR", ""), "complete")

    assert of(never) != "mixed"
    # Spark asks for the window's column before the groups, which lets go of the one that has none.
    assert of(maybe) == "mixed"


def test_a_watermark_that_nothing_kept_gets_past_is_harmless_where_only_groups_come_out() -> None:
    steps = """
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  hours:
    gem: aggregate
    input: INPUT
    options: {window: {column: at, duration: 1 hour}, aggregates: {rows: count(*)}}
  last: {gem: select, input: hours, options: {columns: COLUMNS}}
"""
    without = "\n".join(line for line in steps.splitlines() if "timely:" not in line)

    def of(columns: str) -> set[str]:
        two = [steps.replace("INPUT", "timely"), without.replace("INPUT", "clicks")]
        one, other = (text.replace("COLUMNS", columns) for text in two)
        return {of_one(one, other, "update"), of_one(other, one, "update")}

    assert of("[window]") == {"from_now_on"}
    assert of("[window, rows]") == {"mixed"}


def test_a_count_is_no_sum_whatever_that_is_of() -> None:
    # A count is never null, and a sum is until a value comes.
    for function in ("?sum", "?min", "?max"):
        assert not fit(["bigint!"], [function])
        assert fit(["bigint"], [function])
        assert fit([function], ["bigint!"])
    assert fit(["bigint!"], ["?count_if"])


@pytest.mark.parametrize(
    ("how", "old", "new", "expected"),
    [
        # What is asked of one side is asked before it, and isn't kept for that.
        ("inner", "", " and a.x > 1", "mixed"),
        ("inner", " and a.x > 1", " and b.y > 1", "mixed"),
        ("inner", "", " and a.x > b.y", "refused"),
        ("left_semi", "", " and b.y > 1", "mixed"),
        # Of the rows that come without a partner too it isn't asked before.
        ("left", "", " and a.x > 1", "refused"),
        ("left", "", " and b.y > 1", "mixed"),
        ("full", "", " and b.y > 1", "refused"),
    ],
)
def test_columns_that_only_a_condition_reads(how: str, old: str, new: str, expected: str) -> None:
    steps = """
  pairs: {gem: join, inputs: [timely, dated], options: {how: HOW, condition: "a.n = b.m and b.seen between a.at and a.at + interval 1 hour AND"}}
  last: {gem: select, input: pairs, options: {columns: [COLUMNS]}}
""".replace("HOW", how).replace("COLUMNS", "n" if how == "left_semi" else "n, m")  # fmt: skip
    marked = """
  timely: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}
  dated: {gem: watermark, input: b, options: {column: seen, delay: 1 hour}}"""
    before, after = (
        marked + steps.replace(" AND", condition).replace("[timely, dated]", "{a: timely, b: dated}")
        for condition in (old, new)
    )
    assert of_two(before, after) == expected


@pytest.mark.parametrize(("how", "expected"), [("left", "refused"), ("inner", "mixed")])
def test_a_condition_behind_a_join_that_becomes_a_part_of_it(how: str, expected: str) -> None:
    steps = """
  timely: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}
  dated: {gem: watermark, input: b, options: {column: seen, delay: 1 hour}}
  pairs: {gem: join, inputs: {a: timely, b: dated}, options: {how: HOW, condition: "a.n = b.m and b.seen between a.at and a.at + interval 1 hour"}}
  some: {gem: filter, input: pairs, options: {condition: x > 1}}
  last: {gem: select, input: some, options: {columns: [n, m]}}
""".replace("HOW", how)  # fmt: skip
    within = steps.replace('interval 1 hour"', 'interval 1 hour and a.x > 1"').replace(
        "input: some", "input: pairs"
    )
    within = "\n".join(line for line in within.splitlines() if not line.startswith("  some:"))
    assert of_two(steps, within) == expected


def test_the_fields_of_a_struct_are_columns() -> None:
    steps = """
  packed: {gem: select, input: clicks, options: {columns: [at, "struct(FIELDS) as s"]}}
  apart: {gem: select, input: packed, options: {columns: [at, s.*]}}
  last: {gem: deduplicate, input: apart}
"""
    before = steps.replace("FIELDS", "page, n")
    assert of_one(before, steps.replace("FIELDS", "page, n, x")) == "refused"
    assert of_one(before, steps.replace("FIELDS", "page, n + 1 as n")) == "mixed"


def test_the_columns_of_a_generator() -> None:
    steps = """
  apart: {gem: select, input: clicks, options: {columns: [at, "EXPRESSION"]}}
  last: {gem: aggregate, input: apart, options: {group_by: [KEY], aggregates: {c: count(v)}}}
"""
    stacked = steps.replace("EXPRESSION", "stack(2, 'a', n, 'b', n + 1) as (k, v)").replace("KEY", "k")
    assert of_one(stacked, stacked.replace("'b', n + 1", "'b', n + 2")) == "mixed"
    assert (
        of_one(
            stacked.replace("[k]", "[k, v]"),
            stacked.replace("[k]", "[k, v]").replace("n, 'b', n + 1", "x, 'b', x"),
        )
        == "refused"
    )
    unpivoted = """
  apart: {gem: unpivot, input: clicks, options: {ids: [at], values: [n], variable_column_name: k, value_column_name: v}}
  last: {gem: aggregate, input: apart, options: {group_by: [k], aggregates: {c: count(v)}}}
"""  # fmt: skip
    # Spark takes all that is stacked for what may be null.
    assert of_one(unpivoted, stacked) == "refused"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("rows: 0", "rows: 5", "refused"),
        ("rows: 1", "rows: 5", "continues"),
        ("rows: 5", "rows: 0", "continues"),
    ],
)
def test_of_a_limit_of_no_rows_nothing_was_computed(old: str, new: str, expected: str) -> None:
    steps = """
  counts: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {c: count(*)}}}
  last: {gem: limit, input: counts, options: {ROWS}}
"""
    before = steps.replace("ROWS", old)
    assert of_one(before, steps.replace("ROWS", new), "complete") == expected


@pytest.mark.parametrize(("rows", "mode"), [(0, "complete"), (9, "complete")])
def test_a_condition_gets_before_groups_when_a_limit_between_goes(rows: int, mode: str) -> None:
    limited = COUNTED + LIMITED.lstrip("\n").replace("INPUT", "counted").replace("ROWS", str(rows))
    free = COUNTED + FREE.replace("INPUT", "counted")
    assert of_one(limited, free, mode) == "mixed"
    assert of_one(free, limited, mode) == "mixed"
    results = [steps.replace("condition: n > 1", "condition: m > 1") for steps in (limited, free)]
    assert of_one(*results, mode) == "continues"


def test_a_source_that_is_joined_with_itself_and_read_once_more_is_kept_with_other_nulls() -> None:
    """Spark renames the columns of all of its readers but one, and which of a join's sides that is changes."""
    steps = """
  made: {gem: with_columns, input: clicks, options: {columns: {moment: at}}}
  t: {gem: watermark, input: made, options: {column: moment, delay: 1 hour}}
  pairs: {gem: sql, input: t, options: {query: "select l.* from t l join t r on l.moment = r.moment"}}
  last: {gem: union, inputs: [pairs, OTHER], options: {allow_missing_columns: true}}
"""
    alone = steps.partition("  last")[0].replace("  pairs:", "  last:")
    more = steps.replace("OTHER", "t")
    assert of_one(alone, more, "append") == "refused"
