"""What all tests share: the project settings they run with, one Spark session, one Kafka broker."""

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import claims, local_files, plans, samples, spark_classes, workers
from tests import connect_server as places
from tests.browser import browser  # noqa: F401 (a fixture for all tests)
from tests.connect_server import connect_server  # noqa: F401 (a fixture for all tests)
from tests.guard import Guard
from tests.kafka_broker import kafka, kafka_sasl  # noqa: F401 (fixtures for all tests)
from tests.mariadb_server import mariadb  # noqa: F401 (a fixture for all tests)
from tests.postgres_server import postgres  # noqa: F401 (a fixture for all tests)
from tests.rest_service import rest_service  # noqa: F401 (a fixture for all tests)
from tests.s3_server import s3  # noqa: F401 (a fixture for all tests)
from tests.schema_registry import schema_registry  # noqa: F401 (a fixture for all tests)
from tests.warm_spark import warm_spark  # noqa: F401 (a fixture for all tests)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pyspark.sql import SparkSession

# Before anything resolves jars, in this process or in one that a test starts.
os.environ["GEM_BUNDLE_SETTINGS"] = str(Path(__file__).with_name("gem-bundle.toml"))
# What a command line says wins.
os.environ.setdefault("JAVA_TOOL_OPTIONS", spark_classes.java_options())

DELTA = "io.delta:delta-spark_{spark_minor}_{scala}:4.4.0"
KAFKA = "org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}"
AVRO = "org.apache.spark:spark-avro_{scala}:{spark}"
POSTGRES = "org.postgresql:postgresql:42.7.14"
MARIADB = "org.mariadb.jdbc:mariadb-java-client:3.5.11"
MYSQL = "com.mysql:mysql-connector-j:26.10.0"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-{spark_minor}_{scala}:1.11.0"
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the options of samples: only a conftest is asked for its options early enough."""
    samples.add_options(parser)
    claims.add_options(parser)
    places.add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set up what decides on which tests run, where, and what they may start."""
    samples.decide(config)
    for plugin in (samples, workers, Guard()):
        config.pluginmanager.register(plugin)
    if config.option.claims is not None:
        config.pluginmanager.register(claims.Claims(config.option.claims))
    # PySpark 4.2 says, when it first makes a UDF, that it has its doubts about pandas 3.
    config.addinivalue_line(
        "filterwarnings", "ignore:PySpark does not yet fully support pandas:FutureWarning"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> "Generator[None, object, object]":
    """Collect tests without the garbage collector: nearly all that is made stays, and it would walk through it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what was collected to itself: the garbage collector would walk through thousands of tests ever again.

    Only where tests that start something are left out: those have sockets and sessions that wait for the collector.
    """
    if session.config.option.markexpr:
        gc.set_threshold(100_000, 50, 1000)
        gc.freeze()


@pytest.fixture(scope="session")
def jars() -> list[Path]:
    """The jars of all formats and databases."""
    return resolved_jars()


def has_iceberg() -> bool:
    """Whether Iceberg has a release for the Spark of this place of the matrix: for 4.2 it has none yet."""
    from gem_bundle.check.stages.versions import TargetSpark
    from gem_table.catalog import missing_iceberg

    return not TargetSpark(None).is_told(missing_iceberg())


def has_processors_of_rows() -> bool:
    """Whether the Spark of this place of the matrix takes processors of rows: 4.0 has those of data frames only."""
    from gem_bundle.check.stages.versions import TargetSpark

    return not TargetSpark(None).lacks("4.1")


def resolved_jars() -> list[Path]:
    """The jars of all formats and databases, in this project's versions; of Iceberg where it has any."""
    found = jars_of(DELTA, KAFKA, AVRO, POSTGRES, MARIADB, *([ICEBERG] if has_iceberg() else []))
    # Without the protobuf of its other interface, which nobody uses here.
    return [*found, *(jar for jar in jars_of(MYSQL) if "mysql" in jar.name)]


def jars_of(*coordinates: str) -> list[Path]:
    """Jars by coordinates, of the Spark that is installed, with what they need."""
    from gem_bundle.run.jars import fill, resolve, spark_version
    from gem_bundle.settings import load_settings

    settings = load_settings(Path(__file__))
    found = resolve(
        [fill(coordinate, spark_version=spark_version()) for coordinate in coordinates],
        overrides=settings.overrides,
        repositories=settings.repositories,
    )
    return [jar.path for jar in found]


@pytest.fixture(scope="session")
def user_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on Python's path, on the driver and on executors, for modules that a test writes.

    Give them names that no other test uses.
    """
    return tmp_path_factory.mktemp("user_modules")


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest,
    jars: list[Path],
    user_modules: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> "Iterator[SparkSession]":
    """The session that all tests in this process share, started as a run starts it.

    Delta is its catalog, Kafka and Avro are there. Spark's log is `spark.log` in its folder. With `--connect` it
    is one over Spark Connect.
    """
    if places.is_over_connect(request.config):
        with places.connected(request) as session:
            yield session
        return
    from gem_bundle.run.session import SessionRequest, open_session
    from gem_delta.connection import LOCAL_SETTINGS

    folder = tmp_path_factory.mktemp("spark")
    opened = open_session(
        SessionRequest(
            app_name="gem-bundle-tests",
            settings={
                "spark.master": "local[2]",
                "spark.driver.memory": "1g",
                **plans.settings(),
                # Plans over two partitions don't get better by planning again behind each shuffle; streams don't.
                "spark.sql.adaptive.enabled": "false",
                # For each plan Spark makes a text that somebody may look at in its pages, where there are any.
                "spark.sql.ui.explainMode": "simple",
                "spark.sql.session.timeZone": "UTC",
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                # The metastore of saved tables, and Derby's log, which are else in the current folder.
                # Thousands of tests make Spark's analyser refuse something, and PySpark asks for each
                # stack trace as a text: with hundreds of lines that takes longer than the analysis.
                "spark.driver.extraJavaOptions": (
                    f"-Dderby.system.home={folder} -XX:MaxJavaStackTraceDepth=40"
                ),
            },
            gem_settings=DELTA_SETTINGS,
            local_settings={**LOCAL_SETTINGS, "spark.databricks.delta.snapshotPartitions": "1"},
            jars=[*jars, *local_files.jars()],
            module_folders=[user_modules],
            spark_log=folder / "spark.log",
            brief=True,
        )
    )
    local_files.take(opened.spark)
    yield opened.spark
    opened.close()
