"""The `spark-submit` of a Spark home whose JVM is running already (tests/warm_spark.py).

PySpark starts it to get a JVM, and lets go of its standard input when it ends. It asks for the JVM that the tests of
commands share, and is Spark's own `spark-submit` where it gets none. It imports nothing of the environment, since it
runs with whatever Python a command has.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

SOCKET = "GEM_BUNDLE_WARM_SPARK"
TOLD = "_PYSPARK_DRIVER_CONN_INFO_PATH"


def main() -> None:
    """Hand the shared JVM's address to PySpark and hold the JVM until that process has ended."""
    settings = _settings(sys.argv[1:])
    with socket.socket(socket.AF_UNIX) as ours:
        told = _ask(ours, settings) if settings is not None and TOLD in os.environ else b""
        if not told:
            _start_one()
        place = Path(os.environ[TOLD])
        aside = place.with_suffix(".aside")
        aside.write_bytes(told)
        aside.rename(place)
        sys.stdin.read()


def _settings(arguments: list[str]) -> dict[str, str] | None:
    """The settings of the session that PySpark wants; None where it wants more than a session."""
    settings: dict[str, str] = {}
    rest = list(arguments)
    while len(rest) > 1 and rest[0] == "--conf":
        name, _, value = rest[1].partition("=")
        settings[name] = value
        del rest[:2]
    return settings if rest == ["pyspark-shell"] else None


def _ask(ours: socket.socket, settings: dict[str, str]) -> bytes:
    try:
        ours.connect(os.environ[SOCKET])
        ours.sendall(json.dumps({"settings": settings, "folder": str(Path.cwd())}).encode() + b"\n")
        return ours.recv(4096)
    except (KeyError, OSError):
        return b""


def _start_one() -> None:
    home = (Path(os.environ["SPARK_HOME"]) / "jars").resolve().parent
    os.environ["SPARK_HOME"] = str(home)
    os.execv(home / "bin" / "spark-submit", ["spark-submit", *sys.argv[1:]])


if __name__ == "__main__":
    main()
