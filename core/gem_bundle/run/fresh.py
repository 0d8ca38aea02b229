"""`run --fresh`: a new checkpoint that begins where the old one ended, with new state.

The next micro-batch keeps its number, so that a target which knows what it has written by numbers (files,
Delta) neither takes a micro-batch for one that it has, nor the other way round. The query keeps its id. What
is new is the state: Spark makes it, empty, by running the pipeline as it is now over no rows. The offsets,
the watermark and what sources keep for themselves come from the old checkpoint.

All of that is made beside the checkpoint first. Then a file, the journal, says what remains: to rename the
old folder and the new one, and to write the record. A run that finds a journal does the rest of it, so a
kill at any moment leaves the old checkpoint or the new one.
"""

from __future__ import annotations

import json
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gem_bundle.changes.begun import JournalError, begun_anew, damaged_journal, journal_of, staging_of
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import UnseenError, read_checkpoint
from gem_bundle.changes.history import record_of, what_ran
from gem_bundle.changes.record import Accepted, Record, write_record
from gem_bundle.changes.sides import new_side
from gem_bundle.changes.ways import DESCRIBED_ANEW, NEW_CHECKPOINT, against_fresh
from gem_bundle.contexts import StreamReadContext
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.files import open_folder
from gem_bundle.run.failures import build_failure, query_failure
from gem_bundle.run.frames import Built, Frames, NodeFailure, read_source
from gem_bundle.run.setting import setting
from gem_bundle.types import local_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.gem import Source
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def check_fresh(
    plan: Plan, target: str, *, is_run: bool = True, accept: Iterable[tuple[str, str]] = ()
) -> list[Diagnostic]:
    """Why a new checkpoint can't begin where the old one of a target ended.

    Args:
        plan: The pipeline.
        target: The id of the target.
        is_run: Whether it runs, and continues from a checkpoint when it does.
        accept: The changes that are taken on purpose: codes, each with the id of a node or an empty text.
    """
    location = plan.definition.checkpoint(target)
    side = new_side(version_of(plan, target), plan, target)
    if plain := [_refused(target, why.why, why.hint) for why in against_fresh(plan, side, None, None)]:
        return plain
    if not is_run:
        reason = "it isn't run now, or has no checkpoint that it could continue from"
        return [_refused(target, reason, "Name it with `--target` too, or leave out `--fresh`.")]
    try:
        checkpoint = read_checkpoint(location)
    except UnseenError as error:
        return [
            _refused(target, f"its checkpoint can't be seen from here: {error}", "Run it where that lies.")
        ]
    if checkpoint is None or not checkpoint.commits:
        return [_refused(target, "no micro-batch of it is done yet", "Run it without `--fresh`.")]
    if checkpoint.problems:
        return []  # which the run reports by itself
    record, _ = record_of(target, location)
    before = what_ran(record, checkpoint).newest if record is not None else None
    reasons = against_fresh(plan, side, before, checkpoint)
    return [_refused(target, why.why, why.hint) for why in reasons if not why.is_overruled(accept)]


def _refused(target: str, reason: str, hint: str) -> Diagnostic:
    message = f"target `{target}` can't begin with new state where it ended: {reason}"
    return Diagnostic("GB407", "error", message, target, hint=hint)


def begin_fresh(
    plan: Plan,
    target: str,
    spark: SparkSession,
    environment: Mapping[str, str] | None = None,
    accepted: tuple[Accepted, ...] = (),
) -> tuple[str, list[Diagnostic]]:
    """Put a checkpoint with new state in the place of the old one; call it with the checkpoint locked.

    Args:
        plan: The pipeline, which `check_fresh` has nothing against.
        target: The id of the target.
        spark: The session.
        environment: Environment variables, for the project's settings; None is the process's.
        accepted: The changes that were taken on purpose, for the record.

    Returns:
        Where the old checkpoint is kept; and why nothing was done, if something went wrong.
    """
    folder = _folder(plan.definition.checkpoint(target))
    checkpoint = read_checkpoint(str(folder))
    assert checkpoint is not None
    staging, work = staging_of(folder), _work(folder)
    _clean_up(folder)
    try:
        failed = _run_empty(plan, plan.node(target), spark, work)
        if failed is not None:
            return "", [failed]
        problem = _compose(folder, checkpoint, work / "checkpoint", staging)
        if problem:
            return "", [_refused(target, problem, NEW_CHECKPOINT)]
        kept = _free_name(folder, checkpoint.next_batch)
        record, _ = record_of(target, str(folder))
        ran = what_ran(record or Record(target), checkpoint)
        version = version_of(plan, target, environment=environment)
        added = replace(version, first_batch=checkpoint.next_batch, accepted=accepted, continues=str(kept))
        made = replace(ran, versions=(*ran.versions, added), query=checkpoint.query)
        journal = {"format": 1, "kept": kept.name, "record": made.as_json()}
        open_folder(str(folder.parent)).write(journal_of(folder).name, json.dumps(journal).encode())
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return str(kept), finish_fresh(target, str(folder))


def finish_fresh(target: str, location: str) -> list[Diagnostic]:
    """Do what a run that was killed left to do; call it with the checkpoint locked.

    Args:
        target: The id of the target.
        location: Its checkpoint's location.

    Returns:
        Why that can't be done, if it can't.
    """
    if local_path(location) is None:
        return []
    folder = _folder(location)
    try:
        begun = begun_anew(location)
    except JournalError as error:
        return [damaged_journal(target, location, error)]
    if begun is None:
        _clean_up(folder)  # of a run that was killed before there was a journal
        return []
    if begun.location != folder:
        if folder.is_dir() and not begun.kept.exists():
            folder.rename(begun.kept)
        begun.location.rename(folder)
    write_record(str(folder), begun.record)
    shutil.rmtree(_work(folder), ignore_errors=True)
    journal_of(folder).unlink(missing_ok=True)
    return []


def _clean_up(folder: Path) -> None:
    """Remove what was begun beside a checkpoint and isn't whole."""
    for left in (staging_of(folder), _work(folder)):
        shutil.rmtree(left, ignore_errors=True)


def _folder(location: str) -> Path:
    return Path(local_path(location) or location)


def _work(folder: Path) -> Path:
    """Where the new plan runs over no rows."""
    return folder.with_name(f".{folder.name}.empty")


def _free_name(folder: Path, next_batch: int) -> Path:
    """Where the old checkpoint goes: no target can have a dot in its id."""
    found = folder.with_name(f"{folder.name}.until-{next_batch}")
    number = 1
    while found.exists():
        number += 1
        found = folder.with_name(f"{folder.name}.until-{next_batch}.{number}")
    return found


def _run_empty(plan: Plan, node: Node, spark: SparkSession, work: Path) -> Diagnostic | None:
    """Run the query of a target over no rows, and its state is made; returns what went wrong."""

    def read(source: Node, reader: str) -> Built:
        gem = cast("Source", plan.gems[source.id])
        if source.mode != "stream":
            return read_source(gem, source, reader, spark)
        schema = gem.read_stream(StreamReadContext(source.id, spark, reader)).schema
        place = str(work / "rows" / reader)
        # One file without rows, so that there is a micro-batch.
        spark.createDataFrame([], schema).coalesce(1).write.parquet(place)
        found = StreamReadContext(source.id, spark, reader).reader
        return found.schema(schema).format("parquet").load(place)

    edge = node.inputs[0]
    try:
        df = Frames(plan, spark, read).of(edge.node, edge.output)
    except NodeFailure as failed:
        return build_failure(plan, failed.node, failed.error)
    with setting(spark, _CHANGELOG, "false"):  # a whole snapshot instead
        writer = df.writeStream.format("noop").outputMode(node.output_mode).trigger(availableNow=True)
        try:
            query = writer.option("checkpointLocation", str(work / "checkpoint")).start()
        except Exception as error:  # noqa: BLE001 (whatever Spark has against it)
            return build_failure(plan, node.id, error)
        with suppress(Exception):  # it is read from the query right after
            query.awaitTermination()
    failure = query.exception()
    return None if failure is None else query_failure(plan, node.id, failure)


def _compose(old: Path, checkpoint: SparkCheckpoint, empty: Path, new: Path) -> str:
    """Make the new checkpoint out of the old one and the empty one; returns why that can't be."""
    next_batch = checkpoint.next_batch
    # Spark reads the newest one and the one before it.
    batches = range(max(0, next_batch - 2), next_batch)
    settings = json.loads((empty / "offsets" / "0").read_text(encoding="utf-8").splitlines()[1])["conf"]
    for log in ("offsets", "commits"):
        (new / log).mkdir(parents=True)
    for batch in batches:
        source = old / "offsets" / str(batch)
        if not source.is_file():
            return f"its checkpoint has no `offsets/{batch}` any more"
        lines = source.read_text(encoding="utf-8").splitlines()
        lines[1] = json.dumps(json.loads(lines[1]) | {"conf": settings}, separators=(",", ":"))
        (new / "offsets" / str(batch)).write_text("\n".join(lines), encoding="utf-8")
    shutil.copyfile(old / "commits" / str(next_batch - 1), new / "commits" / str(next_batch - 1))
    shutil.copyfile(old / "metadata", new / "metadata")
    if (old / "sources").is_dir():
        shutil.copytree(old / "sources", new / "sources")
    return _copy_state(empty / "state", new / "state", next_batch) if (empty / "state").is_dir() else ""


_FIRST = re.compile(r"1\.(delta|snapshot|zip)")


def _copy_state(empty: Path, new: Path, version: int) -> str:
    """Copy empty state, which is of version 1, as that of another version; returns why that can't be.

    Without rows a file with all changes and one with all of the state are the same.
    """
    if any((operator / "_metadata" / "v2").exists() for operator in empty.iterdir()):
        return DESCRIBED_ANEW
    for file in sorted(empty.rglob("*")):
        if not file.is_file() or file.name.endswith(".crc"):
            continue
        to = new / file.relative_to(empty)
        found = _FIRST.fullmatch(file.name)
        if found is not None:
            kind = "snapshot" if found[1] == "delta" else found[1]
            to = to.with_name(f"{version}.{kind}")
        elif "_metadata" not in file.relative_to(empty).parts:
            return f"its state has a file `{file.name}`, which isn't known"
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, to)
    return ""
