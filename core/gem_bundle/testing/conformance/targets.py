"""The tests of targets: every row is there, as often as the target claims, whatever happens."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from gem_bundle.contexts import WriteContext
from gem_bundle.errors import GemError
from gem_bundle.gem import Target
from gem_bundle.pipeline.groups import delivery_in_group
from gem_bundle.refusals import Refusals
from gem_bundle.rejected import Rejecting, restored_rows
from gem_bundle.testing.conformance.code import CodeTests
from gem_bundle.testing.conformance.declaration import DeclarationTests, wrong_method
from gem_bundle.testing.conformance.inputs import Folder
from gem_bundle.testing.conformance.options import OptionTests
from gem_bundle.testing.conformance.outside import OutsideTests
from gem_bundle.testing.conformance.pickling import HandedOverTests, PicklingTests
from gem_bundle.testing.conformance.secrets import SecretTests
from gem_bundle.testing.conformance.streams import (
    NAME,
    continuous,
    difference,
    forget_last_commit,
    write_stream,
)
from gem_bundle.testing.conformance.suite import applies, costly, fail, fail_for
from gem_bundle.testing.conformance.target_changes import TargetChangeTests
from gem_bundle.testing.conformance.writing import is_seen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from gem_bundle.gem import Gem
    from gem_bundle.semantics import OutputMode, TargetSemantics
    from gem_bundle.testing.conformance.suite import GemConformance

    Rows = Sequence[Mapping[str, Any]]
    Condition = Callable[[type[GemConformance], Gem], bool]

MANY = 257
"""More rows than what a target usually collects before it sends them, and no multiple of it."""


def _semantics(gem: Gem) -> TargetSemantics:
    return cast("Target", gem).semantics


def _streams(mode: OutputMode) -> Condition:
    def condition(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001 (the shape of a condition)
        return _semantics(gem).streaming and mode in _semantics(gem).output_modes

    return condition


def _delivers(delivery: str) -> Condition:
    def condition(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
        found = _semantics(gem)
        return found.streaming and found.restartable and found.delivery == delivery

    return condition


def _rejects(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
    return cast("Target", gem).rejects()


def _is_grouped(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
    return _semantics(gem).streaming and delivery_in_group(cast("Target", gem)) is not None


def _writes_batches(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
    return _semantics(gem).batch


def _must_keep_batches(suite: type[GemConformance], gem: Gem) -> bool:
    return _semantics(gem).batch and (is_seen(suite) or _semantics(gem).delivery != "none")


def _is_continuous(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
    return _semantics(gem).streaming and "continuous" in _semantics(gem).triggers


def _counts(suite: type[GemConformance], gem: Gem) -> bool:  # noqa: ARG001
    return _semantics(gem).streaming and _semantics(gem).counts_rows


class TargetConformance(
    TargetChangeTests,
    DeclarationTests,
    OptionTests,
    SecretTests,
    CodeTests,
    PicklingTests,
    HandedOverTests,
    OutsideTests,
):
    """The tests of a target. Implement `written`, and `provide` where rows go somewhere."""

    def refused(self) -> Rows:
        """Rows that the place will refuse, where the target rejects rows; by default it refuses none.

        The suite gives them to the target among others, which all differ from them.
        """
        return []

    def test_semantics_are_declared(self) -> None:
        """The class declares its semantics, and implements what they say and nothing else."""
        fail_for(_undeclared(self.gem, self.made()))

    @pytest.mark.spark
    @applies(_writes_batches)
    def test_writes_a_batch(self) -> None:
        """All rows of a batch are there, each once, over several partitions."""
        rows = self.rows(1, MANY)
        self.live().write(self._table(rows).repartition(3), self._context("append"))
        self._expect(rows, "after a batch")

    @pytest.mark.spark
    @applies(_must_keep_batches)
    def test_adds_a_batch(self) -> None:
        """A batch in the output mode `append` leaves what is there."""
        for number in (1, 2):
            self.live().write(self._table(self.rows(number)), self._context("append"))
        self._expect([*self.rows(1), *self.rows(2)], "after two batches")

    @pytest.mark.spark
    @applies(_must_keep_batches)
    def test_replaces_a_batch(self) -> None:
        """A batch in the output mode `complete` replaces what is there, or is refused."""
        self.live().write(self._table(self.rows(1)), self._context("append"))
        try:
            self.live().write(self._table(self.rows(2)), self._context("complete"))
        except GemError:
            self._expect(self.rows(1), "after a batch in the output mode `complete` that was refused")
        else:
            self._expect(self.rows(2), "after a batch in the output mode `complete`")

    @pytest.mark.spark
    @applies(_writes_batches)
    def test_writes_an_empty_batch(self) -> None:
        """A batch without rows is no mistake, and leaves no row."""
        self.live().write(self._table([]), self._context("append"))
        self._expect([], "after a batch without rows")

    @pytest.mark.spark
    @applies(_streams("append"))
    def test_appends_a_stream(self) -> None:
        """All rows of a stream are there, each once, also when it was stopped and went on."""
        self._in_two_steps("append", lambda df: df)
        self._expect([*self.rows(1), *self.rows(2, MANY)], "after a stream in the output mode `append`")

    @pytest.mark.spark
    @applies(_streams("update"))
    def test_updates_a_stream(self) -> None:
        """The changed rows of every micro-batch are there."""
        self._in_two_steps("update", _grouped)
        self._expect([*self.rows(1), *self.rows(2, MANY)], "after a stream in the output mode `update`")

    @pytest.mark.spark
    @applies(_streams("complete"))
    def test_completes_a_stream(self) -> None:
        """The whole result is there after every micro-batch: exactly-once means in place of the last one."""
        gem = self._in_two_steps("complete", _grouped)
        wanted = [*self.rows(1), *self.rows(2, MANY)]
        again = gem.semantics.delivery != "exactly_once"
        self._expect(wanted, "after a stream in the output mode `complete`", more=again)

    @pytest.mark.spark
    @applies(_delivers("exactly_once"))
    def test_a_batch_run_again_is_there_once(self) -> None:
        """A micro-batch that is run again, after a crash between write and commit, changes nothing."""
        self._run_again(self.live().semantics)

    @pytest.mark.spark
    @applies(_delivers("at_least_once"))
    def test_a_batch_run_again_loses_nothing(self) -> None:
        """All rows are there after a crash between write and commit, some of them perhaps again."""
        self._run_again(self.live().semantics)

    @pytest.mark.spark
    @applies(_is_grouped)
    def test_a_micro_batch_of_a_group_comes_again(self) -> None:
        """Micro-batches of a group are there, and one that comes again as its delivery in a group says."""
        gem = self.live()
        mode: OutputMode = "append" if "append" in gem.semantics.output_modes else "update"
        context = replace(self._context(mode), query=self._name())
        portions = [self.rows(1), self.rows(2, MANY), self.rows(3)]
        for batch_id in (0, 1, 1, 2):
            gem.write_batch(self._table(portions[batch_id]), batch_id, context)
        delivery = delivery_in_group(gem)
        self._expect(
            [row for rows in portions for row in rows],
            f"in a group the target is `{delivery}`, and after a micro-batch came again",
            more=delivery != "exactly_once",
        )

    @pytest.mark.spark
    @applies(_rejects)
    def test_delivers_or_rejects_each_row(self) -> None:
        """Each row is outside or rejected, with its values, also when the micro-batch comes again."""
        gem = self.live()
        mode: OutputMode = "append" if "append" in gem.semantics.output_modes else "update"
        bad, good = list(self.refused()), [*self.rows(1, MANY), *self.rows(2)]
        given = self._table([*good, *bad]).repartition(3)
        for _ in range(2):
            refusals = Refusals(Rejecting(NAME, "1.0.0", "target", "target"))
            context = replace(self._context(mode), query=self._name(), refusals=refusals)
            gem.write_batch(given, 0, context)
            rejected = refusals.rows(self.spark)
            schemas = {row["row_schema"] for row in rejected.select("row_schema").collect()}
            rows = [
                row.asDict(recursive=True)
                for schema in schemas
                for row in restored_rows(rejected.where(rejected["row_schema"] == schema), schema).collect()
            ]
            unsaid = rejected.where("size(reasons) = 0 or reasons[0].words is null").count()
            refusals.release()
            problem = difference(rows, bad) if bad or rows else ""
            if problem:
                fail(f"what `refused` says is to be rejected: {problem}")
            if unsaid:
                fail(f"{unsaid} rows are rejected without a reason")
        self._expect(good, "beside the rows that are rejected", more=True)

    @pytest.mark.spark
    @applies(_rejects)
    def test_ends_where_rejected_rows_can_go_nowhere(self) -> None:
        """Called without a place for rejected rows, the target fails, and drops none."""
        gem, bad = self.live(), list(self.refused())
        mode: OutputMode = "append" if "append" in gem.semantics.output_modes else "update"
        try:
            gem.write_batch(self._table([*self.rows(1), *bad]), 0, self._context(mode))
        except GemError:
            return
        if bad:
            fail(f"{len(bad)} rows were refused and are gone")

    @pytest.mark.spark
    @costly
    @applies(_delivers("exactly_once"))
    def test_a_killed_run_leaves_every_row_once(self) -> None:
        """A run in a process of its own is killed while it writes; the next one brings all to an end.

        The process gets the options of `provide`, and a Spark of its own with the jars and settings
        that the gem asks for.
        """
        from gem_bundle.testing.conformance.killing import kill_while_writing

        gem = self.live()
        given = Folder(self.folder.with_name("given"), self.schema)
        portions = [self.rows(number) for number in range(1, 7)]
        for rows in portions[:-1]:
            given.add(rows)
        kill_while_writing(gem, given, self.checkpoint, self.folder, self.spark)
        given.add(portions[-1])
        write_stream(self.live(), self._stream(given), self.checkpoint)
        self._expect([row for rows in portions for row in rows], "after a run that was killed")

    @pytest.mark.spark
    @applies(_counts)
    def test_spark_counts_the_rows(self) -> None:
        """Spark says how many rows the sink got, as `counts_rows` promises."""
        gem = self.live()
        mode: OutputMode = "append" if "append" in gem.semantics.output_modes else "update"
        given = Folder(self.folder.with_name("given"), self.schema)
        given.add(self.rows(1))
        query = write_stream(gem, self._stream(given), self.checkpoint, mode, self._name())
        counted = sum(progress.sink.numOutputRows for progress in query.recentProgress)
        if counted != len(self.rows(1)):
            fail(f"`counts_rows` is declared, and Spark counted {counted} rows of {len(self.rows(1))}")

    @pytest.mark.spark
    @applies(_is_continuous)
    def test_runs_continuously(self) -> None:
        """The target takes a stream with the continuous trigger, which the semantics name."""
        from pyspark.sql.functions import col, lit

        rate = self.spark.readStream.format("rate").options(rowsPerSecond=10, numPartitions=1)
        reader = rate.name("ticks") if hasattr(rate, "name") else rate
        empty = self._table([]).schema.fields
        number = col("value")
        columns = [
            (number if field.dataType.simpleString() == "bigint" else lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in empty
        ]
        context = WriteContext(node="target", pipeline=NAME, query_name=self._name())
        writer = self.live().write_stream(reader.load().select(*columns), context)
        continuous(writer.queryName(self._name()), self.checkpoint)

    def _use_once(self, gem: Any) -> None:
        given = Folder(self.folder.with_name("given"), self.schema)
        given.add(self.rows(1))
        if gem.semantics.batch:
            gem.write(given.table(self.spark), WriteContext(node="target", pipeline=NAME))
        if gem.semantics.streaming:
            mode: OutputMode = "append" if "append" in gem.semantics.output_modes else "update"
            write_stream(gem, self._stream(given), self.checkpoint, mode)

    def _context(self, mode: OutputMode) -> WriteContext:
        return WriteContext(node="target", pipeline=self._name(), output_mode=mode)

    def _table(self, rows: Rows) -> DataFrame:
        folders = self.folder.parent.glob("batch*")
        given = Folder(self.folder.with_name(f"batch{len(list(folders))}"), self.schema)
        given.add(rows)
        return given.table(self.spark)

    def _in_two_steps(self, mode: OutputMode, change: Callable[[DataFrame], DataFrame]) -> Any:
        """Write two micro-batches, with a restart between them where the target can go on."""
        gem = self.live()
        given = Folder(self.folder.with_name("given"), self.schema)
        given.add(self.rows(1))
        if gem.semantics.restartable:
            write_stream(gem, change(self._stream(given)), self.checkpoint, mode, self._name())
            gem = self.live()
        given.add(self.rows(2, MANY))
        write_stream(gem, change(self._stream(given)), self.checkpoint, mode, self._name())
        return gem

    def _run_again(self, semantics: TargetSemantics) -> None:
        mode: OutputMode = "append" if "append" in semantics.output_modes else "update"
        change = (lambda df: df) if mode == "append" else _grouped
        given = Folder(self.folder.with_name("given"), self.schema)
        given.add(self.rows(1))
        given.add(self.rows(2, MANY))
        write_stream(self.live(), change(self._stream(given)), self.checkpoint, mode, self._name())
        forget_last_commit(self.checkpoint)
        given.add(self.rows(3))
        write_stream(self.live(), change(self._stream(given)), self.checkpoint, mode, self._name())
        wanted = [*self.rows(1), *self.rows(2, MANY), *self.rows(3)]
        self._expect(
            wanted,
            f"the target says `{semantics.delivery}`, and after a crash between write and commit",
            more=semantics.delivery != "exactly_once",
        )

    def _expect(self, wanted: Rows, when: str, *, more: bool = False) -> None:
        """The rows outside are these, where they can be seen."""
        if not is_seen(type(self)):
            if self.made().semantics.delivery == "none":
                return
            fail(
                "implement `written`: a target that promises a delivery must let the suite see what is "
                "outside"
            )
        found = list(self.written())
        if not wanted:
            problem = f"{len(found)} rows are there" if found else ""
        else:
            problem = difference(found, wanted, more=more)
        if problem:
            fail(f"{when}: {problem}")


def _grouped(df: DataFrame) -> DataFrame:
    """An aggregation whose result is the rows themselves, each once."""
    from pyspark.sql.functions import count, lit

    columns = [f"`{name}`" for name in df.columns]
    return df.groupBy(*columns).agg(count(lit(1)).alias("conformance_count")).select(*columns)


def _undeclared(gem: type[Any], made: Any) -> list[str]:
    """What differs between the declared semantics and the methods that are there."""
    problems = []
    semantics = made.semantics
    if gem.semantics is Target.semantics:
        problems.append("declare `semantics = TargetSemantics(…)`: what the gem promises")
    writes = gem.write is not Target.write
    streams = gem.write_stream is not Target.write_stream or gem.write_batch is not Target.write_batch
    problems += wrong_method("write", semantics.batch, writes)
    problems += wrong_method("write_stream` or `write_batch", semantics.streaming, streams)
    if not (semantics.batch or semantics.streaming):
        problems.append("the semantics allow neither a batch nor a stream")
    if semantics.grouped is not None and gem.write_batch is Target.write_batch:
        problems.append("`grouped` is declared, and `write_batch`, which a group calls, isn't there")
    if gem.can_reject() and delivery_in_group(made) is None:
        problems.append("`rejects` is there, and the target can't be in a group: it has no `write_batch`")
    if not semantics.condition:
        problems.append("`condition` must say under which condition the delivery holds, in a sentence")
    return problems
