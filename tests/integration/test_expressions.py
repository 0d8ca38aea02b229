"""Expressions as they are understood without Spark, compared with Spark's own analyser.

What is known must be what Spark says, and what Spark takes must never be called wrong; in both of its modes.
"""

from __future__ import annotations

import re
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gem_bundle.expressions import UNKNOWN_DELAY, analyse, check_expression, join_condition, project
from gem_bundle.expressions.calls import REFUSED, REFUSED_BY_SYNTAX, wrong_count
from gem_bundle.expressions.functions import AGGREGATES, ANALYTIC, FUNCTIONS, GENERATORS
from gem_bundle.expressions.kinds import family
from gem_bundle.expressions.readable import unreadable
from gem_bundle.facts import Column, Facts
from gem_bundle.schema import type_of
from gem_bundle.types import split_top_level
from tests.gems.transforms import DELAY, events
from tests.samples import drawn, examples, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField

functions_and_types = some_of("functions and types as Spark has them", 3)

pytestmark = pytest.mark.spark

# Columns of every family of types, by short names.
TYPED = {
    "b": "true", "y": "cast(1 as tinyint)", "h": "cast(1 as smallint)", "i": "1", "l": "1L", "f": "1F", "d": "1D",
    "n": "cast(1.5 as decimal(10,2))", "n38": "cast(1.5 as decimal(38,10))", "s": "'a'", "x": "X'1f'",
    "dt": "date'2020-01-01'", "ts": "timestamp'2020-01-01 00:00:00'", "nt": "timestamp_ntz'2020-01-01 00:00:00'",
    "iv": "interval '1' hour", "idd": "interval '1' day", "ids": "interval '1 00:00:00' day to second",
    "ym": "interval '1' month", "a": "array(1)", "sa": "array('a')", "m": "map('a', 1)",
    "st": "struct(1 as a, 'x' as b)", "ast": "array(struct(1 as a))", "z": "null", "v": "parse_json('1')",
    "ci": "make_interval(1)",
}  # fmt: skip

PAIRS = [
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} % {1}", "{0} div {1}", "{0} = {1}", "{0} < {1}",
    "{0} and {1}", "{0} || {1}", "{0} & {1}", "coalesce({0}, {1})", "{0} in ({1})", "array({0}, {1})",
    "case when b then {0} else {1} end",
]  # fmt: skip
# And with one operand: functions of their own syntax among them.
SINGLE = [
    "- {0}", "+ {0}", "~ {0}", "not {0}", "negative({0})", "positive({0})", "{0} is true", "{0} is not false",
    "{0} like 'a'", "{0} ilike 'a'", "{0} rlike 'a'", "{0} not like 'a'", "{0} like any ('a', 'b')", "{0}[0]",
    "{0}['a']", "substring({0}, 1)", "substr({0}, 1, 2)", "trim({0})", "trim(both from {0})", "trim('a' from {0})",
    "extract(hour from {0})", "position('a' in {0})", "position({0} in s)", "overlay({0} placing 'x' from 1)",
    "window({0}, '1 minute')", "session_window({0}, '1 minute')", "window_time({0})",
    "row_number() over (order by {0})", "row_number() over (partition by {0} order by i)",
]  # fmt: skip
PAIRED = ["b", "i", "l", "f", "n", "s", "x", "dt", "ts", "nt", "iv", "idd", "ym", "a", "m", "st", "z"]

EXPRESSIONS = [
    "I", "`i`", "(i)", "tt.i", "st.a", "st.A", "tt.st.b", "m['a']", "m.a", "a[0]", "a[0] + 1", "ast.a", "ast[0].a",
    "struct(st.a, i as n).n", "named_struct('q', ts).q", "struct(i, 'x', l + 1)", "array(st)[0].b", "map('k', st)['k'].a",
    "1", "2147483648", "9223372036854775808", "-2147483648", "1.5", "0.05", "1e3", "1.5D", "1L", "1.5bd", "'it''s'", "true",
    "null", "date '2020-01-01'", "timestamp '2020-01-01'", "interval 1 hour", "interval '1' day",
    "interval 1 hour 30 minutes", "interval '2 days 3 hours'", "interval '1 02' day to hour", "interval 1 year 2 months",
    "interval '1' week", "interval -5 minutes", "current_date", "current_timestamp", "user", "session_user",
    "cast(ts as date)", "cast(i as decimal(5, 1))", "cast(null as array<struct<a: int, B: map<string, double>>>)",
    "cast(s as varchar(3))", "i::string", "try_cast(s as int)", "date(ts)", "string(i)", "cast(1 as interval day)",
    "ts + interval 1 hour", "ts - interval 1 day", "dt + interval 1 hour", "dt + interval 2 days", "dt + 3", "ts - ts",
    "dt - dt", "interval 1 hour + interval 30 minutes", "iv * 2", "iv / 2", "- iv", "- i", "~ i", "not b", "!b", "+ i",
    "i is null", "i is not null", "i between 1 and 2", "i not in (1, 2)", "s like 'a%'", "s not like any ('a', 'b')",
    "s rlike 'x'", "s ilike 'x'", "i is distinct from l", "b is true", "i <=> null", "b and not b or i > 1",
    "case i when 1 then 'a' when 2 then 'b' end", "if(b, i, l)", "nvl2(i, s, s)", "nullif(i, 0)", "greatest(i, l, d)",
    "coalesce(null, n, i)", "upper(s)", "concat(s, i)", "concat(a, a)", "concat_ws(',', s, s)", "substring(s, 1, 2)",
    "substr(s, 1, 2)", "trim(s)", "trim(both 'x' from s)", "position('a' in s)", "replace(s, 'a', 'b')", "split(s, ',')[0]",
    "length(s)", "lower(cast(i as string))", "to_date(s)", "to_timestamp(s, 'yyyy')", "date_trunc('hour', ts)",
    "date_format(ts, 'yyyy')", "year(ts)", "hour(ts)", "second(ts)", "extract(hour from ts)", "extract(second from ts)",
    "datediff(ts, dt)", "datediff(day, ts, ts)", "dateadd(day, 1, ts)", "timestampadd(hour, 1, ts)", "date_add(dt, 1)",
    "timestampadd(hour, 1, nt)", "timestampadd(day, 1, dt)", "dateadd(day, 1, nt)", "date_add(day, 1, dt)", "timestampadd(day, 1, s)",
    "add_months(dt, 1)", "unix_timestamp(ts)", "from_unixtime(l)", "timestamp_seconds(l)", "window(ts, '1 minute')",
    "window(ts, '1 minute').start", "window(s, '1 minute')", "window(nt, '1 minute')", "session_window(ts, '1 minute')",
    "abs(i)", "round(d, 2)", "round(n, 1)", "floor(d)", "floor(n)", "ceil(d)", "sqrt(i)", "power(i, 2)", "mod(l, 2)",
    "hash(i)", "md5(s)", "uuid()", "rand()", "monotonically_increasing_id()", "size(a)", "element_at(a, 1)",
    "element_at(m, 'a')", "array_contains(a, 1)", "sort_array(a)", "map_keys(m)", "map_values(m)", "map_entries(m)",
    "transform(a, x -> x + 1)", "transform(a, (x, j) -> x + j)", "filter(ast, x -> x.a > 1)", "exists(a, x -> x > i)",
    "aggregate(a, 0, (total, x) -> total + x)", "zip_with(a, a, (p, q) -> p + q)", "map_filter(m, (k, w) -> w > 1)",
    "flatten(array(a))", "array_join(split(s, ','), '-')", "array_join(a, ',')", "array_repeat(i, 2)", "sequence(1, 5)", "to_json(st)", "from_json(s, 'a int, b array<long>').b",
    "get_json_object(s, '$.a')", "explode(a)", "explode(a) as e", "posexplode(a) as (p, c)", "inline(ast)", "stack(2, 1, 2)",
    "count(*)", "count(i, l)", "count(distinct i)", "sum(i)", "sum(f)", "sum(n)", "sum(n38)", "sum(distinct tt.i)", "avg(i)",
    "avg(n)", "min(ts)", "max(st)", "max(st).a", "first(i)", "first(i, true)", "first(i) ignore nulls", "last(s)",
    "collect_list(st)", "collect_set(i)", "approx_count_distinct(i)", "stddev(i)", "median(i)", "median(n)",
    "percentile_approx(i, 0.5)", "percentile_approx(i, array(0.5, 0.9))", "percentile_cont(0.5) within group (order by i)",
    "listagg(distinct s, ',') within group (order by s)", "max_by(i, l)", "max_by(i, l, 2)", "count_if(b)", "bool_and(b)",
    "any(b)", "sum(i) filter (where b)", "sum(i) + 1", "sum(sum(i)) over ()", "row_number() over (order by i)",
    "sum(i) over (partition by l order by ts rows between 1 preceding and current row)", "lag(i) over (order by i)",
    "sum(b)", "avg(ts)", "sum(s)", "max(m)", "upper(a)", "year(a)", "size(i)", "explode(i)", "at + 1", "ts + 1", "ts > 5",
    "ts = 5", "i and b", "not i", "case when i then 1 end", "if(i, 1, 2)", "coalesce(ts, 0)", "array(1, ts)", "a || i",
    "sum(max(i))", "sum(rank() over (order by i))", "sum(sum(i) over ()) over ()", "rank()", "upper(s) over ()", "count(distinct i) over ()", "explode(a) + 1", "idd", "st.c", "i.a", "st.a.x",
    "nothing.i", "tt.nothing", "`tt.i`", "`no such`", "upper(nothing)", "nothing is null", "current_user", "localtimestamp",
    "current_database", "(select max(i) from values (1) as q(i))", "exists(select 1)", "i in (select 1)", "i >>> 1",
    "X '1f'", "f(i)", "i % = 2", "i +", "f(i,)", "i )", "(i", "i == 1", "i <> 1", "i != 1", "- - i", "i -- comment",
    "i /* comment */ + 1", "a b", "i as n", "i n", "st.*", "*", "count(i, *)",
    "count(distinct *)",
    "struct(ts).ts", "struct(ts).TS", "struct((i))", "struct((i)).i", "(st).a", "(st).A", "array(st)", "array(st)[0]", "array(st)[0].A", "array(st).a",
    "m['a'] + 1", "m[s]", "a[i]", "a[0] + i", "upper(sa[0])", "map('k', st)['k']", "first(a)[0]", "st['a']", "a[-1]",
    "i in", "i not in", "(i in)", "in", "position('a' in s)", "case", "case when", "case + 1", "upper(case)", "i case",
    "substring()", "substring(s)", "substr(s, 1, 2, 3)", "trim()", "position()", "overlay()", "extract()",
    "i i i", "`i` i `i`", "i as n m", "f(i i i)",
]  # fmt: skip


@pytest.fixture(scope="module", params=["true", "false"], ids=["ansi", "not_ansi"])
def typed(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[DataFrame]:
    """A relation with a column of every type, in one of Spark's modes."""
    before = spark.conf.get("spark.sql.ansi.enabled") or "true"
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield spark.range(1).selectExpr(*[f"{body} as {name}" for name, body in TYPED.items()]).alias("tt")
    spark.conf.set("spark.sql.ansi.enabled", before)


def marks_in(kind: DataType, way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The event time that Spark has marked inside a type."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        for field in kind.fields:
            below = (*way, field.name.lower())
            if DELAY in field.metadata:
                yield below, f"{field.metadata[DELAY]} milliseconds"
            yield from marks_in(field.dataType, below)
    elif isinstance(kind, ArrayType):
        yield from marks_in(kind.elementType, (*way, "0"))
    elif isinstance(kind, MapType):
        yield from marks_in(kind.keyType, (*way, "0"))
        yield from marks_in(kind.valueType, (*way, "1"))


def column_of(field: StructField) -> Column:
    """All that Spark says of a column."""
    text = field.dataType.simpleString()
    delay = field.metadata.get(DELAY)
    return Column(
        field.name,
        str(type_of(text) or text),
        None if delay is None else f"{delay} milliseconds",
        "spark.sessionWindow" in field.metadata,
        marks=tuple(marks_in(field.dataType)),
    )


def facts_of(df: DataFrame, qualifier: str | None = None) -> Facts:
    """What is known of a relation after all of its columns were looked up in Spark."""
    columns = tuple(column_of(field) for field in df.schema.fields)
    facts = Facts(streaming=df.isStreaming, columns=columns)
    return facts if qualifier is None else facts.called(qualifier)


def disagreements(expression: str, df: DataFrame, facts: Facts) -> list[str]:
    """Where an expression is taken for something else than Spark takes it for."""
    from pyspark.errors import PySparkException

    # That Spark takes `user` for who runs the query is a warning: it accepts it.
    asked = check_expression(expression, facts, "o", aggregates="allowed")
    found = [finding for finding in asked if finding.code != "GB219"]
    analysis = analyse(expression, facts.columns)
    try:
        fields = df.selectExpr(expression).schema.fields
    except PySparkException as error:
        name_is_wrong = error.getCondition() in NAME_ERRORS
        known = analysis.parsed and not {finding.code for finding in found} & {"GB210", "GB211"}
        return [f"missed: {error}"] if name_is_wrong and known and expression not in MISSED else []
    if found:
        return [f"false alarm: {found}"]
    if len(fields) != 1 or analysis.generator:
        return []
    (real,), made = map(column_of, fields), analysis.column
    return [
        f"{what}: {ours} is {theirs}"
        for what, ours, theirs, unknown in (
            ("name", made.name, real.name, ""),
            ("type", made.type, real.type, None),
            ("marks", made.marks if made.type else None, real.marks, None),
            ("delay", made.delay, real.delay, UNKNOWN_DELAY),
            ("session", made.session, real.session, False),
        )
        if ours not in {theirs, unknown}
    ]


NAME_ERRORS = {
    "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "UNRESOLVED_FIELD.WITH_SUGGESTION",
    "FIELD_NOT_FOUND",
    "INVALID_EXTRACT_BASE_FIELD_TYPE",
    "AMBIGUOUS_REFERENCE",
}
# Whether another input's name is before a column that exists isn't known in general.
MISSED = {"nothing.i"}


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """Let PySpark not write each of some thousand expected errors out in full, and not prepare to do it.

    Preparing takes a third of the time of these tests: each part of a message is asked of the JVM, even
    where the logger is off.
    """
    from pyspark.errors import PySparkException

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PySparkException, "_log_exception", lambda _: None)
        yield


# Lists


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(typed: DataFrame, expression: str) -> None:
    assert disagreements(expression, typed, facts_of(typed)) == []


@functions_and_types
@pytest.mark.parametrize("expression", PAIRS)
def test_operators_over_all_types(typed: DataFrame, expression: str) -> None:
    facts = facts_of(typed)
    pairs = drawn([expression.format(*pair) for pair in product(PAIRED, PAIRED)], 20, about=expression)
    wrong = {pair: found for pair in pairs if (found := disagreements(pair, typed, facts))}
    assert wrong == {}


@functions_and_types
@pytest.mark.sample(20)
@pytest.mark.parametrize("expression", SINGLE)
def test_operators_over_one_type(typed: DataFrame, expression: str) -> None:
    facts = facts_of(typed)
    wrong = {}
    for name in TYPED:
        text = expression.format(name)
        wrong |= {text: found} if (found := disagreements(text, typed, facts)) else {}
    assert wrong == {}


@pytest.mark.parametrize("sign", sorted(REFUSED_BY_SYNTAX))
def test_syntax_refuses_types(typed: DataFrame, sign: str) -> None:
    """What can't stand in it is found."""
    written = {"-": "- {0}", "~": "~ {0}", "extract": "extract(hour from {0})"}
    written |= {"position": "position('a' in {0})", "overlay": "overlay({0} placing 'x' from 1)"}
    written |= {name: f"{{0}} {name} 'a'" for name in ("like", "ilike", "rlike")}
    written |= {"substring": "substring({0}, 1)", "trim": "trim({0})"}
    facts = facts_of(typed)
    one_of_each = {family(type_of(column.type or "")): column.name for column in facts.columns or ()}
    for kind in REFUSED_BY_SYNTAX[sign]:
        text = written[sign].format(one_of_each[kind])
        assert not _is_taken(typed, text)
        assert [found.code for found in check_expression(text, facts, "o")] == ["GB213"], text


@functions_and_types
def test_three_names_side_by_side(spark: SparkSession) -> None:
    """No word of Spark's own makes an expression of three names, but those that are known for it."""
    from pyspark.errors import ParseException, PySparkException

    keywords = [row[0].lower() for row in spark.sql("select keyword from sql_keywords()").collect()]
    words = [word for word in keywords if unreadable(f"p {word} q") is not None]
    assert len(words) > 0.7 * len(keywords) > 200
    forms = ["{0} p q", "f(p {0} q)", "p q {0}", "cast(p as {0} p q)", "x over ({0} p q)"]
    row, taken = spark.range(1), []
    for text in drawn([form.format(word) for form in forms for word in words], 300):
        try:
            row.selectExpr(text)
        except ParseException:
            continue
        except PySparkException:  # it was read, and then nobody knew the names
            pass
        taken.append(text)
    assert taken == []


def test_the_lists_are_about_something(typed: DataFrame) -> None:
    """Most of what Spark takes has a type here, and most of what it refuses is found."""
    from pyspark.errors import PySparkException

    facts = facts_of(typed)
    taken, refused, typed_here, found_here = 0, 0, 0, 0
    for expression in EXPRESSIONS:
        try:
            typed.selectExpr(expression).schema  # noqa: B018 (this is what makes Spark analyse it)
        except PySparkException:
            refused += 1
            found_here += bool(list(check_expression(expression, facts, "o", aggregates="allowed")))
        else:
            taken += 1
            typed_here += analyse(expression, facts.columns).column.type is not None
    assert typed_here > 0.8 * taken
    assert found_here > 0.6 * refused


# What stands behind the first argument of functions that take several.
BEHIND = {
    **dict.fromkeys(
        ("array_append", "array_contains", "array_position", "array_prepend", "array_remove"), "1"
    ),
    **dict.fromkeys(("element_at", "repeat", "mod", "pmod", "power", "substr", "substring"), "1"),
    **dict.fromkeys(("add_months", "date_add", "date_sub"), "1"),
    **dict.fromkeys(("datediff", "months_between"), "date'2020-01-01'"),
    **dict.fromkeys(("map_filter", "transform_keys", "transform_values"), "(p, q) -> true"),
    **dict.fromkeys(("exists", "filter", "forall", "transform"), "x -> true"),
    **dict.fromkeys(("from_utc_timestamp", "to_utc_timestamp"), "'UTC'"),
    **dict.fromkeys(
        ("contains", "endswith", "instr", "regexp_extract", "replace", "split", "startswith"), "'a'"
    ),
    "aggregate": "0, (p, q) -> p",
    "array_join": "','",
    "concat_ws": "'a'",
    "date_format": "'yyyy'",
    "from_json": "'a int'",
    "get_json_object": "'$.a'",
    "if": "1, 2",
    "lpad": "2",
    "next_day": "'MO'",
    "percentile_approx": "0.5",
    "regexp_replace": "'a', 'b'",
    "rpad": "2",
    "slice": "1, 2",
    "trunc": "'MM'",
    "zip_with": "array(1), (p, q) -> p",
}


@functions_and_types
@pytest.mark.sample(60)
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_functions_refuse_types(typed: DataFrame, name: str) -> None:
    """What a function is said not to take first, it doesn't take; and something else it takes."""
    from pyspark.errors import PySparkException

    behind = f", {BEHIND[name]}" if name in BEHIND else ""
    one_of_each = {
        family(type_of(column.type or "")): column.name for column in facts_of(typed).columns or ()
    }
    for kind in REFUSED[name]:
        with pytest.raises(PySparkException, match="DATATYPE_MISMATCH"):
            typed.selectExpr(f"{name}({one_of_each[kind]}{behind})").schema  # noqa: B018 (for Spark's analysis)
    others = [
        n
        for n in ("i", "s", "b", "ts", "a", "sa", "m", "st", "ast")
        if n not in map(one_of_each.get, REFUSED[name])
    ]
    assert any(_is_taken(typed, f"{name}({other}{behind})") for other in others)


def _is_taken(typed: DataFrame, expression: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        typed.selectExpr(expression).schema  # noqa: B018 (Spark analyses it for that)
    except PySparkException:
        return False
    return True


CASTS = ("boolean", "int", "double", "decimal(10,2)", "string", "binary", "date", "timestamp", "interval hour",
         "interval month", "array<int>", "map<string,int>", "struct<a:int>")  # fmt: skip


@functions_and_types
@pytest.mark.parametrize("target", CASTS)
def test_casts(typed: DataFrame, target: str) -> None:
    facts = facts_of(typed)
    wrong = {}
    for name in drawn((*PAIRED, "z"), 8, about=target):
        for cast in ("cast", "try_cast"):
            text = f"{cast}({name} as {target})"
            wrong |= {text: found} if (found := disagreements(text, typed, facts)) else {}
    assert wrong == {}


def test_the_numbers_of_arguments_are_spark_s(spark: SparkSession) -> None:
    """Around the numbers that are known, Spark takes none that is said to be wrong."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    row = spark.range(1)
    wrong = []
    for name in drawn(sorted(FUNCTIONS), 150):
        allowed = [wrong_count(name, count) is None for count in range(10)]
        # Where nothing changes from one number to the next, nothing new is asked.
        edges = {n for pair in pairwise(range(10)) for n in pair if allowed[pair[0]] != allowed[pair[1]]}
        for count in sorted(n for n in edges if not allowed[n]):
            try:
                row.selectExpr(f"{name}({', '.join(['null'] * count)})").schema  # noqa: B018 (the analyser)
                taken = True
            except Py4JJavaError:  # it was taken, and null is no schema
                taken = True
            except PySparkException as error:
                taken = not (error.getCondition() or "").startswith("WRONG_NUM_ARGS")
            if taken:
                wrong.append((name, count))
    assert wrong == []


# Spark's own examples


def documented(spark: SparkSession) -> list[str]:
    """The queries in the documentation of Spark's functions."""
    from pyspark.errors import PySparkException

    found = []
    for row in spark.sql("show functions").collect():
        name = row[0].rpartition(".")[2]
        try:
            rows = spark.sql(f"describe function extended `{name}`").collect()
        except PySparkException:  # operators that are no functions
            continue
        text = "\n".join(row[0] for row in rows)
        found += re.findall(r"> (SELECT .*?);\s*\n", text, re.DOTALL)
    return list(dict.fromkeys(found))


def pieces(query: str) -> tuple[list[str], str | None]:
    """The expressions of a query, and what stands behind its ``from``; none where it is more than that."""
    body = query.removeprefix("SELECT ")
    values = re.search(r"\sFROM\s+VALUES\s", body)
    rest = body[values.start() :] if values else ""
    if re.search(r"\b(group|order) by\b|\bwhere\b|\blateral\b", rest, re.IGNORECASE):
        return [], None
    listed = body[: values.start()] if values else body
    outside, before = listed, ""
    while outside != before:
        outside, before = re.sub(r"\([^()]*\)", "", outside), outside
    if re.search(r"\sfrom\s", outside, re.IGNORECASE):
        return [], None
    return split_top_level(listed, brackets="()[]"), rest or None


@functions_and_types
def test_spark_s_own_examples_raise_no_false_alarm(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    wrong: dict[str, list[str]] = {}
    unread: list[str] = []
    seen = 0
    queries = documented(spark)
    assert len(queries) > 600
    for query in drawn(queries, 250):
        expressions, values = pieces(query)
        try:
            df = spark.range(1).select() if values is None else spark.sql(f"select * {values}")
        except PySparkException:  # the rows themselves are made by a subquery
            continue
        facts = facts_of(df)
        for expression in map(str.strip, expressions):
            seen += 1
            found = disagreements(expression, df, facts)
            wrong |= {expression: found} if found else {}
            unread += [] if analyse(expression, facts.columns).parsed else [expression]
    assert wrong == {}
    assert seen > 200
    # Spark's own parser takes these, sqlglot doesn't; nothing is said of them.
    assert {re.sub(r"'.*'", "'…'", expression) for expression in unread} <= {"4 >>> 1", "bitmap_count(X '…')"}


# Spark's own lists of functions


def test_the_lists_of_functions_are_spark_s(spark: SparkSession) -> None:
    jvm: Any = spark._jvm  # Spark tells groups of functions nowhere else
    registry = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    names = registry.listFunction().iterator()
    groups: dict[str, set[str]] = {}
    while names.hasNext():
        name = names.next()
        group = registry.lookupFunction(name).get().getGroup()
        if name.funcName().isidentifier():
            groups.setdefault(group, set()).add(name.funcName())
    assert groups["agg_funcs"] == AGGREGATES
    assert groups["window_funcs"] == ANALYTIC
    # `json_tuple` is among the functions for JSON.
    assert groups["generator_funcs"] | {"json_tuple"} == GENERATORS
    assert set().union(*groups.values()) == FUNCTIONS


# Drawn at random

_NAMES = [
    "i",
    "l",
    "d",
    "n",
    "s",
    "ts",
    "dt",
    "b",
    "a",
    "st",
    "st.a",
    "tt.i",
    "a[0]",
    "m['a']",
    "nothing",
    "st.c",
    "I",
]
_LEAVES = [*_NAMES, "1", "2.5", "'x'", "null", "true", "interval 1 hour", "current_date", "date '2020-01-01'"]


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "%", "=", "<", ">=", "<>", "and", "or", "||", "<=>"])
    functions = st.sampled_from(
        [
            "upper",
            "abs",
            "max",
            "sum",
            "count",
            "to_date",
            "year",
            "coalesce",
            "array",
            "struct",
            "isnull",
            "first",
        ]
    )
    pairs = st.sampled_from(
        [
            "coalesce",
            "nullif",
            "greatest",
            "concat",
            "array",
            "date_add",
            "struct",
            "if(b, {}, {})",
            "{} in ({})",
        ]
    )
    return st.one_of(
        st.builds("({} {} {})".format, inner, operators, inner),
        st.builds("{}({})".format, functions, inner),
        st.builds(lambda f, p, q: f.format(p, q) if "{" in f else f"{f}({p}, {q})", pairs, inner, inner),
        st.builds("case when {} then {} else {} end".format, inner, inner, inner),
        st.builds(
            "cast({} as {})".format, inner, st.sampled_from(["int", "string", "timestamp", "decimal(8, 2)"])
        ),
        st.builds("({}) is not null".format, inner),
        st.builds("not {}".format, inner),
        st.builds("transform(array({}), x -> coalesce(x, {}))[0]".format, inner, inner),
        st.builds("struct({} as p, {} as q).{}".format, inner, inner, st.sampled_from("pqr")),
        st.builds("sum({}) over (partition by {})".format, inner, inner),
    )


@given(expression=st.recursive(st.sampled_from(_LEAVES), _nested, max_leaves=6))
@settings(max_examples=examples(60, 2000), deadline=None)
def test_any_expression(typed: DataFrame, expression: str) -> None:
    assert disagreements(expression, typed, facts_of(typed)) == []


# Event time

MARKED = [
    "at", "(at)", "`AT`", "events.at", "at as t", "s", "w", "sw", "several", "parts", "deep", "plain", "s.at", "(s).at",
    "deep.q", "deep.q.z", "w.start", "w.end", "sw.start", "parts.at", "parts[0]", "parts[0].at", "several[0]", "by_name['k'].at",
    "by_name.k.at", "struct(at)", "struct(at as t).t", "struct(s)", "struct(s).s.at", "struct(s.at).at",
    "named_struct('a', at).a", "array(at)[0]", "array(struct(at))[0].at", "array(struct(at)).at", "map('a', struct(at)).a.at",
    "cast(at as timestamp)", "timestamp(at)", "at::timestamp", "at + interval 0 seconds", "date_trunc('hour', at)",
    "coalesce(at)", "coalesce(s).at", "coalesce(s, plain).seen", "if(true, at, at)", "if(true, s, s).at",
    "case when true then at end", "nullif(at, seen)", "greatest(at, seen)", "element_at(parts, 1).at", "first(at)", "max(at)",
    "max(s).at", "first(s).at", "collect_list(s)[0].at", "max(at) over (order by id)", "lag(s) over (order by id).at",
    "window(at, '1 minute')", "window((at), '1 minute')", "window(at, '1 minute', '30 seconds')", "window(s.at, '1 minute')",
    "window(struct(at).at, '1 minute')", "window(at + interval 1 hour, '1 minute')", "window(cast(at as timestamp), '1 minute')",
    "window(w, '1 hour')", "window(sw, '1 hour')", "window(w.end, '1 hour')", "window(window_time(w), '1 hour')",
    "window(seen, '1 minute')", "session_window(at, '1 minute')", "session_window(s.at, '1 minute')",
    "session_window(w, '1 minute')", "session_window(at, cast(id as string))", "window_time(w)", "window_time(sw)",
    "window_time(window(at, '1 minute'))", "struct(w).w", "struct(window(at, '1 minute') as w).w", "struct(w as w).w.start",
    "transform(several, x -> x)[0]", "transform(parts, x -> x)[0].at", "filter(parts, x -> true)[0].at",
    "zip_with(parts, parts, (p, q) -> p)[0].at", "concat(parts, parts)[0].at", "to_timestamp(string(at))", "explode(parts)",
    "inline(parts)", "from_json('{}', 'at timestamp').at", "null", "current_timestamp()", "seen", "upper(page)", "+ id",
]  # fmt: skip


@pytest.fixture(scope="module")
def marked(spark: SparkSession) -> DataFrame:
    """A stream with event time, also inside structs, arrays and maps."""
    structs = [
        "struct(at, id) as s", "struct(seen) as plain", "array(at) as several", "array(struct(at)) as parts",
        "map('k', struct(at)) as by_name", "named_struct('q', struct(at as z)) as deep",
    ]  # fmt: skip
    df = events(spark, delay="10 minutes").selectExpr("*", *structs)
    df = df.selectExpr("*", "window(at, '1 minute') as w")
    return df.selectExpr("*", "session_window(at, '1 minute') as sw").alias("events")


@pytest.mark.parametrize("expression", MARKED)
def test_event_time(marked: DataFrame, expression: str) -> None:
    assert disagreements(expression, marked, facts_of(marked)) == []


@pytest.mark.parametrize(
    "expressions",
    [
        ["at as t", "t", "t as u", "u as v", "v as x"],
        ["struct(at) as t", "t.at", "t.at as u", "t as v", "v.at as y"],
        ["at as t", "t as u", "struct(u) as k", "k.u as x"],
        ["id as at", "at", "at as x"],
        ["*", "id + 1 as next", "events.at as again"],
        ["upper(page)", "count(*) over ()", "id % 2"],
        ["window(at, '1 minute')", "id"],
        ["explode(several)", "id"],
        ["explode(parts) as part"],
        ["inline(array(struct(at, id)))"],
        ["posexplode(several) as (p, c)"],
        {"t": "at", "u": "t", "v": "u"},
    ],
    ids=str,
)
def test_projections(marked: DataFrame, expressions: list[str] | dict[str, str]) -> None:
    from pyspark.sql.functions import expr

    if isinstance(expressions, dict):
        real = marked.select(*[expr(body).alias(name) for name, body in expressions.items()])
    else:
        real = marked.selectExpr(*expressions)
    made = project(expressions, facts_of(marked))
    if made is None:
        return
    truth = facts_of(real).columns or ()
    assert [(column.name, column.delay) for column in made] == [
        (column.name, column.delay) for column in truth
    ]
    for ours, theirs in zip(made, truth, strict=True):
        assert ours.type in {theirs.type, None}


# Joins

CONDITIONS = [
    "l.id = r.id", "l.id = r.id and l.at = r.at", "l.at = r.at", "l.at = r.seen", "l.seen = r.seen", "l.at = r.day",
    "l.at = r.local", "l.at = r.text", "l.w = r.w", "l.w.start = r.w.start", "l.s.at = r.s.at", "cast(l.at as timestamp) = r.at",
    "l.id = r.n", "l.id <=> r.id", "l.at <=> r.at", "l.id <=> 1", "l.id = 1", "l.id + 1 = r.id", "l.id = r.id + l.id",
    "l.id - r.id = 0", "(l.id = r.id)", "not (l.id <> r.id)", "l.id = r.id or l.at = r.at", "l.id in (r.id)",
    "coalesce(l.id, 0) = r.id and r.id > 3", "l.s = r.s", "struct(l.at) = struct(r.at)", "abs(l.id) = r.id and l.id is not null",
    "l.at > r.at", "l.at >= r.at", "l.at < r.at", "l.at <= r.at", "r.at <= l.at + interval 1 hour",
    "r.at <= l.at + interval '1' hour", "r.at <= l.at + interval '1 hour'", "r.at <= l.at + interval 1 hour 30 minutes",
    "r.at <= l.at + interval '1 hour 30 minutes'", "r.at <= l.at + interval '1 02:00:00' day to second",
    "r.at <= l.at + interval 1 month", "r.at <= l.at + interval '1' month", "r.at <= l.at + interval 1 week",
    "r.at <= l.at - interval 1 hour", "r.at <= interval 1 hour + l.at", "r.at - interval 1 hour <= l.at",
    "r.at + interval 1 hour >= l.at - interval 5 minutes", "r.at between l.at and l.at + interval 1 hour",
    "l.at between r.at - interval 1 hour and r.at", "l.at not between r.at and r.at + interval 1 hour",
    "r.at >= l.at and r.at <= l.at + interval 1 hour", "r.at > l.at and r.at < l.at + interval 1 hour and l.id = r.id",
    "not (r.at > l.at)", "r.at - l.at <= interval 1 hour", "r.at - l.at < interval '1' hour", "l.seen > r.at",
    "l.at > r.seen", "l.seen > r.seen", "l.at > r.at + (l.seen - l.at)", "l.at > timestamp '2020-01-01 00:00:00'",
    "l.at > date '2020-01-01'", "l.at > '2020-01-01'", "l.at > current_timestamp()", "cast(l.at as long) > cast(r.at as long)",
    "cast(l.at as bigint) + 5 > cast(r.at as double)", "cast(l.at as date) > cast(r.at as date)", "bigint(l.at) > bigint(r.at)",
    "double(l.at) > double(r.at) - 3.5", "timestamp(l.at) > timestamp(r.at)", "unix_timestamp(l.at) > unix_timestamp(r.at)",
    "l.day > r.at", "l.at > r.day", "l.local > r.at + interval 1 hour", "l.day + interval 1 day > r.at",
    "l.day + interval 1 hour > r.at", "l.at + interval 1 day > r.day", "l.text > r.at",
    "r.at <= l.at + make_interval(0, 0, 0, 0, 1)", "r.at <= l.at + interval '1' hour * 2",
    "r.at <= l.at + (interval '1' hour + interval '5' minute)", "r.at <= l.at + (interval '1' hour + interval '5' hour)",
    "r.at <= l.at + interval '1' hour + interval '5' minute", "r.at <= l.at - (- interval '1' hour)",
    "r.at <= l.at + interval '-1' hour", "r.at <= timestampadd(hour, 1, l.at)", "r.at <= coalesce(l.at, l.seen)",
    "r.w > l.w", "r.w.end >= l.at", "r.s.at <= l.at", "l.at > r.at and l.at > r.seen", "l.at > r.at or l.id = 1",
    "(l.at > r.at)", "true", "l.at > l.seen", "l.at < l.at + interval 1 hour", "l.id > r.id", "l.id < r.id + 5", "l.n < r.id",
    "case when l.at > r.at then true end", "l.at > r.at is true", "l.at >= r.at - interval 500 milliseconds",
    "cast(l.at as decimal(20,6)) > r.id", "r.day - l.day > interval 1 day", "r.day + 3 > l.day",
    "r.at - interval 1 hour between l.at and l.at + interval 3 hours", "l.at between timestamp '2020-01-01' and r.at",
    "exists(select 1)", "`l`.`at` > `r`.`AT` - INTERVAL 1 HOUR", "L.at > R.at -- comment",
]  # fmt: skip


@pytest.fixture(scope="module", params=["both", "left", "right", "none"])
def sides(spark: SparkSession, request: pytest.FixtureRequest) -> tuple[DataFrame, DataFrame]:
    """Two streams, of which both, one or none have a watermark."""

    def side(name: str, *, watermark: bool) -> DataFrame:
        columns = [
            "timestamp as at", "value as id", "timestamp as seen", "cast(timestamp as date) as day",
            "cast(timestamp as timestamp_ntz) as local", "cast(value as int) as n", "cast(timestamp as string) as text",
        ]  # fmt: skip
        df = events(spark, name, *columns, delay="10 minutes" if watermark else "")
        return (
            df.selectExpr("*", "window(at, '1 minute') as w").selectExpr("*", "struct(at) as s").alias(name)
        )

    marked = request.param
    return side("l", watermark=marked in {"both", "left"}), side("r", watermark=marked in {"both", "right"})


def spark_s_view(spark: SparkSession, condition: str, left: DataFrame, right: DataFrame) -> tuple[bool, ...]:
    """What Spark's own helpers make of a condition."""
    from pyspark.sql.functions import expr

    jvm: Any = spark._jvm  # there is no other way to ask
    catalyst = jvm.org.apache.spark.sql.catalyst
    join = left.join(right, expr(condition))._jdf.queryExecution().analyzed()
    sides = join.left().outputSet(), join.right().outputSet()
    keys = getattr(catalyst.planning, "ExtractEquiJoinKeys$")
    # What is equal it looks for when it has put the condition in other words, all else before.
    planned = spark._jsparkSession.sessionState().optimizer().execute(join)
    while planned.nodeName() == "Project":
        planned = planned.child()
    watermark = jvm.scala.Some(10**13)

    def bounded(side: Any, other: Any) -> bool:
        helper = catalyst.analysis.StreamingJoinHelper
        return bool(helper.getStateValueWatermark(side, other, join.condition(), watermark).isDefined())

    return (
        bool(getattr(keys, "MODULE$").unapply(planned).isDefined()),
        bool(catalyst.analysis.StreamingJoinHelper.isWatermarkInJoinKeys(join)),
        bounded(*sides),
        bounded(*sides[::-1]),
    )


@functions_and_types
@pytest.mark.parametrize("condition", CONDITIONS)
def test_join_conditions(spark: SparkSession, sides: tuple[DataFrame, DataFrame], condition: str) -> None:
    left, right = sides
    known = join_condition(condition, facts_of(left), facts_of(right), ("l", "r"))
    found = (known.equality, known.event_time_key, known.left_bounded, known.right_bounded)
    assert found == spark_s_view(spark, condition, left, right)


@pytest.mark.parametrize("sides", ["both"], indirect=True)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_join_conditions_over_less_known_columns(
    spark: SparkSession, sides: tuple[DataFrame, DataFrame], condition: str
) -> None:
    left, right = sides
    truth = spark_s_view(spark, condition, left, right)
    known, untyped, nothing = facts_of(left), facts_of(right), Facts(streaming=True)
    untyped = untyped.with_columns(Column(c.name, delay=UNKNOWN_DELAY) for c in untyped.columns or ())
    for one, other in ((known, untyped), (known, nothing), (nothing, nothing)):
        found = join_condition(condition, one, other, ("l", "r"))
        answers = (found.equality, found.event_time_key, found.left_bounded, found.right_bounded)
        for answer, real in zip(answers, truth, strict=True):
            assert answer in {real, None}
