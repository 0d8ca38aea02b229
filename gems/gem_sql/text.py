"""What is to be known of a query's text before Spark reads it: where its comments and quotes are."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.expressions.query import TableName

_SKIPPED = re.compile(
    r"""
      --(?:\\\n|[^\n])*                      # a comment to the end of the line
    | /\*.*?(?:\*/|\Z)                       # a comment in brackets
    | \br'[^']*'? | \br"[^"]*"?              # raw strings have no escapes
    | '(?:\\.|[^'\\])*'? | "(?:\\.|[^"\\])*"?
    | `(?:``|[^`])*`?
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def blanked(query: str) -> str:
    """The query as long as before, with spaces for comments and apostrophes for what is quoted."""
    return _SKIPPED.sub(_blank, query)


def statement(query: str) -> str:
    """The query without the semicolon, or several, that may end it."""
    end = len(blanked(query).rstrip(" \t\r\n;"))
    return query[:end] + query[end:].replace(";", " ")


def with_placeholders(query: str, places: Mapping[str, str]) -> str:
    """The query in brackets, its tables replaced by placeholders as ``SparkSession.sql`` takes them.

    In brackets Spark's grammar takes queries only, and no statements.

    Args:
        query: One query in Spark's SQL.
        places: The placeholder of each table, by its name in lower case.
    """
    from gem_bundle.expressions.query import table_names

    text = statement(query)
    found = table_names(text)
    before = places.keys() if found is None else _named_before(found) & places.keys()
    made, end = "", 0
    for table in found or ():
        place = places.get(table.name.lower())
        if place is not None and table.name.lower() not in before:
            name = "" if table.alias else f" AS `{table.name}`"
            made += f"{_escaped(text[end : table.start])}{{{place}}}{name}"
            end = table.end
    made += _escaped(text[end:])
    if not before:
        return f"(\n{made}\n)"
    tables = ", ".join(
        f"`{name}` AS (SELECT * FROM {{{place}}})"  # noqa: S608 (names of nodes)
        for name, place in places.items()
        if name in before
    )
    return f"WITH {tables} (\n{made}\n)"


def tables_of_the_catalog(query: str) -> dict[str, str]:
    """Tables that are named with their schema, and never without: how, by their own names in lower case."""
    from gem_bundle.expressions.query import exp, query_tree

    tree = query_tree(statement(query))
    tables = () if tree is None else tuple(tree.find_all(exp.Table))
    plain = {table.name.lower() for table in tables if len(table.parts) == 1}
    return {
        table.name.lower(): ".".join(part.name for part in table.parts)
        for table in tables
        if len(table.parts) > 1 and table.name.lower() not in plain
    }


def defined(query: str) -> set[str]:
    """The tables, in lower case, that get their name by a common table expression before the query."""
    from gem_bundle.expressions.query import table_names

    return _named_before(table_names(statement(query)) or [])


def _named_before(found: list[TableName]) -> set[str]:
    """Those that are named twice, and those a sample is taken of.

    Spark refuses a stream that is read twice under one name, and a sample leaves no place for one.
    """
    names = [table.name.lower() for table in found]
    sampled = {table.name.lower() for table in found if table.sampled and not table.alias}
    return sampled | {name for name, count in Counter(names).items() if count > 1}


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _blank(match: re.Match[str]) -> str:
    text = match[0]
    return re.sub(r"[^\n]", " ", text) if text.startswith(("--", "/*")) else "'" * len(text)
