"""Rejected rows from and in topics of a real Kafka: groups that are killed, replays, and what a group reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.loader import load_file
from gem_bundle.replay.api import Replayed, Wanted, replay
from gem_bundle.replay.counts import counts
from gem_bundle.run.options import RunOptions
from tests.gems.draining import forget_last_commit
from tests.integration.kill_series import kill_often
from tests.integration.pipelines import run, write_pipeline
from tests.integration.test_groups import FILES, MANY, ROWS, VALUE, assert_each_is_good_or_rejected
from tests.samples import a_killed_program, from_another_place, rejected_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.kafka_broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FROM_FILES = """
  texts: {gem: file, options: {format: parquet, path: texts, schema: value binary, max_files_per_trigger: 1}}
"""
FROM_KAFKA = """
  texts:
    gem: kafka
    options:
      bootstrap_servers: BROKERS
      subscribe: TOPIC
      starting_offsets: earliest
      max_offsets_per_trigger: LIMIT
"""


@a_killed_program
@pytest.mark.programs
def test_each_of_many_records_is_good_or_rejected_after_kills(
    spark: SparkSession, tmp_path: Path, kafka: Broker
) -> None:
    topic = kafka.new_topic("many", partitions=4)
    settings = {"kafka.bootstrap.servers": kafka.bootstrap, "topic": topic}
    spark.range(ROWS).selectExpr(VALUE).write.format("kafka").options(**settings).save()
    source = FROM_KAFKA.replace("BROKERS", kafka.bootstrap).replace("TOPIC", topic)
    source = source.replace("LIMIT", str(ROWS // FILES))
    assert FROM_FILES in MANY
    file = write_pipeline(tmp_path, MANY.replace(FROM_FILES, source))

    died = kill_often("run", file, "--available-now")

    assert run(file, available_now=True).ok, died
    assert_each_is_good_or_rejected(spark, tmp_path)
    offsets = spark.read.format("delta").load(str(tmp_path / "out/unread")).selectExpr("to_json(origin)")
    assert offsets.distinct().count() == 8 * ROWS // 1000, "each is another record"


SHOP = """
pipeline: shop
sources:
  orders:
    gem: kafka
    options: {bootstrap_servers: BROKERS, subscribe: ORDERS, starting_offsets: earliest, max_offsets_per_trigger: 5}
transforms:
  parsed:
    gem: from_json
    input: orders
    options: {column: value, schema: "id int not null, amount double", rejects: true}
  plausible: {gem: expect, input: parsed, options: {rules: {paid: amount > 0}}}
targets:
  good: {gem: delta, input: plausible, group: all, options: {path: good}}
  broken: {gem: kafka, input: parsed.rejected, options: {bootstrap_servers: BROKERS, topic: BROKEN}}
  unpaid: {gem: kafka, input: plausible.rejected, options: {bootstrap_servers: BROKERS, topic: UNPAID}}
"""


def again(file: Path, node: str, place: str, **wanted: Any) -> Replayed:
    return replay(
        lambda options: load_file(file, options), RunOptions(quiet=True), Wanted(node, place, **wanted)
    )


def ids(spark: SparkSession, place: Path) -> list[str]:
    return sorted(str(row.id) for row in spark.read.format("delta").load(str(place)).collect())


@from_another_place
def test_rows_come_back_from_a_topic_each_once(spark: SparkSession, tmp_path: Path, kafka: Broker) -> None:
    topics = {name: kafka.new_topic(name.lower()) for name in ("ORDERS", "BROKEN", "UNPAID")}
    text = SHOP.replace("BROKERS", kafka.bootstrap)
    for name, topic in topics.items():
        text = text.replace(name, topic)
    file = write_pipeline(tmp_path, text)
    lines = [json.dumps({"id": n, "amount": n % 3 - 1}) for n in range(10)]
    kafka.produce(topics["ORDERS"], [*lines, '{"id": 1', '{"amount": 5}', b"not UTF-8: \xff"])
    assert run(file, available_now=True).ok
    paid = [str(n) for n in range(10) if n % 3 == 2]
    assert ids(spark, tmp_path / "good") == paid
    # A micro-batch that comes again puts its rejected rows into the topics again, which can't tell.
    forget_last_commit(tmp_path / "checkpoints/shop/all")
    assert run(file, available_now=True).ok
    assert len(kafka.consume(topics["BROKEN"])) == 6

    place, unpaid = (f"kafka://{kafka.bootstrap}/{topics[name]}" for name in ("BROKEN", "UNPAID"))
    told = {(r.node, r.reason): r.rows for r in counts(None, RunOptions(quiet=True), place).rejected}
    assert told == {("parsed", "not_json"): 1, ("parsed", "missing_field"): 1, ("parsed", "not_utf8"): 1}
    everywhere = counts(lambda options: load_file(file, options), RunOptions(quiet=True))
    assert {(r.node, r.reason): r.rows for r in everywhere.rejected} == {**told, ("plausible", "paid"): 7}

    write_pipeline(tmp_path, text.replace("id int not null", "id int").replace("amount > 0", "amount >= 0"))
    assert again(file, "parsed", place, dry_run=True).rows == 3
    done = again(file, "parsed", place)
    assert (done.rows, done.written) == (3, {"good": 1, "broken": 2, "unpaid": 0})
    assert ids(spark, tmp_path / "good") == sorted([*paid, "None"])
    # Those that were rejected again are new ones; what came back in doesn't come twice.
    assert again(file, "parsed", place, where="reasons[0].name = 'missing_field'") == Replayed("parsed", 0)
    assert again(file, "parsed", place).rows == 2
    assert again(file, "plausible", unpaid).written == {"good": 3, "unpaid": 4}
    assert again(file, "plausible", unpaid).rows == 4
    assert len(ids(spark, tmp_path / "good")) == len(paid) + 1 + 3


def test_a_topic_that_is_not_there(kafka: Broker) -> None:
    with pytest.raises(PipelineError) as refused:
        counts(None, RunOptions(quiet=True), f"kafka://{kafka.bootstrap}/no-such-topic")
    (found,) = refused.value.diagnostics
    assert found.code == "GB461"
    assert "no-such-topic" in found.message


FOUR = """
pipeline: four
sources:
  texts: {gem: kafka, options: {bootstrap_servers: BROKERS, subscribe: TOPIC, starting_offsets: earliest}}
targets:
"""
RECORDS, BYTES = 5_000, 1_024


def sent(kafka: Broker) -> int:
    """The bytes that the broker has sent, as the network of its container counts them."""
    container = kafka._container.get_wrapped_container()
    status, text = container.exec_run(["cat", "/proc/net/dev"])
    assert status == 0
    rows = (line.partition(":") for line in text.decode().splitlines() if ":" in line)
    return sum(int(numbers.split()[8]) for name, _, numbers in rows if name.strip() != "lo")


@rejected_rows
def test_a_group_has_a_broker_send_a_quarter(spark: SparkSession, tmp_path: Path, kafka: Broker) -> None:
    topic = kafka.new_topic("four")
    settings = {"kafka.bootstrap.servers": kafka.bootstrap, "topic": topic}
    long = f"repeat(sha2(cast(id as string), 512), {BYTES // 128}) as value"
    spark.range(RECORDS).selectExpr(long).write.format("kafka").options(**settings).save()
    found = {}
    for name, group in (("alone", ""), ("grouped", "group: all, ")):
        targets = [
            f"  t{n}: {{gem: delta, input: texts, {group}options: {{path: {name}/t{n}}}}}\n" for n in range(4)
        ]
        text = FOUR.replace("BROKERS", kafka.bootstrap).replace("TOPIC", topic) + "".join(targets)
        file = write_pipeline(tmp_path, text.replace("pipeline: four", f"pipeline: {name}"), f"{name}.yaml")
        before = sent(kafka)
        assert run(file, available_now=True).ok
        found[name] = sent(kafka) - before
    print(found)
    assert found["grouped"] >= RECORDS * BYTES, "it has read the topic"
    assert 3.6 <= found["alone"] / found["grouped"] <= 4.4, found
