"""A look at a checkpoint before a run continues from it: is it whole, and of the right kind?

Only checkpoints on a local disk are looked at; others are left to Spark.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.run.jars import spark_version
from gem_bundle.types import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LOG_VERSIONS = ("v1", "v2")


def has_source_evolution(settings: Mapping[str, str]) -> bool:
    """Whether a run with these Spark settings names its sources: from Spark 4.2 on, unless switched off."""
    key = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
    major, minor = (int(part) for part in spark_version().split(".")[:2])
    return (major, minor) >= (4, 2) and settings.get(key, "true").lower() == "true"


def check_checkpoint(target: str, location: str, *, source_evolution: bool) -> list[Diagnostic]:
    """What keeps a run from continuing here.

    Args:
        target: The id of the target.
        location: Its checkpoint location; it need not exist.
        source_evolution: Whether the run names its sources (offset log version 2), which a checkpoint
            either has from its first run or never.
    """
    if is_remote(location):
        return []
    folder = Path(location.removeprefix("file://").removeprefix("file:"))
    if not folder.is_dir() or not any(folder.iterdir()):
        return []
    return list(_check(target, folder, source_evolution=source_evolution))


def _check(target: str, folder: Path, *, source_evolution: bool) -> Iterator[Diagnostic]:
    hint = (
        "Restore the folder from a copy. Or move it away to start anew: then sources are read from "
        "their beginning and the target gets rows it already has."
    )
    if not (folder / "metadata").is_file():
        if (folder / "offsets").is_dir():
            yield _damaged(target, folder, "the file `metadata` is missing", hint)
        return
    problem = _metadata_problem(folder / "metadata")
    if problem:
        yield _damaged(target, folder, problem, hint)
    for log in ("offsets", "commits"):
        latest = _latest(folder / log)
        if latest is None:
            continue
        problem, version = _log_problem(latest)
        if problem:
            yield _damaged(target, folder, f"`{log}/{latest.name}` {problem}", hint)
        elif log == "offsets" and source_evolution and version == "v1":
            yield Diagnostic(
                "GB403",
                "error",
                f"the checkpoint of target `{target}` was made without named sources, and Spark can't add "
                f"the names later: {folder}",
                target,
                hint="Give the pipeline another `checkpoints` folder, or set "
                "`spark.sql.streaming.queryEvolution.enableSourceEvolution: false` and "
                "`spark.sql.streaming.offsetLog.formatVersion: 1` under `spark`.",
            )


def _metadata_problem(path: Path) -> str:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "the file `metadata` isn't JSON"
    if not isinstance(content, dict) or not isinstance(content.get("id"), str):
        return "the file `metadata` has no query id"
    return ""


def _latest(folder: Path) -> Path | None:
    if not folder.is_dir():
        return None
    batches = [entry for entry in folder.iterdir() if entry.name.isdigit()]
    return max(batches, key=lambda entry: int(entry.name), default=None)


def _log_problem(path: Path) -> tuple[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return "can't be read", ""
    if not lines:
        return "is empty", ""
    if lines[0] not in _LOG_VERSIONS:
        return "does not begin with a version of Spark's log", ""
    try:
        json.loads(lines[1]) if len(lines) > 1 else None
    except ValueError:
        return "is cut off", ""
    return "", lines[0]


def _damaged(target: str, folder: Path, problem: str, hint: str) -> Diagnostic:
    message = f"the checkpoint of target `{target}` is damaged: {problem}, in {folder}"
    return Diagnostic("GB402", "error", message, target, hint=hint)
