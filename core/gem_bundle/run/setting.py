"""Settings of a session that hold for a while."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def value_of(spark: SparkSession, key: str) -> str | None:
    """The value of a setting; None where a session has none, or keeps it to itself as serverless ones do.

    Args:
        spark: The session.
        key: The setting.
    """
    from pyspark.errors import PySparkException

    try:
        return spark.conf.get(key, None)
    except PySparkException:
        return None


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """Let a setting have a value, and afterwards the one that it had.

    Args:
        spark: The session.
        key: The setting.
        value: Its value meanwhile.
    """
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)
