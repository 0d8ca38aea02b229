"""The transforms `unpivot`, `flatten`, `sample` and `set_operation`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, GemError
from gem_columns.flatten import Flatten
from gem_columns.unpivot import Unpivot
from gem_combine.set_operation import SetOperation
from gem_filter.sample import Sample
from tests.gems.transforms import (
    Folder,
    assert_agrees,
    drain,
    facts_of,
    findings,
    kinds,
    made,
    stream_of,
    table_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

AT = Column("at", "timestamp", "10 minutes")
ID = Column("id", "bigint")
N = Column("n", "int")
PAGE = Column("page", "string")


@pytest.mark.parametrize(
    ("gem", "options", "words"),
    [
        (Unpivot, {}, "which columns stay"),
        (Unpivot, {"ids": ["a", "A"]}, "stands twice in `ids`"),
        (Unpivot, {"ids": ["a"], "value_column_name": "Variable"}, "two names"),
        (Flatten, {"explode": ["a..b"]}, "no way to a field"),
        (Flatten, {"explode": ["a.b", "A.b"]}, "stands twice"),
        (Sample, {"fraction": 10}, "a tenth as 0.1"),
        (Sample, {"fraction": 1, "by": ["id"], "with_replacement": True}, "once or not at all"),
        (SetOperation, {"operation": "minus"}, "intersect"),
    ],
)
def test_options_that_cant_be(gem: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        made(gem, **options)


def test_what_becomes_rows_must_be_there_and_of_one_kind() -> None:
    rows = stream_of(AT, ID, N, PAGE)
    assert [f.message for f in findings(Unpivot, rows, values=["id", "page", "gone"])] == [
        "there is no column `gone`"
    ]
    (finding,) = findings(Unpivot, rows, ids=["at"])
    assert finding.message == "`id` is a bigint and `page` a string: they can't be one column"
    (finding,) = findings(Unpivot, rows, ids=["at", "id", "n", "page"])
    assert "none is left" in finding.message
    (finding,) = findings(Unpivot, rows, ids=["at", "page"], value_column_name="page")
    assert (finding.severity, finding.option) == ("warning", "value_column_name")
    known = made(Unpivot, ids=["at", "page"]).infer(rows)
    assert known == stream_of(AT, PAGE, Column("variable", "string"), Column("value", "bigint"))


def test_fields_are_found_and_get_names_of_their_own() -> None:
    rows = stream_of(AT, Column("s", "struct<a: int, b: struct<c: int>>"), Column("s_a", "int"))
    (finding,) = findings(Flatten, rows)
    assert finding.message == "there would be two columns `s_a`: `s.a` and `s_a`"
    assert [f.message for f in findings(Flatten, rows, separator="", depth=1)] == []
    names = [c.name for c in made(Flatten, separator=".").infer(rows).columns or ()]
    assert names == ["at", "s.a", "s.b.c", "s_a"]
    found = findings(Flatten, rows, separator=".", columns=["s_a", "gone"], explode=["s.b", "s.x"])
    assert [(f.option, f.message) for f in found] == [
        (("columns", 0), "`s_a` is an int and has no fields"),
        (("columns", 1), "there is no column `gone`"),
        (("explode", 0), "`s.b` is a struct, and only an array has elements"),
        (("explode", 1), "there is no column or field `s.x`"),
    ]
    unknown = stream_of(AT, Column("s"))
    assert made(Flatten).infer(unknown).columns is None
    assert findings(Flatten, unknown) == []


def test_inputs_of_a_set_operation_have_the_same_columns() -> None:
    names = ("a", "b")
    options: dict[str, Any] = {"operation": "intersect"}
    (finding,) = findings(SetOperation, table_of(ID, PAGE), table_of(ID), names=names, **options)
    assert finding.message == "`b` lacks `page` of `a`"
    (finding,) = findings(SetOperation, table_of(ID), table_of(ID, PAGE), names=names, **options)
    assert finding.message == "`a` lacks `page` of `b`"
    by_position = findings(
        SetOperation, table_of(ID), table_of(ID, PAGE), names=names, by_name=False, **options
    )
    assert [f.message for f in by_position] == ["`a` has 1 columns and `b` has 2"]
    (finding,) = findings(
        SetOperation, table_of(ID), table_of(Column("id", "boolean")), names=names, **options
    )
    assert finding.code == "GB213"
    tags = table_of(Column("m", "map<string, int>"))
    assert (
        "can't tell two of them equal"
        in findings(SetOperation, tags, tags, names=names, **options)[0].message
    )
    (finding,) = findings(
        SetOperation, stream_of(ID), table_of(ID), names=names, operation="except", all=True
    )
    assert finding.option == "all"


def test_a_set_operation_is_what_spark_makes_of_it() -> None:
    inputs = stream_of(AT, ID), table_of(Column("at", "timestamp"), ID), table_of(ID, AT)
    found = made(SetOperation, "a", "b", "c", operation="except").infer(*inputs)
    assert found.columns == (AT, ID)
    assert kinds(found) == ["except", "except"]
    assert kinds(made(SetOperation, operation="intersect").infer(*inputs[:2])) == ["intersect"]
    unknown = Facts(streaming=False, bounded=True)
    assert made(SetOperation, operation="except").infer(table_of(ID), unknown) == table_of(Column("id"))


def test_only_a_sample_by_columns_is_a_filter() -> None:
    assert kinds(made(Sample, fraction=0.5, by=["id"]).infer(stream_of(ID))) == ["filter"]
    assert kinds(made(Sample, fraction=0.5).infer(stream_of(ID))) == ["sample"]
    found = findings(Sample, stream_of(Column("m", "map<string, int>")), fraction=1, by=["m", "gone"])
    assert [f.code for f in found] == ["GB213", "GB210"]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (("bigint", "double"), "double"),
        (("int", "bigint", "smallint"), "bigint"),
        (("int", "decimal(10,2)"), "decimal(12,2)"),
        (("date", "timestamp"), "timestamp"),
        (("float", "double"), "double"),
        (("int", "float"), None),  # a double with `spark.sql.ansi.enabled`, else a float
        (("int", None), None),
    ],
)
def test_values_get_the_type_that_they_have_together(
    types: tuple[str | None, ...], expected: str | None
) -> None:
    columns = [Column(f"c{number}", kind) for number, kind in enumerate(types)]
    (_, value) = made(Unpivot, values=[c.name for c in columns]).infer(stream_of(*columns)).columns or ()
    assert value == Column("value", expected)


@pytest.mark.spark
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_types_that_dont_go_together_are_those_that_spark_refuses(spark: SparkSession, ansi: str) -> None:
    from itertools import combinations

    from pyspark.errors import AnalysisException

    every = (
        "boolean",
        "int",
        "bigint",
        "float",
        "double",
        "decimal(10,2)",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "array<int>",
    )
    df = spark.createDataFrame([], ", ".join(f"c{n} {kind}" for n, kind in enumerate(every)))
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for chosen in (*combinations(df.columns, 2), ("c1", "c2", "c5"), ("c1", "c5", "c4")):
            said = findings(Unpivot, facts_of(df), values=list(chosen))
            try:
                assert_agrees(
                    made(Unpivot, values=list(chosen)).infer(facts_of(df)),
                    _applied(Unpivot, df, values=list(chosen)),
                )
            except AnalysisException:
                continue
            assert said == [], chosen
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.spark
def test_arrays_within_arrays_become_rows(spark: SparkSession) -> None:
    df = spark.sql(
        "select 1 as id, named_struct('a.b', 5, 'items', array(named_struct('tags', array('x', 'y')), null)) as o"
    )
    options: dict[str, Any] = {"explode": ["o.items", "o.items.tags"]}
    flat = _applied(Flatten, df, **options)
    assert flat.columns == ["id", "o_a.b", "o_items_tags"]
    assert sorted(map(tuple, flat.collect()), key=str) == [(1, 5, "x"), (1, 5, "y"), (1, 5, None)]
    assert_agrees(made(Flatten, **options).infer(facts_of(df)), flat)
    assert _applied(Flatten, df, depth=1).columns == ["id", "o_a.b", "o_items"]
    for wrong in ({"explode": ["id"]}, {"columns": ["gone"]}):
        with pytest.raises(GemError):
            _applied(Flatten, df, **wrong)


@pytest.mark.spark
def test_set_operations_count_where_they_are_told_to(spark: SparkSession) -> None:
    one = spark.sql("select * from values (1, 'a'), (1, 'a'), (1, 'a'), (2, null) as t(n, s)")
    two = spark.sql("select * from values ('a', 1), ('a', 1), (null, 2), ('c', 3) as t(S, N)")
    found = {}
    for operation in ("intersect", "except"):
        for every in (False, True):
            df: Any = made(SetOperation, operation=operation, all=every).apply(one, two)
            found[operation, every] = sorted(tuple(row) for row in df.collect())
    assert found == {
        ("intersect", False): [(1, "a"), (2, None)],
        ("intersect", True): [(1, "a"), (1, "a"), (2, None)],
        ("except", False): [],
        ("except", True): [(1, "a")],
    }
    with pytest.raises(GemError, match="lacks `s`"):
        made(SetOperation, operation="except").apply(one, two.drop("s"))


@pytest.mark.spark
def test_rows_of_a_stream_go_on_unless_a_table_has_them(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, tmp_path / "in", "id bigint, page string")
    known = spark.createDataFrame([("cart", 2)], "page string, id bigint")
    fresh: Any = made(SetOperation, operation="except").apply(folder.stream("pages"), known)
    for rows in ([(1, "home"), (1, "home"), (2, "cart")], [(1, "home"), (3, "new")]):
        folder.add(*({"id": n, "page": page} for n, page in rows))
        came = drain(fresh, tmp_path / "checkpoint", "update")
        # In the output mode `update` once for each micro-batch.
        assert sorted(tuple(row) for row in came) == sorted({*rows} - {(2, "cart")})


@pytest.mark.spark
def test_a_sample_is_of_so_many_rows(spark: SparkSession) -> None:
    df = spark.range(10_000).selectExpr("id", "id % 1000 as user")
    for options in ({"by": ["user"]}, {"seed": 1}, {"by": ["id"], "seed": 3}):
        count = _applied(Sample, df, fraction=0.2, **options).count()
        assert 1500 < count < 2500
    users = _applied(Sample, df, fraction=0.2, by=["user"]).groupBy("user").count()
    assert {row["count"] for row in users.collect()} == {10}
    assert _applied(Sample, df, fraction=2, with_replacement=True, seed=1).count() > 10_000


def _applied(gem: Any, df: Any, **options: Any) -> Any:
    return made(gem, **options).apply(df)
