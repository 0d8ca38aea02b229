"""Conditions taken apart: what all must hold, and what must be equal, in whatever words they say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.expressions.spark_parser import exp


def taken_apart(node: exp.Expr, *, wanted: bool = True) -> Iterator[tuple[exp.Expr, bool]]:
    """The parts of a condition that all must hold, or of its contrary, each with whether it is to hold.

    Args:
        node: The condition.
        wanted: It is to hold, not its contrary.
    """
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    node = bare(node)
    if isinstance(node, exp.Not):
        yield from taken_apart(node.this, wanted=not wanted)
    elif isinstance(node, exp.And if wanted else exp.Or):
        yield from taken_apart(node.this, wanted=wanted)
        yield from taken_apart(node.expression, wanted=wanted)
    else:
        yield node, wanted


def equal_terms(tree: exp.Expr, *, wanted: bool = True) -> Iterator[exp.Expr]:
    """The comparisons for equality that hold where a condition does, in whatever words it says so.

    Args:
        tree: The condition.
        wanted: Whether it is to hold, or its contrary.

    Yields:
        Comparisons with ``=``, ``<=>`` or, where they are not to hold, ``<>``, and calls of `equal_null`.
    """
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    for node, holds in taken_apart(tree, wanted=wanted):
        if isinstance(node, exp.Or | exp.And):
            # One that can't be leaves the other.
            sides = [side for side in (node.this, node.expression) if _always(side) in {None, holds}]
            if len(sides) == 1:
                yield from equal_terms(sides[0], wanted=holds)
            elif holds and (equal := _equal_with_nulls(node)) is not None:
                yield equal
        elif isinstance(node, exp.EQ | exp.NullSafeEQ) and isinstance(bare(node.expression), exp.Boolean):
            yield from equal_terms(node.this, wanted=holds is bool(bare(node.expression).this))
        elif isinstance(node, exp.EQ | exp.NullSafeEQ if holds else exp.NEQ):
            yield node
        elif holds and isinstance(node, exp.Anonymous) and node.name.lower() == "equal_null":
            yield from [node] if len(node.expressions) == 2 else []


def _equal_with_nulls(node: exp.Expr) -> exp.Expr | None:
    """What is equal, or null on both sides, as Spark's `OptimizeJoinCondition` finds it; None for others."""
    from gem_bundle.expressions.deciding import form_of
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    for one, other in ((bare(node.this), bare(node.expression)), (bare(node.expression), bare(node.this))):
        if not isinstance(one, exp.EQ) or not isinstance(other, exp.And):
            continue
        nulls = [bare(part) for part in (other.this, other.expression)]
        if all(isinstance(part, exp.Is) and isinstance(part.expression, exp.Null) for part in nulls):
            lacking = sorted(repr(form_of(part.this)) for part in nulls)
            if lacking == sorted(repr(form_of(side)) for side in (one.this, one.expression)):
                return exp.NullSafeEQ(this=one.this.copy(), expression=one.expression.copy())
    return None


def _always(node: exp.Expr) -> bool | None:
    """What a condition without columns is, as far as that is easily told."""
    from gem_bundle.expressions.spark_parser import exp
    from gem_bundle.expressions.trees import bare

    node = bare(node)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.EQ | exp.NEQ):
        sides = bare(node.this), bare(node.expression)
        if all(isinstance(side, exp.Literal) and not side.is_string for side in sides):
            return (float(sides[0].this) == float(sides[1].this)) is isinstance(node, exp.EQ)
    return None
