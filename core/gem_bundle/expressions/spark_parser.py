"""Spark SQL expressions as trees: sqlglot's Spark dialect, with functions left as they are written.

Importing this module imports sqlglot, which costs about 0.1 s: only what needs a tree does.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from gem_bundle.expressions.names import LONGEST

__all__ = ["exp", "tree_of"]

_OWN_SYNTAX = ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM", "TRY_CAST")
_NOT_SPARK = frozenset(
    {
        TokenType.ARROW,
        TokenType.DARROW,
        TokenType.HASH_ARROW,
        TokenType.DHASH_ARROW,
        TokenType.PLACEHOLDER,
    }
)


class _Parser(SparkParser):
    # sqlglot would turn functions into its own ones, which have no Spark names and other arguments.
    FUNCTIONS: ClassVar[dict] = {}  # type: ignore[type-arg]
    FUNCTION_PARSERS: ClassVar[dict] = {  # type: ignore[type-arg]
        name: SparkParser.FUNCTION_PARSERS[name] for name in _OWN_SYNTAX
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict] = {  # type: ignore[type-arg]
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }
    # `array(1)[0]` is an element in Spark, and no other way to write an array.
    ARRAY_CONSTRUCTORS: ClassVar[dict] = {}  # type: ignore[type-arg]
    COLUMN_OPERATORS: ClassVar[dict] = {  # type: ignore[type-arg]
        token: parse for token, parse in SparkParser.COLUMN_OPERATORS.items() if token not in _NOT_SPARK
    }

    def _parse_type(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        # Spark has functions called as types. Read as types first, nested ones take exponential time.
        if self._next.token_type == TokenType.L_PAREN and self._curr.token_type in _TYPES:
            return self._parse_column()
        return super()._parse_type(*args, **kwargs)


_TYPES = frozenset(SparkParser.TYPE_TOKENS) - {TokenType.INTERVAL}


class GemBundleSpark(Spark):
    """The dialect; sqlglot knows it by this name."""

    Parser = _Parser


_DIALECT = GemBundleSpark()


def tree_of(expression: str) -> exp.Expr | None:
    """The tree of an expression, or None where sqlglot can't make one of it."""
    if len(expression) > LONGEST:
        return None
    try:
        tokens = _DIALECT.tokenize(expression)
        trees = _DIALECT.parser(error_level=ErrorLevel.IMMEDIATE).parse_into(exp.Expr, tokens, expression)
    except (SqlglotError, RecursionError):
        return None
    return trees[0] if len(trees) == 1 else None
