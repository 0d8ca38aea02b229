"""The columns that projections make, and the watermark that windows inherit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.expressions.analysis import analysed, walked
from gem_bundle.expressions.generators import generated
from gem_bundle.expressions.names import backquoted, reference, split_alias
from gem_bundle.expressions.scope import Scope
from gem_bundle.facts import MAX_COLUMNS, UNKNOWN_DELAY, Column
from gem_bundle.schema import type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gem_bundle.facts import Facts

WINDOW_TYPE = "struct<start: timestamp, end: timestamp>"


def find(parts: Sequence[str], columns: Sequence[Column]) -> Column | None:
    """The column that a reference means, under the name it gives there.

    Names are compared as Spark does by default, without case. ``a.b`` is the column `b` of an input
    called `a`, or the field `b` of a column `a`.

    Returns:
        The column, or None when no known column has that name.
    """
    scope = Scope(columns)
    meaning = scope.resolve(parts)
    if meaning.outcome == "missing":
        return None
    if meaning.outcome == "ambiguous":
        kinds = {column.type for column in meaning.candidates}
        delays = {column.delay for column in meaning.candidates}
        return Column(
            parts[-1],
            kinds.pop() if len(kinds) == 1 else None,
            delays.pop() if len(delays) == 1 else UNKNOWN_DELAY,
        )
    return analysed(".".join(map(backquoted, parts)), scope, parts[-1]).column


def column_of(
    expression: str, name: str, columns: Sequence[Column], earlier: Sequence[Column] = ()
) -> Column:
    """The column that an expression makes under a name.

    Args:
        expression: An expression without an alias.
        name: The name it is given.
        columns: The columns it is over.
        earlier: What the same projection made before it: Spark lets expressions refer to that too.
    """
    return analysed(expression, Scope(columns, earlier), name).column


def time_delay(expression: str, columns: Sequence[Column]) -> str | None:
    """The delay that a time window on an expression inherits: that of a plain column, else none."""
    scope = Scope(columns)
    parts = reference(expression)
    if parts is not None:
        meaning = scope.resolve(parts)
        if meaning.column is None:
            return scope.possible_delay
        return None if meaning.fields else meaning.column.delay
    found = walked(expression, scope)
    if found is None:
        return scope.possible_delay
    value = found[1]
    return value.delay if value.window or value.plain else None


def project(
    expressions: Sequence[str] | Mapping[str, str], facts: Facts, *, earlier: Sequence[Column] = ()
) -> tuple[Column, ...] | None:
    """The columns of a projection, or None when their names can't be known.

    Args:
        expressions: Expressions, each with its own name (``at``, ``s.a``, ``x + 1 as y``) or ``*``;
            or a mapping of name to expression.
        facts: What it is over. Its columns may be unknown, where no expression asks for all.
        earlier: What the projection makes before them, the groups of an aggregation, say: they may be
            used too. They are not among the columns returned.
    """
    items: Iterable[tuple[str | None, str]]
    if isinstance(expressions, Mapping):
        items = expressions.items()
    else:
        items = (split_alias(expression)[::-1] for expression in expressions)
    made: list[Column] = []
    scope = Scope(facts.columns, earlier)
    for name, body in items:
        star = _star(body, facts.columns) if name is None and body.strip().endswith("*") else None
        if star is None and name is None and (fields := fields_of_star(body, facts)) is not None:
            star = [analysed(text, scope, field).column for field, text in fields]
        if star is not None:
            made.extend(star)
            continue
        found = analysed(body, scope, name)
        several = generated(body, facts.columns) if found.generator and name is None else None
        if several is not None:
            made.extend(several.columns)
            continue
        column = found.column
        if not column.name or (found.generator and name is None):
            return None
        made.append(column)
        if len(made) > MAX_COLUMNS:
            return None
        if name is not None:
            # Through two columns of one projection Spark doesn't follow a mark.
            scope.make(replace(column, delay=None) if _is_lateral(body, scope) else column)
    if facts.streaming is False:
        made = [replace(column, delay=None, marks=()) for column in made]
    return tuple(made)


def fields_of_star(expression: str, facts: Facts) -> list[tuple[str, str]] | None:
    """The fields that a star behind a struct stands for, each by its name and as an expression.

    Args:
        expression: ``s.*``, or anything else.
        facts: What it is over.

    Returns:
        None where it is anything else, or what stands before the star may be the name of an input.
    """
    text = expression.strip()
    owner = text.removesuffix("*").rstrip().removesuffix(".")
    parts = reference(owner) if text.endswith("*") else None
    if parts is None or facts.columns is None or facts.qualifiers is None:
        return None
    if parts[0].lower() in facts.qualifiers:
        return None
    kind = type_of(analysed(owner, Scope(facts.columns), None).column.type or "")
    if kind is None or kind.name != "struct":
        return None
    return [(field.name, f"{owner}.{backquoted(field.name)}") for field in kind.fields]


def _is_lateral(body: str, scope: Scope) -> bool:
    """Whether an expression is nothing but a reference to a column of the same projection."""
    parts = reference(body)
    return parts is not None and scope.resolve(parts).lateral


def _star(expression: str, columns: Sequence[Column] | None) -> list[Column] | None:
    """The columns that a star stands for, or None when they can't be told."""
    text = expression.strip()
    if columns is None:
        return None
    if text == "*":
        return list(columns)
    owner = reference(text.removesuffix("*").strip().removesuffix("."))
    if owner is None or len(owner) != 1 or any(column.qualifier is None for column in columns):
        return None
    return [c for c in columns if c.qualifier is not None and c.qualifier.lower() == owner[0].lower()] or None
