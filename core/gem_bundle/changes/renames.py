"""Columns that are only called otherwise: rows that a join keeps are the same rows under other names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.lineage import Made

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.record import NodeRecord
    from gem_bundle.lineage import Lineage

# What columns were called, by what they are called now; None where more than names is different.
_Names = dict[str, str]


def joins_of_the_same_rows(both: Comparison, new: NodeRecord) -> set[str]:
    """The joins behind a node that has changed whose state is the same but for the names of columns.

    Spark keeps rows by the order of their columns, without their names.

    Args:
        both: What is compared.
        new: The node, as it is.
    """
    former = {node.id: old for old, node in both.pairs}
    order = both.after.side.order
    named: dict[str, _Names | None] = {}
    found: set[str] = set()
    for name in order[order.index(new.id) :]:
        node = both.new.nodes[name]
        edges = [edge for edge in node.inputs if edge.node in named]
        if node.kind != "transform" or (name != new.id and not edges):
            continue
        old = former.get(name)
        names = [named.get(edge.node, {}) for edge in node.inputs]
        known = [mapping for mapping in names if mapping is not None]
        if old is None or len(known) < len(names) or any(edge.output for edge in edges):
            named[name] = None
            continue
        if name != new.id and not _is_as_it_was(both, old, node):
            named[name] = None
            continue
        named[name] = _names(both.before.lineage(old.id), both.after.lineage(name), known)
        if named[name] is not None and _keeps_the_same(both, old, node, known):
            found.add(name)
    return found


def _is_as_it_was(both: Comparison, old: NodeRecord, new: NodeRecord) -> bool:
    read = [(both.now.get(edge.node), edge.output) for edge in old.inputs]
    return (old.gem, old.options, old.functions, read) == (
        new.gem,
        new.options,
        new.functions,
        [(edge.node, edge.output) for edge in new.inputs],
    )


def _names(before: Lineage | None, after: Lineage | None, inputs: Sequence[_Names]) -> _Names | None:
    """What the columns of a node were called, where it makes the same of the same, in order."""
    if before is None or after is None or len(before.columns) != len(after.columns):
        return None
    made = [*after.columns.values(), after.rows]
    if [_renamed(one, inputs) for one in made] != [*before.columns.values(), before.rows]:
        return None
    return dict(zip(after.columns, before.columns, strict=True))


def _keeps_the_same(both: Comparison, old: NodeRecord, new: NodeRecord, inputs: Sequence[_Names]) -> bool:
    """Whether a node keeps nothing but rows of its inputs, and of them the same columns by the same keys."""
    before, after = both.before.lineage(old.id), both.after.lineage(new.id)
    if before is None or after is None or before.kept is None or after.kept is None:
        return False
    if not (before.kept.rows and after.kept.rows) or before.kept.values or after.kept.values:
        return False
    if tuple(_renamed(made, inputs) for made in after.kept.keys) != before.kept.keys:
        return False
    return all(
        {names.get(key, key) for key in both.after.needed_of(new.id, position)}
        == both.before.needed_of(old.id, position)
        for position, names in enumerate(inputs)
    )


def _renamed(made: Made, inputs: Sequence[Mapping[str, str]]) -> Made | None:
    """The same with the former names of what it is made of; None where the names may be a part of it."""
    uses = set()
    for use in made.uses or ():
        position, _, key = use.partition(":")
        names = inputs[int(position)]
        if made.rule != "=" and names.get(key, key) != key:
            return None  # as in the JSON of a whole row
        uses.add(f"{position}:{names.get(key, key)}")
    return None if made.uses is None else Made(made.rule, frozenset(uses))
