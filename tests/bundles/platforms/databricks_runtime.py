"""A stand-in of a Databricks runtime: it carries out a job's tasks as the platform does, without a workspace.

Libraries are installed one after the other, each by a pip that reaches no index, into an environment that has
nothing but pyspark. The entry point is looked up in the metadata of its package, and called in a process in
which a session is running; what it returns counts for nothing. Secrets come from `dbutils`. The current folder
can't be written to, and nothing is started with spark-submit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pip

from gem_bundler.proof.verify import bare_python
from tests.bundles.cluster import bare_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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

task, settings = map(json.loads, sys.argv[1:])
if settings is not None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
sys.argv = [task["package_name"], *task["parameters"]]
points = metadata.distribution(task["package_name"]).entry_points
(entry,) = [point for point in points if point.name == task["entry_point"]]
entry.load()()
if settings is not None:
    print("the session has", spark.range(3).count(), "rows")
"""
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

    def install(self, libraries: Sequence[Mapping[str, Any]]) -> None:
        """Install the libraries of a task, in their order."""
        files = [library["whl"] for library in libraries]
        tools = self._folder / "tools"
        tools.mkdir()
        (tools / "pip").symlink_to(Path(pip.__file__).parent, target_is_directory=True)
        settings = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
        done = self._run("install.py", *files, PYTHONPATH=str(tools), **settings)
        assert done.returncode == 0, done.stdout

    def call(
        self, task: Mapping[str, Any], *more: str, session: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Call a task's entry point in a fresh process; with a session in it, unless that is turned off.

        Args:
            task: The `python_wheel_task` of the job.
            more: Further parameters.
            session: Whether a session is there.
        """
        called = {**task, "parameters": [*task["parameters"], *more]}
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
        }
        return self._run("task.py", json.dumps(called), json.dumps(settings if session else None))

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
