"""Columns that are only called otherwise: what Spark keeps of rows is the same under other names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.lineage import Made, column_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.record import NodeRecord
    from gem_bundle.changes.sides import Side
    from gem_bundle.lineage import Lineage

# What columns were called, by what they are called now; None where more than names is different.
_Names = dict[str, str]


def states_of_the_same_rows(both: Comparison, new: NodeRecord) -> set[str]:
    """The nodes behind a node that has changed whose state is the same but for the names of columns.

    Spark keeps rows, and what duplicates are told by, by the order of their columns, without their names.

    Args:
        both: What is compared.
        new: The node, as it is.
    """
    former = {node.id: old for old, node in both.pairs}
    if new.id not in former:
        return set()
    old = former[new.id]
    if _coming(both.old, old) != _coming(both.new, new):
        return set()  # what has changed is before it
    names = _names(both.before.lineage(old.id), both.after.lineage(new.id), [{} for _ in new.inputs])
    found = (
        {new.id} if names is not None and _keeps_the_same(both, old, new, [{} for _ in new.inputs]) else set()
    )
    return found | _behind(both, new.id, names)


def _coming(side: Side, node: NodeRecord) -> list[list[str] | None]:
    """What the columns of a node's inputs are called, in order."""
    facts = [side.facts.get(edge.key) for edge in node.inputs]
    return [column_keys(found.columns) if found is not None else None for found in facts]


def states_behind_names(both: Comparison, node: NodeRecord) -> set[str]:
    """The same behind a node that was put between or taken out, and calls columns otherwise.

    Args:
        both: What is compared.
        node: A node that is new, or that is no more; others of the kind may do what they want to names.
    """
    if [other.id for other in (*both.added, *both.removed) if other.kind == "transform"] != [node.id]:
        return set()
    flow = both.after if node.id in both.new.nodes else both.before
    lineage = flow.lineage(node.id)
    names = None if lineage is None or lineage.rows != Made() else _called(lineage)
    if names is None or len(node.inputs) != 1 or node.inputs[0].output:
        return set()
    if flow is both.after:
        return _behind(both, node.id, names)
    before = node.inputs[0].node
    if any(edge.node == before for n in both.old.nodes.values() if n.id != node.id for edge in n.inputs):
        return set()  # what reads the columns by their own names reads them as ever
    return _behind(both, both.now.get(before, ""), {was: now for now, was in names.items()})


def _called(lineage: Lineage) -> _Names | None:
    """What columns are called, by what they are called behind a node, where that is all it does to them."""
    found = {}
    for key, made in lineage.columns.items():
        if made.rule not in {"", "="} or made.uses is None or len(made.uses) != 1:
            return None
        (found[key],) = (use.partition(":")[2] for use in made.uses)
    return found if len(set(found.values())) == len(found) else None


def _behind(both: Comparison, first: str, names: _Names | None) -> set[str]:
    former = {node.id: old for old, node in both.pairs}
    order = both.after.side.order
    named: dict[str, _Names | None] = {first: names}
    found: set[str] = set()
    for name in order[order.index(first) + 1 :] if first in order else ():
        node = both.new.nodes[name]
        edges = [edge for edge in node.inputs if edge.node in named]
        if node.kind != "transform" or not edges:
            continue
        old = former.get(name)
        coming = [named.get(edge.node, {}) for edge in node.inputs]
        known = [mapping for mapping in coming if mapping is not None]
        named[name] = None
        if old is None or len(known) < len(coming) or any(edge.output for edge in edges):
            continue
        if not _is_as_it_was(both, old, node):
            continue
        drops = both.before.drops_duplicates(old.id) and both.after.drops_duplicates(name)
        same = _keeps_the_same(both, old, node, known, duplicates=drops)
        if drops:
            named[name] = known[0] if same else None
        else:
            named[name] = _names(both.before.lineage(old.id), both.after.lineage(name), known)
        if same and named[name] is not None:
            found.add(name)
    return found


def _is_as_it_was(both: Comparison, old: NodeRecord, new: NodeRecord) -> bool:
    was, now = both.read_before(old), both.read_now(new)
    return (old.gem, old.options, old.functions, was) == (new.gem, new.options, new.functions, now)


def _names(before: Lineage | None, after: Lineage | None, inputs: Sequence[_Names]) -> _Names | None:
    """What the columns of a node were called, where it makes the same of the same, in order."""
    if before is None or after is None or len(before.columns) != len(after.columns):
        return None
    made = [*after.columns.values(), after.rows]
    if [_renamed(one, inputs) for one in made] != [*before.columns.values(), before.rows]:
        return None
    return dict(zip(after.columns, before.columns, strict=True))


def _keeps_the_same(
    both: Comparison,
    old: NodeRecord,
    new: NodeRecord,
    inputs: Sequence[_Names],
    *,
    duplicates: bool = False,
) -> bool:
    """Whether a node keeps nothing but rows of its inputs, and of them the same columns by the same keys.

    Args:
        both: What is compared.
        old: The node as it was.
        new: The node as it is.
        inputs: What the columns of its inputs were called.
        duplicates: It is a removal of duplicates, which keeps what it tells them by in the stead of rows.
    """
    before, after = both.before.lineage(old.id), both.after.lineage(new.id)
    if before is None or after is None or before.kept is None or after.kept is None:
        return False
    if duplicates:
        if before.kept.values != after.kept.values or before.rows.rule != after.rows.rule:
            return False
    elif not (before.kept.rows and after.kept.rows) or before.kept.values or after.kept.values:
        return False
    if tuple(_renamed(made, inputs) for made in after.kept.keys) != before.kept.keys:
        return False
    return all(
        {names.get(key, key) for key in both.after.needed.of_input(new.id, position)}
        == both.before.needed.of_input(old.id, position)
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
