"""Gives tests a real PostgreSQL: the fixture ``postgres``, one server a session.

Its cluster lies in a temporary folder of its own, so it knows nothing of a server that the machine has. Tests keep
apart by schemas that are used once (``new_schema``). A server keeps its port and its rows over ``kill`` and ``start``.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT: Final = Path(__file__).resolve().parent.parent / "scripts" / "postgres-server"
USER: Final = "gem"
# Nobody else's: passwords are looked for in what programs print.
PASSWORD: Final = "pwd-of-the-tests"
DATABASE: Final = "shop"
# Ends only what would hang: a busy machine is slow.
TIMEOUT: Final = 120.0
SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    # A killed program loses nothing by it, a machine without power would.
    "fsync": "off",
    "max_connections": "60",
    # For commits in two phases.
    "max_prepared_transactions": "5",
}


class Postgres:
    """A server in a folder of its own.

    Args:
        folder: The folder, empty.
        programs: Where `initdb` and `postgres` are.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder = folder
        self._programs = programs
        # The server refuses to be root's; Debian's package has made a user for it.
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            self._as = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        self.port: Final = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        password = folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        arguments = ["--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--no-sync"]
        self._run("initdb", "-D", folder / "data", "-U", USER, f"--pwfile={password}", *arguments)

    @property
    def url(self) -> str:
        """The address of the tests' database, for JDBC."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{DATABASE}"

    @property
    def address(self) -> str:
        """The same for libpq, with the login."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{DATABASE}"

    def options(self) -> dict[str, str]:
        """The options of source and target that lead here."""
        return {"url": self.url, "user": USER, "password": PASSWORD}

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        settings = {**SETTINGS, "port": str(self.port), "unix_socket_directories": str(self._folder)}
        told = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        deadline = time.monotonic() + TIMEOUT
        with (self._folder / "server.log").open("ab") as log:
            while not self._answers():
                # After a kill, others of its processes may have to end first.
                if self._process is None or self._process.poll() is not None:
                    self._process = subprocess.Popen(
                        [self._programs / "postgres", "-D", self._folder / "data", *told],
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        cwd=self._folder,
                        start_new_session=True,
                        **self._as,
                    )
                assert time.monotonic() < deadline, (self._folder / "server.log").read_text()
                time.sleep(0.05)

    def kill(self) -> None:
        """Kill it as it stands."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End it, without waiting for those who are connected, and remove what it had."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def sql(self, *statements: str, database: str = DATABASE) -> None:
        """Run statements, each in a transaction of its own."""
        for statement in statements:
            done = self._psql(statement, database)
            assert done.returncode == 0, done.stderr

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query, as JSON has them."""
        done = self._psql(f"SELECT coalesce(json_agg(q), '[]') FROM ({query}) q", DATABASE)
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def outcome(self, statement: str, query: str) -> str:
        """Run a statement, and a query for one text in the same session."""
        done = self._psql(statement, DATABASE, query)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def environment(self) -> dict[str, str]:
        """The environment variables by which `psql` finds it, and pipelines of the docs."""
        return {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.port),
            "PGDATABASE": DATABASE,
            "PGUSER": USER,
            "PGPASSWORD": PASSWORD,
            "PATH": f"{self._programs}{os.pathsep}{os.environ['PATH']}",
        }

    def new_schema(self) -> str:
        """Make a schema that no other test uses."""
        name = f"s_{uuid4().hex[:12]}"
        self.sql(f"CREATE SCHEMA {name}")
        return name

    def _answers(self) -> bool:
        return self._psql("SELECT 1", "postgres").returncode == 0

    def _psql(self, statement: str, database: str, *more: str) -> subprocess.CompletedProcess[str]:
        how = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
        where = ["-h", self._folder, "-p", str(self.port), "-U", USER, "-d", database]
        said = [word for text in (statement, *more) for word in ("-c", text)]
        return subprocess.run(
            [str(self._programs / "psql"), *how, *map(str, where), *said],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT,
        )

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [self._programs / program, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
            **self._as,
        )
        assert done.returncode == 0, done.stderr


def start_postgres() -> Postgres:
    """A server in a new folder; without its programs this fails with the sentence that says how to get them."""
    done = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stderr.strip(), pytrace=False)
    # Not below pytest's folders, into which nobody else may look.
    folder = Path(tempfile.mkdtemp(prefix="gem-bundle-postgres-"))
    server = Postgres(folder, Path(done.stdout.strip().splitlines()[-1]))
    server.start()
    server.sql(f"CREATE DATABASE {DATABASE}", database="postgres")
    return server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The server that all tests of this process share."""
    server = start_postgres()
    yield server
    server.close()
