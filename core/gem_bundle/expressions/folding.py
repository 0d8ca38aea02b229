"""Expressions without those of their parts that are decided by their form: `x = y or 1 = 2` is `x = y`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.expressions.constants import COMPARE, UNKNOWN, value_of
from gem_bundle.expressions.deciding import (
    ASKS_FOR_NULL,
    are_same,
    decided_by_form,
    decided_of_branch,
    deny_each_other,
    form_of,
    is_null,
    is_there,
)
from gem_bundle.expressions.spark_parser import exp
from gem_bundle.expressions.trees import bare, field_name, operands

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from gem_bundle.expressions.deciding import NeverNull

_FIRST_THERE = frozenset({"coalesce", "ifnull", "nvl"})
_NULL_OF_NULL = frozenset({"Add", "Sub", "Mul", "Div", "Mod", "EQ", "NEQ", "LT", "LTE", "GT", "GTE"})
"""What is null where one of its sides is."""
_BUILT = frozenset({"array", "map", "named_struct", "struct"})


def without_decided(
    tree: exp.Expr, never_null: NeverNull | None = None, whole: Container[str] = ()
) -> exp.Expr:
    """An expression in which no part of `and` and `or`, no branch and no comparison is decided by its form.

    Literals decide, whether something is null that never is, and what stands there twice. Spark's optimizer
    leaves such parts out (its rules `ConstantFolding`, `NullPropagation`, `BooleanSimplification`,
    `SimplifyBinaryComparison`, `SimplifyConditionals`, `SimplifyExtractValueOps` and
    `PushFoldableIntoBranches`), and takes the rest for what it is then: an equality, a condition on one of
    the inputs, or a column.

    Args:
        tree: The expression, which isn't changed.
        never_null: Whether a name means something that is never null; without it any column may be.
        whole: The functions whose calls stay as they are, by their names in lower case.
    """
    asked = tree.find_all(exp.Anonymous, exp.Between, exp.Binary, exp.Bracket, exp.Case, exp.Not)
    if not any(_left(node, never_null) for node in asked):
        return tree
    return _without(tree.copy(), never_null, whole)


def _without(node: exp.Expr, never: NeverNull | None, whole: Container[str]) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and node.name.lower() in whole:
        return node
    # Spark compares the two sides as they are written first.
    if isinstance(node, exp.And | exp.Or) and _is_decided_by_contraries(node, never):
        return exp.Boolean(this=isinstance(node, exp.Or))
    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expression):
            node.set(key, _without(value, never, whole))
        elif isinstance(value, list):
            parts = [_without(one, never, whole) if isinstance(one, exp.Expression) else one for one in value]
            node.set(key, parts)
    while (left := _left(node, never)) is not None:
        node = left
    return node


def _left(node: exp.Expr, never: NeverNull | None) -> exp.Expr | None:
    """What is left of an expression of which a part is decided; None where none is."""
    if (
        isinstance(node, exp.Binary)
        and type(node).__name__ in _NULL_OF_NULL
        and any(map(is_null, (node.this, node.expression)))
    ):
        return exp.Null()
    if isinstance(node, exp.And | exp.Or):
        return _one_side(node, never)
    if isinstance(node, exp.Case):
        return _branch_left(node, never)
    if isinstance(node, exp.Bracket | exp.Dot):
        return _taken_out(node)
    if isinstance(node, exp.Anonymous) and node.name.lower() not in ASKS_FOR_NULL:
        return _of_call(node, never)
    if (
        isinstance(node, exp.Is | exp.Not | exp.NullSafeEQ | exp.Anonymous | exp.Between)
        or type(node) in COMPARE
    ):
        known = decided_by_form(node, never)
        return None if known is None else exp.Boolean(this=known)
    return None


def _one_side(node: exp.Expr, never: NeverNull | None) -> exp.Expr | None:
    """What `and` or `or` is where one of its sides is decided, or says nothing beside the other."""
    idle = isinstance(node, exp.And)
    one: exp.Expr = node.this
    other: exp.Expr = node.expression
    for this, that in ((one, other), (other, one)):
        known = decided_by_form(this, never)
        if known is not None:
            return that if known is idle else exp.Boolean(this=known)
    # `a and (a or b)` is `a`, and so is `a or (a and b)`.
    parts = [{*map(form_of, operands(part, exp.Or if idle else exp.And))} for part in (one, other)]
    if None in parts[0] | parts[1]:
        return None
    if parts[0] <= parts[1]:
        return one
    if parts[1] <= parts[0]:
        return other
    return exp.Boolean(this=not idle) if _is_decided_by_contraries(node, never) else None


def _is_decided_by_contraries(node: exp.Expr, never: NeverNull | None) -> bool:
    """Whether one side of `and` or `or` is the contrary of the other, and never null."""
    return deny_each_other(node.this, node.expression) and is_there(node.this, never)


def _branch_left(node: exp.Expr, never: NeverNull | None) -> exp.Expr | None:
    """What branches give where it is decided which one it is, or where all are the same."""
    left: list[exp.Expr] = []
    last: exp.Expr | None = node.args.get("default")
    for branch in node.args["ifs"]:
        asked = branch.this if node.this is None else exp.EQ(this=node.this, expression=branch.this)
        known = decided_of_branch(asked, never)
        value: exp.Expr = branch.args["true"]
        if known and not left:
            return value
        if known is not False:
            left.append(exp.If(this=exp.true() if known else asked, true=value))
        if known:
            last = None  # Spark keeps it as a branch, and compares it with no other
            break
    if not left:
        return last if last is not None else exp.Null()
    steady = all(form_of(branch.this) is not None for branch in left)
    if last is not None and steady and all(are_same(branch.args["true"], last) for branch in left):
        return last
    same = len(left) == len(node.args["ifs"]) and last is node.args.get("default")
    return None if same else exp.Case(ifs=left, default=last)


def _of_call(node: exp.Anonymous, never: NeverNull | None) -> exp.Expr | None:
    """The same of functions that give one of their arguments."""
    name = node.name.lower()
    given: list[exp.Expr] = node.expressions
    if name in {"if", "iff"} and len(given) == 3:
        known = decided_of_branch(given[0], never)
        if known is None and are_same(given[1], given[2]) and form_of(given[0]) is not None:
            return given[1]
        return None if known is None else given[1 if known else 2]
    if name == "nvl2" and len(given) == 3:
        is_one = is_there(given[0], never) or (are_same(*given[1:]) and form_of(given[0]) is not None)
        return given[1] if is_one else None
    if name == "nullif" and len(given) == 2 and are_same(*given) and is_there(given[0], never):
        return exp.Null()
    if name in _FIRST_THERE and given:
        kept = [one for one in given if not isinstance(bare(one), exp.Null)]
        there = next((at for at, one in enumerate(kept) if is_there(one, never)), len(kept) - 1)
        kept = kept[: there + 1]
        if len(kept) < 2:
            return kept[0] if kept else exp.Null()
        return exp.Anonymous(this=node.this, expressions=kept) if len(kept) < len(given) else None
    return None


def _taken_out(node: exp.Expr) -> exp.Expr | None:
    """What is taken out of what is put together in the same expression; None for anything else."""
    built = bare(node.this)
    if not isinstance(built, exp.Anonymous) or built.name.lower() not in _BUILT:
        return None
    name = built.name.lower()
    given: list[exp.Expr] = built.expressions
    if isinstance(node, exp.Dot):
        if not isinstance(node.expression, exp.Identifier) or name not in {"named_struct", "struct"}:
            return None
        wanted = node.expression.name.lower()
        if name == "struct":
            names = [field_name(one, place) for place, one in enumerate(given, 1)]
            found = dict(zip((known and known.lower() for known in names), given, strict=True))
            value = None if None in names else found.get(wanted)
            return value.unalias() if value is not None else None
        return {str(value_of(key)).lower(): one for key, one in _pairs(given)}.get(wanted)
    at = value_of(node.expressions[0]) if len(node.expressions) == 1 else UNKNOWN
    if name == "array":
        places = {str(place): one for place, one in enumerate(given)}
        return places.get(str(at))
    # Of two values of one key Spark takes the first, or fails.
    keys = [value_of(key) for key, _ in _pairs(given)]
    if name != "map" or at is UNKNOWN or UNKNOWN in keys or keys.count(at) != 1:
        return None
    return given[2 * keys.index(at) + 1]


def _pairs(given: Sequence[exp.Expr]) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    return zip(given[::2], given[1::2], strict=False)
