"""The transforms that work on many columns at once, `clean`, `bulk_columns` and `dynamic_select`, and pivots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, GemError
from gem_columns.bulk_columns import BulkColumns
from gem_columns.clean import Clean
from gem_columns.dynamic_select import DynamicSelect
from gem_event_time.aggregate import Aggregate
from tests.gems.transforms import findings, kinds, made, stream_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = Column("at", "timestamp", "10 minutes")
ROWS = stream_of(
    AT, Column("src_id", "bigint"), Column("SRC_page", "string"), Column("cost", "decimal(10,2)"), Column("x")
)


@pytest.mark.parametrize(
    ("gem", "options", "words"),
    [
        (DynamicSelect, {}, "say which columns"),
        (DynamicSelect, {"matching": "("}, "no regular expression"),
        (DynamicSelect, {"types": ["strin"]}, "Did you mean `string`"),
        (BulkColumns, {"types": ["string"]}, "what becomes of the columns"),
        (BulkColumns, {"types": ["string"], "expression": "trim(page)"}, "has no `{column}`"),
        (BulkColumns, {"types": ["string"], "expression": "-{column}", "keep": True}, "needs a `name`"),
        (BulkColumns, {"matching": "a", "name": "{1}"}, "groups in `matching`"),
        (BulkColumns, {"matching": "a", "name": "{nme}"}, "is nothing"),
        (Clean, {}, "what to clean"),
        (Clean, {"nulls": {}}, "give a `text`"),
        (
            Aggregate,
            {"aggregates": {"n": "count(*)"}, "pivot": {"column": "a", "values": ["x", "X"]}},
            "twice",
        ),
        (
            Aggregate,
            {"aggregates": {"n": "count(*)"}, "pivot": {"column": "a", "values": [1.5]}},
            "in quotes",
        ),
    ],
)
def test_options_that_cant_be(gem: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        made(gem, **options)


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"matching": "^src_"}, ["src_id", "SRC_page"]),
        ({"matching": "^src_", "except_columns": ["SRC_ID"]}, ["SRC_page"]),
        ({"columns": ["cost", "AT"]}, ["at", "cost"]),
        ({"except_matching": "_|x"}, ["at", "cost"]),
    ],
)
def test_columns_are_chosen(choice: dict[str, Any], names: list[str]) -> None:
    found = made(DynamicSelect, **choice).infer(ROWS).columns
    assert found is not None
    assert [column.name for column in found] == names
    assert all(column in ROWS.columns for column in found if ROWS.columns)
    by_type = made(DynamicSelect, types=["number"])
    assert by_type.infer(ROWS).columns is None
    known = stream_of(*(column for column in ROWS.columns or () if column.type))
    assert [column.name for column in by_type.infer(known).columns or ()] == ["src_id", "cost"]


def test_what_is_chosen_is_checked() -> None:
    assert [f.code for f in findings(DynamicSelect, ROWS, columns=["gone"])] == ["GB210", "GB205"]
    assert findings(DynamicSelect, ROWS, types=["date"]) == []
    doubled = stream_of(Column("id", qualifier="a"), Column("id", qualifier="b"))
    assert [f.code for f in findings(DynamicSelect, doubled, matching="id")] == ["GB211"]
    (finding,) = findings(BulkColumns, ROWS, matching="^src_(.*)", name="y")
    assert finding.message == "there would be two columns `y`: of `src_id` and of `SRC_page`"
    (finding,) = findings(BulkColumns, ROWS, matching="(z?)$", name="{1}", columns=["at"])
    assert finding.message == "the column of `at` would have no name"
    (finding,) = findings(BulkColumns, ROWS, matching="gone", name="x")
    assert (finding.severity, finding.message) == ("warning", "no column is chosen, so nothing is changed")
    found = findings(BulkColumns, ROWS, matching="^src", expression="{column} + gone")
    assert [f.code for f in found] == ["GB210"]
    names = made(BulkColumns, matching="^src_(.*)", name="{1}").infer(ROWS).columns or ()
    assert [column.name for column in names] == ["at", "id", "page", "cost", "x"]
    assert names[0] == AT


def test_what_is_cleaned_is_checked() -> None:
    found = findings(Clean, ROWS, columns=["gone", "at", "src_id"], case="lower", nulls={"number": 0.5})
    assert [(f.code, f.message) for f in found] == [
        ("GB210", "there is no column `gone`"),
        ("GB213", "`src_id` is a bigint, which can't hold 0.5"),
        ("GB205", "`at` is a timestamp, and nothing that is said here cleans one"),
    ]
    assert kinds(made(Clean, drop_rows="any").infer(ROWS)) == ["filter"]
    assert made(Clean, case="lower").infer(ROWS) == ROWS


@pytest.mark.parametrize(
    ("kind", "number", "holds"),
    [
        ("int", 99_999_999_999, False),
        ("bigint", 99_999_999_999, True),
        ("tinyint", -128, True),
        ("tinyint", 128, False),
        ("int", 1000.0, True),
        ("int", float("nan"), False),
        ("double", float("nan"), True),
        ("decimal(5,2)", 999.994, True),
        ("decimal(5,2)", 999.995, False),
        ("decimal(5)", float("inf"), False),
    ],
)
def test_numbers_for_nulls_fit_into_their_columns(kind: str, number: float, holds: bool) -> None:
    found = findings(Clean, stream_of(Column("n", kind)), nulls={"number": number})
    assert [(f.option, f.code) for f in found] == ([] if holds else [(("nulls", "number"), "GB213")])


def test_a_pivot_of_numbers_is_two_aggregations() -> None:
    options: dict[str, Any] = {"group_by": ["at"], "pivot": {"column": "x", "values": [1, True]}}
    made_of = made(Aggregate, aggregates={"n": "count(*)", "m": "sum(cost)"}, **options)
    facts = made_of.infer(ROWS)
    assert kinds(facts) == ["aggregate", "aggregate"]
    assert [c.name for c in facts.columns or ()] == ["at", "1_n", "1_m", "true_n", "true_m"]
    # Of what isn't a number Spark makes one aggregation.
    once = made(Aggregate, aggregates={"n": "count(*)", "m": "max(at)"}, **options)
    assert kinds(once.infer(ROWS)) == ["aggregate"]
    found = findings(Aggregate, ROWS, aggregates={"n": "1"}, pivot={"column": "gone", "values": ["a"]})
    assert [f.code for f in found] == ["GB210", "GB212"]
    assert made_of.lineage(Facts()) is None


@pytest.mark.spark
def test_clean(spark: SparkSession) -> None:
    df = spark.sql(
        "select * from values (1, ' Ann\\t Lee\\u00a0', 1.50BD, true), (2, '\\n', null, null), (3, null, null, null), "
        "(4, 'x-7\\u0007!', 2.25BD, false) as t(`a.b`, s, d, b)"
    )
    options: list[tuple[dict[str, Any], list[Any]]] = [
        ({"white_space": "trim"}, ["Ann\t Lee", "", None, "x-7\x07!"]),
        ({"white_space": "collapse", "empty_as_null": True}, ["Ann Lee", None, None, "x-7\x07!"]),
        ({"white_space": "remove", "case": "upper", "nulls": {"text": "?"}}, ["ANNLEE", "", "?", "X-7\x07!"]),
        ({"remove": ["control", "digits", "punctuation"]}, [" Ann\t Lee\u00a0", "\n", None, "x"]),
        ({"remove": ["letters"], "white_space": "trim"}, ["", "", None, "-7\x07!"]),
        ({"drop_rows": "all", "columns": ["s", "D"]}, [" Ann\t Lee\u00a0", "\n", "x-7\x07!"]),
        ({"drop_rows": "any"}, [" Ann\t Lee\u00a0", "x-7\x07!"]),
    ]
    for given, texts in options:
        assert [row.s for row in _rows(Clean, df, **given)] == texts
    filled = _rows(Clean, df, nulls={"number": 0.25, "boolean": True}, columns=["d", "b"])
    assert [(float(row.d), row.b) for row in filled] == [
        (1.5, True),
        (0.25, True),
        (0.25, True),
        (2.25, False),
    ]
    whole = spark.sql("select 1 as `a.b`, cast(null as int) as n, cast(null as decimal(20, 2)) as d")
    assert _rows(Clean, whole, nulls={"number": 1000.0}) == [(1, 1000, 1000)]
    for wrong in ({"nulls": {"number": 0.5}}, {"case": "lower", "columns": ["gone"]}):
        with pytest.raises(GemError):
            made(Clean, **wrong).apply(df)


@pytest.mark.spark
def test_many_columns_at_once(spark: SparkSession) -> None:
    df = spark.sql("select 1 as `src a.b`, 2L as src_c, 'x' as src_d, 3 as id")
    renamed: Any = made(BulkColumns, matching="^src.(.*)$", name="{1}").apply(df)
    assert renamed.columns == ["a.b", "c", "d", "id"]
    computed: Any = made(
        BulkColumns, types="number", name="{name}_n", expression="{column} + 1", keep=True
    ).apply(df)
    assert computed.columns[4:] == ["src a.b_n", "src_c_n", "id_n"]
    assert tuple(computed.first())[4:] == (2, 3, 4)
    chosen: Any = made(DynamicSelect, types="long, string").apply(df)
    assert chosen.columns == ["src_c", "src_d"]
    for gem, options in (
        (DynamicSelect, {"matching": "gone"}),
        (BulkColumns, {"matching": "src", "name": "y"}),
    ):
        with pytest.raises(GemError):
            made(gem, **options).apply(df)


@pytest.mark.spark
def test_a_pivot_has_a_column_for_each_value(spark: SparkSession) -> None:
    df = spark.sql("select * from values ('a', 1, 5), ('a', 2, 7), ('b', 1, 9), ('b', 3, 1) as t(g, k, v)")
    options: dict[str, Any] = {"group_by": ["g"], "aggregates": {"s": "sum(v)"}}
    pivoted: Any = made(Aggregate, pivot={"column": "k", "values": [1, 2]}, **options).apply(df)
    assert sorted(tuple(row) for row in pivoted.collect()) == [("a", 5, 7), ("b", 9, None)]
    assert pivoted.columns == ["g", "1", "2"]


def _rows(gem: Any, df: Any, **options: Any) -> list[Any]:
    found = made(gem, **options).apply(df).collect()  # type: ignore[union-attr]
    return sorted(found, key=lambda row: row["a.b"])
