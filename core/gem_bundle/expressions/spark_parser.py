"""Spark SQL expressions as trees: sqlglot's Spark dialect, with functions left as they are written.

Importing this module imports sqlglot, which costs about 0.1 s: only what needs a tree does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from gem_bundle.expressions.names import LONGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlglot.tokenizer_core import Token

__all__ = ["exp", "names_among", "tree_of"]

_CASTS = ("CAST", "TRY_CAST")
_OWN_SYNTAX = ("EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM")
_NOT_SPARK = frozenset(
    {
        TokenType.ARROW,
        TokenType.DARROW,
        TokenType.HASH_ARROW,
        TokenType.DHASH_ARROW,
        TokenType.PLACEHOLDER,
    }
)


def _unless_empty(name: str) -> Callable[[SparkParser], exp.Expr | None]:
    """Reads a function of its own syntax; without any arguments it is a call like others."""
    own: Callable[[SparkParser], exp.Expr | None] = SparkParser.FUNCTION_PARSERS[name]

    def parse(parser: SparkParser) -> exp.Expr | None:
        if parser._curr and parser._curr.token_type == TokenType.R_PAREN:
            return exp.Anonymous(this=name.lower())
        return own(parser)

    return parse


class _Parser(SparkParser):
    # sqlglot would turn functions into its own ones, which have no Spark names and other arguments.
    FUNCTIONS: ClassVar[dict] = {}  # type: ignore[type-arg]
    FUNCTION_PARSERS: ClassVar[dict] = {  # type: ignore[type-arg]
        **{name: SparkParser.FUNCTION_PARSERS[name] for name in _CASTS},
        **{name: _unless_empty(name) for name in _OWN_SYNTAX},
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
        names_among(tokens)
        trees = _DIALECT.parser(error_level=ErrorLevel.IMMEDIATE).parse_into(exp.Expr, tokens, expression)
    except (SqlglotError, RecursionError):
        return None
    return trees[0] if len(trees) == 1 else None


def names_among(tokens: Sequence[Token]) -> None:
    """Make names of the keywords that can only be names there for Spark: ``page in`` calls a column `in`."""
    kinds = [token.token_type for token in tokens]
    no_case = TokenType.END not in kinds
    # `position('a' in page)` has it without brackets.
    no_position = all(token.text.lower() != "position" for token in tokens)
    for token, kind, after in zip(tokens, kinds, [*kinds[1:], None], strict=False):
        in_name = no_position and kind == TokenType.IN and after != TokenType.L_PAREN
        if in_name or (no_case and kind in {TokenType.CASE, TokenType.WHEN}):
            token.token_type = TokenType.IDENTIFIER
