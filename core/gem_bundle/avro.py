"""Avro schemas without a JVM: what is wrong with one, and which columns Spark makes of it.

The rules of the types are those of Spark's `SchemaConverters`, tried against it.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gem_bundle.facts import Column
from gem_bundle.schema import DataType, StructField, type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRIMITIVES = {
    "null": "void",
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
}
# What Spark 4.0 has as a number and 4.1 as a time, and what Spark writes for types that Avro hasn't.
_UNCERTAIN = frozenset({("long", "time-micros"), ("long", "custom-decimal")})
_CATALYST = "spark.sql.catalyst.type"
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_NAME = re.compile(r"[^\W\d]\w*\Z")
_MOST_DIGITS = 38

__all__ = ["AvroSchema", "AvroSchemaError", "avro_schema"]


class AvroSchemaError(ValueError):
    """What is wrong with an Avro schema, as a sentence without its end."""


class AvroSchema:
    """An Avro schema.

    Args:
        text: The schema, as JSON.

    Raises:
        AvroSchemaError: When it is none, or one that Spark doesn't take.
    """

    def __init__(self, text: str) -> None:
        try:
            self._schema = json.loads(text)
        except RecursionError:
            raise AvroSchemaError("it is nested too deeply") from None
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            raise AvroSchemaError(
                f"it isn't JSON at {where}: {error.msg[:1].lower()}{error.msg[1:]}"
            ) from None
        self._names: dict[str, Mapping[str, Any]] = {}
        self._uses: list[tuple[str, str]] = []
        self._declare(self._schema, "", "")
        for name, at in self._uses:
            if name not in self._names:
                raise AvroSchemaError(f"{_at(at)}there is no type `{name}`")
        self.text = text
        self.type = self._type_of(self._schema, "", ())
        """What Spark makes of it; None where that isn't certain."""

    @property
    def columns(self) -> tuple[Column, ...] | None:
        """The fields of the record that it describes, those without a type whose type isn't certain.

        None where it is no record.
        """
        record = self.record
        if record is None:
            return None
        full = _full(record["name"], str(record.get("namespace") or ""))
        kinds = self._types_of_fields(record, full, ())
        return tuple(Column(name, None if kind is None else str(kind)) for name, kind in kinds)

    @property
    def name(self) -> str | None:
        """The full name of that record."""
        found = self.record
        return None if found is None else _full(found["name"], str(found.get("namespace") or ""))

    @property
    def record(self) -> Mapping[str, Any] | None:
        """The record that it describes, which may be null; None where it describes something else."""
        branches = self._schema if isinstance(self._schema, list) else [self._schema]
        some = [branch for branch in branches if branch != "null"]
        found = some[0] if len(some) == 1 and isinstance(some[0], dict) else {}
        return found if found.get("type") in {"record", "error"} else None

    def _declare(self, part: Any, space: str, at: str) -> None:
        """Check a part, and remember the types that it names."""
        if isinstance(part, str):
            if part not in _PRIMITIVES:
                self._uses.append((_full(part, space), at))
        elif isinstance(part, list):
            self._declare_union(part, space, at)
        elif isinstance(part, dict) and isinstance(part.get("type"), str):
            self._declare_mapping(part, space, at)
        elif isinstance(part, dict) and at and isinstance(part.get("type"), dict | list):
            raise AvroSchemaError(f"{_at(at)}`type` has to be a name here; write what is in it instead")
        else:
            raise AvroSchemaError(f"{_at(at)}a type is a name, a list or an object with a `type`")

    def _declare_union(self, branches: list[Any], space: str, at: str) -> None:
        seen: set[str] = set()
        for number, branch in enumerate(branches):
            here = f"{at}[{number}]"
            if isinstance(branch, list):
                raise AvroSchemaError(f"{_at(here)}a union can't stand in a union")
            self._declare(branch, space, here)
            kind = branch["type"] if isinstance(branch, dict) else branch
            if isinstance(branch, dict) and kind in _NAMED:
                kind = _full(str(branch["name"]), str(branch.get("namespace", space)))
            elif kind not in {*_PRIMITIVES, "array", "map"}:
                kind = _full(kind, space)
            if kind in seen:
                raise AvroSchemaError(f"{_at(here)}`{kind}` is in the union twice")
            seen.add(kind)

    def _declare_mapping(self, part: Mapping[str, Any], space: str, at: str) -> None:
        kind = part["type"]
        if kind in _NAMED:
            name = part.get("name")
            if not isinstance(name, str):
                raise AvroSchemaError(f"{_at(at)}the {kind} has no `name`")
            full = _full(name, str(part.get("namespace") or space))
            if not all(map(_NAME.match, full.split("."))) or full in _PRIMITIVES:
                raise AvroSchemaError(f"{_at(at)}`{full}` is no name for a type")
            if full in self._names:
                raise AvroSchemaError(f"{_at(at)}the type `{full}` is there twice")
            self._names[full] = part
            self._declare_named(part, kind, full, at)
        elif kind in {"array", "map"}:
            below = "items" if kind == "array" else "values"
            if below not in part:
                raise AvroSchemaError(f"{_at(at)}the {kind} has no `{below}`")
            self._declare(part[below], space, _below(at, below))
        else:
            self._declare(kind, space, at)

    def _declare_named(self, part: Mapping[str, Any], kind: str, full: str, at: str) -> None:
        if kind == "fixed":
            size = part.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise AvroSchemaError(f"{_at(at)}the fixed `{full}` needs a `size`, a number of bytes")
        elif kind == "enum":
            symbols = part.get("symbols")
            if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
                raise AvroSchemaError(f"{_at(at)}the enum `{full}` needs `symbols`, a list of names")
            for symbol in symbols:
                if not _NAME.match(symbol) or symbols.count(symbol) > 1:
                    raise AvroSchemaError(f"{_at(at)}`{symbol}` is no symbol, or is there twice")
        else:
            self._declare_fields(part, full, at)

    def _declare_fields(self, part: Mapping[str, Any], full: str, at: str) -> None:
        fields = part.get("fields")
        if not isinstance(fields, list):
            raise AvroSchemaError(f"{_at(at)}the record `{full}` needs `fields`, a list")
        seen: set[str] = set()
        for number, field in enumerate(fields):
            here = _below(at, f"fields[{number}]")
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise AvroSchemaError(f"{_at(here)}the field has no `name`")
            name = field["name"]
            if not _NAME.match(name) or name in seen:
                raise AvroSchemaError(f"{_at(here)}`{name}` is no name for a field, or is there twice")
            if "type" not in field:
                raise AvroSchemaError(f"{_at(here)}the field `{name}` has no `type`")
            seen.add(name)
            # A field's own type is where it stands, so an object is a type like any other.
            self._declare(field["type"], full.rpartition(".")[0], _below(here, "type"))

    def _type_of(self, part: Any, space: str, inside: tuple[str, ...]) -> DataType | None:
        if isinstance(part, list):
            return self._type_of_union(part, space, inside)
        kind = part if isinstance(part, str) else part["type"]
        if kind in _PRIMITIVES:
            return _simple(kind, part if isinstance(part, dict) else {})
        if kind in {"array", "map"}:
            value = self._type_of(part["items" if kind == "array" else "values"], space, inside)
            text = type_of("string")
            assert text is not None
            if value is None:
                return None
            return DataType(kind, parts=(value,) if kind == "array" else (text, value))
        if kind not in _NAMED:
            full = _full(kind, space)
            found = self._names[full]
        else:
            found, full = part, _full(part["name"], str(part.get("namespace") or space))
        if found["type"] == "enum":
            return type_of("string")
        if found["type"] == "fixed":
            return _simple("fixed", found)
        if full in inside:
            raise AvroSchemaError(f"the record `{full}` holds itself, which Spark has no type for")
        fields = self._types_of_fields(found, full, inside)
        made = tuple(StructField(name, kind) for name, kind in fields if kind is not None)
        return DataType("struct", fields=made) if len(made) == len(fields) else None

    def _types_of_fields(
        self, record: Mapping[str, Any], full: str, inside: tuple[str, ...]
    ) -> list[tuple[str, DataType | None]]:
        below, here = full.rpartition(".")[0], (*inside, full)
        return [(each["name"], self._type_of(each["type"], below, here)) for each in record["fields"]]

    def _type_of_union(self, branches: list[Any], space: str, inside: tuple[str, ...]) -> DataType | None:
        some = [each for each in branches if each not in ("null", {"type": "null"})]
        if len(some) == 1:
            return self._type_of(some[0], space, inside)
        kinds = [each["type"] if isinstance(each, dict) else each for each in some]
        for pair, wide in (({"int", "long"}, "bigint"), ({"float", "double"}, "double")):
            if len(kinds) == 2 and set(kinds) == pair:
                return type_of(wide)
        found = [self._type_of(each, space, inside) for each in some]
        made = tuple(StructField(f"member{n}", kind) for n, kind in enumerate(found) if kind is not None)
        return DataType("struct", fields=made) if len(made) == len(found) else None


@lru_cache(maxsize=256)
def avro_schema(text: str) -> AvroSchema:
    """An Avro schema, which is read once however often it is asked for.

    Args:
        text: The schema, as JSON.

    Raises:
        AvroSchemaError: When it is none, or one that Spark doesn't take.
    """
    return AvroSchema(text)


def _simple(kind: str, part: Mapping[str, Any]) -> DataType | None:
    logical = part.get("logicalType")
    if _CATALYST in part or (kind, logical) in _UNCERTAIN:
        return None
    if logical == "decimal" and kind in {"bytes", "fixed"}:
        digits, scale = part.get("precision"), part.get("scale", 0)
        if not isinstance(digits, int) or not isinstance(scale, int):
            return type_of("binary")
        fits = kind == "bytes" or 10**digits <= 1 << max(8 * part["size"] - 1, 0)
        if not (digits > 0 and 0 <= scale <= digits and fits):
            return type_of("binary")
        if digits > _MOST_DIGITS:
            raise AvroSchemaError(f"a decimal has {digits} digits, and Spark's have at most {_MOST_DIGITS}")
        return type_of(f"decimal({digits},{scale})")
    return type_of("binary" if kind == "fixed" else _LOGICAL.get((kind, str(logical)), _PRIMITIVES[kind]))


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _below(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _at(at: str) -> str:
    return f"at `{at}`: " if at else ""
