"""The options of the target `kafka`: what a record is made of, and how it is produced."""

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator

from gem_bundle import Field
from gem_bundle.types import Expression
from gem_kafka.connection import ConnectionOptions
from gem_kafka.types import ClientDuration, TopicName, milliseconds

if TYPE_CHECKING:
    from collections.abc import Mapping

_BYTES = "Spark writes keys and values as they are, text or bytes; give them with `key` and `value`"
_DURATIONS = {
    "delivery_timeout": "kafka.delivery.timeout.ms",
    "max_block": "kafka.max.block.ms",
}


class KafkaTargetOptions(ConnectionOptions):
    """Options of the target `kafka`, from *Writing Data to Kafka* of Spark's Kafka guide."""

    refused_settings: "ClassVar[Mapping[str, str]]" = {
        "kafka.key.serializer": _BYTES,
        "kafka.value.serializer": _BYTES,
        "kafka.transactional.id": "Spark's sink does not use Kafka's transactions",
    }

    topic: TopicName | None = Field(None, description="The topic that all rows go to.", place=True)
    topic_column: str | None = Field(
        None,
        min_length=1,
        passed=False,
        description="The column with each row's topic, in place of `topic`; without either it is the "
        "column `topic`.",
        place=True,
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
        description="The record's value; by default the whole row as a JSON object, without its nulls and "
        "without the columns that give its topic and headers. Bytes and texts are written as they are, "
        "structs, arrays and maps as JSON, other types as text.",
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
        description="How long to wait for a topic's metadata or for room in the buffer; by default 1 minute.",
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
