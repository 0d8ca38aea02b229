"""Rows that come once more, and what makes nothing new of them: duplicates dropped, a maximum kept."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from gem_bundle.changes.reach import ALL
from gem_bundle.expressions import is_the_same_again
from gem_bundle.operators import AggregateOperator, DeduplicateOperator, JoinOperator

if TYPE_CHECKING:
    from gem_bundle.changes.reach import Flow
    from gem_bundle.operators import Operator

# Of the same rows these make the same rows, whenever they come.
_REPEATING = frozenset({"filter", "generate", "repartition", "union", "watermark"})
# Functions that give something else each time.
_VARYING = re.compile(r"(?i)\b(current_\w+|now|rand\w*|shuffle|uuid|\w*_id|input_file_\w+)\b\s*\(")


def none_passes_twice(flow: Flow, source: str) -> bool:
    """Whether a source that is read once more gives the target no row, and changes no result.

    Duplicates are remembered for ever, or as long as the watermark lets rows with their event time in: guide,
    *Streaming Deduplication*. What was dropped as one is dropped again, and what was late is late. So are
    groups: those that are still there have seen the rows, and those that have been let go take no more.

    Args:
        flow: The version that reads them again; what else is different about it is told by itself.
        source: The id of the source.
    """
    side = flow.side
    of: dict[str, list[Operator]] = {}
    for operator in side.operators:
        of.setdefault(operator.node, []).append(operator)
    marked = any(operator.kind == "watermark" for operator in side.operators)
    # In `update` groups come out once more with each row that belongs to them.
    distinct = side.nodes[side.target].output_mode != "update"
    waiting, seen = [source], {source}
    while waiting:
        for name in side.readers_of[waiting.pop()]:
            operators = of.get(name, [])
            if name == side.target or not _repeats(flow, name, operators, marked=marked):
                return False
            once = any(
                isinstance(o, DeduplicateOperator) or (distinct and _is_distinct(o)) for o in operators
            ) or (distinct and _gives_the_same(flow, name, operators))
            if name not in seen and not once:
                waiting.append(name)
            seen.add(name)
    return True


def _repeats(flow: Flow, name: str, operators: list[Operator], *, marked: bool) -> bool:
    """Whether a node makes nothing of rows that come again but rows that have been there, or drops them."""
    node = flow.side.nodes[name]
    if node.functions or _VARYING.search(json.dumps(node.options)):
        return False
    for operator in operators:
        if isinstance(operator, JoinOperator):
            # With a watermark it forgets rows, and may find pairs that it didn't find before.
            if marked or operator.how != "inner" or operator.streams != (True, True):
                return False
        elif not (
            operator.kind in _REPEATING
            or (isinstance(operator, DeduplicateOperator) and operator.drops)
            or _is_distinct(operator)
            or _gives_the_same(flow, name, [operator])
        ):
            return False
    return True


def _is_distinct(operator: Operator) -> bool:
    return isinstance(operator, AggregateOperator) and operator.rows and operator.kind == "aggregate"


def _gives_the_same(flow: Flow, name: str, operators: list[Operator]) -> bool:
    """Whether rows that come again change nothing of what a node keeps: which groups there are, a maximum."""
    found = [operator for operator in operators if isinstance(operator, AggregateOperator)]
    lineage = flow.lineage(name)
    kept = lineage.kept if lineage is not None else None
    if len(found) != 1 or found[0].kind != "aggregate" or found[0].sessions is not False or kept is None:
        return False
    if kept.rows or kept.key_types is None or ALL in kept.values:
        return False
    needed = flow.needed(name) | kept.reads
    functions = [made for column, made in kept.values.items() if column in needed or ALL in needed]
    return all(made is not None and all(map(is_the_same_again, made)) for made in functions)
