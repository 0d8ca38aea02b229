"""The rules of groups: what one query can write to several targets.

Guide: *Using Foreach and ForeachBatch* (to write to several places), *Output Modes*, *Triggers*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gem_bundle.check.report import at_key
from gem_bundle.diagnostics import listed_names
from gem_bundle.pipeline.groups import (
    UNDIVIDED,
    comparing_nodes,
    grouped_delivery,
    groups_of,
    limited_nodes,
    operators_behind,
    parted_targets,
    rejecting_before,
    settled_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.gem import Source
    from gem_bundle.operators import Operator
    from gem_bundle.pipeline.groups import Group
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

_MICRO_BATCHES = "Use another trigger, or leave the target out of the group."


def check_groups(plan: Plan) -> Iterator[Diagnostic]:
    """The targets of each group can be written from the same micro-batches.

    Args:
        plan: The pipeline, with the facts of its nodes.
    """
    if plan.definition.mode == "batch":
        for node in plan.definition.of_kind("target"):
            if node.group and not node.joins and not node.leads:
                message = "`group` has no effect: a batch pipeline has no queries that targets could share"
                yield at_key(plan, node, "GB385", message, "group", "Remove it.", "warning")
        return
    for name in limited_nodes(plan):
        yield from _check_limited(plan, plan.node(name))
    for name in comparing_nodes(plan):
        yield from _check_comparing(plan, plan.node(name))
    taken = plan.definition.with_rejected_taken()
    for name in (name for name in settled_nodes(plan) if name in taken):
        yield from _check_settled(plan, plan.node(name))
    for name in plan.order:
        if name in taken and name in plan.gems and plan.node(name).kind != "target":
            yield from _check_parted(plan, plan.node(name))
    for node in plan.definition.of_kind("target"):
        yield from _check_takes(plan, node)
    for group in groups_of(plan):
        yield from _check_alike(plan, group)
        for node in group.targets:
            yield from _check_target(plan, node)
        yield from _check_fork(plan, group)


def _check_takes(plan: Plan, node: Node) -> Iterator[Diagnostic]:
    """What a target rejects is written by the query of that target."""
    for name in rejecting_before(plan.definition.nodes, node):
        other = plan.node(name)
        if other.group != node.group:
            message = (
                f"it takes what target `{name}` rejects, which the query of that target has to write, and "
                f"is in the group `{node.group}`"
            )
            hint = (
                f"Say `group: {other.group}`." if other.group and not other.leads else "Remove the `group`."
            )
            yield at_key(plan, node, "GB388", message, "group", hint)


def _why(node: Node) -> str:
    """How a target got into a group that it doesn't name."""
    return f"; it is in the group because it takes what `{node.joins}` rejects" if node.joins else ""


def _check_alike(plan: Plan, group: Group) -> Iterator[Diagnostic]:
    """They have one query, and so one output mode and one trigger."""
    first, *others = group.targets
    for node in others:
        of_first = f"target `{first.id}` of its group `{group.name}`"
        if node.output_mode != first.output_mode:
            message = (
                f"its output mode is `{node.output_mode}`, and that of {of_first} is `{first.output_mode}`: "
                f"one query has one{_why(node)}"
            )
            hint = "Give them one output mode, or put them into different groups."
            yield at_key(plan, node, "GB380", message, "output_mode", hint)
        if node.trigger != first.trigger:
            message = (
                f"its trigger is `{node.trigger}`, and that of {of_first} is `{first.trigger}`: one query "
                f"has one{_why(node)}"
            )
            hint = "Give them one trigger, or put them into different groups."
            yield at_key(plan, node, "GB380", message, "trigger", hint)


def _check_target(plan: Plan, node: Node) -> Iterator[Diagnostic]:
    """Its gem can write micro-batches that a query has for several."""
    if node.id not in plan.gems:
        return
    if grouped_delivery(plan, node) is None:
        message = f"`{node.gem}` can't be in a group: it has to have its query for itself{_why(node)}"
        hint = "Take it out of the group, or use a gem that can (`delta`, `kafka`, `foreach_batch` …)."
        yield at_key(plan, node, "GB383", message, "gem" if node.joins else "group", hint)
    if node.trigger.kind in {"continuous", "real_time"}:
        message = f"a query with the trigger `{node.trigger}` has no micro-batches that targets could share"
        yield at_key(plan, node, "GB380", message, "trigger", _MICRO_BATCHES)


def _check_limited(plan: Plan, node: Node) -> Iterator[Diagnostic]:
    """Rows of a micro-batch are counted before any is written, which a query of its own can't do."""
    alone = [
        f"`{target.id}`"
        for target in plan.definition.of_kind("target")
        if not target.group and node.id in plan.upstream([target.id])
    ]
    if alone:
        message = f"what it rejects is counted before a micro-batch is written, and {_in_no_group(alone)}"
        hint = "Give the targets behind it a `group`, the same one."
        yield at_key(plan, node, "GB387", message, "options", hint)


def _in_no_group(targets: Sequence[str]) -> str:
    return f"{' and '.join(targets)} {'is' if len(targets) == 1 else 'are'} in no group"


def _check_comparing(plan: Plan, node: Node) -> Iterator[Diagnostic]:
    """Rows are compared with those of their micro-batch, so there has to be one for all that take them."""
    targets = [t for t in plan.definition.of_kind("target") if node.id in plan.upstream([t.id])]
    alone = [f"`{target.id}`" for target in targets if not target.group]
    groups = list(dict.fromkeys(f"`{target.group}`" for target in targets if target.group))
    if alone:
        where = f"{_in_no_group(alone)}, so that no micro-batch comes as a table"
    elif len(groups) > 1:
        where = f"{' and '.join(groups)} are several groups, of which each has micro-batches of its own"
    else:
        return
    message = f"it compares each row with the others of its micro-batch, and {where}"
    yield at_key(
        plan, node, "GB387", message, "options", "Give the targets behind it a `group`, the same one."
    )


def _check_settled(plan: Plan, node: Node) -> Iterator[Diagnostic]:
    """Whether a row is rejected is found out once for all who take it, which several queries can't do."""
    behind = [t for t in plan.definition.of_kind("target") if node.id in plan.upstream([t.id])]
    groups = {target.group for target in behind}
    if not plan.streaming_sources(node.id) or (len(groups) == 1 and None not in groups and "" not in groups):
        return
    named = listed_names(target.id for target in behind)
    message = (
        f"it asks outside which rows it rejects, and the queries of {named} may be told different things: a "
        f"row would be in both outputs, or in none"
    )
    hint = "Give the targets behind it a `group`, the same one."
    yield at_key(plan, node, "GB387", message, "options", hint)


def _check_parted(plan: Plan, node: Node) -> Iterator[Diagnostic]:
    """Both queries have the same rows, so that each is in one of both places; not each source gives them."""
    good, bad = parted_targets(plan, node.id)
    for name in sorted(plan.streaming_sources(node.id)) if good else ():
        source = plan.node(name)
        gem = cast("Source | None", plan.gems.get(name))
        if gem is None or (gem.semantics.replayable and not gem.semantics.only_new):
            continue
        option = gem.semantics.only_new
        own = [f"`{target.id}`" for target in (good[0], bad[0])]
        what = (
            f"`{option}` lets each of their queries begin behind what is there when it starts"
            if isinstance(option, str)
            else "each of their queries gets rows of its own"
        )
        message = (
            f"a row may get neither to {own[0]} nor to {own[1]}, which takes what it rejects: of `{name}` "
            f"(`{source.gem}`) {what}"
        )
        hint = f"Give {own[0]} and {own[1]} the same `group`: one query writes both."
        if isinstance(option, str):
            hint += f" Or set `{option}`."
        yield at_key(plan, node, "GB389", message, "gem", hint, "warning")
        return


def _check_fork(plan: Plan, group: Group) -> Iterator[Diagnostic]:
    """All rows come through one output, and nothing behind it remembers rows."""
    if any(not plan.streaming_sources(node.id) for node in group.targets):
        return  # which is said of a target that no stream reaches
    if group.fork is None:
        node = group.targets[-1]
        named = listed_names(target.id for target in group.targets)
        message = (
            f"there is no one node through which all rows of {named} come, and the group `{group.name}` is "
            f"one query{_why(node)}"
        )
        hint = "Unite what they read, or put the targets into different groups."
        yield at_key(plan, node, "GB381", message, "group", hint)
        return
    for node in group.targets:
        # Of a node that is wrong something else is said.
        behind = (o for o in operators_behind(plan, group, node) if o.node in plan.gems)
        found = next((o for o in behind if o.stateful is not False), None)
        if found is not None:
            yield _stateful(plan, group, node, found)


def _stateful(plan: Plan, group: Group, node: Node, operator: Operator) -> Diagnostic:
    assert group.fork is not None
    fork = ".".join(part for part in group.fork if part and part != UNDIVIDED)
    where = f"`{operator.node}`, which lies between `{fork}` and this target, "
    if operator.stateful:
        what = f"{where}keeps state over micro-batches (`{operator.kind}`)"
    else:
        what = f"{where}may keep state over micro-batches: its gem doesn't tell"
    message = (
        f"{what}; the group `{group.name}` computes what lies behind `{fork}` for each micro-batch by itself"
        f"{_why(node)}"
    )
    hint = "Let all targets of the group read what comes behind it, or take this one out of the group."
    return at_key(plan, node, "GB382", message, "group", hint)
