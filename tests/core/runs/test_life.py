"""A run that lives is told from one that was killed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from gem_bundle.run.lock import CheckpointLocks, lock_file
from gem_bundle.runs.life import judge
from gem_bundle.runs.process import Process, this_process
from gem_bundle.runs.record import RunRecord, TargetState

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.runs.record import State

NOW = datetime(2026, 1, 5, 9, 5, tzinfo=UTC)
ELSEWHERE = Process("spark-1", 4711, "another boot", "pid:[1]", "77")
# Of this machine, with a number that another process has taken since.
GONE = replace(this_process(), began="1")


def record(process: Process, silence: float, state: State = "running") -> RunRecord:
    """A record that was renewed so many seconds ago."""
    beat = (NOW - timedelta(seconds=silence)).isoformat()
    return RunRecord("r", "clicks", "1.0.0", process=process, state=state, heartbeat=beat)


@pytest.mark.parametrize(
    ("process", "silence", "expected", "why"),
    [
        (this_process(), 1, "running", ""),
        (this_process(), 31, "silent", "no heartbeat for 31 s"),
        (GONE, 1, "died", "its process is gone"),
        (ELSEWHERE, 1, "running", ""),
        (ELSEWHERE, 29, "running", ""),
        (ELSEWHERE, 3600, "died", "no heartbeat for 3,600 s"),
        (ELSEWHERE, -20, "running", ""),
        (ELSEWHERE, -60, "silent", "the clock of spark-1 is 60 s ahead"),
    ],
)
def test_a_record_says_whether_its_run_lives(
    process: Process, silence: float, expected: str, why: str
) -> None:
    verdict = judge(record(process, silence), now=NOW)
    assert (verdict.state, verdict.why) == (expected, why)
    assert verdict.is_alive == (expected == "running")


@pytest.mark.parametrize("state", ["finished", "stopped", "failed"])
def test_what_has_ended_stays_so_however_long_ago(state: State) -> None:
    for process in (GONE, ELSEWHERE):
        verdict = judge(record(process, 1e6, state), now=NOW)
        assert (verdict.state, verdict.is_alive) == (state, False)


def test_a_lock_that_is_held_says_that_a_silent_run_elsewhere_may_live(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "clicks/table")
    lock = lock_file(checkpoint)
    assert lock is not None
    old = record(ELSEWHERE, 60)
    assert judge(old, [lock], NOW).state == "died", "there is no such file"
    with CheckpointLocks({"table": checkpoint}) as locks:
        assert locks.acquire() == []
        assert judge(old, [lock], NOW).state == "silent"
    assert judge(old, [lock], NOW).state == "died"


def test_a_run_with_a_failed_query_lives_and_is_not_healthy() -> None:
    found = replace(
        record(this_process(), 1), targets={"a": TargetState("running"), "b": TargetState("failed")}
    )
    verdict = judge(found, now=NOW)
    assert (verdict.is_alive, verdict.is_healthy(found)) == (True, False)
    assert verdict.is_healthy(replace(found, targets={"a": TargetState("running")}))


def test_a_heartbeat_that_is_no_time_is_none() -> None:
    odd = replace(record(ELSEWHERE, 1), heartbeat="yesterday")
    assert (judge(odd, now=NOW).state, judge(odd, now=NOW).silence) == ("died", None)
