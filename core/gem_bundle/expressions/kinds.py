"""The types of expressions, as far as Spark's two modes (ANSI and not) agree on them.

`spark.sql.ansi.enabled` changes what texts and numbers become together, and nothing here knows how it is
set. Rules were measured on Spark 4.2; tests/integration/test_expressions.py compares them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from gem_bundle.schema import DataType, StructField, type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.facts import Column

BOOLEAN = DataType("boolean")
INT = DataType("int")
BIGINT = DataType("bigint")
FLOAT = DataType("float")
DOUBLE = DataType("double")
STRING = DataType("string")
BINARY = DataType("binary")
DATE = DataType("date")
TIMESTAMP = DataType("timestamp")
TIMESTAMP_NTZ = DataType("timestamp_ntz")
VOID = DataType("void")
DAY_TIME = DataType("interval day to second")
YEAR_MONTH = DataType("interval year to month")

Marks = tuple[tuple[tuple[str, ...], str], ...]

_INTEGRAL = ("tinyint", "smallint", "int", "bigint")
# How many digits an integer may have, for Spark's decimals.
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_FAMILIES = {
    "boolean": "b",
    **dict.fromkeys(_INTEGRAL, "i"),
    "float": "f",
    "double": "f",
    "decimal": "n",
    "string": "s",
    "binary": "x",
    "date": "d",
    "timestamp": "t",
    "timestamp_ntz": "t",
    "interval": "c",
    "array": "a",
    "map": "m",
    "struct": "r",
}
_DAY_TIME_UNITS = ("day", "hour", "minute", "second")
_YEAR_MONTH_UNITS = ("year", "month")

_NUMBERS = "ii in if ni nn nf fi fn ff is si ns sn fs sf ss"
_SCALES = "vi vn vf vs iv nv fv sv yi yn yf ys iy ny fy sy ci cn cf cs ic nc fc sc"
_ALIKE = "bb ii in if ni nn nf fi fn ff ss xx dd dt td tt vv yy aa rr"
_TEXTS = "sb bs si is sn ns sf fs sx xs sd ds st ts"
_OPERANDS = {
    "+": f"{_NUMBERS} di id dv vd dy yd dc cd tv vt ty yt tc ct vv yy cc sv vs sc cs",
    "-": f"{_NUMBERS} di dd dt td tt ds sd ts st dv dy dc tv ty tc vv yy cc sv sc",
    "*": f"{_NUMBERS} {_SCALES}",
    "/": f"{_NUMBERS} vi vn vf vs yi yn yf ys ci cn cf cs",
    "%": _NUMBERS,
    "div": "ii in ni nn is si vv yy",
    "compare": f"{_ALIKE} {_TEXTS} bi bn bf ib nb fb",
    "in": f"{_ALIKE} {_TEXTS} sv vs sy ys",
    "branches": f"{_ALIKE} {_TEXTS} vs sv ys sy cc mm",
    "and": "bb bs sb",
    "bits": "ii is si",
    "cast": """
        aa as bb bf bi bn bs bt db dd df di dn ds dt fb ff fi fn fs ft ib if ii in is it iv ix iy mm ms nb
        nf ni nn ns nt nv ny rr rs sb sd sf si sn ss st sv sx sy tb td tf ti tn ts tt vi vn vs vv xs xx yi yn
        ys yy
    """,
}
_ALLOWED = {operator: frozenset(pairs.split()) for operator, pairs in _OPERANDS.items()}


@dataclass(frozen=True, slots=True)
class EventTimeField(StructField):
    """A field of a struct that is event time: taken out of it, it carries the watermark again.

    Args:
        delay: The watermark's delay.
    """

    delay: str = ""


def kind_of(column: Column) -> DataType | None:
    """A column's type, with the event time in it."""
    kind = None if column.type is None else read(column.type)
    return kind if kind is None or not column.marks else _marked(kind, dict(column.marks), ())


@lru_cache(maxsize=1024)
def read(text: str) -> DataType | None:
    """A type in DDL taken apart."""
    return type_of(text)


def marks_of(kind: DataType | None) -> Marks:
    """The event time in a type: the way to each field, and its delay."""
    return () if kind is None else tuple(_marks(kind, ()))


def _marks(kind: DataType, way: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for made in kind.fields:
        below = (*way, made.name.lower())
        if isinstance(made, EventTimeField):
            yield below, made.delay
        yield from _marks(made.type, below)
    for position, part in enumerate(kind.parts):
        yield from _marks(part, (*way, str(position)))


def _marked(kind: DataType, marks: dict[tuple[str, ...], str], way: tuple[str, ...]) -> DataType:
    """A type with marks put where `_marks` found them."""
    fields: list[StructField] = []
    for plain in kind.fields:
        below = (*way, plain.name.lower())
        fields.append(field(plain.name, _marked(plain.type, marks, below), marks.get(below)))
    parts = tuple(_marked(part, marks, (*way, str(i))) for i, part in enumerate(kind.parts))
    return DataType(kind.name, kind.arguments, parts, tuple(fields))


def field(name: str, kind: DataType, delay: str | None = None) -> StructField:
    """A field of a struct; with a delay it is event time."""
    return StructField(name, kind) if delay is None else EventTimeField(name, kind, delay=delay)


def family(kind: DataType | None) -> str:
    """The letter of the types that behave alike; empty for those of which nothing is said."""
    if kind is None:
        return ""
    if kind.name.startswith("interval "):
        return "y" if _units(kind)[0] in _YEAR_MONTH_UNITS else "v"
    return _FAMILIES.get(kind.name, "")


def is_window(kind: DataType) -> bool:
    """Whether it is the type of windows over time."""
    return [made.name for made in kind.fields] == ["start", "end"]


def fits(operator: str, left: DataType | None, right: DataType | None) -> bool | None:
    """Whether an operator takes these operands; None where that can't be told.

    Args:
        operator: ``+ - * / % div``, ``compare``, ``in``, ``and`` (and `or`), ``bits``; ``branches`` of one
            value, such as those of a `case`; ``cast`` of the first type to the second.
        left: The type of its first operand.
        right: The type of its second one.
    """
    pair = family(left) + family(right)
    # What `make_interval` gives mixes with the other intervals where Spark can convert it.
    return None if len(pair) < 2 or "c" in pair else pair in _ALLOWED[operator]


def computed(operator: str, left: DataType | None, right: DataType | None) -> DataType | None:
    """The type of an arithmetic expression, or None when unknown."""
    pair = family(left) + family(right)
    if left is None or right is None or pair not in _ALLOWED[operator]:
        return None
    if operator == "div":
        return BIGINT if "s" not in pair else None
    if set(pair) <= set("inf"):
        return _number(operator, left, right)
    if set(pair) & set("dt"):
        return _time(operator, left, right)
    if operator in "*/" and set(pair) & set("vy"):
        return DAY_TIME if "v" in pair else YEAR_MONTH
    if pair in {"vv", "yy"}:
        return widest(left, right)
    return left if pair == "cc" else None


def _number(operator: str, left: DataType, right: DataType) -> DataType | None:
    names = {left.name, right.name}
    if "double" in names:
        return DOUBLE
    if "float" in names:
        # With whole numbers and decimals it depends on the mode.
        return (DOUBLE if operator == "/" else FLOAT) if names == {"float"} else None
    if "decimal" in names:
        return _decimal(operator, _precision(left), _precision(right))
    if operator == "/":
        return DOUBLE
    return DataType(max(names, key=_INTEGRAL.index))


def _precision(kind: DataType) -> tuple[int, int]:
    if kind.name == "decimal":
        return kind.arguments[0], kind.arguments[1]
    return _DIGITS[kind.name], 0


def _decimal(operator: str, left: tuple[int, int], right: tuple[int, int]) -> DataType | None:
    """Precision and scale of a result (Spark's `DecimalPrecision`); None where they'd be cut."""
    (p1, s1), (p2, s2) = left, right
    if operator in "+-":
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif operator == "*":
        precision, scale = p1 + p2 + 1, s1 + s2
    elif operator == "/":
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    else:
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    return DataType("decimal", (precision, scale)) if precision <= 38 else None


def _time(operator: str, left: DataType, right: DataType) -> DataType | None:
    pair = family(left) + family(right)
    if operator == "-" and not set(pair) - set("dt"):
        return DataType("interval day") if pair == "dd" else DAY_TIME
    if "s" in pair:
        return None
    time, other = (left, right) if pair[0] in "dt" else (right, left)
    if time.name == "date" and family(other) == "v":
        return DATE if _units(other) == ("day", "day") else TIMESTAMP
    return time


def common(kinds: Iterable[DataType | None]) -> DataType | None:
    """The type that branches have together (`case`, `coalesce`, `array`); None when unknown."""
    found: DataType | None = None
    for kind in kinds:
        if kind is None:
            return None
        if found is None or found == VOID:
            found = kind
        elif kind not in {found, VOID}:
            found = _common(found, kind)
            if found is None:
                return None
    return found


def common_type(kinds: Iterable[str | None]) -> str | None:
    """The type that values of several types have together, without numbers becoming texts; None when unknown.

    It is that of branches, and of columns that become one by `unpivot`.

    Args:
        kinds: Types in DDL, None for one that isn't known.
    """
    given = list(kinds)
    if given and len(set(given)) == 1:
        return given[0]
    made = common([None if kind is None else type_of(kind) for kind in given])
    return None if made is None else str(made)


def united_type(one: str | None, other: str | None) -> str | None:
    """The type of a column of a `union`, where a text becomes what the other is; None when unknown.

    It is so unless `spark.sql.ansi.enabled` is off (Spark's `AnsiTypeCoercion`): for what is no diagnostic of
    its own.

    Args:
        one: A type in DDL, None for one that isn't known.
        other: Another one.
    """
    found = common_type([one, other])
    if found is not None or one is None or other is None:
        return found
    kinds = {kind.name: kind for kind in map(type_of, (one, other)) if kind is not None}
    families = {family(kind) for kind in kinds.values()} - {"s"}
    if STRING not in kinds.values():
        return str(DOUBLE) if "float" in kinds and families <= set("inf") else None
    if families <= set("nf"):
        return str(DOUBLE)
    return str(BIGINT) if families == {"i"} else other if one == "string" else one


def _common(left: DataType, right: DataType) -> DataType | None:
    pair = family(left) + family(right)
    if len(pair) < 2:
        return None
    if set(pair) <= set("inf"):
        names = {left.name, right.name}
        if "double" in names:
            return DOUBLE
        if "float" in names:
            return None
        if "decimal" in names:
            (p1, s1), (p2, s2) = _precision(left), _precision(right)
            precision, scale = max(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2)
            return DataType("decimal", (precision, scale)) if precision <= 38 else None
        return DataType(max(names, key=_INTEGRAL.index))
    if pair in {"dt", "td"}:
        return left if pair == "td" else right
    if pair == "tt":
        return TIMESTAMP
    return widest(left, right) if pair in {"vv", "yy"} else None


def widest(left: DataType, right: DataType) -> DataType:
    """The interval that has the units of both."""
    units = _DAY_TIME_UNITS if family(left) == "v" else _YEAR_MONTH_UNITS
    used = sorted(units.index(unit) for kind in (left, right) for unit in _units(kind))
    return interval(units[used[0]], units[used[-1]])


def interval(first: str, last: str) -> DataType:
    """The type of intervals from one unit to another."""
    return DataType(f"interval {first}" if first == last else f"interval {first} to {last}")


def _units(kind: DataType) -> tuple[str, str]:
    """The first and the last unit of an interval."""
    words = kind.name.split()
    return words[1], words[-1]
