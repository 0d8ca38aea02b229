"""Which versions of a table wait for a query: those in its log behind what was read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gem_bundle import Waiting
from gem_bundle.types import local_path

if TYPE_CHECKING:
    from gem_bundle import WaitingContext

_COMMIT = re.compile(r"(\d{20})\.json")


def versions_waiting(path: str, context: WaitingContext) -> Waiting | None:
    """How many versions of a table a query has yet to read.

    An offset of Delta's names the version that is read at the moment, or the next one; the first rows are
    those of a whole version.

    Args:
        path: The place of the table.
        context: Up to where the query has read its sources.

    Returns:
        None where the query has read none of it, or where there is no log that can be listed.
    """
    offsets = [p.offset for p in context.positions if _plain(p.of("DeltaSource")) == _plain(path)]
    reading = [offset["reservoirVersion"] for offset in offsets if offset]
    names = context.folder(f"{path}/_delta_log").names() if reading else []
    commits = [int(found[1]) for name in names if (found := _COMMIT.fullmatch(name))]
    if not commits:
        return None
    newest = max(commits)
    return Waiting(path, max(0, newest - min(reading) + 1), "versions", newest + 1)


def _plain(path: str | None) -> str | None:
    """A path as it is compared: Spark says ``file:/data``, and a pipeline ``/data``."""
    return None if path is None else (local_path(path) or path).rstrip("/")
