"""A start of Spark that can be given up while it goes on, from another thread.

A run finds out what is missing around it while Java starts. When something is, nobody waits for the rest of
the start, and the Java that was started for it ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle.run.lost_java import forget_java

if TYPE_CHECKING:
    from collections.abc import Iterator


class StartGivenUp(Exception):  # noqa: N818 (nothing is wrong with the start itself)
    """The start of Spark was given up, and nothing of it is left."""


class StartGuard:
    """Ends a start of Spark, whichever step it is at; once the session is there it does nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._java: subprocess.Popen[Any] | None = None
        self._over = False
        self.given_up = False

    def give_up(self) -> None:
        """End what was started, and let nothing more be started. From any thread."""
        with self._lock:
            if self._over:
                return
            self.given_up = True
            if self._java is not None:
                _end(self._java)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch a start.

        Raises:
            StartGivenUp: When it was given up, whatever came of it then.
        """
        import pyspark.java_gateway as launcher

        def launch(*args: Any, **kwargs: Any) -> subprocess.Popen[Any]:
            with self._lock:
                if self.given_up:
                    raise StartGivenUp
                self._java = subprocess.Popen(*args, **kwargs)
                return self._java

        # pyspark gives its process to nobody before the Java in it answers.
        kept = vars(launcher)["Popen"]
        vars(launcher)["Popen"] = launch
        try:
            yield
        except Exception as error:
            if self._has_to_end():
                raise StartGivenUp from error
            raise
        finally:
            vars(launcher)["Popen"] = kept
        if self._has_to_end():
            raise StartGivenUp

    def _has_to_end(self) -> bool:
        """Whether the start was given up; it can't be any more after this."""
        with self._lock:
            self._over = not self.given_up
            if self.given_up:
                forget_java()
            return self.given_up


def _end(process: subprocess.Popen[Any]) -> None:
    """End a process, and those that it has started: Spark's scripts ask one Java how to start the other."""
    children = _children(process.pid)
    # Before them: a script whose program has gone may end with 0, and for that pyspark waits for ever.
    process.kill()
    for child in children:
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)
    process.wait()


def _children(pid: int) -> list[int]:
    """The processes below one, where the system tells: elsewhere they end by themselves after a moment."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, file.read_text().split()):
                found += [*_children(child), child]
    return found
