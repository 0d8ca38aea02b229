"""The transforms `from_json` and `to_json`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts
from gem_json.from_json import FromJson
from gem_json.to_json import ToJson
from tests.gems.transforms import findings, made, stream_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUE = Column("value", "binary")
AT = Column("at", "timestamp", "10 minutes")
KAFKA = stream_of(Column("key", "binary"), VALUE, Column("topic", "string"), AT)


def test_fields_are_all_that_goes_on() -> None:
    parsed = made(FromJson, column="value", schema="page string, n long")
    assert parsed.infer(KAFKA) == stream_of(Column("page", "string"), Column("n", "bigint"))
    assert parsed.infer(Facts(streaming=True)) == Facts(
        streaming=True, columns=(Column("page", "string"), Column("n", "bigint"))
    )


def test_kept_columns_come_first_and_keep_event_time() -> None:
    options = {"schema": {"value": "string", "n": "int"}, "keep": True}
    fields = [Column("value", "string"), Column("n", "int")]
    parsed = made(FromJson, column="VALUE", **options)
    assert parsed.infer(KAFKA) == stream_of(Column("key", "binary"), Column("topic", "string"), AT, *fields)
    assert parsed.infer(Facts(streaming=True)).columns is None
    # A field of a struct can't be taken out of it.
    nested = made(FromJson, column="body.text", **options)
    body = stream_of(Column("body", "struct<text: string>"))
    assert nested.infer(body) == stream_of(Column("body", "struct<text: string>"), *fields)


def test_text_alone_or_beside_the_columns() -> None:
    text = Column("value", "string")
    assert made(ToJson).infer(KAFKA) == stream_of(text)
    assert made(ToJson).infer(Facts(streaming=True)) == Facts(streaming=True, columns=(text,))
    kept = made(ToJson, keep=True).infer(KAFKA)
    assert [(c.name, c.type) for c in kept.columns or ()] == [
        ("key", "binary"),
        ("value", "string"),
        ("topic", "string"),
        ("at", "timestamp"),
    ]
    assert made(ToJson, keep=True, column="at").infer(KAFKA).event_time == ()
    assert made(ToJson, keep=True, column="j").infer(table_of()).columns == (Column("j", "string"),)


def test_what_is_wrong_with_the_column() -> None:
    schema = "page string"
    (missing,) = findings(FromJson, KAFKA, column="valu", schema=schema)
    assert (missing.option, missing.hint) == ("column", "Did you mean `value`?")
    numbers = stream_of(Column("value", "bigint"))
    (number,) = findings(FromJson, numbers, column="value", schema=schema)
    assert number.message == "`value` is a bigint; JSON is read from text or bytes"
    for fine in (KAFKA, stream_of(Column("value")), Facts(), stream_of(Column("value", "varchar(9)"))):
        assert findings(FromJson, fine, column="value", schema=schema) == []
    assert findings(FromJson, KAFKA, column="payload.body", schema=schema) == []


def test_a_field_and_a_kept_column_of_one_name_are_a_warning() -> None:
    options = {"column": "value", "schema": "topic string, value string"}
    (finding,) = findings(FromJson, KAFKA, keep=True, **options)
    assert (finding.severity, finding.option) == ("warning", "keep")
    assert finding.message == "there will be two columns `topic`: the field, and a kept one"
    assert findings(FromJson, KAFKA, **options) == []


def test_a_column_to_pack_that_does_not_exist_is_found() -> None:
    for columns in (["topik"], {"t": "topik"}):
        (finding,) = findings(ToJson, KAFKA, columns=columns)
        assert finding.hint == "Did you mean `topic`?"
    assert findings(ToJson, KAFKA) == []


@pytest.mark.parametrize(
    "options",
    [
        {"column": "value"},
        {"schema": "a int"},
        {"column": "", "schema": "a int"},
        {"column": "value", "schema": ""},
        {"column": "value", "schema": "a int", "mode": "DROPMALFORMED"},
        {"column": "value", "schema": "a int", "timestampformat2": "x"},
    ],
)
def test_options_of_from_json_that_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        made(FromJson, **options)


@pytest.mark.parametrize("options", [{"columns": []}, {"columns": {}}, {"column": ""}])
def test_options_of_to_json_that_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        made(ToJson, **options)


@pytest.mark.parametrize(
    ("columns", "codes"),
    [
        (["topic", "*", "upper(topic) as t"], []),
        (["tpic"], ["GB210"]),
        ({"t": "upper(tpic)"}, ["GB210"]),
        (["nobody.topic"], ["GB210"]),
        (["struct(at as a).b"], ["GB210"]),
        (["at + at"], ["GB213"]),
        (["explode(array(1))"], ["GB212"]),
        (["topic +"], ["GB214"]),
        (["upper()"], ["GB215"]),
    ],
)
def test_what_is_packed_can_be_computed(columns: Any, codes: list[str]) -> None:
    facts = replace(KAFKA, qualifiers=frozenset({"kafka"}))
    assert [finding.code for finding in findings(ToJson, facts, columns=columns)] == codes


def test_spark_gets_its_own_options_and_no_other() -> None:
    parsed = made(
        FromJson,
        column="value",
        schema="a int",
        keep=True,
        mode="failfast",
        timestamp_ntz_format="yyyy",
        allow_single_quotes=False,
        spark_options={"samplingRatio": 0.5, "mode": "PERMISSIVE"},
    )
    assert parsed.options.to_spark() == {
        "mode": "PERMISSIVE",
        "timestampNTZFormat": "yyyy",
        "allowSingleQuotes": "false",
        "samplingRatio": "0.5",
    }
    assert FromJson.options_type.canonical("columnNameOfCorruptRecord") == "column_name_of_corrupt_record"
    assert made(ToJson, columns=["a"], pretty=True).options.to_spark() == {"pretty": "true"}


@pytest.mark.spark
def test_json_in_bytes_becomes_columns(spark: SparkSession) -> None:
    df = spark.sql(
        """select encode('{"page": "ä", "at": "2024-01-01 10:00:00", "n": {"a": [1, 2]}}', 'utf-8') value,
                  'k' as key"""
    )
    schema = "page string, at timestamp, n struct<a: array<int>>, gone int"
    parsed: Any = made(FromJson, column="value", schema=schema).apply(df)
    (row,) = parsed.selectExpr("page", "date_format(at, 'HH') as hour", "n.a[1] as two", "gone").collect()
    assert tuple(row) == ("ä", "10", 2, None)
    kept: Any = made(FromJson, column="value", schema="value string, page string", keep=True).apply(df)
    assert kept.columns == ["key", "value", "page"]
    (row,) = kept.collect()
    assert tuple(row) == ("k", None, "ä")


@pytest.mark.spark
def test_a_field_of_a_struct_holds_the_json(spark: SparkSession) -> None:
    df = spark.sql("""select named_struct('text', '{"a": 1}') as body""")
    parsed: Any = made(FromJson, column="body.text", schema="a int", keep=True).apply(df)
    (row,) = parsed.collect()
    assert row.asDict(recursive=True) == {"body": {"text": '{"a": 1}'}, "a": 1}


@pytest.mark.spark
def test_text_that_does_not_fit(spark: SparkSession) -> None:
    df = spark.sql("""select * from values ('{"a": 1}'), ('{"a": '), ('{"a": "x"}') as t(value)""")
    parsed: Any = made(FromJson, column="value", schema="a int").apply(df)
    assert [row.a for row in parsed.collect()] == [1, None, None]
    corrupt = "a int, bad string"
    parsed = made(FromJson, column="value", schema=corrupt, column_name_of_corrupt_record="bad").apply(df)
    assert [row.bad for row in parsed.collect()] == [None, '{"a": ', '{"a": "x"}']
    # Over rows that Spark can't evaluate while it plans, as rows of a stream are.
    texts = spark.range(1).selectExpr("concat(id, '!') as value")
    failing: Any = made(FromJson, column="value", schema="a int", mode="FAILFAST").apply(texts)
    with pytest.raises(Exception, match="MALFORMED_RECORD_IN_PARSING"):
        failing.collect()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("{a: 1, b: 'x'}", {"allow_unquoted_field_names": True}),
        ('{"a": 01, "b": "x"}', {"allow_numeric_leading_zeros": True}),
        ('{"a": 1, /* one */ "b": "x"}', {"allow_comments": True}),
        ('{"a": 1, "b": "\\x"}', {"allow_backslash_escaping_any_character": True}),
        ('{"a": 1, "b": "x"}', {"spark_options": {"allowComments": True}}),
    ],
    ids=str,
)
def test_json_that_is_not_quite_json(spark: SparkSession, text: str, options: dict[str, Any]) -> None:
    df = spark.createDataFrame([(text,)], "value string")
    parsed: Any = made(FromJson, column="value", schema="a int, b string", **options).apply(df)
    assert [tuple(row) for row in parsed.collect()] == [(1, "x")]


@pytest.mark.spark
def test_formats_of_times(spark: SparkSession) -> None:
    text = '{"t": "31.12.2024 23:00", "d": "31/12/2024"}'
    df = spark.createDataFrame([(text,)], "value string")
    formats = {"timestamp_format": "dd.MM.yyyy HH:mm", "date_format": "dd/MM/yyyy"}
    parsed: Any = made(FromJson, column="value", schema="t timestamp, d date", **formats).apply(df)
    (row,) = parsed.selectExpr("cast(t as string) as t", "cast(d as string) as d").collect()
    assert tuple(row) == ("2024-12-31 23:00:00", "2024-12-31")
    back: Any = made(ToJson, **formats).apply(parsed)
    assert [json.loads(row.value) for row in back.collect()] == [json.loads(text)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"id": 1, "page": "a", "s": {"x": 2}}),
        ({"columns": "page, id + 1 as next"}, {"page": "a", "next": 2}),
        ({"columns": {"n": "id", "m": "s.x"}}, {"n": 1, "m": 2}),
        ({"columns": ["s.*"], "ignore_null_fields": False}, {"x": 2, "y": None}),
    ],
    ids=str,
)
def test_columns_become_json(spark: SparkSession, options: dict[str, Any], expected: dict[str, Any]) -> None:
    df = spark.sql("select 1 as id, 'a' as page, named_struct('x', 2, 'y', cast(null as int)) as s")
    packed: Any = made(ToJson, **options).apply(df)
    assert packed.columns == ["value"]
    assert [json.loads(row.value) for row in packed.collect()] == [expected]
    kept: Any = made(ToJson, column="page", keep=True, **options).apply(df)
    assert kept.columns == ["id", "page", "s"]
    assert [json.loads(row.page) for row in kept.collect()] == [expected]


@pytest.mark.spark
def test_pretty_json(spark: SparkSession) -> None:
    packed: Any = made(ToJson, pretty=True).apply(spark.range(1))
    assert [row.value for row in packed.collect()] == ['{\n  "id" : 0\n}']
