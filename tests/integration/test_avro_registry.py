"""Messages of several schemas in one micro-batch, whose schemas a registry has: over restarts, and when it dies."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from gem_avro.options import header
from gem_bundle.errors import PipelineError
from gem_bundle.run.view import QuietView
from tests.gems.test_avro_resolution import long, record, text
from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.samples import a_killed_program

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.run.report import Report
    from tests.kafka_broker import Broker
    from tests.schema_registry import SchemaRegistry

pytestmark = pytest.mark.spark

NAME = "org.example.Click"
SCHEMAS = (
    record(("page", "string"), ("n", "int"), name=NAME),
    record(("n", "long"), ("page", "string"), ("team", "string", "web"), name=NAME),
    record(("page", "string"), ("n", "int"), ("agent", ["null", "string"], None), name=NAME),
)
READER = record(("page", "string"), ("n", "long"), ("team", "string", "none"), name=NAME)

PIPELINE = """
pipeline: clicks
restarts: {max: 2, wait: 0 seconds}
sources:
  files: {gem: file, options: {path: in, format: json, schema: "value string", max_files_per_trigger: 1}}
transforms:
  messages: {gem: select, input: files, options: {columns: {value: unbase64(value)}}}
  read:
    gem: from_avro
    input: messages
    options: {column: value, registry: "REGISTRY", schema_file: click.avsc, rejects: true}
  why:
    gem: select
    input: read.rejected
    options: {columns: {name: "reasons[0].name", words: "reasons[0].words"}}
targets:
  good: {gem: file, input: read, options: {path: good, format: json}}
  bad: {gem: file, input: why, options: {path: bad, format: json}}
"""


def message(schema_id: int, page: str, n: int, team: str = "shop") -> bytes:
    """A message of one of the schemas above, whose ids are 1, 2 and 3."""
    body = {
        1: lambda: text(page) + long(n),
        2: lambda: long(n) + text(page) + text(team),
        3: lambda: text(page) + long(n) + b"\x00",
    }[schema_id]()
    return header(schema_id) + body


def pipeline(tmp_path: Path, registry: SchemaRegistry, given: str = PIPELINE) -> Path:
    for schema in SCHEMAS[:2]:
        registry.register("clicks-value", schema)
    (tmp_path / "click.avsc").write_text(json.dumps(READER))
    return write_pipeline(tmp_path, given.replace("REGISTRY", registry.url))


def add(tmp_path: Path, name: str, *messages: bytes) -> None:
    add_rows(tmp_path / "in", name, [{"value": base64.b64encode(each).decode()} for each in messages])


def written(folder: Path) -> list[dict[str, Any]]:
    lines = [line for file in folder.glob("*.json") for line in file.read_text().splitlines()]
    return sorted(map(json.loads, lines), key=str)


def rows(tmp_path: Path) -> list[tuple[str, int, str]]:
    return sorted((row["page"], row["n"], row["team"]) for row in written(tmp_path / "good"))


class Mending(QuietView):
    """Lets the registry live again once a query is to be started again; remembers what happened."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self.registry = registry
        self.events: list[Mapping[str, Any]] = []

    def happened(self, event: str, facts: Mapping[str, Any]) -> None:
        assert event == "restarting"
        self.events.append(facts)
        self.registry.dying.clear()


def once(file: Path, view: Any = None, **more: Any) -> Report:
    return run(file, view, available_now=True, **more)


def test_messages_of_several_schemas_side_by_side_over_a_registry_that_dies(
    spark: SparkSession, tmp_path: Path, schema_registry: SchemaRegistry
) -> None:
    file = pipeline(tmp_path, schema_registry)
    add(
        tmp_path,
        "1.json",
        message(1, "a", 1),
        message(2, "b", 2**40),
        message(1, "c", 3),
        header(9) + b"\x02",
    )
    assert once(file).ok
    assert rows(tmp_path) == [("a", 1, "none"), ("b", 2**40, "shop"), ("c", 3, "none")]
    assert [row["name"] for row in written(tmp_path / "bad")] == ["unknown_schema"]
    # A new schema, and nobody answers for it: that says nothing of the message, which is read once it can be.
    assert schema_registry.register("clicks-value", SCHEMAS[2]) == 3
    schema_registry.dying = {"/schemas/ids/3"}
    add(tmp_path, "2.json", message(3, "d", 4), message(1, "e", 5))
    mending = Mending(schema_registry)
    report = once(file, mending)
    assert report.ok, report.diagnostics
    first = mending.events[0]
    assert (first["reason"], first["failure"]["code"]) == ("a system outside can't be reached", "GB503")
    assert "the schema registry at" in first["failure"]["message"]
    assert [row[0] for row in rows(tmp_path)] == ["a", "b", "c", "d", "e"]
    assert len(written(tmp_path / "bad")) == 1
    schema_registry.stop()
    with pytest.raises(PipelineError) as raised:
        once(file)
    assert [(d.code, d.node) for d in raised.value.diagnostics] == [("GB503", "read")]


ROUND = """
pipeline: around
mode: batch
sources:
  rows: {gem: rows, options: {schema: "page string not null, n int not null", rows: [[a, 1], [b, 2]]}}
transforms:
  written:
    gem: to_avro
    input: rows
    options:
      {registry: "REGISTRY", topic: out, subject_strategy: topic_record_name, schema_file: own.avsc, register: true}
  read:
    gem: from_avro
    input: written
    options:
      {column: value, registry: "REGISTRY", topic: out, subject_strategy: topic_record_name, record: "NAME"}
targets:
  good: {gem: file, input: read, options: {path: good, format: json}}
"""


@pytest.mark.matrix
def test_what_is_registered_and_written_is_read_by_the_latest_schema(
    spark: SparkSession, tmp_path: Path, schema_registry: SchemaRegistry
) -> None:
    (tmp_path / "own.avsc").write_text(json.dumps(SCHEMAS[0]))
    file = write_pipeline(tmp_path, ROUND.replace("REGISTRY", schema_registry.url).replace("NAME", NAME))
    with pytest.raises(PipelineError) as raised:
        run(file)
    assert [(d.code, d.node) for d in raised.value.diagnostics] == [("GB522", "read")], (
        "nobody has written yet"
    )
    assert schema_registry.subjects() == {}
    wider = {
        **SCHEMAS[0],
        "fields": [*SCHEMAS[0]["fields"], {"name": "team", "type": "string", "default": "web"}],
    }
    schema_registry.register(f"out-{NAME}", wider)
    assert run(file).ok
    assert written(tmp_path / "good") == [
        {"page": "a", "n": 1, "team": "web"},
        {"page": "b", "n": 2, "team": "web"},
    ]
    assert schema_registry.subjects() == {f"out-{NAME}": [1, 2]}


FROM_KAFKA = """
  files:
    gem: kafka
    options: {bootstrap_servers: "BROKERS", subscribe: TOPIC, starting_offsets: earliest, max_offsets_per_trigger: 40}
transforms:
  messages: {gem: select, input: files, options: {columns: [value]}}
"""


@a_killed_program
@pytest.mark.kafka
def test_a_topic_of_several_schemas_over_a_registry_that_dies(
    spark: SparkSession, tmp_path: Path, kafka: Broker, schema_registry: SchemaRegistry
) -> None:
    topic = kafka.new_topic("avro", partitions=2)
    begin, end = PIPELINE.index("  files:"), PIPELINE.index("  read:")
    source = FROM_KAFKA.replace("BROKERS", kafka.bootstrap).replace("TOPIC", topic).lstrip("\n")
    file = pipeline(tmp_path, schema_registry, PIPELINE[:begin] + source + PIPELINE[end:])
    kafka.produce(topic, [message(1 + n % 2, f"{n:03}", n) for n in range(100)])
    assert once(file).ok
    schema_registry.register("clicks-value", SCHEMAS[2])
    schema_registry.dying = {"/schemas/ids/3"}
    kafka.produce(topic, [message(1 + n % 3, f"{n:03}", n) for n in range(100, 200)])
    mending = Mending(schema_registry)
    assert once(file, mending).ok
    assert mending.events
    assert [(row[0], row[1]) for row in rows(tmp_path)] == [(f"{n:03}", n) for n in range(200)]
    assert written(tmp_path / "bad") == []
