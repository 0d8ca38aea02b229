"""Checkpoints that Spark makes by itself, and that nobody needs afterwards."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gem_bundle.run.setting import setting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_DELETE = "spark.sql.streaming.forceDeleteTempCheckpointLocation"


@contextmanager
def temporary_checkpoints(spark: SparkSession) -> Iterator[None]:
    """Let queries that are started without a checkpoint leave none, also when they fail."""
    with setting(spark, _DELETE, "true"):
        yield
