"""Which conditions are decided by their form alone, before any row comes.

Imports sqlglot, whose trees it works on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.expressions.asked import OPPOSITE, are_contrary, is_of_chance
from gem_bundle.expressions.constants import COMPARE, UNKNOWN, compared, constant_of, value_of
from gem_bundle.expressions.nulls import nulls_in
from gem_bundle.expressions.spark_parser import exp
from gem_bundle.expressions.trees import bare, parts_of, shape
from gem_bundle.lineage import MAYBE_NULL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    NeverNull = Callable[[Sequence[str]], bool]
    """Whether a name means something that is never null."""

ASKS_FOR_NULL = {"isnull": False, "isnotnull": True}
"""The functions that ask whether something is null, each with what it says of what never is."""


def is_there(node: exp.Expr, never: NeverNull | None) -> bool:
    """Whether Spark takes something for never null, by its form.

    Args:
        node: The expression.
        never: Whether a name means something that is never null; without it any column may be.
    """

    def nulls_of_name(parts: Sequence[str]) -> frozenset[str]:
        return frozenset() if never is not None and never(parts) else frozenset({MAYBE_NULL})

    return not nulls_in(node, nulls_of_name)


def decided_by_form(node: exp.Expr, never: NeverNull | None) -> bool | None:
    """What Spark knows of a condition by its form: whether it is true or false; None where it is neither.

    Args:
        node: The condition.
        never: Whether a name means something that is never null; without it any column may be.
    """
    node = bare(node)
    constant = constant_of(node)
    if constant is not None:
        return constant
    if isinstance(node, exp.Not):
        known = decided_by_form(node.this, never)
        return None if known is None else not known
    if isinstance(node, exp.Is) and isinstance(bare(node.expression), exp.Null):
        return True if is_null(node.this) else False if is_there(node.this, never) else None
    if isinstance(node, exp.Is) and isinstance(bare(node.expression), exp.Boolean):
        known = decided_by_form(node.this, never)
        return None if known is None else known is bool(bare(node.expression).this)
    if isinstance(node, exp.Anonymous) and node.name.lower() in ASKS_FOR_NULL and len(node.expressions) == 1:
        return ASKS_FOR_NULL[node.name.lower()] if is_there(node.expressions[0], never) else None
    if isinstance(node, exp.NullSafeEQ):
        if are_same(node.this, node.expression):
            return True
        sides = (node.this, node.expression), (node.expression, node.this)
        asks_for_null = any(
            isinstance(bare(one), exp.Null) and is_there(other, never) for one, other in sides
        )
        return False if asks_for_null else None
    if isinstance(node, exp.Between):
        bounds = (exp.GTE, node.args["low"]), (exp.LTE, node.args["high"])
        found = [decided_by_form(kind(this=node.this, expression=bound), never) for kind, bound in bounds]
        return False if False in found else True if found == [True, True] else None
    compare = COMPARE.get(type(node))
    if compare is None:
        return None
    if are_same(node.this, node.expression) and is_there(node.this, never):
        return compare(0, 0)
    return _same_for_all_branches(node)


def decided_of_branch(node: exp.Expr, never: NeverNull | None) -> bool | None:
    """The same of what a branch asks: null is as good as false there.

    The rule `ReplaceNullWithFalseInPredicate`.

    Args:
        node: The condition.
        never: As `decided_by_form` takes it.
    """
    node = bare(node)
    if is_null(node) or value_of(node) is None:
        return False
    if not isinstance(node, exp.And | exp.Or):
        return decided_by_form(node, never)
    idle = isinstance(node, exp.And)
    sides = [decided_of_branch(side, never) for side in (node.this, node.expression)]
    if (not idle) in sides:
        return not idle
    if sides == [idle, idle]:
        return idle
    return False if idle and deny_each_other(node.this, node.expression) else decided_by_form(node, never)


def _same_for_all_branches(node: exp.Expr) -> bool | None:
    """What a comparison says of all values that branches may give, where those are literals."""
    for one, other in ((node.this, node.expression), (node.expression, node.this)):
        values, beside = _values_of_branches(bare(one)), value_of(other)
        if any(value is None or value is UNKNOWN for value in (*values, beside)):
            continue
        swapped = one is node.expression
        found = {compared(node, [beside, value] if swapped else [value, beside]) for value in values}
        if len(found) == 1 and isinstance(known := found.pop(), bool):
            return known
    return None


def _values_of_branches(node: exp.Expr) -> list[object]:
    if isinstance(node, exp.Case):
        last = node.args.get("default")
        return [value_of(branch.args["true"]) for branch in node.args["ifs"]] + [
            None if last is None else value_of(last)
        ]
    if isinstance(node, exp.Anonymous) and node.name.lower() in {"if", "iff"} and len(node.expressions) == 3:
        return [value_of(one) for one in node.expressions[1:]]
    return []


def is_null(node: exp.Expr) -> bool:
    """Whether an expression is null by its form.

    Args:
        node: The expression.
    """
    node = bare(node)
    return isinstance(node, exp.Null) or (isinstance(node, exp.Cast) and is_null(node.this))


def are_same(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether two expressions always have the same value, by their form.

    Args:
        one: The one.
        other: The other.
    """
    form = form_of(one)
    return form is not None and form == form_of(other)


def deny_each_other(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether of two conditions one is the contrary of the other, and Spark sees that.

    Args:
        one: The one.
        other: The other.
    """
    return are_contrary(one, other, _names_in(one) | _names_in(other))


def form_of(node: exp.Expr) -> object:
    """The form by which two expressions are one; None where they are another thing each time.

    A denied comparison is the opposite one, as in Spark.

    Args:
        node: The expression.
    """
    if is_of_chance(node):
        return None
    node = bare(node)
    denied = bare(node.this) if isinstance(node, exp.Not) else None
    opposite = OPPOSITE.get(type(denied)) if denied is not None else None
    if opposite is not None and denied is not None:
        node = opposite(this=denied.this, expression=denied.expression)
    return shape(node, _names_in(node))


def _names_in(node: exp.Expr) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The names in an expression, all of them by all their parts."""
    found = (parts_of(part) for part in node.find_all(exp.Column, exp.Dot, exp.Identifier))
    return {tuple(parts): tuple(map(str.lower, parts)) for parts in found if parts is not None}
