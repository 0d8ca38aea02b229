"""What a join's condition means for the state of two streams.

It follows Spark's `ExtractEquiJoinKeys` and `StreamingJoinHelper`: which equalities are keys, whether one
of them carries a watermark, and whether a range of time bounds how long rows are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gem_bundle.expressions.analysis import parsed

if TYPE_CHECKING:
    from gem_bundle.facts import Facts
    from gem_bundle.operators import JoinOperator


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """What is known of a join's condition; None is unknown.

    Args:
        equality: Something of the left input must be equal to something of the right one.
        event_time_key: One of these equalities is about a column that carries a watermark, as it is.
        left_bounded: A range of time over the right input's watermark bounds how long rows of the left
            input are kept.
        right_bounded: The same for rows of the right input.
        marked: Both inputs carry a watermark, or may: Spark lets rows of a side go only where a column of it
            carries one too.
    """

    equality: bool | None = None
    event_time_key: bool | None = None
    left_bounded: bool | None = None
    right_bounded: bool | None = None
    marked: bool = True

    @property
    def lets_go(self) -> bool:
        """Whether rows are let go of by it, as a watermark advances, or may be."""
        return self.marked and (self.left_bounded, self.right_bounded) != (False, False)

    def of(self, join: JoinOperator) -> JoinOperator:
        """The join with what is known of its condition."""
        return replace(
            join,
            equality=self.equality,
            event_time_key=self.event_time_key,
            bounded=(self.left_bounded, self.right_bounded),
        )


def join_condition(condition: str, left: Facts, right: Facts, names: tuple[str, str]) -> JoinCondition:
    """What is known of a join's condition.

    Args:
        condition: The boolean expression.
        left: The facts of the left input.
        right: The facts of the right input.
        names: The names by which the condition calls the two.
    """
    tree = parsed(condition)
    marked = False not in {left.watermarked, right.watermarked}
    if tree is None:
        return JoinCondition(marked=marked)
    from gem_bundle.expressions.join_terms import Sides

    sides = Sides(left, right, names)
    try:
        return JoinCondition(
            equality=sides.equality(tree),
            event_time_key=sides.event_time_key(tree),
            left_bounded=sides.bounded(tree, "left"),
            right_bounded=sides.bounded(tree, "right"),
            marked=marked,
        )
    except RecursionError:
        return JoinCondition(marked=marked)
