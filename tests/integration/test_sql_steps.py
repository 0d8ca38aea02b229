"""The steps of a query, one behind another, give what the query gives: real Spark, over rows with nulls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gems.queries import IN_STEPS
from tests.gems.test_sql_steps import steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ROWS = {
    "a": (
        "value string, n int, x double",
        [("u", 1, 0.5), ("u", 2, 2.0), ("v", 2, 3.0), ("w", 3, 4.0), (None, 1, 5.0)],
    ),
    "b": (
        "name string, m int, y double",
        [("u", 1, 1.0), ("u", 2, None), ("v", 2, 0.0), ("z", 9, 1.0), ("w", 3, 4.0)],
    ),
    "s": ("name string, k int", [("u", 1), ("v", 2), ("z", 2), (None, None)]),
}


def run(spark: SparkSession, query: str, tables: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of a query over some tables."""
    for name, rows in tables.items():
        rows.createOrReplaceTempView(name)
    return spark.sql(query)


@pytest.mark.sample(3)
@pytest.mark.parametrize("query", IN_STEPS)
def test_steps_give_what_the_query_gives(spark: SparkSession, query: str) -> None:
    tables = {name: spark.createDataFrame(rows, schema) for name, (schema, rows) in ROWS.items()}
    whole = run(spark, query, tables)
    made: list[DataFrame] = []
    for step in steps(query) or ():
        given = {
            called: tables[of] if isinstance(of, str) else made[of] for called, of in step.tables.items()
        }
        made.append(run(spark, step.query, given))
    assert made[-1].columns == whole.columns
    assert sorted(map(repr, made[-1].collect())) == sorted(map(repr, whole.collect())) != []
    for name in tables:
        spark.catalog.dropTempView(name)
