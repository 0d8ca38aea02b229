"""The clauses behind a `select`: which names `having` and `order by` may use, and which positions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle import Finding
from gem_bundle.diagnostics import listed_names
from gem_sql.tree import OPTION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gem_bundle import Column, Facts


class Names(NamedTuple):
    """What expressions behind a `select` may use.

    Args:
        facts: The columns that it makes, and those of the rows under it; None columns when unknown.
        hidden: Names, in lower case, that mean something there of which nothing is said.
    """

    facts: Facts
    hidden: frozenset[str] = frozenset()


def names_behind(rows: Facts, made: Sequence[Column] | None, hidden: Iterable[Column]) -> Names:
    """The names behind a `select`: a column that it makes goes before one of the rows.

    Args:
        rows: The rows that it is over.
        made: The columns that it makes.
        hidden: The keys that `using` leaves out of the rows.
    """
    if rows.columns is None or made is None:
        return Names(replace(rows, columns=None))
    under: dict[str, set[str | None]] = {}
    for column in rows.columns:
        under.setdefault(column.name.lower(), set()).add(column.type)
    counts = Counter(column.name.lower() for column in made)
    names = counts.keys()
    # Of several columns with one name Spark takes none, but the one of the rows that is called so.
    columns = [
        _as_either(column, under.get(column.name.lower()))
        for column in made
        if counts[column.name.lower()] == 1 or column.name.lower() not in under
    ]
    rest = [column for column in rows.columns if column.name.lower() not in names]
    left_out = (names & under.keys()) | {column.name.lower() for column in hidden}
    return Names(replace(rows, columns=(*columns, *rest)), frozenset(left_out))


def _as_either(column: Column, types: set[str | None] | None) -> Column:
    """A column that is made; within an aggregate function its name means that of the rows."""
    return column if types in (None, {column.type}) else replace(column, type=None)


def wrong_order_positions(node: Any, columns: Sequence[Column] | None) -> Iterator[Finding]:
    """`order by 3` where the result has no third column."""
    from sqlglot import exp

    for key in node.args["order"].expressions if node.args.get("order") else ():
        number = key.this if isinstance(key, exp.Ordered) else key
        if columns is None or not isinstance(number, exp.Literal) or number.is_string:
            continue
        at, count = number.name, len(columns)
        if at.isdecimal() and not 1 <= int(at) <= count:
            yield Finding(
                "GB212",
                f"`order by {at}` means the column {at} of the result, which has {count}",
                "Positions begin at 1; order by an expression or by the name of a column.",
                OPTION,
            )


def order_keys(node: Any) -> list[Any]:
    """The expressions that rows are ordered or distributed by."""
    from sqlglot import exp

    found: list[Any] = []
    for name in ("order", "sort", "cluster", "distribute"):
        clause = node.args.get(name)
        if clause is not None:
            found += [key.this if isinstance(key, exp.Ordered) else key for key in clause.expressions]
    # `order by all` means every column, and a number the one at that position.
    return [key for key in found if not isinstance(key, exp.Var | exp.Literal)]


def wrong_stars(items: Iterable[Any], facts: Facts, hidden: Iterable[Column]) -> Iterator[Finding]:
    """`nobody.*` where no table and no column has the name, and a star that is given one."""
    for item in items:
        if item.star and item.name is not None:
            yield Finding(
                "GB205",
                f"`*` is several columns and can't be called `{item.name}`",
                "Write a comma between them, or no name.",
                OPTION,
            )
        if item.owner is not None and not _is_known(item.owner, facts, hidden):
            tables = listed_names(sorted(facts.qualifiers or ()))
            yield Finding(
                "GB210",
                f"there is nothing called `{item.owner}` whose columns `{item.owner}.*` could be",
                f"The tables here are {tables}." if tables else "",
                OPTION,
            )


def _is_known(owner: str, facts: Facts, hidden: Iterable[Column]) -> bool:
    """Whether a name before a star may be that of a table or of a column."""
    if facts.columns is None or facts.qualifiers is None or owner in facts.qualifiers:
        return True
    columns = [*hidden, *facts.columns]
    return any(owner in {(column.qualifier or "").lower(), column.name.lower()} for column in columns)
