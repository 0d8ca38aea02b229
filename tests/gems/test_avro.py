"""The transforms `from_avro` and `to_avro`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gem_avro.from_avro import FromAvro
from gem_avro.to_avro import ToAvro
from gem_bundle import Column, Facts, Pipeline
from gem_bundle.avro import AvroSchema, AvroSchemaError
from gem_bundle.rejected import Rejecting, rejected_rows
from tests.gems.transforms import assert_agrees, facts_of, findings, made, stream_of, table_of
from tests.samples import drawn, examples

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KAFKA = stream_of(Column("key", "binary"), Column("value", "binary"), Column("topic", "string"))


def record(*fields: tuple[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t, **more} for n, t in fields]}


CLICK = record(("page", "string"), ("n", ["null", "int"]))


def test_fields_are_all_that_goes_on_unless_others_are_kept() -> None:
    fields = [Column("page", "string"), Column("n", "int")]
    assert made(FromAvro, column="value", schema=CLICK).infer(KAFKA) == stream_of(*fields)
    kept = made(FromAvro, column="value", schema=CLICK, keep=True)
    assert kept.infer(KAFKA) == stream_of(Column("key", "binary"), Column("topic", "string"), *fields)
    assert kept.infer(Facts(streaming=True)).columns is None
    other_case = made(FromAvro, column="VALUE", schema=CLICK, keep=True)
    assert other_case.infer(KAFKA) == kept.infer(KAFKA)
    assert made(ToAvro).infer(KAFKA) == stream_of(Column("value", "binary"))
    assert made(ToAvro, keep=True, column="topic").infer(KAFKA).columns == (
        *(Column("key", "binary"), Column("value", "binary"), Column("topic", "binary")),
    )
    assert list(made(ToAvro).jars()) == ["org.apache.spark:spark-avro_{scala}:{spark}"]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ('{"type": "record",\n "name"}', "it isn't JSON at line 2, column 8"),
        (record(("a", "strnig")), "at `fields[0].type`: there is no type `strnig`"),
        (record(("a", "int"), ("a", "int")), "at `fields[1]`: `a` is no name for a field, or is there twice"),
        (record(("a", ["int", "int"])), "at `fields[0].type[1]`: `int` is in the union twice"),
        (record(("a", [["int"]])), "a union can't stand in a union"),
        (record(("a", {"type": "fixed", "name": "f"})), "the fixed `f` needs a `size`"),
        (
            record(("a", {"type": "enum", "name": "e", "symbols": ["a", "a"]})),
            "`a` is no symbol, or is there",
        ),
        (record(("a", {"type": "array"})), "the array has no `items`"),
        (record(("a", {"type": "map"})), "the map has no `values`"),
        (record(("a", {"type": {"type": "int"}})) | {"name": "a-b"}, "`a-b` is no name for a type"),
        (record(("a", record(name="R"))), "the type `R` is there twice"),
        ({"type": "record", "fields": []}, "the record has no `name`"),
        ({"type": "record", "name": "R"}, "the record `R` needs `fields`"),
        (record(("a", ["null", "R"])), "the record `R` holds itself"),
        (record(("a", {"type": "bytes", "logicalType": "decimal", "precision": 50})), "50 digits"),
    ],
    ids=str,
)
def test_schemas_that_are_none_and_what_spark_says_of_them(schema: Any, said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        made(FromAvro, column="value", schema=schema)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give `schema` or `schema_file`"),
        ({"schema": '"int"'}, "has to be that of a record"),
        ({"schema": CLICK, "rejects": True, "mode": "failfast"}, "remove one of the two"),
        ({"schema": CLICK, "writer_schema": CLICK, "writer_schema_file": "gone"}, "can't be read: no such"),
        ({"schema": CLICK, "schema_id": 2**31}, "less than or equal"),
        ({"schema_file": "s3://bucket/a.avsc"}, "on a disk"),
    ],
)
def test_options_of_from_avro_that_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        made(FromAvro, column="value", **options)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"schema_id": 7}, "`schema_id` is the id of a schema"),
        ({"schema": '"int"'}, "has to be that of a record"),
        ({"columns": []}, "at least 1"),
    ],
)
def test_options_of_to_avro_that_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        made(ToAvro, **options)
    assert said in str(raised.value)


def test_what_is_wrong_with_the_column() -> None:
    (missing,) = findings(FromAvro, KAFKA, column="valu", schema=CLICK)
    assert (missing.option, missing.hint) == ("column", "Did you mean `value`?")
    (text,) = findings(FromAvro, KAFKA, column="topic", schema=CLICK)
    assert text.message == "`topic` is a string; Avro is read from bytes"
    (double,) = findings(FromAvro, KAFKA, column="value", schema=record(("topic", "string")), keep=True)
    assert double.severity == "warning"
    assert findings(FromAvro, KAFKA, column="value", schema=CLICK) == []
    (packed,) = findings(ToAvro, KAFKA, columns=["topik"])
    assert packed.hint == "Did you mean `topic`?"


def test_of_a_type_that_is_not_certain_nothing_is_said_and_the_others_are_known() -> None:
    unsure = record(("at", {"type": "long", "logicalType": "time-micros"}), ("page", "string"))
    assert made(FromAvro, column="value", schema=unsure).infer(KAFKA) == stream_of(
        Column("at"), Column("page", "string")
    )


def test_a_wrong_schema_in_a_file_is_told_at_its_place_before_a_start(tmp_path: Path) -> None:
    (tmp_path / "click.avsc").write_text('{"type": "record", "name": "R", "fields": [}')
    (tmp_path / "p.yaml").write_text(
        "pipeline: p\nmode: batch\n"
        "sources: {rows: {gem: rows, options: {schema: value binary, rows: []}}}\n"
        "transforms:\n  read:\n    gem: from_avro\n    input: rows\n"
        "    options: {column: value, schema_file: click.avsc}\n"
        "targets: {out: {gem: noop, input: read}}\n"
    )
    (found,) = Pipeline.load(tmp_path / "p.yaml").check()
    assert (found.code, found.line, found.severity) == ("GB205", 8, "error")
    assert "it isn't JSON at line 1, column 44" in found.message


@pytest.mark.parametrize("levels", [151, 600, 10_000])
def test_a_schema_that_is_nested_too_deeply_is_told(levels: int) -> None:
    text = '{"type": "array", "items": ' * levels + '"int"' + "}" * levels
    with pytest.raises(AvroSchemaError, match="it is nested too deeply"):
        AvroSchema(text)
    shallow = '{"type": "array", "items": ' * 149 + '"int"' + "}" * 149
    assert str(AvroSchema(shallow).type).startswith("array<array<")


def test_comments_in_a_file_with_a_schema_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "click.avsc"
    said = json.dumps({**CLICK, "doc": 'of "//host" /* and */'}, indent=1)
    file.write_text(f"/* Ours,\n of all. */\n// So\n{said}\n// it is.")
    options = made(FromAvro, column="value", schema_file=str(file)).options
    assert json.loads(options.model_dump(mode="json")["schema_file"]) == json.loads(said)


def test_the_record_of_what_ran_has_the_schema_and_not_its_place(tmp_path: Path) -> None:
    file = tmp_path / "click.avsc"
    file.write_text(json.dumps(CLICK))
    options = made(FromAvro, column="value", schema_file=str(file)).options
    assert json.loads(options.model_dump(mode="json")["schema_file"]) == CLICK


def test_another_schema_changes_the_columns_of_which_it_says_something_else() -> None:
    before = made(FromAvro, column="value", schema=CLICK, writer_schema=CLICK).lineage(KAFKA)
    wider = record(("page", "string"), ("n", ["null", "long"]))
    after = made(FromAvro, column="value", schema=wider, writer_schema=CLICK).lineage(KAFKA)
    assert before is not None
    assert after is not None
    assert before.columns["page"] == after.columns["page"]
    assert before.columns["n"] != after.columns["n"]


LEAVES: list[Any] = [
    *("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "int", "logicalType": "timestamp-millis"},
    {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 38},
    {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 7},
    {"type": "bytes", "logicalType": "decimal"},
]
NAMED: list[Any] = [
    {"type": "enum", "symbols": ["A", "B"]},
    {"type": "fixed", "size": 16, "logicalType": "uuid"},
    {"type": "fixed", "size": 12, "logicalType": "duration"},
    *(
        {"type": "fixed", "size": n, "logicalType": "decimal", "precision": 9, "scale": 2}
        for n in (2, 3, 4, 5)
    ),
]


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """A record of fields of any types, with names of its own for those that need one."""
    count = 0

    def name() -> str:
        nonlocal count
        count += 1
        return draw(st.sampled_from(["", "a.b."])) + f"T{count}"

    def one(depth: int) -> Any:
        kind = draw(
            st.sampled_from(["leaf", "leaf", "named", *(["array", "map", "record", "union"] * (depth > 0))])
        )
        if kind == "named":
            return {**draw(st.sampled_from(NAMED)), "name": name()}
        if kind == "array":
            return {"type": "array", "items": one(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": one(depth - 1)}
        if kind == "record":
            fields = [{"name": f"f{n}", "type": one(depth - 1)} for n in range(draw(st.integers(0, 3)))]
            return {"type": "record", "name": name(), "fields": fields}
        if kind == "union":
            branches = draw(st.lists(st.sampled_from(LEAVES), max_size=4, unique_by=_kind))
            if draw(st.booleans()):
                branches.append({**draw(st.sampled_from(NAMED)), "name": name()})
            return branches
        return draw(st.sampled_from(LEAVES))

    fields = [{"name": f"c{n}", "type": one(2)} for n in range(draw(st.integers(1, 4)))]
    return {"type": "record", "name": name(), "fields": fields}


def _kind(part: Any) -> str:
    return str(part["type"]) if isinstance(part, dict) else str(part)


@pytest.mark.spark
def test_columns_are_those_that_spark_makes(spark: SparkSession) -> None:
    df = spark.createDataFrame([], "value binary")

    @settings(max_examples=examples(20, 800), deadline=None, suppress_health_check=list(HealthCheck))
    @given(schemas())
    def agrees(schema: dict[str, Any]) -> None:
        gem = made(FromAvro, column="value", schema=schema)
        result: Any = gem.apply(df)
        assert_agrees(gem.infer(Facts(streaming=False)), result)

    agrees()


@pytest.mark.spark
@pytest.mark.parametrize("schema", ['"strnig"', "{'type': 'int'}", '{"type": "map"}', '["int", "int"]'])
def test_spark_refuses_what_is_refused(spark: SparkSession, schema: str) -> None:
    from pyspark.sql.avro.functions import from_avro

    with pytest.raises(AvroSchemaError):
        AvroSchema(schema)
    with pytest.raises(Exception, match=r"avro|Avro"):
        spark.createDataFrame([], "value binary").select(from_avro("value", schema)).schema  # noqa: B018


def _why(spark: SparkSession, messages: list[bytes | None], **options: Any) -> list[Any]:
    """For each message its fields, or the names of the reasons for which it is rejected."""
    rows = [(n, None if each is None else bytearray(each)) for n, each in enumerate(messages)]
    df = spark.createDataFrame(rows, "number int, value binary")
    parsed = made(FromAvro, column="value", rejects=True, keep=True, **options)
    result: Any = parsed.apply(df)
    good = {row.number: tuple(row)[1:] for row in result.collect()}
    rejected = rejected_rows(parsed.reject(df), Rejecting("p", "1", "parsed", "from_avro"))
    bad = {json.loads(row.row)["number"]: [why.name for why in row.reasons] for row in rejected.collect()}
    assert sorted([*good, *bad]) == list(range(len(messages)))
    return [good.get(n, bad.get(n)) for n in range(len(messages))]


@pytest.mark.spark
def test_why_messages_are_rejected(spark: SparkSession) -> None:
    messages = [
        b"\x04ab\x00",
        b"\x00\x02\x02",
        None,
        b"",
        b"\x04a",
        b"\x04ab\x02",
        b"\x04ab\x00\x00",
        b"\x04ab\x08",
    ]
    bad = ["not_avro"]
    assert _why(spark, messages, schema=CLICK) == [
        ("ab", None),
        ("", 1),
        ["no_message"],
        bad,
        bad,
        bad,
        bad,
        bad,
    ]
    nulls = record(("a", ["null", "int"]))
    assert _why(spark, [b"\x00"], schema=nulls) == [(None,)]
    absent = ["null", CLICK]
    messages = [b"\x00", b"\x02\x04ab\x00", b"\x02\x04ab", b"\x00\x00"]
    assert _why(spark, messages, schema=absent) == [(None, None), ("ab", None), bad, bad]


@pytest.mark.spark
def test_a_message_is_read_once(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    df = spark.createDataFrame([(bytearray(b"\x04ab\x00"),)], "value binary")
    gem = made(FromAvro, column="value", schema=CLICK, rejects=True)
    good: Any = gem.apply(df)
    rejected = rejected_rows(gem.reject(df), Rejecting("p", "1", "parsed", "from_avro"))
    capsys.readouterr()
    for made_of_it in (good, rejected):
        made_of_it.explain()
        assert capsys.readouterr().out.count("from_avro(") == 1


@pytest.mark.spark
def test_the_header_is_told_and_another_id_is_rejected(spark: SparkSession) -> None:
    head = b"\x00\x00\x00\x01\x02"
    messages = [
        head + b"\x04ab\x00",
        b"\x01" + head[1:] + b"\x04ab\x00",
        b"\x00\x00\x00\x00\x07\x04ab\x00",
        b"\x00",
        head,
    ]
    found = _why(spark, messages, schema=CLICK, schema_id=258)
    assert found == [("ab", None), ["no_header"], ["unknown_schema"], ["no_header"], ["not_avro"]]


@pytest.mark.spark
def test_messages_of_an_older_schema(spark: SparkSession) -> None:
    newer = record(("page", "string"), ("n", ["null", "long"]))
    newer["fields"].append({"name": "team", "type": "string", "default": "web"})
    found = _why(spark, [b"\x04ab\x02\x0e"], schema=newer, writer_schema=CLICK)
    assert found == [("ab", 7, "web")]
    elsewhere = {**CLICK, "namespace": "shop"}
    assert _why(spark, [b"\x04ab\x02\x02"], schema=newer, writer_schema=elsewhere) == [("ab", 1, "web")]
    renamed = record(("url", "string"))
    assert _why(spark, [b"\x04ab\x00"], schema=renamed, writer_schema=CLICK) == [["not_avro"]]


@pytest.mark.spark
def test_what_is_written_is_read_again(spark: SparkSession) -> None:
    df = spark.sql("select 'a' as page, cast(null as int) as n, 9 as other union all select 'b', 2, 9")
    for options in ({}, {"schema_id": 3}):
        packed: Any = made(ToAvro, columns=["page", "n"], schema=CLICK, **options).apply(df)
        assert packed.columns == ["value"]
        read: Any = made(FromAvro, column="value", schema=CLICK, mode="failfast", **options).apply(packed)
        assert sorted(map(tuple, read.collect())) == [("a", None), ("b", 2)]
    (first, _) = sorted(bytes(row.value) for row in packed.collect())
    assert first == b"\x00\x00\x00\x00\x03\x02a\x00"
    kept: Any = made(ToAvro, column="n", keep=True).apply(df)
    assert kept.columns == ["page", "n", "other"]


@pytest.mark.spark
def test_the_column_is_replaced_however_it_is_written(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, bytearray(b"\x04ab\x00"), "t")], "number int, Value binary, topic string")
    for options in ({}, {"rejects": True}):
        gem = made(FromAvro, column="VALUE", schema=CLICK, keep=True, **options)
        read: Any = gem.apply(df)
        assert_agrees(gem.infer(facts_of(df)), read)
        assert [tuple(row) for row in read.collect()] == [(1, "t", "ab", None)]


PAIRS = [
    ("string", "string"),
    ("string", {"type": "enum", "name": "E", "symbols": ["a"]}),
    ("string", "bytes"),
    ("string", {"type": "string", "logicalType": "uuid"}),
    ("binary", "bytes"),
    ("binary", {"type": "fixed", "name": "F", "size": 1}),
    ("binary", "string"),
    ("int", "int"),
    ("int", "long"),
    ("int", ["null", "int"]),
    ("tinyint", "int"),
    ("smallint", "long"),
    ("bigint", "long"),
    ("bigint", "int"),
    ("bigint", "double"),
    ("float", "float"),
    ("float", "double"),
    ("double", "double"),
    ("double", "float"),
    ("boolean", "boolean"),
    ("boolean", "int"),
    ("date", {"type": "int", "logicalType": "date"}),
    ("date", "string"),
    ("timestamp", {"type": "long", "logicalType": "timestamp-millis"}),
    ("timestamp", "string"),
    ("timestamp_ntz", {"type": "long", "logicalType": "local-timestamp-micros"}),
    ("timestamp_ntz", "int"),
    ("decimal(9,2)", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    ("decimal(9,2)", "double"),
    ("array<int>", {"type": "array", "items": "int"}),
    ("array<int>", {"type": "array", "items": "string"}),
    ("array<int>", "int"),
    ("map<string,int>", {"type": "map", "values": ["null", "int"]}),
    ("map<string,int>", {"type": "map", "values": "boolean"}),
    ("struct<a: int>", record(("a", "int"), name="S")),
    ("struct<a: int>", record(("A", ["null", "int"]), ("b", ["null", "int"]), name="S")),
    ("struct<a: int>", record(("a", "int"), ("b", "int"), name="S")),
    ("struct<a: int, b: int>", record(("a", "int"), name="S")),
]


@pytest.mark.spark
def test_what_is_told_of_columns_before_a_start_is_what_spark_fails_at(spark: SparkSession) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    for kind, part in drawn(PAIRS, 3):
        rows = table_of(Column("x", kind), Column("y", "int"))
        gem = made(ToAvro, schema=record(("x", part), ("y", "int")))
        # An empty row is enough: what can't be written is found out before its value is looked at.
        df = spark.createDataFrame([(None, 1)], f"x {kind}, y int").repartition(1)
        try:
            cast("Any", gem.apply(df)).collect()
            refused = False
        except (PySparkException, Py4JJavaError) as error:
            refused = "INCOMPATIBLE" in str(error).upper() or "Cannot convert" in str(error)
        assert bool(list(gem.check(rows))) == refused, (kind, part)


@pytest.mark.spark
def test_messages_that_can_not_be_read_are_nulls_or_fail(spark: SparkSession) -> None:
    df = spark.createDataFrame([(bytearray(b"\x04a"),)], "value binary").repartition(1)
    read: Any = made(FromAvro, column="value", schema=CLICK).apply(df)
    assert [tuple(row) for row in read.collect()] == [(None, None)]
    failing: Any = made(FromAvro, column="value", schema=CLICK, mode="FAILFAST").apply(df)
    with pytest.raises(Exception, match=r"MALFORMED_AVRO_MESSAGE|Malformed"):
        failing.collect()
    for options, nulls in (({}, True), ({"mode": "FAILFAST"}, False)):
        other: Any = made(FromAvro, column="value", schema=CLICK, schema_id=7, **options).apply(df)
        if nulls:
            assert [tuple(row) for row in other.collect()] == [(None, None)]
        else:
            with pytest.raises(Exception, match="doesn't begin with a zero byte and the id 7"):
                other.collect()
