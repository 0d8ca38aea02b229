"""Changes into Delta tables by `merge` and `history`: each counts once, whoever is killed on the way."""

from __future__ import annotations

import signal
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.gems import merging
from tests.gems.draining import forget_last_commit
from tests.integration.pipelines import add_rows, command, events, finish, run, write_pipeline
from tests.samples import a_killed_program, drawn, examples, seed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

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
FILES = 10
VERSIONS = ("id", "part", "at", "city", "note", "valid_from", "valid_to", "is_current")


class Feed:
    """Changes out of their order by up to three micro-batches, and what has to become of them.

    Args:
        folder: Where the pipeline is.
        count: How many changes.
        keys: Of how many keys.
        text: The pipeline.
    """

    def __init__(self, folder: Path, count: int, keys: int, text: str = CHANGES) -> None:
        self.folder = folder
        self.file = write_pipeline(folder, text)
        random = Random(seed())
        size = count // FILES
        found = merging.late(random, merging.changes(random, count, keys), 3 * size)
        self.rows = found
        for number in range(FILES + 1):
            part = found[number * size : (number + 1) * size if number < FILES else None]
            named = [dict(zip(merging.COLUMNS, row, strict=True)) for row in part]
            add_rows(folder / "in", f"{number:02}.json", named)

    def check(self, spark: SparkSession) -> None:
        """The tables are what plain Python makes of the changes."""
        for name, columns, expected in (
            ("latest", merging.COLUMNS, merging.upserted(self.rows)),
            ("versions", VERSIONS, merging.versions(self.rows)),
        ):
            table = spark.read.format("delta").load(str(self.folder / "out" / name)).select(*columns)
            found = [tuple(row) for row in table.collect()]
            assert len(found) == len(expected)
            assert set(found) == expected


@pytest.mark.matrix
def test_targets_of_a_group_merge_what_came_late_and_what_comes_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    feed = Feed(tmp_path, 300, 15, GROUPED)
    assert run(feed.file, available_now=True).ok
    feed.check(spark)
    forget_last_commit(tmp_path / "checkpoints/changes/both")
    again = run(feed.file, available_now=True)
    assert again.ok
    assert again.rows_in > 0
    feed.check(spark)


@a_killed_program
@pytest.mark.programs
@pytest.mark.parametrize("kill", drawn(range(20), 1, about="kills of a merge"))
def test_a_killed_run_leaves_the_table_as_the_changes_make_it(
    spark: SparkSession, tmp_path: Path, kill: int
) -> None:
    feed = Feed(tmp_path, examples(1_000, 100_000), examples(50, 5_000))
    process = command("run", feed.file, "--available-now")
    list(islice((event for event in events(process) if event["event"] == "progress"), 1 + kill))
    process.send_signal(signal.SIGKILL)
    assert finish(process)[0] == -signal.SIGKILL
    assert run(feed.file, available_now=True).ok
    feed.check(spark)
