"""Sources at random: streams and static relations, with the schemas that people have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle.schema import fields_of
from tests.differential.relations import Col, Relation

if TYPE_CHECKING:
    from collections.abc import Mapping
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
_GENERATED: dict[str, tuple[Any, str]] = {
    "page": ({"choice": {"home": 5, "cart": 1}}, "string"),
    "amount": ({"number": {"min": 0, "max": 100, "digits": 2}, "nulls": 0.1}, "double"),
    "at": ({"time": {"start": "2026-01-31T10:00:00", "step": "1 second"}}, "timestamp"),
    "paid": ({"boolean": 0.5}, "boolean"),
    "level": ({"choice": [1, 2, 3]}, "bigint"),
    "code": ({"text": "??-###"}, "string"),
    "seen": ("at + interval 1 hour", "timestamp"),
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


def further(random: Random, number: int, *, static: bool) -> tuple[str, Node, Relation]:
    """A source that only the comparison with Spark draws, as `tests.differential.further` says."""
    mode = "batch" if static else "stream"
    roll = random.random()
    if roll < 0.35:
        names = ["id", *random.sample([*_GENERATED], random.randint(1, len(_GENERATED)))]
        names = [name for name in ["id", *_GENERATED] if name in names and (name != "seen" or "at" in names)]
        made = {"id": ({"sequence": {"start": 1}}, "bigint"), **_GENERATED}
        columns = {name: made[name][0] for name in names}
        if "amount" in columns and random.random() < 0.5:
            columns["cents"] = "cast(amount * 100 as int)"
        schema = ", ".join(f"{name} {made[name][1] if name in made else 'int'}" for name in columns)
        return _made("made_up", number, "generate", {"columns": columns}, schema, mode)
    name = random.choice(list(STREAMS))
    schema = STREAMS[name]
    if roll < 0.6:
        options: dict[str, Any] = {
            "format": "json",
            "path": f"data/{name}",
            "schema": schema,
            "rejects": True,
        }
        return _made(name, number, "file", options, schema, mode)
    if roll < 0.68 and not static:
        options = {"format": "json", "path": f"data/{name}", "schema": schema}
        return _made(name, number, "auto_loader", options, schema)
    gem = random.choice(["delta", "table", "jdbc"])
    options = {"table": name if gem == "jdbc" else f"shop.{name}"}
    if gem == "jdbc":
        options["url"] = "jdbc:postgresql://localhost:5432/shop"
        if not static:
            options["increasing"] = schema.split()[0]
    return _made(name, number, gem, options, schema, mode)


def undeclared(gem: str, options: Mapping[str, Any]) -> str | None:
    """The columns of a table that only the table itself knows; None where it is none of the drawn ones.

    Args:
        gem: The gem of the source.
        options: Its options.
    """
    if gem not in {"delta", "table", "jdbc"}:
        return None
    return STREAMS.get((options.get("table") or "").rpartition(".")[2])


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
