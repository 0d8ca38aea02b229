"""The target `console`: rows on the standard output."""

from typing import TYPE_CHECKING

from gem_bundle import (
    MICRO_BATCH_TRIGGERS,
    Field,
    OptionChange,
    Options,
    Target,
    TargetSemantics,
    WriteContext,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class ConsoleOptions(Options):
    """Options of the target `console`, from the guide's *Output sinks*."""

    default_change = "continues"

    num_rows: int = Field(20, gt=0, description="The most rows shown of a micro-batch, or of a batch.")
    truncate: bool = Field(True, description="Whether values are cut at 20 characters.")


class ConsoleTarget(Target[ConsoleOptions]):
    """Print the first rows of each micro-batch, for looking at a pipeline while it is written.

    A stream is printed by Spark's driver, which collects the rows.
    """

    semantics = TargetSemantics(
        delivery="none",
        condition="It is for looking at.",
        triggers=MICRO_BATCH_TRIGGERS | {"continuous", "real_time"},
        counts_rows=True,
        grouped="none",
    )
    example = {"num_rows": 50, "truncate": False}

    def takes_over(self) -> OptionChange:
        """What was printed doesn't matter."""
        return OptionChange("from_now_on")

    def write(self, df: "DataFrame", context: WriteContext) -> None:  # noqa: ARG002 (nothing is there)
        """Print the first rows."""
        df.show(self.options.num_rows, truncate=self.options.truncate)

    def write_batch(self, df: "DataFrame", batch_id: int, context: WriteContext) -> None:
        """Print the first rows of a micro-batch of a group."""
        print(f"{context.node}, micro-batch {batch_id}")
        self.write(df, context)

    def write_stream(
        self,
        df: "DataFrame",
        context: WriteContext,  # noqa: ARG002 (Spark prints in any output mode)
    ) -> "DataStreamWriter":
        """A writer that prints each micro-batch."""
        return df.writeStream.format("console").options(**self.options.to_spark())
