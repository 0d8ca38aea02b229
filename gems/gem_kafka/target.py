"""The target `kafka`: rows as records of a topic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator

from gem_bundle import (
    MICRO_BATCH_TRIGGERS,
    Facts,
    Field,
    Finding,
    GemError,
    Target,
    TargetSemantics,
    WriteContext,
)
from gem_bundle.types import Expression
from gem_kafka.connection import (
    KAFKA_JAR,
    ClientDuration,
    ConnectionOptions,
    TopicName,
    milliseconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import DataType

TOPIC = "topic"
HEADERS = "headers"
_HEADERS_TYPE = "array<struct<key:string,value:binary>>"
_BYTES = "Spark writes keys and values as they are, text or bytes; give them with `key` and `value`"
_DURATIONS = {
    "delivery_timeout": "kafka.delivery.timeout.ms",
    "max_block": "kafka.max.block.ms",
}


class KafkaTargetOptions(ConnectionOptions):
    """Options of the target `kafka`, from *Writing Data to Kafka* of Spark's Kafka guide."""

    refused_settings: ClassVar[Mapping[str, str]] = {
        "kafka.key.serializer": _BYTES,
        "kafka.value.serializer": _BYTES,
        "kafka.transactional.id": "Spark's sink does not use Kafka's transactions",
    }

    topic: TopicName | None = Field(None, description="The topic that all rows go to.")
    topic_column: str | None = Field(
        None,
        min_length=1,
        passed=False,
        description="The column with each row's topic, in place of `topic`; without either it is the "
        "column `topic`.",
    )
    key: Expression | None = Field(
        None,
        passed=False,
        description="The record's key; by default none.",
        examples=["user_id", "concat(airport, ':', hour)"],
    )
    value: Expression | None = Field(
        None,
        passed=False,
        description="The record's value; by default the whole row as a JSON object, without the "
        "columns that give its topic and headers. Bytes and texts are written as they are, structs, "
        "arrays and maps as JSON, other types as text.",
        examples=["value", "struct(hour, flights)", "to_avro(struct(*))"],
    )
    headers: Expression | None = Field(
        None,
        passed=False,
        description="The record's headers: a map, or an array of structs of `key` and `value`.",
        examples=["map('source', 'gem-bundle')"],
    )
    include_headers: bool = Field(
        False,
        passed=False,
        description="Take the column `headers` as the record's headers, as the source gives it with "
        "its option of the same name.",
    )
    partition: Expression | None = Field(
        None,
        passed=False,
        description="The number of the partition; by default Kafka's client picks one by the key.",
        advanced=True,
    )
    acks: Literal["all", "0", "1"] | None = Field(
        None,
        spark="kafka.acks",
        description="Which replicas must have a record before it counts as written; by default `all`.",
        advanced=True,
    )
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None = Field(
        None,
        spark="kafka.compression.type",
        description="How batches of records are compressed; by default they aren't.",
        advanced=True,
    )
    enable_idempotence: bool | None = Field(
        None,
        spark="kafka.enable.idempotence",
        description="Let brokers drop what the client sends twice; on by default. A micro-batch that "
        "is run again is written again all the same.",
        advanced=True,
    )
    batch_size: int | None = Field(
        None,
        ge=0,
        spark="kafka.batch.size",
        description="The most bytes that the client collects for one partition before it sends them.",
        advanced=True,
    )
    linger_ms: int | None = Field(
        None,
        ge=0,
        spark="kafka.linger.ms",
        description="How long the client collects records, in milliseconds; by default not at all.",
        advanced=True,
    )
    max_request_size: int | None = Field(
        None,
        ge=0,
        spark="kafka.max.request.size",
        description="The most bytes in one request, and so in one record; by default 1048576.",
        advanced=True,
    )
    buffer_memory: int | None = Field(
        None,
        ge=0,
        spark="kafka.buffer.memory",
        description="The most bytes that wait to be sent on one executor; by default 33554432.",
        advanced=True,
    )
    delivery_timeout: ClientDuration | None = Field(
        None,
        spark=_DURATIONS["delivery_timeout"],
        passed=False,
        description="How long to try to write one record; by default 2 minutes.",
        advanced=True,
    )
    max_block: ClientDuration | None = Field(
        None,
        spark=_DURATIONS["max_block"],
        passed=False,
        description="How long to wait for a topic's metadata or for room in the buffer; by default "
        "1 minute.",
        advanced=True,
    )
    async_progress_tracking_enabled: bool | None = Field(
        None,
        passed=False,
        description="Write the checkpoint beside the processing and not between micro-batches: less "
        "delay, more rows written again after a failure. For queries without state.",
        advanced=True,
    )
    async_progress_tracking_checkpoint_interval_ms: int | None = Field(
        None,
        ge=0,
        passed=False,
        description="How often the checkpoint is then written, in milliseconds; by default 1000.",
        advanced=True,
    )

    def to_spark(self) -> dict[str, str]:
        """The options as Spark's connector takes them, in batch too. Holds secrets."""
        found = super().to_spark()
        for name, spark_name in _DURATIONS.items():
            value = getattr(self, name)
            if value is not None:
                found[spark_name] = str(milliseconds(value))
        return found

    def progress_options(self) -> dict[str, str]:
        """What is said to Spark's streaming engine and not to the connector."""
        found = {}
        if self.async_progress_tracking_enabled is not None:
            enabled = str(self.async_progress_tracking_enabled).lower()
            found["asyncProgressTrackingEnabled"] = enabled
        if self.async_progress_tracking_checkpoint_interval_ms is not None:
            interval = str(self.async_progress_tracking_checkpoint_interval_ms)
            found["asyncProgressTrackingCheckpointIntervalMs"] = interval
        return found

    @model_validator(mode="after")
    def _options_go_together(self) -> Self:
        if self.topic is not None and self.topic_column is not None:
            raise ValueError(
                "`topic` sends all rows to one topic, and `topic_column` each to its own; give one"
            )
        if self.include_headers and self.headers is not None:
            raise ValueError("`headers` and `include_headers` both say what the headers are; give one")
        if self.enable_idempotence and self.acks not in (None, "all"):
            raise ValueError(f"`enable_idempotence` needs `acks: all`, not {self.acks}")
        interval = self.async_progress_tracking_checkpoint_interval_ms
        if interval is not None and not self.async_progress_tracking_enabled:
            raise ValueError(
                "`async_progress_tracking_checkpoint_interval_ms` has no effect without "
                "`async_progress_tracking_enabled: true`"
            )
        return self


class KafkaTarget(Target[KafkaTargetOptions]):
    """Write each row as a record of a Kafka topic."""

    semantics = TargetSemantics(
        delivery="at_least_once",
        condition="a micro-batch that is run again after a failure is written again",
        triggers=MICRO_BATCH_TRIGGERS | {"continuous", "real_time"},
        counts_rows=True,
    )
    example = {"bootstrap_servers": ["localhost:9092"], "topic": "hours", "key": "airport"}

    def __init__(self, options: KafkaTargetOptions) -> None:
        super().__init__(options)
        if options.async_progress_tracking_enabled:
            # Spark refuses these two: they end with the micro-batch whose progress is still unwritten.
            triggers = self.semantics.triggers - {"available_now", "once"}
            vars(self)["semantics"] = replace(self.semantics, triggers=triggers)

    def jars(self) -> tuple[str, ...]:
        """Spark's connector for Kafka."""
        return (KAFKA_JAR,)

    def check(self, *inputs: Facts) -> Iterable[Finding]:
        """The columns that the options name exist, and the query suits asynchronous progress."""
        (facts,) = inputs
        option = "topic_column" if self.options.topic_column else "topic"
        column = self._topic_column()
        if column and facts.columns is not None and facts.column(column) is None:
            yield _no_topic(column, option)
        if self.options.include_headers and facts.columns is not None and not facts.column(HEADERS):
            yield _no_headers()
        if self.options.async_progress_tracking_enabled and facts.streaming and facts.stateful:
            yield Finding(
                "GB207",
                "asynchronous progress tracking is for queries without state, and this one has a "
                f"stateful operator ({facts.stateful[0]})",
                "Remove `async_progress_tracking_enabled`.",
                "async_progress_tracking_enabled",
            )

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
        self.records(df).write.format("kafka").options(**self.options.to_spark()).save()

    def write_stream(self, df: DataFrame, context: WriteContext) -> DataStreamWriter:
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
        from pyspark.sql import functions as F

        options = self.options
        columns: list[Column] = []
        topic = self._topic_column()
        routing = []
        if topic is not None:
            option = "topic_column" if options.topic_column else "topic"
            routing.append(_found(df, topic) or _raise(_no_topic(topic, option)))
            columns.append(F.col(_quoted(routing[0])).cast("string").alias(TOPIC))
        if options.include_headers:
            routing.append(_found(df, HEADERS) or _raise(_no_headers()))
        if options.key is not None:
            columns.append(_content(df, "key", options.key))
        if options.value is not None:
            columns.append(_content(df, "value", options.value))
        else:
            content = [F.col(_quoted(name)) for name in df.columns if name not in routing]
            columns.append(F.to_json(F.struct(*content)).alias("value"))
        headers = _quoted(routing[-1]) if options.include_headers else options.headers
        if headers is not None:
            columns.append(_headers(df, headers))
        if options.partition is not None:
            _type_of(df, "partition", options.partition)
            columns.append(F.expr(options.partition).cast("int").alias("partition"))
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
    from pyspark.sql import functions as F

    try:
        return df.select(F.expr(expression)).schema[0].dataType
    except PySparkException as error:
        said = str(error).splitlines()[0]
        raise GemError(
            "GB205",
            f"`{option}: {expression}` can't be computed from these rows: {said}",
            "Use the columns that reach this target; `gem-bundle preview` shows them.",
            option,
        ) from error


def _content(df: DataFrame, option: str, expression: str) -> Column:
    """A key or value: bytes and text as they are, what has parts as JSON, the rest as text."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType, VariantType

    kind = _type_of(df, option, expression)
    column = F.expr(expression)
    if isinstance(kind, ArrayType | MapType | StructType | VariantType):
        column = F.to_json(column)
    elif not isinstance(kind, BinaryType):
        column = column.cast("string")
    return column.alias(option)


def _headers(df: DataFrame, expression: str) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    kind = _type_of(df, HEADERS, expression)
    column = F.expr(expression)
    if isinstance(kind, MapType):
        column = F.map_entries(column)
    elif not (
        isinstance(kind, ArrayType)
        and isinstance(kind.elementType, StructType)
        and len(kind.elementType) == 2
    ):
        raise GemError(
            "GB205",
            f"`{HEADERS}: {expression}` is {kind.simpleString()}, not a map or an array of structs "
            "of a key and a value",
            "Write for example `map('source', 'gem-bundle')`.",
            HEADERS,
        )
    return column.cast(_HEADERS_TYPE).alias(HEADERS)
