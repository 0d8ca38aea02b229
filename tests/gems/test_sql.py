"""The transform `sql`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, GemError
from gem_event_time.watermark import Watermark
from gem_sql.query import Sql
from gem_sql.text import blanked, statement
from tests.gems.transforms import Folder, drain, findings, kinds, made, stream_of, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

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


def test_two_inputs_of_one_name_are_an_error() -> None:
    query = "select * from orders"
    (finding,) = findings(Sql, ROWS, ROWS, names=("orders", "Orders"), query=query)
    assert finding.severity == "error"
    assert finding.message == "the inputs `orders` and `Orders` are one table: Spark ignores case"


def test_what_is_known_of_a_query_that_can_be_followed() -> None:
    sql = made(Sql, "orders", "pages", query="select * from orders join pages using (id)")
    facts = sql.infer(ROWS, PAGES)
    assert (facts.streaming, kinds(facts)) == (True, ["join"])
    assert [column.name for column in facts.columns or ()] == ["id", "at", "page"]
    assert sql.infer(PAGES, PAGES).streaming is False
    static = made(Sql, "orders", "pages", query="select * from pages")
    assert static.infer(ROWS, PAGES).streaming is False


def test_only_streaming_is_known_of_others() -> None:
    query = "select page, count(*) from orders join pages using (id) group by rollup (page)"
    facts = made(Sql, "orders", "pages", query=query).infer(ROWS, PAGES)
    assert (facts.streaming, facts.columns, kinds(facts)) == (True, None, ["unknown"])
    static = made(Sql, "orders", "pages", query="select * from pages, session_table")
    assert static.infer(ROWS, PAGES).streaming is None
    assert static.infer(Facts(), PAGES).streaming is None


@pytest.fixture
def views(spark: SparkSession) -> Iterator[set[str]]:
    """The session's temporary views before and, unchanged, after the test."""

    def names() -> set[str]:
        return {table.name for table in spark.catalog.listTables()}

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
