"""The transforms `from_json` and `to_json`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gem_bundle import Column, Facts, Pipeline
from gem_bundle.rejected import Rejecting, rejected_rows
from gem_json.from_json import FromJson, FromJsonOptions
from gem_json.to_json import ToJson
from tests.gems.transforms import findings, made, stream_of, table_of
from tests.samples import some_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

texts_of_json = some_of("texts of JSON", 1)

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


SCHEMA = "id bigint not null, n int, d double, ok boolean, name string, tags array<int>, inner struct<x: int not null>"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "FAILFAST"}, "remove one of the two"),
        ({"spark_options": {"mode": "failfast"}}, "remove one of the two"),
        ({"spark_options": {"Mode": "DROPMALFORMED"}}, "`mode: DROPMALFORMED` does something else"),
        ({"spark_options": {"columnNameOfCorruptRecord": "bad"}}, "no column gets it"),
        ({"column_name_of_corrupt_record": "bad"}, "remove `column_name_of_corrupt_record`"),
        ({"schema": "a int, _corrupt_record string"}, "`_corrupt_record` from `schema`"),
    ],
)
def test_what_is_rejected_has_one_place(options: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"column": "value", "schema": "a int", **options}
    made(FromJson, **given)
    with pytest.raises(ValidationError, match=said):
        made(FromJson, rejects=True, **given)


def test_rejecting_is_asked_for() -> None:
    options = {"column": "value", "schema": "page string"}
    assert not made(FromJson, **options).rejects()
    rejecting = made(FromJson, rejects=True, **options)
    assert rejecting.rejects()
    assert rejecting.infer(KAFKA) == made(FromJson, **options).infer(KAFKA)
    (event_time,) = rejecting.infer_rejected(KAFKA).event_time or ()
    assert (event_time.name, event_time.delay) == ("event_time", "10 minutes")
    lineages = [made(FromJson, rejects=rejects, **options).lineage(KAFKA) for rejects in (False, True)]
    assert [lineage.rows.uses for lineage in lineages if lineage] == [frozenset(), {"0:value"}]


def test_what_asks_for_rejected_rows_that_are_not_made_is_told_so() -> None:
    source = {"schema": "value string", "rows": [["{}"]]}
    pipeline = (
        Pipeline("p", mode="batch")
        .source("texts", "rows", source)
        .transform("parsed", "from_json", "texts", {"column": "value", "schema": "a int"})
        .target("out", "noop", "parsed.rejected")
    )
    (found,) = pipeline.check()
    assert found.code == "GB106"
    assert "with these options `parsed` rejects no rows" in found.message
    assert "describe from_json" in found.hint


def _why(spark: SparkSession, texts: list[str | bytes | None], **options: Any) -> list[list[str]]:
    """The names of the reasons for each text; an empty list for one that goes on."""
    rows = [(n, text.encode() if isinstance(text, str) else text) for n, text in enumerate(texts)]
    df = spark.createDataFrame(rows, "number int, value binary")
    parsed = made(FromJson, column="value", rejects=True, keep=True, **{"schema": SCHEMA, **options})
    good = [row.number for row in parsed.apply(df).collect()]  # type: ignore[union-attr]
    bad = rejected_rows(parsed.reject(df), Rejecting("p", "1", "parsed", "from_json"))
    found = {json.loads(row.row)["number"]: [why.name for why in row.reasons] for row in bad.collect()}
    assert sorted([*good, *found]) == list(range(len(texts)))
    return [found.get(number, []) for number in range(len(texts))]


@pytest.mark.spark
def test_why_texts_are_rejected(spark: SparkSession) -> None:
    cases: dict[str | bytes | None, list[str]] = {
        '{"id": 1}': [],
        ' {"id": 1, "other": [{}]} ': [],
        '{"id": 1, "id": 2}': [],
        '{"id": 1, "d": 1, "name": 7, "tags": [1, null], "inner": {"x": 0}}': [],
        None: ["no_text"],
        "": ["no_text"],
        " \n\t": ["no_text"],
        b'{"id": 1, "name": "\xff"}': ["not_utf8"],
        '{"id": 1': ["not_json"],
        '{"id": 1, "name": "cut': ["not_json"],
        '{"id": 1} and more': ["not_json"],
        '{"id": 1}{"id": 2}': ["not_json"],
        '{"id": 1}, {"id": 2}': ["not_json"],
        '{"id": 1}]': ["not_json"],
        "plain text": ["not_json"],
        '{"id": 1, "deep": ' + "[" * 1200 + "]" * 1200 + "}": ["not_json"],
        "null": ["not_an_object"],
        "7": ["not_an_object"],
        '"text"': ["not_an_object"],
        "[]": ["not_an_object"],
        '[{"id": 1}]': ["not_an_object"],
        '{"id": 1, "n": "7"}': ["wrong_type"],
        '{"id": 1, "n": 7.5}': ["wrong_type"],
        '{"id": 1, "n": 2147483648}': ["wrong_type"],
        '{"id": 9223372036854775808}': ["wrong_type"],
        '{"id": 1, "d": "Infinity"}': [],
        '{"id": 1, "d": -1e999}': ["wrong_type"],
        '{"id": 1, "ok": "true"}': ["wrong_type"],
        '{"id": 1, "tags": [1, "2"]}': ["wrong_type"],
        '{"id": 1, "tags": 1}': ["wrong_type"],
        '{"id": 1, "inner": {"x": "0"}}': ["wrong_type"],
        '{"id": 1, "n": "x", "n": 1}': ["wrong_type"],
        '{"n": "x"}': ["wrong_type", "missing_field"],
        "{}": ["missing_field"],
        '{"id": null}': ["missing_field"],
        '{"ID": 1}': ["missing_field"],
        '{"id": 1, "inner": {}}': ["missing_field"],
    }
    assert dict(zip(cases, _why(spark, list(cases)), strict=True)) == cases


@texts_of_json
@pytest.mark.spark
def test_a_name_that_is_there_twice_is_a_reason_where_that_is_asked_for(spark: SparkSession) -> None:
    cases: dict[str | bytes | None, list[str]] = {
        '{"id": 1, "d": 1, "other": [{}]}': [],
        '{"id": 1, "id": 2}': ["duplicate_name"],
        '{"id": 1, "other": 1, "other": null}': ["duplicate_name"],
        '{"id": 1, "\\u0069d": 1}': ["duplicate_name"],
        '{"id": 1, "ID": 2}': [],
        '{"n": 1, "n": "x"}': ["duplicate_name", "wrong_type", "missing_field"],
        '{"n": 1, "n": 2}': ["duplicate_name", "missing_field"],
        '{"id": 1, "x": {"a": 1, "a": 2}}': [],
        '{"id": 1, "id": 2': ["not_json"],
        '{"id": 1}{"id": 2, "id": 3}': ["not_json"],
        '{"id": 1}': [],
        "{}": ["missing_field"],
    }
    assert dict(zip(cases, _why(spark, list(cases), duplicate_names="reject"), strict=True)) == cases
    commented: list[str | bytes | None] = ["{'id': 1, /* once more */ 'id': 2}"]
    assert _why(spark, commented, duplicate_names="reject", allow_comments=True) == [["duplicate_name"]]


def test_names_are_rejected_only_where_there_is_an_output_for_that() -> None:
    with pytest.raises(ValueError, match="add `rejects: true`"):
        FromJsonOptions(column="value", schema="a int", duplicate_names="reject")


@pytest.mark.spark
def test_fields_are_required_however_deep(spark: SparkSession) -> None:
    schema = (
        "a array<struct<x: int not null, y: int>>, m map<string, struct<b: array<struct<z: int not null>>>>"
    )
    cases: dict[str | bytes | None, list[str]] = {
        '{"a": [{"x": 1}, null], "m": {"k": {"b": [{"z": 1}]}, "n": null}}': [],
        '{"a": null}': [],
        '{"a": [{"x": 1}, {"y": 1}]}': ["missing_field"],
        '{"m": {"k": {"b": [{"z": null}]}}}': ["missing_field"],
    }
    assert dict(zip(cases, _why(spark, list(cases), schema=schema), strict=True)) == cases


@texts_of_json
@pytest.mark.spark
def test_how_json_may_be_written_is_said_by_the_options(spark: SparkSession) -> None:
    texts: list[str | bytes | None] = [
        "{id: 1}",
        "/* c */ {'id': 1} // d",
        '{"id": 007}',
        '{"id": 1, "d": NaN}',
    ]
    lenient = {
        "allow_unquoted_field_names": True,
        "allow_comments": True,
        "allow_numeric_leading_zeros": True,
    }
    assert _why(spark, texts, **lenient) == [[], [], [], []]
    strict = {"allow_non_numeric_numbers": False, "allow_single_quotes": False}
    assert _why(spark, texts, **strict) == [["not_json"]] * 4


_WORDS = st.sampled_from(["null", "true", "1", "-7", "2.5", "1e3", "2147483648", '"x"', '"1"', "[1]", "[1,2.5]", "{}", '{"x":1}', '{"x":"1"}', "[", '"', "nul"])  # fmt: skip
_KEYS = st.sampled_from(["id", "n", "d", "ok", "name", "tags", "inner", "other"])
_PAIRS = st.lists(st.tuples(_KEYS, _WORDS), max_size=4)
_OBJECTS = _PAIRS.map(lambda pairs: "{" + ", ".join(f'"{key}": {word}' for key, word in pairs) + "}")
_WITH_ID = _PAIRS.map(lambda pairs: '{"id": 1' + "".join(f', "{key}": {word}' for key, word in pairs) + "}")
_CUT = st.tuples(_WITH_ID, st.integers(0, 40)).map(lambda drawn: drawn[0][: drawn[1]])
_LONGER = st.tuples(_WITH_ID, st.text("{}[],: 1x", min_size=1, max_size=3)).map("".join)


def _fits(text: str) -> bool:
    """What the schema's text looks like, by Python's own reader of JSON."""

    def integer(value: Any, bits: int) -> bool:
        return type(value) is int and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)

    def struct(value: Any) -> bool:
        return isinstance(value, list) and _all_of(value, {"x": lambda v: integer(v, 32)}, ["x"])

    kinds: dict[str, Any] = {
        "id": lambda v: integer(v, 64),
        "n": lambda v: integer(v, 32),
        "d": lambda v: type(v) in {int, float},
        "ok": lambda v: isinstance(v, bool),
        "tags": lambda v: isinstance(v, tuple) and all(i is None or integer(i, 32) for i in v),
        "inner": struct,
    }

    def arrays(value: Any) -> Any:
        if isinstance(value, list) and not (value and isinstance(value[0], tuple)):
            return tuple(map(arrays, value))
        return value

    try:
        pairs = json.loads(text, object_pairs_hook=lambda found: _Object((k, v) for k, v in found))
    except (ValueError, RecursionError):
        return False
    if not isinstance(pairs, _Object):
        return False
    plain = {key: (lambda v, fits=fits: fits(arrays(v) if not isinstance(v, _Object) else v)) for key, fits in kinds.items()}  # fmt: skip
    return _all_of(pairs, plain, ["id"])


class _Object(list[Any]):
    """The pairs of an object of JSON: names may be there twice."""


def _all_of(pairs: list[Any], kinds: dict[str, Any], required: list[str]) -> bool:
    right = all(value is None or key not in kinds or kinds[key](value) for key, value in pairs)
    return right and all(dict(pairs).get(name) is not None for name in required)


@texts_of_json
@pytest.mark.spark
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(_OBJECTS | _WITH_ID | _CUT | _LONGER | st.text(max_size=3), min_size=60, max_size=120))
def test_each_text_is_in_one_output(spark: SparkSession, texts: list[str]) -> None:
    sent: list[str | bytes | None] = [text.encode(errors="replace") for text in texts]
    found = _why(spark, sent)
    wrong = [text for text, why in zip(texts, found, strict=True) if bool(why) is _fits(text)]
    assert wrong == []
