"""A schema registry for tests: a server of the REST interface that Confluent documents, written from its pages.

Of that interface it has what `gem_avro` asks for, with the status codes and the errors of the documentation. It
isn't Confluent's: of compatibility it knows that a field may be added with a default, and removed.
"""

from __future__ import annotations

import base64
import json
import re
import socketserver
import threading
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

KIND = "application/vnd.schemaregistry.v1+json"


@dataclass
class Schema:
    """A schema that is registered."""

    id: int
    text: str
    kind: str = "AVRO"
    references: list[dict[str, Any]] = field(default_factory=list)

    def answer(self) -> dict[str, Any]:
        """It, as the documentation has it: what is usual is left out."""
        found: dict[str, Any] = {"schema": self.text}
        if self.kind != "AVRO":
            found["schemaType"] = self.kind
        if self.references:
            found["references"] = self.references
        return found


class Error(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class _Server(ThreadingHTTPServer):
    """One that doesn't ask for the name of its address, which may take a second."""

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)


class SchemaRegistry:
    """A registry on the loopback, whose state outlives its server.

    Attributes:
        login: What clients have to send to log in; None for nothing.
        failing: The status of all answers; None where it works.
        dying: It ends without an answer when it is asked for one of these: ``/schemas/ids/3``.
        asked: What it was asked, in order: ``GET /schemas/ids/1``.
    """

    def __init__(self) -> None:
        self._schemas: list[Schema] = []
        self._subjects: dict[str, list[int]] = {}
        self._server: _Server | None = None
        self._port = 0
        self._lock = threading.Lock()
        self._tls: ssl.SSLContext | None = None
        self.login: str | None = None
        self.failing: int | None = None
        self.dying: set[str] = set()
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        """Its address, which stays the same when it is stopped and started."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._port}"

    def start(self, tls: ssl.SSLContext | None = None) -> None:
        """Answer from now on."""
        self._tls = self._tls or tls
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry._answer(self, None)

            def do_POST(self) -> None:
                registry._answer(self, self.rfile.read(int(self.headers["Content-Length"])))

            def log_message(self, *_: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Answer nobody from now on; what is registered stays."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def needs(self, user: str, password: str) -> None:
        """Let clients log in."""
        self.login = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def register(self, subject: str, schema: Any, **more: Any) -> int:
        """Register a schema, whatever was there before; its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        with self._lock:
            same = [s for s in self._schemas if s.text == text and not more]
            found = same[0] if same else Schema(len(self._schemas) + 1, text, **more)
            if not same:
                self._schemas.append(found)
            versions = self._subjects.setdefault(subject, [])
            if found.id not in versions:
                versions.append(found.id)
            return found.id

    def subjects(self) -> dict[str, list[int]]:
        """The ids of the schemas of each subject."""
        return {name: list(ids) for name, ids in self._subjects.items()}

    def _answer(self, request: BaseHTTPRequestHandler, body: bytes | None) -> None:
        self.asked.append(f"{request.command} {request.path}")
        if request.path in self.dying:
            request.close_connection = True
            return
        try:
            status, answer = 200, self._found(request, body)
        except Error as error:
            status, answer = error.status, {"error_code": error.code, "message": str(error)}
        content = json.dumps(answer).encode()
        request.send_response(status)
        request.send_header("Content-Type", KIND)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _found(self, request: BaseHTTPRequestHandler, body: bytes | None) -> dict[str, Any]:
        if self.failing is not None:
            raise Error(self.failing, 50001, "Error in the backend data store")
        if self.login is not None and request.headers.get("Authorization") != self.login:
            raise Error(401, 401, f"Unauthorized: {request.headers.get('Authorization')}")
        path = urllib.parse.urlsplit(request.path).path
        given = None if body is None else json.loads(body)
        if given is not None:
            assert request.headers["Content-Type"] == KIND
        for pattern, answer in (
            (r"GET /schemas/ids/(\d+)", self._by_id),
            (r"GET /subjects/([^/]+)/versions/(latest|\d+)", self._version),
            (r"POST /subjects/([^/]+)/versions", self._new),
            (r"POST /subjects/([^/]+)", self._same),
            (r"POST /compatibility/subjects/([^/]+)/versions/latest", self._fits),
        ):
            match = re.fullmatch(pattern, f"{request.command} {path}")
            if match:
                words = [urllib.parse.unquote(word) for word in match.groups()]
                return answer(*words, *([] if given is None else [given]))
        raise Error(404, 404, "HTTP 404 Not Found")

    def _by_id(self, number: str) -> dict[str, Any]:
        if not 0 < int(number) <= len(self._schemas):
            raise Error(404, 40403, f"Schema {number} not found")
        return self._schemas[int(number) - 1].answer()

    def _version(self, subject: str, version: str) -> dict[str, Any]:
        ids = self._ids(subject)
        number = len(ids) if version == "latest" else int(version)
        if not 0 < number <= len(ids):
            raise Error(404, 40402, f"Version {version} not found.")
        return self._told(subject, ids[number - 1])

    def _same(self, subject: str, given: dict[str, Any]) -> dict[str, Any]:
        for number in self._ids(subject):
            if json.loads(self._schemas[number - 1].text) == self._checked(given):
                return self._told(subject, number)
        raise Error(404, 40403, "Schema not found")

    def _new(self, subject: str, given: dict[str, Any]) -> dict[str, Any]:
        schema = self._checked(given)
        for number in self._subjects.get(subject, ()):
            if json.loads(self._schemas[number - 1].text) == schema:
                return {"id": number}
        messages = self._misfits(subject, schema)
        if messages:
            raise Error(
                409, 409, f"Schema being registered is incompatible with an earlier schema: {messages}"
            )
        return {"id": self.register(subject, json.dumps(schema))}

    def _fits(self, subject: str, given: dict[str, Any]) -> dict[str, Any]:
        self._ids(subject)
        messages = self._misfits(subject, self._checked(given))
        return {"is_compatible": not messages, **({"messages": messages} if messages else {})}

    def _misfits(self, subject: str, schema: Any) -> list[str]:
        ids = self._subjects.get(subject)
        if not ids:
            return []
        before = {each["name"] for each in json.loads(self._schemas[ids[-1] - 1].text)["fields"]}
        new = [each for each in schema["fields"] if each["name"] not in before and "default" not in each]
        return [f"READER_FIELD_MISSING_DEFAULT_VALUE: {each['name']}" for each in new]

    def _checked(self, given: dict[str, Any]) -> Any:
        try:
            return json.loads(given["schema"])
        except ValueError:
            raise Error(422, 42201, "Invalid schema") from None

    def _ids(self, subject: str) -> list[int]:
        if subject not in self._subjects:
            raise Error(404, 40401, f"Subject '{subject}' not found.")
        return self._subjects[subject]

    def _told(self, subject: str, number: int) -> dict[str, Any]:
        version = self._subjects[subject].index(number) + 1
        return {"subject": subject, "id": number, "version": version, **self._schemas[number - 1].answer()}


@pytest.fixture
def schema_registry() -> Iterator[SchemaRegistry]:
    """A registry of the test's own, which answers."""
    registry = SchemaRegistry()
    registry.start()
    yield registry
    registry.stop()
