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
    if found is None:
        return _with_expressions(text, places)
    made, end = "", 0
    for table in found:
        place = places.get(table.name.lower())
        if place is not None:
            name = "" if table.alias else f" AS `{table.name}`"
            made += f"{_escaped(text[end : table.start])}{{{place}}}{name}"
            end = table.end
    return f"(\n{made}{_escaped(text[end:])}\n)"


def _with_expressions(query: str, places: Mapping[str, str]) -> str:
    """The same for a query whose tables can't be told without Spark: it gets their names beforehand.

    Common table expressions give them, which Spark's check of streams doesn't look through.
    """
    tables = ", ".join(
        f"`{name}` AS (SELECT * FROM {{{place}}})"  # noqa: S608 (names of nodes)
        for name, place in places.items()
    )
    return f"WITH {tables} (\n{_escaped(query)}\n)"


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _blank(match: re.Match[str]) -> str:
    text = match[0]
    return re.sub(r"[^\n]", " ", text) if text.startswith(("--", "/*")) else "'" * len(text)
