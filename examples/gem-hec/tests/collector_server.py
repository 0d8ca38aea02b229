"""A collector that listens on this machine, and fails when it is told to."""

from __future__ import annotations

import gzip
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

TOKEN = "t0ken-of-the-tests"
FINE = {"text": "Success", "code": 0}


@dataclass
class Received:
    """One POST: what came, and when it came."""

    events: list[dict[str, Any]]
    size: int
    compressed: bool
    path: str


@dataclass
class LocalCollector:
    """What the collector has got and what it is going to do.

    Args:
        faults: What to do with the next POSTs, one after the other; then all goes well. A number is an HTTP
            status (``"429:2"`` has a Retry-After), ``drop`` hangs up unread, ``lose the answer`` takes the
            events and hangs up, ``half an answer`` takes them and hangs up in the middle of the answer,
            ``silence`` takes them and says nothing, ``a page`` is a proxy's.
        fault: In place of `faults`, called with the number of each POST.
        acknowledges: Whether it tells when events are written: so many questions later.
        says_which: Whether it says which event it refuses; if not, it takes none of the POST.
        refuses: The name of events that it refuses, as it does those of the index `unknown`.
        takes: The most bytes that it takes at once.
    """

    url: str = ""
    faults: list[str] = field(default_factory=list)
    fault: Callable[[int], str] | None = None
    acknowledges: int | None = None
    says_which: bool = True
    takes: int | None = None
    refuses: str = ""
    posts: list[Received] = field(default_factory=list)
    questions: int = 0
    tries: int = 0
    release: threading.Event = field(default_factory=threading.Event)
    guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def events(self) -> list[dict[str, Any]]:
        """All events that it has taken, those that came twice twice."""
        return [event for post in self.posts for event in post.events]

    @property
    def ids(self) -> list[Any]:
        """The ids in those events, in order."""
        return sorted(event["event"]["id"] for event in self.events)

    def next_fault(self) -> str:
        with self.guard:
            self.tries += 1
            if self.fault is not None:
                return self.fault(self.tries)
            return self.faults.pop(0) if self.faults else ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # it would hold each answer back for 40 ms
    collector: LocalCollector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Authorization"] != f"Splunk {TOKEN}":
            self._answer(403, {"text": f"Invalid token {self.headers['Authorization']}", "code": 4})
        elif self.path.startswith("/services/collector/ack?"):
            self._acknowledge(json.loads(body)["acks"])
        elif self.path != "/services/collector/event":
            self._answer(404, {"text": "The requested URL was not found on this server.", "code": 404})
        elif self.collector.acknowledges is not None and not self.headers["X-Splunk-Request-Channel"]:
            self._answer(400, {"text": "Data channel is missing", "code": 10})
        elif not body:
            self._answer(400, {"text": "No data", "code": 5})
        else:
            self._receive(body)

    def _receive(self, body: bytes) -> None:
        fault, _, after = self.collector.next_fault().partition(":")
        if fault.isdigit():
            headers = {"Retry-After": after} if after else {}
            if fault == "307":
                headers = {"Location": "https://elsewhere.example.com/"}
            self._answer(int(fault), {"text": "Server is busy", "code": 9}, headers)
            return
        if fault == "drop":
            self.close_connection = True
            return
        if fault == "a page":
            self._send(200, b"<html>Who are you?</html>")
            return
        if self.collector.takes is not None and len(body) > self.collector.takes:
            self._answer(413, {"text": "content length is too large", "code": 27})
            return
        problem = self._take(body)
        if problem is not None:
            self._answer(400, problem)
        elif fault == "lose the answer":
            self.close_connection = True
        elif fault == "silence":
            self.collector.release.wait(30)
            self.close_connection = True
        elif fault == "half an answer":
            self._send(200, json.dumps(FINE).encode(), half=True)
        elif self.collector.acknowledges is not None:
            self._answer(200, {**FINE, "ackId": len(self.collector.posts) - 1})
        else:
            self._answer(200, FINE)

    def _take(self, body: bytes) -> dict[str, Any] | None:
        """Keep the events as a collector does: those before an invalid one too."""
        compressed = self.headers["Content-Encoding"] == "gzip"
        text = (gzip.decompress(body) if compressed else body).decode()
        found: list[dict[str, Any]] = []
        position = 0
        decoder = json.JSONDecoder()
        problem = None
        while position < len(text):
            event, position = decoder.raw_decode(text, position)
            while position < len(text) and text[position].isspace():
                position += 1
            content = event["event"] if isinstance(event["event"], dict) else {}
            if event.get("index") == "unknown" or (content.get("name") or None) == (
                self.collector.refuses or self
            ):
                problem = {"text": "Incorrect index", "code": 7}
                if not self.collector.says_which:
                    return problem
                problem["invalid-event-number"] = len(found)
                break
            found.append(event)
        with self.collector.guard:
            self.collector.posts.append(Received(found, len(text.encode()), compressed, self.path))
        return problem

    def _acknowledge(self, numbers: list[int]) -> None:
        self.collector.questions += 1
        done = (
            self.collector.acknowledges is not None and self.collector.questions > self.collector.acknowledges
        )
        self._answer(200, {"acks": {str(number): done for number in numbers}})

    def _answer(self, status: int, content: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(content).encode(), headers)

    def _send(
        self, status: int, content: bytes, headers: dict[str, str] | None = None, half: bool = False
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if half else content)
        if half:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up, or doesn't trust the certificate, is its own business."""


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[LocalCollector]:
    """A collector until the block ends; with TLS where there is a context for it."""
    collector = LocalCollector()
    handler = type("Handler", (_Handler,), {"collector": collector})
    server = _Server(("127.0.0.1", 0), handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    collector.url = f"{'https' if context else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield collector
    finally:
        collector.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
