"""What stands for the outside in a test: rows of the test in the place of sources, and captured targets.

A source that gets rows reads a folder of JSON files, one for each step. They are written in no time, where
Parquet files need a job of Spark's, and values are written so that they come back exactly.
"""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gem_bundle.schema import DataType, StructField, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.readwriter import DataFrameReader
    from pyspark.sql.streaming.readwriter import DataStreamReader

_TEXTS = frozenset({"char", "varchar"})
_STRING = DataType("string")
_ENTRIES = "array"


def to_lines(rows: Sequence[tuple[Any, ...]], fields: Sequence[StructField]) -> str:
    """Rows as the text of a JSON file.

    Args:
        rows: The rows, in the form of `gem_bundle.testing.values`.
        fields: Their columns.
    """
    lines = (json.dumps(_struct(row, fields), allow_nan=False) for row in rows)
    return "".join(f"{line}\n" for line in lines)


def read_lines(
    reader: DataFrameReader | DataStreamReader, folder: Path, fields: Sequence[StructField]
) -> DataFrame:
    """The rows of a folder of such files.

    Args:
        reader: Spark's reader, for a stream with its stable name.
        folder: The folder.
        fields: The columns.
    """
    stored = ", ".join(f"{quoted(field.name)} {_stored(field.type)}" for field in fields)
    df = reader.schema(stored).option("mode", "FAILFAST").json(str(folder))
    if all(_stored(field.type) == field.type or field.type.name in _TEXTS for field in fields):
        return df
    from pyspark.sql.functions import col

    return df.select(*(_restored(col(quoted(f.name)), f.type).alias(f.name) for f in fields))


def _stored(kind: DataType) -> DataType:
    """The type that stands for another one in the files.

    JSON has texts for the keys of a map, whatever they mean, so other maps are lists of entries.
    """
    if kind.name in _TEXTS:
        return _STRING
    if kind.name == "map":
        key, value = (_stored(part) for part in kind.parts)
        if key == _STRING:
            return DataType("map", parts=(key, value))
        entry = DataType("struct", fields=(StructField("key", key), StructField("value", value)))
        return DataType(_ENTRIES, parts=(entry,))
    fields = tuple(StructField(field.name, _stored(field.type)) for field in kind.fields)
    return DataType(kind.name, kind.arguments, tuple(map(_stored, kind.parts)), fields)


def _restored(column: Column, kind: DataType) -> Column:
    """A column with its own type again."""
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

    if _stored(kind) == kind or kind.name in _TEXTS:
        return column
    if kind.name == "array":
        return F.transform(column, lambda item: _restored(item, kind.parts[0]))
    if kind.name == "struct":
        parts = [_restored(column.getField(f.name), f.type).alias(f.name) for f in kind.fields]
        return F.when(column.isNotNull(), F.struct(*parts))
    key, value = kind.parts
    if _stored(key) == _STRING:
        return F.transform_values(column, lambda _, inner: _restored(inner, value))

    def entry(item: Column) -> Column:
        return F.struct(
            _restored(item["key"], key).alias("key"), _restored(item["value"], value).alias("value")
        )

    return F.map_from_entries(F.transform(column, entry))


def _struct(values: Sequence[Any], fields: Sequence[StructField]) -> dict[str, Any]:
    return {field.name: _json(value, field.type) for value, field in zip(values, fields, strict=True)}


def _json(value: Any, kind: DataType) -> Any:
    """A value as JSON that Spark reads back as exactly this value."""
    if value is None:
        return None
    if kind.name == "struct":
        return _struct(value, kind.fields)
    if kind.name == "array":
        return [_json(item, kind.parts[0]) for item in value]
    if kind.name == "map":
        key, inner = kind.parts
        if _stored(key) == _STRING:
            return {k: _json(v, inner) for k, v in value.items()}
        return [{"key": _json(k, key), "value": _json(v, inner)} for k, v in value.items()]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return f"{value:f}" if kind.name == "decimal" else float(value)
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _interval(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def _interval(value: timedelta) -> str:
    """An interval as Spark writes one of days to seconds."""
    rest = abs(value)
    sign = "-" if value < timedelta() else ""
    seconds = rest.seconds
    clock = f"{seconds // 3600:02}:{seconds % 3600 // 60:02}:{seconds % 60:02}.{rest.microseconds:06}"
    return f"INTERVAL '{sign}{rest.days} {clock}' DAY TO SECOND"
