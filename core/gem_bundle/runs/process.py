"""Processes of this machine and of others: which one keeps a record, and whether it is still there."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


@dataclass(frozen=True, slots=True)
class Process:
    """A process, told from all others, also from later ones with its number.

    Args:
        host: The name of its machine or container.
        pid: Its number there.
        boot: Which start of which machine that is; empty where the system doesn't say.
        namespace: Within which numbers of processes count: those of a container are its own.
        began: When the process began, as the system counts; empty where it doesn't say.
    """

    host: str = ""
    pid: int = 0
    boot: str = ""
    namespace: str = ""
    began: str = ""

    def is_here(self) -> bool:
        """Whether this machine can tell if it is still there."""
        here = this_process()
        return (self.host, self.boot, self.namespace) == (here.host, here.boot, here.namespace)

    def is_there(self) -> bool:
        """Whether it still is; ask only where `is_here`."""
        if not self.began:
            return _answers(self.pid)
        return _began(self.pid) == self.began

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> Process:
    """The process that asks."""
    return _process(os.getpid())


@cache
def _process(pid: int) -> Process:
    # By the number: a process that was forked off this one is another.
    return Process(socket.gethostname(), pid, _text(_BOOT), _link(_NAMESPACE), _began(pid))


def _began(pid: int) -> str:
    """When a process began; nothing where there is none, or one that is dead and waited for."""
    stat = _text(Path(f"/proc/{pid}/stat"))
    # The name in brackets may hold anything; the state is the first field behind it, the start the twentieth.
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in {"Z", "X"} else ""


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
