"""The JVM that commands share: who gets it, who gets one of their own, and what is left of a command in it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.warm_spark import suits

if TYPE_CHECKING:
    from pathlib import Path

    from tests.warm_spark import WarmSpark

SESSION = """
import os, signal, sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for setting in sys.argv[2:]:
    builder = builder.config(*setting.split("=", 1))
spark = builder.getOrCreate()
jvm = spark.sparkContext._jvm
print(jvm.java.lang.ProcessHandle.current().pid(), spark.conf.get("spark.sql.ansi.enabled"), flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
spark.range(1).write.mode("overwrite").parquet("rows")
spark.stop()
"""

CALLED_BACK = """
from py4j.java_gateway import JavaObject
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

class Function:
    def run(self):
        print("called", flush=True)

    class Java:
        implements = ["java.lang.Runnable"]

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
gateway, jvm = spark.sparkContext._gateway, spark.sparkContext._jvm
ensure_callback_server_started(gateway)
calls = jvm.java.lang.Thread(Function())

server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
(number,) = gateway.gateway_property.pool.dict
of_before = jvm.py4j.reflection.PythonProxyHandler(number, server.getGateway())
collected = of_before.getClass().getDeclaredMethod("finalize", gateway.new_array(jvm.java.lang.Class, 0))
collected.setAccessible(True)
collected.invoke(of_before, gateway.new_array(jvm.java.lang.Object, 0))

calls.run()
spark.stop()
"""


def ran(warm: WarmSpark, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program that gets the shared JVM."""
    return subprocess.run(
        [sys.executable, "-c", *arguments],
        cwd=folder,
        env={**os.environ, **warm.variables()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def session(warm: WarmSpark, folder: Path, how: str, *settings: str) -> list[str]:
    """Which JVM a process had for its session, and one of its settings."""
    folder.mkdir(exist_ok=True)
    done = ran(warm, folder, SESSION, how, *settings)
    assert (done.returncode == 0) == (how == "ended"), done.stderr
    return done.stdout.split()


@pytest.mark.spark
def test_sessions_share_a_jvm_and_nothing_else(
    warm_spark: WarmSpark, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lent = warm_spark.lent
    folders = tmp_path / "a", tmp_path / "b"
    jvm, _ = session(warm_spark, folders[0], "ended", "spark.sql.ansi.enabled=false")
    assert session(warm_spark, folders[1], "ended") == [jvm, "true"]
    assert all((folder / "rows").is_dir() for folder in folders)
    assert warm_spark.lent == lent + 2

    assert session(warm_spark, tmp_path, "killed")[0] == jvm
    another, _ = session(warm_spark, tmp_path, "ended")
    assert another != jvm, "a session that was left open is in nobody else's JVM"
    # Nothing of this process still wants to talk to the one that is gone: a collection of garbage may come anywhere.
    gc.collect()
    assert caplog.records == []


@pytest.mark.spark
def test_a_function_is_called_although_one_of_the_command_before_is_collected(
    warm_spark: WarmSpark, tmp_path: Path
) -> None:
    # Every process numbers its functions from 0, and the JVM says a number's end to whoever listens by then.
    done = ran(warm_spark, tmp_path, CALLED_BACK)
    assert (done.returncode, done.stdout) == (0, "called\n"), done.stderr


@pytest.mark.parametrize(
    ("setting", "suited"),
    [
        ({"spark.sql.ansi.enabled": "false"}, True),
        ({"spark.jars": "/a.jar"}, True),
        ({"spark.jars": "/a.jar,/b.jar"}, False),
        ({"spark.driver.extraJavaOptions": "-Xss8m"}, False),
        ({"spark.master": "spark://there:7077"}, False),
    ],
)
def test_what_the_start_of_a_jvm_decides_starts_one(setting: dict[str, str], suited: bool) -> None:
    assert suits({"spark.master": "local[2]", **setting}, {"/a.jar", "/c.jar"}) is suited
