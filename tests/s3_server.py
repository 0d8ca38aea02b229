"""A server on the loopback that speaks S3, for what lies in an object store."""

from __future__ import annotations

import os
import threading
import urllib.request
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

# As Amazon documents it: "Error responses" of the S3 API reference.
EXPIRED = """<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message><Token-0>{token}</Token-0>\
<RequestId>{request}</RequestId><HostId>here</HostId></Error>"""


@dataclass(frozen=True)
class S3:
    """A bucket on a server of the tests' own.

    Args:
        url: The server's address.
        bucket: The bucket's name.
        expired: The session tokens that it doesn't take any more.
    """

    url: str
    bucket: str
    expired: set[str] = field(default_factory=set)

    def place(self) -> str:
        """A place in the bucket that nobody else has."""
        return f"s3a://{self.bucket}/{uuid.uuid4().hex}"

    def credentials(self) -> dict[str, str]:
        """Temporary credentials that nobody else has, as variables of the environment."""
        token = uuid.uuid4().hex
        return {
            "AWS_ACCESS_KEY_ID": "a-temporary-key",
            "AWS_SECRET_ACCESS_KEY": "a-temporary-secret",
            "AWS_SESSION_TOKEN": token,
        }

    def expire(self, credentials: dict[str, str]) -> None:
        """Let the server refuse temporary credentials from now on, as S3 does when their time is over."""
        self.expired.add(credentials["AWS_SESSION_TOKEN"])

    @contextmanager
    def logged_in(self, credentials: dict[str, str]) -> Iterator[None]:
        """Let clients that are made meanwhile find these credentials, as variables of the environment."""
        from s3fs import S3FileSystem

        with pytest.MonkeyPatch.context() as patch:
            for name, value in credentials.items():
                patch.setenv(name, value)
            S3FileSystem.clear_instance_cache()
            yield
        S3FileSystem.clear_instance_cache()

    @contextmanager
    def without_rights(self) -> Iterator[None]:
        """Let the server refuse all requests, as of a key that was taken away."""
        self._reset_auth(b"0")
        try:
            yield
        finally:
            self._reset_auth(b"inf")

    def _reset_auth(self, requests: bytes) -> None:
        asked = urllib.request.Request(
            f"{self.url}/moto-api/reset-auth", requests, {"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(asked).close()


def refusing(expired: set[str], store: WSGIApplication) -> WSGIApplication:
    """A store that answers requests with an expired token as S3 does.

    Args:
        expired: The tokens.
        store: Who answers the other requests.
    """

    one_at_a_time = threading.Lock()

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        token = environ.get("HTTP_X_AMZ_SECURITY_TOKEN")
        if token not in expired:
            # The store looks whether an object is there, and makes it: to S3 that is one act.
            with one_at_a_time:
                return store(environ, start)
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        said = EXPIRED.format(token=token, request=uuid.uuid4().hex).encode()
        start("400 Bad Request", [("Content-Type", "application/xml"), ("Content-Length", str(len(said)))])
        # Who asks for the head of an object is told no reason, neither here nor there.
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [said]

    return answer


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """The server that all tests of object stores share, with its address and credentials in the environment."""
    from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    expired: set[str] = set()
    application = refusing(expired, DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    url = f"http://127.0.0.1:{server.server_port}"
    given = {
        "AWS_ENDPOINT_URL_S3": url,
        "AWS_ACCESS_KEY_ID": "a-key",
        "AWS_SECRET_ACCESS_KEY": "a-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        import fsspec

        fsspec.filesystem("s3").mkdir("lake")
        yield S3(url, "lake", expired)
    server.shutdown()
    serving.join()
