"""Runs a declared test with the step engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle.errors import PipelineError
from gem_bundle.testing.declared.data import expected_rows, read_rows
from gem_bundle.testing.running.outcome import StepOutcome, TestOutcome
from gem_bundle.testing.running.prepared import Circumstances, Feed, Prepared, Replace, prepare
from gem_bundle.testing.running.runner import Course, failure_mismatch, is_of_the_test, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.testing.declared.load import Data, DeclaredStep, DeclaredTest
    from gem_bundle.testing.running.engine import Row

Given = dict[str, "list[Row]"]


def run_test(
    test: DeclaredTest, session: Callable[[], SparkSession], *, keep_going: bool = False
) -> TestOutcome:
    """Run one test. Whatever goes wrong is in the outcome.

    Args:
        test: The test.
        session: Gives the session; it isn't asked for a test whose pipeline can't run.
        keep_going: Take all steps, also after one that didn't come to what was expected.
    """
    outcome = TestOutcome(test.name, test.file, test.place)
    run(test.pipeline, circumstances(test), session, outcome, _Run(test, keep_going=keep_going).take)
    _judge_the_start(test, outcome)
    return outcome


def prepare_test(test: DeclaredTest) -> Prepared:
    """The pipeline of a test with its stand-ins; no session is needed.

    Raises:
        PipelineError: When the test's pipeline can't run.
    """
    return prepare(test.pipeline, circumstances(test))


def circumstances(test: DeclaredTest) -> Circumstances:
    """What a test says about its pipeline."""
    place = test.document.place
    # All targets run where a failure is all that is expected.
    named = dict.fromkeys(test.targets) | dict.fromkeys(
        name for step in test.steps for name in (*step.expect, *step.watermark) if name is not None
    )
    places = {name: _place_of_target(test, name) for name in named}
    feeds = [
        Feed(name, data.shape.schema, place(data.path), always=always) for name, data, always in _data(test)
    ]
    replaced = {
        name: Replace(
            schema=entry.shape.schema,
            gem=entry.shape.gem,
            options=entry.shape.options or {},
            real=entry.shape.real is not None,
            place=place(entry.path, key=True),
        )
        for name, entry in test.replace.items()
    }
    return Circumstances(
        profile=test.profile,
        parameters=test.parameters,
        environment=test.environment,
        secrets=test.secrets,
        spark=test.spark,
        replace=replaced,
        targets=places,
        feeds=feeds,
        place=test.place,
    )


def _place_of_target(test: DeclaredTest, name: str) -> Any:
    if name in test.targets:
        return test.document.place((*test.path, "targets", test.targets.index(name)))
    for step in test.steps:
        for key, there in (("expect", step.expect), ("watermark", step.watermark)):
            if name in there:
                return test.document.place((*step.path, key, name), key=True)
    return test.place


def _data(test: DeclaredTest) -> Iterator[tuple[str, Data, bool]]:
    """All rows that the test gives, by node, and whether they are there from the start."""
    for name, entry in test.replace.items():
        if entry.data is not None:
            yield name, entry.data, True
    for step in test.steps:
        for name, data in step.add.items():
            yield name, data, False


class _Run:
    """Takes the steps of a test, from the first one on whenever it is asked to."""

    def __init__(self, test: DeclaredTest, *, keep_going: bool) -> None:
        self._test = test
        self._keep_going = keep_going
        self._given: tuple[Given, list[Given]] | None = None
        self._expected: dict[tuple[int, str], list[Any] | None] = {}

    def take(self, course: Course) -> None:
        """Take the steps, by default until one goes wrong.

        Raises:
            PipelineError: When the rows of the test can't be given; then no step is taken.
        """
        if self._given is None:
            self._given = self._read(course)
        from_start, by_step = self._given
        for name, rows in from_start.items():
            course.engine.add(name, rows)
        for step, given in zip(self._test.steps, by_step, strict=True):
            code = step.fails.code if step.fails else None
            with course.step(step.number, step.place, code) as found:
                self._step(course, step, given, found)
            if found.failures or not (found.ok or self._keep_going):
                return
        if not self._test.steps:
            # What was to keep the pipeline from starting wasn't found by its check.
            with course.step(1, self._test.place) as found:
                course.process(found)
            course.outcome.steps.clear()
            course.outcome.diagnostics += found.failures

    def _step(self, course: Course, step: DeclaredStep, given: Given, found: StepOutcome) -> None:
        if step.restart:
            course.restart()
        if step.clock is not None:
            course.set_clock(step.clock, self._test.document.place((*step.path, "clock")))
        for name, rows in given.items():
            course.engine.add(name, rows)
        course.process(found)
        if step.fails is not None:
            found.mismatches += failure_mismatch(
                step.fails.code, step.fails.message, found.failures, step.fails.place
            )
            return
        if found.failures:
            return
        for name, delivery in step.expect.items():
            expected = delivery.expected(self._expected[step.number, name])
            found.mismatches += course.compare_rows(name, expected, found.captured[name], delivery.place)
        for target, wanted in step.watermark.items():
            place = self._test.document.place((*step.path, "watermark"), key=True)
            found.mismatches += course.compare_watermark(found.captured, target, wanted, place)

    def _read(self, course: Course) -> tuple[Given, list[Given]]:
        """All rows of the test, those that are there from the start and those of each step."""
        wrong: list[Diagnostic] = []

        def rows_of(name: str, data: Data) -> list[Row]:
            try:
                return read_rows(data, course.prepared.fed[name].fields, self._test, course.time_zone)
            except PipelineError as error:
                wrong.extend(error.diagnostics)
                return []

        for step in self._test.steps:
            for target, delivery in step.expect.items():
                try:
                    self._expected[step.number, target] = expected_rows(delivery, self._test)
                except PipelineError as error:
                    wrong.extend(error.diagnostics)

        from_start = {
            name: rows_of(name, entry.data)
            for name, entry in self._test.replace.items()
            if entry.data is not None and name in course.prepared.fed
        }
        by_step = [
            {name: rows_of(name, data) for name, data in step.add.items()} for step in self._test.steps
        ]
        if wrong:
            raise PipelineError(wrong)
        return from_start, by_step


def _judge_the_start(test: DeclaredTest, outcome: TestOutcome) -> None:
    """Compare what kept the pipeline from starting with what was to keep it from that.

    A first step that was to fail has done so, too, where its pipeline isn't even right.
    """
    if any(is_of_the_test(found) for found in outcome.diagnostics):
        return
    if test.fails is not None:
        found = failure_mismatch(test.fails.code, test.fails.message, outcome.diagnostics, test.fails.place)
        outcome.mismatches += found
        outcome.expected_failure = None if found else test.fails.code
        return
    first = test.steps[0]
    if first.fails is not None and not outcome.steps and any(d.is_error for d in outcome.diagnostics):
        step = StepOutcome(first.number, first.place, expected_failure=first.fails.code)
        step.failures, outcome.diagnostics = outcome.diagnostics, []
        step.mismatches = failure_mismatch(
            first.fails.code, first.fails.message, step.failures, first.fails.place
        )
        outcome.steps.append(step)
