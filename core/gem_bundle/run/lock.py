"""One run for each checkpoint: a lock that the operating system drops when the process dies.

The lock is a file beside the checkpoint, locked with ``flock``; so it works for checkpoints on a local or
network disk. On object stores there is no such thing: there `live_record` looks for a run that goes on, and
of two that start at once Spark's own commit log stops the second, when it tries to commit a micro-batch that
the first has committed.
"""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.types import is_remote

if TYPE_CHECKING:
    from types import TracebackType


def lock_file(checkpoint: str) -> Path | None:
    """The file that guards a checkpoint, or None where there can be none."""
    if is_remote(checkpoint):
        return None
    path = Path(checkpoint.removeprefix("file://").removeprefix("file:"))
    return path.parent / f".{path.name}.lock"


class Held(NamedTuple):
    """What is said of a lock that somebody else has.

    Args:
        message: What is so, with ``{}`` for the target; who has it, and the place, come behind it.
        hint: What to do.
    """

    message: str
    hint: str


BY_A_RUN = Held(
    "the checkpoint of target `{}` is in use by another run",
    "Wait until it ends or stop it; two runs on one checkpoint corrupt it.",
)


class CheckpointLocks:
    """Locks on the checkpoints of the targets that run, held until `close`.

    Args:
        checkpoints: The checkpoint location of each target.
        held: What is said where somebody else has one.
    """

    def __init__(self, checkpoints: dict[str, str], held: Held = BY_A_RUN) -> None:
        self._checkpoints = checkpoints
        self._told = held
        self._held: list[int] = []

    def acquire(self) -> list[Diagnostic]:
        """Lock them all; what another run holds is reported, and then nothing stays locked."""
        found: list[Diagnostic] = []
        for target, checkpoint in self._checkpoints.items():
            path = lock_file(checkpoint)
            if path is None:
                continue
            owner = self._lock(path)
            if owner is not None:
                message = f"{self._told.message.format(target)}{owner}: {checkpoint}"
                found.append(Diagnostic("GB401", "error", message, target, hint=self._told.hint))
        if found:
            self.close()
        return found

    def _lock(self, path: Path) -> str | None:
        """Lock one file; returns who holds it otherwise."""
        import fcntl

        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            text = os.read(handle, 4096).decode("utf-8", "replace")
            os.close(handle)
            return _owner(text)
        owner = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(owner).encode())
        self._held.append(handle)
        return None

    def close(self) -> None:
        """Give the locks back. The files stay: removing them would let two runs lock two files."""
        while self._held:
            os.close(self._held.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _owner(text: str) -> str:
    try:
        owner = json.loads(text)
        return f" (process {owner['pid']} on {owner['host']}, since {owner['since']})"
    except (ValueError, KeyError, TypeError):
        return ""
