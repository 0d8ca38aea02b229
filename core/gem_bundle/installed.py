"""Which plugins are installed: the entry points of a group, found without parsing everybody's."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import Distribution, EntryPoint


def state() -> tuple[object, ...]:
    """What changes when something is installed or removed: Python's path, and when its folders changed.

    An installer makes the folder with a distribution's metadata anew, even where the code lies elsewhere.
    """
    return tuple((folder, _changed(folder)) for folder in sys.path)


def _changed(folder: str) -> int | None:
    with suppress(OSError, ValueError):  # some paths aren't files, and some have characters that no file has
        return Path(folder).stat().st_mtime_ns
    return None


def entry_points(group: str) -> Iterator[EntryPoint]:
    """The entry points of a group, each with its distribution.

    `importlib.metadata.entry_points` parses those of all distributions to find them, which took a tenth of
    the help where 200 plugins were installed. Here only those are parsed that name the group.

    Args:
        group: The name of the group.
    """
    from importlib.metadata import distributions

    seen: set[tuple[str, str]] = set()
    for found in distributions():
        text = found.read_text("entry_points.txt") or ""
        if group not in text:
            continue
        # On a path that has a folder twice, a distribution comes twice.
        name = _name(found)
        if (name, text) not in seen and not _is_hidden(name, text):
            seen.add((name, text))
            yield from found.entry_points.select(group=group)


def _name(found: Distribution) -> str:
    """Its name, without parsing all of its metadata, which has the text of its README."""
    text = found.read_text("METADATA") or found.read_text("PKG-INFO") or ""
    named = re.search(r"^Name:[ \t]*(\S+)", text.partition("\n\n")[0], re.MULTILINE)
    return named[1] if named else ""


def _is_hidden(name: str, text: str) -> bool:
    """Whether another distribution of that name comes first on the path: that is the one that counts."""
    from importlib.metadata import PackageNotFoundError, distribution

    if not name:
        return False
    try:
        return distribution(name).read_text("entry_points.txt") != text
    except PackageNotFoundError:
        return True
