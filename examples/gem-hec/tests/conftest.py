"""What the tests share: a collector on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from collector_server import LocalCollector, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture
def collector() -> Iterator[LocalCollector]:
    """A collector that gets what a test sends."""
    with serving() as found:
        yield found


@pytest.fixture
def session(gem_bundle_spark: SparkSession) -> SparkSession:
    """Spark, which reads and writes times as UTC."""
    gem_bundle_spark.conf.set("spark.sql.session.timeZone", "UTC")
    return gem_bundle_spark
