"""Runs and `run --fresh` that are killed where it hurts most: the next run is right, and each row is there once.

Backfills are killed in tests/integration/test_backfill.py.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from gem_bundle.changes.record import read_record
from gem_bundle.errors import PipelineError
from tests.gems.draining import forget_last_commit
from tests.integration.kill_series import kill_at
from tests.integration.pipelines import add_rows, run, write_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.programs]

PIPELINE = """
pipeline: lines
spark: {spark.sql.shuffle.partitions: 1}
sources:
  orders: {gem: file, options: {path: in, format: json, schema: "id int, at timestamp"}}
transforms:
  rated: {gem: with_columns, input: orders, options: {columns: {rate: id * 2}}}
  once: {gem: NODE}
targets:
  out: {gem: delta, input: once, options: {path: out}}
"""
PLAIN = PIPELINE.replace("gem: NODE", "gem: filter, input: rated, options: {condition: id >= 0}")
STATE = PIPELINE.replace("gem: NODE", "gem: deduplicate, input: rated, options: {columns: [id]}")
FRESH = "gem_bundle.run.fresh"
RUN = "gem_bundle.run.api"


class Kill(NamedTuple):
    """A moment of a command: a function that it calls, before or behind its so-manieth call."""

    command: str
    where: str
    when: str
    number: int = 1

    def __str__(self) -> str:
        return f"{self.command} {self.when} {self.where.rpartition(':')[2]} {self.number}"


KILLS = [
    # Between the record and the first micro-batch.
    Kill("run", f"{RUN}:run_queries", "before"),
    Kill("run", "gem_bundle.changes.history:write_record", "before"),
    Kill("run", "gem_bundle.changes.history:write_record", "behind"),
    Kill("run", "gem_bundle.run.frames:Frames.of", "behind"),
    # In the middle of `--fresh`.
    Kill("fresh", f"{FRESH}:_run_empty", "before"),
    Kill("fresh", f"{FRESH}:_run_empty", "behind"),
    Kill("fresh", f"{FRESH}:_compose", "before"),
    Kill("fresh", f"{FRESH}:_compose", "behind"),
    Kill("fresh", f"{FRESH}:finish_fresh", "before", 2),  # the first call looks for what was left
    Kill("fresh", "pathlib:Path.rename", "before", 1),
    Kill("fresh", "pathlib:Path.rename", "behind", 1),
    Kill("fresh", "pathlib:Path.rename", "behind", 2),
    Kill("fresh", f"{FRESH}:write_record", "before"),
    Kill("fresh", f"{FRESH}:write_record", "behind"),
]


def add(folder: Path, name: str, *ids: int) -> None:
    """Rows of which each is of the hour that is its number."""
    add_rows(folder / "in", name, [{"id": n, "at": f"2026-01-01T{n:02}:30:00Z"} for n in ids])


def table(spark: SparkSession, folder: Path) -> list[tuple[int, int]]:
    found = spark.read.format("delta").load(str(folder / "out")).select("id", "rate").collect()
    return sorted((row.id, row.rate) for row in found)


@pytest.mark.sample(1, rule="kills of runs")
@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_the_next_run_is_right(spark: SparkSession, tmp_path: Path, kill: Kill) -> None:
    file = write_pipeline(tmp_path, STATE if kill.command == "fresh" else PLAIN)
    add(tmp_path, "a.json", 0, 1, 2, 3)
    assert run(file, available_now=True).ok
    add(tmp_path, "b.json", 4, 5)
    if kill.command == "run":
        write_pipeline(tmp_path, PLAIN.replace("id * 2", "id * 10"))
    fresh = ["--fresh", "out"] if kill.command == "fresh" else []
    kill_at(kill.where, kill.when, kill.number, "run", file, "--available-now", *fresh)
    assert [number for number, _ in table(spark, tmp_path)] == [0, 1, 2, 3], (
        "it was to die before its micro-batch"
    )
    add(tmp_path, "c.json", 6)
    assert run(file, available_now=True).ok
    later = 10 if kill.command == "run" else 2
    assert table(spark, tmp_path) == [(n, n * (2 if n < 4 else later)) for n in range(7)]
    record = read_record(str(tmp_path / "checkpoints" / "lines" / "out"))
    assert record is not None
    kept = [path for path in (tmp_path / "checkpoints" / "lines").iterdir() if ".until-" in path.name]
    versions = 2 if kill.command == "run" else 1 + len(kept)
    assert len(record.versions) == versions
    # And it goes on, as if nothing had been.
    add(tmp_path, "d.json", 7)
    assert run(file, available_now=True).ok
    assert [number for number, _ in table(spark, tmp_path)] == [*range(8)]


class Edit(NamedTuple):
    """An edit of a pipeline with state, which `--fresh` is for.

    Args:
        name: What is done.
        pipeline: The pipeline.
        replaced: The texts that are replaced, with those in their place.
        expected: The rows of the table before it, right behind it, and when one more row has come.
    """

    name: str
    pipeline: str
    replaced: dict[str, str]
    expected: tuple[list[tuple[Any, ...]], ...]


# Which rows are in a sum, and how often, its bits tell.
TOTALS = """
pipeline: lines
spark: {spark.sql.shuffle.partitions: 1}
sources:
  orders: {gem: file, options: {path: in, format: json, schema: "id int, at timestamp"}}
transforms:
  keyed:
    gem: with_columns
    input: orders
    options: {columns: {k: "if(id % 2 = 0, 'a', 'A')", bit: "shiftleft(1L, id)"}}
  totals: {gem: aggregate, input: keyed, options: {group_by: [k], aggregates: {n: sum(bit)}}}
targets:
  out: {gem: delta, input: totals, output_mode: complete, options: {path: out}}
"""
OTHER_KEY = {"id * 2": "id * 10", "columns: [id]": "columns: [rate]"}
EDITS = [
    Edit(
        "count to sum",
        TOTALS.replace("sum(bit)", "count(*)"),
        {"count(*)": "sum(bit)"},
        ([("A", 2), ("a", 2)], [("A", 0b100000), ("a", 0b1010000)], [("A", 0b10100000), ("a", 0b1010000)]),
    ),
    Edit(
        "k to upper(k)",
        TOTALS,
        {"[k]": "[upper(k) as k]"},
        ([("A", 0b1010), ("a", 0b101)], [("A", 0b1110000)], [("A", 0b11110000)]),
    ),
    Edit(
        "duplicates by another key",
        STATE,
        OTHER_KEY,
        tuple([(n, n * (2 if n < 4 else 10)) for n in range(rows)] for rows in (4, 7, 8)),
    ),
]


class KillOfEdit(NamedTuple):
    """A kill of `run --fresh` of an edited pipeline.

    Args:
        kill: When it dies.
        edit: The edit.
        repeated: The next run is the same command once more, and not one without `--fresh`.
    """

    kill: Kill
    edit: Edit
    repeated: bool

    def __str__(self) -> str:
        again = "once more" if self.repeated else "plain"
        return f"{self.edit.name}, {str(self.kill).removeprefix('fresh ')}, {again}"


# The last one lies between the new record and the first micro-batch on new state.
KILLS_OF_FRESH = [
    *(kill for kill in KILLS if kill.command == "fresh"),
    Kill("fresh", f"{RUN}:run_queries", "before"),
]
_edits = cycle(EDITS)
KILLS_OF_EDITS = [
    KillOfEdit(kill, next(_edits), repeated) for repeated in (False, True) for kill in KILLS_OF_FRESH
]


def all_rows(spark: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    found = spark.read.format("delta").load(str(folder / "out")).drop("at").collect()
    return sorted(tuple(row) for row in found)


@pytest.mark.sample(1, rule="kills of runs")
@pytest.mark.parametrize("killed", KILLS_OF_EDITS, ids=str)
def test_new_state_of_an_edited_pipeline_begins_where_the_old_one_ended(
    spark: SparkSession, tmp_path: Path, killed: KillOfEdit
) -> None:
    kill, edit, repeated = killed
    before, behind, later = edit.expected
    file = write_pipeline(tmp_path, edit.pipeline)
    add(tmp_path, "a.json", 0, 1, 2, 3)
    assert run(file, available_now=True).ok
    add(tmp_path, "b.json", 4, 5)
    edited = edit.pipeline
    for old, new in edit.replaced.items():
        assert old in edited
        edited = edited.replace(old, new)
    write_pipeline(tmp_path, edited)
    kill_at(kill.where, kill.when, kill.number, "run", file, "--available-now", "--fresh", "out")
    assert all_rows(spark, tmp_path) == before, "it was to die before its micro-batch"
    add(tmp_path, "c.json", 6)

    checkpoints = tmp_path / "checkpoints" / "lines"
    begun = (checkpoints / ".out.fresh.json").exists() or any(checkpoints.glob("out.until-*"))
    if not begun and not repeated:
        # The old state is still there, and without `--fresh` it would get into new results.
        with pytest.raises(PipelineError) as stopped:
            run(file, available_now=True)
        told = {found.message.partition(":")[0] for found in stopped.value.diagnostics}
        assert told & {"mixed", "refused"}
        assert all_rows(spark, tmp_path) == before
    report = run(file, available_now=True, fresh=("out",) if repeated or not begun else ())
    assert (report.ok, report.rows_in) == (True, 3), report.diagnostics
    assert all_rows(spark, tmp_path) == behind

    # A micro-batch that is committed in Delta and not in Spark has the number that it had.
    forget_last_commit(checkpoints / "out")
    assert run(file, available_now=True).ok
    assert all_rows(spark, tmp_path) == behind
    add(tmp_path, "d.json", 7)
    assert run(file, available_now=True).ok
    assert all_rows(spark, tmp_path) == later

    names = sorted(path.name for path in checkpoints.iterdir() if not path.name.startswith("."))
    kept = [name for name in names if name != "out"]
    assert kept == ["out.until-1", "out.until-1.2"][: 1 + (begun and repeated)]
    left = {path.name for path in checkpoints.iterdir()} - set(names)
    assert left == {".out.lock", ".out.record.json", ".runs"}
    record = read_record(str(checkpoints / "out"))
    assert record is not None
    assert [version.first_batch for version in record.versions] == [0, *[1] * len(kept)]
    assert [version.continues.rpartition("/")[2] for version in record.versions[1:]] == kept
