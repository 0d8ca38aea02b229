"""The order in which Spark comes to the tables of a query, by which it knows sources that have no names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gem_bundle.testing.conformance.inputs import Folder
from gem_sql.query import Sql, SqlOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
LOG = "spark.sql.streaming.offsetLog.formatVersion"
ORDERS = {
    "select * from a union all select * from b union all select * from c": "abc",
    "select * from c union all (select * from a union all select * from b)": "cab",
    "select b.k from b join a on b.k = a.k join c on a.k = c.k": "bac",
    "select c.k from c, (select * from b) x, a where a.k = x.k and x.k = c.k": "cba",
    "with x as (select * from c) select b.k from b join x on b.k = x.k join a on a.k = x.k": "cba",
    "with x as (select * from b), y as (select c.k from c join x on x.k = c.k) "
    "select a.k from a join y on a.k = y.k": "bca",
}


def sql(query: str, names: str = "abc") -> Sql:
    gem = Sql(SqlOptions(query=query))
    gem.input_names = tuple(names)
    return gem


@pytest.mark.parametrize(("query", "order"), ORDERS.items())
def test_the_order_is_that_of_the_text(query: str, order: str) -> None:
    assert sql(query).order_of_inputs() == ["abc".index(name) for name in order]
    assert sql(query, "bca").order_of_inputs() == ["bca".index(name) for name in order]


@pytest.mark.parametrize(
    "query",
    [
        "select a.k from a join (with x as (select * from b) select * from x) y on a.k = y.k join c",
        "with x as (with y as (select * from a) select * from y) select * from b join x join c",
        "with x as (select * from a) select * from x union all select * from x union all select * from b",
        "with x as (select * from a) select * from b",
        "select * from a union all select * from b union all select * from a",
    ],
)
def test_an_order_that_is_not_certain_is_not_told(query: str) -> None:
    assert sql(query).order_of_inputs() is None


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("select * from a union all select * from b union all select * from a", "aba"),
        ("select l.k from b l join a on l.k = a.k join b r on r.k = l.k", "bab"),
        ("with x as (select * from c) select b.k from b join x on b.k = x.k", "bc"),
        ("with x as (select * from a join c), y as (select * from b, x) select * from y, x, a", "bacaca"),
        ("with a as (select * from a) select * from a union all select * from a", "aa"),
        ("select * from a where k in (select k from b) and k in (select k from a)", "aba"),
        ("select * from there.a, b", "b"),
        ("select * from a union select * from a union select * from a", "a"),
        ("select * from (select * from a union select * from a), b", "ab"),
        ("select k from a union select k from a", "aa"),
        ("select * from a union select * from b union select * from a", "aba"),
    ],
)
def test_a_table_is_planned_as_often_as_it_is_read_and_where(query: str, order: str) -> None:
    assert sql(query).inputs_as_planned() == ["abc".index(name) for name in order]


@pytest.mark.parametrize(
    "query",
    [
        "select * from a join (with x as (select * from b) select * from x) y",
        "with recursive x as (select * from a union all select * from x) select * from x",
        "with x0 as (select * from a), "
        + ", ".join(f"x{n + 1} as (select * from x{n} union all select * from x{n})" for n in range(12))
        + " select * from x12",
        "this is no query",
    ],
)
def test_tables_without_a_plan_that_can_be_told(query: str) -> None:
    assert sql(query).inputs_as_planned() is None


@pytest.fixture
def unnamed(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose checkpoints have no names for sources, as before Spark 4.2."""
    before = {key: spark.conf.get(key, None) for key in (EVOLUTION, LOG)}
    spark.conf.set(EVOLUTION, "false")
    spark.conf.set(LOG, "1")
    yield spark
    for key, value in before.items():
        spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.mark.spark
@pytest.mark.sample(1)
@pytest.mark.parametrize(("query", "order"), ORDERS.items())
def test_spark_has_offsets_in_that_order(
    unnamed: SparkSession, tmp_path: Path, query: str, order: str
) -> None:
    frames = []
    for files, name in enumerate("abc", start=1):
        folder = Folder(tmp_path / name, "k int")
        for number in range(files):
            folder.add([{"k": number}])
        reader = unnamed.readStream.schema("k int").option("maxFilesPerTrigger", 1)
        frames.append(reader.json(str(tmp_path / name)))
    writer = sql(query).apply(*frames).writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(120)
    # In the end each has an offset of its own: so many files, one a micro-batch.
    log = (tmp_path / "checkpoint" / "offsets" / "2").read_text(encoding="utf-8").splitlines()
    offsets = [json.loads(line)["logOffset"] for line in log[2:]]
    assert "".join("abc"[offset] for offset in offsets) == order
