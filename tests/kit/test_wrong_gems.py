"""The conformance suite finds planted faults: each wrong gem fails the tests meant to catch it, and no other.

A gem that is wrong only in what it says of itself can't fail a test of what it does: those that read
and write run for gems whose fault shows there.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from gem_bundle.testing.conformance import GemConformance

FOLDER = Path(__file__).parent / "wrong"
MODULES = sorted(file.stem for file in FOLDER.glob("*.py") if file.stem != "__init__")


class Outcomes:
    """What came of the tests of another run of pytest in this process: a plugin of that run."""

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}
        self.passed: set[str] = set()
        self.waived: set[str] = set()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that can't be collected is no caught gem."""
        assert not report.failed, report.longreprtext

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what came of each test by its name."""
        name = report.nodeid.partition("::")[2]
        if hasattr(report, "wasxfail"):
            self.waived.add(name)
        elif report.failed:
            self.failed[name] = report.longreprtext
        elif report.when == "call":
            self.passed.add(name)


def suites() -> Iterator[tuple[str, type[GemConformance]]]:
    """The suites of the wrong gems, with the module that each is in."""
    for name in MODULES:
        module = import_module(f"tests.kit.wrong.{name}")
        for attribute, found in vars(module).items():
            if attribute.startswith("Test") and found.__module__ == module.__name__:
                yield name, found


SUITES = list(suites())


def needs_spark(suite: Any, test: str) -> bool:
    return any(mark.name == "spark" for mark in getattr(getattr(suite, test), "pytestmark", ()))


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession, request: pytest.FixtureRequest) -> Outcomes:
    """All suites that are asked about, in one run: one start of pytest, and one session."""
    found = Outcomes()

    given = ModuleType("given")  # pytest looks for fixtures in modules and classes
    given.spark = pytest.fixture(scope="session", name="spark")(lambda: spark)  # type: ignore[attr-defined]
    wanted = []
    asked = {
        item.callspec.params["suite"] for item in request.session.items if "outcomes" in item.fixturenames
    }  # type: ignore[attr-defined]
    for module, suite in SUITES:
        if suite not in asked:
            continue
        runs = not suite.caught_by or any(needs_spark(suite, test) for test in suite.caught_by)  # type: ignore[attr-defined]
        wanted += [
            f"{FOLDER / module}.py::{suite.__name__}::{test}"
            for test in names_of_tests(suite)
            if runs or not needs_spark(suite, test)
        ]
    root = Path(__file__).parents[2]
    quiet = ["-p", "no:terminal", "-p", "no:cacheprovider", "-o", "addopts=", "--noconftest"]
    quiet += ["--assert=plain"]  # to rewrite gems that this run has imported already is too late
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")  # no gem here is wrong in how rows are spread
    try:
        pytest.main(
            [*quiet, "-c", str(root / "pyproject.toml"), "--rootdir", str(root), *wanted],
            [found, given],
        )
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    return found


def names_of_tests(suite: type[GemConformance]) -> list[str]:
    return [name for name in dir(suite) if name.startswith("test_") and callable(getattr(suite, name))]


def test_there_are_enough_of_them() -> None:
    assert len([suite for _, suite in SUITES if suite.caught_by]) >= 12  # type: ignore[attr-defined]


@pytest.mark.spark
@pytest.mark.sample(2, by=lambda module, suite: (module, bool(suite.caught_by)))
@pytest.mark.parametrize(("module", "suite"), SUITES, ids=[suite.__name__ for _, suite in SUITES])
def test_what_catches_it(outcomes: Outcomes, module: str, suite: type[GemConformance]) -> None:
    failed = {
        name.rpartition("::")[2]: text
        for name, text in outcomes.failed.items()
        if name.split("::")[0] == suite.__name__
    }
    assert set(failed) == suite.caught_by, "\n\n".join(f"{name}:\n{text}" for name, text in failed.items())  # type: ignore[attr-defined]
    assert any(name.startswith(f"{suite.__name__}::") for name in outcomes.passed)
    for text in failed.values():
        # A sentence for the gem's author, or the gem's own exception: never the suite's.
        assert text.strip()
