"""What a run leaves beside its checkpoints, and what that costs a run that changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import gem_bundle.run.api as runs
from gem_bundle.changes.checkpoint import read_checkpoint
from gem_bundle.changes.record import Record, read_record
from gem_bundle.errors import PipelineError
from tests.integration.pipelines import add_rows, run, write_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """
pipeline: records
sources:
  orders:
    gem: file
    options: {path: in, format: json, schema: "id int, amount int", max_files_per_trigger: 1}
transforms:
  large: {gem: filter, input: orders, options: {condition: amount >= 100}}
targets:
  out: {gem: file, input: large, options: {path: out, format: json}}
  screen: {gem: noop, input: orders}
"""


def record(folder: Path) -> Record:
    found = read_record(str(folder / "checkpoints/records/out"))
    assert found is not None
    return found


def thresholds(folder: Path) -> list[tuple[int, object]]:
    return [(v.first_batch, v.nodes[1].options["condition"]) for v in record(folder).versions]


def test_what_ran_is_told_by_range_of_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, PIPELINE)
    place = tmp_path / "checkpoints/records/.out.record.json"
    for number in range(2):
        add_rows(tmp_path / "in", f"{number}.json", [{"id": number, "amount": 150}])
    run(file, available_now=True)
    first = place.read_bytes()
    assert thresholds(tmp_path) == [(0, "amount >= 100")]

    # Nothing changed, and neither does the record; rows come all the same.
    add_rows(tmp_path / "in", "2.json", [{"id": 2, "amount": 150}])
    run(file, available_now=True)
    assert place.read_bytes() == first

    # A run that is killed after it has written the record, before its first micro-batch.
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    write_pipeline(tmp_path, PIPELINE.replace("100", "120"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "run_queries", killed)
        with pytest.raises(KeyboardInterrupt):
            run(file, available_now=True)
    assert thresholds(tmp_path) == [(0, "amount >= 100"), (3, "amount >= 120")]

    # What it would have run never did, so that it is replaced.
    write_pipeline(tmp_path, PIPELINE.replace("100", "140"))
    add_rows(tmp_path / "in", "3.json", [{"id": 3, "amount": 150}])
    run(file, available_now=True)
    assert thresholds(tmp_path) == [(0, "amount >= 100"), (3, "amount >= 140")]
    assert sorted(row.id for row in spark.read.json(str(tmp_path / "out")).collect()) == [0, 1, 2, 3]

    # A run that is killed between its micro-batch and the commit: the next one runs it again.
    checkpoint = tmp_path / "checkpoints/records/out"
    for name in ("3", ".3.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    write_pipeline(tmp_path, PIPELINE.replace("100", "130"))
    run(file, available_now=True)
    assert thresholds(tmp_path) == [(0, "amount >= 100"), (3, "amount >= 130")]
    assert sorted(row.id for row in spark.read.json(str(tmp_path / "out")).collect()) == [0, 1, 2, 3]
    left = read_checkpoint(str(checkpoint))
    assert left is not None
    assert record(tmp_path).query == left.query

    # A record that can't be read stops a run before anything happens.
    place.write_text(place.read_text()[:-40])
    with pytest.raises(PipelineError) as caught:
        run(file, available_now=True)
    assert [d.code for d in caught.value.diagnostics] == ["GB404"]
    assert caught.value.diagnostics[0].line == 10
