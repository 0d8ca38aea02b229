"""`check --engine`: Spark's own verdict, over empty relations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.check import check_file
from gem_bundle.plugins import load_registry
from gem_bundle.run.engine import check_engine
from tests.differential.engine import plan_of
from tests.integration.pipelines import write_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.diagnostics import Diagnostic

pytestmark = [pytest.mark.spark, pytest.mark.matrix]

TEXT = """
pipeline: asked
sources:
  clicks: {{gem: kafka, options: {{bootstrap_servers: "nowhere:9092", subscribe: clicks}}}}
  pages: {{gem: file, mode: batch, options: {{path: none, format: csv, schema: "page string, team string"}}}}
transforms:
  parsed: {{gem: from_json, input: clicks, options: {{column: value, schema: "page string, at timestamp"}}}}
  timely: {{gem: watermark, input: parsed, options: {{column: at, delay: 10 minutes}}}}
  named: {{gem: join, inputs: [timely, pages], options: {{how: {how}, on: [page]}}}}
  counts:
    gem: aggregate
    input: {counted}
    options: {{window: {{column: at, duration: 1 minute}}, group_by: [team], aggregates: {{clicks: {clicks}}}}}
targets:
  table: {{gem: delta, input: counts, options: {{path: out}}}}
"""


def verdict(
    tmp_path: Path,
    spark: SparkSession,
    how: str = "left",
    counted: str = "named",
    clicks: str = "count(*)",
) -> list[tuple[str, str | None, int]]:
    text = TEXT.format(how=how, counted=counted, clicks=clicks)
    return [(d.code, d.node, d.line) for d in asked(write_pipeline(tmp_path, text), spark)]


def asked(file: Path, spark: SparkSession) -> list[Diagnostic]:
    """What Spark says of a pipeline, whatever the checker has found already."""
    definition = check_file(file).definition
    assert definition is not None
    plan = plan_of(definition, load_registry())
    assert plan is not None
    return check_engine(plan, spark)


def test_a_good_pipeline_needs_neither_brokers_nor_files(spark: SparkSession, tmp_path: Path) -> None:
    assert verdict(tmp_path, spark) == []


def test_a_streaming_verdict_belongs_to_the_target(spark: SparkSession, tmp_path: Path) -> None:
    text = TEXT.replace("input: {counted}", "input: bare") + ""
    text = text.replace(
        "  timely:", "  bare: {{gem: join, inputs: [parsed, pages], options: {{on: [page]}}}}\n  timely:"
    )
    file = write_pipeline(tmp_path, text.format(how="left", counted="", clicks="count(*)"))
    (found,) = asked(file, spark)
    assert (found.code, found.node) == ("GB320", "table")
    assert "watermark" in found.message


def test_a_join_that_streams_can_not_have(spark: SparkSession, tmp_path: Path) -> None:
    ((code, node, _),) = verdict(tmp_path, spark, how="right")
    assert (code, node) == ("GB320", "table")


def test_an_unknown_column_belongs_to_its_node(spark: SparkSession, tmp_path: Path) -> None:
    assert verdict(tmp_path, spark, clicks="sum(nothing)") == [("GB320", "counts", 10)]


def test_files_have_metadata_also_where_they_are_static(spark: SparkSession, tmp_path: Path) -> None:
    text = """
pipeline: asked
sources:
  ticks: {gem: rate}
  pages: {gem: file, mode: batch, options: {path: none, format: csv, schema: "value bigint, team string"}}
  lengths: {gem: file, mode: batch, options: {path: none, format: csv, schema: "value bigint, i interval"}}
transforms:
  named: {gem: select, input: pages, options: {columns: [value, _metadata.file_name]}}
  both: {gem: join, inputs: [ticks, named], options: {how: left, on: [value]}}
  odd: {gem: join, inputs: [both, lengths], options: {how: left, on: [value]}}
targets:
  screen: {gem: console, input: odd}
"""
    assert asked(write_pipeline(tmp_path, text), spark) == []
