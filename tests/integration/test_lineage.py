"""What a real run tells by OpenLineage's events: of files, Delta tables and topics, with Spark's own columns."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import StructType

from tests.core.run.test_openlineage import kinds, read
from tests.integration.pipelines import add_rows, run, write_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.run.report import Report
    from tests.kafka_broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ORDERS = "id bigint, Product string, price double, at struct<day:date,hours:array<int>>"
PIPELINE = """
pipeline: shop
description: Orders with the names of products.
sources:
  orders: {{gem: file, options: {{path: in, format: json, schema: "{orders}", max_files_per_trigger: 1}}}}
  products: {{gem: delta, mode: batch, options: {{path: products}}}}
  clicks: {{gem: kafka, options: {{bootstrap_servers: "{brokers}", subscribe: {clicks}, starting_offsets: earliest}}}}
transforms:
  named: {{gem: join, inputs: [orders, products], options: {{how: inner, on: [Product]}}}}
  paid:
    gem: with_columns
    input: named
    options: {{columns: {{cents: "cast(if(price < 0, raise_error('it is paid for'), price * 100) as double)"}}}}
  pages: {{gem: select, input: clicks, options: {{columns: {{page: cast(value as string), timestamp: timestamp}}}}}}
targets:
  table: {{gem: delta, input: paid, options: {{path: table}}}}
  sent: {{gem: kafka, input: orders, options: {{bootstrap_servers: "{brokers}", topic: {sent}}}}}
  views: {{gem: delta, input: pages, options: {{path: views}}}}
"""


def columns(df: DataFrame) -> list[tuple[str, str]]:
    """The columns that Spark says a DataFrame has."""
    return [(column.name, column.dataType.simpleString()) for column in df.schema]


def told(dataset: dict[str, Any]) -> list[tuple[str, str]]:
    """The columns that an event says a dataset has, in their order, with their types as Spark reads them."""
    fields = dataset["facets"]["schema"]["fields"]
    assert [field["ordinal_position"] for field in fields] == list(range(1, len(fields) + 1))
    types = StructType.fromDDL(", ".join(f"`{field['name']}` {field['type']}" for field in fields))
    return [(column.name, column.dataType.simpleString()) for column in types]


def by_name(datasets: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(dataset["namespace"], dataset["name"]): dataset for dataset in datasets}


def told_rows(events: list[dict[str, Any]]) -> Counter[str]:
    """The rows of all micro-batches, by job."""
    found: Counter[str] = Counter()
    for event in events:
        for output in event["outputs"]:
            if "outputStatistics" in output["outputFacets"]:
                found[event["job"]["name"]] += output["outputFacets"]["outputStatistics"]["rowCount"]
    return found


def test_what_a_run_on_spark_tells(spark: SparkSession, tmp_path: Path, kafka: Broker) -> None:
    clicks, sent = kafka.new_topic("clicks"), kafka.new_topic("sent")
    kafka.produce(clicks, ["home", "cart", "home"])
    products = spark.sql("select * from values ('a', 1.50bd), ('b', 2.50bd) as products(Product, weight)")
    products.write.format("delta").save(str(tmp_path / "products"))
    for number in range(2):
        rows = [{"id": number, "Product": name, "price": 5.0} for name in "abx"]
        add_rows(tmp_path / "in", f"{number}.json", rows)
    text = PIPELINE.format(orders=ORDERS, brokers=kafka.bootstrap, clicks=clicks, sent=sent)
    file = write_pipeline(tmp_path, text)

    def ran(name: str) -> tuple[Report, list[dict[str, Any]]]:
        events = tmp_path / name
        report = run(file, available_now=True, lineage=str(events))
        return report, read(events)

    report, events = ran("first.jsonl")
    assert report.ok
    assert kinds(events, "shop") == ["START", "COMPLETE"]
    for target, totals in report.targets.items():
        batches = ["RUNNING"] * totals.micro_batches
        assert kinds(events, f"shop.{target}") == ["START", *batches, "COMPLETE"]
    written = {f"shop.{target}": totals.rows_out for target, totals in report.targets.items()}
    assert written == {"shop.table": 4, "shop.sent": 6, "shop.views": 3}
    assert told_rows(events) == written

    topics = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap)
    tables = {
        name: spark.read.format("delta").load(str(tmp_path / name)) for name in ("products", "table", "views")
    }
    orders = spark.read.schema(ORDERS).json(str(tmp_path / "in"))
    spark_says = {
        ("file", str(tmp_path / "in")): orders,
        (f"kafka://{kafka.bootstrap}", clicks): topics.option("subscribe", clicks).load(),
        **{("file", str(tmp_path / name)): table for name, table in tables.items()},
        # A topic has no columns of its own: the rows that are written into it have.
        (f"kafka://{kafka.bootstrap}", sent): orders,
    }
    own = next(event for event in events if event["job"]["name"] == "shop")
    inputs, outputs = by_name(own["inputs"]), by_name(own["outputs"])
    assert {name[1] for name in inputs} == {str(tmp_path / "in"), str(tmp_path / "products"), clicks}
    assert {name[1] for name in outputs} == {str(tmp_path / "table"), str(tmp_path / "views"), sent}
    assert {name: told(dataset) for name, dataset in {**inputs, **outputs}.items()} == {
        name: columns(df) for name, df in spark_says.items()
    }
    lineage = outputs["file", str(tmp_path / "table")]["facets"]["columnLineage"]["fields"]
    assert {
        name: {(field["name"], field["field"]) for field in found["inputFields"]}
        for name, found in lineage.items()
        if name in {"cents", "weight"}
    } == {
        "cents": {(str(tmp_path / "in"), "price")},
        "weight": {(str(tmp_path / "products"), "weight")},
    }

    add_rows(tmp_path / "in", "2.json", [{"id": 2, "Product": "a", "price": -1.0}])
    report, events = ran("second.jsonl")
    assert not report.ok
    assert kinds(events, "shop")[-1] == kinds(events, "shop.table")[-1] == "FAIL"
    assert kinds(events, "shop.views") == ["START", "COMPLETE"]
    assert told_rows(events)["shop.sent"] == report.targets["sent"].rows_out
    failed = [event for event in events if event["eventType"] == "FAIL"]
    for event in failed:
        message = event["run"]["facets"]["errorMessage"]["message"]
        assert "it is paid for" in message
        assert message == report.diagnostics[0].message
