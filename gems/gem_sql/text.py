"""What is to be known of a query's text before Spark reads it: where its comments and quotes are."""

from __future__ import annotations

import re

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


def _blank(match: re.Match[str]) -> str:
    text = match[0]
    return re.sub(r"[^\n]", " ", text) if text.startswith(("--", "/*")) else "'" * len(text)
