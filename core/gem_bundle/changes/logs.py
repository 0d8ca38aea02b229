"""The logs that Spark keeps of a query: what each micro-batch was to read, and which ones are done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from gem_bundle.changes.reading import NO_FILE, loaded, whole
from gem_bundle.files import below, numbered, open_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gem_bundle.files import Folder

T = TypeVar("T")
_VERSIONS = ("v1", "v2")
# The version, what the micro-batch has of its own, and an offset of each source, of which there is one.
_LEAST_OFFSETS = 3


@dataclass(frozen=True, slots=True)
class Offsets:
    """What a micro-batch was to read.

    Args:
        batch: The number of the micro-batch.
        format: The version of the log, ``v1`` or ``v2``.
        watermark: The watermark it ran with, in milliseconds since 1970; None when there is none.
        planned: When it was planned, in milliseconds since 1970.
        settings: The settings that it froze.
        sources: Up to where it read each source, by the source's name, or in a log of version 1 by its
            position; None for a source that has nothing yet.
    """

    batch: int
    format: str
    watermark: int | None = None
    planned: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)

    @property
    def continuous(self) -> bool:
        """Whether continuous processing wrote it: without settings, and without a time."""
        return self.format == "v1" and self.planned is None and not self.settings


@dataclass(frozen=True, slots=True)
class Commit:
    """A micro-batch that is done.

    Args:
        batch: Its number.
        watermark: The watermark of the next one, in milliseconds since 1970; None when there is none.
    """

    batch: int
    watermark: int | None = None


def batches_of(location: str, log: str) -> list[int]:
    """The micro-batches that a log has, in order.

    Args:
        location: The location of the checkpoint.
        log: The name of the log: ``offsets`` or ``commits``.
    """
    return sorted(numbered(open_folder(below(location, log)).names()))


def query_id(folder: Folder) -> tuple[str, str]:
    """The query's id, and what is wrong with the file that has it.

    Args:
        folder: The folder of the checkpoint.
    """
    try:
        found = loaded(folder.read("metadata"))
    except NO_FILE:
        return "", "`metadata` is no file"
    except ValueError:
        return "", "the file `metadata` isn't JSON"
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        return "", "the file `metadata` has no query id"
    return found["id"], ""


def last_offsets(location: str, batches: list[int]) -> tuple[tuple[Offsets, ...], str]:
    """Some entries of the offset log, and what is wrong with the newest.

    Args:
        location: The location of the checkpoint.
        batches: The micro-batches of these entries, in order.
    """
    return _last(location, "offsets", batches, _offsets, least=_LEAST_OFFSETS)


def last_commits(location: str, batches: list[int]) -> tuple[tuple[Commit, ...], str]:
    """Some entries of the commit log, and what is wrong with the newest.

    Args:
        location: The location of the checkpoint.
        batches: The micro-batches of these entries, in order.
    """
    return _last(location, "commits", batches, _commit)


def _last(
    location: str, log: str, batches: list[int], made: Callable[[int, list[str]], T], least: int = 1
) -> tuple[tuple[T, ...], str]:
    """Some entries of a log, each of at least so many lines, and what is wrong with the newest."""
    folder = open_folder(below(location, log))
    found: list[T] = []
    wrong = ""
    for batch in batches:
        lines, problem = _log(folder, batch)
        if not problem and len(lines) < least:
            problem = "is cut off"
        if not problem:
            found.append(made(batch, lines))
        elif batch == batches[-1]:
            wrong = f"`{log}/{batch}` {problem}"
    return tuple(found), wrong


def _log(folder: Folder, batch: int) -> tuple[list[str], str]:
    """The lines of an entry of a log, and what is wrong with it."""
    try:
        lines = folder.read(str(batch)).decode("utf-8").splitlines()
    except NO_FILE:
        return [], "is no file"
    except UnicodeDecodeError:
        return [], "can't be read"
    if not lines:
        return [], "is empty"
    if lines[0] not in _VERSIONS:
        return [], "does not begin with a version of Spark's log"
    try:
        _object(lines, 1)
    except ValueError:
        return [], "is cut off"
    return lines, ""


def _offsets(batch: int, lines: list[str]) -> Offsets:
    head = _object(lines, 1)
    settings = head.get("conf")
    sources: dict[str, Any] = {}
    for position, line in enumerate(lines[2:]):
        name, value = str(position), line
        if lines[0] == "v2":
            name, _, value = line.partition(":")
        sources[name] = _offset(value)
    return Offsets(
        batch,
        lines[0],
        whole(head.get("batchWatermarkMs")),
        whole(head.get("batchTimestampMs")),
        {str(key): str(value) for key, value in settings.items()} if isinstance(settings, dict) else {},
        sources,
    )


def _commit(batch: int, lines: list[str]) -> Commit:
    return Commit(batch, whole(_object(lines, 1).get("nextBatchWatermarkMs")))


def _offset(text: str) -> Any:
    if text == "-":
        return None
    try:
        return loaded(text)
    except ValueError:
        return text


def _object(lines: list[str], line: int) -> dict[str, Any]:
    # Continuous processing writes an empty line where micro-batches have theirs.
    found = loaded(lines[line]) if len(lines) > line and lines[line] else {}
    return found if isinstance(found, dict) else {}
