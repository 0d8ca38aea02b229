"""The server of a run: in a thread of its own, so that whatever becomes of it the run goes on."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError, describe_error
from gem_bundle.run.found import FoundRun
from gem_bundle.run.health import failing
from gem_bundle.run.plan_text import plan_text
from gem_bundle.run.serving.address import TOKEN, is_loopback, token_of
from gem_bundle.run.serving.app import Health, make_app
from gem_bundle.run.serving.drawn import Drawn
from gem_bundle.run.serving.events import Events
from gem_bundle.run.serving.history import History
from gem_bundle.run.serving.metrics import Metrics
from gem_bundle.runs.life import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from starlette.types import ASGIApp

    from gem_bundle.run.options import ServeOptions
    from gem_bundle.run.progress import MicroBatch, Totals
    from gem_bundle.run.recorder import Recorder
    from gem_bundle.run.report import Report
    from gem_bundle.run.steering import StopRequest
    from gem_bundle.runs.record import State
    from gem_bundle.runs.requests import Request

_STUCK_SECONDS = 60.0
_MOST_CONNECTIONS = 128
_HEADER_SECONDS = 10.0
_NICE = 10
_END_SECONDS = 5.0


def check_serving(options: ServeOptions, environment: Mapping[str, str] | None) -> None:
    """See to it that a run may have the server that it is to have.

    Args:
        options: What is asked for.
        environment: Environment variables; None is the process's.

    Raises:
        GemError: GB509 without the packages, GB518 where strangers would reach it.
    """
    try:
        import prometheus_client
        import starlette
        import uvicorn  # noqa: F401 (only whether it is there)
    except ImportError as error:
        message = f"`--serve` needs packages that aren't installed: {error}"
        hint = "Install them with `pip install 'gem-bundle[serve]'`."
        raise GemError("GB509", message, hint) from error
    assert prometheus_client
    assert starlette
    if not token_of(options, environment) and not is_loopback(options.host):
        message = f"a server at {options.host} is reached from other machines and has no token"
        hint = f"Put one into the environment variable {TOKEN}, or listen on 127.0.0.1."
        raise GemError("GB518", message, hint)


def http_server(app: ASGIApp) -> Any:
    """The server that answers with an application, not started yet; it waits for nobody for long."""
    import uvicorn

    from gem_bundle.run.serving.door import Door
    from gem_bundle.run.serving.patience import patient_protocol

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup([])
            self._doors = [
                Door(one, self.server_state.connections, self._protocol, _MOST_CONNECTIONS)
                for one in sockets or ()
            ]

        def _protocol(self) -> asyncio.Protocol:
            make: Any = self.config.http_protocol_class
            state: Any = self.lifespan.state
            made: asyncio.Protocol = make(config=self.config, server_state=self.server_state, app_state=state)
            return made

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for door in self._doors:
                door.close()
            await super().shutdown(sockets)

    return Server(
        uvicorn.Config(
            app,
            http=patient_protocol(_HEADER_SECONDS),
            ws="none",
            lifespan="off",
            loop="asyncio",
            interface="asgi3",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=1,
        )
    )


@contextmanager
def answering(app: ASGIApp, options: ServeOptions, events: Events) -> Iterator[str]:
    """Answer with an application in a thread of its own while the block runs; its value is the address.

    Args:
        app: The application.
        options: Where it listens.
        events: Whose listeners are told when it ends.

    Raises:
        OSError: When nothing can listen there.
    """
    listening, address = _listen(options)
    answers = http_server(app)

    async def serve() -> None:
        events.begin()
        await answers.serve(sockets=[listening])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="gem-bundle-serve", daemon=True)
    with listening:
        thread.start()
        yield address
        events.close()
        answers.should_exit = True
        thread.join(_END_SECONDS)


def _listen(options: ServeOptions) -> tuple[socket.socket, str]:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listening = socket.create_server((options.host, options.port), family=family, backlog=1024)
    host = f"[{options.host}]" if ":" in options.host else options.host
    return listening, f"http://{host}:{listening.getsockname()[1]}"


def _give_way() -> None:
    """Let this thread have less of a processor than Spark where both want one.

    Only Linux has priorities of threads; elsewhere it would be the whole process that gives way.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            before = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(before + _NICE, 19))


class RunServer:
    """A view that passes everything on to the record of the run, and answers over HTTP meanwhile.

    Use it as a context manager, from before the session starts until it has ended.

    Args:
        options: Where it listens, and what it allows.
        environment: Environment variables, for the token; None is the process's.
        recorder: The record of the run.
        stop: What is asked goes there.
        warn: Who is told when there is no server, any more; the run goes on.
        tell: Who is told the address.
        drawn: The pipeline as others may see it.
        rejecting: For each target the nodes on its way that may reject rows.
    """

    def __init__(
        self,
        options: ServeOptions,
        environment: Mapping[str, str] | None,
        recorder: Recorder,
        stop: StopRequest,
        warn: Callable[[Diagnostic], None] | None = None,
        tell: Callable[[str], None] | None = None,
        drawn: Drawn | None = None,
        rejecting: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        record = recorder.record
        self._drawn = drawn or Drawn({}, str)
        self._history = History()
        self.metrics = Metrics(record.pipeline, record.version, record.gem_bundle, rejecting)
        self.events = Events()
        self._options = options
        self._token = token_of(options, environment)
        self._recorder = recorder
        self._stop = stop
        self._warn = warn
        self._tell = tell
        self._states: dict[str, State] = {}
        self._starts: dict[str, int] = {}
        self._looked = time.monotonic()
        self._server: Any = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """Where it answers; empty where it couldn't begin to."""
        return self._recorder.record.address

    def __enter__(self) -> Self:
        try:
            listening, address = _listen(self._options)
            self._recorder.serves_at(address)
            self._server = self._make()
        except Exception as error:  # noqa: BLE001 (whatever it is, the run goes on)
            self._fail(error)
            return self
        self._thread = threading.Thread(
            target=self._serve, args=(listening,), name="gem-bundle-serve", daemon=True
        )
        self._thread.start()
        if self._tell is not None:
            self._tell(self.address)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is None:
            return
        with suppress(RuntimeError):  # the loop has ended by itself
            self.events.close()
        self._server.should_exit = True
        self._thread.join(_END_SECONDS)

    def _make(self) -> Any:
        app = make_app(self, self._options.host, self._token, allow_control=self._options.allow_control)
        return http_server(app)

    def _serve(self, listening: socket.socket) -> None:
        async def serve() -> None:
            _give_way()
            self.events.begin()
            await self._server.serve(sockets=[listening])

        try:
            with listening:
                asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 (uvicorn leaves by SystemExit too)
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._warn is not None:
            where = f"{self._options.host}:{self._options.port}"
            message = f"the run goes on without its server at {where}: {describe_error(error)}"
            hint = "Take another port, or 0 for a free one. `gem-bundle status` tells how the run is."
            self._warn(Diagnostic("GB519", "warning", message, hint=hint))

    # What the server's thread asks.

    def status(self) -> dict[str, Any]:
        """The run as JSON takes it: what `gem-bundle status --format json` has for it."""
        record = self._recorder.current
        found = FoundRun(record, judge(record)).as_dict()
        found["diagnostics"] = self._drawn.without_secrets(found["diagnostics"])
        for target in found["targets"].values():
            target["checkpoint"] = self._drawn.conceal(target["checkpoint"])
            if target["failure"] is not None:
                (target["failure"],) = self._drawn.without_secrets([target["failure"]])
        return found

    def health(self) -> Health:
        """Whether the run works: no query has failed, it still looks at them, and no target is unwell."""
        record = self._recorder.record
        failed = [name for name, state in self._stop.states.items() if state == "failed"]
        silence = time.monotonic() - self._looked
        unwell = [
            f"{name}: {reason}" for name, found in self._stop.unwell.items() for reason in failing(found)
        ]
        if failed or record.state == "failed":
            reason = f"failed: {', '.join(failed)}" if failed else "the run has failed"
        elif record.state in {"running", "stopping"} and silence > _STUCK_SECONDS:
            reason = f"the run hasn't looked at its queries for {silence:,.0f} s"
        elif unwell:
            reason = f"unwell: {'; '.join(unwell)}"
        else:
            reason = ""
        return Health(not reason, record.state, reason)

    def ready(self) -> Health:
        """Whether all queries run, those left out that somebody has stopped."""
        found = self.health()
        if not found.ok:
            return found
        waiting = [name for name, state in self._stop.states.items() if state == "starting"]
        if found.state != "running" or waiting:
            return Health(ok=False, state=found.state, reason=f"the run is {found.state}")
        return found

    def targets(self) -> list[str]:
        """The ids of its targets."""
        return list(self._recorder.record.targets)

    def ask(self, wish: Request) -> None:
        """Ask it to do something."""
        self._stop.ask(wish)

    def pipeline(self) -> dict[str, Any]:
        """The pipeline as JSON takes it."""
        return {"kind": "run", **self._drawn.content}

    def history(self) -> dict[str, Any]:
        """The numbers over time as JSON takes them."""
        return self._history.as_dict()

    def plan(self, target: str) -> str:
        """Spark's plan of the query of a target; empty while there is none."""
        query = self._stop.queries.get(target)
        return "" if query is None else self._drawn.conceal(plan_text(query))

    # What the run tells.

    def started(self, report: Report) -> None:
        """All queries run."""
        self._recorder.started(report)
        self._look()

    def progress(self, batch: MicroBatch, totals: Totals) -> None:
        """A micro-batch ended."""
        self._recorder.progress(batch, totals)
        self.metrics.add(totals.target, batch)
        self._history.add(totals.target, batch)
        self.events.publish("progress", {"target": totals.target, **batch.as_dict()})

    def tick(self) -> None:
        """A moment has passed."""
        self._recorder.tick()
        self._look()

    def stopping(self, reason: str) -> None:
        """The queries are asked to stop."""
        self._recorder.stopping(reason)
        self._look()

    def happened(self, event: str, facts: Mapping[str, Any]) -> None:
        """Something else happened to a target."""
        self._recorder.happened(event, facts)
        self.metrics.happened(event, facts)
        told = dict(facts)
        if told.get("failure") is not None:
            (told["failure"],) = self._drawn.without_secrets([told["failure"]])
        self.events.publish(event, told)
        self._look()

    def ended(self, report: Report) -> None:
        """The run is over."""
        self._recorder.ended(report)
        self._look()
        found = report.as_dict()
        found["diagnostics"] = self._drawn.without_secrets(found["diagnostics"])
        self.events.publish("ended", found)

    def _look(self) -> None:
        self._looked = time.monotonic()
        for target, starts in self._stop.starts.items():
            while self._starts.get(target, 0) < starts:
                self._starts[target] = self._starts.get(target, 0) + 1
                self.metrics.query_started(target)
        states = dict(self._stop.states)
        if states == self._states:
            return
        self._states = states
        self.metrics.states(states)
        self.events.publish("states", {"state": self._recorder.record.state, "targets": states})
