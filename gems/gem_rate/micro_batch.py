"""The source `rate_micro_batch`: so many rows a micro-batch."""

from typing import TYPE_CHECKING, Any

from gem_bundle import (
    Column,
    Facts,
    Field,
    OptionChange,
    Options,
    Source,
    SourceSemantics,
    StreamReadContext,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RateMicroBatchOptions(Options):
    """Options of the source `rate_micro_batch`, from the guide's *Input sources*."""

    default_change = "from_now_on"

    rows_per_batch: int = Field(gt=0, description="Rows generated per micro-batch.")
    num_partitions: int | None = Field(
        None,
        gt=0,
        description="Partitions of the rows; by default Spark's default parallelism.",
        change="continues",
    )
    start_timestamp: int = Field(
        0, ge=0, description="First generated time, in milliseconds since 1970-01-01 UTC."
    )
    advance_millis_per_batch: int = Field(
        1000, ge=0, description="Milliseconds that generated time advances with each micro-batch."
    )


class RateMicroBatchSource(Source[RateMicroBatchOptions]):
    """Generate the same rows (`timestamp`, `value`) in each micro-batch of every run, for tests."""

    semantics = SourceSemantics(batch=False, backlog=False)
    example = {"rows_per_batch": 1000}

    def change(self, option: str, before: Any) -> OptionChange | None:  # noqa: ARG002 (whatever it was)
        """A checkpoint has the time up to which rows are generated."""
        if option == "start_timestamp":
            return OptionChange(
                "continues", "the checkpoint has a time, and it wins: this is read by a new checkpoint only"
            )
        return None

    def read_stream(self, context: StreamReadContext) -> "DataFrame":
        """A stream whose rows depend on the micro-batch's number only."""
        return context.reader.format("rate-micro-batch").options(**self.options.to_spark()).load()

    def infer(self) -> Facts:
        """The two columns every rate stream has."""
        columns = (Column("timestamp", "timestamp"), Column("value", "bigint"))
        return Facts(columns=columns, qualifiers=frozenset())
