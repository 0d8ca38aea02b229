"""The checker's verdict and Spark's, over pipelines drawn at random: another seed with each run.

`scripts/differential` does the same in the long, as `scripts/test --long` has it do, and makes what it finds small.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gem_bundle.pipeline.document import Document
from gem_bundle.pipeline.loader import LoadOptions, load_values
from gem_bundle.plugins import load_registry
from tests.differential.cases import Case, load_cases
from tests.differential.compare import DIFFERENCES
from tests.differential.engine import asking, plan_of
from tests.differential.run import compare_all, comparison_in
from tests.differential.starting import Starter
from tests.samples import examples, seed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from gem_bundle.pipeline.plan import Plan
    from tests.differential.engine import Spark

pytestmark = pytest.mark.spark

COUNT = examples(90, 1000)
CASES = load_cases()
PROOFS = 3
# `scripts/differential` holds it to one in two hundred; a few hundred pipelines have some 100 targets with mistakes
# that aren't about streams, and the targets of one or two of those pipelines may be missed by chance.
MISSED = 0.03
BY_CHANCE = 3
# Of each kind there is enough. Of a thousand pipelines a fifth can't be analysed, and both other kinds are as many as
# pipelines or more than half of them; ninety may have a third of the first, but not half by any chance.
CANT_BE_ANALYSED = 0.5
OF_EACH_KIND = 0.25


def test_the_checker_says_what_spark_says(spark: SparkSession, tmp_path: Path) -> None:
    with comparison_in(spark, tmp_path, PROOFS) as comparison:
        tally = compare_all([f"{seed()}:{number}" for number in range(COUNT)], comparison)
    report = "\n".join([f"seed {seed()}", *tally.lines()])
    print(report)
    assert not tally.disagreements, report
    assert tally.missed_targets <= BY_CHANCE + MISSED * (tally.found + tally.missed_targets), report
    assert tally.pipelines == COUNT
    assert tally.unanalysable < CANT_BE_ANALYSED * COUNT
    accepted = sum(count for (_, outcome), count in tally.outcomes.items() if outcome == "accepted")
    refused = sum(count for (_, outcome), count in tally.outcomes.items() if outcome == "streaming")
    assert accepted > OF_EACH_KIND * COUNT
    assert refused > OF_EACH_KIND * COUNT


@pytest.fixture(scope="module")
def asked(spark: SparkSession) -> Iterator[Spark]:
    with asking(spark) as found:
        yield found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_spark_says_what_is_expected(case: Case, asked: Spark) -> None:
    verdicts = asked.verdicts(_plan(case))
    expected = {t: "accepted" if said.startswith("GB") else said for t, said in case.expect.items()}
    assert {target: verdict.outcome for target, verdict in verdicts.items()} == expected


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "case",
    [case for case in CASES if set(case.expect.values()) & set(DIFFERENCES)],
    ids=lambda case: case.name,
)
def test_what_only_the_checker_refuses_fails_when_it_runs(
    case: Case, spark: SparkSession, tmp_path: Path
) -> None:
    starter = Starter(spark, tmp_path)
    for target, code in case.expect.items():
        run = starter.start(_plan(case), target)
        assert DIFFERENCES[code].shown_by(run), str(run)


def _plan(case: Case) -> Plan:
    loaded = load_values(case.values, Document(case.name), Path("/drawn"), "", LoadOptions(environment={}))
    assert loaded.definition is not None
    plan = plan_of(loaded.definition, load_registry())
    assert plan is not None
    return plan
