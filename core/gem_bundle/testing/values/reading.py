"""Values that a person wrote, read by their Spark types."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from gem_bundle.diagnostics import suggest
from gem_bundle.testing.values.problems import MisfitError, misfit, shortened
from gem_bundle.testing.values.zones import zone_of
from gem_bundle.types import interval_length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gem_bundle.schema import DataType, StructField

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_TEXTS = ("string", "char", "varchar")
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,6}))?)?"
_TIME = re.compile(_CLOCK)
_MOMENT = re.compile(
    rf"(?P<day>\d{{4}}-\d\d-\d\d)(?:[ T]{_CLOCK})?"
    r"\s*(?P<zone>Z|[+-]\d\d(?::?\d\d)?|[A-Za-z]+(?:/[\w+-]+)*)?"
)
_ROOMY = Context(prec=80)
HEX = re.compile(r"0x((?:[0-9a-fA-F]{2})*)")
"""How bytes that are no text are written."""


class TextRow(dict[str, str | None]):
    """A row whose values are texts whatever they mean, as those of a CSV file."""


class Reader:
    """Reads values and rows by their Spark types.

    Args:
        time_zone: The session's: the zone of timestamps that don't say theirs.
    """

    def __init__(self, time_zone: str = "UTC") -> None:
        self._zone = zone_of(time_zone)

    def value(self, value: Any, kind: DataType, *, from_text: bool = False) -> Any:
        """One value.

        Args:
            value: As a YAML or JSON parser gives it; Python's own dates and decimals will do as well.
            kind: The type of its column.
            from_text: It is a text whatever it means, as in a CSV file.

        Raises:
            MisfitError: When a column of that type can't hold it.
        """
        if value is None:
            return None
        read = _READERS.get(kind.name)
        if read is not None:
            return read(self, value, kind, from_text)
        if kind.name.startswith("string"):  # with a collation
            return _text(self, value, kind, from_text)
        if kind.name.startswith("interval") and not re.search("year|month", kind.name):
            return _interval(value, kind)
        raise MisfitError((), f"a test can't write values of the type `{kind}`")

    def row(
        self,
        row: Any,
        fields: Sequence[StructField],
        *,
        complete: bool = False,
    ) -> tuple[Any, ...]:
        """One row, in the order of the columns; columns that it doesn't name are null.

        Args:
            row: The values by the names of their columns, or all of them in the order of the columns.
            fields: The columns.
            complete: A column that isn't named is an error.

        Raises:
            MisfitError: When it doesn't fit the columns.
        """
        names = [field.name for field in fields]
        if isinstance(row, list | tuple):
            if len(row) != len(names):
                message = f"{shortened(row)} has {len(row)} values, and there are {len(names)} columns"
                raise MisfitError((), message)
            row = dict(zip(names, row, strict=True))
        if not isinstance(row, Mapping):
            raise MisfitError((), f"{shortened(row)} must be a mapping of columns to values")
        for name in row:
            if name not in names:
                hint = suggest(str(name), names, what="columns")
                raise MisfitError((), f"there is no column `{name}`. {hint}".rstrip())
        found = []
        from_text = isinstance(row, TextRow)
        for field in fields:
            if complete and field.name not in row:
                raise MisfitError((), f"it doesn't say what `{field.name}` is")
            found.append(self.part(row.get(field.name), field.type, field.name, from_text=from_text))
        return tuple(found)

    def part(self, value: Any, kind: DataType, step: str | int, *, from_text: bool = False) -> Any:
        """A value inside another one; what is wrong with it says where it is.

        Raises:
            MisfitError: When a column of that type can't hold it.
        """
        try:
            return self.value(value, kind, from_text=from_text)
        except MisfitError as error:
            raise MisfitError((step, *error.path), error.reason) from None

    def moment(self, value: object, kind: DataType) -> datetime:
        """A timestamp, in UTC.

        Raises:
            MisfitError: When it isn't one.
        """
        moment = value if isinstance(value, datetime) else _moment(value, kind)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=self._zone)
        try:
            return moment.astimezone(UTC)
        except OverflowError:
            raise misfit(value, kind, "its year is none from 1 to 9999") from None


def as_single(value: float) -> float:
    """The nearest number that a float of four bytes can be."""
    try:
        found: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return found


def _boolean(_: Reader, value: Any, kind: DataType, from_text: bool) -> bool:
    if from_text and isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise misfit(value, kind, "write `true` or `false`")
    return value


def _integer(_: Reader, value: Any, kind: DataType, from_text: bool) -> int:
    if from_text and isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d{1,40}\s*", value):
        value = int(value)
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise misfit(value, kind, _unquoted(value) or "write a whole number")
    if not -(limit := 1 << (_BITS[kind.name] - 1)) <= value < limit:
        raise misfit(value, kind, f"that is a number from {-limit:,} to {limit - 1:,}")
    return value


def _float(_: Reader, value: Any, kind: DataType, from_text: bool) -> float:
    if from_text and isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise misfit(value, kind, "write a number") from None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise misfit(value, kind, _unquoted(value) or "write a number")
    return as_single(float(value)) if kind.name == "float" else float(value)


def _decimal(_: Reader, value: Any, kind: DataType, __: bool) -> Decimal:
    try:
        found = value if isinstance(value, Decimal) else Decimal(str(value).strip())
    except InvalidOperation:
        found = Decimal("nan")
    if isinstance(value, bool) or not found.is_finite():
        raise misfit(value, kind, "write a number")
    precision, scale = kind.arguments
    if found and found.adjusted() >= precision - scale:
        most = precision - scale
        raise misfit(value, kind, f"it has {found.adjusted() + 1} digits before the point, and {most} fit")
    rounded = _ROOMY.quantize(found, Decimal(1).scaleb(-scale))
    if found != rounded:
        raise misfit(value, kind, f"it has more than {scale} digits after the point")
    return rounded


def _text(_: Reader, value: Any, kind: DataType, __: bool) -> str:
    if not isinstance(value, str):
        is_scalar = isinstance(value, bool | int | float)
        raise misfit(value, kind, "put it in quotes" if is_scalar else "write a text")
    length = kind.arguments[0] if kind.arguments else None
    if length is not None and len(value) > length:
        raise misfit(value, kind, f"it has {len(value)} characters")
    return value.ljust(length) if kind.name == "char" and length is not None else str(value)


def _binary(_: Reader, value: Any, kind: DataType, __: bool) -> bytes:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if not isinstance(value, str):
        raise misfit(value, kind, "write a text, or `0x` and hexadecimal digits")
    digits = HEX.fullmatch(value)
    return bytes.fromhex(digits[1]) if digits else value.encode()


def _date(_: Reader, value: Any, kind: DataType, __: bool) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return datetime.strptime(str(value).strip(), "%Y-%m-%d").date()
    except ValueError:
        raise misfit(value, kind, "write one such as `2026-01-05`") from None


def _timestamp(reader: Reader, value: Any, kind: DataType, _: bool) -> datetime:
    return reader.moment(value, kind)


def _timestamp_ntz(_: Reader, value: Any, kind: DataType, __: bool) -> datetime:
    moment = value if isinstance(value, datetime) else _moment(value, kind)
    if moment.tzinfo is not None:
        raise misfit(value, kind, "it has no time zone; leave it out")
    return moment


def _time(_: Reader, value: Any, kind: DataType, __: bool) -> time:
    if isinstance(value, time):
        return value
    found = _TIME.fullmatch(str(value).strip())
    try:
        if found is not None:
            return _clock(found)
    except ValueError:
        pass
    raise misfit(value, kind, "write one such as `09:05:00`")


def _interval(value: Any, kind: DataType) -> timedelta:
    if isinstance(value, timedelta):
        return value
    text = str(value).strip()
    try:
        months, microseconds = interval_length(text.removeprefix("-"))
    except ValueError:
        months, microseconds = 1, 0
    if months:
        raise misfit(value, kind, "write one such as `1 hour 30 minutes`")
    return timedelta(microseconds=-microseconds if text.startswith("-") else microseconds)


def _array(reader: Reader, value: Any, kind: DataType, from_text: bool) -> tuple[Any, ...]:
    value = _from_json(value) if from_text else value
    if not isinstance(value, list | tuple):
        raise misfit(value, kind, "write a list")
    return tuple(reader.part(item, kind.parts[0], index) for index, item in enumerate(value))


def _map(reader: Reader, value: Any, kind: DataType, from_text: bool) -> dict[Any, Any]:
    value = _from_json(value) if from_text else value
    if isinstance(value, list) and all(isinstance(e, dict) and e.keys() == {"key", "value"} for e in value):
        entries = [(entry["key"], entry["value"]) for entry in value]
    elif isinstance(value, dict):
        entries = list(value.items())
    else:
        raise misfit(value, kind, "write a mapping")
    # The keys of a mapping are texts in YAML and JSON, whatever they mean.
    of_text = isinstance(value, dict)
    key, inner = kind.parts
    return {
        reader.part(k, key, "key", from_text=of_text and isinstance(k, str)): reader.part(v, inner, str(k))
        for k, v in entries
    }


def _struct(reader: Reader, value: Any, kind: DataType, from_text: bool) -> tuple[Any, ...]:
    return reader.row(_from_json(value) if from_text else value, kind.fields)


def _variant(_: Reader, value: Any, __: DataType, from_text: bool) -> Any:
    return _from_json(value) if from_text else value


def _void(_: Reader, value: Any, kind: DataType, __: bool) -> None:
    raise misfit(value, kind, "write `null`")


_READERS: dict[str, Callable[[Reader, Any, DataType, bool], Any]] = {
    "array": _array,
    "binary": _binary,
    "boolean": _boolean,
    "date": _date,
    "decimal": _decimal,
    "map": _map,
    "struct": _struct,
    "time": _time,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp_ntz,
    "variant": _variant,
    "void": _void,
    **dict.fromkeys(_BITS, _integer),
    **dict.fromkeys(("double", "float"), _float),
    **dict.fromkeys(_TEXTS, _text),
}


def _unquoted(value: object) -> str:
    """What to do about a number between quotes."""
    is_number = isinstance(value, str) and re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", value.strip())
    return "write it without quotes" if is_number else ""


def _moment(value: object, kind: DataType) -> datetime:
    """A date with a time of day, naive where the text names no zone."""
    found = _MOMENT.fullmatch(str(value).strip())
    try:
        if found is not None:
            zone = None if found["zone"] is None else zone_of(found["zone"])
            return datetime.combine(date.fromisoformat(found["day"]), _clock(found), zone)
    except ValueError:
        pass
    raise misfit(value, kind, "write one such as `2026-01-05 09:05:00`")


def _clock(found: re.Match[str]) -> time:
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    return time(hour, minute, second, int((found["fraction"] or "").ljust(6, "0")))


def _from_json(value: object) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, parse_float=Decimal)
    except ValueError:
        raise MisfitError((), f"{shortened(value)} is not JSON") from None
