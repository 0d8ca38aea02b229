"""The target `memory`: rows as a table in the session, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle import MICRO_BATCH_TRIGGERS, NoOptions, Target, TargetSemantics, WriteContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class MemoryTarget(Target[NoOptions]):
    """Keep all rows in the driver's memory, as a table of the session, for tests and small looks.

    The table has the name of the query, which is the pipeline's and the target's with an underscore
    between them: `clicks_seen` for the target `seen` of the pipeline `clicks`. It ends with the session.
    """

    semantics = TargetSemantics(
        output_modes=frozenset({"append", "complete"}),
        delivery="none",
        condition="It is lost with the session.",
        triggers=MICRO_BATCH_TRIGGERS | {"continuous"},
        counts_rows=True,
        restartable=False,
    )

    def write(self, df: DataFrame, context: WriteContext) -> None:
        """Keep the rows as a temporary view; it replaces one of the same name."""
        name = context.query_name or f"{context.pipeline}_{context.node}"
        df.localCheckpoint().createOrReplaceTempView(name)

    def write_stream(
        self,
        df: DataFrame,
        context: WriteContext,  # noqa: ARG002 (the runtime names the query, and Spark the table)
    ) -> DataStreamWriter:
        """A writer into a table that has the query's name."""
        return df.writeStream.format("memory")
