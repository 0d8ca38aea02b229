"""What the expressions of a merge may name: the rows that come are `source`, those of the table `target`.

And what the table beside it is called, which keeps what it doesn't show itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gem_bundle.expressions import check_expression, missing_names
from gem_bundle.facts import Column, Facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gem_bundle.diagnostics import Finding

Place = tuple[str | int, ...]
SOURCE, TARGET = "source", "target"


def remembered_name(table: str) -> str:
    """The name of the table that keeps what a table of a catalog doesn't show: it is beside it.

    Args:
        table: The table's own name.
    """
    return f"{table[:-1]}_remembered`" if table.endswith("`") else f"{table}_remembered"


@dataclass(frozen=True, slots=True)
class TableNames:
    """What is known of the names of a table that rows are merged into.

    Args:
        there: Its columns; None when they aren't known.
        brought: Names of columns that it has for certain, since the rows bring them or they are updated.
        rows: The names of the rows' columns.
    """

    there: Sequence[Column] | None
    brought: Sequence[str]
    rows: Sequence[str]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it has for certain."""
        there = tuple(Column(column.name, column.type, qualifier=TARGET) for column in self.there or ())
        known = {column.name.lower() for column in there}
        return there + tuple(
            Column(name, qualifier=TARGET) for name in self.brought if name.lower() not in known
        )

    def check(
        self, expression: str, place: Place, wants: Literal["boolean"] | None = None
    ) -> Iterator[Finding]:
        """What is wrong with an expression over the table alone."""
        columns = self.columns or None
        facts = Facts(columns=columns, qualifiers=frozenset({TARGET}))
        return self._check(expression, facts, place, wants)

    def check_both(
        self, expression: str, rows: Facts, place: Place, wants: Literal["boolean"] | None = None
    ) -> Iterator[Finding]:
        """What is wrong with an expression over rows and the table."""
        columns = None if rows.columns is None else (*rows.columns, *self.columns)
        facts = Facts(columns=columns, qualifiers=frozenset({SOURCE, TARGET}))
        return self._check(expression, facts, place, wants)

    def _check(
        self, expression: str, facts: Facts, place: Place, wants: Literal["boolean"] | None
    ) -> Iterator[Finding]:
        from gem_bundle.expressions import columns_named

        if self.there is None and any(name.lower() in {SOURCE, TARGET} for name in self.rows):
            return iter(())  # a field of such a column may be a column of a table that isn't known
        # Of a table whose columns aren't all known, what isn't there may be.
        named = () if self.there is not None else columns_named(expression)
        also = () if self.there is not None else (TARGET, *(n for n in named or () if n.lower() != SOURCE))
        return check_expression(
            expression,
            facts,
            place,
            also=also,
            dropped=None if named is None else (),
            wants=wants,
            analytic=False,
            generators=False,
        )

    def check_names(self, names: Iterable[str], place: Place) -> Iterator[Finding]:
        """Columns that get values and that the table doesn't have."""
        if self.there is None:
            return
        # Those of the rows it may get meanwhile, where the session lets all tables have new ones.
        yield from missing_names(names, Facts(columns=(*self.there, *map(Column, self.rows))), place)
