"""Conditions that leave out whole groups: what a node has kept of the others is none the older for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gem_bundle.changes.forms import form_of
from gem_bundle.changes.implied import columns_of_what_differs, implies
from gem_bundle.changes.results import VARYING
from gem_bundle.operators import AggregateOperator, DeduplicateOperator, JoinOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from gem_bundle.changes.flow import Flow

_BY_ROW = frozenset({"filter", "repartition"})


def states_of_other_groups(flow: Flow, name: str, states: set[str], uses: Set[str] | None = None) -> set[str]:
    """The nodes behind a new condition that have kept nothing of what they get from now on that it changes.

    It asks for nothing but what they keep their state by, so all rows of a group come as before, or none do.
    Of the latter nothing comes out any more where only rows that come make results, which is so for a removal
    of duplicates, and in the output mode ``update`` for an aggregation.

    Args:
        flow: The version with the condition.
        name: The node that asks it.
        states: The nodes behind it that keep state.
        uses: What it asks for and didn't before, each column behind the position of its input; by default
            that is all.
    """
    asking = _kept_by_what_it_asks(flow, name, uses)
    return {other for other in asking & states if _gives_what_comes(flow, other, name)}


def asks_for_more(was: tuple[Flow, str], now: tuple[Flow, str]) -> set[str] | None:
    """The columns of what a condition asks for that it didn't before, where it lets through no other rows.

    Args:
        was: The version that ran, with the node that asked it.
        now: The version that is going to run, with the node that asks it.

    Returns:
        Each column behind the position of its input. None where other rows may come through, or nobody knows.
    """
    lineages = [flow.lineage(name) for flow, name in (was, now)]
    if any(one is None or one.kept is not None or not one.rows.uses for one in lineages):
        return None
    old, new = (form_of(one.rows.rule) if one is not None else None for one in lineages)
    if old is None or new is None or not implies(new, old):
        return None
    return columns_of_what_differs(new, old)


def duplicates_of_other_rows(
    was: tuple[Flow, str], now: tuple[Flow, str], names: Mapping[str, str]
) -> set[str]:
    """The removals of duplicates behind a condition that became another one, to which it is all the same.

    It asked, and asks, for nothing but what they compare. What was let through comes again as it did, and
    what was left out is new to them.

    Args:
        was: The version that ran, with the node that asked it.
        now: The version that is going to run, with the node that asks it.
        names: The ids that the old version's nodes have now, by the ids that they had.
    """
    flow, asking = now
    found = {names.get(name, "") for name in _kept_by_what_it_asks(*was)} & _kept_by_what_it_asks(*now)
    return {name for name in found if flow.drops_duplicates(name) and _gives_what_comes(flow, name, asking)}


def _kept_by_what_it_asks(flow: Flow, name: str, uses: Set[str] | None = None) -> set[str]:
    """The nodes behind a condition that keep their state by all that it asks for, or by some of that."""
    node, lineage = flow.side.nodes[name], flow.lineage(name)
    if lineage is None or lineage.kept is not None or node.functions or not _leaves_out_rows(flow, name):
        return set()
    if not lineage.rows.uses or VARYING.search(json.dumps(node.options)):
        return set()
    asked = lineage.rows.uses if uses is None else uses
    passed = {use: key for key, m in lineage.columns.items() if m.rule == "=" for use in m.uses or ()}
    if not asked <= passed.keys():
        return set()
    groups = {name: {use: passed[use] for use in asked}}
    found = set()
    for other in flow.side.order[flow.side.order.index(name) + 1 :]:
        edges = [edge for edge in flow.side.nodes[other].inputs if edge.node in groups]
        made = flow.lineage(other)
        if len(edges) != 1 or edges[0].output or len(flow.side.nodes[other].inputs) != 1 or made is None:
            continue
        known = groups[edges[0].node]
        if flow.keeps(other):
            keys = made.kept.keys if made.kept is not None else ()
            grouped = {
                next(iter(key.uses or ())) for key in keys if key.rule == "=" and len(key.uses or ()) == 1
            }
            if not {f"0:{key}" for key in known.values()} <= grouped:
                continue
            found.add(other)
        called = {use: key for key, m in made.columns.items() if m.rule == "=" for use in m.uses or ()}
        if all(f"0:{key}" in called for key in known.values()):
            groups[other] = {first: called[f"0:{key}"] for first, key in known.items()}
    return found


def _leaves_out_rows(flow: Flow, name: str) -> bool:
    """Whether a node gives rows as they come, or leaves them out: as an inner join with a table does."""
    operators = [operator for operator in flow.side.operators if operator.node == name]
    return bool(operators) and all(
        operator.how == "inner" if isinstance(operator, JoinOperator) else operator.kind in _BY_ROW
        for operator in operators
    )


def _gives_what_comes(flow: Flow, name: str, asking: str) -> bool:
    """Whether nothing comes out of what a node has kept of groups that no row comes for.

    Args:
        flow: The version.
        name: The node.
        asking: The node before it by whose condition some rows don't come, as a watermark behind that would
            notice.
    """
    operators = [operator for operator in flow.side.stateful if operator.node == name]
    if len(operators) != 1:
        return False
    (operator,) = operators
    moved = any(flow.watermarks(other) for other in flow.side.behind(asking))
    if isinstance(operator, DeduplicateOperator):
        return not moved or not flow.drops_late_rows(operator)
    return (
        isinstance(operator, AggregateOperator)
        and operator.kind == "aggregate"
        and (operator.event_time is False or (operator.event_time is True and not moved))
        and operator.sessions is False
        and flow.side.nodes[flow.side.target].output_mode == "update"
    )
