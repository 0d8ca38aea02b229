"""Types for options: values that Spark takes as text, each with its own check.

All of them are plain ``str``, ``list`` or ``dict`` when a gem reads them; what differs is what they accept.
"""

from __future__ import annotations

import os
import re
from datetime import date, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, SecretStr, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticKnownError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.ddl import Columns

__all__ = [
    "BrokerList",
    "ByteSize",
    "ColumnExpressions",
    "DataPath",
    "Duration",
    "ExposedSecretError",
    "Expression",
    "ExpressionList",
    "FixedDuration",
    "FunctionReference",
    "Interval",
    "OnlyTrue",
    "ReadSchema",
    "Schema",
    "SchemaHints",
    "SecretStr",
    "StringList",
    "TableName",
    "TextFile",
    "Timestamp",
    "holds_secret",
    "interval_length",
    "is_remote",
    "local_path",
    "secret_in",
    "without_secrets",
]

_UNITS = (
    "nanosecond|microsecond|us|millisecond|ms|second|s|sec|minute|m|min|hour|h|hr|day|d|week|w|month|year"
)
_DURATION_PART = re.compile(rf"\s*([+-]?\d+(?:\.\d+)?)\s*({_UNITS})s?\b\s*", re.IGNORECASE)
# Spark's intervals (watermarks, windows) take whole words only; a fraction is for seconds only.
_INTERVAL_PART = re.compile(
    r"\s*\+?(\d+)(\.\d{1,9}(?=\s+seconds?\b))?"
    r"\s+(year|month|week|day|hour|minute|second|millisecond|microsecond)s?\b\s*",
    re.IGNORECASE,
)
_MICROSECONDS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
# Spark's times that are no intervals: one whole number and one unit (`JavaUtils.timeStringAs`).
_MILLISECONDS = {
    "nanosecond": 1e-6,
    "microsecond": 1e-3,
    "us": 1e-3,
    "millisecond": 1.0,
    "ms": 1.0,
    "second": 1e3,
    "sec": 1e3,
    "s": 1e3,
    "minute": 60e3,
    "min": 60e3,
    "m": 60e3,
    "hour": 3600e3,
    "hr": 3600e3,
    "h": 3600e3,
    "day": 86_400e3,
    "d": 86_400e3,
    "week": 604_800e3,
    "w": 604_800e3,
}
_BYTE_SIZE = re.compile(r"^\s*(\d+)\s*([bkmgtp]?)b?\s*$", re.IGNORECASE)
_NAME_PART = r"(?:[A-Za-z_]\w*|`(?:[^`]|``)+`)"
_TABLE = re.compile(rf"{_NAME_PART}(?:\.{_NAME_PART})*\Z")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")
_BROKER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:,\[\]/]+):([0-9]{1,5})\Z")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z")

_USER_INFO = re.compile(r"//[^/?#\s@:]*:[^/?#\s@]+@|jdbc:oracle:\w+:[^/@:\s]+/[^@\s]+@", re.IGNORECASE)
# Names that end so: MySQL's `passwordCharacterEncoding` holds no password.
_NAMED_SO = (
    r"[\w.-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?"
    r"|(?:access|private|api|secret)[._-]?key)"
)
_PROPERTY = re.compile(
    rf"[?&;,(]\s*({_NAMED_SO})\d?\s*=\s*(?!(?:true|false)\b)([^\s&;,)\"']+)",
    re.IGNORECASE,
)
# Azure names the account behind it: `fs.azure.account.key.shop.dfs.core.windows.net`.
_SECRET_SETTING = re.compile(rf"{_NAMED_SO}\d?|[\w.]*\.account\.key\..+", re.IGNORECASE)


class ExposedSecretError(ValueError):
    """An option's value can't be used since a secret in it would be printed; no message shows the value.

    Raise it from the check of an option, in words that don't quote the value.
    """


def secret_in(address: str) -> str | None:
    """What holds a secret in an address: a property's name, ``user`` for a login before ``@``; else None.

    Args:
        address: A URL, of a database's driver too: ``jdbc:postgresql://host/shop?password=…``.
    """
    if _USER_INFO.search(address):
        return "user"
    found = _PROPERTY.search(address)
    return None if found is None else found[1]


def holds_secret(name: str, value: str) -> bool:
    """Whether a setting of Spark's or of a catalog holds a secret: by its name, or by what is in its value.

    Args:
        name: The setting's: ``fs.s3a.secret.key``.
        value: Its value, which may be a URL with a login.
    """
    if value.lower() in {"", "true", "false"}:
        return False
    return _SECRET_SETTING.fullmatch(name) is not None or secret_in(value) is not None


def without_secrets(text: str, instead: str) -> str:
    """A text with something else in the place of the secrets in its addresses, as `secret_in` finds them.

    Args:
        text: The text.
        instead: What stands there then.
    """
    text = _PROPERTY.sub(lambda found: found[0].removesuffix(found[2]) + instead, text)
    return _USER_INFO.sub(lambda found: f"//{instead}@" if found[0][0] == "/" else instead, text)


def _check_duration(text: str) -> str:
    body = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE)
    position = 0
    while match := _DURATION_PART.match(body, position):
        position = match.end()
        if match.group(1).startswith("-"):
            raise ValueError("a duration can't be negative")
    if position == 0 or position != len(body):
        raise ValueError("write a number and a unit, for example `10 minutes` or `1 hour 30 minutes`")
    return text.strip()


def _duration_text(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"a duration needs a unit: `{value} seconds`?")
    return value


Duration = Annotated[
    str,
    BeforeValidator(_duration_text),
    AfterValidator(_check_duration),
    WithJsonSchema({"type": "string", "examples": ["10 minutes", "1 hour 30 minutes"]}),
]
"""A length of time as Spark's intervals write it: numbers with units, ``10 minutes``."""


def interval_length(text: str) -> tuple[int, int]:
    """The length of an `Interval` as months and microseconds: they don't convert into each other.

    Raises:
        ValueError: When Spark could not read it as an interval.
    """
    body = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE)
    months = microseconds = position = 0
    while match := _INTERVAL_PART.match(body, position):
        position = match.end()
        number, unit = int(match.group(1)), match.group(3).lower()
        if unit in _MICROSECONDS:
            microseconds += number * _MICROSECONDS[unit]
            microseconds += int(float(match.group(2) or 0) * _MICROSECONDS[unit])
        else:
            months += number * (12 if unit == "year" else 1)
    if position == 0 or position != len(body):
        raise ValueError(
            "write whole numbers with units from microseconds to years, each unit written out and "
            "after a space, for example `10 minutes` or `1 hour 30 minutes`"
        )
    if microseconds >= 1 << 63 or months >= 1 << 31:
        raise ValueError("this is longer than Spark's intervals can be")
    return months, microseconds


def _check_interval(text: str) -> str:
    interval_length(text)
    return text


Interval = Annotated[Duration, AfterValidator(_check_interval)]
"""A `Duration` where Spark takes an interval and nothing else: watermarks, windows, triggers."""


def _compact_duration(text: str) -> str:
    body = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE)
    total = 0.0
    for number, unit in _DURATION_PART.findall(body):
        if unit.lower() not in _MILLISECONDS:
            raise ValueError(f"a {unit} has no fixed length; write it in days")
        total += float(number) * _MILLISECONDS[unit.lower()]
    return f"{int(total)}ms"


FixedDuration = Annotated[Duration, AfterValidator(_compact_duration)]
"""A `Duration` where Spark takes a time and no interval: the gem reads it as milliseconds, ``600000ms``."""


def _timestamp_text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def _check_timestamp(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("write a date or a time as `2024-01-31` or `2024-01-31T10:00:00`") from None
    return text


Timestamp = Annotated[str, BeforeValidator(_timestamp_text), AfterValidator(_check_timestamp)]
"""A point in time as ISO text: ``2024-01-31``, ``2024-01-31T10:00:00``, with or without a time zone."""


def _bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = _BYTE_SIZE.match(value)
    if match is None:
        raise ValueError("write a number of bytes, or a size such as `512m` or `10g`")
    return int(match.group(1)) << 10 * "bkmgtp".index(match.group(2).lower() or "b")


ByteSize = Annotated[
    int,
    BeforeValidator(_bytes),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string", "examples": ["512m", "10g"]}]}),
]
"""A number of bytes; a text may use the units of 1024: ``512m``, ``10g``."""


def _check_table(name: str) -> str:
    if not _TABLE.match(name):
        raise ValueError(
            "write a table as `table`, `schema.table` or `catalog.schema.table`, a name with other "
            "characters than letters, digits and underscores in backquotes"
        )
    return name


TableName = Annotated[str, AfterValidator(_check_table)]
"""The name of a table in a catalog: one to several parts with dots between them."""


def _schema_text(value: Any, *, lengths: bool = True) -> Any:
    if isinstance(value, dict):
        if not value:
            raise ValueError("a schema needs at least one column")
        from gem_bundle.ddl import Mistake, SchemaError, read_column

        mistakes: list[Mistake] = []
        columns: list[str] = []
        for name, kind in value.items():
            if not isinstance(kind, str):
                raise ValueError(f"write the type of `{name}` as a text, for example `int`")
            try:
                columns.append(read_column(str(name), kind, lengths=lengths).text)
            except SchemaError as error:
                mistakes += error.mistakes
        if mistakes:
            raise SchemaError(*mistakes)
        return ", ".join(columns)
    return value


def _check_schema(text: str) -> str:
    from gem_bundle.ddl import read_columns

    return read_columns(text).text.strip()


Schema = Annotated[
    str,
    BeforeValidator(_schema_text),
    AfterValidator(_check_schema),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "examples": ["page string, at timestamp"]},
                {"type": "object", "additionalProperties": {"type": "string"}},
            ]
        }
    ),
]
"""The columns of a relation as DDL (``page string, at timestamp``) or as a mapping of name to type."""


def _without_lengths(value: Any) -> Any:
    from gem_bundle.ddl import read_columns

    if isinstance(value, str):
        read_columns(value, lengths=False)
    return _schema_text(value, lengths=False)


ReadSchema = Annotated[Schema, BeforeValidator(_without_lengths)]
"""A `Schema` of what Spark reads or parses by it: of files, of JSON. Texts of a length are refused there."""


def _check_hints(text: str) -> str:
    from gem_bundle.ddl import read_hints

    return read_hints(text).text.strip()


SchemaHints = Annotated[
    str,
    AfterValidator(_check_hints),
    WithJsonSchema({"type": "string", "examples": ["id bigint, user.born date"]}),
]
"""Types of some columns as DDL, and of fields in them by the way to them: ``id bigint, user.born date``."""


def _unbalanced(text: str, pairs: dict[str, str]) -> str | None:
    stack: list[str] = []
    quote = ""
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\" and quote != "`"
            if character == quote:
                quote = ""
        elif character in "'\"`":
            quote = character
        elif character in pairs:
            stack.append(pairs[character])
        elif character in pairs.values() and (not stack or stack.pop() != character):
            return f"`{character}` closes nothing"
    if quote:
        return f"a {quote} is not closed"
    return f"`{stack[-1]}` is missing" if stack else None


def split_top_level(text: str, separator: str = ",", brackets: str = "()<>[]") -> list[str]:
    """The parts of a text at separators that stand outside brackets, quotes and backquotes.

    Args:
        text: What to split.
        separator: One character.
        brackets: Opening and closing ones in turn; in expressions ``<`` and ``>`` are none.
    """
    parts = [""]
    depth = 0
    quote = ""
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\" and quote != "`"
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character in brackets[::2]:
            depth += 1
        elif character in brackets[1::2]:
            depth -= 1
        elif character == separator and depth == 0:
            parts.append("")
            continue
        parts[-1] += character
    return parts


def _expression_text(value: Any) -> Any:
    # YAML reads `1` and `true` as numbers and booleans; as SQL they are the same words.
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _check_expression(text: str) -> str:
    if not text.strip():
        raise ValueError("an expression can't be empty")
    problem = _unbalanced(text, {"(": ")", "[": "]"})
    if problem:
        raise ValueError(f"this is not a complete SQL expression: {problem}")
    if "--" not in text and "/*" not in text and len(split_top_level(text, brackets="()[]")) > 1:
        raise ValueError("this is more than one expression: a comma stands outside brackets")
    return text.strip()


_SCALAR = {"type": ["string", "number", "boolean"]}

Expression = Annotated[
    str, BeforeValidator(_expression_text), AfterValidator(_check_expression), WithJsonSchema(_SCALAR)
]
"""A Spark SQL expression, for example ``amount * 100`` or ``orders.id = payments.order_id``."""


def _as_list(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def columns_in(text: str, annotation: Any, annotated: Iterable[Any] = ()) -> Columns | None:
    """What an option says of columns; None where it is neither a `Schema` nor `SchemaHints`.

    Args:
        text: Its value.
        annotation: The field's annotation as pydantic keeps it.
        annotated: What pydantic took out of ``Annotated`` and ``Field``.
    """
    from gem_bundle.ddl import read_columns, read_hints

    checks = {getattr(part, "func", None) for part in _annotated(annotation, annotated)}
    if _check_schema in checks:
        return read_columns(text)
    return read_hints(text) if _check_hints in checks else None


def _annotated(annotation: Any, annotated: Iterable[Any] = ()) -> Iterator[Any]:
    """All that is said of a type, and of the types that it is made of."""
    yield from annotated
    yield from getattr(annotation, "__metadata__", ())
    for part in get_args(annotation):
        yield from _annotated(part)


StringList = Annotated[list[str], BeforeValidator(_as_list)]
"""A list of names; one text with commas is accepted too."""


def _as_expressions(value: Any) -> Any:
    if isinstance(value, str):
        return split_top_level(value, brackets="()[]")
    return [value] if isinstance(value, int | float | bool) else value


ColumnExpressions = Annotated[
    list[Expression] | dict[str, Expression],
    BeforeValidator(_as_expressions),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": _SCALAR},
                {"type": "object", "additionalProperties": _SCALAR},
                _SCALAR,
            ]
        }
    ),
]
"""Expressions as a list, or as a mapping of new column name to expression.

A text is a list of expressions with commas between them.
"""

ExpressionList = Annotated[
    list[Expression],
    BeforeValidator(_as_expressions),
    WithJsonSchema({"anyOf": [{"type": "array", "items": _SCALAR}, _SCALAR]}),
]
"""A list of expressions; one text with commas between them is accepted too."""


def _check_brokers(brokers: list[str]) -> list[str]:
    if not brokers:
        raise ValueError("name at least one broker as `host:port`")
    for broker in brokers:
        match = _BROKER.match(broker)
        if not match or not 0 < int(match.group(2)) < 65536:
            raise ValueError(f"write brokers as `host:port`; `{broker}` is not one")
    return brokers


BrokerList = Annotated[StringList, AfterValidator(_check_brokers)]
"""Kafka brokers as a list of ``host:port``, or one text with commas."""


def _check_function(text: str) -> str:
    if not _FUNCTION.match(text):
        raise ValueError("write a function as `module:name`")
    return text


FunctionReference = Annotated[str, AfterValidator(_check_function)]
"""A Python function or class as ``module:name``. It is imported when the pipeline runs, never before."""


def is_remote(path: str) -> bool:
    """Whether a path has a scheme (``s3a://…``, ``hdfs://…``, ``dbfs:/…``) other than ``file:``."""
    return bool(_SCHEME.match(path)) and not path.startswith("file:")


def local_path(path: str) -> str | None:
    """The place of a path on this machine, or None when only Spark knows where it lies.

    A path without a scheme lies in the default file system of Spark's driver. That is another one
    than this machine's with Spark Connect, on Databricks, and where Hadoop is configured.
    """
    if is_remote(path) or os.environ.get("SPARK_REMOTE"):
        return None
    if path.startswith("file:"):
        return re.sub(r"^file:(//)?", "", path)
    elsewhere = ("DATABRICKS_RUNTIME_VERSION", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
    return None if any(os.environ.get(name) for name in elsewhere) else path


def _resolve_path(path: str, info: ValidationInfo) -> str:
    if not path.strip():
        raise ValueError("a path can't be empty")
    base = (info.context or {}).get("base_dir") if isinstance(info.context, dict) else None
    if base is None or _SCHEME.match(path) or PurePosixPath(path).is_absolute():
        return path
    return str(PurePosixPath(str(base)) / path)


DataPath = Annotated[str, AfterValidator(_resolve_path)]
"""A path or URL of data; a relative one is relative to the pipeline file."""


def _read_text(path: str, info: ValidationInfo) -> str:
    if not path.strip():
        raise ValueError("a path can't be empty")
    if is_remote(path):
        raise ValueError(f"`{path}` is read before anything runs, so it lies beside the pipeline, on a disk")
    context = info.context if isinstance(info.context, dict) else {}
    path = path.removeprefix("file:")
    within = context.get("within")
    try:
        found = within(path) if within is not None else None
        if found is None:
            found = Path(context.get("base_dir") or "", path).read_bytes()
        text: str = found.decode()
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have, or another encoding
        reason = getattr(error, "strerror", None) or "it isn't UTF-8"
        raise ValueError(f"`{path}` can't be read: {reason.lower()}") from None
    return text


TextFile = Annotated[str, AfterValidator(_read_text)]
"""A file with a text beside the pipeline file; what the gem reads is what is in it. It goes into bundles."""


def _no_number(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise PydanticKnownError("literal_error", {"expected": "True"})
    return value


OnlyTrue = Annotated[Literal[True], BeforeValidator(_no_number)]
"""``true``, where leaving it out is the only other choice; a number isn't, though in Python 1 equals it."""
