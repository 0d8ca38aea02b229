"""Limits that Spark takes out of a query, for one of fewer rows stands behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.lineage import Made
from gem_bundle.operators import LimitOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gem_bundle.changes.sides import Side
    from gem_bundle.lineage import Lineage


def is_below_another(side: Side, name: str, lineage: Callable[[str], Lineage | None]) -> bool:
    """Whether Spark puts another limit in the place of a node's, into the branch of a union: `LimitPushDown`.

    It does where the other one stands behind the union and lets fewer rows through, and what is between them
    does nothing but to compute columns. Then there is no state of the node's.

    Args:
        side: The side that it is on.
        name: The node.
        lineage: What a node makes of what, by its id.
    """
    rows = _rows_of(side, name)
    paths = side.paths(name) if rows is not None else []
    return rows is not None and bool(paths) and all(_is_below(side, path, rows, lineage) for path in paths)


def _is_below(
    side: Side, path: Iterable[tuple[str, int]], rows: int, lineage: Callable[[str], Lineage | None]
) -> bool:
    united = False
    for reader, _ in path:
        other = _rows_of(side, reader)
        if other is not None:
            return united and other < rows
        made = lineage(reader) if side.nodes[reader].kind == "transform" else None
        kinds = {operator.kind for operator in side.operators if operator.node == reader}
        if kinds == {"union"}:
            united = True
        elif kinds or made is None or made.rows != Made():
            return False
    return False


def _rows_of(side: Side, name: str) -> int | None:
    """How many rows a limit lets through, if a node is nothing but one."""
    operators = [operator for operator in side.operators if operator.node == name]
    if len(operators) != 1 or not isinstance(operators[0], LimitOperator):
        return None
    return operators[0].rows
