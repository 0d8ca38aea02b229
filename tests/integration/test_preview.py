"""Any node can be looked at; checkpoints, targets and sources stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run.api import prepare
from gem_bundle.run.options import RunOptions
from gem_bundle.run.preview import preview
from tests.integration.pipelines import add_rows, run, write_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.run.preview import Preview

pytestmark = pytest.mark.spark

TEXT = """
pipeline: previewed
sources:
  orders:
    gem: file
    options:
      {path: orders, format: json, schema: "id int, at timestamp", clean_source: archive, source_archive_dir: gone}
  names: {gem: rows, mode: batch, options: {rows: [{id: 1, name: one}]}}
  ticks: {gem: rate, options: {rows_per_second: 100}}
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 1 minute}}
  counts:
    gem: aggregate
    input: timely
    options: {window: {column: at, duration: 1 hour}, aggregates: {orders: count(*)}}
  named: {gem: join, inputs: [orders, names], options: {how: left, on: [id]}}
  top: {gem: limit, input: orders, options: {rows: 2}}
targets:
  hourly: {gem: delta, input: counts, options: {path: out/hourly}}
  detailed: {gem: delta, input: named, options: {path: out/detailed}}
  first: {gem: delta, input: top, options: {path: out/first}}
  ticking: {gem: noop, input: ticks}
"""


def look(tmp_path: Path, spark: SparkSession, node: str, rows: int = 20) -> Preview:
    file = write_pipeline(tmp_path, TEXT)
    add_rows(
        tmp_path / "orders",
        "1.json",
        [{"id": i, "at": f"2013-01-01T0{i}:30:00Z"} for i in range(5)],
    )
    plan, _ = prepare(lambda options: load_file(file, options), RunOptions())
    return preview(plan, node, spark, rows, timeout=60)


def untouched(tmp_path: Path) -> bool:
    return sorted(p.name for p in tmp_path.iterdir()) == ["orders", "pipeline.yaml"]


def test_a_streaming_source(spark: SparkSession, tmp_path: Path) -> None:
    found = look(tmp_path, spark, "orders")
    assert found.streaming
    assert found.schema.simpleString() == "struct<id:int,at:timestamp>"
    assert [row.id for row in found.rows] == [0, 1, 2, 3, 4]
    assert found.complete
    assert untouched(tmp_path)
    assert (tmp_path / "orders/1.json").exists(), "the preview archives nothing"


def test_the_first_rows_only(spark: SparkSession, tmp_path: Path) -> None:
    found = look(tmp_path, spark, "named", rows=2)
    assert len(found.rows) == 2
    assert not found.complete


def test_an_aggregate_shows_windows_that_are_still_open(spark: SparkSession, tmp_path: Path) -> None:
    found = look(tmp_path, spark, "counts")
    assert [row.orders for row in found.rows] == [1] * 5
    assert untouched(tmp_path)


def test_a_limit_that_takes_append_mode_only(spark: SparkSession, tmp_path: Path) -> None:
    assert len(look(tmp_path, spark, "top").rows) == 2


def test_a_static_node(spark: SparkSession, tmp_path: Path) -> None:
    found = look(tmp_path, spark, "names")
    assert not found.streaming
    assert [tuple(row) for row in found.rows] == [(1, "one")]


def test_a_target_shows_what_flows_into_it(spark: SparkSession, tmp_path: Path) -> None:
    assert look(tmp_path, spark, "detailed").schema.names == ["id", "at", "name"]
    assert untouched(tmp_path)


def test_a_source_without_an_end_delivers_the_rows_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    found = look(tmp_path, spark, "ticks", rows=3)
    assert len(found.rows) == 3
    assert not [query for query in spark.streams.active if query.isActive]


def test_a_preview_beside_a_run_leaves_its_checkpoint_alone(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, TEXT.replace("clean_source: archive, source_archive_dir: gone", ""))
    add_rows(tmp_path / "orders", "0.json", [{"id": 9, "at": "2013-01-01T00:00:00Z"}])
    run(file, available_now=True, targets=("detailed",))
    look(tmp_path, spark, "named")
    report = run(file, available_now=True, targets=("detailed",))
    assert report.rows_in == 5


def test_an_unknown_node_is_named_with_what_exists(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as raised:
        look(tmp_path, spark, "timley")
    (found,) = raised.value.diagnostics
    assert found.code == "GB108"
    assert "`timely`" in found.hint
