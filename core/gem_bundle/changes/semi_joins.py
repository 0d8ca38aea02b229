"""How far before itself Spark puts a semi join: its rule `PushDownLeftSemiAntiJoin`."""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.changes.conditions import SEMI, is_written_down
from gem_bundle.changes.joins import joins_at, passes_as_they_are, read_before
from gem_bundle.changes.needed import of_input
from gem_bundle.expressions.functions import BY_CHANCE
from gem_bundle.lineage import UNCHANGED, Made, column_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.record import InputRecord
    from gem_bundle.lineage import Lineage
    from gem_bundle.operators import JoinOperator

_PASSED = frozenset({"filter", "generate", "repartition", "union"})
_BY_CHANCE = re.compile(rf"(?i)[.'](?:{'|'.join(sorted(BY_CHANCE))}|monotonically_?increasing_?id)'")


class Taken(NamedTuple):
    """Where a join takes the rows of an input from.

    Args:
        edge: The output of a node: that which the join reads, or one before it.
        columns: Those of its columns that are read.
        called: What columns of the join's input are called there, where they are called otherwise.
        asks: The columns there of which what stands between leaves out the nulls.
    """

    edge: InputRecord
    columns: set[str]
    called: Mapping[str, str] = MappingProxyType({})
    asks: frozenset[str] = frozenset()


def taken_from(flow: Flow, name: str, position: int, wanted: set[str], branch: int = 0) -> Taken:
    """Where a join takes the rows of an input from.

    Spark puts it before what leaves rows out or unites them, chooses columns, calls them otherwise or
    adds constants, and before what makes several rows of each, where it asks for none of what is made.

    Args:
        flow: The version.
        name: The join.
        position: The position of the input.
        wanted: The columns of the input that are read.
        branch: Of the several that Spark makes of one, as `joins_of` counts them, which it is.
    """
    edge, lineage = flow.side.nodes[name].inputs[position], flow.lineage(name)
    found = here = Taken(edge, wanted)
    if lineage is None or lineage.kept is None or lineage.rows.uses is None:
        return found
    if [o.how for o in joins_at(flow, name)] != ["left_semi"] or position != lineage.kept.position_of(0):
        return found
    asked = of_input(lineage.rows.uses, position)
    while True:
        before = flow.lineage(here.edge.node, here.edge.output)
        kinds = flow.side.kinds_at(here.edge.node)
        if before is None or before.kept is not None:
            return found
        if len(flow.side.nodes[here.edge.node].inputs) > 1:
            place, branch = _branch_of(flow, here.edge, before, asked, branch)
            if place is None or not _keeps_types(flow, here.edge, place):
                return found
            found = here = _before_it(flow, here, before, place)
            asked = {_named_before(before, key, place) for key in asked}
            continue
        if before.expands:
            if before.rows.uses or not passes_as_they_are(before, asked):
                return found
        elif kinds - {"filter", "repartition"} or not _is_arranged(flow, here.edge, before):
            return found
        if any(key not in before.columns or before.columns[key].rule != "=" for key in asked):
            return found
        here = _before_it(flow, here, before)
        asked = {_named_before(before, key) for key in asked}
        if not kinds & {"filter", "repartition"}:
            found = here


def _branch_of(
    flow: Flow, edge: InputRecord, union: Lineage, asked: set[str], branch: int
) -> tuple[int | None, int]:
    """Which input of a union one of the joins is put before, and its number there; None for none of them."""
    if flow.side.kinds_at(edge.node) != {"union"} or any(key not in union.columns for key in asked):
        return None, branch
    for place, other in enumerate(flow.side.nodes[edge.node].inputs):
        if any(len(of_input(union.columns[key].uses or (), place)) != 1 for key in asked):
            return None, branch
        joins = _inputs_before(flow, other, {_named_before(union, key, place) for key in asked})
        if branch < joins:
            return place, branch
        branch -= joins
    return None, branch


def _keeps_types(flow: Flow, union: InputRecord, place: int) -> bool:
    """Whether a union takes an input's columns as they are, and makes none of them another type."""
    edge, lineage = flow.side.nodes[union.node].inputs[place], flow.lineage(union.node, union.output)
    coming, behind = (_types(flow, key) for key in (edge.key, union.key))
    columns = lineage.columns if lineage is not None else {}
    pairs = [(key, one) for key, made in columns.items() for one in of_input(made.uses or (), place)]
    return all(None is not behind.get(key) == coming.get(one) for key, one in pairs)


def _types(flow: Flow, key: str) -> dict[str, str | None]:
    facts = flow.side.facts.get(key)
    keys = column_keys(facts.columns) if facts is not None else None
    return {} if facts is None else {k: c.type for k, c in zip(keys or (), facts.columns or (), strict=False)}


def _before_it(flow: Flow, taken: Taken, lineage: Lineage, place: int = 0) -> Taken:
    """The same before what chooses columns, leaves rows out, or unites them."""
    edge = flow.side.nodes[taken.edge.node].inputs[place]
    columns = read_before(flow, taken.edge.node, replace(lineage, rows=Made()), place, taken.columns)
    as_they_are = {k for k, made in lineage.columns.items() if made.rule in UNCHANGED and _is_of(made, place)}
    now_called = taken.called or {key: key for key in lineage.columns}
    called = {k: _named_before(lineage, now, place) for k, now in now_called.items() if now in as_they_are}
    asks = {_named_before(lineage, key, place) for key in taken.asks if key in as_they_are}
    return Taken(edge, columns, called, frozenset(asks | of_input(lineage.asks or (), place)))


def _is_of(made: Made, place: int) -> bool:
    return len(of_input(made.uses or (), place)) == 1


def _named_before(lineage: Lineage, key: str, place: int = 0) -> str:
    """What a column was called before a node that hands it on as it is."""
    return next(iter(of_input(lineage.columns[key].uses or (), place)))


def _is_arranged(flow: Flow, edge: InputRecord, lineage: Lineage) -> bool:
    """Whether nothing is computed by a node: each column is one that comes, or a constant."""
    made = lineage.columns.values()
    if lineage.rows.uses is None or any(one.uses is None or _BY_CHANCE.search(one.rule) for one in made):
        return False
    if any(one.uses and (one.rule != "=" or len(one.uses) > 1) for one in made):
        return False
    if all(one.uses or is_written_down(one) for one in made):
        return True
    # Spark works out what is constant, and makes one of all that computes columns there.
    (before,) = flow.side.nodes[edge.node].inputs
    known = flow.lineage(before.node, before.output)
    return known is None or bool(flow.side.kinds_at(before.node)) or _is_arranged(flow, before, known)


def joins_of(flow: Flow, join: JoinOperator) -> int:
    """How many joins with state Spark makes of one: a semi join goes before a union, once for each input.

    It is Spark's rule `PushDownLeftSemiAntiJoin`. The join gets there through what computes columns, makes
    several rows of each or leaves some out; not through a watermark, nor through what keeps state.

    Args:
        flow: The version.
        join: The join.
    """
    lineage = flow.lineage(join.node)
    if join.how not in SEMI or lineage is None or lineage.kept is None:
        return 1
    left = lineage.kept.position_of(0)
    asked = of_input(lineage.rows.uses or (), left)
    return _inputs_before(flow, flow.side.nodes[join.node].inputs[left], asked)


def _inputs_before(flow: Flow, edge: InputRecord, asked: set[str]) -> int:
    node, lineage = flow.side.nodes[edge.node], flow.lineage(edge.node, edge.output)
    kinds = flow.side.kinds_at(node.id)
    if node.kind != "transform" or lineage is None or not kinds <= _PASSED:
        return 1
    made = (lineage.rows, *lineage.columns.values())
    if any(_BY_CHANCE.search(one.rule) for one in made) or (
        lineage.expands and not passes_as_they_are(lineage, asked)
    ):
        return 1
    uses = {use for key in asked if key in lineage.columns for use in lineage.columns[key].uses or ()}
    return sum(_inputs_before(flow, other, of_input(uses, place)) for place, other in enumerate(node.inputs))
