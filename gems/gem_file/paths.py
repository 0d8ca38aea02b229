"""What a path with Hadoop's wildcards means (`*`, `?`, `[a-c]`, `{x,y}`), for files on this machine."""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from glob import glob

from gem_bundle.types import local_path

_ROOT = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:(//[^/]*)?")
_BRACES = re.compile(r"\{([^{}]*)\}")


def is_missing(path: str) -> bool:
    """Whether nothing on this machine matches a path; False where only Spark can tell."""
    local = local_path(path)
    # A backslash quotes a wildcard in Hadoop; Python's glob has no such thing.
    if local is None or "\\" in local:
        return False
    return not any(glob(pattern) for pattern in _patterns(local))  # noqa: PTH207 (may be absolute)


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


def _parts(path: str) -> list[str]:
    return [part for part in posixpath.normpath(path).split("/") if part]


def _patterns(path: str) -> list[str]:
    """The path as patterns of Python's `glob`: one for each choice that braces leave."""
    match = _BRACES.search(path)
    if match is None:
        return [path.replace("[^", "[!")]
    choices = (path[: match.start()] + c + path[match.end() :] for c in match.group(1).split(","))
    return [pattern for choice in choices for pattern in _patterns(choice)]
