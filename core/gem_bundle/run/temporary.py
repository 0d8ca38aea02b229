"""Checkpoints that Spark makes by itself, and that nobody needs afterwards."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_DELETE = "spark.sql.streaming.forceDeleteTempCheckpointLocation"


@contextmanager
def temporary_checkpoints(spark: SparkSession) -> Iterator[None]:
    """Let queries that are started without a checkpoint leave none, also when they fail."""
    before = spark.conf.get(_DELETE, None)
    spark.conf.set(_DELETE, True)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_DELETE)
        else:
            spark.conf.set(_DELETE, before)
