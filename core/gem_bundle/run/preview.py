"""The first rows of any node, streams included, without touching checkpoints or targets."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.contexts import is_over_connect
from gem_bundle.errors import PipelineError
from gem_bundle.run.api import node_dataframe
from gem_bundle.run.failures import build_failure, query_failure
from gem_bundle.run.frames import harmless
from gem_bundle.run.temporary import temporary_checkpoints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from gem_bundle.gem import Gem, Source
    from gem_bundle.pipeline.plan import Plan

# An aggregate shows something at once in update mode; append would wait for its watermark.
_OUTPUT_MODES = ("update", "append", "complete")
# With a limit the table stays small, which Spark takes after an aggregation in complete mode and elsewhere in
# append mode. What it takes in neither fills the table until there are enough rows.
_TABLE_MODES = (("append", True), ("complete", True), ("update", False), ("append", False))
_TABLE_MODES_OF_AGGREGATES = (("complete", True), ("append", True), *_TABLE_MODES[2:])


@dataclass(frozen=True)
class Preview:
    """What a node looks like.

    Args:
        node: The node.
        streaming: Whether it is a stream.
        schema: Its schema.
        rows: Its first rows, in the order they came.
        complete: Whether these are all there were.
    """

    node: str
    streaming: bool
    schema: StructType
    rows: list[Row]
    complete: bool


def preview(plan: Plan, node: str, spark: SparkSession, rows: int = 20, timeout: float = 30.0) -> Preview:
    """Read the first rows of a node.

    A stream is read by a query of its own with a throw-away checkpoint, that ends as soon as there are
    enough rows, or nothing more comes, or the time is up. Sources are asked for a bounded look that
    changes nothing outside. Over Spark Connect nothing of it stays on the server.

    Args:
        plan: The checked pipeline.
        node: The node's id, or ``id.output``; for a target, what flows into it.
        spark: The session.
        rows: How many rows.
        timeout: How long a stream may take to deliver them, in seconds.

    Raises:
        PipelineError: When there is no such node, or it can't be read.
    """
    df = node_dataframe(_bounded(plan), node, spark)
    name = node.partition(".")[0]
    try:
        if not df.isStreaming:
            found = df.take(rows + 1)
            return Preview(node, False, df.schema, found[:rows], len(found) <= rows)
        collect = _collect_over_connect if is_over_connect(spark) else _collect
        collected, complete = collect(plan, name, df, rows, timeout)
    except PipelineError:
        raise
    except Exception as error:
        raise PipelineError([build_failure(plan, name, error)]) from error
    return Preview(node, True, df.schema, collected, complete)


def _bounded(plan: Plan) -> Plan:
    """The plan with sources that read a little, and with nothing that changes anything."""
    gems: dict[str, Gem] = dict(harmless(plan).gems)
    for node in plan.definition.of_kind("source"):
        gems[node.id] = cast("Source", gems[node.id]).for_preview()
    return replace(plan, gems=gems)


def _collect(plan: Plan, node: str, df: DataFrame, rows: int, timeout: float) -> tuple[list[Row], bool]:
    refusals: list[Exception] = []
    for output_mode in _OUTPUT_MODES:
        collector = _Collector(rows, replaces=output_mode == "complete")
        checkpoint = tempfile.mkdtemp(prefix="gem-bundle-preview-")
        try:
            query = collector.start(df, output_mode, checkpoint)
        except Exception as error:  # noqa: BLE001 (Spark refuses this output mode; the next may do)
            shutil.rmtree(checkpoint, ignore_errors=True)
            refusals.append(error)
            continue
        try:
            ended = collector.wait(query, timeout, until_idle=_all_have_a_backlog(plan, node))
            failure = query.exception()
            if failure is not None and not collector.enough.is_set():
                raise PipelineError([query_failure(plan, node, failure)])
            return collector.rows[:rows], ended and len(collector.rows) <= rows
        finally:
            query.stop()
            shutil.rmtree(checkpoint, ignore_errors=True)
    # In append mode Spark's reason is about the query; in the others it is about the mode.
    raise refusals[_OUTPUT_MODES.index("append")]


class _Collector:
    """Takes the first rows of a stream from its micro-batches."""

    def __init__(self, wanted: int, *, replaces: bool) -> None:
        self._wanted = wanted
        self._replaces = replaces
        self.rows: list[Row] = []
        self.enough = threading.Event()

    def start(self, df: DataFrame, output_mode: str, checkpoint: str) -> StreamingQuery:
        def take(batch: DataFrame, batch_id: int) -> None:  # noqa: ARG001
            if self.enough.is_set():
                return
            found: list[Any] = batch.take(self._wanted + 1 - (0 if self._replaces else len(self.rows)))
            self.rows = found if self._replaces else self.rows + found
            if len(self.rows) > self._wanted:
                self.enough.set()

        writer = df.writeStream.foreachBatch(take).outputMode(output_mode)
        writer = writer.option("checkpointLocation", checkpoint)
        return writer.start()

    def wait(self, query: StreamingQuery, timeout: float, *, until_idle: bool) -> bool:
        """Wait for the rows; returns whether the stream has nothing more to give."""
        deadline = time.monotonic() + timeout
        while query.isActive and time.monotonic() < deadline:
            if self.enough.wait(0.1):
                return False
            if until_idle and _is_idle(query):
                return True
        return not query.isActive


def _collect_over_connect(
    plan: Plan, node: str, df: DataFrame, rows: int, timeout: float
) -> tuple[list[Row], bool]:
    """The first rows by way of a table in the server's memory.

    A function for `foreachBatch` would run on the server, where it has no way to hand rows back.
    """
    refusals: list[Exception] = []
    looked_at = plan.node(node)
    facts = plan.facts[looked_at.inputs[0].key if looked_at.kind == "target" else node]
    aggregated = any(operator.kind == "aggregate" for operator in facts.all_operators())
    # Of a query that it refuses Spark leaves an empty folder until the server ends: the likely mode is first.
    for output_mode, limited in _TABLE_MODES_OF_AGGREGATES if aggregated else _TABLE_MODES:
        table = _MemoryTable(df, rows, output_mode, limited=limited)
        try:
            with table.filled() as query:
                ended = table.wait(query, timeout, until_idle=_all_have_a_backlog(plan, node))
                failure = query.exception()
                found = table.rows()
        except _Refused as refused:
            refusals.append(refused.error)
            continue
        if failure is not None and len(found) <= rows:
            raise PipelineError([query_failure(plan, node, failure)])
        return found[:rows], ended and len(found) <= rows
    # The last one is append mode as it is: Spark's reason is about the query.
    raise refusals[-1]


class _Refused(Exception):  # noqa: N818 (it carries Spark's refusal of an output mode)
    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class _MemoryTable:
    """The first rows of a stream in the memory of a Spark Connect server."""

    def __init__(self, df: DataFrame, wanted: int, output_mode: str, *, limited: bool) -> None:
        self._spark = df.sparkSession
        self._columns = df.columns
        self._wanted = wanted
        self._output_mode = output_mode
        self._name = f"gem_bundle_preview_{uuid.uuid4().hex}"
        # The table is a view, in which no two columns may have one name.
        numbered = df.toDF(*(f"c{i}" for i in range(len(df.columns))))
        self._df = numbered.limit(wanted + 1) if limited else numbered

    @contextmanager
    def filled(self) -> Iterator[StreamingQuery]:
        """Let a query fill the table; afterwards neither is left, nor is the query's checkpoint.

        Raises:
            _Refused: When Spark doesn't take the query in this output mode.
        """
        with temporary_checkpoints(self._spark):  # the server's, not ours to remove
            writer = self._df.writeStream.format("memory").queryName(self._name)
            try:
                query = writer.outputMode(self._output_mode).start()
            except Exception as error:
                raise _Refused(error) from error
            try:
                yield query
            finally:
                query.stop()
                self._spark.catalog.dropTempView(self._name)

    def rows(self) -> list[Row]:
        """What the table has, one row more than is wanted at most."""
        return self._spark.table(self._name).toDF(*self._columns).take(self._wanted + 1)

    def wait(self, query: StreamingQuery, timeout: float, *, until_idle: bool) -> bool:
        """Wait for the rows; returns whether the stream has nothing more to give."""
        deadline = time.monotonic() + timeout
        seen = None
        while query.isActive and time.monotonic() < deadline:
            if until_idle and _is_idle(query):
                return True
            latest = query.lastProgress
            if latest is not None and latest.batchId != seen:
                seen = latest.batchId
                if len(self.rows()) > self._wanted:
                    return False
            # Why a query failed is read from the query right after.
            with suppress(Exception):
                query.awaitTermination(0.1)  # type: ignore[arg-type]
        return not query.isActive


def _all_have_a_backlog(plan: Plan, node: str) -> bool:
    """Whether a query that finds nothing new has seen all there is."""
    sources = (cast("Source", plan.gems[name]) for name in plan.streaming_sources(node))
    return all(source.semantics.backlog for source in sources)


def _is_idle(query: StreamingQuery) -> bool:
    """Whether a query has read all there is: a trigger ended, and the next found nothing new."""
    status = query.status
    return query.lastProgress is not None and not status["isTriggerActive"] and not status["isDataAvailable"]
