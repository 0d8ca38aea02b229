"""Runs one test from end to end: what tests in files and tests in Python have in common."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import PipelineError
from gem_bundle.testing.rows.compare import compare
from gem_bundle.testing.running.engine import Engine, SplitError, StepError
from gem_bundle.testing.running.event_time import is_at, is_watermarked, moment, watermark_text
from gem_bundle.testing.running.outcome import Captured, Mismatch, Rows, StepOutcome
from gem_bundle.testing.running.prepared import Prepared, prepare
from gem_bundle.testing.running.session import session_for
from gem_bundle.testing.values import MisfitError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from pyspark.sql import SparkSession

    from gem_bundle.builder import Pipeline
    from gem_bundle.diagnostics import Place
    from gem_bundle.testing.rows.compare import Expected
    from gem_bundle.testing.running.outcome import TestOutcome
    from gem_bundle.testing.running.prepared import Circumstances

_ATTEMPTS = 5


class Course:
    """One test while it runs: its engine, its outcome, and the step it is at.

    Args:
        prepared: The pipeline.
        engine: What runs it.
        outcome: Where its steps go.
        again: Reads the pipeline anew, for a restart.
    """

    def __init__(
        self, prepared: Prepared, engine: Engine, outcome: TestOutcome, again: Callable[[], Prepared]
    ) -> None:
        self.prepared = prepared
        self.engine = engine
        self.outcome = outcome
        self.again = again
        self.time_zone = outcome.time_zone

    @contextmanager
    def step(self, number: int, place: Place, expected_failure: str | None = None) -> Iterator[StepOutcome]:
        """One step of the outcome, while it is taken."""
        found = StepOutcome(number, place, expected_failure=expected_failure)
        self.outcome.steps.append(found)
        began = time.monotonic()
        try:
            yield found
        finally:
            found.seconds = time.monotonic() - began

    def process(self, step: StepOutcome) -> None:
        """Let what was added arrive; what the targets got, or why it failed, goes to the step."""
        try:
            step.captured = self.engine.process()
        except StepError as failed:
            step.failures = failed.diagnostics

    def restart(self) -> None:
        """Stop the queries, and read the pipeline anew for those that start next."""
        self.engine.restart(self.again())

    def set_clock(self, time: str | datetime, place: Place) -> None:
        """Set the clock that processors go by.

        Args:
            time: The time, in the time zone of the session unless it names another.
            place: Where it stands.

        Raises:
            PipelineError: GB704 when it is no time, or an earlier one.
        """
        try:
            self.engine.set_clock(moment(time, self.time_zone))
        except ValueError as error:
            raise PipelineError([Diagnostic("GB704", "error", f"`{time}`: {error}", place=place)]) from None

    def compare_rows(
        self, target: str, expected: Expected, captured: Captured, place: Place
    ) -> list[Mismatch]:
        """What differs between what a target got and what was expected."""
        rows: Rows = captured.rows
        difference = compare(expected, rows.rows, rows.fields, self.time_zone)
        if difference is None:
            return []
        return [Mismatch("rows", difference.message, target, difference, place)]

    def compare_watermark(
        self, captured: Mapping[str, Captured], target: str | None, wanted: str, place: Place
    ) -> list[Mismatch]:
        """What targets have another watermark than was expected.

        Args:
            captured: What the targets got.
            target: The target that is meant; None for all whose queries have a watermark.
            wanted: Where it is expected.
            place: Where the expectation stands.

        Raises:
            PipelineError: GB704 when what is expected is no time.
        """
        try:
            at = moment(wanted, self.time_zone)
        except MisfitError as error:
            raise PipelineError([Diagnostic("GB704", "error", str(error), place=place)]) from None
        meant = [
            one
            for name, one in captured.items()
            if name == target or (target is None and (one.watermark or is_watermarked(self.prepared, name)))
        ]
        if not meant:
            message = f"no query has a watermark, and {wanted} was expected"
            return [Mismatch("watermark", message, None, None, place)]
        found = []
        for one in meant:
            if not is_at(one.watermark, at):
                there = watermark_text(one.watermark, self.time_zone)
                message = f"the watermark is {there or 'not there yet'}, and {wanted} was expected"
                found.append(Mismatch("watermark", message, one.target, None, place))
        return found


def run(
    pipeline: str | os.PathLike[str] | Pipeline,
    said: Circumstances,
    session: Callable[[], SparkSession],
    outcome: TestOutcome,
    steps: Callable[[Course], None],
) -> None:
    """Run a test.

    Args:
        pipeline: The pipeline.
        said: What the test says about it.
        session: Gives the session; it isn't asked for a pipeline that can't run.
        outcome: Where what it comes to goes.
        steps: Takes the steps; called again from the beginning where rows didn't arrive together.
    """
    began = time.monotonic()

    def timed_session() -> SparkSession:
        # That Spark starts with the first test is no business of that test.
        nonlocal began
        asked = time.monotonic()
        spark = session()
        began += time.monotonic() - asked
        return spark

    try:
        _run(pipeline, said, timed_session, outcome, steps)
    except PipelineError as error:
        outcome.diagnostics += error.diagnostics
    outcome.seconds = time.monotonic() - began


def _run(
    pipeline: Any,
    said: Circumstances,
    session: Callable[[], SparkSession],
    outcome: TestOutcome,
    steps: Callable[[Course], None],
) -> None:
    prepared = prepare(pipeline, said)
    spark = session()
    with session_for(spark, prepared, outcome.place) as (time_zone, notes):
        outcome.time_zone = time_zone
        outcome.diagnostics = list(notes)
        for _ in range(_ATTEMPTS):
            outcome.steps.clear()
            folder = tempfile.mkdtemp(prefix="gem-bundle-test-")
            try:
                with Engine(prepared, spark, Path(folder)) as engine:
                    steps(Course(prepared, engine, outcome, lambda: prepare(pipeline, said)))
            except SplitError:
                continue
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return
    message = f"{_ATTEMPTS} times, the rows of a step came in two micro-batches"
    hint = "The machine is too busy for what the test says about micro-batches; run fewer things at once."
    outcome.diagnostics.append(Diagnostic("GB707", "error", message, place=outcome.place, hint=hint))


def is_of_the_test(found: Diagnostic) -> bool:
    """Whether a problem is one of the test itself, and none that its pipeline could be expected to have."""
    return found.is_error and found.code.startswith("GB7")


def failure_mismatch(
    code: str, part: str | None, failures: Iterable[Diagnostic], place: Place
) -> list[Mismatch]:
    """What is wrong about a failure that was expected.

    Args:
        code: The code that was expected.
        part: A part of the message that was expected; None for any message.
        failures: What went wrong.
        place: Where the expectation stands.
    """
    errors = [failure for failure in failures if failure.is_error]
    if not errors:
        return [Mismatch("failure", f"it was to fail with {code}, and didn't fail", place=place)]
    alike = [failure for failure in errors if failure.code == code]
    if not alike:
        said = "; ".join(f"{failure.code}: {failure.message}" for failure in errors)
        return [Mismatch("failure", f"it was to fail with {code}, and failed with {said}", place=place)]
    if part is not None and not any(part in failure.message for failure in alike):
        message = f"it failed with {code}, but does not say `{part}`: {alike[0].message}"
        return [Mismatch("failure", message, place=place)]
    return []
