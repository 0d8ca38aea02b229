"""Whether an expression depends on its row alone: not on the time, on chance, or on other rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gem_bundle.diagnostics import Finding
from gem_bundle.expressions.analysis import analyse, calls_functions, parsed
from gem_bundle.expressions.functions import BY_CHANCE, BY_PLACE, CURRENT_TIME, UNSTEADY
from gem_bundle.expressions.names import split_alias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gem_bundle.facts import Facts
    from gem_bundle.operators import Option

_WHY = {**dict.fromkeys(BY_PLACE, "depends on where Spark computes it"), **UNSTEADY}


_RULE = "whether a row is taken may depend on the row alone"
_HINT = (
    "Compare with a column that the source has. A value that a node before makes so isn't steady either, "
    "unless it was written somewhere and is read from there."
)


def check_steady(
    expression: str, facts: Facts, option: Option, *, rule: str = _RULE, hint: str = _HINT
) -> Iterator[Finding]:
    """A finding when an expression doesn't depend on its row alone, so that two queries may disagree on it.

    Args:
        expression: The expression.
        facts: What it is over: a column may be called ``current_date``.
        option: Where it stands, for the finding's place.
        rule: What may depend on the row alone, as a clause.
        hint: What to do about it.

    Yields:
        GB212, for the first such function, or for a subquery; GB218, for a column that an earlier node makes
        by one.
    """
    body, _ = split_alias(expression)
    unsteady = list(check_steady_columns(body, facts, option))
    if unsteady:
        yield from unsteady
        return
    yield from _first_of(_WHY, body, facts, option, rule, hint, subqueries=True)


def check_repeatable(
    expression: str, facts: Facts, option: Option, *, rule: str, hint: str, subqueries: bool = False
) -> Iterator[Finding]:
    """A finding when an expression may have another value each time that a statement computes it of a row.

    Args:
        expression: The expression.
        facts: What it is over.
        option: Where it stands, for the finding's place.
        rule: What has to be the same each time, as a clause.
        hint: What to do about it.
        subqueries: Whether subqueries are found too.

    Yields:
        GB212, for the first function that depends on chance, or on where it is computed.
    """
    why = {name: reason for name, reason in _WHY.items() if name not in CURRENT_TIME}
    yield from _first_of(why, split_alias(expression)[0], facts, option, rule, hint, subqueries=subqueries)


def _first_of(
    functions: Mapping[str, str],
    body: str,
    facts: Facts,
    option: Option,
    rule: str,
    hint: str,
    *,
    subqueries: bool,
) -> Iterator[Finding]:
    """The first of some functions, each with what is to be said of it, that an expression calls."""
    from gem_bundle.expressions.spark_parser import exp

    if not calls_functions(body):
        return
    tree = parsed(body)
    for node in tree.walk() if tree is not None else ():
        if subqueries and isinstance(node, exp.Select):
            yield _finding("a subquery", "depends on other rows", option, rule, hint)
            return
        for name in _names(node, body, facts):
            if name in functions:
                yield _finding(f"`{name}`", functions[name], option, rule, hint, name)
                return


def check_chance(expression: str, facts: Facts, option: Option) -> Iterator[Finding]:
    """A warning when chance decides which rows agree in an expression.

    Args:
        expression: The expression.
        facts: What it is over.
        option: Where it stands, for the finding's place.

    Yields:
        GB212, for the first such function.
    """
    body, _ = split_alias(expression)
    tree = parsed(body) if "(" in body else None
    for node in tree.walk() if tree is not None else ():
        for name in _names(node, body, facts):
            if name in BY_CHANCE or name == "monotonically_increasing_id":
                why = "is left to chance" if name in BY_CHANCE else "is another one in each row"
                message = f"`{name}` {why}, so rows that are alike don't agree in it"
                yield Finding(
                    "GB212", message, "Write what is of the row alone.", option, "warning", word=name
                )
                return


def _names(node: object, body: str, facts: Facts) -> tuple[str, ...]:
    """The names that a part of an expression may call a function by."""
    from gem_bundle.expressions.spark_parser import exp

    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        # Without an argument it is the current time.
        return ("now",) if name == "unix_timestamp" and not node.expressions else (name,)
    if isinstance(node, exp.Func):
        names = tuple(name.lower() for name in node.sql_names())
        return tuple(name for name in names if node.args or not _may_be_column(name, body, facts))
    if isinstance(node, exp.Column):
        name = node.name.lower()
        return () if node.table or _may_be_column(name, body, facts) else (name,)
    return ()


def _may_be_column(name: str, body: str, facts: Facts) -> bool:
    """Whether a name without brackets is, or may be, that of a column."""
    if re.search(rf"\b{name}\s*\(", body, re.IGNORECASE):
        return False
    return facts.columns is None or facts.column(name) is not None


def _finding(what: str, why: str, option: Option, rule: str, hint: str, word: str = "") -> Finding:
    return Finding("GB212", f"{what} {why}, and can't stand here: {rule}", hint, option, word=word)


def check_steady_columns(expression: str, facts: Facts, option: Option) -> Iterator[Finding]:
    """A finding when an expression, by which rows are told apart, is over a column that isn't steady.

    Facts tell so of columns where more than one output of the node is taken.

    Args:
        expression: The expression, without a name of its own.
        facts: What it is over.
        option: Where it stands, for the finding's place.

    Yields:
        GB218, for the first such column.
    """
    if all(column.unsteady is None for column in facts.columns or ()):
        return
    unsteady = analyse(expression, facts.columns).column.unsteady
    if unsteady is None or not unsteady.node:
        return
    yield Finding(
        "GB218",
        f"it goes by `{unsteady.column}`, which `{unsteady.node}` makes by `{unsteady.what}`: that "
        f"{unsteady.why}, so that a row could be in both outputs, or in none",
        f"Write the rows of `{unsteady.node}` somewhere, and read them from there in another pipeline; or "
        "take one of the outputs only.",
        option,
        word=unsteady.column,
    )
