"""Which files of a table a MERGE has to read, by the values that the rows have in its key.

A condition over the table alone lets Delta pass over partitions, and over files whose statistics say that
they hold nothing of it. Those tell something where the table is clustered by the column.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.expressions import backquoted
from gem_bundle.schema import literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

    from gem_delta.statements import Table

_MOST_VALUES = 256
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
# Those whose values a text holds just as they are.
_EXACT = re.compile(r"(boolean|float|double|date|timestamp|timestamp_ntz|string|decimal\(\d+,\d+\))\Z")
# Those of which nothing is won by a least and a greatest value, or of which statistics don't know `NaN`.
_UNORDERED = frozenset({"boolean", "float", "double"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def may_prune(table: Table, keys: Iterable[str]) -> bool:
    """Whether the values of a key may tell something of the files.

    Args:
        table: The table.
        keys: Its columns in the key.
    """
    known = {name.lower() for name in (*table.partitions, *table.clustered)}
    return any(name.lower() in known for name in keys)


def only_files(table: Table, keys: Sequence[tuple[str, str]], rows: DataFrame) -> str:
    """The condition that keeps a MERGE from reading files of the table that no row belongs to.

    Args:
        table: The table.
        keys: The columns of the key: those of the table, and what they are of a row.
        rows: The rows; they are read.

    Returns:
        A condition over `target`; an empty text where it keeps nothing away.
    """
    known = _columns(table, keys, rows)
    partitions = {name.lower() for name in table.partitions}
    terms = _values([column for column in known if column.target.lower() in partitions], rows)
    ranged = [column for column in known if column.target not in terms and column.kind not in _UNORDERED]
    terms |= _ranges(ranged, rows)
    return " and ".join(term for term in terms.values() if term)


class _Column(NamedTuple):
    """A column of the key.

    Args:
        target: Its name in the table.
        source: What it is of a row.
        kind: Its type, or `bigint` for all whole numbers.
    """

    target: str
    source: str
    kind: str

    @property
    def text(self) -> str:
        """An expression of a row: its value as a text."""
        value = f"unix_micros({self.source})" if self.kind == "timestamp" else self.source
        return f"cast({value} as string)"

    def sql(self, text: str) -> str:
        """A value as SQL has it; an empty text for one that can't be written."""
        if self.kind in {"bigint", "boolean"}:
            return text
        if self.kind == "timestamp":
            try:
                # With its zone: in that of the session some hours are there twice.
                return f"timestamp'{(_EPOCH + timedelta(microseconds=int(text))).isoformat(' ')}'"
            except OverflowError:
                return ""
        if self.kind in {"date", "timestamp_ntz"}:
            return f"{self.kind}{literal(text)}"
        return literal(text) if self.kind == "string" else f"cast({literal(text)} as {self.kind})"


def _columns(table: Table, keys: Sequence[tuple[str, str]], rows: DataFrame) -> list[_Column]:
    """The columns of the key that the files go by, as far as their values can be compared as they are."""
    known = {name.lower() for name in (*table.partitions, *table.clustered)}
    found = []
    for target, source in keys:
        if target.lower() not in known:
            continue
        kind = rows.selectExpr(f"{source} as source").schema.fields[0].dataType.simpleString()
        there = str(table.type(target))
        if kind in _WHOLE and there in _WHOLE:
            found.append(_Column(target, source, "bigint"))
        elif kind == there and _EXACT.match(kind):
            found.append(_Column(target, source, kind))
    return found


def _values(columns: Sequence[_Column], rows: DataFrame) -> dict[str, str]:
    """Conditions by the values themselves, by column; none where there are too many."""
    if not columns:
        return {}
    found = rows.selectExpr(*(column.text for column in columns)).distinct().limit(_MOST_VALUES + 1).collect()
    if not found or len(found) > _MOST_VALUES:
        return {}
    terms = {}
    for position, column in enumerate(columns):
        known: set[str | None] = {row[position] for row in found}
        values = [column.sql(text) for text in sorted(text for text in known if text is not None)]
        ways = [f"target.{backquoted(column.target)} in ({', '.join(values)})"] if values else []
        terms[column.target] = _either(column, ways, nulls=None in known) if all(values) else ""
    return terms


def _ranges(columns: Sequence[_Column], rows: DataFrame) -> dict[str, str]:
    """Conditions by the least and the greatest value, by column."""
    if not columns:
        return {}
    asked = [
        expression
        for column in columns
        for expression in (
            column._replace(source=f"min({column.source})").text,
            column._replace(source=f"max({column.source})").text,
            f"count_if({column.source} is null)",
        )
    ]
    found = rows.selectExpr(*asked).first()
    assert found is not None
    terms = {}
    for position, column in enumerate(columns):
        least, greatest, nulls = found[3 * position : 3 * position + 3]
        values = [column.sql(text) for text in (least, greatest) if text is not None]
        ways = [f"target.{backquoted(column.target)} between {' and '.join(values)}"] if values else []
        terms[column.target] = _either(column, ways, nulls=nulls > 0) if all(values) else ""
    return terms


def _either(column: _Column, ways: list[str], *, nulls: bool) -> str:
    """Any of some conditions, or that there is no value; an empty text where there are none."""
    every = [*ways, f"target.{backquoted(column.target)} is null"] if nulls else ways
    return f"({' or '.join(every)})" if every else ""
