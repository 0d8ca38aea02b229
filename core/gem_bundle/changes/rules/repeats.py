"""Rows that come once more, and what makes nothing new of them: duplicates dropped, a maximum kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gem_bundle.changes.conditions import is_always_there
from gem_bundle.changes.needed import ALL
from gem_bundle.changes.results import VARYING
from gem_bundle.expressions import is_the_same_again, takes_first
from gem_bundle.lineage import column_keys
from gem_bundle.operators import AggregateOperator, DeduplicateOperator, JoinOperator

if TYPE_CHECKING:
    from gem_bundle.changes.flow import Flow
    from gem_bundle.operators import Operator

# Of the same rows these make the same rows, whenever they come.
_REPEATING = frozenset({"filter", "generate", "repartition", "union", "watermark"})


def none_passes_twice(flow: Flow, source: str, *, alone: bool) -> bool:
    """Whether a source that is read once more gives the target no row, and changes no result.

    Its rows that nobody has read yet come behind those that are read once more, and so behind what other
    readers go on with: nothing may depend on that.

    Duplicates are remembered for ever, or as long as the watermark lets rows with their event time in: guide,
    *Streaming Deduplication*. What was dropped as one is dropped again, and what was late is late. So are
    groups: those that are still there have seen the rows, and those that have been let go take no more.

    Args:
        flow: The version that reads them again; what else is different about it is told by itself.
        source: The id of the source.
        alone: The query reads nothing else, or all of it once more.
    """
    side = flow.side
    behind = flow.states_behind(source)
    if not alone and not all(_takes_any_order(flow, o) for o in side.stateful if o.node in behind):
        return False
    if flow.updates and any(map(flow.is_one_group, behind)):
        return False  # its row comes out with each micro-batch more
    of: dict[str, list[Operator]] = {}
    for operator in side.operators:
        of.setdefault(operator.node, []).append(operator)
    # In `update` groups come out once more with each row that belongs to them.
    distinct = not flow.updates
    waiting, seen = [source], {source}
    while waiting:
        for name in side.readers_of[waiting.pop()]:
            operators = of.get(name, [])
            if name == side.target or not _repeats(flow, name, operators):
                return False
            once = any(_is_remembered(flow, o) or (distinct and _is_distinct(o)) for o in operators) or (
                distinct and _gives_the_same(flow, name, operators)
            )
            if name not in seen and not once:
                waiting.append(name)
            seen.add(name)
    return True


def _takes_any_order(flow: Flow, operator: Operator) -> bool:
    """Whether what an operator gives is the same, however far one reader is behind another."""
    marked = any(other.kind == "watermark" for other in flow.side.operators)
    if isinstance(operator, JoinOperator):
        # With a watermark, which another reader may set, it lets go of partners.
        return operator.how == "inner" and not marked
    if isinstance(operator, DeduplicateOperator):
        # The first of several rows stays, so that they must be the same in all that is read.
        same = flow.needed.behind(operator.node) <= flow.kept_by(operator.node)
        return same and not (marked and flow.drops_late_rows(operator))
    if not isinstance(operator, AggregateOperator) or (marked and operator.event_time is not False):
        return False
    if flow.updates:
        return False  # what comes out in between is another result
    return _is_distinct(operator) or _gives_the_same(flow, operator.node, [operator], ordered=False)


def _repeats(flow: Flow, name: str, operators: list[Operator]) -> bool:
    """Whether a node makes nothing of rows that come again but rows that have been there, or drops them."""
    node = flow.side.nodes[name]
    if node.functions or VARYING.search(json.dumps(node.options)):
        return False
    for operator in operators:
        if isinstance(operator, JoinOperator):
            # What it forgets by a watermark has no partner any more that isn't late: it finds known pairs.
            if operator.how != "inner" or operator.streams != (True, True):
                return False
        elif not (
            operator.kind in _REPEATING
            or _is_remembered(flow, operator)
            or _is_distinct(operator)
            or _gives_the_same(flow, name, [operator])
        ):
            return False
    return True


def _is_remembered(flow: Flow, operator: Operator) -> bool:
    """Whether duplicates are dropped, and those that came before are known as long as they aren't late.

    Within a watermark the first of several rows is remembered until the watermark has passed it, and then
    a later one of them, which was dropped as its duplicate, may come through. One without event time is let
    go of at once. So all of them must have one, the same.
    """
    if not isinstance(operator, DeduplicateOperator) or not operator.drops:
        return False
    return not operator.within_watermark or _goes_by_event_time(flow, operator)


def _goes_by_event_time(flow: Flow, operator: DeduplicateOperator) -> bool:
    """Whether event time, which no row lacks, is among the columns that decide on duplicates."""
    (edge,) = flow.side.nodes[operator.node].inputs
    lineage, facts = flow.lineage(operator.node), flow.side.facts.get(edge.key)
    keys = column_keys(facts.columns) if facts is not None else None
    if lineage is None or lineage.kept is None or facts is None or keys is None:
        return False
    marked = [k for k, c in zip(keys, facts.columns or (), strict=True) if c.watermarked is not False]
    if len(marked) != 1 or marked[0] not in flow.kept_by(operator.node):
        return False
    return is_always_there(flow, edge, marked[0])


def _is_distinct(operator: Operator) -> bool:
    return isinstance(operator, AggregateOperator) and operator.rows and operator.kind == "aggregate"


def _gives_the_same(flow: Flow, name: str, operators: list[Operator], *, ordered: bool = True) -> bool:
    """Whether rows that come again change nothing of what a node keeps: which groups there are, a maximum.

    Args:
        flow: The version that reads them again.
        name: The node.
        operators: Its operators.
        ordered: Its rows come in the same order as ever, so that the first one stays the first.
    """
    found = [operator for operator in operators if isinstance(operator, AggregateOperator)]
    lineage = flow.lineage(name)
    kept = lineage.kept if lineage is not None else None
    if len(found) != 1 or found[0].kind != "aggregate" or found[0].sessions is not False or kept is None:
        return False
    if kept.rows or kept.key_types is None or ALL in kept.values:
        return False
    needed = flow.needed.behind(name) | kept.reads
    functions = [made for column, made in kept.values.items() if column in needed or ALL in needed]
    return all(
        made is not None
        and all(map(is_the_same_again, made))
        and (ordered or not any(map(takes_first, made)))
        for made in functions
    )
