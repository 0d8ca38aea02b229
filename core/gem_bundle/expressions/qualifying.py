"""Expressions over one relation, written so that they mean it where there are two: for SQL's ``MERGE``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.expressions.analysis import parsed
from gem_bundle.expressions.names import backquoted, reference

if TYPE_CHECKING:
    from collections.abc import Collection

    from gem_bundle.expressions.spark_parser import exp


def columns_named(expression: str) -> tuple[str, ...] | None:
    """The names that columns are called by in an expression, in order; None when they can't be told.

    Of ``orders.id`` it is the first part, which is an input or a column that holds others.
    """
    parts = reference(expression)
    if parts is not None:
        return (parts[0],)
    found = _columns(expression)
    return None if found is None else tuple(column.parts[0].name for column in found)


def qualified(expression: str, name: str, columns: Collection[str]) -> str | None:
    """An expression with the name of a relation before each column.

    Args:
        expression: An expression over that relation alone.
        name: The relation's name.
        columns: The relation's columns.

    Returns:
        None when it isn't certain which words are columns.
    """
    known = {column.lower() for column in columns}
    parts = reference(expression)
    if parts is not None:
        if parts[0].lower() not in known:
            return None
        return ".".join([name, *map(backquoted, parts)])
    found = _columns(expression)
    if found is None or any(column.parts[0].name.lower() not in known for column in found):
        return None
    text = expression
    for start in sorted({column.parts[0].meta["start"] for column in found}, reverse=True):
        text = f"{text[:start]}{name}.{text[start:]}"
    return text


def equal_columns(condition: str, first: str, second: str) -> tuple[tuple[str, str], ...] | None:
    """The pairs of columns that a condition over two relations wants to be equal.

    Args:
        condition: The condition; only terms count that all have to hold.
        first: The name of the one relation.
        second: The name of the other one.

    Returns:
        For each such term the columns of the first and of the second; None when it can't be read.
    """
    tree = parsed(condition)
    if tree is None:
        return None
    from gem_bundle.expressions.join_terms import conjuncts
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare, parts_of

    found: list[tuple[str, str]] = []
    for term in conjuncts(tree):
        if not isinstance(term, exp.EQ | exp.NullSafeEQ):
            continue
        sides = [parts_of(bare(side)) for side in (term.this, term.expression)]
        names = {parts[0].lower(): parts[1] for parts in sides if parts is not None and len(parts) == 2}
        if set(names) == {first.lower(), second.lower()}:
            found.append((names[first.lower()], names[second.lower()]))
    return tuple(found)


def _columns(expression: str) -> list[exp.Column] | None:
    """The columns in an expression; None where words may be something else."""
    tree = parsed(expression)
    if tree is None:
        return None
    from gem_bundle.expressions.spark_parser import exp

    if tree.find(exp.Lambda, exp.Subquery, exp.Select, exp.Star) is not None:
        return None
    return list(tree.find_all(exp.Column))
