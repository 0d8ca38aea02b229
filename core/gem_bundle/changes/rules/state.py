"""State: whether Spark finds in the checkpoint what the query keeps, in the same shape and order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.needed import ALL
from gem_bundle.changes.renames import states_behind_names, states_of_the_same_rows
from gem_bundle.changes.shapes import bare, fit, shapes
from gem_bundle.changes.steps import in_steps
from gem_bundle.diagnostics import listed_names
from gem_bundle.lineage import column_keys
from gem_bundle.operators import AggregateOperator, DeduplicateOperator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as Ids

    from gem_bundle.changes.comparison import Comparison, Told
    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.model import Change
    from gem_bundle.changes.shapes import Shape
    from gem_bundle.changes.sides import Side


def knows_rows(both: Comparison, joins: Ids[str]) -> bool:
    """Whether it is known what some joins keep of their rows, before and now, so that shapes tell it.

    Args:
        both: What is compared.
        joins: The ids of the joins, as they are now.
    """
    before = [shape for shape in shapes(both.before) if both.now.get(shape.node) in joins]
    after = [shape for shape in shapes(both.after) if shape.node in joins]
    return all(map(_is_known, (*before, *after)))


def _is_known(shape: Shape) -> bool:
    """Whether it is known what is kept, and which of it is never null."""
    return shape.values is not None and not any(value is None or "~" in value for value in shape.values)


def _are_other_kinds(old: Shape, new: Shape) -> bool:
    """Whether Spark keeps something for another kind of operator; of joins their rows say it, if known."""
    if not (old.kind.startswith("join") and new.kind.startswith("join")):
        return old.kind != new.kind
    # What an outer join kept an inner one takes.
    return new.kind not in {old.kind, "join"} and not (_is_known(old) and _is_known(new))


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
        why = (
            _difference(old, new)
            or _other_inputs(both, old, new)
            or _other_columns(both, old, new)
            or _other_readers(both, old, new)
        )
        if why:
            return _refuse(both, changes, [new.node], why)
    return _tell_of_values(both, changes, before, after)


def _tell_of_values(
    both: Comparison, changes: Sequence[Told], before: Sequence[Shape], after: Sequence[Shape]
) -> list[Change]:
    """The changes, those `mixed` by which Spark takes what a state has for something else."""
    pairs = list(zip(before, after, strict=True))
    moved = {
        new.node
        for old, new in pairs
        if _is_moved(old.kept_by, new.kept_by)
        or _is_moved(old.holds, new.holds)
        or _is_replaced(both, old, new)
    }
    moved -= _called_otherwise(both) if moved else set()
    moved |= {new.node for old, new in pairs if _has_other_fields(old, new)}
    reasons: dict[str, str] = {}
    for old, new in pairs:
        if new.node in moved:
            by_order = f"Spark tells what the state of `{new.node}` has by its order"
            reasons[new.node] = f"{by_order}, and takes one value for another now"
        elif why := _other_nulls(old, new) or _other_time(both, old, new):
            reasons.setdefault(new.node, why)
    found = [change for change, _ in changes]
    for name, why in reasons.items():
        guilty = _guilty(both, changes, [name])
        if any(change.verdict == "mixed" for change in guilty):
            continue
        hint = both.or_begin_anew("Leave it as it was")
        if not guilty:
            what = f"transform `{name}` keeps other things"
            found.append(
                both.of_state("mixed", "GB423", f"{what}: {why}", name, difference=what, key="gem", hint=hint)
            )
        changed = {
            id(change): replace(
                change.of_state(), verdict="mixed", message=f"{change.difference}: {why}", hint=hint
            )
            for change in guilty
        }
        found = [changed.get(id(change), change) for change in found]
    return found


def _called_otherwise(both: Comparison) -> set[str]:
    """The joins whose rows are the same, and only called otherwise."""
    return set().union(
        *(states_of_the_same_rows(both, node) for _, node in both.pairs),
        *(states_behind_names(both, node) for node in (*both.added, *both.removed)),
    )


def _other_nulls(old: Shape, new: Shape) -> str:
    """Why rows that lack a column are missing in a join's state, or are more than it takes them for."""
    kept = set(old.holds) & set(new.holds)
    gone, taken = (old.asked - new.asked) & kept, (new.taken - old.asked) & kept
    if gone:
        return f"the state of `{new.node}` has no rows without {_columns(gone)}, which are wanted now"
    if taken:
        return (
            f"the state of `{new.node}` has rows without {_columns(taken)}, and Spark takes it to be there "
            "now: what is missing becomes 0 or an empty text, or is missing in other rows too"
        )
    return ""


def _other_time(both: Comparison, old: Shape, new: Shape) -> str:
    """Why a state lets go what it kept for ever, or the other way round.

    Of a union the first input tells whether its rows carry a watermark.
    """
    if both.is_rewritten or not (both.before.recalls(old.node) or both.after.recalls(new.node)):
        return ""  # then all groups are kept, or none of it comes out
    before, after = (
        {
            o.event_time
            for o in side.stateful
            if o.node == node and isinstance(o, AggregateOperator | DeduplicateOperator)
        }
        for side, node in ((both.old, old.node), (both.new, new.node))
    )
    if (before, after) == ({True}, {False}):
        return f"`{new.node}` let go by the watermark what it keeps for ever now"
    if (before, after) == ({False}, {True}):
        return f"`{new.node}` kept for ever what it lets go by the watermark now"
    return ""


def _columns(uses: Iterable[str]) -> str:
    return listed_names(sorted(use.partition(":")[2] for use in uses))


def _is_moved(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether something that is kept has another place than it had."""
    return any(before.index(name) != after.index(name) for name in set(before).intersection(after))


def _is_replaced(both: Comparison, old: Shape, new: Shape) -> bool:
    """Whether a join keeps another column, or another field of one, in the place of one that it had."""
    if not new.kind.startswith("join") or not old.values or not new.values:
        return False
    if len(old.holds) != len(new.holds):
        return False
    before, after = (_names_coming(side, node) for side, node in ((both.old, old.node), (both.new, new.node)))
    others = [(one, other) for one, other in zip(old.holds, new.holds, strict=True) if one != other]
    return any(_is_of(one, after) or _is_of(other, before) for one, other in others)


def _has_other_fields(old: Shape, new: Shape) -> bool:
    """Whether a join keeps other fields of a column than it kept, or the same in another order."""
    return any(old.fields[column] != new.fields[column] for column in old.fields.keys() & new.fields.keys())


def _names_coming(side: Side, node: str) -> set[str]:
    """The columns that come to a node, as `column_keys` tells them apart."""
    facts = (side.facts.get(edge.key) for edge in side.nodes[node].inputs)
    return {key for found in facts if found is not None for key in column_keys(found.columns) or ()}


def _is_of(kept: str, columns: set[str]) -> bool:
    """Whether what is kept for a join is one of some columns, or a field of one."""
    name = kept.partition(":")[2]
    return any(name == column or name.startswith(f"{column}.") for column in columns)


def _operators(count: int) -> str:
    return "one operator" if count == 1 else f"{count} operators"


def _difference(old: Shape, new: Shape) -> str:
    """Why Spark doesn't take the state of one operator for another's; empty when it does."""
    if _are_other_kinds(old, new):
        return f"its state in the checkpoint is one of `{old.kind}`, not of `{new.kind}`"
    if old.empty != new.empty:
        was = "lets" if new.empty else "let"
        return f"a condition behind {was} nothing of it through, by which Spark keeps less"
    if old.keys is not None and new.keys is not None and not fit(old.keys, new.keys):
        return f"its keys in the checkpoint are {listed(old.keys)}, not {listed(new.keys)}"
    if len(old.never_null) == len(new.never_null):
        for number, (one, other) in enumerate(zip(old.never_null, new.never_null, strict=True), 1):
            if one is True and other is False:
                return f"its key {number} in the checkpoint is one that is never null, and now may be null"
    if old.values is not None and new.values is not None and not fit(old.values, new.values):
        were, are = listed(old.values), listed(new.values)
        if were == are:
            return f"its values {were} may be null now, and those in the checkpoint never are"
        return f"its values in the checkpoint are {were}, not {are}"
    if why := _other_constants(old, new):
        return why
    if None in {old.values, new.values} and old.results is not None and new.results is not None:
        # What the values are isn't known, but of these there are more or fewer.
        more, fewer = new.results - old.results, old.results - new.results
        if bool(more) != bool(fewer):
            names = listed_names(sorted(more or fewer))
            are = "is" if len(more or fewer) == 1 else "are"
            return f"{names} {are} kept now" if more else f"{names} {are} no longer kept"
    return ""


def _other_constants(old: Shape, new: Shape) -> str:
    """Which constant of a join's rows is another one, where Spark may find that one null and the other not.

    Spark works them out when it plans, and so knows it; it takes no column that may be null for one that
    never was.
    """
    if old.values is None or new.values is None:
        return ""
    before, after = (dict(zip(shape.holds, shape.values or (), strict=True)) for shape in (old, new))
    for column in sorted(before.keys() & after.keys() & (old.constants.keys() | new.constants.keys())):
        was_never = column in old.constants or (before[column] or "").endswith("!")
        may_be = column in new.constants or not (after[column] or "~").endswith(("!", "~"))
        if was_never and may_be and old.constants.get(column) != new.constants.get(column):
            return (
                f"its constant {_columns({column})} is another one, which may be null where the old one isn't"
            )
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


def _other_readers(both: Comparison, old: Shape, new: Shape) -> str:
    """Where a join has rows of one source on both sides: whether that is read more or less often than before.

    Spark gives the columns of all but one of its readers other names, and forgets by it which of them are
    never null. Which reader that is can't be told by the form of the query.
    """
    values = (*(old.values or ()), *(new.values or ()))
    if not new.kind.startswith("join") or not any(
        value is not None and value.endswith("!") for value in values
    ):
        return ""
    lineage = both.after.lineage(new.node)
    sides = lineage.kept.sides if lineage is not None and lineage.kept is not None else ()
    for name, now in both.now.items():
        if both.old.nodes[name].kind != "source":
            continue
        before, after = both.old.paths(name), both.new.paths(now)
        joined = sum(any(reader == new.node for reader, _ in way) for way in after)
        if len(before) != len(after) and (joined > 1 or (joined and len(set(sides)) < len(sides))):
            often = f"its source `{now}` is read {'more' if len(after) > len(before) else 'less'} often"
            return f"{often}, by which Spark knows of other columns that they are never null"
    return ""


def _other_columns(both: Comparison, old: Shape, new: Shape) -> str:
    """Where it isn't known what is read of what is kept: what somebody reads now, or nobody any longer.

    Spark keeps those that somebody reads.
    """
    is_join = new.kind.startswith("join")
    if is_join and old.values and new.values:
        return ""
    before, after = both.before.needed.behind(old.node), both.after.needed.behind(new.node)
    if ALL in before | after or not is_join:
        # Of results it is known who reads them, but for those who don't tell.
        at_first = [_read_by_name(both.before, old.node), _read_by_name(both.after, new.node)]
        if at_first[0] is None or at_first[1] is None:
            return ""
        before, after = at_first[0], at_first[1]
    of_rows = _coming(both.old, old.node).keys() & _coming(both.new, new.node).keys()
    kept = of_rows if is_join else (old.results or frozenset()) & (new.results or frozenset())
    fewer, more = (before - after) & kept, (after - before) & kept
    if bool(fewer) == bool(more):
        return ""
    names = listed_names(sorted(fewer or more))
    if fewer:
        return f"nothing behind reads {names} any longer, so that it may not be kept any more"
    return f"something behind reads {names} now, which may not have been kept"


def _read_by_name(flow: Flow, node: str) -> set[str] | None:
    """The names of the columns that are read behind the first transform of which it isn't known what it does.

    Those that the target gets where that reads all; None where they aren't known, or there is no such one.
    """
    flow, _ = in_steps(flow)
    for name in flow.side.behind(node):
        lineage = flow.lineage(name)
        if flow.side.nodes[name].kind == "transform" and (lineage is None or lineage.rows.uses is None):
            needed = flow.needed.behind(name)
            return _at_target(flow.side) if ALL in needed else needed
    return _at_target(flow.side) if flow.keeps_rows(node) else None


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
        made = both.of_state("refused", "GB422", what, nodes[0], difference=what, key=key)
        return [*(change for change, _ in changes), made]
    return [
        replace(
            change.of_state(),
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
