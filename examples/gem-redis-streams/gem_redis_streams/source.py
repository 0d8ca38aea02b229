"""The source `redis_streams`: the entries of Redis Streams."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle import Column, Facts, Finding, GemError, Source, SourceSemantics
from gem_bundle.types import local_path
from gem_redis_streams.connection import Settings
from gem_redis_streams.options import EARLIEST, LATEST, RedisStreamsOptions
from gem_redis_streams.schema import columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle import ReadContext, StreamReadContext

PREVIEW_ENTRIES = 1000
STREAM_ONLY = ("max_entries_per_trigger",)


class RedisStreamsSource(Source[RedisStreamsOptions]):
    """Read the entries of Redis Streams, as a stream or in batch.

    An entry is a row: the stream's key (`stream`), its id (`id`), the time in its id (`timestamp`) and what
    it says (`fields`, a map). Spark keeps how far it has read; Redis's consumer groups have no part in it,
    and nothing in Redis is changed.
    """

    semantics = SourceSemantics(condition="the streams keep their entries until they have been processed")
    example = {"url": "redis://localhost:6379", "streams": ["orders"]}

    def __init__(self, options: RedisStreamsOptions) -> None:
        super().__init__(options)
        if options.only_new:
            self.semantics = replace(self.semantics, only_new="starting_ids")

    def places(self) -> dict[str, list[str]]:
        """The streams."""
        server = self.options.url.replace("rediss:", "redis:", 1)
        return {"streams": [f"{server}/{stream}" for stream in self.options.streams]}

    def check(self, *inputs: Facts) -> Iterator[Finding]:  # noqa: ARG002 (a source has none)
        """Options of batch reads in a stream, or the other way round."""
        options = self.options
        if self.streaming and options.ending_ids is not None:
            yield Finding(
                "GB207",
                "`ending_ids` is for batch reads: a stream has no end",
                "Remove it, or write `mode: batch` at the source.",
                "ending_ids",
            )
        if self.streaming is False:
            for name in STREAM_ONLY:
                if getattr(options, name) is not None:
                    message = f"`{name}` is for streams: a batch read takes everything at once"
                    yield Finding("GB207", message, "Remove it.", name)
            if options.only_new:
                message = "a batch read that starts at `latest` has nothing to read"
                yield Finding(
                    "GB207", message, "Use `earliest`, which is the default, or ids.", "starting_ids"
                )

    def infer(self) -> Facts:
        """The columns that every entry has."""
        found = columns(binary=self.options.values == "binary")
        return Facts(columns=tuple(Column(*column) for column in found), qualifiers=frozenset())

    def connect(self) -> Iterable[Finding]:
        """Whether the server answers, takes the login, and has the streams."""
        from gem_redis_streams.preflight import check_streams

        try:
            return check_streams(self._settings())
        except GemError as error:
            return [Finding(error.code, error.message, error.hint, error.option)]

    def read(self, context: ReadContext) -> DataFrame:
        """The entries that are there when the query runs.

        Raises:
            GemError: When the certificates can't be read.
        """
        name = _registered(context.spark)
        return context.reader.format(name).options(**self._settings().to_options()).load()

    def read_stream(self, context: StreamReadContext) -> DataFrame:
        """The entries as they come.

        Raises:
            GemError: When the certificates can't be read.
        """
        name = _registered(context.spark)
        return context.reader.format(name).options(**self._settings().to_options()).load()

    def for_preview(self) -> RedisStreamsSource:
        """A source of the oldest entries, few at a time."""
        options = self.options
        places: str | dict[str, str] = EARLIEST
        if isinstance(options.starting_ids, dict):
            given = options.starting_ids.items()
            places = {stream: EARLIEST if place == LATEST else place for stream, place in given}
        if self.streaming is False:
            return type(self)(options.model_copy(update={"starting_ids": places}))
        limit = min(options.max_entries_per_trigger or PREVIEW_ENTRIES, PREVIEW_ENTRIES)
        changes = {"starting_ids": places, "max_entries_per_trigger": limit}
        return type(self)(options.model_copy(update=changes))

    def _settings(self) -> Settings:
        options = self.options
        return Settings(
            url=options.url,
            streams=tuple(options.streams),
            username=options.username,
            password=None if options.password is None else options.password.get_secret_value(),
            certificates=_text(options.ca_file),
            verify=options.verify_tls,
            timeout=int(options.timeout.removesuffix("ms")) / 1000,
            starting=options.starting_ids,
            ending=LATEST if options.ending_ids is None else options.ending_ids,
            limit=options.max_entries_per_trigger,
            per_partition=options.entries_per_partition,
            fetch=options.fetch_size,
            binary=options.values == "binary",
            fail_on_loss=options.fail_on_data_loss,
        )


def _registered(spark: SparkSession) -> str:
    """The name of the format, which the session knows from now on."""
    from gem_redis_streams.data_source import RedisStreamsDataSource

    spark.dataSource.register(RedisStreamsDataSource)
    return RedisStreamsDataSource.name()


def _text(file: str | None) -> str | None:
    """The certificates of a file: what is in it goes to executors, which needn't have the file."""
    if file is None:
        return None
    try:
        return Path(local_path(file) or file).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise GemError(
            "GB505",
            f"the certificates in `{file}` can't be read: {error}",
            "Name a file on the driver with certificates as PEM text.",
            "ca_file",
        ) from error
