"""Whether a run lives: what its record says, held against the process and the time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle.runs.record import ENDED, State

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gem_bundle.runs.record import RunRecord

BEAT_SECONDS = 5.0
"""So often a run renews its record."""

SILENT_SECONDS = 30.0
"""A run that hasn't renewed its record for so long isn't taken for one that lives."""

Life = State | Literal["died", "silent"]


@dataclass(frozen=True)
class Verdict:
    """How a run is.

    Args:
        state: What the record says, or ``died``, or ``silent`` for one that may live and says nothing.
        why: How that is known, where the record alone doesn't say it.
        silence: Seconds since the record was renewed; None when it isn't known.
    """

    state: Life
    why: str = ""
    silence: float | None = None

    @property
    def is_alive(self) -> bool:
        """Whether it goes on."""
        return self.state not in ENDED and self.state not in {"died", "silent"}

    def is_healthy(self, record: RunRecord) -> bool:
        """Whether it goes on, no query of it has failed, and no target breaks a limit of its health."""
        return self.is_alive and all(
            target.state != "failed" and not any(found.get("level") == "fail" for found in target.unwell)
            for target in record.targets.values()
        )

    def as_dict(self) -> dict[str, Any]:
        """The verdict as JSON takes it."""
        return {"state": self.state, "why": self.why, "silence": self.silence}


def judge(record: RunRecord, locks: Iterable[Path] = (), now: datetime | None = None) -> Verdict:
    """Say whether the run that wrote a record still lives.

    On the machine that it runs on, its process tells. Elsewhere the age of its record does, for which the
    clocks have to agree; of one that has been silent for too long, a lock that is held says that it may live.

    Args:
        record: The record.
        locks: The files that the run holds locks on, where there are any that this machine can see.
        now: The time; by default that of this machine's clock.
    """
    if record.state in ENDED:
        return Verdict(record.state)
    silence = _seconds_since(record.heartbeat, now or datetime.now(UTC))
    is_fresh = silence is not None and abs(silence) <= SILENT_SECONDS
    if record.process.is_here():
        if not record.process.is_there():
            return Verdict("died", "its process is gone", silence)
        return Verdict(record.state if is_fresh else "silent", "" if is_fresh else _words(silence), silence)
    if is_fresh:
        return Verdict(record.state, "", silence)
    if silence is not None and silence < 0:
        return Verdict("silent", f"the clock of {record.process.host} is {-silence:,.0f} s ahead", silence)
    if any(_is_held(lock) for lock in locks):
        return Verdict("silent", f"{_words(silence)}, but its checkpoints are locked", silence)
    return Verdict("died", _words(silence), silence)


def _words(silence: float | None) -> str:
    return "its record says no time" if silence is None else f"no heartbeat for {silence:,.0f} s"


def _seconds_since(text: str, now: datetime) -> float | None:
    try:
        return (now - datetime.fromisoformat(text)).total_seconds()
    except (ValueError, TypeError):
        return None


def _is_held(lock: Path) -> bool:
    """Whether somebody holds a lock on a file."""
    import fcntl

    try:
        handle = os.open(lock, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # that disk knows no locks
        return False
    finally:
        os.close(handle)
    return False
