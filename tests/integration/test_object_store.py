"""Pipelines whose rows, tables and checkpoints lie in an object store: a server on the loopback that speaks S3."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
import pytest
import yaml

from gem_bundle.files import NEW_CREDENTIALS
from tests.integration.pipelines import command, events, finish, write_pipeline
from tests.samples import in_another_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
# A stream of a table that another query writes, at the same place.
READ_AGAIN = """
sources:
  copied: {gem: delta, options: {path: PLACE/copy, max_files_per_trigger: 1}}
targets:
  again: {gem: delta, input: copied, options: {path: PLACE/again}}
"""
NOWHERE = "s3a://no-such-bucket/lake"
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


def with_more(text: str, more: str) -> str:
    """A pipeline file with more nodes."""
    pipeline, added = yaml.safe_load(text), yaml.safe_load(more)
    for kind, nodes in added.items():
        pipeline[kind].update(nodes)
    return yaml.safe_dump(pipeline, sort_keys=False)


def wait_for(told: Iterator[dict[str, Any]], target: str, batch: int) -> None:
    """Wait until a run has told of a micro-batch."""
    for event in told:
        if (event["event"], event.get("target")) == ("progress", target) and event["batch_id"] >= batch:
            return
    pytest.fail(f"the run ended before micro-batch {batch} of `{target}`")


def assert_right(spark: SparkSession, place: str, files: int, folder: Path) -> None:
    """Each row is in the table once, and in its key's number once."""
    count = files * ROWS
    assert table(spark, place, "copy", folder) == [(i, "ab"[i % 2]) for i in range(count)]
    assert table(spark, place, "totals", folder) == [
        ("a", count // 2, count - 2),
        ("b", count // 2, count - 1),
    ]


@in_another_place
def test_a_run_and_its_restart(spark: SparkSession, tmp_path: Path, s3: S3) -> None:
    file, place = project(tmp_path, s3)
    put(place, range(1))
    assert finish(command("run", file, "--available-now"))[0] == 0
    put(place, range(1, 3))
    reading = write_pipeline(tmp_path, with_more(file.read_text(), READ_AGAIN.replace("PLACE", place)))
    report = tmp_path / "report.json"
    assert finish(command("run", reading, "--available-now", "--report", report))[0] == 0
    read = {name: target["rows_in"] for name, target in json.loads(report.read_text())["targets"].items()}
    assert (read["copy"], read["totals"]) == (20, 20)
    assert finish(command("run", reading, "--available-now", "--report", report))[0] == 0
    found = json.loads(report.read_text())["targets"]
    assert (found["copy"]["rows_in"], read["again"] + found["again"]["rows_in"]) == (0, 30)
    assert_right(spark, place, 3, tmp_path)
    assert table(spark, place, "again", tmp_path) == [(i, "ab"[i % 2]) for i in range(30)]


@in_another_place
def test_a_second_run_is_refused_and_one_without_rights_ends(
    spark: SparkSession, tmp_path: Path, s3: S3
) -> None:
    file, place = project(tmp_path, s3)
    put(place, range(2))
    first = command("run", file, "--log-format", "json")
    told = events(first)
    wait_for(told, "copy", 1)
    status, _, err = finish(command("run", file, "--available-now"))
    assert status == 1
    for target in ("copy", "totals"):
        assert f"error[GB401]: the checkpoint of target `{target}` is in use" in err
    assert f"process {first.pid} on " in err
    put(place, range(2, 3))
    wait_for(told, "copy", 2)
    with s3.without_rights():
        status, _, err = finish(first)
    assert status == 1
    assert "error[GB508]: target `copy`: " in err
    assert "Status Code: 403" in err
    assert finish(command("run", file, "--available-now"))[0] == 0
    assert_right(spark, place, 3, tmp_path)


@in_another_place
def test_a_run_whose_credentials_expire_and_the_next_one(spark: SparkSession, tmp_path: Path, s3: S3) -> None:
    file, place = project(tmp_path, s3)
    put(place, range(2))
    credentials = s3.credentials()
    first = command("run", file, "--log-format", "json", **credentials)
    wait_for(events(first), "copy", 1)
    put(place, range(2, 4))
    s3.expire(credentials)
    # The second one doesn't get as far as Spark: it isn't known what it would go on from.
    second = command("run", file, "--available-now", **credentials)
    for run, code in ((first, "GB503"), (second, "GB406")):
        status, _, err = finish(run)
        assert status == 1
        assert f"error[{code}]: " in err
        assert "credentials" in err
        assert NEW_CREDENTIALS in " ".join(err.split())
    assert finish(command("run", file, "--available-now", **s3.credentials()))[0] == 0
    assert_right(spark, place, 4, tmp_path)


@in_another_place
def test_a_bucket_that_is_not_there(tmp_path: Path, s3: S3) -> None:
    file, place = project(tmp_path, s3)
    file.write_text(file.read_text().replace(place, NOWHERE))
    status, _, err = finish(command("run", file, "--available-now"))
    assert status == 1
    assert "warning[GB516]: no record is kept of this run" in err
    assert "error[GB508]: source `orders`: UnknownStoreException" in err
    assert "The specified bucket does not exist" in err


@in_another_place
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
