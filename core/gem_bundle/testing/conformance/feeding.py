"""Rows that are made to appear to a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from gem_bundle.testing.conformance.suite import GemConformance, fail, refusing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Rows = Sequence[Mapping[str, Any]]


def reads(source: Any, *, streaming: bool) -> bool:
    """Whether a source can be read so: its semantics allow it, and its own rules with these options."""
    if not (source.semantics.streaming if streaming else source.semantics.batch):
        return False
    before = source.streaming
    source.streaming = streaming
    try:
        return not refusing(source)
    finally:
        source.streaming = before


def feeds(suite: type[GemConformance]) -> bool:
    """Whether rows can be made to appear to the source."""
    return cast("type[Feeding]", suite).feed is not Feeding.feed


class Feeding(GemConformance):
    """Has a source read rows that the suite knows."""

    def feed(self, number: int) -> Rows:
        """Make a few new rows appear to the source, at least one, and say which.

        Called after `provide`, at most three times in a test, with 1, 2, 3: each time the rows are others.
        When it returns, a query that starts now must find them; a source without a backlog (its
        `semantics`) may be fed while its query runs already. A source that makes its own rows has
        none to be fed.

        Returns:
            The rows that came to be, with the columns to compare; others the source may add.
        """
        raise NotImplementedError

    def _given(self, number: int) -> list[Mapping[str, Any]]:
        """The rows that were fed, of which there must be some."""
        if not feeds(type(self)):
            fail(
                "implement `feed`: without rows that it knows of, the suite can't tell whether they are read"
            )
        rows: list[Mapping[str, Any]] = [dict(row) for row in self.feed(number)]
        if not rows:
            fail(f"`feed({number})` gave no rows; one at least is needed")
        return rows

    def _fed(self) -> Any:
        """A gem that has something to read, where it can be fed."""
        gem = self.live()
        if feeds(type(self)):
            self._given(1)
        return gem
