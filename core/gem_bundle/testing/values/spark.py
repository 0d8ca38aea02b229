"""What PySpark gives: schemas, and the values of rows that were collected."""

from __future__ import annotations

import json
from datetime import UTC
from typing import TYPE_CHECKING, Any

from gem_bundle.schema import DataType, StructField, type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import types as pyspark_types


def fields_of_schema(schema: pyspark_types.StructType) -> tuple[StructField, ...]:
    """The columns of a DataFrame's schema, as this package writes types."""
    return tuple(
        StructField(field.name, type_of_spark(field.dataType), field.nullable) for field in schema.fields
    )


def type_of_spark(kind: pyspark_types.DataType) -> DataType:
    """A type of PySpark's, as this package writes types."""
    from pyspark.sql import types

    if isinstance(kind, types.StructType):
        return DataType("struct", fields=fields_of_schema(kind))
    if isinstance(kind, types.ArrayType):
        return DataType("array", parts=(type_of_spark(kind.elementType),))
    if isinstance(kind, types.MapType):
        return DataType("map", parts=(type_of_spark(kind.keyType), type_of_spark(kind.valueType)))
    name = kind.simpleString()
    return type_of(name) or DataType(name)


def take(value: Any, kind: DataType) -> Any:
    """A value that PySpark collected, in the form that this package compares.

    PySpark gives timestamps in the time zone of this process, without saying so.
    """
    if value is None:
        return None
    if kind.name == "struct":
        return take_row(value, kind.fields)
    if kind.name == "array":
        return tuple(take(item, kind.parts[0]) for item in value)
    if kind.name == "map":
        key, inner = kind.parts
        return {take(k, key): take(v, inner) for k, v in value.items()}
    if kind.name == "timestamp":
        return value.astimezone(UTC)
    if kind.name == "binary":
        return bytes(value)
    if kind.name == "variant":
        return json.loads(value.toJson())
    return value


def take_row(row: Iterable[Any], fields: Sequence[StructField]) -> tuple[Any, ...]:
    """A row that PySpark collected."""
    return tuple(take(value, field.type) for value, field in zip(row, fields, strict=True))
