"""A stand-in of a Databricks runtime: it carries out a job's tasks as the platform does, without a workspace.

Libraries are installed one after the other, each by a pip that reaches no index, into an environment that has
nothing but pyspark. The entry point is looked up in the metadata of its package, and called in a process in
which a session is running; what it returns counts for nothing. Secrets come from `dbutils`. The current folder
can't be written to, and nothing is started with spark-submit.

On serverless compute the session is one of Spark Connect, there is no Java, and of settings only a few can be
changed or asked for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pip

from gem_bundler.platforms.databricks.checks import SERVERLESS_SETTINGS
from gem_bundler.proof.verify import bare_python
from tests.bundles.cluster import bare_environment
from tests.connect_server import serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.connect_server import ConnectServer

# One pip after the other in one process. Of this project's environment that one sees nothing but pip.
_INSTALL = """\
import sys

from pip._internal.cli.main import main

for library in sys.argv[1:]:
    command = ["install", "--upgrade", library, "--disable-pip-version-check", "--no-compile"]
    if status := main(command):
        raise SystemExit(status)
"""
_TASK = """\
import json
import sys
from importlib import metadata

task, settings, url, known = map(json.loads, sys.argv[1:])
if url is not None:
    from pyspark.errors import AnalysisException
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(url).getOrCreate()

    def only_known(asked):
        def conf(self, key, *rest):
            by_pyspark = sys._getframe(1).f_globals["__name__"].startswith("pyspark.")
            if key not in known and not by_pyspark:
                raise AnalysisException(f"[CONFIG_NOT_AVAILABLE] Configuration {key} is not available.")
            return asked(self, key, *rest)

        return conf

    for name in ("get", "set", "unset"):
        setattr(type(spark.conf), name, only_known(getattr(type(spark.conf), name)))
elif settings is not None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
sys.argv = [task["package_name"], *task["parameters"]]
points = metadata.distribution(task["package_name"]).entry_points
(entry,) = [point for point in points if point.name == task["entry_point"]]
entry.load()()
if url is not None or settings is not None:
    print("the session has", spark.range(3).count(), "rows")
"""
# What pyspark's own extra for Spark Connect brings, with what that needs.
_CLIENT = (
    *("grpcio", "grpcio-status", "googleapis-common-protos", "protobuf", "typing_extensions", "zstandard"),
    *("pandas", "numpy", "pyarrow", "python-dateutil", "pytz", "tzdata", "six"),
)
DBUTILS = '''\
"""What notebooks and jobs have as `dbutils`, as far as secrets go."""

import json
import os


class _Secrets:
    def get(self, scope: str, key: str) -> str:
        with open(os.environ["STAND_IN_SECRETS"]) as file:
            return json.load(file)[scope][key]


class dbutils:
    secrets = _Secrets()
'''


class Runtime:
    """A runtime, with an environment of its own.

    Args:
        folder: Where it keeps everything.
        secrets: The secrets by scope and key.
    """

    def __init__(self, folder: Path, secrets: Mapping[str, Mapping[str, str]]) -> None:
        self._folder = folder
        self._python = bare_python(folder / "python")
        package = folder / "platform" / "databricks" / "sdk"
        package.mkdir(parents=True)
        (package / "runtime.py").write_text(DBUTILS)
        (folder / "secrets.json").write_text(json.dumps(secrets))
        (folder / "install.py").write_text(_INSTALL)
        (folder / "task.py").write_text(_TASK)
        self._environment = {
            **bare_environment(self._python, folder / "home"),
            "PYTHONPATH": str(folder / "platform"),
            "DATABRICKS_RUNTIME_VERSION": "19.0",
            "STAND_IN_SECRETS": str(folder / "secrets.json"),
        }

    def install(self, files: Sequence[str]) -> None:
        """Install wheels in their order, before anything else is in the environment."""
        tools = self._folder / "tools"
        tools.mkdir()
        (tools / "pip").symlink_to(Path(pip.__file__).parent, target_is_directory=True)
        settings = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
        done = self._run("install.py", *files, PYTHONPATH=str(tools), **settings)
        assert done.returncode == 0, done.stdout

    @contextmanager
    def serverless(self, jars: Sequence[Path]) -> Iterator[ConnectServer]:
        """Serverless compute while the block runs: a server whose Python workers have what was installed.

        Args:
            jars: Those of the platform.
        """
        for name in _CLIENT:
            self._link(name)
        folder = self._folder / "serverless"
        folder.mkdir()
        with serving(jars, folder, environment=self._environment) as server:
            yield server

    def _link(self, name: str) -> None:
        """Have a distribution of this project's environment in the runtime's."""
        (packages,) = self._python.parents[1].glob("lib/python*/site-packages")
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
            source, link = Path(str(found.locate_file(top))), packages / top
            if top != "__pycache__" and not link.exists():
                link.symlink_to(source, target_is_directory=source.is_dir())

    def call(
        self, task: Mapping[str, Any], *more: str, session: bool = True, server: ConnectServer | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Call a task's entry point in a fresh process; with a session in it, unless that is turned off.

        Args:
            task: The `python_wheel_task` of the job.
            more: Further parameters.
            session: Whether a session is there.
            server: The serverless compute that it is on; None for one that is started in the process.
        """
        called = {**task, "parameters": [*task["parameters"], *more]}
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
        }
        given = (called, settings if session else None, server and server.url, sorted(SERVERLESS_SETTINGS))
        java = {} if server is None else {"JAVA_HOME": "/nowhere", "DATABRICKS_RUNTIME_VERSION": "client.5.0"}
        return self._run("task.py", *map(json.dumps, given), **java)

    def _run(self, script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        locked = self._folder / "locked"
        locked.mkdir(mode=0o555, exist_ok=True)
        return subprocess.run(
            [str(self._python), "-P", str(self._folder / script), *arguments],
            # The super-user may write to any folder of a disk; to that of the processes nobody may.
            cwd="/proc" if os.geteuid() == 0 else locked,
            env={**self._environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )


def upload(bundle: Path, job: Mapping[str, Any]) -> None:
    """Put a bundle's wheels where the request that creates the job says that they have to be."""
    place = Path(job["description"].rpartition(", to ")[2].removesuffix("."))
    place.mkdir(parents=True)
    shutil.copytree(bundle / "wheels", place / "wheels")
    for wheel in bundle.glob("*.whl"):
        shutil.copy(wheel, place)
