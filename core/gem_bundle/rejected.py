"""Rows that a gem can't use, as an output of it: `NODE.rejected`, with the same columns from every gem.

A gem says with `Transform.rejects` that a node has the output, and with `Transform.reject` which rows get
there and why. The runtime makes of them what stands here. pyspark is imported inside functions.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.facts import UNKNOWN_DELAY, Column
from gem_bundle.operators import Operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from gem_bundle.facts import Facts

SCHEMA_VERSION = 1
"""The number of the columns below. It grows when one of them is changed or removed."""

COLUMNS = (
    Column("schema_version", "int"),
    Column("pipeline", "string"),
    Column("pipeline_version", "string"),
    Column("node", "string"),
    Column("gem", "string"),
    Column("reasons", "array<struct<name: string, words: string>>"),
    Column("row", "string"),
    Column("row_schema", "string"),
    Column("origin", "map<string, string>"),
    Column("event_time", "timestamp"),
    Column("rejected_at", "timestamp"),
)
"""What a rejected row is, whichever gem rejected it. `docs/bad-rows.md` tells each."""

_HIDDEN = "__gem_bundle_"
_REASONS = "__gem_bundle_reasons"
REJECTED_HERE = "__gem_bundle_rejected"
"""The column by which `Transform.told_apart` says which rows are rejected."""

ORIGIN = "__gem_bundle_origin"
"""The column by which a source tells where a row is from that it rejects."""

_FILE = "__gem_bundle_file"
_MARK = "spark.watermarkDelayMs"
# Without these Spark writes milliseconds, and leaves out what is null.
JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class Rejects:
    """The rows that a transform rejects, and why.

    Args:
        rows: The rows as they came in, those that aren't rejected too. A column whose name begins with
            ``__gem_bundle_`` is for the reasons only.
        reasons: For each row an array of `reason`: null or empty where it isn't rejected.
    """

    rows: DataFrame
    reasons: SparkColumn


@dataclass(frozen=True, slots=True)
class Counts:
    """The rows of its first input that a transform counts on their way, beside those that it rejects.

    Args:
        rules: For each rule by which rows are only counted, or dropped: a column that is true of those rows.
        dropped: A column that is true of the rows that are in none of its outputs; None where there are none.
        rejected: A column that is true of the rows that it rejects. Without it the rows behind the transform
            are counted too, which takes Spark longer than a condition does.
    """

    rules: Mapping[str, SparkColumn] = field(default_factory=dict)
    dropped: SparkColumn | None = None
    rejected: SparkColumn | None = None


@dataclass(frozen=True, slots=True)
class MostRejected:
    """How many rows of a micro-batch may be rejected.

    Args:
        rows: So many; None where it is a share.
        share: Such a share of the rows, from 0 to 1.
    """

    rows: int | None = None
    share: float = 0.0

    def __str__(self) -> str:
        return f"{self.rows:,}" if self.rows is not None else f"{100 * self.share:g}%"

    def is_exceeded(self, rejected: int, rows: int) -> bool:
        """Whether there are more.

        Args:
            rejected: How many rows are rejected.
            rows: How many there are in all.
        """
        return rejected > (self.rows if self.rows is not None else self.share * rows)


@dataclass(frozen=True, slots=True)
class Rejecting:
    """Who rejects.

    Args:
        pipeline: The name of the pipeline.
        version: Its version.
        node: The id of the node.
        gem: The name of its gem.
    """

    pipeline: str
    version: str
    node: str
    gem: str


class RejectedIn(NamedTuple):
    """The micro-batch that rows are rejected of, where it is known. When it comes again this is the same.

    Args:
        number: Its number within its query.
        at: When it was made, in milliseconds since 1970; None where that isn't known.
    """

    number: int
    at: int | None = None


def reason(name: str, words: str | SparkColumn) -> SparkColumn:
    """One reason for which a row is rejected, for `Rejects`.

    Args:
        name: What programs know it by, the same for all rows: the name of a rule, ``not_json``.
        words: What people read: a text, or a column of texts.
    """
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

    told = F.lit(words) if isinstance(words, str) else words
    return F.struct(F.lit(name).alias("name"), told.alias("words"))


_END = "gem-bundle ends the query: "
_SHOWN = 2000


class Ended(NamedTuple):
    """What a row ended a query by, as `ending` said it.

    Args:
        node: The id of the node.
        rule: The name of the rule.
        words: What is true of the row instead.
        row: The row as JSON, or its beginning.
    """

    node: str
    rule: str
    words: str
    row: str


def ending(node: str, rule: str, words: SparkColumn, row: SparkColumn) -> SparkColumn:
    """A column that ends the query wherever it is computed, with a message at the node, GB515.

    Args:
        node: The id of the node, `Transform.node`.
        rule: The name of the rule that is broken.
        words: What is true of the row instead, as a column of texts.
        row: The row, as a struct.
    """
    from pyspark.sql import functions as F  # noqa: N812

    told = F.struct(
        F.lit(node).alias("node"),
        F.lit(rule).alias("rule"),
        words.alias("words"),
        F.substring(F.to_json(row, JSON_OPTIONS), 1, _SHOWN).alias("row"),
    )
    return F.raise_error(F.concat(F.lit(_END), F.to_json(told))).cast("boolean")


def read_ending(text: str) -> Ended | None:
    """What `ending` said, found in an error of Spark's; None when it wasn't that.

    Args:
        text: The error.
    """
    # It may stand there several times: Spark shows the plan too, in which the row isn't yet.
    for told in text.split(_END)[1:]:
        with suppress(ValueError, TypeError):
            return Ended(**json.JSONDecoder().raw_decode(told)[0])
    return None


def rejected_facts(facts: Facts) -> Facts:
    """What is known of the rows that are rejected, given what is known of those that go in.

    Args:
        facts: Those of the input that `Transform.reject` takes its rows from.
    """
    delay = _event_time(facts)
    columns = [replace(column, delay=delay) if column.name == "event_time" else column for column in COLUMNS]
    return facts.with_columns(columns).after(Operator("current_time"))


def with_file(df: DataFrame) -> DataFrame:
    """The rows with the file that each is from, where Spark knows it, in a column that `rejected_rows` finds.

    Args:
        df: The rows, behind which Spark won't know it any more.
    """
    return df.select("*", *_file(df))


def accepted_rows(rows: DataFrame, rejected: SparkColumn) -> DataFrame:
    """The rows of a source that it doesn't reject, without its columns for telling them apart.

    Args:
        rows: The undivided rows. They may be `with_file`, and stay so.
        rejected: What `Source.rejected` says of them.
    """
    hidden = [name for name in rows.columns if name.startswith(_HIDDEN) and name != _FILE]
    return rows.where(~rejected).drop(*hidden)


def without_file(df: DataFrame) -> DataFrame:
    """The rows that were given to `with_file`."""
    return df.drop(_FILE)


def rejected_rows(
    rejects: Rejects, by: Rejecting, *, ask: bool = True, micro_batch: RejectedIn | None = None
) -> DataFrame:
    """The rejected rows with the columns that they have everywhere, `COLUMNS`.

    Args:
        rejects: What a gem rejects.
        by: Who it is.
        ask: Ask Spark for the file that each row is from; else only `with_file` tells it.
        micro_batch: That of the rows; without it `rejected_at` is when they are computed, which Spark takes
            for the time of the micro-batch in a stream.
    """
    from pyspark.sql import functions as F  # noqa: N812

    df, told = told_of(rejects.rows, {_REASONS: rejects.reasons}, ask=ask, micro_batch=micro_batch)
    now = rejected_at(micro_batch)
    made = {**rejected_by(by), "reasons": F.col(_REASONS), **told, "rejected_at": now}
    return df.filter(F.size(_REASONS) > 0).select(
        *(made[column.name].alias(column.name) for column in COLUMNS)
    )


def rejected_at(micro_batch: RejectedIn | None) -> SparkColumn:
    """When rows are rejected: the same when their micro-batch comes again, where that is known.

    Args:
        micro_batch: As `rejected_rows` has it.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if micro_batch is None or micro_batch.at is None:
        return F.current_timestamp()
    return F.timestamp_millis(F.lit(micro_batch.at))


def rejected_by(by: Rejecting) -> dict[str, SparkColumn]:
    """What a rejected row has of who rejects it, by column."""
    from pyspark.sql import functions as F  # noqa: N812

    return {
        "schema_version": F.lit(SCHEMA_VERSION),
        "pipeline": F.lit(by.pipeline),
        "pipeline_version": F.lit(by.version),
        "node": F.lit(by.node),
        "gem": F.lit(by.gem),
    }


def told_of(
    rows: DataFrame, more: Mapping[str, SparkColumn], *, ask: bool, micro_batch: RejectedIn | None = None
) -> tuple[DataFrame, dict[str, SparkColumn]]:
    """What a rejected row has of the row itself.

    Args:
        rows: The rows.
        more: Columns made of them that are needed beside it, by name.
        ask: As `rejected_rows` has it.
        micro_batch: As `rejected_rows` has it.

    Returns:
        The rows, their names distinct, with the other columns; and over them `row`, `row_schema`, `origin`
        and `event_time`.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType

    from gem_bundle.ddl import quoted

    told = _FILE in rows.columns
    file = [] if told or not ask else _file(rows)
    df = rows.select("*", *file, *(column.alias(name) for name, column in more.items()))
    names = _distinct(rows.columns)
    if names != rows.columns:
        df = df.toDF(*names, *df.columns[len(names) :])
    schema = StructType([field for field in rows.schema if not field.name.startswith(_HIDDEN)])
    names = [name for name in names if not name.startswith(_HIDDEN)]
    marked = _event_time_of(schema)
    values = [F.col(quoted(name)) for name in names]
    kept = [
        _stored(value, field.dataType).alias(name)
        for value, field, name in zip(values, schema, names, strict=True)
    ]
    kinds = [(field.name, field.dataType.simpleString()) for field in schema]
    origin = {
        **{key: F.col(quoted(column)) for key, column in places_told(kinds).items()},
        **({"file": F.col(_FILE)} if file or told else {}),
    }
    pairs = [part for key, value in origin.items() for part in (F.lit(key), value.cast("string"))]
    nothing = F.lit(None)
    known = F.create_map(*pairs) if pairs else nothing.cast("map<string,string>")
    return df, {
        "row": F.to_json(F.struct(*kept), JSON_OPTIONS),
        "row_schema": F.lit(
            ", ".join(
                f"{quoted(name)} {_ddl(field.dataType)}" for name, field in zip(names, schema, strict=True)
            )
        ),
        "origin": _with_micro_batch(F.col(ORIGIN) if ORIGIN in rows.columns else known, micro_batch),
        "event_time": nothing.cast("timestamp") if marked is None else values[marked],
    }


def _with_micro_batch(origin: SparkColumn, micro_batch: RejectedIn | None) -> SparkColumn:
    from pyspark.sql import functions as F  # noqa: N812

    if micro_batch is None:
        return origin
    told = F.create_map(F.lit("micro_batch"), F.lit(str(micro_batch.number)))
    return F.coalesce(F.map_concat(origin, told), told)


def event_time_column(facts: Facts | None) -> str | None:
    """The name of the column by which `event_time` is filled; None where there is none, or that isn't known.

    Args:
        facts: What is known of the rows.
    """
    for column in (facts.columns if facts is not None else None) or ():
        if column.delay is not None and column.type in {None, "timestamp"}:
            return column.name if column.type and column.delay != UNKNOWN_DELAY else None
    return None


def with_event_time(df: DataFrame, column: str | None) -> DataFrame:
    """The rows, the column marked again by which `event_time` is filled, where it is there.

    A micro-batch of a group is a table by itself, in which Spark marks no event time.

    Args:
        df: The rows, without the watermark's mark.
        column: What `event_time_column` said; None leaves them as they are.
    """
    from pyspark.sql.types import TimestampType

    if column is None or df.columns.count(column) != 1:
        return df
    if not isinstance(df.schema[column].dataType, TimestampType):
        return df
    return df.withMetadata(column, {_MARK: 0})


def restored_rows(df: DataFrame, schema: str, *, file: bool = False) -> DataFrame:
    """The rows as they were before they were rejected, with their columns and types.

    Args:
        df: Rejected rows, of which `row_schema` is the given one; others give rows of nulls, or fail.
        schema: That schema, in DDL.
        file: With the file that each came from, as `with_file` has it.
    """
    from pyspark.sql import functions as F  # noqa: N812

    made = df.sparkSession.createDataFrame([], schema).schema
    options = {key: text for key, text in JSON_OPTIONS.items() if key != "ignoreNullFields"}
    parsed = F.from_json("row", _stored_type(made), options).alias(_REASONS)  # type: ignore[arg-type]
    restored = [
        _restored(F.col(_REASONS).getField(part.name), part.dataType).alias(part.name) for part in made
    ]
    if not file:
        return df.select(parsed).select(*restored)
    return df.select(parsed, F.col("origin")["file"].alias(_FILE)).select(*restored, _FILE)


def _event_time(facts: Facts) -> str | None:
    """The watermark's delay of the first timestamp that has one, as `_event_time_of` finds it."""
    if facts.columns is None:
        return UNKNOWN_DELAY
    for column in facts.columns:
        if column.delay is not None and column.type in {None, "timestamp"}:
            return UNKNOWN_DELAY if column.type is None else column.delay
    return None


def _event_time_of(schema: StructType) -> int | None:
    """The position of the first timestamp with a watermark."""
    from pyspark.sql.types import TimestampType

    marked = (
        position
        for position, field in enumerate(schema)
        if _MARK in field.metadata and isinstance(field.dataType, TimestampType)
    )
    return next(marked, None)


def _distinct(names: list[str]) -> list[str]:
    """Names that Spark can tell apart: the second `a` is `a_2`."""
    taken = {name.lower() for name in names}
    seen: set[str] = set()
    found = []
    for name in names:
        own, number = name, 2
        while own.lower() in seen or (own != name and own.lower() in taken):
            own, number = f"{name}_{number}", number + 1
        seen.add(own.lower())
        found.append(own)
    return found


_PLACES = (
    # What Kafka's source gives, and what Delta tells of the commit that a changed row is from.
    {"topic": ("topic", "string"), "partition": ("partition", "int"), "offset": ("offset", "bigint")},
    {"version": ("_commit_version", "bigint")},
)


def places_told(columns: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """The columns that tell where a row came from, by what they tell.

    Args:
        columns: The name of each column, and its type in DDL.
    """
    found: dict[str, str] = {}
    given = list(columns)
    kinds = dict(given)
    for place in _PLACES:
        if all(kinds.get(column) == kind for column, kind in place.values()):
            found |= {key: column for key, (column, _) in place.items()}
    return found if len({name.lower() for name, _ in given}) == len(given) else {}


def _file(df: DataFrame) -> list[SparkColumn]:
    """The file of each row, which Spark knows behind a source of files."""
    from pyspark.errors import AnalysisException
    from pyspark.logger import PySparkLogger
    from pyspark.sql import functions as F  # noqa: N812

    file = F.col("_metadata.file_path").alias(_FILE)
    # Only by trying can it be found out, and PySpark tells everybody of what fails.
    logger = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        return [file] if df.select(file).schema[0].dataType.simpleString() == "string" else []
    except AnalysisException:
        return []
    finally:
        logger.disabled = before


def _ddl(kind: DataType) -> str:
    """A type in DDL, the names of its fields in backquotes."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    from gem_bundle.ddl import quoted

    if isinstance(kind, StructType):
        return f"struct<{', '.join(f'{quoted(field.name)}: {_ddl(field.dataType)}' for field in kind)}>"
    if isinstance(kind, ArrayType):
        return f"array<{_ddl(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{_ddl(kind.keyType)}, {_ddl(kind.valueType)}>"
    return str(kind.simpleString())


def _stored_type(kind: DataType) -> DataType:
    """The type as JSON takes it: maps whose keys aren't texts are arrays of their entries."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _stored_type(field.dataType)) for field in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(_stored_type(kind.elementType))
    if isinstance(kind, MapType):
        if isinstance(kind.keyType, StringType):
            return MapType(kind.keyType, _stored_type(kind.valueType))
        return ArrayType(_stored_type(_entry(kind)))
    return kind


def _entry(kind: DataType) -> StructType:
    from pyspark.sql.types import StructField, StructType

    keys, values = kind.keyType, kind.valueType  # type: ignore[attr-defined]
    return StructType([StructField("key", keys), StructField("value", values)])


def _fields(value: SparkColumn, kind: StructType) -> Iterator[tuple[SparkColumn, DataType, str]]:
    for part in kind:
        yield value.getField(part.name), part.dataType, part.name


def _is_plain(kind: DataType) -> bool:
    """Whether JSON takes values of a type as they are."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if isinstance(kind, StructType):
        return all(_is_plain(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return _is_plain(kind.elementType)
    if isinstance(kind, MapType):
        return isinstance(kind.keyType, StringType) and _is_plain(kind.valueType)
    return True


def _stored(value: SparkColumn, kind: DataType) -> SparkColumn:
    """A value as `_stored_type` has it."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if _is_plain(kind):
        return value
    if isinstance(kind, StructType):
        inner = [_stored(part, own).alias(name) for part, own, name in _fields(value, kind)]
        return F.when(value.isNotNull(), F.struct(*inner))
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda item: _stored(item, kind.elementType))
    assert isinstance(kind, MapType)
    if isinstance(kind.keyType, StringType):
        return F.transform_values(value, lambda _, item: _stored(item, kind.valueType))
    return F.transform(F.map_entries(value), lambda item: _stored(item, _entry(kind)))


def _restored(value: SparkColumn, kind: DataType) -> SparkColumn:
    """A value of a type, made of what `_stored` made of it."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if _is_plain(kind):
        return value
    if isinstance(kind, StructType):
        inner = [_restored(part, own).alias(name) for part, own, name in _fields(value, kind)]
        return F.when(value.isNotNull(), F.struct(*inner))
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda item: _restored(item, kind.elementType))
    assert isinstance(kind, MapType)
    if isinstance(kind.keyType, StringType):
        return F.transform_values(value, lambda _, item: _restored(item, kind.valueType))
    return F.map_from_entries(F.transform(value, lambda item: _restored(item, _entry(kind))))
