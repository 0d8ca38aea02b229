"""What is to be known of a query's text before Spark reads it: where its comments and quotes are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    named_before = dict(places) if found is None else {n: places[n] for n in defined(text) if n in places}
    made, end = "", 0
    for table in found or ():
        place = places.get(table.name.lower())
        if place is not None and table.name.lower() not in named_before:
            name = "" if table.alias else f" AS `{table.name}`"
            made += f"{_escaped(text[end : table.start])}{{{place}}}{name}"
            end = table.end
    made += _escaped(text[end:])
    if not named_before:
        return f"(\n{made}\n)"
    tables = ", ".join(
        f"`{name}` AS (SELECT * FROM {{{place}}})"  # noqa: S608 (names of nodes)
        for name, place in named_before.items()
    )
    return f"WITH {tables} (\n{made}\n)"


def defined(query: str) -> set[str]:
    """The tables, in lower case, that get their name by a common table expression before the query.

    They are those that it names twice, since Spark refuses a stream that is read twice under one
    name, and those it takes a sample of, where there is no place for a name.
    """
    from gem_bundle.expressions.query import table_names

    found = table_names(statement(query)) or []
    names = [table.name.lower() for table in found]
    sampled = {table.name.lower() for table in found if table.sampled and not table.alias}
    return sampled | {name for name in names if names.count(name) > 1}


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _blank(match: re.Match[str]) -> str:
    text = match[0]
    return re.sub(r"[^\n]", " ", text) if text.startswith(("--", "/*")) else "'" * len(text)
