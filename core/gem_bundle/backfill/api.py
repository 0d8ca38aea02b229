"""Compute a span of event time anew: what `gem-bundle backfill` calls.

Each step looks up to where the live run has read, and writes only when that is still so right before. Where
the live run has nevertheless written in the moment between, the step is done once more.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.backfill.column import TimeColumn, keys
from gem_bundle.backfill.compare import differences
from gem_bundle.backfill.journal import Journal
from gem_bundle.backfill.near import Near
from gem_bundle.backfill.parts import Bound, parts_of, rows_of
from gem_bundle.backfill.rules import Wanted, judge
from gem_bundle.changes.begun import GoesOn, JournalError, damaged_journal, goes_on
from gem_bundle.changes.checkpoint import UnseenError, read_checkpoint
from gem_bundle.changes.damage import check_checkpoint, has_source_evolution
from gem_bundle.changes.history import what_ran
from gem_bundle.changes.record import Record
from gem_bundle.changes.ways import KINDS_OF_TIME
from gem_bundle.changes.withheld import without_logins
from gem_bundle.contexts import ReadContext, WriteContext
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.files import NoFilesError
from gem_bundle.pipeline.chosen import chosen_target_ids
from gem_bundle.pipeline.secrets import hidden
from gem_bundle.run.api import open_for, prepare
from gem_bundle.run.failures import build_failure
from gem_bundle.run.frames import NodeFailure
from gem_bundle.run.lock import CheckpointLocks, Held, lock_file
from gem_bundle.run.places import absolute_place, targets_at
from gem_bundle.run.report import check_report_place, write_json
from gem_bundle.run.steering import StopRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.backfill.compare import Differences
    from gem_bundle.backfill.interval import Interval
    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.gem import PartRead, Target
    from gem_bundle.pipeline.loader import Loaded, LoadOptions
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.options import RunOptions
    from gem_bundle.semantics import RowsReplaced

_CHECKPOINTS_READ = 20
_TRIES = 5


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """What a backfill is asked for.

    Args:
        wanted: The target, the span of time, and what to do.
        step: How long the parts are that are done one after the other; None for all at once.
        margin: How long before or after its time what a row is made of may have come to its source; None
            when that isn't known, and then sources are read whole.
        partition: The column with the day that rows are filed under in the sources.
    """

    wanted: Wanted
    step: timedelta | None = None
    margin: timedelta | None = None
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class StepDone:
    """What became of one step.

    Args:
        interval: The part of the span of time.
        replaced: What was written; None where rows were only compared.
        differences: How the rows differ; None where they were written.
        tries: How often writing was begun, because the live run wrote in between.
    """

    interval: Interval
    replaced: RowsReplaced | None = None
    differences: Differences | None = None
    tries: int = 1

    def as_dict(self) -> dict[str, Any]:
        """The step as JSON has it."""
        found: dict[str, Any] = {
            "from": self.interval.start.isoformat(),
            "to": self.interval.end.isoformat(),
        }
        if self.replaced is not None:
            found |= {"rows": self.replaced.written, "replaced": self.replaced.removed, "tries": self.tries}
        if self.differences is not None:
            told = self.differences
            found |= {"missing": told.missing, "more": told.more, "differing": told.differing}
            found |= {"samples": told.samples, "columns": list(told.columns)}
        return found


@dataclass
class BackfillReport:
    """What a backfill did.

    Args:
        pipeline: The pipeline's name.
        wanted: What was asked for.
        column: The column that the interval is on.
        status: ``finished``, ``stopped`` or ``failed``.
        sources: What each reader of a source read.
        steps: What became of each step.
        skipped: How many steps an earlier run of the same backfill had done.
        seconds: How long it took.
        diagnostics: Why it failed.
    """

    pipeline: str
    wanted: Wanted
    column: str = ""
    status: str = "finished"
    sources: dict[str, str] = field(default_factory=dict)
    steps: list[StepDone] = field(default_factory=list)
    skipped: int = 0
    seconds: float = 0.0
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Whether rows that are there differ from those that come out."""
        return any(step.differences is not None and step.differences.any for step in self.steps)

    @property
    def ok(self) -> bool:
        """Whether it didn't fail, and found no differences."""
        return self.status != "failed" and not self.differs

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        wanted = self.wanted
        return {
            "pipeline": self.pipeline,
            "target": wanted.target,
            "from": wanted.interval.start.isoformat(),
            "to": wanted.interval.end.isoformat(),
            "column": self.column,
            "into": wanted.into and without_logins(wanted.into),
            "compare": wanted.compare,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "sources": self.sources,
            "skipped": self.skipped,
            "steps": [step.as_dict() for step in self.steps],
            "diagnostics": [diagnostic.as_dict() for diagnostic in self.diagnostics],
        }


def run_backfill(
    load: Callable[[LoadOptions], Loaded],
    run_options: RunOptions,
    options: BackfillOptions,
    tell: Callable[[StepDone], None] | None = None,
    stop: StopRequest | None = None,
) -> BackfillReport:
    """Compute a span of event time of a target anew, as a batch beside the live run.

    Args:
        load: Reads the pipeline with the parameters and secrets of this run.
        run_options: Parameters, profile, Spark's log, and where the report goes.
        options: What is asked for.
        tell: Who is told of each step that is done.
        stop: Asked between two steps.

    Raises:
        PipelineError: When it can't be started; nothing has been changed then.
    """
    plan, _ = prepare(load, run_options, discover=True)
    wanted = options.wanted
    chosen_target_ids(plan.definition, [wanted.target])
    stop = StopRequest() if stop is None else stop
    check_report_place(run_options.report)
    with ExitStack() as stack:
        guard = lock_file(_guarded(plan, wanted.target))
        # Without its file nobody has the lock; who is refused before anything starts leaves none behind.
        is_first = guard is None or not guard.exists()
        if not wanted.compare and not is_first:
            _lock(plan, wanted.target, stack)
        backfill = _Backfill(plan, run_options, options)
        session = stack.enter_context(open_for(backfill.plan, [wanted.target], run_options))
        if not wanted.compare and is_first:
            _lock(plan, wanted.target, stack)
        stack.enter_context(stop.on_signals())
        report = backfill.run(session.spark, tell or (lambda _: None), stop)
        if report.status == "failed":
            session.drop_classes()
    if run_options.report is not None:
        write_json(run_options.report, report.as_dict())
    return report


class _Backfill:
    """One backfill, judged and ready to start.

    Raises:
        PipelineError: When rows could be lost or be written twice.
    """

    def __init__(self, plan: Plan, run_options: RunOptions, options: BackfillOptions) -> None:
        self._options = options
        self._wanted = options.wanted
        self._location = plan.definition.checkpoint(self._wanted.target)
        live = self._live(plan)
        self._checkpoint = self._look(plan, live)
        self._record = self._read_record(plan, live)
        judged = judge(
            plan,
            self._wanted,
            self._checkpoint,
            self._record,
            run_options.environment,
            cut=options.margin is not None or options.partition is not None,
        )
        if judged.problems:
            raise PipelineError(judged.problems)
        assert judged.column is not None
        assert judged.side is not None
        self._column = judged.column
        self._bounded = judged.bounded
        self._near = Near(options.margin, options.partition, judged.reach)
        self.plan = plan if self._wanted.into is None else self._into(plan, self._wanted.into)
        self._version = judged.side.version
        self._keys = keys(judged.side)
        self._lacking: Interval | None = None
        # So that what can't be read is said before Java starts.
        parts_of(self.plan, self._wanted.target, self._wanted.interval, self._near, self._bound())

    def _look(self, plan: Plan, live: GoesOn) -> SparkCheckpoint | None:
        target = self._wanted.target
        try:
            checkpoint = read_checkpoint(live.location, last=_CHECKPOINTS_READ)
        except UnseenError as error:
            message = f"the checkpoint of target `{target}` can't be seen from here: {error}, at "
            message += self._location
            place = plan.definition.locator.place(plan.node(target).path, key=True)
            hint = "Run it where that lies: how far the live run has got stands there."
            raise PipelineError([Diagnostic("GB406", "error", message, target, (), place, hint)]) from error
        evolution = has_source_evolution(plan.definition.spark)
        broken = check_checkpoint(target, checkpoint, source_evolution=evolution)
        if broken and self._wanted.replaces:
            raise PipelineError(broken)
        return checkpoint

    def _live(self, plan: Plan) -> GoesOn:
        """Where the live run goes on."""
        try:
            return goes_on(self._location)
        except JournalError as error:
            target = self._wanted.target
            place = plan.definition.locator.place(plan.node(target).path, key=True)
            damaged = damaged_journal(target, self._location, error)
            raise PipelineError([damaged.moved(place)]) from error

    def _read_record(self, plan: Plan, live: GoesOn) -> Record | None:
        record, wrong = live.record(self._wanted.target, plan.definition.record(self._wanted.target))
        if self._wanted.replaces and any(diagnostic.is_error for diagnostic in wrong):
            raise PipelineError(wrong)
        return record

    def _into(self, plan: Plan, place: str) -> Plan:
        """The plan with a target that writes to another place: of the same gem, or of one that can."""
        node = plan.node(self._wanted.target)
        own = type(cast("Target", plan.gems[node.id]))
        message = f"no gem can put rows for a time into `{without_logins(place)}`"
        hint = "Write a path, or `table:` and the name of a table."
        try:
            for made in targets_at(absolute_place(place), [own]):
                return replace(plan, gems={**plan.gems, node.id: made})
        except GemError as error:
            message, hint = f"`--into`: {error.message}", error.hint
        found = plan.definition.locator.place(node.path, key=True)
        raise PipelineError([Diagnostic("GB450", "error", message, node.id, node.path, found, hint)])

    def _bound(self, at_least: int = -1) -> Bound | None:
        """Up to where the live run has read.

        Args:
            at_least: A micro-batch that is known to be written, whether the checkpoint says so yet or not.
        """
        checkpoint = self._checkpoint
        if checkpoint is None or checkpoint.newest is None or not checkpoint.named:
            return None
        # Between the looks at both of its logs a micro-batch may have been done.
        batch = max(min(checkpoint.next_batch - 1, checkpoint.newest.batch), at_least)
        replaces = self._wanted.replaces
        if not self._bounded and not replaces:
            return None
        bound = Bound(checkpoint, batch, strict=replaces and self._bounded, complete=replaces)
        if self._record is None:
            return bound
        ran = what_ran(self._record, checkpoint)
        first = ran.versions[0] if ran.versions else None
        # A fresh checkpoint goes on where another one ended.
        told = first is not None and first.first_batch == 0 and not first.continues
        return replace(bound, ran=ran.newest, began=first if told else None, versions=ran.versions)

    def run(self, spark: SparkSession, tell: Callable[[StepDone], None], stop: StopRequest) -> BackfillReport:
        """Do the steps that aren't done yet."""
        began = time.monotonic()
        wanted = self._wanted
        report = BackfillReport(self.plan.definition.name, wanted, str(self._column))
        journal = self._journal()
        if not wanted.compare:
            journal.load()
        try:
            for interval in wanted.interval.steps(self._options.step):
                if stop:
                    report.status = "stopped"
                    break
                if journal.has(interval):
                    report.skipped += 1
                    continue
                done = self._step(spark, interval, report)
                if not wanted.compare:
                    journal.add(interval)
                report.steps.append(done)
                tell(done)
            else:
                if not wanted.compare:
                    journal.finish()
        except PipelineError as error:
            report.diagnostics += error.diagnostics
        except NodeFailure as failure:
            report.diagnostics.append(build_failure(self.plan, failure.node, failure.error))
        except NoFilesError as error:
            message = f"what a backfill has done can't be written down beside {self._location}: {error}"
            report.diagnostics.append(Diagnostic("GB406", "error", message, wanted.target))
        except Exception as error:  # noqa: BLE001 (whatever a gem raises belongs to its node)
            report.diagnostics.append(build_failure(self.plan, wanted.target, error))
        if self._lacking is not None:
            message = (
                f"target `{wanted.target}`: the live run wrote in the moment in which {self._lacking} was "
                "replaced, and rows of it are missing until that is done once more"
            )
            report.diagnostics.append(self._diagnostic("GB455", message, "Give the same command again."))
        if report.diagnostics:
            report.status = "failed"
            report.diagnostics = [found.rewritten(hidden) for found in report.diagnostics]
        report.seconds = time.monotonic() - began
        return report

    def _journal(self) -> Journal:
        """What is done by now of this backfill: of this version of the pipeline, this time and this place."""
        wanted, timeless = self._wanted, replace(self._version, first_batch=0, started="")
        what = {
            "from": wanted.interval.start.isoformat(),
            "to": wanted.interval.end.isoformat(),
            "step": self._options.step.total_seconds() if self._options.step is not None else None,
            "margin": self._options.margin.total_seconds() if self._options.margin is not None else None,
            "partition": self._options.partition,
            "column": str(self._column),
            "into": self._into_place(),
            "version": sha256(Record(wanted.target, (timeless,)).as_json().encode()).hexdigest(),
        }
        return Journal(self._location, what)

    def _into_place(self) -> str | None:
        """The other place that is written to, the same text wherever the command is given."""
        into = self._wanted.into
        return None if into is None else without_logins(absolute_place(into))

    def _step(self, spark: SparkSession, interval: Interval, report: BackfillReport) -> StepDone:
        written, tries = -1, 0
        for _ in range(_TRIES):
            # The table first: how far a micro-batch has read that is in it, the checkpoint tells by then.
            written = max(written, self._in_table(spark))
            self._look_again()
            bound = self._bound(written)
            parts = parts_of(self.plan, self._wanted.target, interval, self._near, bound)
            report.sources = {reader: read.part for reader, read in parts.items()}
            condition, df = self._rows(spark, interval, parts)
            if self._wanted.compare:
                context = ReadContext(self._wanted.target, spark)
                there = self._target.read_interval(condition, context)
                return StepDone(interval, differences=differences(there, df, self._keys))
            if bound is not None and bound.strict and self._in_table(spark) > bound.batch:
                continue  # what has come meanwhile would be gone until the next try
            tries += 1
            replaced = self._target.replace_interval(df, condition, self._context())
            if replaced is None:
                continue
            written = max(written, replaced.last_batch if replaced.last_batch is not None else -1)
            if bound is None or not bound.strict or written <= bound.batch:
                self._lacking = None
                return StepDone(interval, replaced, tries=tries)
            self._lacking = interval
        message = (
            f"target `{self._wanted.target}`: each time that {interval} was computed, other rows of it were "
            f"written meanwhile ({_TRIES} times)"
        )
        hint = "Give the same command again. With the live run stopped for a moment nobody writes in between."
        raise PipelineError([self._diagnostic("GB455", message, hint)])

    def _in_table(self, spark: SparkSession) -> int:
        """The last micro-batch of the live run in the table; -1 for none, or where that doesn't matter."""
        if not (self._wanted.replaces and self._bounded):
            return -1
        found = self._target.last_batch(self._context().query, ReadContext(self._wanted.target, spark))
        return -1 if found is None else found

    def _look_again(self) -> None:
        """See how far the live run is by now."""
        before = self._checkpoint
        live = self._live(self.plan)
        self._checkpoint = self._look(self.plan, live)
        self._record = self._read_record(self.plan, live)
        query, was = (None if found is None else found.query for found in (self._checkpoint, before))
        if self._wanted.replaces and (self._bound() is None or query != was):
            message = (
                f"target `{self._wanted.target}`: its checkpoint isn't the one any more that was there when "
                f"the backfill began: {without_logins(self._location)}"
            )
            hint = "Give the same command again when the pipeline has run."
            raise PipelineError([self._diagnostic("GB454", message, hint)])

    def _diagnostic(self, code: str, message: str, hint: str) -> Diagnostic:
        target = self._wanted.target
        place = self.plan.definition.locator.place(self.plan.node(target).path, key=True)
        return Diagnostic(code, "error", message, target, (), place, hint)

    def _rows(
        self, spark: SparkSession, interval: Interval, parts: dict[str, PartRead]
    ) -> tuple[str, DataFrame]:
        """The rows of an interval, and the condition that holds for them."""
        near = partial(self._near.of, interval=interval)
        df = rows_of(self.plan, self._wanted.target, spark, parts, near)
        column = self._column if self._column.kind is not None else self._typed(df)
        if column.kind == "date" and not interval.whole_days:
            message = f"`{column}` is a date, and {interval} isn't in whole days"
            raise GemError("GB451", message, "Give dates, and whole days for `--step`.")
        condition = interval.condition(column.path, cast("str", column.kind))
        return condition, df.where(condition)

    def _typed(self, df: DataFrame) -> TimeColumn:
        path = self._column.path
        found = {name.lower(): kind for name, kind in df.select(".".join(f"`{p}`" for p in path)).dtypes}
        kind = found.get(path[-1].lower())
        if kind not in KINDS_OF_TIME:
            message = f"`{self._column}` is of type {kind}, and neither a time nor a date"
            raise GemError("GB451", message, "Name another one with `--column`.")
        return TimeColumn(path, kind)

    @property
    def _target(self) -> Target:
        return cast("Target", self.plan.gems[self._wanted.target])

    def _context(self) -> WriteContext:
        definition = self.plan.definition
        query = self._checkpoint.query if self._checkpoint is not None and self._wanted.replaces else ""
        return WriteContext(self._wanted.target, definition.name, query=query)


def _guarded(plan: Plan, target: str) -> str:
    """What the lock of a target's backfills is named after."""
    return f"{plan.definition.checkpoint(target)}.backfill"


def _lock(plan: Plan, target: str, stack: ExitStack) -> None:
    """See to it that there is one backfill of a target at a time."""
    guarded = {target: _guarded(plan, target)}
    held = Held("another backfill of target `{}` is running", "Wait until it ends, or stop it.")
    locks = stack.enter_context(CheckpointLocks(guarded, held))
    found = locks.acquire()
    if found:
        place = plan.definition.locator.place(plan.node(target).path, key=True)
        raise PipelineError([diagnostic.moved(place) for diagnostic in found])


def lines_of(done: StepDone) -> Iterator[str]:
    """What is said of a step.

    Args:
        done: What became of it.
    """
    if done.replaced is not None:
        written, removed = (_count(n) for n in (done.replaced.written, done.replaced.removed))
        again = f" (the live run wrote in between: done {done.tries} times)" if done.tries > 1 else ""
        yield f"{done.interval}: {written} in the place of {removed}{again}"
    if done.differences is None:
        return
    told = done.differences
    if not told.any:
        yield f"{done.interval}: no difference"
        return
    yield (
        f"{done.interval}: {told.missing:,} missing (come out, aren't there), {told.more:,} more (are there, "
        f"don't come out), {told.differing:,} differing"
    )
    for name in told.columns:
        yield f"  only one of the two has the column `{name}`"
    for kind, rows in told.samples.items():
        for row in rows:
            yield f"  {kind}: {json.dumps(row, ensure_ascii=False, default=str)}"


def _count(number: int | None) -> str:
    return "rows" if number is None else f"{number:,} row{'s' * (number != 1)}"
