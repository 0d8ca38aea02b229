"""Edits drawn at random, on real Spark: always the same few, and with `--long` more, of another seed each time.

`scripts/differential --edits N` tries many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.plugins import load_registry
from tests.differential.edits.run import EditTally, try_edits
from tests.differential.edits.truth import Experiments
from tests.samples import examples, seed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COUNT = examples(6, 60)
# A rule that one edit in hundreds breaks must not stop somebody else's work; the long run draws anew.
SEED = "" if examples(0, 1) else "e2"


def test_no_edit_is_called_better_than_it_is(spark: SparkSession, tmp_path: Path) -> None:
    tally = EditTally()
    experiments = Experiments(spark, tmp_path)
    registry = load_registry()
    number = 0
    try:
        while tally.told < COUNT:
            for tried in try_edits(f"{SEED or seed()}:{number}", experiments, registry, most=2):
                tally.add(tried)
            number += 1
    finally:
        experiments.close()
    report = "\n".join([f"seed {SEED or seed()}", *tally.lines()])
    print(report)
    assert not tally.dangerous, report
