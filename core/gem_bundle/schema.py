"""What a schema in DDL says, without a JVM: for gems whose rows have declared columns.

Types are written as Spark writes them back: ``long`` is ``bigint``, ``decimal`` is ``decimal(10,0)``.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from gem_bundle.facts import Column
from gem_bundle.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "DataType",
    "SchemaOptions",
    "StructField",
    "columns_of",
    "differ_for_certain",
    "fields_of",
    "quoted",
    "schema_of",
    "type_of",
]

_T = TypeVar("_T")

# Spark's other names of a type (SQL reference: Data Types).
_SAME = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "character": "char",
    "timestamp_ltz": "timestamp",
}
_DEFAULT_ARGUMENTS: dict[str, tuple[int, ...]] = {"decimal": (10, 0), "time": (6,)}
_INTERVAL_UNITS = frozenset({"year", "month", "day", "hour", "minute", "second"})
_TOKEN = re.compile(
    r"\s*(?P<token>`(?:[^`]|``)+`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|[<>(),:])", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class DataType:
    """A Spark type.

    Args:
        name: ``bigint``, ``decimal``, ``array``, ``interval day to second`` …
        arguments: The numbers in brackets: precision and scale of a decimal, the length of a char.
        parts: The type of an array's elements, or of a map's keys and values.
        fields: The fields of a struct.
    """

    name: str
    arguments: tuple[int, ...] = ()
    parts: "tuple[DataType, ...]" = ()
    fields: "tuple[StructField, ...]" = ()

    def __str__(self) -> str:
        if self.name == "struct":
            return f"struct<{', '.join(f'{quoted(f.name)}: {f.type}' for f in self.fields)}>"
        if self.parts:
            return f"{self.name}<{', '.join(map(str, self.parts))}>"
        if self.arguments:
            return f"{self.name}({','.join(map(str, self.arguments))})"
        return self.name


@dataclass(frozen=True, slots=True)
class StructField:
    """A column of a schema or a field of a struct."""

    name: str
    type: DataType
    nullable: bool = True


class SchemaOptions(Options):
    """Options with one called ``schema``: derive from this instead of `Options`.

    pydantic's `BaseModel` has a method of that name, long deprecated, and warns when a field hides it.
    Here it is out of the way.
    """

    if not TYPE_CHECKING:

        class _Absent:
            def __get__(self, instance: object, owner: type) -> Any:
                raise AttributeError("schema")

        schema: ClassVar = _Absent()


def fields_of(schema: str) -> tuple[StructField, ...] | None:
    """The columns of a schema in DDL with their types taken apart.

    Args:
        schema: ``page string, at timestamp NOT NULL COMMENT 'when'``.

    Returns:
        The columns, or None when this is no DDL that can be read without Spark.
    """
    return _parsed(schema, lambda reader: reader.fields(end=None))


def columns_of(schema: str) -> tuple[Column, ...] | None:
    """The columns of a schema in DDL, for a gem's `infer`; None when they can't be known."""
    fields = fields_of(schema)
    return None if fields is None else tuple(Column(f.name, str(f.type)) for f in fields)


def type_of(text: str) -> DataType | None:
    """A type in DDL taken apart (``array<long>``); None when it can't be read without Spark."""
    return _parsed(text, lambda reader: reader.type())


_FAMILIES = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), "time"),
    **dict.fromkeys(("boolean", "binary", "array", "map", "struct"), ""),
}
_COMPOSED = frozenset({"array", "map", "struct"})
_ATOMIC = frozenset(_FAMILIES) - _COMPOSED | {"string", "char", "varchar"}


_IN_JSON = frozenset(
    {
        *("string", "binary", "boolean", "date", "timestamp", "timestamp_ntz", "variant"),
        *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    }
)


def with_article(kind: DataType | str | None) -> str:
    """A type as a sentence needs it: ``an int``, ``a string``.

    Args:
        kind: The type.
    """
    return f"an {kind}" if str(kind)[:1].lower() in set("aeiou") else f"a {kind}"


def differ_for_certain(left: str | None, right: str | None) -> bool:
    """Whether two types can't become one, whatever `spark.sql.ansi.enabled` says: as in a union.

    Args:
        left: A type in DDL, or None when it isn't known.
        right: The other one.

    Returns:
        True when Spark certainly refuses; False where it takes them, or where that can't be told.
    """
    kinds = [None if text is None else type_of(text) for text in (left, right)]
    first, second = kinds
    if first is None or second is None:
        return False
    names = {first.name, second.name}
    if names & _COMPOSED:
        return len(names) > 1 and names <= _ATOMIC | _COMPOSED
    families = {_FAMILIES.get(name) or name for name in names}
    return len(families) > 1 and families <= {"number", "time", "boolean", "binary"}


def schema_of(columns: "Iterable[Column]") -> str:
    """The DDL of columns whose types are known."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)


def columns_of_json(schema: "Mapping[str, Any]") -> tuple[Column, ...]:
    """The columns of a schema in Spark's JSON, as Delta's log and the footers of Parquet files have it.

    Args:
        schema: The schema, taken apart. A column whose type isn't known here has none.
    """
    kinds = [(str(entry["name"]), _type_of_field(entry)) for entry in schema["fields"]]
    return tuple(Column(name, None if kind is None else str(kind)) for name, kind in kinds)


def type_of_json(kind: "str | Mapping[str, Any]") -> DataType | None:
    """A type in Spark's JSON; None where it isn't known here.

    Args:
        kind: The name of a simple type, or a mapping with the ``type`` of a composed one and its parts.
    """
    if isinstance(kind, str):
        simple = type_of(kind)
        return simple if simple is not None and simple.name in _IN_JSON else None
    if kind["type"] == "struct":
        fields = [(str(entry["name"]), _type_of_field(entry)) for entry in kind["fields"]]
        made = tuple(StructField(name, found) for name, found in fields if found is not None)
        return DataType("struct", fields=made) if len(made) == len(fields) else None
    keys = {"array": ("elementType",), "map": ("keyType", "valueType")}.get(kind["type"], ())
    parts = [type_of_json(kind[key]) for key in keys]
    found = tuple(part for part in parts if part is not None)
    return DataType(kind["type"], parts=found) if keys and len(found) == len(keys) else None


def _type_of_field(entry: "Mapping[str, Any]") -> DataType | None:
    """The type of a field; None where it has a collation, which stands beside it."""
    return None if "__COLLATIONS" in entry.get("metadata", {}) else type_of_json(entry["type"])


def quoted(name: str) -> str:
    """A name as DDL takes it: in backquotes where it isn't a plain word."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else f"`{name.replace('`', '``')}`"


def _parsed(text: str, parse: "Callable[[_Reader], _T]") -> _T | None:
    try:
        reader = _Reader(text)
        found = parse(reader)
        reader.expect("")
    except _Unreadable:
        return None
    return found


class _Unreadable(Exception):  # noqa: N818 (it never leaves this module)
    """This is no DDL, or DDL that only Spark knows."""


class _Reader:
    """Reads DDL from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise _Unreadable
            self._tokens.append(match["token"])
            position = match.end()
        self._tokens.append("")
        self._at = 0

    def fields(self, end: str | None) -> tuple[StructField, ...]:
        """Fields with commas between them, up to a closing bracket or to the end of the text."""
        found = [self._field()]
        while self.take(","):
            found.append(self._field())
        if end is not None:
            self.expect(end)
        return tuple(found)

    def _field(self) -> StructField:
        name = self._name()
        self.take(":")
        kind = self.type()
        nullable = not self._words("not", "null")
        if self._words("comment") and self._next()[:1] not in {"'", '"'}:
            raise _Unreadable
        return StructField(name, kind, nullable)

    def _name(self) -> str:
        token = self._next()
        if token.startswith("`"):
            return token[1:-1].replace("``", "`")
        if not re.fullmatch(r"\w+", token):
            raise _Unreadable
        return token

    def type(self) -> DataType:
        """One type."""
        word = self._next().lower()
        if not re.fullmatch(r"[a-z_]\w*", word):
            raise _Unreadable
        name = _SAME.get(word, word)
        if name in {"array", "map"}:
            self.expect("<")
            parts = [self.type()]
            if name == "map":
                self.expect(",")
                parts.append(self.type())
            self.expect(">")
            return DataType(name, parts=tuple(parts))
        if name == "struct":
            self.expect("<")
            if self.take(">"):
                return DataType(name)
            return DataType(name, fields=self.fields(end=">"))
        if name == "interval":
            return DataType(" ".join([name, *self._interval()]))
        if name == "string" and self._words("collate"):
            return DataType(f"string collate {self._next()}")
        return DataType(name, self._arguments(name))

    def _interval(self) -> list[str]:
        if self._peek().lower() not in _INTERVAL_UNITS:
            return []
        units = [self._next().lower()]
        if self._words("to"):
            units += ["to", self._next().lower()]
        return units

    def _arguments(self, name: str) -> tuple[int, ...]:
        default = _DEFAULT_ARGUMENTS.get(name, ())
        if not self.take("("):
            return default
        found = [self._number()]
        while self.take(","):
            found.append(self._number())
        self.expect(")")
        return (*found, *default[len(found) :])

    def _number(self) -> int:
        token = self._next()
        if not token.isdecimal():
            raise _Unreadable
        return int(token)

    def _words(self, *words: str) -> bool:
        """Take these words if they come next."""
        following = self._tokens[self._at : self._at + len(words)]
        if [token.lower() for token in following] != list(words):
            return False
        self._at += len(words)
        return True

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._tokens[self._at]
        if token:
            self._at += 1
        return token

    def take(self, token: str) -> bool:
        """Take a token if it comes next."""
        if self._peek() != token or not token:
            return False
        self._at += 1
        return True

    def expect(self, token: str) -> None:
        """Take a token that must come next; an empty one is the end of the text."""
        if self._next() != token:
            raise _Unreadable
