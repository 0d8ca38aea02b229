"""Rejected rows as an output of streams: two tables that have each row once between them, over restarts."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import Pipeline
from gem_bundle.run.view import summary
from tests.gems.draining import forget_last_commit
from tests.integration.pipelines import run, write_pipeline
from tests.samples import rejected_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """
pipeline: shop
version: 2.1.0
sources:
  orders: {gem: file, options: {path: orders, format: text, max_files_per_trigger: 1}}
transforms:
  parsed:
    gem: from_json
    input: orders
    options: {column: value, schema: "id int not null, at timestamp, amount double", rejects: true}
  timely: {gem: watermark, input: parsed, options: {column: at, delay: 10 minutes}}
  plausible: {gem: expect, input: timely, options: {rules: {paid: amount > 0, timed: {column: at, not_null: true}}}}
  bad: {gem: union, inputs: {parsed: parsed.rejected, plausible: plausible.rejected}}
targets:
  good_rows: {gem: delta, input: plausible, options: {path: out/good}}
  bad_rows: {gem: delta, input: bad, options: {path: out/bad}}
"""


def add(folder: Path, name: str, lines: list[str]) -> None:
    (folder / "orders").mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(f"{line}\n" for line in lines))
    hidden.rename(folder / "orders" / name)


def order(number: int) -> str:
    return json.dumps({"id": number, "at": "2024-05-01T10:00:00Z", "amount": 1.5})


def rows(spark: SparkSession, place: Path) -> list[Row]:
    return spark.read.format("delta").load(str(place)).collect()


@rejected_rows
@pytest.mark.matrix
def test_each_row_is_in_one_of_two_tables_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, PIPELINE)
    add(tmp_path, "1.txt", [order(1), "{oh", order(2), '{"id": 3, "at": "2024-05-01T10:00:00Z"}'])
    add(tmp_path, "2.txt", ['{"at": null}', order(4)])
    assert run(file, available_now=True).status == "finished"
    add(tmp_path, "3.txt", ['{"id": 5, "amount": -1}', order(6), ""])
    for target in ("good_rows", "bad_rows"):
        forget_last_commit(tmp_path / "checkpoints/shop" / target)
    assert run(file, available_now=True).status == "finished"

    assert sorted(row.id for row in rows(spark, tmp_path / "out/good")) == [1, 2, 4, 6]
    found = rows(spark, tmp_path / "out/bad")
    told = sorted(
        (row.node, json.loads(row.row).get("value"), [why.name for why in row.reasons]) for row in found
    )
    assert told == [
        ("parsed", "", ["no_text"]),
        ("parsed", '{"at": null}', ["missing_field"]),
        ("parsed", "{oh", ["not_json"]),
        ("plausible", None, ["paid"]),
        ("plausible", None, ["paid", "timed"]),
    ]
    by_number = {json.loads(row.row).get("id"): row for row in found}
    assert by_number[3].event_time is not None
    assert by_number[3].row_schema == "id int, at timestamp, amount double"
    assert by_number[3].pipeline_version == "2.1.0"
    assert {row.origin["file"].rpartition("/")[2] for row in found if row.node == "parsed"} == {
        "1.txt",
        "2.txt",
        "3.txt",
    }


RECORDS = """
pipeline: shop
sources:
  orders:
    gem: file
    options:
      {format: csv, path: orders, schema: "id int not null, amount double", rejects: true, max_files_per_trigger: 1}
transforms:
  plausible: {gem: expect, input: orders, options: {rules: {paid: amount > 0}}}
  few: {gem: select, input: plausible, options: {columns: [id]}}
targets:
  good_rows: {gem: delta, input: few, GROUP options: {path: out/good}}
  unpaid: {gem: delta, input: plausible.rejected, options: {path: out/unpaid}}
  broken: {gem: delta, input: orders.rejected, options: {path: out/broken}}
"""


@rejected_rows
@pytest.mark.matrix
@pytest.mark.sample(1)
@pytest.mark.parametrize("group", ["", "group: all,"])
def test_records_that_do_not_parse_are_in_one_of_both_tables_over_restarts(
    spark: SparkSession, tmp_path: Path, group: str
) -> None:
    file = write_pipeline(tmp_path, RECORDS.replace("GROUP", group))
    checkpoints = ["all"] if group else ["good_rows", "unpaid", "broken"]
    add(tmp_path, "1.csv", ["1,1.5", "x,1", "2"])
    # `few` takes no amounts, and this one doesn't parse nevertheless.
    add(tmp_path, "2.csv", ["3,much", "4,7", ",8", "5,-1"])
    assert run(file, available_now=True).status == "finished"
    assert sorted(p.name for p in (tmp_path / "checkpoints/shop").glob("[a-z]*")) == sorted(checkpoints)
    add(tmp_path, "3.csv", ['"6,7', "8,9"])
    for name in checkpoints:
        forget_last_commit(tmp_path / "checkpoints/shop" / name)
    report = run(file, available_now=True)
    assert report.status == "finished"
    if group:
        # One read for all: of the micro-batch that came again, whichever file that had, and of the new one.
        assert report.rows_in in {3 + 2, 4 + 2}

    assert sorted(row.id for row in rows(spark, tmp_path / "out/good")) == [1, 4, 8]
    (unpaid,) = rows(spark, tmp_path / "out/unpaid")
    assert (json.loads(unpaid.row)["id"], unpaid.origin["file"].rpartition("/")[2]) == (5, "2.csv")
    told = {
        (json.loads(row.row)["record"], row.reasons[0].name, row.origin["file"].rpartition("/")[2])
        for row in rows(spark, tmp_path / "out/broken")
    }
    assert told == {
        ("x,1", "wrong_type", "1.csv"),
        ("2", "not_csv", "1.csv"),
        ("3,much", "wrong_type", "2.csv"),
        (None, "missing_field", "2.csv"),
        ('"6,7', "not_csv", "3.csv"),
    }
    assert len(rows(spark, tmp_path / "out/broken")) == len(told)


@rejected_rows
def test_records_that_do_not_parse_in_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    text = RECORDS.replace("GROUP", "").replace(", max_files_per_trigger: 1", "")
    file = write_pipeline(tmp_path, text.replace("pipeline: shop", "pipeline: shop\nmode: batch"))
    add(tmp_path, "1.csv", ["1,1.5", "x,1", "2", "3,much", "4,-7"])
    report = run(file)
    assert report.status == "finished"
    assert report.held.rejected == {"orders": 3, "plausible": 1}
    assert [row.id for row in rows(spark, tmp_path / "out/good")] == [1]
    assert sorted(json.loads(row.row)["record"] for row in rows(spark, tmp_path / "out/broken")) == [
        "2",
        "3,much",
        "x,1",
    ]


@rejected_rows
def test_event_time_of_rejected_rows_closes_windows(spark: SparkSession, tmp_path: Path) -> None:
    counted = """
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 1 minute}}
  plausible: {gem: expect, input: timely, options: {rules: {paid: amount > 0}}}
  hours:
    gem: aggregate
    input: plausible.rejected
    options:
      window: {column: event_time, duration: 1 hour}
      group_by: {reason: "reasons[0].name"}
      aggregates: {rows: count(*)}
targets:
  good_rows: {gem: noop, input: plausible}
  bad_hours: {gem: delta, input: hours, options: {path: out/hours}}
"""
    source = """
pipeline: shop
sources:
  orders:
    gem: file
    options: {path: orders, format: json, schema: "at timestamp, amount double", max_files_per_trigger: 1}
"""
    file = write_pipeline(tmp_path, source + counted)
    for number, hour in enumerate([9, 9, 12, 15]):
        line: dict[str, Any] = {"at": f"2024-05-01T{hour:02}:00:00Z", "amount": -1}
        add(tmp_path, f"{number}.txt", [json.dumps(line)])
        # Of files of one moment the first is the one that the file system lists first.
        at = 1_760_000_000 + number
        os.utime(tmp_path / "orders" / f"{number}.txt", (at, at))
    assert [found.code for found in Pipeline.load(file).check()] == ["GB340"]
    report = run(file, available_now=True)
    assert report.status == "finished"
    assert [(row.reason, row.rows) for row in rows(spark, tmp_path / "out/hours")] in (
        [("paid", 2)],
        [("paid", 2), ("paid", 1)],
        [("paid", 1), ("paid", 2)],
    )


@rejected_rows
def test_a_rule_that_fails_leaves_nothing_of_its_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    failing = """
pipeline: shop
sources:
  orders: {gem: file, options: {path: orders, format: json, schema: "id int", max_files_per_trigger: 1}}
transforms:
  plausible: {gem: expect, input: orders, options: {action: fail, rules: {counted: id > 0}}}
targets:
  good_rows: {gem: delta, input: plausible, options: {path: out/good}}
"""
    file = write_pipeline(tmp_path, failing)
    add(tmp_path, "1.txt", ['{"id": 1}', '{"id": 2}'])
    assert run(file, available_now=True).status == "finished"
    add(tmp_path, "2.txt", ['{"id": 3}', '{"id": -4}', '{"id": 5}'])
    report = run(file, available_now=True)
    (diagnostic,) = report.diagnostics
    assert diagnostic.code == "GB515", diagnostic.message
    assert (diagnostic.node, diagnostic.line) == ("plausible", 6)
    assert 'a row breaks the rule `counted`: `id > 0` is false. The row: {"id":-4}' in diagnostic.message
    assert sorted(row.id for row in rows(spark, tmp_path / "out/good")) == [1, 2]


RECEIVER = """
def receive(rows, number):
    with open(PLACE, "a") as file:
        file.write("rows come: ")
        file.write(" ".join(str(row.id) for row in rows.collect()))
"""


@rejected_rows
@pytest.mark.parametrize(("mode", "group"), [("", "group: alone, "), ("mode: batch", "")])
def test_a_rule_that_fails_is_asked_before_a_receiver_gets_any_row(
    tmp_path: Path, mode: str, group: str
) -> None:
    module = "receiving_in_a_batch" if mode else "receiving_in_a_group"
    failing = f"""
pipeline: shop
{mode}
sources:
  orders: {{gem: file, options: {{path: orders, format: json, schema: "id int"}}}}
transforms:
  plausible: {{gem: expect, input: orders, options: {{action: fail, rules: {{counted: id > 0}}}}}}
targets:
  good_rows: {{gem: foreach_batch, input: plausible, {group}options: {{function: "{module}:receive"}}}}
"""
    file = write_pipeline(tmp_path, failing)
    received = tmp_path / "received.txt"
    (tmp_path / f"{module}.py").write_text(RECEIVER.replace("PLACE", repr(str(received))))
    options = {} if mode else {"available_now": True}
    add(tmp_path, "1.txt", ['{"id": 3}', '{"id": -4}', '{"id": 5}'])
    (found,) = run(file, **options).diagnostics
    assert (found.code, found.node) == ("GB515", "plausible")
    assert not received.exists()
    add(tmp_path, "1.txt", ['{"id": 3}', '{"id": 5}'])
    assert run(file, **options).ok
    assert received.read_text() == "rows come: 3 5"


COUNTED = """
pipeline: counted
{mode}
sources:
  orders: {{gem: file, options: {{path: orders, format: json, schema: "id int, amount double"}}}}
transforms:
  plausible:
    gem: expect
    input: orders
    options:
      rules:
        paid: amount > 0
        small: {{condition: amount < 100, action: warn}}
        numbered: {{column: id, not_null: true, action: drop}}
targets:
  good: {{gem: delta, input: plausible, {group} options: {{path: good}}}}
  again: {{gem: delta, input: plausible, {group} options: {{path: again}}}}
"""


LIMITED = """
pipeline: limited
{mode}
sources:
  orders: {{gem: file, options: {{path: orders, format: json, schema: "id int, amount double", max_files_per_trigger: 1}}}}
transforms:
  plausible:
    gem: expect
    input: orders
    options: {{rules: {{paid: amount > 0}}, max_rejected: {most}}}
targets:
  good: {{gem: delta, input: plausible, {group} options: {{path: good}}}}
  bad: {{gem: delta, input: plausible.rejected, options: {{path: bad}}}}
"""


@rejected_rows
@pytest.mark.sample(1, by=lambda mode, group, most: mode)
@pytest.mark.parametrize("most", ["50%", "1"])
@pytest.mark.parametrize(("mode", "group"), [("", "group: both,"), ("mode: batch", "")])
def test_too_many_rejected_rows_end_the_query_before_any_is_written(
    spark: SparkSession, tmp_path: Path, mode: str, group: str, most: str
) -> None:
    stream = not mode
    text = LIMITED.format(mode=mode, group=group, most=most)
    file = write_pipeline(tmp_path, text if stream else text.replace(", max_files_per_trigger: 1", ""))
    add(tmp_path, "1.json", [json.dumps({"id": n, "amount": amount}) for n, amount in ((1, 5), (2, -5))])
    options = {"available_now": True} if stream else {}
    assert run(file, **options).ok
    add(tmp_path, "2.json", [json.dumps({"id": n, "amount": -1}) for n in (3, 4)])

    failed = run(file, **options)

    (found,) = failed.diagnostics
    assert (found.code, found.node) == ("GB515", "plausible")
    assert (
        f"{2 if stream else 3} of {2 if stream else 4} rows are rejected, and {most} may be" in found.message
    )
    assert [row.id for row in rows(spark, tmp_path / "good")] == [1]
    assert len(rows(spark, tmp_path / "bad")) == 1


@rejected_rows
@pytest.mark.sample(1, by=lambda mode, group: mode)
@pytest.mark.parametrize(("mode", "group"), [("", ""), ("", "group: both,"), ("mode: batch", "")])
def test_what_nobody_takes_is_counted_and_said(
    spark: SparkSession, tmp_path: Path, mode: str, group: str
) -> None:
    file = write_pipeline(tmp_path, COUNTED.format(mode=mode, group=group))
    pairs = [(1, 5), (2, 500), (3, -1), (None, 7), (None, -7), (None, 700)]
    add(tmp_path, "1.json", [json.dumps({"id": number, "amount": amount}) for number, amount in pairs])

    report = run(file, **({} if mode else {"available_now": True}))

    assert sorted(row.id for row in rows(spark, tmp_path / "good")) == [1, 2]
    assert report.held.rejected == {"plausible": 2}, "a row that is rejected isn't dropped"
    assert report.held.broken == {"plausible": {"small": 2, "numbered": 3}}
    assert report.as_dict()["totals"]["rejected_rows"] == 2
    assert "2 rows rejected by `plausible`, nobody takes them" in summary(report)
    assert "2 rows breaking `small` of `plausible`" in summary(report)
