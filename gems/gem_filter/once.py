"""Values that come once: in a micro-batch, and within a watermark.

Within a watermark Spark's own `dropDuplicatesWithinWatermark` remembers the values. It tells nobody what it
drops, so it is given two rows for each: the row itself, which it takes for one of its kind and lets through,
and a claim for its value, which gets through where the value is new. In the micro-batch behind it a value
without a claim is one that came before.
"""

from typing import TYPE_CHECKING

from gem_bundle import GemError
from gem_bundle.rejected import JSON_OPTIONS
from gem_bundle.schema import quoted, with_article

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField

    from gem_filter.rules import Unique

_HIDDEN = "__gem_bundle_"
_COPY = "__gem_bundle_copy"
_ONCE = "__gem_bundle_once"
_VALUE = "__gem_bundle_value_"
_ROW = -1
_MARK = "spark.watermarkDelayMs"


def with_firsts(df: "DataFrame", values: "Sequence[Unique]", broken: "Column") -> "DataFrame":
    """The rows, with a column for each value that is true of one of the rows that have it.

    Args:
        df: The rows, as a table.
        values: The values that are to come once.
        broken: Whether a row isn't let through for another reason.
    """
    from pyspark.sql import Window
    from pyspark.sql.functions import expr, row_number

    said = _said(df)
    for value in values:
        alike = Window.partitionBy(expr(value.value)).orderBy(broken, said)
        df = df.withColumn(value.found, row_number().over(alike) == 1)
    return df


def with_claims(df: "DataFrame", values: "Sequence[Unique]", broken: "Column") -> "DataFrame":
    """The rows of a stream, and of the claims that they make for their values those that are new.

    Args:
        df: The rows, one of whose columns carries a watermark.
        values: The values that are to come once within it.
        broken: Whether a row isn't let through for another reason: it claims nothing then.
    """
    from pyspark.sql.functions import array, coalesce, col, explode, expr, lit, unhex, when

    # Each row has all of its claims, so that the number of late ones is that of late rows, so many times.
    copies = array(*map(lit, range(_ROW, len(values))))
    copied = df.select("*", explode(copies).alias(_COPY))
    copy = col(_COPY)
    made = [
        when((copy == _ROW) | ((copy == number) & ~broken), claim_of(df, value)).alias(f"{_VALUE}{number}")
        for number, value in enumerate(values)
    ]
    copied = copied.select(*(_of_row(field, copy) for field in df.schema), copy, *made)
    claimed = (when(copy == number, col(f"{_VALUE}{number}")) for number in range(len(values)))
    own = unhex(expr("replace(uuid(), '-', '')"))
    return copied.select("*", coalesce(*claimed, own).alias(_ONCE)).dropDuplicatesWithinWatermark([_ONCE])


def without_claims(rows: "DataFrame", values: "Sequence[Unique]", broken: "Column") -> "DataFrame":
    """The rows of a micro-batch of `with_claims`, with the columns that `with_firsts` adds.

    Of a row that isn't let through for another reason it isn't known whether its value came before.

    Args:
        rows: The rows and claims, as a table.
        values: As `with_claims` has them.
        broken: As `with_claims` has it.
    """
    from pyspark.sql import Window
    from pyspark.sql.functions import coalesce, col, row_number
    from pyspark.sql.functions import max as largest

    is_claim, said = col(_COPY) != _ROW, _said(rows)
    for number, value in enumerate(values):
        alike = Window.partitionBy(coalesce(col(f"{_VALUE}{number}"), col(_ONCE)))
        first = row_number().over(alike.orderBy(is_claim, broken, said)) == 1
        is_new = largest(col(_COPY) == number).over(alike)
        rows = rows.withColumn(value.found, first & (is_new | broken))
    own = [_COPY, _ONCE, *(f"{_VALUE}{number}" for number in range(len(values)))]
    return rows.where(~is_claim).drop(*own)


def claim_of(df: "DataFrame", value: "Unique") -> "Column":
    """A value as state keeps it, short and the same for equal ones; null for null.

    It has its rule with it: one that is changed begins with nothing, and takes nothing for what it isn't.

    Args:
        df: The rows.
        value: The value.

    Raises:
        GemError: When it is of a type by which Spark keeps no state.
    """
    from pyspark.sql.functions import concat, expr, lit, sha2, unhex

    kind = df.select(expr(value.value)).schema[0].dataType
    if is_collated(kind.simpleString()):
        raise GemError("GB213", *no_state_by(value.value, kind.simpleString()), "rules")
    rule = lit(f"{value.rule}\0{value.value}\0{kind.simpleString()}\0")
    return unhex(sha2(concat(rule, _text(expr(value.value), kind)), 256))


def is_collated(kind: str) -> bool:
    """Whether texts of a type are equal that differ: Spark keeps no state by such.

    Args:
        kind: The type, in DDL.
    """
    return " collate " in kind.lower()


def no_state_by(value: str, kind: str) -> tuple[str, str]:
    """What is wrong with such a value, and what to do about it.

    Args:
        value: The column, or an expression.
        kind: Its type, in DDL.
    """
    message = f"`{value}` is {with_article(kind)}, by which Spark keeps no state"
    return message, "Make a text of it that differs where it does: `lower(…)` with `collate UTF8_BINARY`."


def row_of(df: "DataFrame") -> "Column":
    """The row as a struct, of which several columns may have one name.

    Args:
        df: The rows. Columns whose names begin with ``__gem_bundle_`` don't belong to them.
    """
    from pyspark.sql.functions import struct

    hidden = [name for name in df.columns if name.startswith(_HIDDEN)]
    return struct("*").dropFields(*hidden) if hidden else struct("*")


def _said(df: "DataFrame") -> "Column":
    """What a row says. Whoever asks for the first of some rows, it has to be the same one."""
    from pyspark.sql.functions import to_json

    return to_json(row_of(df), JSON_OPTIONS)


def _of_row(field: "StructField", copy: "Column") -> "Column":
    """A column of the row. Its claims go without where they may, and keep event time."""
    from pyspark.sql.functions import col, when

    value = col(quoted(field.name))
    if not field.nullable or _MARK in field.metadata:
        return value
    return when(copy == _ROW, value).alias(field.name, metadata=field.metadata)


def _text(value: "Column", kind: "DataType") -> "Column":
    """A value as text, the same for those that Spark takes for equal; null for null."""
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)
    from pyspark.sql import types as T  # noqa: N812 (as above)

    if isinstance(kind, T.StructType):
        parts = [_part(value.getField(field.name), field.dataType) for field in kind]
        return F.when(value.isNotNull(), F.concat_ws(",", *parts))
    if isinstance(kind, T.ArrayType):
        return F.array_join(F.transform(value, lambda item: _part(item, kind.elementType)), ",")
    if isinstance(kind, T.StringType | T.BinaryType):
        return F.hex(value)
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(value).cast("string")
    if isinstance(kind, T.FloatType | T.DoubleType):
        return F.when(value == 0, "0").otherwise(value.cast("string"))  # of which there are two, and equal
    return value.cast("string")


def _part(value: "Column", kind: "DataType") -> "Column":
    """A value within another one, which may be null there."""
    from pyspark.sql.functions import coalesce, concat, lit

    return coalesce(concat(lit("<"), _text(value, kind), lit(">")), lit("null"))
