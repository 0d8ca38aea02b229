"""What Spark keeps of a pipeline, beside what `plan` thinks that it keeps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.core.changes.kept import PIPELINES
from tests.core.changes.test_below import plan as plan_of
from tests.differential.edits.planned import Planning
from tests.differential.edits.shaped import difference, shapes_of, stores_in
from tests.integration.test_planned import pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.core.changes.kept import Kept

pytestmark = pytest.mark.spark


def test_what_is_thought_to_be_kept_is_compared_with_what_spark_keeps(
    spark: SparkSession, tmp_path: Path
) -> None:
    planning, checkpoint = Planning(spark, tmp_path / "planned"), tmp_path / "checkpoint"
    for aggregate in ("count(*)", "avg(k)", "first(k)", "count(*) filter (where 1 = 2)"):
        plan = pipeline(aggregate)
        planning.plan_alone(plan, "out", checkpoint)
        (shape,) = shapes_of(plan, "out")
        stores = stores_in(checkpoint)
        assert difference([shape], stores) == ""
        assert "values" in difference([shape._replace(values=("string",))], stores)
        assert "keys" in difference([shape._replace(keys=("string", "int"))], stores)
    assert "operators" in difference([shape, shape], stores)


@pytest.mark.sample(6)
@pytest.mark.parametrize("kept", PIPELINES, ids=lambda kept: re.sub(r"\W", "_", kept.name))
def test_what_is_thought_to_be_kept_is_what_spark_keeps(
    kept: Kept, spark: SparkSession, tmp_path: Path
) -> None:
    plan, checkpoint = plan_of(kept.file), tmp_path / "checkpoint"
    Planning(spark, tmp_path / "planned").plan_alone(plan, "out", checkpoint)
    assert difference(shapes_of(plan, "out"), stores_in(checkpoint)) == ""
