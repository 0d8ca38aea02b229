"""The server of a run: what it answers, whom it refuses, and that the run never waits for it."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import os
import re
import socket
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.pipeline.loader import load_file
from gem_bundle.run import serving
from gem_bundle.run.api import run_file
from gem_bundle.run.held import HeldRows
from gem_bundle.run.options import RunOptions, ServeOptions
from gem_bundle.run.serving import door, events, server
from gem_bundle.run.serving.address import is_own, own_names, parse_address
from gem_bundle.run.serving.assets import assets
from gem_bundle.run.serving.metrics import METRICS, MOST_SOURCES, OTHERS, Metrics
from gem_bundle.run.serving.server import RunServer, check_serving
from gem_bundle.runs.requests import Request
from tests.clock import set_clock
from tests.core.run.test_recorder import PIPELINE, Run
from tests.core.run.test_report_and_view import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[3] / "docs" / "watching.md"
FULL = replace(
    BATCH,
    phases_ms={"addBatch": 4000, "walCommit": 300},
    state_bytes=2048,
    state_commit_ms=250,
    lag={"clicks": 7, "in": 2, "table": 1},
    lag_units={"in": "files", "table": "versions"},
    lag_seconds={"clicks": 2.5},
    held=HeldRows({"plausible": 2}, {"plausible": {"even": 1}}),
)
OPEN_METRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


class Served:
    """A run without Spark, and its server."""

    def __init__(self, folder: Path, stack: ExitStack, **options: Any) -> None:
        file = folder / "clicks.yaml"
        file.write_text(PIPELINE)
        definition = load_file(file).definition
        assert definition is not None
        self.run = Run(definition)
        self.warnings: list[Diagnostic] = []
        stack.enter_context(self.run.recorder)
        stack.callback(self.run.end)
        self.server = RunServer(
            ServeOptions(**options), {}, self.run.recorder, self.run.stop, self.warnings.append
        )
        stack.enter_context(self.server)

    def begin(self) -> None:
        self.run.stop.started("table")
        self.server.started(self.run.report)

    def micro_batch(self) -> None:
        totals = self.run.report.targets["table"]
        totals.add(FULL)
        self.server.progress(FULL, totals)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.server.address.removeprefix("http://"), timeout=60)

    def ask(
        self, path: str, method: str = "GET", body: str | None = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        """The status, the content and the headers of an answer."""
        connection = self.connect()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        content = answer.read().decode()
        connection.close()
        is_json = answer.headers.get_content_type() == "application/json"
        return answer.status, json.loads(content) if is_json else content, dict(answer.headers)


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[Served]:
    with ExitStack() as stack:
        yield Served(folder, stack, **options)


def samples(text: str) -> dict[tuple[str, str], float]:
    """The samples of metrics by their name and the value of their most special label."""
    special = ("rule", "node", "phase", "source", "state", "target", "pipeline")
    return {
        (sample.name, next(sample.labels[label] for label in special if label in sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.servers
def test_it_tells_the_numbers_of_the_run(tmp_path: Path) -> None:
    with served(tmp_path) as run:
        assert run.run.recorder.record.address == run.server.address
        assert run.ask("/ready")[:2] == (
            503,
            {"ok": False, "state": "starting", "reason": "the run is starting"},
        )
        assert run.ask("/health")[0] == 200
        run.begin()
        for _ in range(2):
            run.micro_batch()
        assert run.ask("/ready")[:2] == (200, {"ok": True, "state": "running", "reason": ""})
        status, found, headers = run.ask("/api/v1/status")
        assert (status, headers["content-type"], headers["cache-control"]) == (
            200,
            "application/json",
            "no-store",
        )
        assert found["targets"]["table"]["totals"] == json.loads(
            json.dumps(run.run.report.targets["table"].as_dict())
        )
        assert (found["state"], found["healthy"], found["pipeline"]) == ("running", True, "clicks")

        status, text, headers = run.ask("/metrics", **OPEN_METRICS)
        assert (status, headers["content-type"].split(";")[0]) == (200, "application/openmetrics-text")
        of = samples(text)
        totals = run.run.report.targets["table"]
        assert of["gem_bundle_rows_in_total", "table"] == totals.rows_in == 24_000
        assert of["gem_bundle_rows_out_total", "table"] == totals.rows_out
        assert of["gem_bundle_late_rows_total", "table"] == totals.late_rows
        assert of["gem_bundle_micro_batches_total", "table"] == totals.micro_batches
        assert of["gem_bundle_micro_batch_seconds_sum", "table"] == pytest.approx(totals.busy_ms / 1000)
        assert of["gem_bundle_micro_batch_phase_seconds_sum", "addBatch"] == 8
        assert of["gem_bundle_state_commit_seconds_total", "table"] == 0.5
        assert of["gem_bundle_state_memory_bytes", "table"] == 2048
        assert (of["gem_bundle_lag_records", "clicks"], of["gem_bundle_lag_files", "in"]) == (7, 2)
        assert of["gem_bundle_rejected_rows_total", "plausible"] == totals.held.rejected["plausible"] == 4
        assert of["gem_bundle_rule_breaks_total", "even"] == 2
        assert of["gem_bundle_query_starts_total", "table"] == 1
        assert of["gem_bundle_watermark_timestamp_seconds", "table"] == 1357016400
        assert (of["gem_bundle_target_state", "running"], of["gem_bundle_target_state", "failed"]) == (1, 0)
        assert "# TYPE gem_bundle_rows_in_total counter" in run.ask("/metrics")[1], "the older text format"
        assert run.ask("/nothing")[0] == 404
        assert run.ask("/api/v1/status", "POST")[0] == 405


@pytest.mark.servers
def test_counters_begin_at_0_and_those_of_what_can_not_be_counted_are_not_there(tmp_path: Path) -> None:
    with served(tmp_path) as run:
        run.begin()
        of = samples(run.ask("/metrics", **OPEN_METRICS)[1])
        for name in ("rows_in_total", "rows_out_total", "late_rows_total", "micro_batch_seconds_count"):
            assert of[f"gem_bundle_{name}", "table"] == 0
        for _ in range(2):
            run.server.progress(replace(FULL, rows_out=None), run.run.report.targets["table"])
        of = samples(run.ask("/metrics", **OPEN_METRICS)[1])
        assert ("gem_bundle_rows_out_total", "table") not in of
        assert of["gem_bundle_micro_batches_total", "table"] == 2


@pytest.mark.servers
def test_a_failed_or_stuck_run_is_not_healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as run:
        run.begin()
        monkeypatch.setattr(server, "_STUCK_SECONDS", -1.0)
        status, found, _ = run.ask("/health")
        assert (status, "hasn't looked at its queries" in found["reason"]) == (503, True)
        monkeypatch.undo()
        run.run.stop.failed("table", Diagnostic("GB507", "error", "bad"))
        assert run.ask("/health")[:2] == (503, {"ok": False, "state": "running", "reason": "failed: table"})
        assert run.ask("/ready")[0] == 503


@pytest.mark.servers
def test_events_come_as_they_happen(tmp_path: Path) -> None:
    with served(tmp_path) as run:
        connection = run.connect()
        connection.request("GET", "/api/v1/events")
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")

        def event() -> tuple[str, Any]:
            name = answer.readline().decode().removeprefix("event: ").strip()
            content = json.loads(answer.readline().decode().removeprefix("data: "))
            assert answer.readline() == b"\n"
            return name, content

        name, first = event()
        assert (name, first["state"]) == ("run", "starting")
        run.begin()
        assert event() == ("states", {"state": "running", "targets": {"table": "running"}})
        run.micro_batch()
        assert event() == ("progress", {"target": "table", **json.loads(json.dumps(FULL.as_dict()))})
    assert answer.read() == b"", "the end of the run is the end of its events"


@pytest.mark.servers
def test_who_listens_too_slowly_is_let_go_and_the_run_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST_LISTENERS", 2)
    with served(tmp_path) as run:
        run.begin()
        slow = []
        for _ in range(2):
            listener = socket.create_connection(("127.0.0.1", int(run.server.address.rpartition(":")[2])))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            listener.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert listener.recv(12) == b"HTTP/1.1 200"
            slow.append(listener)
        assert run.ask("/api/v1/events")[:2] == (503, {"error": "Too many are listening already."})
        while run.server.events.is_full:
            for _ in range(200):
                run.micro_batch()
        assert run.ask("/health")[0] == 200
        for listener in slow:
            listener.close()


@pytest.mark.servers
def test_foreign_names_origins_and_sizes_are_refused(tmp_path: Path) -> None:
    asked: list[tuple[dict[str, str], int]] = [
        ({}, 200),
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "localhost:8080"}, 200),
        ({"Host": "[::1]:8080"}, 200),
        ({"Host": "evil.example:8080"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content_Length": "10001"}, 413),
        ({"Content_Length": "-1"}, 400),
    ]
    with served(tmp_path) as run:
        for headers, status in asked:
            for path in ("/metrics", "/health", "/api/v1/status"):
                assert run.ask(path, **headers)[0] == status, headers


@pytest.mark.servers
def test_with_a_token_only_probes_are_answered_without_it_and_learn_nothing(tmp_path: Path) -> None:
    with served(tmp_path, token="c0ffee", allow_control=True) as run:
        run.begin()
        for path in ("/metrics", "/api/v1/status", "/api/v1/events", "/nothing"):
            for given in ({}, {"Authorization": "Bearer coffee"}, {"Authorization": "Basic c0ffee"}):
                status, found, headers = run.ask(path, **given)
                assert (status, headers["www-authenticate"]) == (401, "Bearer")
                assert list(found) == ["error"]
        assert run.ask("/api/v1/stop", "POST", "{}", Content_Type="application/json")[0] == 401
        assert not run.run.stop
        assert run.ask("/health")[:2] == (200, {"ok": True})
        assert run.ask("/ready")[:2] == (200, {"ok": True})
        assert run.ask("/api/v1/status", Authorization="Bearer c0ffee")[0] == 200
        assert run.ask("/health", Authorization="Bearer c0ffee")[1]["state"] == "running"
        assert "c0ffee" not in repr(run.server._options)


@pytest.mark.servers
def test_the_files_of_the_page_are_the_same_for_everybody_and_no_other_file_is_sent(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not for you")
    with served(tmp_path, token="c0ffee") as run:
        known = {"Authorization": "Bearer c0ffee"}
        for path, asset in assets().items():
            status, content, headers = run.ask(path)
            assert (status, content.encode(), headers["content-type"]) == (200, asset.content, asset.kind), (
                path
            )
            assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
            assert run.ask(path, If_None_Match=headers["etag"])[0] == 304
            assert "clicks" not in content, "what it shows, it has to ask for"
        for path in (
            "/page/",
            "/page/page",
            "/page/../server.py",
            "/page/%2e%2e/server.py",
            "/page/..%2fserver.py",
            "/page//etc/passwd",
            "/page/vendor/SHA256SUMS",
            "/notes.txt",
            "/clicks.yaml",
        ):
            assert run.ask(path)[0] == 401, path
            assert run.ask(path, **known)[0] == 404, path
        for path in ("/api/v1/pipeline", "/api/v1/history", "/api/v1/plan?target=table"):
            assert run.ask(path)[0] == 401
            status, _, headers = run.ask(path, **known)
            assert (status, headers["cache-control"], headers["x-content-type-options"]) == (
                200,
                "no-store",
                "nosniff",
            )
            assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert run.ask("/api/v1/plan?target=tabel", **known)[0] == 404


def test_the_page_asks_nobody_else_and_is_small() -> None:
    assert sum(len(asset.content) for asset in assets().values()) < 300_000
    own = {path: asset.content.decode() for path, asset in assets().items() if "/vendor/" not in path}
    for path, text in own.items():
        found = [
            address for address in re.findall(r"https?://[^\s\"'<]+", text) if "www.w3.org" not in address
        ]
        assert found == [], path
        assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(", text), path
    linked = re.findall(r'(?:src|href)="(/[^"]*)"', own["/"])
    assert len(linked) >= 6
    assert set(linked) <= set(assets())


def test_the_libraries_of_the_page_are_what_was_vendored() -> None:
    folder = Path(serving.__file__).parent / "page" / "vendor"
    sums = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "SHA256SUMS"
    }
    for library in ("uplot", "dagre"):
        text = (folder / f"{library}.LICENSE").read_text()
        assert "Permission is hereby granted, free of charge" in text


@pytest.mark.servers
def test_it_only_shows_unless_control_is_allowed(tmp_path: Path) -> None:
    with served(tmp_path) as run:
        status, found, _ = run.ask("/api/v1/stop", "POST", "{}", Content_Type="application/json")
        assert (status, "--allow-control" in found["error"]) == (403, True)
        assert not run.run.stop
        assert run.ask("/api/v1/stop")[0] == 405


@pytest.mark.servers
def test_with_control_a_request_stops_and_resumes(tmp_path: Path) -> None:
    with served(tmp_path, allow_control=True) as run:
        sends: dict[str, str] = {"Content_Type": "application/json"}
        for action, body, status in [
            ("stop", '{"target": "tabel"}', 400),
            ("stop", '{"target": "table", "now": 1}', 400),
            ("stop", '{"target": ["table"]}', 400),
            ("stop", "[]", 400),
            ("stop", "{", 400),
            ("stop", '{"what": 1}', 400),
            ("resume", "{}", 400),
            ("resume", '{"target": "table", "now": true}', 400),
        ]:
            assert run.ask(f"/api/v1/{action}", "POST", body, **sends)[0] == status, body
        assert run.ask("/api/v1/stop", "POST", "{}", Content_Type="text/plain")[0] == 415
        assert list(run.run.stop.asked()) == []
        assert run.ask("/api/v1/stop", "POST", '{"target": "table"}', **sends)[0] == 202
        assert run.ask("/api/v1/resume", "POST", '{"target": "table"}', **sends)[0] == 202
        by = "127.0.0.1 over HTTP"
        assert list(run.run.stop.asked()) == [
            Request("stop", "table", by=by),
            Request("resume", "table", by=by),
        ]
        assert not run.run.stop
        assert run.ask("/api/v1/stop", "POST", '{"now": true}', **sends)[0] == 202
        assert (run.run.stop.reason, run.run.stop.now) == (f"asked by {by}", True)


@pytest.mark.servers
def test_a_body_without_a_length_has_an_end(tmp_path: Path) -> None:
    with served(tmp_path, allow_control=True) as run:
        connection = run.connect()
        endless = (b" " * 4096 for _ in range(8))
        with suppress_reset():
            connection.request(
                "POST", "/api/v1/stop", endless, {"Content-Type": "application/json"}, encode_chunked=True
            )
            assert connection.getresponse().status == 413
        assert not run.run.stop


@contextmanager
def suppress_reset() -> Iterator[None]:
    """A server may close before all of a request has been sent that it refuses."""
    with suppress(BrokenPipeError, ConnectionResetError):
        yield


@pytest.mark.servers
def test_a_crowd_is_served_or_refused_and_silent_ones_are_sent_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_HEADER_SECONDS", 0.5)
    with served(tmp_path) as run:
        run.begin()
        port = int(run.server.address.rpartition(":")[2])
        crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(1_000)]
        for number, one in enumerate(crowd[:750]):
            # Some say nothing at all, some stop in the middle of a header.
            with suppress_reset():
                one.sendall(
                    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + (b"\r\n" if number % 3 else b"X-A")
                )
        run.micro_batch()
        answers = {beginning(one) for one in crowd}
        assert answers <= {b"HTTP/1.1 200", b"HTTP/1.1 503", b""}
        assert b"" in answers
        for one in crowd:
            one.close()
        assert run.ask("/health")[0] == 200
        assert run.run.report.targets["table"].micro_batches == 1


@pytest.mark.servers
def test_a_crowd_takes_few_file_handles_and_little_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 8)
    monkeypatch.setattr(door, "_REFUSED_SECONDS", 60.0)
    with served(tmp_path) as run:
        run.begin()
        port = int(run.server.address.rpartition(":")[2])
        crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        # They are taken one after the other: when the last one has been closed, all were.
        assert beginning(crowd[-1]) == b""
        state = run.server._server.server_state
        assert len(state.connections) == 8
        assert [one for one in crowd if is_closed(one)] == crowd[16:]
        # Who waits to be refused is, whatever it says; those before it are served as ever.
        crowd[8].sendall(b"anything\r\n")
        answer = http.client.HTTPResponse(crowd[8])
        answer.begin()
        assert (answer.status, json.loads(answer.read())) == (503, {"error": "Too many ask already."})
        crowd[7].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert beginning(crowd[7]) == b"HTTP/1.1 200"
        for one in crowd:
            one.close()


@pytest.mark.servers
def test_the_server_gives_way_to_the_run(tmp_path: Path) -> None:
    with served(tmp_path) as run:
        run.begin()
        assert run.ask("/health")[0] == 200  # so it has begun
        thread = run.server._thread
        assert thread is not None
        assert thread.native_id is not None
        niceness = [os.getpriority(os.PRIO_PROCESS, of) for of in (0, thread.native_id)]
    assert niceness[1] == min(niceness[0] + 10, 19)


@pytest.mark.servers
def test_who_comes_in_while_another_does_is_counted_once() -> None:
    async def come_in_while_another_does() -> int:
        inside: set[object] = set()
        clients = []

        class Served(asyncio.Protocol):
            def connection_made(self, transport: object) -> None:
                inside.add(self)
                if len(inside) == 1:
                    # The door is asked next, and the task of this connection hasn't ended.
                    clients.append(socket.create_connection(listening.getsockname()))

        with socket.create_server(("127.0.0.1", 0)) as listening:
            opened = door.Door(listening, inside, Served, 2)
            clients.append(socket.create_connection(listening.getsockname()))
            while len(inside) < 2 and not opened._silent:
                await asyncio.sleep(0)
            opened.close()
            for one in clients:
                one.close()
        return len(inside)

    assert asyncio.run(come_in_while_another_does()) == 2


@pytest.mark.servers
def test_a_crowd_keeps_out_no_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster would end the run."""
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 8)
    with served(tmp_path) as run:
        run.begin()
        port = int(run.server.address.rpartition(":")[2])
        crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(16)]
        crowd[-1].sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert beginning(crowd[-1]) == b"HTTP/1.1 200"
        assert [run.ask(path)[0] for path in ("/health", "/ready", "/metrics")] == [200, 200, 503]
        for one in crowd:
            one.close()


def test_so_many_at_once_and_so_many_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    set_clock(monkeypatch, door, monotonic=lambda: now)
    allowed = door.Allowance(3, 2)
    assert [allowed.take() for _ in range(4)] == [True, True, True, False]
    now += 0.5
    assert [allowed.take() for _ in range(2)] == [True, False]
    now += 3600
    assert [allowed.take() for _ in range(4)] == [True, True, True, False]


def is_closed(client: socket.socket) -> bool:
    """Whether a server has closed a connection."""
    client.setblocking(False)
    try:
        return beginning(client) == b""
    except BlockingIOError:
        return False
    finally:
        client.setblocking(True)


def beginning(client: socket.socket) -> bytes:
    """The first bytes of an answer; none where the connection was closed without one."""
    with suppress_reset():
        return client.recv(12)
    return b""


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /metrics HTTP/1.1\r\nHost: loc",
        b"POST /api/v1/stop HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 9000\r\n\r\n{",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea",
        b"GET /page/vendor/uplot.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200,
    ],
    ids=["nothing", "half a header", "half a body", "half a second request", "never reads"],
)
@pytest.mark.servers
def test_who_makes_no_progress_does_not_keep_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(server, "_HEADER_SECONDS", 0.1)
    with served(tmp_path, allow_control=True) as run:
        run.begin()
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(("127.0.0.1", int(run.server.address.rpartition(":")[2])))
        with suppress_reset():
            client.sendall(sent)
        connections = run.server._server.server_state.connections
        seen = False
        while not (seen and not connections):
            seen = seen or bool(connections)
            threading.Event().wait(0.002)
        client.close()
        assert not run.run.stop


@pytest.mark.servers
def test_who_listens_and_reads_keeps_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_HEADER_SECONDS", 0.05)
    with served(tmp_path) as run:
        run.begin()
        connection = run.connect()
        connection.request("GET", "/api/v1/events")
        answer = connection.getresponse()
        for _ in range(20):
            run.micro_batch()
            while not answer.readline().startswith(b"event: progress"):
                pass
            threading.Event().wait(0.02)
        assert len(run.server._server.server_state.connections) == 1
        connection.close()


@pytest.mark.servers
def test_without_its_port_the_run_goes_on(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, ExitStack() as stack:
        run = Served(tmp_path, stack, port=taken.getsockname()[1])
        run.begin()
        run.micro_batch()
        assert [(found.code, found.severity) for found in run.warnings] == [("GB519", "warning")]
        assert (run.server.address, run.run.recorder.record.state) == ("", "running")


@pytest.mark.servers
def test_a_server_that_fails_is_told_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the loop is broken")

    monkeypatch.setattr(server.asyncio, "run", lambda coroutine: (coroutine.close(), fail()))
    with served(tmp_path) as run:
        run.begin()
        run.micro_batch()
    assert ["the loop is broken" in found.message for found in run.warnings] == [True]


def test_the_table_of_metrics_is_what_there_is() -> None:
    rows = re.findall(r"^\| `(gem_bundle_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$", PAGE.read_text(), re.M)
    expected = [
        (
            metric.exposed_name,
            metric.kind,
            ", ".join(f"`{label}`" for label in ("pipeline", *metric.labels)),
            metric.help,
        )
        for metric in METRICS
    ]
    assert rows == expected
    made = Metrics("clicks", "1.0.0", "0.1.0")
    made.query_started("table")
    made.states({"table": "running"})
    made.add("table", FULL)
    made.happened("unhealthy", {"target": "table", "limit": "rejected", "level": "fail"})
    families = list(made.registry.collect())
    assert [(family.name, family.type) for family in families] == [(m.name, m.kind) for m in METRICS]
    assert all(family.samples for family in families)


def test_what_a_query_will_count_is_nothing_and_not_unknown_when_it_starts() -> None:
    """Else Prometheus's `rate` and `increase` don't know of what the first micro-batch counts."""
    metrics = Metrics("clicks", "1.0.0", "0.1.0", {"table": ["plausible"], "other": ["parsed"]})
    metrics.query_started("table")
    at_first = samples(metrics.exposed(OPEN_METRICS["Accept"])[0].decode())
    metrics.add("table", FULL)

    later = samples(metrics.exposed(OPEN_METRICS["Accept"])[0].decode())

    counted = {key for key in later if key[0].endswith(("_total", "_count"))}
    # Which rules there are is known when one is broken.
    assert {key for key in counted if key not in at_first} == {("gem_bundle_rule_breaks_total", "even")}
    assert at_first["gem_bundle_rejected_rows_total", "plausible"] == 0
    assert at_first["gem_bundle_micro_batch_phase_seconds_count", "walCommit"] == 0
    assert ("gem_bundle_rejected_rows_total", "parsed") not in at_first


def test_topics_that_come_and_go_leave_no_labels_behind() -> None:
    metrics = Metrics("clicks", "1.0.0", "0.1.0")

    def lagging(*topics: str) -> dict[tuple[str, str], float]:
        lag, seconds = dict.fromkeys(topics, 2), dict.fromkeys(topics, 1.5)
        metrics.add("table", replace(BATCH, lag=lag, lag_units={}, lag_seconds=seconds))
        return {
            (sample.name, sample.labels["source"]): sample.value
            for family in metrics.registry.collect()
            for sample in family.samples
            if "source" in sample.labels
        }

    records, time = "gem_bundle_lag_records", "gem_bundle_lag_seconds"
    assert lagging("a", "b") == {(records, "a"): 2, (records, "b"): 2, (time, "a"): 1.5, (time, "b"): 1.5}
    assert lagging("b", "c").keys() == {(records, "b"), (records, "c"), (time, "b"), (time, "c")}
    # A micro-batch that tells nothing changes nothing.
    assert lagging().keys() == {(records, "b"), (records, "c"), (time, "b"), (time, "c")}
    many = lagging("c", *(f"a{number:03}" for number in range(MOST_SOURCES + 4)))
    assert len(many) == 2 * (MOST_SOURCES + 1)
    assert (many[records, "c"], many[records, OTHERS], many[time, OTHERS]) == (2, 10, 1.5)


def test_strangers_are_let_in_with_a_token_only() -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        check_serving(ServeOptions(host), {})
    for host in ("0.0.0.0", "::", "10.1.2.3", "spark-1"):
        check_serving(ServeOptions(host), {"GEM_BUNDLE_SERVE_TOKEN": "c0ffee"})
        check_serving(ServeOptions(host, token="c0ffee"), {})
        with pytest.raises(GemError) as raised:
            check_serving(ServeOptions(host), {"GEM_BUNDLE_SERVE_TOKEN": " "})
        assert raised.value.code == "GB518"


def test_what_a_run_can_not_have_stops_it_before_anything_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusal(text: str, options: ServeOptions) -> str:
        (tmp_path / "clicks.yaml").write_text(text)
        with pytest.raises(PipelineError) as raised:
            run_file(tmp_path / "clicks.yaml", RunOptions(serve=options, environment={}))
        assert not (tmp_path / "checkpoints").exists()
        (found,) = raised.value.diagnostics
        return f"{found.code} {found.hint}"

    batch = PIPELINE.replace("version", "mode: batch\nversion").replace(
        "gem: rate", "gem: rows, options: {rows: [{a: 1}]}"
    )
    assert refusal(PIPELINE, ServeOptions("0.0.0.0")).startswith("GB518")
    assert refusal(batch, ServeOptions()).startswith("GB518")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "gem-bundle[serve]" in refusal(PIPELINE, ServeOptions())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8080", ("127.0.0.1", 8080)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]:80", ("::1", 80)),
        ("spark-1:80", ("spark-1", 80)),
    ],
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["", "host", "host:", ":80", "65536", "::1:80", "a b:80", "http://a:80"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not of the form"):
        parse_address(text)


def test_own_names() -> None:
    names = own_names("spark-1")
    for header in ("spark-1", "SPARK-1:80", "localhost", "10.1.2.3:80", "[fe80::1]:80"):
        assert is_own(header, names), header
    for header in ("", "spark-1.evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "[x]"):
        assert not is_own(header, names), header
