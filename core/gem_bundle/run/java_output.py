"""What a Java that this process starts prints: passed on while this process lives, and no longer.

A program keeps the standard output that it is started with. A Java that still has something to do when this
process has ended would keep it open, and whoever reads it, a pipe or a CI job, would wait for that Java.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1 << 16


class JavaOutput:
    """Passes on what a program prints, as long as this process lives.

    Raises:
        OSError: When this process has no standard output, or may open no more files.
    """

    def __init__(self) -> None:
        self._to = os.dup(1)
        self._from, self._given = os.pipe()
        self._passing = threading.Lock()
        self._reader = threading.Thread(target=self._pass_on, name="java-output", daemon=True)

    @contextmanager
    def given(self) -> Iterator[None]:
        """Give it to a program that is started now as its standard output."""
        sys.stdout.flush()
        os.dup2(self._given, 1)
        try:
            yield
        finally:
            sys.stdout.flush()
            os.dup2(self._to, 1)
            # Only the program has it now, so the end of what comes is the end of the program.
            os.close(self._given)
            self._reader.start()

    @property
    def taken(self) -> bool:
        """Whether a program that was started meanwhile has it, and runs."""
        poll = select.poll()
        poll.register(self._from, 0)
        return not poll.poll(0)

    def flush(self) -> None:
        """Pass on what was printed up to now."""
        with self._passing:
            while self._is_there():
                if not self._pass_one():
                    return

    def hand_over(self) -> int:
        """Stop passing on, and give away the end that is read.

        Returns:
            Its file descriptor. Reading it ends when the program does.
        """
        self.flush()
        self._passing.acquire()  # for good: the reader must not take what is another's
        return self._from

    def close(self) -> None:
        """Give up what it has open, where nobody has `taken` it."""
        self._reader.join()
        os.close(self._to)
        os.close(self._from)

    def _pass_on(self) -> None:
        more = True
        while more:
            self._is_there(wait=True)
            with self._passing:
                more = not self._is_there() or self._pass_one()

    def _is_there(self, *, wait: bool = False) -> bool:
        """Whether something can be read, its end too."""
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        return bool(poll.poll(None if wait else 0))

    def _pass_one(self) -> bool:
        chunk = os.read(self._from, _CHUNK)
        # Whoever read the standard output may have gone: the program mustn't wait for that.
        with suppress(OSError):
            left = memoryview(chunk)
            while left:
                left = left[os.write(self._to, left) :]
        return bool(chunk)
