"""Types for options: values that Spark takes as text, each with its own check.

All of them are plain ``str``, ``list`` or ``dict`` when a gem reads them; what differs is what they accept.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, SecretStr, ValidationInfo, WithJsonSchema

__all__ = [
    "BrokerList",
    "ColumnExpressions",
    "DataPath",
    "Duration",
    "Expression",
    "FunctionReference",
    "Schema",
    "SecretStr",
    "StringList",
    "is_remote",
]

_UNITS = "nanosecond|microsecond|us|millisecond|ms|second|s|sec|minute|m|min|hour|h|hr|day|d|week|w|month|year"
_DURATION_PART = re.compile(rf"\s*([+-]?\d+(?:\.\d+)?)\s*({_UNITS})s?\b\s*", re.IGNORECASE)
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")
_BROKER = re.compile(r"^(\[[0-9A-Fa-f:.]+\]|[^\s:,\[\]/]+):(\d{1,5})$")
_FUNCTION = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")


def _check_duration(text: str) -> str:
    body = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE)
    position = 0
    while match := _DURATION_PART.match(body, position):
        position = match.end()
        if match.group(1).startswith("-"):
            raise ValueError("a duration can't be negative")
    if position == 0 or position != len(body):
        raise ValueError(
            "write a number and a unit, for example `10 minutes` or `1 hour 30 minutes`"
        )
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


def _schema_text(value: Any) -> Any:
    if isinstance(value, dict):
        if not value:
            raise ValueError("a schema needs at least one column")
        return ", ".join(f"`{name}` {kind}" for name, kind in value.items())
    return value


def _check_schema(text: str) -> str:
    problem = _unbalanced(text, {"(": ")", "<": ">"})
    if problem:
        raise ValueError(problem)
    if not text.strip():
        raise ValueError("a schema needs at least one column")
    for part in split_top_level(text):
        if not re.match(r"^\s*(`[^`]+`|\w+)\s*(:|\s)\s*\S", part):
            raise ValueError(
                f"write columns as `name type`, separated by commas; `{part.strip()}` is not one"
            )
    return text.strip()


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


def split_top_level(text: str, separator: str = ",") -> list[str]:
    """The parts of a text at separators that stand outside brackets, quotes and backquotes."""
    parts = [""]
    depth = 0
    quote = ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character in "(<[":
            depth += 1
        elif character in ")>]":
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
    return text.strip()


Expression = Annotated[str, BeforeValidator(_expression_text), AfterValidator(_check_expression)]
"""A Spark SQL expression, for example ``amount * 100`` or ``orders.id = payments.order_id``."""


def _as_list(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


StringList = Annotated[list[str], BeforeValidator(_as_list)]
"""A list of names; one text with commas is accepted too."""


def _as_expressions(value: Any) -> Any:
    if isinstance(value, str | int | float | bool):
        return [value]
    return value


ColumnExpressions = Annotated[
    list[Expression] | dict[str, Expression], BeforeValidator(_as_expressions)
]
"""Expressions as a list, or as a mapping of new column name to expression."""


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


def _resolve_path(path: str, info: ValidationInfo) -> str:
    if not path.strip():
        raise ValueError("a path can't be empty")
    base = (info.context or {}).get("base_dir") if isinstance(info.context, dict) else None
    if base is None or _SCHEME.match(path) or PurePosixPath(path).is_absolute():
        return path
    return str(PurePosixPath(str(base)) / path)


DataPath = Annotated[str, AfterValidator(_resolve_path)]
"""A path or URL of data; a relative one is relative to the pipeline file."""
