"""The target `noop`: nowhere, after all work is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle import MICRO_BATCH_TRIGGERS, NoOptions, OptionChange, Target, TargetSemantics, WriteContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class NoopTarget(Target[NoOptions]):
    """Compute every row and drop it, for measuring what a pipeline costs without its sink."""

    semantics = TargetSemantics(
        delivery="none",
        condition="It keeps nothing.",
        triggers=MICRO_BATCH_TRIGGERS | {"continuous"},
        counts_rows=True,
        grouped="none",
    )

    def takes_over(self) -> OptionChange:
        """It keeps nothing."""
        return OptionChange("from_now_on")

    def write(self, df: DataFrame, context: WriteContext) -> None:  # noqa: ARG002 (nothing is there)
        """Compute the rows."""
        df.write.format("noop").mode("overwrite").save()

    def write_batch(self, df: DataFrame, batch_id: int, context: WriteContext) -> None:  # noqa: ARG002
        """Compute the rows of a micro-batch of a group."""
        self.write(df, context)

    def write_stream(
        self,
        df: DataFrame,
        context: WriteContext,  # noqa: ARG002 (any output mode ends nowhere)
    ) -> DataStreamWriter:
        """A writer that drops each micro-batch."""
        return df.writeStream.format("noop")
