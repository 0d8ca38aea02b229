"""Queries that fail as their broker is away, and are started again until it is back; the others go on meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.pipelines import add_rows, write_pipeline
from tests.integration.test_health import Told, health
from tests.integration.test_steering import Background, command, metrics

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.kafka_broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PIPELINE = """
pipeline: away
restarts: {{max: 1000, wait: 1 second}}
sources:
  clicks:
    gem: kafka
    options:
      bootstrap_servers: "{brokers}"
      subscribe: {read}
      starting_offsets: earliest
      max_offsets_per_trigger: 100
      request_timeout: 1 second
      fetch_offset_num_retries: 1
      kafka_consumer_poll_timeout_ms: 1000
      spark_options: {{kafka.default.api.timeout.ms: 1000}}
  numbers: {{gem: file, options: {{path: in, format: json, schema: "id bigint"}}}}
transforms:
  texts: {{gem: select, input: clicks, options: {{columns: {{id: cast(cast(value as string) as bigint)}}}}}}
targets:
  kept:
    gem: delta
    input: texts
    trigger: {{processing_time: 1500 milliseconds}}
    health: {{behind: {{records: 50}}}}
    options: {{path: kept}}
  sent:
    gem: kafka
    input: numbers
    options:
      bootstrap_servers: "{brokers}"
      topic: {written}
      value: id
      request_timeout: 1 second
      delivery_timeout: 1 second
      max_block: 1 second
  apart: {{gem: file, input: numbers, options: {{path: apart, format: json}}}}
"""
AWAY = "the broker can't be reached, or doesn't answer in time"


def texts(numbers: range) -> list[str]:
    return [str(number) for number in numbers]


def test_queries_whose_broker_is_away_are_started_again_until_it_is_back(
    spark: SparkSession, tmp_path: Path, kafka: Broker
) -> None:
    read, written = kafka.new_topic("read"), kafka.new_topic("written")
    kafka.produce(read, texts(range(400)))
    add_rows(tmp_path / "in", "0.json", [{"id": 0}])
    text = PIPELINE.format(brokers=kafka.bootstrap, read=read, written=written)
    told = Told()
    background = Background(write_pipeline(tmp_path, text), told)
    try:
        background.until({"kept": 400, "sent": 1, "apart": 1})
        kafka.stop_server(kill=True)
        add_rows(tmp_path / "in", "1.json", [{"id": 1}])
        found = background.when(
            lambda targets: (
                all(targets[name]["totals"]["restarts"] for name in ("kept", "sent"))
                and targets["apart"]["totals"]["rows_out"] == 2
            )
        )
        assert {found["targets"][name]["state"] for name in ("kept", "sent")} <= {"starting", "running"}
        assert found["targets"]["apart"]["state"] == "running"
        status = command("status", background.file).stdout
        assert status.count("started again") == 2
        kafka.start_server()
        kafka.produce(read, texts(range(400, 450)))
        found = background.until({"kept": 450, "sent": 2, "apart": 2})
        counted = metrics(found["address"])
        assert health(found["address"])[0] == 200
        assert command("status", background.file).exit_code == 0
    finally:
        command("stop", background.file, "--wait")
        report = background.end()
    assert report.status == "stopped"
    restarts = {name: totals.restarts for name, totals in report.targets.items()}
    assert restarts["apart"] == 0
    for name, number in restarts.items():
        facts = [of for event, of in told.events if event == "restarting" and of["target"] == name]
        assert [of["restarts"] for of in facts] == list(range(1, number + 1))
        assert {of["reason"] for of in facts} <= {AWAY}
        assert {of["failure"]["code"] for of in facts} <= {"GB503"}
        assert counted["query_restarts_total", name] == number
        assert counted["query_starts_total", name] == number + 1
    kept = spark.read.format("delta").load(str(tmp_path / "kept")).collect()
    assert sorted(row.id for row in kept) == list(range(450))
    # What the broker has taken and could not say any more is written again.
    assert {record.value for record in kafka.consume(written)} == {b"0", b"1"}
    assert [(event, of["limit"]) for event, of in told.events if event != "restarting"] == [
        ("unhealthy", "behind.records"),
        ("healthy", "behind.records"),
    ]
