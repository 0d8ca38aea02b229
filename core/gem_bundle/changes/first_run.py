"""What the first run of a target does, which has no checkpoint: it may have had one under another name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.compare import new_target
from gem_bundle.changes.gone import is_gone
from gem_bundle.changes.history import record_of
from gem_bundle.changes.model import Change, TargetChanges
from gem_bundle.changes.record import recorded_targets
from gem_bundle.changes.rules.sources import reads_only_new
from gem_bundle.files import split
from gem_bundle.gem import Target
from gem_bundle.pipeline.model import IN_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.model import Verdict
    from gem_bundle.changes.record import NodeRecord, Record, VersionRecord
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

PASSED = (
    "its sources begin with what comes after the start, and what has come since the last run is never read"
)
"""What becomes of rows that no checkpoint tells a source to begin with."""


def reads_what_is_there(plan: Plan, target: str) -> bool:
    """Whether a first run of a target reads some of what its sources have already.

    Args:
        plan: The checked pipeline.
        target: The id of the target.
    """
    return any(not reads_only_new(plan.gems[name]) for name in plan.streaming_sources(target))


def first_run(
    plan: Plan, node: Node, version: VersionRecord, left: Callable[[], Mapping[str, str]]
) -> TargetChanges:
    """What becomes of rows when a target runs that has no checkpoint.

    Args:
        plan: The checked pipeline.
        node: The target.
        version: What is going to run.
        left: Looks for the targets that are no more, as `left_over` tells them.
    """
    former = _recorded_elsewhere(version, left)
    found = _into_what_is_there(plan, node, former)
    if found is None:
        found = _renamed(plan, node, version, former) if former else new_target(plan, version)
    return found


def first_run_after(
    plan: Plan, node: Node, version: VersionRecord, before: Plan, others: Mapping[str, Node]
) -> TargetChanges:
    """What becomes of rows when a target runs that another version of the pipeline doesn't have.

    Args:
        plan: The checked pipeline.
        node: The target.
        version: What is going to run.
        before: The other version.
        others: The targets of the other version that may have become this one.
    """
    for other in others.values():
        if _has_become(plan, version, before, other):
            return _renamed(plan, node, version, other.id)
    return new_target(plan, version)


def _renamed(plan: Plan, node: Node, version: VersionRecord, former: str) -> TargetChanges:
    """A target that has another id, and so a new checkpoint, where its old one has rows already."""
    message = f"target `{former}` is called `{node.id}` now and has no checkpoint under that name"
    return _begun_anew(plan, node, version, message, _was(node, former), former, node.id)


def target_elsewhere(plan: Plan, node: Node, version: VersionRecord, former: VersionRecord) -> TargetChanges:
    """What becomes of rows when a target's checkpoint would lie in another place than another version's.

    Args:
        plan: The checked pipeline.
        node: The target.
        version: What is going to run.
        former: What ran.
    """
    places = version.nodes[-1].places
    if not places or places != former.nodes[-1].places:
        return new_target(plan, version)
    before, after = former.checkpoint, version.checkpoint
    message = f"target `{node.id}` had its checkpoint at {before}, and gets a new one at {after}"
    hint = (
        "Let `pipeline` and `checkpoints` say what they said. Or move the checkpoints along before the next "
        "run, with the records beside them."
    )
    return _begun_anew(plan, node, version, message, hint, before, after)


def first_stream(plan: Plan, node: Node, version: VersionRecord, former: VersionRecord) -> TargetChanges:
    """What becomes of rows when a stream writes a target that batch runs have written.

    Args:
        plan: The checked pipeline.
        node: The target.
        version: What is going to run.
        former: What ran.
    """
    if not _writes_there(version, former.nodes[-1]):
        return new_target(plan, version)
    message = f"target `{node.id}` was written by batch runs, and gets its first checkpoint"
    hint = f"Write to another place, or take that on purpose: `--accept GB435:{node.id}`."
    return _begun_anew(plan, node, version, message, hint, "batch", "stream")


def without_checkpoint(
    plan: Plan, node: Node, version: VersionRecord, former: VersionRecord, stays: str
) -> TargetChanges:
    """What becomes of rows when a target goes by no checkpoint any more: of batch runs, or of another gem.

    Args:
        plan: The checked pipeline.
        node: The target.
        version: What is going to run.
        former: What ran.
        stays: What there is of its checkpoint, as the end of a sentence.
    """
    in_batches = plan.definition.mode != "stream"
    message = f"target `{node.id}` goes by no checkpoint any more, "
    message += "for batch runs have none" if in_batches else f"for the gem `{node.gem}` needs none"
    place = plan.definition.locator.place(node.path, key=True)
    anew = in_batches or reads_what_is_there(plan, node.id)
    if not anew or node.output_mode == "complete" or not _writes_there(version, former.nodes[-1]):
        told = Change("gone", "GB445", f"{message}; {stays}", node.id, node.path, place, before=node.id)
        return TargetChanges(node.id, (told,))
    message += f": all that was read is read again, and written to where it is already; {stays}"
    hint = "Write to another place. Or take that on purpose, and remove the checkpoint with its record."
    return TargetChanges(node.id, (Change("again", "GB435", message, node.id, node.path, place, hint),))


def moved_target(plan: Plan, node: Node, checkpoint: SparkCheckpoint | None) -> Change | None:
    """What becomes of rows when a target has another query's checkpoint than before; None if it hasn't.

    Args:
        plan: The checked pipeline.
        node: The target.
        checkpoint: What Spark left of the query that it is in now, if that has run.
    """
    place = plan.definition.locator.place((*node.path, "group"))
    query = f"the group `{node.group}`" if node.group else "a query of its own"
    if checkpoint is not None:
        message = (
            f"target `{node.id}` joins {query}, whose query has run: what that has read goes past the target"
        )
        hint = f"Give the group another name, or take that on purpose: `--accept GB447:{node.id}`."
        if not checkpoint.commits:
            return None
        folder, _ = split(plan.definition.record(node.id))
        members = [name.rpartition(IN_GROUP) for name in recorded_targets(folder)]
        gone = [name for group, _, name in members if group == node.group and is_gone(plan, name)]
        if gone:
            hint = f"{_was(node, gone[0])} Else give{hint.removeprefix('Give')}"
        return Change("skipped", "GB447", message, node.id, node.path, place, hint, after=node.group)
    folder, own = split(plan.definition.record(node.id))
    former = [
        name
        for name in recorded_targets(folder)
        if name.rpartition(IN_GROUP)[2] == node.identity and name != own
    ]
    anew = reads_what_is_there(plan, node.id)
    if not former or (anew and node.output_mode == "complete"):
        return None
    group = former[0].rpartition(IN_GROUP)[0]
    before = f"the group `{group}`" if group else "a query of its own"
    message = f"target `{node.id}` was in {before} and is in {query} now, which has no checkpoint: "
    message += (
        "what its sources have is read from where they begin, and written once more" if anew else PASSED
    )
    hint = f"Put it back, or take that on purpose: `--accept GB447:{node.id}`."
    verdict: Verdict = "again" if anew else "skipped"
    return Change(verdict, "GB447", message, node.id, node.path, place, hint, group, node.group)


def former_in_group(
    node: Node, version: VersionRecord, left: Callable[[], Mapping[str, str]]
) -> tuple[str, Record] | None:
    """The target that is no more, was in a target's group and wrote to where that one does, with its record.

    Args:
        node: The target.
        version: What is going to run.
        left: Looks for the targets that are no more, as `left_over` tells them.
    """
    former = _recorded_elsewhere(version, left, node.group) if node.group else ""
    record = record_of(former, left()[former])[0] if former else None
    return None if record is None else (former, record)


def former_in_group_of(
    plan: Plan, node: Node, version: VersionRecord, before: Plan, others: Mapping[str, Node]
) -> Node | None:
    """The same of another version of the pipeline.

    Args:
        plan: The checked pipeline.
        node: The target.
        version: What is going to run.
        before: The other version.
        others: The targets of the other version that may have become this one.
    """
    found = (other for other in others.values() if node.group and other.group == node.group)
    return next((other for other in found if _has_become(plan, version, before, other)), None)


def called_otherwise(
    plan: Plan, node: Node, former: str, checkpoint: SparkCheckpoint | None = None
) -> Change:
    """What becomes of rows when a target of a group has another id: the group has its checkpoint.

    Args:
        plan: The checked pipeline.
        node: The target.
        former: The id that it had.
        checkpoint: What Spark left of the group's query; None where that isn't known.
    """
    place = plan.definition.locator.place(node.path, key=True)
    message = f"target `{former}` is called `{node.id}` now and goes on with the checkpoint of its group"
    verdict: Verdict = "continues"
    if checkpoint is None or checkpoint.unfinished is None:
        message += ": nothing is lost"
    else:
        verdict = "again"
        message += (
            f": micro-batch {checkpoint.unfinished} was begun and isn't done, and its rows may be written "
            "once more, for what a target has already is known by its id"
        )
    return Change(verdict, "GB443", message, node.id, node.path, place, _was(node, former), former, node.id)


def _has_become(plan: Plan, version: VersionRecord, before: Plan, other: Node) -> bool:
    """Whether a target of another version is no more and wrote to where one does now."""
    return is_gone(plan, other.identity) and _writes_there(version, version_of(before, other.id).nodes[-1])


def _recorded_elsewhere(
    version: VersionRecord, left: Callable[[], Mapping[str, str]], group: str = ""
) -> str:
    """The target that is no more and wrote to where this one is going to; an empty text for none."""
    if not version.nodes[-1].places:
        return ""
    for name, location in left().items():
        if group and split(location)[1].rpartition(IN_GROUP)[0] != group:
            continue
        record, _ = record_of(name, location)
        ran = record.newest if record is not None else None
        if ran is not None and _writes_there(version, ran.nodes[-1]):
            return name
    return ""


def _writes_there(version: VersionRecord, other: NodeRecord) -> bool:
    """Whether a target writes to where another one does, or did."""
    target = version.nodes[-1]
    return bool(target.places) and (target.gem, target.places) == (other.gem, other.places)


def _into_what_is_there(plan: Plan, node: Node, former: str) -> TargetChanges | None:
    """What a first run does that writes to where there are rows already; None where there are none."""
    gem = plan.gems[node.id]
    begins = reads_what_is_there(plan, node.id)
    if not isinstance(gem, Target) or not begins or node.output_mode == "complete":
        return None
    anew = gem.begins_anew()
    if anew is None:
        return None
    message = (
        f"target `{node.id}` has no checkpoint, so what its sources have is read from the beginning, and "
        f"{anew.why}"
    )
    hint = _was(node, former) if former else anew.hint
    hint = hint or (
        "If its checkpoint is elsewhere, or it had another id, say so with `checkpoints` or `was`. If what "
        f"is there came from somewhere else, run with `--accept GB435:{node.id}`."
    )
    place = plan.definition.locator.place(node.path, key=True)
    change = Change(anew.effect, "GB435", message, node.id, node.path, place, hint, former or None, node.id)
    return TargetChanges(node.id, (change,))


def _was(node: Node, former: str) -> str:
    return f"Write `was: {former}` at `{node.id}` if it is the same target."


def _begun_anew(
    plan: Plan, node: Node, version: VersionRecord, message: str, hint: str, before: str, after: str
) -> TargetChanges:
    """What becomes of the rows of a target that loses its checkpoint, and may write all of them anew."""
    anew = reads_what_is_there(plan, node.id)
    if anew and node.output_mode == "complete":
        return new_target(plan, version)
    what = "all that was read is read again, and written to where it is already" if anew else PASSED
    verdict: Verdict = "again" if anew else "skipped"
    place = plan.definition.locator.place(node.path, key=True)
    change = Change(verdict, "GB435", f"{message}: {what}", node.id, node.path, place, hint, before, after)
    return TargetChanges(node.id, (change,))
