"""The history of a checkpoint: a run adds its version to the record when it differs from the last one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import UnseenError, read_checkpoint
from gem_bundle.changes.record import Record, RecordError, read_record, record_file, write_record
from gem_bundle.changes.withheld import without_logins
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import describe_error
from gem_bundle.files import advice, below
from gem_bundle.types import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.record import Accepted, NodeRecord, VersionRecord
    from gem_bundle.pipeline.plan import Plan

MOST_VERSIONS = 50
"""Older ones are left out: each may have some ten thousand characters, and all are read at every start."""


def keep_versions(
    plan: Plan,
    targets: Iterable[str],
    accepted: Mapping[str, tuple[Accepted, ...]] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Diagnostic]:
    """Write down what is about to run on the checkpoints of some targets, where it isn't what ran last.

    Call it before the first micro-batch. What can't be written down is a warning, for Spark may know the
    place better; a record that is there and can't be read is an error.

    Args:
        plan: The pipeline.
        targets: The ids of the targets.
        accepted: The changes that were taken on purpose, by target. One that isn't in it was compared with
            nothing, so it isn't known whether it may be written down; None for none of them.
        environment: Environment variables, for the project's settings; None is the process's.
    """
    found: list[Diagnostic] = []
    for target in targets:
        location = plan.definition.checkpoint(target)
        try:
            checkpoint = read_checkpoint(location)
        except UnseenError as error:
            found.append(_unkept(target, location, str(error)))
            continue
        if accepted is not None and target not in accepted:
            reason = "what ran before couldn't be looked at before the start"
            found.append(_unkept(target, location, reason))
            continue
        location = plan.definition.record(target)
        try:
            record = read_record(location)
            version = version_of(plan, target, environment=environment)
            made = with_version(record, target, version, checkpoint, (accepted or {}).get(target, ()))
            if made is not None:
                write_record(location, made)
        except RecordError as error:
            found.append(damaged_record(target, location, error))
        except Exception as error:  # noqa: BLE001 (every store raises what its client raises)
            found.append(_unkept(target, location, f"{type(error).__name__}: {error}"))
    return found


def with_version(
    record: Record | None,
    target: str,
    version: VersionRecord,
    checkpoint: SparkCheckpoint | None,
    accepted: tuple[Accepted, ...] = (),
) -> Record | None:
    """The record with one more version; None when it needn't change.

    Args:
        record: The record that is there.
        target: The id of the target.
        version: What is about to run.
        checkpoint: What Spark left.
        accepted: The changes that were taken on purpose.
    """
    query = checkpoint.query if checkpoint is not None else ""
    next_batch = checkpoint.next_batch if checkpoint is not None else 0
    before = record or Record(target)
    kept = what_ran(before, checkpoint)
    if kept.newest is None or not kept.newest.is_same(version):
        added = replace(version, first_batch=next_batch, accepted=accepted)
        last = before.newest
        if last is not None and last.first_batch == next_batch and last.is_same(version):
            # It was written down already, by a run that was stopped before its first micro-batch was done.
            known = {(one.code, one.node) for one in last.accepted}
            more = (one for one in accepted if (one.code, one.node) not in known)
            added = replace(last, accepted=(*last.accepted, *more))
        kept = replace(kept, versions=(*kept.versions, added)[-MOST_VERSIONS:])
    if record is not None and kept.versions == record.versions:
        return None
    return replace(kept, target=target, query=query)


def what_ran(record: Record, checkpoint: SparkCheckpoint | None) -> Record:
    """The record without what left nothing in the checkpoint: its first micro-batch was never done.

    Args:
        record: The record beside the checkpoint.
        checkpoint: What Spark left; None when there is none any more.
    """
    if checkpoint is None:
        return replace(record, versions=())
    if record.query and checkpoint.query and record.query != checkpoint.query:
        # Somebody has put another checkpoint there.
        return replace(record, versions=())
    return record.until(checkpoint.next_batch)


def record_of(target: str, location: str) -> tuple[Record | None, list[Diagnostic]]:
    """The record beside a target's checkpoint, or why it can't be read.

    Args:
        target: The id of the target.
        location: Beside what it is: `Definition.record`.
    """
    try:
        return read_record(location), []
    except RecordError as error:
        return None, [damaged_record(target, location, error)]
    except Exception as error:  # noqa: BLE001 (every store raises what its client raises)
        if is_remote(location):
            return None, [_unread(target, location, f"{type(error).__name__}: {error}")]
        reason = RecordError(f"can't be read ({describe_error(error)})")
        return None, [damaged_record(target, location, reason)]


def damaged_record(target: str, location: str, error: RecordError) -> Diagnostic:
    """What is said of a record that can't be read."""
    place = below(*record_file(location))
    return Diagnostic(
        "GB404",
        "error",
        without_logins(f"the record of the checkpoint of target `{target}` {error}: {place}"),
        target,
        hint="Restore the file from a copy, or use the gem-bundle that wrote it. Or remove it: then only "
        "what Spark left is known, until the pipeline has run.",
    )


def _unread(target: str, location: str, reason: str) -> Diagnostic:
    message = f"the record of the checkpoint of target `{target}` can't be seen from here: {reason}"
    hint = advice(reason, "Look at it from where Spark runs, as a user who may read it.")
    return Diagnostic("GB406", "warning", without_logins(f"{message}, at {location}"), target, hint=hint)


def _unkept(target: str, location: str, reason: str) -> Diagnostic:
    return Diagnostic(
        "GB405",
        "warning",
        without_logins(
            f"no record is kept of what runs on the checkpoint of target `{target}`: {reason}, at {location}"
        ),
        target,
        hint="Without one a later version of the pipeline can't be compared with this one. " + advice(reason),
    )


def unseen_code(nodes: Iterable[tuple[NodeRecord, NodeRecord]]) -> tuple[str, ...]:
    """What can't be known of the functions whose code wasn't found, then or now, as notes.

    Args:
        nodes: The nodes that both versions have, as they were and as they are.
    """
    return tuple(
        f"whether the code of {_named(new.options.get(option))}, which `{new.id}` calls, has changed "
        f"can't be known: there {'is' if not digest else 'was'} no source of it that can be read"
        for old, new in nodes
        for option, digest in new.functions.items()
        if not (digest and old.functions.get(option, digest))
        and old.options.get(option) == new.options.get(option)
    )


def _named(reference: object) -> str:
    return f"`{reference}`" if isinstance(reference, str) else "the function"  # whose name isn't kept
