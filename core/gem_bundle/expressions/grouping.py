"""What Spark groups by of what it is told to: nothing that is the same for all rows.

Spark's optimizer leaves such groups out (`RemoveLiteralFromGroupExpressions`), and keeps a number in place of
them where there are no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.expressions.analysis import folded, parsed
from gem_bundle.expressions.functions import BY_PLACE, SCALAR, UNSTEADY, words
from gem_bundle.expressions.tokens import UnreadableError, tokens
from gem_bundle.lineage import Made

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.expressions.spark_parser import exp

# It computes them for each row, or for each micro-batch, or fails by them.
_NOT_FOLDED = UNSTEADY.keys() | BY_PLACE | words("assert_true raise_error session_window window window_time")
_ONE_GROUP = Made("one group", frozenset(), frozenset())
# What Spark takes apart before, for which it computes all groups by themselves (`RewriteWithExpression`).
_TAKEN_APART = frozenset({"between", "count_if", "nullif"})


def grouped_by(
    groups: Iterable[tuple[str | None, Made, str | None]], computed: Iterable[str] = ()
) -> tuple[tuple[Made, ...], tuple[str | None, ...]]:
    """The groups that Spark keeps state by, and their types: each once, and none that is one value.

    Args:
        groups: Each that it is told, as it is written, how it is made, and its type; None is written by no
            expression.
        computed: What is computed of each group, as it is written: beside some of it even what is one value
            stays.
    """
    told = list(groups)
    stays = any(map(_is_taken_apart, computed))
    kept: list[tuple[Made, str | None]] = []
    for text, made, kind in told:
        if text is not None and (
            (not stays and _is_folded(text, made))
            or (_is_of_columns(text, made) and any(made == one for one, _ in kept))
        ):
            continue
        kept.append((made, kind))
    if told and not kept:
        return (_ONE_GROUP,), ("int",)
    return tuple(made for made, _ in kept), tuple(kind for _, kind in kept)


def _is_taken_apart(text: str) -> bool:
    try:
        return any(token.word in _TAKEN_APART for token in tokens(text))
    except UnreadableError:
        return False


def _is_folded(text: str, made: Made) -> bool:
    """Whether an expression is one value, which Spark computes before it plans the query."""
    if made.uses is None or made.uses:
        return False
    tree = parsed(text)
    if tree is None:
        return False
    from gem_bundle.expressions.spark_parser import exp

    if any(
        isinstance(node, exp.CurrentDate | exp.CurrentTime | exp.CurrentTimestamp) for node in tree.walk()
    ):
        return False
    left = folded(text)
    if left is None or _names_in(left) != _names_in(tree):
        return False  # it is over columns, and found to be one value once it is computed before the groups
    calls = (node.name.lower() for node in tree.find_all(exp.Anonymous))
    return all(name in SCALAR and name not in _NOT_FOLDED for name in calls)


def _is_of_columns(text: str, made: Made) -> bool:
    """Whether an expression is over columns, though it may be the same for all rows."""
    tree = None if made.uses else parsed(text)
    return bool(made.uses) or (tree is not None and bool(_names_in(tree)))


def _names_in(tree: exp.Expr) -> set[str]:
    from gem_bundle.expressions.spark_parser import exp

    return {column.sql(dialect="spark").lower() for column in tree.find_all(exp.Column)}
