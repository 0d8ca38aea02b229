"""Conditions behind state that Spark takes apart, puts in other words, or makes something else of."""

from __future__ import annotations

import copy
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from tests.differential.edits.draw import Edit, Recorded
from tests.differential.expressions import Writer
from tests.differential.relations import WINDOW

if TYPE_CHECKING:
    from tests.differential.relations import Relation

Values = dict[str, Any]

SHARE = 0.35
"""How many pipelines ask for something more before their target, and how many others are edited to."""

_TRIES = 6
_NODES = ("asked_flag", "asked")


def asking(recorded: Recorded, seed: str, values: Values, target: str) -> tuple[Values, list[Edit]]:
    """A pipeline that may ask for something before its target, and the edits that begin or end that.

    Args:
        recorded: The pipeline as it was drawn.
        seed: What it came from.
        values: The same with nothing but the target and what it needs.
        target: The target.
    """
    random = Random(f"{seed}:asked")
    read = values["targets"][target].get("input")
    relation = recorded.relations.get(read or "")
    if relation is None or random.random() >= 2 * SHARE:
        return values, []
    condition = _condition(random, relation)
    if condition is None:
        return values, []
    other = _with(values, target, read, condition, as_flag=random.random() < 0.4)
    if random.random() < 0.5:
        return values, [Edit("ask for more", other, "asked")]
    return other, [Edit("ask for less", values, "asked")]


def _with(values: Values, target: str, read: str, condition: str, *, as_flag: bool) -> Values:
    found = copy.deepcopy(values)
    steps = found.setdefault("transforms", {})
    flag, asked = _NODES
    if as_flag:
        steps[flag] = {"gem": "with_columns", "input": read, "options": {"columns": {"is_so": condition}}}
        read, condition = flag, "is_so"
    steps[asked] = {"gem": "filter", "input": read, "options": {"condition": condition}}
    found["targets"][target]["input"] = asked
    return found


def _condition(random: Random, relation: Relation) -> str | None:
    cols = [replace(col, qualifier=None) for col in relation.usable() if col.name.isidentifier()]
    if not cols:
        return None
    writer = Writer(random, cols, {col.name.lower() for col in cols})
    one, other, third = _simples(random, writer)
    forms = [
        f"not ({one} or {other})",
        f"not (not ({one}) or {other})",
        f"({one} and {other}) or ({one} and {third})",
        f"({one} or {other}) and {third}",
        f"({one} and {other}) is true",
        f"if({one}, {other}, false)",
        f"coalesce({one} and {other}, false)",
        f"{one} or {other}",
        f"case when {one} then {other} else {third} end",
    ]
    pairs = [
        (p.name, q.name)
        for p in cols
        for q in cols
        if p.name < q.name and p.type == q.type and p.family != "map"
    ]
    if pairs and random.random() < 0.5:
        p, q = random.choice(pairs)
        forms = [
            f"not ({p} <> {q})",
            f"{p} = {q} or 1 = 2",
            f"({p} = {q}) = true",
            f"equal_null({p}, {q})",
            f"{p} <= {q}",
            f"{p} = {q} and {one}",
            f"not ({p} <> {q} or {one})",
            f"exists(array({p}), z -> z = {q})",
        ]
    return random.choice(forms)


def _simples(random: Random, writer: Writer) -> list[str]:
    """Three conditions, other ones where there are: one beside its contrary is nothing that anybody asks for."""
    found: list[str] = []
    for _ in range(_TRIES):
        condition = _simple(random, writer)
        if condition not in found:
            found.append(condition)
    return [found[number % len(found)] for number in range(3)]


def _simple(random: Random, writer: Writer) -> str:
    col = random.choice(writer.cols)
    if col.type == WINDOW:
        # No row lacks one.
        return f"{col.name}.start {random.choice(['>', '<='])} '2024-01-31 10:30:00'"
    if col.family == "number":
        return f"{col.name} {random.choice(['>', '<', '>=', '='])} {random.randrange(4)}"
    if col.family == "string":
        return f"{col.name} {random.choice(['=', '<>'])} '{random.choice(['home', 'a', 'x'])}'"
    if col.family == "boolean":
        return str(col.name)
    if col.family == "timestamp":
        return f"{col.name} > '2024-01-31 10:30:00'"
    return f"{col.name} is not null"
