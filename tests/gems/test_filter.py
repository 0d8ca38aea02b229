"""The transforms `filter` and `limit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column
from gem_filter.filter import Filter
from gem_filter.limit import Limit
from tests.gems.transforms import Folder, drain, findings, kinds, made, stream_of, table_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = (Column("at", "timestamp", "10 minutes"), Column("id", "bigint"))


def test_a_filter_changes_no_fact() -> None:
    filtered = made(Filter, condition="id > 1")
    assert filtered.infer(stream_of(*ROWS)) == stream_of(*ROWS)
    (finding,) = findings(Filter, stream_of(*ROWS), condition="gone")
    assert (finding.code, finding.option) == ("GB210", "condition")


def test_a_limit_on_a_stream_keeps_state() -> None:
    limited = made(Limit, rows=3).infer(stream_of(*ROWS))
    assert (limited, kinds(limited)) == (stream_of(*ROWS), ["limit"])
    assert made(Limit, rows=3).infer(table_of(*ROWS)) == table_of(*ROWS)


@pytest.mark.parametrize("options", [{}, {"condition": " "}, {"condition": "(id > 1"}])
def test_a_condition_is_an_expression(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        made(Filter, **options)


@pytest.mark.parametrize("rows", [-1, 1.5, "many", None])
def test_a_limit_is_a_number(rows: Any) -> None:
    with pytest.raises(ValidationError):
        made(Limit, rows=rows)


@pytest.mark.spark
def test_filter_keeps_what_is_true(spark: SparkSession) -> None:
    df = spark.sql("select * from values (1, true), (2, false), (3, null) as t(id, ok)")
    kept = made(Filter, condition="ok or id = 3").apply(df)
    assert sorted(row.id for row in kept.collect()) == [1, 3]  # type: ignore[union-attr]


@pytest.mark.spark
def test_limit(spark: SparkSession) -> None:
    limited = made(Limit, rows=2).apply(spark.range(5))
    assert len(limited.collect()) == 2  # type: ignore[union-attr]
    assert made(Limit, rows=0).apply(spark.range(5)).collect() == []  # type: ignore[union-attr]


@pytest.mark.spark
def test_a_limit_counts_over_the_whole_life_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, tmp_path / "in", "id bigint")
    limited: Any = made(Limit, rows=3).apply(folder.stream("numbers"))
    folder.add({"id": 1}, {"id": 2})
    assert len(drain(limited, tmp_path / "checkpoint")) == 2
    folder.add({"id": 3}, {"id": 4})
    assert len(drain(limited, tmp_path / "checkpoint")) == 1
