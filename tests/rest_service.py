"""A service that answers over HTTP, for tests: well, badly, late or not at all, as the path says."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


class _Server(ThreadingHTTPServer):
    """One that doesn't ask for the name of its address, which may take a second."""

    daemon_threads = True

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def handle_error(self, *_: object) -> None:
        """Clients that give up are what some tests are about."""


class RestService:
    """A service on the loopback.

    ``/users/7`` answers as a user does. The first part of other paths says how: ``/STATUS/…`` with that status,
    ``/flaky/N/…`` with 503 so often before it is well, ``/busy/N/…`` (once without N) with 429 and `Retry-After`, ``/closed/…`` closes
    the connection, ``/cut/…`` ends in the middle, ``/slow/…`` never answers, ``/text``, ``/list``, ``/wrong``, ``/empty``
    answer otherwise, ``/turn/…`` well once and with 404 from then on.

    Attributes:
        files: What is at further paths, as it is sent.
        asked: What it was asked, in order: ``GET /users/7``, and the body.
        headers: The headers of the last request.
        most: How many requests were under way at once.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.asked: list[tuple[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.most = 0
        self.retry_after = "0"
        self.together: threading.Barrier | None = None
        self._under_way = 0
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service._answer(self)

            do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 (as the base class has them)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> RestService:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Answer no more."""
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def paths(self) -> list[str]:
        """The paths that were asked for, in order."""
        return [line.partition(" ")[2] for line, _ in self.asked]

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        body = json.loads(handler.rfile.read(length)) if length else None
        with self._lock:
            self.asked.append((f"{handler.command} {handler.path}", body))
            self.headers = dict(handler.headers)
            self._under_way += 1
            self.most = max(self.most, self._under_way)
            self._seen[handler.path] += 1
            times = self._seen[handler.path]
        try:
            if self.together is not None:
                self.together.wait(30)
        finally:
            # Before the answer: whoever has it may ask again at once, while this thread still ends.
            with self._lock:
                self._under_way -= 1
        self._say(handler, body, times)

    def _say(self, handler: BaseHTTPRequestHandler, body: Any, times: int) -> None:
        parts = unquote(urlsplit(handler.path).path).strip("/").split("/")
        how, last = parts[0], parts[-1]
        user: dict[str, Any] = {"name": f"user {last}", "score": 1.5, "sent": body}
        if handler.path in self.files:
            self._send(handler, 200, self.files[handler.path])
        elif how.isdigit():
            self._send(handler, int(how), {"error": f"no {last}"})
        elif how == "flaky" and times <= int(parts[1]):
            self._send(handler, 503, {"error": "later"})
        elif how == "busy" and times <= (int(parts[1]) if len(parts) > 2 else 1):
            self._send(handler, 429, {"error": "busy"}, {"Retry-After": self.retry_after})
        elif how == "turn" and times > 1:
            self._send(handler, 404, {"error": "gone"})
        elif how == "closed":
            handler.connection.shutdown(socket.SHUT_RDWR)
        elif how == "cut":
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(b'{"name": "us')
            handler.wfile.flush()
            handler.connection.shutdown(socket.SHUT_RDWR)
        elif how == "slow":
            self._ended.wait()
        elif how in {"text", "list", "wrong"}:
            self._send(handler, 200, {"text": "hello", "list": [1], "wrong": {"score": "high"}}[how])
        elif how == "empty":
            handler.send_response(204)
            handler.end_headers()
        else:
            self._send(handler, 200, user)

    def _send(
        self, handler: BaseHTTPRequestHandler, status: int, body: Any, headers: dict[str, str] | None = None
    ) -> None:
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@pytest.fixture
def rest_service() -> Iterator[RestService]:
    """A service of one test."""
    with RestService() as service:
        yield service
