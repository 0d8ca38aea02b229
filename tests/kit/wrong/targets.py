"""Targets that lose rows, double them, or promise what they don't keep."""

# ruff: noqa: RUF012 (`Gem` and `GemConformance` declare them class variables)

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from gem_bundle import (
    MICRO_BATCH_TRIGGERS,
    Field,
    GemError,
    OptionChange,
    Target,
    TargetSemantics,
    WriteContext,
)
from tests.kit.wrong.right import NOT_INSTALLED, Filing, FolderOptions, TargetSuite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from gem_bundle import Finding

SIZE = 256


class LosesTheLast(Filing):
    """Send rows in portions, and forget the last one when it is a single row."""

    def send(self, rows: list[dict[str, Any]], file: Path) -> None:
        portions = [rows[at : at + SIZE] for at in range(0, len(rows) - 1, SIZE)]
        super().send([row for portion in portions for row in portion], file)


class TestLosesTheLast(TargetSuite):
    gem = LosesTheLast
    caught_by = {
        "test_writes_a_batch",
        "test_appends_a_stream",
        "test_updates_a_stream",
        "test_a_batch_run_again_is_there_once",
        "test_a_micro_batch_of_a_group_comes_again",
    }


class Doubles(Filing):
    """Write a micro-batch anew whenever it comes."""

    def write_batch(self, df: DataFrame, batch_id: int, context: WriteContext) -> None:
        super()._file(df, f"{batch_id}-{uuid4().hex}", context)


class TestDoubles(TargetSuite):
    gem = Doubles
    caught_by = {"test_a_batch_run_again_is_there_once", "test_a_micro_batch_of_a_group_comes_again"}


class DropsOnRetry(Filing):
    """Take a number that it has seen for a micro-batch that it has written."""

    semantics = TargetSemantics(condition="A micro-batch may be written again.")

    def write_batch(self, df: DataFrame, batch_id: int, context: WriteContext) -> None:
        file = self.options.place() / str(batch_id)
        if file.exists() and context.output_mode != "complete":
            self.send([], file)
            return
        super().write_batch(df, batch_id, context)


class TestDropsOnRetry(TargetSuite):
    gem = DropsOnRetry
    caught_by = {"test_a_batch_run_again_loses_nothing", "test_a_micro_batch_of_a_group_comes_again"}
    waive = NOT_INSTALLED


class RemembersInMemory(Filing):
    """Write row by row, and keep in memory only which micro-batches were written."""

    done: ClassVar[set[Path]] = set()

    def write_batch(self, df: DataFrame, batch_id: int, context: WriteContext) -> None:
        if context.output_mode == "complete":
            super().write_batch(df, batch_id, context)
            return
        file = Path(self.options.place() / str(batch_id))
        if file not in self.done:
            for row in df.collect():
                self.send([row.asDict()], file.with_name(uuid4().hex))
                if Path(sys.argv[0]).stem == "killing":
                    time.sleep(0.5)  # so that the half of a micro-batch is between two rows
            self.done.add(file)


class TestRemembersInMemory(TargetSuite):
    gem = RemembersInMemory
    caught_by = {"test_a_killed_run_leaves_every_row_once"}
    waive = NOT_INSTALLED


class NotContinuous(Filing):
    """Promise a trigger that a function for micro-batches can't have."""

    semantics = TargetSemantics(
        delivery="exactly_once",
        condition="Nobody else writes into the folder.",
        triggers=MICRO_BATCH_TRIGGERS | {"continuous"},
    )


class TestNotContinuous(TargetSuite):
    gem = NotContinuous
    caught_by = {"test_runs_continuously"}


class NotCounted(Filing):
    """Promise that Spark counts rows, which it doesn't for a function."""

    semantics = TargetSemantics(
        delivery="exactly_once", condition="Nobody else writes into the folder.", counts_rows=True
    )


class TestNotCounted(TargetSuite):
    gem = NotCounted
    caught_by = {"test_spark_counts_the_rows"}


class KeepsOld(Filing):
    """Add to what is there when it should be replaced by a batch."""

    def write(self, df: DataFrame, context: WriteContext) -> None:
        self.send([row.asDict() for row in df.collect()], self.options.place() / uuid4().hex)


class TestKeepsOld(TargetSuite):
    gem = KeepsOld
    caught_by = {"test_replaces_a_batch"}


class HoldsALock(Filing):
    """Keep in the gem what can't be sent anywhere."""

    def __init__(self, options: FolderOptions) -> None:
        super().__init__(options)
        self.lock = threading.Lock()


class TestHoldsALock(TargetSuite):
    gem = HoldsALock
    caught_by = {"test_what_spark_is_handed_pickles"}


class NoCondition(Filing):
    """Promise something under a condition that it doesn't say."""

    semantics = TargetSemantics(delivery="exactly_once")


class TestNoCondition(TargetSuite):
    gem = NoCondition
    caught_by = {"test_semantics_are_declared"}


class ChokesOnNothing(Filing):
    """Take the first row of a batch, also of one that has none."""

    def send(self, rows: list[dict[str, Any]], file: Path) -> None:
        assert rows[0]
        super().send(rows, file)


class TestChokesOnNothing(TargetSuite):
    gem = ChokesOnNothing
    caught_by = {"test_writes_an_empty_batch"}


class SayingOptions(FolderOptions):
    """Where the rows go, and what is said of them."""

    greeting: str = Field("", passed=False, description="What stands before names.", change="continues")


class SaysNoRowIsWrittenOtherwise(Target[SayingOptions]):
    """Write rows by an option of which it says that it makes no difference."""

    semantics = TargetSemantics(delivery="exactly_once", condition="Nobody else writes into the folder.")
    example = {"folder": "drawer"}

    def write(self, df: DataFrame, context: WriteContext) -> None:
        self._filed().write(self._greeted(df), context)

    def write_batch(self, df: DataFrame, batch_id: int, context: WriteContext) -> None:
        self._filed().write_batch(self._greeted(df), batch_id, context)

    def connect(self) -> Iterator[Finding]:
        yield from self.options.missing()

    def _filed(self) -> Filing:
        return Filing(self.options)

    def _greeted(self, df: DataFrame) -> DataFrame:
        from pyspark.sql.functions import concat, lit

        return df.withColumn("name", concat(lit(self.options.greeting), "name"))


class TestSaysNoRowIsWrittenOtherwise(TargetSuite):
    gem = SaysNoRowIsWrittenOtherwise
    edits = [("greeting", "hello, ")]
    caught_by = {"test_says_what_another_value_does"}


class SaysItBeginsInTheMiddle(Filing):
    """Say that a checkpoint of another gem is taken over, and need the first micro-batch."""

    semantics = TargetSemantics(delivery="exactly_once", condition="Nobody else writes into the folder.")

    def takes_over(self) -> OptionChange:
        return OptionChange("from_now_on")

    def write_batch(self, df: DataFrame, batch_id: int, context: WriteContext) -> None:
        if batch_id and not any(self.options.place().iterdir()):
            raise GemError("GB508", "the micro-batches before aren't there")
        super().write_batch(df, batch_id, context)


class TestSaysItBeginsInTheMiddle(TargetSuite):
    gem = SaysItBeginsInTheMiddle
    caught_by = {"test_takes_over_as_it_says"}
