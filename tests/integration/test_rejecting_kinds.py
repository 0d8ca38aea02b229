"""Each kind of node that rejects rows, in one group that is killed: every row is good, or rejected by one of them, once."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.integration.kill_series import KILLS, kill_often
from tests.integration.pipelines import run, write_pipeline
from tests.samples import a_killed_program, seed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """
pipeline: kinds
sources:
  lines:
    gem: file
    options:
      format: csv
      path: in
      schema: "id int, count string, day string, text string, change string, message string, page string, ms int"
      rejects: true
      max_files_per_trigger: 1
  pages: {gem: rows, mode: batch, options: {schema: "page string, team string", rows: [[home, web], [cart, shop]]}}
transforms:
  counted: {gem: with_columns, input: lines, options: {columns: {counted: cast(count as int)}, rejects: true}}
  dated:
    gem: select
    input: counted
    options:
      columns: [id, counted, cast(day as date) as day, text, change, unbase64(message) as message, page, ms]
      rejects: true
  parsed: {gem: from_json, input: dated, options: {column: text, schema: name string not null, keep: true, rejects: true}}
  captured:
    gem: from_debezium
    input: parsed
    options: {column: change, schema: plan string, keep: true, rejects: true}
  read:
    gem: from_avro
    input: captured
    options:
      column: message
      keep: true
      rejects: true
      schema: {type: record, name: Sent, fields: [{name: sent, type: long}]}
  known: {gem: join, inputs: [read, pages], options: {on: [page], unmatched: reject}}
  plausible: {gem: expect, input: known, options: {rules: {fast: ms < 100}}}
targets:
  good: {gem: delta, input: plausible, group: all, options: {path: out/good}}
"""
NODES = ("lines", "counted", "dated", "parsed", "captured", "read", "known", "plausible")
ROWS = 24
FILES = 2 + 2 * KILLS


def targets() -> str:
    """A table for the rows of each node that rejects."""
    return "".join(
        f"  from_{node}: {{gem: delta, input: {node}.rejected, options: {{path: out/{node}}}}}\n"
        for node in NODES
    )


def line(number: int, by: str | None) -> str:
    """A line that one node rejects, or none."""
    change = {"op": "c", "ts_ms": 7, "after": {"plan": "free"}}
    message = bytes([2]) if by != "read" else bytes([0x80])
    values = [
        number,
        "many" if by == "counted" else 3,
        "31. May" if by == "dated" else "2024-05-31",
        '{"name": ' if by == "parsed" else '{"name": "ada"}',
        json.dumps({"op": "?"} if by == "captured" else change),
        base64.b64encode(message).decode(),
        "nowhere" if by == "known" else "home",
        "slow" if by == "lines" else 700 if by == "plausible" else 7,
    ]
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_NONNUMERIC, doublequote=False, escapechar="\\").writerow(values)
    return written.getvalue().strip()


def write_lines(folder: Path, random: Random) -> dict[int, str | None]:
    """The files, and which node rejects which of their lines."""
    found: dict[int, str | None] = {}
    (folder / "in").mkdir()
    for part in range(FILES):
        numbers = range(part * ROWS, (part + 1) * ROWS)
        # Of each kind there is one in each file.
        kinds: list[str | None] = [
            *NODES,
            *random.choices([None, *NODES], [8, *[1] * len(NODES)], k=ROWS - len(NODES)),
        ]
        random.shuffle(kinds)
        found.update(zip(numbers, kinds, strict=True))
        file = folder / "in" / f"{part:02}.csv"
        file.write_text("".join(f"{line(number, found[number])}\n" for number in numbers))
        os.utime(file, (part, part))
    return found


def rejected(spark: SparkSession, folder: Path, node: str) -> Counter[int]:
    """The rows that a node rejected, and how often each is there."""
    rows = spark.read.format("delta").load(str(folder / "out" / node)).select("row", "node").collect()
    assert {row.node for row in rows} == {node}
    told = [json.loads(row.row) for row in rows]
    # Of what didn't parse the source keeps the record.
    return Counter(int(row["record"].split(",")[0]) if node == "lines" else row["id"] for row in told)


@a_killed_program
@pytest.mark.programs
def test_each_kind_of_node_rejects_each_row_once_after_kills(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, PIPELINE + targets())
    expected = write_lines(tmp_path, Random(seed()))

    died = kill_often("run", file, "--available-now")

    assert run(file, available_now=True).ok, died
    good = Counter(row.id for row in spark.read.format("delta").load(str(tmp_path / "out/good")).collect())
    found = {None: good} | {node: rejected(spark, tmp_path, node) for node in NODES}
    told = {by: Counter(number for number, kind in expected.items() if kind == by) for by in (None, *NODES)}
    assert found == told, died
