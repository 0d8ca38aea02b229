"""Kafka into Delta as a bundle under spark-submit: killed and submitted again, and submitted twice at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bundles.cluster import bare_environment
from tests.bundles.making import write_files
from tests.bundles.submitting import Submission, build
from tests.samples import a_killed_program, a_started_bundle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.kafka_broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FEW = 50
PIPELINE = f"""\
pipeline: clicks
parameters:
  brokers: {{type: list}}
  topic: {{type: string}}
  rows_per_trigger: {FEW}
sources:
  clicks:
    gem: kafka
    options:
      bootstrap_servers: ${{brokers}}
      subscribe: ["${{topic}}"]
      starting_offsets: earliest
      max_offsets_per_trigger: ${{rows_per_trigger}}
transforms:
  texts: {{gem: select, input: clicks, options: {{columns: {{id: cast(cast(value as string) as int)}}}}}}
targets:
  table: {{gem: delta, input: texts, trigger: {{processing_time: 100 milliseconds}}, options: {{path: out}}}}
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle, with its dependencies and its jars."""
    project = write_files(tmp_path_factory.mktemp("clicks"), {"clicks.yaml": PIPELINE})
    return build(project / "clicks.yaml")


@pytest.fixture
def submit(
    bundle: Path, bare_python: Path, tmp_path: Path, kafka: Broker, topic: str
) -> Callable[..., Submission]:
    """Starts the bundle where Python has only pyspark; its folder is `root`."""
    root = tmp_path / "root"
    root.mkdir()
    environment = bare_environment(bare_python, tmp_path / "home")
    given = ("-p", f"brokers={kafka.bootstrap}", "-p", f"topic={topic}")

    def start(name: str, *options: str) -> Submission:
        log = tmp_path / f"{name}.log"
        return Submission(bundle, *given, *options, environment=environment, folder=root, log=log)

    return start


@pytest.fixture
def topic(kafka: Broker) -> str:
    return kafka.new_topic("clicks", partitions=2)


def produce(kafka: Broker, topic: str, numbers: range) -> None:
    kafka.produce(topic, [str(number) for number in numbers])


def ids(spark: SparkSession, tmp_path: Path) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(str(tmp_path / "root/out")).collect())


@a_killed_program
def test_killed_halfway_and_submitted_again(
    submit: Callable[..., Submission], tmp_path: Path, spark: SparkSession, kafka: Broker, topic: str
) -> None:
    produce(kafka, topic, range(2000))
    with submit("killed") as killed:
        killed.until(2 * FEW)
        killed.kill()
    before = ids(spark, tmp_path)
    assert 2 * FEW <= len(before) < 2000, "it was killed halfway"
    produce(kafka, topic, range(2000, 2100))

    with submit("again", "--available-now", "-p", "rows_per_trigger=1000") as again:
        report = again.end()

    assert ids(spark, tmp_path) == list(range(2100))
    # It went on where the other one was: at most what was in the last micro-batch was read once more.
    read = report["totals"]["rows_in"]
    assert 2100 - len(before) <= read <= 2100 - len(before) + FEW


@a_started_bundle
def test_submitted_twice_at_once_one_works(
    submit: Callable[..., Submission], tmp_path: Path, spark: SparkSession, kafka: Broker, topic: str
) -> None:
    produce(kafka, topic, range(100))
    with submit("first") as first:
        first.until(FEW)
        with submit("kept", "--keep-alive") as kept:
            assert kept.wait() == 0, kept.said
        with submit("refused") as refused:
            assert refused.wait() == 1, refused.said
        produce(kafka, topic, range(100, 200))
        first.until(200)  # it works on, undisturbed
    assert "clicks is running already; nothing to do. target `table`: clicks 0.1.0+g" in kept.said
    assert "error[GB660]: `table` is being written by clicks 0.1.0+g" in refused.said
    for other in (kept, refused):
        assert '{"event"' not in other.said
    assert ids(spark, tmp_path) == list(range(200))
