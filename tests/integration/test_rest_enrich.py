"""Rows that a service is asked about: none is lost, and none is in both outputs, wherever a run is killed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.rest_service import RestService
from tests.samples import a_killed_program

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# The service answers a request once, and the same one with 404 from then on.
TEXT = """
pipeline: enriching
sources:
  users:
    gem: file
    options: {{format: json, path: in, schema: "id int, kind string", max_files_per_trigger: 1}}
transforms:
  enriched:
    gem: rest_enrich
    input: users
    options: {{url: "{url}/{{kind}}/{{id}}", schema: "name string", rejects: true}}
targets:
  good: {{gem: delta, input: enriched, group: both, options: {{path: good}}}}
  bad: {{gem: delta, input: enriched.rejected, group: both, options: {{path: bad}}}}
"""
FILES, ROWS = 3, 6


@a_killed_program
@pytest.mark.spark
@pytest.mark.parametrize(
    ("where", "when", "number"),
    [
        ("gem_bundle.run.settled:Settled.keep", "before", 2),
        ("gem_bundle.run.settled:Settled.keep", "behind", 2),
        ("gem_bundle.run.settled:open_folder", "before", 4),
        ("gem_delta.target:DeltaTarget.write_batch", "behind", 4),
        ("gem_delta.target:DeltaTarget.write_batch", "before", 3),
    ],
)
def test_a_killed_run_leaves_each_row_in_one_output(
    spark: SparkSession, tmp_path: Path, where: str, when: str, number: int
) -> None:
    with RestService() as service:
        file = write_pipeline(tmp_path, TEXT.format(url=service.url))
        for name in range(FILES):
            numbers = range(name * ROWS, (name + 1) * ROWS)
            rows = [{"id": n, "kind": "404" if n % 3 == 0 else "turn"} for n in numbers]
            add_rows(tmp_path / "in", f"{name}.json", rows)
        killed = [sys.executable, "-m", "tests.integration.killed_program", where, when, str(number)]
        done = subprocess.run(
            [*killed, "run", str(file), "--available-now"], capture_output=True, text=True, check=False
        )
        assert done.returncode == -9, done.stderr
        assert run(file, available_now=True).ok
        good = spark.read.format("delta").load(str(tmp_path / "good"))
        bad = spark.read.format("delta").load(str(tmp_path / "bad"))
        ids = bad.selectExpr("cast(get_json_object(row, '$.id') as int) as id").union(good.select("id"))
        assert sorted(row["id"] for row in ids.collect()) == list(range(FILES * ROWS))
        assert all(row["answer"]["name"] for row in good.collect())
