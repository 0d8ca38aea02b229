"""Names without a parser: plain column references and aliases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PART = r"(?:[A-Za-z_][A-Za-z0-9_]*|`(?:[^`]|``)+`)"
_REFERENCE = re.compile(rf"{_PART}(?:\s*\.\s*{_PART})*")
_PARTS = re.compile(_PART)
_ALIASED = re.compile(rf"(?P<body>.+)\sas\s+(?P<alias>{_PART})", re.IGNORECASE | re.DOTALL)
# What Spark reads as a value though it looks like a name: always, or where no column has the name.
LITERALS = frozenset({"true", "false", "null"})
VALUES = LITERALS | {
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "grouping__id",
    "session_user",
    "user",
}
CURRENT_TIME = frozenset({"current_date", "current_time", "current_timestamp"})
VALUE_TYPES = {
    "current_date": "date",
    "current_timestamp": "timestamp",
    **dict.fromkeys(("current_user", "session_user", "user"), "string"),
}
"""The types of such values, as far as they are known."""

LONGEST = 20_000
"""How many characters an expression may have for anything to be said of it."""


def reference(expression: str) -> tuple[str, ...] | None:
    """The parts of a plain column reference, without backquotes; None for any other expression.

    ``at`` and ``(`at`)`` are ``("at",)``; ``orders.at`` is ``("orders", "at")``.
    """
    if len(expression) > LONGEST:
        return None
    text = bare(expression)
    if not _REFERENCE.fullmatch(text) or text.lower() in LITERALS:
        return None
    return tuple(_unquoted(part) for part in _PARTS.findall(text))


def split_alias(expression: str) -> tuple[str, str | None]:
    """An expression and the name that a trailing ``as name`` gives it, if one does."""
    if len(expression) > LONGEST or "--" in expression or "/*" in expression:
        return expression, None
    match = _ALIASED.fullmatch(expression.strip())
    if match is None:
        return expression, None
    return match["body"].strip(), _unquoted(match["alias"])


def keyed(expressions: Sequence[str] | Mapping[str, str]) -> Iterator[tuple[str | int, str]]:
    """The expressions of an option with the key or the position of each."""
    yield from expressions.items() if isinstance(expressions, Mapping) else enumerate(expressions)


def backquoted(name: str) -> str:
    """A name as it stands in an expression, whatever its characters are."""
    return f"`{name.replace('`', '``')}`"


def bare(expression: str) -> str:
    """The expression without brackets around the whole of it."""
    text = expression.strip()
    if not text.startswith("("):
        return text
    partners = _partners(text)
    first, last = 0, len(text) - 1
    while partners.get(first) == last:
        first, last = first + 1, last - 1
        while first <= last and text[first].isspace():
            first += 1
        while first <= last and text[last].isspace():
            last -= 1
    return text[first : last + 1]


def _partners(text: str) -> dict[int, int]:
    """Where the bracket stands that closes each one; what stands in quotes is none."""
    found: dict[int, int] = {}
    waiting: list[int] = []
    quote = ""
    escaped = False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\" and quote != "`"
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character == "(":
            waiting.append(position)
        elif character == ")" and waiting:
            found[waiting.pop()] = position
    return found


def _unquoted(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part
