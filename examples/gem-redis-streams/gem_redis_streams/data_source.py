"""How Spark reads Redis Streams: a data source on PySpark's Python Data Source API.

Spark plans in a Python process beside the driver, which keeps its reader for as long as the query runs, and
reads in tasks on executors. An offset has the position of each stream:
``{"orders": {"id": "1767600000000-0", "added": 42}}``. The first offset of a stream also has, in ``from``,
where reading it began, so that a micro-batch that is run again has the same rows wherever that was.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from gem_bundle import GemError
from gem_redis_streams.connection import Settings, connect, connected, speaking
from gem_redis_streams.ids import NONE, EntryId
from gem_redis_streams.planning import Position, Span, Walk, data_loss, first_position, last_id, plan_limited
from gem_redis_streams.schema import columns

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2 a Python source isn't told how much to read, nor when to end

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands for what there is from Spark 4.2 on."""

    ReadAllAvailable = ReadMaxRows = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType
    from redis import Redis

Offset = dict[str, Any]
Row = tuple[str, str, datetime | None, dict[str, str] | dict[str, bytes]]

_LAST_MILLISECOND = 253_402_300_799_999  # of the year 9999, where Spark's timestamps end


@dataclass
class Part(InputPartition):
    """The entries that one task reads; as texts and numbers, since it is pickled often."""

    stream: str
    after: str
    until: str
    count: int

    @classmethod
    def of(cls, span: Span) -> Part:
        """The part for a span."""
        return cls(span.stream, str(span.after), str(span.until), span.count)


class RedisStreamsDataSource(DataSource):
    """The format `redis_streams`; its options are those of `Settings.to_options`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "redis_streams"

    def schema(self) -> str:
        """The columns."""
        found = columns(binary=Settings.from_options(self.options).binary)
        return ", ".join(f"{name} {kind}" for name, kind in found)

    def reader(self, schema: StructType) -> RedisStreamsReader:  # noqa: ARG002
        """What reads the entries that are there."""
        return RedisStreamsReader(Settings.from_options(self.options))

    def streamReader(self, schema: StructType) -> RedisStreamsStreamReader:  # noqa: ARG002, N802 (Spark's)
        """What reads entries as they come."""
        return RedisStreamsStreamReader(Settings.from_options(self.options))


class RedisStreamsReader(DataSourceReader):
    """Reads the entries that are there when the query is planned."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def partitions(self) -> list[InputPartition]:
        """The parts of all streams."""
        found: list[Span] = []
        with connected(self._settings) as client:
            for stream in self._settings.streams:
                begin = first_position(client, stream, self._settings.place(stream))
                end = last_id(client, stream, self._settings.place(stream, end=True))
                found += Walk(client, self._settings, stream, begin, end).to_the_end()
        if not found:  # Spark wants one at least
            found.append(Span(self._settings.streams[0], NONE, NONE, 0))
        return [Part.of(span) for span in found]

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """The rows of a part; called on executors."""
        return read(self._settings, cast("Part", partition))


class RedisStreamsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads micro-batches, from one offset to the next."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: Redis | None = None
        self._targets: dict[str, EntryId] = {}
        self._begins: dict[str, Position] = {}
        self._planned: tuple[str, list[Span]] | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's)
        """No stream has been read: where each begins is in the offset behind its first entries."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much to read at once, as the options say."""
        limit = self._settings.limit
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note where the streams end now: what comes later is for the next run."""
        with speaking(self._settings):
            self._targets = {s: last_id(self._redis(), s) for s in self._settings.streams}

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:  # noqa: N802
        """Where a micro-batch ends that begins at an offset.

        Args:
            start: The offset. Before Spark 4.2 nobody says it, and the micro-batch ends where the streams do.
            limit: How much may be read at once.

        Raises:
            GemError: When entries are gone that weren't read.
        """
        with speaking(self._settings):
            if start is None:
                return self._everything()
            begun = {stream: self._begin(stream, start) for stream in self._settings.streams}
            walks = {stream: self._walk(stream, begun[stream]) for stream in begun}
            if limit is not None and isinstance(limit, ReadMaxRows):
                plan_limited(walks.values(), limit.max_rows)
            else:
                for walk in walks.values():
                    walk.to_the_end()
        end = {stream: _end(walk, start.get(stream), begun[stream]) for stream, walk in walks.items()}
        self._planned = (_key(start, end), [span for walk in walks.values() for span in walk.spans])
        return end

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """Where the streams end, for who looks at the query's progress."""
        with speaking(self._settings):
            return {s: {"id": str(last_id(self._redis(), s))} for s in self._settings.streams}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The parts of a micro-batch; the same entries whenever it is asked for.

        Raises:
            GemError: When some of them are gone.
        """
        if self._planned is not None and self._planned[0] == _key(start, end):
            return [Part.of(span) for span in self._planned[1]]
        found: list[Span] = []
        with speaking(self._settings):
            for stream, place in end.items():
                began = start.get(stream, place.get("from"))
                if began is None or began == place:
                    continue
                position, until = Position.from_json(began), EntryId.parse(place["id"])
                if until < position.id:  # the stream was made anew
                    position = Position(NONE, 0)
                found += Walk(self._redis(), self._settings, stream, position, until).to_the_end()
        return [Part.of(span) for span in found]

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """The rows of a part; called on executors."""
        return read(self._settings, cast("Part", partition))

    def stop(self) -> None:
        """The query has ended."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __getstate__(self) -> dict[str, Any]:
        """What goes to executors: they need the settings only, and a connection can't go."""
        return {**self.__dict__, "_client": None, "_planned": None}

    def _redis(self) -> Redis:
        self._client = self._client or connect(self._settings)
        return self._client

    def _begin(self, stream: str, start: Offset) -> Position:
        if stream in start:
            return Position.from_json(start[stream])
        if stream not in self._begins:
            place = self._settings.place(stream)
            self._begins[stream] = first_position(self._redis(), stream, place)
        return self._begins[stream]

    def _walk(self, stream: str, position: Position) -> Walk:
        return Walk(self._redis(), self._settings, stream, position, self._targets.get(stream))

    def _everything(self) -> Offset:
        found = {}
        for stream in self._settings.streams:
            begin = self._begin(stream, {})
            end = first_position(self._redis(), stream, "latest")
            found[stream] = {**end.to_json(), "from": begin.to_json()}
        return found


def _end(walk: Walk, start: dict[str, Any] | None, begun: Position) -> dict[str, Any]:
    """Where a stream's part of a micro-batch ends, as an offset has it.

    Spark runs a micro-batch whenever an offset is another one, so it is the same where nothing is new.
    """
    if start is None:
        return {**walk.position.to_json(), "from": begun.to_json()}
    return walk.position.to_json() if walk.spans else start


def read(settings: Settings, part: Part) -> Iterator[Row]:
    """The entries of a part as rows.

    Raises:
        GemError: When the server can't be reached, some of the entries are gone, or a value isn't a text.
    """
    after, left = part.after, part.count
    with connected(settings) as client:
        while left > 0:
            found = cast(
                "list[tuple[bytes, dict[bytes, bytes]]]",
                client.xrange(part.stream, f"({after}", part.until, min(left, settings.fetch)),
            )
            if not found:
                break
            for key, fields in found:
                after = key.decode()
                yield (
                    part.stream,
                    after,
                    _moment(after),
                    _decoded(part.stream, after, fields, settings.binary),
                )
            left -= len(found)
    if left > 0 and settings.fail_on_loss:
        were = "one entry was" if left == 1 else f"{left} entries were"
        raise data_loss(f"{were} deleted from the stream `{part.stream}` while the micro-batch read it")


def _moment(entry: str) -> datetime | None:
    milliseconds = EntryId.parse(entry).milliseconds
    if milliseconds > _LAST_MILLISECOND:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)


def _decoded(
    stream: str, entry: str, fields: Mapping[bytes, bytes], binary: bool
) -> dict[str, str] | dict[str, bytes]:
    try:
        if binary:
            return {name.decode(): value for name, value in fields.items()}
        return {name.decode(): value.decode() for name, value in fields.items()}
    except UnicodeDecodeError as error:
        what = "a field's name that" if binary else "a field that"
        raise GemError(
            "GB508",
            f"entry {entry} of the stream `{stream}` has {what} is no text in UTF-8",
            "" if binary else "Set `values: binary`, and decode what is a text with `cast` or `decode`.",
            None if binary else "values",
        ) from error


def _key(start: Offset, end: Offset) -> str:
    return json.dumps([start, end], sort_keys=True)
