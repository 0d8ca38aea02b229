"""Fields that a schema says are `not null`, and whether they are there, however deep.

Spark makes nulls of what is missing, whatever the schema says. pyspark is imported inside functions.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING

from gem_bundle.rejected import reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import Column

    from gem_bundle.ddl import DataType, StructField

__all__ = ["absent_fields", "missing_field"]


def missing_field(path: str) -> Column:
    """The reason for which a row is rejected that lacks a field.

    Args:
        path: The field, as `order.id`.
    """
    return reason("missing_field", f"`{path}` is missing or null")


def absent_fields(
    value: Column, fields: Iterable[StructField], before: str = ""
) -> Iterator[tuple[str, Column]]:
    """For each field that has to be there, its path and whether it is null where it mustn't be.

    Args:
        value: The struct that has the fields.
        fields: Its fields.
        before: What stands in front of each path.
    """
    for field in fields:
        own, path = value.getField(field.name), f"{before}{field.name}"
        if not field.nullable:
            yield path, own.isNull()
        yield from _within(own, field.type, path)


def _within(value: Column, kind: DataType, path: str) -> Iterator[tuple[str, Column]]:
    """The same below a value."""
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

    if kind.name == "struct":
        for below, absent in absent_fields(value, kind.fields, f"{path}."):
            yield below, value.isNotNull() & absent
    elif kind.name in {"array", "map"} and (
        names := [name for name, _ in _within(value, kind.parts[-1], path)]
    ):
        items = value if kind.name == "array" else F.map_values(value)

        def lacks(item: Column) -> Column:
            absent = [absent for _, absent in _within(item, kind.parts[-1], path)]
            return reduce(operator.or_, absent)

        yield names[0], F.coalesce(F.exists(items, lacks), F.lit(False))
