"""The source `kafka`: the records of topics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import (
    MICRO_BATCH_TRIGGERS,
    Column,
    Facts,
    Finding,
    GemError,
    OptionChange,
    PartRead,
    ReadContext,
    Source,
    SourcePart,
    SourceSemantics,
    StreamReadContext,
)
from gem_bundle.diagnostics import listed_names
from gem_kafka.connection import KAFKA_CLASS, KAFKA_JAR
from gem_kafka.matching import java_pattern
from gem_kafka.offsets import EARLIEST, LATEST, PerPartition
from gem_kafka.raw_options import of_source
from gem_kafka.reading import ENDS, STARTS, STREAM_ONLY, KafkaSourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

PREVIEW_OFFSETS = 1000
_FROM_THE_BEGINNING = "a topic that is new is read from its beginning"


class KafkaSource(Source[KafkaSourceOptions]):
    """Read the records of Kafka topics, as a stream or in batch.

    Keys and values are bytes: cast them (``cast(value as string)``) or decode them with a transform
    such as `from_json`.

    In visual tools: Kafka.
    """

    semantics = SourceSemantics(
        triggers=MICRO_BATCH_TRIGGERS | {"continuous", "real_time"},
        condition="the topics keep their records until they have been processed",
        lag=frozenset({"records", "time"}),
    )
    example = {
        "bootstrap_servers": ["localhost:9092"],
        "subscribe": ["clicks"],
        "starting_offsets": "earliest",
    }

    def __init__(self, options: KafkaSourceOptions) -> None:
        super().__init__(options)
        if options.starts_at_the_end:
            self.semantics = replace(self.semantics, only_new="starting_offsets")

    def places(self) -> dict[str, list[str]]:
        """The topics, where they are named."""
        option = "assign" if self.options.subscribe is None else "subscribe"
        return {option: self.options.places(self.options.topics or ())}

    def begins(self) -> str:
        """The offsets or the time that the options name, else the newest ones."""
        options = self.options
        if options.starts_at_the_end:
            return "from what comes after the start"
        if options.starting_offsets == "earliest":
            return "from its beginning"
        return "from the offsets or the time that its options name"

    def change(self, option: str, before: Any) -> OptionChange | None:
        """What another topic, cluster or beginning means where offsets are in a checkpoint."""
        if option in STARTS:
            return OptionChange(
                "continues", "the checkpoint has offsets, and they win: it is read by a new checkpoint only"
            )
        if option == "bootstrap_servers":
            if set(before or ()) & set(self.options.bootstrap_servers):
                return OptionChange("continues", "one of the brokers is the same")
            return OptionChange(
                "skipped",
                "if that is another cluster, the offsets of the checkpoint mean other records there",
                "If it is the same cluster, accept it; else give the source another id.",
            )
        if option in {"subscribe", "assign", "subscribe_pattern"}:
            return self._other_topics(option, before)
        if option == "spark_options":
            return of_source(before, self.options.spark_options)
        return None

    def _other_topics(self, option: str, before: Any) -> OptionChange:
        if before is None:
            # It takes the place of another option, of which is told what becomes of its topics.
            return OptionChange("continues", _FROM_THE_BEGINNING)
        what = "the checkpoint may have offsets of a topic that isn't read any more"
        if option != "subscribe_pattern" and _is_known(before):
            topics = {name: self._reads(name, before) for name in before}
            lost = [name for name, read in topics.items() if read is False]
            unsure = [name for name, read in topics.items() if read is None]
            if not lost and not unsure:
                return OptionChange("continues", _FROM_THE_BEGINNING)
            what = f"the checkpoint has offsets of {listed_names(lost or unsure)}, which "
            what += "isn't read any more" if lost else "may not be read any more, or not all of it"
        if self.options.fail_on_data_loss:
            return OptionChange(
                "refused",
                f"{what}, and Spark takes that for lost records",
                "With `fail_on_data_loss: false` it goes on, and what waits there is never read.",
            )
        return OptionChange(
            "skipped",
            f"{what}: what waits there is never read",
            "Let the stream read what waits there, and then accept the change.",
        )

    def _reads(self, topic: str, before: Any) -> bool | None:
        """Whether all of a topic that was read is read on; None where that can't be told.

        Args:
            topic: The topic.
            before: The topics, or their partitions.
        """
        options = self.options
        if options.subscribe_pattern is not None:
            # Spark looks for it within a name, and by one of its settings has Kafka compare the whole name.
            pattern = java_pattern(options.subscribe_pattern)
            if pattern is not None and pattern.fullmatch(topic):
                return True
            return None if pattern is None or pattern.search(topic) else False
        if topic not in (options.topics or ()):
            return False
        if options.assign is None:
            return True
        if not isinstance(before, dict):
            return None  # it may have other partitions too
        return set(before[topic]) <= set(options.assign[topic]) or None

    def jars(self) -> tuple[str, ...]:
        """Spark's connector for Kafka."""
        return (KAFKA_JAR,)

    def jar_classes(self) -> tuple[str, ...]:
        """What Spark knows the connector by."""
        return (KAFKA_CLASS,)

    def check(self, *inputs: Facts) -> Iterable[Finding]:  # noqa: ARG002 (a source has none)
        """Options of batch reads in a stream, or the other way round."""
        return () if self.streaming is None else self._out_of_place(streaming=self.streaming)

    def read_stream(self, context: StreamReadContext) -> DataFrame:
        """The records as they come.

        Raises:
            GemError: When an option is for batch reads only.
        """
        self._refuse(self._out_of_place(streaming=True))
        return context.reader.format("kafka").options(**self.options.to_spark()).load()

    def read(self, context: ReadContext) -> DataFrame:
        """The records that are there when the query runs.

        Raises:
            GemError: When an option is for streams only.
        """
        self._refuse(self._out_of_place(streaming=False))
        return context.reader.format("kafka").options(**self.options.to_spark()).load()

    def infer(self) -> Facts:
        """The columns that every Kafka record has."""
        columns = [
            Column("key", "binary"),
            Column("value", "binary"),
            Column("topic", "string"),
            Column("partition", "int"),
            Column("offset", "bigint"),
            Column("timestamp", "timestamp"),
            Column("timestampType", "int"),
        ]
        if self.options.include_headers:
            columns.append(Column("headers", "array<struct<key:string,value:binary>>"))
        return Facts(columns=tuple(columns), qualifiers=frozenset())

    def connect(self) -> Iterable[Finding]:
        """Whether the brokers answer, take the login, and have the topics and partitions."""
        from gem_kafka.preflight import check_source

        return check_source(self.options)

    def for_preview(self) -> KafkaSource:
        """A source of the oldest records, few at a time, that doesn't wait for more."""
        options = self.options
        changes: dict[str, object] = {
            "max_offsets_per_trigger": min(
                options.max_offsets_per_trigger or PREVIEW_OFFSETS, PREVIEW_OFFSETS
            ),
            "min_offsets_per_trigger": None,
            "max_trigger_delay": None,
        }
        starts = options.starting_offsets
        if isinstance(starts, dict):
            changes["starting_offsets"] = _without_latest(starts)
        elif not options.given(STARTS[1:]):
            changes["starting_offsets"] = "earliest"
        return _Preview(options.model_copy(update=changes))

    def for_backfill(self, part: SourcePart) -> PartRead | None:
        """The records up to the offsets that a stream has read, or of a time by their timestamps.

        Raises:
            GemError: GB453 when the brokers can't be asked, or no longer have records that a stream has read.
        """
        from gem_kafka.backfill import options_of, said_of

        options = options_of(self.options, part)
        return PartRead(KafkaSource(options), said_of(options, part))

    def _out_of_place(self, *, streaming: bool) -> Iterator[Finding]:
        for name in self.options.given(ENDS if streaming else STREAM_ONLY):
            if streaming:
                message = f"`{name}` is for batch reads: a stream has no end"
                yield Finding("GB207", message, "Remove it, or write `mode: batch` at the source.", name)
            else:
                message = f"`{name}` is for streams: a batch read takes everything at once"
                yield Finding("GB207", message, "Remove it.", name)
        starts = self.options.starting_offsets
        at_the_end = starts == "latest" or (isinstance(starts, dict) and LATEST in _offsets(starts))
        if at_the_end and not streaming:
            message = "a batch read that starts at `latest` has nothing to read"
            hint = "Use `earliest`, which is the default, or offsets."
            yield Finding("GB207", message, hint, "starting_offsets")

    @staticmethod
    def _refuse(findings: Iterable[Finding]) -> None:
        for finding in findings:
            raise GemError(finding.code, finding.message, finding.hint, finding.option)


def _is_known(before: Any) -> bool:
    """Whether topics, or their partitions, were kept: not where they came from the environment."""
    if isinstance(before, dict):
        return all(isinstance(partitions, list) for partitions in before.values())
    return isinstance(before, list) and all(isinstance(topic, str) for topic in before)


class _Preview(KafkaSource):
    """The source as a preview reads it: the limits that keep a stream's first look short are its own."""

    def read(self, context: ReadContext) -> DataFrame:
        return KafkaSource(self.options.model_copy(update=dict.fromkeys(STREAM_ONLY))).read(context)


def _offsets(places: PerPartition) -> set[int]:
    return {place for partitions in places.values() for place in partitions.values()}


def _without_latest(places: PerPartition) -> PerPartition:
    return {
        topic: {p: EARLIEST if place == LATEST else place for p, place in partitions.items()}
        for topic, partitions in places.items()
    }
