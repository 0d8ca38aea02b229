"""Pipelines run for real: several targets, self-joins, failures, parts, batch."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from gem_bundle.errors import PipelineError
from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.samples import some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

a_run = some_of("what a run does", 4)

pytestmark = pytest.mark.spark

ORDERS = """
sources:
  orders:
    gem: file
    options: {path: orders, format: json, schema: "id int, customer string, amount int", max_files_per_trigger: 1}
"""
TWO_TARGETS = (
    "pipeline: two_targets"
    + ORDERS
    + """
transforms:
  large: {gem: filter, input: orders, options: {condition: amount >= 100}}
  per_customer:
    gem: aggregate
    input: orders
    options: {group_by: [customer], aggregates: {total: sum(amount)}}
targets:
  all_large: {gem: delta, input: large, options: {path: out/large}}
  totals: {gem: delta, input: per_customer, output_mode: complete, options: {path: out/totals}}
"""
)


def orders(folder: Path, name: str, ids: range) -> None:
    add_rows(
        folder / "orders",
        name,
        [{"id": i, "customer": "ab"[i % 2], "amount": i * 10} for i in ids],
    )


def ids(spark: SparkSession, path: Path) -> list[int]:
    return sorted(row.id for row in spark.read.format("delta").load(str(path)).collect())


@a_run
def test_two_targets_of_one_source(spark: SparkSession, tmp_path: Path) -> None:
    orders(tmp_path, "1.json", range(10))
    orders(tmp_path, "2.json", range(10, 20))
    report = run(write_pipeline(tmp_path, TWO_TARGETS), available_now=True)
    assert report.status == "finished"
    assert ids(spark, tmp_path / "out/large") == list(range(10, 20))
    totals = spark.read.format("delta").load(str(tmp_path / "out/totals")).collect()
    assert {row.customer: row.total for row in totals} == {"a": 900, "b": 1000}
    large = report.targets["all_large"]
    assert (large.micro_batches, large.rows_out) == (2, 10)
    # What a source filters while it reads, Spark doesn't count as read.
    assert report.targets["totals"].rows_in == 20


@a_run
def test_a_second_run_continues_where_the_first_ended(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, TWO_TARGETS)
    orders(tmp_path, "1.json", range(10, 12))
    run(file, available_now=True)
    orders(tmp_path, "2.json", range(12, 14))
    report = run(file, available_now=True)
    assert report.targets["all_large"].rows_in == 2
    assert ids(spark, tmp_path / "out/large") == [10, 11, 12, 13]
    assert run(file, available_now=True).rows_in == 0


@a_run
def test_only_one_target_and_what_it_needs(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, TWO_TARGETS)
    orders(tmp_path, "1.json", range(10, 13))
    report = run(file, available_now=True, targets=("all_large",))
    assert list(report.targets) == ["all_large"]
    assert not (tmp_path / "out/totals").exists()
    assert sorted(p.name for p in (tmp_path / "checkpoints/two_targets").glob("[a-z]*")) == ["all_large"]
    report = run(file, available_now=True)
    assert report.targets["all_large"].rows_in == 0, "it continues from the partial run's checkpoint"
    assert report.targets["totals"].rows_in == 3


def test_an_unknown_target_names_those_that_exist(tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, TWO_TARGETS)
    with pytest.raises(PipelineError) as raised:
        run(file, targets=("all_lagre",))
    (found,) = raised.value.diagnostics
    assert found.code == "GB108"
    assert "all_large" in found.hint


@a_run
def test_a_stream_joined_with_itself(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "pipeline: pairs"
        + ORDERS
        + """
transforms:
  pairs:
    gem: join
    inputs: {left: orders, right: orders}
    options: {condition: left.customer = right.customer and left.id < right.id}
  named:
    gem: select
    input: pairs
    options: {columns: {first: left.id, second: right.id}}
targets:
  out: {gem: delta, input: named, options: {path: out/pairs}}
"""
    )
    file = write_pipeline(tmp_path, text)
    orders(tmp_path, "1.json", range(4))
    run(file, available_now=True)
    orders(tmp_path, "2.json", range(4, 6))
    run(file, available_now=True)
    found = spark.read.format("delta").load(str(tmp_path / "out/pairs")).collect()
    expected = [(i, j) for i in range(6) for j in range(i + 1, 6) if i % 2 == j % 2]
    assert sorted((row.first, row.second) for row in found) == expected


@a_run
def test_when_one_target_fails_the_others_stop_cleanly(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_target.py").write_text(
        "def deliver(df, batch_id):\n    if batch_id == 1:\n        raise ValueError('the third order is bad')\n"
    )
    text = (
        "pipeline: one_fails"
        + ORDERS
        + """
targets:
  good: {gem: delta, input: orders, options: {path: out/good}}
  bad: {gem: foreach_batch, input: orders, options: {function: "failing_target:deliver"}}
"""
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for number in range(3):
        orders(tmp_path, f"{number}.json", range(number * 2, number * 2 + 2))
    report = run(write_pipeline(tmp_path, text))
    assert report.status == "failed"
    (found,) = report.diagnostics
    assert (found.code, found.node) == ("GB507", "bad")
    assert "ValueError: the third order is bad" in found.message
    assert "failing_target.py:3" in found.message
    assert "Traceback" not in str(found)
    assert found.line == 9
    assert not [query for query in spark.streams.active if query.name.startswith("one_fails")]
    done = len(ids(spark, tmp_path / "out/good"))
    assert done == report.targets["good"].rows_out
    (tmp_path / "failing_target.py").write_text("def deliver(df, batch_id):\n    df.collect()\n")
    monkeypatch.delitem(__import__("sys").modules, "failing_target")
    assert run(write_pipeline(tmp_path, text), available_now=True).ok
    assert ids(spark, tmp_path / "out/good") == list(range(6)), "no row lost or doubled"


def test_a_mistake_in_one_query_starts_none(spark: SparkSession, tmp_path: Path) -> None:
    # A function may be one of the session's, so only Spark knows whether there is one.
    text = TWO_TARGETS.replace("amount >= 100", "lage(amount)")
    orders(tmp_path, "1.json", range(3))
    report = run(write_pipeline(tmp_path, text), available_now=True)
    assert report.status == "failed"
    (found,) = report.diagnostics
    assert (found.code, found.node, found.line) == ("GB320", "large", 8)
    assert "lage" in found.message
    assert not (tmp_path / "out").exists()


def test_spark_s_refusal_of_an_output_mode_names_the_target(spark: SparkSession, tmp_path: Path) -> None:
    # A natural join isn't followed by the checker, so that only Spark knows what comes of it.
    query = "select customer, sum(amount) as total from orders natural join values ('a') as n(customer) group by customer"
    text = TWO_TARGETS.replace("output_mode: complete, ", "").replace("gem: aggregate", "gem: sql")
    text = text.replace("{group_by: [customer], aggregates: {total: sum(amount)}}", f'{{query: "{query}"}}')
    orders(tmp_path, "1.json", range(3))
    report = run(write_pipeline(tmp_path, text), available_now=True)
    assert [(d.code, d.node) for d in report.diagnostics] == [("GB320", "totals")]
    assert "watermark" in report.diagnostics[0].message


BATCH = """
pipeline: in_batch
mode: batch
sources:
  orders: {gem: file, options: {path: orders, format: json, schema: "id int, customer string, amount int"}}
  names: {gem: rows, options: {rows: [{customer: a, name: Ann}, {customer: b, name: Bob}]}}
transforms:
  named: {gem: join, inputs: [orders, names], options: {how: left, on: [customer]}}
  top: {gem: sort, input: named, options: {by: [amount desc]}}
  first: {gem: limit, input: top, options: {rows: 3}}
targets:
  out: {gem: delta, input: first, output_mode: complete, options: {path: out/top}}
"""


@a_run
def test_a_batch_pipeline_with_the_same_gems(spark: SparkSession, tmp_path: Path) -> None:
    orders(tmp_path, "1.json", range(10))
    file = write_pipeline(tmp_path, BATCH)
    for _ in range(2):
        report = run(file)
        assert report.status == "finished"
        assert report.targets["out"].rows_out == 3
    found = spark.read.format("delta").load(str(tmp_path / "out/top")).collect()
    assert sorted((row.name, row.amount) for row in found) == [("Ann", 80), ("Bob", 70), ("Bob", 90)]
    assert not (tmp_path / "checkpoints").exists()


@a_run
def test_a_static_source_in_a_streaming_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "pipeline: with_static"
        + ORDERS
        + """
  names:
    gem: rows
    mode: batch
    options: {rows: [{customer: a, name: Ann}]}
transforms:
  named: {gem: join, inputs: [orders, names], options: {how: left, on: [customer]}}
targets:
  out: {gem: delta, input: named, options: {path: out/named}}
"""
    )
    orders(tmp_path, "1.json", range(3))
    assert run(write_pipeline(tmp_path, text), available_now=True).ok
    found = spark.read.format("delta").load(str(tmp_path / "out/named")).collect()
    assert sorted((row.id, row.name) for row in found) == [(0, "Ann"), (1, None), (2, "Ann")]


@pytest.mark.parametrize("trigger", ["{once: true}", "{available_now: true}"])
def test_triggers_that_end_by_themselves(spark: SparkSession, tmp_path: Path, trigger: str) -> None:
    text = f"pipeline: p{ORDERS}targets: {{out: {{gem: noop, input: orders, trigger: {trigger}}}}}\n"
    orders(tmp_path, "1.json", range(2))
    orders(tmp_path, "2.json", range(2, 4))
    report = run(write_pipeline(tmp_path, text))
    assert report.status == "finished"
    assert report.rows_in == 4 if "available_now" in trigger else report.rows_in >= 2


def test_the_report_has_the_same_numbers(spark: SparkSession, tmp_path: Path) -> None:
    orders(tmp_path, "1.json", range(10))
    place = tmp_path / "report.json"
    report = run(write_pipeline(tmp_path, TWO_TARGETS), available_now=True, report=place)
    written = json.loads(place.read_text())
    assert written == json.loads(json.dumps(report.as_dict()))
    assert written["status"] == "finished"
    assert written["targets"]["totals"]["rows_in"] == 10


@a_run
def test_parameters_and_profiles_reach_the_run(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "pipeline: with_parameters\nparameters: {least: 100}\nprofiles: {low: {least: 50}}"
        + ORDERS
        + """
transforms:
  large: {gem: filter, input: orders, options: {condition: "amount >= ${least}"}}
targets:
  out: {gem: delta, input: large, options: {path: "out/${least}"}}
"""
    )
    orders(tmp_path, "1.json", range(12))
    file = write_pipeline(tmp_path, text)
    for least, options in ((100, {}), (50, {"profile": "low"}), (110, {"parameters": {"least": "110"}})):
        (tmp_path / "checkpoints").exists() and __import__("shutil").rmtree(tmp_path / "checkpoints")
        run(file, available_now=True, **options)
        assert ids(spark, tmp_path / f"out/{least}") == list(range(least // 10, 12))


def test_a_table_does_not_inherit_the_mark_of_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    text = """
pipeline: marked
sources:
  visits: {gem: file, options: {path: visits, format: json, schema: "at timestamp, page string"}}
transforms:
  timely: {gem: watermark, input: visits, options: {column: at, delay: 1 minute}}
targets:
  table: {gem: delta, input: timely, options: {path: out/visits}}
"""
    add_rows(tmp_path / "visits", "1.json", [{"at": "2026-01-05T09:00:00Z", "page": "a"}])
    assert run(write_pipeline(tmp_path, text), available_now=True).ok
    field = spark.read.format("delta").load(str(tmp_path / "out/visits")).schema["at"]
    assert field.metadata == {}


@a_run
def test_a_first_run_that_died_before_its_first_offsets_is_begun_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders(tmp_path, "1.json", range(10))
    file = write_pipeline(
        tmp_path,
        f"pipeline: first{ORDERS}targets:\n  all: {{gem: delta, input: orders, options: {{path: out}}}}\n",
    )
    assert run(file, available_now=True).ok
    checkpoint = tmp_path / "checkpoints/first/all"
    for folder in (checkpoint / "offsets", checkpoint / "commits"):
        shutil.rmtree(folder)
    (checkpoint / "offsets").mkdir()
    (checkpoint / "offsets/.0.6b1f.tmp").touch()
    shutil.rmtree(tmp_path / "out")

    orders(tmp_path, "2.json", range(10, 20))
    assert run(file, available_now=True).ok

    assert ids(spark, tmp_path / "out") == list(range(20))


LIMITED = """
pipeline: limited
sources:
  orders:
    gem: file
    options: {path: orders, format: json, schema: "id int, at timestamp", max_files_per_trigger: 1}
transforms:
  once: {gem: deduplicate, input: orders, options: {columns: [id]}}
  first: FIRST
  timely: {gem: watermark, input: first, options: {column: at, delay: 1 hour}}
  counted:
    gem: aggregate
    input: timely
    options: {window: {column: at, duration: 1 hour}, aggregates: {orders: count(*)}}
targets:
  hours: {gem: delta, input: counted, options: {path: out/hours}}
"""


@a_run
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "first",
    [
        "{gem: limit, input: once, options: {rows: 7}}",
        '{gem: sql, input: once, options: {query: "select * from once limit 7"}}',
    ],
)
def test_a_limit_counts_on_behind_a_micro_batch_without_rows(
    spark: SparkSession, tmp_path: Path, first: str
) -> None:
    """Spark takes a limit out of a micro-batch without rows, as windows that close have them."""
    file = write_pipeline(tmp_path, LIMITED.replace("FIRST", first))
    for hour in range(1, 6):
        rows = [{"id": i, "at": f"2024-01-31T{hour * 3:02}:00:00Z"} for i in (hour, hour + 1, hour + 2)]
        add_rows(tmp_path / "orders", f"{hour}.json", rows)
        assert run(file, available_now=True).ok

    hours = spark.read.format("delta").load(str(tmp_path / "out/hours")).collect()
    assert sorted((row.window.start.hour, row.orders) for row in hours) == [(3, 3), (6, 1), (9, 1), (12, 1)]
