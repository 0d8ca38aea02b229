"""`gem-bundle check --watch`: which files a verdict depends on, and when they have changed.

The files are looked at a few times a second instead of asking the operating system to tell. They are a
handful, so that this costs nothing; it works on network drives and in containers, where such messages
don't arrive; and a file that is replaced, that vanishes or that comes back is nothing special.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from gem_bundle.cli.output import counted, print_note
from gem_bundle.settings import FILE, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

INTERVAL = 0.2


class Stamp(NamedTuple):
    """What differs when a file was saved, also by writing another one and renaming it."""

    modified: int
    changed: int
    size: int
    inode: int


def watch_files(
    files: Sequence[str], check: Callable[[Sequence[str]], object], *, quiet: bool = False
) -> None:
    """Check files, and those again that something they depend on has changed for, until Ctrl-C.

    Args:
        files: The pipeline files.
        check: Checks some of them and prints the verdicts.
        quiet: Don't say what is watched and what has changed.
    """
    needs = {file: _needed(file) for file in files}
    watched = list(dict.fromkeys(path for paths in needs.values() for path in paths))
    tell = _nothing if quiet else print_note
    try:
        seen = _stamps(watched)
        check(files)
        tell(f"Watching {counted(len(needs), 'file')} and the settings; Ctrl-C ends it.")
        while True:
            now = _settled(watched, seen)
            changed = [path for path in watched if now[path] != seen[path]]
            for path in changed:
                tell(f"{_shown(path)} {_what_happened(seen[path], now[path])}")
            seen = now
            again = [file for file, paths in needs.items() if not paths.isdisjoint(changed)]
            if again:
                check(again)
    except KeyboardInterrupt:
        click.echo(err=True)


def _nothing(text: str) -> None:
    """What is said when nothing is to be said."""


def _needed(file: str) -> AbstractSet[Path]:
    """The pipeline file, and every place where settings for it are or may yet be written."""
    path = Path(file).absolute()
    places = [path, *(folder / name for folder in path.parents for name in (FILE, "pyproject.toml"))]
    chosen = os.environ.get(SETTINGS)
    if chosen:
        places.append(Path(chosen).expanduser().absolute())
    return dict.fromkeys(places).keys()


def _settled(paths: Sequence[Path], seen: dict[Path, Stamp | None]) -> dict[Path, Stamp | None]:
    """Wait for a change, then until nothing changes any more: a save may have several steps."""
    while (now := _stamps(paths)) == seen:
        time.sleep(INTERVAL)
    while True:
        time.sleep(INTERVAL / 2)
        before, now = now, _stamps(paths)
        if now == before:
            return now


def _stamps(paths: Iterable[Path]) -> dict[Path, Stamp | None]:
    return {path: _stamp(path) for path in paths}


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None
    return Stamp(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _what_happened(before: Stamp | None, now: Stamp | None) -> str:
    if now is None:
        return "is gone"
    return "is there" if before is None else "has changed"


def _shown(path: Path) -> str:
    """The path from the current folder, where it lies below it."""
    here = os.getcwd()  # noqa: PTH109 (Path.cwd() is the same, an import later)
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
