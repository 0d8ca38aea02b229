"""The Kafka example: flights from a topic, counted into a Delta table and on to a second topic."""

import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from tests.integration.flights import EXAMPLES, Flights, Row, Run, lay_out, table_rows
from tests.kafka_broker import Broker
from tests.samples import the_flights

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FIRST, MORE = 12_000, 8_000

# The question of flights_kafka.yaml about the first rows of the feed: only hours that the watermark
# has passed, seven days behind the latest flight.
HOURS = """
    with sent as (from flights order by rowid limit {rows})
    select
        date_trunc('hour', scheduled) as hour,
        origin as airport,
        count(*) as flights,
        count(*) - count(dep_delay) as cancelled,
        coalesce(sum(greatest(dep_delay, 0)) filter (dep_delay is not null), 0)::bigint as minutes_late
    from sent
    group by all
    having date_trunc('hour', any_value(scheduled)) + interval 1 hour
        <= (select max(scheduled) - interval 7 days from sent)
    order by all
"""


@the_flights
def test_flights_from_a_topic_reach_a_table_and_a_topic(feed: Path, kafka: Broker, tmp_path: Path) -> None:
    lay_out("flights_kafka", tmp_path)
    flights = Flights(feed)
    source, onward = kafka.new_topic("flights", partitions=3), kafka.new_topic("hours")

    _produce(kafka, source, feed, skip=0, rows=FIRST)
    assert _run(tmp_path, kafka, source, onward) == {"table": FIRST, "topic": FIRST}
    expected = flights.ask(HOURS.format(rows=FIRST))
    assert len(expected) > 100
    assert table_rows(tmp_path / "out" / "hours") == expected
    assert _records(kafka, onward) == expected

    _produce(kafka, source, feed, skip=FIRST, rows=MORE)
    assert _run(tmp_path, kafka, source, onward) == {"table": MORE, "topic": MORE}
    expected = flights.ask(HOURS.format(rows=FIRST + MORE))
    assert table_rows(tmp_path / "out" / "hours") == expected
    assert _records(kafka, onward) == expected


def _produce(kafka: Broker, topic: str, feed: Path, *, skip: int, rows: int) -> None:
    done = subprocess.run(
        [
            *(sys.executable, EXAMPLES / "flights_kafka" / "produce.py"),
            *("--brokers", kafka.bootstrap, "--topic", topic),
            *("--from", feed / "flights", "--skip", str(skip), "--rows", str(rows)),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{rows} flights sent to {topic}\n"
    assert sum(kafka.end_offsets(topic).values()) == skip + rows


def _run(folder: Path, kafka: Broker, source: str, onward: str) -> dict[str, int]:
    """Drain the topic; how many rows each target's query read."""
    parameters = {
        "brokers": json.dumps([kafka.bootstrap]),
        "flights_topic": source,
        "hours_topic": onward,
        "flights_per_trigger": "5000",
    }
    arguments = [text for name, value in parameters.items() for text in ("-p", f"{name}={value}")]
    with Run(folder / "flights_kafka.yaml", "--available-now", *arguments, log=folder / "spark.log") as run:
        assert run.wait() == 0, "".join(run.said)
    report = run.end()
    assert report["totals"]["late_rows"] == 0
    return {name: totals["rows_in"] for name, totals in report["targets"].items()}


def _records(kafka: Broker, topic: str) -> list[Row]:
    """The rows that the second topic holds, in order; their key is the airport."""
    found = []
    for record in kafka.consume(topic):
        assert record.key is not None
        assert record.value is not None
        row = json.loads(record.value)
        assert record.key.decode() == row["airport"]
        row["hour"] = datetime.fromisoformat(row["hour"]).replace(tzinfo=None)
        found.append(tuple(row.values()))
    return sorted(found)
