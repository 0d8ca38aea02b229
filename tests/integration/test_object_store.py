"""Pipelines whose rows, tables and checkpoints lie in an object store: a server on the loopback that speaks S3."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import fsspec
import pytest

from tests.integration.pipelines import command, events, finish, write_pipeline

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from tests.s3_server import S3

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs/running.md"
SERVER = """
[spark]
"spark.hadoop.fs.s3a.endpoint" = "URL"
"spark.hadoop.fs.s3a.endpoint.region" = "us-east-1"
"spark.hadoop.fs.s3a.path.style.access" = true
"""
PIPELINE = """
pipeline: lake
checkpoints: PLACE/checkpoints
sources:
  orders:
    gem: file
    options: {path: PLACE/orders, format: json, schema: "id int, k string", max_files_per_trigger: 1}
transforms:
  per_key:
    gem: aggregate
    input: orders
    options: {group_by: [k], aggregates: {n: count(*), last: max(id)}}
targets:
  copy: {gem: delta, input: orders, options: {path: PLACE/copy}}
  totals: {gem: delta, input: per_key, output_mode: complete, options: {path: PLACE/totals}}
"""
ROWS = 10


def project(folder: Path, s3: S3) -> tuple[Path, str]:
    """A pipeline over a place in the store; the file and the place."""
    place = s3.place()
    _, _, shown = PAGE.read_text().partition("### In an object store")
    jars = shown.partition("```toml\n")[2].partition("```")[0]
    (folder / "gem-bundle.toml").write_text(jars + SERVER.replace("URL", s3.url))
    return write_pipeline(folder, PIPELINE.replace("PLACE", place)), place


def put(place: str, files: Iterable[int]) -> None:
    """Files of ten rows each, as somebody else puts them into the store."""
    store = fsspec.filesystem("s3", skip_instance_cache=True)
    for number in files:
        rows = [{"id": number * ROWS + i, "k": "ab"[i % 2]} for i in range(ROWS)]
        name = f"{place}/orders/{number:03}.json".replace("s3a://", "")
        store.pipe_file(name, "".join(json.dumps(row) + "\n" for row in rows).encode())


def table(spark: SparkSession, place: str, name: str, folder: Path) -> list[tuple[object, ...]]:
    """A table's rows in order."""
    store = fsspec.filesystem("s3", skip_instance_cache=True)
    local = folder / f"read-{name}"
    store.get(f"{place}/{name}".replace("s3a://", ""), str(local), recursive=True)
    return sorted(tuple(row) for row in spark.read.format("delta").load(str(local)).collect())


def assert_right(spark: SparkSession, place: str, files: int, folder: Path) -> None:
    """Each row is in the table once, and in its key's number once."""
    count = files * ROWS
    assert table(spark, place, "copy", folder) == [(i, "ab"[i % 2]) for i in range(count)]
    assert table(spark, place, "totals", folder) == [
        ("a", count // 2, count - 2),
        ("b", count // 2, count - 1),
    ]


@pytest.mark.sample(0)  # a daily run has the one that is killed, and is started again
def test_a_run_and_its_restart(spark: SparkSession, tmp_path: Path, s3: S3) -> None:
    file, place = project(tmp_path, s3)
    put(place, range(1))
    assert finish(command("run", file, "--available-now"))[0] == 0
    put(place, range(1, 3))
    report = tmp_path / "report.json"
    assert finish(command("run", file, "--available-now", "--report", report))[0] == 0
    read = {name: target["rows_in"] for name, target in json.loads(report.read_text())["targets"].items()}
    assert read == {"copy": 20, "totals": 20}
    assert_right(spark, place, 3, tmp_path)


def test_a_killed_run_continues_without_a_gap(spark: SparkSession, tmp_path: Path, s3: S3) -> None:
    file, place = project(tmp_path, s3)
    put(place, range(4))
    killed = command("run", file, "--available-now")
    for event in events(killed):
        if event["event"] == "progress":
            break
    killed.kill()
    assert finish(killed)[0] == -signal.SIGKILL
    assert finish(command("run", file, "--available-now"))[0] == 0
    assert_right(spark, place, 4, tmp_path)
