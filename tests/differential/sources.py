"""Sources at random: streams and static relations, with the schemas that people have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle.schema import fields_of
from tests.differential.relations import Col, Relation

if TYPE_CHECKING:
    from random import Random

Node = dict[str, Any]

STREAMS = {
    "clicks": "page string, user bigint, at timestamp, amount double",
    "views": "page string, user bigint, at timestamp, seen timestamp, referrer string",
    "orders": "id bigint, page string, at timestamp, amount decimal(10,2), paid boolean",
    "payments": "order_id bigint, id bigint, at timestamp, amount decimal(10,2), method string",
    "readings": "sensor string, at timestamp, value double, level int, tags array<string>",
    "events": "id bigint, kind string, at timestamp, payload struct<t: timestamp, name: string, n: int>, attributes map<string, string>",
    "trips": "id int, page string, pickup timestamp, dropoff timestamp, day date, local timestamp_ntz",
    "raw": "value string, at timestamp, key binary",
}
TABLES = {
    "pages": "page string, team string, since timestamp",
    "users": "user bigint, name string, country string, active boolean, birthday date",
    "prices": "id bigint, price decimal(10,2), at timestamp",
    "sensors": "sensor string, level int, place struct<lat: double, lon: double>, tags array<string>",
}
KAFKA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"


def stream(random: Random, number: int) -> tuple[str, Node, Relation]:
    """A source that is read as a stream."""
    roll = random.random()
    if roll < 0.16:
        options: dict[str, Any] = {"rows_per_second": random.choice([1, 10])} if random.random() < 0.5 else {}
        return _made("ticks", number, "rate", options, "timestamp timestamp, value bigint")
    if roll < 0.20:
        return _made(
            "beats", number, "rate_micro_batch", {"rows_per_batch": 100}, "timestamp timestamp, value bigint"
        )
    if roll < 0.30:
        options = {"bootstrap_servers": "localhost:9092", "subscribe": "clicks"}
        return _made("records", number, "kafka", options, KAFKA)
    if roll < 0.34:
        stamped = random.random() < 0.6
        options = {"host": "localhost", "port": 9999}
        if stamped:
            options["include_timestamp"] = True
        return _made("lines", number, "socket", options, "value string" + ", timestamp timestamp" * stamped)
    name = random.choice(list(STREAMS))
    options = {"format": random.choice(["json", "parquet"]), "path": f"data/{name}", "schema": STREAMS[name]}
    return _made(name, number, "file", options, STREAMS[name])


def table(random: Random, number: int) -> tuple[str, Node, Relation]:
    """A static relation."""
    if random.random() < 0.3:
        rows = [{"page": "home", "team": "web", "n": 1}, {"page": "cart", "team": "shop", "n": 2}]
        options: dict[str, Any] = {"rows": rows, "schema": "page string, team string, n int"}
        return _made("teams", number, "rows", options, "page string, team string, n int", mode="batch")
    name = random.choice(list(TABLES) if random.random() < 0.8 else list(STREAMS))
    schema = {**TABLES, **STREAMS}[name]
    options = {"format": "parquet", "path": f"data/{name}", "schema": schema}
    return _made(name, number, "file", options, schema, mode="batch")


def _made(
    name: str, number: int, gem: str, options: dict[str, Any], schema: str, mode: str = "stream"
) -> tuple[str, Node, Relation]:
    node: Node = {"gem": gem}
    if mode == "batch":
        node["mode"] = "batch"
    if options:
        node["options"] = options
    id_ = name if number == 0 else f"{name}{number}"
    cols = tuple(Col(field.name, str(field.type)) for field in fields_of(schema) or ())
    return id_, node, Relation(id_, cols, mode == "stream", sources=frozenset({id_}))
