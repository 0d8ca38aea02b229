"""Runs and `run --fresh` that are killed where it hurts most: the next run is right, and each row is there once.

Backfills are killed in tests/integration/test_backfill.py; together they die at 20 moments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from gem_bundle.changes.record import read_record
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
    Kill("fresh", f"{FRESH}:finish_fresh", "before"),
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


@pytest.mark.sample(1)
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
