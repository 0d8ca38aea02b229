"""What a path with Hadoop's wildcards means (`*`, `?`, `[a-c]`, `{x,y}`), for files on this machine."""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from glob import glob

from gem_bundle.types import local_path

_ROOT = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:(//[^/]*)?")
_WILDCARD = re.compile(r"[*?\[{\\]")
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


def is_same_place(path: str, other: str) -> bool:
    """Whether two paths are one, written in two ways: as a URL, or by way of a folder above."""
    return _place(path) == _place(other)


def is_below(path: str, folder: str) -> bool:
    """Whether Spark takes whatever is at a path for files below a folder: by their texts, as it does.

    Args:
        path: A path, which may have wildcards.
        folder: A path without them.
    """
    (root, parts), (own_root, own_parts) = _place(path), _place(folder)
    known = _WILDCARD.split("/".join(parts))[0]  # what all that it matches begins with
    return root == own_root and known.startswith("/".join(own_parts))


def takes_all_of(path: str, before: str, *, recursive: bool) -> bool:
    """Whether Spark lists each file at one path for the other too.

    Args:
        path: The one that may list all.
        before: The other one.
        recursive: With all folders below. Without, only those that are columns (`day=2024-01-31`) are.

    Returns:
        False where that can't be told.
    """
    (root, parts), (old_root, old_parts) = _place(path), _place(before)
    texts = "/".join(parts), "/".join(old_parts)
    if root != old_root or any("\\" in text for text in texts):
        return False
    new, old = ([_parts(pattern) for pattern in _patterns(text)] for text in texts)
    return bool(old) and all(any(_lists(one, other, recursive=recursive) for one in new) for other in old)


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


def _lists(new: list[str], old: list[str], *, recursive: bool) -> bool:
    """Whether all files of a pattern are those of another one too, as far as it is certain."""
    if not all(_matches(name, pattern) for name, pattern in zip(old, new, strict=False)):
        return False
    between = old[len(new) :]
    columns = all("=" in name and not has_wildcards(name) for name in between)
    return recursive or columns if between else new[len(old) :] in ([], ["*"])


def _matches(name: str, pattern: str) -> bool:
    """Whether a pattern has all that a name, or another pattern, stands for."""
    return pattern in {name, "*"} or (not has_wildcards(name) and fnmatchcase(name, pattern))


def _place(path: str) -> tuple[str, tuple[str, ...]]:
    """A path as Hadoop's are: the file system and the names, without those that lead back."""
    local = local_path(path)
    if local is not None:
        return "file:" if local.startswith("/") else "", tuple(_parts(local))
    root = _ROOT.match(path)
    return root.group() if root else "", tuple(_parts(_ROOT.sub("", path)))


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
