"""Tests of pipelines in Python: a list of steps, as the fixture ``gem_bundle_steps`` runs them.

::

    from gem_bundle.testing import AddRows, AdvanceWatermark, CheckRows, Restart

    def test_an_hour_is_delivered_when_it_is_over(gem_bundle_steps):
        gem_bundle_steps("orders.yaml", [
            AddRows("orders", [{"shop": "Oslo", "at": "2026-01-05 09:05:00", "amount": 10}]),
            CheckRows("table", []),
            Restart(),
            AdvanceWatermark("2026-01-05 10:00:00"),
            CheckRows("table", [{"hour": "2026-01-05 09:00:00", "shop": "Oslo", "sales": 10}]),
        ])

What was added arrives in one micro-batch, with the next `Process`, or with the next step that looks at
what came of it. Nothing waits on time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from gem_bundle.diagnostics import NOWHERE, Diagnostic
from gem_bundle.errors import PipelineError
from gem_bundle.testing.rows.compare import Expected
from gem_bundle.testing.rows.notation import flow
from gem_bundle.testing.running.event_time import (
    carriers,
    has_reached,
    is_watermarked,
    moment,
    watermark_text,
)
from gem_bundle.testing.running.outcome import Mismatch, StepOutcome, TestOutcome, called, is_output
from gem_bundle.testing.running.prepared import Circumstances, Feed, Replace
from gem_bundle.testing.running.report import explanation
from gem_bundle.testing.running.runner import Course, failure_mismatch, is_of_the_test, run
from gem_bundle.testing.values import MisfitError, Reader, Shower

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from pyspark.sql import SparkSession

    from gem_bundle.builder import Pipeline
    from gem_bundle.diagnostics import Place
    from gem_bundle.testing.running.outcome import Captured

GivenRow = Mapping[str, Any] | Sequence[Any]

_MOST_SHOWN = 20


class StepsFailed(AssertionError):  # noqa: N818 (a failed test, and no error of the kit)
    """A list of steps didn't go as it says.

    Args:
        outcome: What it came to.
        text: The steps with an arrow at the one that went wrong, and why.
    """

    def __init__(self, outcome: TestOutcome, text: str) -> None:
        super().__init__(text)
        self.outcome = outcome


class Step(ABC):
    """One step of a test. The others derive from it."""

    @abstractmethod
    def take(self, course: Steps, found: StepOutcome) -> None:
        """Take the step; what it comes to goes to `found`."""

    def feeds(self) -> Iterable[Feed]:
        """The nodes that it gives rows to."""
        return ()

    def __str__(self) -> str:
        """The step as it was written: without what is as it is by default."""
        given = []
        for one in fields(self):  # type: ignore[arg-type]  # all steps are data classes
            value = getattr(self, one.name)
            if one.default is MISSING and one.default_factory is MISSING:
                given.append(repr(value))
            elif value not in (None, False, {}):
                given.append(f"{one.name}={value!r}")
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(frozen=True)
class AddRows(Step):
    """Have rows arrive with the next `Process`.

    Args:
        node: The source they come from; or a transform that they come out of, whose own sources aren't
            needed then (``id.output`` where it has several outputs).
        rows: The rows: mappings of columns to values, in which what is left out is null; or lists of
            values in the columns' order. Times may be texts, such as ``2026-01-05 09:05:00`` in the time
            zone of the session.
        schema: The columns as DDL, where the pipeline doesn't say them.
    """

    node: str
    rows: Sequence[GivenRow]
    schema: str | None = None

    def take(self, course: Steps, found: StepOutcome) -> None:  # noqa: ARG002 (all steps have both)
        """Keep the rows for the next `Process`.

        Raises:
            PipelineError: GB704 for rows that don't fit the columns.
        """
        course.add(self.node, self.rows)

    def feeds(self) -> Iterable[Feed]:
        """The node."""
        return [Feed(self.node, self.schema)]


@dataclass(frozen=True)
class Process(Step):
    """Let what was added arrive in one micro-batch, and wait until there is nothing left to do."""

    def take(self, course: Steps, found: StepOutcome) -> None:
        """Process."""
        course.process(found)


@dataclass(frozen=True)
class CheckRows(Step):
    """Compare what a target got in the last `Process`, or in complete mode its whole result.

    Args:
        target: The target; or what a node rejected, as ``id.rejected``.
        rows: The rows that are expected, written as `AddRows` takes them.
        ordered: They come in this order.
        subset: They name only some of the columns, and the others don't matter; so with rejected rows
            always, since when they were rejected no test knows.
        count: How many rows are expected.
        schema: The columns that are expected, as DDL.
    """

    target: str
    rows: Sequence[GivenRow] | None = None
    ordered: bool = False
    subset: bool = False
    count: int | None = None
    schema: str | None = None

    def take(self, course: Steps, found: StepOutcome) -> None:
        """Compare."""
        captured = course.captured(found).get(self.target)
        if captured is not None:
            subset = self.subset or is_output(self.target)
            expected = Expected(self.rows, self.ordered, subset, self.count, self.schema)
            found.mismatches += course.compare_rows(self.target, expected, captured, found.place)


@dataclass(frozen=True)
class CheckWatermark(Step):
    """Compare the watermark that the next rows will meet.

    Args:
        time: Where it is expected, in the time zone of the session.
        target: The target whose query it is; None for those of all targets.
    """

    time: str | datetime
    target: str | None = None

    def take(self, course: Steps, found: StepOutcome) -> None:
        """Compare."""
        captured = course.captured(found)
        if captured:
            wanted = str(self.time)
            found.mismatches += course.compare_watermark(captured, self.target, wanted, found.place)


@dataclass(frozen=True)
class AdvanceWatermark(Step):
    """Let event time pass: process rows that take the watermark to a time.

    A watermark follows the rows, so it takes some. Without `rows` each source whose columns hold the event
    time gets one in which everything else is null, later than `to` by the delay of the watermark. Say the
    rows where event time stands inside a value, as in the JSON of Kafka's messages, and where rows that are
    null elsewhere don't come as far as the watermark: Spark drops the null keys of a join before it.

    Args:
        to: Where the watermark is to be, in the time zone of the session.
        rows: The rows that take it there, by node.
    """

    to: str | datetime
    rows: Mapping[str, Sequence[GivenRow]] = field(default_factory=dict)

    def take(self, course: Steps, found: StepOutcome) -> None:
        """Process the rows, and look whether the watermark of every query has come there.

        Raises:
            PipelineError: GB710 when no source's columns hold the event time.
        """
        to = moment(self.to, course.time_zone)
        for node, rows in self.rows.items():
            course.add(node, rows)
        if not self.rows:
            made = carriers(course.prepared, to)
            if not made:
                message = "no source has event time in a column of its own, so nothing can advance it"
                hint = 'Say rows that do: `AdvanceWatermark(to, {"orders": [{"value": "…"}]})`.'
                raise PipelineError([Diagnostic("GB710", "error", message, hint=hint)])
            for node, row in made.items():
                course.engine.add(node, [row])
                course.pending = True
        course.process(found)
        for target, captured in found.captured.items():
            if is_watermarked(course.prepared, target) and not has_reached(captured.watermark, to):
                there = watermark_text(captured.watermark, course.time_zone)
                message = f"the watermark was to advance to {self.to}, and is {there or 'not there yet'}"
                found.mismatches.append(Mismatch("watermark", message, target, None, found.place))

    def feeds(self) -> Iterable[Feed]:
        """The nodes of its rows."""
        return [Feed(node) for node in self.rows]


@dataclass(frozen=True)
class AdvanceClock(Step):
    """Let the clock be at a time, for processors that go by it (`stateful` with `time: processing`).

    It begins with 1970. The next `Process`, or step that looks at what came of it, runs one micro-batch of
    their queries at this time, also where no rows came.

    Args:
        to: The time, in the time zone of the session unless it names another.
    """

    to: str | datetime

    def take(self, course: Steps, found: StepOutcome) -> None:
        """Set the clock.

        Raises:
            PipelineError: GB704 when it is no time, or an earlier one.
        """
        course.set_clock(self.to, found.place)
        course.pending = True


@dataclass(frozen=True)
class Stop(Step):
    """Stop the queries. The next step that processes starts them from their checkpoints."""

    def take(self, course: Steps, found: StepOutcome) -> None:  # noqa: ARG002 (all steps have both)
        """Stop."""
        course.stop()


@dataclass(frozen=True)
class Restart(Step):
    """Stop the queries, read the pipeline anew, and start it from its checkpoints with the next rows.

    Rows of static relations that were added while the queries ran are seen from then on, as in a run.
    """

    def take(self, course: Steps, found: StepOutcome) -> None:  # noqa: ARG002 (all steps have both)
        """Restart."""
        course.restart()


@dataclass(frozen=True)
class ExpectFailure(Step):
    """Process what was added, and expect that it fails, or as the first step, that the pipeline can't start.

    The queries don't run any more then; the next step that processes starts them again.

    Args:
        code: The diagnostic code, for example ``GB507``: what a run would have said.
        message: A part of the message.
    """

    code: str
    message: str | None = None

    def take(self, course: Steps, found: StepOutcome) -> None:
        """Process, and compare the failure."""
        course.process(found)
        found.expected_failure = self.code
        found.mismatches += failure_mismatch(self.code, self.message, found.failures, found.place)


class Steps(Course):
    """A list of steps while it is taken."""

    pending = False
    _latest: dict[str, Captured] | None = None

    def add(self, node: str, rows: Iterable[GivenRow]) -> None:
        """Keep rows for the next `Process`.

        Raises:
            PipelineError: GB704 for rows that don't fit the columns.
        """
        reader = Reader(self.time_zone)
        fields = self.prepared.fed[node].fields
        found, wrong = [], []
        for number, row in enumerate(rows, 1):
            try:
                found.append(reader.row(row, fields))
            except MisfitError as error:
                wrong.append(Diagnostic("GB704", "error", f"`{node}`, row {number}: {error}", node))
        if wrong:
            raise PipelineError(wrong)
        self.engine.add(node, found)
        self.pending = True

    def process(self, step: StepOutcome) -> None:
        """Let what was added arrive."""
        self.pending = False
        self._latest = None
        super().process(step)
        if not step.failures:
            self._latest = step.captured

    def captured(self, step: StepOutcome) -> dict[str, Captured]:
        """What the targets got in the last `Process`, or get now where rows are waiting."""
        if self.pending or self._latest is None:
            self.process(step)
        step.captured = self._latest or {}
        return step.captured

    def stop(self) -> None:
        """Stop the queries."""
        self.engine.stop()
        self._latest = None

    def restart(self) -> None:
        """Stop the queries, and read the pipeline anew."""
        super().restart()
        self._latest = None


def run_steps(
    pipeline: str | os.PathLike[str] | Pipeline,
    steps: Sequence[Step],
    session: Callable[[], SparkSession],
    *,
    targets: Sequence[str] = (),
    profile: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    spark: Mapping[str, str | int | float | bool] | None = None,
    replace: Mapping[str, Replace] | None = None,
    name: str = "",
    place: Place | None = None,
) -> TestOutcome:
    """Take a list of steps with a pipeline; sources get rows of the steps, and targets are captured.

    Args:
        pipeline: The pipeline file, or a pipeline in Python.
        steps: The steps.
        session: Gives the session.
        targets: The targets to run; by default those that the steps check, or else all.
        profile: The pipeline's profile.
        parameters: Values of its parameters.
        environment: Environment variables in addition to those of the process.
        secrets: Secrets by ``scope/key``; one that isn't given need not exist.
        spark: Spark settings that win over the pipeline's.
        replace: What stands for nodes, where it isn't rows of the steps.
        name: The test's name.
        place: Where the test stands.

    Returns:
        What it came to, when all is as the steps say.

    Raises:
        StepsFailed: When it isn't.
    """
    __tracebackhide__ = True  # a failed test is about its steps, and not about this function
    place = place or NOWHERE
    outcome = TestOutcome(name, place.file, place)
    checked = dict.fromkeys(step.target for step in steps if isinstance(step, CheckRows | CheckWatermark))
    chosen = [*targets, *(name for name in checked if name and (not targets or is_output(name)))]
    said = Circumstances(
        profile=profile,
        parameters=parameters or {},
        environment=environment or {},
        secrets=secrets or {},
        spark=spark or {},
        replace=replace or {},
        targets=dict.fromkeys(chosen, place),
        feeds=[feed for step in steps for feed in step.feeds()],
        place=place,
    )

    def take(course: Course) -> None:
        running = Steps(course.prepared, course.engine, course.outcome, course.again)
        for number, step in enumerate(steps, 1):
            with running.step(number, place) as found:
                step.take(running, found)
            if not found.ok:
                return

    run(pipeline, said, session, outcome, take)
    _judge_the_start(steps, outcome)
    if not outcome.ok:
        raise StepsFailed(outcome, report(steps, outcome))
    return outcome


def _judge_the_start(steps: Sequence[Step], outcome: TestOutcome) -> None:
    """A first step that expects a failure has its way, too, where the pipeline isn't even right."""
    first = next(iter(steps), None)
    if not isinstance(first, ExpectFailure) or outcome.steps or any(map(is_of_the_test, outcome.diagnostics)):
        return
    outcome.mismatches += failure_mismatch(first.code, first.message, outcome.diagnostics, outcome.place)
    outcome.expected_failure = None if outcome.mismatches else first.code


def report(steps: Sequence[Step], outcome: TestOutcome) -> str:
    """The steps with an arrow at the one that went wrong, why it did, and what the targets got.

    Args:
        steps: The steps.
        outcome: What they came to.
    """
    wrong = outcome.wrong or (outcome.steps[-1] if outcome.steps and outcome.diagnostics else None)
    at = wrong.number if wrong else 0
    lines = [f"step {at} of {len(steps)} went wrong" if at else "the steps can't be taken"]
    lines += [f"{'-->' if number == at else '   '} {number}. {step}" for number, step in enumerate(steps, 1)]
    lines += ["", *explanation(outcome)]
    for captured in wrong.captured.values() if wrong else ():
        lines += ["", *_shown(captured, outcome.time_zone)]
    return "\n".join(lines).rstrip()


def _shown(captured: Captured, time_zone: str) -> list[str]:
    """What a target got."""
    shower = Shower(time_zone)
    rows = captured.rows.rows
    lines = [f"{called(captured.target)} got {len(rows)} row{'' if len(rows) == 1 else 's'}"]
    lines += [f"    {flow(shower.row(row, captured.rows.fields))}" for row in rows[:_MOST_SHOWN]]
    return [*lines, f"    and {len(rows) - _MOST_SHOWN} more"] if len(rows) > _MOST_SHOWN else lines
