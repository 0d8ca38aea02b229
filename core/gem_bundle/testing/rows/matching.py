"""Which expected rows are which of the rows that came."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle.diagnostics import suggest
from gem_bundle.testing.values import MisfitError, Reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gem_bundle.schema import DataType, StructField

_CLOSE = {"double": 1e-9, "float": 1e-6}
_MOST_PAIRED = 200

Row = tuple[Any, ...]


class UnknownColumnError(Exception):
    """An expected row names a column that there is none of."""


class Pair(NamedTuple):
    """An expected row and the one that came in its place, each by its index.

    Args:
        wanted: The expected row; None for a row that nobody expected.
        came: The row that came; None where none did.
        columns: The positions of the columns in which they differ.
    """

    wanted: int | None
    came: int | None
    columns: tuple[int, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether the row that came is the one that was expected."""
        return self.wanted is not None and self.came is not None and not self.columns


@dataclass
class Table:
    """Rows that were expected and rows that came, over the columns that are compared.

    Args:
        fields: The columns.
        wanted: The rows that were expected.
        came: The rows that came.
    """

    fields: tuple[StructField, ...]
    wanted: list[Row]
    came: list[Row]
    _wanted_classes: list[int] = field(init=False, default_factory=list)
    _came_classes: list[int] = field(init=False, default_factory=list)

    @staticmethod
    def of(
        expected: Sequence[Any],
        rows: Sequence[Row],
        fields: Sequence[StructField],
        time_zone: str,
        *,
        subset: bool,
        lenient: bool = False,
    ) -> Table:
        """Both sides in one form.

        Args:
            expected: The expected rows as they were written.
            rows: The rows that came.
            fields: Their columns.
            time_zone: The session's.
            subset: Only the columns that expected rows name are compared.
            lenient: What no row can be is taken for a difference and not for an error.

        Raises:
            MisfitError: When an expected row has a value that its column can never hold.
            UnknownColumnError: When it names a column that there is none of.
        """
        reader = Reader(time_zone)
        known = [column.name for column in fields]
        named = dict.fromkeys(name for row in expected if isinstance(row, Mapping) for name in row)
        unknown = [name for name in named if name not in known]
        if unknown and not lenient:
            hint = suggest(unknown[0], known, what="columns")
            raise UnknownColumnError(f"there is no column `{unknown[0]}`. {hint}".rstrip())
        compared = [name for name in named if name in known] if subset else known
        positions = [index for index, name in enumerate(known) if not compared or name in compared]
        chosen = tuple(fields[index] for index in positions)
        read = _read_leniently if lenient else _read
        wanted = [read(reader, row, chosen, number, subset) for number, row in enumerate(expected, 1)]
        came = [tuple(row[index] for index in positions) for row in rows]
        table = Table(chosen, wanted, came)
        table._classify()
        return table

    def _classify(self) -> None:
        """Give rows that are the same the same number; a row that is close to an expected one is its."""
        numbers: dict[Any, int] = {}
        near: defaultdict[Any, list[tuple[int, Row]]] = defaultdict(list)
        has_floats = any(_has_floats(column.type) for column in self.fields)
        for row in self.wanted:
            number = numbers.setdefault(_key(row), len(numbers))
            self._wanted_classes.append(number)
            if has_floats:
                near[_key(row, floats=False)].append((number, row))
        for row in self.came:
            key = _key(row)
            if key not in numbers and has_floats:
                candidates = near[_key(row, floats=False)]
                closest = next((n for n, other in candidates if not self._differing(other, row)), None)
                if closest is not None:
                    numbers[key] = closest
            self._came_classes.append(numbers.setdefault(key, len(numbers)))

    @property
    def is_same(self) -> bool:
        """Whether the rows are the same, in this order."""
        return self._wanted_classes == self._came_classes

    @property
    def is_same_in_any_order(self) -> bool:
        """Whether the rows are the same, in whatever order."""
        return Counter(self._wanted_classes) == Counter(self._came_classes)

    def misplaced(self) -> list[int]:
        """The positions of rows that are as expected but stand elsewhere."""
        classes = zip(self._wanted_classes, self._came_classes, strict=True)
        return [index for index, (wanted, came) in enumerate(classes) if wanted != came]

    def pairs(self) -> list[Pair]:
        """What became of each expected row, in their order, and then the rows that nobody expected."""
        places: defaultdict[int, list[int]] = defaultdict(list)
        for index in reversed(range(len(self.came))):
            places[self._came_classes[index]].append(index)
        found: dict[int, Pair] = {}
        for index, number in enumerate(self._wanted_classes):
            if places[number]:
                found[index] = Pair(index, places[number].pop())
        missing = [index for index in range(len(self.wanted)) if index not in found]
        extra = sorted(index for left in places.values() for index in left)
        nearest = self._nearest(missing, extra)
        used = {pair.came for pair in nearest.values()}
        found |= nearest | {index: Pair(index, None) for index in missing if index not in nearest}
        unexpected = [Pair(None, index) for index in extra if index not in used]
        return [found[index] for index in range(len(self.wanted))] + unexpected

    def ordered_pairs(self) -> list[Pair]:
        """What became of each row, in the order of both sides."""
        found: list[Pair] = []
        matcher = SequenceMatcher(None, self._wanted_classes, self._came_classes, autojunk=False)
        for kind, from_wanted, to_wanted, from_came, to_came in matcher.get_opcodes():
            both = zip_longest(range(from_wanted, to_wanted), range(from_came, to_came))
            for wanted, came in both:
                if kind == "equal" or wanted is None or came is None:
                    found.append(Pair(wanted, came))
                    continue
                columns = self._differing(self.wanted[wanted], self.came[came])
                related = len(columns) < len(self.fields)
                found += [Pair(wanted, came, columns)] if related else [Pair(wanted, None), Pair(None, came)]
        return found

    def _nearest(self, missing: list[int], extra: list[int]) -> dict[int, Pair]:
        """Expected rows and those that differ from them in some columns only, the nearest first."""
        candidates = []
        for wanted in missing[:_MOST_PAIRED]:
            for came in extra[:_MOST_PAIRED]:
                columns = self._differing(self.wanted[wanted], self.came[came])
                if len(columns) < len(self.fields):
                    # Of equally near rows the one whose first columns agree: keys mostly come first.
                    rank = (len(columns), [-index for index in columns], wanted, came)
                    candidates.append((rank, Pair(wanted, came, columns)))
        found: dict[int, Pair] = {}
        used: set[int | None] = set()
        for (_, _, wanted, came), pair in sorted(candidates, key=lambda candidate: candidate[0]):
            if wanted not in found and came not in used:
                found[wanted] = pair
                used.add(came)
        return found

    def _differing(self, wanted: Row, came: Row) -> tuple[int, ...]:
        columns = enumerate(zip(wanted, came, self.fields, strict=True))
        return tuple(index for index, (one, other, column) in columns if not _close(one, other, column.type))


class _Unreadable:
    """Stands for a value that no row can have."""


def _read(reader: Reader, row: Any, fields: Sequence[StructField], number: int, subset: bool) -> Row:
    try:
        return reader.row(row, fields, complete=subset)
    except MisfitError as error:
        raise MisfitError((f"row {number}", *error.path), error.reason) from None


def _read_leniently(
    reader: Reader, row: Any, fields: Sequence[StructField], _number: int, _subset: bool
) -> Row:
    if not isinstance(row, Mapping):
        row = dict(zip((column.name for column in fields), row, strict=False))
    found: list[Any] = []
    for column in fields:
        try:
            found += reader.row(type(row)({column.name: row.get(column.name)}), (column,))
        except MisfitError:
            found.append(_Unreadable())
    return tuple(found)


def _has_floats(kind: DataType) -> bool:
    parts = (*kind.parts, *(field.type for field in kind.fields))
    return kind.name in _CLOSE or any(map(_has_floats, parts))


def _key(value: Any, *, floats: bool = True) -> Any:
    """What two values have in common when they are equal; without the floats, when they may be close."""
    if isinstance(value, float):
        return ("nan" if math.isnan(value) else value) if floats else "float"
    if isinstance(value, tuple | list):
        return tuple(_key(item, floats=floats) for item in value)
    if isinstance(value, dict):
        return frozenset((_key(k, floats=floats), _key(v, floats=floats)) for k, v in value.items())
    # To Python true is 1; a value of a variant may be either.
    return (type(value), value) if isinstance(value, bool) else value


def _close(one: Any, other: Any, kind: DataType) -> bool:
    """Whether two values of a column are taken for the same."""
    if one is None or other is None or isinstance(one, _Unreadable):
        return one is other
    if kind.name in _CLOSE:
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=_CLOSE[kind.name], abs_tol=1e-12)
    if kind.name == "array":
        same = len(one) == len(other)
        return same and all(_close(a, b, kind.parts[0]) for a, b in zip(one, other, strict=True))
    if kind.name == "struct":
        inner = zip(one, other, kind.fields, strict=True)
        return all(_close(a, b, column.type) for a, b, column in inner)
    if kind.name == "map":
        return bool(one.keys() == other.keys()) and all(_close(one[k], other[k], kind.parts[1]) for k in one)
    return bool(_key(one) == _key(other))
