"""Expressions without those of their parts that are decided by their form: `x = y or 1 = 2` is `x = y`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from gem_bundle.lineage import MAYBE_NULL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gem_bundle.expressions.spark_parser import exp

    NeverNull = Callable[[Sequence[str]], bool]
    """Whether a name means something that is never null."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": operator.eq,
    "NEQ": operator.ne,
    "LT": operator.lt,
    "LTE": operator.le,
    "GT": operator.gt,
    "GTE": operator.ge,
}
_FIRST_THERE = frozenset({"coalesce", "ifnull", "nvl"})
_ASKS = {"isnull": False, "isnotnull": True}
"""The functions that ask whether something is null, each with what it says of what never is."""


def without_decided(tree: exp.Expr, never_null: NeverNull | None = None) -> exp.Expr:
    """An expression in which no part of `and` and `or`, and no branch, is decided by its form.

    Literals decide, and whether something is null that never is. Spark's optimizer leaves such parts out (its
    rules `ConstantFolding`, `NullPropagation`, `BooleanSimplification` and `SimplifyConditionals`), and takes
    the rest for what it is then: an equality, a condition on one of the inputs, or a column.

    Args:
        tree: The expression, which isn't changed.
        never_null: Whether a name means something that is never null; without it only literals decide.
    """
    from gem_bundle.expressions.spark_parser import exp

    asked = tree.find_all(exp.And, exp.Or, exp.Case, exp.Anonymous, exp.Is, exp.Not)
    if not any(_part_left(node, never_null) for node in asked):
        return tree
    return _without(tree.copy(), never_null)


def _without(node: exp.Expr, never: NeverNull | None) -> exp.Expr:
    from gem_bundle.expressions.spark_parser import exp

    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expression):
            node.set(key, _without(value, never))
        elif isinstance(value, list):
            node.set(key, [_without(one, never) if isinstance(one, exp.Expression) else one for one in value])
    return _part_left(node, never) or node


def _part_left(node: exp.Expr, never: NeverNull | None) -> exp.Expr | None:
    """What `and`, `or` or branches are where one of their parts is decided; None for anything else."""
    from gem_bundle.expressions.spark_parser import exp

    if isinstance(node, exp.Is | exp.Not):
        decided = _decided(node, never)
        return None if decided is None else exp.Boolean(this=decided)
    if isinstance(node, exp.Case | exp.Anonymous):
        return _branch_left(node, never)
    if not isinstance(node, exp.And | exp.Or):
        return None
    idle = isinstance(node, exp.And)
    for one, other in ((node.this, node.expression), (node.expression, node.this)):
        decided = _decided(one, never)
        if decided is not None:
            return other if decided is idle else exp.Boolean(this=decided)
    return None


def _branch_left(node: exp.Expr, never: NeverNull | None) -> exp.Expr | None:
    """What branches give where it is decided which one it is."""
    from gem_bundle.expressions.spark_parser import exp

    if isinstance(node, exp.Anonymous):
        return _of_call(node, never)
    if node.this is not None:
        return None
    left: list[exp.Expr] = []
    last = node.args.get("default")
    for branch in node.args["ifs"]:
        decided = _decided(branch.this, never)
        if decided:
            last = branch.args["true"]
            break
        if decided is None:
            left.append(branch)
    if not left:
        return last
    return None if len(left) == len(node.args["ifs"]) else exp.Case(ifs=left, default=last)


def _of_call(node: exp.Anonymous, never: NeverNull | None) -> exp.Expr | None:
    """The same of functions that give one of their arguments."""
    from gem_bundle.expressions.spark_parser import exp

    name, given = node.name.lower(), node.expressions
    if name in {"if", "iff"} and len(given) == 3:
        decided = _decided(given[0], never)
        return None if decided is None else given[1 if decided else 2]
    if name == "nvl2" and len(given) == 3:
        return given[1] if is_there(given[0], never) else None
    if name in _FIRST_THERE:
        there = next((at for at, one in enumerate(given[:-1]) if is_there(one, never)), None)
        if there is not None:
            return given[0] if not there else exp.Anonymous(this=node.this, expressions=given[: there + 1])
    if name in _ASKS:
        decided = _decided(node, never)
        return None if decided is None else exp.Boolean(this=decided)
    return None


def is_there(node: exp.Expr, never: NeverNull | None) -> bool:
    """Whether Spark takes something for never null, by its form.

    Args:
        node: The expression.
        never: Whether a name means something that is never null; without it that of nothing is known.
    """
    if never is None:
        return False
    from gem_bundle.expressions.nulls import nulls_in

    return not nulls_in(node, lambda parts: frozenset() if never(parts) else frozenset({MAYBE_NULL}))


def _decided(node: exp.Expr, never: NeverNull | None) -> bool | None:
    """What literals alone say, or that something is never null; None where that doesn't tell."""
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    node = bare(node)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Not):
        decided = _decided(node.this, never)
        return None if decided is None else not decided
    if isinstance(node, exp.Is) and isinstance(bare(node.expression), exp.Null):
        return False if is_there(node.this, never) else None
    if isinstance(node, exp.Anonymous) and node.name.lower() in _ASKS and len(node.expressions) == 1:
        return _ASKS[node.name.lower()] if is_there(node.expressions[0], never) else None
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
