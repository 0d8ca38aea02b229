"""When a run adds to the record, and what of it counts."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.checkpoint import SparkCheckpoint
from gem_bundle.changes.history import MOST_VERSIONS, keep_versions, record_of, what_ran, with_version
from gem_bundle.changes.logs import Commit, Offsets
from gem_bundle.changes.record import Accepted, Record, read_record, record_file, write_record
from gem_bundle.files import below
from tests.checked import plan_of
from tests.core.changes.test_record import RECORD, VERSION

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.changes.record import VersionRecord

A = replace(VERSION, first_batch=0, pipeline_version="1", accepted=(), continues="")
B = replace(A, pipeline_version="2")
C = replace(A, pipeline_version="3")


def spark(done: int, begun: int | None = None, query: str = "q") -> SparkCheckpoint:
    """A checkpoint in which so many micro-batches are done."""
    begun = done if begun is None else begun
    commits = (Commit(done - 1),) if done else ()
    return SparkCheckpoint("/c", query, (Offsets(begun - 1, "v2"),) if begun else (), commits)


def ran(*versions: tuple[VersionRecord, int]) -> Record:
    return Record("t", tuple(replace(v, first_batch=n) for v, n in versions), "q")


def test_the_first_run_writes_down_what_it_is() -> None:
    made = with_version(None, "t", A, None)
    assert made == Record("t", (A,))


def test_a_run_that_does_not_differ_writes_nothing() -> None:
    later = replace(A, started="2099")
    assert with_version(ran((A, 0)), "t", later, spark(5)) is None
    assert with_version(Record("t", (A,)), "t", later, None) is None
    assert with_version(ran((B, 0), (A, 3)), "t", later, spark(5)) is None


def test_one_that_differs_counts_from_its_first_micro_batch_on() -> None:
    made = with_version(ran((A, 0)), "t", B, spark(5), (Accepted("GB410"),))
    assert made is not None
    assert [(v.pipeline_version, v.first_batch) for v in made.versions] == [("1", 0), ("2", 5)]
    assert made.versions[-1].accepted == (Accepted("GB410"),)
    assert made.query == "q"


def test_a_checkpoint_that_was_there_before_has_a_record_from_then_on() -> None:
    made = with_version(None, "t", A, spark(9))
    assert made is not None
    assert [v.first_batch for v in made.versions] == [9]


def test_a_version_whose_first_micro_batch_never_ran_is_replaced() -> None:
    made = with_version(ran((A, 0), (B, 5)), "t", C, spark(5))
    assert made is not None
    assert [(v.pipeline_version, v.first_batch) for v in made.versions] == [("1", 0), ("3", 5)]
    back = with_version(ran((A, 0), (B, 5)), "t", A, spark(5))
    assert back is not None
    assert [v.pipeline_version for v in back.versions] == ["1"]


def test_one_that_was_begun_and_is_not_done_runs_again_with_the_new_version() -> None:
    made = with_version(ran((A, 0), (B, 5)), "t", C, spark(5, begun=6))
    assert made is not None
    assert [(v.pipeline_version, v.first_batch) for v in made.versions] == [("1", 0), ("3", 5)]


def test_one_that_a_checkpoint_was_made_anew_for_stays() -> None:
    record = ran((A, 0), (replace(A, continues="/c.until-5"), 5))
    assert with_version(record, "t", A, spark(5)) is None
    made = with_version(record, "t", B, spark(5))
    assert made is not None
    assert [(v.pipeline_version, v.first_batch) for v in made.versions] == [("1", 0), ("1", 5), ("2", 5)]


def test_the_same_version_after_a_kill_before_its_first_micro_batch_is_kept_as_it_is() -> None:
    record = ran((A, 0), (B, 5))
    assert with_version(record, "t", replace(B, started="2099"), spark(5)) is None


def test_what_was_accepted_for_it_is_kept_once() -> None:
    record = ran((A, 0), (replace(B, accepted=(Accepted("GB410", "", "1"),)), 5))
    assert with_version(record, "t", B, spark(5), (Accepted("GB410", "", "2"),)) is None
    made = with_version(record, "t", B, spark(5), (Accepted("GB410", "", "2"), Accepted("GB411", "", "2")))
    assert made is not None
    assert made.versions[-1].accepted == (Accepted("GB410", "", "1"), Accepted("GB411", "", "2"))


def test_of_a_checkpoint_that_is_gone_or_another_one_nothing_counts() -> None:
    record = ran((A, 0), (B, 5))
    assert what_ran(record, None).versions == ()
    assert what_ran(record, spark(9, query="other")).versions == ()
    assert what_ran(record, spark(9)).versions == record.versions
    made = with_version(record, "t", B, None)
    assert made is not None
    assert [(v.pipeline_version, v.first_batch) for v in made.versions] == [("2", 0)]
    assert made.query == ""


def test_a_record_does_not_grow_for_ever() -> None:
    record: Record | None = None
    for number in range(MOST_VERSIONS + 10):
        record = with_version(record, "t", replace(A, pipeline_version=str(number)), spark(number))
        assert record is not None
    assert len(record.versions) == MOST_VERSIONS  # type: ignore[union-attr]


@pytest.fixture(params=["local", "memory"])
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    root = str(tmp_path) if request.param == "local" else f"memory://{uuid.uuid4().hex}"
    return f"{root}/checkpoints/clicks/table"


def test_it_lies_beside_the_checkpoint_wherever_that_is(checkpoint: str) -> None:
    assert read_record(checkpoint) is None
    write_record(checkpoint, RECORD)
    write_record(checkpoint, replace(RECORD, query="other"))
    assert read_record(checkpoint) == replace(RECORD, query="other")
    assert below(*record_file(checkpoint)) == f"{checkpoint.rpartition('/')[0]}/.table.record.json"


PIPELINE = """
pipeline: small
checkpoints: ROOT
sources:
  numbers: {gem: file, options: {path: in, format: json, schema: "id bigint"}}
targets:
  out: {gem: file, input: numbers, options: {path: out, format: json}}
"""


def kept(tmp_path: Path, root: str, more: str = "") -> list[str]:
    file = tmp_path / "small.yaml"
    file.write_text(PIPELINE.replace("ROOT", root) + more)
    plan = plan_of(file)
    return [str(diagnostic) for diagnostic in keep_versions(plan, ["out"])]


def test_a_pipeline_is_written_down_once(tmp_path: Path) -> None:
    assert kept(tmp_path, "c") == []
    place = tmp_path / "c/small/.out.record.json"
    before = place.read_bytes(), place.stat().st_mtime_ns, place.stat().st_ino
    assert kept(tmp_path, "c", "# A comment.") == []
    assert (place.read_bytes(), place.stat().st_mtime_ns, place.stat().st_ino) == before
    assert kept(tmp_path, "c", "version: 1.1.0") == []
    record = read_record(str(tmp_path / "c/small/out"))
    assert record is not None
    assert [v.pipeline_version for v in record.versions] == ["1.1.0"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is cut off, or isn't JSON"),
        ('{"format": 1, "tar', "is cut off, or isn't JSON"),
        ("[]", "isn't a record of gem-bundle"),
        ('{"format": 99}', "is of format 99"),
    ],
)
def test_a_record_that_can_not_be_read_is_an_error_that_says_where(
    tmp_path: Path, content: str, says: str
) -> None:
    kept(tmp_path, "c")
    place = tmp_path / "c/small/.out.record.json"
    place.write_text(content)
    (found,) = kept(tmp_path, "c")
    assert "error[GB404]" in found
    assert says in found
    assert str(place) in found
    assert record_of("out", str(tmp_path / "c/small/out"))[1][0].code == "GB404"
    assert place.read_text() == content


def test_where_none_can_be_kept_the_run_is_warned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = kept(tmp_path, "wasbs://box@account/c")
    assert "warning[GB405]" in found
    assert "wasbs" in found
    (tmp_path / "file").write_text("")
    (found,) = kept(tmp_path, "file")
    assert "warning[GB405]" in found
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    (found,) = kept(tmp_path, "d")
    assert "warning[GB405]" in found
    assert "on Spark's side" in found
