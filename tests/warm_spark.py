"""One JVM for the commands of a worker's tests that need a Spark, one after the other, and not one of their own.

`gem-bundle run` of a few rows takes 13 s of processor time, 10 of them for a JVM that loads and compiles the same
classes as the one before. Here the command is a process of its own as ever, and its session starts and stops as ever;
only `spark-submit`, which PySpark calls, hands over a JVM that is already there (tests/warm_submit.py). What kills a
run, looks at how a JVM is started or reads Spark's log does without.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests import local_files, plans, warm_submit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

# What the start of a JVM decides: who asks for it gets a JVM of their own.
AT_START: Final = (
    "extraJavaOptions",
    "extraClassPath",
    "extraLibraryPath",
    "spark.plugins",
    "spark.jars.packages",
)

# A command numbers its Python functions from 0. What it leaves is collected when the next one has numbered its own, and
# py4j would tell a number's end to whoever listens by then: that function could not be called any more.
SILENT: Final = """
    import java.net.InetAddress;
    import java.util.Collections;
    import java.util.concurrent.TimeUnit;
    import javax.net.SocketFactory;
    import py4j.*;

    public class Silent extends PythonClient {
        public Silent(Gateway gateway) {
            this(gateway, 0, GatewayServer.defaultAddress(), ((PythonClient) gateway.getCallbackClient()).getJavaServer());
        }

        private Silent(Gateway gateway, int port, InetAddress address, Py4JJavaServer server) {
            super(gateway, Collections.EMPTY_LIST, port, address, 30, TimeUnit.SECONDS, SocketFactory.getDefault(), server);
        }

        public boolean isMemoryManagementEnabled() {
            return false;
        }

        public Py4JPythonClient copyWith(InetAddress address, int port) {
            return new Silent(gateway, port, address, javaServer);
        }
    }
"""


def suits(settings: Mapping[str, str], jars: Collection[str]) -> bool:
    """Whether a session of these settings can be had in a JVM that runs already.

    Args:
        settings: The settings.
        jars: What the JVM has on its class path.
    """
    wanted = {jar for jar in settings.get("spark.jars", "").split(",") if jar}
    return (
        wanted.issubset(jars)
        and settings.get("spark.master", "").startswith("local")
        and not any(name.endswith(AT_START) for name in settings)
    )


class WarmSpark:
    """Lends a JVM to one command at a time; it is started for the first one.

    Args:
        folder: Gets the Spark home, the socket and the JVM's output.
        home: Where Spark is.
        jars: What the JVM has on its class path; a command that needs others starts its own.
    """

    def __init__(self, folder: Path, home: Path, jars: Sequence[Path]) -> None:
        """Listen for commands."""
        self._folder, self._home = folder, home
        self._jars = {str(jar) for jar in jars}
        self._jvm: _Jvm | None = None
        self._lending: Thread | None = None
        self.lent = 0
        self._make_home()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(folder / "s"))
        self._socket.listen()
        Thread(target=self._serve, daemon=True).start()

    def variables(self) -> dict[str, str]:
        """The environment variables that make a command take this JVM."""
        return {"SPARK_HOME": str(self._folder / "home"), warm_submit.SOCKET: str(self._folder / "s")}

    def close(self) -> None:
        """End the JVM."""
        self._socket.close()
        if self._lending is not None:
            self._lending.join()  # it may be looking what the last command has left
        self._end()

    def _make_home(self) -> None:
        ours = self._folder / "home"
        (ours / "bin").mkdir(parents=True)
        for there, here in ((self._home, ours), (self._home / "bin", ours / "bin")):
            for file in there.iterdir():
                if file.name not in ("bin", "spark-submit"):
                    (here / file.name).symlink_to(file)
        script = ours / "bin" / "spark-submit"
        command = shlex.join([sys.executable, "-IS", warm_submit.__file__])
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        script.chmod(0o755)

    def _serve(self) -> None:
        while True:
            try:
                theirs, _ = self._socket.accept()
            except OSError:
                return
            if self._lending is not None and self._lending.is_alive():
                theirs.close()
                continue
            self._lending = Thread(target=self._lend, args=(theirs,), daemon=True)
            self._lending.start()

    def _lend(self, theirs: socket.socket) -> None:
        with theirs:
            asked = json.loads(theirs.makefile().readline())
            if not suits(asked["settings"], self._jars):
                return
            if self._jvm is None:
                self._jvm = _Jvm(self._home, sorted(self._jars), self._folder)
            self._jvm.prepare(asked["settings"], asked["folder"])
            theirs.sendall(self._jvm.told)
            self.lent += 1
            with suppress(OSError):
                theirs.recv(1)
            if not self._jvm.is_clean():
                self._end()

    def _end(self) -> None:
        if self._jvm is not None:
            self._jvm.end()
            self._jvm = None


class _Jvm:
    """A JVM as PySpark starts it, and what it was told of how to reach it."""

    def __init__(self, home: Path, jars: Sequence[str], folder: Path) -> None:
        from py4j.java_gateway import GatewayParameters, JavaGateway  # type: ignore[import-untyped]
        from pyspark.serializers import UTF8Deserializer, read_int

        place = folder / "told"
        place.unlink(missing_ok=True)
        with (folder / "spark.log").open("a") as log:
            self._process = subprocess.Popen(
                [
                    home / "bin" / "spark-submit",
                    *("--conf", "spark.driver.memory=1g"),
                    *(
                        part
                        for name, value in plans.settings().items()
                        for part in ("--conf", f"{name}={value}")
                    ),
                    *("--jars", ",".join(jars), "pyspark-shell"),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, "SPARK_HOME": str(home), warm_submit.TOLD: str(place)},
            )
        while not place.exists():
            assert self._process.poll() is None, f"no JVM: see {folder}/spark.log"
            time.sleep(0.05)  # a poll, as PySpark's own: the file is all that tells
        self.told = place.read_bytes()
        with place.open("rb") as stream:
            port, secret = read_int(stream), UTF8Deserializer().loads(stream)
        # Or the collector of garbage, whenever it comes, would talk to a JVM that may be gone, and log that it can't.
        self._gateway: Any = JavaGateway(
            gateway_parameters=GatewayParameters(
                port=port, auth_token=secret, auto_convert=True, enable_memory_management=False
            )
        )
        self._keep_collected_functions_to_itself()
        # What `spark-submit` says of itself, as the name of an application without one; the jars are this JVM's.
        found = self._spark_properties()
        self._submitted = {name: value for name, value in found.items() if "jars" not in name}

    def _keep_collected_functions_to_itself(self) -> None:
        from py4j.java_gateway import JavaObject

        jvm = self._gateway.jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(SILENT)
        gateway = JavaObject("GATEWAY_SERVER", self._gateway._gateway_client).getGateway()
        (made,) = compiler.getClassLoader().loadClass("Silent").getConstructors()
        given = self._gateway.new_array(jvm.java.lang.Object, 1)
        given[0] = gateway
        field = gateway.getClass().getDeclaredField("cbClient")
        field.setAccessible(True)
        field.set(gateway, made.newInstance(given))

    def prepare(self, settings: dict[str, str], folder: str) -> None:
        """Make the JVM one that was just started with these settings in this folder."""
        system = self._gateway.jvm.System
        for name in self._spark_properties():
            system.clearProperty(name)
        made = {**self._submitted, **local_files.settings(), **settings, "user.dir": folder}
        for name, value in made.items():
            system.setProperty(name, value)
        # They are kept with the folder in which they were made.
        self._gateway.jvm.org.apache.hadoop.fs.FileSystem.closeAll()

    def _spark_properties(self) -> dict[str, str]:
        properties = self._gateway.jvm.System.getProperties()
        names = [name for name in properties.stringPropertyNames() if name.startswith("spark.")]
        return {name: properties.getProperty(name) for name in names}

    def is_clean(self) -> bool:
        """Whether the session has ended, and nothing that outlives one is left of it."""
        jvm = self._gateway.jvm
        if jvm.org.apache.spark.SparkEnv.get() is not None:
            return False
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        return True

    def end(self) -> None:
        """End it."""
        self._gateway.close()
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="session")
def warm_spark(jars: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmSpark]:
    """A JVM that commands share: give them its `variables`."""
    from gem_bundle.run.jars import spark_home

    warm = WarmSpark(tmp_path_factory.mktemp("warm"), spark_home(), [*jars, *local_files.jars()])
    yield warm
    warm.close()
