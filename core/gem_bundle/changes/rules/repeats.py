"""Rows that come once more, and what drops all of them: a removal of duplicates that remembers them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from gem_bundle.operators import AggregateOperator, DeduplicateOperator, JoinOperator

if TYPE_CHECKING:
    from gem_bundle.changes.record import NodeRecord
    from gem_bundle.changes.sides import Side
    from gem_bundle.operators import Operator

# Of the same rows these make the same rows, whenever they come.
_REPEATING = frozenset({"filter", "generate", "repartition", "union", "watermark"})
# Functions that give something else each time.
_VARYING = re.compile(r"(?i)\b(current_\w+|now|rand\w*|shuffle|uuid|\w*_id|input_file_\w+)\b\s*\(")


def none_passes_twice(side: Side, source: str) -> bool:
    """Whether no row of a source that is read once more reaches the target.

    Duplicates are remembered for ever, or as long as the watermark lets rows with their event time in: guide,
    *Streaming Deduplication*. What was dropped as one is dropped again, and what was late is late.

    Args:
        side: The version that reads them again; what else is different about it is told by itself.
        source: The id of the source.
    """
    of: dict[str, list[Operator]] = {}
    for operator in side.operators:
        of.setdefault(operator.node, []).append(operator)
    marked = any(operator.kind == "watermark" for operator in side.operators)
    # In `update` distinct rows come out once more with each row that is equal to them.
    distinct = side.nodes[side.target].output_mode != "update"
    waiting, seen = [source], {source}
    while waiting:
        for name in side.readers_of[waiting.pop()]:
            operators = of.get(name, [])
            if name == side.target or not _repeats(side.nodes[name], operators, marked=marked):
                return False
            once = any(
                isinstance(o, DeduplicateOperator) or (distinct and _is_distinct(o)) for o in operators
            )
            if name not in seen and not once:
                waiting.append(name)
            seen.add(name)
    return True


def _repeats(node: NodeRecord, operators: list[Operator], *, marked: bool) -> bool:
    """Whether a node makes nothing of rows that come again but rows that have been there, or drops them."""
    if node.functions or _VARYING.search(json.dumps(node.options)):
        return False
    for operator in operators:
        if isinstance(operator, JoinOperator):
            # With a watermark it forgets rows, and may find pairs that it didn't find before.
            if marked or operator.how != "inner" or operator.streams != (True, True):
                return False
        elif not (
            operator.kind in _REPEATING or isinstance(operator, DeduplicateOperator) or _is_distinct(operator)
        ):
            return False
    return True


def _is_distinct(operator: Operator) -> bool:
    return isinstance(operator, AggregateOperator) and operator.rows and operator.kind == "aggregate"
