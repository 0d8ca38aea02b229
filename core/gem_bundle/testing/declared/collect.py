"""Declared tests as items of pytest: ``orders.test.yaml`` is collected like a module of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.testing.declared.load import load_tests
from gem_bundle.testing.declared.run import prepare_test, run_test
from gem_bundle.testing.running.report import explanation
from gem_bundle.testing.running.session import late_session

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from gem_bundle.testing.declared.load import DeclaredTest
    from gem_bundle.testing.running.outcome import TestOutcome
    from gem_bundle.testing.running.prepared import Prepared


class DeclaredTestFailed(Exception):  # noqa: N818 (pytest shows its name)
    """A declared test has failed.

    Args:
        outcome: What it came to.
    """

    def __init__(self, outcome: TestOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome

    def __str__(self) -> str:
        return "\n".join(explanation(self.outcome))


class DeclaredFile(pytest.File):
    """A test file; what is wrong with it is an error of the collection."""

    def collect(self) -> Iterator[pytest.Item]:
        """Its tests, each with its line in its name.

        Raises:
            CollectError: When there are errors in the file.
        """
        found = load_tests(self._shown())
        errors = [str(diagnostic) for diagnostic in found.diagnostics if diagnostic.is_error]
        if errors:
            raise self.CollectError("\n".join(errors))
        for test in found.tests:
            name = f"{test.place.line}: {test.name}"
            yield DeclaredItem.from_parent(self, name=name, callobj=_run, test=test)

    def _shown(self) -> str:
        """The file as a person would name it here."""
        current = self.config.invocation_params.dir
        return str(self.path.relative_to(current) if self.path.is_relative_to(current) else self.path)


def _run(request: pytest.FixtureRequest) -> None:
    """What pytest calls for each test: in this way it can use fixtures."""
    item = request.node
    assert isinstance(item, DeclaredItem)

    outcome = run_test(item.test, late_session(request))
    if not outcome.ok:
        raise DeclaredTestFailed(outcome)


class DeclaredItem(pytest.Function):
    """One declared test."""

    def __init__(self, *, test: DeclaredTest, **rest: Any) -> None:
        super().__init__(**rest)
        self.test = test

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Where the test stands, and what it is about."""
        return self.path, self.test.place.line - 1, self.test.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *rest: Any) -> Any:
        """Why the test failed, without Python's traceback."""
        if isinstance(excinfo.value, DeclaredTestFailed):
            return f"{self.test.place}: {self.test.name}\n{excinfo.value}"
        return super().repr_failure(excinfo, *rest)


def prepared_tests(items: list[pytest.Item]) -> Iterator[Prepared]:
    """The pipelines of the declared tests among the items, as far as they can run.

    Args:
        items: What was collected.
    """
    from gem_bundle.errors import PipelineError

    for item in items:
        if isinstance(item, DeclaredItem):
            try:
                yield prepare_test(item.test)
            except PipelineError:
                continue  # its test says so
