"""Changes of rows, and what becomes of them, computed without Spark: for tests of `merge` and `history`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import total_ordering
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from random import Random

SCHEMA = "id string, part int, at int, op string, city string, note int"
KEYS = ["id", "part"]
MERGE = {"on": KEYS, "sequence_by": "at", "delete_when": "op = 'd'"}
COLUMNS = ("id", "part", "at", "op", "city", "note")
Change = tuple[Any, ...]


@total_ordering
@dataclass(frozen=True)
class Least:
    """A value in Spark's order, in which null comes first."""

    value: Any = field(compare=False)

    def __lt__(self, other: Least) -> bool:
        if self.value is None or other.value is None:
            return self.value is None and other.value is not None
        return bool(self.value < other.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Least) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def changes(random: Random, count: int, keys: int) -> list[Change]:
    """Changes in the order of their sequence, with deletes, comebacks, ties and nulls.

    Args:
        random: What they are drawn by.
        count: How many.
        keys: Of how many keys.
    """
    found: list[Change] = []
    for at in range(count):
        key = random.randrange(keys)
        op = random.choices(["u", "d"], [5, 1])[0]
        city = random.choice(["Košice", "Brno", "Wien", None])
        note = random.choice([None, *range(5)])
        # The key 0 is null, and every other key has a null in its second column.
        made = (f"k{key}" if key else None, None if key % 2 else key % 3, at - at % 3, op, city, note)
        found.append(made)
        if random.random() < 0.05:
            found.append(made)
    return found


def late(random: Random, rows: Sequence[Change], within: int) -> list[Change]:
    """Changes out of their order: none comes later than so many others that are behind it."""
    places = [(number + random.uniform(0, within), row) for number, row in enumerate(rows)]
    return [row for _, row in sorted(places, key=lambda place: place[0])]


def upserted(rows: Iterable[Change]) -> set[Change]:
    """The rows that are left when each key has its last change."""
    last: dict[Change, Change] = {}
    for row in sorted(rows, key=_order):
        last[row[:2]] = row
    return {row for row in last.values() if row[3] != "d"}


def versions(rows: Iterable[Change], track: Sequence[str] = ("city",)) -> set[Change]:
    """The versions that changes make: the row without `op`, where it begins, where it ends, whether it is open."""
    tracked = [COLUMNS.index(name) for name in track]
    of_keys: dict[Change, dict[int, Change]] = {}
    for row in sorted(rows, key=_order):
        of_keys.setdefault(row[:2], {})[row[2]] = row
    found: set[Change] = set()
    for history in of_keys.values():
        version: Change | None = None
        start = 0
        for at, row in sorted(history.items()):
            gone = row[3] == "d"
            same = version is not None and all(version[i] == row[i] for i in tracked)
            if version is not None and (gone or not same):
                found.add((*_kept(version), start, at, False))
                version = None
            if not gone:
                start = at if version is None else start
                version = row
        if version is not None:
            found.add((*_kept(version), start, None, True))
    return found


def _kept(row: Change) -> Change:
    return (*row[:3], *row[4:])


def _order(row: Change) -> tuple[Any, ...]:
    """What comes behind what: by the sequence, deletes behind others, then by the values in order of names."""
    values = [row[COLUMNS.index(name)] for name in ("at", "city", "note", "op")]
    return (row[2], row[3] == "d", *map(Least, values))


def change(
    at: int, op: str = "u", city: str | None = "a", note: int | None = 1, key: str | None = "k"
) -> Change:
    """One change."""
    return (key, 1, at, op, city, note)


WAYS = pytest.mark.parametrize(
    ("merge", "batches", "found"),
    [
        pytest.param(
            {**MERGE, "update": ["at", "city"]},
            [[change(1, note=1), change(2, city="b", note=2)], [change(3, city="c", note=3)]],
            [("k", 1, 3, "u", "c", 1)],
            id="some",
        ),
        pytest.param(
            {**MERGE, "ignore_null_updates": True},
            [
                [change(1, city="a", note=1)],
                [change(4, city=None, note=4), change(3, city="b", note=3)],
                [change(2, city="late", note=2), change(5, city=None, note=None)],
            ],
            [("k", 1, 5, "u", "b", 4)],
            id="nulls",
        ),
        pytest.param(
            {**MERGE, "ignore_null_updates": True},
            [[change(5, city="a", note=4)], [change(6, "d"), change(7, city=None, note=7)]],
            [("k", 1, 7, "u", None, 7)],
            id="a comeback",
        ),
        pytest.param(
            {
                "on": "target.id = source.id and target.part <=> source.part",
                "update": {"note": "target.note + source.note", "at": "source.at"},
                "insert": {
                    "id": "source.id",
                    "part": "source.part",
                    "at": "source.at",
                    "note": "source.note * 10",
                },
            },
            [[change(1)], [change(2, note=5)]],
            [("k", 1, 2, 15)],
            id="expressions",
        ),
        pytest.param(
            {**MERGE, "update": "none"},
            [[change(2, note=2), change(1, note=1)], [change(3)]],
            [("k", 1, 1, "u", "a", 1)],
            id="once",
        ),
        pytest.param(
            {**MERGE, "insert": "none"}, [[change(1)], [change(2)]], [], id="what isn't there stays away"
        ),
    ],
)
"""Merges of some columns, micro-batches, and the rows that they make."""
