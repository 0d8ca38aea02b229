"""Who holds a lease: a run, its process and its machine."""

from __future__ import annotations

import json
import os
import socket
import uuid
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

BEAT_SECONDS = 5.0
"""How often an owner shows that it lives."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a lease.

    Args:
        run: The id of the run.
        host: The name of its machine.
        pid: Its process.
        process: What tells this process from all others of a Linux kernel since it booted; empty elsewhere.
        bundle: The bundle and its version.
        since: When it took the lease, ISO 8601 in UTC, for people to read.
        every: How often it beats, in seconds.
        beat: How many beats it has written.
        released: It has given the lease back.
    """

    run: str
    host: str = ""
    pid: int = 0
    process: str = ""
    bundle: str = ""
    since: str = ""
    every: float = BEAT_SECONDS
    beat: int = 0
    released: bool = False

    def __str__(self) -> str:
        if not self.host:
            return "an unknown run"
        bundle = f"{self.bundle}, " if self.bundle else ""
        return f"{bundle}process {self.pid} on {self.host}, since {self.since}"

    def as_bytes(self) -> bytes:
        """The content of the file."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def of(cls, content: bytes) -> Owner:
        """Who wrote a file's content; of a file that is being written nothing is known."""
        known = {field.name for field in fields(cls)}
        try:
            found = {key: value for key, value in json.loads(content).items() if key in known}
            owner = cls(**found)
            right = isinstance(owner.run, str) and isinstance(owner.every, int | float) and owner.every > 0
        except (ValueError, TypeError, AttributeError):
            right = False
        return owner if right else cls("")


def this_process(bundle: str, *, every: float = BEAT_SECONDS) -> Owner:
    """This process as an owner, with a new run id.

    Args:
        bundle: The bundle and its version.
        every: How often it will beat, in seconds.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    pid = os.getpid()
    return Owner(uuid.uuid4().hex, socket.gethostname(), pid, _process(pid) or "", bundle, now, every)


def _process(pid: int) -> str | None:
    """The boot, the namespace and the start of a process; None when it isn't there, empty when unknown."""
    proc = Path("/proc")
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
        namespace = (proc / "self/ns/pid").readlink()
    except OSError:
        return ""
    try:
        # Behind the name, which may hold blanks and parentheses; the state is field 3, the start field 22.
        facts = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        state, started = facts[0], facts[19]
    except (OSError, IndexError):
        return None
    # It has ended, and its parent hasn't asked how: in many containers nobody ever does.
    if state in "ZX":
        return None
    return f"{boot} {namespace} {started}"


def lives_here(owner: Owner) -> bool | None:
    """Whether a process of this machine lives; None when it isn't one of this machine or nobody can tell."""
    mine = _process(os.getpid())
    if not mine or not owner.process or owner.process.rpartition(" ")[0] != mine.rpartition(" ")[0]:
        return None
    return _process(owner.pid) == owner.process
