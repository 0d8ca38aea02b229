"""DDL taken apart without a JVM, and what Spark refuses in it: names of types, brackets, commas.

What is taken is what Spark 4.2 takes; which of it older ones lack was found by asking Spark 4.0 and 4.1.
Two names are Spark's alone to judge: that of a collation and the number of a spatial reference system.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
_PLAIN = frozenset(
    {
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "binary", "void"),
        *("timestamp", "timestamp_ntz", "time", "string", "decimal", "interval", "variant"),
    }
)
_NAMES = _PLAIN | frozenset(_SAME) | {"char", "varchar", "array", "map", "struct", "geometry", "geography"}
_SINCE = {"variant": "4.0", "time": "4.1", "geometry": "4.1", "geography": "4.1"}
# What other systems call a type, where that is no slip of the pen.
_ELSEWHERE = {
    **dict.fromkeys(("text", "str", "uuid", "nvarchar", "nchar", "varchar2", "clob", "enum"), "string"),
    **dict.fromkeys(("bool", "bit"), "boolean"),
    **dict.fromkeys(("bytes", "bytea", "blob", "varbinary"), "binary"),
    **dict.fromkeys(("int64", "int8", "bigserial", "uint32", "unsigned"), "bigint"),
    **dict.fromkeys(("int32", "int4", "mediumint", "serial"), "int"),
    **dict.fromkeys(("int16", "int2"), "smallint"),
    **dict.fromkeys(("float64", "float8"), "double"),
    **dict.fromkeys(("float32", "float4"), "float"),
    **dict.fromkeys(("number", "money"), "decimal(38, 9)"),
    **dict.fromkeys(("datetime", "timestamptz"), "timestamp"),
    **dict.fromkeys(("json", "jsonb", "any", "object"), "string"),
    "null": "void",
    "list": "array<…>",
    "dict": "map<…, …>",
    **dict.fromkeys(("row", "record"), "struct<…>"),
}
_DEFAULT_ARGUMENTS: dict[str, tuple[int, ...]] = {"decimal": (10, 0), "time": (6,)}
_UNITS = ("year", "month", "day", "hour", "minute", "second")
_INTERVALS = frozenset(
    {
        *((unit, unit) for unit in _UNITS),
        *(("year", "month"), ("day", "hour"), ("day", "minute"), ("day", "second")),
        *(("hour", "minute"), ("hour", "second"), ("minute", "second")),
    }
)
_MOST_DIGITS = 38
_MOST_TIME_DIGITS = 6
_LARGEST = 2**31 - 1
_TOKEN = re.compile(
    r"`(?:[^`]|``)*`|[rR]'[^']*'|[rR]\"[^\"]*\"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[A-Za-z0-9_]+|[^\s]",
    re.DOTALL,
)
_BLANK = re.compile(r"\s+|--[^\r\n]*")
_NUMBER = re.compile(r"\d+|\d+e\d+|\d+(?:e\d+)?(?:[lsyfd]|bd)", re.IGNORECASE)
_TYPES = (
    "Types are `string`, `boolean`, `int`, `bigint`, `double`, `decimal(10, 2)`, `binary`, `date`, "
    "`timestamp`, `array<…>`, `map<…, …>`, `struct<…>` and some more."
)
_COLUMNS = "Write columns as `name type`, with commas between them."


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
    parts: tuple[DataType, ...] = ()
    fields: tuple[StructField, ...] = ()

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


def literal(text: str) -> str:
    """A text as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quoted(name: str) -> str:
    """A name as DDL takes it: in backquotes where it isn't a plain word."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else f"`{name.replace('`', '``')}`"


class Mistake(NamedTuple):
    """Something that Spark refuses.

    Args:
        message: What is wrong.
        hint: What to do about it.
        start: Where it stands in the text, from 0.
        word: What stands there.
        keys: Of a schema that is a mapping, the way to the value in which it stands: the column whose type
            it is, say.
    """

    message: str
    hint: str
    start: int
    word: str
    keys: tuple[str | int, ...] = ()


class Newer(NamedTuple):
    """A type that not every Spark has.

    Args:
        name: The type as it is written.
        since: The first Spark that has it: ``4.1``.
        start: Where it stands in the text, from 0.
    """

    name: str
    since: str
    start: int


class SchemaError(ValueError):
    """A schema or a type that Spark refuses.

    Args:
        mistakes: All that is wrong with it.
    """

    def __init__(self, *mistakes: Mistake) -> None:
        super().__init__(*mistakes)
        self.mistakes = mistakes

    def __str__(self) -> str:
        return "; ".join(map(_said, self.mistakes))


def _said(mistake: Mistake) -> str:
    return f"at `{dotted(mistake.keys)}`: {mistake.message}" if mistake.keys else mistake.message


def dotted(keys: Iterable[str | int]) -> str:
    """The way to a value as people write it: ``fields[0].type``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")


class Columns(NamedTuple):
    """A schema taken apart.

    Args:
        fields: The columns.
        text: The schema as Spark's own parser takes it: without colons behind the names of columns, which
            only PySpark's does.
        newer: The types in it that not every Spark has.
    """

    fields: tuple[StructField, ...]
    text: str
    newer: tuple[Newer, ...]


class Type(NamedTuple):
    """A type taken apart.

    Args:
        type: The type.
        newer: The types in it that not every Spark has.
        end: Where it ends in the text.
    """

    type: DataType
    newer: tuple[Newer, ...]
    end: int


def read_columns(schema: str, *, lengths: bool = True) -> Columns:
    """The columns of a schema.

    Args:
        schema: ``page string, at timestamp NOT NULL COMMENT 'when'``.
        lengths: Whether it may have texts of a length, which only tables have: ``varchar(20)``.

    Raises:
        SchemaError: Where Spark refuses it.
    """
    return _read_columns(schema, _Reader(schema, lengths=lengths))


def read_hints(hints: str) -> Columns:
    """The types of some columns, and of fields in them.

    Args:
        hints: ``id bigint, user.born date``: columns, and ways to fields with dots. The field of an array's
            elements is ``element``, those of a map ``key`` and ``value``.

    Raises:
        SchemaError: Where Spark refuses a type, or takes something for no name.
    """
    return _read_columns(hints, _Reader(hints, ways=True))


def _read_columns(text: str, reader: _Reader) -> Columns:
    fields = reader.run(reader.columns)
    for colon in reversed(reader.colons):
        text = f"{text[:colon].rstrip()} {text[colon + 1 :].lstrip()}"
    return Columns(fields, text, tuple(reader.newer))


def read_type(text: str, start: int = 0, *, whole: bool = True) -> Type:
    """A type.

    Args:
        text: Where it stands: ``array<long>``.
        start: Where it begins.
        whole: Whether nothing may stand behind it.

    Raises:
        SchemaError: Where Spark refuses it.
    """
    reader = _Reader(text, start)
    found = reader.run(lambda: reader.type_alone(whole=whole))
    return Type(found, tuple(reader.newer), reader.reached)


def read_column(name: str, kind: str, *, lengths: bool = True) -> Columns:
    """A column of a mapping of names to types.

    Args:
        name: Its name.
        kind: Its type, maybe with ``NOT NULL`` and a comment.
        lengths: Whether it may be a text of a length, or have one in it.

    Raises:
        SchemaError: Where Spark refuses it.
    """
    reader = _Reader(kind, key=name, lengths=lengths)
    made = reader.run(lambda: reader.column_of(name))
    return Columns((made,), f"`{name.replace('`', '``')}` {kind}", tuple(reader.newer))


class _Stop(Exception):  # noqa: N818 (it never leaves this module)
    """What follows can't be read."""


class _Token(NamedTuple):
    text: str
    start: int

    @property
    def lower(self) -> str:
        return self.text.lower()

    @property
    def is_name(self) -> bool:
        """Whether it can be the name of a column or a field."""
        plain = re.fullmatch(r"\w+", self.text, re.ASCII) and not _NUMBER.fullmatch(self.text)
        return bool(plain) or (self.text[:1] == "`" and len(self.text) > 1)

    @property
    def name(self) -> str:
        """What it names."""
        return self.text[1:-1].replace("``", "`") if self.text[0] == "`" else self.text

    @property
    def is_text(self) -> bool:
        """Whether it is a text in quotes."""
        return self.text.lstrip("rR")[:1] in {"'", '"'} and len(self.text) > 1


def _tokens(text: str, start: int) -> Iterable[_Token]:
    while start < len(text):
        blank = _BLANK.match(text, start)
        if blank:
            start = blank.end()
        elif text.startswith("/*", start) and (end := _end_of_comment(text, start)) > start:
            start = end
        else:
            match = _TOKEN.match(text, start)
            if match is None:  # pragma: no cover (the last alternative takes any sign)
                return
            yield _Token(match[0], start)
            start = match.end()


def _end_of_comment(text: str, start: int) -> int:
    """Where a comment ends, which may have others in it; one that doesn't end is no comment."""
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return start


class _Reader:
    """Reads DDL from left to right, past what is wrong where it can."""

    def __init__(
        self, text: str, start: int = 0, key: str | None = None, *, ways: bool = False, lengths: bool = True
    ) -> None:
        self._text = text
        self._lengths = lengths
        self._keys = () if key is None else (key,)
        self._ways = ways
        self._tokens = [*_tokens(text, start), _Token("", len(text))]
        self._at = 0
        self._mistakes: list[Mistake] = []
        self._column = ""
        self.newer: list[Newer] = []
        self.colons: list[int] = []

    @property
    def reached(self) -> int:
        """Where what was read ends."""
        if not self._at:
            return self._tokens[0].start
        before = self._tokens[self._at - 1]
        return before.start + len(before.text)

    def run(self, read: Callable[[], _T]) -> _T:
        """What a method reads.

        Raises:
            SchemaError: With all mistakes that were met.
        """
        try:
            found = read()
        except _Stop:
            raise SchemaError(*self._mistakes) from None
        if self._mistakes:
            raise SchemaError(*self._mistakes)
        return found

    def columns(self) -> tuple[StructField, ...]:
        """All columns up to the end of the text; of one that can't be read the next is tried."""
        if not self._peek().text:
            self._say("a schema needs at least one column", _COLUMNS, self._peek())
            raise _Stop
        found: list[StructField] = []
        while True:
            try:
                found.append(self._field(top=True))
                self._end_of_column()
            except _Stop:
                self._skip_to_comma()
            if not self.take(","):
                return tuple(found)

    def column_of(self, name: str) -> StructField:
        """The type of a column, and what may stand behind it."""
        self._column = name
        made = StructField(name, self.type(), self._rest())
        self._end_of_column(last=True)
        return made

    def type_alone(self, *, whole: bool) -> DataType:
        """One type."""
        found = self.type()
        if whole and self._peek().text:
            self._say(f"`{self._peek().text}` can't stand behind a type", "", self._peek())
        return found

    def _end_of_column(self, *, last: bool = False) -> None:
        token = self._peek()
        if not token.text or (token.text == "," and not last):
            return
        following = self._tokens[self._at + 1 : self._at + 2]
        if token.is_name and following and following[0].lower in _NAMES:
            hint = f"Put a comma before `{token.text}`, where the next column begins."
        elif token.text in {">", ")"}:
            self._say(f"`{token.text}` closes nothing", "Remove it.", token)
            raise _Stop
        else:
            hint = "Behind a type may stand `NOT NULL` and `COMMENT 'text'`, before the next column a comma."
        self._say(f"`{_short(token)}` can't stand behind the type of `{self._column}`", hint, token)
        raise _Stop

    def _skip_to_comma(self) -> None:
        depth = 0
        while self._peek().text and (depth > 0 or self._peek().text != ","):
            depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(self._next().text, 0)

    def _field(self, *, top: bool) -> StructField:
        token = self._next()
        what = "column" if top else "field"
        if not token.is_name:
            if token.text in {"", ","}:
                self._say(f"a {what} is missing: there is a comma too many", "Remove it.", token)
            else:
                hint = "A name with other signs than letters of a to z, digits and `_` needs backquotes."
                self._say(f"`{_short(token)}` is no name of a {what}", hint, token)
            self._at -= token.text == ","
            raise _Stop
        name = token.name
        written = quoted(name)
        while top and self._ways and self.take("."):
            inner = self._next()
            if not inner.is_name:
                message = f"the way from `{name}` ends with a dot: there is no name of a field behind it"
                self._say(message, f"Write `{written}.field int`, for example.", token)
                self._at -= inner.text == ","
                raise _Stop
            name, written = f"{name}.{inner.name}", f"{written}.{quoted(inner.name)}"
        if top:
            self._column = name
        colon = self._peek()
        if colon.text == "<" and token.lower in _NAMES:
            hint = f"Write `name {token.text}<…>`; of a struct that is the whole row, its fields alone."
            self._say(f"the {what} of the type `{token.text}` has no name", hint, token)
            raise _Stop
        if colon.start == self.reached and colon.text not in {"", ":", ",", ">"}:
            message = f"a name can't have a `{colon.text[0]}` in it as it stands"
            self._say(message, "Put the whole name in backquotes.", token)
            raise _Stop
        if self.take(":") and top:
            self.colons.append(colon.start)
        if self._peek().text in {"", ",", ">"}:
            hint = f"Write `{written} string`, for example."
            self._say(f"the {what} `{name}` has no type", hint, token)
            raise _Stop
        kind = self.type()
        return StructField(name, kind, self._rest())

    def _rest(self) -> bool:
        """Whether a column may be null; what else is said of it is passed over."""
        nullable = not self._words("not", "null")
        comment = self._peek()
        if self._words("comment"):
            if not self._peek().is_text:
                self._say("a comment is a text in quotes", "Write `COMMENT 'text'`.", comment)
                raise _Stop
            while self._peek().is_text:
                self._at += 1
        return nullable

    def type(self) -> DataType:
        """One type."""
        token = self._next()
        if not re.fullmatch(r"\w+", token.text, re.ASCII) or _NUMBER.fullmatch(token.text):
            shown = f"`{_short(token)}` is no type" if token.text else "a type is missing"
            self._at -= token.text in {",", ">", ")"}
            self._say(shown, "Write a type, for example `string`.", token)
            raise _Stop
        name = _SAME.get(token.lower, token.lower)
        if name not in _NAMES:
            return self._unknown(token)
        if name in _SINCE:
            self.newer.append(Newer(token.text, _SINCE[name], token.start))
        if name in {"array", "map"}:
            return self._composed(name, token)
        if name == "struct":
            self._open(token, "`struct<a: int>`")
            return DataType(name, fields=() if self.take(">") else self._fields())
        if name == "interval":
            return DataType(" ".join([name, *self._interval()]))
        if name in {"geometry", "geography"}:
            return self._spatial(name, token)
        found = DataType(name, self._arguments(name, token))
        return self._with_words(found, token)

    def _fields(self) -> tuple[StructField, ...]:
        found = [self._field(top=False)]
        while self.take(","):
            found.append(self._field(top=False))
        self._close(">")
        return tuple(found)

    def _unknown(self, token: _Token) -> DataType:
        from gem_bundle.diagnostics import nearest

        known, near = _ELSEWHERE.get(token.lower), nearest(token.text, _NAMES)
        hint = f"Did you mean `{near}`?" if near else _TYPES
        if known:
            hint = f"Spark's type is `{known}`."
        self._say(f"there is no type `{token.text}`", hint, token)
        if self._peek().text in {"<", "("}:
            depth = 0
            while self._peek().text:
                depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(self._next().text, 0)
                if depth == 0:
                    break
        return DataType(token.lower)

    def _composed(self, name: str, token: _Token) -> DataType:
        self._open(token, "`array<int>`" if name == "array" else "`map<string, int>`")
        parts = [self.type()]
        if name == "map":
            if not self.take(","):
                message = "a map needs two types: that of its keys and that of its values"
                self._say(message, "Write `map<string, int>`.", token)
                raise _Stop
            parts.append(self.type())
        self._close(">")
        return DataType(name, parts=tuple(parts))

    def _interval(self) -> list[str]:
        first = self._peek()
        if first.lower not in _UNITS:
            return []
        self._at += 1
        last = first
        if self._words("to"):
            last = self._next()
            if (first.lower, last.lower) not in _INTERVALS or first.lower == last.lower:
                message = f"there is no interval from `{first.text}` to `{last.text}`"
                self._say(message, "Write `interval day to second` or `interval year to month`.", first)
            return [first.lower, "to", last.lower]
        return [first.lower]

    def _spatial(self, name: str, token: _Token) -> DataType:
        if not self.take("("):
            message = f"`{name}` needs its spatial reference system in brackets"
            self._say(message, f"Write `{name}(4326)`.", token)
            raise _Stop
        inner = self._next()
        if inner.lower != "any" and not inner.text.isdecimal():
            self._say(f"`{_short(inner)}` is no spatial reference system", f"Write `{name}(4326)`.", inner)
            raise _Stop
        self._close(")")
        return DataType(f"{name}(any)") if inner.lower == "any" else DataType(name, (int(inner.text),))

    def _arguments(self, name: str, token: _Token) -> tuple[int, ...]:
        default = _DEFAULT_ARGUMENTS.get(name, ())
        most = 1 if name in {"char", "varchar"} else len(default)
        if self._peek().text != "(" or not most:
            if name in {"char", "varchar"}:
                self._say(f"`{token.text}` needs a length", f"Write `{token.text}(20)`, or `string`.", token)
                raise _Stop
            return default
        self._at += 1
        found = [self._number()]
        while len(found) < most and self.take(","):
            found.append(self._number())
        self._close(")")
        if name in {"char", "varchar"} and not self._lengths:
            message = f"only tables have a `{token.text}({found[0]})`: Spark reads none from anything else"
            self._say(message, "Write `string`.", token)
        given = (*found, *default[len(found) :])
        if name == "decimal" and not (given[0] <= _MOST_DIGITS and given[1] <= given[0]):
            message = f"a decimal has at most {_MOST_DIGITS} digits, and no more behind the point than it has"
            self._say(message, "Write `decimal(38, 9)`, for example.", token)
        if name == "time" and given[0] > _MOST_TIME_DIGITS:
            self._say(f"a time has at most {_MOST_TIME_DIGITS} digits of a second", "Write `time(6)`.", token)
        return given

    def _with_words(self, kind: DataType, token: _Token) -> DataType:
        """A type with the words that may stand behind it."""
        collated = self._peek()
        if kind.name in {"string", "char", "varchar"} and self._words("collate"):
            if not self._peek().is_name:
                self._say("`collate` needs the name of a collation", "Write `collate UTF8_LCASE`.", collated)
                raise _Stop
            names = [self._next().text]
            while self.take("."):
                names.append(self._next().text)
            since = "4.0" if kind.name == "string" else "4.2"
            self.newer.append(Newer(f"{token.text} collate", since, token.start))
            return DataType(f"{kind} collate {'.'.join(names)}")
        if kind.name in {"timestamp", "time"} and token.lower == kind.name:
            if self._words("without", "time", "zone"):
                self.newer.append(Newer(f"{token.text} without time zone", "4.1", token.start))
                return DataType("timestamp_ntz") if kind.name == "timestamp" else kind
            if kind.name == "timestamp" and self._words("with", "local", "time", "zone"):
                self.newer.append(Newer(f"{token.text} with local time zone", "4.2", token.start))
        return kind

    def _open(self, token: _Token, example: str) -> None:
        if not self.take("<"):
            self._say(f"`{token.text}` needs its types in `<…>`", f"Write {example}.", token)
            raise _Stop

    def _close(self, bracket: str) -> None:
        token = self._peek()
        if not self.take(bracket):
            shown = f"`{_short(token)}` stands where" if token.text else "the text ends where"
            self._say(f"{shown} a `{bracket}` is missing", f"Close the bracket by `{bracket}`.", token)
            raise _Stop

    def _number(self) -> int:
        token = self._next()
        if not re.fullmatch(r"[0-9]{1,10}", token.text) or int(token.text) > _LARGEST:
            self._say(f"`{_short(token)}` is no number of digits", "Write a whole number.", token)
            self._at -= token.text in {",", ")"}
            raise _Stop
        return int(token.text)

    def _words(self, *words: str) -> bool:
        """Take these words if they come next."""
        following = self._tokens[self._at : self._at + len(words)]
        if [token.lower for token in following] != list(words):
            return False
        self._at += len(words)
        return True

    def _say(self, message: str, hint: str, token: _Token) -> None:
        self._mistakes.append(Mistake(message, hint, token.start, token.text, self._keys))

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        if token.text:
            self._at += 1
        return token

    def take(self, text: str) -> bool:
        """Take a sign if it comes next."""
        if self._peek().text != text:
            return False
        self._at += 1
        return True


def _short(token: _Token) -> str:
    return token.text if len(token.text) <= 40 else f"{token.text[:39]}…"
