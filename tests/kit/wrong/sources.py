"""Sources that don't do what they promise."""

# ruff: noqa: RUF012 (`Gem` and `GemConformance` declare them class variables)

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle import (
    Column,
    Facts,
    Field,
    Finding,
    Rejects,
    Source,
    SourceSemantics,
    StreamReadContext,
    reason,
)
from tests.kit.wrong.right import Drawer, FolderOptions, SourceSuite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


class NotReplayable(Drawer):
    """Read rows that are others when they are read again."""

    def read_stream(self, context: StreamReadContext) -> DataFrame:
        from pyspark.sql.functions import expr

        return super().read_stream(context).withColumn("name", expr("uuid()"))


class TestNotReplayable(SourceSuite):
    gem = NotReplayable
    caught_by = {"test_replays_the_same_rows"}

    def feed(self, number: int) -> list[dict[str, object]]:
        # What the rows are called is made up while they are read, so their numbers are all one knows.
        return [{"id": row["id"]} for row in super().feed(number)]


class GivesRejectedRows(Drawer):
    """Reject rows, and give them all the same."""

    def rejects(self) -> bool:
        return True

    def rejected(self, rows: DataFrame) -> SparkColumn:
        return rows.id > 11

    def reject(self, rows: DataFrame) -> Rejects:
        from pyspark.sql.functions import array, when

        return Rejects(rows, when(self.rejected(rows), array(reason("large", "it is large"))))


class TestGivesRejectedRows(SourceSuite):
    gem = GivesRejectedRows
    caught_by = {"test_gives_or_rejects_each_row"}


class OnePathOnly(Drawer):
    """Read with a name of its own, and not with the one that the path has."""

    def read_stream(self, context: StreamReadContext) -> DataFrame:
        return super().read_stream(replace(context, name="mine"))


class TestOnePathOnly(SourceSuite):
    gem = OnePathOnly
    caught_by = {"test_reads_over_two_paths"}


class ReadsOld(Drawer):
    """Read what is there, and say that it is passed over."""

    semantics = SourceSemantics(only_new=True)


class TestReadsOld(SourceSuite):
    gem = ReadsOld
    caught_by = {"test_the_first_run_passes_over_what_is_there"}


class WrongType(Drawer):
    """Say that numbers are texts."""

    def infer(self) -> Facts:
        return Facts(columns=(Column("id", "string"), Column("name", "string")))


class TestWrongType(SourceSuite):
    gem = WrongType
    caught_by = {"test_infers_what_a_batch_has", "test_infers_what_a_stream_has"}


class OutsideAndInline(Drawer):
    """Say that the rows stand in the options, and look for them in a folder."""

    semantics = SourceSemantics(inline=True)


class TestOutsideAndInline(SourceSuite):
    gem = OutsideAndInline
    caught_by = {"test_semantics_are_declared"}


class NoBatch(Drawer):
    """Promise a batch, and have nothing to read one with."""

    read = Source.read


class TestNoBatch(SourceSuite):
    gem = NoBatch
    caught_by = {
        "test_semantics_are_declared",
        "test_infers_what_a_batch_has",
        "test_reads_a_batch",
        "test_a_preview_changes_nothing",
        "test_no_private_spark_api_in_use",
    }


class Undeclared(Drawer):
    """Promise what nobody has thought about."""

    semantics = Source.semantics


class TestUndeclared(SourceSuite):
    gem = Undeclared
    caught_by = {"test_semantics_are_declared"}


class Looks(Drawer):
    """Look at the folder while it is checked."""

    def check(self, *inputs: Facts) -> Iterator[Finding]:
        list(self.options.place().parent.glob("*"))
        yield from super().check(*inputs)


class TestLooks(SourceSuite):
    gem = Looks
    caught_by = {"test_checks_need_nothing_outside"}


class Traceback(Drawer):
    """Leave it to Spark to say that nothing is there."""

    def connect(self) -> tuple[Finding, ...]:  # type: ignore[override]
        return ()


class TestTraceback(SourceSuite):
    gem = Traceback
    caught_by = {"test_an_unreachable_system_is_a_sentence"}


class Waits(Drawer):
    """Wait for a system for as long as it takes."""

    def connect(self) -> Iterator[Finding]:
        with suppress(ConnectionError):
            socket.create_connection(("127.0.0.1", 1)).close()
        yield from super().connect()


class TestWaits(SourceSuite):
    gem = Waits
    caught_by = {"test_an_unreachable_system_is_a_sentence"}


class Blabs(Drawer):
    """Show the token to everybody."""

    def __repr__(self) -> str:
        token = self.options.token
        return f"Blabs({self.options.folder}, {token and token.get_secret_value()})"


class TestBlabs(SourceSuite):
    gem = Blabs
    caught_by = {"test_secrets_are_not_printed"}


class SkipsHalf(Drawer):
    """Lose every other row of a stream."""

    def read_stream(self, context: StreamReadContext) -> DataFrame:
        return super().read_stream(context).filter("id % 2 = 0")


class TestSkipsHalf(SourceSuite):
    gem = SkipsHalf
    caught_by = {
        "test_reads_a_stream",
        "test_reads_on_after_a_restart",
        "test_reads_over_two_paths",
        "test_replays_the_same_rows",
    }


class PickingOptions(FolderOptions):
    """Where the rows lie, and which."""

    least: int = Field(0, passed=False, description="The least number that is read.", change="continues")


class SaysNoRowIsDifferent(Source[PickingOptions]):
    """Read rows by an option of which it says that it makes no difference."""

    semantics = SourceSemantics(batch=False)
    example = {"folder": "drawer"}

    def read_stream(self, context: StreamReadContext) -> DataFrame:
        reader = context.reader.schema("id bigint, name string")
        return reader.json(str(self.options.place())).filter(f"id >= {self.options.least}")

    def infer(self) -> Facts:
        return Facts(columns=(Column("id", "bigint"), Column("name", "string")))

    def connect(self) -> Iterator[Finding]:
        yield from self.options.missing()


class TestSaysNoRowIsDifferent(SourceSuite):
    gem = SaysNoRowIsDifferent
    edits = [("least", 21)]
    caught_by = {"test_says_what_another_value_does"}
