"""The order in which Spark's plan has the tables of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_sql.text import defined, statement

if TYPE_CHECKING:
    from collections.abc import Collection


def tables_in_order(query: str, names: Collection[str]) -> list[str] | None:
    """The tables of a query as its plan has them, from left to right.

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
    with_clauses = list(tree.find_all(exp.With))
    if any(clause is not tree.args.get("with_") or clause.args.get("recursive") for clause in with_clauses):
        return None
    definitions = [cte.alias.lower() for clause in with_clauses for cte in clause.expressions]
    used = [table.name.lower() for table in tree.find_all(exp.Table) if len(table.parts) == 1]
    if any(used.count(name) != 1 for name in definitions):
        return None
    return [name for table in found if (name := table.name.lower()) in names]
