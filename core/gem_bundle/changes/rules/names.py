"""Nodes that are called otherwise: nothing to Spark, and something to rows that tell who rejected them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.comparison import Told
from gem_bundle.changes.reach import Taint
from gem_bundle.changes.rules.transforms import tell
from gem_bundle.facts import REJECTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.comparison import Comparison

_NODE = "node"
"""The column of a rejected row that has the id of the node, as `gem_bundle.rejected.COLUMNS` has it."""


def compare_names(both: Comparison) -> Iterator[Told]:
    """The nodes that are called otherwise, with how far it reaches where anybody reads of them.

    Args:
        both: What is compared.
    """
    for old, new in both.pairs:
        if old.id == new.id:
            continue
        what = f"{new.kind} `{old.id}` is called `{new.id}` now"
        details = {"key": "was" if new.was else "", "before": old.id, "after": new.id}
        reach = both.reach(old, new, Taint(), outputs={REJECTED: Taint(columns={_NODE})})
        if reach.states or reach.target:
            told = f"{what}, and so it is in the rows that it rejects"
            yield Told(tell(both, reach, "GB443", told, new.id, **details), reach)
        else:
            yield Told(both.change("continues", "GB443", f"{what}, and nothing is lost", new.id, **details))
