"""Conditions that leave out whole groups: what a node has kept of the others is none the older for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gem_bundle.changes.forms import columns_in, followed, form_made_by, form_of, parts_of
from gem_bundle.changes.implied import columns_of_what_differs, implies
from gem_bundle.changes.results import VARYING
from gem_bundle.lineage import Made, column_keys
from gem_bundle.operators import AggregateOperator, DeduplicateOperator, JoinOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from gem_bundle.changes.flow import Flow
    from gem_bundle.lineage import Lineage, Term

_BY_ROW = frozenset({"filter", "repartition"})


def states_of_other_groups(flow: Flow, name: str, states: set[str], uses: Set[str] | None = None) -> set[str]:
    """The nodes behind a new condition that have kept nothing of what they get from now on that it changes.

    It asks for nothing but what they keep their state by, so all rows of a group come as before, or none do.
    Of the latter nothing comes out any more where only rows that come make results. That is so for a removal
    of duplicates, for an aggregation in the output mode ``update``, and for an inner join.

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
    old, new = (flow.lineage(name) for flow, name in (was, now))
    if old is None or new is None or old.kept is not None or new.kept is not None or not new.rows.uses:
        return None
    before, after = form_of(old.rows.rule), form_of(new.rows.rule)
    if old.rows == Made():
        return None if after is None else set(new.rows.uses)  # it asked for nothing
    if before is None or after is None or not old.rows.uses or not implies(after, before):
        return None
    return columns_of_what_differs(after, before)


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


def joins_of_other_keys(flow: Flow, name: str, unchanged: Set[Term] = frozenset()) -> set[str]:
    """The join before a new condition that has kept no partners of what comes from now on that it changes.

    Each part of it asks for nothing but a key of an inner join, and Spark asks the same of the other side's
    key (`InferFiltersFromConstraints`): what is left out has no partners but such as are left out too. Of a
    part about several keys it doesn't.

    Args:
        flow: The version with the condition.
        name: The node that asks it.
        unchanged: The parts that it asked before.
    """
    node, lineage = flow.side.nodes[name], flow.lineage(name)
    if lineage is None or lineage.kept is not None or node.functions or len(node.inputs) != 1:
        return set()
    if not lineage.terms or VARYING.search(json.dumps(node.options)):
        return set()
    forms = [form_made_by(term.made) for term in lineage.terms if term not in unchanged]
    (edge,) = node.inputs
    while True:
        made, inputs = flow.lineage(edge.node, edge.output), flow.side.nodes[edge.node].inputs
        if made is None:
            return set()
        if len(inputs) > 1 or flow.keeps(edge.node):
            break
        forms = [followed(form, made) if form is not None else None for form in forms]
        (edge,) = inputs
    asked = [columns_in(part) for form in forms for part in parts_of(form)]
    if any(len(columns) != 1 for columns in asked):
        return set()
    over = {column.partition(":")[2] for columns in asked for column in columns}
    if any(key not in made.columns or made.columns[key].rule != "=" for key in over):
        return set()
    uses = {use for key in over for use in made.columns[key].uses or ()}
    return {edge.node} if uses <= _keys_of_inner(flow, edge.node) else set()


def _keys_of_inner(flow: Flow, name: str) -> set[str]:
    """The columns of its inputs that an inner join wants to be equal, of one type; none behind watermarks.

    Before one a condition would let it be another.
    """
    lineage, inputs = flow.lineage(name), flow.side.nodes[name].inputs
    operators = flow.side.operators_at(name)
    inner = bool(operators) and all(isinstance(o, JoinOperator) and o.how == "inner" for o in operators)
    if not inner or lineage is None or lineage.kept is None:
        return set()
    if any(flow.watermarks(before) for before in flow.side.before(name)):
        return set()
    types = {
        f"{position}:{key}": column.type
        for position, edge in enumerate(inputs)
        if (facts := flow.side.facts.get(edge.key)) is not None and facts.columns is not None
        for key, column in zip(column_keys(facts.columns) or (), facts.columns, strict=False)
    }
    parts = lineage.kept.parts
    found = set()
    for pair in zip(parts[::2], parts[1::2], strict=False):
        if any(made.rule != "=" or len(made.uses or ()) != 1 for made in pair):
            continue
        one, other = (next(iter(made.uses or ())) for made in pair)
        if types.get(one) is not None and types.get(one) == types.get(other):
            found |= {one, other}
    return found


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
        inputs, made = flow.side.nodes[other].inputs, flow.lineage(other)
        places = [place for place, edge in enumerate(inputs) if edge.node in groups]
        if len(places) != 1 or inputs[places[0]].output or made is None:
            continue
        (place,) = places
        if len(inputs) > 1 and not (flow.keeps(other) and _asks_each_alone(lineage, asked)):
            continue
        known = groups[inputs[place].node]
        if flow.keeps(other):
            grouped = _keys_of_inner(flow, other) if len(inputs) > 1 else _keys_of(made)
            if not {f"{place}:{key}" for key in known.values()} <= grouped:
                continue
            found.add(other)
        called = {use: key for key, m in made.columns.items() if m.rule == "=" for use in m.uses or ()}
        if all(f"{place}:{key}" in called for key in known.values()):
            groups[other] = {first: called[f"{place}:{key}"] for first, key in known.items()}
    return found


def _keys_of(lineage: Lineage) -> set[str]:
    """The columns of its input that a node keeps its state by, as they come."""
    keys = lineage.kept.keys if lineage.kept is not None else ()
    return {next(iter(key.uses or ())) for key in keys if key.rule == "=" and len(key.uses or ()) == 1}


def _asks_each_alone(lineage: Lineage, asked: Set[str]) -> bool:
    """Whether no part of a condition is about one of the columns and about another one too.

    Of a part about one alone Spark asks the same of what an inner join wants to be equal
    (`InferFiltersFromConstraints`), of one about several it doesn't.
    """
    parts = [columns_in(part) for term in lineage.terms for part in parts_of(form_made_by(term.made))]
    return bool(parts) and all(len(columns) == 1 or not columns & asked for columns in parts)


def _leaves_out_rows(flow: Flow, name: str) -> bool:
    """Whether a node gives rows as they come, or leaves them out: as an inner join with a table does."""
    operators = flow.side.operators_at(name)
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
    if isinstance(operator, JoinOperator):
        return operator.how == "inner"
    if isinstance(operator, DeduplicateOperator):
        return not moved or not flow.drops_late_rows(operator)
    return (
        isinstance(operator, AggregateOperator)
        and operator.kind == "aggregate"
        and (operator.event_time is False or (operator.event_time is True and not moved))
        and operator.sessions is False
        and flow.updates
    )
