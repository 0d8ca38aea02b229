"""The options of the source `kafka`: what is read, from where to where, and how much at once."""

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator

from gem_bundle import Field
from gem_kafka.connection import ConnectionOptions
from gem_kafka.offsets import (
    LATEST,
    Assignment,
    EndingOffsets,
    StartingOffsets,
    Timestamp,
    Timestamps,
    topic_partitions,
)
from gem_kafka.types import ClientDuration, TopicList, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TOPICS = ("subscribe", "subscribe_pattern", "assign")
STARTS = ("starting_offsets", "starting_offsets_by_timestamp", "starting_timestamp")
ENDS = ("ending_offsets", "ending_offsets_by_timestamp", "ending_timestamp")
STREAM_ONLY = ("max_offsets_per_trigger", "min_offsets_per_trigger", "max_trigger_delay")

_BYTES = "Spark always gives keys and values as bytes; turn them into columns with transforms"


class KafkaSourceOptions(ConnectionOptions):
    """Options of the source `kafka`, from *Reading Data from Kafka* of Spark's Kafka guide."""

    refused_settings: "ClassVar[Mapping[str, str]]" = {
        "kafka.auto.offset.reset": "Spark keeps the offsets itself; use `starting_offsets`",
        "kafka.key.deserializer": _BYTES,
        "kafka.value.deserializer": _BYTES,
        "kafka.enable.auto.commit": "Spark keeps offsets in the checkpoint and commits none to Kafka",
        "kafka.interceptor.classes": "an interceptor can change records, which Spark does not allow",
    }

    subscribe: TopicList | None = Field(
        None,
        min_length=1,
        description="The topics to read, all partitions of them.",
        examples=[["clicks"], "clicks,views"],
        place=True,
    )
    subscribe_pattern: str | None = Field(
        None,
        min_length=1,
        description="A Java regular expression for the names of the topics to read, which is looked "
        "for within them; topics that appear later are read too.",
        examples=["clicks-.*"],
        place=True,
    )
    assign: Assignment | None = Field(
        None,
        description="Single partitions to read: for each topic a list of their numbers.",
        examples=[{"clicks": [0, 1]}],
        place=True,
    )
    starting_offsets: StartingOffsets | None = Field(
        None,
        description="Where the first run starts: `earliest`, `latest`, or an offset for each "
        "partition (-2 or `earliest`, -1 or `latest`). By default `latest` in a stream and "
        "`earliest` in batch. A restarted stream continues where it was.",
        examples=["earliest", {"clicks": {0: 23, 1: "earliest"}}],
    )
    starting_timestamp: Timestamp | None = Field(
        None,
        description="Start at the first record of each partition that is not older.",
        examples=["2013-01-01T00:00:00Z", 1356998400000],
    )
    starting_offsets_by_timestamp: Timestamps | None = Field(
        None,
        description="Start at the first record that is not older, with a time for each partition.",
        examples=[{"clicks": {0: "2013-01-01T00:00:00Z"}}],
        advanced=True,
    )
    starting_offsets_by_timestamp_strategy: Literal["error", "latest"] | None = Field(
        None,
        description="What to do in a partition whose records are all older than the time to start "
        "at: fail (`error`, the default), or read what is new from now on (`latest`).",
        advanced=True,
    )
    ending_offsets: EndingOffsets | None = Field(
        None,
        description="Where a batch read ends: `latest` (the default), or an offset for each "
        "partition, which is no longer read.",
        examples=[{"clicks": {0: 50, 1: "latest"}}],
    )
    ending_timestamp: Timestamp | None = Field(
        None,
        description="End a batch read before the first record of each partition that is not older.",
    )
    ending_offsets_by_timestamp: Timestamps | None = Field(
        None,
        description="End a batch read before the first record that is not older, with a time for "
        "each partition.",
        advanced=True,
    )
    max_offsets_per_trigger: int | None = Field(
        None,
        gt=0,
        description="The most offsets in one micro-batch, over all partitions; by default all.",
    )
    min_offsets_per_trigger: int | None = Field(
        None, gt=0, description="Wait until there are so many new offsets, over all partitions."
    )
    max_trigger_delay: ClientDuration | None = Field(
        None,
        passed=False,
        description="How long to wait for `min_offsets_per_trigger`; by default 15 minutes.",
    )
    include_headers: bool = Field(
        False, description="Add the column `headers`, an array of `key` and `value`.", change="from_now_on"
    )
    fail_on_data_loss: bool = Field(
        True,
        description="Fail when records may have been lost: a topic was deleted, or offsets are no "
        "longer there.",
    )
    min_partitions: int | None = Field(
        None,
        gt=0,
        description="About how many Spark partitions to read with, where Kafka's are too few.",
        advanced=True,
    )
    max_records_per_partition: int | None = Field(
        None,
        gt=0,
        description="The most records in one Spark partition; a larger range is split.",
        advanced=True,
        since="4.0",
    )
    group_id_prefix: str | None = Field(
        None,
        min_length=1,
        description="How the names of Spark's consumer groups begin; one is made for each query.",
        advanced=True,
    )
    group_id: str | None = Field(
        None,
        min_length=1,
        spark="kafka.group.id",
        description="One fixed consumer group, where brokers authorise groups. Queries that share "
        "it may each get only a part of the records.",
        advanced=True,
    )
    kafka_consumer_poll_timeout_ms: int | None = Field(
        None,
        gt=0,
        spark="kafkaConsumer.pollTimeoutMs",
        description="How long executors wait for records, in milliseconds; by default 120000.",
        advanced=True,
    )
    fetch_offset_num_retries: int | None = Field(
        None,
        ge=1,
        spark="fetchOffset.numRetries",
        description="How often to try to get offsets, the first time included; by default 3 times.",
        advanced=True,
    )
    fetch_offset_retry_interval_ms: int | None = Field(
        None,
        ge=0,
        spark="fetchOffset.retryIntervalMs",
        description="How long to wait between those tries, in milliseconds; by default 10.",
        advanced=True,
    )

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The topics by name; None when a pattern names them."""
        if self.subscribe_pattern is not None:
            return None
        return tuple(self.subscribe or self.assign or ())

    @property
    def starts_at_the_end(self) -> bool:
        """Whether the first run of a stream starts at what comes next, as it does by default."""
        if self.given(STARTS[1:]):
            return False
        starts = self.starting_offsets or "latest"
        if isinstance(starts, str):
            return starts == "latest"
        return all(place == LATEST for partitions in starts.values() for place in partitions.values())

    def given(self, names: "Iterable[str]") -> list[str]:
        """Those of the named options that the pipeline sets."""
        return [name for name in names if getattr(self, name) is not None]

    def to_spark(self) -> dict[str, str]:
        """The options as Spark's connector takes them. Holds secrets."""
        found = super().to_spark()
        if self.max_trigger_delay is not None:
            found["maxTriggerDelay"] = f"{milliseconds(self.max_trigger_delay)}ms"
        return found

    @model_validator(mode="after")
    def _options_go_together(self) -> Self:
        for problem in (
            self._topics_problem(),
            self._place_problem(STARTS),
            self._place_problem(ENDS),
            self._limit_problem(),
            *(self._partitions_problem(name) for name in (*STARTS[:2], *ENDS[:2])),
            self._range_problem(*(options[0] for options in (STARTS, ENDS))),
            self._range_problem(*(options[1] for options in (STARTS, ENDS))),
        ):
            if problem:
                raise ValueError(problem)
        return self

    def _topics_problem(self) -> str:
        given = self.given(_TOPICS)
        if len(given) == 1:
            return ""
        names = "`subscribe`, `subscribe_pattern` or `assign`"
        if not given:
            return f"say what to read: one of {names}"
        return f"{' and '.join(f'`{name}`' for name in given)} can't be used together; give one"

    def _place_problem(self, names: tuple[str, ...]) -> str:
        given = self.given(names)
        if len(given) > 1:
            return (
                f"`{given[0]}` and `{given[1]}` say the same thing twice, and Spark would use only "
                f"`{given[-1]}`; give one of them"
            )
        by_time = given and given[0] != "starting_offsets"
        if names is STARTS and self.starting_offsets_by_timestamp_strategy is not None and not by_time:
            return (
                "`starting_offsets_by_timestamp_strategy` has no effect without `starting_timestamp` or "
                "`starting_offsets_by_timestamp`"
            )
        return ""

    def _limit_problem(self) -> str:
        least, most = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if least is not None and most is not None and least > most:
            return (
                f"`min_offsets_per_trigger` ({least}) can't be more than `max_offsets_per_trigger` ({most})"
            )
        if self.max_trigger_delay is not None and least is None:
            return "`max_trigger_delay` has no effect without `min_offsets_per_trigger`"
        if self.group_id is not None and self.group_id_prefix is not None:
            return "`group_id_prefix` has no effect beside `group_id`; give one of them"
        return ""

    def _partitions_problem(self, name: str) -> str:
        """Spark wants a place for every partition it reads, and for no other."""
        places = getattr(self, name)
        if not isinstance(places, dict) or self.topics is None:
            return ""
        for topic in places:
            if topic not in self.topics:
                return f"`{name}` has the topic `{topic}`, which is not read"
        for topic in self.topics:
            if topic not in places:
                return f"`{name}` must have every topic that is read; `{topic}` is missing"
        wanted = set(topic_partitions(self.assign or places))
        found = set(topic_partitions(places))
        for topic, partition in sorted(wanted ^ found):
            problem = "is missing" if (topic, partition) in wanted else "is not in `assign`"
            return (
                f"`{name}` must have every partition that is read and no other; "
                f"partition {partition} of `{topic}` {problem}"
            )
        return ""

    def _range_problem(self, starts: str, ends: str) -> str:
        first, last = getattr(self, starts), getattr(self, ends)
        if not (isinstance(first, dict) and isinstance(last, dict)):
            return ""
        only_one = set(topic_partitions(first)) ^ set(topic_partitions(last))
        for topic, partition in sorted(only_one):
            return (
                f"`{starts}` and `{ends}` must have the same partitions; only one of them has "
                f"partition {partition} of `{topic}`"
            )
        for topic, partition in topic_partitions(first):
            if 0 <= last[topic][partition] < first[topic][partition]:
                return (
                    f"partition {partition} of `{topic}` ends at {last[topic][partition]}, before "
                    f"it starts at {first[topic][partition]}"
                )
        return ""
