"""What Spark's optimizer makes of expressions that are the same for all rows.

Imports sqlglot, whose trees it works on.
"""

from __future__ import annotations

import operator
import re
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from gem_bundle.expressions.spark_parser import exp
from gem_bundle.expressions.trees import bare

if TYPE_CHECKING:
    from collections.abc import Callable

UNKNOWN: Final = object()
"""What is said of an expression that has another value for each row, or one that isn't known."""
COMPARE: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
_COMPUTE: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}
_BITS = {exp.DType.TINYINT: 7, exp.DType.SMALLINT: 15, exp.DType.INT: 31, exp.DType.BIGINT: 63}
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_MOMENTS = {exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPNTZ}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_TEXTS: dict[str, Callable[[str], str]] = {
    # Spark's own trim takes spaces only.
    "trim": lambda text: text.strip(" "),
    "lower": str.lower,
    "upper": str.upper,
}
_OF_TWO_TEXTS: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda text, part: part in text,
    "endswith": str.endswith,
    "startswith": str.startswith,
}
_PLAIN_PATTERN = re.compile(r"\^?[A-Za-z0-9 ]+")


def constant_of(tree: exp.Expr) -> bool | None:
    """Whether Spark's optimizer makes `true` or `false` of a condition; None where it makes neither.

    Args:
        tree: The condition.
    """
    value = value_of(tree)
    return value if isinstance(value, bool) else None


def value_of(tree: exp.Expr) -> Any:
    """What an expression is for all rows: a value, None for null, or `UNKNOWN`.

    Args:
        tree: The expression.
    """
    node = bare(tree)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Literal):
        return node.name if node.is_string else Decimal(node.name)
    if (
        isinstance(node, exp.Cast)
        and isinstance(bare(node.this), exp.Literal)
        and not bare(node.this).is_string
    ):
        return _cast(value_of(node.this), node.to.this)
    if isinstance(node, exp.Cast) and node.to.this is exp.DType.DATE:
        return _date_of(value_of(node.this))
    if isinstance(node, exp.Cast) and node.to.this in _MOMENTS:
        value = value_of(node.this)
        return _moment(value) if isinstance(value, str) else UNKNOWN
    if isinstance(node, exp.Neg):
        value = value_of(node.this)
        return -value if isinstance(value, Decimal) else UNKNOWN
    if type(node) in _COMPUTE:
        return _of_values(
            node, Decimal, lambda one, other: _whole(_COMPUTE[type(node)](one, other), one, other)
        )
    if isinstance(node, exp.Not):
        value = value_of(node.this)
        return (not value) if isinstance(value, bool) else value
    if isinstance(node, exp.And | exp.Or):
        return both_of(node, value_of(node.this), value_of(node.expression))
    if isinstance(node, exp.Is) and isinstance(bare(node.expression), exp.Null):
        value = value_of(node.this)
        return UNKNOWN if value is UNKNOWN else value is None
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        return _in_choices(node)
    if isinstance(node, exp.Is) and isinstance(bare(node.expression), exp.Boolean):
        value = value_of(node.this)
        return UNKNOWN if value is UNKNOWN else value is bool(bare(node.expression).this)
    if isinstance(node, exp.Like) and not node.args.get("escape"):
        return _of_values(node, str, _is_like)
    if isinstance(node, exp.RegexpLike):
        return _of_values(node, str, _is_as_written)
    if isinstance(node, exp.Concat) or (isinstance(node, exp.Anonymous) and node.name.lower() == "concat"):
        # Texts that stand one behind the other are one too: 'it''s'.
        parts = [value_of(part) for part in node.expressions]
        return "".join(parts) if len(parts) > 1 and all(isinstance(part, str) for part in parts) else UNKNOWN
    if isinstance(node, exp.DPipe):
        return _of_values(node, str, lambda one, other: one + other)
    if type(node) in COMPARE or isinstance(node, exp.NullSafeEQ):
        values = [value_of(node.this), value_of(node.expression)]
        if None in values:
            return None if type(node) in COMPARE else UNKNOWN
        return compared(node, values)
    if isinstance(node, exp.Anonymous) and node.name.lower() in _OF_TWO_TEXTS and len(node.expressions) == 2:
        one, other = map(value_of, node.expressions)
        known = isinstance(one, str) and isinstance(other, str)
        return _OF_TWO_TEXTS[node.name.lower()](one, other) if known else UNKNOWN
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
        made = _TEXTS.get(node.name.lower())
        value = value_of(node.expressions[0])
        if node.name.lower() == "date":
            return _date_of(value)
        return made(value) if made is not None and isinstance(value, str) else UNKNOWN
    return UNKNOWN


def _in_choices(node: exp.In) -> Any:
    """Whether a value is one of several."""
    value, choices = value_of(node.this), [value_of(choice) for choice in node.expressions]
    if value is None or all(choice is None for choice in choices):
        return None
    if value is UNKNOWN or UNKNOWN in choices or None in choices:
        return UNKNOWN
    found = [compared(exp.EQ(this=node.this, expression=node.this), [value, choice]) for choice in choices]
    return UNKNOWN if UNKNOWN in found else any(found)


def _is_like(text: str, pattern: str) -> Any:
    """Whether a text is like a pattern in which nothing is escaped."""
    if "\\" in pattern:
        return UNKNOWN
    signs = {"%": ".*", "_": "."}
    wanted = "".join(signs.get(sign) or re.escape(sign) for sign in pattern)
    return re.fullmatch(wanted, text, re.DOTALL) is not None


def _is_as_written(text: str, pattern: str) -> Any:
    """Whether a text has a pattern that stands for nothing but itself, at its beginning if so told."""
    if not _PLAIN_PATTERN.fullmatch(pattern):
        return UNKNOWN
    return text.startswith(pattern[1:]) if pattern.startswith("^") else pattern in text


def _cast(value: Decimal, to: exp.DType) -> Any:
    """What a number is as another one; `UNKNOWN` where it may lose something."""
    bits = _BITS.get(to)
    whole = bits is not None and value == int(value) and abs(value) < 2**bits
    return value if whole or to is exp.DType.DOUBLE else UNKNOWN


def _whole(*values: Decimal) -> Any:
    """The first of numbers, if all of them are the same number in every type of Spark's."""
    exact = all(value == int(value) and abs(value) < 2 ** _BITS[exp.DType.INT] for value in values)
    return values[0] if exact else UNKNOWN


def _date(text: str) -> Any:
    """The date that a text is, of four digits, and two times one or two; Spark knows more."""
    found = _DATE.fullmatch(text)
    try:
        return date(*map(int, found.groups())) if found else UNKNOWN
    except ValueError:
        return UNKNOWN  # null, or an error: that goes by how Spark is set


def _date_of(value: Any) -> Any:
    """The date of a text or of a time."""
    if isinstance(value, datetime):
        return value.date()
    return value if type(value) is date else _date(value) if isinstance(value, str) else UNKNOWN


def _moment(text: str) -> Any:
    """The time that a text is which has all of it, to the second; Spark knows more."""
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S") if _MOMENT.fullmatch(text) else UNKNOWN
    except ValueError:
        return UNKNOWN


def _of_values(node: exp.Expr, kind: type, made: Callable[[Any, Any], Any]) -> Any:
    values = [value_of(node.this), value_of(node.expression)]
    return made(*values) if all(isinstance(value, kind) for value in values) else UNKNOWN


def compared(node: exp.Expr, values: list[Any]) -> Any:
    """What a comparison makes of two values; `UNKNOWN` of those of several types.

    Args:
        node: The comparison.
        values: The values, none of which is null.
    """
    # A text beside a date or a time is one; of a text and a number Spark casts one.
    for kind, read in ((date, _date), (datetime, _moment)):
        if kind in map(type, values):
            values = [read(value) if isinstance(value, str) else value for value in values]
    alike = any(all(type(value) is kind for value in values) for kind in (str, Decimal, date, datetime, bool))
    compare = COMPARE[exp.EQ if isinstance(node, exp.NullSafeEQ) else type(node)]
    return compare(*values) if alike else UNKNOWN


def both_of(node: exp.Expr, *values: Any) -> Any:
    """What `and` or `or` makes of what is known of its sides: one may decide alone.

    Args:
        node: The condition.
        values: What its sides are.
    """
    decides = isinstance(node, exp.Or)
    if any(value is decides for value in values):
        return decides
    if UNKNOWN in values:
        return UNKNOWN
    return None if None in values else not decides
