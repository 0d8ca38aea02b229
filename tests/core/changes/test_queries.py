"""Edits of queries over queries: common table expressions, subqueries, unions, and what is asked of groups."""

from __future__ import annotations

import pytest

from tests.core.changes.edits import verdict
from tests.core.changes.test_shapes import of_one

QUERY = '  last: {gem: sql, input: clicks, options: {query: "QUERY"}}'


def edited(query: str, old: str, new: str, mode: str = "update") -> str:
    """What an edit of a query is called."""
    assert old in query
    before, after = (QUERY.replace("QUERY", text) for text in (query, query.replace(old, new)))
    return of_one(before, after, mode)


@pytest.mark.parametrize(("mode", "expected"), [("update", "from_now_on"), ("complete", "mixed")])
def test_an_update_of_groups_gives_those_that_rows_have_just_come_for(mode: str, expected: str) -> None:
    query = "select distinct page, n from clicks where n > 1"
    assert edited(query, "n > 1", "n > 2", mode) == expected
    assert edited(query, "page, n from", "page, n + 1 as n from", mode) == expected
    assert edited(query, "page, n from", "page, x from", mode) == "refused"
    assert (
        edited(
            query.replace("n from", "max(n) as n from")
            .replace("distinct ", "")
            .replace("n > 1", "n > 1 group by page"),
            "n > 1",
            "n > 2",
            mode,
        )
        == "mixed"
    )


DISTINCT = "with step as (select page, n, x from clicks where n > 1) select distinct page, n from step"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("distinct page, n", "distinct page", "refused"),
        ("distinct page, n", "distinct page, x", "refused"),
        ("distinct page, n", "distinct page, n + 1", "from_now_on"),
        ("page, n, x from", "page, n from", "continues"),
        ("page, n, x from", "page, n + 1 as n, x from", "from_now_on"),
        ("n > 1", "n > 2", "from_now_on"),
        ("step", "other", "continues"),
        ("select distinct page, n from step", "select page, n from step", "refused"),
    ],
)
def test_distinct_rows_of_a_named_query(old: str, new: str, expected: str) -> None:
    assert edited(DISTINCT, old, new) == expected


@pytest.mark.parametrize(
    ("query", "old", "new"),
    [
        ("select struct(n as a, x as b) as both, both.a as one from clicks", "both.a", "both.b"),
        ("select window(at, '1 hour') as w, w.start as one from clicks", "w.start", "w.end"),
        (
            "select window.start as one from clicks group by window(at, '1 hour')",
            "window.start",
            "window.end",
        ),
        ("select window as w, w.start as one from clicks group by window(at, '1 hour')", "w.start", "w.end"),
    ],
)
def test_a_field_of_what_is_made_before_is_another_one(query: str, old: str, new: str) -> None:
    assert edited(query, old, new) == "from_now_on"
    assert edited(query, old, old.upper()) == "continues"


def test_a_text_becomes_what_the_other_side_of_a_union_is() -> None:
    query = "select page, n, at from clicks union select page, page, page from clicks"
    assert edited(query, "select page, n, at", "select at, n, page") == "refused"
    assert edited(query, "select page, n, at", "select page, n + 1, at") == "from_now_on"


@pytest.mark.parametrize("apart", [False, True], ids=["one node", "two nodes"])
def test_groups_have_no_duplicates_so_that_spark_drops_none_unless_columns_are_computed_of_them(
    apart: bool,
) -> None:
    inner = "select window(at, '1 hour') as w, page, sum(n) as s from timely group by 1, 2"
    nodes = '  step: {gem: sql, input: timely, options: {query: "INNER"}}\n' if apart else ""
    steps = f"""
  timely: {{gem: watermark, input: clicks, options: {{column: at, delay: 1 minute}}}}
{nodes}
  once: {{gem: sql, input: {"step" if apart else "timely"}, options: {{query: "{"" if apart else "with step as (INNER) "}QUERY"}}}}
  last: {{gem: with_columns, input: once, options: {{columns: {{m: "COMPUTED"}}}}}}
"""
    steps = steps.replace("INNER", inner)
    distinct = steps.replace("QUERY", "select distinct w, page, s from step")
    plain = steps.replace("QUERY", "select w, page, s from step")

    def of(old: str, new: str, computed: str = "1") -> str:
        return of_one(old.replace("COMPUTED", computed), new.replace("COMPUTED", computed), "append")

    assert of(distinct, plain) in {"continues", "from_now_on", "mixed"}
    assert of(distinct, plain, "s + 1") == "refused"
    assert (
        of_one(distinct.replace("COMPUTED", "1"), distinct.replace("COMPUTED", "s + 1"), "append")
        == "refused"
    )
    # Of one group there may be several rows here.
    assert of(distinct, distinct.replace("distinct w, page, s", "distinct w, s")) == "refused"


SUMS = "select page, most * 2 as most from (select page, max(n) as most, sum(n) as s from clicks group by page) q"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("* 2", "* 3", "from_now_on"),
        ("max(n)", "min(n)", "mixed"),
        # Nobody reads the sum, so that Spark keeps none.
        (", sum(n) as s", "", "continues"),
        ("most * 2 as most", "most * 2 as most, s", "refused"),
        (") q", ") q where most > 1", "from_now_on"),
        # A condition that reads it has it kept.
        (") q", ") q where s > 1", "refused"),
        # One about groups is asked before.
        (") q", ") q where page > 'a'", "mixed"),
        ("group by page", "group by page having s > 1", "refused"),
        ("group by page", "group by page having page > 'a'", "mixed"),
        ("group by page", "group by page having most > 1", "from_now_on"),
    ],
)
def test_a_query_over_groups(old: str, new: str, expected: str) -> None:
    assert edited(SUMS, old, new) == expected


ORDERED = "select page, max(n) as most, sum(n) as s from clicks group by page order by most"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("by most", "by s desc nulls last, page", "continues"),
        ("order by most", "", "continues"),
        ("by most", "by 3, 1", "continues"),
        ("max(n)", "min(n)", "mixed"),
        (
            "select page, max(n) as most, sum(n) as s from clicks group by page",
            "select n, max(x) as most, sum(n) as s from clicks group by n",
            "refused",
        ),
        # What groups are sorted by is kept as well, whether it comes out or not.
        ("by most", "by avg(n)", "refused"),
    ],
)
def test_an_order_of_groups(old: str, new: str, expected: str) -> None:
    assert edited(ORDERED, old, new, "complete") == expected
    outside = (
        "select page from (select page, sum(n) as s, max(n) as m from clicks group by page) q order by s"
    )
    assert edited(outside, "by s", "by page", "complete") == "refused"


def test_groups_over_a_query_are_kept_by_what_its_columns_are_made_of() -> None:
    query = "select a, max(b) as m from (select page as a, n as b, x as c from clicks) group by a"
    assert edited(query, "n as b, x as c", "x as c, n as b") == "continues"
    assert edited(query, "n as b", "n + 1 as b") == "mixed"
    assert edited(query, "n as b, x as c", "x as b, n as c") == "refused"
    difference = query.replace("max(b)", "max(b - c)").replace("x as c", "n + 1 as c")
    assert edited(difference, "n as b, n + 1 as c", "n + 1 as b, n as c") == "mixed"


UNITED = "select page, n from clicks union all select page, n + 1 from clicks where n > 1"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("n + 1", "n + 2", "from_now_on"),
        ("where n > 1", "where n > 2", "from_now_on"),
        ("union all", "union", "refused"),
    ],
)
def test_rows_of_two_queries(old: str, new: str, expected: str) -> None:
    assert edited(UNITED, old, new) == expected
    once = UNITED.replace("union all", "union")
    if old in once:
        assert edited(once, old, new, "complete") == "mixed"


def test_each_row_twice_is_more_rows() -> None:
    counted = "  last: {gem: aggregate, input: READ, options: {group_by: [page], aggregates: {c: count(*)}}}"
    twice = QUERY.replace("last", "twice").replace(
        "QUERY", "select * from clicks union all select * from clicks"
    )
    assert (
        of_one(counted.replace("READ", "clicks"), f"{twice}\n{counted.replace('READ', 'twice')}") == "mixed"
    )


def test_how_many_rows_one_becomes_decides_which_there_are() -> None:
    query = "select page, explode(split(page, ',')) as item from clicks"
    counted = QUERY.replace("last", "parts").replace("QUERY", query)
    counted += (
        "\n  last: {gem: aggregate, input: parts, options: {group_by: [page], aggregates: {c: count(*)}}}"
    )
    assert of_one(counted, counted.replace("','", "'-'")) == "mixed"


def test_a_result_that_only_a_condition_reads_is_kept() -> None:
    query = QUERY.replace("last", "sums").replace(
        "QUERY", "select page, sum(n) as s, max(n) as m from clicks group by page HAVING"
    )
    query += "\n  last: {gem: select, input: sums, options: {columns: [page, m]}}"
    without, with_it = (query.replace(" HAVING", text) for text in ("", " having s is not null"))
    assert of_one(without, with_it) == "refused"
    assert of_one(without, with_it.replace("sum(n) as s", "count(*) as s")) == "from_now_on"


def test_a_condition_on_nothing_is_asked_before_a_query_that_isnt_read() -> None:
    joined = (
        "with one as (select * from clicks), two as (select * from clicks) select a.* from one a join two b"
    )
    steps = QUERY.replace("last", "read").replace("QUERY", f"{joined} using (page)")
    asked = """  last: {gem: filter, input: read, options: {condition: "startswith('its', 'a')"}}"""
    free = "  last: {gem: select, input: read, options: {columns: ['*']}}"
    assert of_one(f"{steps}\n{asked}", f"{steps}\n{free}", "append") == "mixed"


def test_a_union_has_the_wider_type_which_its_groups_are_kept_by() -> None:
    query = "select k, count(*) as c from (select n as k from clicks union all select n + 1 from clicks) group by k"
    assert edited(query, "n + 1", "cast(n as bigint)") == "refused"
    assert edited(query, "n + 1", "n + 2") == "mixed"


def test_a_join_with_a_table_is_followed_to_groups() -> None:
    text = """
        pipeline: shop
        sources:
          clicks: {gem: file, options: {format: json, path: c, schema: "id int, n int, at timestamp"}}
          t: {gem: file, mode: batch, options: {format: json, path: t, schema: "id int, name string, rank int"}}
        transforms:
          last:
            gem: sql
            inputs: [clicks, t]
            options: {query: "select t.KEY, count(*) as c, sum(clicks.n) as s from clicks join t on clicks.id = t.id WHERE group by t.KEY"}
        targets: {out: {gem: console, input: last, output_mode: update}}
    """

    def edited(old: tuple[str, str], new: tuple[str, str]) -> str:
        one, other = (text.replace("KEY", key).replace("WHERE", where) for key, where in (old, new))
        return verdict(one, other).verdict

    assert edited(("name", ""), ("rank", "")) == "refused"
    assert edited(("name", ""), ("name", "where n > 1")) == "mixed"
    assert (
        verdict(
            text.replace("KEY", "name").replace("WHERE", ""),
            text.replace("KEY", "name").replace("WHERE", "").replace("rank int", "rank bigint"),
        ).verdict
        == "continues"
    )


def test_a_column_of_a_join_that_nobody_reads_any_longer_is_not_kept() -> None:
    """Also where how the join is made isn't known, and a column of its name comes to the target."""
    text = """
        pipeline: shop
        sources:
          a: {gem: file, options: {format: json, path: a, schema: "id int, n int"}}
          b: {gem: file, options: {format: json, path: b, schema: "no int, m int"}}
        transforms:
          pairs: {gem: sql, inputs: [a, b], options: {query: "select * from a, b where coalesce(a.id, 0) = b.no"}}
          last: {gem: with_columns, input: pairs, options: {columns: {MADE}}}
        targets: {out: {gem: console, input: last}}
    """
    before = text.replace("MADE", "l: n + 1")
    assert verdict(before, text.replace("MADE", "n: m + 1")).verdict == "refused"
    assert verdict(text.replace("MADE", "n: m + 1"), before).verdict == "refused"
    assert verdict(before, text.replace("MADE", "l: n + 2")).verdict == "from_now_on"


@pytest.mark.parametrize(
    ("condition", "other", "expected"),
    [
        ("page > 'a'", "page > 'b'", "mixed"),
        ("s > 1", "s > 2", "continues"),
        # What has a new name may be anything.
        ("item > 'a'", "item > 'b'", "mixed"),
    ],
)
def test_a_filter_behind_a_query_that_is_not_followed(condition: str, other: str, expected: str) -> None:
    steps = """
  sums: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {s: sum(n)}}}
  split: {gem: sql, input: sums, options: {query: "select t.*, e.item from sums t, lateral explode(split(page, ',')) as e(item)"}}
  last: {gem: filter, input: split, options: {condition: "CONDITION"}}
"""
    one, two = (steps.replace("CONDITION", text) for text in (condition, other))
    assert of_one(one, two, "complete") == expected


@pytest.mark.parametrize(
    ("using", "on", "condition"),
    [
        (
            "select l.page, r.x from t l join t r using (n)",
            "select l.page, r.x from t l join t r on ON",
            "l.n = r.n",
        ),
        # A side's own star has the keys first, and a key by its name alone is the one of the side that is whole.
        (
            "select l.* from t l join t r using (n)",
            "select l.n, l.page, l.x, l.d, l.at from t l join t r on ON",
            "l.n = r.n",
        ),
        ("select n, r.x from t l join t r using (N)", "select l.n, r.x from t l join t r on ON", "l.n = r.n"),
        (
            "select n, at, r.x from t l right join t r using (n, at)",
            "select r.n, r.at, r.x from t l right join t r on ON",
            "l.n = r.n and l.at = r.at",
        ),
        (
            "select n, at, r.x from t l left join t r using (n, at) where n > 1",
            "select l.n, l.at, r.x from t l left join t r on ON where l.n > 1",
            "l.n = r.n and l.at = r.at",
        ),
        (
            "select * from t l left semi join t r using (n, at)",
            "select l.n, l.at, l.page, l.x, l.d from t l left semi join t r on ON",
            "l.n = r.n and l.at = r.at",
        ),
    ],
)
def test_a_join_that_uses_columns_is_one_with_a_condition(using: str, on: str, condition: str) -> None:
    steps = """
  t: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  last: {gem: sql, input: t, options: {query: "QUERY"}}
"""
    one, two = (steps.replace("QUERY", query) for query in (using, on.replace("ON", condition)))
    assert of_one(one, two, "append") == "continues"
    assert of_one(two, one, "append") == "continues"
    other = one.replace("x from", "x + 1 as x from").replace("l.*", "l.n").replace("select *", "select n")
    assert of_one(one, other, "append") not in {"same", "continues"}
    assert of_one(one, one.replace("using (", "using (d, "), "append") == "refused"


@pytest.mark.parametrize("written", ["t l, t r where ON", "t l join t r where ON"])
def test_tables_side_by_side_are_joined_by_what_is_asked_of_their_rows(written: str) -> None:
    steps = """
  t: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
  last: {gem: sql, input: t, options: {query: "select l.page, r.x from TABLES"}}
"""
    condition = "l.n = r.n and l.d > 1"
    one = steps.replace("TABLES", written.replace("ON", condition))
    two = steps.replace("TABLES", f"t l join t r on {condition}")
    assert of_one(one, two, "append") == "continues"
    assert of_one(one, one.replace("l.n = r.n", "l.x = r.x"), "append") == "refused"


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("page, n", "continues"),
        # A group that leaves the key out has many of it.
        ("cube(page, n)", "mixed"),
        ("rollup(page, n)", "mixed"),
        ("grouping sets ((page, n), (page))", "mixed"),
    ],
)
def test_the_greatest_key_is_the_least_one_where_it_is_grouped_once(groups: str, expected: str) -> None:
    steps = f"""
  last: {{gem: sql, input: clicks, options: {{query: "select page, max(n) as m from clicks group by {groups}"}}}}
"""
    assert of_one(steps, steps.replace("max(n)", "min(n)"), "complete") == expected
