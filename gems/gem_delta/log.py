"""What a Delta table's log says of its columns (Delta's *Transaction Log Protocol*), without Spark.

The log is a folder of commits, ``00000000000000000007.json``, one action a line. Beside some of them lies
the state of the table at that version: a checkpoint, and a checksum, ``….crc``, which holds the table's
metadata too. What can't be read for certain is unknown.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from gem_bundle import Column
from gem_bundle.schema import columns_of_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKSUM = re.compile(r"(\d{20})\.crc")
# Whole; one of several parts; of the second version, whose file names the table's metadata itself.
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)")
# Commits that a catalog has taken and the log doesn't list yet.
_STAGED = frozenset({"_commits", "_staged_commits"})
_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """The metadata of one version of a table.

    Args:
        columns: Its columns; a type that isn't certain is unknown.
        column_mapping: Whether columns were or can be renamed and dropped without rewriting files.
        partitions: The columns that it is partitioned by.
    """

    columns: tuple[Column, ...]
    column_mapping: bool
    partitions: tuple[str, ...] = ()


def read_metadata(log: Path, version: int | None = None) -> TableMetadata | None:
    """The metadata of a version of a table.

    Args:
        log: The table's folder ``_delta_log``, on this machine.
        version: Which version; None for the newest.

    Returns:
        None when there is no such version, or when its metadata can't be told.
    """
    try:
        action = _newest_action(_list(log), version)
        return None if action is None else _parsed(action)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # a log that only Delta can make sense of, if anything can


def has_files(log: Path) -> bool | None:
    """Whether the newest version of a table has files with rows.

    Args:
        log: The table's folder ``_delta_log``, on this machine.

    Returns:
        None when that can't be told.
    """
    try:
        files = _list(log)
        if files is None or not files.commits:
            return None
        newest = max(files.commits)
        checksum = files.checksums.get(newest)
        if checksum is not None:
            return int(json.loads(checksum.read_text(encoding="utf-8"))["numFiles"]) > 0
        if 0 not in files.commits:
            return None
        present: set[str] = set()
        for number in sorted(files.commits):
            for line in files.commits[number].read_text(encoding="utf-8").splitlines():
                action = json.loads(line)
                if "add" in action:
                    present.add(action["add"]["path"])
                elif "remove" in action:
                    present.discard(action["remove"]["path"])
        return bool(present)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # a log that only Delta can make sense of, if anything can


@dataclass(slots=True)
class _Files:
    """The files of a log by version; the parts of a checkpoint by the number of parts it says it has."""

    commits: dict[int, Path] = field(default_factory=dict)
    checksums: dict[int, Path] = field(default_factory=dict)
    checkpoints: dict[int, dict[int, list[Path]]] = field(default_factory=dict)

    def complete_checkpoints(self, version: int) -> Iterator[Path]:
        """The files of all checkpoints of a version that have all of their parts."""
        for parts, files in self.checkpoints.get(version, {}).items():
            if parts == 0 or len(files) == parts:
                yield from files


def _list(log: Path) -> _Files | None:
    found = _Files()
    for file in log.iterdir():
        if match := _COMMIT.fullmatch(file.name):
            found.commits[int(match[1])] = file
        elif match := _CHECKSUM.fullmatch(file.name):
            found.checksums[int(match[1])] = file
        elif match := _CHECKPOINT.fullmatch(file.name):
            parts = found.checkpoints.setdefault(int(match[1]), {})
            parts.setdefault(int(match[2] or 0), []).append(file)
        elif file.name in _STAGED and any(file.iterdir()):
            return None
    return found


def _newest_action(files: _Files | None, version: int | None) -> dict[str, Any] | None:
    """The action `metaData` that counts for a version: the last one up to it."""
    if files is None or not (files.commits or files.checkpoints):
        return None
    newest = max([*files.commits, *files.checkpoints])
    start = newest if version is None else version
    if start > newest:
        return None
    until = monotonic() + _SECONDS
    for number in range(start, -1, -1):
        commit = files.commits.get(number)
        action = None if commit is None else _in_actions(commit)
        action = action or _in_state(files, number)
        if action is not None:
            return action
        if commit is None or monotonic() > until:
            return None
    return None


def _in_state(files: _Files, version: int) -> dict[str, Any] | None:
    """The metadata in what is written down of the table's state at a version."""
    checksum = files.checksums.get(version)
    if checksum is not None and version in files.commits:
        metadata = json.loads(checksum.read_text(encoding="utf-8")).get("metadata")
        if isinstance(metadata, dict):
            return metadata
    for file in files.complete_checkpoints(version):
        action = _in_actions(file) if file.suffix == ".json" else _in_parquet(file)
        if action is not None:
            return action
    return None


def _in_actions(file: Path) -> dict[str, Any] | None:
    found = None
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if '"metaData"' in line:
                found = json.loads(line).get("metaData") or found
    return found


def _in_parquet(file: Path) -> dict[str, Any] | None:
    """The metadata in a checkpoint; nothing without pyarrow, which gem-bundle doesn't ask for."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        return None
    try:
        with ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(columns=["metaData"]):
                for action in batch.column(0).drop_null().to_pylist():
                    if action.get("schemaString"):
                        return {**action, "configuration": dict(action.get("configuration") or ())}
    except ArrowException:
        pass  # not a checkpoint
    return None


def _parsed(action: dict[str, Any]) -> TableMetadata | None:
    fields = json.loads(action["schemaString"])["fields"]
    names = [str(entry["name"]) for entry in fields]
    # Delta hides columns of the type void, in a struct too.
    if not names or '"void"' in action["schemaString"] or len({n.lower() for n in names}) < len(names):
        return None
    columns = columns_of_json({"fields": fields})
    mode = action.get("configuration", {}).get("delta.columnMapping.mode", "none")
    partitions = tuple(map(str, action.get("partitionColumns") or ()))
    return TableMetadata(columns, column_mapping=mode != "none", partitions=partitions)
