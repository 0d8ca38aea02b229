"""Columns that go through a join in one, of which fields are read behind it: other ones, more, or all."""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING, Any

from tests.differential.edits.draw import Edit, Recorded, needed, redirect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.differential.relations import Relation

Values = dict[str, Any]

SHARE = 0.5
"""How many of the pipelines with a join have such a column, where one gets through."""

_MOST = 4
_NODES = ("packed_before", "unpacked")


def packing(
    recorded: Recorded, seed: str, values: Values, target: str
) -> Iterator[tuple[Values, list[Edit]]]:
    """The same pipeline with a few columns in one, from some node on, and edits of what is read of it.

    Args:
        recorded: The pipeline as it was drawn.
        seed: What it came from.
        values: The same with nothing but the target and what it needs.
        target: The target.

    Yields:
        Ways to do that: which of them get through to the target, the checker tells.
    """
    random = Random(f"{seed}:packed")
    read = values["targets"][target].get("input")
    last = recorded.relations.get(read or "")
    names = [name for name in needed(values, target) if name in recorded.relations and name != read]
    joins = [
        n
        for n in values.get("transforms", {}).values()
        if "join" in (n["gem"], *str(n.get("options")).split())
    ]
    if last is None or not joins or random.random() >= SHARE:
        return
    random.shuffle(names)
    for name in names:
        fields = _fields(random, recorded.relations[name])
        if len(fields) < 2:
            continue
        some = fields[: random.randrange(1, len(fields))]
        others = [random.sample(fields, random.randrange(1, len(fields) + 1)) for _ in range(2)]
        plain = random.sample([f"`{col.name}`" for col in last.usable()], min(2, len(last.usable())))

        def reading(
            *columns: str, name: str = name, fields: list[str] = fields, plain: list[str] = plain
        ) -> Values:
            return _with(values, target, name, fields, [*plain, *columns])

        edits = [Edit("read other fields", reading(*_read(other)), "unpacked") for other in others]
        edits.append(Edit("read it all", reading(*_read(some), "packed"), "unpacked"))
        yield reading(*_read(some)), edits


def _fields(random: Random, relation: Relation) -> list[str]:
    names = [col.name for col in relation.usable() if col.name.isidentifier() and col.family != "map"]
    return random.sample(names, min(_MOST, len(names)))


def _read(fields: list[str]) -> list[str]:
    return [f"packed.{name} as field_{name}" for name in fields]


def _with(values: Values, target: str, name: str, fields: list[str], columns: list[str]) -> Values:
    found = copy.deepcopy(values)
    before, behind = _NODES
    redirect(found, name, before)
    steps = found.setdefault("transforms", {})
    together = f"struct({', '.join(fields)})"
    steps[before] = {"gem": "with_columns", "input": name, "options": {"columns": {"packed": together}}}
    read = found["targets"][target]["input"]
    steps[behind] = {"gem": "select", "input": read, "options": {"columns": columns}}
    found["targets"][target]["input"] = behind
    return found
