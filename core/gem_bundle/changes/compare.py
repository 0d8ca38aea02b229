"""Compare what ran on a checkpoint with what is going to run, and say what becomes of each row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.comparison import Comparison
from gem_bundle.changes.history import unseen_code
from gem_bundle.changes.model import Change, TargetChanges, in_order
from gem_bundle.changes.rules.arrangement import compare_arrangements
from gem_bundle.changes.rules.columns import compare_columns, tell_of_names
from gem_bundle.changes.rules.empty import tell_of_empty
from gem_bundle.changes.rules.firsts import tell_of_firsts
from gem_bundle.changes.rules.left import compare_left
from gem_bundle.changes.rules.moved import compare_moved
from gem_bundle.changes.rules.names import compare_names
from gem_bundle.changes.rules.processors import refuse_other_schemas
from gem_bundle.changes.rules.settings import compare_settings
from gem_bundle.changes.rules.sources import begin_of, compare_sources
from gem_bundle.changes.rules.state import refuse_other_state
from gem_bundle.changes.rules.stores import SPARK_NAMES, kinds_of, untold
from gem_bundle.changes.rules.targets import compare_target
from gem_bundle.changes.rules.transforms import compare_transforms
from gem_bundle.changes.sides import new_side, old_side
from gem_bundle.diagnostics import listed_names
from gem_bundle.plugins import load_registry

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    earlier: Sequence[VersionRecord] = (),
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
        earlier: What ran on the same checkpoint before that.
    """
    if old.is_same(new):
        return TargetChanges(target, notes=unseen_code(zip(old.nodes, new.nodes, strict=True)))
    now = new_side(new, plan, target)
    before = ran
    if before is None:
        before = old_side(old, load_registry() if registry is None else registry, now=now)
    both = Comparison(before, now, plan, checkpoint, earlier)
    stateless = _without_state(before, checkpoint) if checkpoint is not None else frozenset()
    if stateless:
        # State that begins now is in no checkpoint: Spark refuses it, and mixes nothing.
        still = frozenset(both.now[name] for name in stateless if name in both.now)
        both = Comparison(
            replace(before, stateless=stateless), replace(now, stateless=still), plan, checkpoint, earlier
        )
    named = list(compare_names(both))
    rules = [*compare_sources(both), *compare_transforms(both), *compare_arrangements(both)]
    rules += compare_moved(both)
    rules += [told for told in named if told.reach is not None]
    changes = tell_of_firsts(both, refuse_other_schemas(both, refuse_other_state(both, rules)))
    changes = tell_of_empty(both, tell_of_names(both, changes))
    changes += compare_target(both)
    changes += compare_columns(both)
    changes += compare_settings(both)
    changes += [told.change for told in named if told.reach is None]
    return TargetChanges(target, tuple(in_order(changes)), unseen_code(both.pairs))


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
    both = Comparison(side, side, plan, checkpoint)
    changes = [
        both.change(
            "continues",
            "GB446",
            f"target `{target.id}`: no record tells what ran on its checkpoint: what Spark left is compared",
            target.id,
        ),
        *compare_left(both, checkpoint),
    ]
    notes = [
        "whether filters, columns and aggregates are those that ran, and what keys are made of, can't be "
        "known; the next run keeps a record"
    ]
    nodes = [] if "" in checkpoint.kinds else untold(both, checkpoint)
    if nodes and not any(change.verdict == "refused" for change in changes):
        notes.append(
            f"whether Spark takes the state of {listed_names(nodes)} can't be known: not all of what it "
            "keeps can be compared, so that it may refuse to go on"
        )
    return TargetChanges(target.id, tuple(in_order(changes)), tuple(notes))


def _without_state(ran: Side, checkpoint: SparkCheckpoint) -> frozenset[str]:
    """The nodes that may have kept state and haven't: all that is in the checkpoint is others'."""
    unknown = frozenset(operator.node for operator in ran.operators if operator.stateful is None)
    known = [operator.kind for operator in ran.operators if operator.stateful]
    if not unknown or not checkpoint.commits or not set(known) <= set(SPARK_NAMES):
        return frozenset()
    return unknown if sorted(known) == kinds_of(checkpoint.kinds) else frozenset()
