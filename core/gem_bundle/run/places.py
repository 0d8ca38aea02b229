"""Places that somebody names on a command line: a path, or ``table:`` and the name of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from gem_bundle.plugins import load_registry
from gem_bundle.types import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.gem import Target

TABLE = "table:"


def absolute_place(place: str) -> str:
    """The place, a path made absolute from the current folder."""
    return place if place.startswith(TABLE) or is_remote(place) else str(Path.cwd() / place)


def targets_at(place: str, first: Iterable[type[Target]]) -> Iterator[Target]:
    """Targets that know how to read and write a place.

    Args:
        place: The place, a path absolute.
        first: The gems to ask before all others that are installed.
    """
    registry = load_registry()
    others = (registry.get("target", name).load() for name in registry.names("target"))
    for candidate in dict.fromkeys([*first, *(cast("type[Target]", other) for other in others)]):
        made = candidate.at(place) if candidate.semantics.replaces_intervals else None
        if made is not None:
            yield made
