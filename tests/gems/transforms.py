"""What the tests of transforms share: gems made as the runtime makes them, and Spark's view of rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gem_bundle import Column, Facts, StreamReadContext
from gem_bundle.expressions import UNKNOWN_DELAY
from gem_bundle.schema import schema_of, type_of
from gem_bundle.types import interval_length

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

    from gem_bundle import Finding, Transform

DELAY = "spark.watermarkDelayMs"


def made(gem: type[Transform[Any]], *input_names: str, **options: Any) -> Transform[Any]:
    """A transform with validated options and the names of its inputs."""
    instance = gem(gem.options_type.model_validate(options))
    instance.input_names = input_names
    return instance


def findings(
    gem: type[Transform[Any]], *inputs: Facts, names: tuple[str, ...] = (), **options: Any
) -> list[Finding]:
    """What a transform's `check` says; its findings point at options that exist."""
    instance = made(gem, *names, **options)
    found = list(instance.check(*inputs))
    for finding in found:
        name = finding.option[0] if isinstance(finding.option, tuple) else finding.option
        assert name is None or name in gem.options_type.model_fields
        assert finding.code == "GB205" or finding.code[:4] == "GB21"
        assert finding.message
        assert not finding.message.endswith(".")
    return found


def stream_of(*columns: Column) -> Facts:
    return Facts(streaming=True, columns=columns, bounded=False)


def table_of(*columns: Column) -> Facts:
    return Facts(streaming=False, columns=columns, bounded=True)


def kinds(facts: Facts) -> list[str]:
    """The kinds of the operators passed through, nearest first."""
    return [operator.kind for operator in facts.all_operators()]


def facts_of(df: DataFrame) -> Facts:
    """What Spark's analyser says of a DataFrame, in the words of `Facts`."""
    columns = []
    for field in df.schema.fields:
        delay = field.metadata.get(DELAY)
        # A struct made from event time has the mark inside, which no inferred type stands for.
        hidden = DELAY in json.dumps(field.dataType.jsonValue())
        columns.append(
            Column(
                field.name,
                None if hidden else str(type_of(field.dataType.simpleString())),
                None if delay is None else f"{delay} milliseconds",
            )
        )
    return Facts(streaming=df.isStreaming, columns=tuple(columns), bounded=not df.isStreaming)


def assert_agrees(inferred: Facts, df: DataFrame) -> None:
    """Everything that was inferred is what Spark says; what is unknown may be anything."""
    if inferred.streaming is not None:
        assert inferred.streaming == df.isStreaming
    if inferred.columns is None:
        return
    real = facts_of(df).columns or ()
    assert [column.name for column in inferred.columns] == [column.name for column in real]
    for column, truth in zip(inferred.columns, real, strict=True):
        if column.type is not None and truth.type is not None:
            assert str(type_of(column.type)) == truth.type, column
        if column.delay != UNKNOWN_DELAY:
            assert _milliseconds(column.delay) == _milliseconds(truth.delay), column


def _milliseconds(delay: str | None) -> int | None:
    return None if delay is None else interval_length(delay)[1] // 1000


def events(spark: SparkSession, name: str = "events", *columns: str, delay: str = "") -> DataFrame:
    """An endless stream for the analyser to look at; it is never run."""
    wanted = columns or (
        "timestamp as at",
        "value as id",
        "cast(value % 3 as string) as page",
        "value * 1.5D as amount",
        "timestamp as seen",
    )
    rate = StreamReadContext(name, spark, name).reader.format("rate").load()
    df = rate.selectExpr(*wanted)
    return df.withWatermark("at", delay) if delay else df


def static_of(spark: SparkSession, df: DataFrame) -> DataFrame:
    """A static relation with the columns of a stream; its own schema would carry the marks."""
    return spark.createDataFrame([], schema_of(facts_of(df).columns or ()))


class Folder:
    """A stream of JSON files whose steps the test decides.

    Args:
        spark: The session.
        path: An empty folder.
        schema: The schema of the rows.
    """

    def __init__(self, spark: SparkSession, path: Path, schema: str) -> None:
        self._spark = spark
        self._path = path
        self._schema = schema
        self._files = 0
        path.mkdir(parents=True, exist_ok=True)

    def add(self, *rows: dict[str, Any]) -> None:
        """Put one more file there, complete at once."""
        self._files += 1
        hidden = self._path / f".{self._files}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        hidden.rename(self._path / f"{self._files}.json")

    def stream(self, name: str) -> DataFrame:
        """A stream of the files, with a name of its own."""
        reader = StreamReadContext(name, self._spark, name).reader
        return reader.schema(self._schema).json(str(self._path))


def drain(df: DataFrame, checkpoint: Path, mode: str = "append") -> list[Row]:
    """Run until everything that is there has been read; what came out."""
    rows: list[Row] = []
    query = (
        df.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .outputMode(mode)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    return rows
