"""The target `foreach_batch`: a function that gets every micro-batch."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gem_bundle import Field, Target, TargetSemantics, WriteContext
from gem_python.calling import FunctionOptions, load, user_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_TAKES = "df, batch_id"
_EXAMPLES = (None, 0)


class ForeachBatchOptions(FunctionOptions):
    """Options of the target `foreach_batch`, from *Using Foreach and ForeachBatch* of the guide."""

    idempotent: bool = Field(
        False,
        passed=False,
        description="Say that the function leaves every row once even when it gets a micro-batch twice, "
        "for example because it merges, or keeps the batch id beside the data. The target then counts as "
        "exactly-once; nothing else changes.",
    )


class ForeachBatchTarget(Target[ForeachBatchOptions]):
    """Call a Python function with every micro-batch, as a DataFrame and its id.

    The function is called on the driver as ``function(df, batch_id, **arguments)``. After a failure it is
    called again with the same id and the same rows. In a batch pipeline it is called once, with id 0.
    """

    semantics = TargetSemantics(
        delivery="at_least_once",
        condition="a micro-batch that is run again after a failure is given to the function again",
        grouped="at_least_once",
    )
    example = {"function": "jobs:save"}

    def __init__(self, options: ForeachBatchOptions) -> None:
        super().__init__(options)
        if options.idempotent:
            condition = "the function leaves every row once when it gets a micro-batch again"
            self.semantics = replace(
                self.semantics, delivery="exactly_once", condition=condition, grouped="exactly_once"
            )

    def write(self, df: "DataFrame", context: WriteContext) -> None:  # noqa: ARG002 (the function decides)
        """Call the function once, with all rows and the batch id 0.

        Raises:
            GemError: When the function doesn't exist, can't be called so, or raises.
        """
        self._call(df, 0)

    def write_batch(self, df: "DataFrame", batch_id: int, context: WriteContext) -> None:  # noqa: ARG002
        """Call the function with a micro-batch of a group.

        Raises:
            GemError: When the function doesn't exist, can't be called so, or raises.
        """
        self._call(df, batch_id)

    def _call(self, df: "DataFrame", batch_id: int) -> None:
        function = load(self.options, _EXAMPLES, _TAKES)
        with user_code(self.options.function):
            function(df, batch_id, **self.options.arguments)

    def write_stream(self, df: "DataFrame", context: WriteContext) -> "DataStreamWriter":  # noqa: ARG002
        """Have Spark call the function with each micro-batch; what it raises ends the query.

        Raises:
            GemError: When the function doesn't exist or can't be called so.
        """
        function = load(self.options, _EXAMPLES, _TAKES)
        return df.writeStream.foreachBatch(partial(function, **self.options.arguments))
