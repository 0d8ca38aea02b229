"""What a path with Hadoop's wildcards means (`*`, `?`, `[a-c]`, `{x,y}`), for files on this machine."""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from glob import glob

from gem_bundle.types import local_path

_ROOT = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:(//[^/]*)?")
_BRACES = re.compile(r"\{([^{}]*)\}")
_MOST_CHOICES = 1000


def is_missing(path: str) -> bool:
    """Whether nothing on this machine matches a path; False where that can't be told."""
    patterns = _local_patterns(path)
    return bool(patterns) and not any(glob(p) for p in patterns)  # noqa: PTH207 (may be absolute)


def matches(path: str) -> list[str]:
    """What a path matches on this machine; nothing where that can't be told."""
    return sorted({found for p in _local_patterns(path) for found in glob(p)})  # noqa: PTH207 (may be absolute)


def has_wildcards(path: str) -> bool:
    """Whether a path may stand for others."""
    return any(character in path for character in "*?[{\\")


def archive_is_read_again(path: str, archive: str) -> bool:
    """Whether files that are moved into a folder could match the path they were read from.

    Spark compares the two down to the depth of the shorter one, so a folder above the path is
    refused too (guide: *Input sources*, ``cleanSource``).
    """
    root, archive_root = (_ROOT.match(p) for p in (path, archive))
    if (root and root.group()) != (archive_root and archive_root.group()):
        return False
    folders = _parts(_ROOT.sub("", archive))
    return any(
        all(fnmatchcase(name, pattern) for pattern, name in zip(_parts(source), folders, strict=False))
        for source in _patterns(_ROOT.sub("", path))
    )


def _local_patterns(path: str) -> list[str]:
    local = local_path(path)
    # A backslash quotes a wildcard in Hadoop; Python's glob has no such thing.
    return [] if local is None or "\\" in local else _patterns(local)


def _parts(path: str) -> list[str]:
    return [part for part in posixpath.normpath(path).split("/") if part]


def _patterns(path: str) -> list[str]:
    """The path as patterns of Python's `glob`: one for each choice that braces leave.

    A path that leaves more of them than anybody would write has none: it can't be told what it means.
    """
    waiting, found = [path], []
    while waiting:
        text = waiting.pop()
        match = _BRACES.search(text)
        if match is None:
            found.append(text.replace("[^", "[!"))
        elif len(waiting) + len(found) + match[1].count(",") >= _MOST_CHOICES:
            return []
        else:
            waiting += [text[: match.start()] + c + text[match.end() :] for c in match[1].split(",")]
    return found
