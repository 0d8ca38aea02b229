"""Whether a table of a database takes rows: which types there are, and which columns."""

from typing import TYPE_CHECKING

from gem_bundle import GemError
from gem_bundle.diagnostics import nearest
from gem_bundle.schema import type_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from gem_bundle.schema import DataType

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_TEXTS = {"string", "char", "varchar"}
_TIMES = {"timestamp", "timestamp_ntz"}
_TAKEN = {*_WHOLE, *_TEXTS, *_TIMES, "boolean", "float", "double", "decimal", "binary", "date"}
# Of a float, 24 bits are the number; of a double, 53.
_WIDER = {
    "tinyint": {"float", "double"},
    "smallint": {"float", "double"},
    "int": {"double"},
    "float": {"double"},
}


def has_type(kind: "DataType", *, arrays: bool) -> bool:
    """Whether Spark's writer has a type of the database for one of Spark's.

    Args:
        kind: Spark's type.
        arrays: Whether the database has arrays.
    """
    if kind.name == "array":
        return arrays and all(has_type(part, arrays=True) for part in kind.parts)
    return kind.name in _TAKEN


def fits(given: "DataType", there: "DataType") -> bool:
    """Whether values of a type are values of another one, and lose nothing."""
    if given == there:
        return True
    if given.name == there.name == "array":
        return all(fits(left, right) for left, right in zip(given.parts, there.parts, strict=True))
    if there.name == "decimal":
        precision, scale = there.arguments or (10, 0)
        if given.name == "decimal":
            own_precision, own_scale = given.arguments or (10, 0)
            return own_precision - own_scale <= precision - scale and own_scale <= scale
        return _DIGITS.get(given.name, 39) <= precision - scale
    if given.name in _WHOLE and there.name in _WHOLE:
        return _WHOLE.index(given.name) <= _WHOLE.index(there.name)
    # Of which kind a timestamp of the table is read depends on a setting.
    alike = any(given.name in kinds and there.name in kinds for kinds in (_TEXTS, _TIMES))
    return alike or there.name in _WIDER.get(given.name, ())


def columns_for(rows: "StructType", table: "StructType", name: str) -> tuple[str, ...]:
    """The table's names of the columns of some rows, in their order.

    Args:
        rows: The columns of the rows.
        table: Those of the table.
        name: The table's name.

    Raises:
        GemError: GB205 when the table has no such column, or has it with a type that would lose something.
    """
    there = {field.name: field.dataType.simpleString() for field in table.fields}
    names = {column.lower(): column for column in reversed(there)}
    found, problems = [], []
    for field in rows.fields:
        column = field.name if field.name in there else names.get(field.name.lower())
        if column is None:
            near = nearest(field.name, there)
            problems.append(f"it has no column `{field.name}`" + (f", but `{near}`" if near else ""))
            continue
        found.append(column)
        given = field.dataType.simpleString()
        left, right = type_of(given), type_of(there[column])
        if given != there[column] and (left is None or right is None or not fits(left, right)):
            problems.append(f"its column `{column}` is {there[column]}, and that of the rows {given}")
    if problems:
        hint = "Give the rows the table's columns (`select`, `with_columns`), or alter the table."
        raise GemError(
            "GB205", f"the table `{name}` doesn't take the rows: {'; '.join(problems)}", hint, "table"
        )
    return tuple(found)
