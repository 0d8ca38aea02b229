"""Targets: another place or gem, other options, another output mode or trigger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.changes.model import STOPS
from gem_bundle.changes.rules.options import differences, other_code
from gem_bundle.changes.ways import has_moved
from gem_bundle.changes.wording import RULE_ONLY, told, told_both
from gem_bundle.errors import describe_error
from gem_bundle.gem import Target
from gem_bundle.operators import AggregateOperator
from gem_bundle.semantics import OptionChange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.model import Change
    from gem_bundle.changes.record import NodeRecord
    from gem_bundle.changes.rules.options import Difference
    from gem_bundle.changes.sides import Side
    from gem_bundle.gem import Gem

# Real-time processing goes on from micro-batches, and they from it: measured without state, and with this.
_IN_REAL_TIME = frozenset({"aggregate", "deduplicate"})


def compare_target(both: Comparison) -> Iterator[Change]:
    """The changes of the target itself."""
    old, new = both.old.nodes[both.old.target], both.new.nodes[both.new.target]
    if old.gem != new.gem:
        yield _replaced(both, old, new)
    else:
        for found in differences(old, new, both.new.gems.get(new.id), stateful=False):
            if found.known and found.change.effect == "from_now_on" and _came_along(both, old, new, found):
                yield _moved(both, new, found)
                continue
            what = f"target `{new.id}`: {found.what}"
            if found.change.why:
                what += f"; {found.change.why}"
            if not found.known:
                what += RULE_ONLY.format(new.gem)
            yield both.change(
                found.change.effect,
                "GB431" if found.place else "GB432",
                what,
                new.id,
                option=found.option,
                hint=_hint(both, found.change),
                before=found.before,
                after=found.after,
            )
        for option in other_code(old, new):
            yield both.change(
                "from_now_on",
                "GB424",
                f"target `{new.id}`: the code of {told(new.options.get(option))} has changed; rows from "
                "now on go by it, earlier results stay as they were",
                new.id,
                option=option,
            )
    yield from _output(both, old, new)
    yield from _output_mode(both, old, new)
    yield from _trigger(both, old, new)


def _came_along(both: Comparison, old: NodeRecord, new: NodeRecord, found: Difference) -> bool:
    """Whether what a target writes to has moved with the project's folder, for it is there."""
    places = new.places.get(found.option, ())
    moved = bool(places) and has_moved(both.old.version, old, both.new.version, new)
    return moved and all(Path(place).exists() for place in places)


def _moved(both: Comparison, new: NodeRecord, found: Difference) -> Change:
    return both.change(
        "continues",
        "GB416",
        f"target `{new.id}`: the project's folder was {told(both.old.version.folder)} and is "
        f"{told(both.new.version.folder)}, and what `{found.option}` names has come along",
        new.id,
        option=found.option,
        before=found.before,
        after=found.after,
    )


def _replaced(both: Comparison, old: NodeRecord, new: NodeRecord) -> Change:
    """Another gem that goes on from the checkpoint."""
    change, known = taken_over(both.new.gems.get(new.id))
    why = change.why or "rows from now on go there, what was written stays where it is"
    return both.change(
        change.effect,
        "GB430",
        f"target `{new.id}` was a `{old.gem}` and is a `{new.gem}`: {why}"
        + ("" if known else RULE_ONLY.format(new.gem)),
        new.id,
        key="gem",
        hint=_hint(both, change),
        before=old.gem,
        after=new.gem,
    )


def taken_over(gem: Gem | None) -> tuple[OptionChange, bool]:
    """What becomes of rows when a target goes on from another gem's checkpoint, and whether it says so.

    Args:
        gem: The target; None when it can't be made.
    """
    rule = OptionChange("from_now_on")
    if not isinstance(gem, Target) or type(gem).write_stream is not Target.write_stream:
        rule = OptionChange("mixed", _LOG, _BEGIN_ELSEWHERE)
    if not isinstance(gem, Target):
        return rule, False
    try:
        said = gem.takes_over()
    except Exception as error:  # noqa: BLE001 (a gem's bug must not take the comparison down)
        return replace(rule, why=f"the gem fails in `takes_over`: {describe_error(error)}"), False
    return (rule, False) if said is None else (said, True)


_LOG = (
    "its sink may keep a log of micro-batches, which would begin in the middle, so that what is written "
    "can't be read"
)
_BEGIN_ELSEWHERE = (
    "Give the target another id, so that it begins anew. If its sink keeps no such log, accept the change."
)


def _hint(both: Comparison, change: OptionChange) -> str:
    """What to do about what a gem says of a target: whoever is stopped is told something."""
    return change.hint or both.elsewhere * (change.effect in STOPS)


def _output(both: Comparison, old: NodeRecord, new: NodeRecord) -> Iterator[Change]:
    """Another output of the node that it reads; another node is told of as one that comes or goes."""
    (before,), (after,) = old.inputs, new.inputs
    if both.now.get(before.node) == after.node and before.output != after.output:
        was, now = before.key, after.key
        yield both.change(
            "from_now_on",
            "GB425",
            f"target `{new.id}` read `{was}` and reads `{now}`: those come from now on, the old ones stay",
            new.id,
            key="input",
            before=was,
            after=now,
        )


def _output_mode(both: Comparison, old: NodeRecord, new: NodeRecord) -> Iterator[Change]:
    if old.output_mode == new.output_mode:
        return
    what = f"target `{new.id}`: the output mode {told_both(old.output_mode, new.output_mode)}"
    details = {"key": "output_mode", "before": old.output_mode, "after": new.output_mode}
    if not both.new.stateful and not both.old.stateful:
        yield both.change(
            "continues", "GB433", f"{what}; without state that makes no difference", new.id, **details
        )
    elif "append" in details.values() and (found := _kept_of_groups(both.old)) is not None:
        groups, keeper = found
        message = (
            f"{what}: by that other results of `{groups}` come to `{keeper}`, which keeps state of the old"
        )
        hint = both.or_begin_anew("Keep the output mode")
        yield both.of_state("mixed", "GB433", message, new.id, difference=what, hint=hint, **details)
    elif new.output_mode == "complete" and not _forgets(both):
        message = f"{what}: everything is written anew, of a state that has all of it"
        of_new = f"{what}: everything is written anew, and new state has nothing of what is there"
        made = both.change("continues", "GB433", message, new.id, **details)
        yield replace(made, anew=("mixed", of_new))
    elif new.output_mode == "complete":
        message = f"{what}: what was older than the watermark has left the state and is missing from now on"
        hint = f"Keep the output mode. {both.elsewhere}"
        yield both.change("mixed", "GB433", message, new.id, hint=hint, **details)
    elif old.output_mode == "complete" and new.output_mode == "append":
        message = f"{what}: results that are in the target already leave the state, and are written once more"
        hint = both.or_begin_anew("Keep the output mode")
        yield both.of_state("again", "GB433", message, new.id, difference=what, hint=hint, **details)
    else:
        message = f"{what}; the state serves both: from now on results are written as the new one has it"
        if old.output_mode == "complete" and _forgets(both):
            # From the second micro-batch on: none without rows has moved the watermark of the last one.
            message += ", and rows that are late by the watermark, which `complete` keeps, are dropped"
        yield both.change("from_now_on", "GB433", message, new.id, **details)


def _kept_of_groups(side: Side) -> tuple[str, str] | None:
    """Groups and what keeps state of their results, which is given them as the output mode has them.

    Returns:
        The ids of both nodes; None where there are none.
    """
    for number, operator in enumerate(side.stateful):
        if isinstance(operator, AggregateOperator):
            behind = {operator.node, *side.behind(operator.node)}
            for other in side.stateful[number + 1 :]:
                if other.node in behind:
                    return operator.node, other.node
    return None


def _forgets(both: Comparison) -> bool:
    """Whether a watermark has let results leave the state."""
    operators = both.old.operators
    if not any(operator.kind == "watermark" for operator in operators):
        return False
    # Groups that no event time is among stay for ever.
    return any(not isinstance(o, AggregateOperator) or o.event_time is not False for o in both.old.stateful)


def _trigger(both: Comparison, old: NodeRecord, new: NodeRecord) -> Iterator[Change]:
    if old.trigger == new.trigger:
        return
    what = f"target `{new.id}`: the trigger {told_both(old.trigger, new.trigger)}"
    before, after = (node.trigger.partition(":")[0] for node in (old, new))
    details = {"key": "trigger", "before": old.trigger, "after": new.trigger}
    kinds = {operator.kind for side in (both.old, both.new) for operator in side.stateful}
    apart = {"continuous"} | (set() if kinds <= _IN_REAL_TIME else {"real_time"})
    if before != after and apart & {before, after}:
        yield both.change(
            "refused",
            "GB434",
            f"{what}: Spark can't go on from a checkpoint that this kind of processing hasn't made",
            new.id,
            hint="Give the target another id, so that it gets a checkpoint of its own.",
            **details,
        )
    else:
        yield both.change(
            "continues", "GB434", f"{what}; only when micro-batches run is different", new.id, **details
        )
