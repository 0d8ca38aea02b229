"""A Redis server on this machine, for the tests: one for all of them, each has keys of its own."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import redis

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 30.0
MISSING = (
    "these tests need a redis-server of version 7 or newer on the PATH, and there is none: apt-get install "
    "redis-server (Debian, Ubuntu), dnf install valkey (Fedora), brew install redis (macOS); in gem-bundle's "
    "repository scripts/redis-server does it"
)


@dataclass(frozen=True)
class RedisServer:
    """A server that runs, and a client of it."""

    url: str
    client: redis.Redis


@contextmanager
def serving(
    folder: Path, *, password: str | None = None, tls: tuple[str, str] | None = None
) -> Iterator[RedisServer]:
    """A server until the block ends.

    Args:
        folder: An empty folder for it.
        password: What it asks of everybody.
        tls: A certificate and its key, as PEM: then it takes nothing but TLS.
    """
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise FileNotFoundError(MISSING)
    port = _free_port()
    listen = ["--port", str(port)]
    if tls is not None:
        for name, text in zip(("tls.crt", "tls.key"), tls, strict=True):
            (folder / name).write_text(text)
        listen = ["--port", "0", "--tls-port", str(port), "--tls-auth-clients", "no"]
        listen += ["--tls-cert-file", str(folder / "tls.crt"), "--tls-key-file", str(folder / "tls.key")]
    command = [program, *listen, "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    command += ["--requirepass", password] if password else []
    log = folder / "redis.log"
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            _wait(process, port, log)
            if tls is None:
                client = redis.Redis(port=port, password=password)
            else:
                client = redis.Redis(
                    port=port, password=password, ssl=True, ssl_cert_reqs="none", ssl_check_hostname=False
                )
            with client:
                yield RedisServer(f"{'rediss' if tls else 'redis'}://127.0.0.1:{port}", client)
        finally:
            process.terminate()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until the server listens; there is nothing else to wait for."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"redis-server doesn't start:\n{log.read_text()}") from None
            time.sleep(0.02)
        else:
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
