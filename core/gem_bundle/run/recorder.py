"""Keeps the record of a run while it runs, and takes what it is asked from outside.

A thread of its own writes and looks, so that a slow store never holds up a micro-batch; what is written is
put together between two looks at the queries, as the numbers change there.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import PipelineError, describe_error
from gem_bundle.files import advice, open_folder
from gem_bundle.pipeline.secrets import hidden
from gem_bundle.run.moments import now_text
from gem_bundle.run.plan_text import plan_text
from gem_bundle.runs.life import BEAT_SECONDS, judge
from gem_bundle.runs.process import this_process
from gem_bundle.runs.record import (
    ENDED,
    KEPT,
    RunRecord,
    RunRecordError,
    TargetState,
    read_run,
    remove_run,
    run_ids,
    runs_place,
    write_run,
)
from gem_bundle.runs.requests import answer, take
from gem_bundle.types import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from gem_bundle.files import Folder
    from gem_bundle.pipeline.model import Definition
    from gem_bundle.run.progress import MicroBatch, Totals
    from gem_bundle.run.report import Report
    from gem_bundle.run.steering import StopRequest
    from gem_bundle.run.supervisor import View
    from gem_bundle.runs.record import State

RECENT = 20
"""So many of the last micro-batches of each target are in the record."""

_LOOK_SECONDS = 1.0
# A look at a store lists a folder, which costs money there.
_LOOK_SECONDS_REMOTE = 4.0
_PATIENCE_SECONDS = 20.0


class Recorder:
    """A view that passes everything on to another, and keeps the run's record up to date meanwhile.

    Use it as a context manager: with its end the record says how the run ended.

    Args:
        definition: The pipeline.
        checkpoints: The checkpoint location of each target that has one; without any, nothing is written.
        report: The numbers of the run.
        view: Who is told too.
        stop: What is asked from outside goes there.
        warn: Who is told when no record can be kept; the run goes on.
    """

    def __init__(
        self,
        definition: Definition,
        checkpoints: Mapping[str, str],
        report: Report,
        view: View,
        stop: StopRequest,
        warn: Callable[[Diagnostic], None] | None = None,
    ) -> None:
        self._checkpoints = checkpoints
        self._report = report
        self._view = view
        self._stop = stop
        self._warn = warn
        self._place = runs_place(definition)
        now = now_text()
        # Its id begins with the time, so that the newest is known by its name.
        began = now[:19].translate(str.maketrans("", "", "-:"))
        self.record = RunRecord(
            f"{began}-{secrets.token_hex(4)}",
            definition.name,
            definition.version,
            version("gem-bundle"),
            definition.file,
            this_process(),
            started=now,
        )
        self._recent: dict[str, deque[dict[str, Any]]] = {
            name: deque(maxlen=RECENT) for name in report.targets
        }
        self._due = 0.0
        self._began: float | None = None
        self._changed = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="gem-bundle-record", daemon=True)

    def __enter__(self) -> Self:
        self._renew("starting")
        if self._checkpoints:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and not self._report.ended:
            self._renew("failed" if isinstance(error, Exception) else "stopped", error)
        else:
            self._renew(self._report.status)
        self._over.set()
        self._changed.set()
        # A store that doesn't answer mustn't keep the process from ending.
        if self._checkpoints:
            self._thread.join(_PATIENCE_SECONDS)

    def started(self, report: Report) -> None:
        """All queries run."""
        self._began = time.monotonic()
        self._renew("running")
        self._view.started(report)

    def progress(self, batch: MicroBatch, totals: Totals) -> None:
        """A micro-batch ended."""
        self._recent[totals.target].append(batch.as_dict())
        self.record = self._put_together(self.record.state)
        self._view.progress(batch, totals)

    def tick(self) -> None:
        """A moment has passed."""
        states = {name: target.state for name, target in self.record.targets.items()}
        if time.monotonic() >= self._due or any(
            states.get(name) != state for name, state in self._stop.states.items()
        ):
            self._renew("stopping" if self.record.state == "stopping" else "running")
        self._view.tick()

    def stopping(self, reason: str) -> None:
        """The queries are asked to stop."""
        self._renew("stopping")
        self._view.stopping(reason)

    def happened(self, event: str, facts: Mapping[str, Any]) -> None:
        """Something else happened to a target."""
        self._renew(self.record.state)
        self._view.happened(event, facts)

    def ended(self, report: Report) -> None:
        """The run is over; the record says so when the checkpoints are free for the next one."""
        self._view.ended(report)

    @property
    def current(self) -> RunRecord:
        """The record as it would be written now; may be asked for from any thread."""
        seconds = self.record.seconds if self.record.ended else self._lasted
        return replace(self.record, heartbeat=now_text(), seconds=seconds)

    @property
    def _lasted(self) -> float:
        """How long the queries have run, in seconds."""
        if self._report.ended or self._began is None:
            return self._report.seconds
        return round(time.monotonic() - self._began, 3)

    def serves_at(self, address: str) -> None:
        """Note the address of the run's server."""
        self.record = replace(self.record, address=address)
        self._changed.set()

    def _renew(self, state: State, error: BaseException | None = None) -> None:
        """Let the record say what is so now, and be written at once."""
        self.record = self._put_together(state, error)
        self._due = time.monotonic() + BEAT_SECONDS
        self._changed.set()

    def _put_together(self, state: State, error: BaseException | None = None) -> RunRecord:
        report = self._report
        found = list(report.diagnostics)
        if isinstance(error, PipelineError):
            found += error.diagnostics
        elif isinstance(error, Exception):
            found.append(Diagnostic("GB508", "error", f"the run failed: {describe_error(error)}"))
        ended = state in ENDED
        return replace(
            self.record,
            state=state,
            reason=hidden(self._stop.reason),
            ended=now_text() if ended else "",
            seconds=self._lasted,
            targets={name: self._target(name, totals, state) for name, totals in report.targets.items()},
            diagnostics=tuple(diagnostic.rewritten(hidden).as_dict() for diagnostic in found),
        )

    def _target(self, name: str, totals: Totals, state: State) -> TargetState:
        failure = self._stop.failures.get(name)
        return TargetState(
            self._stop.states.get(name, state),
            self._checkpoints.get(name, ""),
            totals.as_dict(),
            tuple(self._recent[name]),
            failure.rewritten(hidden).as_dict() if failure is not None else None,
            tuple(self._stop.unwell.get(name, ())),
        )

    def _keep(self) -> None:
        """Write the record when it has changed, and at every beat; look for what is asked."""
        try:
            folder = open_folder(self._place)
            self._write(folder)
        except Exception as error:  # noqa: BLE001 (every store raises what its client raises)
            if self._warn is not None:
                self._warn(_unkept(self._place, error))
            return
        self._forget_old(folder)
        pause = _LOOK_SECONDS_REMOTE if is_remote(self._place) else _LOOK_SECONDS
        last = time.monotonic()
        while not self._over.is_set():
            is_due = self._changed.wait(pause) or time.monotonic() - last >= BEAT_SECONDS
            # What fails now may work at the next beat; meanwhile the record says how old it is.
            with suppress(Exception):
                if is_due:
                    last = time.monotonic()
                    self._write(folder)
                for request in take(folder, self.record.id):
                    if request.action == "plan":
                        answer(folder, self.record.id, request, self._plan(request.target))
                    else:
                        self._stop.ask(request)
        with suppress(Exception):
            self._write(folder)
            take(folder, self.record.id)  # what came too late

    def _plan(self, target: str) -> str:
        """Spark's plan of the query of a target; empty where there is none."""
        query = self._stop.queries.get(target)
        try:
            return "" if query is None else hidden(plan_text(query))
        except Exception:  # noqa: BLE001 (it has just ended, or its server doesn't answer)
            return ""

    def _write(self, folder: Folder) -> None:
        self._changed.clear()
        write_run(folder, self.current)

    def _forget_old(self, folder: Folder) -> None:
        """Remove the records of runs that ended long ago."""
        with suppress(Exception):
            for run in run_ids(folder.names())[KEPT:]:
                try:
                    is_over = not judge(read_run(folder, run)).is_alive
                except RunRecordError:
                    is_over = True
                if is_over:
                    remove_run(folder, run)


def _unkept(place: str, error: Exception) -> Diagnostic:
    said = describe_error(error)
    return Diagnostic(
        "GB516",
        "warning",
        f"no record is kept of this run: {said}, at {place}",
        hint=f"It can't be seen and stopped by `gem-bundle status` and `gem-bundle stop`. {advice(said)}",
    )
