"""Compare what ran on a checkpoint with what is going to run, and say what becomes of each row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.comparison import Comparison
from gem_bundle.changes.model import Change, TargetChanges
from gem_bundle.changes.rules.columns import compare_columns
from gem_bundle.changes.rules.settings import compare_settings
from gem_bundle.changes.rules.sources import begin_of, compare_sources
from gem_bundle.changes.rules.state import refuse_other_state
from gem_bundle.changes.rules.targets import compare_target
from gem_bundle.changes.rules.transforms import compare_transforms
from gem_bundle.changes.sides import new_side, old_side
from gem_bundle.plugins import load_registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.record import VersionRecord
    from gem_bundle.changes.sides import Side
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.plugins import Registry


def compare(
    old: VersionRecord,
    new: VersionRecord,
    plan: Plan,
    target: str,
    *,
    registry: Registry | None = None,
    ran: Side | None = None,
    checkpoint: SparkCheckpoint | None = None,
) -> TargetChanges:
    """What an edit does to a target.

    Args:
        old: What ran last.
        new: What is going to run, of `plan`.
        plan: The checked pipeline.
        target: The id of the target in it.
        registry: The gems to use; by default the installed ones.
        ran: What ran, where there is more of it than its record.
        checkpoint: What Spark left of it, which tells where there is no state.
    """
    if old.is_same(new):
        return TargetChanges(target)
    before = old_side(old, load_registry() if registry is None else registry) if ran is None else ran
    both = Comparison(before, new_side(new, plan, target), plan, checkpoint)
    stateless = _without_state(before, checkpoint) if checkpoint is not None else frozenset()
    if stateless:
        # State that begins now is in no checkpoint: Spark refuses it, and mixes nothing.
        now = frozenset(both.now[name] for name in stateless if name in both.now)
        both = Comparison(
            replace(before, stateless=stateless), replace(both.new, stateless=now), plan, checkpoint
        )
    rules = [*compare_sources(both), *compare_transforms(both)]
    changes = refuse_other_state(both, rules)
    changes += compare_target(both)
    changes += compare_columns(both)
    changes += compare_settings(both)
    return TargetChanges(target, tuple(in_order(changes)))


def new_target(plan: Plan, version: VersionRecord) -> TargetChanges:
    """What a first run of a target does: from where each source is read.

    Args:
        plan: The checked pipeline.
        version: What is going to run.
    """
    target = next(node for node in reversed(version.nodes) if node.kind == "target")
    node = plan.node(target.id)
    begins = [
        f"`{source.id}` {begin_of(plan.gems[source.id])}"
        for source in version.nodes
        if source.kind == "source" and source.mode != "batch"
    ]
    message = f"target `{target.id}` has no checkpoint yet: {', '.join(begins)} will be read"
    if len(begins) > 1:
        message = f"target `{target.id}` has no checkpoint yet; read will be {'; '.join(begins)}"
    place = plan.definition.locator.place(node.path, key=True)
    return TargetChanges(target.id, (Change("new", "GB444", message, target.id, node.path, place),))


def compare_with_checkpoint(plan: Plan, version: VersionRecord, checkpoint: SparkCheckpoint) -> TargetChanges:
    """What can be said of a checkpoint that no record tells of: sources, operators with state, settings.

    Args:
        plan: The checked pipeline.
        version: What is going to run.
        checkpoint: What Spark left.
    """
    target = next(node for node in reversed(version.nodes) if node.kind == "target")
    side = new_side(version, plan, target.id)
    both = Comparison(side, side, plan)
    changes = [
        both.change(
            "continues",
            "GB446",
            f"target `{target.id}`: no record tells what ran on its checkpoint: what Spark left is compared",
            target.id,
        ),
        *_sources_left(both, checkpoint),
        *_operators_left(both, checkpoint),
    ]
    note = (
        "whether filters, columns, keys and aggregates are those that ran can't be known; the next run keeps "
        "a record"
    )
    return TargetChanges(target.id, tuple(in_order(changes)), (note,))


def _sources_left(both: Comparison, checkpoint: SparkCheckpoint) -> Iterator[Change]:
    if checkpoint.newest is None or not checkpoint.named:
        return
    left = dict.fromkeys(checkpoint.newest.sources)
    for node in both.new.version.nodes:
        if node.kind != "source" or node.mode == "batch":
            continue
        if not set(node.readers) & set(left):
            begins = begin_of(both.new.gems.get(node.id))
            message = f"the checkpoint has no source `{node.id}`: it is read {begins}"
            yield both.change("again" if left else "continues", "GB410", message, node.id, after=node.gem)
        for name in node.readers:
            left.pop(name, None)
    for name in left:
        message = (
            f"the checkpoint has a source `{name}` that the pipeline doesn't: what waits there is never read"
        )
        yield both.change("skipped", "GB411", message, before=name)


_SPARK_NAMES = {
    "aggregate": frozenset({"stateStoreSave", "sessionWindowStateStoreSaveExec"}),
    "deduplicate": frozenset({"dedupe", "dedupeWithinWatermark"}),
    "join": frozenset({"symmetricHashJoin"}),
}


def _without_state(ran: Side, checkpoint: SparkCheckpoint) -> frozenset[str]:
    """The nodes that may have kept state and haven't: all that is in the checkpoint is others'."""
    unknown = frozenset(operator.node for operator in ran.operators if operator.stateful is None)
    known = [operator.kind for operator in ran.operators if operator.stateful]
    if not unknown or not checkpoint.commits or not set(known) <= set(_SPARK_NAMES):
        return frozenset()
    return unknown if sorted(known) == _kinds(checkpoint.kinds) else frozenset()


def _kinds(names: Iterable[str]) -> list[str]:
    """What Spark calls operators in the words of pipelines."""
    return sorted(next((k for k, found in _SPARK_NAMES.items() if name in found), name) for name in names)


def _operators_left(both: Comparison, checkpoint: SparkCheckpoint) -> Iterator[Change]:
    found = checkpoint.kinds
    known = [
        operator for operator in both.new.stateful if operator.stateful and operator.kind in _SPARK_NAMES
    ]
    if len(known) != len(both.new.stateful) or "" in found:
        return
    wanted = sorted(operator.kind for operator in known)
    there = _kinds(found)
    if wanted != there:
        node = known[-1].node if known else both.new.target
        message = (
            f"the checkpoint has state of {_named(there)}, and the query keeps {_named(wanted)}: Spark "
            "refuses to go on"
        )
        yield both.change("refused", "GB422", message, node, before=there, after=wanted)


def _named(kinds: Sequence[str]) -> str:
    return ", ".join(f"`{kind}`" for kind in kinds) or "nothing"


def in_order(changes: Iterable[Change]) -> list[Change]:
    """Changes in the order of the file; those of what is no more come last."""
    return sorted(changes, key=lambda c: (not c.place.line, c.place, c.code, c.message))
