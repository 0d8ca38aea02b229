"""A run of declared tests from files: which ones, in one session, one after the other."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from gem_bundle.errors import PipelineError
from gem_bundle.testing.declared.load import load_tests
from gem_bundle.testing.declared.run import prepare_test, run_test

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.testing.declared.load import DeclaredTest, TestFile
    from gem_bundle.testing.running.outcome import TestOutcome


class View(Protocol):
    """Who is told how a run of tests goes on."""

    def broken(self, file: TestFile) -> None:
        """A file has errors; its other tests still run."""

    def starting_spark(self) -> None:
        """Spark is started, which takes some seconds."""

    def running(self, test: DeclaredTest, number: int, total: int) -> None:
        """A test begins."""

    def ended(self, outcome: TestOutcome) -> None:
        """A test has ended."""


@dataclass
class Suite:
    """Tests of some files.

    Args:
        files: The files.
        tests: The tests that were chosen.
        outcomes: What they came to, by file, as far as they ran.
    """

    files: list[TestFile]
    tests: list[DeclaredTest]
    outcomes: dict[str, list[TestOutcome]] = field(default_factory=dict)

    @staticmethod
    def load(files: Iterable[str | os.PathLike[str]], keywords: Sequence[str] = ()) -> Suite:
        """Read test files.

        Args:
            files: Their names.
            keywords: Choose the tests in whose file or name all words of one of these are.
        """
        found = [load_tests(file) for file in files]
        return Suite(found, [test for file in found for test in file.tests if _is_chosen(test, keywords)])

    @property
    def broken(self) -> dict[str, list[Diagnostic]]:
        """What is wrong with the files themselves."""
        errors = {file.file: [d for d in file.diagnostics if d.is_error] for file in self.files}
        return {file: found for file, found in errors.items() if found}

    @property
    def ok(self) -> bool:
        """Whether every test that ran has passed, and all files could be read."""
        return not self.broken and all(outcome.ok for found in self.outcomes.values() for outcome in found)

    def run(self, view: View, *, stop_early: bool = False, keep_going: bool = False) -> None:
        """Run the tests, in one session that is opened when the first of them needs it.

        Args:
            view: Who is told.
            stop_early: Stop after the first test that fails.
            keep_going: Take all steps of a test, also after one that didn't come to what was expected.

        Raises:
            GemError: When Spark can't be started.
        """
        for file in self.files:
            if file.file in self.broken:
                view.broken(file)
        with ExitStack() as stack:
            session = _session(self.tests, view, stack)
            for number, test in enumerate(self.tests, 1):
                view.running(test, number, len(self.tests))
                outcome = run_test(test, session, keep_going=keep_going)
                self.outcomes.setdefault(test.file, []).append(outcome)
                view.ended(outcome)
                if stop_early and not outcome.ok:
                    return


def _is_chosen(test: DeclaredTest, keywords: Sequence[str]) -> bool:
    text = f"{test.file} {test.name}".lower()
    return not keywords or any(all(word in text for word in words.lower().split()) for words in keywords)


def _session(tests: Sequence[DeclaredTest], view: View, stack: ExitStack) -> Callable[[], SparkSession]:
    """Gives the session that all tests share."""
    opened: list[SparkSession] = []

    def session() -> SparkSession:
        if not opened:
            from gem_bundle.testing.running.session import open_session_for

            view.starting_spark()
            prepared = []
            for test in tests:
                try:
                    prepared.append(prepare_test(test))
                except PipelineError:
                    continue  # it is said when the test runs
            found = open_session_for(prepared, folder=tests[0].folder)
            stack.callback(found.close)
            opened.append(found.spark)
        return opened[0]

    return session
