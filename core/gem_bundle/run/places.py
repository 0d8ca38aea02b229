"""Places that somebody names on a command line: a path, or ``table:`` and the name of a table."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from pydantic import ValidationError

from gem_bundle.changes.withheld import without_logins
from gem_bundle.check.stages.areas import BELOW, Area, areas_of
from gem_bundle.errors import GemError
from gem_bundle.plugins import load_registry
from gem_bundle.types import is_remote, local_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.gem import Source, Target
    from gem_bundle.pipeline.plan import Plan

TABLE = "table:"
_FILE = re.compile(r"^file:(?://(?=/|$))?")
# A table of a catalog that has no name there but its path: table:delta.`/data/clicks`.
_TABLE_AT = re.compile(r"table:\w+\.`([^`]*/[^`]*)`")
_WILDCARDS = frozenset("*?[{")


class Owner(NamedTuple):
    """What of a pipeline has a place.

    Args:
        node: The id of the node; None for the pipeline itself.
        kind: ``target`` for where one writes, ``source`` for what one reads, ``checkpoint`` or ``file``.
        how: How the place that was named lies to that: it ``is`` it, ``lies in`` it or ``holds`` it.
    """

    node: str | None
    kind: str
    how: str


def absolute_place(place: str) -> str:
    """The place, a path made absolute from the current folder.

    Args:
        place: A path, which may have ``file:`` in front, a URL, or ``table:`` and the name of a table.
    """
    if place.startswith(TABLE) or is_remote(place):
        return place
    path = str(Path.cwd() / _FILE.sub("", place))
    # Where paths without a scheme lie elsewhere, `file:` still means this machine.
    return f"file:{path}" if place.startswith("file:") and local_path(path) is None else path


def targets_at(place: str, first: Iterable[type[Target]], *, rejected: bool = False) -> Iterator[Target]:
    """Targets that know how to read and write a place.

    Args:
        place: The place, a path absolute.
        first: The gems to ask before all others that are installed.
        rejected: They need only know how to read rejected rows there.

    Raises:
        GemError: GB450, and GB461 for rejected rows, when a gem would take it if it were written rightly.
    """
    registry = load_registry()
    others = (registry.get("target", name).load() for name in registry.names("target"))
    candidates = list(dict.fromkeys([*first, *(cast("type[Target]", other) for other in others)]))
    if rejected:  # one that can write tables takes any path for a table's, others know their places
        candidates.sort(key=lambda candidate: candidate.semantics.replaces_intervals)
    wrong, found = "", False
    for candidate in candidates:
        asked = candidate.holds_rejected() if rejected else candidate.semantics.replaces_intervals
        try:
            made = candidate.at(place) if asked else None
        except ValidationError as error:
            wrong = wrong or error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            continue
        if made is not None:
            found = True
            yield made
    if wrong and not found:
        message = f"`{without_logins(place)}` names no place: {wrong}"
        hint = "Write a path, or `table:` and the name of a table."
        raise GemError("GB461" if rejected else "GB450", message, hint)


def owners_of(plan: Plan, place: str) -> Iterator[Owner]:
    """What of a pipeline has a place already, or has one in it or around it.

    Paths are compared however they are written, with links followed; tables without the catalog and the
    schema that a session begins with.

    Args:
        plan: The pipeline.
        place: The place, a path absolute.
    """
    definition = plan.definition
    named = _areas(place)

    def lies_to(*texts: str, is_read: bool = False) -> str:
        others = (area for text in texts for area in _areas(text, wildcards=is_read))
        return next((how for other in others for one in named if (how := _lies(one, other, is_read))), "")

    for kind in ("target", "source"):
        for node in definition.of_kind(kind):
            texts = cast("Source | Target", plan.gems[node.id]).places().values()
            how = lies_to(*(text for found in texts for text in found), is_read=kind == "source")
            if how:
                yield Owner(node.id, kind, how)
    if definition.mode == "stream":
        checkpoints = {node.id: definition.checkpoint(node.id) for node in definition.of_kind("target")}
        kept = {name: how for name, checkpoint in checkpoints.items() if (how := lies_to(checkpoint))}
        if kept:
            yield from (Owner(name, "checkpoint", how) for name, how in kept.items())
        elif how := lies_to(f"{definition.checkpoints}/{definition.name}"):
            yield Owner(None, "checkpoint", how)
    file = Path(definition.file).absolute() if definition.file else None
    if file is not None and file.exists() and (how := lies_to(str(file))):
        yield Owner(None, "file", how)


def _areas(text: str, *, wildcards: bool = False) -> list[Area]:
    """What a place covers, in one spelling."""
    table = _TABLE_AT.fullmatch(text)
    text = without_logins(table[1] if table is not None else text)
    found = areas_of(text, wildcards=wildcards)
    if not found:  # so many choices that nobody looks at them all
        found = areas_of(re.split(r"[*?\[{]", text, maxsplit=1)[0].rpartition("/")[0] + BELOW, wildcards=True)
    return [_resolved(area) for area in found]


def _resolved(area: Area) -> Area:
    if area.root == "table:":
        parts = area.parts[1:] if len(area.parts) == 3 and area.parts[0] == "spark_catalog" else area.parts
        return replace(area, parts=parts[1:] if len(parts) == 2 and parts[0] == "default" else parts)
    if area.root:
        return area
    wild = (n for n, part in enumerate(area.parts) if area.wild and _WILDCARDS & set(part))
    fixed = next(wild, len(area.parts))
    real = os.path.realpath("/" + "/".join(area.parts[:fixed]))
    return replace(area, parts=(*Path(real).parts[1:], *area.parts[fixed:]))


def _lies(place: Area, other: Area, is_read: bool) -> str:
    """How a place lies to another one; empty when the two have nothing to do with each other."""
    if place.root != other.root or (place.root == "table:" and place.parts != other.parts):
        return ""
    pairs = zip(place.parts, other.parts, strict=False)
    if not all(fnmatchcase(name, known) if other.wild else name == known for name, known in pairs):
        return ""
    if len(place.parts) <= len(other.parts):
        return "is" if len(place.parts) == len(other.parts) else "holds"
    # Who reads a folder gets what lies in those of its partitions too, and nothing of other ones below it.
    more = place.parts[len(other.parts) :]
    is_within = not is_read or other.below or all("=" in name for name in more)
    return "lies in" if is_within else ""
