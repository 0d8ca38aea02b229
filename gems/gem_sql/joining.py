"""Joins in a query: their kinds, their columns, and what their conditions mean for the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle import Column
from gem_sql.tree import UnknownQuery, columns_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


def without_using(tree: Any, left: Facts, right: Facts) -> Any:
    """The same query with a condition in the place of `using`, or None where that would be another one.

    Args:
        tree: A query that joins two tables by a join with `using`.
        left: What is known of the first table.
        right: The same of the second.
    """
    from gem_bundle.expressions.query import exp

    tree = tree.copy()
    (join,) = tree.args["joins"]
    how = JOINS.get((join.side, join.kind))
    wanted = [column.name.lower() for column in join.args["using"]]
    sides = {side.alias_or_name.lower(): side for side in (tree.args["from_"].this, join.this)}
    if how in {None, "full"} or len(sides) < 2 or left.columns is None or right.columns is None:
        return None
    first, second = sides

    def column(side: str, name: str) -> Any:
        return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(side, quoted=True))

    def keys_first(side: str, facts: Facts) -> Iterator[Any]:
        """The columns of a side's own star."""
        names = [c.name.lower() for c in facts.columns or ()]
        return (column(side, name) for name in [*wanted, *(n for n in names if n not in wanted)])

    key_side = second if how == "right" else first
    items: list[Any] = []
    for item in tree.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if not isinstance(star, exp.Star):
            items.append(item)
            continue
        owner = item.table.lower() if isinstance(item, exp.Column) else ""
        if any(star.args.values()) or owner not in {"", *sides}:
            return None
        if owner:
            items += keys_first(owner, left if owner == first else right)
            continue
        items += [column(c.qualifier or "", c.name) for c in joined_using(how, wanted, left, right) or ()]
    tree.set("expressions", items)
    for found in columns_in(tree):
        if not found.table and found.name.lower() in wanted:
            found.set("table", exp.to_identifier(key_side, quoted=True))
    join.set("using", None)
    join.set("on", exp.and_(*(exp.EQ(this=column(first, n), expression=column(second, n)) for n in wanted)))
    return tree


def with_condition(tree: Any) -> Any:
    """The same query, its `where` as the condition of a join that has none: Spark makes no difference.

    Where there is no `where` either all pairs count, by a condition that always holds.

    Args:
        tree: A query with one join.
    """
    from gem_bundle.expressions.query import exp

    (join,) = tree.args["joins"]
    where = tree.args.get("where")
    plain = JOINS.get((join.side, join.kind)) in {"inner", "cross"} and not join.args.get("method")
    on = join.args.get("on")
    asks = on is not None and not (isinstance(on, exp.Boolean) and on.this)
    if not plain or asks or join.args.get("using") or (where is None and on is not None):
        return tree
    tree = tree.copy()
    (join,) = tree.args["joins"]
    join.set("on", exp.true() if where is None else tree.args["where"].this)
    join.set("kind", None)
    tree.set("where", None)
    return tree
