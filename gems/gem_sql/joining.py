"""Joins in a query: their kinds, their columns, and what their conditions mean for the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle import Column
from gem_sql.tree import UnknownQuery

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle import Facts
    from gem_bundle.operators import JoinType

JOINS: dict[tuple[str, str], JoinType] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "cross",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "left_semi",
    ("", "SEMI"): "left_semi",
    ("LEFT", "ANTI"): "left_anti",
    ("", "ANTI"): "left_anti",
}
"""How sqlglot says it: the side and the kind."""


def owner_of(facts: Facts) -> str:
    """The name of the table that all columns come from, or a stand-in."""
    owners = {column.qualifier for column in facts.columns or ()}
    return owners.pop() or "left" if len(owners) == 1 else "left"


def beside(how: JoinType, left: Facts, right: Facts) -> list[Column] | None:
    """The columns of a join without `using`."""
    if how in {"left_semi", "left_anti"}:
        return None if left.columns is None else list(left.columns)
    if left.columns is None or right.columns is None:
        return None
    return [*left.columns, *right.columns]


def joined_using(how: JoinType, names: Iterable[str], left: Facts, right: Facts) -> list[Column] | None:
    """The columns of a join with `using`: its keys first and once."""
    wanted = [name.lower() for name in names]
    if left.columns is None or (right.columns is None and how not in {"left_semi", "left_anti"}):
        return None
    pairs = [(left.column(name), right.column(name)) for name in wanted]
    keys = [other if how == "right" else key for key, other in pairs]
    if how == "full":
        # It is made of both, so it is neither's event time.
        keys = [
            Column(key.name, key.type if key.type == other.type else None) if key and other else None
            for key, other in pairs
        ]
    if None in keys:
        raise UnknownQuery
    rest = [c for c in left.columns if c.name.lower() not in wanted]
    if how not in {"left_semi", "left_anti"}:
        rest += [c for c in right.columns or () if c.name.lower() not in wanted]
    return [*(key for key in keys if key is not None), *rest]


def hidden_by_using(how: JoinType, names: Iterable[str], left: Facts, right: Facts) -> list[Column]:
    """The keys that `using` leaves out, which come with a side's own star nevertheless."""
    sides = {"right": [left], "full": [left, right], "left_semi": [], "left_anti": []}.get(how, [right])
    found = [side.column(name) for side in sides for name in names]
    return [column for column in found if column is not None]
