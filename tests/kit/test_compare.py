"""Values of tests and rows that are compared, without a JVM."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gem_bundle.pipeline.document import parse
from gem_bundle.schema import DataType, StructField, fields_of, type_of
from gem_bundle.testing.rows.compare import Difference, Expected, compare
from gem_bundle.testing.rows.notation import flow
from gem_bundle.testing.values import MisfitError, Reader, Shower, TextRow, zone_of

OSLO = "Europe/Oslo"


def fields(ddl: str) -> tuple[StructField, ...]:
    found = fields_of(ddl)
    assert found is not None
    return found


def kind(text: str) -> DataType:
    found = type_of(text)
    assert found is not None
    return found


def difference(
    ddl: str, expected: list[Any] | None, came: list[Any], time_zone: str = "UTC", **rest: Any
) -> Difference | None:
    """How rows differ; those that came are written as those that were expected."""
    columns = fields(ddl)
    rows = [Reader(time_zone).row(row, columns) for row in came]
    return compare(Expected(expected, **rest), rows, columns, time_zone)


# Values


@pytest.mark.parametrize(
    ("ddl", "written", "meant"),
    [
        ("boolean", True, True),
        ("tinyint", -128, -128),
        ("int", 3.0, 3),
        ("bigint", 1 << 62, 1 << 62),
        ("double", 1, 1.0),
        ("float", 0.1, 0.10000000149011612),
        ("decimal(10,2)", 10.1, Decimal("10.10")),
        ("decimal(10,2)", "10.1", Decimal("10.10")),
        (
            "decimal(38,18)",
            "12345678901234567890.123456789012345678",
            Decimal("12345678901234567890.123456789012345678"),
        ),
        ("string", "a b", "a b"),
        ("char(3)", "a", "a  "),
        ("varchar(3)", "abc", "abc"),
        ("string collate UNICODE", "a", "a"),
        ("binary", "æ", "æ".encode()),
        ("binary", "0x00fF", b"\x00\xff"),
        ("date", "2026-01-05", date(2026, 1, 5)),
        ("timestamp", "2026-01-05 09:05:00", datetime(2026, 1, 5, 8, 5, tzinfo=UTC)),
        ("timestamp", "2026-01-05T09:05:00.25Z", datetime(2026, 1, 5, 9, 5, 0, 250_000, tzinfo=UTC)),
        ("timestamp", "2026-07-05", datetime(2026, 7, 4, 22, 0, tzinfo=UTC)),
        ("timestamp", "2026-01-05 09:05+05:30", datetime(2026, 1, 5, 3, 35, tzinfo=UTC)),
        ("timestamp", "2026-01-05 09:05 America/New_York", datetime(2026, 1, 5, 14, 5, tzinfo=UTC)),
        ("timestamp_ntz", "2026-01-05 09:05:00", datetime(2026, 1, 5, 9, 5)),
        ("time", "09:05:00.5", time(9, 5, 0, 500_000)),
        ("interval day to second", "1 hour 30 minutes", timedelta(minutes=90)),
        ("interval day to second", "-1 day 0.5 seconds", -timedelta(days=1, milliseconds=500)),
        ("array<int>", [1, None], (1, None)),
        ("map<string,int>", {"a": 1}, {"a": 1}),
        ("map<int,string>", {"1": "a"}, {1: "a"}),
        ("map<timestamp,int>", [{"key": "2026-01-05Z", "value": 1}], {datetime(2026, 1, 5, tzinfo=UTC): 1}),
        ("struct<a: int, b: string>", {"b": "x"}, (None, "x")),
        ("struct<a: int, b: string>", [1, "x"], (1, "x")),
        (
            "array<struct<at: timestamp>>",
            [{"at": "2026-01-05 01:00:00"}],
            ((datetime(2026, 1, 5, tzinfo=UTC),),),
        ),
        ("variant", {"a": [1]}, {"a": [1]}),
        ("int", None, None),
        ("void", None, None),
    ],
)
def test_a_written_value_means_a_value_of_its_column(ddl: str, written: Any, meant: Any) -> None:
    found = Reader(OSLO).value(written, kind(ddl))

    assert found == meant
    assert type(found) is type(meant)


@pytest.mark.parametrize(
    ("ddl", "written", "reason"),
    [
        ("boolean", "true", "`true` is not a boolean: write `true` or `false`"),
        ("int", "12", "`12` is not an int: write it without quotes"),
        ("int", 1.5, "`1.5` is not an int: write a whole number"),
        ("int", True, "`true` is not an int: write a whole number"),
        ("tinyint", 128, "`128` is not a tinyint: that is a number from -128 to 127"),
        ("double", "x", "`x` is not a double: write a number"),
        ("decimal(4,2)", 100, "`100` is not a decimal(4,2): it has 3 digits before the point, and 2 fit"),
        ("decimal(4,2)", 0.125, "`0.125` is not a decimal(4,2): it has more than 2 digits after the point"),
        ("decimal(4,2)", "x", "`x` is not a decimal(4,2): write a number"),
        ("string", 5, "`5` is not a string: put it in quotes"),
        ("string", [], "`[]` is not a string: write a text"),
        ("varchar(2)", "abc", "`abc` is not a varchar(2): it has 3 characters"),
        ("binary", 5, "`5` is not a binary: write a text, or `0x` and hexadecimal digits"),
        ("date", "5 January", "`5 January` is not a date: write one such as `2026-01-05`"),
        ("timestamp", "09:05", "`09:05` is not a timestamp: write one such as `2026-01-05 09:05:00`"),
        (
            "timestamp",
            "2026-02-30 00:00:00",
            "`2026-02-30 00:00:00` is not a timestamp: write one such as `2026-01-05 09:05:00`",
        ),
        (
            "timestamp",
            "2026-02-03 00:00 Nowhere/City",
            "`2026-02-03 00:00 Nowhere/City` is not a timestamp: write one such as `2026-01-05 09:05:00`",
        ),
        (
            "timestamp",
            "0001-01-01 00:00:00",
            "`0001-01-01 00:00:00` is not a timestamp: its year is none from 1 to 9999",
        ),
        (
            "timestamp_ntz",
            "2026-01-05 09:05Z",
            "`2026-01-05 09:05Z` is not a timestamp_ntz: it has no time zone; leave it out",
        ),
        ("time", "25:00", "`25:00` is not a time(6): write one such as `09:05:00`"),
        (
            "interval day to second",
            "1 month",
            "`1 month` is not an interval day to second: write one such as `1 hour 30 minutes`",
        ),
        ("array<int>", 1, "`1` is not an array<int>: write a list"),
        ("map<string,int>", 1, "`1` is not a map<string, int>: write a mapping"),
        ("struct<a: int>", 1, "`1` must be a mapping of columns to values"),
        ("struct<a: int>", [1, 2], "`[1, 2]` has 2 values, and there are 1 columns"),
        ("void", 1, "`1` is not a void: write `null`"),
        (
            "interval year to month",
            "1 year",
            "a test can't write values of the type `interval year to month`",
        ),
    ],
)
def test_a_value_that_its_column_cant_hold_is_refused_with_a_reason(
    ddl: str, written: Any, reason: str
) -> None:
    with pytest.raises(MisfitError) as caught:
        Reader(OSLO).value(written, kind(ddl))

    assert str(caught.value) == reason


def test_what_is_wrong_inside_a_value_says_where_it_is() -> None:
    columns = fields("order struct<items: array<struct<price: decimal(4,2)>>>")

    with pytest.raises(MisfitError) as caught:
        Reader().row({"order": {"items": [{"price": 1}, {"price": "x"}]}}, columns)

    assert str(caught.value) == "`order.items[1].price`: `x` is not a decimal(4,2): write a number"
    assert caught.value.path == ("order", "items", 1, "price")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"shopp": "Oslo"}, "there is no column `shopp`. Did you mean `shop`?"),
        (["Oslo"], '`["Oslo"]` has 1 values, and there are 2 columns'),
        ("Oslo", "`Oslo` must be a mapping of columns to values"),
    ],
)
def test_a_row_that_doesnt_fit_its_columns_is_refused(row: Any, reason: str) -> None:
    with pytest.raises(MisfitError) as caught:
        Reader().row(row, fields("shop string, amount int"))

    assert str(caught.value) == reason


def test_values_of_csv_files_are_texts_whatever_they_mean() -> None:
    columns = fields(
        "a boolean, b int, c double, d decimal(4,2), e string, f date, g array<int>, h struct<x: int>, i map<int,int>"
    )
    texts = (" True", "7 ", "1e3", "1.5", "12", "2026-01-05", "[1, 2]", '{"x": 1}', '{"1": 2}')
    row = TextRow(zip((column.name for column in columns), texts, strict=True))

    found = Reader().row(row, columns)

    assert found == (True, 7, 1000.0, Decimal("1.50"), "12", date(2026, 1, 5), (1, 2), (1,), {1: 2})
    with pytest.raises(MisfitError, match="`b`: `x` is not an int"):
        Reader().row(TextRow(b="x"), columns)
    with pytest.raises(MisfitError, match="`g`: `1, 2` is not JSON"):
        Reader().row(TextRow(g="1, 2"), columns)


def test_an_hour_that_comes_twice_is_shown_with_its_offset_the_second_time() -> None:
    timestamp = kind("timestamp")
    first, second = (datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1))

    shown = [Shower(OSLO).value(moment, timestamp) for moment in (first, second)]

    assert shown == ["2026-10-25 02:30:00", "2026-10-25 02:30:00+01:00"]
    assert [Reader(OSLO).value(text, timestamp) for text in shown] == [first, second]


@pytest.mark.parametrize(
    ("name", "hours"), [("UTC", 0), ("+02:00", 2), ("GMT-3", -3), ("Asia/Kolkata", 5.5), ("UTC+01:30", 1.5)]
)
def test_time_zones_have_the_names_that_spark_takes(name: str, hours: float) -> None:
    assert datetime(2026, 1, 1, tzinfo=zone_of(name)).utcoffset() == timedelta(hours=hours)


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no time zone `Mars/Base`"):
        zone_of("Mars/Base")


def _values_of(kind_text: str) -> st.SearchStrategy[Any]:
    moments = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
    simple: dict[str, st.SearchStrategy[Any]] = {
        "boolean": st.booleans(),
        "int": st.integers(-(1 << 31), (1 << 31) - 1),
        "double": st.floats(allow_nan=False),
        "float": st.floats(width=32, allow_nan=False),
        "decimal(38,6)": st.decimals(-(10**30), 10**30, places=6, allow_nan=False),
        "string": st.text(st.characters(blacklist_categories=["Cs"])),
        "binary": st.binary(),
        "date": st.dates(),
        "timestamp": moments,
        "timestamp_ntz": st.datetimes(),
        "time": st.times(),
        "interval day to second": st.timedeltas(timedelta(days=-10_000), timedelta(days=10_000)),
    }
    return simple[kind_text]


_SIMPLE = [
    *("boolean", "int", "double", "float", "decimal(38,6)", "string", "binary", "date", "timestamp"),
    *("timestamp_ntz", "time", "interval day to second"),
]


@settings(deadline=None)  # the machine may be busy
@given(st.data())
def test_what_is_shown_and_written_as_yaml_is_read_back(data: st.DataObject) -> None:
    inner = data.draw(st.sampled_from(_SIMPLE))
    value = st.none() | _values_of(inner)
    keys = _values_of(inner)
    composed = {
        inner: value,
        f"array<{inner}>": st.lists(value).map(tuple),
        f"map<{inner},{inner}>": st.dictionaries(keys, value, max_size=4),
        f"struct<a: {inner}, `b c`: array<{inner}>>": st.tuples(
            value, st.lists(value, max_size=3).map(tuple)
        ),
    }
    ddl = data.draw(st.sampled_from(sorted(composed)))
    drawn = data.draw(composed[ddl])

    text = f"value: {flow(Shower(OSLO).value(drawn, kind(ddl)))}"
    document = parse(text, "")

    assert document.diagnostics == []
    assert "\n" not in text
    assert Reader(OSLO).value(document.values["value"], kind(ddl)) == drawn


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("Oslo", "Oslo"),
        ("United Air Lines Inc.", "United Air Lines Inc."),
        ("2026-01-05 09:05:00", '"2026-01-05 09:05:00"'),
        ("no", '"no"'),
        ("", '""'),
        ("a: b", '"a: b"'),
        ('say "hi"\n', '"say \\"hi\\"\\n"'),
        ("\U000e0001", '"\\U000E0001"'),
        ("\u2028\x85", '"\\u2028\\x85"'),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (math.inf, ".inf"),
        (-math.inf, "-.inf"),
        (math.nan, ".nan"),
        (Decimal("10.00"), "10.00"),
        ({"a": [1, {"b": None}]}, "{a: [1, {b: null}]}"),
    ],
)
def test_values_are_written_as_people_write_them(value: Any, written: str) -> None:
    assert flow(value) == written
    assert repr(parse(f"x: {written}", "").values["x"]) == repr(
        float(value) if isinstance(value, Decimal) else value
    )


# Rows

SALES = "shop string, hour timestamp, orders bigint, sales double"
OSLO_9 = {"shop": "Oslo", "hour": "2026-01-05 09:00:00", "orders": 2, "sales": 30.5}
OSLO_10 = {"shop": "Oslo", "hour": "2026-01-05 10:00:00", "orders": 1, "sales": 7.0}
BERGEN_9 = {"shop": "Bergen", "hour": "2026-01-05 09:00:00", "orders": 1, "sales": 4.0}


def test_the_same_rows_in_any_order_are_the_same() -> None:
    assert difference(SALES, [OSLO_9, BERGEN_9, OSLO_9], [OSLO_9, OSLO_9, BERGEN_9]) is None


def test_a_row_that_comes_twice_is_expected_twice() -> None:
    found = difference(SALES, [OSLO_9, BERGEN_9], [OSLO_9, OSLO_9, BERGEN_9])

    assert str(found) == (
        "1 row is unexpected, 2 are as expected\n"
        '+ {shop: Oslo, hour: "2026-01-05 09:00:00", orders: 2, sales: 30.5}'
    )


def test_a_row_that_differs_is_shown_with_the_nearest_one_that_was_expected() -> None:
    more = {**OSLO_9, "orders": 3, "sales": 31.0}

    found = difference(SALES, [BERGEN_9, OSLO_9, OSLO_10], [OSLO_10, more])

    assert str(found) == (
        "1 row differs, 1 row is missing, 1 is as expected\n"
        '~ {shop: Oslo, hour: "2026-01-05 09:00:00"}\n'
        "      orders  expected 2, got 3\n"
        "      sales   expected 30.5, got 31.0\n"
        '- {shop: Bergen, hour: "2026-01-05 09:00:00", orders: 1, sales: 4.0}'
    )


def test_rows_that_have_nothing_in_common_are_missing_and_unexpected() -> None:
    found = difference("a int, b string", [{"a": 1, "b": "v"}], [{"a": 2, "b": "w"}])

    assert str(found) == "1 row is missing, 1 row is unexpected\n- {a: 1, b: v}\n+ {a: 2, b: w}"


def test_no_rows_are_expected_only_where_none_come() -> None:
    assert difference(SALES, [], []) is None
    assert str(difference(SALES, [], [OSLO_10])).startswith("1 row is unexpected\n+ {shop: Oslo")
    assert str(difference(SALES, [OSLO_10], [])).startswith("1 row is missing\n- {shop: Oslo")


def test_rows_in_order_are_compared_each_at_its_place() -> None:
    rows = [OSLO_9, BERGEN_9, OSLO_10]

    assert difference(SALES, rows, rows, ordered=True) is None
    assert str(difference(SALES, rows, [OSLO_9, OSLO_10, BERGEN_9], ordered=True)) == (
        "the rows are those expected but in another order, from row 2 on\n"
        '- row 2: {shop: Bergen, hour: "2026-01-05 09:00:00", orders: 1, sales: 4.0}\n'
        '+ row 2: {shop: Oslo, hour: "2026-01-05 10:00:00", orders: 1, sales: 7.0}\n'
        '- row 3: {shop: Oslo, hour: "2026-01-05 10:00:00", orders: 1, sales: 7.0}\n'
        '+ row 3: {shop: Bergen, hour: "2026-01-05 09:00:00", orders: 1, sales: 4.0}'
    )
    assert str(difference(SALES, rows, [OSLO_9, {**BERGEN_9, "orders": 9}], ordered=True)) == (
        "1 row differs, 1 row is missing, 1 is as expected\n"
        '~ row 2: {shop: Bergen, hour: "2026-01-05 09:00:00", sales: 4.0}\n'
        "      orders  expected 1, got 9\n"
        '- row 3: {shop: Oslo, hour: "2026-01-05 10:00:00", orders: 1, sales: 7.0}'
    )
    assert str(difference(SALES, rows, [OSLO_9, BERGEN_9, OSLO_9, OSLO_10], ordered=True)).startswith(
        "1 row is unexpected, 3 are as expected\n+ row 3: {shop: Oslo"
    )


def test_a_column_that_a_row_leaves_out_is_null() -> None:
    assert difference("a int, b int", [{"a": 1}], [{"a": 1, "b": None}]) is None
    assert str(difference("a int, b int", [{"a": 1}], [{"a": 1, "b": 2}])) == (
        "1 row differs\n~ {a: 1}\n      b  expected null, got 2"
    )


def test_columns_that_a_subset_leaves_out_dont_matter() -> None:
    rows = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]

    assert difference("a int, b int", [{"a": 1}, {"a": 3}], rows, subset=True) is None
    assert str(difference("a int, b int", [{"a": 1}], rows, subset=True)) == (
        "1 row is unexpected, 1 is as expected\n+ {a: 3}"
    )
    assert str(difference("a int, b int", [{"a": 1}, {"b": 4}], rows, subset=True)).startswith(
        "no row can be as expected: `row 1`: it doesn't say what `b` is\n+ {a: 1, b: 2}"
    )


def test_rows_may_be_lists_of_the_values_of_all_columns() -> None:
    assert difference("a int, b string", [[1, "x"]], [{"a": 1, "b": "x"}]) is None
    assert "1 row differs" in str(difference("a int, b string", [[1, "x"]], [{"a": 1, "b": "y"}]))


def test_a_column_that_there_is_none_of_is_named_with_the_rows_that_came() -> None:
    assert str(difference("shop string", [{"shopp": "Oslo"}], [{"shop": "Oslo"}])) == (
        "there is no column `shopp`. Did you mean `shop`?\n+ {shop: Oslo}"
    )


def test_a_value_that_no_row_can_have_says_so() -> None:
    assert str(difference("a int", [{"a": 1}, {"a": "x"}], [{"a": 1}])) == (
        "no row can be as expected: `row 2.a`: `x` is not an int: write a whole number\n+ {a: 1}"
    )


@pytest.mark.parametrize(
    ("ddl", "expected", "came", "same"),
    [
        ("double", 0.3, 0.1 + 0.2, True),
        ("double", 0.3, 0.3000001, False),
        ("double", ".nan", math.nan, True),
        ("double", math.inf, math.inf, True),
        ("double", math.inf, -math.inf, False),
        ("double", 0.0, 1e-15, True),
        ("double", 1e-300, None, False),
        ("float", 16777216.0, 16777217.0, True),
        ("float", 1.5, 1.501, False),
        ("decimal(10,2)", 0.3, Decimal("0.30"), True),
        ("decimal(10,2)", 0.3, Decimal("0.31"), False),
        ("array<double>", [0.3], [0.1 + 0.2], True),
        ("array<double>", [0.3, 1], [0.3], False),
        ("map<string,double>", {"a": 0.3}, {"a": 0.1 + 0.2}, True),
        ("map<string,double>", {"a": 0.3}, {"b": 0.3}, False),
        ("struct<a: double, b: string>", {"a": 0.3, "b": "x"}, {"a": 0.1 + 0.2, "b": "x"}, True),
        ("struct<a: double, b: string>", {"a": 0.3, "b": "x"}, {"a": 0.3, "b": "y"}, False),
        ("array<int>", [1, 2], [2, 1], False),
        ("map<string,int>", {"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ("binary", "0x6162", "ab", True),
        ("string", None, "", False),
        ("variant", {"a": 1}, {"a": True}, False),
    ],
)
def test_values_are_the_same_by_their_types(ddl: str, expected: Any, came: Any, same: bool) -> None:
    expected = math.nan if expected == ".nan" else expected
    column = f"id int, v {ddl}"

    found = difference(column, [{"id": 1, "v": expected}], [{"id": 1, "v": came}])

    assert (found is None) is same
    assert (difference(column, [{"id": 1, "v": came}], [{"id": 1, "v": expected}]) is None) is same


def test_timestamps_are_those_of_the_sessions_time_zone() -> None:
    came = [(datetime(2026, 7, 5, 7, 0, tzinfo=UTC),)]
    columns = fields("at timestamp")

    assert compare(Expected([{"at": "2026-07-05 09:00:00"}]), came, columns, OSLO) is None
    assert str(compare(Expected([{"at": "2026-07-05 07:00:00"}]), came, columns, OSLO)) == (
        '1 row is missing, 1 row is unexpected\n- {at: "2026-07-05 07:00:00"}\n+ {at: "2026-07-05 09:00:00"}'
    )


def test_a_count_is_compared() -> None:
    assert difference("a int", None, [{"a": 1}, {"a": 2}], count=2) is None
    assert str(difference("a int", None, [{"a": 1}, {"a": 2}], count=3)) == (
        "3 rows expected, 2 came\n+ {a: 1}\n+ {a: 2}"
    )
    assert str(difference("a int", [{"a": 1}], [{"a": 1}, {"a": 2}], count=1)) == (
        "1 row expected, 2 came; 1 row is unexpected, 1 is as expected\n+ {a: 2}"
    )


def test_a_schema_is_compared_by_names_types_and_order() -> None:
    assert difference("a int, b bigint", None, [], schema="a integer, b long NOT NULL") is None
    assert str(difference("a int, b bigint", None, [], schema="a int, b int, c string")) == (
        "the columns are not those expected\n- b int\n- c string\n+ b bigint"
    )
    assert str(difference("a int, b bigint", None, [], schema="b bigint, a int")) == (
        "the columns are not those expected\n- b, a\n+ a, b"
    )
    assert "(which can't be read)" in str(difference("a int", None, [], schema="a int int"))


def test_many_rows_and_long_ones_are_shortened() -> None:
    expected = [{"a": number, "b": "same"} for number in range(300)]
    came = [{"a": number, "b": "x" * 1000} for number in range(5000, 5040)]

    text = str(difference("a int, b string", expected, came))

    lines = text.splitlines()
    assert lines[0] == "300 rows are missing, 40 rows are unexpected"
    assert lines[1] == "- {a: 0, b: same}"
    assert lines[11] == "  … and 290 more"
    assert lines[22] == "  … and 30 more"
    assert len(lines) == 23
    assert max(map(len, lines)) < 310


def test_lines_are_painted_by_what_they_are() -> None:
    found = difference(
        "a int, b int", [{"a": 1, "b": 1}, {"a": 5, "b": 5}], [{"a": 1, "b": 2}, {"a": 7, "b": 7}]
    )
    assert found is not None

    painted = found.lines(lambda text, role: f"<{role}>{text}")

    assert painted == [
        "<changed>~ {a: 1}",
        "      b  expected 1, got 2",
        "<missing>- {a: 5, b: 5}",
        "<unexpected>+ {a: 7, b: 7}",
    ]


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.integers(0, 5)), st.randoms())
def test_rows_are_the_same_when_one_order_gives_the_other(numbers: list[int], random: Any) -> None:
    rows = [{"a": number, "b": number / 3} for number in numbers]
    shuffled = random.sample(rows, len(rows))

    assert difference("a int, b double", rows, shuffled) is None
    assert (difference("a int, b double", rows, shuffled, ordered=True) is None) is (rows == shuffled)
    if rows:
        assert difference("a int, b double", rows, shuffled[1:]) is not None
