"""A transform that asks Spark's JVM by a name that stands nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.kit.wrong.right import Flag, TransformSuite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class AsksInSecret(Flag):
    """Put the name of what it asks for together while it runs."""

    def apply(self, *inputs: DataFrame) -> DataFrame:
        assert getattr(inputs[0], "".join(["_j", "df"])) is not None
        return super().apply(*inputs)


class TestAsksInSecret(TransformSuite):
    gem = AsksInSecret
    caught_by = {"test_no_private_spark_api_in_use"}  # noqa: RUF012
