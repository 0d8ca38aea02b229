"""What the tests share: a Redis server."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from redis_server import RedisServer, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server, open to all."""
    with serving(tmp_path_factory.mktemp("redis")) as found:
        yield found


@pytest.fixture
def key() -> str:
    """The key of a stream that no other test has."""
    return f"orders-{uuid4().hex[:8]}"


@pytest.fixture
def session(gem_bundle_spark: SparkSession) -> SparkSession:
    """Spark, which reads and writes times as UTC."""
    gem_bundle_spark.conf.set("spark.sql.session.timeZone", "UTC")
    return gem_bundle_spark
