"""Schemas read without a JVM say what Spark says of them."""

import warnings

import pytest

from gem_bundle import Column, Field, Options
from gem_bundle.schema import SchemaOptions, columns_of, fields_of, quoted, schema_of, type_of
from gem_bundle.types import Schema

READABLE = [
    "a int",
    "a int, b string",
    "a INT,b  STRING ",
    "a byte, b short, c integer, d long, e real, f double, g boolean",
    "a tinyint, b smallint, c int, d bigint, e float, f dec, g numeric(12,2), h decimal(5)",
    "a date, b timestamp, c timestamp_ltz, d timestamp_ntz, e binary, f void",
    "a array<int>, b map<string,array<long>>",
    "a struct<x: int, y: struct<z: array<map<string, decimal(20,3)>>>>",
    "a struct<x int, `y z`: string NOT NULL COMMENT 'here'>",
    "`odd name` int, `back``quote` string, 1st int",
    "a int NOT NULL, b string COMMENT 'it\\'s, (so) <far>'",
    'a int COMMENT "double, quoted"',
    "a interval day to second, b interval year to month, c interval, d interval day",
    "a variant",
    "a struct<>",
    "date date, timestamp timestamp, comment string, array array<int>",
]


@pytest.mark.spark
@pytest.mark.parametrize("schema", READABLE)
def test_columns_are_those_that_spark_finds(spark, schema):
    from pyspark.sql.types import StructType

    expected = StructType.fromDDL(schema)
    fields = fields_of(schema)
    assert fields is not None
    assert [(f.name, f.nullable) for f in fields] == [(f.name, f.nullable) for f in expected]
    # Written out, the types mean the same to Spark.
    again = StructType.fromDDL(schema_of(columns_of(schema)))
    assert [f.dataType.simpleString() for f in again] == [f.dataType.simpleString() for f in expected]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("LONG", "bigint"),
        ("dec", "decimal(10,0)"),
        ("numeric(7)", "decimal(7,0)"),
        ("time", "time(6)"),
        ("character(3)", "char(3)"),
        ("string collate UTF8_LCASE", "string collate UTF8_LCASE"),
        ("map<STRING,array<Integer>>", "map<string, array<int>>"),
        ("struct<a:long,`b c`:real>", "struct<a: bigint, `b c`: float>"),
        ("interval DAY to Second", "interval day to second"),
    ],
)
def test_a_type_is_written_as_spark_writes_it(text, written):
    assert str(type_of(text)) == written
    assert str(type_of(written)) == written


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "a",
        "a int,",
        ", a int",
        "a int b string",
        "a array<int",
        "a map<string>",
        "a int)",
        "a 'x'",
        "a int ? b",
    ],
)
def test_what_is_no_ddl_is_unknown(schema):
    assert columns_of(schema) is None


def test_columns_of_a_schema():
    assert columns_of("page string, at timestamp") == (Column("page", "string"), Column("at", "timestamp"))


@pytest.mark.parametrize(
    ("name", "text"), [("page", "page"), ("a b", "`a b`"), ("a`b", "`a``b`"), ("1", "`1`")]
)
def test_names_are_quoted_where_they_must_be(name, text):
    assert quoted(name) == text
    assert columns_of(f"{text} int") == (Column(name, "int"),)


def test_an_option_may_be_called_schema():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class WithSchema(SchemaOptions):
            schema: Schema = Field(description="The columns.")

    assert issubclass(WithSchema, Options)
    assert WithSchema.model_validate({"schema": "a int"}).schema == "a int"
    assert WithSchema.canonical("schema") == "schema"
    with pytest.raises(ValueError, match="Field required"):
        WithSchema.model_validate({})
