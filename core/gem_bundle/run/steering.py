"""How a run is steered: by signals, by its caller, and by what it is asked from outside."""

from __future__ import annotations

import signal
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from pyspark.sql.streaming.query import StreamingQuery

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.runs.record import State
    from gem_bundle.runs.requests import Request


class StopRequest:
    """Whether somebody asked the run to stop, and why; and what single targets were asked.

    Attributes:
        reason: Why the run is to stop; empty as long as it isn't.
        now: Don't wait for the running micro-batches to end.
        states: How the query of each target is.
        starts: How often the query of each target was started.
        failures: What targets have failed with.
        queries: The query of each target, the one that was started last.
        unwell: The limits of health that each target breaks, as JSON takes them.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.now = False
        self.states: dict[str, State] = {}
        self.starts: dict[str, int] = {}
        self.failures: dict[str, Diagnostic] = {}
        self.queries: dict[str, StreamingQuery] = {}
        self.unwell: dict[str, list[dict[str, Any]]] = {}
        self._asked: deque[Request] = deque()

    def __bool__(self) -> bool:
        return bool(self.reason)

    def ask(self, request: Request) -> None:
        """Take a request from outside; may be called from any thread.

        Args:
            request: What is asked: of the whole run, or of one target, which is done between two looks.
        """
        if request.target:
            self._asked.append(request)
        elif request.action == "stop":
            self.now = self.now or request.now
            self.reason = self.reason or f"asked by {request.by}"

    def started(self, target: str, query: StreamingQuery | None = None) -> None:
        """Note that the query of a target runs."""
        self.states[target] = "running"
        if query is not None:
            self.queries[target] = query
        self.starts[target] = self.starts.get(target, 0) + 1

    def failed(self, target: str, failure: Diagnostic) -> None:
        """Note what the query of a target has failed with."""
        self.states[target] = "failed"
        self.failures[target] = failure

    def asked(self) -> Iterator[Request]:
        """What single targets were asked since the last call."""
        while self._asked:
            yield self._asked.popleft()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM for a request to stop while the block runs.

        A second signal is passed on, so that an impatient user gets the process's usual end.
        """
        previous: dict[int, Any] = {}
        taken = False

        def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 (Python's shape)
            nonlocal taken
            if taken:
                signal.signal(number, previous[number])
                signal.raise_signal(number)
            taken = True
            self.reason = self.reason or signal.Signals(number).name

        for wanted in (signal.SIGINT, signal.SIGTERM):
            try:
                previous[wanted] = signal.signal(wanted, handle)
            except ValueError:
                # Not the main thread: whoever runs it there stops it by its own means.
                break
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
