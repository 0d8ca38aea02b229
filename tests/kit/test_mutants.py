"""The examples' own declared tests find what somebody breaks in the examples' pipelines.

Every mutant is one edit of an example, as a slip of the pen or a well-meant change would make it. All of
them run in one warm session, each only until a test fails.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.loader import load_file
from gem_bundle.testing.declared.files import declared_beside, find_test_files
from gem_bundle.testing.declared.load import load_tests
from gem_bundle.testing.declared.run import run_test
from gem_bundle.testing.running.report import explanation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from gem_bundle.testing.running.outcome import TestOutcome

EXAMPLES = Path(__file__).parents[2] / "examples"
FLIGHTS = "flights/flights.yaml"
WORST = "flights/worst_hours.yaml"
KAFKA = "flights_kafka/flights_kafka.yaml"


class Mutant(NamedTuple):
    """One edit of an example.

    Args:
        about: What is broken.
        pipeline: The example.
        before: What stands in it, once.
        after: What takes its place.
        said: What a test says that finds it.
    """

    about: str
    pipeline: str
    before: str
    after: str
    said: str


MUTANTS = [
    Mutant("no watermark", FLIGHTS, "inputs: [timely, airlines]", "inputs: [scheduled, airlines]", "GB301"),
    Mutant("watermark shortened", FLIGHTS, "delay: 2 hours", "delay: 30 minutes", "the watermark is"),
    Mutant("watermark lengthened", FLIGHTS, "delay: 2 hours", "delay: 1 day", "the watermark is"),
    Mutant("inner join", FLIGHTS, "how: left", "how: inner", "1 row is missing"),
    Mutant("window too short", FLIGHTS, "duration: 1 hour", "duration: 30 minutes", "is unexpected"),
    Mutant("window too long", FLIGHTS, "duration: 1 hour", "duration: 2 hours", "missing"),
    Mutant(
        "window slides", FLIGHTS, "duration: 1 hour}", "duration: 1 hour, slide: 30 minutes}", "unexpected"
    ),
    Mutant("wrong key", FLIGHTS, "airport: origin", "airport: dest", "expected JFK, got MIA"),
    Mutant("a key less", FLIGHTS, "{airport: origin, airline: name}", "{airline: name}", "GB210"),
    Mutant(
        "inverted condition",
        FLIGHTS,
        "count_if(dep_time is null)",
        "count_if(dep_time is not null)",
        "cancelled",
    ),
    Mutant("early ones make up", FLIGHTS, "sum(greatest(dep_delay, 0))", "sum(dep_delay)", "minutes_late"),
    Mutant("smallest for largest", FLIGHTS, "max(dep_delay)", "min(dep_delay)", "longest_delay"),
    Mutant("dropped column", FLIGHTS, "        cancelled: cancelled\n", "", "there is no column `cancelled`"),
    Mutant(
        "not rounded", FLIGHTS, "round(mean_delay, 1)", "mean_delay", "mean_delay  expected 8.3, got 8.33333"
    ),
    Mutant("end for start", FLIGHTS, "hour: window.start", "hour: window.end", "hour"),
    Mutant("output mode", FLIGHTS, "output_mode: append", "output_mode: complete", "3 rows are unexpected"),
    Mutant("minutes as hours", FLIGHTS, "day, hour, minute, 0", "day, hour, 0, minute", "the watermark is"),
    Mutant("smallest first", WORST, "minutes_late desc", "minutes_late", "in another order"),
    Mutant(
        "no order of equals",
        WORST,
        "[minutes_late desc, hour, airport, airline]",
        "[minutes_late desc, airport, hour, airline]",
        "in another order",
    ),
    Mutant("limit before order", WORST, "input: worst_first", "input: hours", "order"),
    Mutant("twenty for ten", WORST, "rows: 10", "rows: 20", "10 rows expected, 20 came"),
    Mutant("watermark shortened", KAFKA, "delay: 7 days", "delay: 3 days", "the watermark is"),
    Mutant("wrong key", KAFKA, "airport: origin", "airport: carrier", "airport"),
    Mutant("wrong type", KAFKA, "dep_delay int", "dep_delay boolean", "GB"),
    Mutant("wrong event time", KAFKA, "column: value\n", "column: key\n", "the watermark is"),
    Mutant("window too long", KAFKA, "duration: 1 hour", "duration: 1 day", "missing"),
    Mutant(
        "lost branch",
        KAFKA,
        "  topic:\n    gem: kafka\n    input: hours",
        "  topic:\n    gem: kafka\n    input: hourly",
        "topic",
    ),
]


def outcomes(pipeline: Path, spark: SparkSession) -> Iterator[TestOutcome]:
    """What the tests beside a pipeline come to, one after the other."""
    tests = declared_beside(pipeline)
    assert tests is not None
    file = load_tests(tests)
    assert file.diagnostics == ()
    for test in file.tests:
        yield run_test(test, lambda: spark)


def test_every_example_has_tests_of_its_own() -> None:
    tests = set(find_test_files(EXAMPLES))
    pipelines = [
        path
        for path in EXAMPLES.rglob("*.yaml")
        if str(path) not in tests and path.read_text(encoding="utf-8").startswith("pipeline:")
    ]

    assert len(pipelines) >= 3
    assert [path.name for path in pipelines if declared_beside(path) not in tests] == []


@pytest.mark.spark
@pytest.mark.parametrize("pipeline", [FLIGHTS, WORST, KAFKA])
def test_the_examples_pass_their_tests(pipeline: str, spark: SparkSession) -> None:
    found = list(outcomes(EXAMPLES / pipeline, spark))

    assert found
    assert [line for outcome in found for line in explanation(outcome)] == []
    assert all(outcome.ok for outcome in found)


def test_there_are_mutants_of_every_kind() -> None:
    assert len({(mutant.pipeline, mutant.before, mutant.after) for mutant in MUTANTS}) == len(MUTANTS) >= 15


@pytest.mark.spark
@pytest.mark.sample(2, by=lambda mutant: mutant.pipeline)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{Path(m.pipeline).stem}: {m.about}")
def test_a_mutant_fails_the_examples_tests(mutant: Mutant, spark: SparkSession, tmp_path: Path) -> None:
    original = EXAMPLES / mutant.pipeline
    text = original.read_text(encoding="utf-8")
    assert text.count(mutant.before) == 1
    pipeline = tmp_path / original.name
    pipeline.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
    tests = declared_beside(original)
    assert tests is not None
    shutil.copy(tests, tmp_path)
    # A mutant that isn't even a pipeline proves nothing, unless it is the check that is to say so.
    if not mutant.said.startswith("GB"):
        checked = check_definition(load_file(pipeline))
        assert [found for found in checked.diagnostics if found.is_error] == []

    failed = next(outcome for outcome in outcomes(pipeline, spark) if not outcome.ok)

    assert mutant.said in "\n".join(explanation(failed))
