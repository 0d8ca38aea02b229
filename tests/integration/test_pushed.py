"""What stands behind state, or beside it, and gets into it: on real Spark, a few a day, and with `--long` all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.core.changes.carried import CARRIED
from tests.core.changes.let_through import LET_THROUGH
from tests.core.changes.nested import NESTED
from tests.core.changes.pushed import EDITS
from tests.core.changes.several import SEVERAL
from tests.core.changes.test_below import plan
from tests.differential.edits.truth import Experiments

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.core.changes.pushed import Pushed

pytestmark = pytest.mark.spark

OUTCOMES = {
    "skipped": "wrong",
    "again": "wrong",
    "mixed": "wrong",
    "refused": "refused",
    "continues": "continues",
    "from_now_on": "from_now_on",
}


@pytest.fixture
def experiments(spark: SparkSession, tmp_path: Path) -> Experiments:
    made = Experiments(spark, tmp_path)
    yield made
    made.close()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "edit",
    [*EDITS, *NESTED, *CARRIED, *SEVERAL, *LET_THROUGH],
    ids=lambda edit: re.sub(r"\W", "_", edit.name),
)
def test_what_is_said_is_what_spark_does(edit: Pushed, experiments: Experiments) -> None:
    before, after = map(plan, edit.versions())
    first = experiments.first(f"pushed#{edit.rows or 'dense0'}", before, "out")
    truth = experiments.of(first, after, "out")
    assert truth.outcome == OUTCOMES[edit.verdict], truth.reason
