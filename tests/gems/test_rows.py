"""The source `rows`: every value as it stands, or a sentence that says which one doesn't fit."""

import datetime as dt
from decimal import Decimal

import pytest
from pydantic import ValidationError

from gem_bundle import Column, GemError, ReadContext
from gem_rows.source import RowsSource

FITTING = {
    "a tinyint": (127, 127),
    "a smallint": (-32768, -32768),
    "a int": (2147483647, 2147483647),
    "a bigint": (9223372036854775807, 9223372036854775807),
    "a float": (1, 1.0),
    "a double": (1.5, 1.5),
    "a double not null": (float("-inf"), float("-inf")),
    "a boolean": (True, True),
    "a string": ("ä\n\"'`", "ä\n\"'`"),
    "a string not null": ("", ""),
    "a decimal(10,2)": (1.1, Decimal("1.10")),
    "a decimal(38,0)": ("1" * 38, Decimal("1" * 38)),
    "a decimal(5,3)": (Decimal("1E-3"), Decimal("0.001")),
    "a date": ("2024-02-29", dt.date(2024, 2, 29)),
    "a date not null": (dt.date(2024, 2, 29), dt.date(2024, 2, 29)),
    "a timestamp_ntz": ("2024-01-31 10:00:00.123456", dt.datetime(2024, 1, 31, 10, 0, 0, 123456)),
    "a binary": ("aGk=", bytearray(b"hi")),
    "a binary not null": (b"hi", bytearray(b"hi")),
    "a array<int>": ([1, None, 3], [1, None, 3]),
    "a map<string, date>": ({"x": "2024-01-31", "y": None}, {"x": dt.date(2024, 1, 31), "y": None}),
    "a struct<x: int, y: array<struct<z: timestamp_ntz>>>": (
        {"y": [{"z": "2024-01-31T00:00"}, [None]]},
        {"x": None, "y": [{"z": dt.datetime(2024, 1, 31)}, {"z": None}]},
    ),
    "a interval day to second": ("INTERVAL '1 02:00:00' DAY TO SECOND", dt.timedelta(days=1, hours=2)),
}
MISFITS = [
    ("a tinyint", 128, "`a` is too large for the type tinyint: 128"),
    ("a int", 2**31, "is too large for the type int"),
    ("a int", 1.0, "must be a whole number, not `1.0`"),
    ("a int", "1", "must be a whole number, not `1`"),
    ("a int", True, "must be a whole number, not `true`"),
    ("a float", 1e39, "is too large for the type float"),
    ("a double", "1.5", "must be a number"),
    ("a boolean", "true", "must be true or false, not `true`"),
    ("a boolean", 1, "must be true or false, not `1`"),
    ("a string", 7, "must be text, not `7`; put it in quotes"),
    ("a decimal(4,2)", 100, "is too large for the type decimal(4,2): 100"),
    ("a decimal(4,2)", 1.234, "has more digits than the type decimal(4,2) holds: 1.234"),
    ("a decimal(4,2)", "NaN", "is too large"),
    ("a decimal(4,2)", "one", "must be a number, not `one`"),
    ("a date", "31.01.2024", "must be a date such as `2024-01-31`, not `31.01.2024`"),
    ("a date", dt.datetime(2024, 1, 31), "must be a date"),
    ("a date", 5, "must be a date"),
    ("a timestamp", "yesterday", "must be a time such as `2024-01-31T10:00:00`"),
    ("a timestamp_ntz", "2024-01-31T10:00:00Z", "must be a time without a time zone"),
    ("a binary", "not base64", "must be bytes in base64"),
    ("a array<int>", 1, "must be a list, not `1`"),
    ("a array<int>", [1, "x"], "`a[1]` must be a whole number"),
    ("a map<string, int>", {"k": "x"}, "`a.k` must be a whole number"),
    ("a map<int, int>", {1: 2}, "keys of type string"),
    ("a map<string, int>", {1: 2}, "must be a mapping with texts as keys"),
    ("a struct<x: int>", {"y": 1}, "`a.y` is no column of the schema. Known columns: `x`."),
    ("a struct<x: int>", [1, 2], "`a` has 2 values for 1 columns (x)"),
    ("a struct<x: array<struct<y: date>>>", {"x": [None, {"y": 1}]}, "`a.x[1].y` must be a date"),
    ("a struct<x: int>", 5, "must be a mapping of columns to values, or a list of values, not `5`"),
    ("a int not null", None, "`a` is missing or null, and the schema says NOT NULL"),
]


def source(rows, schema=None):
    raw = {"rows": rows} if schema is None else {"rows": rows, "schema": schema}
    return RowsSource(RowsSource.options_type.model_validate(raw))


def problem(rows, schema=None):
    with pytest.raises(ValidationError) as caught:
        source(rows, schema)
    (error,) = caught.value.errors()
    return error["msg"].removeprefix("Value error, ")


@pytest.mark.spark
@pytest.mark.parametrize(("schema", "pair"), FITTING.items(), ids=FITTING)
def test_a_value_becomes_what_it_says(spark, schema, pair):
    given, expected = pair
    (row,) = source([{"a": given}], schema).read(ReadContext("x", spark)).collect()
    assert row.asDict(recursive=True) == {"a": expected}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2024-01-31", "2024-01-31 00:00:00"),
        ("2024-01-31T10:00", "2024-01-31 10:00:00"),
        ("2024-01-31T10:00:00.5+02:00", "2024-01-31 08:00:00.5"),
        (dt.datetime(2024, 1, 31, 10), "2024-01-31 10:00:00"),
        (dt.datetime(2024, 1, 31, 10, tzinfo=dt.timezone(dt.timedelta(hours=-5))), "2024-01-31 15:00:00"),
    ],
)
def test_times_without_a_zone_are_in_the_sessions(spark, given, expected):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    df = source([{"a": given}], "a timestamp").read(ReadContext("x", spark))
    assert df.selectExpr("cast(a as string) as a").first().a == expected


@pytest.mark.spark
def test_every_way_to_write_rows(spark):
    rows = [{"page": "home", "hits": 3}, ["cart", 4], {"hits": 5}, {}]
    df = source(rows, "page string, hits int").read(ReadContext("x", spark))
    assert [tuple(row) for row in df.collect()] == [("home", 3), ("cart", 4), (None, 5), (None, None)]
    assert df.dtypes == [("page", "string"), ("hits", "int")]
    assert not df.isStreaming


@pytest.mark.spark
def test_no_rows_are_an_empty_relation(spark):
    df = source([], "page string, at timestamp").read(ReadContext("x", spark))
    assert df.count() == 0
    assert df.columns == ["page", "at"]


@pytest.mark.spark
def test_columns_are_taken_from_the_values(spark):
    rows = [
        {"page": "home", "hits": None, "share": 1, "odd name": True},
        {"page": None, "hits": 3, "share": 0.5, "day": dt.date(2024, 1, 31), "at": dt.datetime(2024, 1, 31)},
    ]
    made = source(rows)
    expected = {
        "page": "string",
        "hits": "bigint",
        "share": "double",
        "odd name": "boolean",
        "day": "date",
        "at": "timestamp",
    }
    df = made.read(ReadContext("x", spark))
    assert dict(df.dtypes) == expected
    assert made.infer().columns == tuple(Column(name, kind) for name, kind in expected.items())
    assert [row.share for row in df.collect()] == [1.0, 0.5]


@pytest.mark.spark
def test_a_type_that_spark_refuses_is_named(spark):
    made = source([{"a": "x"}], "a varchar(3)")
    with pytest.raises(GemError, match="UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING") as caught:
        made.read(ReadContext("x", spark))
    assert (caught.value.code, caught.value.option) == ("GB205", "schema")


@pytest.mark.parametrize(("schema", "value", "message"), MISFITS)
def test_a_misfit_is_named_with_its_place(schema, value, message):
    fine = {"a": None} if "not null" not in schema else {"a": 1}
    found = problem([fine, {"a": value}], schema)
    assert found.startswith("row 2: ")
    assert message in found


def test_all_misfits_are_reported_at_once():
    found = problem([{"a": "x"}] * 7, "a int")
    assert [f"row {n}:" in found for n in range(1, 8)] == [True] * 5 + [False] * 2
    assert found.endswith("and 2 more")


@pytest.mark.parametrize(
    ("rows", "schema", "message"),
    [
        ([[1, 2]], None, "rows without names of columns need a `schema`"),
        ([], None, "without any row there must be a `schema`"),
        ([{"a": None}], None, "`a` is always null"),
        ([{"a": 1}, {"a": "x"}], None, "`a` has values of type bigint and string; give a `schema`"),
        ([{"a": True}, {"a": 1}], None, "`a` has values of type boolean and bigint"),
        ([{"a": [1]}], None, "a list needs a type; give a `schema`"),
        ([{"pgae": "x"}], "page string", "row 1: `pgae` is no column of the schema. Did you mean `page`?"),
        ([[1]], "a int, b int", "row 1: has 1 values for 2 columns (a, b)"),
        ([{"a": 1}], "a int not nul", "`not` can't stand behind the type of `a`"),
    ],
)
def test_rows_that_can_not_be(rows, schema, message):
    assert message in problem(rows, schema)


def test_a_row_is_a_mapping_or_a_list():
    with pytest.raises(ValidationError) as caught:
        source(["home"], "page string")
    assert {error["loc"][:2] for error in caught.value.errors()} == {("rows", 0)}


def test_it_is_no_stream():
    assert not RowsSource.semantics.streaming
    assert source(**RowsSource.example).infer().columns == (
        Column("page", "string"),
        Column("team", "string"),
    )
