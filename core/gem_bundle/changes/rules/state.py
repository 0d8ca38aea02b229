"""State: whether Spark finds in the checkpoint what the query keeps, in the same shape and order."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.changes.conditions import (
    asked_behind,
    asked_just_before,
    joined_how,
    joins_of,
    kept_of,
    keys_from_behind,
)
from gem_bundle.changes.flow import of_input
from gem_bundle.changes.order import results_in_order
from gem_bundle.changes.renames import joins_of_the_same_rows
from gem_bundle.lineage import column_keys
from gem_bundle.operators import JoinOperator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as Ids

    from gem_bundle.changes.comparison import Comparison, Told
    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.model import Change
    from gem_bundle.changes.sides import Side
    from gem_bundle.lineage import Kept
    from gem_bundle.operators import Operator

_FIELD = re.compile(r"(?<=[<,\s])[`\w]+:\s*")

# How a type ends: it is never null, may be null, or that isn't known.
_NULLS = {True: "!", False: "", None: "~"}
# Whatever they are of, what is kept for them is null until a value comes.
_NULL_AT_FIRST = frozenset({"?max", "?min", "?sum"})
_OUTER = frozenset({"left", "right", "full"})


class Shape(NamedTuple):
    """What Spark keeps for one operator.

    Args:
        node: The id of the node it belongs to.
        kind: What kind of operator it is, as Spark compares it.
        keys: The types of its keys, None where unknown.
        values: The types of its values, None where unknown.
        results: The columns of results that somebody behind reads: Spark keeps nothing for others. None where
            unknown.
        never_null: Whether Spark takes each key for never null, None where unknown.
        kept_by: What its keys are, in order.
        holds: What its values are, in order: the functions, or the columns of rows.
    """

    node: str
    kind: str
    keys: tuple[str | None, ...] | None
    values: tuple[str | None, ...] | None
    results: frozenset[str] | None = None
    never_null: tuple[bool | None, ...] = ()
    kept_by: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()


def shapes(flow: Flow) -> list[Shape]:
    """What Spark keeps for a query, operator by operator."""
    times: Counter[str] = Counter()
    found = []
    for operator in operators_of(flow):
        found.append(_shape(flow, operator, times[operator.node]))
        times[operator.node] += 1
    return found


def operators_of(flow: Flow) -> list[Operator]:
    """The operators that keep state, or may, in Spark's order, each as often as Spark has it."""
    return [
        operator
        for operator in flow.side.kept_on_paths
        for _ in range(joins_of(flow, operator) if isinstance(operator, JoinOperator) else 1)
    ]


def _shape(flow: Flow, operator: Operator, path: int) -> Shape:
    """What Spark keeps for an operator on one of its paths."""
    node = operator.node
    kind: str = operator.kind
    if isinstance(operator, JoinOperator):
        # Whether a row has had a partner is kept only where those without one come out.
        how = joined_how(flow, operator)
        kind = f"join {how}" if how in _OUTER else "join"
    elif getattr(operator, "within_watermark", False):
        kind = "deduplicate within watermark"
    elif getattr(operator, "sessions", False):
        kind = "sessions"
    lineage = flow.lineage(node)
    kept = lineage.kept if lineage is not None else None
    if lineage is None or kept is None:
        return Shape(node, kind, None, None)
    keys = None if kept.key_types is None else tuple(map(bare, kept.key_types))
    by = () if kept.rows else tuple(f"{key.rule} {sorted(key.uses or ('?',))}" for key in kept.keys)
    if keys is not None and isinstance(operator, JoinOperator):
        keys += (None,) * keys_from_behind(flow, operator)
    if kept.rows and not kept.values:
        rows = _rows(flow, node)
        values, holds = (None, ()) if rows is None else (tuple(rows.values()), tuple(rows))
        return _with_nulls(flow, Shape(node, kind, keys, values, kept_by=by, holds=holds), kept)
    needed = flow.needed(node) | kept.reads
    buffers: dict[str, tuple[str, ...]] = {}
    results = frozenset(c for c in kept.values if not c or c in needed or "*" in needed)
    orders = list(results_in_order(flow, node))
    for column in orders[path] if path < len(orders) else kept.values:
        if column not in results:
            continue
        functions = kept.values[column]
        if functions is None:
            return _with_nulls(flow, Shape(node, kind, keys, None, results, kept_by=by), kept)
        for text, types in functions.items():
            buffers.setdefault(text, types)
    if kept.order:
        buffers = {text: buffers[text] for text in kept.order if text in buffers} | buffers
    values = tuple(str(bare(kind)) for types in buffers.values() for kind in types)
    holds = tuple(text for text, types in buffers.items() for _ in types)
    return _with_nulls(flow, Shape(node, kind, keys, values, results, kept_by=by, holds=holds), kept)


def _with_nulls(flow: Flow, shape: Shape, kept: Kept) -> Shape:
    coming = flow.never_null_before(shape.node)
    return shape._replace(never_null=tuple(made.never_null(coming) for made in kept.parts or kept.keys))


def _rows(flow: Flow, node: str) -> dict[str, str | None] | None:
    """The columns of both inputs that somebody reads, with their types, None where they aren't known."""
    found: dict[str, str | None] = {}
    lineage = flow.lineage(node)
    if lineage is None or lineage.kept is None:
        return None
    for side, position in enumerate(lineage.kept.sides or range(len(flow.side.nodes[node].inputs))):
        edge, needed = kept_of(flow, node, position)
        facts = flow.side.facts.get(edge.key)
        if facts is None or facts.columns is None:
            return None
        keys = column_keys(facts.columns)
        if keys is None:
            return None
        asked = _asked_of(flow, node, position, side)
        never_null = flow.never_null(edge.node, edge.output)
        for key, column in zip(keys, facts.columns, strict=True):
            if key in needed:
                if column.type is None:
                    found[f"{side}:{key}"] = None
                    continue
                never = never_null.get(key)
                if not never and asked_just_before(flow, node, position, key, asked=key in asked):
                    never = True
                found[f"{side}:{key}"] = f"{bare(column.type)}{_NULLS[never]}"
        found[f"|{side}"] = "|"
    return found


def _asked_of(flow: Flow, node: str, position: int, side: int) -> set[str]:
    """The columns of an input that the condition of a join, or one behind it, leaves out nulls of."""
    lineage = flow.lineage(node)
    joins = (o for o in flow.side.stateful if o.node == node and isinstance(o, JoinOperator))
    how = next(map(partial(joined_how, flow), joins), "full")
    asks: set[str] = set()
    if (side % 2 == 0 and how not in {"right", "full"}) or (side % 2 and how in {"inner", "right"}):
        asks |= asked_behind(flow, node)
    if lineage is not None and how not in {"full", ("left", "right")[side % 2]}:
        asks |= (lineage.rows.uses if lineage.asks is None else lineage.asks) or set()
    return of_input(asks, position)


def bare(kind: str | None) -> str | None:
    """A type without the names of fields, which Spark doesn't compare."""
    return None if kind is None else _FIELD.sub("", kind)


def knows_rows(both: Comparison, joins: Ids[str]) -> bool:
    """Whether it is known what some joins keep of their rows, before and now, so that shapes tell it.

    Args:
        both: What is compared.
        joins: The ids of the joins, as they are now.
    """
    before = [shape for shape in shapes(both.before) if both.now.get(shape.node) in joins]
    after = [shape for shape in shapes(both.after) if shape.node in joins]
    return all(
        shape.values is not None and not any(value is None or "~" in value for value in shape.values)
        for shape in (*before, *after)
    )


def refuse_other_state(both: Comparison, changes: Sequence[Told]) -> list[Change]:
    """The changes, those refused that give a state another shape than the checkpoint has.

    Args:
        both: What is compared.
        changes: The changes, with how far each reaches.
    """
    before, after = shapes(both.before), shapes(both.after)
    found = [change for change, _ in changes]
    if not before and not after:
        return found
    if any(change.verdict == "refused" for change in found):
        return found
    wrong: list[str] = []
    if len(before) != len(after):
        known = {both.now.get(shape.node) for shape in before}
        wrong += [shape.node for shape in after if shape.node not in known] or [s.node for s in after]
        wrong = wrong or [both.now.get(shape.node, shape.node) for shape in before]
        why = f"the query kept {_operators(len(before))} with state and keeps {_operators(len(after))}"
        return _refuse(both, changes, wrong, why)
    for old, new in zip(before, after, strict=True):
        why = _difference(old, new) or _other_inputs(both, old, new) or _other_columns(both, old, new)
        if why:
            return _refuse(both, changes, [new.node], why)
    return _tell_of_order(both, changes, before, after)


def _tell_of_order(
    both: Comparison, changes: Sequence[Told], before: Sequence[Shape], after: Sequence[Shape]
) -> list[Change]:
    """The changes, those `mixed` by which Spark takes one value of a state for another."""
    found = [change for change, _ in changes]
    moved = [
        new.node
        for old, new in zip(before, after, strict=True)
        if _is_moved(old.kept_by, new.kept_by) or _is_moved(old.holds, new.holds)
    ]
    if not moved:
        return found
    called = set().union(*(joins_of_the_same_rows(both, node) for _, node in both.pairs))
    for name in dict.fromkeys(moved):
        guilty = [] if name in called else _guilty(both, changes, [name])
        if name in called or any(change.verdict == "mixed" for change in guilty):
            continue
        why = f"Spark tells what the state of `{name}` has by its order, and takes one value for another now"
        hint = f"Leave the order as it was, or begin anew with {both.fresh}."
        if not guilty:
            what = f"transform `{name}` keeps things in another order"
            found.append(both.change("mixed", "GB423", f"{what}: {why}", name, key="gem", hint=hint))
        changed = {
            id(change): replace(change, verdict="mixed", message=f"{change.difference}: {why}", hint=hint)
            for change in guilty
        }
        found = [changed.get(id(change), change) for change in found]
    return found


def _is_moved(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether something that is kept has another place than it had."""
    first = {name: place for place, name in reversed(list(enumerate(before)))}
    now = {name: place for place, name in reversed(list(enumerate(after)))}
    return any(first.get(name, place) != place for name, place in now.items())


def _operators(count: int) -> str:
    return "one operator" if count == 1 else f"{count} operators"


def _difference(old: Shape, new: Shape) -> str:
    """Why Spark doesn't take the state of one operator for another's; empty when it does."""
    if old.kind != new.kind and not (old.kind.startswith("join") and new.kind == "join"):
        return f"its state in the checkpoint is one of `{old.kind}`, not of `{new.kind}`"
    if old.keys is not None and new.keys is not None and not fit(old.keys, new.keys):
        return f"its keys in the checkpoint are {listed(old.keys)}, not {listed(new.keys)}"
    if len(old.never_null) == len(new.never_null):
        for number, (one, other) in enumerate(zip(old.never_null, new.never_null, strict=True), 1):
            if one is True and other is False:
                return f"its key {number} in the checkpoint is one that is never null, and now may be null"
    if old.values is not None and new.values is not None and not fit(old.values, new.values):
        return f"its values in the checkpoint are {listed(old.values)}, not {listed(new.values)}"
    if None in {old.values, new.values} and old.results is not None and new.results is not None:
        # What the values are isn't known, but of these there are more or fewer.
        more, fewer = new.results - old.results, old.results - new.results
        if bool(more) != bool(fewer):
            names = ", ".join(f"`{name}`" for name in sorted(more or fewer))
            are = "is" if len(more or fewer) == 1 else "are"
            return f"{names} {are} kept now" if more else f"{names} {are} no longer kept"
    return ""


def _other_inputs(both: Comparison, old: Shape, new: Shape) -> str:
    """Where it isn't known what is kept: which column that comes has another type; empty where none has."""
    if all(kinds is not None and None not in kinds for kinds in (old.keys, old.values, new.keys, new.values)):
        return ""
    before, after = _coming(both.old, old.node), _coming(both.new, new.node)
    for name, kind in before.items():
        now = after.get(name, kind)
        if kind is not None and now is not None and bare(kind) != bare(now):
            return f"the column `{name}` was {kind} and is {now}"
    return ""


def _other_columns(both: Comparison, old: Shape, new: Shape) -> str:
    """Where it isn't known what a join keeps: which of its columns the target gets no longer, or gets now.

    Spark keeps those that somebody reads.
    """
    if not new.kind.startswith("join") or (old.values is not None and new.values is not None):
        return ""
    before, after = _at_target(both.old), _at_target(both.new)
    if before is None or after is None:
        return ""
    joined = _coming(both.old, old.node).keys() & _coming(both.new, new.node).keys()
    fewer, more = (before - after) & joined, (after - before) & joined
    if bool(fewer) == bool(more):
        return ""
    names = ", ".join(f"`{name}`" for name in sorted(fewer or more))
    if fewer:
        return f"the target no longer gets {names}, so that it may not be kept any more"
    return f"the target gets {names} now, which may not have been kept"


def _at_target(side: Side) -> set[str] | None:
    """The names of the columns that a target gets; None where they aren't known."""
    (edge,) = side.nodes[side.target].inputs
    facts = side.facts.get(edge.key)
    if facts is None or facts.columns is None:
        return None
    return {column.name.lower() for column in facts.columns}


def _coming(side: Side, node: str) -> dict[str, str | None]:
    """The types of the columns that come to a node, by name."""
    found: dict[str, str | None] = {}
    for edge in side.nodes[node].inputs:
        facts = side.facts.get(edge.key)
        for column in (facts.columns if facts is not None else None) or ():
            found.setdefault(column.name.lower(), column.type)
    return found


def fit(old: Sequence[str | None], new: Sequence[str | None]) -> bool:
    """Whether Spark takes values of the old types as ones of the new: what was never null must stay so."""
    if len(old) != len(new):
        return False
    for one, other in zip(old, new, strict=True):
        if one is None or other is None:
            continue
        if one.startswith("?") != other.startswith("?"):
            if one.endswith("!") and other in _NULL_AT_FIRST:
                return False
            continue  # of one of them the type isn't known
        if one.rstrip("!~") != other.rstrip("!~"):
            return False
        if one.endswith("!") and not other.endswith(("!", "~")):
            return False
    return True


def listed(kinds: Iterable[str | None]) -> str:
    """Types in a sentence."""
    shown = ", ".join(
        "unknown" if kind is None or kind.startswith("?") else kind.rstrip("!~")
        for kind in kinds
        if kind != "|"
    )
    return f"({shown})"


def _guilty(both: Comparison, changes: Sequence[Told], nodes: list[str]) -> list[Change]:
    """The changes that make the state of some nodes another one."""
    guilty = [change for change, _ in changes if change.node in nodes]
    if not guilty:
        guilty = [c for c, reach in changes if reach is not None and reach.states & set(nodes)]
    if not guilty:
        behind = {name for node in nodes if node in both.new.nodes for name in both.new.behind(node)}
        guilty = [change for change, _ in changes if change.node in behind]
    return guilty or [change for change, _ in changes if change.code.startswith("GB42")]


def _refuse(both: Comparison, changes: Sequence[Told], nodes: list[str], why: str) -> list[Change]:
    """The changes, those refused that are about some nodes' state."""
    guilty = _guilty(both, changes, nodes)
    if not guilty:
        what = f"the state of `{nodes[0]}` is another one: {why}"
        key = "gem" if nodes[0] in both.plan.definition.nodes else ""
        made = both.change("refused", "GB422", what, nodes[0], key=key, hint=both.begin_anew)
        return [*(change for change, _ in changes), made]
    return [
        replace(
            change,
            verdict="refused",
            code="GB422",
            message=f"{change.what or change.message}: "
            f"the state of `{nodes[0]}` gets another shape, and Spark refuses to go on: {why}",
            hint=both.begin_anew,
        )
        if change in guilty
        else change
        for change, _ in changes
    ]
