"""What is taken as DDL without a JVM is what Spark takes, and what it refuses is said at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gem_bundle.check.checker import check_file
from gem_bundle.ddl import SchemaError, read_columns, read_hints, read_type

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

TYPES = """
    boolean byte tinyint short smallint int integer bigint long float real double date timestamp timestamp_ntz
    timestamp_ltz string character char varchar binary decimal dec numeric void null interval variant geometry
    geography time array map struct object INT bigintt strng text json uuid number int8 bool datetime row any
    unsigned double|precision int|unsigned int|4 `int` 'int' char(3) varchar(0) varchar(-1) char(3,4) string(3)
    decimal(10) decimal(10,|2) decimal(10,2,1) decimal(0,0) decimal(38,38) decimal(39,2) decimal(10,11)
    decimal(10,-2) decimal() numeric(5) decimal(010,2) decimal(1e1) decimal(99999999999) int(3) date(3)
    timestamp(3) time(0) time(7) time(3,3) float(3) variant(1) interval(3) geometry(4326) geometry(ANY)
    geography(4326) geometry(srid) array<int> array<> array<foo> array<int array<int>> array<int,string>
    array<array<map<string,|array<int>>>> map<int,string> map<string> map<string,> map<int|int> struct<>
    struct<|> struct<a|int> struct<a:int> struct<a> struct<a|int,> struct<a|int|b|int> struct<a:|int|not|null>
    struct<a|int|comment|'x'> struct<a|int|default|5> struct<1a:int> struct<1|int> struct<a.b|int> struct<x::int>
    struct<`a|b`|int,|b:struct<>> list<int> array(int) interval|day interval|week interval|year|to|month
    interval|day|to|second interval|second|to|day interval|year|to|year interval|month|to|day
    string|collate|UTF8_LCASE string|collate int|collate|UTF8_LCASE char(3)|collate|UNICODE_CI
    string|collate|system.builtin.UTF8_LCASE timestamp|without|time|zone timestamp|with|local|time|zone
    timestamp|with|time|zone time|without|time|zone time(3)|without|time|zone timestamp_ntz|without|time|zone
"""
SCHEMAS = [
    "a int not null", "a int null", "a int NOT  NULL COMMENT 'x'", "a int COMMENT 'x' NOT NULL",
    'a int comment "x"', "a int comment x", "a int comment", "a int comment 'it''s'", r"a int comment 'x\'y'",
    "a int comment r'x'", "a int comment 'x", "a int default 5", "a int not null not null", "a int not", "a",
    "1a int", "1 int", "1.5 int", "1e int", "1e5 int", "1e5a int", "1d int", "1L int", "5bd int", "0x1 int",
    "1_0 int", "_ int", "a-b int", "a.b int", "`a.b` int", "`a``b` int", "`` int", '"a" int', "'a' int", "$a int",
    "größe int", "a, b int", "a int, a int", "a int,", ",a int", "a int,, b int", "", "  ",
    "id bigint k string", "int", "struct<a:int>", "array<int>", "select int, from int, not int, null int",
    "array array<int>, map map<int,int>, struct struct<a:int>, interval interval, comment string, collate int",
    "a int -- b", "a /* x */ int", "a /* x /* y */ z */ int", "a /* x int", "a int; b int", "a\tint,\nb int",
    "(a int)", "a int)", "a int>", "a array<int>>", "a int primary key", "a int b", "a 'int'", "a <int>", "a ?",
    "a int generated always as (b)", "a struct<x: foo, y: int", "a map<string, struct<x:int>> not null",
    "`a int", "a\N{NO-BREAK SPACE}int",
]  # fmt: skip


def taken(schema: str, read: Callable[[str], object] = read_columns) -> bool:
    try:
        read(schema)
    except SchemaError:
        return False
    return True


@pytest.fixture(scope="module")
def parser(spark: Any) -> Any:
    """Spark's own parser of schemas, which a reader's ``schema(…)`` asks."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    parse = spark._jvm.org.apache.spark.sql.types.StructType.fromDDL

    def takes(schema: str) -> bool:
        try:
            parse(schema)
        except (PySparkException, Py4JJavaError):
            return False
        return True

    return takes


@pytest.mark.spark
@pytest.mark.parametrize(
    "schemas",
    [[f"c {kind.replace('|', ' ')}, d int" for kind in TYPES.split()], SCHEMAS],
    ids=["types", "schemas"],
)
def test_what_spark_takes_is_taken_and_nothing_else(parser: Any, schemas: list[str]) -> None:
    assert {schema: taken(schema) for schema in schemas} == {schema: parser(schema) for schema in schemas}


@pytest.mark.spark
def test_types_of_fields_are_those_that_spark_takes_of_columns(parser: Any) -> None:
    kinds = [kind.replace("|", " ") for kind in TYPES.split()]

    assert {kind: taken(f"a.`b c` . element {kind}, d int", read_hints) for kind in kinds} == {
        kind: parser(f"`a.b c.element` {kind}, d int") for kind in kinds
    }


WORDS = st.sampled_from(
    [
        "a",
        "b",
        "`c",
        "d`",
        "1x",
        "7",
        "int",
        "bigint",
        "long",
        "string",
        "decimal",
        "decimal(",
        "char(",
        "time(",
        "3",
        ")",
        "array<",
        "map<",
        "struct<",
        ">",
        "<",
        ",",
        ",",
        ":",
        ".",
        "not",
        "null",
        "comment",
        "'x'",
        '"y"',
        "interval",
        "day",
        "second",
        "to",
        "year",
        "month",
        "timestamp",
        "with",
        "without",
        "local",
        "zone",
        "collate",
        "UNICODE",
        "void",
        "variant",
        "foo",
        "--",
        "/*",
        "*/",
        "geometry(",
        "any",
        "",
    ]
)
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)
SIMPLE = st.sampled_from(["int", "LONG", "string", "decimal(5,2)", "char(3)", "interval day to hour", "time"])
NAMES = st.sampled_from(["a", "B", "`c d`", "1x", "date", "struct"])
NESTED = st.recursive(
    SIMPLE,
    lambda inner: (
        inner.map("array<{}>".format)
        | st.tuples(inner, inner).map(lambda both: f"map<{both[0]}, {both[1]}>")
        | st.lists(st.tuples(NAMES, inner), max_size=3).map(
            lambda fields: f"struct<{', '.join(f'{name}: {kind}' for name, kind in fields)}>"
        )
    ),
    max_leaves=5,
)
RIGHT = st.lists(
    st.tuples(NAMES, NESTED, st.sampled_from(["", " not null", " comment 'x'"])), min_size=1
).map(lambda columns: ", ".join(f"{name} {kind}{rest}" for name, kind, rest in columns))


@st.composite
def nearly_right(draw: Any) -> str:
    """A schema with a part of it gone, or there twice, or exchanged for something else."""
    schema = draw(RIGHT)
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(schema))] * 2)))
    return (
        schema[:start]
        + draw(st.sampled_from(["", schema[start:end] * 2, ",", ">", "<", " x ", "(", ":"]))
        + schema[end:]
    )


@pytest.mark.spark
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(schema=TEXTS.map("a ".__add__) | RIGHT | nearly_right())
def test_drawn_schemas_are_judged_as_spark_does(parser: Any, schema: str) -> None:
    try:
        text = read_columns(schema).text
    except SchemaError:
        assert not parser(schema)
    else:
        # PySpark takes a colon behind the name of a column, and Spark gets it without.
        assert parser(text)


@pytest.mark.parametrize(
    ("schema", "mistakes"),
    [
        (
            "id bigintt, k strng",
            [(3, "bigintt", "Did you mean `bigint`?"), (14, "strng", "Did you mean `string`?")],
        ),
        ("id bigint k string", [(10, "k", "Put a comma before `k`")]),
        ("id array<foo>, k map<string>", [(9, "foo", "Types are"), (17, "map", "Write `map<string, int>`")]),
        ("a text, b json", [(2, "text", "Spark's type is `string`"), (10, "json", "`string`")]),
        ("a list<int>, b struct<x: bool>", [(2, "list", "`array<…>`"), (25, "bool", "`boolean`")]),
        ("a int, b", [(7, "b", "Write `b string`")]),
        ("a-b int", [(0, "a", "in backquotes")]),
        ("struct<a: int>", [(0, "struct", "its fields alone")]),
        ("a decimal(39)", [(2, "decimal", "decimal(38, 9)")]),
        ("a char", [(2, "char", "char(20)")]),
        ("a int)", [(5, ")", "Remove it")]),
    ],
)
def test_each_mistake_is_told_with_its_place(schema: str, mistakes: list[tuple[int, str, str]]) -> None:
    with pytest.raises(SchemaError) as raised:
        read_columns(schema)

    found = raised.value.mistakes
    assert [(mistake.start, mistake.word) for mistake in found] == [mistake[:2] for mistake in mistakes]
    for mistake, (_, _, hint) in zip(found, mistakes, strict=True):
        assert hint in mistake.hint


def test_hints_are_of_columns_and_of_fields_in_them() -> None:
    found = read_hints("id: long, user.`born on`.year int NOT NULL, prices.element variant")

    assert [(field.name, str(field.type)) for field in found.fields] == [
        ("id", "bigint"),
        ("user.born on.year", "int"),
        ("prices.element", "variant"),
    ]
    assert found.text == "id long, user.`born on`.year int NOT NULL, prices.element variant"
    assert [newer.name for newer in found.newer] == ["variant"]


@pytest.mark.parametrize(
    ("hints", "start", "word", "said"),
    [
        ("a.b bigintt", 4, "bigintt", "Did you mean `bigint`?"),
        ("a. int, b int", 0, "a", "has no type"),
        ("a., b int", 0, "a", "ends with a dot"),
        ("a..b int", 0, "a", "ends with a dot"),
        ("a.b-c int", 0, "a", "in backquotes"),
        ("a.b", 0, "a", "Write `a.b string`"),
        ("  ", 2, "", "at least one column"),
    ],
)
def test_what_is_wrong_with_hints(hints: str, start: int, word: str, said: str) -> None:
    with pytest.raises(SchemaError) as raised:
        read_hints(hints)

    (found,) = raised.value.mistakes
    assert (found.start, found.word) == (start, word)
    assert said in f"{found.message} {found.hint}"


@pytest.mark.parametrize(
    ("kind", "since"),
    [
        ("map<string, array<variant>>", "4.0"), ("string collate UNICODE", "4.0"), ("time(3)", "4.1"),
        ("geometry(4326)", "4.1"), ("geography(any)", "4.1"), ("timestamp without time zone", "4.1"),
        ("timestamp with local time zone", "4.2"), ("char(3) collate UNICODE", "4.2"), ("timestamp_ntz", None),
    ],
)  # fmt: skip
def test_types_are_known_with_the_first_spark_that_has_them(kind: str, since: str | None) -> None:
    # As Spark 4.0.1, 4.1.1 and 4.2.0 answered.
    assert [found.since for found in read_type(kind).newer] == ([since] if since else [])


PIPELINE = """\
pipeline: p
mode: batch
sources:
  files: {gem: file, options: {format: json, path: x, schema: "id bigintt, k strng"}}
  named: {gem: rows, options: {rows: [], schema: {id: int, k: array<foo>}}}
  block:
    gem: file
    options:
      format: json
      path: x
      schema: |
        id bigint,
        foo foo
  ids: {gem: rows, options: {rows: [{id: 1, text: "{}"}]}}
transforms:
  parsed: {gem: from_json, input: ids, options: {column: text, schema: id bigint k string}}
  lengths: {gem: from_json, input: ids, options: {column: text, schema: {id: int, k: "array<char(2)>"}}}
  casts:
    gem: select
    input: ids
    options:
      columns: {a: cast(id as bigintt), b: "id::array<foo>", c: "from_json(text, 'a strng')", d: "from_csv(text, 'a varchar(3)')", e: cast(text as varchar(3))}
  query:
    gem: sql
    input: ids
    options:
      query: |
        select id,
          cast(id as bigintt) as b
        from ids
targets:
  t1: {gem: noop, input: files}
  t2: {gem: noop, input: named}
  t3: {gem: noop, input: block}
  t4: {gem: noop, input: parsed}
  t5: {gem: noop, input: casts}
  t6: {gem: noop, input: query}
  t7: {gem: noop, input: lengths}
"""


def places(path: Path) -> list[tuple[str, int, str]]:
    """What is wrong: the code, the line, and the text where it stands."""
    lines = path.read_text().splitlines()
    found = check_file(path).diagnostics
    return [(d.code, d.line, lines[d.line - 1][d.column - 1 :].split(",")[0].rstrip("'\"}>)")) for d in found]


def test_a_check_points_at_the_types_that_do_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE)

    assert places(path) == [
        ("GB205", 4, "bigintt"),
        ("GB205", 4, "strng"),
        ("GB205", 5, "foo"),
        ("GB205", 13, "foo"),
        ("GB205", 16, "k string"),
        ("GB205", 17, "char(2"),
        ("GB214", 22, "bigintt"),
        ("GB214", 22, "foo"),
        ("GB213", 22, "strng"),
        ("GB213", 22, "varchar(3"),
        ("GB214", 29, "bigintt) as b"),
    ]


def test_a_type_that_is_no_text_is_told_as_in_every_schema(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "pipeline: p\nmode: batch\n"
        "sources: {a: {gem: file, options: {format: json, path: x, schema: {id: 1}}}}\n"
        "targets: {c: {gem: noop, input: a}}\n"
    )
    (found,) = check_file(path).diagnostics
    assert "write the type of `id` as a text" in found.message


@pytest.mark.spark
def test_spark_reads_no_text_of_a_length(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import AnalysisException, PySparkException

    monkeypatch.setattr(PySparkException, "_log_exception", lambda _: None, raising=False)
    tries: list[Callable[[], object]] = [
        lambda: spark.read.schema("a struct<b: char(3)>").json(__file__),
        lambda: spark.sql("select from_json('{}', 'a varchar(3)')").collect(),
        lambda: spark.sql("select from_csv('1', 'a char(3)')").collect(),
    ]
    for attempt in tries:
        with pytest.raises(AnalysisException) as refused:
            attempt()
        assert refused.value.getCondition() == "UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING"
    assert spark.sql("select cast('abcd' as varchar(3)) as a").collect()


def test_a_check_tells_which_types_its_spark_lacks(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "pipeline: p\nmode: batch\n"
        'sources: {a: {gem: file, options: {format: parquet, path: x, schema: "v variant, g geometry(4326)"}}}\n'
        "transforms: {b: {gem: with_columns, input: a, options: {columns: {t: cast(null as time)}}}}\n"
        "targets: {c: {gem: noop, input: b}}\n"
    )
    (tmp_path / "gem-bundle.toml").write_text('[check]\nspark_version = "4.0"\n')

    assert places(path) == [("GB370", 3, "geometry(4326"), ("GB370", 4, "time")]
    assert "since 4.1, not in 4.0" in check_file(path).diagnostics[0].message
    (tmp_path / "gem-bundle.toml").write_text('[check]\nspark_version = "4.1"\n')
    assert places(path) == []


OTHERS = """\
pipeline: p
mode: stream
sources:
  hinted:
    gem: auto_loader
    options: {format: json, path: /x, schema_location: /s, schema_hints: "id bigint, user.born dat, t variant"}
  avro:
    gem: file
    mode: batch
    options:
      format: avro
      path: x
      avro_schema: '{"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "integr"]}]}'
  yaml:
    gem: file
    mode: batch
    options:
      format: avro
      path: x
      avro_schema:
        type: record
        name: R
        fields:
          - {name: a, type: int}
          - {name: at, type: {type: timestamp}}
targets:
  t1: {gem: console, input: hinted}
  t2:
    gem: jdbc
    input: hinted
    options: {url: "jdbc:postgresql://db/x", table: t, create_table_column_types: "id strng, user varchar"}
"""


def test_a_check_points_at_types_in_all_options_that_hold_some(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(OTHERS)
    found = [d for d in check_file(path).diagnostics if d.code == "GB205"]

    assert [place for place in places(path) if place[0] == "GB205"] == [
        ("GB205", 6, "dat"),
        ("GB205", 13, '"integr"]}]'),
        ("GB205", 25, "timestamp"),
        ("GB205", 31, "strng"),
        ("GB205", 31, "varchar"),
    ]
    assert "Did you mean `date`?" in found[0].hint
    assert "at `fields[0].type[1]`: there is no type `integr`" in found[1].message
    assert "`avro_schema.fields[1].type.type`: there is no type `timestamp`" in found[2].message
    assert "timestamp-micros" in found[2].hint


def test_a_check_tells_which_types_of_hints_its_spark_lacks(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(OTHERS.replace("dat,", "date,"))
    (tmp_path / "gem-bundle.toml").write_text('[check]\nspark_version = "3.5"\n')

    assert ("GB370", 6, "variant") in places(path)
