"""Which conditions never hold as Spark sees it, by their form: it keeps nothing of what is behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from gem_bundle import Column, Facts
from gem_bundle.expressions import asked_by
from gem_bundle.lineage import NEVER_TRUE
from gem_filter.route import Route, RouteOptions
from tests.samples import drawn

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

COLUMNS: Final = (
    Column("x", "double"),
    Column("t", "string"),
    Column("flag", "boolean"),
    Column("n", "int"),
)
CONDITIONS: Final = {
    "x > 1 and not (x > 1)": True,
    "x <= 1 and x > 1 and n = 2": True,
    "x > 1 and n = 2 and x <= 1": False,
    "x > 1 and (n = 2 and x <= 1)": False,
    "flag and not flag": True,
    "not flag and flag": True,
    "x > 1 and (flag and not flag)": True,
    "n = 2 and flag and t = 'b' and not flag": False,
    "flag and (not flag or x > 1)": False,
    "not (flag or not flag)": True,
    "t like 'a%' and not t like 'a%'": True,
    "startswith(t, 'a') and not startswith(t, 'a')": True,
    "x <=> 1 and not (x <=> 1)": True,
    "x in (1, 2) and x not in (1, 2)": True,
    "x between 1 and 2 and not (x between 1 and 2)": False,
    "x is null and x is not null": False,
    "isnull(x) and not isnull(x)": False,
    "(x > 1 or t = 'a') and not (x > 1 or t = 'a')": False,
    "(x > 1 and t = 'a') and not (x > 1 and t = 'a')": False,
    "rand() > 0.5 and rand() <= 0.5": False,
    "x = 1 and n = 2 and x = 2": True,
    "n = 2 and x = 1 and flag and x > 2": True,
    "x != x and n = 2": True,
    "not coalesce(flag, false) and flag": False,
}
ROUTES: Final = (
    {"a": "x > 1", "b": "x > 1"},
    {"a": "x > 1", "b": "flag", "c": "x > 1"},
    {"a": "x > 1", "b": "flag", "c": "flag"},
    {"a": "x > 1 and n = 2", "b": "x > 1 and n = 2"},
    {"a": "x is null", "b": "x is null"},
    {"a": "x > 1", "b": "x <= 1"},
)


@pytest.fixture
def df(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Rows of which Spark knows only the columns."""
    return spark.read.schema(", ".join(f"{c.name} {c.type}" for c in COLUMNS)).json(str(tmp_path))


def is_empty(df: DataFrame) -> bool:
    return str(df._jdf.queryExecution().optimizedPlan()).startswith("LocalRelation <empty>")


def test_a_condition_that_spark_sees_to_be_never_true(df: DataFrame) -> None:
    for condition in drawn(CONDITIONS, 12):
        known = NEVER_TRUE in (asked_by(condition, [COLUMNS]) or ())
        assert (known, is_empty(df.filter(condition))) == (CONDITIONS[condition],) * 2, condition


def test_an_output_of_a_route_that_spark_sees_to_be_empty(df: DataFrame) -> None:
    for conditions in ROUTES:
        route = Route(RouteOptions(conditions=conditions, rest="others"))
        for output, rows in route.apply(df).items():
            lineage = route.lineage_output(output, Facts(columns=COLUMNS))
            assert lineage is not None
            assert (NEVER_TRUE in (lineage.asks or ())) is is_empty(rows), (conditions, output)
