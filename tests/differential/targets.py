"""Targets at random that write somewhere. Nothing is written: Spark is asked of the query before them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.differential.changing import changing
from tests.differential.expressions import Writer
from tests.differential.further import CALLED
from tests.differential.relations import Relation

if TYPE_CHECKING:
    from random import Random

    from tests.differential.relations import Col

_JDBC = {"url": "jdbc:postgresql://localhost:5432/shop", "table": "totals"}
_KINDS: dict[str, tuple[int, frozenset[str]]] = {
    "delta": (3, frozenset({"append", "complete"})),
    "merge": (5, frozenset({"append", "update"})),
    "history": (4, frozenset({"append", "update"})),
    "jdbc": (2, frozenset({"append", "complete"})),
    "upsert": (3, frozenset({"append", "update"})),
    "table": (3, frozenset({"append", "complete"})),
    "kafka": (2, frozenset({"append", "update", "complete"})),
    "foreach": (3, frozenset({"append", "update", "complete"})),
    "foreach_batch": (3, frozenset({"append", "update", "complete"})),
    "file": (2, frozenset({"append"})),
}
_NO_KEYS = frozenset({"map", "variant"})
_ORDERED = ("number", "string", "timestamp", "date")


def target(random: Random, relation: Relation, mode: str, number: int) -> dict[str, Any] | None:
    """The gem and the options of a target; None where its rows aren't what it takes.

    Args:
        random: Where chance comes from.
        relation: What it takes.
        mode: Its output mode.
        number: Its number, so that each has a place of its own.
    """
    kinds = {name: weight for name, (weight, modes) in _KINDS.items() if mode in modes}
    kind = random.choices(list(kinds), list(kinds.values()))[0]
    if kind in {"merge", "history", "upsert"}:
        return _changing(random, relation, kind, number)
    if kind == "kafka":
        names = {col.name.lower(): col.family for col in relation.cols}
        if names.get("value") not in {"string", "binary"}:
            return None
        return {"gem": "kafka", "options": {"bootstrap_servers": "localhost:9092", "topic": f"out{number}"}}
    if kind in {"foreach", "foreach_batch"}:
        refusing = random.random() < 0.4
        function = f"{'judge' if refusing else 'take'}_{'row' if kind == 'foreach' else 'batch'}"
        options: dict[str, Any] = {"function": f"{CALLED}:{function}"}
        return {"gem": kind, "options": {**options, "rejects": True} if refusing else options}
    if relation.ambiguous():
        return None
    if kind == "jdbc":
        return {"gem": "jdbc", "options": {**_JDBC, "table": f"out{number}"}}
    if kind == "table":
        return {"gem": "table", "options": {"table": f"shop.out{number}"}}
    if kind == "file":
        return {"gem": "file", "options": {"format": "parquet", "path": f"out/{number}"}}
    return {"gem": "delta", "options": {"path": f"tables/out{number}"}}


def _changing(random: Random, relation: Relation, kind: str, number: int) -> dict[str, Any] | None:
    """A target whose rows change those with their key."""
    keys = [col for col in relation.usable() if col.family not in _NO_KEYS and "map<" not in col.type]
    if relation.ambiguous() or not keys:
        return None
    chosen = random.sample(keys, min(len(keys), random.choice([1, 1, 2])))
    ordered = [col for col in relation.of_family(*_ORDERED) if col not in chosen]
    names = [col.name for col in chosen]
    if kind == "upsert":
        upsert: dict[str, Any] = {"on": names}
        if ordered and random.random() < 0.7:
            upsert["sequence_by"] = random.choice(ordered).name
        return {"gem": "jdbc", "options": {**_JDBC, "table": f"out{number}", "upsert": upsert}}
    if not ordered:
        return None
    # A row that comes is called `source` there, whatever its columns were called by before.
    writer = Writer.over(random, Relation(relation.id, tuple(_bare(relation)), relation.streaming))
    sequence = writer.name(random.choice(ordered))
    changing: dict[str, Any] = {"on" if kind == "merge" else "keys": names, "sequence_by": sequence}
    if random.random() < 0.4:
        changing["delete_when"] = writer.boolean(0)[0]
    others = [col for col in relation.cols if col not in chosen and col.family not in _NO_KEYS]
    if kind == "history" and others and random.random() < 0.4:
        changing["track"] = [random.choice(others).name]
    return {"gem": "delta", "options": {"path": f"tables/out{number}", kind: changing}}


def mistaken(random: Random, relation: Relation, node: dict[str, Any]) -> bool:
    """Make a mistake in how the rows of a target change others; True where there is one then.

    Args:
        random: Where chance comes from.
        relation: What it takes.
        node: The target, as its pipeline file has it.
    """
    how = changing(node["options"])
    if how is None:
        return False
    nothing = random.choice(["nothing", "colour", "zz"])
    if any(col.name.lower() == nothing for col in relation.cols):
        return False
    key = "on" if "on" in how else "keys"
    number = Writer(random, _bare(relation)).number(0)[0]
    unequal = [col.name for col in relation.usable() if col.family in _NO_KEYS]
    forms: list[dict[str, Any]] = [{key: [*how[key], nothing]}, {"sequence_by": nothing}]
    if unequal:
        forms.append({key: [random.choice(unequal)]})
    if "upsert" not in node["options"]:
        forms += [
            {"sequence_by": f"coalesce({nothing}, 1)"},
            {"delete_when": f"{nothing} = 'd'"},
            {"delete_when": f"{number} + 1"},
            {"delete_when": "count(*) > 1"},
        ]
        forms += [{"sequence_by": random.choice(unequal)}] if unequal else []
    how |= random.choice(forms)
    return True


def _bare(relation: Relation) -> list[Col]:
    return [replace(col, qualifier=None) for col in relation.cols]
