"""What a place covers: paths and other URIs of gems (`Source.places`) made comparable.

Nothing is looked up. A relative default file system and an absolute URL of the same file, two names of
one broker, a table with and without its catalog: what can't be known to be the same counts as different.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?")
_BRACES = re.compile(r"\{([^{}]*)\}")
_WILDCARDS = frozenset("*?[{")
_MOST_CHOICES = 64
BELOW = "/**"


@dataclass(frozen=True, slots=True)
class Area:
    """A folder, table or topic in one spelling.

    Args:
        root: The scheme and the authority, in lower case; empty for a path of the default file system.
        parts: The names on the way from there.
        below: The folders below belong to it too.
        wild: Some of the names have wildcards.
    """

    root: str
    parts: tuple[str, ...]
    below: bool = False
    wild: bool = False

    @property
    def table_parts(self) -> tuple[str, ...]:
        """The names without those of partitions (``day=2024-01-31``) at the end."""
        parts = self.parts
        while parts and "=" in parts[-1]:
            parts = parts[:-1]
        return parts

    def holds(self, other: Area) -> bool:
        """Whether the other one is the same folder, or lies anywhere below it."""
        return self.root == other.root and other.parts[: len(self.parts)] == self.parts

    def reads(self, other: Area) -> bool:
        """Whether who reads this one certainly gets what is written to the other one."""
        if self.root != other.root:
            return False
        parts = self.parts if self.wild else self.table_parts
        if len(other.parts) < len(parts) or (len(other.parts) > len(parts) and not self.below):
            return False
        pairs = zip(parts, other.parts, strict=False)
        if self.wild:
            return all(fnmatchcase(name, pattern) for pattern, name in pairs)
        return all(pattern == name for pattern, name in pairs)


def areas_of(place: str, *, wildcards: bool) -> list[Area]:
    """What a place covers, one area for each choice that braces leave.

    Args:
        place: As a gem gives it.
        wildcards: Whether it may have Hadoop's wildcards (`*`, `?`, `[a-c]`, `{x,y}`).
    """
    below = wildcards and place.endswith(BELOW)
    text = place.removesuffix(BELOW) if below else place
    if not (wildcards and _WILDCARDS & set(text)):
        return [_area(text, below=below, wild=False)]
    return [_area(choice.replace("[^", "[!"), below=below, wild=True) for choice in _choices(text)]


def _area(text: str, *, below: bool, wild: bool) -> Area:
    match = _SCHEME.match(text)
    root, path = "", text
    if match is not None:
        scheme, authority = match[1].lower(), (match[2] or "").lower()
        path = text[match.end() :]
        if scheme == "table":
            return Area("table:", tuple(path.replace("`", "").lower().split(".")))
        if scheme != "file":
            root = f"{scheme}://{authority}"
    names = posixpath.normpath(f"/{path}").split("/")
    return Area(root, tuple(name for name in names if name), below, wild)


def _choices(path: str) -> list[str]:
    """The path for each choice that braces leave; empty when there are too many to look at."""
    waiting, found = [path], []
    while waiting:
        text = waiting.pop()
        match = _BRACES.search(text)
        if match is None:
            found.append(text)
        elif len(waiting) + len(found) + match[1].count(",") >= _MOST_CHOICES:
            return []
        else:
            waiting += [text[: match.start()] + c + text[match.end() :] for c in match[1].split(",")]
    return found
