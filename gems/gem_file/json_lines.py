"""The columns of JSON records, as Spark infers them (SQL guide: *JSON Files*), without Spark.

Spark reads every record, so this does too, and gives up on more than it can read at once.
"""

from __future__ import annotations

import json
import re
from typing import IO, TYPE_CHECKING, Any

from gem_bundle import Column

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_CHARACTERS = 16_000_000

_LONG = range(-(1 << 63), 1 << 63)
_TYPES: dict[type, str] = {str: "string", bool: "boolean", int: "bigint", float: "double"}
_DIGITS = 300
# What ends a line for Spark, but not for every other reader.
_LONE_RETURN = re.compile(r"\r(?!\n)")


class Records:
    """The records of some files, and what their columns are.

    Args:
        give_up: Says when it has taken too long.
    """

    def __init__(self, give_up: Callable[[], bool]) -> None:
        self._give_up = give_up
        self._left = MAX_CHARACTERS
        self._seen: dict[str, set[type]] = {}
        self._solid: set[str] = set()

    def take(self, stream: IO[str]) -> bool:
        """Read a file of one record a line.

        Args:
            stream: The file, opened without translating the ends of lines.

        Returns:
            False when it can't be told what Spark makes of it.
        """
        text = stream.read(self._left + 1)
        self._left -= len(text)
        if self._left < 0 or _LONE_RETURN.search(text):
            return False
        try:
            return all(self._take(line) for line in text.split("\n"))
        except (ValueError, RecursionError):
            return False

    def columns(self) -> tuple[Column, ...] | None:
        """The columns in Spark's order, which is that of their names."""
        if any(kinds & {dict, list} and name not in self._solid for name, kinds in self._seen.items()):
            return None  # Spark leaves out what never holds anything
        # Java compares texts by their UTF-16 units.
        names = sorted(self._seen, key=lambda name: name.encode("utf-16-be"))
        return tuple(Column(name, self._type(name)) for name in names)

    def _type(self, name: str) -> str | None:
        kinds = list(self._seen[name] - {type(None)})
        if not kinds:
            return "string"
        return _TYPES.get(kinds[0]) if len(kinds) == 1 else None

    def _take(self, line: str) -> bool:
        if not line.strip(" \t\r"):
            return True
        if self._give_up():
            return False
        record = _DECODER.decode(line)
        if not isinstance(record, dict):
            return False
        for name, value in record.items():
            self._seen.setdefault(name, set()).add(type(value))
            if name not in self._solid and _is_solid(value):
                self._solid.add(name)
        return True


def _is_solid(value: Any) -> bool:
    """Whether there is something in it: Spark drops structs without fields, and arrays of them."""
    if isinstance(value, dict):
        return any(map(_is_solid, value.values()))
    if isinstance(value, list):
        return any(map(_is_solid, value))
    return value is not None and value != ""  # an empty text can become any type


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs) or "" in found:
        raise ValueError("a name stands twice, or is empty, which Spark passes over")
    return found


def _integer(text: str) -> int:
    if len(text) > _DIGITS or int(text) not in _LONG:
        raise ValueError("Spark reads such a number in its own way")
    return int(text)


def _float(text: str) -> float:
    if len(text) > _DIGITS:
        raise ValueError("Spark reads such a number in its own way")
    return float(text)


def _constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)
