"""Groups of groups: which of them a micro-batch lets go of as soon as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.lineage import column_keys
from gem_bundle.operators import AggregateOperator

if TYPE_CHECKING:
    from collections.abc import Callable

    from gem_bundle.changes.sides import Side
    from gem_bundle.lineage import Lineage


def lets_go_at_once(side: Side, name: str, lineage: Callable[[str, str], Lineage | None]) -> bool:
    """Whether a node forms groups of groups by the same event time, of which `append` leaves nothing behind.

    The groups before it come when the watermark has passed them, and so those that are made of them go in the
    same micro-batch.

    Args:
        side: The version.
        name: The node.
        lineage: What a node makes of what, by its id and the output.
    """
    if side.nodes[side.target].output_mode != "append" or not _goes_by_event_time(side, name):
        return False
    (edge,) = side.nodes[name].inputs
    time, made = _event_time(side, edge.key), lineage(name, "")
    if time is None or made is None or made.kept is None:
        return False
    if not any(key.rule == "=" and key.uses == frozenset({f"0:{time}"}) for key in made.kept.keys):
        return False
    while True:
        name, made = edge.node, lineage(edge.node, edge.output)
        operators = side.operators_at(name)
        if made is None or any(o.kind not in {"aggregate", "filter"} for o in operators):
            return False
        if any(operator.kind == "aggregate" for operator in operators):
            return _goes_by_event_time(side, name) and _event_time(side, edge.key) == time
        inputs, column = side.nodes[name].inputs, made.columns.get(time)
        if len(inputs) != 1 or made.kept is not None or column is None or column.rule != "=":
            return False
        time = "".join(use.partition(":")[2] for use in column.uses or ())
        (edge,) = inputs


def _goes_by_event_time(side: Side, name: str) -> bool:
    """Whether a node forms groups that go by the watermark, and does nothing else with state."""
    operators = [operator for operator in side.stateful if operator.node == name]
    return (
        len(operators) == len(side.nodes[name].inputs) == 1
        and isinstance(operators[0], AggregateOperator)
        and operators[0].kind == "aggregate"
        and operators[0].event_time is True
        and operators[0].sessions is False
    )


def _event_time(side: Side, key: str) -> str | None:
    """The only column of what comes from a node that carries a watermark; None where there may be others."""
    facts = side.facts.get(key)
    keys = column_keys(facts.columns) if facts is not None else None
    if facts is None or keys is None:
        return None
    marked = {
        key: column.watermarked
        for key, column in zip(keys, facts.columns or (), strict=True)
        if column.watermarked is not False
    }
    return next(iter(marked)) if list(marked.values()) == [True] else None
