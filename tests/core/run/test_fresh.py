"""What a killed `run --fresh` left to do, by its journal (Spark's part: tests/integration/test_fresh.py)."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import fsspec
import pytest

from gem_bundle.changes.record import read_record
from gem_bundle.run.fresh import check_fresh, finish_fresh
from tests.core.changes.edits import BASE, plan
from tests.core.changes.test_record import RECORD


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint, the one that is to take its place, and the journal that says so."""
    for name in ("out", ".out.fresh"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "which").write_text(name)
    journal = {"format": 1, "kept": "out.until-3", "record": RECORD.as_json()}
    (tmp_path / ".out.fresh.json").write_text(json.dumps(journal))
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_what_is_left_is_done_from_wherever_it_was(folder: Path, renamed: int) -> None:
    if renamed > 0:
        (folder / "out").rename(folder / "out.until-3")
    if renamed > 1:
        (folder / ".out.fresh").rename(folder / "out")
    (folder / ".out.empty" / "rows").mkdir(parents=True)  # it died before it had removed what it worked with
    for _ in range(2):  # and once more nothing
        assert finish_fresh("out", str(folder / "out")) == []
        assert (folder / "out/which").read_text() == ".out.fresh"
        assert (folder / "out.until-3/which").read_text() == "out"
        assert names(folder) == [".out.record.json", "out", "out.until-3"]
    assert read_record(str(folder / "out")) == RECORD


def test_without_a_journal_what_was_begun_is_removed(folder: Path) -> None:
    (folder / ".out.fresh.json").unlink()
    (folder / ".out.empty").mkdir()
    assert finish_fresh("out", str(folder / "out")) == []
    assert names(folder) == ["out"]
    assert (folder / "out/which").read_text() == "out"
    assert finish_fresh("out", "s3a://bucket/out") == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kept": "x"}', '{"kept": "x", "record": "{}"}'])
def test_a_journal_that_can_not_be_read_stops_the_run(folder: Path, content: str) -> None:
    journal = folder / ".out.fresh.json"
    journal.write_text(content)
    before = names(folder)
    (found,) = finish_fresh("out", str(folder / "out"))
    assert found.code == "GB407"
    assert str(journal) in found.message
    assert names(folder) == before


def test_a_checkpoint_in_a_store_is_no_folder_that_another_could_take_the_place_of() -> None:
    place = f"/{uuid.uuid4().hex}"
    made = plan(BASE.replace("pipeline: shop\n", f"pipeline: shop\ncheckpoints: memory:/{place}\n"))
    to = made.definition.checkpoint("out")
    left = Path(__file__).parents[1] / "changes" / "checkpoints" / "4.2.0" / "aggregation"
    fsspec.filesystem("memory").put(str(left), to.removeprefix("memory:/"), recursive=True)
    (found,) = check_fresh(made, "out")
    assert (found.code, found.node) == ("GB407", "out")
    assert "its checkpoint isn't on a disk" in found.message
    assert "Move the checkpoint away" in found.hint
