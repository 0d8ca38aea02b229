"""The record of a run: a small file beside its checkpoints, which the run renews as long as it lives.

A run has a file of its own in the folder ``.runs`` of the pipeline's checkpoints, so that runs of different
targets don't meet. It holds numbers and names, and no parameter, no option and no secret.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from gem_bundle.files import below
from gem_bundle.runs.process import Process

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gem_bundle.files import Folder
    from gem_bundle.pipeline.model import Definition

FORMAT = 1
"""The number of the format that is written; it grows when older gem-bundles can't read what is written."""

FOLDER = ".runs"
KEPT = 10
"""So many records are kept for a pipeline; those of runs that live are kept anyway."""

State = Literal["starting", "running", "stopping", "finished", "stopped", "failed"]
ENDED = frozenset({"finished", "stopped", "failed"})

_PREFIX = "run-"
_SUFFIX = ".json"


class RunRecordError(ValueError):
    """What is there is no record of a run; the text says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class TargetState:
    """One target of a run.

    Args:
        state: How its query is.
        checkpoint: Its checkpoint's location; empty for a target that keeps none.
        totals: Its numbers since the start of the run, as a report has them, with the last micro-batch.
        recent: Its last micro-batches, the newest last.
        failure: The diagnostic of what it failed with last, as ``--format json`` has diagnostics.
        unwell: The limits of health that it breaks: each ``limit``, ``level``, ``value``, ``bound``,
            ``reason``, ``since``.
    """

    state: State = "starting"
    checkpoint: str = ""
    totals: Mapping[str, Any] = field(default_factory=dict)
    recent: tuple[Mapping[str, Any], ...] = ()
    failure: Mapping[str, Any] | None = None
    unwell: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it is known from outside.

    Args:
        id: Its id; those of later runs come later in the alphabet.
        pipeline: The pipeline's name.
        version: The pipeline's version.
        gem_bundle: The version of gem-bundle that runs it.
        file: The pipeline file as the user wrote it; empty for a pipeline in Python.
        process: The process that runs it.
        state: How it is, or how it ended.
        reason: Why it stops or has stopped, where somebody asked for it.
        started: When the process began with it, ISO 8601 in UTC.
        heartbeat: When this was written, by the clock of its machine.
        ended: When it ended; empty while it runs.
        seconds: How long its queries have run.
        address: The address of its server; empty without one.
        targets: Its targets by id.
        diagnostics: Why it failed, as ``--format json`` has diagnostics.
    """

    id: str
    pipeline: str
    version: str
    gem_bundle: str = ""
    file: str = ""
    process: Process = field(default_factory=Process)
    state: State = "starting"
    reason: str = ""
    started: str = ""
    heartbeat: str = ""
    ended: str = ""
    seconds: float = 0.0
    address: str = ""
    targets: Mapping[str, TargetState] = field(default_factory=dict)
    diagnostics: tuple[Mapping[str, Any], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON takes it."""
        return {"format": FORMAT, **asdict(self)}


def runs_place(definition: Definition) -> str:
    """Where the records of a pipeline's runs lie."""
    return below(definition.checkpoints, definition.name, FOLDER)


def write_run(folder: Folder, record: RunRecord) -> None:
    """Write a record, in the place of the one that is there."""
    content = json.dumps(record.as_dict(), ensure_ascii=False).encode()
    folder.write(f"{_PREFIX}{record.id}{_SUFFIX}", content)


def run_ids(names: Iterable[str]) -> list[str]:
    """The ids of the runs whose records are among some files, the newest first."""
    found = (
        name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
        for name in names
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX)
    )
    return sorted(found, reverse=True)


def read_run(folder: Folder, run: str) -> RunRecord:
    """The record of a run.

    Args:
        folder: The folder with the records.
        run: The id of the run.

    Raises:
        RunRecordError: When it can't be read.
        FileNotFoundError: When there is none, any more.
    """
    try:
        content = json.loads(folder.read(f"{_PREFIX}{run}{_SUFFIX}"))
    except ValueError as error:
        raise RunRecordError(f"is no JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise RunRecordError("is no record of a run")
    if content["format"] > FORMAT:
        raise RunRecordError("was written by a later gem-bundle")
    try:
        made = dict(_known(RunRecord, content))
        made["process"] = Process(**_known(Process, content.get("process", {})))
        targets = content.get("targets", {})
        made["targets"] = {name: TargetState(**_known(TargetState, of)) for name, of in targets.items()}
        record = RunRecord(**made)
    except (AttributeError, TypeError) as error:
        raise RunRecordError(f"is no record of a run: {error}") from error
    states = {record.state, *(target.state for target in record.targets.values())}
    if not states <= set(get_args(State)) or not isinstance(record.heartbeat, str):
        raise RunRecordError("is no record of a run")
    return record


def read_runs(folder: Folder) -> list[RunRecord]:
    """The records in a folder, the newest first; what is damaged, or goes away meanwhile, is left out."""
    found = []
    for run in run_ids(folder.names()):
        with suppress(RunRecordError, FileNotFoundError):
            found.append(read_run(folder, run))
    return found


def remove_run(folder: Folder, run: str) -> None:
    """Remove all that is left of a run: its record, and what it was asked and never did."""
    for name in folder.names():
        if run in name:
            folder.remove(name)


def _known(shape: type, content: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that a shape has; a later gem-bundle of the same format may write more."""
    known = {entry.name for entry in fields(shape)}
    lists = {name: tuple(value) for name, value in content.items() if isinstance(value, list)}
    return {name: value for name, value in {**content, **lists}.items() if name in known}
