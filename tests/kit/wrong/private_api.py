"""A transform that asks Spark's JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.kit.wrong.right import Flag, TransformSuite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class AsksTheJvm(Flag):
    """Ask the JVM what a public method tells too."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        df: Any = inputs[0]
        assert df._jdf is not None
        return super().apply(*inputs)


class TestAsksTheJvm(TransformSuite):
    gem = AsksTheJvm
    caught_by = {"test_no_private_spark_api_in_the_code", "test_no_private_spark_api_in_use"}  # noqa: RUF012
