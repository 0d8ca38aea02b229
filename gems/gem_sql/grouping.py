"""`group by`: what it groups by, and what Spark's rules ask of the aggregation."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import AggregateOperator, Finding, event_times
from gem_bundle.expressions import analyse, reference
from gem_bundle.operators import any_of
from gem_sql.tree import OPTION, UnknownQuery, sql_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle import Column, Facts
    from gem_sql.tree import Item

_WINDOW = re.compile(r"[\s(]*(session_window|window)\s*\(", re.IGNORECASE)


def plain_keys(group: Any) -> list[Any]:
    """What is grouped by, what stands in `rollup`, `cube` and `grouping sets` included."""
    from sqlglot import exp

    waiting = [*group.expressions]
    for name in ("rollup", "cube", "grouping_sets"):
        waiting += group.args.get(name) or ()
    found: list[Any] = []
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            waiting = [*node.expressions, *waiting]
        elif isinstance(node, exp.Paren):
            waiting.insert(0, node.this)
        elif node not in found:
            found.append(node)
    return found


def wrong_positions(keys: list[Any], items: list[Item]) -> Iterator[Finding]:
    """`group by 3` where the query has no third item."""
    if any(item.star for item in items):
        return
    for key in keys:
        position = _position(key)
        if position is not None and not 1 <= position <= len(items):
            yield Finding(
                "GB212",
                f"`group by {position}` means the item {position} of the `select`, which has {len(items)}",
                "Positions begin at 1; group by an expression or by the name of an item.",
                OPTION,
            )


def grouped_by(group: Any, keys: list[str]) -> tuple[str, ...] | None:
    """The expressions that items may use outside of aggregates; None when Spark finds them itself."""
    if group is not None and group.args.get("all"):
        return None
    windows = (_WINDOW.match(key) for key in keys)
    return (*keys, *(match[1].lower() for match in windows if match is not None))


def _position(node: Any) -> int | None:
    """The item that a number among the groups means."""
    from sqlglot import exp

    number = isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal()
    return int(node.this) if number else None


def several_times_over(group: Any) -> bool:
    """Whether it is grouped by `rollup`, `cube` or `grouping sets`."""
    from sqlglot import exp

    if group is None:
        return False

    several = exp.Rollup | exp.Cube | exp.GroupingSets
    named = any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets"))
    return named or any(isinstance(node, several) for node in group.expressions)


def with_others(aggregate: AggregateOperator) -> AggregateOperator:
    """The aggregation with other groups than those that are written, so that less is certain of it."""
    return replace(aggregate, alone=False, event_times=())


def group_key(node: Any, items: list[Item], facts: Facts) -> str:
    """The text of a group: `group by 1` and the name of an item mean that item's expression."""
    from sqlglot import exp

    if isinstance(node, exp.Literal) and not node.is_string:
        position = _position(node) or 0
        if not 1 <= position <= len(items) or any(item.star for item in items[:position]):
            raise UnknownQuery
        return items[position - 1].text
    text = sql_of(node)
    if isinstance(node, exp.Column) and not node.table:
        if facts.columns is None:
            return text
        if facts.column(node.name) is None:
            named = [i for i in items if i.name is not None and i.name.lower() == node.name.lower()]
            return named[0].text if named else text
    return text


def aggregation(keys: list[str], facts: Facts) -> AggregateOperator:
    """The aggregation over these groups, as far as Spark's rules ask."""
    found = list(_grouping_columns(keys, facts))
    varying = [key for key in keys if not analyse(key, facts.columns).constant]
    unknown = facts.columns is None or None in found
    known = [column for column in found if column is not None]
    carried = {column.delay for column in known if column.watermarked}
    marks = [column.watermarked for column in known]
    if unknown and facts.watermarked is not False:
        marks.append(None)
    sessions = any(column.session for column in known) or any(is_session(key) for key in keys)
    return AggregateOperator(
        option=OPTION,
        event_time=any_of(marks),
        sessions=sessions or (None if unknown else False),
        alone=sessions and len(varying) == 1,
        windowed=any(is_window(key) for key in keys) or any(column.session for column in known),
        delay=carried.pop() if len(carried) == 1 else None,
        event_times=tuple(column.name for column in event_times(known)),
    )


def _grouping_columns(keys: list[str], facts: Facts) -> Iterator[Column | None]:
    """The groups that are columns or windows; None for one that can't be told."""
    for key in keys:
        parts = reference(key)
        if parts is None and not is_window(key):
            continue  # an expression carries no watermark
        if parts is not None and len(parts) > 1 and facts.column(parts[0]) is not None:
            continue  # a field of a struct neither, when it is grouped by
        if facts.columns is None:
            yield None
            continue
        # Columns of one name are taken for one column; `window` and `session_window` can't both be made.
        analysis = analyse(key, facts.columns, name="window" if parts is None else parts[-1])
        yield analysis.column if analysis.parsed else None


def is_window(key: str) -> bool:
    """Whether a group is a time window."""
    return _WINDOW.match(key) is not None


def is_session(key: str) -> bool:
    """Whether a group is a window of sessions."""
    match = _WINDOW.match(key)
    return match is not None and match[1].lower() == "session_window"


def with_windows(facts: Facts, keys: list[str]) -> Facts:
    """The rows that are aggregated, with the windows that they are grouped by as columns."""
    if facts.columns is None:
        return facts
    made = []
    for key in keys:
        if is_window(key) and facts.column("session_window" if is_session(key) else "window") is None:
            name = "session_window" if is_session(key) else "window"
            column = analyse(key, facts.columns, name=name).column
            made.append(replace(column, session=is_session(key)))
    return replace(facts, columns=(*facts.columns, *made))
