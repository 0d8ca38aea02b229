"""What transforms infer, compared with Spark's analyser: never anything else, and unknown only where it must be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gem_bundle import GemError
from gem_columns.bulk_columns import BulkColumns
from gem_columns.clean import Clean
from gem_columns.drop import Drop
from gem_columns.dynamic_select import DynamicSelect
from gem_columns.flatten import Flatten
from gem_columns.rename import Rename
from gem_columns.select import Select
from gem_columns.unpivot import Unpivot
from gem_columns.window_function import WindowFunction
from gem_columns.with_columns import WithColumns
from gem_combine.join import Join
from gem_combine.union import Union
from gem_event_time.aggregate import Aggregate
from gem_event_time.deduplicate import Deduplicate
from gem_event_time.watermark import Watermark
from gem_filter.filter import Filter
from gem_filter.limit import Limit
from gem_filter.sample import Sample
from gem_json.from_json import FromJson
from gem_json.to_json import ToJson
from gem_order.repartition import Repartition
from gem_order.sort import Sort
from gem_sql.query import Sql
from tests.gems.transforms import assert_agrees, events, facts_of, made, static_of
from tests.samples import examples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle import Facts, Transform

pytestmark = pytest.mark.spark

ONE_INPUT: list[tuple[type[Transform[Any]], dict[str, Any]]] = [
    (Select, {"columns": ["id", "AT", "`page`", "(amount)"]}),
    (Select, {"columns": ["*", "at as t", "upper(page) as up", "cast(at as timestamp) as u"]}),
    (Select, {"columns": {"t": "at", "page": "page", "u": "at + interval 1 minute"}}),
    (Select, {"columns": {"t": "at", "again": "t", "w": "window(at, '1 minute')"}}),
    (Select, {"columns": {"w": "session_window(seen, '1 minute')"}}),
    (Select, {"columns": {"s": "struct(at, id)", "x": "named_struct('q', at).q"}}),
    (Select, {"columns": {"a": "array(struct(at))[0].at", "b": "coalesce(at, at)"}}),
    (Select, {"columns": {"a": "(amount) * (amount)", "b": "case when id > 1 then at end"}}),
    (Select, {"columns": {"a": "map('a', at)['a']", "b": "null", "c": "true", "d": "current_date"}}),
    (Select, {"columns": {"ev": "events.at", "n": "events.id"}}),
    (Select, {"columns": ["events.at", "events.page as p"]}),
    (Select, {"columns": ["upper(page)", "at t", "id % 2", "count(*) over () as n"]}),
    (Select, {"columns": ["id", "explode(array(struct(at, id))) as e"]}),
    (Select, {"columns": ["id", "posexplode(array(at)) as (p, c)"]}),
    (Select, {"columns": ["posexplode(split(page, ','))", "at"]}),
    (Select, {"columns": ["explode(map(page, id)) as (k, `the value`)"]}),
    (Select, {"columns": ["explode_outer(map(page, amount))", "id"]}),
    (Select, {"columns": ["stack(2, 'x', id, 'y', id + 1) as (n, v)"]}),
    (Select, {"columns": ["stack(2, 'x', id, null)", "id"]}),
    (Select, {"columns": ["inline(array(struct(id, page as p)))"]}),
    (Select, {"columns": ["json_tuple(page, 'a', 'b') as (a, b)", "at"]}),
    (Select, {"columns": ["window(at, '1 minute')", "sum(id) over (partition by page) total"]}),
    (WithColumns, {"columns": {"AT": "at", "id": "id + 1", "new": "at", "more": "new"}}),
    (WithColumns, {"columns": {"at": "seen", "seen": "at"}}),
    (WithColumns, {"columns": {"at": "to_timestamp(page)", "a.b": "page"}}),
    (Rename, {"columns": {"at": "ts", "ID": "key"}}),
    (Rename, {"columns": {"at": "seen", "seen": "at"}}),
    (Rename, {"columns": {"at": "seen", "seen": "before", "id": "ID"}}),
    (Drop, {"columns": ["AT", "amount"]}),
    (Drop, {"columns": "id, page"}),
    (WindowFunction, {"columns": {"AMOUNT": "sum(amount)", "n": "rank()"}, "order_by": "id desc nulls last"}),
    (WindowFunction, {"columns": {"p": "lag(at)", "f": "first(page) ignore nulls"}, "order_by": ["at"]}),
    (Clean, {"white_space": "collapse", "case": "title", "remove": ["control"], "nulls": {"text": "", "number": 1}}),
    (BulkColumns, {"types": "timestamp", "name": "{upper}_{name}"}),
    (BulkColumns, {"matching": "^(a)", "expression": "struct({column}) as x", "name": "{1}_{name}"}),
    (BulkColumns, {"columns": "at, seen", "expression": "({column})", "keep": True, "name": "{name}2"}),
    (DynamicSelect, {"matching": "^(at|id|se)", "except_types": ["long"]}),
    (Unpivot, {"ids": ["AT", "page"], "values": ["id", "amount"], "value_column_name": "page2"}),
    (Unpivot, {"values": ["seen", "AT"]}),
    (Unpivot, {"ids": ["at", "seen", "amount", "page"], "include_nulls": False}),
    (Flatten, {}),
    (Sample, {"fraction": 0.5, "by": ["page", "AT"]}),
    (Filter, {"condition": "amount > 1 and page is not null"}),
    (Limit, {"rows": 5}),
    (Sort, {"by": ["amount desc nulls last", "id"]}),
    (Repartition, {"partitions": 2, "columns": ["page"]}),
    (Watermark, {"column": "seen", "delay": "5 minutes"}),
    (Watermark, {"column": "AT", "delay": "1 hour 30 minutes"}),
    (Watermark, {"column": "`at`", "delay": "1 day"}),
    (Deduplicate, {}),
    (Deduplicate, {"columns": ["ID", "at"]}),
    (ToJson, {}),
    (ToJson, {"columns": ["id", "page"], "column": "AT", "keep": True}),
    (ToJson, {"columns": {"n": "id"}, "keep": True}),
    (FromJson, {"column": "page", "schema": "a int, b array<long>, at timestamp"}),
    (FromJson, {"column": "page", "schema": {"a b": "struct<c: int>", "page": "string"}, "keep": True}),
    (Aggregate, {"aggregates": {"n": "count(*)"}}),
    (Aggregate, {"group_by": ["page", "at"], "aggregates": {"n": "count(*)", "t": "at"}}),
    (Aggregate, {"group_by": ["id % 2", "date(at)"], "aggregates": {"n": "count(*)", "s": "max(struct(at))"}}),
    (Aggregate, {"group_by": {"day": "date(at)", "t": "at"}, "aggregates": {"latest": "max(at)"}}),
    (
        Aggregate,
        {
            "window": {"column": "at", "duration": "1 minute"},
            "group_by": ["page"],
            "aggregates": {"n": "count(*)", "m": "n + 1", "w": "window", "end": "window.end"},
            "having": "n > 1 and window.start is not null",
        },
    ),
    (
        Aggregate,
        {
            "window": {
                "column": "seen",
                "duration": "1 hour",
                "slide": "15 minutes",
                "start_offset": "1 minute",
            },
            "aggregates": {"n": "count(*)"},
        },
    ),
    (
        Aggregate,
        {
            "window": {"column": "at", "duration": "1 hour"},
            "group_by": ["upper(page) as p"],
            "pivot": {"column": "id % 3", "values": [0, 1]},
            "aggregates": {"n": "count( * )", "m": "max(at)"},
            "having": "`0_n` > 1",
        },
    ),
    (Aggregate, {"pivot": {"column": "page", "values": ["a b"]}, "aggregates": {"n": "sum(amount)"}}),
    (Aggregate, {"window": {"column": "(at)", "duration": "1 hour"}, "aggregates": {"n": "count(*)"}}),
    (Aggregate, {"window": {"column": "at + interval 1 day", "duration": "1 hour"}, "aggregates": {"n": "count(*)"}}),
    (Aggregate, {"window": {"column": "events.at", "duration": "1 hour"}, "aggregates": {"n": "count(*)"}}),
    (Aggregate, {"session": {"column": "AT", "gap": "5 minutes"}, "aggregates": {"n": "count(*)"}}),
    (
        Aggregate,
        {
            "session": {"column": "at", "gap": "case when id > 1 then '1 minute' else '2 minutes' end"},
            "group_by": ["page"],
            "aggregates": {"n": "count(*)"},
        },
    ),
]  # fmt: skip

UNKNOWN: list[tuple[type[Transform[Any]], dict[str, Any]]] = [
    (Select, {"columns": ["power(id, 2)"]}),
    (Select, {"columns": ["events.*"]}),
    (Select, {"columns": ["* except (id)"]}),
    (Aggregate, {"group_by": ["at + interval 1 day"], "aggregates": {"n": "count(*)"}}),
]


def _id(sample: Any) -> str:
    return sample.__name__ if isinstance(sample, type) else str(sample)[:60]


@pytest.mark.parametrize(("gem", "options"), ONE_INPUT, ids=_id)
@pytest.mark.parametrize("kind", ["marked", "unmarked", "static"])
def test_one_input(
    spark: SparkSession, kind: str, gem: type[Transform[Any]], options: dict[str, Any]
) -> None:
    df = events(spark, delay="10 minutes" if kind == "marked" else "")
    if kind == "static":
        df = static_of(spark, df)
    df = df.alias("events")
    transform = made(gem, "events", **options)
    inferred = transform.infer(facts_of(df))
    assert inferred.columns is not None
    assert_agrees(inferred, transform.apply(df))  # type: ignore[arg-type]
    assert list(transform.check(facts_of(df))) == []


@pytest.mark.parametrize(("gem", "options"), UNKNOWN, ids=_id)
def test_names_that_only_spark_gives_are_unknown(
    spark: SparkSession, gem: type[Transform[Any]], options: dict[str, Any]
) -> None:
    df = events(spark, delay="10 minutes").alias("events")
    transform = made(gem, "events", **options)
    transform.apply(df)
    assert transform.infer(facts_of(df)).columns is None
    assert list(transform.check(facts_of(df))) == []


@pytest.mark.parametrize("star", ["s.*", "s.t.*", "`S`.*", "w.*"])
@pytest.mark.parametrize("delay", ["", "10 minutes"])
def test_the_fields_of_a_struct(spark: SparkSession, star: str, delay: str) -> None:
    steps = [
        made(
            Select,
            columns=[
                "*",
                "struct(at, struct(id, seen) as t, seen as `x y`) as s",
                "window(at, '1 hour') as w",
            ],
        ),
        made(Select, columns=["id as n", star]),
    ]
    df = events(spark, delay=delay)
    facts = facts_of(df).unqualified()
    for step in steps:
        facts, df = step.infer(facts), step.apply(df)  # type: ignore[arg-type,assignment]
    assert facts.columns is not None
    assert_agrees(facts, df)


@pytest.mark.parametrize("column", ["window", "window_time(window)", "at"])
def test_windows_over_windows_keep_the_watermark(spark: SparkSession, column: str) -> None:
    minutes = made(
        Aggregate,
        window={"column": "at", "duration": "1 minute"},
        group_by=["at"],
        aggregates={"n": "count(*)"},
    )
    hours = made(Aggregate, window={"column": column, "duration": "1 hour"}, aggregates={"n": "sum(n)"})
    df = events(spark, delay="10 minutes")
    inferred = hours.infer(minutes.infer(facts_of(df)))
    result = hours.apply(minutes.apply(df))  # type: ignore[arg-type]
    assert_agrees(inferred, result)  # type: ignore[arg-type]
    assert inferred.column("window").delay is not None  # type: ignore[union-attr]
    assert [operator.kind for operator in inferred.all_operators() if operator.stateful] == ["aggregate"] * 2


HOWS = [
    "inner", "left", "right", "full", "left_semi", "left_anti", "left_outer", "rightouter",
    "FULL OUTER", "outer", "semi", "anti",
]  # fmt: skip


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(
    "pairs",
    [
        {"on": ["id"]},
        {"on": ["AT", "ID"]},
        {"condition": "l.id = r.ID and l.at = r.at"},
    ],
    ids=str,
)
@pytest.mark.parametrize("right", ["stream", "static", "unmarked"])
def test_join(spark: SparkSession, how: str, pairs: dict[str, Any], right: str) -> None:
    left_df = events(spark, "l", "value as id", "timestamp as at", "value as v", delay="10 minutes")
    columns = ("timestamp as at", "cast(value as int) as ID", "value as paid")
    right_df = events(spark, "r", *columns, delay="5 minutes" if right == "stream" else "")
    if right == "static":
        right_df = static_of(spark, right_df)
    join = made(Join, "l", "r", how=how, **pairs)
    inputs = facts_of(left_df), facts_of(right_df)
    inferred = join.infer(*inputs)
    assert inferred.columns is not None
    (operator,) = inferred.operators
    assert (operator.kind, operator.stateful) == ("join", right != "static")
    assert_agrees(inferred, join.apply(left_df, right_df))  # type: ignore[arg-type]
    assert list(join.check(*inputs)) == []


def test_cross_join(spark: SparkSession) -> None:
    left, right = spark.range(1), spark.range(1)
    join = made(Join, "a", "b", how="cross")
    inferred = join.infer(facts_of(left), facts_of(right))
    assert_agrees(inferred, join.apply(left, right))  # type: ignore[arg-type]
    assert [column.name for column in inferred.columns or ()] == ["id", "id"]


@pytest.mark.parametrize("options", [{}, {"allow_missing_columns": True}, {"by_name": False}], ids=str)
@pytest.mark.parametrize("marked", [(True, True), (True, False), (False, True)], ids=str)
def test_union(spark: SparkSession, options: dict[str, Any], marked: tuple[bool, bool]) -> None:
    one = events(spark, "a", "timestamp as at", "value as id", delay="10 minutes" * marked[0])
    columns = ["timestamp as AT", "cast(value as int) as ID"]
    if options.get("allow_missing_columns"):
        columns = [*columns, "timestamp as extra", "1.5D as y"]
    two = events(spark, "b", *reversed(columns[:2]), *columns[2:], delay="5 minutes" * marked[1])
    if options.get("by_name") is False:
        two = two.select("AT", "ID")
    three = events(spark, "c", *columns)
    union = made(Union, "a", "b", "c", **options)
    inputs = facts_of(one), facts_of(two), facts_of(three)
    inferred = union.infer(*inputs)
    assert inferred.columns is not None
    assert_agrees(inferred, union.apply(one, two, three))  # type: ignore[arg-type]
    assert list(union.check(*inputs)) == []


@pytest.mark.parametrize(
    "query", ["select * from a", "select 1 as x from a, b", "values (1)", "select b.* from b"]
)
def test_sql(spark: SparkSession, query: str) -> None:
    stream, static = events(spark), spark.range(1)
    sql = made(Sql, "a", "b", query=query)
    inferred = sql.infer(facts_of(stream), facts_of(static))
    result = sql.apply(stream, static)
    if inferred.streaming is not None:
        assert_agrees(inferred, result)  # type: ignore[arg-type]
    assert sql.infer(facts_of(static), facts_of(static)).streaming is False


_NAMES = ["at", "AT", "id", "page", "seen", "s", "w", "t", "x.y"]
_EXPRESSIONS = [
    "at", "id", "t", "s", "w", "(at)", "`at`", "`x.y`", "At", "1", "null", "current_date", "s.at", "s.id",
    "w.end", "at + interval 1 minute", "cast(at as timestamp)", "struct(at, id)", "struct(seen as at)",
    "named_struct('a', at).a", "array(s)[0].at", "window(at, '1 minute')", "window(s.at, '1 minute')",
    "window_time(w)", "window(w, '1 hour')", "coalesce(at, seen)", "id * s.id", "upper(page)",
    "events.at", "case when id > 1 then at end",
]  # fmt: skip

_names = st.sampled_from(_NAMES)
_expressions = st.sampled_from(_EXPRESSIONS)
_mappings = st.dictionaries(_names, _expressions, min_size=1, max_size=3)
_lists = st.lists(
    st.one_of(
        st.sampled_from(["*", "s.*", "w.*"]),
        _expressions,
        st.builds("{} as {}".format, _expressions, st.sampled_from(["t", "w", "s", "at", "`x.y`"])),
    ),
    min_size=1,
    max_size=4,
)
_steps = st.one_of(
    st.tuples(st.just(Select), st.fixed_dictionaries({"columns": st.one_of(_mappings, _lists)})),
    st.tuples(st.just(WithColumns), st.fixed_dictionaries({"columns": _mappings})),
    st.tuples(
        st.just(Rename),
        st.fixed_dictionaries({"columns": st.dictionaries(_names, _names, min_size=1, max_size=2)}),
    ),
    st.tuples(
        st.just(Drop), st.fixed_dictionaries({"columns": st.lists(_names, min_size=1, max_size=2)})
    ),
    st.tuples(
        st.just(Watermark),
        st.fixed_dictionaries(
            {"column": _names, "delay": st.sampled_from(["5 minutes", "1 hour"])}
        ),
    ),
    st.tuples(st.just(Deduplicate), st.fixed_dictionaries({"columns": st.lists(_names, min_size=1, max_size=2)})),
    st.tuples(st.just(Filter), st.fixed_dictionaries({"condition": st.sampled_from(["true", "id > 1"])})),
    st.tuples(
        st.just(Aggregate),
        st.fixed_dictionaries(
            {
                "window": st.fixed_dictionaries(
                    {"column": st.sampled_from(_EXPRESSIONS), "duration": st.just("1 minute")}
                ),
                "group_by": st.one_of(
                    st.lists(_names, max_size=2), st.dictionaries(_names, _expressions, max_size=2)
                ),
                "aggregates": st.dictionaries(
                    st.sampled_from(["n", "t", "at"]),
                    st.sampled_from(["count(*)", "max(at)", "at", "window", "t", "first(s).at"]),
                    min_size=1,
                    max_size=2,
                ),
            }
        ),
    ),
)  # fmt: skip


@settings(max_examples=examples(30, 600), deadline=None)
@given(steps=st.lists(_steps, min_size=1, max_size=5), marked=st.booleans(), static=st.booleans())
def test_chains_agree_with_spark_and_raise_no_false_alarm(
    spark: SparkSession,
    steps: list[tuple[type[Transform[Any]], dict[str, Any]]],
    marked: bool,
    static: bool,
) -> None:
    from pyspark.errors import PySparkException

    df: DataFrame = events(spark, delay="10 minutes" if marked else "")
    if static:
        df = static_of(spark, df)
    df = df.selectExpr("*", "struct(at, id) as s", "window(at, '1 minute') as w").alias("events")
    facts: Facts = replace(facts_of(df), qualifiers=frozenset({"events"}))
    for gem, options in steps:
        try:
            transform = made(gem, "events", **options)
        except ValueError:
            continue
        alarms = [f for f in transform.check(facts) if f.severity == "error"]
        inferred = transform.infer(facts)
        try:
            result: Any = transform.apply(df)
        except (PySparkException, GemError):
            continue
        assert alarms == []
        assert_agrees(inferred, result)
        df, facts = result, inferred
