"""Changes into Delta tables by `merge` and `history`: as DuckDB makes it of them, whoever is killed on the way."""

from __future__ import annotations

import os
import signal
import time
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.gems import merging
from tests.gems.draining import forget_last_commit
from tests.integration import changes_in_duckdb as independent
from tests.integration.pipelines import add_rows, command, finish, run, write_pipeline
from tests.samples import a_killed_program, examples, seed, what_merges_do

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import Popen

    from pyspark.sql import SparkSession

CHANGES = """
pipeline: changes
sources:
  changes:
    gem: file
    options:
      format: json
      path: in
      schema: "id string, part int, at int, op string, city string, note int"
      max_files_per_trigger: 1
targets:
  latest:
    gem: delta
    input: changes
    options:
      path: out/latest
      merge: {on: [id, part], sequence_by: at, delete_when: "op = 'd'"}
  versions:
    gem: delta
    input: changes
    options:
      path: out/versions
      history:
        keys: [id, part]
        sequence_by: at
        delete_when: "op = 'd'"
        track: [city]
        leave_out: [op]
"""
GROUPED = CHANGES.replace("input: changes", "input: changes\n    group: both")
TABLES = {
    "latest": (merging.COLUMNS, independent.latest),
    "versions": (
        ("id", "part", "at", "city", "note", "valid_from", "valid_to", "is_current"),
        independent.versions,
    ),
}


class Feed:
    """Changes in files, out of their order by up to three of them, and a pipeline that reads one at a time.

    Args:
        folder: Where the pipeline is.
        count: How many changes.
        keys: Of how many keys.
        files: In how many files.
        text: The pipeline.
    """

    def __init__(self, folder: Path, count: int, keys: int, files: int, text: str = CHANGES) -> None:
        self.folder = folder
        self.pipeline = write_pipeline(folder, text)
        random = Random(seed())
        changes = merging.changes(random, count, keys)
        size = -(-len(changes) // files)
        self.rows = found = merging.late(random, changes, 3 * size)
        self.files = [folder / "in" / f"{number:03}.json" for number in range(files)]
        for number, file in enumerate(self.files):
            part = found[number * size : (number + 1) * size]
            add_rows(file.parent, file.name, [dict(zip(merging.COLUMNS, row, strict=True)) for row in part])
            # Spark takes the older file first.
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))

    def table(self, spark: SparkSession, name: str) -> set[Any]:
        """The rows of a table, of which there are no two that are equal."""
        if not (self.folder / "out" / name / "_delta_log" / f"{0:020}.json").exists():
            return set()
        table = spark.read.format("delta").load(str(self.folder / "out" / name)).select(*TABLES[name][0])
        found = [tuple(row) for row in table.collect()]
        assert len(set(found)) == len(found)
        return set(found)

    def check(self, spark: SparkSession) -> None:
        """The tables are what all changes make."""
        for name, (_, expected) in TABLES.items():
            assert self.table(spark, name) == expected(self.files)

    def check_killed(self, spark: SparkSession) -> None:
        """Each table is what the committed micro-batches make, or those and the one that was begun."""
        for name, (_, expected) in TABLES.items():
            commits = self.folder / "checkpoints" / "changes" / name / "commits"
            done = [int(path.name) for path in commits.glob("*") if path.name.isdigit()]
            count = max(done, default=-1) + 1
            found = self.table(spark, name)
            assert any(found == expected(self.files[:number]) for number in (count, count + 1)), (name, count)

    def written(self) -> int:
        """How many files tables and checkpoints have."""
        return sum(
            len(names) for part in ("out", "checkpoints") for _, _, names in os.walk(self.folder / part)
        )


def test_duckdb_and_plain_python_make_the_same_of_changes(tmp_path: Path) -> None:
    feed = Feed(tmp_path, 2_000, 60, 4)
    assert independent.latest(feed.files) == merging.upserted(feed.rows)
    assert independent.versions(feed.files) == merging.versions(feed.rows)


@pytest.mark.spark
@pytest.mark.matrix
@what_merges_do
def test_targets_of_a_group_merge_what_came_late_and_what_comes_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    feed = Feed(tmp_path, examples(90, 3_000), examples(8, 100), examples(2, 10), GROUPED)
    assert run(feed.pipeline, available_now=True).ok
    feed.check(spark)
    forget_last_commit(tmp_path / "checkpoints/changes/both")
    again = run(feed.pipeline, available_now=True)
    assert again.ok
    assert again.rows_in > 0
    feed.check(spark)


@a_killed_program
@pytest.mark.spark
@pytest.mark.programs
def test_a_killed_run_leaves_the_tables_as_the_changes_make_them(spark: SparkSession, tmp_path: Path) -> None:
    kills = examples(1, 20)
    feed = Feed(tmp_path, examples(1_000, 100_000), examples(50, 5_000), examples(4, 40))
    random = Random(seed())
    for _ in range(kills):
        process = command("run", feed.pipeline, "--available-now")
        kill_amid(process, feed, random.randrange(1, 100))
        feed.check_killed(spark)
    assert run(feed.pipeline, available_now=True).ok
    feed.check(spark)


def kill_amid(process: Popen[str], feed: Feed, files: int) -> None:
    """Kill a run when it has written so many files, in the middle of whatever it does then."""
    before = feed.written()
    while feed.written() < before + files:
        assert process.poll() is None, "it was to be killed before its end"
        time.sleep(0.01)  # a poll of folders, which tell nobody that they have grown
    process.send_signal(signal.SIGKILL)
    assert finish(process)[0] == -signal.SIGKILL
