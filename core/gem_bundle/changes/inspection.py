"""A checkpoint and its record in words and as JSON: what `gem-bundle checkpoint show` prints."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle.changes.begun import GoesOn, JournalError, damaged_journal, goes_on
from gem_bundle.changes.checkpoint import UnseenError, read_checkpoint
from gem_bundle.changes.damage import check_checkpoint, unseen
from gem_bundle.changes.gone import names_of_records, place_beside
from gem_bundle.changes.history import what_ran
from gem_bundle.changes.withheld import without_logins
from gem_bundle.files import numbered, split
from gem_bundle.pipeline.model import IN_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.record import Record, VersionRecord
    from gem_bundle.changes.state_files import StateOperator
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.model import Definition


LAST = 5
"""So many of the last micro-batches are shown."""


@dataclass(frozen=True)
class Inspection:
    """What there is to tell of the checkpoint of one target.

    Args:
        target: The id of the target.
        location: Its checkpoint's location.
        checkpoint: What Spark left; None when there is none, or it can't be seen.
        record: What ran on it.
        diagnostics: What is wrong with either.
        kept: Where the old checkpoint is kept or will be, while a `run --fresh` that was killed waits for the
            next run to end it: checkpoint and record are the new ones then. Empty where none does.
        state: Whether the target is of a stream, of a batch, which keeps no checkpoint, or is no more.
    """

    target: str
    location: str
    checkpoint: SparkCheckpoint | None
    record: Record | None
    diagnostics: tuple[Diagnostic, ...] = ()
    kept: str = ""
    state: Literal["stream", "batch", "gone"] = "stream"

    def as_dict(self) -> dict[str, Any]:
        """The whole as JSON takes it."""
        found = self.checkpoint
        return {
            "location": without_logins(self.location),
            "exists": found is not None,
            "fresh": {"kept": self.kept} if self.kept else None,
            "query": found.query if found else "",
            "next_batch": found.next_batch if found else 0,
            "unfinished_batch": found.unfinished if found else None,
            "watermark": _time(found.watermark) if found else None,
            "offsets": dict(found.newest.sources) if found and found.newest else {},
            "micro_batches": list(_micro_batches(found)) if found else [],
            "operators": [asdict(operator) for operator in found.operators] if found else [],
            "settings": dict(found.frozen) if found else {},
            "versions": [asdict(version) for version in self.record.versions] if self.record else [],
            "diagnostics": [diagnostic.as_dict() for diagnostic in self.diagnostics],
        }


def inspect(definition: Definition, targets: Iterable[str]) -> list[Inspection]:
    """What there is to tell of the checkpoints of some targets.

    Args:
        definition: The pipeline.
        targets: The ids of the targets, also of those that `left_behind` tells.
    """
    return [_inspect(definition, target) for target in targets]


def _inspect(definition: Definition, target: str) -> Inspection:
    node = definition.nodes.get(target)
    if node is not None and node.kind == "target":
        location, beside = definition.checkpoint(target), definition.record(target)
        place = definition.locator.place(node.path, key=True)
        state: Literal["stream", "batch", "gone"] = definition.mode
    else:
        name = names_of_records(definition).get(target, target)
        group, _, _ = name.rpartition(IN_GROUP)
        location, beside = place_beside(definition, group or name), place_beside(definition, name)
        place = definition.locator.place(())
        state = "gone"
    next_run = GoesOn(location)
    checkpoint = None
    found: list[Diagnostic] = []
    try:
        next_run = goes_on(location)
    except JournalError as error:
        found.append(damaged_journal(target, location, error))
    record, wrong = next_run.record(target, beside)
    try:
        checkpoint = read_checkpoint(next_run.location, LAST)
        found += check_checkpoint(target, checkpoint, source_evolution=False, record=record)
        if checkpoint is not None:
            _ = checkpoint.operators, checkpoint.frozen
    except UnseenError as error:
        checkpoint = None
        # A batch keeps none, so that nobody misses what can't be seen.
        found += [] if state == "batch" else [unseen(target, location, error)]
    found += [diagnostic for diagnostic in wrong if diagnostic.is_error]
    if record is not None and (checkpoint is not None or state != "gone"):
        record = what_ran(record, checkpoint)
    kept = str(next_run.begun.kept) if next_run.begun else ""
    return Inspection(target, location, checkpoint, record, tuple(d.moved(place) for d in found), kept, state)


def _micro_batches(checkpoint: SparkCheckpoint) -> Iterator[dict[str, Any]]:
    done = {commit.batch for commit in checkpoint.commits}
    for offsets in checkpoint.offsets:
        yield {
            "batch": offsets.batch,
            "planned": _time(offsets.planned),
            "watermark": _time(offsets.watermark),
            # Of older ones than the log of commits has been read, that a later one is done says it.
            "done": offsets.batch in done or offsets.batch < checkpoint.next_batch,
            "offsets": dict(offsets.sources),
        }


def _time(milliseconds: int | None) -> str | None:
    if not milliseconds:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return None


Line = tuple[str, str]
"""What a line is about, and what it says."""

_NO_CHECKPOINT = {
    "stream": "There is no checkpoint yet: nothing has run.",
    "batch": "A batch target keeps no checkpoint: each run reads all that there is.",
}


def lines_of(inspection: Inspection) -> Iterator[Line]:
    """What there is to tell in words, line by line; where the first half is empty, the line goes on."""
    found = inspection.checkpoint
    if found is None and inspection.state != "gone":
        if not inspection.diagnostics:
            yield "", _NO_CHECKPOINT[inspection.state]
        return
    if found is None and inspection.diagnostics and inspection.record is None:
        return
    yield "place", without_logins(inspection.location)
    if inspection.state == "gone":
        is_own = split(inspection.location)[1] == inspection.target
        what = "its checkpoint" if is_own else "the checkpoint of its group"
        stays = "stays" if found is not None else "isn't there to be seen, and its record stays"
        yield "target", f"no more in the pipeline; {what} {stays}"
    if found is not None:
        yield from _checkpoint_lines(inspection, found)
    yield from _history(inspection)


def _checkpoint_lines(inspection: Inspection, found: SparkCheckpoint) -> Iterator[Line]:
    if inspection.kept:
        yield (
            "fresh",
            f"killed before it was done: the next run ends it, and keeps the old one as {inspection.kept}",
        )
    yield "query", found.query or "unknown"
    yield "next", _next(found)
    if found.watermark:
        yield "watermark", f"{_time(found.watermark)}: older rows are late"
    if found.newest is not None:
        for number, (source, offset) in enumerate(found.newest.sources.items()):
            name = f"`{source}`" if found.named else f"source {source}"
            yield "" if number else "offsets", f"{name}: {_offset(offset)}"
    for number, batch in enumerate(_micro_batches(found)):
        planned = f" planned {batch['planned']}" if batch["planned"] else ""
        done = "done" if batch["done"] else "begun, and not done"
        yield "" if number else "micro-batches", f"{batch['batch']}: {done},{planned}".rstrip(",")
    for number, operator in enumerate(found.operators):
        yield "" if number else "state", _operator(operator)
    for number, (key, value) in enumerate(sorted(found.frozen.items())):
        yield "" if number else "frozen", f"{key} = {value}"


def _history(inspection: Inspection) -> Iterator[Line]:
    versions = inspection.record.versions if inspection.record is not None else ()
    if not versions:
        yield "history", "no record: what ran before records were kept isn't known"
    elif versions[0].first_batch:
        yield "history", f"up to micro-batch {versions[0].first_batch - 1}: not known"
    for number, version in enumerate(versions):
        first = not number and not versions[0].first_batch
        yield "history" if first else "", _version(version)


def _next(checkpoint: SparkCheckpoint) -> str:
    if checkpoint.problems and checkpoint.newest is None:
        return "not known: the checkpoint is damaged"
    if checkpoint.unfinished is not None:
        return f"micro-batch {checkpoint.unfinished}, which was begun and isn't done, again"
    if not checkpoint.commits:
        return "micro-batch 0: none is done yet"
    return f"micro-batch {checkpoint.next_batch}: all that were begun are done"


def _offset(offset: Any) -> str:
    """An offset in few words: what a log has reached, partitions by topic, or what Spark has written."""
    if offset is None:
        return "nothing yet"
    if isinstance(offset, dict):
        if set(offset) == {"logOffset"}:
            return f"entry {offset['logOffset']} of its log of files"
        if offset and all(isinstance(item, dict) for item in offset.values()):
            topics = (f"{topic}: {_partitions(parts)}" for topic, parts in offset.items())
            return "; ".join(topics)
        kept = {key: value for key, value in offset.items() if not isinstance(value, dict | list)}
        return ", ".join(f"{key} {value}" for key, value in kept.items()) or json.dumps(offset)
    return json.dumps(offset) if not isinstance(offset, str) else offset


def _partitions(parts: dict[str, Any]) -> str:
    return ", ".join(f"{partition} at {at}" for partition, at in sorted(parts.items(), key=_order))


def _order(item: tuple[str, Any]) -> tuple[int, str]:
    return (next(numbered([item[0]]), -1), item[0])


def _operator(operator: StateOperator) -> str:
    parts = [f"operator {operator.id} ({operator.name or 'unknown'})"]
    if operator.rows is None:
        parts.append("rows not known (only RocksDB's snapshots tell)")
    else:
        parts.append(f"{operator.rows:,} rows behind micro-batch {operator.rows_batch}")
    parts.append(f"{_size(operator.bytes)} in files")
    partitions = {store.partitions for store in operator.stores if store.partitions is not None}
    parts += [f"{count} partitions" for count in partitions]
    store = next((store for store in operator.stores if store.keys), None)
    if store is not None and store.keys and len(operator.stores) == 1:
        parts.append("keys " + ", ".join(f"{name} {kind}" for name, kind in store.keys))
        if store.values:
            parts.append("values " + ", ".join(f"{name} {kind}" for name, kind in store.values))
    return ", ".join(parts)


def _size(number: int) -> str:
    size = float(number)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _version(version: VersionRecord) -> str:
    text = (
        f"from micro-batch {version.first_batch}: version {version.pipeline_version}, "
        f"since {version.started}, gem-bundle {version.gem_bundle}, Spark {version.spark}"
    )
    if version.accepted:
        codes = ", ".join(f"{one.code}:{one.node}" if one.node else one.code for one in version.accepted)
        text += f", accepted {codes}"
    return text + (f", begun where {version.continues} ended" if version.continues else "")
