"""What sources find, and what Spark's readers say of the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle import ReadContext, StreamReadContext
from gem_bundle.schema import type_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def as_spark_says(df: DataFrame) -> list[tuple[str, str]]:
    """The columns of a DataFrame, their types as gem-bundle writes them."""
    kinds = [(field.name, field.dataType.simpleString()) for field in df.schema]
    return [(name, str(type_of(kind) or kind)) for name, kind in kinds]


def assert_spark_agrees(source: Any, spark: SparkSession, *, streaming: bool) -> list[tuple[str, str | None]]:
    """What a source finds, which must be what its reader has: all names, and each type that it tells."""
    source.streaming = streaming
    if streaming:
        df = source.read_stream(StreamReadContext("x", spark, "x"))
    else:
        df = source.read(ReadContext("x", spark))
    found = source.discover()
    assert found is not None
    read = as_spark_says(df)
    told = [(column.name, column.type or kind) for column, (_, kind) in zip(found, read, strict=False)]
    assert told == read
    assert len(found) == len(read)
    return [(column.name, column.type) for column in found]
