"""Rows at random for the sources of a drawn pipeline: few values, so that they meet, and times that overlap."""

from __future__ import annotations

import base64
import json
import os
import re
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle.schema import fields_of, type_of

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.ddl import DataType

PHASES = ("a", "b")
_DAY = datetime(2024, 1, 31)
_END = (datetime(2024, 6, 30, 10, 0), timedelta(hours=1))


class Style(NamedTuple):
    """What rows are like.

    Args:
        files: When those of each file happened, and how long that went on, by phase: each file is a micro-batch,
            and the last one is so much later that every window closes.
        words: The texts that there are.
        numbers: How many numbers there are, from 0 on, or which.
        nulls: How many values are null.
        moments: How many times there are in a file, evenly apart, or how many seconds behind its beginning
            each of them is; 0 is any.
        rows: How many rows there are in a file.
        repeats: The second phase begins with the rows that the first one has ended with.
        apart: How many seconds apart the times of one row may be.
    """

    files: dict[str, list[tuple[datetime, timedelta]]]
    words: tuple[str, ...] = ("home", "cart", "pay", "x", "a")
    numbers: int | tuple[int, ...] = 5
    nulls: float = 0.04
    moments: int | tuple[int, ...] = 0
    rows: int = 10
    repeats: bool = False
    apart: tuple[int, ...] = (0,)


_COMMON = Style(
    {
        "a": [
            (_DAY.replace(hour=10), timedelta(minutes=40)),
            (_DAY.replace(hour=10, minute=10), timedelta(hours=1)),
        ],
        "b": [(_DAY.replace(hour=10, minute=20), timedelta(hours=3)), _END],
    }
)
# What makes no difference to those may make one where more rows meet, or where windows close before the edit.
_DENSE = Style(
    {
        "a": [(_DAY.replace(hour=10), timedelta(minutes=40))] * 2,
        "b": [(_DAY.replace(hour=10), timedelta(minutes=40)), _END],
    },
    ("home", "cart"),
    2,
    0.3,
    4,
)
_CLOSED = Style(
    {
        "a": [
            (_DAY.replace(hour=10), timedelta(minutes=40)),
            (_DAY.replace(month=3, hour=10), timedelta(hours=1)),
        ],
        "b": [(_DAY.replace(month=3, hour=10, minute=20), timedelta(hours=3)), _END],
    },
    ("home", "cart", "a"),
    3,
)
_WIDE = Style(
    {
        "a": [(_DAY, timedelta(days=3))] * 2,
        "b": [(_DAY, timedelta(days=4)), _END],
    },
    ("home", "cart"),
    2,
)
# Conditions are drawn about these texts and about the year's first day.
_MIDNIGHT = Style(
    {
        "a": [(datetime(2023, 12, 31, 23, 20), timedelta(minutes=80))] * 2,
        "b": [(datetime(2023, 12, 31, 23, 20), timedelta(minutes=80)), _END],
    },
    ("home", "a"),
    2,
    0.2,
    4,
)
# Ranges of time are drawn with these intervals, so that some rows are just within one, and some just not.
_MINUTE, _HOUR, _A_DAY = 60, 3600, 24 * 3600
_APART = Style(
    {
        "a": [(datetime(2024, 1, 1), timedelta(hours=3))] * 2,
        "b": [(datetime(2024, 1, 1), timedelta(hours=3)), _END],
    },
    ("home", "a"),
    2,
    0.1,
    (
        *(0, 30, _MINUTE, 90, 5 * _MINUTE, 10 * _MINUTE, 21 * _MINUTE, 30 * _MINUTE),
        *(_HOUR, _HOUR + 5 * _MINUTE, _HOUR + 30 * _MINUTE, 2 * _HOUR, 3 * _HOUR),
    ),
    25,
)
# Conditions compare with these, and tweaks make a number twice as much and one.
_VALUES = Style(
    {
        "a": [(_DAY.replace(hour=10), timedelta(minutes=40))] * 2,
        "b": [(_DAY.replace(hour=10), timedelta(minutes=40)), _END],
    },
    ("a", "x", "page", "b", "A", "none", "", "1", "a b"),
    (-1, 0, 1, 2, 3, 10, 21, 42, 43, 85, 100, 101, 201),
    0.1,
    4,
    25,
)
# Aggregates of constants, and of which only the first counts, tell one row from two, and those alone.
_SPARSE = Style(
    {
        "a": [(_DAY, timedelta(days=1))] * 2,
        "b": [(_DAY, timedelta(days=1)), _END],
    },
    ("home", "cart"),
    2,
    0.4,
    24,
    12,
)
# Intervals of days and months are drawn too, and rows may be later than a watermark lets in by weeks.
_FAR = Style(
    {
        "a": [(datetime(2024, 1, 1), timedelta(days=100))] * 2,
        "b": [(datetime(2024, 1, 1), timedelta(days=100)), _END],
    },
    ("home", "a"),
    2,
    0.1,
    tuple(
        days * _A_DAY + hours * _HOUR
        for days in (0, 1, 2, 3, 7, 13, 15, 29, 32, 59, 64, 91, 95)
        for hours in (0, 5)
    ),
    25,
)
# What a list of numbers lets through, and it may be a row more, is the first of few of its kind.
_KINDS = Style(
    {
        "a": [(_DAY.replace(hour=10), timedelta(minutes=40))] * 2,
        "b": [(_DAY.replace(hour=10), timedelta(minutes=40)), _END],
    },
    ("a", "b", "x", "home", "cart", "page", "1", "none", "A", *map(str, range(2, 13))),
    (1, 2, 3),
    0.05,
    20,
    12,
)
# Of a range that is made longer, the rows that the old one has let go of are missed by those that come after that.
_HOURS, _DAYS, _WEEKS = (
    Style(
        {
            "a": [(_DAY, timedelta(minutes=20)), (_DAY + gap, timedelta(minutes=20))],
            "b": [(_DAY + gap + timedelta(minutes=10), timedelta(minutes=20)), _END],
        },
        ("home", "a"),
        2,
        0.05,
    )
    for gap in (timedelta(hours=2), timedelta(days=2), timedelta(days=10))
)
STYLES = {
    "dense": _DENSE,
    "closed": _CLOSED,
    "wide": _WIDE,
    "midnight": _MIDNIGHT,
    "apart": _APART,
    "values": _VALUES,
    "sparse": _SPARSE,
    "far": _FAR,
    "kinds": _KINDS,
    "hours": _HOURS,
    "days": _DAYS,
    "weeks": _WEEKS,
}
# Where groups are of a moment, or of all that a row has, no other rows get into them than those that come again.
# In those above all times of a row are one.
_REPEATED = _WIDE._replace(repeats=True, apart=(0, _MINUTE, 2 * _HOUR, _A_DAY))
# Late rows are left out by the watermark that the micro-batch before the last one has set.
_LATE = Style(
    {
        "a": [
            (_DAY.replace(hour=10), timedelta(minutes=40)),
            (_DAY.replace(hour=14), timedelta(minutes=40)),
            *[(_DAY.replace(hour=10), timedelta(hours=5))] * 2,
        ],
        "b": [(_DAY.replace(hour=10), timedelta(hours=6)), _END],
    },
    ("home", "a"),
    2,
    0.05,
)
# Of many rows that few others are like, the partner of one may have come before the edit alone.
_FEW_ALIKE = Style(
    {
        "a": [(_DAY + timedelta(hours=hours), timedelta(hours=2)) for hours in (0, 3, 26)],
        "b": [(_DAY + timedelta(hours=hours), timedelta(hours=2)) for hours in (27, 51)] + [_END],
    },
    _KINDS.words,
    12,
    0.05,
    0,
    20,
)
# Of what was dropped as late nothing like it may have come before.
_LATE_AND_FEW_ALIKE = _LATE._replace(words=_KINDS.words, numbers=tuple(range(40)))
SPECIAL = {
    "once more": _REPEATED,
    "late": _LATE,
    "few alike": _FEW_ALIKE,
    "late and few alike": _LATE_AND_FEW_ALIKE,
}

_MORE = 5
"""How many times as many rows there are each time that all styles have had their turn."""

_STYLED = 2 * len(STYLES)
SEVERAL = _STYLED + 2 * len(SPECIAL)
"""How many other rows there are: of the styles, and twice of each that is special."""


def again(seed: str, number: int) -> str:
    """The seed of other rows for the same edit.

    Args:
        seed: That of the edit.
        number: Which ones: of each style by turns, then of each with more rows, and then the special ones.
    """
    special = (number - _STYLED) // 2
    return f"{seed}#{list(STYLES)[number % len(STYLES)] if special < 0 else list(SPECIAL)[special]}{number}"


def style_of(seed: str) -> Style:
    """What the rows of a seed are like."""
    found = re.fullmatch(r"([a-z ]+)(\d+)", seed.partition("#")[2])
    if found is None:
        return _COMMON
    style = (STYLES | SPECIAL)[found[1]]
    return style._replace(rows=style.rows * (_MORE if int(found[2]) >= len(STYLES) else 1))


def write_phase(folder: Path, schema: str, phase: str, seed: str) -> None:
    """Add the files of a phase to a folder: JSON, each whole at once."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = fields_of(schema) or ()
    style = style_of(seed)
    for number in range(len(style.files[phase])):
        comes_again = style.repeats and (phase, number) == ("b", 0)
        of, place = ("a", len(style.files["a"]) - 1) if comes_again else (phase, number)
        random = Random(f"{seed}:{folder.name}:{of}:{place}")
        start, span = style.files[of][place]
        lines = []
        for _ in range(style.rows):
            at = start + timedelta(seconds=_moment(random, int(span.total_seconds()), style))
            row = {field.name: _value(random, field.type, at, style) for field in fields}
            lines.append(json.dumps(row))
        hidden = folder.parent / f".{folder.name}.{phase}{number}"
        hidden.write_text("\n".join(lines) + "\n")
        # Files are read in the order of their times, and those of one millisecond in any.
        written = _DAY.timestamp() + 10 * PHASES.index(phase) + number
        os.utime(hidden, (written, written))
        hidden.rename(folder / f"{phase}{number}.json")


def _moment(random: Random, seconds: int, style: Style) -> int:
    """How many seconds behind a file's beginning something happened."""
    if isinstance(style.moments, tuple):
        return random.choice(style.moments)
    return random.randrange(0, seconds, seconds // (style.moments or seconds))


def _value(random: Random, type_: DataType | str | None, at: datetime, style: Style) -> Any:
    found = type_of(type_) if isinstance(type_, str) else type_
    text = str(found)
    head = text.partition("<")[0].partition("(")[0]
    if random.random() < style.nulls and (head != "timestamp" or style.moments):
        return None
    if head == "struct":
        return {field.name: _value(random, field.type, at, style) for field in found.fields}  # type: ignore[union-attr]
    if head == "array":
        inner = text[len("array<") : -1]
        return [_value(random, inner, at, style) for _ in range(random.randrange(3))]
    if head == "map":
        return {word: random.choice(style.words) for word in random.sample(style.words, 2)}
    if len(style.apart) > 1:
        at += timedelta(seconds=random.choice(style.apart))
    if head in {"timestamp", "timestamp_ntz"}:
        return at.isoformat(sep=" ")
    made: dict[str, Any] = {
        "string": random.choice(style.words),
        "binary": base64.b64encode(random.choice(style.words).encode()).decode(),
        "boolean": random.random() < 0.5,
        "date": at.date().isoformat(),
        "double": random.randrange(8) / 2,
        "float": random.randrange(8) / 2,
        "decimal": random.randrange(8) / 2,
    }
    if isinstance(style.numbers, tuple):
        number = random.choice(style.numbers)
        halves = dict.fromkeys(("double", "float", "decimal"), number + random.choice([0, 0.5]))
        return (made | halves).get(head, number)
    return made.get(head, random.randrange(style.numbers))
