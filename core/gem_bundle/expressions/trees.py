"""What is read off the trees of expressions: names, types, intervals, literals, and which are the same.

Imports sqlglot, whose trees these are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from gem_bundle.expressions.functions import SAME_AGGREGATES
from gem_bundle.expressions.kinds import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    interval,
)
from gem_bundle.schema import DataType, StructField

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

UNIT_FIRST = frozenset({"dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff"})
"""The functions whose first argument of three is a unit, which looks like a column."""
_TYPES = {
    exp.DType.BIGINT: BIGINT,
    exp.DType.BINARY: DataType("binary"),
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.DATE: DataType("date"),
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.FLOAT: DataType("float"),
    exp.DType.INT: INT,
    exp.DType.INTERVAL: DataType("interval"),
    exp.DType.SMALLINT: DataType("smallint"),
    exp.DType.TEXT: STRING,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: DataType("timestamp_ntz"),
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TINYINT: DataType("tinyint"),
    exp.DType.VARIANT: DataType("variant"),
}
_UNIT = re.compile(r"[a-z]+")
_UNITS = {
    "week": "day",
    "millisecond": "second",
    "microsecond": "second",
    **{unit: unit for unit in ("year", "month", "day", "hour", "minute", "second")},
}
_ORDER = ("year", "month", "day", "hour", "minute", "second")


def bare(node: exp.Expr) -> exp.Expr:
    """What stands in brackets."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def operands(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """The conditions that a conjunction or a disjunction is made of; any other one is made of itself.

    Args:
        node: The condition.
        kind: `exp.And` or `exp.Or`.
    """
    waiting = [node]
    while waiting:
        node = bare(waiting.pop())
        if isinstance(node, kind):
            waiting += [node.expression, node.this]
        else:
            yield node


def parts_of(node: exp.Expr) -> list[str] | None:
    """The names of a plain reference to a column; None when it is something else."""
    if isinstance(node, exp.Column):
        return None if isinstance(node.this, exp.Star) else [part.name for part in node.parts]
    if isinstance(node, exp.Identifier):
        return [node.name]
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        before = parts_of(node.this)
        return None if before is None else [*before, node.expression.name]
    return None


def shape(node: object, columns: Mapping[tuple[str, ...], tuple[str, ...]] | None = None) -> object:
    """What makes two expressions the same for Spark: not case, brackets, or which name something has.

    Args:
        node: The expression's tree.
        columns: Which columns its names are, where there may be several of one name.
    """
    if isinstance(node, list):
        return tuple(shape(item, columns) for item in node)
    if not isinstance(node, exp.Expr):
        return node
    node = bare(node)
    if isinstance(node, exp.Alias):
        return shape(node.this, columns)
    parts = parts_of(node)
    if parts is not None:
        known = (columns or {}).get(tuple(parts))
        return tuple(part.lower() for part in parts[-1:]) if known is None else known
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        if name == "struct":
            return (name, tuple(_field(given, columns) for given in node.expressions))
        return (
            SAME_AGGREGATES.get(name, name),
            tuple(_argument(given, columns) for given in node.expressions),
        )
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        # It names a field, also where there is a column of that name.
        return (
            exp.Dot,
            (("this", shape(node.this, columns)), ("expression", (node.expression.name.lower(),))),
        )
    return (type(node), tuple((key, shape(value, columns)) for key, value in node.args.items() if value))


def _argument(node: exp.Expr, columns: Mapping[tuple[str, ...], tuple[str, ...]] | None) -> object:
    """The form of an argument, with the name that it is given: that of a field, as in ``struct(at as t)``."""
    found = shape(node, columns)
    if not isinstance(node, exp.Alias):
        return found
    parts = parts_of(bare(node.this))
    return found if parts is not None and parts[-1].lower() == node.alias.lower() else (found, node.alias)


def _field(node: exp.Expr, columns: Mapping[tuple[str, ...], tuple[str, ...]] | None) -> object:
    """The same of what is put into a struct: there a column's name is the field's, in the letters it has."""
    parts = parts_of(bare(node))
    if parts is None or parts[-1] == parts[-1].lower():
        return _argument(node, columns)
    return (shape(node, columns), parts[-1])


def means_all_columns(star: exp.Star) -> bool:
    """Whether a star stands for all columns; in `count(*)` it stands for rows."""
    call = star.parent
    if not isinstance(call, exp.Anonymous) or call.name.lower() != "count":
        return True
    return len(call.expressions) != 1


def type_of_cast(node: exp.Expr) -> DataType | None:
    """The type that a cast names; None when it isn't known here."""
    if not isinstance(node, exp.DataType) or node.args.get("collate") is not None:
        return None
    inner: Sequence[exp.Expr] = node.expressions
    if isinstance(node.this, exp.Interval):
        return interval_type(node.this)
    if node.this == exp.DType.DECIMAL:
        numbers = [int(part.name) for part in inner]
        return DataType("decimal", (numbers[0] if numbers else 10, numbers[1] if len(numbers) > 1 else 0))
    if node.this in {exp.DType.ARRAY, exp.DType.MAP}:
        parts = [type_of_cast(part) for part in inner]
        known = tuple(part for part in parts if part is not None)
        name = "array" if node.this == exp.DType.ARRAY else "map"
        return DataType(name, parts=known) if len(known) == len(parts) > 0 else None
    if node.this == exp.DType.STRUCT:
        return _struct(inner)
    return None if inner else _TYPES.get(node.this)


def _struct(definitions: Sequence[exp.Expr]) -> DataType | None:
    fields: list[StructField] = []
    for made in definitions:
        kind = type_of_cast(made.args["kind"]) if isinstance(made, exp.ColumnDef) else None
        if kind is None:
            return None
        fields.append(StructField(made.name, kind))
    return DataType("struct", fields=tuple(fields))


def interval_type(node: exp.Interval) -> DataType | None:
    """The type of an interval literal, by its units."""
    unit = node.args.get("unit")
    named = [unit.this, unit.expression] if isinstance(unit, exp.IntervalSpan) else [unit]
    words = [one.name for one in named if one is not None]
    if not words and isinstance(node.this, exp.Literal):
        words = _UNIT.findall(node.this.name.lower())
    units = [_UNITS.get(word.lower().removesuffix("s")) for word in words]
    if not units or None in units:
        return None
    positions = sorted(_ORDER.index(unit) for unit in units if unit is not None)
    if positions[0] < 2 <= positions[-1]:
        return None
    return interval(_ORDER[positions[0]], _ORDER[positions[-1]])


def number_type(text: str) -> DataType | None:
    """The type of a number as it is written."""
    digits = text.lower().removeprefix("-")
    if "e" in digits:
        return DOUBLE
    whole, point, fraction = digits.partition(".")
    if point:
        scale = len(fraction)
        precision = len(f"{whole}{fraction}".lstrip("0")) or 1
        return DataType("decimal", (max(precision, scale), scale)) if precision <= 38 else None
    value = int(whole) - text.startswith("-")
    if value < 1 << 63:
        return INT if value < 1 << 31 else BIGINT
    return DataType("decimal", (len(str(value)), 0)) if len(str(value)) <= 38 else None


def written(node: exp.Expr, source: str) -> str:
    """A call as it stands in the source, from its name to its closing bracket."""
    start = node.meta.get("start")
    if start is None:
        return node.name
    depth = 0
    quote = ""
    for position in range(start, len(source)):
        character = source[position]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                return source[start : position + 1]
    return node.name


def field_name(node: exp.Expr, position: int) -> str | None:
    """The name that `struct` gives a field; None when only Spark knows it."""
    if isinstance(node, exp.Alias):
        return node.alias
    node = bare(node)
    parts = parts_of(node)
    if parts is not None:
        return parts[-1]
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    return f"col{position}" if isinstance(node, exp.Literal | exp.Binary | exp.Cast) else None
