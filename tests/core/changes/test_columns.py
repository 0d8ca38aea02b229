"""Columns that a table doesn't take: what is said of an edit, and what Delta does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.against import plan_against
from gem_bundle.changes.planning import plan_changes
from gem_bundle.check import check_file
from tests.checked import plan_of
from tests.core.changes.edits import verdict
from tests.integration.pipelines import add_rows, run, write_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PIPELINE = """
pipeline: orders
sources:
  orders: {{gem: file, options: {{path: orders, format: json, schema: "id int, name string, at timestamp"}}}}
transforms:
  chosen: {{gem: select, input: orders, options: {{columns: [{columns}]}}}}
targets:
  table: {{gem: delta, input: chosen, options: {{path: out{options}}}}}
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("columns", "options", "refused"),
    [
        ("id, name, at", "", True),
        ("id, name, at", ", merge_schema: true", False),
        ("id", "", False),
        ("name as NAME, id", "", False),
        ("cast(id as string) as id, name", "", False),
        ("cast(id as bigint) as id, name", "", False),
        ("at as id, name", "", True),
        ("id > 1 as id, name", "", True),
        ("id, at as name", ", merge_schema: true", False),
        ("id, array(name) as name", ", merge_schema: true", True),
    ],
)
def test_what_is_refused_is_what_delta_refuses(
    spark: SparkSession, columns: str, options: str, refused: bool, tmp_path: Path
) -> None:
    add_rows(tmp_path / "orders", "1.json", [{"id": 1, "name": "1"}])
    assert run(
        write_pipeline(tmp_path, PIPELINE.format(columns="id, name", options="")), available_now=True
    ).ok
    add_rows(tmp_path / "orders", "2.json", [{"id": 2, "name": "2", "at": "2026-01-01T00:00:00Z"}])
    quoted = ", ".join(f'"{column}"' for column in columns.split(", "))
    file = write_pipeline(tmp_path, PIPELINE.format(columns=quoted, options=options))

    plan = plan_of(file)
    ((changes,), _) = plan_changes(plan)

    assert ("GB436" in {change.code for change in changes.changes}) is refused
    accepted = tuple((change.code, "") for change in changes.changes)
    assert run(file, available_now=True, accept=accepted).ok is not refused


@pytest.mark.parametrize(("switch", "refused"), [("true", False), ("false", True)])
def test_a_setting_lets_all_tables_take_new_columns(switch: str, refused: bool, tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    setting = f"spark: {{spark.databricks.delta.schema.autoMerge.enabled: {switch}}}"
    plans = []
    for columns in ("id", "id, name"):
        text = PIPELINE.format(columns=columns, options="").replace(
            "pipeline: orders", f"pipeline: orders\n{setting}"
        )
        plans.append(check_file(write_pipeline(tmp_path, text)).plan)
    before, now = plans
    assert before is not None
    assert now is not None
    (changes,) = plan_against(now, before)
    assert ("GB436" in {change.code for change in changes.changes}) is refused


NAMED = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}
transforms:
  few: {gem: select, input: clicks, options: {columns: [page, NAME]}}
targets:
  out: {gem: GEM, input: few, options: {path: outFORMAT}}
"""


@pytest.mark.parametrize(
    ("gem", "expected"), [("file", "from_now_on"), ("delta", "continues")], ids=["files", "a table"]
)
def test_a_column_in_other_letters_is_another_one_for_who_reads_files(gem: str, expected: str) -> None:
    text = NAMED.replace("GEM", gem).replace("FORMAT", ", format: json" if gem == "file" else "")
    found = verdict(text.replace("NAME", "n"), text.replace("NAME", "N"))
    assert found.verdict == expected
    said = [change.message for change in found.changes]
    assert any("`n` is called `N`" in message for message in said) is (gem == "file")
    assert verdict(text.replace("NAME", "n"), text.replace("NAME", "n AS n")).verdict == "continues"
    without = re.sub(r"transforms:.*(?=targets:)", "", text, flags=re.DOTALL).replace("few", "clicks")
    for versions in ((text.replace("NAME", "N"), without), (without, text.replace("NAME", "N"))):
        assert verdict(*versions).verdict == expected
    assert verdict(text.replace("NAME", "n"), without).verdict == "continues"


@pytest.mark.parametrize("made", ["struct(NAME)", "to_json(struct(NAME))", "array(struct(NAME))"])
def test_a_field_in_other_letters_is_another_one(made: str) -> None:
    text = (
        NAMED.replace("GEM", "file")
        .replace("FORMAT", ", format: json")
        .replace("[page, NAME]", f"{{s: {made}}}")
    )
    assert verdict(text.replace("NAME", "n"), text.replace("NAME", "N")).verdict == "from_now_on"
    assert verdict(text.replace("NAME", "n"), text.replace("NAME", "N as n")).verdict == "continues"


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        ("name, id", "", "mixed"),
        ("at, id, name", "", "mixed"),
        ("id, name, at", "", "from_now_on"),
        ("id", "", "from_now_on"),
        ("id, name as called", "", "from_now_on"),
        # What is in the names of folders stands in no file.
        ("name, id", ", partition_by: [name]", "continues"),
        ("name, id", ", header: true", "mixed"),
    ],
)
def test_files_of_csv_know_columns_by_their_places(columns: str, options: str, expected: str) -> None:
    text = PIPELINE.replace("table: {{gem: delta", "out: {{gem: file").replace(
        "path: out", "path: out, format: csv"
    )
    before, after = (
        text.format(columns="id, name", options=options),
        text.format(columns=columns, options=options),
    )
    changes = verdict(before, after)
    assert changes.verdict == expected, changes
    assert ("GB437" in {change.code for change in changes.changes}) is (expected == "mixed")
    if "header" not in options:
        assert verdict(before.replace("csv", "json"), after.replace("csv", "json")).verdict != "mixed"


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        ("cast(id as string) as id, name", "", "mixed"),
        ("cast(id as bigint) as id, name", "", "mixed"),
        ("ID, name", "", "from_now_on"),
        ("id", "", "from_now_on"),
        ("id, name, at", "", "from_now_on"),
        ("name, id", "", "continues"),
        # What is in the names of folders stands in no file.
        ("cast(id as string) as id, name", ", partition_by: [id]", "from_now_on"),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_files_with_types_in_them_are_read_by_one_type(
    kind: str, columns: str, options: str, expected: str
) -> None:
    text = PIPELINE.replace("table: {{gem: delta", "out: {{gem: file")
    text = text.replace("path: out", f"path: out, format: {kind}")
    columns = ", ".join(f'"{column}"' for column in columns.split(", "))
    before, after = (
        text.format(columns="id, name", options=options),
        text.format(columns=columns, options=options),
    )
    changes = verdict(before, after)
    assert changes.verdict == expected, changes
    assert ("GB437" in {change.code for change in changes.changes}) is (expected == "mixed")
    assert verdict(before.replace(kind, "json"), after.replace(kind, "json")).verdict != "mixed"


@pytest.mark.spark
def test_spark_reads_one_column_of_csv_for_another(spark: SparkSession, tmp_path: Path) -> None:
    for columns in ("1 as id, 2 as n", "2 as n, 1 as id"):
        spark.sql(f"select {columns}").write.csv(str(tmp_path), header=True, mode="append")
    read = spark.read.schema("id int, n int").csv(str(tmp_path), header=True)
    assert sorted(tuple(row) for row in read.collect()) == [(1, 2), (2, 1)]


def test_a_column_that_a_union_misses_from_now_on_is_another_one() -> None:
    text = """
        pipeline: shop
        sources:
          a: {gem: file, options: {format: json, path: a, schema: "id int, n int"}}
          b: {gem: file, options: {format: json, path: b, schema: "id int, n int"}}
        transforms:
          both: {gem: union, inputs: [a, b], options: {allow_missing_columns: true}}
          last: {gem: aggregate, input: both, options: {group_by: [id], aggregates: {c: count(n)}}}
        targets: {out: {gem: console, input: last, output_mode: update}}
    """
    fewer = text.replace('path: b, schema: "id int, n int"', 'path: b, schema: "id int"')
    assert verdict(text, fewer).verdict == "mixed"
    assert verdict(fewer, text).verdict == "mixed"
