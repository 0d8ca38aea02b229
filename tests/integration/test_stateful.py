"""State of one's own in a run that is killed between a table's commit and its checkpoint's: each row once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.integration.pipelines import add_rows, command, events, finish, run, write_pipeline
from tests.samples import a_killed_program

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.programs]

PIPELINE = """
pipeline: sums
spark: {spark.sql.shuffle.partitions: 2}
sources:
  readings:
    gem: file
    options: {path: in, format: json, schema: "device string, value long", max_files_per_trigger: 1}
transforms:
  summed:
    gem: stateful
    input: readings
    options: {processor: "summing:Sums", group_by: device, schema: "device string, s long"}
targets:
  out: {gem: delta, input: summed, options: {path: out}}
"""
PROCESSOR = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Sums(StatefulProcessor):
    def init(self, handle):
        self.sum = handle.getValueState("sum", "s bigint")

    def handleInputRows(self, key, rows, timerValues):
        found = (self.sum.get() or (0,))[0] + sum(row.value for row in rows)
        self.sum.update((found,))
        yield Row(device=key[0], s=found)

    def close(self):
        pass
"""
FILES = 8


def killed_behind(folder: Path, file: Path, commits: int) -> None:
    """Run until the table has so many commits, and kill the run and its Java at once."""
    command = [sys.executable, "-m", "gem_bundle", "run", str(file), "--quiet"]
    with (folder / "run.log").open("w") as log:
        program = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            while len([*(folder / "out" / "_delta_log").glob("*.json")]) < commits:
                assert program.poll() is None, (folder / "run.log").read_text()[-2000:]
                time.sleep(0.01)  # a poll of the table's log, which tells nobody that it has grown
        finally:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()


@a_killed_program
@pytest.mark.parametrize("commits", range(1, FILES))
def test_state_and_table_agree_after_a_kill(
    spark: SparkSession, tmp_path: Path, commits: int, user_modules: Path
) -> None:
    file = write_pipeline(tmp_path, PIPELINE)
    for folder in (tmp_path, user_modules):
        (folder / "summing.py").write_text(textwrap.dedent(PROCESSOR), encoding="utf-8")
    sums: Counter[str] = Counter()
    expected = []
    for number in range(FILES):
        rows = [{"device": "abc"[(number + n) % 3], "value": 10 * number + n} for n in range(4)]
        add_rows(tmp_path / "in", f"{number}.json", rows)
        os.utime(tmp_path / "in" / f"{number}.json", (number, number))
        for row in rows:
            sums[str(row["device"])] += int(str(row["value"]))
        expected += [(device, sums[device]) for device in sorted({str(row["device"]) for row in rows})]

    killed_behind(tmp_path, file, commits)
    assert run(file, available_now=True).ok

    found = spark.read.format("delta").load(str(tmp_path / "out")).collect()
    assert sorted((row.device, row.s) for row in found) == sorted(expected)


KEYS = 1_000_000


@pytest.mark.sample(0)  # minutes: a million calls of Python, and some more
def test_a_million_keys_within_two_gigabytes(spark: SparkSession, tmp_path: Path) -> None:
    text = PIPELINE.replace("pipeline: sums", "pipeline: million").replace("device string", "device long")
    text = text.replace("max_files_per_trigger: 1", "max_files_per_trigger: 4")
    memory = "shuffle.partitions: 4, spark.driver.memory: 2g, spark.master: 'local[2]'"
    file = write_pipeline(tmp_path, text.replace("shuffle.partitions: 2", memory))
    (tmp_path / "summing.py").write_text(PROCESSOR)
    (tmp_path / "in").mkdir()
    for part in range(12):
        devices = (number % KEYS for number in range(part * KEYS // 10, (part + 1) * KEYS // 10))
        rows = "".join(f'{{"device": {device}, "value": {device % 7 + 1}}}\n' for device in devices)
        (tmp_path / "in" / f"{part:02}.json").write_text(rows)

    running = command("run", file, "--available-now", "--log-format", "json")
    last = [event for event in events(running) if event["event"] == "progress"][-1]
    assert finish(running)[0] == 0
    assert last["state_rows"] == KEYS
    table = spark.read.format("delta").load(str(tmp_path / "out")).groupBy("device").agg({"s": "max"})
    right = "(device % 7 + 1) * if(device < 200000, 2, 1)"
    found = table.selectExpr("count(*)", "count(distinct device)", f"count_if(`max(s)` = {right})").first()
    assert found is not None
    assert tuple(found) == (KEYS, KEYS, KEYS)
