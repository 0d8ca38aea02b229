"""One run for each checkpoint."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gem_bundle.run.lock import CheckpointLocks, lock_file

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys
from gem_bundle.run.lock import CheckpointLocks
locks = CheckpointLocks({"t": sys.argv[1]})
assert not locks.acquire()
print("locked", flush=True)
sys.stdin.read()
"""


def held_elsewhere(checkpoint: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(checkpoint)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def end(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)
    process.communicate()


def test_a_free_checkpoint_is_locked_and_given_back(tmp_path: Path) -> None:
    places = {"t": str(tmp_path / "p" / "t")}
    for _ in range(2):
        with CheckpointLocks(places) as locks:
            assert locks.acquire() == []


@pytest.mark.programs
def test_a_checkpoint_in_use_names_the_process_that_holds_it(tmp_path: Path) -> None:
    checkpoint = tmp_path / "p" / "t"
    process = held_elsewhere(checkpoint)
    try:
        (found,) = CheckpointLocks({"t": str(checkpoint)}).acquire()
    finally:
        end(process, signal.SIGKILL)
    assert found.code == "GB401"
    assert found.node == "t"
    assert f"process {process.pid}" in found.message
    assert str(checkpoint) in found.message


@pytest.mark.programs
def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    checkpoint = tmp_path / "p" / "t"
    end(held_elsewhere(checkpoint), signal.SIGKILL)
    with CheckpointLocks({"t": str(checkpoint)}) as locks:
        assert locks.acquire() == []


@pytest.mark.programs
def test_all_locks_or_none(tmp_path: Path) -> None:
    taken, free = tmp_path / "p" / "taken", tmp_path / "p" / "free"
    process = held_elsewhere(taken)
    try:
        found = CheckpointLocks({"free": str(free), "taken": str(taken)}).acquire()
        assert [diagnostic.node for diagnostic in found] == ["taken"]
        with CheckpointLocks({"free": str(free)}) as locks:
            assert locks.acquire() == []
    finally:
        end(process, signal.SIGKILL)


def test_the_lock_lies_beside_the_checkpoint_and_not_in_it(tmp_path: Path) -> None:
    checkpoint = tmp_path / "p" / "t"
    with CheckpointLocks({"t": f"file://{checkpoint}"}) as locks:
        assert locks.acquire() == []
        assert [entry.name for entry in checkpoint.parent.iterdir()] == [".t.lock"]


def test_a_remote_checkpoint_has_no_lock_file() -> None:
    assert lock_file("s3a://bucket/checkpoints/p/t") is None
    assert CheckpointLocks({"t": "s3a://bucket/checkpoints/p/t"}).acquire() == []
