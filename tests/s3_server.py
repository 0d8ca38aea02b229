"""A server on the loopback that speaks S3, for what lies in an object store."""

from __future__ import annotations

import os
import urllib.request
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class S3:
    """A bucket on a server of the tests' own.

    Args:
        url: The server's address.
        bucket: The bucket's name.
    """

    url: str
    bucket: str

    def place(self) -> str:
        """A place in the bucket that nobody else has."""
        return f"s3a://{self.bucket}/{uuid.uuid4().hex}"

    @contextmanager
    def without_rights(self) -> Iterator[None]:
        """Let the server refuse all requests, as with credentials that have expired."""
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


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """The server that all tests of object stores share, with its address and credentials in the environment."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    given = {
        "AWS_ENDPOINT_URL_S3": url,
        "AWS_ACCESS_KEY_ID": "a-key",
        "AWS_SECRET_ACCESS_KEY": "a-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(name, value)
        patch.delenv("AWS_PROFILE", raising=False)
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        import fsspec

        fsspec.filesystem("s3").mkdir("lake")
        yield S3(url, "lake")
    server.stop()
