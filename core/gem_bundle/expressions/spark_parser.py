"""Spark SQL expressions as trees: sqlglot's Spark dialect, with functions left as they are written.

Importing this module imports sqlglot, which costs about 0.1 s: only what needs a tree does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

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


def _positive(parser: SparkParser) -> exp.Expr | None:
    """What stands behind a `+`, which sqlglot leaves out, and which is a function to Spark."""
    operand = parser._parse_unary()
    if operand is None or isinstance(operand, exp.Literal):
        return operand
    return exp.Anonymous(this="positive", expressions=[operand])


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
    UNARY_PARSERS: ClassVar[dict] = {  # type: ignore[type-arg]
        **SparkParser.UNARY_PARSERS,
        TokenType.PLUS: _positive,
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

    def _parse_join(self, *args: Any, **kwargs: Any) -> exp.Join | None:
        # To Spark tables behind commas are joined by `where`, as by an inner join; sqlglot makes a cross join
        # of them, which Spark has none of for streams.
        comma = self._curr is not None and self._curr.token_type == TokenType.COMMA
        join = super()._parse_join(*args, **kwargs)
        if comma and join is not None:
            join.set("kind", None)
        return join

    def _parse_interval(self, require_interval=True, parse_function_unit=True):  # type: ignore[no-untyped-def]
        # sqlglot reads a literal of several units as a sum, and any sum whose second part begins with a
        # number as such a literal: `interval 1 hour + 2 * x`.
        start = self._index
        if require_interval and self._match(TokenType.INTERVAL):
            parts: list[exp.Interval] = []
            while (value := self._interval_value(alone=not parts)) is not None:
                parts.append(self._parse_interval_span(value, parse_function_unit))
            if len(parts) == 1:
                return parts[0]
            if parts and all(isinstance(part.args.get("unit"), exp.Var) for part in parts):
                text = " ".join(f"{part.name} {part.text('unit')}" for part in parts)
                return self.expression(exp.Interval(this=exp.Literal.string(text)))
            self._retreat(start)
        return super()._parse_interval(require_interval, parse_function_unit)

    def _interval_value(self, *, alone: bool) -> exp.Literal | None:
        """The number of the next unit, without the unit; alone it may be a text that holds both."""
        tokens = self._tokens[self._index : self._index + 3]
        signs = [token.text for token in tokens[:1] if token.token_type in _SIGNS]
        number, unit = [*tokens[len(signs) :], None, None][:2]
        if number is None or number.token_type not in {TokenType.STRING, TokenType.NUMBER}:
            return None
        both = alone and not signs and number.token_type == TokenType.STRING
        if not both and (unit is None or unit.text.lower().removesuffix("s") not in _UNITS):
            return None
        self._advance(len(signs) + 1)
        return exp.Literal.string("".join([*signs, number.text]).removeprefix("+"))


_SIGNS = frozenset({TokenType.PLUS, TokenType.DASH})
_UNITS = frozenset(
    {
        *("year", "month", "week", "day", "hour", "minute", "second"),
        *("millisecond", "microsecond", "nanosecond"),
    }
)
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
