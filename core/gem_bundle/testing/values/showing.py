"""Values as a person would write them: made of what YAML and JSON have, and of `Decimal`."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gem_bundle.testing.values.reading import HEX, as_single
from gem_bundle.testing.values.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date, datetime, time
    from decimal import Decimal

    from gem_bundle.schema import DataType, StructField

_EXACT_DIGITS = 15  # what a float keeps of a decimal, whatever reads the file
_TEXT_KEYS = frozenset(
    {"string", "char", "varchar", "date", "boolean", "tinyint", "smallint", "int", "bigint"}
)


class Shower:
    """Shows values and rows so that a `Reader` of the same time zone reads them back.

    Args:
        time_zone: The session's: the zone in which timestamps are shown.
    """

    def __init__(self, time_zone: str = "UTC") -> None:
        self._zone = zone_of(time_zone)

    def value(self, value: Any, kind: DataType) -> Any:
        """One value.

        Args:
            value: As a `Reader` gives it.
            kind: Its type.
        """
        if value is None:
            return None
        show = _SHOWERS.get(kind.name)
        if show is not None:
            return show(self, value, kind)
        return _interval(value) if kind.name.startswith("interval") else value

    def row(self, row: Sequence[Any], fields: Sequence[StructField]) -> dict[str, Any]:
        """One row, by the names of its columns."""
        return {field.name: self.value(value, field.type) for value, field in zip(row, fields, strict=True)}

    def moment(self, value: datetime) -> str:
        """A timestamp in the time zone."""
        local = value.astimezone(self._zone)
        text = _without_zone(local.replace(tzinfo=None))
        if not local.fold:
            return text
        # An hour that comes twice, when summer time ends: without an offset it would be the first one.
        minutes = (local.utcoffset() or timedelta()) // timedelta(minutes=1)
        return f"{text}{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _timestamp(shower: Shower, value: datetime, _: DataType) -> str:
    return shower.moment(value)


def _timestamp_ntz(_: Shower, value: datetime, __: DataType) -> str:
    return _without_zone(value)


def _without_zone(value: datetime) -> str:
    text = value.isoformat(" ")
    return text.rstrip("0") if value.microsecond else text


def _iso(_: Shower, value: date | time, __: DataType) -> str:
    return value.isoformat()


def _float(_: Shower, value: float, __: DataType) -> float:
    """The number with the fewest digits that is this float of four bytes."""
    if not math.isfinite(value):
        return value
    return next(short for digits in range(1, 18) if as_single(short := float(f"{value:.{digits}g}")) == value)


def _decimal(_: Shower, value: Decimal, __: DataType) -> Decimal | str:
    return value if len(value.as_tuple().digits) <= _EXACT_DIGITS else f"{value:f}"


def _binary(_: Shower, value: bytes, __: DataType) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    return text if text.isprintable() and not HEX.fullmatch(text) else f"0x{value.hex().upper()}"


def _array(shower: Shower, value: Sequence[Any], kind: DataType) -> list[Any]:
    return [shower.value(item, kind.parts[0]) for item in value]


def _map(shower: Shower, value: Mapping[Any, Any], kind: DataType) -> Any:
    key, inner = kind.parts
    entries = [(shower.value(k, key), shower.value(v, inner)) for k, v in value.items()]
    if key.name in _TEXT_KEYS:
        return {k if isinstance(k, str) else json.dumps(k): v for k, v in entries}
    return [{"key": k, "value": v} for k, v in entries]


def _struct(shower: Shower, value: Sequence[Any], kind: DataType) -> dict[str, Any]:
    return shower.row(value, kind.fields)


_SHOWERS: dict[str, Callable[[Shower, Any, DataType], Any]] = {
    "array": _array,
    "binary": _binary,
    "date": _iso,
    "decimal": _decimal,
    "float": _float,
    "map": _map,
    "struct": _struct,
    "time": _iso,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
}


def _interval(value: timedelta) -> str:
    rest = abs(value) // timedelta(microseconds=1)
    parts = []
    for unit, length in (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000)):
        number, rest = divmod(rest, length)
        parts += [f"{number} {unit}{'' if number == 1 else 's'}"] if number else []
    if rest or not parts:
        whole, fraction = divmod(rest, 1_000_000)
        seconds = f"{whole}.{fraction:06}".rstrip("0") if fraction else str(whole)
        parts.append(f"{seconds} second{'' if seconds == '1' else 's'}")
    return f"{'-' if value < timedelta() else ''}{' '.join(parts)}"
