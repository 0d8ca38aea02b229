"""Transforms that only the comparison with Spark draws.

Of edits it is kept what became of them, by the text of their pipelines: what those are drawn from stays as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.differential.expressions import Writer
from tests.differential.relations import Col, Relation, merged
from tests.differential.transforms import Step, from_json, join

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

CALLED = "tests.differential.called"
_PROCESSORS = {
    "none": ["Keeping"],
    "processing": ["Keeping", "Timed", "Expiring"],
    "event": ["Keeping", "Timed"],
}
_GIVEN = (
    "n bigint",
    "at timestamp, n bigint, page string",
    "seen timestamp, value double",
    "page string, at timestamp, until timestamp, tags array<string>",
    "id bigint, payload struct<t: timestamp, n: int>",
)
_NO_KEYS = frozenset({"array", "struct", "variant"})

_CLICK = [("page", "string"), ("user", "long"), ("at", {"type": "long", "logicalType": "timestamp-micros"})]
_EVENT = [
    ("id", "long"),
    ("kind", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ("tags", {"type": "array", "items": "string"}),
    ("attributes", {"type": "map", "values": "string"}),
]
_ORDER = [
    ("id", ["null", "int"]),
    ("amount", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
    ("day", {"type": "int", "logicalType": "date"}),
    ("payload", {"type": "record", "name": "P", "fields": [{"name": "n", "type": "int"}]}),
    ("who", ["int", "string"]),
]
AVRO: tuple[tuple[list[tuple[str, Any]], str], ...] = (
    (_CLICK, "page string, user bigint, at timestamp"),
    (_EVENT, "id bigint, kind string, at timestamp, tags array<string>, attributes map<string, string>"),
    (
        _ORDER,
        "id int, amount decimal(10,2), day date, payload struct<n: int>, who struct<member0: int, member1: string>",
    ),
)
_WRITTEN = {
    "string": "string",
    "int": "int",
    "bigint": "long",
    "double": "double",
    "float": "float",
    "boolean": "boolean",
    "binary": "bytes",
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "date": {"type": "int", "logicalType": "date"},
}
_ROWS = (
    ("id bigint, name string, updated_at timestamp", "lsn bigint"),
    ("id int, page string, amount decimal(10,2)", None),
    ("at timestamp, kind string", "pos bigint, row int"),
)
_REJECTED = (
    ("schema_version", "int"),
    ("pipeline", "string"),
    ("pipeline_version", "string"),
    ("node", "string"),
    ("gem", "string"),
    ("reasons", "array<struct<name: string, words: string>>"),
    ("row", "string"),
    ("row_schema", "string"),
    ("origin", "map<string, string>"),
    ("event_time", "timestamp"),
    ("rejected_at", "timestamp"),
)


def rejects(node: Mapping[str, Any]) -> bool:
    """Whether a node may reject rows.

    Args:
        node: The node as its pipeline file has it.
    """
    options = node.get("options", {})
    if node["gem"] == "expect":
        rules = [rule if isinstance(rule, dict) else {} for rule in options["rules"].values()]
        return any(rule.get("action", options.get("action", "reject")) == "reject" for rule in rules)
    return options.get("rejects") is True or options.get("unmatched") == "reject"


def rejected(node: str, rows: Relation) -> Relation:
    """What a node rejects.

    Args:
        node: The node.
        rows: Its first input; for a source what comes out of it.
    """
    timely = any(col.marked and col.type == "timestamp" for col in rows.cols)
    cols = [Col(name, kind, timely and name == "event_time") for name, kind in _REJECTED]
    return rows.followed_by(f"{node}.rejected", cols)


def stateful(random: Random, relation: Relation, node: str) -> Step | None:
    """A processor with state of its own."""
    keys = _keys(relation)
    if random.random() < 0.9:
        keys = [col for col in keys if col.family != "map"]
    # Of columns that have one name the processor can't have both.
    if not keys or (relation.ambiguous() and random.random() < 0.9):
        return None
    chosen = random.sample(keys, min(len(keys), random.choice([1, 1, 2])))
    options = _stateful_options(random, relation)
    options["group_by"] = [col.name for col in chosen]
    made = relation.followed_by(node, _given(options, relation))
    return Step("stateful", options, [relation], made, shape=_stateful_shape(options))


def stateful_begun(random: Random, relation: Relation, table: Relation, node: str) -> Step | None:
    """The same, with a table for the state to begin with."""
    there = {col.name.lower(): col.type for col in _keys(table) if col.family != "map"}
    keys = [col for col in _keys(relation) if there.get(col.name.lower()) == col.type]
    if not keys or table.streaming or relation.ambiguous() or table.ambiguous():
        return None
    options = _stateful_options(random, relation)
    options |= {"processor": f"{CALLED}:Begun", "group_by": [random.choice(keys).name]}
    inputs, names = [relation, table], ("rows", "known")
    if random.random() < 0.3:
        inputs, names = inputs[::-1], names[::-1]
    options["initial_state"] = "known"
    made = merged(node, [relation, table], _given(options, relation))
    return Step("stateful", options, inputs, made, names, "begun")


def _keys(relation: Relation) -> list[Col]:
    return [
        c
        for c in relation.usable()
        if c.family not in _NO_KEYS and c.name.lower() not in relation.ambiguous()
    ]


def _stateful_options(random: Random, relation: Relation) -> dict[str, Any]:
    timely = bool(relation.marked())
    time = random.choices(["none", "processing", "event"], [4, 2, 5 if timely else 1])[0]
    processor = "Expiring" if random.random() < 0.04 else random.choice(_PROCESSORS[time])
    options: dict[str, Any] = {"processor": f"{CALLED}:{processor}"}
    options["schema"] = random.choice(_GIVEN)
    if time != "none":
        options["time"] = time
    if random.random() < 0.4:
        options["output_mode"] = random.choice(["append", "update", "update"])
    if random.random() < 0.2:
        options["form"] = "pandas"
    times = [col.name for col in Col("", f"struct<{options['schema']}>").fields() if col.type == "timestamp"]
    if times and random.random() < (0.6 if timely else 0.03):
        options["event_time"] = random.choice(times)
    return options


def _given(options: dict[str, Any], relation: Relation) -> list[Col]:
    timely = bool(relation.marked())
    cols = Col("", f"struct<{options['schema']}>").fields()
    return [replace(col, marked=timely and col.name == options.get("event_time")) for col in cols]


def _stateful_shape(options: dict[str, Any]) -> str:
    return f"{options.get('time', 'none')} {options.get('output_mode', 'append')}"


def from_avro(random: Random, relation: Relation, node: str) -> Step | None:
    """Messages in Avro into columns, by schemas that are given: a registry would have to be there."""
    held = [c for c in relation.of_family("binary") if c.name.lower() not in relation.ambiguous()]
    if not held:
        return None
    col = random.choice([c for c in held if c.name == "value"] or held)
    fields, columns = random.choice(AVRO)
    options: dict[str, Any] = {"column": col.name, "schema": _record("Message", fields)}
    roll = random.random()
    if roll < 0.35:
        options["rejects"] = True
    elif roll < 0.45:
        options["mode"] = "FAILFAST"
    if random.random() < 0.2:
        options["schema_id"] = 7
    if random.random() < 0.2:
        options["writer_schema"] = _record("Message", [*fields, ("more", ["null", "string"])])
    made = _unpacked(random, relation, col, options, columns)
    return Step("from_avro", options, [relation], relation.followed_by(node, made))


def to_avro(random: Random, relation: Relation, node: str) -> Step | None:
    """Columns into messages in Avro."""
    if relation.ambiguous():
        return None
    writer = Writer.over(random, relation)
    options: dict[str, Any] = {}
    written = [col for col in relation.usable() if col.type in _WRITTEN and col.name.isidentifier()]
    if written and random.random() < 0.4:
        chosen = random.sample(written, min(len(written), random.choice([1, 2, 3])))
        # What a column's type is here is a guess, and the schema has to fit it.
        options["columns"] = {col.name: f"cast({writer.name(col)} as {col.type})" for col in chosen}
        fields = [(col.name, ["null", _WRITTEN[col.type]]) for col in chosen]
        options["schema"] = _record("Packed", fields)
        if random.random() < 0.3:
            options["schema_id"] = 7
    elif relation.usable() and random.random() < 0.5:
        options["columns"] = [writer.name(col) for col in relation.usable()[:3]]
    message = Col("value", "binary")
    cols = [message]
    if random.random() < 0.5:
        options["keep"] = True
        cols = [message if col.name.lower() == "value" else col for col in relation.cols]
        cols = cols if message in cols else [*cols, message]
    return Step("to_avro", options, [relation], relation.followed_by(node, cols))


def from_debezium(random: Random, relation: Relation, node: str) -> Step | None:
    """Changes of a database into columns."""
    held = [c for c in relation.of_family("string", "binary") if c.name.lower() not in relation.ambiguous()]
    if not held:
        return None
    col = random.choice([c for c in held if c.name == "value"] or held)
    schema, source = random.choice(_ROWS)
    options: dict[str, Any] = {"column": col.name, "schema": schema}
    columns = f"{schema}, op string, ts_ms bigint"
    if source is not None:
        options["source"] = source
        columns = f"{columns}, {source}"
    if random.random() < 0.4:
        options["rejects"] = True
    made = _unpacked(random, relation, col, options, columns)
    return Step("from_debezium", options, [relation], relation.followed_by(node, made))


def rest_enrich(random: Random, relation: Relation, node: str) -> Step | None:
    """What a service answers to each row. Nobody asks it: Spark only looks at the query."""
    plain = [col for col in _keys(relation) if col.name.isidentifier() and col.family != "map"]
    if not plain or any(col.name.lower() == "answer" for col in relation.cols):
        return None
    writer = Writer.over(random, relation)
    fields = random.choice(["name string, score double", "at timestamp, tags array<string>"])
    options: dict[str, Any] = {
        "url": f"https://api.example.com/users/{{{random.choice(plain).name}}}",
        "schema": fields,
    }
    if random.random() < 0.4:
        options |= {"method": "POST", "body": {"it": writer.named_only(), "more": writer.string(1)[0]}}
    if random.random() < 0.4:
        options["rejects"] = True
    made = [*relation.cols, Col("answer", f"struct<{fields}>")]
    return Step("rest_enrich", options, [relation], relation.followed_by(node, made))


def casts(random: Random, relation: Relation, node: str) -> Step | None:
    """Casts that may fail, whose rows are rejected."""
    cols = relation.of_family("string", "number")
    if not cols or relation.ambiguous():
        return None
    writer = Writer.over(random, relation)
    columns: dict[str, str] = {}
    made: dict[str, Col] = {}
    for number in range(random.choice([1, 1, 2])):
        col = random.choice(cols)
        over = writer.name(col)
        if random.random() < 0.3:
            over = f"concat({over}, '1')" if col.family == "string" else f"{over} + 1"
        wanted = ["int", "double", "date", "timestamp", "decimal(5,2)"]
        kind = random.choice(wanted if col.family == "string" else ["tinyint", "decimal(3,0)", "smallint"])
        text = f"cast({over} as {kind})"
        name = f"cast{number}"
        columns[name] = random.choice([text, text, f"coalesce({text}, {text})"])
        made[name] = Col(name, kind)
    if random.random() < 0.5:
        kept = [col for col in relation.cols if col.name not in made]
        options = {"columns": columns, "rejects": True}
        rows = relation.followed_by(node, [*kept, *made.values()])
        return Step("with_columns", options, [relation], rows, shape="casts")
    kept = [col for col in relation.cols if random.random() < 0.7 and col.name not in made]
    passed = {col.name: writer.name(col) for col in kept}
    rows = relation.followed_by(node, [*(replace(c, qualifier=None) for c in kept), *made.values()])
    return Step("select", {"columns": passed | columns, "rejects": True}, [relation], rows, shape="casts")


def from_json_or_rejected(random: Random, relation: Relation, node: str) -> Step | None:
    """Text into columns, or to what is rejected."""
    step = from_json(random, relation, node)
    return None if step is None else replace(step, options={**step.options, "rejects": True}, shape="rejects")


def rules(random: Random, relation: Relation, node: str) -> Step | None:
    """Rules with what becomes of the rows that break them."""
    if not relation.usable():
        return None
    writer = Writer.over(random, relation)
    made: dict[str, Any] = {}
    for number in range(random.choice([1, 2, 3])):
        rule: dict[str, Any] = {"condition": writer.boolean(0)[0]}
        if random.random() < 0.3:
            rule = {"column": writer.named_only(), "not_null": True}
        if random.random() < 0.6:
            rule["action"] = random.choice(["reject", "warn", "drop", "fail"])
        if random.random() < 0.2 and "condition" in rule:
            rule["null"] = "pass"
        made[f"rule{number}"] = rule
    options: dict[str, Any] = {"rules": made}
    if random.random() < 0.2:
        options["action"] = random.choice(["warn", "drop", "fail"])
    return Step("expect", options, [relation], relation.followed_by(node, relation.cols), shape="actions")


def join_or_rejected(random: Random, left: Relation, right: Relation, node: str) -> Step | None:
    """A join with a table, whose rows without a partner are rejected."""
    if right.streaming:
        return None
    for _ in range(4):
        step = join(random, left, right, node)
        if step is not None and "how" not in step.options:
            return replace(step, options={**step.options, "unmatched": "reject"}, shape="rejects unmatched")
    return None


ONE_INPUT: dict[str, tuple[Callable[[Random, Relation, str], Step | None], int]] = {
    "stateful": (stateful, 8),
    "from_avro": (from_avro, 8),
    "to_avro": (to_avro, 4),
    "from_debezium": (from_debezium, 4),
    "rest_enrich": (rest_enrich, 3),
    "casts": (casts, 5),
    "from_json": (from_json_or_rejected, 3),
    "rules": (rules, 4),
}
WITH_TABLE: dict[str, tuple[Callable[[Random, Relation, Relation, str], Step | None], int]] = {
    "stateful": (stateful_begun, 3),
    "join": (join_or_rejected, 3),
}


def _record(name: str, fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields]}


def _unpacked(
    random: Random, relation: Relation, col: Col, options: dict[str, Any], columns: str
) -> list[Col]:
    """The columns of messages, and sometimes the other ones before them."""
    found = Col("", f"struct<{columns}>").fields()
    names = {field.name.lower() for field in found}
    kept = [other for other in relation.cols if other is not col]
    if random.random() < 0.45 and not names & {other.name.lower() for other in kept}:
        options["keep"] = True
        return [*kept, *found]
    return found
