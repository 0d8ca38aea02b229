"""Rows as events: the JSON that a collector takes, made by Spark.

Spark makes the texts, and executors' Python only puts them together: that is faster, and all of Spark's
types come out as its JSON has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle import GemError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from gem_hec.options import HecOptions

TIMES = frozenset(
    {"timestamp", "timestamp_ntz", "date", "tinyint", "smallint", "int", "bigint", "float", "double"}
)


def events(df: DataFrame, options: HecOptions) -> list[Column]:
    """The events of some rows, as columns over them.

    Args:
        df: The rows.
        options: Which columns mean what.

    Returns:
        The columns `event`, the JSON of the whole event, and `empty`, whether it lacks what makes it one:
        a collector refuses those.

    Raises:
        GemError: When there is no such column, or the time is none.
    """
    from pyspark.sql.functions import coalesce, col, lit, struct, to_json

    named = {option: _found(df, option, column) for option, column in options.columns().items()}
    fields: list[Column] = []
    if "time_column" in named:
        name = named["time_column"]
        fields.append(_seconds(col(quoted(name)), df.schema[name].dataType, name).alias("time"))
    for key, (column, constant) in options.metadata.items():
        found = [] if column is None else [col(quoted(named[f"{key}_column"])).cast("string")]
        found += [] if constant is None else [lit(constant)]
        if found:
            fields.append(coalesce(*found).alias(key))
    content = _content(df, named)
    empty = content.isNull()
    if "event_column" in named and _is_text(df.schema[named["event_column"]].dataType):
        content = content.cast("string")
        empty = empty | (content == "")
    whole = to_json(struct(*fields, content.alias("event")))
    return [whole.alias("event"), empty.alias("empty")]


def quoted(column: str) -> str:
    """A column's name as an expression takes it, whatever characters it has."""
    return "`" + column.replace("`", "``") + "`"


def is_time(kind: str) -> bool:
    """Whether a type, in DDL, is one that a `time_column` can have."""
    return kind in TIMES or kind.startswith("decimal")


def _found(df: DataFrame, option: str, column: str) -> str:
    """The column of that name, as Spark finds it (case-insensitively)."""
    for name in df.columns:
        if name.lower() == column.lower():
            return name
    raise GemError(
        "GB207",
        f"there is no column `{column}`",
        f"The rows have: {', '.join(f'`{name}`' for name in df.columns)}.",
        option,
    )


def _content(df: DataFrame, named: dict[str, str]) -> Column:
    from pyspark.sql.functions import col, struct

    if "event_column" in named:
        return col(quoted(named["event_column"]))
    columns = [name for name in df.columns if name not in named.values()]
    if not columns:
        raise GemError(
            "GB207",
            "all columns are named by options, and none is left for the event",
            "Name the column that is the event.",
            "event_column",
        )
    return struct(*(col(quoted(name)) for name in columns))


def _is_text(kind: DataType) -> bool:
    from pyspark.sql.types import BinaryType, StringType

    return isinstance(kind, StringType | BinaryType)


def _seconds(column: Column, kind: DataType, name: str) -> Column:
    """A time as seconds since 1970, with six digits behind the point."""
    from pyspark.sql.types import NumericType

    if not is_time(kind.simpleString()):
        raise GemError(
            "GB205",
            f"`{name}` is {kind.simpleString()}, and not a time",
            f"Give a timestamp, a date or a number of seconds, for example `cast({name} as timestamp)`.",
            "time_column",
        )
    instant = column if isinstance(kind, NumericType) else column.cast("timestamp")
    return instant.cast("decimal(20,6)")
