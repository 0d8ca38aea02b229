"""Which files below a path are data for Spark, and which names of folders are columns.

Guide: *Input sources*; SQL guide: *Partition discovery*. Where Spark would have to choose, nothing is said.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.types import local_path
from gem_file.paths import has_wildcards, matches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_FILES = 1_000
"""Of folders with more files nothing is said: which of them Spark looks into is up to its settings."""

_MAX_ENTRIES = 10_000


@dataclass(frozen=True, slots=True)
class Layout:
    """What lies below a path.

    Args:
        files: The data files.
        keys: The columns that stand in the names of folders, outer ones first.
    """

    files: tuple[Path, ...]
    keys: tuple[str, ...]


class _Unclear(Exception):  # noqa: N818 (it never leaves this module)
    """What Spark makes of these files isn't certain."""


def read_layout(
    path: str, *, recursive: bool, name_filter: str | None, give_up: Callable[[], bool]
) -> Layout | None:
    """The data files at a path on this machine, as Spark finds them.

    Args:
        path: A folder, a file, or a path with Hadoop's wildcards.
        recursive: All files below are read, and names of folders are no columns.
        name_filter: Only files whose name matches are read.
        give_up: Says when it has taken too long.

    Returns:
        None when there are none, or when it isn't certain which they are.
    """
    roots = [Path(root) for root in matches(path)]
    hidden = any(root.name.startswith(("_", ".")) for root in roots)
    if hidden or (name_filter is not None and set("[]{}\\^") & set(name_filter)):
        return None
    try:
        found = [entry for root in roots for entry in _below(root, give_up)]
        keys = () if recursive else _keys([folders for _, folders in found])
        if keys and has_wildcards(path):
            return None  # what a wildcard matches can be a folder that is a column elsewhere
    except (OSError, _Unclear):
        return None
    files = [file for file, folders in found if recursive or keys or not folders]
    if name_filter is not None:
        files = [file for file in files if fnmatchcase(file.name, name_filter)]
    return Layout(tuple(files), keys) if 0 < len(files) <= MAX_FILES else None


def files_below(
    path: str, *, recursive: bool, name_filter: str | None, give_up: Callable[[], bool]
) -> list[Path] | None:
    """The data files at a path on this machine, however many there are.

    Args:
        path: A folder, a file, or a path with Hadoop's wildcards.
        recursive: All files below are read, not only those in folders that are columns.
        name_filter: Only files whose name matches are read.
        give_up: Says when it has taken too long.

    Returns:
        None when it isn't certain which they are: where the path isn't on this machine, for one.
    """
    if local_path(path) is None or (name_filter is not None and set("[]{}\\^") & set(name_filter)):
        return None
    try:
        roots = [Path(root) for root in matches(path)]
        found = [entry for root in roots for entry in _below(root, give_up, most=None)]
    except (OSError, _Unclear):
        return None
    return [
        file
        for file, folders in found
        if (recursive or all("=" in name for name in folders))
        and (name_filter is None or fnmatchcase(file.name, name_filter))
    ]


def _below(
    root: Path, give_up: Callable[[], bool], *, most: int | None = _MAX_ENTRIES
) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The files below a path that Spark takes for data, each with the names of the folders between."""
    if root.is_file():
        yield root, ()
        return
    waiting: deque[tuple[Path, tuple[str, ...]]] = deque([(root, ())])
    seen = 0
    while waiting:
        folder, names = waiting.popleft()
        with os.scandir(folder) as entries:
            for entry in entries:
                seen += 1
                if (most is not None and seen > most) or give_up() or _is_unclear(entry.name):
                    raise _Unclear
                if entry.name.startswith(("_", ".")) or entry.name.endswith("._COPYING_"):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((Path(entry.path), (*names, entry.name)))
                elif entry.is_file(follow_symlinks=False):
                    yield Path(entry.path), names
                else:
                    raise _Unclear  # a link, or a pipe, which would be waited for


def _is_unclear(name: str) -> bool:
    """Whether a name has a meaning of its own: a summary, the log of a sink, a column `_a`."""
    special = ("_metadata", "_common_metadata", "_spark_metadata", "_delta_log")
    return name.startswith(special) or (name.startswith("_") and "=" in name)


def _keys(paths: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The columns in names of folders: all files must lie in folders of the same ones."""
    if not any("=" in name for folders in paths for name in folders):
        return ()
    found = {tuple(map(_key, folders)) for folders in paths}
    if len(found) != 1:
        raise _Unclear
    return found.pop()


def _key(folder: str) -> str:
    key, equals, value = folder.partition("=")
    # Spark writes other characters than plain ones as %xx.
    if not (key and equals and value) or "%" in key:
        raise _Unclear
    return key
