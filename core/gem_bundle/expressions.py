"""What can be said of a Spark SQL expression without parsing it: for `infer` and `check` of transforms.

A plain column reference is followed exactly: the name it gives, the type, and whether it carries the
watermark's mark. Everything else is opaque: it has the name it is given, an unknown type, and no
mark, except where Spark's analyser may carry one through (a field taken out of a struct, ``window(…)``);
there the delay is `UNKNOWN_DELAY`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.diagnostics import Finding, suggest
from gem_bundle.gem import Column
from gem_bundle.types import split_top_level

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gem_bundle.gem import Facts

UNKNOWN_DELAY = "unknown"
"""The `Column.delay` of a column that may be event time and may be not, so that no rule that misses a
watermark fires on it."""

WINDOW_TYPE = "struct<start: timestamp, end: timestamp>"

_PART = r"(?:[A-Za-z_][A-Za-z0-9_]*|`(?:[^`]|``)+`)"
_REFERENCE = re.compile(rf"{_PART}(?:\s*\.\s*{_PART})*")
_PARTS = re.compile(_PART)
_ALIASED = re.compile(rf"(?P<body>.+)\s+as\s+(?P<alias>{_PART})", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(rf"{_PART}?(?:\s*(?:\(\)|\[\]|\.\s*{_PART}))*\s*(?:\[\]|\.\s*{_PART})")
_WINDOW_CALL = re.compile(r"(window|session_window|window_time)\s*\(\)", re.IGNORECASE)
# What Spark reads as a value though it looks like a name: always, or where no column has the name.
_LITERALS = frozenset({"true", "false", "null"})
_VALUES = _LITERALS | {
    "current_catalog",
    "current_database",
    "current_date",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtimestamp",
    "session_user",
    "user",
}


def reference(expression: str) -> tuple[str, ...] | None:
    """The parts of a plain column reference, without backquotes; None for any other expression.

    ``at`` and ``(`at`)`` are ``("at",)``; ``orders.at`` is ``("orders", "at")``.
    """
    text = _bare(expression)
    if not _REFERENCE.fullmatch(text) or text.lower() in _LITERALS:
        return None
    return tuple(_unquoted(part) for part in _PARTS.findall(text))


def split_alias(expression: str) -> tuple[str, str | None]:
    """An expression and the name that a trailing ``as name`` gives it, if one does."""
    if "--" in expression or "/*" in expression:
        return expression, None
    match = _ALIASED.fullmatch(expression.strip())
    if match is None:
        return expression, None
    return match["body"].strip(), _unquoted(match["alias"])


def find(parts: Sequence[str], columns: Sequence[Column]) -> Column | None:
    """The column that a reference means, under the name it gives there.

    Names are compared as Spark does by default, without case. ``a.b`` is the column `b` of an input
    called `a`, or the field `b` of a column `a`.

    Returns:
        The column, or None when no known column has that name.
    """
    name = parts[-1]
    if len(parts) == 1:
        return _certain(name, _named(name, columns))
    owners = _named(parts[0], columns)
    qualified = _named(name, columns) if len(parts) == 2 else []
    if qualified and not owners:
        return _certain(name, qualified)
    if owners and not qualified and all(owner.type is not None for owner in owners):
        # A struct of known type came from a schema or a window; neither has a mark inside.
        return Column(name)
    return Column(name, delay=UNKNOWN_DELAY)


def column_of(
    expression: str, name: str, columns: Sequence[Column], earlier: Sequence[Column] = ()
) -> Column:
    """The column that an expression makes under a name.

    Args:
        expression: A scalar expression without an alias.
        name: The name it is given.
        columns: The columns it is over.
        earlier: What the same projection made before it: Spark lets expressions refer to that too.
    """
    parts = reference(expression)
    if parts is not None:
        column = find(parts, columns) or (find(parts, earlier) if len(parts) == 1 else None)
        if column is None:
            known_value = len(parts) == 1 and parts[0].lower() in _VALUES
            return Column(name, delay=None if known_value else UNKNOWN_DELAY)
        return replace(column, name=name)
    delay = None
    call = _window_call(expression)
    if call is not None:
        delay = time_delay(expression if call[0] == "window_time" else call[1], columns)
    elif _FIELD.fullmatch(_collapsed(_bare(expression))):
        # struct(at).at still is event time for Spark, also where the struct was made further up.
        possible = any(column.delay or column.type is None for column in columns)
        delay = UNKNOWN_DELAY if possible else None
    return Column(name, delay=delay)


def time_delay(expression: str, columns: Sequence[Column]) -> str | None:
    """The delay that a time window on an expression inherits: that of a plain column, else none."""
    if not any(column.delay for column in columns):
        return None
    call = _window_call(expression)
    if call is not None and call[0] == "window_time":
        expression = call[1]
    parts = reference(expression)
    if parts is None:
        return UNKNOWN_DELAY if "window" in expression.lower() else None
    if len(parts) > 1 and _named(parts[0], columns) and not _named(parts[-1], columns):
        return None
    found = find(parts, columns)
    return UNKNOWN_DELAY if found is None else found.delay


def project(expressions: Sequence[str] | Mapping[str, str], facts: Facts) -> tuple[Column, ...] | None:
    """The columns of a projection, or None when their names can't be known.

    Args:
        expressions: Expressions, each with its own name (``at``, ``s.a``, ``x + 1 as y``) or ``*``;
            or a mapping of name to expression.
        facts: What it is over. Its columns may be unknown, where no expression asks for all.
    """
    named: Iterable[tuple[str | None, str]]
    if isinstance(expressions, Mapping):
        named = expressions.items()
    else:
        named = ((None, expression) for expression in expressions)
    columns = facts.columns or ()
    made: list[Column] = []
    for given, expression in named:
        body, name = split_alias(expression) if given is None else (expression, given)
        if name is not None:
            made.append(column_of(body, name, columns, made))
        elif body.strip() == "*" and facts.columns is not None:
            made.extend(columns)
        else:
            parts = reference(body)
            if parts is None or (len(parts) == 1 and not _is_column(parts[0], columns)):
                return None
            made.append(_unnamed(parts, columns, made))
    if facts.columns is None:
        # Nothing is known of a reference's column but its name.
        made = [replace(column, type=None, delay=UNKNOWN_DELAY) for column in made]
    if facts.streaming is False:
        made = [replace(column, delay=None) for column in made]
    return tuple(made)


def missing_columns(
    expressions: Iterable[str], facts: Facts, option: str, *, also: Iterable[str] = ()
) -> Iterable[Finding]:
    """A finding for each expression that is nothing but the name of a column that doesn't exist.

    Args:
        expressions: Expressions; those that are more than a name are passed over.
        facts: What they are over; nothing is found when its columns are unknown.
        option: The option they stand in.
        also: Other names they may mean: the ones that the same option defines.
    """
    if facts.columns is None:
        return
    defined = {name.lower() for name in also}
    for expression in expressions:
        body, alias = split_alias(expression)
        parts = reference(body)
        # Columns such as `_metadata` of files exist without being among the known ones.
        name = parts[0] if parts is not None and len(parts) == 1 else "_"
        if not name.startswith("_") and name.lower() not in defined | _VALUES:
            yield from missing_names([name], facts, option)
        if alias is not None:
            defined.add(alias.lower())


def missing_names(names: Iterable[str], facts: Facts, option: str) -> Iterable[Finding]:
    """A finding for each name, taken as it stands, that no known column has."""
    if facts.columns is None:
        return
    for name in names:
        if facts.column(name) is None:
            known = [column.name for column in facts.columns]
            yield Finding(
                "GB205", f"there is no column `{name}`", suggest(name, known, what="columns"), option
            )


def _unnamed(parts: Sequence[str], columns: Sequence[Column], earlier: Sequence[Column]) -> Column:
    """The column that a reference makes under its own name."""
    found = find(parts, columns)
    if found is None:
        found = find(parts, earlier) or Column(parts[-1], delay=UNKNOWN_DELAY)
        if found.delay is not None:
            # Where Spark finds it among the new columns, the mark stays only under an alias.
            found = replace(found, delay=UNKNOWN_DELAY)
    return found


def _is_column(name: str, columns: Sequence[Column]) -> bool:
    """Whether a plain name is certain to be a column, and not a value such as `current_date`."""
    return name.lower() not in _VALUES or bool(_named(name, columns))


def _named(name: str, columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.name.lower() == name.lower()]


def _certain(name: str, found: Sequence[Column]) -> Column | None:
    """What several columns of one name have in common."""
    if not found:
        return None
    kinds = {column.type for column in found}
    delays = {column.delay for column in found}
    return Column(
        name,
        kinds.pop() if len(kinds) == 1 else None,
        delays.pop() if len(delays) == 1 else UNKNOWN_DELAY,
    )


def _unquoted(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def _window_call(expression: str) -> tuple[str, str] | None:
    """The function and its first argument, when the expression is one call of a window function."""
    text = _bare(expression)
    call = _WINDOW_CALL.fullmatch(_collapsed(text))
    if call is None:
        return None
    arguments = text[text.index("(") + 1 : text.rindex(")")]
    return call[1].lower(), split_top_level(arguments, brackets="()[]")[0]


def _bare(expression: str) -> str:
    """The expression without brackets around the whole of it."""
    text = expression.strip()
    while text.startswith("(") and _collapsed(text) == "()":
        text = text[1:-1].strip()
    return text


def _collapsed(text: str) -> str:
    """The text without what stands in brackets: ``f(a, b)[0].c`` is ``f()[].c``."""
    found: list[str] = []
    depth = 0
    quote = ""
    escaped = False
    for character in text.strip():
        outside = depth == 0
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\" and quote != "`"
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
            outside = depth == 0
        if outside:
            found.append(character)
    return "".join(found)
