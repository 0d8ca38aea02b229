"""A Spark Connect server of the tests' own, and clients of it that have no Java."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests import plans
from tests.integration.pipelines import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

STARTED = re.compile(r"Spark Connect server started at: \S*:(\d+)")
MASTER = "local[2]"
# Of gem-bundle's own defaults the one without which Spark starts a process for each file that it renames.
FILES_OF_CHECKPOINTS = "spark.sql.streaming.checkpointFileManagerClass"
SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
}
# In one client, which costs its imports once: what was asked for, as JSON on standard output.
CLIENT = """
import json, sys
from pathlib import Path
from gem_bundle.errors import PipelineError
from tests.integration.pipelines import run

def told(file):
    try:
        return run(Path(file), available_now=True).as_dict()
    except PipelineError as error:
        return {"refused": [found.as_dict() for found in error.diagnostics]}

print(json.dumps([told(file) for file in sys.argv[1:]]))
"""


def add_options(parser: pytest.Parser) -> None:
    """Take the option that lets all tests of the run share a session over Spark Connect."""
    parser.getgroup("places").addoption(
        "--connect",
        nargs="?",
        const="",
        metavar="URL",
        help="give the tests a session over Spark Connect: on this server, or on one that is started for them",
    )


def is_over_connect(config: pytest.Config) -> bool:
    """Whether the tests of this run have their session on a server."""
    return config.option.connect is not None


@contextmanager
def connected(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The session that all tests of the run share, over Spark Connect."""
    from gem_bundle.run.session import SessionRequest, open_session

    url = request.config.option.connect or request.getfixturevalue("connect_server").url
    opened = open_session(
        SessionRequest(
            app_name="gem-bundle-tests",
            settings={"spark.remote": url},
            module_folders=[request.getfixturevalue("user_modules")],
        )
    )
    yield opened.spark
    opened.close()


@dataclass(frozen=True)
class ConnectServer:
    """A running server.

    Args:
        url: Its address, as ``SPARK_REMOTE`` takes it.
        folder: Where it was started; `tmp` in it holds its temporary files.
        process: Its JVM.
    """

    url: str
    folder: Path
    process: subprocess.Popen[bytes]

    def command(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start `gem-bundle` as a client, where there is no Java."""
        return command(*arguments, SPARK_REMOTE=self.url, JAVA_HOME="/nowhere")

    def python(self, code: str, *arguments: str | Path) -> Any:
        """Run code as a client: what it prints, read as JSON."""
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, "SPARK_REMOTE": self.url, "JAVA_HOME": "/nowhere"},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        assert "QueryContextLogger" not in done.stderr, "pyspark's client has told a failure by itself"
        return json.loads(done.stdout)

    def temporary(self) -> list[str]:
        """The checkpoints that Spark has made by itself and not removed yet."""
        return sorted(path.name for path in self.folder.glob("tmp/temporary-*"))

    def run(self, *files: Path) -> list[dict[str, Any]]:
        """Run pipelines over what is there now: the report of each, or why it was refused."""
        found: list[dict[str, Any]] = self.python(CLIENT, *files)
        return found


@pytest.fixture(scope="session")
def connect_server(jars: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """The server that all tests of Spark Connect share, with Delta, Kafka and Avro."""
    with serving(jars, tmp_path_factory.mktemp("connect"), plans.settings()) as server:
        yield server


@contextmanager
def serving(
    jars: Sequence[Path],
    folder: Path,
    also: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[ConnectServer]:
    """A server while the block runs.

    Args:
        jars: Its jars.
        folder: An empty folder, for its log and what it writes.
        also: More settings.
        environment: Its environment variables, with the Python of its workers; by default this process's.
    """
    from gem_bundle.run.jars import spark_home, spark_version
    from gem_bundle.run.spark_settings import default_settings
    from tests.conftest import DELTA_SETTINGS

    (folder / "tmp").mkdir()
    ours = default_settings(MASTER, spark_version())
    settings = {
        **SETTINGS,
        **{name: str(value) for name, value in ours.items() if name == FILES_OF_CHECKPOINTS},
        **DELTA_SETTINGS,
        **(also or {}),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder / 'tmp'}",
    }
    arguments = [f"--conf={key}={value}" for key, value in settings.items()]
    submit = [
        spark_home() / "bin" / "spark-submit",
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", MASTER, "--jars", ",".join(map(str, jars))),
        *arguments,
        "spark-internal",
    ]
    log = folder / "server.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            list(map(str, submit)),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment
            or {
                **{key: value for key, value in os.environ.items() if key != "SPARK_REMOTE"},
                "PYSPARK_PYTHON": sys.executable,
            },
        )
    try:
        while not (found := STARTED.search(log.read_text())):
            assert server.poll() is None, log.read_text()
            time.sleep(0.2)
        yield ConnectServer(f"sc://127.0.0.1:{found.group(1)}", folder, server)
    finally:
        server.terminate()
        server.wait()
