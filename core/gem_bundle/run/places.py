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


def targets_at(place: str, first: Iterable[type[Target]], *, rejected: bool = False) -> Iterator[Target]:
    """Targets that know how to read and write a place.

    Args:
        place: The place, a path absolute.
        first: The gems to ask before all others that are installed.
        rejected: They need only know how to read rejected rows there.
    """
    registry = load_registry()
    others = (registry.get("target", name).load() for name in registry.names("target"))
    candidates = list(dict.fromkeys([*first, *(cast("type[Target]", other) for other in others)]))
    if rejected:  # one that can write tables takes any path for a table's, others know their places
        candidates.sort(key=lambda candidate: candidate.semantics.replaces_intervals)
    for candidate in candidates:
        asked = candidate.holds_rejected() if rejected else candidate.semantics.replaces_intervals
        made = candidate.at(place) if asked else None
        if made is not None:
            yield made
