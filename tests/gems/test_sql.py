"""The transform `sql`."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import AggregateOperator, Column, Facts, GemError, JoinOperator
from gem_bundle.expressions import UNKNOWN_DELAY, united_type
from gem_event_time.watermark import Watermark
from gem_sql.query import Sql
from gem_sql.text import blanked, statement
from tests.gems.transforms import (
    Folder,
    assert_agrees,
    drain,
    events,
    facts_of,
    findings,
    kinds,
    made,
    stream_of,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ROWS = stream_of(Column("at", "timestamp", "10 minutes"), Column("id", "bigint"))
PAGES = table_of(Column("id", "bigint"), Column("page", "string"))


@pytest.mark.parametrize(
    ("query", "without", "statement_"),
    [
        ("select 1 -- a; b\nfrom t", "select 1        \nfrom t", None),
        ("select 1 /* ; \n ' */;", "select 1      \n     ;", "select 1 /*   \n ' */ "),
        ("select ';', \"a;\", `b;` ; ;\n", "select ''', '''', '''' ; ;\n", "select ';', \"a;\", `b;`    \n"),
        (r"select 'it\'s;' x", "select '''''''' x", None),
        (r"select r'\' x; -- ;", "select '''' x;     ", r"select r'\' x  --  "),
        ("select 'open;", "select ''''''", None),
        ("select 'x;'", "select ''''", None),
        ("select 1 /* open;", "select 1         ", "select 1 /* open "),
    ],
)  # fmt: skip
def test_comments_and_quotes_are_seen(query: str, without: str, statement_: str | None) -> None:
    assert blanked(query) == without
    assert statement(query) == (query if statement_ is None else statement_)


@pytest.mark.parametrize(
    "query",
    [
        "select * from orders",
        "\n-- all of them\n( SELECT * FROM orders );",
        "with x as (select * from orders) select * from x",
        "from orders |> where id > 1",
        "values (1), (2) -- orders",
        "table orders",
        "select ';' as x, id as delete, merge from orders; ; -- done; really",
        "select id, 'insert into' from orders",
    ],
)
def test_queries(query: str) -> None:
    assert findings(Sql, ROWS, names=("orders",), query=query) == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("insert into t select * from orders", "a statement and not a query"),
        ("drop table orders", "a statement and not a query"),
        ("create view v as select * from orders", "a statement and not a query"),
        ("set a = orders", "a statement and not a query"),
        ("explain select * from orders", "a statement and not a query"),
        ("with x as (select * from orders)\nINSERT INTO t select * from x", "a statement and not a query"),
        ("from orders insert overwrite t select id", "a statement and not a query"),
        ("{orders}", "a statement and not a query"),
        ("select * from orders; drop table t", "more than one statement"),
        ("-- nothing but orders", "the query is empty"),
        (" ; ", "the query is empty"),
    ],
)
def test_statements_are_refused(query: str, message: str) -> None:
    found = findings(Sql, ROWS, names=("orders",), query=query)
    errors = [finding for finding in found if finding.severity == "error"]
    assert len(errors) == 1
    assert message in errors[0].message
    assert errors[0].option == "query"
    with pytest.raises(ValidationError):
        made(Sql, query="")


def test_an_input_that_is_not_used_is_a_warning() -> None:
    query = "select * from Orders"
    (finding,) = findings(Sql, ROWS, PAGES, names=("orders", "pages"), query=query)
    assert (finding.severity, finding.hint) == ("warning", "Write `from pages`, or remove the input.")


def test_a_table_with_its_schema_is_no_input() -> None:
    """`rejected` is what the input `orders.rejected` is called in a query."""
    (finding,) = findings(Sql, ROWS, names=("rejected",), query="select * from Orders.rejected r")
    assert (finding.severity, finding.option) == ("warning", "query")
    assert "the input `rejected`: `Orders.rejected` is a table of the catalog" in finding.message
    assert "Write `from rejected`" in (finding.hint or "")
    query = "select * from rejected left join old.rejected o on o.id = rejected.id"
    assert findings(Sql, ROWS, names=("rejected",), query=query) == []


def test_two_inputs_of_one_name_are_an_error() -> None:
    query = "select * from orders"
    (finding,) = findings(Sql, ROWS, ROWS, names=("orders", "Orders"), query=query)
    assert finding.severity == "error"
    assert finding.message == "the inputs `orders` and `Orders` are one table: Spark ignores case"


@pytest.mark.parametrize(
    "query",
    [
        "select page, {}(at) from clicks group by page",
        "select page as p from clicks where {}(page) = 'x'",
        "select page from clicks group by page having {}(at) > 1",
        "select page from clicks order by {}(page)",
        "with c as (select {}(page) as p from clicks) select * from c",
        "select * from clicks join other on {}(clicks.page) = other.page",
        "select page from clicks where page in (select {}(x) from other)",
    ],
)
@pytest.mark.parametrize(("name", "meant"), [("cnt", "count"), ("uper", "upper")])
def test_a_function_that_spark_does_not_have_is_told_wherever_it_stands(
    query: str, name: str, meant: str
) -> None:
    sql = Sql(Sql.options_type(query=query.format(name)))
    sql.input_names = ("clicks",)

    found = [finding for finding in sql.check(Facts()) if finding.code == "GB216"]

    assert [(finding.severity, finding.word) for finding in found] == [("warning", name)]
    assert f"`{meant}`" in found[0].hint


@pytest.mark.parametrize(
    "query", ["select count(*) from clicks", "select ours(page), my.cnt(at) from clicks"]
)
def test_functions_that_there_may_be_are_passed_over(query: str) -> None:
    sql = Sql(Sql.options_type(query=query))
    sql.input_names = ("clicks",)

    assert [finding for finding in sql.check(Facts()) if finding.code == "GB216"] == []


def test_what_is_known_of_a_query_that_can_be_followed() -> None:
    sql = made(Sql, "orders", "pages", query="select * from orders join pages using (id)")
    facts = sql.infer(ROWS, PAGES)
    assert (facts.streaming, kinds(facts)) == (True, ["join"])
    assert [column.name for column in facts.columns or ()] == ["id", "at", "page"]
    assert sql.infer(PAGES, PAGES).streaming is False
    static = made(Sql, "orders", "pages", query="select * from pages")
    assert static.infer(ROWS, PAGES).streaming is False


def test_only_streaming_is_known_of_others() -> None:
    query = "select * from orders natural join pages"
    facts = made(Sql, "orders", "pages", query=query).infer(ROWS, PAGES)
    assert (facts.streaming, facts.columns, kinds(facts)) == (True, None, ["unknown"])
    static = made(Sql, "orders", "pages", query="select * from pages, session_table")
    assert static.infer(ROWS, PAGES).streaming is None
    assert static.infer(Facts(), PAGES).streaming is None


# What a query is made of

A = stream_of(
    Column("at", "timestamp", "10 minutes"),
    Column("id", "bigint"),
    Column("page", "string"),
    Column("amount", "double"),
    Column("seen", "timestamp"),
)
B = stream_of(
    Column("id", "bigint"),
    Column("at", "timestamp", "5 minutes"),
    Column("paid", "timestamp"),
    Column("items", "array<bigint>"),
)
C = table_of(Column("id", "bigint"), Column("name", "string"), Column("since", "timestamp"))


def inferred(query: str) -> Facts:
    return made(Sql, "a", "b", "c", query=query).infer(A, B, C)


@pytest.mark.parametrize(
    ("query", "operators"),
    [
        ("select id from a", []),
        ("select id from a where id > 1", ["filter"]),
        ("select distinct id from a", ["aggregate"]),
        ("select id, count(*) as n from a where id > 1 group by id having n > 1", ["filter", "aggregate", "filter"]),
        ("select id from a order by id limit 3", ["limit", "sort"]),
        ("select id from a limit 3 offset 2", ["limit", "offset"]),
        ("select id from a sort by id", ["sort"]),
        ("select id from a distribute by id", ["repartition"]),
        ("select id, row_number() over (order by id) as n from a", ["analytic_window"]),
        ("select id, sum(id) over w as n from a window w as (order by id)", ["analytic_window"]),
        ("select explode(items) as item from b", ["generate"]),
        ("select item from b lateral view explode(items) t as item", ["generate"]),
        ("select monotonically_increasing_id() as i, now() as t from a", ["current_time", "row_ids"]),
        ("select id from a where at > now()", ["current_time", "filter"]),
        ("select id from a union all select id from b where id > 1", ["union", "filter"]),
        ("select id from a union select id from b", ["aggregate", "union"]),
        ("select id from a intersect select id from b", ["intersect"]),
        ("select id from a except select id from c", ["except"]),
        ("select a.id from a join b on a.id = b.id join c on a.id = c.id", ["join", "join"]),
        ("select id from (select id, count(*) as n from a group by id) as t where n > 1", ["filter", "aggregate"]),
        ("select * from (select page, id from a) pivot (sum(id) for page in ('x'))", ["aggregate", "aggregate"]),
        ("select id from a where id in (select id from c)", ["filter"]),
        ("select id from (select * from a tablesample (10 percent)) as t", ["with", "sample", "cte"]),
    ],
)  # fmt: skip
def test_operators_stand_in_the_order_in_which_rows_pass_them(query: str, operators: list[str]) -> None:
    assert kinds(inferred(query)) == operators


def aggregate(query: str) -> AggregateOperator:
    return next(o for o in inferred(query).all_operators() if isinstance(o, AggregateOperator))


@pytest.mark.parametrize(
    ("groups", "event_time", "sessions", "alone", "windowed"),
    [
        ("at", True, False, False, False),
        ("AT, page", True, False, False, False),
        ("a.at", True, False, False, False),
        ("page", False, False, False, False),
        ("date(at)", False, False, False, False),
        ("seen", False, False, False, False),
        ("window(at, '1 minute')", True, False, False, True),
        ("window(seen, '1 minute')", False, False, False, True),
        ("session_window(at, '1 minute')", True, True, True, True),
        ("session_window(at, '1 minute'), page", True, True, False, True),
        ("session_window(seen, '1 minute')", False, True, True, True),
        ("rollup (page, at)", True, False, False, False),
        ("cube (page)", False, False, False, False),
        ("grouping sets ((page, at), (page))", True, False, False, False),
    ],
)
def test_what_is_known_of_groups(
    groups: str, event_time: bool, sessions: bool, alone: bool, windowed: bool
) -> None:
    found = aggregate(f"select count(*) as n from a group by {groups}")
    assert (found.event_time, found.sessions, found.alone, found.windowed) == (
        event_time,
        sessions,
        alone,
        windowed,
    )
    assert found.streaming is True
    assert found.rows is False


@pytest.mark.parametrize(
    ("query", "event_time"),
    [
        ("select distinct at, id from a", True),
        ("select distinct id from a", False),
        ("select distinct date(at) as day from a", False),
        ("select at from a union select at from b", True),
        ("select id from a union select id from b", False),
    ],
)
def test_distinct_rows_are_an_aggregation_by_all_columns(query: str, event_time: bool) -> None:
    found = aggregate(query)
    assert (found.rows, found.event_time) == (True, event_time)


@pytest.mark.parametrize(
    ("join", "how", "equality", "event_time_key", "bounded"),
    [
        ("join b on a.id = b.id", "inner", True, False, (False, False)),
        ("left join b on a.id = b.id", "left", True, False, (False, False)),
        ("right outer join b on a.at = b.at", "right", True, True, None),
        ("full join b using (at)", "full", True, True, None),
        ("left semi join b using (id)", "left_semi", True, False, (False, False)),
        ("join b using (id, at)", "inner", True, True, None),
        ("join b on a.id < b.id", "inner", False, False, (False, False)),
        ("cross join b", "cross", False, False, (False, False)),
        (
            "join b on a.id = b.id and b.at between a.at and a.at + interval 1 hour",
            "inner",
            True,
            False,
            (True, True),
        ),
        ("join b on a.id = b.id and b.at <= a.at + interval 1 hour", "inner", True, False, (True, False)),
        ("join b", "inner", False, False, (False, False)),
        (", b", "inner", False, False, (False, False)),
    ],
)
def test_what_is_known_of_joins(
    join: str,
    how: str,
    equality: bool | None,
    event_time_key: bool | None,
    bounded: tuple[bool | None, bool | None] | None,
) -> None:
    (found,) = inferred(f"select 1 as one from a {join}").operators
    assert isinstance(found, JoinOperator)
    assert (found.how, found.equality, found.event_time_key) == (how, equality, event_time_key)
    assert bounded is None or found.bounded == bounded
    assert (found.names, found.streams, found.watermarked) == (("a", "b"), (True, True), (True, True))


# The analyser's view

# Of these everything is known: each column's name, its type, and whether it is event time.
KNOWN = """
select * from a
select id, AT as t, upper(page) as up from a
select a.*, 1 as one from a
select id i, at t from a
select at, page as p, id + 1 as n from a where id > 1
select distinct page, at from a
select distinct page from a where page is not null
select page, count(*) as n from a group by page
select page, count(*) from a group by page
select page, count(*) as n from a group by 1
select page as p, count(*) as n from a group by p
select page, at, count(*) as n from a group by all
select window(at, '1 minute') as w, count(*) as n from a group by window(at, '1 minute')
select window(at, '1 minute') as w, count(*) as n from a group by w
select window, count(*) as n from a group by window(at, '1 minute')
select window.start, window.end as e, count(*) as n from a group by window(at, '1 minute'), page
select session_window, page, count(*) as n from a group by session_window(at, '1 minute'), page
select window_time(w) as t, n from (select window(at, '1 minute') as w, count(*) as n from a group by w) as x
select at, count(*) as n from a group by at having count(*) > 1
select at, count(*) as n from a group by at having n > 1
select page from a group by page having max(id) > 3
select page, count(distinct id) as n, sum(distinct id) as s from a group by page
select count(*) filter (where id > 1) as n, sum(amount) as total, first(at) as f from a
select id % 2 as k, count(*) as n from a group by id % 2
select id % 2, count(*) from a group by 1
select date(at) as d, max(at) as m from a group by date(at)
select id, at from a group by id, at
select page, count(*) as n from a group by rollup (page)
select page, id, count(*) as n from a group by cube (page, id)
select page, id, count(*) as n from a group by grouping sets ((page, id), (page), ())
select page, id, count(*) as n from a group by page, id with rollup
select page, count(*) as n from a group by page order by n desc limit 3
select id from a order by id
select id from a sort by id
select id from a limit 3 offset 2
select a.id, b.at as paid_at from a join b on a.id = b.id
select a.at, b.at as other from a left join b on a.id = b.id and b.at between a.at and a.at + interval 1 hour
select * from a join b on a.id = b.id and a.at = b.at
select x.id, y.at from a as x join b as y on x.id = y.id
select a.id, b.id from a join b on a.at = b.at join c on a.id = c.id
select * from a left semi join b on a.id = b.id
select * from a left anti join c on a.id = c.id
select a.id, c.name from a cross join c
select a.id, c.name from a, c where a.id = c.id
select * from a join b using (id)
select * from a left join b using (id, at)
select * from a right join b using (id, at)
select * from a full join b using (id, at)
select * from a full outer join c using (id)
select * from a left semi join b using (id)
select id, at, name from a join c using (id)
select a.*, b.* from a join b using (id)
select a.id from a left join (select id, max(at) as m from b group by id) as n on a.id = n.id
select * from (select id, at from a) x join (select id as k, paid from b) y on x.id = y.k
select /*+ broadcast(c) */ a.id from a join c on a.id = c.id
select at, id from a union all select at, id from b
select at from a union all select paid from b
select at from a union all select since from c
select cast(id as int) as k from a union all select id from b
select cast(id as int) as k from a union all select cast(id as decimal(12, 2)) from b union all select cast(id as double) from b
select cast(id as tinyint) as k from a union select cast(id as smallint) from b
select since from c union all select at from a
select at, id from a union select at, id from b
select id from a intersect select id from b
select at, id from a except select since, id from c
select id from a except all select id from c
select id from a minus select id from c
(select id from a) union all (select id from b) limit 3
with x as (select page, at, count(*) as n from a group by page, at) select * from x
with x as (select id, at from a), y as (select id as k from x where id > 1) select y.k from y
with x as (select id, at from a) select x.id, x.at from x order by at
select * from (select page, count(*) as n from a group by page) as t where n > 1
select t.p from (select page as p from a) as t
select id, row_number() over (partition by page order by at) as place from a
select id, sum(id) over w as s, count(*) over w as n from a window w as (partition by page order by id)
select id, explode(items) as item from b
select id, item from b lateral view explode(items) t as item
select id, item from b lateral view outer explode(items) t as item where item > 1
select * except (id, page) from a
select id as k, a.* except (at) from a
select a.* except (page), c.since from a join c on a.id = c.id
select * from b lateral view explode(items) t as item
select t.* from b lateral view explode(items) t as item
select id, item.at as x from a lateral view explode(array(struct(at))) t as item
select s.at, s.id from (select struct(at, id) as s from a) as t
select id, current_timestamp() as t, monotonically_increasing_id() as i from a
select id from a where id in (select id from c)
select id from a where id not in (select id from c)
select id from a where exists (select 1 from c where c.id = a.id)
from a select id
select 1 as one
select id as k, page from a order by a.at, k
select id from a order by all
select page, count(*) as n from a group by 1 order by 2 desc
select id from a union all select id from b order by id desc
select a.id from a join c using (id) order by c.name, c.id
select count(*) as n from a having n > 1
select page, sum(id) as s from a group by page having s > 1 and page is not null order by max(at) desc
select upper(page) as page, count(*) as n from a group by upper(page) having upper(page) = 'X'
select date(at) as at, count(*) as n from a group by date(at) having max(at) > timestamp '2024-01-01'
select window, count(*) as n from a group by window(at, '1 minute') having window.start > now() order by window.end
select id in from a
select map('k', id) as m from a union all select map('k', id) from b
select id from a where (id, at) in (select id, since from c)
select id from a where struct(id, at) in (select id, since from c)
select count(distinct *) as n from a
""".strip().splitlines()

# Of these something is unknown, and nothing is wrong: a type, or all columns.
PARTLY = """
select id, pos, item, at from b lateral view posexplode(items) t as pos, item
select id, k, v from a lateral view explode(map('a', at)) t as k, v
select explode(items) from b
select a.id, b.id as other from a join b using (id)
select page, grouping(page) as g, count(*) as n from a group by cube (page)
select * from (select at, page, id from a) pivot (sum(id) for page in ('x', 'y'))
select * from (select at, page, id from a) pivot (sum(id) as s, max(id) as m for page in ('x', 'y'))
select * from a natural join c
select id, lead(at) over (order by at) as later from a qualify later is not null
select inline(array(struct(at, id))) from a
select s.* from (select struct(at, id) as s from a) as t
select t.s.*, 1 as one from (select struct(at, id) as s from a) as t
table a
""".strip().splitlines()


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("select nothing.* from a", "there is nothing called `nothing` whose columns `nothing.*` could be", "The tables here are `a`."),
        ("select count(*) from a group by ied", "there is no column `ied`", "Did you mean `id`?"),
        ("select id from a group by 7", "`group by 7` means the item 7 of the `select`, which has 1", None),
        ("select at from a group by at having ied > 1", "there is no column `ied`", "Did you mean `id`?"),
        ("select at from a group by at having id > 1", "`id` is neither grouped by nor within an aggregate function", None),
        ("select count(*) as n from a having count(*)", "`count(*)` is a bigint, and a condition must be true or false", None),
        ("select id from a order by ied", "there is no column `ied`", "Did you mean `id`?"),
        ("select id as k from a order by 2", "`order by 2` means the column 2 of the result, which has 1", None),
        ("select id from a order by 'x' || array(1)", "`||` can't be applied to a string and an array<int>", None),
        ("select id = = 1 from a", "the query can't be read: `=` and `=` stand side by side", ""),
        ("select id + from a", "the query can't be read: nothing stands between `+` and `from`", ""),
        ("select case when from a", "there is no column `case`", None),
        ("select id, at at at from a", "the query can't be read: `at`, `at` and `at` stand side by side", ""),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_query(query: str, message: str, hint: str | None) -> None:
    (finding,) = made(Sql, "a", query=query).check(ROWS)
    assert finding.message == message
    assert finding.hint == hint or hint is None
    assert finding.option == "query"


@pytest.mark.parametrize(
    "query",
    [
        "select id as k from a order by k, a.at, id + 1, 1",
        "select id as at, at as id from a order by at",
        "select date(at) as at from a group by date(at) having max(at) > now() and at > date '2024-01-01'",
        "select max(id) as m from a having m > 1 order by count(*)",
        "select id from a order by all",
        "select id, count(*) over (partition by id) as n from a order by n, row_number() over (order by id)",
        "select s.* from (select struct(at, id) as s from a) order by at",
        "select *, id + 1 as id from a order by id",
        "select id, max(id) as id from a group by id having id > 1 order by id",
        "select a.*, id * 2, * except (id) from a",
        "select id from a limit 3 offset 2",
        "select id i from a union select id t from a",
        "select id from a tablesample (10 percent) t where id >>> 1 > 0",
        "from a |> where id > 1",
    ],
)
def test_what_is_right_with_a_query(query: str) -> None:
    assert list(made(Sql, "a", query=query).check(ROWS)) == []


def test_a_star_without_a_column_that_is_not_there_is_unknown() -> None:
    assert made(Sql, "a", query="select * except (id, gone) from a").infer(ROWS).columns is None


def test_the_fields_that_a_star_stands_for_are_not_taken_for_none() -> None:
    query = "select s.* from (select struct(at, id) as s from a) as t"
    assert made(Sql, "a", query=query).infer(ROWS).columns is None


_KINDS = {
    "Aggregate": "aggregate",
    "Distinct": "aggregate",
    "Except": "except",
    "Generate": "generate",
    "GlobalLimit": "limit",
    "Intersect": "intersect",
    "Join": "join",
    "Offset": "offset",
    "Sort": "sort",
    "Union": "union",
    "Window": "analytic_window",
}


def analysed_kinds(df: DataFrame, capsys: pytest.CaptureFixture[str]) -> Counter[str]:
    """The operators that Spark's analyser makes of a query, but for those that restrict no stream."""
    capsys.readouterr()
    df.explain("extended")
    plan = capsys.readouterr().out.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized")[0]
    names = re.findall(r"^[ :+~-]*(\w+)", plan, re.MULTILINE)
    return Counter(_KINDS[name] for name in names if name in _KINDS)


def frames(spark: SparkSession) -> list[DataFrame]:
    """Two streams with a watermark each and a static relation."""
    columns = ("value as id", "timestamp as at", "timestamp as paid", "array(value) as items")
    return [
        events(spark, "a", delay="10 minutes"),
        events(spark, "b", *columns, delay="5 minutes"),
        spark.sql("select 1L as id, 'x' as name, timestamp '2024-01-01' as since"),
    ]


@pytest.mark.spark
@pytest.mark.parametrize("query", [*KNOWN, *PARTLY])
def test_queries_are_what_sparks_analyser_makes_of_them(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], query: str
) -> None:
    inputs = frames(spark)
    facts = [facts_of(df) for df in inputs]
    sql = made(Sql, "a", "b", "c", query=query)
    result: Any = sql.apply(*inputs)
    found = sql.infer(*facts)

    assert_agrees(found, result)
    assert [finding for finding in sql.check(*facts) if finding.severity == "error"] == []
    known = Counter(kind for kind in kinds(found) if kind in _KINDS.values())
    if "unknown" not in kinds(found):
        assert known == analysed_kinds(result, capsys)
    if query in KNOWN:
        assert found.streaming == result.isStreaming
        assert found.columns is not None
        assert [c for c in found.columns if c.type is None or c.delay == UNKNOWN_DELAY] == []


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("select pge from a", "GB210"),
        ("select id from a where nme = 1", "GB210"),
        ("select id from a join b on a.id = b.id", "GB211"),
        ("select id from a where count(*) > 1", "GB212"),
        ("select id from a where row_number() over (order by id) > 1", "GB212"),
        ("select a.id from a join b on count(*) > 1", "GB212"),
        ("select a.id from a where id", "GB213"),
        ("select id from a union all select items from b", "GB213"),
        ("select id, at from a union all select id from b", "GB213"),
        ("select id from a where id in (select id from b)", "GB309"),
        ("select id, (select max(id) from b) as m from a", "GB309"),
        ("select id from c where exists (select 1 from a)", "GB309"),
        ("select nothing.* from a", "GB210"),
        ("select count(*) from a group by nme", "GB210"),
        ("select count(*) from a group by explode(array(1))", "GB212"),
        ("select id from a group by 7", "GB212"),
        ("select page, count(*) from a group by page having nme > 1", "GB210"),
        ("select page, count(*) from a group by page having id > 1", "GB212"),
        ("select page, max(at) as m from a group by page having m > 1", "GB213"),
        ("select id from a having count(*) > 1", "GB212"),
        ("select id from a order by nme", "GB210"),
        ("select id as k, page as k from a order by k", "GB211"),
        ("select id from a sort by nme", "GB210"),
        ("select id from a distribute by nme", "GB210"),
        ("select id from a order by count(*)", "GB212"),
        ("select page from a group by page order by id", "GB212"),
        ("select id from a union select id from b order by at", "GB210"),
        ("select id from a order by 2", "GB212"),
        ("select * from a order by 0", "GB212"),
        ("select case when from a", "GB210"),
        ("select id + from a", "GB214"),
        ("select id = = 1, a.* from a", "GB214"),
        ("select *, cast(id as) from a", "GB214"),
        ("select a.*, cast(id as nothing) from a", "GB214"),
        ("select distinct map('k', id) as m from a", "GB213"),
        ("select map('k', id) as m from a union select map('k', id) from b", "GB213"),
        (
            "select struct(map('k', id) as x) as m from a except all select struct(map('k', id) as x) from c",
            "GB213",
        ),
        ("select array(map('k', id)) as m from a intersect select array(map('k', id)) from c", "GB213"),
        ("select distinct parse_json(page) as m from a", "GB213"),
        ("select * id from a", "GB205"),
        ("select (id from a", "GB214"),
        ("select id from a where id in (select id, name from c)", "GB213"),
        ("select id from a where (id, at) in (select id from c)", "GB213"),
        ("select at at at from a", "GB214"),
        ("with x as (select id as k from a) select k k k from x", "GB214"),
    ],
)
def test_what_is_wrong_with_a_query_is_wrong_for_spark(spark: SparkSession, query: str, code: str) -> None:
    from pyspark.errors import AnalysisException

    inputs = frames(spark)
    sql = made(Sql, "a", "b", "c", query=query)
    errors = [finding for finding in sql.check(*map(facts_of, inputs)) if finding.severity == "error"]
    assert [finding.code for finding in errors] == [code]
    with pytest.raises((AnalysisException, GemError)):
        sql.apply(*inputs)


@pytest.fixture
def views(spark: SparkSession) -> Iterator[set[str]]:
    """The session's temporary views before and, unchanged, after the test."""

    def names() -> set[str]:
        return {row.tableName for row in spark.sql("show tables").collect()}

    before = names()
    yield before
    assert names() == before


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select o.id, page from orders o join pages using (id)", [(1, "a")]),
        ("SELECT id FROM ORDERS -- the last line is a comment", [(1,), (2,)]),
        ("select count(*) from `orders`;", [(2,)]),
        ("with big as (select * from orders where id > 1) select id from big", [(2,)]),
        ("with orders as (select id + 1 as id from orders) select id from orders", [(2,), (3,)]),
        ("select id from orders where id in (select max(id) from pages)", []),
        ("select regexp_extract('a{2}', '.{1}', 0), '{pages}' from orders limit 1", [("a", "{pages}")]),
        ("from orders |> aggregate sum(id) as n", [(3,)]),
        ("(select id from orders union all select id from pages) order by id desc", [(3,), (2,), (1,), (1,)]),
        ("values (1), (2)", [(1,), (2,)]),
        ("/* first */ select /*+ broadcast(pages) */ pages.id from orders join pages on true where page = 'c' limit 1", [(3,)]),
    ],
)  # fmt: skip
def test_sql(spark: SparkSession, views: set[str], query: str, rows: list[tuple[Any, ...]]) -> None:
    orders = spark.sql("select * from values (1), (2) as t(id)")
    pages = spark.sql("select * from values (1, 'a'), (3, 'c') as t(id, page)")
    result: Any = made(Sql, "orders", "pages", query=query).apply(orders, pages)
    assert [tuple(row) for row in result.collect()] == rows


@pytest.mark.spark
def test_names_belong_to_one_node(spark: SparkSession) -> None:
    """The session's own view of a name survives, and two nodes with inputs of one name don't meet."""
    spark.sql("select 'mine' as x").createOrReplaceTempView("gem_sql_orders")
    spark.sql("select 'theirs' as y").createOrReplaceTempView("gem_sql_other")
    try:
        sql = made(Sql, "gem_sql_orders", query="select * from gem_sql_orders, gem_sql_other")
        first: Any = sql.apply(spark.sql("select 1 as id"))
        second: Any = sql.apply(spark.sql("select 2 as id"))
        assert [tuple(row) for row in first.collect()] == [(1, "theirs")]
        assert [tuple(row) for row in second.collect()] == [(2, "theirs")]
        assert [row.x for row in spark.table("gem_sql_orders").collect()] == ["mine"]
    finally:
        spark.catalog.dropTempView("gem_sql_orders")
        spark.catalog.dropTempView("gem_sql_other")


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "create table gem_sql_written as select * from orders",
        "insert into gem_sql_target select * from orders",
        "with x as (select * from orders) insert into gem_sql_target select * from x",
        "select 1) insert into gem_sql_target (select 1",
        "select 1; drop view gem_sql_target",
        "drop view gem_sql_target",
        "create or replace temporary view gem_sql_target as select 5 as id",
        "set gem.sql = 1",
        "begin select 1; end",
    ],
)
def test_nothing_but_a_query_runs(spark: SparkSession, views: set[str], query: str) -> None:
    """Whatever `check` overlooks: in the brackets of a common table expression only a query fits."""
    spark.sql("select 1 as id").createOrReplaceTempView("gem_sql_target")
    try:
        with pytest.raises(GemError) as caught:
            made(Sql, "orders", query=query).apply(spark.range(1))
        assert (caught.value.code, caught.value.option) == ("GB205", "query")
        assert [row.id for row in spark.table("gem_sql_target").collect()] == [1]
        assert not spark.catalog.tableExists("gem_sql_written")
        assert spark.conf.get("gem.sql", None) is None
    finally:
        spark.catalog.dropTempView("gem_sql_target")


@pytest.mark.spark
def test_what_spark_cannot_read_is_said_with_its_place(spark: SparkSession) -> None:
    with pytest.raises(GemError) as caught:
        made(Sql, "orders", query="select id\nform orders o o").apply(spark.range(1))
    assert caught.value.message == ("Syntax error at or near 'orders' (line 2 of the query, column 6)")
    assert "gem_bundle" not in str(caught.value)
    assert "WITH" not in str(caught.value)


@pytest.mark.spark
def test_windows_in_sql_over_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, tmp_path / "in", "id long, at timestamp")
    timely = made(Watermark, column="at", delay="1 minute").apply(folder.stream("clicks"))
    query = "select window.start, count(*) as n from clicks group by window(at, '5 minutes')"
    counts: Any = made(Sql, "clicks", query=query).apply(timely)  # type: ignore[arg-type]
    folder.add({"id": 1, "at": "2024-01-01 10:00"}, {"id": 2, "at": "2024-01-01 10:04"})
    assert drain(counts, tmp_path / "checkpoint") == []
    folder.add({"id": 3, "at": "2024-01-01 11:00"})
    assert [(f"{row.start:%H:%M}", row.n) for row in drain(counts, tmp_path / "checkpoint")] == [("10:00", 2)]


@pytest.mark.spark
@pytest.mark.parametrize("readers", [1, 2])
def test_a_stream_joined_with_itself_in_sql(spark: SparkSession, tmp_path: Path, readers: int) -> None:
    """One input that the query names twice, or two inputs from readers of their own; over a restart."""
    folder = Folder(spark, tmp_path / "in", "id long, boss long")
    if readers == 1:
        names = {"staff": folder.stream("staff")}
        query = "select a.id, b.id as boss from staff a join staff b on a.boss = b.id"
    else:
        names = {"a": folder.stream("staff"), "b": folder.stream("staff__pairs_b")}
        query = "select a.id, b.id as boss from a join b on a.boss = b.id"
    pairs: Any = made(Sql, *names, query=query).apply(*names.values())
    folder.add({"id": 1}, {"id": 2, "boss": 1}, {"id": 3, "boss": 4})
    assert [tuple(row) for row in drain(pairs, tmp_path / "checkpoint")] == [(2, 1)]
    folder.add({"id": 4, "boss": 1})
    assert sorted(map(tuple, drain(pairs, tmp_path / "checkpoint"))) == [(3, 4), (4, 1)]


@pytest.mark.spark
def test_the_type_of_a_column_of_a_union(spark: SparkSession) -> None:
    """Of each pair of types: what plans take for it is what Spark makes of it."""
    names = ["string", "binary", "boolean", "tinyint", "bigint", "decimal(10,2)", "float", "double", "date",
             "timestamp", "timestamp_ntz"]  # fmt: skip
    told = {
        pair: kind for pair in itertools.combinations(names, 2) if (kind := united_type(*pair)) is not None
    }
    columns = [
        [f"cast(null as {pair[side]}) as c{number}" for number, pair in enumerate(told)] for side in (0, 1)
    ]
    found = spark.sql(" union ".join(f"select {', '.join(of_side)}" for of_side in columns)).schema
    assert {pair: column.dataType.simpleString() for pair, column in zip(told, found, strict=True)} == told
    assert told["string", "bigint"] == "bigint"
    assert len(told) == 23
