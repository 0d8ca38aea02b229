"""The target `foreach`: a function that gets every row, or a class that writes rows."""

import inspect
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gem_bundle import (
    MICRO_BATCH_TRIGGERS,
    Called,
    Field,
    GemError,
    OptionChange,
    Target,
    TargetSemantics,
    WriteContext,
    import_function,
)
from gem_python.calling import (
    FunctionOptions,
    check_call,
    check_pickles,
    of_another_function,
    user_code,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    Tokens = Iterator[tuple[Row, Any]]

_OPEN_IN_OPEN = (
    "Open connections, files and locks in `open`, where the rows are written, and keep none in `__init__` or "
    "in the module."
)
_METHODS = {"open": "partition_id, epoch_id", "process": "row", "close": "error"}


class ForeachOptions(FunctionOptions):
    """Options of the target `foreach`, from *Using Foreach and ForeachBatch* of the guide."""

    rejects: bool = Field(
        False,
        passed=False,
        description="What the function returns for a row, or `process` of the class, is why the row was "
        "refused: words, or a pair of a name and words. Such rows are handed to the output `rejected`; of "
        "others None is returned.",
        change="from_now_on",
    )


class ForeachTarget(Target[ForeachOptions]):
    """Call a Python function with every row, or write rows with a class.

    A function is called as ``function(row, **arguments)``. A class is made once, with the arguments, and a
    copy of it goes to every partition of every micro-batch: ``open(partition_id, epoch_id)`` may return
    False to skip the partition, ``process(row)`` gets each row, ``close(error)`` is always called; open
    and close may be left out. Both run on executors, so they must be picklable and connections are to be
    opened in ``open``. In a batch pipeline the epoch id is 0.
    """

    semantics = TargetSemantics(
        delivery="at_least_once",
        condition="a micro-batch that is run again after a failure is given to the function again",
        # Not `continuous`: Spark starts the thread that feeds Python anew in every epoch, which Java refuses.
        triggers=MICRO_BATCH_TRIGGERS | {"real_time"},
        counts_rows=True,
        grouped="at_least_once",
    )
    example = {"function": "jobs:Writer", "arguments": {"url": "http://localhost:8080"}}

    def __init__(self, options: ForeachOptions) -> None:
        super().__init__(options)
        if options.rejects:
            # Each micro-batch is asked for what was refused of it, which Spark's sink can't be.
            self.semantics = replace(self.semantics, triggers=MICRO_BATCH_TRIGGERS, counts_rows=False)

    def takes_over(self) -> OptionChange:
        """The function, or class, gets the rows from now on."""
        return OptionChange("from_now_on")

    def change(self, option: str, before: Any) -> OptionChange | None:  # noqa: ARG002 (whatever it was)
        """What was written stays, whatever is called from now on."""
        return of_another_function(option)

    def rejects(self) -> bool:
        """Whether what is returned for a row counts."""
        return self.options.rejects

    def called(self) -> tuple[Called, ...]:
        """The function with a row, or the class."""
        options = self.options
        return (Called(options.function, ("row",), options.arguments, class_given=()),)

    def write(self, df: "DataFrame", context: WriteContext) -> None:
        """Give every row to the function or class, partition by partition.

        Raises:
            GemError: When it doesn't exist, can't be used so, or can't be pickled.
        """
        self.write_batch(df, 0, context)

    def write_batch(self, df: "DataFrame", batch_id: int, context: WriteContext) -> None:
        """Give every row of a micro-batch of a group to the function or class.

        Raises:
            GemError: When it doesn't exist, can't be used so, or can't be pickled.
        """
        if self.options.rejects:
            context.send(df, _refusing_writer(self._receiver(), batch_id))
        else:
            df.foreachPartition(_partition_writer(self._receiver(), batch_id))

    def write_stream(self, df: "DataFrame", context: WriteContext) -> "DataStreamWriter":
        """Have Spark give every row to the function or class; what it raises ends the query.

        Raises:
            GemError: When it doesn't exist, can't be used so, or can't be pickled.
        """
        if self.options.rejects:
            return super().write_stream(df, context)
        return df.writeStream.foreach(self._receiver())

    def _receiver(self) -> Any:
        """What gets the rows: the function with its arguments, or an instance of the class."""
        options = self.options
        found = import_function(options.function)
        if not inspect.isclass(found):
            check_call(found, options.function, options.arguments, (None,), "row")
            receiver: Any = partial(found, **options.arguments)
        else:
            check_call(found, options.function, options.arguments, (), "")
            with user_code(options.function):
                receiver = found(**options.arguments)
            self._check_methods(receiver)
        check_pickles(receiver, options.function, "function", _OPEN_IN_OPEN)
        return receiver

    def _check_methods(self, receiver: object) -> None:
        reference = self.options.function
        for name, parameters in _METHODS.items():
            method = getattr(receiver, name, None)
            if method is None and name == "process":
                raise GemError(
                    "GB506",
                    f"the class `{reference}` has no method `process(row)`",
                    "Give it one, or name a function of a row.",
                    "function",
                )
            if method is None:
                continue
            try:
                inspect.signature(method).bind(*parameters.split(", "))
            except (TypeError, ValueError) as error:
                raise GemError(
                    "GB507",
                    f"`{reference}.{name}` can't be called as `{name}({parameters})`: {error}",
                    "Change its parameters.",
                    "function",
                ) from error


def _partition_writer(receiver: Any, epoch: int) -> "Callable[[Iterator[Row]], None]":
    """What writes one partition of a static relation as Spark's foreach sink writes one of a stream.

    It is pickled with its code, so executors needn't have this module.
    """
    deliver = _delivering(receiver, epoch)

    def write(rows: "Iterator[Row]") -> None:
        for _ in deliver((row, None) for row in rows):
            pass

    return write


def _refusing_writer(receiver: Any, epoch: int) -> "Callable[[Tokens], Iterator[tuple[Any, str, str]]]":
    """The same, with what the receiver returns for a row as the reason why it was refused."""
    deliver = _delivering(receiver, epoch)

    def refused(rows: "Tokens") -> "Iterator[tuple[Any, str, str]]":
        for token, why in deliver(rows):
            if why is not None:
                name, words = ("refused", why) if isinstance(why, str) else why
                yield token, name, words

    return refused


def _delivering(receiver: Any, epoch: int) -> "Callable[[Tokens], Iterator[tuple[Any, Any]]]":
    """What gives the rows of a partition to the receiver, and tells what it returns for each."""

    def deliver(rows: "Tokens") -> "Iterator[tuple[Any, Any]]":
        from pyspark import TaskContext

        if callable(receiver):
            for row, token in rows:
                yield token, receiver(row)
            return
        task = TaskContext.get()
        partition = task.partitionId() if task else 0
        opened = receiver.open(partition, epoch) if hasattr(receiver, "open") else True
        problem = None
        try:
            if opened:
                for row, token in rows:
                    yield token, receiver.process(row)
        except Exception as error:
            problem = error
            raise
        finally:
            if hasattr(receiver, "close"):
                receiver.close(problem)

    return deliver
