"""The transforms `sort` and `repartition`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column
from gem_columns.select import Select
from gem_order.repartition import Repartition
from gem_order.sort import Sort
from tests.gems.transforms import Folder, drain, findings, made, stream_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = stream_of(Column("at", "timestamp", "10 minutes"), Column("id", "bigint"))


def test_order_and_partitions_change_no_fact() -> None:
    assert made(Sort, by="id desc").infer(ROWS) == ROWS
    assert made(Repartition, partitions=2).infer(ROWS) == ROWS


def test_a_key_that_does_not_exist_is_found() -> None:
    # Spark finds columns that a select before it left out.
    selected = made(Select, columns=["id"]).infer(ROWS)
    for gem, option in ((Sort, "by"), (Repartition, "columns")):
        assert [f.option for f in findings(gem, ROWS, **{option: ["id", "gone"]})] == [(option, 1)]
        assert findings(gem, selected, **{option: "at"}) == []


@pytest.mark.parametrize("by", ["tags", "tags desc nulls last", "array(tags)"])
def test_what_has_no_order_is_found(by: str) -> None:
    rows = stream_of(Column("tags", "map<string, int>"), Column("both", "struct<a: int>"))
    assert [(f.option, f.code) for f in findings(Sort, rows, by=["both", by])] == [(("by", 1), "GB213")]
    assert findings(Sort, rows, by="tags['a']") == []


@pytest.mark.parametrize("by", [[], "", ["id, at"], "upper(id"])
def test_a_sort_needs_keys(by: Any) -> None:
    with pytest.raises(ValidationError):
        made(Sort, by=by)


@pytest.mark.parametrize("options", [{}, {"partitions": 0}, {"partitions": 2, "columns": [""]}])
def test_a_repartition_needs_a_number_or_columns(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        made(Repartition, **options)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("by", "ids"),
    [
        ("v, id", [3, 1, 2, 4]),
        ("v asc, id", [3, 1, 2, 4]),
        ("v desc, id", [2, 4, 1, 3]),
        ("v DESC NULLS FIRST, id", [3, 2, 4, 1]),
        ("v nulls last, id desc", [1, 4, 2, 3]),
        (["v asc nulls last", "abs(-id)  desc"], [1, 4, 2, 3]),
        ("coalesce(v, 9) desc, id", [3, 2, 4, 1]),
        ("`v` desc nulls last, id desc", [4, 2, 1, 3]),
    ],
    ids=str,
)
def test_sort(spark: SparkSession, by: Any, ids: list[int]) -> None:
    df = spark.sql("select * from values (1, 1), (2, 2), (3, null), (4, 2) as t(id, v)")
    assert [row.id for row in made(Sort, by=by).apply(df).collect()] == ids  # type: ignore[union-attr]


@pytest.mark.spark
def test_an_aggregated_stream_is_sorted_in_complete_mode(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, tmp_path / "in", "page string")
    folder.add({"page": "a"}, {"page": "b"}, {"page": "b"})
    counts = folder.stream("pages").groupBy("page").count()
    ordered: Any = made(Sort, by="count desc").apply(counts)
    rows = drain(ordered, tmp_path / "checkpoint", "complete")
    assert [row.page for row in rows] == ["b", "a"]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "partitions"),
    [
        ({"partitions": 3}, {0, 1, 2}),
        ({"partitions": 5, "columns": "id % 2"}, None),
        ({"columns": ["id % 2"]}, None),
    ],
    ids=str,
)
def test_repartition(spark: SparkSession, options: dict[str, Any], partitions: set[int] | None) -> None:
    from pyspark.sql.functions import spark_partition_id

    df: Any = made(Repartition, **options).apply(spark.range(30))
    rows = df.withColumn("partition", spark_partition_id()).collect()
    if partitions is not None:
        assert {row.partition for row in rows} == partitions
    else:
        for rest in (0, 1):
            assert len({row.partition for row in rows if row.id % 2 == rest}) == 1
