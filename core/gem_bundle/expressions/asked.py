"""Of which columns a condition leaves out nulls, as Spark reads it off its form, and whether it is ever true.

Spark asks for such a column by itself, as early as it can, and takes it for never null behind that.
Imports sqlglot, whose trees it works on.
"""

from __future__ import annotations

import operator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gem_bundle.expressions.spark_parser import exp
from gem_bundle.expressions.trees import bare, parts_of
from gem_bundle.lineage import NEVER_TRUE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_UNKNOWN = object()
# What is null wherever one of its operands is, and Spark knows it of.
_INTOLERANT = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Cast, exp.Between, exp.Extract),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.RegexpLike),
)
_CALLS = """
    abs bigint contains date date_add date_sub datediff day double endswith hour initcap int
    isnotnull length lower md5 minute month replace second startswith string substr substring
    timestamp to_date trim upper year
"""
_INTOLERANT_CALLS = frozenset(_CALLS.split())
_COMPARE: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
_TEXTS: dict[str, Callable[[str], str]] = {
    # Spark's own trim takes spaces only.
    "trim": lambda text: text.strip(" "),
    "lower": str.lower,
    "upper": str.upper,
}


def asked_of(tree: exp.Expr, resolved: Callable[[Sequence[str]], str | None]) -> frozenset[str]:
    """The columns of which a condition leaves out nulls, as `gem_bundle.lineage.Lineage.asks` has them.

    Args:
        tree: The condition.
        resolved: Called with the parts of a name: the column that it is, None where that isn't known.
    """
    found: set[str] = set()
    for part in _all_of(tree, negated=False):
        if part is None:
            return frozenset({NEVER_TRUE})
        found |= _needed(part, resolved)
    return frozenset(found)


def _all_of(tree: exp.Expr, *, negated: bool) -> list[exp.Expr | None]:
    """What must hold for a condition, or for its opposite; None among it is what never does."""
    node = bare(tree)
    known = _value(node)
    if known is not _UNKNOWN:
        return [] if known is not None and known is not negated else [None]
    if isinstance(node, exp.Not):
        return _all_of(node.this, negated=not negated)
    if isinstance(node, exp.Or if negated else exp.And):
        return [*_all_of(node.this, negated=negated), *_all_of(node.expression, negated=negated)]
    if isinstance(node, exp.And if negated else exp.Or):
        # What is known of one side is left out: with nothing but the other side it says as much.
        sides = [_all_of(side, negated=negated) for side in (node.this, node.expression)]
        for one, other in (sides, sides[::-1]):
            if None in one:
                return other
        return [] if [] in sides else [exp.Null()]
    if isinstance(node, exp.Between) and negated:
        return [exp.Null()]  # before the one bound or behind the other
    if isinstance(node, exp.Is) and isinstance(bare(node.expression), exp.Null):
        return [node.this] if negated else [exp.Null()]
    if isinstance(node, exp.Anonymous) and node.name.lower() == "isnull":
        return list(node.expressions) if negated else [exp.Null()]
    if isinstance(node, exp.Anonymous) and node.name.lower() == "isnotnull":
        return [exp.Null()] if negated else list(node.expressions)
    return [node]


def _needed(node: exp.Expr, resolved: Callable[[Sequence[str]], str | None]) -> set[str]:
    """The columns that must not be null for an expression not to be null, by its form."""
    node = bare(node)
    parts = parts_of(node)
    if parts is not None:
        found = resolved(parts)
        return set() if found is None else {found}
    if isinstance(node, exp.Cast):
        return _needed(node.this, resolved)
    if isinstance(node, _INTOLERANT) or (
        isinstance(node, exp.Anonymous) and node.name.lower() in _INTOLERANT_CALLS
    ):
        return set().union(*(_needed(inner, resolved) for inner in node.iter_expressions()))
    return set()


def _value(tree: exp.Expr) -> Any:
    """What an expression is for all rows: a value, None for null, or that it isn't known."""
    node = bare(tree)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Literal):
        return node.name if node.is_string else Decimal(node.name)
    if (
        isinstance(node, exp.Cast)
        and isinstance(bare(node.this), exp.Literal)
        and not bare(node.this).is_string
    ):
        return _value(node.this) if node.to.this in {exp.DType.DOUBLE, exp.DType.BIGINT} else _UNKNOWN
    if isinstance(node, exp.Not):
        value = _value(node.this)
        return (not value) if isinstance(value, bool) else value
    if isinstance(node, exp.And | exp.Or):
        return _both(node)
    if isinstance(node, exp.Is) and isinstance(bare(node.expression), exp.Null):
        value = _value(node.this)
        return _UNKNOWN if value is _UNKNOWN else value is None
    if isinstance(node, exp.DPipe):
        return _of_values(node, str, lambda one, other: one + other)
    if type(node) in _COMPARE:
        values = [_value(node.this), _value(node.expression)]
        # Of a text and a number Spark casts one.
        alike = all(isinstance(v, str) for v in values) or all(isinstance(v, Decimal) for v in values)
        return _COMPARE[type(node)](*values) if alike else _UNKNOWN
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
        made = _TEXTS.get(node.name.lower())
        value = _value(node.expressions[0])
        return made(value) if made is not None and isinstance(value, str) else _UNKNOWN
    return _UNKNOWN


def _of_values(node: exp.Expr, kind: type, made: Callable[[Any, Any], Any]) -> Any:
    values = [_value(node.this), _value(node.expression)]
    return made(*values) if all(isinstance(value, kind) for value in values) else _UNKNOWN


def _both(node: exp.Expr) -> Any:
    """What `and` or `or` makes of what is known of its sides: one may decide alone."""
    values = [_value(node.this), _value(node.expression)]
    decides = isinstance(node, exp.Or)
    if any(value is decides for value in values):
        return decides
    if _UNKNOWN in values:
        return _UNKNOWN
    return None if None in values else not decides
