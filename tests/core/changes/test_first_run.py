"""A run without a checkpoint, where there is something already: what becomes of rows in Spark, and what is said."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.planning import plan_changes
from gem_bundle.errors import PipelineError
from tests.checked import plan_of
from tests.integration.pipelines import add_rows, run, write_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.changes.model import TargetChanges

PIPELINE = """
pipeline: orders
sources:
  orders: {gem: file, options: {path: orders, format: json, schema: id int, max_files_per_trigger: 1}}
targets:
  table: {gem: delta, input: orders, options: {path: out/table}}
  files: {gem: file, input: orders, options: {path: out/files, format: json}}
"""


def planned(file: Path) -> dict[str, TargetChanges]:
    plan = plan_of(file)
    found, wrong = plan_changes(plan)
    assert wrong == []
    return {changes.target: changes for changes in found}


@pytest.mark.spark
def test_rows_come_once_more_into_a_table_and_never_into_files(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, PIPELINE)
    add_rows(tmp_path / "orders", "1.json", [{"id": 1}])
    assert {name: changes.verdict for name, changes in planned(file).items()} == {
        "table": "new",
        "files": "new",
    }
    assert run(file, available_now=True).ok
    add_rows(tmp_path / "orders", "2.json", [{"id": 2}])
    assert run(file, available_now=True).ok
    shutil.rmtree(tmp_path / "checkpoints")
    shutil.rmtree(tmp_path / "orders")
    add_rows(tmp_path / "orders", "3.json", [{"id": 3}])

    found = planned(file)
    assert found["table"].verdict == "again"
    assert found["files"].verdict == "skipped"
    assert all(change.code == "GB435" for changes in found.values() for change in changes.changes)
    assert "has micro-batches up to 1" in found["files"].changes[0].message

    with pytest.raises(PipelineError) as caught:
        run(file, available_now=True)
    assert {found.code for found in caught.value.diagnostics} == {"GB435"}

    # What is said is what Spark does.
    assert run(file, available_now=True, accept=(("GB435", ""),)).ok
    assert sorted(
        row.id for row in spark.read.format("delta").load(str(tmp_path / "out/table")).collect()
    ) == [1, 2, 3]
    assert sorted(
        row.id for row in spark.read.schema("id int").json(str(tmp_path / "out/files")).collect()
    ) == [1, 2]


@pytest.mark.parametrize(
    ("edit", "verdict"),
    [
        ({}, "again"),
        ({"input: orders": "input: orders, output_mode: complete"}, "new"),
        ({"gem: file, options: {path: orders": "gem: delta, options: {path: orders"}, "again"),
        ({"path: out/table": "path: out/other"}, "new"),
    ],
)
def test_a_table_that_is_replaced_or_another_one_is_a_first_run(
    edit: dict[str, str], verdict: str, tmp_path: Path
) -> None:
    log = tmp_path / "out" / "table" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text('{"add": {"path": "a.parquet"}}\n{"add": {"path": "b.parquet"}}\n')
    text = "\n".join(line for line in PIPELINE.splitlines() if "files:" not in line)
    if "gem: delta" in str(edit):
        text = text.replace(", format: json, schema: id int, max_files_per_trigger: 1", "")
    if "complete" in str(edit):
        text = text.replace(
            "targets:",
            "transforms:\n  counts: {gem: aggregate, input: orders, options: {aggregates: {n: count(*)}}}\ntargets:",
        )
        edit = {"delta, input: orders": "delta, output_mode: complete, input: counts"}
    for before, after in edit.items():
        assert before in text
        text = text.replace(before, after)
    assert planned(write_pipeline(tmp_path, text))["table"].verdict == verdict


@pytest.mark.parametrize(
    ("commits", "verdict"),
    [
        (['{"metaData": {}}'], "new"),
        (['{"add": {"path": "a"}}', '{"remove": {"path": "a"}}'], "new"),
        (['{"add": {"path": "a"}}', '{"remove": {"path": "a"}}\n{"add": {"path": "b"}}'], "again"),
        (['{"add": {"pa'], "new"),
    ],
)
def test_what_a_tables_log_says(commits: list[str], verdict: str, tmp_path: Path) -> None:
    log = tmp_path / "out" / "table" / "_delta_log"
    log.mkdir(parents=True)
    for number, text in enumerate(commits):
        (log / f"{number:020}.json").write_text(text)
    assert planned(write_pipeline(tmp_path, PIPELINE))["table"].verdict == verdict
