"""Spark SQL queries as trees, and their tables, for gems that take whole queries.

Importing this module imports sqlglot, which costs about 0.1 s: only what needs a tree does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from gem_bundle.expressions.spark_parser import GemBundleSpark, names_among

__all__ = ["TableName", "exp", "query_tree", "table_names"]

_LONGEST = 100_000
_DIALECT = GemBundleSpark()


class TableName(NamedTuple):
    """Where a query names a table.

    Args:
        name: The name.
        start: Where it begins in the text of the query, from 0.
        end: Where it ends, the character behind it.
        alias: The name that the query gives it, or an empty string.
        sampled: Whether a sample of it is taken.
    """

    name: str
    start: int
    end: int
    alias: str
    sampled: bool = False


@lru_cache(maxsize=256)
def query_tree(query: str) -> exp.Query | None:
    """The tree of one query, or None where sqlglot can't make one of it."""
    if len(query) > _LONGEST:
        return None
    try:
        tokens = _DIALECT.tokenize(query)
        names_among(tokens)
        for position, token in enumerate(tokens):
            # sqlglot takes the function and the column for the clause that names windows.
            behind = [following.text.lower() for following in tokens[position + 2 : position + 4]]
            if token.token_type == TokenType.WINDOW and behind != ["as", "("]:
                token.token_type = TokenType.VAR
            # And the column that every Kafka topic has for the clause that skips rows.
            following = tokens[position + 1 : position + 2]
            if token.token_type == TokenType.OFFSET and not _is_number(following):
                token.token_type = TokenType.VAR
        trees = _DIALECT.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, query)
    except (SqlglotError, RecursionError):
        return None
    return trees[0] if len(trees) == 1 and isinstance(trees[0], exp.Query) else None


def _is_number(tokens: list[Token]) -> bool:
    return bool(tokens) and tokens[0].token_type in {TokenType.NUMBER, TokenType.L_PAREN}


def table_names(query: str) -> list[TableName] | None:
    """The plain names of tables in a query, those of its own common table expressions left out.

    Returns:
        The names in the order of the text; None where the query can't be read.
    """
    tree = query_tree(query)
    if tree is None:
        return None
    found: list[TableName] = []
    for table in tree.find_all(exp.Table):
        place = table.this.meta if isinstance(table.this, exp.Identifier) else {}
        if len(table.parts) > 1 or _is_defined(table):
            continue
        if "start" not in place:
            return None
        sampled = table.args.get("sample") is not None
        found.append(TableName(table.name, place["start"], place["end"] + 1, table.alias, sampled))
    return sorted(found, key=lambda name: name.start)


def _is_defined(table: exp.Table) -> bool:
    """Whether a common table expression that can be seen from there has the name."""
    name = table.name.lower()
    node: exp.Expr = table
    while node.parent is not None:
        parent = node.parent
        if isinstance(parent, exp.With):
            defined = parent.expressions[: parent.expressions.index(node)]
            parent = parent.parent or parent
        else:
            clause = parent.args.get("with_")
            defined = clause.expressions if clause is not None else []
        if any(cte.alias.lower() == name for cte in defined):
            return True
        node = parent
    return False
