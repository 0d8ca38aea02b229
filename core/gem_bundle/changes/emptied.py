"""What conditions let nothing of through, by which Spark keeps less."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.needed import of_input
from gem_bundle.changes.nulls import IS_NULL
from gem_bundle.lineage import NEVER_TRUE, UNCHANGED
from gem_bundle.pipeline.plan import paths_into, reader_name

if TYPE_CHECKING:
    from collections.abc import Collection

    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.record import InputRecord
    from gem_bundle.lineage import Lineage
    from gem_bundle.pipeline.plan import Path, Plan


_Step = tuple["Path", str, frozenset[str]]


def let_nothing_through(flow: Flow) -> tuple[str, ...]:
    """The nodes whose condition on a row is never true, as Spark finds it by its form."""
    return tuple(
        name
        for name in flow.side.order
        if flow.side.nodes[name].kind == "transform"
        and any(_is_never_true(flow, name, output) for output in flow.outputs(name))
    )


def _is_never_true(flow: Flow, name: str, output: str) -> bool:
    lineage = flow.lineage(name, output)
    # What is the same for all rows isn't put before what keeps state.
    if lineage is None or not lineage.rows.uses:
        return False
    if NEVER_TRUE in (lineage.asks or ()):
        return True
    never = flow.nulls.before(name) if IS_NULL.match(lineage.rows.rule) else {}
    return all(never.get(use) for use in lineage.rows.uses)


def in_empty_branches(flow: Flow) -> set[str]:
    """The nodes with state of whose rows none gets through a condition, for they lack what it asks for.

    It is one behind a union that fills with nulls what an input lacks. Spark puts the condition into each
    branch, finds there that it is never true, and asks that before the join and nothing else behind it.

    Args:
        flow: The version.
    """
    found: set[str] = set()
    for name in flow.side.order:
        node = flow.side.nodes[name]
        lineages = [flow.lineage(name, o) for o in flow.outputs(name)] if node.kind == "transform" else []
        for use in {use for lineage in lineages if lineage is not None for use in lineage.asks or ()}:
            position, _, key = use.partition(":")
            if position.isdecimal():
                found |= _emptied(flow, node.inputs[int(position)], key)
    return found


def _emptied(flow: Flow, edge: InputRecord, key: str) -> set[str]:
    """Those before an input of which Spark asks for a column."""
    edge = flow.passed_over(edge, {key})
    lineage, inputs = flow.lineage(edge.node, edge.output), flow.side.nodes[edge.node].inputs
    made = lineage.columns.get(key) if lineage is not None else None
    if lineage is None or made is None or lineage.kept is not None or key in flow.marked(edge.node):
        return set()
    found: set[str] = set()
    uses = made.uses or frozenset()
    for position, other in enumerate(inputs):
        columns = of_input(uses, position)
        for column in columns:
            found |= _emptied(flow, other, column)
        if made.rule == "union" and uses and not columns:
            names = {other.node, *flow.side.before(other.node)}
            found |= {name for name in names if flow.keeps(name) and _keeps_less(flow, name, names)}
    return found


def _keeps_less(flow: Flow, name: str, branch: set[str]) -> bool:
    """Whether a node in a branch keeps something for a condition there, or its own, and for nobody else."""
    if flow.keeps_rows(name):
        return True
    lineage = flow.lineage(name)
    if lineage is None or lineage.kept is None or not lineage.kept.values:
        return False
    if "" in lineage.kept.values or lineage.kept.reads - flow.needed.behind(name):
        return True
    return any(_asks_of(flow, other, name) for other in branch.intersection(flow.side.behind(name)))


def _asks_of(flow: Flow, name: str, groups: str) -> bool:
    """Whether a node behind groups asks for anything of them but what they are formed by, or may."""
    made, inputs = flow.lineage(name), flow.side.nodes[name].inputs
    if made is None or made.kept is not None or not made.rows.uses:
        return made is None
    before = flow.lineage(groups)
    if [edge.node for edge in inputs] != [groups] or before is None or before.kept is None:
        return True
    return bool(set(of_input(made.rows.uses, 0)) & before.kept.values.keys())


def gets_through(flow: Flow, plan: Plan, readers: Collection[str]) -> bool:
    """Whether rows of one of some readers may get to the target, or to what keeps state.

    They don't where a union fills with nulls what they lack, and a condition behind it asks for that.

    Args:
        flow: The version.
        plan: The pipeline, of which it is a part.
        readers: The names of the readers.
    """
    start: _Step = (flow.side.target, frozenset()), "", frozenset()
    waiting, seen = [start], {start}
    while waiting:
        path, output, wanted = waiting.pop()
        node = flow.side.nodes[path[0]]
        if node.kind == "source" and reader_name(plan, path) in readers:
            return True
        lineage = flow.lineage(node.id, output) if node.kind == "transform" else None
        for position, before in enumerate(paths_into(plan, path)):
            asked = _asked_of(lineage, position, wanted, alone=len(node.inputs) == 1)
            step = before, node.inputs[position].output, asked or frozenset()
            if asked is not None and step not in seen:
                seen.add(step)
                waiting.append(step)
    return False


def _asked_of(
    lineage: Lineage | None, position: int, wanted: frozenset[str], *, alone: bool
) -> frozenset[str] | None:
    """What rows of an input must not lack to get through a node and what is behind it; None if all lack it.

    Args:
        lineage: What the node makes of what; None where that isn't known.
        position: The position of the input.
        wanted: What its own rows must not lack.
        alone: It is the only input: of several a condition may ask for what pairs lack.
    """
    if lineage is None or lineage.kept is not None or lineage.expands:
        return frozenset()
    asked: set[str] = set()
    for key in wanted:
        made = lineage.columns.get(key)
        if made is None or made.rule not in UNCHANGED or made.uses is None:
            continue
        columns = of_input(made.uses, position)
        if made.rule == "union" and not columns:
            return None
        asked |= columns
    return frozenset(asked | of_input(lineage.asks or (), position) if alone else asked)
