"""A transform whose module imports Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame, functions

from tests.kit.wrong.right import Flag, TransformSuite


class Heavy(Flag):
    """Make everybody wait who only looks at it."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        return inputs[0].withColumn(self.options.name, functions.col("id") % 2 == 0)


class TestHeavy(TransformSuite):
    gem = Heavy
    caught_by = {"test_the_import_is_light"}  # noqa: RUF012
