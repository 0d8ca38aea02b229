"""A pipeline keeps running on its checkpoint while its sources are added, reordered and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.samples import some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

sources_that_change = some_of("sources that come and go", 1)

pytestmark = pytest.mark.spark


def text(sources: list[str], *, extra_transform: bool = False) -> str:
    nodes = "".join(
        f'  {name}: {{gem: file, options: {{path: {name}, format: json, schema: "id string"}}}}\n'
        for name in sources
    )
    inputs = list(sources)
    kept = ""
    if extra_transform:
        kept = f'  kept: {{gem: filter, input: {sources[-1]}, options: {{condition: "true"}}}}\n'
        inputs[-1] = "kept"
    return (
        f"pipeline: growing\nsources:\n{nodes}transforms:\n{kept}"
        f"  everything: {{gem: union, inputs: [{', '.join(inputs)}]}}\n"
        "targets:\n  out: {gem: delta, input: everything, options: {path: out/all}}\n"
    )


@sources_that_change
def test_sources_come_go_and_change_places_on_one_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    expected: list[str] = []

    def step(number: int, sources: list[str], *, extra_transform: bool = False) -> None:
        for name in ("a", "b", "c", "d"):
            add_rows(tmp_path / name, f"{number}.json", [{"id": f"{name}{number}"}])
        file = write_pipeline(tmp_path, text(sources, extra_transform=extra_transform))
        run(file, available_now=True, accept=[("GB411", "b")])  # nothing waits in it
        found = spark.read.format("delta").load(str(tmp_path / "out/all")).collect()
        assert sorted(row.id for row in found) == sorted(expected)

    expected += ["a1", "b1"]
    step(1, ["a", "b"])
    # A source that is added is read from its beginning.
    expected += ["a2", "b2", "c1", "c2"]
    step(2, ["a", "b", "c"])
    expected += ["a3", "b3", "c3"]
    step(3, ["c", "a", "b"])
    # One is removed, another added, in the same edit; a transform is put before one of those that stay.
    expected += ["a4", "c4", "d1", "d2", "d3", "d4"]
    step(4, ["d", "a", "c"], extra_transform=True)


@sources_that_change
def test_a_self_join_keeps_its_offsets_when_a_transform_is_put_between(
    spark: SparkSession, tmp_path: Path
) -> None:
    def pipeline(right: str) -> str:
        return (
            "pipeline: selfjoin\nsources:\n"
            '  s: {gem: file, options: {path: s, format: json, schema: "id int"}}\n'
            "transforms:\n"
            '  kept: {gem: filter, input: s, options: {condition: "id >= 0"}}\n'
            f"  pairs: {{gem: join, inputs: {{left: s, right: {right}}}, "
            "options: {condition: left.id = right.id}}\n"
            "  flat: {gem: select, input: pairs, options: {columns: {id: left.id}}}\n"
            "targets:\n  out: {gem: delta, input: flat, options: {path: out/pairs}}\n"
        )

    add_rows(tmp_path / "s", "1.json", [{"id": 1}])
    run(write_pipeline(tmp_path, pipeline("s")), available_now=True)
    add_rows(tmp_path / "s", "2.json", [{"id": 2}])
    # No row is left out by it, which nobody can know beforehand.
    report = run(write_pipeline(tmp_path, pipeline("kept")), available_now=True, accept=[("GB420", "kept")])
    last = report.targets["out"].last
    assert last is not None
    assert last.state_rows == 4, "each of the two readers has read each file once"
    found = spark.read.format("delta").load(str(tmp_path / "out/pairs")).collect()
    assert sorted(row.id for row in found) == [1, 2]


@sources_that_change
def test_its_state_keeps_its_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """Another machine has other processors, and with them another number of partitions."""
    once = (
        "pipeline: once\nspark: {spark.sql.shuffle.partitions: 1}\n"
        'sources:\n  rows: {gem: file, options: {path: in, format: json, schema: "id string"}}\n'
        "transforms:\n  new: {gem: deduplicate, input: rows}\n"
        "targets:\n  out: {gem: delta, input: new, options: {path: out}}\n"
    )
    seen: list[str] = []
    for number, partitions in enumerate((1, 3, 2)):
        seen.append(f"row {number}")
        add_rows(tmp_path / "in", f"{number}.json", [{"id": name} for name in seen])
        file = write_pipeline(tmp_path, once.replace("partitions: 1", f"partitions: {partitions}"))
        before = spark.conf.get("spark.sql.shuffle.partitions")
        report = run(file, available_now=True)
        assert report.ok, report.diagnostics
        assert spark.conf.get("spark.sql.shuffle.partitions") == before
    found = spark.read.format("delta").load(str(tmp_path / "out")).collect()
    assert sorted(row.id for row in found) == seen
    assert [
        path.name for path in (tmp_path / "checkpoints/once/out/state/0").iterdir() if path.name[0] != "_"
    ] == ["0"]
