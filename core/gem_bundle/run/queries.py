"""What a run starts: the query of a target, or the one of a group, described and configured."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.changes.checkpoint import UnseenError, read_checkpoint
from gem_bundle.contexts import WriteContext
from gem_bundle.pipeline.groups import copies
from gem_bundle.run.frames import Frames, unmarked
from gem_bundle.run.groups import GroupQuery
from gem_bundle.run.held import observed_by_stream
from gem_bundle.run.progress import ROWS_OUT
from gem_bundle.run.setting import setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_bundle.gem import Target
    from gem_bundle.pipeline.groups import Group
    from gem_bundle.pipeline.model import Node, Trigger
    from gem_bundle.pipeline.plan import Plan

_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass
class DescribedQuery:
    """What one query writes.

    Args:
        targets: The targets, several where they are a group.
        writer: Its configured writer.
        group: What writes its micro-batches, where they are a group.
        copies: As `ProgressReader` has it.
    """

    targets: tuple[Node, ...]
    writer: DataStreamWriter
    group: GroupQuery | None = None
    copies: int = 1

    def start(self, plan: Plan, spark: SparkSession) -> StreamingQuery:
        """Start it.

        Args:
            plan: The pipeline.
            spark: The session of its DataFrames.
        """
        with _partitions_of_state(plan, self.targets[0], spark):
            if self.group is not None:
                return self.group.start(self.writer)
            return cast("Target", plan.gems[self.targets[0].id]).start(self.writer)


def frames_of(plan: Plan, spark: SparkSession, targets: Iterable[Node]) -> Frames:
    """The DataFrames of a run, with what transforms reject counted where all triggers let it be."""
    counting = all(counts(node) for node in targets)
    return Frames(plan, spark, observe=observed_by_stream if counting else None)


def query_of(plan: Plan, node: Node, frames: Frames) -> DescribedQuery:
    """The query of a target that has one of its own."""
    target = cast("Target", plan.gems[node.id])
    edge = node.inputs[0]
    query_name = f"{plan.definition.name}_{node.id}"
    context = WriteContext(node.id, plan.definition.name, node.output_mode, query_name)
    df = counted(unmarked(frames.of(edge.node, edge.output)), target, node)
    writer = _configured(plan, node, target.write_stream(df, context), query_name)
    return DescribedQuery((node,), writer)


def query_of_group(plan: Plan, group: Group, frames: Frames) -> DescribedQuery:
    """The query of a group."""
    written = GroupQuery(plan, group)
    name = f"{plan.definition.name}_{group.name}"
    writer = _configured(plan, group.targets[0], written.writer(frames), name)
    return DescribedQuery(group.targets, writer, written, copies(plan, group.fork))


def _configured(plan: Plan, node: Node, writer: DataStreamWriter, query_name: str) -> DataStreamWriter:
    writer = writer.outputMode(node.output_mode).queryName(query_name)
    if node.group or cast("Target", plan.gems[node.id]).semantics.restartable:
        writer = writer.option("checkpointLocation", plan.definition.checkpoint(node.id))
    settings = trigger_arguments(node.trigger)
    return writer.trigger(**settings) if settings else writer


def counted(df: DataFrame, target: Target, node: Node) -> DataFrame:
    """The rows, counted on their way where Spark doesn't say how many the sink got.

    Continuous and real-time queries take no such counter.
    """
    if target.semantics.counts_rows or not counts(node):
        return df
    from pyspark.sql.functions import count, lit

    return df.observe(ROWS_OUT, count(lit(1)).alias("rows"))


def counts(node: Node) -> bool:
    """Whether a query with the trigger of a target takes counters of rows."""
    return node.trigger.kind not in {"continuous", "real_time"}


@contextmanager
def _partitions_of_state(plan: Plan, target: Node, spark: SparkSession) -> Iterator[None]:
    """Start a query with as many partitions as its state has.

    A checkpoint keeps their number, as the guide says. Spark 4.2 writes it into version 2 of the offset log
    from the first restart on only: a session with another number looks for state that nobody has written.
    """
    count = None
    if plan.restartable([target]):
        # What can't be read from here, Spark reads by itself.
        with suppress(UnseenError):
            found = read_checkpoint(plan.definition.checkpoint(target.id))
            if found is not None and found.named and _PARTITIONS not in found.settings:
                count = found.partitions
    with nullcontext() if count is None else setting(spark, _PARTITIONS, str(count)):
        yield


def trigger_arguments(trigger: Trigger) -> dict[str, Any]:
    """A trigger as ``DataStreamWriter.trigger`` takes it; empty for the default one."""
    names = {
        "processing_time": "processingTime",
        "available_now": "availableNow",
        "once": "once",
        "continuous": "continuous",
        "real_time": "realTime",
    }
    if trigger.kind == "default":
        return {}
    return {names[trigger.kind]: trigger.interval if trigger.interval is not None else True}
