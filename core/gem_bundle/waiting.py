"""What waits in a source for a query that runs: what Spark tells of it, and what a source makes of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gem_bundle.files import Folder

WaitingUnit = Literal["records", "files", "versions"]


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where a query has read one of its sources.

    Args:
        description: Spark's words for the source: ``DeltaSource[file:/data/clicks]``.
        offset: The end of what was read, in the source's own form; None before anything was.
    """

    description: str
    offset: Any = None

    def of(self, kind: str) -> str | None:
        """The place that a description names, where the source is of a kind.

        Args:
            kind: The word before the brackets: ``DeltaSource``.
        """
        head, bracket, rest = self.description.partition("[")
        return rest.removesuffix("]") if bracket and head == kind else None


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much of a source a query has yet to read.

    Args:
        name: What the source is called: its topic, its path.
        count: How much.
        unit: Of what.
        newest: How much there is in all: a number that grows with what comes, and by which the run tells how
            long what waits has been there.
    """

    name: str
    count: int
    unit: WaitingUnit
    newest: int


@dataclass(frozen=True, slots=True)
class WaitingContext:
    """What a source is given to tell how much of it waits.

    Args:
        positions: Up to where the query has read its sources.
        checkpoint: The place of the query's checkpoint.
    """

    positions: tuple[Position, ...]
    checkpoint: str

    def folder(self, location: str) -> Folder:
        """The folder at a place, wherever files may lie; it need not exist.

        Args:
            location: A path, or a URL that fsspec or Databricks knows.

        Raises:
            NoFilesError: When nothing here can read that kind of place.
        """
        from gem_bundle.files import open_folder

        return open_folder(location)
