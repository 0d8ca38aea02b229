"""The names that Spark gives to columns without one (`toPrettySQL`), where they are certain.

Imports sqlglot, whose trees it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from gem_bundle.expressions.functions import words
from gem_bundle.expressions.kinds import family
from gem_bundle.expressions.trees import bare, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gem_bundle.schema import DataType

    TypeOf = Callable[[exp.Expr], DataType | None]
    NameOf = Callable[[list[str]], str | None]

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
}
_CASTS = words("bigint binary boolean date double float int smallint string timestamp tinyint")
_PLAIN = {
    0: words("current_date current_timestamp monotonically_increasing_id now rand uuid"),
    1: words(
        """
        abs any any_value approx_count_distinct array avg bool_and coalesce collect_list collect_set
        concat count count_if day dayofmonth dayofweek every first hash hour initcap isnan last
        last_day lcase len length lower ltrim max md5 mean median min minute month quarter reverse
        sha1 size some std stddev struct sum timestamp_seconds to_date to_timestamp trim ucase upper
        variance weekofyear xxhash64 year
        """
    ),
    2: words(
        """
        add_months array array_contains coalesce concat count date_add date_diff date_format
        date_sub date_trunc datediff element_at get_json_object greatest hash ifnull least map
        max_by min_by mod named_struct nullif nvl round sha2 struct to_timestamp xxhash64
        """
    ),
    3: words("array coalesce concat greatest least replace struct substr"),
}


class Pretty:
    """Writes expressions as Spark does in names.

    Args:
        name_of: The name of a column, by the parts of a reference to it.
        type_of: The type of a part of the expression.
    """

    def __init__(self, name_of: NameOf, type_of: TypeOf) -> None:
        self._name_of = name_of
        self._type_of = type_of

    def name(self, node: exp.Expr) -> str | None:
        """The name of a column that is made by an expression; None where only Spark knows it."""
        parts = parts_of(node)
        if parts is not None:
            return parts[-1]
        if isinstance(node, exp.Dot) and parts_of(bare(node.this)) is not None:
            return str(node.expression.name)
        cast = self._cast(node)
        return self._text(node) if cast is None else self._name_of(cast)

    def _cast(self, node: exp.Expr) -> list[str] | None:
        """The column that is cast: its name stays."""
        if isinstance(node, exp.Cast):
            return parts_of(bare(node.this))
        if isinstance(node, exp.Anonymous) and node.name.lower() in _CASTS and len(node.expressions) == 1:
            return parts_of(bare(node.expressions[0]))
        return None

    def _text(self, node: exp.Expr) -> str | None:
        node = bare(node)
        parts = parts_of(node)
        if parts is not None:
            return self._name_of(parts)
        if isinstance(node, exp.Literal):
            plain = node.name.isprintable() and not set(node.name) & set("\\'\"")
            return str(node.name) if plain and (node.is_string or node.name.isdecimal()) else None
        if isinstance(node, exp.Null | exp.Boolean):
            return "NULL" if isinstance(node, exp.Null) else str(node.this).lower()
        if isinstance(node, exp.Not):
            inner = self._text(node.this)
            return None if inner is None or isinstance(bare(node.this), exp.Is) else f"(NOT {inner})"
        if isinstance(node, exp.Anonymous):
            return self._call(node)
        if isinstance(node, exp.Dot):
            # Of an array of structs, or of a map, the same sign takes something else, and makes another name.
            of_struct = (
                isinstance(node.expression, exp.Identifier) and family(self._type_of(node.this)) == "r"
            )
            owner = self._text(node.this) if of_struct else None
            return None if owner is None else f"{owner}.{node.expression.name}"
        return self._element(node) if isinstance(node, exp.Bracket) else self._operator(node)

    def _element(self, node: exp.Bracket) -> str | None:
        """An element of an array, or a value of a map."""
        if len(node.expressions) != 1 or family(self._type_of(node.this)) not in {"a", "m"}:
            return None
        if family(self._type_of(node.this)) == "a" and family(self._type_of(node.expressions[0])) != "i":
            return None
        owner, key = self._text(node.this), self._text(node.expressions[0])
        return None if owner is None or key is None else f"{owner}[{key}]"

    def _operator(self, node: exp.Expr) -> str | None:
        sign = _ARITHMETIC.get(type(node)) or _COMPARISONS.get(type(node))
        if sign is None:
            return None
        families = [family(self._type_of(operand)) for operand in (node.this, node.expression)]
        # Dates and times with numbers and lengths of time are functions for Spark.
        numbers = set("".join(families)) <= set("ifn") and "" not in families
        if not numbers and (type(node) in _ARITHMETIC or families[0] != families[1] or not families[0]):
            return None
        left, right = self._text(node.this), self._text(node.expression)
        return None if left is None or right is None else f"({left} {sign} {right})"

    def _call(self, node: exp.Anonymous) -> str | None:
        name = node.name.lower()
        arguments = list(node.expressions)
        if name in {"window", "session_window"}:
            return name
        if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            return "count(1)"
        distinct = ""
        if name in {"count", "sum"} and arguments and isinstance(arguments[0], exp.Distinct):
            distinct, arguments = "DISTINCT ", arguments[0].expressions
        if name not in _PLAIN.get(len(arguments), ()):
            return None
        texts = [self._text(argument) for argument in arguments]
        known = [text for text in texts if text is not None]
        return f"{name}({distinct}{', '.join(known)})" if len(known) == len(texts) else None
