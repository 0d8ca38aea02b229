"""The target `foreach_batch`: a function that gets every micro-batch."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gem_bundle import Called, Field, OptionChange, Target, TargetSemantics, WriteContext
from gem_python.calling import FunctionOptions, load, of_another_function, user_code

if TYPE_CHECKING:
    from collections.abc import Callable

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
        change="continues",
    )

    rejects: bool = Field(
        False,
        passed=False,
        description="The function gets a further argument, `reject`: it calls `reject(rows, why)` with rows "
        "that were refused, as a DataFrame with the columns of the micro-batch, and why, as words or as a "
        "column of words. They are handed to the output `rejected`.",
        change="from_now_on",
    )


class ForeachBatchTarget(Target[ForeachBatchOptions]):
    """Call a Python function with every micro-batch, as a DataFrame and its id.

    The function is called on the driver as ``function(df, batch_id, **arguments)``. After a failure it is
    called again with the same id and the same rows. In a batch pipeline it is called once, with id 0. With
    `rejects: true` it is called as ``function(df, batch_id, reject, **arguments)``.

    In visual tools: ForEachBatch.
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

    def takes_over(self) -> OptionChange:
        """The function gets the micro-batches from now on."""
        return OptionChange("from_now_on")

    def change(self, option: str, before: Any) -> OptionChange | None:  # noqa: ARG002 (whatever it was)
        """What was written stays, whatever is called from now on."""
        return of_another_function(option)

    def rejects(self) -> bool:
        """Whether the function can tell of rows that were refused."""
        return self.options.rejects

    def called(self) -> tuple[Called, ...]:
        """The function, with a micro-batch."""
        options = self.options
        given = (*_TAKES.split(", "), *(("reject",) if options.rejects else ()))
        return (Called(options.function, given, options.arguments),)

    def write(self, df: "DataFrame", context: WriteContext) -> None:
        """Call the function once, with all rows and the batch id 0.

        Raises:
            GemError: When the function doesn't exist, can't be called so, or raises.
        """
        self.write_batch(df, 0, context)

    def write_batch(self, df: "DataFrame", batch_id: int, context: WriteContext) -> None:
        """Call the function with a micro-batch of a group, or of which it may reject rows.

        Raises:
            GemError: When the function doesn't exist, can't be called so, or raises.
        """
        function = self._function()
        given = (df, batch_id, context.reject) if self.options.rejects else (df, batch_id)
        with user_code(self.options.function):
            function(*given, **self.options.arguments)

    def _function(self) -> "Callable[..., Any]":
        if self.options.rejects:
            return load(self.options, (*_EXAMPLES, None), f"{_TAKES}, reject")
        return load(self.options, _EXAMPLES, _TAKES)

    def write_stream(self, df: "DataFrame", context: WriteContext) -> "DataStreamWriter":
        """Have Spark call the function with each micro-batch; what it raises ends the query.

        Raises:
            GemError: When the function doesn't exist or can't be called so.
        """
        if self.options.rejects:
            return super().write_stream(df, context)
        function = self._function()
        return df.writeStream.foreachBatch(partial(function, **self.options.arguments))
