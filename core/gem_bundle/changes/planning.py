"""The plan of an edit: for each target what becomes of its rows, and what is no more.

What only an edit, or a first run, asks for is imported where it is: a run that goes on as it was starts
without.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING

from gem_bundle.changes.begun import JournalError, damaged_journal, goes_on
from gem_bundle.changes.canonical import version_of, with_defaults
from gem_bundle.changes.checkpoint import UnseenError, read_checkpoint
from gem_bundle.changes.damage import (
    check_checkpoint,
    has_source_evolution,
    is_passing,
    uncompared,
    unseen,
)
from gem_bundle.changes.forgotten import forgotten
from gem_bundle.changes.gone import gone_target, left_behind, left_over, place_beside, recorded, what_stays
from gem_bundle.changes.history import record_of, unseen_code, what_ran
from gem_bundle.changes.model import Change, TargetChanges, in_order
from gem_bundle.changes.record import Accepted
from gem_bundle.changes.wording import told
from gem_bundle.errors import PipelineError
from gem_bundle.plugins import load_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from gem_bundle.changes.begun import GoesOn
    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.record import VersionRecord
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.plugins import Registry


def plan_changes(
    plan: Plan, targets: Iterable[str] = (), environment: Mapping[str, str] | None = None
) -> tuple[list[TargetChanges], list[Diagnostic]]:
    """What becomes of rows when a pipeline goes on from its checkpoints.

    Args:
        plan: The pipeline as it is now.
        targets: The ids of the targets to look at, also of those that are no more; by default all.
        environment: Environment variables, for the project's settings; None is the process's.

    Returns:
        What becomes of each target; and of those of which that can't be known, why: what is wrong with the
        checkpoint or the record beside it.
    """
    found: list[TargetChanges] = []
    wrong: list[Diagnostic] = []
    chosen = dict.fromkeys(targets)
    installed = cache(load_registry)
    left = cache(partial(left_over, plan))
    for node in plan.restartable(plan.definition.of_kind("target")):
        if chosen and node.id not in chosen:
            continue
        changes, more = _of_target(plan, node, environment, installed, left)
        found += changes
        wrong += [d.moved(plan.definition.locator.place(node.path, key=True)) for d in more]
    found += _without_checkpoints(plan, chosen, environment)
    for name in left_behind(plan.definition, chosen) if chosen else left():
        place = left().get(name) or place_beside(plan.definition, name)
        found.append(gone_target(plan, name, what_stays(place)))
    return found, wrong


def _without_checkpoints(
    plan: Plan, chosen: Collection[str], environment: Mapping[str, str] | None
) -> Iterator[TargetChanges]:
    """What becomes of the targets that have a record, and need none as they are now."""
    others = unrestartable(plan, chosen)
    places = recorded(plan) if others else {}
    if places:
        from gem_bundle.changes.first_run import without_checkpoint
    for node in others:
        place = places.get(node.identity)
        record = record_of(node.id, place)[0] if place is not None else None
        if place is not None and record is not None and record.newest is not None:
            version = version_of(plan, node.id, environment=environment)
            yield without_checkpoint(plan, node, version, record.newest, what_stays(place))


def unrestartable(plan: Plan, chosen: Collection[str]) -> list[Node]:
    """Those of some targets, by default of all, whose queries go on from no checkpoint.

    Args:
        plan: The checked pipeline.
        chosen: The ids of the targets.
    """
    kept = {node.id for node in plan.restartable(plan.definition.of_kind("target"))}
    return [
        node
        for node in plan.definition.of_kind("target")
        if node.id not in kept and (not chosen or node.id in chosen)
    ]


def hold_to_plan(
    plan: Plan,
    targets: Iterable[str],
    accept: Iterable[tuple[str, str]] = (),
    environment: Mapping[str, str] | None = None,
    fresh: Collection[str] = (),
    seen: Collection[str] = (),
) -> dict[str, tuple[Accepted, ...]]:
    """Stop a run that would lose, double or mix rows, or that Spark refuses, before anything happens.

    It stops too where a checkpoint can't be looked at this time and might be the next. What nothing here can
    read is left to Spark.

    Args:
        plan: The pipeline that is about to run, as the file has it.
        targets: The ids of the targets that are.
        accept: The changes that are taken on purpose: codes, each with the id of a node or an empty text.
        environment: Environment variables, for the project's settings; None is the process's.
        fresh: Those of the targets that get new state, which settles what is about state alone.
        seen: Those of the targets whose checkpoints this run could look at before.

    Returns:
        For each target that was compared the changes that were taken.

    Raises:
        PipelineError: With the changes that stop it, in the words of the plan, or what is wrong with a
            checkpoint.
    """
    wanted = list(targets)
    if not wanted:
        return {}
    found, wrong = plan_changes(plan, wanted, environment)
    known = (target.with_new_state() if target.target in fresh else target for target in found)
    judged = [target.accepting(accept) for target in known]
    stopping = [change.diagnostic() for target in judged for change in target.changes if change.stops]
    for diagnostic in wrong:
        target = diagnostic.node or ""
        if diagnostic.code != "GB406":
            stopping.append(diagnostic)
        elif target in seen or is_passing(diagnostic, plan.definition.checkpoint(target)):
            stopping.append(uncompared(diagnostic))
    if stopping:
        raise PipelineError(stopping)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        target.target: tuple(Accepted(c.code, c.node, at) for c in target.changes if c.accepted)
        for target in judged
    }


def _of_target(
    plan: Plan,
    node: Node,
    environment: Mapping[str, str] | None,
    installed: Callable[[], Registry],
    left: Callable[[], Mapping[str, str]],
) -> tuple[list[TargetChanges], list[Diagnostic]]:
    location = plan.definition.checkpoint(node.id)
    try:
        next_run = goes_on(location)
    except JournalError as error:
        return [], [damaged_journal(node.id, location, error)]
    try:
        checkpoint = read_checkpoint(next_run.location, last=2)
        return _judged(plan, node, checkpoint, environment, installed, left, next_run)
    except UnseenError as error:
        return [], [unseen(node.id, location, error)]


def _judged(
    plan: Plan,
    node: Node,
    checkpoint: SparkCheckpoint | None,
    environment: Mapping[str, str] | None,
    installed: Callable[[], Registry],
    left: Callable[[], Mapping[str, str]],
    next_run: GoesOn,
) -> tuple[list[TargetChanges], list[Diagnostic]]:
    """What becomes of a target that has that checkpoint, or is given it by the next run.

    Raises:
        UnseenError: When a part of the checkpoint can't be looked at.
    """
    record, wrong = next_run.record(node.id, plan.definition.record(node.id))
    if wrong:
        # By what Spark left alone less is known, and too little where there may be a record.
        return [], [replace(d, severity="error") for d in wrong]
    new = version_of(plan, node.id, environment=environment)
    former = None
    if checkpoint is None or record is None:
        from gem_bundle.changes.first_run import called_otherwise, first_run, former_in_group, moved_target
    if checkpoint is not None and record is None:
        found_again = former_in_group(node, new, left)
        if found_again is not None and what_ran(found_again[1], checkpoint).newest is not None:
            former, record = found_again
    if record is not None:
        record = with_defaults(plan, record)
    if checkpoint is None or (record is None and node.group):
        moved = moved_target(plan, node, checkpoint)
        if moved is not None:
            return [TargetChanges(node.id, (moved,))], []
    if checkpoint is None:
        return [first_run(plan, node, new, left)], []
    # Continuous processing names no sources, whatever the settings: that is another matter.
    evolution = has_source_evolution(plan.definition.spark, node.trigger) and not checkpoint.continuous
    broken = check_checkpoint(node.id, checkpoint, source_evolution=evolution, record=record)
    if broken:
        return [], broken
    versions = what_ran(record, checkpoint).versions if record is not None else ()
    ran = versions[-1] if versions else None
    known = new if ran is None else new.as_known_by(ran)
    is_same = ran is not None and ran.is_same(known)
    if not is_same:
        from gem_bundle.changes.compare import compare, compare_with_checkpoint
    if ran is None:
        found = compare_with_checkpoint(plan, new, checkpoint)
        if "" in checkpoint.kinds:
            found = replace(found, notes=(*found.notes, _UNKNOWN_STATE))
    elif is_same:
        found = TargetChanges(node.id, notes=unseen_code(zip(ran.nodes, known.nodes, strict=True)))
    else:
        found = compare(
            *(ran, known, plan, node.id),
            registry=installed(),
            checkpoint=checkpoint,
            earlier=versions[:-1],
        )
    if not checkpoint.named:
        from gem_bundle.changes.unnamed import by_order

        found = by_order(plan, node, ran, known, checkpoint, found, installed)
    found = _by_processing(plan, node, checkpoint, found)
    if ran is not None:
        again = forgotten(plan, known, ran, checkpoint)
        found = replace(found, changes=tuple(in_order([*found.changes, *again])))
    found = replace(found, notes=(*found.notes, *_unset_places(new, known)))
    if former is not None:
        found = replace(found, changes=(called_otherwise(plan, node, former, checkpoint), *found.changes))
    # A run that took them on purpose may have ended without a micro-batch: nobody is asked again.
    last = record.newest if record is not None else None
    if last is not ran:
        is_same = last is not None and last.is_same(new.as_known_by(last))
    taken = last.accepted if last is not None and is_same else ()
    return [found.accepting((one.code, one.node) for one in taken)], []


def _unset_places(new: VersionRecord, known: VersionRecord) -> Iterator[str]:
    """What can't be known of places that a variable names which isn't set, as notes."""
    for node, taken in zip(new.nodes, known.nodes, strict=True):
        for option in taken.places.keys() - node.places.keys():
            yield (
                f"whether `{option}` of {node.kind} `{node.id}` is the place that it was can't be known: an "
                f"environment variable in {told(node.options.get(option))} is not set"
            )


_UNKNOWN_STATE = (
    "which operators have kept state can't be known: what Spark wrote of them is missing or damaged, so "
    "that it may refuse to go on"
)


def _by_processing(
    plan: Plan, node: Node, checkpoint: SparkCheckpoint, found: TargetChanges
) -> TargetChanges:
    """What an edit does, with the kind of processing that has made the checkpoint, whatever a record says.

    There may be none, or `--available-now` has made micro-batches of what is continuous in the file.
    """
    continuous = node.trigger.kind == "continuous"
    told = any(change.code == "GB434" and change.verdict == "refused" for change in found.changes)
    if told or checkpoint.continuous in {None, continuous}:
        return found
    before, after = "continuous processing", "micro-batches"
    if continuous:
        before, after = after, before
    message = (
        f"target `{node.id}`: its checkpoint was made by {before}, and Spark can't go on from it with {after}"
    )
    path = (*node.path, "trigger")
    place = plan.definition.locator.place(path)
    hint = "Give the target another id, so that it gets a checkpoint of its own."
    change = Change("refused", "GB434", message, node.id, path, place, hint, before, after)
    return replace(found, changes=(*found.changes, change))
