"""A run that goes on is told from one that is gone where no lock can be."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from gem_bundle.files import open_folder
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run.live_record import WATCHED_SECONDS, check_live_runs
from gem_bundle.runs.process import Process, this_process
from gem_bundle.runs.record import RunRecord, TargetState, runs_place, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.runs.record import State

PIPELINE = """
pipeline: clicks
checkpoints: PLACE
sources: {ticks: {gem: rate}}
targets:
  table: {gem: file, input: ticks, options: {path: out, format: json}}
  other: {gem: file, input: ticks, options: {path: other, format: json}}
"""
ELSEWHERE = Process("spark-1", 4711, "another boot", "pid:[1]", "77")
GONE = replace(this_process(), began="1")


class Looked:
    """A start on a pipeline with a run's record beside its checkpoints; what the run does while it is watched."""

    def __init__(self, folder: Path, record: RunRecord, place: str, *, beats: bool = True) -> None:
        file = folder / "clicks.yaml"
        file.write_text(PIPELINE.replace("PLACE", place))
        found = load_file(file).definition
        assert found is not None
        self.definition = found
        self.folder = open_folder(runs_place(found))
        targets = {"table": TargetState("running", found.checkpoint("table"))}
        self.record = replace(record, targets=targets)
        self.beats = beats
        self.slept = 0.0
        write_run(self.folder, self.record)

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        if self.beats and self.slept >= 5:
            beat = datetime.fromisoformat(self.record.heartbeat) + timedelta(seconds=self.slept)
            write_run(self.folder, replace(self.record, heartbeat=beat.isoformat()))

    def found(self, *targets: str) -> list[Diagnostic]:
        places = {name: self.definition.checkpoint(name) for name in targets or ("table", "other")}
        return check_live_runs(self.definition, places, self.sleep)


def record(process: Process, silence: float = 1.0, state: State = "running") -> RunRecord:
    beat = datetime.now(UTC) - timedelta(seconds=silence)
    return RunRecord("r", "clicks", "1.0.0", process=process, state=state, heartbeat=beat.isoformat())


def in_memory() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.mark.parametrize("process", [this_process(), ELSEWHERE], ids=["here", "elsewhere"])
@pytest.mark.parametrize("ahead", [0, 3600], ids=["in time", "an hour ahead"])
def test_a_run_that_renews_its_record_keeps_its_checkpoint(
    process: Process, ahead: float, tmp_path: Path
) -> None:
    start = Looked(tmp_path, record(process, 1 - ahead), in_memory())
    (found,) = start.found()
    assert (found.code, found.node) == ("GB401", "table")
    assert f"process {process.pid} on {process.host}" in found.message
    assert found.message.endswith("/clicks/table")
    assert start.slept == 5, "as soon as it has beaten"


def test_one_that_was_killed_elsewhere_is_waited_for_once(tmp_path: Path) -> None:
    start = Looked(tmp_path, record(ELSEWHERE), in_memory(), beats=False)
    assert start.found() == []
    assert start.slept == WATCHED_SECONDS


@pytest.mark.parametrize(
    "gone",
    [record(GONE), record(ELSEWHERE, 3600), record(ELSEWHERE, state="failed")],
    ids=["its process is gone", "an hour ago", "it has ended"],
)
def test_nobody_waits_for_what_is_over(gone: RunRecord, tmp_path: Path) -> None:
    start = Looked(tmp_path, gone, in_memory())
    assert (start.found(), start.slept) == ([], 0)


def test_one_that_ends_meanwhile_has_let_go(tmp_path: Path) -> None:
    class Ending(Looked):
        def sleep(self, seconds: float) -> None:
            self.slept += seconds
            write_run(self.folder, replace(self.record, state="stopped"))

    start = Ending(tmp_path, record(ELSEWHERE), in_memory())
    assert (start.found(), start.slept) == ([], 1)


def test_another_target_is_free(tmp_path: Path) -> None:
    start = Looked(tmp_path, record(ELSEWHERE), in_memory())
    assert (start.found("other"), start.slept) == ([], 0)


def test_on_a_disk_the_lock_says_it(tmp_path: Path) -> None:
    start = Looked(tmp_path, record(ELSEWHERE), str(tmp_path / "checkpoints"))
    assert (start.found(), start.slept) == ([], 0)


def test_a_store_that_nobody_here_can_read_is_left_to_spark(tmp_path: Path) -> None:
    start = Looked(tmp_path, record(ELSEWHERE), in_memory())
    unread = replace(start.definition, checkpoints="nobody-knows://checkpoints")
    assert check_live_runs(unread, {"table": unread.checkpoint("table")}, start.sleep) == []
