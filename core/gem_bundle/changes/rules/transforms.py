"""Transforms: added, removed, replaced, rewired, with other options or other code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle.changes.asked import asked_in_both, asks_the_same, same_terms
from gem_bundle.changes.below import states_below
from gem_bundle.changes.comparison import Told, origin
from gem_bundle.changes.conditions import never_lacking_before
from gem_bundle.changes.groups import (
    asks_for_more,
    duplicates_of_other_rows,
    joins_of_other_keys,
    states_of_other_groups,
)
from gem_bundle.changes.needed import ALL
from gem_bundle.changes.reach import (
    Reach,
    Taint,
    asked_nulls,
    local_taint,
    other_state,
    reach_from,
    same_results,
    tells_all,
)
from gem_bundle.changes.renames import states_behind_names, states_of_the_same_rows
from gem_bundle.changes.rules.options import differences, other_code
from gem_bundle.changes.rules.state import knows_rows
from gem_bundle.changes.wording import RULE_ONLY, told, told_both
from gem_bundle.diagnostics import listed_names
from gem_bundle.gem import Transform
from gem_bundle.lineage import UNCHANGED, Lineage, Made, column_keys
from gem_bundle.operators import AggregateOperator, DeduplicateOperator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.model import Change, Verdict
    from gem_bundle.changes.record import NodeRecord
    from gem_bundle.changes.sides import Side

# Kinds of state that are the same whatever gem makes them, if they are made in the same way.
_KNOWN = frozenset({"aggregate", "deduplicate"})
_ANY = Taint(rows=True, columns={ALL})


def compare_transforms(both: Comparison) -> Iterator[Told]:
    """The changes of transforms, with how far each reaches."""
    for node in both.added:
        if node.kind == "transform":
            yield from _added(both, node)
    for node in both.removed:
        if node.kind == "transform":
            yield from _removed(both, node)
    for old, new in both.pairs:
        if new.kind == "transform":
            yield from _compare(both, old, new)


def _added(both: Comparison, node: NodeRecord) -> Iterator[Told]:
    what = f"transform `{node.id}` (`{node.gem}`) is new"
    passed = {other.id for other in both.added}
    taint = _between(both.new, both.after, node, passed)
    if taint is _ANY:
        taint = Taint() if _is_of_new_rows(both, node) else _more_rows(both, node) or _ANY
    reach = reach_from(both.after, node.id, taint, judged=passed)
    before = _origin_of(both.new, node, passed)
    then = {new.id: old.id for old, new in both.pairs}.get(before or "")
    if then is not None:
        # What goes no further is missed by those that read it before.
        reach = reach.join(reach_from(both.before, then, taint), both.now)
    if both.after.watermarks(node.id):
        states = both.after.states_by_watermark(node.id)
        yield Told(_lateness(both, states, "GB420", what, node.id, "mixed"))
        if not taint:
            return
    # Groups that get no rows any more don't come out again with `update`; the rows that a join has kept do.
    below = states_below(
        both.after, node.id, groups=not both.after.updates, nulls=not _leaves_out_what_lacks(both)
    )
    below -= joins_of_other_keys(both.after, node.id)
    if reach.states and not (taint.rows or taint.nulls):
        reach.states -= states_behind_names(both, node)
    elif reach.states and not taint.columns:
        others = states_of_other_groups(both.after, node.id, reach.states)
        reach.states -= others
        below -= others - both.after.by_event_time
    reach.states |= below
    if both.after.keeps(node.id):
        message = f"{what} and keeps state, which the checkpoint doesn't have: Spark refuses to go on"
        made = both.of_state("refused", "GB422", message, node.id, difference=what, key="gem", after=node.gem)
        yield Told(made, reach)
    else:
        yield Told(tell(both, reach, "GB420", what, node.id, key="gem", after=node.gem), reach)


def _leaves_out_what_lacks(both: Comparison) -> bool:
    """Whether a condition leaves out groups with nulls that it asks for, those too that came before it did.

    It does where it stays behind them, and all are written anew.
    """
    return both.is_rewritten and all(isinstance(o, AggregateOperator) for o in both.new.stateful)


def _removed(both: Comparison, node: NodeRecord) -> Iterator[Told]:
    what = f"transform `{node.id}` (`{node.gem}`) {both.no_more(node)}"
    passed = {other.id for other in both.removed}
    taint = _between(both.old, both.before, node, passed)
    if both.before.watermarks(node.id):
        states = both.before.states_by_watermark(node.id)
        yield Told(_lateness(both, states, "GB421", what, node.id, "mixed"))
        if not taint:
            return
    if both.before.keeps(node.id):
        message = f"{what}, and the checkpoint has its state: Spark refuses to go on without it"
        yield Told(both.of_state("refused", "GB422", message, node.id, difference=what, before=node.gem))
        return
    reach = Reach().join(reach_from(both.before, node.id, taint, judged=passed), both.now)
    reach.states |= {both.now[name] for name in states_below(both.before, node.id) if name in both.now}
    before = _origin_of(both.old, node, passed)
    if before in both.now:
        reach = reach_from(both.after, both.now[before], taint).join(reach, {n: n for n in reach.states})
    if reach.states and not (taint.rows or taint.nulls):
        reach.states -= states_behind_names(both, node)
    yield Told(tell(both, reach, "GB421", what, node.id, before=node.gem), reach)


def _between(side: Side, flow: Flow, node: NodeRecord, others: set[str]) -> Taint:
    """What a node makes different of rows that come to it, where one of its inputs was there before."""
    lineage = flow.lineage(node.id)
    known = [place for place, edge in enumerate(node.inputs) if origin(side, edge.node, others) is not None]
    if lineage is None or len(known) != 1:
        return _ANY
    (place,) = known
    before = side.facts.get(node.inputs[place].key)
    keys = column_keys(before.columns) if before is not None else None
    if keys is None:
        return _ANY
    changed = {
        key
        for key, made in lineage.columns.items()
        if made.rule not in UNCHANGED or made.uses is None or f"{place}:{key}" not in made.uses
    }
    found = asked_nulls(lineage, never_lacking_before(flow, node.id))
    return Taint(found.rows, changed | (set(keys) - set(lineage.columns)), found.nulls)


def _is_of_new_rows(both: Comparison, node: NodeRecord) -> bool:
    """Whether a node gets no rows but those of new sources, which are told by themselves."""
    before = (both.new.nodes[name] for name in both.new.before(node.id))
    streams = [other for other in before if other.kind == "source" and other.mode != "batch"]
    new = {other.id for other in both.added if both.called_before(other) is None}
    return bool(streams) and new.issuperset(other.id for other in streams)


def _more_rows(both: Comparison, node: NodeRecord) -> Taint | None:
    """What a union makes different for those who read one of its inputs before; None where it isn't one."""
    lineage = both.after.lineage(node.id)
    if (
        lineage is None
        or not lineage.columns
        or any(made.rule != "union" for made in lineage.columns.values())
    ):
        return None
    former = {new.id: old for old, new in both.pairs}
    read = {
        (both.now.get(before.node), before.output)
        for reader in both.new.readers_of.get(node.id, ())
        for position, edge in enumerate(both.new.nodes[reader].inputs)
        if edge.node == node.id and (old := former.get(reader))
        for before in old.inputs[position : position + 1]
    }
    places = [place for place, edge in enumerate(node.inputs) if {(edge.node, edge.output)} == read]
    if len(places) != 1:
        return None
    (place,) = places
    one, other = (both.new.facts.get(key) for key in (node.inputs[place].key, node.id))
    if one is None or other is None or one.columns is None or other.columns is None:
        return None
    were, are = (
        {column.name.lower(): column.type for column in facts.columns or ()} for facts in (one, other)
    )
    changed = {
        key
        for key, made in lineage.columns.items()
        if f"{place}:{key}" not in (made.uses or ()) or were.get(key, "-") != are.get(key, "+")
    }
    return Taint(rows=True, columns=changed)


def _origin_of(side: Side, node: NodeRecord, passed: set[str]) -> str | None:
    """The only node before one that was there before."""
    found = {name for edge in node.inputs if (name := origin(side, edge.node, passed)) is not None}
    return found.pop() if len(found) == 1 else None


def _compare(both: Comparison, old: NodeRecord, new: NodeRecord) -> Iterator[Told]:
    if old.gem != new.gem:
        yield from _replaced(both, old, new)
        return
    if not old.is_same(new):
        yield from _options(both, old, new)
    for option in other_code(old, new):
        reach = reach_from(both.after, new.id, _ANY, own_state=True)
        reach.states |= _pushed(both, old, new)
        what = f"transform `{new.id}`: the code of {told(new.options.get(option))} has changed"
        if new.id in both.new.stateless:
            what += ", which has kept no state: if it keeps some now, Spark refuses to go on"
        yield Told(tell(both, reach, "GB424", what, new.id, option=option), reach)
    if not _reads_the_same(both, old, new):
        reach = _through_union(both, old, new) or _rewired(both, old, new)
        before, after = [edge.key for edge in old.inputs], [edge.key for edge in new.inputs]
        what = f"transform `{new.id}` read {listed_names(before)} and reads {listed_names(after)}"
        key = "inputs" if len(new.inputs) > 1 else "input"
        made = tell(both, reach, "GB425", what, new.id, key=key, before=before, after=after)
        yield Told(made, reach)


def _options(both: Comparison, old: NodeRecord, new: NodeRecord) -> Iterator[Told]:
    keeps = both.after.keeps(new.id)
    options = list(differences(old, new, both.new.gems.get(new.id), stateful=keeps))
    lineages = both.before.lineage(old.id), both.after.lineage(new.id)
    local = local_taint(*lineages, _never_null(both, old, new)) if options else _ANY
    for found in options:
        effect = found.change.effect
        what = f"transform `{new.id}`: `{found.option}` {told_both(found.before, found.after)}"
        if found.change.why:
            what += f"; {found.change.why}"
        if not found.known:
            what += RULE_ONLY.format(new.gem)
        details = {"option": found.option, "before": found.before, "after": found.after}
        if both.after.watermarks(new.id) and effect in {"from_now_on", "mixed"}:
            states = both.after.states_by_watermark(new.id)
            yield Told(_lateness(both, states, "GB426", what, new.id, effect, **details))
        elif effect in {"from_now_on", "mixed"}:
            needed = both.before.needed.behind(old.id), both.after.needed.behind(new.id)
            own = effect == "mixed" and other_state(*lineages, *needed)
            own = own and not _tells_keys_alone(both, old, new)
            reach = both.reach(old, new, local, own_state=own)
            if local.rows or local.nulls:
                more = asks_for_more((both.before, old.id), (both.after, new.id))
                if not local.columns:
                    reach.states -= _none_the_older(both, old, new, more, reach.states)
                reach.states |= _pushed(both, old, new, narrows=more is not None)
            elif reach.states:
                reach.states -= states_of_the_same_rows(both, new)
            yield Told(tell(both, reach, "GB423", what, new.id, hint=found.change.hint, **details), reach)
        elif effect == "refused":
            # By nothing but state Spark refuses a transform that it takes on a new checkpoint.
            hint = found.change.hint
            yield Told(both.of_state(effect, "GB423", what, new.id, difference=what, hint=hint, **details))
        else:
            yield Told(both.change(effect, "GB423", what, new.id, hint=found.change.hint, **details))


def _never_null(both: Comparison, old: NodeRecord, new: NodeRecord) -> dict[str, bool | None]:
    """Which columns of a node's inputs are never null, before and now."""
    before, after = never_lacking_before(both.before, old.id), never_lacking_before(both.after, new.id)
    return {use: never and before.get(use) for use, never in after.items()}


def _tells_keys_alone(both: Comparison, old: NodeRecord, new: NodeRecord) -> bool:
    """Whether what comes out of a node's state is what its groups are told by, by the same rule as before."""
    one, other = both.before.lineage(old.id), both.after.lineage(new.id)
    if one is None or other is None or both.before.recalls_rows(old.id) or both.after.recalls_rows(new.id):
        return False
    return same_results(one, other, both.before.needed.behind(old.id), both.after.needed.behind(new.id))


def _none_the_older(
    both: Comparison, old: NodeRecord, new: NodeRecord, more: set[str] | None, states: set[str]
) -> set[str]:
    """The state behind another condition that has nothing of the old one in what comes out from now on."""
    found = duplicates_of_other_rows((both.before, old.id), (both.after, new.id), both.now)
    return found if more is None else found | states_of_other_groups(both.after, new.id, states, more)


def _pushed(both: Comparison, old: NodeRecord, new: NodeRecord, *, narrows: bool = False) -> set[str]:
    """The aggregations that another filter behind them gets before, which may let through only less."""
    found: set[str] = set()
    sides = (both.before, old.id), (both.after, new.id)
    if asks_the_same(*sides):
        return found
    # Of groups that it leaves out no row comes out again with `update`; the rows that a join has kept do.
    groups, nulls = not (narrows and both.after.updates), not (narrows and _leaves_out_what_lacks(both))
    different = both.outputs(old, new)
    for output in {*both.before.outputs(old.id), *both.after.outputs(new.id)}:
        if output in different and not (different[output].rows or different[output].nulls):
            continue
        same, there = same_terms(*sides, output), asked_in_both(*sides, output)
        before = states_below(both.before, old.id, output, same, groups=groups, nulls=nulls, there=there)
        found |= {both.now[name] for name in before if name in both.now}
        found |= states_below(both.after, new.id, output, same, groups=groups, nulls=nulls, there=there)
        if narrows:
            found -= joins_of_other_keys(both.after, new.id, same)
    return found


def _through_union(both: Comparison, old: NodeRecord, new: NodeRecord) -> Reach | None:
    """How far it reaches that a node reads more rows, by a union of what it read; None for anything else."""
    if len(old.inputs) != len(new.inputs):
        return None
    pairs = zip(old.inputs, new.inputs, strict=True)
    others = [
        now.node
        for before, now in pairs
        if (both.now.get(before.node), before.output) != (now.node, now.output)
    ]
    added = {node.id for node in both.added}
    if len(others) != 1 or others[0] not in added:
        return None
    union = both.new.nodes[others[0]]
    if _between(both.new, both.after, union, added) is not _ANY:
        return None  # the rows of a new source are told by themselves
    taint = _more_rows(both, union)
    return None if taint is None else reach_from(both.after, others[0], taint)


def _rewired(both: Comparison, old: NodeRecord, new: NodeRecord) -> Reach:
    """How far other inputs reach: maybe not at all, where they only stand in another order."""
    one, other = both.before.lineage(old.id), both.after.lineage(new.id)
    was = [(both.now.get(edge.node, ""), edge.output) for edge in old.inputs]
    now = [(edge.node, edge.output) for edge in new.inputs]
    if one is None or other is None or len(set(was)) < len(was) or set(was) != set(now):
        return both.reach(old, new, _ANY, own_state=True)
    place = {str(position): str(now.index(edge)) for position, edge in enumerate(was)}

    def moved(made: Made) -> Made:
        if made.uses is None:
            return made
        return Made(made.rule, frozenset(f"{place[use[0]]}{use[1:]}" for use in made.uses))

    columns = {key: moved(made) for key, made in one.columns.items()}
    local = local_taint(Lineage(columns, moved(one.rows)), other)
    return both.reach(old, new, local, own_state=both.after.keeps(new.id))


def _lateness(
    both: Comparison, states: set[str], code: str, what: str, node: str, effect: Verdict, **details: Any
) -> Change:
    """Another watermark: it matters to those whose state goes by it, and they have gone by the old one."""
    alone = sorted(name for name in states if both.after.is_one_group(name))
    states = {name for name in states if _goes_by_event_time(both, name)}
    if not states and alone and both.after.updates:
        message = (
            f"{what}; nothing behind it keeps state by event time, but {listed_names(alone)} gives its row "
            "with each micro-batch, those without rows too, which only a watermark has Spark run"
        )
        return both.change("from_now_on", code, message, node, what=what, **details)
    if not states:
        message = f"{what}; nothing behind it keeps state by event time, so no row is different for it"
        return both.change("continues", code, message, node, what=what, **details)
    named = listed_names(sorted(states))
    if effect == "mixed" and not any(_recalls(both, name) for name in states):
        message = (
            f"{what}; from now on {named} drops late rows by what there is now, and nothing that it has kept "
            "gets into results"
        )
        return both.change("from_now_on", code, message, node, what=what, **details)
    joins = {
        operator.node
        for side in (both.old, both.new)
        for operator in side.operators
        if operator.kind == "join"
    }
    if effect == "mixed" and code != "GB426" and not knows_rows(both, joins & states):
        # Which columns of its rows Spark takes for never null is another matter without one.
        message = (
            f"{what}: the rows that {named} keeps may get another shape by it, and Spark may refuse them"
        )
        return both.of_state("refused", code, message, node, difference=what, **details)
    if effect == "mixed" and all(_tells_all(both, name) for name in states):
        message = f"{what}; from now on {named} drops late rows by what there is now, and it lets nothing go"
        return both.change("from_now_on", code, message, node, what=what, **details)
    if effect == "mixed":
        message = f"{what}: what {named} has kept and let go was decided by the old one"
        return both.of_state("mixed", code, message, node, difference=what, **details)
    message = (
        f"{what}; from now on {named} goes by it: what was dropped as late, or let go, is gone, and the "
        "watermark of the checkpoint never goes back"
    )
    return both.change("from_now_on", code, message, node, what=what, **details)


def _goes_by_event_time(both: Comparison, node: str) -> bool:
    """Whether the state of a node goes by a watermark, or may: groups without event time stay for ever."""
    operators = [o for side in (both.old, both.new) for o in side.stateful if o.node == node]
    return any(not isinstance(o, AggregateOperator) or o.event_time is not False for o in operators)


def _tells_all(both: Comparison, node: str) -> bool:
    """Whether a node keeps for ever which rows have come out of it, and no more of them, before and now."""
    operators = [o for side in (both.old, both.new) for o in side.stateful if o.node == node]
    forgets = any(not isinstance(o, DeduplicateOperator) or o.by_event_time for o in operators)
    before = {now: name for name, now in both.now.items()}.get(node, node)
    return not forgets and tells_all(both.before, before) and tells_all(both.after, node)


def _recalls(both: Comparison, node: str) -> bool:
    """Whether anything of what a node keeps gets into results, before or now."""
    return both.before.recalls(node) or both.after.recalls(both.now.get(node, node))


def _replaced(both: Comparison, old: NodeRecord, new: NodeRecord) -> Iterator[Told]:
    what = f"transform `{new.id}` was a `{old.gem}` and is a `{new.gem}`"
    details = {"key": "gem", "before": old.gem, "after": new.gem}
    lineages = both.before.lineage(old.id), both.after.lineage(new.id)
    kinds = both.before.kinds_of_state(old.id), both.after.kinds_of_state(new.id)
    known = None not in lineages and _KNOWN.issuperset(kinds[0])
    if kinds[0] != kinds[1] or (kinds[0] and not known):
        message = f"{what}: its state in the checkpoint is another one, and Spark refuses to go on"
        yield Told(both.of_state("refused", "GB422", message, new.id, difference=what, **details))
        return
    taint = local_taint(*lineages)
    if both.before.watermarks(old.id) or both.after.watermarks(new.id):
        states = both.after.states_by_watermark(new.id)
        yield Told(_lateness(both, states, "GB420", what, new.id, "mixed", **details))
        if not taint:
            return
    needed = both.before.needed.behind(old.id), both.after.needed.behind(new.id)
    reach = both.reach(old, new, taint, own_state=bool(kinds[0]) and other_state(*lineages, *needed))
    if taint.rows or taint.nulls:
        reach.states |= _pushed(both, old, new)
    yield Told(tell(both, reach, "GB420", what, new.id, **details), reach)


def _reads_the_same(both: Comparison, old: NodeRecord, new: NodeRecord) -> bool:
    """Whether a node's inputs are what they were; their order means nothing where it takes them by name."""
    before, after = both.read_before(old), both.read_now(new)
    gem = both.new.gems.get(new.id)
    if before == after or not isinstance(gem, Transform) or not gem.by_name:
        return before == after
    if len(before) != len(old.inputs) or len(after) != len(new.inputs):
        return False
    named = zip(before, (edge.name for edge in old.inputs), strict=True)
    return set(named) == set(zip(after, (edge.name for edge in new.inputs), strict=True))


def tell(
    both: Comparison, reach: Reach, code: str, what: str, node: str, *, hint: str = "", **details: Any
) -> Change:
    """A change of a rule: from now on, unless state has been made by the old one.

    Args:
        both: What is compared.
        reach: How far it reaches.
        code: The code of this kind of change.
        what: What is different.
        node: The id of the node.
        hint: What to do about it.
        details: Where it stands, and what it was and is, as `Comparison.change` takes them.
    """
    details["what"] = what
    if reach.states:
        states = listed_names(sorted(reach.states))
        if not any(operator.stateful for operator in both.new.operators if operator.node in reach.states):
            message = (
                f"{what}: whether {states} keeps state can't be known; if so, it was made by the old rule "
                "and gets into new results"
            )
            keeps_none = f"If it keeps none, accept the change: `--accept {code}:{node}`."
            hint = hint or f"{keeps_none} Else begin anew. {both.no_fresh}".rstrip()
            return both.of_state("mixed", code, message, node, difference=what, hint=hint, **details)
        message = f"{what}: the state of {states} was made by the old rule and gets into new results"
        return both.of_state("mixed", code, message, node, difference=what, hint=hint, **details)
    if not reach.target:
        return both.change(
            "continues", code, f"{what}; no row is different for it", node, hint=hint, **details
        )
    if both.is_rewritten and both.new.stateful:
        message = f"{what}; the target is written anew with each micro-batch, by the new rule"
        return both.change("continues", code, message, node, hint=hint, **details)
    message = f"{what}; rows from now on go by it, earlier results stay as they were"
    hint = hint or both.compute_anew(reach.target.columns)
    return both.change("from_now_on", code, message, node, hint=hint, **details)
