"""State of one's own in a run that is killed between a table's commit and its checkpoint's: each row once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.integration.pipelines import add_rows, command, events, finish, run, write_pipeline
from tests.samples import a_killed_program, seed
from tests.tours import File, tour

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
Event = tuple[str, int]
PAGE = Path(__file__).parents[2] / "docs" / "stateful.md"


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


class Kind(NamedTuple):
    """A pipeline with state of its own, what it reads, and what it makes of that.

    Args:
        pipeline: The pipeline, which reads the folder `in` and writes the Delta table `out`.
        modules: The modules of its processors, by name.
        files: The rows of the files, one for each micro-batch.
        expected: The rows of the table, in any order.
    """

    pipeline: str
    modules: dict[str, str]
    files: list[list[dict[str, object]]]
    expected: list[tuple[object, ...]]


def sums(random: Random) -> Kind:
    """Sums of what came so far, of the devices of each micro-batch."""
    files: list[list[dict[str, object]]] = []
    expected: list[tuple[object, ...]] = []
    so_far: Counter[str] = Counter()
    for _ in range(FILES):
        rows = [(random.choice("abc"), random.randrange(100)) for _ in range(4)]
        files.append([{"device": device, "value": value} for device, value in rows])
        for device, value in rows:
            so_far[device] += value
        expected += [(device, so_far[device]) for device in {device for device, _ in rows}]
    return Kind(PIPELINE, {"summing": PROCESSOR}, files, expected)


def of_page(name: str, target: str) -> tuple[str, dict[str, str]]:
    """A pipeline of the page on state, and the modules there."""
    files = {
        step.name: step.text for step in tour(PAGE.read_text(encoding="utf-8")) if isinstance(step, File)
    }
    text = files[name].replace(", max_files_per_trigger: 1", "")
    text = re.sub(r"path: (incoming|clicks)\b", "path: in, max_files_per_trigger: 1", text)
    head, _, _ = text.partition("targets:")
    text = f"{head}targets:\n  out: {{gem: delta, input: {target}, options: {{path: out}}}}\n"
    settings = "spark: {spark.sql.shuffle.partitions: 2}\n"
    return settings + text, {n.removesuffix(".py"): code for n, code in files.items() if n.endswith(".py")}


def in_files(rows: Sequence[Event], random: Random) -> list[list[Event]]:
    """Files of events, none of which is ten minutes older than one before it."""
    late = sorted(rows, key=lambda row: row[1] + random.uniform(0, 9))
    size = -(-len(late) // FILES)
    return [late[size * number : size * (number + 1)] for number in range(FILES)]


def at(minute: int) -> str:
    return f"{datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%SZ}"


def silences(random: Random) -> Kind:
    """The last reading before each silence, of devices that come back and fall silent again.

    Behind a kill a timer may be due a micro-batch later, when its device has come back.
    """
    pauses = [5, 12, 19, 30, 31, 45, 90]
    lives = {device: [random.randrange(60)] for device in "abcdefghij"}
    for life in lives.values():
        while life[-1] < 500:
            life.append(life[-1] + random.choice(pauses))
    rows = in_files([(device, minute) for device, life in lives.items() for minute in life], random)
    rows[-1].append(("z", 700))
    files: list[list[dict[str, object]]] = [
        [{"device": device, "at": at(minute), "value": float(minute)} for device, minute in part]
        for part in rows
    ]
    return Kind(
        *of_page("silence.yaml", "silent"),
        files,
        [
            (device, float(last))
            for device, life in lives.items()
            for last, following in zip(life, [*life[1:], 700], strict=True)
            if following - last >= 30
        ],
    )


def visits(random: Random) -> Kind:
    """The events of each visit that is over in the end."""
    minutes = random.sample(range(600), 5 * FILES)
    files = in_files([(random.choice("abc"), minute) for minute in minutes], random)
    parts: list[tuple[str, list[int]]] = []
    for user, minute in sorted(event for rows in files for event in rows):
        if parts and parts[-1][0] == user and minute - parts[-1][1][-1] < 30:
            parts[-1][1].append(minute)
        else:
            parts.append((user, [minute]))
    watermark = max(minute for rows in files for _, minute in rows) - 20
    expected: list[tuple[object, ...]] = [
        (user, part[-1] - part[0], [str(minute) for minute in part])
        for user, part in parts
        if part[-1] + 30 <= watermark
    ]
    given: list[list[dict[str, object]]] = [
        [{"user": user, "at": at(minute), "page": str(minute)} for user, minute in rows] for rows in files
    ]
    return Kind(*of_page("visits.yaml", "visits"), given, expected)


@a_killed_program
@pytest.mark.parametrize("commits", range(1, FILES))
@pytest.mark.parametrize("kind", [sums, silences, visits])
def test_state_and_table_agree_after_a_kill(
    spark: SparkSession, tmp_path: Path, commits: int, kind: Callable[[Random], Kind], user_modules: Path
) -> None:
    """Of the page's examples, too: their rows are those of plain Python."""
    made = kind(Random(seed()))
    file = write_pipeline(tmp_path, made.pipeline)
    for name, code in made.modules.items():
        for folder in (tmp_path, user_modules):
            (folder / f"{name}.py").write_text(textwrap.dedent(code), encoding="utf-8")
    for number, rows in enumerate(made.files):
        add_rows(tmp_path / "in", f"{number}.json", rows)
        os.utime(tmp_path / "in" / f"{number}.json", (number, number))

    killed_behind(tmp_path, file, commits)
    assert run(file, available_now=True).ok

    found = spark.read.format("delta").load(str(tmp_path / "out")).collect()
    assert sorted(map(repr, map(tuple, found))) == sorted(map(repr, made.expected))
    assert len(found) > 5


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
