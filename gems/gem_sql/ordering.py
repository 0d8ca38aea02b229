"""The order in which Spark's plans have the tables of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_sql.text import defined, statement
from gem_sql.tree import without_twins

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gem_bundle.expressions.query import exp

# Common table expressions that use each other double what they read.
_MOST_TABLES = 1000


def tables_in_order(query: str, names: Collection[str]) -> list[str] | None:
    """The tables of a query as its analyzed plan has them, from left to right.

    That is the order of the text. Common table expressions come before what uses them, in the text as in the
    plan, as long as they stand before the whole query: those within another part are moved to the front.

    Args:
        query: One query in Spark's SQL.
        names: The tables that are asked for, in lower case.

    Returns:
        Those that the query names, in lower case. None where the order can't be told, or where a table is
        named several times, which are one in the plan.
    """
    from gem_bundle.expressions.query import exp, query_tree, table_names

    text = statement(query)
    tree, found = query_tree(text), table_names(text)
    if tree is None or found is None or defined(query) & set(names):
        return None
    definitions = _definitions(tree)
    used = [table.name.lower() for table in tree.find_all(exp.Table) if len(table.parts) == 1]
    if definitions is None or any(used.count(cte.alias.lower()) != 1 for cte in definitions):
        return None
    return [name for table in found if (name := table.name.lower()) in names]


def tables_as_planned(query: str, names: Collection[str]) -> list[str] | None:
    """The tables of a query as its optimized plan has them, from left to right, each as often as it is there.

    Spark puts common table expressions where they are used: its rule `InlineCTE`.

    Args:
        query: One query in Spark's SQL.
        names: The tables that are asked for, in lower case.

    Returns:
        Those that the query reads, in lower case. None where that can't be told.
    """
    from gem_bundle.expressions.query import exp, query_tree

    tree = query_tree(statement(query))
    if tree is None:
        return None
    tree = without_twins(tree)
    definitions = _definitions(tree)
    if definitions is None:
        return None
    made: dict[str, list[str]] = {}
    tables = list(tree.find_all(exp.Table))
    for cte in definitions:
        of_it = (table for table in tables if table.find_ancestor(exp.CTE) is cte)
        made[cte.alias.lower()] = found = _in_place(of_it, made, names)
        if len(found) > _MOST_TABLES:
            return None
    return _in_place((table for table in tables if table.find_ancestor(exp.CTE) is None), made, names)


def _definitions(tree: exp.Query) -> list[exp.CTE] | None:
    """The common table expressions of a query; None where some are within a part of it, or recursive."""
    from gem_bundle.expressions.query import exp

    clauses = list(tree.find_all(exp.With))
    if any(clause is not tree.args.get("with_") or clause.args.get("recursive") for clause in clauses):
        return None
    return [cte for clause in clauses for cte in clause.expressions]


def _in_place(
    tables: Iterable[exp.Table], made: Mapping[str, list[str]], names: Collection[str]
) -> list[str]:
    """The tables in the order of the text, with those that common table expressions read in their places."""
    found: list[str] = []
    plain = (table for table in tables if len(table.parts) == 1)
    for table in sorted(plain, key=lambda table: table.this.meta.get("start", 0)):
        name = table.name.lower()
        found += made.get(name, [name] if name in names else [])
    return found
