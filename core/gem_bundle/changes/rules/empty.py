"""What lets nothing through: conditions that are never true, and a limit of no rows behind an aggregation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.emptied import let_nothing_through
from gem_bundle.lineage import Made
from gem_bundle.operators import LimitOperator

if TYPE_CHECKING:
    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.model import Change
    from gem_bundle.changes.sides import Side

_SURE = frozenset({"continues", "from_now_on"})


def tell_of_empty(both: Comparison, changes: list[Change]) -> list[Change]:
    """The changes, of which nothing is promised where state is kept beside a condition that is never true.

    What such a query keeps, and by what its watermark goes, is decided by Spark's optimizer.

    Args:
        both: What is compared.
        changes: What the other rules say.
    """
    if not both.old.stateful and not both.new.stateful:
        return changes
    idle = _idle(both.old)
    if idle is not None:
        changes = [
            _never_kept(both, change) if _asks_of_idle(both, idle, change) else change for change in changes
        ]
    empty = [*let_nothing_through(both.after), *let_nothing_through(both.before)]
    if not empty:
        return changes
    return [_told(both, change, empty[0]) if change.verdict in _SURE else change for change in changes]


def _idle(side: Side) -> str | None:
    """The limit of no rows that a target reads, for which Spark computes nothing, but what it has to sort."""
    (edge,) = side.nodes[side.target].inputs
    last = side.operators[-1] if side.operators else None
    if not isinstance(last, LimitOperator) or last.node != edge.node or last.rows != 0 or side.may_keep(last):
        return None
    return None if any(before.kind == "sort" for before in last.inputs) else last.node


def _asks_of_idle(both: Comparison, idle: str, change: Change) -> bool:
    """Whether a change is one of a limit of no rows, or of what decides on rows behind it."""
    if change.node == idle:
        return True
    node = both.new.nodes.get(change.node or "")
    if node is None or node.kind != "transform" or idle not in both.new.before(node.id):
        return False
    lineage = both.after.lineage(node.id)
    return lineage is None or lineage.rows != Made()


def _never_kept(both: Comparison, change: Change) -> Change:
    """A change of a limit of no rows, or behind it: nobody asked for what is before it, nor wrote state."""
    message = (
        f"{change.difference}: of no rows nothing was computed, and the checkpoint lacks the state of it"
    )
    return replace(change.of_state(), verdict="refused", message=message, hint=both.begin_anew)


def _told(both: Comparison, change: Change, empty: str) -> Change:
    message = (
        f"{change.difference}: the condition of `{empty}` is never true, and "
        "how early Spark leaves out what comes to it can't be told, nor what state was made of"
    )
    return replace(change.of_state(), verdict="mixed", message=message, hint=both.begin_anew)
