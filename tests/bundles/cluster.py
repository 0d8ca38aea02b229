"""A real Spark cluster whose Python has nothing but pyspark: a master and two workers of Spark's standalone mode."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundler.proof.verify import bare_python as make_bare_python
from tests.workers import shared_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs.

    Args:
        master: Its address, ``spark://…``.
        python: The Python of its workers, and of drivers in its environment.
        environment: The environment variables for `submit.sh` and spark-submit.
    """

    master: str
    python: Path
    environment: dict[str, str]

    def run(self, *command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end as somebody on the cluster would.

        `spark-submit` hands on what its Python prints by the kilobyte: in one stream with Spark's log a line
        may have another one within it.
        """
        return subprocess.run(
            command,
            cwd=cwd,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


def report_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The report of a run on the cluster, which has to have ended well."""
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    ended = [line for line in done.stdout.splitlines() if line.startswith('{"event": "ended"')]
    assert len(ended) == 1, done.stdout[-6000:]
    report: dict[str, Any] = json.loads(ended[0])
    return report


def bare_environment(python: Path, home: Path) -> dict[str, str]:
    """The environment of a machine of the cluster: nothing of this project is on any path."""
    import pyspark

    names = {"JAVA_HOME", "JAVA_TOOL_OPTIONS", "LANG", "TMPDIR"}
    kept = {key: value for key, value in os.environ.items() if key in names}
    bin_folder = Path(sys.executable).parent
    path = [part for part in os.environ["PATH"].split(os.pathsep) if Path(part) != bin_folder]
    home.mkdir(exist_ok=True)
    return {
        **kept,
        "PATH": os.pathsep.join([str(python.parent), *path]),
        "HOME": str(home),
        "PYSPARK_PYTHON": str(python),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def _daemon(
    arguments: list[str], environment: dict[str, str], log: Path, ready: str, processor: int | None = None
) -> Iterator[re.Match[str]]:
    """A part of the cluster, from the line of its log that says that it is ready until the block ends."""
    command = [f"{environment['SPARK_HOME']}/bin/spark-class", *arguments]
    bound = ["taskset", "--cpu-list", str(processor)] if processor is not None else []
    process: subprocess.Popen[str] = subprocess.Popen(
        [*bound, *command],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=log.parent,
    )
    assert process.stderr is not None
    lines = process.stderr
    with log.open("w") as file:

        def copy() -> None:
            for line in lines:
                file.write(line)
                file.flush()

        found = None
        for line in lines:
            file.write(line)
            found = re.search(ready, line)
            if found:
                break
        copying = threading.Thread(target=copy, daemon=True)
        copying.start()
        try:
            assert found, f"{arguments[0]} doesn't start:\n{log.read_text()}"
            yield found
        finally:
            process.terminate()
            process.wait(60)
            copying.join(60)
            lines.close()


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has nothing but pyspark."""

    def make(folder: Path) -> None:
        make_bare_python(folder / "venv")

    return shared_folder(tmp_path_factory, "bare", make) / "venv" / "bin" / "python"


@contextmanager
def standalone(
    environment: Mapping[str, str], folder: Path, processors: Sequence[int | None] = (None, None)
) -> Iterator[str]:
    """A master and workers with one core each, until the block ends.

    Args:
        environment: Their environment variables.
        folder: Where their logs are.
        processors: For each worker the processor that it and its executors run on; None for any.

    Yields:
        The master's address, ``spark://…``.
    """
    daemons = {**environment, "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOG_DIR": str(folder)}
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:

        def start(name: str, ready: str, *arguments: Any, processor: int | None = None) -> re.Match[str]:
            command = [f"{deploy}.{arguments[0]}", *map(str, arguments[1:])]
            return stack.enter_context(_daemon(command, daemons, folder / f"{name}.log", ready, processor))

        ports = ("--host", "127.0.0.1", "--port", 0, "--webui-port", 0)
        master = start("master", r"Starting Spark master at (spark://\S+)", "master.Master", *ports)[1]
        for number, processor in enumerate(processors, 1):
            name = f"worker{number}"
            resources = ("--cores", 1, "--memory", "1g", "--work-dir", folder / name)
            arguments = ("worker.Worker", *ports, *resources, master)
            start(name, "Successfully registered", *arguments, processor=processor)
        yield master


@pytest.fixture(scope="package")
def cluster(bare_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone master and two workers with one core each; import it where it is used."""
    folder = tmp_path_factory.mktemp("cluster")
    environment = bare_environment(bare_python, folder / "home")
    with standalone(environment, folder) as master:
        yield Cluster(master, bare_python, environment)
