"""The plan against another version of the pipeline, in place of what ran: what a reviewer wants to see."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.compare import compare
from gem_bundle.changes.first_run import (
    PASSED,
    called_otherwise,
    first_run_after,
    first_stream,
    former_in_group_of,
    reads_what_is_there,
    target_elsewhere,
    without_checkpoint,
)
from gem_bundle.changes.gone import ITS_GROUP, gone_target
from gem_bundle.changes.model import Change, TargetChanges
from gem_bundle.changes.planning import unrestartable
from gem_bundle.changes.sides import new_side

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gem_bundle.changes.model import Verdict
    from gem_bundle.changes.record import VersionRecord
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan


def plan_against(
    plan: Plan,
    before: Plan,
    targets: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> list[TargetChanges]:
    """What becomes of rows when one pipeline takes the place of another.

    Args:
        plan: The pipeline as it is now.
        before: The pipeline as it was.
        targets: The ids of the targets to look at, also of those that are no more; by default all.
        environment: Environment variables, for the project's settings; None is the process's.
    """
    former = {node.identity: node for node in before.definition.of_kind("target")}
    found: list[TargetChanges] = []
    chosen = set(targets)
    for node in plan.restartable(plan.definition.of_kind("target")):
        old = former.pop(node.identity, None)
        if chosen and node.id not in chosen:
            continue
        new = version_of(plan, node.id, environment=environment)
        if old is not None and _shared(old) != _shared(node):
            found.append(TargetChanges(node.id, (_regrouped(plan, before, node, old),)))
            continue
        renamed = former_in_group_of(plan, node, new, before, former) if old is None else None
        old = old or renamed
        if old is None:
            found.append(first_run_after(plan, node, new, before, former))
            continue
        record = version_of(before, old.id, environment=environment)
        new = new.as_known_by(record)
        if not before.restartable([old]):
            found.append(first_stream(plan, node, new, record))
            continue
        if _within(record) != _within(new):
            found.append(target_elsewhere(plan, node, new, record))
            continue
        ran = new_side(record, before, old.id)
        changes = compare(record, new, plan, node.id, ran=ran)
        if renamed is not None:
            told = called_otherwise(plan, node, renamed.id)
            changes = replace(changes, changes=(told, *changes.changes))
        found.append(changes)
    for node in unrestartable(plan, chosen):
        old = former.pop(node.identity, None)
        if old is not None and before.restartable([old]):
            new, record = (
                version_of(p, n.id, environment=environment) for p, n in ((plan, node), (before, old))
            )
            found.append(without_checkpoint(plan, node, new, record, "its checkpoint stays"))
    now = {node.identity for node in plan.definition.of_kind("target")}
    found += [
        gone_target(plan, node.id, f"{ITS_GROUP if _shared(node) else 'its checkpoint'} stays")
        for node in former.values()
        if node.identity not in now and (not chosen or node.id in chosen)
    ]
    return found


def _within(version: VersionRecord) -> str:
    """Where a checkpoint lies in the pipeline's folder; its whole location where it lies elsewhere."""
    return version.checkpoint.removeprefix(f"{version.folder}/")


def _shared(node: Node) -> str:
    """The group that a target is in; an empty text for one that only others are in with it."""
    return "" if node.leads else node.group


def _regrouped(plan: Plan, before: Plan, node: Node, old: Node) -> Change:
    """What becomes of rows when a target is in another group than in the other version."""
    place = plan.definition.locator.place((*node.path, "group"))
    were, are = (f"the group `{n.group}`" if n.group else "a query of its own" for n in (old, node))
    message = f"target `{node.id}` was in {were} and is in {are} now"
    joins = node.group and any(other.group == node.group for other in before.definition.of_kind("target"))
    verdict: Verdict = "skipped"
    if joins:
        message += ", whose query has run: what that has read goes past the target"
    elif reads_what_is_there(plan, node.id):
        verdict = "again"
        message += ", which has no checkpoint: what its sources have is written once more"
    else:
        message += f", which has no checkpoint: {PASSED}"
    hint = f"Put it back, or take that on purpose: `--accept GB447:{node.id}`."
    return Change(verdict, "GB447", message, node.id, node.path, place, hint, old.group, node.group)
