"""The pytest plugin: fixtures for tests of pipelines, and declared tests as items.

pytest imports it in every run where gem-bundle is installed, so it imports nothing that costs.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

# As `gem_bundle.testing.conformance.suite` has it, which a run without gems doesn't import.
_TOLD = "told by the conformance suite"


def pytest_configure(config: pytest.Config) -> None:
    """Make known the mark of the conformance tests that need a session."""
    config.addinivalue_line("markers", "spark: needs a JVM (Java 17)")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect files of declared tests: ``orders.test.yaml``."""
    from gem_bundle.testing.declared.files import is_test_file

    if not is_test_file(file_path):
        return None
    from gem_bundle.testing.declared.collect import DeclaredFile

    found: pytest.Collector = DeclaredFile.from_parent(parent, path=file_path)
    return found


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Show which tests of the conformance suite are waived, and why; and what it tells besides."""
    waived = [
        (report.nodeid, report.wasxfail.removeprefix("waived: "))
        for report in terminalreporter.getreports("xfailed")
        if getattr(report, "wasxfail", "").startswith("waived: ")
    ]
    if waived:
        terminalreporter.section("waived conformance tests")
        for nodeid, reason in waived:
            terminalreporter.line(f"{nodeid}: {reason}")
    told = [
        (report.nodeid, text)
        for report in terminalreporter.getreports("passed")
        for name, text in report.user_properties
        if name == _TOLD
    ]
    if told:
        terminalreporter.section(_TOLD)
        for nodeid, text in told:
            terminalreporter.line(f"{nodeid}: {text}")


@pytest.fixture(scope="session")
def gem_bundle_spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session that all tests of pipelines share.

    It is what your own fixture ``spark`` gives, where you have one of the scope ``session``; else a small
    local Spark that is started with the first test that needs it.
    """
    own = _own_session(request)
    if own is not None:
        yield own
        return
    from gem_bundle.testing.declared.collect import prepared_tests
    from gem_bundle.testing.running.session import open_session_for

    items = request.session.items
    conformance = sys.modules.get("gem_bundle.testing.conformance.suite")
    opened = open_session_for(
        prepared_tests(items),
        folder=request.config.rootpath,
        more=conformance.session_needs(items) if conformance else (),
    )
    yield opened.spark
    opened.close()


def _own_session(request: pytest.FixtureRequest) -> Any:
    try:
        return request.getfixturevalue("spark")
    except pytest.FixtureLookupError:
        return None


@pytest.fixture
def gem_bundle_steps(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Run a list of steps with a pipeline: see `gem_bundle.testing.steps`.

    It is called as ``gem_bundle_steps(pipeline, steps, …)`` with the arguments of
    `gem_bundle.testing.run_steps`. The path of a pipeline file is relative to the test's file.
    """
    from gem_bundle.diagnostics import Place
    from gem_bundle.testing.running.session import late_session
    from gem_bundle.testing.steps import run_steps

    def run(pipeline: Any, steps: Any, **said: Any) -> Any:
        __tracebackhide__ = True
        if isinstance(pipeline, str | os.PathLike):
            pipeline = request.path.parent / pipeline
        line = request.node.location[1]
        place = Place(str(request.path), (line or 0) + 1)

        session = late_session(request)
        return run_steps(pipeline, steps, session, name=request.node.nodeid, place=place, **said)

    return run
