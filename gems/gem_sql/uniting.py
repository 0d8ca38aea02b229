"""Two queries side by side: `union`, `except`, `intersect` with the `distinct` that they imply, and `in`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import AggregateOperator, Finding, event_times
from gem_bundle.expressions import UNKNOWN_DELAY, common_type
from gem_bundle.schema import differ_for_certain, with_article, without_equality
from gem_sql.tree import OPTION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle import Column, Facts


def side_by_side(left: Facts, right: Facts) -> list[Column] | None:
    """The columns of a set operation: the left ones, by position."""
    if left.columns is None or right.columns is None or len(left.columns) != len(right.columns):
        return None
    found = []
    for column, other in zip(left.columns, right.columns, strict=True):
        same = column.type is not None and column.type == other.type
        delay = column.delay if same or column.delay is None else UNKNOWN_DELAY
        entered = (*column.entered, *other.entered)
        kind = common_type([column.type, other.type])
        found.append(replace(column, type=kind, delay=delay, entered=entered))
    return found


def unfit_columns(left: Facts, right: Facts) -> Iterator[Finding]:
    """What keeps the rows of two queries from being put together."""
    if left.columns is None or right.columns is None:
        return
    here, there = len(left.columns), len(right.columns)
    if here != there:
        yield Finding(
            "GB213",
            f"the first query of a set operation has {here} columns and the second one {there}",
            "Select the same number of columns in both.",
            OPTION,
        )
        return
    for one, other in zip(left.columns, right.columns, strict=True):
        if differ_for_certain(one.type, other.type):
            yield Finding(
                "GB213",
                f"`{one.name}` is {with_article(one.type)} in the first query of a set operation and "
                f"`{other.name}` {with_article(other.type)} in the second one: they can't be one column",
                "Cast one of them.",
                OPTION,
            )


def unequal_rows(facts: Facts, what: str) -> Iterator[Finding]:
    """Columns that keep rows from being told equal, which `distinct` and all like it need.

    Args:
        facts: The rows.
        what: What needs it, as it is written.
    """
    for column in facts.columns or ():
        if without_equality(column.type):
            kind = with_article(column.type or "")
            yield Finding(
                "GB213",
                f"`{column.name}` is {kind}, and `{what}` can't tell two of them equal",
                "Leave it out, or make a text of it: `to_json(…)`.",
                OPTION,
            )


def unfit_choices(node: Any, choices: Facts) -> Iterator[Finding]:
    """`id in (select id, page …)`: there must be as many columns as values."""
    from sqlglot import exp

    # What makes a struct counts as its fields.
    plain = isinstance(node, exp.In) and isinstance(node.this, exp.Column | exp.Tuple)
    if not plain or choices.columns is None:
        return
    values = len(node.this.expressions) if isinstance(node.this, exp.Tuple) else 1
    count = len(choices.columns)
    if values != count:
        yield Finding(
            "GB213",
            f"`in` needs a query of {values} column{'s' * (values != 1)}, and this one has {count}",
            "Select as many columns as stand before `in`.",
            OPTION,
        )


def distinct_rows(facts: Facts) -> AggregateOperator:
    """Rows that are equal come once: an aggregation over all columns."""
    return AggregateOperator(
        option=OPTION,
        event_time=facts.watermarked,
        sessions=None if facts.columns is None else any(column.session for column in facts.columns),
        alone=facts.columns is not None and len(facts.columns) == 1 and facts.columns[0].session,
        rows=True,
        windowed=False,
        event_times=tuple(column.name for column in event_times(facts.columns or ())),
        key_types=None if facts.columns is None else tuple(column.type for column in facts.columns),
    )
