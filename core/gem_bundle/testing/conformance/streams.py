"""Queries in conformance tests: run until nothing is left, take a crash back, compare rows.

They wait on progress. A deadline only ends a test that would otherwise hang.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from contextlib import closing, contextmanager
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from gem_bundle.contexts import StreamReadContext, WriteContext
from gem_bundle.testing.conformance.suite import fail
from gem_bundle.testing.running.capture import capture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_bundle.gem import Source, Target
    from gem_bundle.semantics import OutputMode

DEADLINE = 120.0
"""Seconds after which a query that does nothing more is a failure."""

_POLL = 0.05
NAME = "conformance"
_SHOWN = 5
_EPOCHS = 3

Batches = list[tuple[int, list[dict[str, Any]]]]
_Key = tuple[Any, ...]


def read_stream(
    source: Source[Any], spark: SparkSession, name: str = NAME, *, undivided: bool = False
) -> DataFrame:
    """A source's rows as the runtime reads them as a stream."""
    source.streaming = True
    return source.read_stream(StreamReadContext(NAME, spark, name, undivided))


def drained(df: DataFrame, checkpoint: Path, mode: OutputMode = "append") -> Batches:
    """Run until everything that is there has been read; the rows of each micro-batch, with its id."""
    taking = _Taking(df, checkpoint, mode)
    with taking.closed(), _query(taking.writer.trigger(availableNow=True)) as query:
        _end(query)
        return taking.take_ended()


def drained_rows(df: DataFrame, checkpoint: Path, mode: OutputMode = "append") -> list[dict[str, Any]]:
    """The same, where it doesn't matter which micro-batch has which rows; over Connect it costs less."""
    name = f"{NAME}_{uuid.uuid4().hex}"
    taking = capture(df, mode, name, checkpoint)
    before = _committed(checkpoint)
    writer = taking.writer().queryName(name).option("checkpointLocation", str(checkpoint))
    with closing(taking), _query(writer.trigger(availableNow=True)) as query:
        _end(query)
        ended = [batch for batch in _committed(checkpoint) if batch not in before]
        return [row.asDict(recursive=True) for row in (taking.taken(ended) if ended else [])]


def running(
    df: DataFrame, checkpoint: Path, enough: Callable[[Batches], bool], begun: Callable[[], object]
) -> Batches:
    """Run a stream until it has given enough, then stop it when a micro-batch has ended.

    Args:
        df: The stream.
        checkpoint: Its checkpoint.
        enough: Told from the rows of each micro-batch so far.
        begun: Called once when the query waits for rows: what comes from now on is new to it.
    """
    taking = _Taking(df, checkpoint, "append")
    writer = taking.writer.trigger(processingTime="100 milliseconds")
    with taking.closed():
        with _query(writer) as query:
            deadline = time.monotonic() + DEADLINE
            while not query.status["message"].startswith("Waiting") and not taking.take_ended():
                if query.awaitTermination(_POLL):  # type: ignore[arg-type]  # it takes fractions
                    fail("the stream ended by itself; one without a backlog has no end")
            begun()
            while not enough(taking.take_ended()):
                if query.awaitTermination(_POLL):  # type: ignore[arg-type]
                    fail("the stream ended by itself; one without a backlog has no end")
                if time.monotonic() > deadline:
                    rows = len(all_rows(taking.batches))
                    fail(f"the stream gave {rows} rows in {DEADLINE:g} seconds, and not what was fed to it")
            ended = query.lastProgress
            while query.status["isTriggerActive"] and query.lastProgress == ended:
                query.awaitTermination(_POLL)  # type: ignore[arg-type]
        # Not before it has stopped: another micro-batch may end while rows are taken.
        return taking.take_ended()


def continuous(writer: DataStreamWriter, checkpoint: Path) -> None:
    """Run with the continuous trigger until some epochs have ended; what works for one may fail the next."""
    commits = checkpoint / "commits"
    writer = writer.option("checkpointLocation", str(checkpoint))
    with _query(writer.trigger(continuous="100 milliseconds")) as query:
        deadline = time.monotonic() + DEADLINE
        while not commits.is_dir() or len(_ids(commits)) < _EPOCHS:
            if query.awaitTermination(_POLL) or time.monotonic() > deadline:  # type: ignore[arg-type]
                fail(f"the query ended before its {_EPOCHS} first epochs")


def write_stream(
    target: Target[Any], df: DataFrame, checkpoint: Path, mode: OutputMode = "append", name: str = NAME
) -> StreamingQuery:
    """Write a stream into a target until nothing is left, as the runtime does."""
    context = WriteContext(node="target", pipeline=NAME, output_mode=mode, query_name=name)
    writer = target.write_stream(df, context).outputMode(mode).queryName(name)
    if target.semantics.restartable:
        writer = writer.option("checkpointLocation", str(checkpoint))
    with _query(writer.trigger(availableNow=True), target.start) as query:
        _end(query)
    return query


def run_to_the_end(writer: DataStreamWriter, checkpoint: Path) -> None:
    """Run a query until everything that is there has been read.

    Args:
        writer: The query.
        checkpoint: Its checkpoint.
    """
    with _query(writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)) as query:
        _end(query)


def forget_last_commit(checkpoint: Path) -> int:
    """Take back that the last micro-batch was committed, as if the run had died just before.

    Returns:
        The id of that micro-batch, which Spark runs again with the same offsets.
    """
    commits, offsets = checkpoint / "commits", checkpoint / "offsets"
    last = max(_ids(commits), default=None)
    if last is None:
        fail("no micro-batch was committed, so there is nothing to run again")
    for begun in _ids(offsets):
        if begun > last:
            _remove(offsets, begun)
    _remove(commits, last)
    return last


def _ids(log: Path) -> list[int]:
    return [int(path.name) for path in log.iterdir() if path.name.isdigit()]


def _remove(log: Path, number: int) -> None:
    (log / str(number)).unlink()
    (log / f".{number}.crc").unlink(missing_ok=True)


class _Taking:
    """Takes the rows of a query's micro-batches one by one, each when it has ended.

    Args:
        df: The query.
        checkpoint: Its checkpoint.
        mode: Its output mode.
    """

    def __init__(self, df: DataFrame, checkpoint: Path, mode: OutputMode) -> None:
        self.batches: Batches = []
        self._checkpoint = checkpoint
        self._seen = set(_committed(checkpoint))
        self._capture = capture(df, mode, NAME, checkpoint, each=True)
        self.writer = self._capture.writer().option("checkpointLocation", str(checkpoint))
        self.closed = partial(closing, self._capture)

    def take_ended(self) -> Batches:
        """The micro-batches so far that have ended."""
        for batch in _committed(self._checkpoint):
            if batch not in self._seen:
                self._seen.add(batch)
                rows = [row.asDict(recursive=True) for row in self._capture.taken([batch])]
                self.batches.append((batch, rows))
        return self.batches


def _committed(checkpoint: Path) -> list[int]:
    commits = checkpoint / "commits"
    return sorted(_ids(commits)) if commits.is_dir() else []


@contextmanager
def _query(
    writer: DataStreamWriter, start: Callable[[DataStreamWriter], StreamingQuery] | None = None
) -> Iterator[StreamingQuery]:
    query = writer.start() if start is None else start(writer)
    try:
        yield query
    finally:
        query.stop()


def _end(query: StreamingQuery) -> None:
    if not query.awaitTermination(int(DEADLINE)):
        fail(f"the query did not end within {DEADLINE:g} seconds with the trigger `available_now`")


def rows_of(df: DataFrame) -> list[dict[str, Any]]:
    """The rows of a static relation as plain values."""
    return [row.asDict(recursive=True) for row in df.collect()]


def counted(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """How often each row is there, with all that it has, whatever the order of rows and columns.

    Args:
        rows: The rows.
    """
    return Counter(str([(name, row[name]) for name in sorted(row)]) for row in rows)


def all_rows(batches: Batches) -> list[dict[str, Any]]:
    """The rows of all micro-batches."""
    return [row for _, rows in batches for row in rows]


def difference(
    found: Iterable[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]], *, more: bool = False
) -> str:
    """What is wrong with rows, whose order doesn't matter; an empty string when nothing is.

    Args:
        found: The rows that are there. Of their columns those count that the wanted rows have.
        wanted: The rows that should be there.
        more: Whether a wanted row may be there more than once.
    """
    columns = sorted({name for row in wanted for name in row})
    rows: dict[_Key, Mapping[str, Any]] = {}
    have = Counter(_keys(found, columns, rows))
    want = Counter(_keys(wanted, columns, rows))
    missing, extra = want - have, have - want
    if more:
        extra = Counter({key: count for key, count in extra.items() if key not in want})
    parts = []
    if missing:
        parts.append(f"{missing.total()} of {want.total()} rows are missing: {_shown(missing, rows)}")
    doubled = Counter({key: count for key, count in extra.items() if key in want})
    if doubled:
        parts.append(f"{doubled.total()} rows are there again: {_shown(doubled, rows)}")
    strange = extra - doubled
    if strange:
        parts.append(f"{strange.total()} rows are there that nobody gave: {_shown(strange, rows)}")
    return "; ".join(parts)


def _keys(
    found: Iterable[Mapping[str, Any]], columns: Sequence[str], rows: dict[_Key, Mapping[str, Any]]
) -> Iterator[_Key]:
    """What rows are compared by; what they are shown as is put into `rows`."""
    for row in found:
        key = tuple(_hashable(row.get(name)) for name in columns)
        rows[key] = {name: row.get(name) for name in columns}
        yield key


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((str(key), _hashable(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat()
    return value.isoformat() if isinstance(value, date) else value


def _shown(keys: Counter[_Key], rows: Mapping[_Key, Mapping[str, Any]]) -> str:
    shown = [str(rows[key]) for key in list(keys)[:_SHOWN]]
    return ", ".join(shown) + (", …" if len(keys) > _SHOWN else "")
