"""Avro schemas without a JVM: what is wrong with one, which columns Spark makes of it, options that hold one.

The rules of the types are those of Spark's `SchemaConverters`, tried against it.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from gem_bundle.ddl import Mistake, SchemaError, dotted
from gem_bundle.diagnostics import nearest
from gem_bundle.facts import Column
from gem_bundle.schema import DataType, StructField, type_of
from gem_bundle.types import TextFile

if TYPE_CHECKING:
    from collections.abc import Mapping

Way = tuple[str | int, ...]
"""The way to a part of a schema: keys, and numbers in lists."""

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
_MAPPINGS = {
    "array": '`{"type": "array", "items": "int"}`',
    "map": '`{"type": "map", "values": "int"}`',
    "record": '`{"type": "record", "name": "R", "fields": […]}`',
    "enum": '`{"type": "enum", "name": "E", "symbols": ["A"]}`',
    "fixed": '`{"type": "fixed", "name": "F", "size": 16}`',
}
# What Spark and others call a type.
_ELSEWHERE = {
    **dict.fromkeys(("integer", "int32", "smallint", "tinyint", "short"), "`int`"),
    **dict.fromkeys(("bigint", "int64"), "`long`"),
    **dict.fromkeys(("float64", "number"), "`double`"),
    **dict.fromkeys(("float32", "real"), "`float`"),
    **dict.fromkeys(("text", "str", "varchar"), "`string`"),
    **dict.fromkeys(("binary", "bytea", "blob"), "`bytes`"),
    "bool": "`boolean`",
    "void": "`null`",
    "date": '`{"type": "int", "logicalType": "date"}`',
    **dict.fromkeys(("timestamp", "datetime"), '`{"type": "long", "logicalType": "timestamp-micros"}`'),
    "decimal": '`{"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}`',
    "struct": _MAPPINGS["record"],
    "list": _MAPPINGS["array"],
}
_TYPES = (
    "Types are `null`, `boolean`, `int`, `long`, `float`, `double`, `bytes`, `string`, those that the schema "
    "names, and objects with a `type`."
)
_NAME = re.compile(r"[^\W\d]\w*\Z")
_MOST_DIGITS = 38
# Of JSON: who reads it needs up to four calls for each, and Python has a thousand.
_MOST_LEVELS = 150

_BLANKS = " \t\r\n"

# What has no end goes on to the end of all: to look for others behind it would take for ever.
_TEXT_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"?|/\*(?:.*?\*/|.*)|//[^\r\n]*', re.DOTALL)
_PRINTED = re.compile(r"[^\r\n]")

__all__ = [
    "AvroSchema",
    "AvroSchemaError",
    "DeclaredAvro",
    "SparkAvroFile",
    "SparkAvroText",
    "avro_schema",
    "avro_text",
    "without_comments",
]


class AvroSchemaError(ValueError):
    """What is wrong with an Avro schema, as a sentence without its end.

    Args:
        said: What it is.
        way: The way to the part that is wrong.
        hint: What to do about it, where that is known.
        start: Where in the text something stands that no JSON has.
    """

    def __init__(self, said: str, way: Way = (), hint: str = "", start: int | None = None) -> None:
        super().__init__(said, way, hint, start)
        self.said = said
        self.way = way
        self.hint = hint
        self.start = start

    def __str__(self) -> str:
        return f"at `{dotted(self.way)}`: {self.said}" if self.way else self.said


class DeclaredAvro:
    """An Avro schema, whether Spark has types for it or not.

    Args:
        text: The schema, as JSON.

    Raises:
        AvroSchemaError: When it is none.
    """

    def __init__(self, text: str) -> None:
        try:
            self._schema = json.loads(text)
        except RecursionError:
            raise AvroSchemaError("it is nested too deeply") from None
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            said = f"it isn't JSON at {where}: {error.msg[:1].lower()}{error.msg[1:]}"
            raise AvroSchemaError(said, start=error.pos) from None
        if _is_deeper(self._schema, _MOST_LEVELS):
            raise AvroSchemaError("it is nested too deeply")
        self._names: dict[str, Mapping[str, Any]] = {}
        self._uses: list[tuple[str, str, Way]] = []
        self._declare(self._schema, "", ())
        for full, name, at in self._uses:
            if full not in self._names:
                raise AvroSchemaError(f"there is no type `{name}`", at, self._near(name))
        self.text = text

    def _near(self, name: str) -> str:
        """What was meant by the name of a type that there isn't."""
        known = _ELSEWHERE.get(name.lower())
        if known:
            return f"Avro's type is {known}."
        near = nearest(name, (*_PRIMITIVES, *self._names, "array", "map", *_NAMED - {"error"}))
        if near in _MAPPINGS:
            return f"Write it as an object: {_MAPPINGS[near]}."
        return f"Did you mean `{near}`?" if near else _TYPES

    def _declare(self, part: Any, space: str, at: Way) -> None:
        """Check a part, and remember the types that it names."""
        if isinstance(part, str):
            if part not in _PRIMITIVES:
                self._uses.append((_full(part, space), part, at))
        elif isinstance(part, list):
            self._declare_union(part, space, at)
        elif isinstance(part, dict) and isinstance(part.get("type"), str):
            self._declare_mapping(part, space, at)
        elif isinstance(part, dict) and at and isinstance(part.get("type"), dict | list):
            raise AvroSchemaError("`type` has to be a name here; write what is in it instead", at)
        else:
            raise AvroSchemaError("a type is a name, a list or an object with a `type`", at)

    def _declare_union(self, branches: list[Any], space: str, at: Way) -> None:
        seen: set[str] = set()
        for number, branch in enumerate(branches):
            here = (*at, number)
            if isinstance(branch, list):
                raise AvroSchemaError("a union can't stand in a union", here)
            self._declare(branch, space, here)
            kind = branch["type"] if isinstance(branch, dict) else branch
            if isinstance(branch, dict) and kind in _NAMED:
                kind = _full(str(branch["name"]), str(branch.get("namespace", space)))
            elif kind not in {*_PRIMITIVES, "array", "map"}:
                kind = _full(kind, space)
            if kind in seen:
                raise AvroSchemaError(f"`{kind}` is in the union twice", here)
            seen.add(kind)

    def _declare_mapping(self, part: Mapping[str, Any], space: str, at: Way) -> None:
        kind = part["type"]
        if kind in _NAMED:
            name = part.get("name")
            if not isinstance(name, str):
                raise AvroSchemaError(f"the {kind} has no `name`", at)
            full = _full(name, str(part.get("namespace") or space))
            if not all(map(_NAME.match, full.split("."))) or full in _PRIMITIVES:
                raise AvroSchemaError(f"`{full}` is no name for a type", at)
            if full in self._names:
                raise AvroSchemaError(f"the type `{full}` is there twice", at)
            self._names[full] = part
            self._declare_named(part, kind, full, at)
        elif kind in {"array", "map"}:
            below = "items" if kind == "array" else "values"
            if below not in part:
                raise AvroSchemaError(f"the {kind} has no `{below}`", at)
            self._declare(part[below], space, (*at, below))
        else:
            self._declare(kind, space, (*at, "type"))

    def _declare_named(self, part: Mapping[str, Any], kind: str, full: str, at: Way) -> None:
        if kind == "fixed":
            size = part.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise AvroSchemaError(f"the fixed `{full}` needs a `size`, a number of bytes", at)
        elif kind == "enum":
            symbols = part.get("symbols")
            if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
                raise AvroSchemaError(f"the enum `{full}` needs `symbols`, a list of names", at)
            for symbol in symbols:
                if not _NAME.match(symbol) or symbols.count(symbol) > 1:
                    raise AvroSchemaError(f"`{symbol}` is no symbol, or is there twice", at)
        else:
            self._declare_fields(part, full, at)

    def _declare_fields(self, part: Mapping[str, Any], full: str, at: Way) -> None:
        fields = part.get("fields")
        if not isinstance(fields, list):
            raise AvroSchemaError(f"the record `{full}` needs `fields`, a list", at)
        seen: set[str] = set()
        for number, field in enumerate(fields):
            here = (*at, "fields", number)
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise AvroSchemaError("the field has no `name`", here)
            name = field["name"]
            if not _NAME.match(name) or name in seen:
                raise AvroSchemaError(f"`{name}` is no name for a field, or is there twice", here)
            if "type" not in field:
                raise AvroSchemaError(f"the field `{name}` has no `type`", here)
            seen.add(name)
            # A field's own type is where it stands, so an object is a type like any other.
            self._declare(field["type"], full.rpartition(".")[0], (*here, "type"))


class AvroSchema(DeclaredAvro):
    """An Avro schema that Spark has types for.

    Args:
        text: The schema, as JSON.

    Raises:
        AvroSchemaError: When it is none, or one that Spark doesn't take.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
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


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether objects and lists lie within each other on more levels than so many."""
    inside = [value]
    for _ in range(levels + 1):
        inside = [
            below
            for part in inside
            if isinstance(part, dict | list)
            for below in (part.values() if isinstance(part, dict) else part)
        ]
        if not inside:
            return False
    return True


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _checked(value: Any, kind: type[DeclaredAvro]) -> Any:
    """The text of a schema that is given as one or as YAML.

    Raises:
        SchemaError: With the place of what is wrong.
    """
    if not isinstance(value, str | dict | list):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    try:
        kind(text)
    except AvroSchemaError as error:
        if text is value:
            start, word = _place(text, error)
            mistake = Mistake(str(error), error.hint, start, word)
        else:
            mistake = Mistake(error.said, error.hint, 0, "", error.way)
        raise SchemaError(mistake) from None
    return text


def without_comments(text: str) -> str:
    """A schema with blanks in the place of comments: Avro reads files that have some, and JSON has none."""

    def blanked(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else _PRINTED.sub(" ", found[0])

    return _TEXT_OR_COMMENT.sub(blanked, text)


def _check_file(text: str) -> str:
    text = without_comments(text)
    try:
        avro_schema(text)
    except AvroSchemaError as error:
        raise ValueError(f"this is no Avro schema that Spark takes: {error}") from None
    return text


def _place(text: str, error: AvroSchemaError) -> tuple[int, str]:
    """Where in a text that is wrong which an error tells, and what stands there."""
    if error.start is not None:
        return error.start, text[error.start : error.start + 1].strip()
    start = _after_blanks(text, 0)
    for step in error.way:
        start = _start_of(text, start, step)
    # Of an object and a list, the bracket.
    return start, text[start] if text[start] in "{[" else text[start : _end_of(text, start)]


def _start_of(text: str, start: int, step: str | int) -> int:
    """Where in an object or a list one of its values begins; of a key that is there twice, the last."""
    found, number, in_list = start, 0, text[start] == "["
    at = _after_blanks(text, start + 1)
    while text[at] not in "}]":
        key: str | int = number
        if not in_list:
            key, at = _DECODER.raw_decode(text, at)
            at = _after_blanks(text, _after_blanks(text, at) + 1)
        if key == step:
            found = at
        at = _after_blanks(text, _end_of(text, at))
        number += 1
        if text[at] == ",":
            at = _after_blanks(text, at + 1)
    return found


def _end_of(text: str, start: int) -> int:
    end: int = _DECODER.raw_decode(text, start)[1]
    return end


def _after_blanks(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _BLANKS:
        at += 1
    return at


_DECODER = json.JSONDecoder()
_TEXT_OR_YAML = WithJsonSchema({"type": ["string", "object", "array"]})


def avro_text(value: Any) -> Any:
    """An Avro schema as JSON in a text, or as YAML, whether Spark has types for it or not.

    Args:
        value: What the pipeline file gives.

    Returns:
        The schema as JSON; what is neither a text nor YAML as it came.

    Raises:
        SchemaError: With the place of what is wrong.
    """
    return _checked(value, kind=DeclaredAvro)


SparkAvroText = Annotated[str, BeforeValidator(partial(_checked, kind=AvroSchema)), _TEXT_OR_YAML]
"""An Avro schema that Spark has types for, as JSON in a text, or as YAML."""

SparkAvroFile = Annotated[TextFile, AfterValidator(_check_file)]
"""A file with an Avro schema that Spark has types for; the gem reads the schema in it."""
