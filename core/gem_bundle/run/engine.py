"""``check --engine``: what Spark's own analyser says of the queries, over empty relations.

This is the one place that goes behind PySpark's public API: Spark's verdict on an unstarted streaming query,
``UnsupportedOperationChecker``, has no public door. Over Spark Connect, where there is only that, a query is
started, with nothing to read and into nowhere, and stopped.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.contexts import analysed, is_over_connect
from gem_bundle.pipeline.groups import Output, comparing_nodes, groups_of
from gem_bundle.run.environment import open_plan_session
from gem_bundle.run.failures import build_failure
from gem_bundle.run.frames import Built, Frames, NodeFailure, harmless, read_source
from gem_bundle.run.temporary import temporary_checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.gem import Source
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.frames import Read
    from gem_bundle.semantics import OutputMode

_REMEMBERED = 2000


def check_engine(
    plan: Plan,
    spark: SparkSession | None = None,
    *,
    report: Callable[[str], None] | None = None,
) -> list[Diagnostic]:
    """Build the plan's queries and ask Spark whether they can run.

    Sources whose columns and types are declared stand in as empty relations, so that neither data nor
    brokers are needed; the others are read as they are.

    Args:
        plan: The checked pipeline.
        spark: The session to use; by default one is opened.
        report: Told what takes long.

    Raises:
        GemError: When no session can be opened (GB501, GB502, GB509).
    """
    with ExitStack() as stack:
        if spark is None:
            session = open_plan_session(plan, report=report, brief=True, records=False)
            spark = session.spark
            stack.callback(session.close)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gem-bundle-"))
        engine = Engine(spark, folder)
        answers = list(engine.ask(plan))
    refused = ((answer.node, answer.error) for answer in answers)
    found = [build_failure(plan, node, error) for node, error in refused if error is not None]
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Answer:
    """What Spark says of the query of one target.

    Args:
        target: The id of the target.
        node: The id of the node that it refuses: the target for the verdict on the whole query.
        streaming: Whether it is a query over a stream; None when it can't be built.
        error: Why it refuses it; None when it doesn't.
    """

    target: str
    node: str
    streaming: bool | None
    error: Exception | None = None


def query_ends(plan: Plan) -> dict[str, Output]:
    """Where the stream ends that Spark is asked about, for each target by its id.

    That is before the target, and at the fork of its group where a node behind that has to have
    micro-batches as tables.

    Args:
        plan: The checked pipeline.
    """
    comparing = set(comparing_nodes(plan))
    forks = {
        node.id: group.fork
        for group in groups_of(plan)
        for node in group.targets
        if group.fork is not None and comparing & set(plan.upstream([node.id]))
    }
    return {
        node.id: forks.get(node.id) or Output(node.inputs[0].node, node.inputs[0].output)
        for node in plan.definition.of_kind("target")
    }


class Engine:
    """Asks one session about the queries of any number of plans, over empty relations.

    Args:
        spark: The session.
        folder: An empty folder.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark = spark
        self._folder = folder
        self._sources: dict[tuple[str, str, str], DataFrame] = {}
        self._verdict: _Unstarted | _Started = (
            _Started(spark) if is_over_connect(spark) else _Unstarted(spark)
        )

    def ask(self, plan: Plan) -> Iterator[Answer]:
        """What Spark says of each target's query, in the order of the file."""
        frames = Frames(harmless(plan), self._spark, self.reader(plan))
        asked = query_ends(plan)
        for node in plan.definition.of_kind("target"):
            output = asked[node.id]
            try:
                df = frames.of(*output)
            except NodeFailure as failure:
                yield Answer(node.id, failure.node, None, failure.error)
                continue
            streaming = df.isStreaming
            yield Answer(node.id, node.id, streaming, self._verdict.on(df, node.output_mode, streaming))

    def reader(self, plan: Plan) -> Read:
        """Empty relations where the columns are declared, the gem's own reading elsewhere."""

        def read(node: Node, reader_name: str) -> Built:
            columns = plan.facts[node.id].columns
            if columns is None or any(column.type is None for column in columns):
                return read_source(cast("Source", plan.gems[node.id]), node, reader_name, self._spark)
            schema = ", ".join(f"`{column.name}` {column.type}" for column in columns)
            return self._empty(schema, node.mode, reader_name)

        return read

    def _empty(self, schema: str, mode: str, name: str) -> DataFrame:
        key = (schema, mode, name)
        if key not in self._sources:
            if len(self._sources) == _REMEMBERED:
                self._sources.clear()
            self._sources[key] = self._make(schema, mode, name)
        return self._sources[key]

    def _make(self, schema: str, mode: str, name: str) -> DataFrame:
        if mode == "batch":
            return self._static(schema)
        reader = self._spark.readStream
        if hasattr(reader, "name"):
            reader = reader.name(name)
        # Of a pattern Spark doesn't ask whether it is there: a server may see none of our files.
        return reader.format("parquet").schema(schema).load(f"{self._folder}/*")

    def _static(self, schema: str) -> DataFrame:
        """Files, since expressions may ask for `_metadata`; rows for types that no file of these can hold."""
        from pyspark.errors import AnalysisException

        try:
            return analysed(self._spark.read.schema(schema).parquet(self._folder))
        except AnalysisException:
            return self._spark.createDataFrame([], schema)


class _Unstarted:
    """Spark's check of what streaming queries (and others) can't do."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = cast("Any", spark)._jvm
        modes = jvm.org.apache.spark.sql.streaming.OutputMode
        self._modes = {"append": modes.Append(), "update": modes.Update(), "complete": modes.Complete()}
        self._checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker

    def on(self, df: DataFrame, output_mode: OutputMode, streaming: bool) -> Exception | None:
        """Why Spark refuses an unstarted query; None when it doesn't."""
        plan = cast("Any", df)._jdf.queryExecution().analyzed()
        try:
            if streaming:
                self._checker.checkForStreaming(plan, self._modes[output_mode])
            else:
                self._checker.checkForBatch(plan)
        except Exception as error:  # noqa: BLE001 (py4j raises Spark's verdict under types of its own)
            return error
        return None


class _Started:
    """The same check as Spark makes it when a query is started."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def on(self, df: DataFrame, output_mode: OutputMode, streaming: bool) -> Exception | None:
        """Why Spark refuses to start a query; None when it doesn't, as with all that are static."""
        if not streaming:
            return None
        with temporary_checkpoints(self._spark):
            try:
                query = df.writeStream.format("noop").outputMode(output_mode).start()
            except Exception as error:  # noqa: BLE001 (the client has its types for Spark's)
                return error
            query.stop()
        return None
