"""A look at a checkpoint before a run continues from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gem_bundle.run.checkpoint import check_checkpoint, has_source_evolution

if TYPE_CHECKING:
    from pathlib import Path


def healthy(folder: Path, version: str = "v2") -> Path:
    for log in ("offsets", "commits"):
        (folder / log).mkdir(parents=True)
        for batch in range(12):
            (folder / log / str(batch)).write_text(f"{version if log == 'offsets' else 'v1'}\n{{}}\n")
            (folder / log / f".{batch}.crc").write_bytes(b"\0")
    (folder / "metadata").write_text('{"id":"593617ef-6385-44dd-9a2e-f3717d7dd811"}')
    return folder


def codes(folder: Path, *, source_evolution: bool = True) -> list[str]:
    return [d.code for d in check_checkpoint("t", str(folder), source_evolution=source_evolution)]


def test_nothing_there_is_fine(tmp_path: Path) -> None:
    assert codes(tmp_path / "none") == []
    assert codes(tmp_path) == []


def test_a_whole_checkpoint_is_fine(tmp_path: Path) -> None:
    assert codes(healthy(tmp_path / "c")) == []


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("metadata", "{", "`metadata` isn't JSON"),
        ("metadata", '{"x": 1}', "has no query id"),
        ("offsets/11", "", "`offsets/11` is empty"),
        ("offsets/11", "garbage", "does not begin with a version"),
        ("offsets/11", 'v2\n{"batchWater', "`offsets/11` is cut off"),
        ("commits/11", "", "`commits/11` is empty"),
    ],
)
def test_a_damaged_checkpoint_says_which_file(tmp_path: Path, file: str, content: str, says: str) -> None:
    folder = healthy(tmp_path / "c")
    (folder / file).write_text(content)
    (found,) = check_checkpoint("t", str(folder), source_evolution=True)
    assert found.code == "GB402"
    assert says in found.message
    assert str(folder) in found.message
    assert "Restore" in found.hint


def test_the_latest_batch_counts_and_not_the_alphabetically_last(tmp_path: Path) -> None:
    folder = healthy(tmp_path / "c")
    (folder / "offsets" / "9").write_text("")
    assert codes(folder) == []


def test_a_missing_metadata_file_is_damage(tmp_path: Path) -> None:
    folder = healthy(tmp_path / "c")
    (folder / "metadata").unlink()
    assert codes(folder) == ["GB402"]


def test_a_checkpoint_without_named_sources_can_not_be_continued_with_them(tmp_path: Path) -> None:
    folder = healthy(tmp_path / "c", version="v1")
    assert codes(folder) == ["GB403"]
    assert codes(folder, source_evolution=False) == []


def test_remote_checkpoints_are_left_to_spark() -> None:
    assert check_checkpoint("t", "s3a://bucket/c", source_evolution=True) == []


def test_source_evolution_can_be_switched_off() -> None:
    key = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
    assert has_source_evolution({})
    assert not has_source_evolution({key: "false"})
