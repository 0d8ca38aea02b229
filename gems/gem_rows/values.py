"""Whether a value of the pipeline file fits a Spark type, and how it is written as JSON for Spark.

Spark reads the JSON with the schema, so times without a zone are in the session's time zone. What its JSON
reader would change in silence is refused here: numbers too large for their type, digits that a
decimal can't hold, fields that a struct doesn't have.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

from gem_bundle import Column
from gem_bundle.diagnostics import suggest
from gem_bundle.schema import DataType, StructField

_LARGEST_FLOAT = 3.4028234663852886e38
_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}


class Misfit(ValueError):  # noqa: N818 (it becomes a sentence, and no error of its own)
    """A value doesn't fit.

    Args:
        problem: What is wrong, as the end of a sentence.
        path: Where: names of columns and fields, and positions in arrays.
    """

    def __init__(self, problem: str, *path: str | int) -> None:
        super().__init__(problem, *path)
        self.problem = problem
        self.path = path

    def within(self, step: str | int) -> Misfit:
        """The same, seen from one level further up."""
        return Misfit(self.problem, step, *self.path)

    def __str__(self) -> str:
        place = ""
        for step in self.path:
            place += f"[{step}]" if isinstance(step, int) else f".{step}"
        return f"`{place.removeprefix('.')}` {self.problem}" if place else self.problem


def to_json(value: object, kind: DataType) -> Any:
    """A value as JSON that Spark reads as exactly this value.

    Raises:
        Misfit: When the value doesn't fit the type.
    """
    if value is None:
        return None
    convert = _CONVERTERS.get(kind.name)
    return convert(value, kind) if convert else _as_it_is(value)


def fields_to_json(value: object, fields: Iterable[StructField]) -> dict[str, Any]:
    """A row, or the value of a struct: a mapping by names, or a list by positions.

    Raises:
        Misfit: When a value doesn't fit, is missing though it may not be null, or has no field.
    """
    fields = tuple(fields)
    names = [field.name for field in fields]
    if isinstance(value, list | tuple):
        if len(value) != len(names):
            raise Misfit(f"has {len(value)} values for {len(names)} columns ({', '.join(names)})")
        value = dict(zip(names, value, strict=True))
    if not isinstance(value, Mapping):
        raise Misfit(f"must be a mapping of columns to values, or a list of values, not {_shown(value)}")
    for name in value:
        if name not in names:
            raise Misfit(
                f"is no column of the schema. {suggest(str(name), names, what='columns')}", str(name)
            )
    found: dict[str, Any] = {}
    for field in fields:
        if value.get(field.name) is None and not field.nullable:
            raise Misfit("is missing or null, and the schema says NOT NULL", field.name)
        try:
            found[field.name] = to_json(value.get(field.name), field.type)
        except Misfit as misfit:
            raise misfit.within(field.name) from None
    return found


def inferred(rows: Iterable[object]) -> tuple[Column, ...]:
    """The columns of rows without a schema, from simple values, in the order they first appear.

    Raises:
        Misfit: When a row has no names, or the type of a column can't be told.
    """
    kinds: dict[str, str | None] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            raise Misfit("rows without names of columns need a `schema`")
        for name, value in row.items():
            kind = None if value is None else _kind(value)
            known = kinds.setdefault(str(name), kind)
            if known is None or {known, kind} == {"bigint", "double"}:
                kinds[str(name)] = kind if known is None else "double"
            elif kind not in {None, known}:
                raise Misfit(f"has values of type {known} and {kind}; give a `schema`", str(name))
    for name, kind in kinds.items():
        if kind is None:
            raise Misfit("is always null, so it needs a type; give a `schema`", name)
    return tuple(Column(name, kind) for name, kind in kinds.items())


def _kind(value: object) -> str:
    simple: dict[type, str] = {
        bool: "boolean",
        int: "bigint",
        float: "double",
        str: "string",
        date: "date",
        datetime: "timestamp",
    }
    try:
        return simple[type(value)]
    except KeyError:
        raise Misfit(f"{_shown(value)} needs a type; give a `schema`") from None


def _string(value: object, kind: DataType) -> str:  # noqa: ARG001 (all converters have both)
    if not isinstance(value, str):
        raise Misfit(f"must be text, not {_shown(value)}; put it in quotes")
    return value


def _boolean(value: object, kind: DataType) -> bool:  # noqa: ARG001
    if not isinstance(value, bool):
        raise Misfit(f"must be true or false, not {_shown(value)}")
    return value


def _integer(value: object, kind: DataType) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Misfit(f"must be a whole number, not {_shown(value)}")
    limit = 1 << _BITS[kind.name]
    if not -limit <= value < limit:
        raise Misfit(f"is too large for the type {kind.name}: {value}")
    return value


def _double(value: object, kind: DataType) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise Misfit(f"must be a number, not {_shown(value)}")
    number = float(value)
    if kind.name == "float" and isfinite(number) and abs(number) > _LARGEST_FLOAT:
        raise Misfit(f"is too large for the type float: {value}")
    return number


def _decimal(value: object, kind: DataType) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise Misfit(f"must be a number, not {_shown(value)}")
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise Misfit(f"must be a number, not {_shown(value)}") from None
    precision, scale = kind.arguments
    if not number.is_finite() or number.copy_abs() >= Decimal(10) ** (precision - scale):
        raise Misfit(f"is too large for the type {kind}: {value}")
    # As text: arithmetic would round to 28 digits.
    text = f"{number:f}"
    if len(text.partition(".")[2].rstrip("0")) > scale:
        raise Misfit(f"has more digits than the type {kind} holds: {value}")
    return text


def _date(value: object, kind: DataType) -> str:  # noqa: ARG001
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    try:
        return date.fromisoformat(_text(value)).isoformat()
    except ValueError:
        raise Misfit(f"must be a date such as `2024-01-31`, not {_shown(value)}") from None


def _timestamp(value: object, kind: DataType) -> str:
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(_text(value))
    except ValueError:
        raise Misfit(f"must be a time such as `2024-01-31T10:00:00`, not {_shown(value)}") from None
    if kind.name == "timestamp_ntz" and moment.tzinfo is not None:
        raise Misfit(f"must be a time without a time zone, not {_shown(value)}")
    return moment.isoformat()


def _binary(value: object, kind: DataType) -> str:  # noqa: ARG001
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    try:
        base64.b64decode(_text(value), validate=True)
    except binascii.Error:
        raise Misfit(f"must be bytes in base64, not {_shown(value)}") from None
    return _text(value)


def _array(value: object, kind: DataType) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise Misfit(f"must be a list, not {_shown(value)}")
    return [_inside(item, kind.parts[0], index) for index, item in enumerate(value)]


def _map(value: object, kind: DataType) -> dict[str, Any]:
    if kind.parts[0].name != "string":
        raise Misfit(
            f"can't be given as rows: Spark reads maps from JSON with keys of type string, not {kind}"
        )
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise Misfit(f"must be a mapping with texts as keys, not {_shown(value)}")
    return {key: _inside(item, kind.parts[1], key) for key, item in value.items()}


def _struct(value: object, kind: DataType) -> dict[str, Any]:
    return fields_to_json(value, kind.fields)


def _inside(value: object, kind: DataType, step: str | int) -> Any:
    try:
        return to_json(value, kind)
    except Misfit as misfit:
        raise misfit.within(step) from None


def _as_it_is(value: object) -> Any:
    """A value of a type that only Spark knows: texts, numbers, and lists and mappings of them."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _as_it_is(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_it_is(item) for item in value]
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else f"`{value}`"


_CONVERTERS: dict[str, Callable[[object, DataType], Any]] = {
    "string": _string,
    "boolean": _boolean,
    **dict.fromkeys(_BITS, _integer),
    "float": _double,
    "double": _double,
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp,
    "binary": _binary,
    "array": _array,
    "map": _map,
    "struct": _struct,
}
