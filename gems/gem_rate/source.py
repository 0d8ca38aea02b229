"""The source `rate`: so many rows a second."""

from typing import TYPE_CHECKING

from gem_bundle import (
    MICRO_BATCH_TRIGGERS,
    Column,
    Facts,
    Field,
    Options,
    Source,
    SourceSemantics,
    StreamReadContext,
)
from gem_bundle.types import FixedDuration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RateOptions(Options):
    """Options of the source `rate`, from the guide's *Input sources*."""

    default_change = "from_now_on"

    rows_per_second: int = Field(1, gt=0, description="Rows generated per second.")
    ramp_up_time: FixedDuration = Field(
        "0 seconds",
        spark="rampUpTime",
        description="How long to ramp up until the speed is reached; cut to whole seconds.",
    )
    num_partitions: int | None = Field(
        None,
        gt=0,
        description="Partitions of the rows; by default Spark's default parallelism.",
        change="continues",
    )


class RateSource(Source[RateOptions]):
    """Generate rows (`timestamp`, `value`) at a steady rate, for tests and demonstrations."""

    semantics = SourceSemantics(
        batch=False,
        triggers=MICRO_BATCH_TRIGGERS | {"continuous"},
        backlog=False,
        only_new=True,
        not_continuous=("ramp_up_time",),
    )
    example = {"rows_per_second": 10}

    def read_stream(self, context: StreamReadContext) -> "DataFrame":
        """A stream that never ends."""
        return context.reader.format("rate").options(**self.options.to_spark()).load()

    def infer(self) -> Facts:
        """The two columns every rate stream has."""
        columns = (Column("timestamp", "timestamp"), Column("value", "bigint"))
        return Facts(columns=columns, qualifiers=frozenset())
