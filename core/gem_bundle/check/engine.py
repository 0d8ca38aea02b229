"""``check --engine``: what Spark's own analyser says of the queries, without starting one.

This is the one place that goes behind PySpark's public API: Spark's verdict on an unstarted streaming query,
``UnsupportedOperationChecker``, has no public door. It needs a classic session; over Spark Connect
only the analyser's errors are seen.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.run.environment import open_plan_session
from gem_bundle.run.failures import build_failure
from gem_bundle.run.frames import Frames, NodeFailure, read_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.gem import Source
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan


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
            session = open_plan_session(plan, report=report, brief=True)
            spark = session.spark
            stack.callback(session.close)
        empty = stack.enter_context(tempfile.TemporaryDirectory(prefix="gem-bundle-"))
        frames = Frames(plan, spark, _reader(plan, spark, empty))
        found: list[Diagnostic] = []
        for node in plan.definition.of_kind("target"):
            edge = node.inputs[0]
            try:
                df = frames.of(edge.node, edge.output)
                if df.isStreaming:
                    _ask(df, node.output_mode)
            except NodeFailure as failure:
                found.append(build_failure(plan, failure.node, failure.error))
            except Exception as error:  # noqa: BLE001 (py4j raises Spark's verdict under types of its own)
                found.append(build_failure(plan, node.id, error))
        return list(dict.fromkeys(found))


def _reader(plan: Plan, spark: SparkSession, folder: str) -> Callable[[Node, str], DataFrame]:
    """Empty relations where the columns are declared, the gem's own reading elsewhere."""

    def read(node: Node, reader_name: str) -> DataFrame:
        columns = plan.facts[node.id].columns
        if columns is None or any(column.type is None for column in columns):
            return read_source(cast("Source", plan.gems[node.id]), node, reader_name, spark)
        schema = ", ".join(f"`{column.name}` {column.type}" for column in columns)
        if node.mode == "batch":
            return spark.createDataFrame([], schema)
        reader = spark.readStream
        if hasattr(reader, "name"):
            reader = reader.name(reader_name)
        return reader.format("parquet").schema(schema).load(folder)

    return read


def _ask(df: DataFrame, output_mode: str) -> None:
    """Let Spark's checker look at an unstarted streaming query; it raises what it refuses."""
    spark: Any = df.sparkSession
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    mode = {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[output_mode]()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(cast("Any", df)._jdf.queryExecution().analyzed(), mode)
