"""When Java, in which Spark runs, ends before the run does: killed as memory runs out, or told to end."""

from __future__ import annotations

import logging
import re
import signal
import socket
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PATIENCE_SECONDS = 10.0
"""How long Java may take to end after Spark in it has: its shutdown hooks come first."""
_LOOK_SECONDS = 0.05

# What py4j and Spark say when Java is about to end, and may still listen.
_SIGNS = re.compile(
    r"Py4JNetworkError|Answer from Java side is empty|Error while (?:sending|receiving)"
    r"|SparkContext was shut down|stopped SparkContext|Shutdown in progress"
)
# Java's status for an error of memory in a thread of Spark's (org.apache.spark.util.SparkExitCode).
_OUT_OF_MEMORY = 52
# As shells have it: of a process that a signal has ended, and that could still do something about it.
_BY_SIGNAL = 128
_MEMORY = (
    "Systems do so when memory runs out: `dmesg`, or the state of the container, says whether it was that. "
    "Give the machine or the container more memory, or Java less of it (`spark.driver.memory`)."
)
_TO_ALL = (
    "Whoever stops a run by a signal should send it to gem-bundle's process alone (systemd: "
    "`KillMode=mixed`), which lets the micro-batches end first."
)
_HEAP = "Give Java more of it: `spark: {spark.driver.memory: 4g}`."


def lost_java(said: str, log: Path | None = None) -> GemError | None:
    """Why Java has ended, where something failed as it was gone.

    Args:
        said: What failed, with the kind of the error.
        log: Spark's log, if it goes to a file.

    Returns:
        GB524 for whoever started the run; None when Java is there, was never started, or is a server's.
    """
    gateway = _gateway()
    if gateway is None:
        return None
    until = time.monotonic() + _PATIENCE_SECONDS
    if not _is_gone(gateway, until if _SIGNS.search(said) else 0.0):
        return None
    how, hint = _ending(_status(gateway, until))
    where = f" Spark's log is {log}." if log is not None else ""
    return GemError(
        "GB524",
        f"Java, in which Spark runs, is gone{how}",
        f"{hint}{where} The next run goes on where the checkpoints are.".strip(),
    )


@contextmanager
def untold_by_py4j() -> Iterator[None]:
    """Keep py4j from telling that nobody answers, with a traceback: whoever asked tells it."""
    root = logging.getLogger()
    root.addFilter(_is_not_of_py4j)
    try:
        yield
    finally:
        root.removeFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.msg != "Exception while sending command."


def has_lost_java() -> bool:
    """Whether there is nobody left to talk to: nothing can be stopped or set then."""
    gateway = _gateway()
    return gateway is not None and _is_gone(gateway)


def forget_java() -> None:
    """Let pyspark start another Java for the next session: it would go on talking to the one that is gone."""
    from pyspark.sql import SparkSession, is_remote

    if is_remote():
        return
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        with suppress(Exception):
            gateway.shutdown()
    for name in ("_gateway", "_jvm", "_active_spark_context"):
        setattr(SparkContext, name, None)
    for name in ("_instantiatedSession", "_activeSession"):
        if hasattr(SparkSession, name):
            setattr(SparkSession, name, None)


def _gateway() -> Any:
    """What pyspark talks to Java by; None where it never did, as over Spark Connect."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import is_remote

    if is_remote():
        return None
    from pyspark import SparkContext

    return getattr(SparkContext, "_gateway", None)


def _is_gone(gateway: Any, until: float = 0.0) -> bool:
    """Whether nobody listens any more, or soon won't."""
    while _listens(gateway):
        if time.monotonic() >= until:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _listens(gateway: Any) -> bool:
    process, to = getattr(gateway, "proc", None), gateway.gateway_parameters
    if process is not None and process.poll() is not None:
        return False
    try:
        socket.create_connection((to.address, to.port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
    return True


def _status(gateway: Any, until: float) -> int | None:
    """What the process has ended with; None where it isn't ours, as under spark-submit."""
    process = getattr(gateway, "proc", None)
    while process is not None and process.poll() is None and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    return None if process is None else process.poll()


def _ending(status: int | None) -> tuple[str, str]:
    """How a process has ended, in words, and what helps against it."""
    if status is None:
        return "", ""
    if status == _OUT_OF_MEMORY:
        return ": it had no memory left", _HEAP
    number = -status if status < 0 else status - _BY_SIGNAL
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f": it ended with status {status}", ""
    hints = {"SIGKILL": _MEMORY, "SIGTERM": _TO_ALL, "SIGINT": _TO_ALL, "SIGHUP": _TO_ALL}
    return f": it was ended by {name}", hints.get(name, "")
