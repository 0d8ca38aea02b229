"""The target `kafka`: rows as records of a topic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import (
    MICRO_BATCH_TRIGGERS,
    Facts,
    Finding,
    GemError,
    OptionChange,
    ReadContext,
    Target,
    TargetSemantics,
    WriteContext,
)
from gem_bundle.expressions import check_expression
from gem_kafka.connection import KAFKA_CLASS, KAFKA_JAR
from gem_kafka.raw_options import of_target
from gem_kafka.writing import KafkaTargetOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import DataType

TOPIC = "topic"
HEADERS = "headers"
_ASYNC = "async_progress_tracking_enabled"


class KafkaTarget(Target[KafkaTargetOptions]):
    """Write each row as a record of a Kafka topic.

    In visual tools: Kafka.
    """

    semantics = TargetSemantics(
        batch_modes=frozenset({"append"}),
        delivery="at_least_once",
        condition="a micro-batch that is run again after a failure is written again",
        triggers=MICRO_BATCH_TRIGGERS | {"continuous", "real_time"},
        counts_rows=True,
        grouped="at_least_once",
    )
    example = {"bootstrap_servers": ["localhost:9092"], "topic": "hours", "key": "airport"}

    def __init__(self, options: KafkaTargetOptions) -> None:
        super().__init__(options)
        if options.async_progress_tracking_enabled:
            # Which is a way of writing a query's own checkpoint.
            self.semantics = replace(self.semantics, async_progress=_ASYNC, grouped=None)

    def places(self) -> dict[str, list[str]]:
        """The topic, where it is one for all rows."""
        topic = self.options.topic
        return {} if topic is None else {"topic": self.options.places([topic])}

    def takes_over(self) -> OptionChange:
        """A topic has no log of micro-batches."""
        return OptionChange("from_now_on")

    def change(self, option: str, before: Any) -> OptionChange | None:
        """Another topic or cluster gets what comes from now on; another content of records too."""
        if option == "bootstrap_servers" and set(before or ()) & set(self.options.bootstrap_servers):
            return OptionChange("continues", "one of the brokers is the same")
        if option in {
            "bootstrap_servers",
            "topic",
            "topic_column",
            "key",
            "value",
            "headers",
            "include_headers",
            "partition",
        }:
            return OptionChange("from_now_on", "records from now on go by it, those that are there stay")
        if option == "spark_options":
            return of_target(before, self.options.spark_options)
        if option == _ASYNC:
            return self._other_progress(before)
        return None

    def _other_progress(self, before: Any) -> OptionChange:
        """A checkpoint that was written beside the micro-batches may lack those that Spark begins with."""
        if self.options.async_progress_tracking_enabled or not before:
            return OptionChange(
                "continues", "a checkpoint of each micro-batch can be gone on from in both ways"
            )
        return OptionChange(
            "refused",
            "the checkpoint doesn't have each micro-batch, and Spark stops where the last ones aren't in it "
            "(`batch x doesn't exist`)",
            f"Run it with `{_ASYNC}: true` and `async_progress_tracking_checkpoint_interval_ms: 0` until two "
            "micro-batches have ended; then switch it off, and accept the change.",
        )

    def jars(self) -> tuple[str, ...]:
        """Spark's connector for Kafka."""
        return (KAFKA_JAR,)

    def jar_classes(self) -> tuple[str, ...]:
        """What Spark knows the connector by."""
        return (KAFKA_CLASS,)

    def check(self, *inputs: Facts) -> Iterable[Finding]:
        """The columns that the options name exist, and their expressions can be computed from them."""
        (facts,) = inputs
        option = "topic_column" if self.options.topic_column else "topic"
        column = self._topic_column()
        if column and facts.columns is not None and facts.column(column) is None:
            yield _no_topic(column, option)
        if self.options.include_headers and facts.columns is not None and not facts.column(HEADERS):
            yield _no_headers()
        for option in ("key", "value", HEADERS, "partition"):
            expression = getattr(self.options, option)
            if expression is not None:
                yield from check_expression(expression, facts, option, aggregates="allowed")

    def connect(self) -> Iterable[Finding]:
        """Whether the brokers answer, take the login, and have the topic."""
        from gem_kafka.preflight import check_target

        return check_target(self.options, self.options.topic)

    def write(self, df: DataFrame, context: WriteContext) -> None:
        """Write the rows once.

        Raises:
            GemError: When an expression can't be used, or the topic would have to be replaced.
        """
        if context.output_mode == "complete":
            raise GemError(
                "GB310",
                "records of a topic can't be replaced, only added to",
                "Use `output_mode: append`.",
            )
        self._write(df)

    def write_batch(self, df: DataFrame, batch_id: int, context: WriteContext) -> None:  # noqa: ARG002
        """Write the rows of a micro-batch; in update and complete mode a row may be written often.

        Raises:
            GemError: When an expression can't be used.
        """
        self._write(df)

    @classmethod
    def at(cls, place: str) -> KafkaTarget | None:
        """A target of another topic, which needs no login."""
        from gem_kafka.rejected import options_at

        options = options_at(place)
        return None if options is None else cls(KafkaTargetOptions(**options))

    def read_rejected(self, context: ReadContext) -> DataFrame | None:
        """The rejected rows of the topic, where they were written as JSON of all their columns.

        Raises:
            GemError: When the brokers don't answer, or have no such topic.
        """
        from gem_kafka.rejected import rejected_in_topic

        if self.options.topic is None:
            return None
        return rejected_in_topic(self.options, self.options.topic, context.spark)

    def _write(self, df: DataFrame) -> None:
        self.records(df).write.format("kafka").options(**self.options.to_spark()).save()

    def write_stream(self, df: DataFrame, context: WriteContext) -> DataStreamWriter:  # noqa: ARG002
        """Write the rows as they come; in update and complete mode a row may be written often.

        Raises:
            GemError: When an expression can't be used.
        """
        settings = self.options.to_spark() | self.options.progress_options()
        return self.records(df).writeStream.format("kafka").options(**settings)

    def records(self, df: DataFrame) -> DataFrame:
        """The rows in the shape that Spark's sink wants: topic, key, value, headers, partition.

        Raises:
            GemError: When an expression can't be used, or a column is missing.
        """
        from pyspark.sql.functions import col, expr, struct, to_json

        options = self.options
        columns: list[Column] = []
        topic = self._topic_column()
        routing = []
        if topic is not None:
            option = "topic_column" if options.topic_column else "topic"
            routing.append(_found(df, topic) or _raise(_no_topic(topic, option)))
            columns.append(col(_quoted(routing[0])).cast("string").alias(TOPIC))
        if options.include_headers:
            routing.append(_found(df, HEADERS) or _raise(_no_headers()))
        if options.key is not None:
            columns.append(_content(df, "key", options.key))
        if options.value is not None:
            columns.append(_content(df, "value", options.value))
        else:
            content = [col(_quoted(name)) for name in df.columns if name not in routing]
            columns.append(to_json(struct(*content)).alias("value"))
        headers = _quoted(routing[-1]) if options.include_headers else options.headers
        if headers is not None:
            columns.append(_headers(df, headers))
        if options.partition is not None:
            _type_of(df, "partition", options.partition)
            columns.append(expr(options.partition).cast("int").alias("partition"))
        return df.select(*columns)

    def _topic_column(self) -> str | None:
        return None if self.options.topic is not None else (self.options.topic_column or TOPIC)


def _found(df: DataFrame, column: str) -> str | None:
    """The column of that name, as Spark finds it (case-insensitively)."""
    return next((name for name in df.columns if name.lower() == column.lower()), None)


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _raise(finding: Finding) -> str:
    raise GemError(finding.code, finding.message, finding.hint, finding.option)


def _no_topic(column: str, option: str) -> Finding:
    if option == "topic_column":
        message = f"there is no column `{column}` to take the topic from"
        return Finding("GB207", message, "Correct `topic_column`, or use `topic`.", option)
    message = "nothing says which topic the rows go to, and they have no column `topic`"
    return Finding("GB207", message, "Give `topic`, or `topic_column`.", option)


def _no_headers() -> Finding:
    return Finding(
        "GB207",
        "there is no column `headers` to take the headers from",
        "Give them with `headers`, or remove `include_headers`.",
        "include_headers",
    )


def _type_of(df: DataFrame, option: str, expression: str) -> DataType:
    """The type of an expression over the rows."""
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import expr

    try:
        return df.select(expr(expression)).schema[0].dataType
    except PySparkException as error:
        said = str(error).splitlines()[0]
        raise GemError(
            "GB205",
            f"`{option}: {expression}` can't be computed from these rows: {said}",
            "Use the columns that reach this target; `gem-bundle preview` shows them.",
            option,
        ) from error


def _content(df: DataFrame, option: str, expression: str) -> Column:
    """A key or value of a record."""
    from pyspark.sql.functions import expr

    return _bytes_or_text(expr(expression), _type_of(df, option, expression)).alias(option)


def _bytes_or_text(column: Column, kind: DataType) -> Column:
    """Bytes and texts as they are, what has parts as JSON, the rest as text."""
    from pyspark.sql.functions import to_json
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType, VariantType

    if isinstance(kind, BinaryType):
        return column
    if isinstance(kind, ArrayType | MapType | StructType | VariantType):
        return to_json(column)
    return column.cast("string")


def _headers(df: DataFrame, expression: str) -> Column:
    from pyspark.sql.functions import expr, map_entries, struct, transform
    from pyspark.sql.types import ArrayType, MapType, StructType

    kind = _type_of(df, HEADERS, expression)
    column = expr(expression)
    if isinstance(kind, MapType):
        column = map_entries(column)
        key, value, value_type = "key", "value", kind.valueType
    elif (
        isinstance(kind, ArrayType)
        and isinstance(kind.elementType, StructType)
        and len(kind.elementType) == 2
    ):
        (key, value), value_type = kind.elementType.names, kind.elementType[1].dataType
    else:
        raise GemError(
            "GB205",
            f"`{HEADERS}: {expression}` is {kind.simpleString()}, not a map or an array of structs of a key "
            "and a value",
            "Write for example `map('source', 'gem-bundle')`.",
            HEADERS,
        )

    def header(entry: Column) -> Column:
        content = _bytes_or_text(entry[value], value_type).cast("binary")
        return struct(entry[key].cast("string").alias("key"), content.alias("value"))

    return transform(column, header).alias(HEADERS)
