"""The transform `union`."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, Operator
from gem_bundle.schema import differ_for_certain
from gem_combine.union import Union
from tests.gems.transforms import Folder, drain, findings, kinds, made, stream_of, table_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MARKED = Column("at", "timestamp", "10 minutes")
PLAIN = Column("at", "timestamp")
ID = Column("id", "bigint")


def test_the_first_input_decides_on_names_and_event_time() -> None:
    union = made(Union, "a", "b")
    assert union.infer(stream_of(MARKED, ID), stream_of(ID, PLAIN)) == stream_of(MARKED, ID)
    assert union.infer(stream_of(PLAIN, ID), stream_of(ID, MARKED)) == stream_of(PLAIN, ID)
    by_position = made(Union, "a", "b", by_name=False)
    numbers = stream_of(Column("t", "timestamp"), Column("n", "int"))
    assert by_position.infer(stream_of(MARKED, ID), numbers) == stream_of(MARKED, ID)
    texts = stream_of(Column("t", "timestamp"), Column("n", "string"))
    assert by_position.infer(stream_of(MARKED, ID), texts) == stream_of(MARKED, Column("id"))


def test_missing_columns_come_last_and_are_no_event_time() -> None:
    union = made(Union, "a", "b", allow_missing_columns=True)
    assert union.infer(stream_of(ID), stream_of(MARKED)) == stream_of(ID, PLAIN)
    unknown = Facts(streaming=True, bounded=False)
    assert union.infer(stream_of(ID), unknown).columns is None


def test_what_is_unknown_stays_unknown() -> None:
    unknown = Facts(streaming=True, bounded=False)
    union = made(Union, "a", "b")
    assert union.infer(stream_of(ID), unknown) == stream_of(Column("id"))
    assert union.infer(unknown, stream_of(ID)).columns is None
    assert findings(Union, stream_of(ID), unknown, names=("a", "b")) == []


def test_state_comes_from_all_inputs() -> None:
    union = made(Union, "a", "b", "c")
    inputs = (stream_of(ID).after(Operator(kind)) for kind in ("deduplicate", "limit", "aggregate"))
    assert kinds(union.infer(*inputs)) == ["union", "deduplicate", "limit", "aggregate"]
    assert union.infer(table_of(ID), table_of(ID), table_of(ID)).streaming is False


def test_columns_that_an_input_lacks_are_found() -> None:
    more = Column("page")
    inputs = stream_of(ID, MARKED, more), stream_of(Column("ID", "int")), stream_of(MARKED, ID, more)
    found = findings(Union, *inputs, names=("a", "b", "c"))
    assert [finding.message for finding in found] == ["`b` lacks `at`, `page` of `a`"]
    inputs = stream_of(ID), stream_of(ID, MARKED)
    (finding,) = findings(Union, *inputs, names=("a", "b"))
    assert finding.message == "`a` lacks `at` of `b`"
    assert "allow_missing_columns: true" in finding.hint
    assert findings(Union, *inputs, names=("a", "b"), allow_missing_columns=True) == []
    (finding,) = findings(Union, *inputs, names=("a", "b"), by_name=False)
    assert (finding.option, finding.message) == ("by_name", "`a` has 1 columns and `b` has 2")


# A name with a type in DDL for each family that Spark's coercion knows.
TYPES = [
    "boolean", "tinyint", "int", "bigint", "double", "decimal(10,2)", "string", "binary", "date", "timestamp",
    "timestamp_ntz", "interval day to second", "array<int>", "map<string, int>", "struct<a: int>",
]  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "differ"),
    [
        ("int", "bigint", False),
        ("int", "string", False),
        ("int", "timestamp", True),
        ("boolean", "int", True),
        ("date", "timestamp", False),
        ("array<int>", "int", True),
        ("array<int>", "array<string>", False),
        ("struct<a: int>", "map<string, int>", True),
        ("int", None, False),
        (None, None, False),
        ("int", "some_type_of_tomorrow", False),
        ("array<int>", "some_type_of_tomorrow", False),
        ("int", "not a type (", False),
    ],
)
def test_types_that_differ_for_certain(left: str | None, right: str | None, differ: bool) -> None:
    assert differ_for_certain(left, right) is differ
    assert differ_for_certain(right, left) is differ


def test_types_that_cant_become_one_are_said_with_both_inputs() -> None:
    inputs = stream_of(ID, MARKED), stream_of(PLAIN, Column("ID", "boolean"))
    (finding,) = findings(Union, *inputs, names=("a", "b"))
    assert (finding.code, finding.severity) == ("GB213", "error")
    assert finding.message == "`id` is a bigint in `a` and `ID` a boolean in `b`: they can't be one column"
    by_position = findings(Union, *inputs, names=("a", "b"), by_name=False)
    assert [f.message for f in by_position] == [
        "`id` is a bigint in `a` and `at` a timestamp in `b`: they can't be one column",
        "`at` is a timestamp in `a` and `ID` a boolean in `b`: they can't be one column",
    ]
    assert findings(Union, stream_of(ID), stream_of(Column("id", "string")), names=("a", "b")) == []
    assert findings(Union, stream_of(ID), stream_of(Column("id")), names=("a", "b")) == []


@pytest.mark.spark
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_differs_for_certain_spark_refuses_to_unite(spark: SparkSession, ansi: str) -> None:
    """Over all pairs: never a false alarm, and what Spark refuses in both modes is known but for intervals."""
    from pyspark.errors import AnalysisException

    refused = set()
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        frames = {name: spark.createDataFrame([], f"x {name}") for name in TYPES}
        for left, right in product(TYPES, TYPES):
            try:
                frames[left].union(frames[right])
            except AnalysisException:
                refused.add((left, right))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
    certain = {pair for pair in product(TYPES, TYPES) if differ_for_certain(*pair)}
    assert certain - refused == set()
    missed = {frozenset(pair) for pair in refused - certain if "interval day to second" not in pair}
    only_without_ansi = {frozenset({"string", "binary"}), frozenset({"string", "boolean"})}
    assert missed == (set() if ansi == "true" else only_without_ansi)


def test_missing_columns_need_names() -> None:
    with pytest.raises(ValidationError, match="needs `by_name: true`"):
        made(Union, by_name=False, allow_missing_columns=True)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, [(1, 2), (4, 3), (1, 2)]),
        ({"by_name": False}, [(1, 2), (3, 4), (1, 2)]),
        ({"allow_missing_columns": True}, [(1, 2), (4, 3), (1, 2)]),
    ],
    ids=str,
)
def test_union(spark: SparkSession, options: dict[str, Any], rows: list[tuple[int, int]]) -> None:
    one, two = spark.sql("select 1 as a, 2 as b"), spark.sql("select 3 as B, 4 as a")
    united: Any = made(Union, "x", "y", "z", **options).apply(one, two, one)
    assert sorted(tuple(row) for row in united.collect()) == sorted(rows)
    assert united.columns == ["a", "b"]


@pytest.mark.spark
def test_missing_columns_are_null(spark: SparkSession) -> None:
    one, two = spark.sql("select 1 as a, 2 as b"), spark.sql("select 3 as c, 4 as a")
    united: Any = made(Union, allow_missing_columns=True).apply(one, two)
    assert [tuple(row) for row in united.collect()] == [(1, 2, None), (4, None, 3)]


@pytest.mark.spark
def test_one_source_over_two_paths(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, tmp_path / "in", "id bigint")
    small = folder.stream("numbers").filter("id < 10")
    large = folder.stream("numbers__all_2").filter("id >= 10")
    united: Any = made(Union, "small", "large").apply(small, large)
    folder.add({"id": 1}, {"id": 10})
    assert sorted(row.id for row in drain(united, tmp_path / "checkpoint")) == [1, 10]
    folder.add({"id": 2}, {"id": 20})
    assert sorted(row.id for row in drain(united, tmp_path / "checkpoint")) == [2, 20]
