"""Expressions without those of their parts that literals decide: `x = y or 1 = 2` is `x = y`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from gem_bundle.expressions.spark_parser import exp

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": operator.eq,
    "NEQ": operator.ne,
    "LT": operator.lt,
    "LTE": operator.le,
    "GT": operator.gt,
    "GTE": operator.ge,
}


def without_decided(tree: exp.Expr) -> exp.Expr:
    """An expression in which no part of `and` and `or`, and no branch, is decided by literals.

    Spark's optimizer leaves them out (its rules `ConstantFolding`, `BooleanSimplification` and
    `SimplifyConditionals`), and takes the rest for what it is then: an equality, a condition on one of the
    inputs, or a column.

    Args:
        tree: The expression, which isn't changed.
    """
    from gem_bundle.expressions.spark_parser import exp

    if not any(_part_left(node) for node in tree.find_all(exp.And, exp.Or, exp.Case, exp.Anonymous)):
        return tree
    return _without(tree.copy())


def _without(node: exp.Expr) -> exp.Expr:
    from gem_bundle.expressions.spark_parser import exp

    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expression):
            node.set(key, _without(value))
        elif isinstance(value, list):
            node.set(key, [_without(one) if isinstance(one, exp.Expression) else one for one in value])
    return _part_left(node) or node


def _part_left(node: exp.Expr) -> exp.Expr | None:
    """What `and`, `or` or branches are where literals decide one of their parts; None for anything else."""
    from gem_bundle.expressions.spark_parser import exp

    if isinstance(node, exp.Case | exp.Anonymous):
        return _branch_left(node)
    if not isinstance(node, exp.And | exp.Or):
        return None
    idle = isinstance(node, exp.And)
    for one, other in ((node.this, node.expression), (node.expression, node.this)):
        decided = _decided(one)
        if decided is not None:
            return other if decided is idle else exp.Boolean(this=decided)
    return None


def _branch_left(node: exp.Expr) -> exp.Expr | None:
    """What branches give where literals decide which one it is."""
    from gem_bundle.expressions.spark_parser import exp

    if isinstance(node, exp.Anonymous):
        if node.name.lower() not in {"if", "iff"} or len(node.expressions) != 3:
            return None
        decided = _decided(node.expressions[0])
        return None if decided is None else node.expressions[1 if decided else 2]
    if node.this is not None:
        return None
    for branch in node.args["ifs"]:
        decided = _decided(branch.this)
        if decided is not False:
            return branch.args["true"] if decided else None
    return node.args.get("default")


def _decided(node: exp.Expr) -> bool | None:
    """What literals alone say; None where they don't."""
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    node = bare(node)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    compare = _COMPARE.get(type(node).__name__)
    if compare is None:
        return None
    sides = [bare(side) for side in (node.this, node.expression)]
    if not all(isinstance(side, exp.Literal) for side in sides):
        return None
    texts = [str(side.this) for side in sides]
    if all(side.is_string for side in sides):
        return compare(*texts)
    if all(text.isdecimal() for text in texts) and not any(side.is_string for side in sides):
        return compare(*map(int, texts))
    return None
