"""Gives tests a real MariaDB: the fixture ``mariadb``, one server a session.

Its data lie in a temporary folder of their own, so it knows nothing of a server that the machine has. Tests keep
apart by databases that are used once (``new_database``).
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

SCRIPT: Final = Path(__file__).resolve().parent.parent / "scripts" / "mariadb-server"
USER: Final = "gem"
# Nobody else's: passwords are looked for in what programs print.
PASSWORD: Final = "pwd-of-the-tests"
DATABASE: Final = "shop"
# Ends only what would hang: a busy machine is slow.
TIMEOUT: Final = 120.0
SETTINGS: Final = (
    "--bind-address=127.0.0.1",
    "--character-set-server=utf8mb4",
    # Not the zone of any machine: what rests on the two being equal shows.
    "--default-time-zone=-03:00",
    # A server that cuts what is too long unless it is told not to.
    "--sql-mode=",
    # A killed program loses nothing by it, a machine without power would.
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=32M",
    "--skip-log-bin",
    "--skip-name-resolve",
)


class MariaDb:
    """A server in a folder of its own.

    Args:
        folder: The folder, empty.
        programs: Where `mariadbd` is.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder = folder
        self._programs = programs
        self._socket = folder / "socket"
        # The server refuses to be root's; Debian's package has made a user for it.
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            owner = pwd.getpwnam("mysql")
            self._as = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        self.port: Final = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        made = subprocess.run(
            [
                *("mariadb-install-db", "--no-defaults", f"--datadir={folder / 'data'}"),
                *("--auth-root-authentication-method=normal", "--skip-test-db"),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            **self._as,
        )
        assert made.returncode == 0, made.stdout + made.stderr

    @property
    def url(self) -> str:
        """The address of the tests' database, for JDBC."""
        return f"jdbc:mariadb://127.0.0.1:{self.port}/{DATABASE}"

    def options(self, kind: str = "mariadb") -> dict[str, str]:
        """The options of source and target that lead here, by MariaDB's driver or by MySQL's."""
        return {"url": self.url.replace("mariadb", kind, 1), "user": USER, "password": PASSWORD}

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(self._programs / "mariadbd", "--no-defaults", f"--datadir={self._folder / 'data'}"),
                    *(f"--port={self.port}", f"--socket={self._socket}", *SETTINGS),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
                **self._as,
            )
        deadline = time.monotonic() + TIMEOUT
        while self._client("SELECT 1", "mysql").returncode:
            told = (self._folder / "server.log").read_text()
            assert self._process.poll() is None, told
            assert time.monotonic() < deadline, told
            time.sleep(0.05)

    def close(self) -> None:
        """End it, and remove what it had: nobody wants its tables to be whole."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def sql(self, *statements: str, database: str = DATABASE) -> None:
        """Run statements, in one session."""
        done = self._client("; ".join(statements), database)
        assert done.returncode == 0, done.stderr

    def rows(self, *columns: str, of: str) -> list[dict[str, Any]]:
        """Rows as JSON has them, of columns, and of what stands behind `FROM`."""
        names = ", ".join(f"'{column}', {column}" for column in columns)
        done = self._client(f"SELECT json_object({names}) FROM {of}", DATABASE)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def new_database(self) -> str:
        """Make a database that no other test uses."""
        name = f"d_{uuid4().hex[:12]}"
        self.sql(f"CREATE DATABASE {name}")
        return name

    def _client(self, statement: str, database: str) -> subprocess.CompletedProcess[str]:
        how = ["--no-defaults", "--batch", "--raw", "--skip-column-names", "--default-character-set=utf8mb4"]
        where = [f"--socket={self._socket}", "--user=root", f"--database={database}"]
        # The zone in which an instant is the same text everywhere.
        said = ["--init-command=SET time_zone = '+00:00'", f"--execute={statement}"]
        return subprocess.run(
            ["mariadb", *how, *where, *said], capture_output=True, text=True, check=False, timeout=TIMEOUT
        )


def start_mariadb() -> MariaDb:
    """A server in a new folder; without its programs this fails with the sentence that says how to get them."""
    done = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stderr.strip(), pytrace=False)
    # Not below pytest's folders, into which nobody else may look; and the path of a socket has to be short.
    folder = Path(tempfile.mkdtemp(prefix="gem-bundle-mariadb-"))
    server = MariaDb(folder, Path(done.stdout.strip().splitlines()[-1]))
    server.start()
    server.sql(
        f"CREATE DATABASE {DATABASE}",
        f"CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
        f"GRANT ALL ON *.* TO {USER}@'127.0.0.1'",
        database="mysql",
    )
    return server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    """The server that all tests of this process share."""
    server = start_mariadb()
    yield server
    server.close()
