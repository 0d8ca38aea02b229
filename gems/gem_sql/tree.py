"""The trees that sqlglot makes of queries: what the others ask of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OPTION = "query"


# How joins are done changes nothing about their rows, or about what they keep.
_STRATEGIES = frozenset(
    [
        *("broadcast", "broadcastjoin", "mapjoin", "merge", "mergejoin", "shuffle_merge"),
        *("shuffle_hash", "shuffle_replicate_nl"),
    ]
)


class UnknownQuery(Exception):  # noqa: N818 (it says that nothing is known, not that something failed)
    """The query has something that is not followed here."""


class Item:
    """One item of a `select`: an expression with its name, or a star, maybe without some columns."""

    def __init__(
        self,
        text: str,
        name: str | None,
        *,
        star: bool = False,
        owner: str | None = None,
        left_out: frozenset[str] = frozenset(),
    ) -> None:
        self.text = text
        self.name = name
        self.star = star
        self.owner = owner
        self.left_out = left_out


def item_of(node: Any) -> Item:
    """What an item of a `select` is."""
    from sqlglot import exp

    if isinstance(node, exp.Star):
        return Item("*", None, star=True, left_out=_left_out(node))
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        return Item("*", None, star=True, owner=node.table.lower(), left_out=_left_out(node.this))
    if isinstance(node, exp.Alias):
        star = isinstance(node.this, exp.Star)
        return Item(sql_of(node.this), node.alias, star=star)
    if isinstance(node, exp.Aliases):
        raise UnknownQuery
    return Item(sql_of(node), None)


def _left_out(star: Any) -> frozenset[str]:
    """The columns that a star is without, as in `* except (id)`."""
    from sqlglot import exp

    only(star, frozenset({"except_"}))
    columns = star.args.get("except_") or ()
    if any(not isinstance(column, exp.Column) or column.table for column in columns):
        raise UnknownQuery
    return frozenset(column.name.lower() for column in columns)


def without_strategies(tree: Any) -> Any:
    """A query without the hints that say how joins are to be done.

    Args:
        tree: The query.

    Returns:
        Another tree where there is such a hint, else the same.
    """
    from sqlglot import exp

    def is_one(hint: Any) -> bool:
        return all(part.name.lower() in _STRATEGIES for part in hint.expressions)

    if not any(map(is_one, tree.find_all(exp.Hint))):
        return tree
    return tree.copy().transform(lambda node: None if isinstance(node, exp.Hint) and is_one(node) else node)


def without_twins(tree: Any) -> Any:
    """A query with `select distinct * from t` for each `union` of nothing but a table with itself.

    So Spark's rule `RemoveNoopUnion` has it. Of other queries that are united with themselves it makes one
    only where they compute each of their columns, or none: it compares them after it gave those of one other
    names.

    Args:
        tree: The query.

    Returns:
        Another tree where there is such a union, else the same.
    """
    from sqlglot import exp

    if tree.args.get("with_") or not any(map(_is_of_twins, tree.find_all(exp.Union))):
        return tree
    return tree.copy().transform(_once, copy=False)


def _once(node: Any) -> Any:
    from sqlglot import exp

    if not _is_of_twins(node):
        return node
    while not isinstance(node, exp.Select):
        node = node.this
    node.set("distinct", exp.Distinct())
    return node


def _is_of_twins(node: Any) -> bool:
    """Whether a query is a `union` of tables, all of which are the same one."""
    from sqlglot import exp

    waiting, sides = [node], []
    while waiting:
        side = waiting.pop()
        if isinstance(side, exp.Union) and _given(side) == {"this", "expression", "distinct"}:
            waiting += [side.this, side.expression]
        else:
            sides.append(side)
    return len(sides) > 1 and is_a_table(sides[0]) and all(side == sides[0] for side in sides)


def is_a_table(query: Any) -> bool:
    """Whether a query is nothing but `select * from` a table."""
    from sqlglot import exp

    stars = [isinstance(item, exp.Star) and not any(item.args.values()) for item in query.expressions]
    return isinstance(query, exp.Select) and _given(query) == {"expressions", "from_"} and stars == [True]


def _given(node: Any) -> set[str]:
    """The names of the parts that a node has."""
    return {name for name, value in node.args.items() if value}


def names_of(items: Iterable[Item]) -> frozenset[str]:
    """The names, in lower case, that the items of a `select` have been given."""
    return frozenset(item.name.lower() for item in items if item.name)


def subqueries(node: Any) -> Iterator[Any]:
    """The outermost queries within an expression."""
    from sqlglot import exp

    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Query):
            yield part
        else:
            waiting.extend(part.iter_expressions())


def subqueries_of(query: Any, clauses: Iterable[str]) -> Iterator[Any]:
    """The outermost queries within the expressions of some clauses of a query."""
    from sqlglot import exp

    for clause in clauses:
        found = query.args.get(clause)
        for part in found if isinstance(found, list) else [found]:
            yield from subqueries(part) if isinstance(part, exp.Expr) else ()


def conjuncts(condition: Any) -> Iterator[Any]:
    """The parts of a condition that all must hold."""
    from sqlglot import exp

    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.And):
        yield from conjuncts(condition.this)
        yield from conjuncts(condition.expression)
    else:
        yield condition


def columns_in(node: Any) -> Iterator[Any]:
    """The references to columns in a tree."""
    from sqlglot import exp

    yield from node.find_all(exp.Column)


def sql_of(node: Any) -> str:
    """An expression as SQL, with values for its subqueries, of which nothing is known."""
    from sqlglot import exp

    if node.find(exp.Query) is not None:
        node = node.transform(_without_subquery)
    text: str = node.sql(dialect="spark", comments=False, normalize_functions=False)
    return text


def _without_subquery(node: Any) -> Any:
    from sqlglot import exp

    if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query")):
        return exp.true()
    # A function that nobody knows: its type may be anything.
    return exp.Anonymous(this="__subquery") if isinstance(node, exp.Query) else node


def only(node: Any, known: frozenset[str]) -> None:
    """Refuse a node that has more than what is followed here."""
    for name, value in node.args.items():
        if name not in known and value:
            raise UnknownQuery
