"""What Spark's optimizer leaves out of expressions: what is read of state goes by that."""

from __future__ import annotations

import re
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests import samples
from tests.core.test_folding import read_of
from tests.decided import AGGREGATES, READ, drawn_expression
from tests.samples import drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def read_by_spark(spark: SparkSession) -> Iterator[Callable[[str], set[str]]]:
    """Tells which columns of an aggregation Spark computes for an expression over them."""
    rows = spark.createDataFrame(spark.sparkContext.emptyRDD(), "page string, x double")
    made = ", ".join(f"{function} {name}" for name, function in AGGREGATES.items())
    rows.createOrReplaceTempView("rows_of_pages")

    def read(expression: str) -> set[str]:
        grouped = f"select page, {made} from rows_of_pages group by page"
        asked = spark.sql(f"select page, {expression} as z from ({grouped})")
        plan = str(asked._jdf.queryExecution().optimizedPlan())
        return {name for name, function in AGGREGATES.items() if _as_planned(function).search(plan)}

    yield read
    spark.catalog.dropTempView("rows_of_pages")


def _as_planned(function: str) -> re.Pattern[str]:
    return re.compile(re.escape(function.rstrip(")")) + r"(?:#\d+)?\)")


def test_what_is_read_is_what_spark_reads(read_by_spark: Callable[[str], set[str]]) -> None:
    for expression in drawn(READ, 20):
        assert read_by_spark(expression) == set(READ[expression].split()), expression


def test_no_more_is_left_out_than_spark_leaves_out(read_by_spark: Callable[[str], set[str]]) -> None:
    from pyspark.errors import AnalysisException

    random = Random(samples.seed())
    tried: dict[str, tuple[set[str], set[str]]] = {}
    for _ in range(samples.examples(30, 1500)):
        expression = drawn_expression(random)
        with suppress(AnalysisException):
            tried[expression] = read_of(expression), read_by_spark(expression)
    assert tried
    assert [text for text, (here, spark) in tried.items() if spark - here] == []
    more = [text for text, (here, spark) in tried.items() if here - spark]
    assert len(more) <= max(2, len(tried) // 50), more
