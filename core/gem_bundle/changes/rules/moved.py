"""Conditions that Spark puts before other state than it did, for what stands between is another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.below import states_below
from gem_bundle.changes.comparison import Told
from gem_bundle.changes.conditions import pushed_below
from gem_bundle.changes.reach import Reach
from gem_bundle.changes.rules.transforms import tell
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.record import NodeRecord


def compare_moved(both: Comparison) -> Iterator[Told]:
    """The conditions that are what they were, and are asked before other state than before.

    What was kept without one comes out unasked where it is asked before only, and the other way round.

    Args:
        both: What is compared.
    """
    for old, new in both.pairs:
        if new.kind != "transform" or (old.gem, old.options) != (new.gem, new.options):
            continue  # other options are told by themselves
        before = {both.now.get(name, "") for name in _before(both.before, old)}
        after = _before(both.after, new)
        states = {name for name in before ^ after if name in both.now.values() and _matters(both, name)}
        if states:
            where = (
                "is asked before it now" if states & after else "was asked before it, and is asked behind it"
            )
            what = f"transform `{new.id}` behind {listed_names(sorted(states))} {where}"
            reach = Reach(states=states)
            yield Told(tell(both, reach, "GB425", what, new.id, key="gem"), reach)


def _before(flow: Flow, node: NodeRecord) -> set[str]:
    found: set[str] = set()
    for output in flow.outputs(node.id):
        # Another output mode is told by itself, and asks for the same.
        pushed = pushed_below(flow, node.id, output, any_mode=True)
        found |= {name for name in pushed if not _is_of_groups(flow, name)}
        found |= pushed & states_below(flow, node.id, output) if pushed else set()
    return found


def _is_of_groups(flow: Flow, name: str) -> bool:
    """Whether a node keeps results of groups alone: only what is asked of their keys gets before it."""
    lineage = flow.lineage(name)
    kinds = {operator.kind for operator in flow.side.stateful if operator.node == name}
    groups = lineage is not None and lineage.kept is not None and bool(lineage.kept.values)
    return groups and kinds == {"aggregate"}


def _matters(both: Comparison, name: str) -> bool:
    """Whether what a node has kept comes out though no row comes for it, as rows of a join do."""
    return both.after.keeps_rows(name) or not both.after.updates
