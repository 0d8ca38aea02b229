"""The first of several rows: which one that is goes by the order of rows, which some edits make another."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.diagnostics import listed_names
from gem_bundle.expressions import takes_first
from gem_bundle.operators import AggregateOperator, DeduplicateOperator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.model import Change
    from gem_bundle.operators import Operator

_MOVES_ROWS = "repartition"
# Lists have their rows in the order in which they came; of what is as great, or as frequent, one is taken.
_GOES_BY_ORDER = re.compile(r"\('(collect_list|array_agg|listagg|string_agg|max_by|min_by|mode)'")


def tell_of_firsts(both: Comparison, changes: list[Change]) -> list[Change]:
    """The changes, those told of that give the same rows another order where the first of them counts.

    Args:
        both: What is compared.
        changes: What the other rules say.
    """
    return [_told(both, change) if change.verdict == "continues" else change for change in changes]


def _told(both: Comparison, change: Change) -> Change:
    for flow in (both.after, both.before):
        kinds = flow.side.kinds_at(change.node)
        moves = _MOVES_ROWS in kinds or ("union" in kinds and _unites_otherwise(both, change.node))
        behind = flow.states_behind(change.node) if moves else set()
        for operator in flow.side.stateful:
            if operator.node not in behind:
                continue
            another = f"which of several rows `{operator.node}` lets through may be another one"
            if _keeps_order(flow, operator):
                return _mixed(
                    both, change, f"the state of `{operator.node}` was made of rows in another order"
                )
            if not _lets_first_through(flow, operator):
                continue
            if later := sorted(flow.states_behind(operator.node)):
                made = f"the state of {listed_names(later)} was made of those that it let through"
                return _mixed(both, change, f"{another}, and {made}")
            return replace(change, verdict="from_now_on", message=f"{change.difference}; {another}")
    return change


def _unites_otherwise(both: Comparison, name: str) -> bool:
    """Whether a node puts the same rows one after the other in another order."""
    old = next((old.id for old, new in both.pairs if new.id == name), None)
    if old is None:
        return False
    before, after = _united(both.before, old, both.now), _united(both.after, name, {})
    each = ((before[key], after[key]) for key in before.keys() & after.keys())
    return any(one != other and sorted(one) == sorted(other) for one, other in each)


def _united(flow: Flow, name: str, now: Mapping[str, str]) -> dict[str, list[str]]:
    """Of which nodes, as they are called now, the rows are that a node puts together, by its columns."""
    inputs, lineage = flow.side.nodes[name].inputs, flow.lineage(name)
    names = [now.get(edge.node, edge.node) for edge in inputs]
    columns = lineage.columns.items() if lineage is not None else ()
    return {
        key: [names[int(use.partition(":")[0])] for use in made.in_order]
        for key, made in columns
        if made.rule.startswith("union")
    }


def _mixed(both: Comparison, change: Change, why: str) -> Change:
    message, hint = f"{change.difference}: {why}", change.hint or both.begin_anew
    return replace(change.of_state(), verdict="mixed", message=message, hint=hint)


def _lets_first_through(flow: Flow, operator: Operator) -> bool:
    """Whether it lets the first rows through, and they aren't the same in all that is read of them."""
    if operator.kind == "limit":
        return True
    if not isinstance(operator, DeduplicateOperator):
        return False
    return not flow.needed.behind(operator.node) <= flow.kept_by(operator.node)


def _keeps_order(flow: Flow, operator: Operator) -> bool:
    """Whether it aggregates by functions whose result goes by the order of the rows."""
    if not isinstance(operator, AggregateOperator):
        return False
    lineage = flow.lineage(operator.node)
    kept = lineage.kept if lineage is not None else None
    made = kept.values.values() if kept is not None else ()
    return any(
        takes_first(text) or _GOES_BY_ORDER.match(text) for functions in made for text in functions or ()
    )
