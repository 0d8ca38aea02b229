"""docs/event-time.md, row by row: each is what Spark does, and what the checker says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gem_bundle.expressions import analyse, join_condition
from gem_bundle.plugins import load_registry
from tests.gems.transforms import DELAY, events
from tests.integration.test_expressions import facts_of, spark_s_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle import Facts, Transform

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "event-time.md"


def tables() -> dict[str, list[list[str]]]:
    """The rows of the page's tables, by the heading above each, without backquotes."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("|") and not line.startswith("|-"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            found.setdefault(heading, []).append([cell.replace("`", "") for cell in cells])
    return {heading: rows[1:] for heading, rows in found.items()}


TABLES = tables()


def rows(heading: str) -> list[Any]:
    return [pytest.param(*row, id=" ".join(row)[:70]) for row in TABLES[heading]]


def test_every_table_is_tested() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert set(TABLES) == set(re.findall(r'rows\("([^"]+)"\)', source))
    assert sum(map(len, TABLES.values())) > 100


def stream(
    spark: SparkSession, name: str = "events", *columns: str, watermark: str | None = "at"
) -> DataFrame:
    df = events(spark, name, *columns)
    return df if watermark is None else df.withWatermark(watermark, "10 minutes")


def marked(df: DataFrame) -> list[str]:
    return [field.name for field in df.schema.fields if DELAY in field.metadata]


def known(facts: Facts) -> list[str]:
    assert facts.columns is not None
    return [column.name for column in facts.columns if column.delay is not None]


def listed(cell: str) -> list[str]:
    return [] if cell == "none" else cell.split(", ")


def transform(text: str, *names: str) -> Transform[Any]:
    """The gem that a row of a table writes as its name and its options."""
    name, _, options = text.partition(" ")
    # Not the safe loader: `on` is a word in pipeline files too, and no boolean.
    gem: Any = load_registry().get("transform", name).load()
    instance = gem(gem.options_type.model_validate(yaml.load(options, yaml.BaseLoader)))
    instance.input_names = names
    return instance  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def columns(spark: SparkSession) -> DataFrame:
    """The stream that the tables of expressions are over."""
    structs = ["struct(at, id) as s", "array(struct(at)) as parts", "map('k', struct(at)) as by_name"]
    df = stream(spark).selectExpr("at", "seen", "id", *structs)
    df = df.selectExpr("*", "window(at, '1 minute') as w")
    return df.selectExpr("*", "session_window(at, '1 minute') as sw")


@pytest.mark.parametrize(("expression", "survives"), [*rows("Through expressions"), *rows("Through windows")])
def test_expressions_and_windows(columns: DataFrame, expression: str, survives: str) -> None:
    from pyspark.sql.functions import expr

    real = marked(columns.select(expr(expression).alias("t"))) == ["t"]
    assert real == (survives == "yes")
    made = analyse(expression, facts_of(columns).columns, name="t")
    assert made.column.delay == ("600000 milliseconds" if real else None)


@pytest.mark.parametrize(("text", "behind"), rows("Through transforms"))
def test_transforms(spark: SparkSession, text: str, behind: str) -> None:
    df = stream(spark).selectExpr("at", "seen", "id", "struct(at, id) as s")
    gem = transform(text, "events")
    result: Any = gem.apply(df)
    assert marked(result) == listed(behind)
    facts = gem.infer(facts_of(df))
    if facts.columns is not None:
        assert known(facts) == listed(behind)


@pytest.mark.parametrize(("text", "watermarks", "behind"), rows("Through joins and unions"))
def test_joins_and_unions(spark: SparkSession, text: str, watermarks: str, behind: str) -> None:
    gem = transform(text, "first", "second")
    second_time = (
        "timestamp as at" if "by_name: false" not in text and text.startswith("union") else "timestamp as ts"
    )
    name = second_time.rpartition(" ")[2]
    first = stream(
        spark,
        "first",
        "value as id",
        "timestamp as at",
        watermark="at" if watermarks in {"both", "first"} else None,
    )
    second = stream(
        spark,
        "second",
        "value as id",
        second_time,
        watermark=name if watermarks in {"both", "second"} else None,
    )
    result: Any = gem.apply(first, second)
    assert marked(result) == listed(behind)
    assert known(gem.infer(facts_of(first), facts_of(second))) == listed(behind)


@pytest.mark.parametrize(
    ("condition", "on_event_time", "bounds_left", "bounds_right"), rows("What bounds the state of a join")
)
def test_join_conditions(
    spark: SparkSession, condition: str, on_event_time: str, bounds_left: str, bounds_right: str
) -> None:
    def side(name: str) -> DataFrame:
        columns = ["timestamp as at", "timestamp as seen", "value as id", "cast(timestamp as date) as day"]
        return stream(spark, name, *columns).selectExpr("*", "window(at, '1 minute') as w").alias(name)

    left, right = side("l"), side("r")
    told = tuple(cell == "yes" for cell in (on_event_time, bounds_left, bounds_right))
    assert spark_s_view(spark, condition, left, right)[1:] == told
    found = join_condition(condition, facts_of(left), facts_of(right), ("l", "r"))
    assert (found.event_time_key, found.left_bounded, found.right_bounded) == told
