"""Conditions on rows that are never true: Spark puts them before what keeps state, and before watermarks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.changes.conditions import let_nothing_through

if TYPE_CHECKING:
    from gem_bundle.changes.comparison import Comparison
    from gem_bundle.changes.model import Change

_SURE = frozenset({"continues", "from_now_on"})


def tell_of_empty(both: Comparison, changes: list[Change]) -> list[Change]:
    """The changes, of which nothing is promised where state is kept beside a condition that is never true.

    What such a query keeps, and by what its watermark goes, is decided by Spark's optimizer.

    Args:
        both: What is compared.
        changes: What the other rules say.
    """
    if not both.old.stateful and not both.new.stateful:
        return changes
    empty = [*let_nothing_through(both.after), *let_nothing_through(both.before)]
    if not empty:
        return changes
    return [_told(both, change, empty[0]) if change.verdict in _SURE else change for change in changes]


def _told(both: Comparison, change: Change, empty: str) -> Change:
    message = (
        f"{change.difference}: the condition of `{empty}` is never true, and "
        "how early Spark leaves out what comes to it can't be told, nor what state was made of"
    )
    return replace(change, verdict="mixed", message=message, hint=both.begin_anew)
