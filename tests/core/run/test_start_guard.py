"""A failed preflight ends a run, a look and the making of a test, and the Spark that was being started with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PIPELINE = """\
pipeline: p
sources:
  lines: {{gem: socket, options: {{host: 127.0.0.1, port: {port}}}}}
targets:
  out: {{gem: noop, input: lines}}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    """A pipeline whose server is away."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE.format(port=port))
    return file


def running(marker: str) -> list[str]:
    """The commands of the processes that carry a mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def spark_that_never_starts(folder: Path) -> Path:
    """A Spark whose start would never end: it writes down that it began."""
    script = folder / "bin" / "spark-submit"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho $$ >> {folder}/started\nsleep 100000 & wait\n")
    script.chmod(0o755)
    (folder / "jars").mkdir()
    return folder


@pytest.mark.programs
@pytest.mark.parametrize(
    "command",
    [["run", "p.yaml"], ["preview", "p.yaml", "lines"], ["test", "--create", "p.yaml", "out"]],
    ids=lambda command: command[0],
)
def test_a_failed_preflight_ends_the_command_and_the_start_of_spark(
    pipeline: Path, tmp_path: Path, command: list[str]
) -> None:
    mark = f"GEM_BUNDLE_TEST_MARK={tmp_path}"
    name, _, value = mark.partition("=")
    home = spark_that_never_starts(tmp_path / "spark")
    code = (
        "import pathlib, time\n"
        "from gem_bundle.cli import main\n"
        "from gem_bundle.run import api\n"
        "connect = api.check_connect\n"
        "def slow(*arguments):\n"
        f"    while not pathlib.Path({str(home / 'started')!r}).exists(): time.sleep(0.01)\n"
        "    return connect(*arguments)\n"
        "api.check_connect = slow\n"
        f"main({command!r})\n"
    )
    environment = {**os.environ, "SPARK_HOME": str(home), name: value}

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=pipeline.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    # A start that never ends would be waited for without end.
    assert done.returncode == 1, done.stderr
    assert "p.yaml:3:57: error[GB503]: source `lines`: " in done.stderr
    assert "127.0.0.1" in done.stderr
    assert not list(tmp_path.glob("*.test.yaml"))
    assert (home / "started").exists()
    assert running(mark) == []


@pytest.mark.programs
def test_nothing_is_started_after_a_failed_preflight(pipeline: Path, tmp_path: Path) -> None:
    home = spark_that_never_starts(tmp_path / "spark")
    code = (
        "from gem_bundle.cli import main\n"
        "from gem_bundle.run import api\n"
        "opened = api.open_plan_session\n"
        "def later(*arguments, guard, **more):\n"
        "    while not guard.given_up: pass\n"
        "    return opened(*arguments, guard=guard, **more)\n"
        "api.open_plan_session = later\n"
        f"main(['run', {str(pipeline)!r}])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SPARK_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert not (home / "started").exists()


@pytest.mark.spark
def test_after_a_start_that_was_given_up_late_there_is_another(tmp_path: Path) -> None:
    code = (
        "import sys, threading, time\n"
        "from pathlib import Path\n"
        "from pyspark import SparkContext\n"
        "from gem_bundle.run.session import SessionRequest, open_session\n"
        "from gem_bundle.run.start_guard import StartGivenUp, StartGuard\n"
        "guard = StartGuard()\n"
        "def give_up():\n"
        "    while SparkContext._gateway is None: time.sleep(0.001)\n"
        "    guard.give_up()\n"
        "threading.Thread(target=give_up).start()\n"
        "log = Path(sys.argv[1])\n"
        "settings = {'spark.master': 'local[1]', 'spark.ui.enabled': 'false'}\n"
        "try:\n"
        "    open_session(SessionRequest('one', settings, spark_log=log, guard=guard))\n"
        "except StartGivenUp:\n"
        "    print('given up')\n"
        "session = open_session(SessionRequest('two', settings, spark_log=log, guard=StartGuard()))\n"
        "print(session.spark.range(3).count())\n"
        "session.close()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "spark.log")], capture_output=True, text=True, check=False
    )

    assert done.stdout.split("\n")[:2] == ["given up", "3"], done.stderr
