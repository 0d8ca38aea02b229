"""Send the flights of 2013 to a Kafka topic, in the order of their days.

They come from the daily files that `../flights/prepare.py` lays out. A flight becomes a JSON object
under the key of its airport, so that each airport's flights keep their order.

    python produce.py [--brokers HOST:PORT,…] [--topic flights] [--skip N] [--rows N]
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from kafka import KafkaProducer  # type: ignore[import-untyped]


def main() -> None:
    """Send the flights and say how many there were."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    here = Path(__file__).resolve().parent
    daily = here.parent / "flights" / "data" / "flights"
    parser.add_argument("--brokers", default="localhost:9092", metavar="HOST:PORT,…")
    parser.add_argument("--topic", default="flights")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N flights")
    parser.add_argument("--rows", type=int, metavar="N", help="send only N flights")
    parser.add_argument("--from", dest="folder", type=Path, default=daily, metavar="FOLDER")
    options = parser.parse_args()
    if not any(options.folder.glob("*.csv")):
        sys.exit(f"There are no flights in {options.folder}: run ../flights/prepare.py first.")
    chosen = islice(read_flights(options.folder), options.skip, None)
    flights = islice(chosen, options.rows)
    sent = produce(options.brokers, options.topic, flights)
    print(f"{sent} flights sent to {options.topic}")


def read_flights(folder: Path) -> Iterator[dict[str, Any]]:
    """The flights in the daily files of a folder, oldest first, as the topic gets them."""
    for row in _rows(folder):
        year, month, day, hour, minute = (
            int(row[name]) for name in ("year", "month", "day", "hour", "minute")
        )
        yield {
            "scheduled": datetime(year, month, day, hour, minute).isoformat(),
            "origin": row["origin"],
            "carrier": row["carrier"],
            "flight": int(row["flight"]),
            "dest": row["dest"],
            "dep_delay": None if row["dep_delay"] == "NA" else int(row["dep_delay"]),
        }


def _rows(folder: Path) -> Iterator[dict[str, str]]:
    for file in sorted(folder.glob("*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            yield from csv.DictReader(lines)


def produce(brokers: str, topic: str, flights: Iterator[dict[str, Any]]) -> int:
    """Send flights to a topic, each exactly once, and return how many there were."""
    producer = KafkaProducer(
        bootstrap_servers=brokers.split(","),
        key_serializer=str.encode,
        value_serializer=lambda flight: json.dumps(flight).encode(),
        enable_idempotence=True,
        linger_ms=50,
    )
    sent = 0
    failures: list[BaseException] = []
    with closing(producer):
        for flight in flights:
            future = producer.send(topic, key=flight["origin"], value=flight)
            future.add_errback(failures.append)
            sent += 1
        producer.flush()
    if failures:
        raise failures[0]
    return sent


if __name__ == "__main__":
    main()
