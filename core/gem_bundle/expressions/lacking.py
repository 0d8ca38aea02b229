"""Whether a condition holds where none of its columns has a value, as Spark finds out by trying it.

Imports sqlglot, whose trees it works on.
"""

from __future__ import annotations

from typing import Any

from gem_bundle.expressions.asked import null_without
from gem_bundle.expressions.constants import COMPARE, UNKNOWN, both_of, compared, value_of
from gem_bundle.expressions.spark_parser import exp
from gem_bundle.expressions.trees import bare, parts_of

_FIRST = frozenset({"coalesce", "ifnull", "nvl"})  # the first of their operands that isn't null


def fails_without(tree: exp.Expr) -> bool | None:
    """Whether a condition doesn't hold where all of its columns are null; None where that isn't known.

    By it an outer join becomes an inner one: Spark's rule `EliminateOuterJoin`.

    Args:
        tree: The condition.
    """
    value = _tried(tree)
    return None if value is UNKNOWN else value in (None, False)


def _tried(tree: exp.Expr) -> Any:
    """What an expression is without a value in any column: a value, None for null, or `UNKNOWN`."""
    node = bare(tree)
    if parts_of(node) is not None:
        return None
    if isinstance(node, exp.Not):
        value = _tried(node.this)
        return (not value) if isinstance(value, bool) else value
    if isinstance(node, exp.And | exp.Or):
        return both_of(node, _tried(node.this), _tried(node.expression))
    known = value_of(node)
    if known is not UNKNOWN:
        return known
    if isinstance(node, exp.Is):
        value, wanted = _tried(node.this), value_of(node.expression)
        return UNKNOWN if UNKNOWN in (value, wanted) else value is wanted
    if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
        return _same(node.this, node.expression, wanted=isinstance(node, exp.NullSafeEQ))
    if isinstance(node, exp.In):
        return None if _tried(node.this) is None else _computed(node)
    if isinstance(node, exp.Case):
        return _branch(node)
    if isinstance(node, exp.Anonymous):
        found = _called(node.name.lower(), node.expressions)
        if found is not UNKNOWN:
            return found
    values = [_tried(operand) for operand in null_without(node)]
    if None in values:
        return None
    return compared(node, values) if type(node) in COMPARE else _computed(node)


def _computed(node: exp.Expr) -> Any:
    """What an expression is over what its operands are."""
    found = node.copy()
    for operand in list(found.iter_expressions()):
        value = _tried(operand)
        if isinstance(value, bool):
            operand.replace(exp.Boolean(this=value))
        elif isinstance(value, str):
            operand.replace(exp.Literal.string(value))
        else:
            return UNKNOWN
    return value_of(found)


def _same(one: exp.Expr, other: exp.Expr, *, wanted: bool) -> Any:
    values = [_tried(one), _tried(other)]
    if UNKNOWN in values or values.count(None) == 0:
        return UNKNOWN
    return (values.count(None) == len(values)) is wanted


def _branch(node: exp.Case) -> Any:
    """What the first branch gives whose condition holds; a null that is compared is equal to nothing."""
    if node.this is None:
        for branch in node.args["ifs"]:
            holds = _tried(branch.this)
            if holds is UNKNOWN:
                return UNKNOWN
            if holds:
                return _tried(branch.args["true"])
    elif (compared_with := _tried(node.this)) is not None:
        for branch in node.args["ifs"]:
            value = _tried(branch.this)
            if not isinstance(value, str) or not isinstance(compared_with, str):
                return UNKNOWN
            if value == compared_with:
                return _tried(branch.args["true"])
    default = node.args.get("default")
    return None if default is None else _tried(default)


def _called(name: str, arguments: list[exp.Expr]) -> Any:
    """What a function gives that takes nulls."""
    if name in {"isnull", "isnotnull"} and len(arguments) == 1:
        value = _tried(arguments[0])
        return UNKNOWN if value is UNKNOWN else (value is None) is (name == "isnull")
    if name == "equal_null" and len(arguments) == 2:
        return _same(*arguments, wanted=True)
    if name == "nullif" and arguments and _tried(arguments[0]) is None:
        return None
    if name in {"if", "iff"} and len(arguments) == 3:
        holds = _tried(arguments[0])
        return UNKNOWN if holds is UNKNOWN else _tried(arguments[1 if holds else 2])
    if name == "nvl2" and len(arguments) == 3:
        value = _tried(arguments[0])
        return UNKNOWN if value is UNKNOWN else _tried(arguments[1 if value is not None else 2])
    if name == "concat_ws" and len(arguments) > 1:
        between, *parts = map(_tried, arguments)
        known = isinstance(between, str) and all(part is None or isinstance(part, str) for part in parts)
        return between.join(part for part in parts if part is not None) if known else UNKNOWN
    if name in _FIRST:
        return next((value for value in map(_tried, arguments) if value is not None), None)
    return UNKNOWN
