"""The first rows of any node, streams included, without touching checkpoints or targets."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.errors import PipelineError
from gem_bundle.run.api import node_dataframe
from gem_bundle.run.failures import build_failure, query_failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from gem_bundle.gem import Gem, Source
    from gem_bundle.pipeline.plan import Plan

# An aggregate shows something at once in update mode; append would wait for its watermark.
_OUTPUT_MODES = ("update", "append", "complete")


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
    changes nothing outside.

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
        collected, complete = _collect(plan, name, df, rows, timeout)
    except PipelineError:
        raise
    except Exception as error:
        raise PipelineError([build_failure(plan, name, error)]) from error
    return Preview(node, True, df.schema, collected, complete)


def _bounded(plan: Plan) -> Plan:
    """The plan with sources that read a little and change nothing."""
    gems: dict[str, Gem] = dict(plan.gems)
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


def _all_have_a_backlog(plan: Plan, node: str) -> bool:
    """Whether a query that finds nothing new has seen all there is."""
    sources = (cast("Source", plan.gems[name]) for name in plan.streaming_sources(node))
    return all(source.semantics.backlog for source in sources)


def _is_idle(query: StreamingQuery) -> bool:
    """Whether a query has read all there is: a trigger ended, and the next found nothing new."""
    status = query.status
    return query.lastProgress is not None and not status["isTriggerActive"] and not status["isDataAvailable"]
