"""Columns that go on to a filter that asks for them, though they were left out before it.

So Spark has them: its rule `ResolveMissingReferences`. Behind the filter they are left out for good.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from gem_bundle.changes.forms import form_of, names_in
from gem_bundle.changes.lineages import lineage_of
from gem_bundle.check.stages.inference import inputs_of
from gem_bundle.lineage import column_keys, same

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gem_bundle.changes.record import InputRecord
    from gem_bundle.changes.sides import Side
    from gem_bundle.facts import Column, Facts
    from gem_bundle.gem import Transform
    from gem_bundle.lineage import Lineage


def brought(side: Side, told: Callable[[str], Lineage | None]) -> dict[str, Lineage | None]:
    """What nodes make of what that hand on what they leave out, or ask for what was left out.

    Args:
        side: The version.
        told: What a transform's gem says that it makes of what, by the transform's id.
    """
    columns: dict[str, dict[str, Column]] = {}
    for name in reversed(side.order):
        node = side.nodes[name]
        if node.kind != "transform" or len(node.inputs) != 1:
            continue
        (facts,) = inputs_in(side, name)
        lineage = told(name) if facts.hidden else None
        if not facts.hidden or lineage is None or lineage.kept is not None or lineage.rows.uses is not None:
            continue
        for key in names_in(form_of(lineage.rows.rule)) & facts.hidden:
            columns.setdefault(name, {})
            for other, column in _way_to(side, key, node.inputs[0]):
                columns.setdefault(other, {})[key] = column
    return {name: _bringing(side, name, columns) for name in columns}


def _way_to(side: Side, key: str, edge: InputRecord) -> list[tuple[str, Column]]:
    """The nodes that leave out a column, from an input on, each with it; none where it isn't found."""
    found: list[str] = []
    while True:
        facts, node = side.facts.get(edge.key), side.nodes[edge.node]
        keys = column_keys(facts.columns) if facts is not None else None
        if facts is None or keys is None or edge.output:
            return []
        if key in keys:
            column = (facts.columns or ())[keys.index(key)]
            return [(name, column) for name in found]
        if len(node.inputs) != 1:
            return []
        found.append(node.id)
        (edge,) = node.inputs


def _bringing(side: Side, name: str, columns: Mapping[str, Mapping[str, Column]]) -> Lineage | None:
    """What a node makes of what, with what comes to it and goes on though it was left out."""
    (facts,), (edge,) = inputs_in(side, name), side.nodes[name].inputs
    more = columns.get(edge.node, {}).values()
    lineage = lineage_of(
        cast("Transform", side.gems[name]), [replace(facts, columns=(*(facts.columns or ()), *more))]
    )
    own = column_keys(side.facts[name].columns)
    if lineage is None or own is None:
        return lineage
    made = {key: one for key, one in lineage.columns.items() if key in own}
    return replace(lineage, columns=made | {key: same(key) for key in columns[name]})


def inputs_in(side: Side, name: str) -> list[Facts]:
    """What is known of a node's inputs.

    Args:
        side: The version.
        name: The node.
    """
    # Only the keys of its inputs are asked for, and a recorded node has them too.
    return inputs_of(side.nodes[name], side.facts)  # type: ignore[arg-type]
