"""Expected rows against the rows that a target got: whether they are the same, and how they differ.

Rows are compared by the types of the columns that came: a timestamp in the session's time zone, a decimal
exactly, a double to nine and a float to six significant digits, NaN as equal to NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle.schema import fields_of, quoted
from gem_bundle.testing.rows.matching import Pair, Table, UnknownColumnError
from gem_bundle.testing.rows.notation import flow
from gem_bundle.testing.values import MisfitError, Shower

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gem_bundle.schema import StructField
    from gem_bundle.testing.rows.matching import Row

_MOST_ROWS = 10
_LONGEST_ROW = 300
_LONGEST_VALUE = 120

Paint = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a test expects of a target's rows; what is None isn't looked at.

    Args:
        rows: The rows: each a mapping of columns to values, in which a column that is left out is null, or
            a list of the values of all columns.
        ordered: They come in this order; else in any.
        subset: They name only some of the columns, and the others don't matter.
        count: How many rows there are.
        schema: Names and types of all columns in order, as DDL.
    """

    rows: Sequence[Mapping[str, Any] | Sequence[Any]] | None = None
    ordered: bool = False
    subset: bool = False
    count: int | None = None
    schema: str | None = None


class Line(NamedTuple):
    """A line of a difference.

    Args:
        role: ``missing``, ``unexpected`` or ``changed``, for its colour; else empty.
        text: What it says.
    """

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Difference:
    """How the rows that came differ from those expected.

    Args:
        message: What differs, in one sentence.
        details: The rows: ``-`` stands before one that is missing, ``+`` before one that nobody expected,
            ``~`` before one that differs from the expected row that is nearest to it.
    """

    message: str
    details: tuple[Line, ...] = ()

    def lines(self, paint: Paint | None = None) -> list[str]:
        """The details as text.

        Args:
            paint: Colours a text by its role.
        """
        return [paint(text, role) if paint and role else text for role, text in self.details]

    def __str__(self) -> str:
        return "\n".join([self.message, *self.lines()])


def compare(
    expected: Expected, rows: Sequence[Row], fields: Sequence[StructField], time_zone: str = "UTC"
) -> Difference | None:
    """How rows differ from those that were expected; None when they don't.

    Args:
        expected: What was expected.
        rows: The rows that came, in the form of `gem_bundle.testing.values`.
        fields: Their columns.
        time_zone: The session's.
    """
    messages: list[str] = []
    details: list[Line] = []
    shower = Shower(time_zone)
    if expected.schema is not None and (lines := _schema_difference(expected.schema, fields)):
        messages.append("the columns are not those expected")
        details += lines
    if expected.count is not None and expected.count != len(rows):
        messages.append(f"{_counted(expected.count, 'row')} expected, {len(rows):,} came")
        details += _shown(rows, fields, shower) if expected.rows is None else ()
    if expected.rows is not None:
        try:
            table = Table.of(expected.rows, rows, fields, time_zone, subset=expected.subset)
        except UnknownColumnError as error:
            messages.append(str(error))
            details += _shown(rows, fields, shower)
        except MisfitError as error:
            messages.append(f"no row can be as expected: {error}")
            details += _shown(rows, fields, shower)
        else:
            found = _row_difference(table, shower, ordered=expected.ordered)
            messages += [found.message] if found else []
            details += found.details if found else ()
    return Difference("; ".join(messages), tuple(details)) if messages else None


def _schema_difference(ddl: str, fields: Sequence[StructField]) -> list[Line]:
    """How the columns differ from those expected; whether they may be null doesn't matter."""
    wanted = fields_of(ddl)
    if wanted is None:
        return [Line("missing", f"- {ddl} (which can't be read)")]
    expected = [(field.name, str(field.type)) for field in wanted]
    came = [(field.name, str(field.type)) for field in fields]
    if expected == came:
        return []
    if dict(expected) == dict(came):
        before, after = (", ".join(quoted(name) for name, _ in side) for side in (expected, came))
        return [Line("missing", f"- {before}"), Line("unexpected", f"+ {after}")]
    gone = [
        Line("missing", f"- {quoted(name)} {kind}") for name, kind in expected if (name, kind) not in came
    ]
    more = [(name, kind) for name, kind in came if (name, kind) not in expected]
    return gone + [Line("unexpected", f"+ {quoted(name)} {kind}") for name, kind in more]


def _shown(rows: Sequence[Row], fields: Sequence[StructField], shower: Shower) -> list[Line]:
    """The first of the rows that came."""
    lines = [Line("unexpected", f"+ {_row(row, fields, shower)}") for row in rows[:_MOST_ROWS]]
    return lines + _more(len(rows))


def _row_difference(table: Table, shower: Shower, *, ordered: bool) -> Difference | None:
    if table.is_same if ordered else table.is_same_in_any_order:
        return None
    if table.is_same_in_any_order:
        return _misplaced(table, shower)
    pairs = table.ordered_pairs() if ordered else table.pairs()
    changed = [pair for pair in pairs if pair.columns]
    missing = [pair.wanted for pair in pairs if pair.wanted is not None and pair.came is None]
    extra = [pair.came for pair in pairs if pair.came is not None and pair.wanted is None]
    told = [
        f"{_counted(count, 'row')} {one if count == 1 else several}"
        for count, one, several in (
            (len(changed), "differs", "differ"),
            (len(missing), "is missing", "are missing"),
            (len(extra), "is unexpected", "are unexpected"),
        )
        if count
    ]
    same = sum(pair.is_same for pair in pairs)
    if same:
        told.append(f"{same:,} {'is' if same == 1 else 'are'} as expected")
    lines = [line for pair in changed[:_MOST_ROWS] for line in _changed(table, pair, shower, ordered=ordered)]
    lines += _more(len(changed))
    sides = (("missing", "-", missing, table.wanted), ("unexpected", "+", extra, table.came))
    for role, sign, indexes, rows in sides:
        for index in indexes[:_MOST_ROWS]:
            number = f"row {index + 1}: " if ordered else ""
            lines.append(Line(role, f"{sign} {number}{_row(rows[index], table.fields, shower)}"))
        lines += _more(len(indexes))
    return Difference(", ".join(told), tuple(lines))


def _misplaced(table: Table, shower: Shower) -> Difference:
    places = table.misplaced()
    lines = []
    for index in places[:_MOST_ROWS]:
        for role, sign, rows in (("missing", "-", table.wanted), ("unexpected", "+", table.came)):
            lines.append(Line(role, f"{sign} row {index + 1}: {_row(rows[index], table.fields, shower)}"))
    message = f"the rows are those expected but in another order, from row {places[0] + 1} on"
    return Difference(message, tuple(lines + _more(len(places))))


def _changed(table: Table, pair: Pair, shower: Shower, *, ordered: bool) -> Iterator[Line]:
    """What the two rows have in common, and a line for each column in which they differ."""
    assert pair.wanted is not None
    assert pair.came is not None
    wanted, came = table.wanted[pair.wanted], table.came[pair.came]
    same = [index for index in range(len(table.fields)) if index not in pair.columns]
    number = f"row {pair.came + 1}: " if ordered else ""
    common = _row([came[index] for index in same], [table.fields[index] for index in same], shower)
    yield Line("changed", f"~ {number}{common}")
    width = max(len(table.fields[index].name) for index in pair.columns)
    for index in pair.columns:
        column = table.fields[index]
        one, other = (
            _cut(flow(shower.value(row[index], column.type)), _LONGEST_VALUE) for row in (wanted, came)
        )
        yield Line("", f"      {column.name:<{width}}  expected {one}, got {other}")


def _row(row: Iterable[Any], fields: Sequence[StructField], shower: Shower) -> str:
    return _cut(flow(shower.row(tuple(row), fields)), _LONGEST_ROW)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _more(number: int) -> list[Line]:
    rest = number - _MOST_ROWS
    return [Line("", f"  … and {rest:,} more")] if rest > 0 else []


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
