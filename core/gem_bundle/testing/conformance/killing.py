"""A run that is killed: a process of its own writes a stream into a target, or divides one, until it is shot.

Started as ``python -m gem_bundle.testing.conformance.killing`` it is that process; it reads what to do
from its standard input.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from gem_bundle.testing.conformance.dividing import Dividing
from gem_bundle.testing.conformance.streams import NAME
from gem_bundle.testing.conformance.suite import fail, make

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from gem_bundle.testing.conformance.inputs import Folder

DEADLINE = 240.0
"""Seconds for a Spark to start and to come to the batch in which it is killed."""

_KILLED_IN = 2  # the third micro-batch: there is something before it, and something after it
_POLL = 0.002
# Where Spark 4.2 names its sources it doesn't keep with a checkpoint in how many partitions its state is.
_SHARED = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "200"}
# What users set, and what pyspark sets in a process that has been a client.
_CONNECT = {"SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE"}


def kill_while_writing(gem: Any, given: Folder, checkpoint: Path, folder: Path, spark: SparkSession) -> None:
    """Write a stream in a process of its own, and kill that with all its children in mid-batch.

    Args:
        gem: The target, whose options the process gets.
        given: The stream's files, at least four of them.
        checkpoint: The checkpoint of the query.
        folder: What relative paths are relative to.
        spark: The session that goes on with the query, whose settings the process's own has where a query
            goes by them.
    """
    with _at_work(gem, given, checkpoint, folder, spark) as (process, log):
        _wait_for_batch(process, checkpoint, log)


def kill_while_dividing(
    dividing: Dividing, given: Folder, checkpoint: Path, folder: Path, spark: SparkSession
) -> None:
    """Divide a stream in a process of its own, which dies with the rows of one micro-batch let through.

    Args:
        dividing: Who divides it, and where to.
        given: The stream's files, at least four of them.
        checkpoint: The checkpoint of the query.
        folder: What relative paths are relative to.
        spark: The session that goes on with the query, whose settings the process's own has where a query
            goes by them.
    """
    gem = dividing.gem
    divide = {
        "inputs": gem.input_names,
        "event_time": dividing.event_time,
        "others": dividing.others,
        "place": dividing.place,
    }
    with _at_work(gem, given, checkpoint, folder, spark, divide) as (process, log):
        try:
            ended = process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            fail(f"the process did not come to its third micro-batch within {DEADLINE:g} seconds")
        if ended != -signal.SIGKILL:
            _fail_for_its_end(log)


@contextmanager
def _at_work(
    gem: Any,
    given: Folder,
    checkpoint: Path,
    folder: Path,
    spark: SparkSession,
    divide: Mapping[str, Any] | None = None,
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The process, and what it says; in the end it is killed with all its children."""
    kind = type(gem)
    work: dict[str, Any] = {
        "gem": f"{kind.__module__}:{kind.__qualname__}",
        "options": _in_the_clear(gem.options),
        "folder": str(folder),
        "given": str(given.path),
        "schema": given.schema,
        "checkpoint": str(checkpoint),
        "log": str(checkpoint.with_name("killed.log")),
        "settings": {name: spark.conf.get(name) or default for name, default in _SHARED.items()},
        "divide": divide,
    }
    log = Path(work["log"]).with_suffix(".err")
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "gem_bundle.testing.conformance.killing"],
            stdin=subprocess.PIPE,
            stdout=errors,
            stderr=errors,
            start_new_session=True,  # so that the JVM dies with it
            env={**_without_server(os.environ), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    assert process.stdin is not None
    with process.stdin as pipe:
        pipe.write(json.dumps(work).encode())
    try:
        yield process, log
    finally:
        with suppress(ProcessLookupError):  # it may have killed them all itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _without_server(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that has a Spark of its own: a server's query outlives its client."""
    return {name: value for name, value in environment.items() if name not in _CONNECT}


def _wait_for_batch(process: subprocess.Popen[bytes], checkpoint: Path, log: Path) -> None:
    """Wait until the third micro-batch is about half done, by the time that the second one took."""
    offsets, commits = checkpoint / "offsets", checkpoint / "commits"
    deadline = time.monotonic() + DEADLINE
    moments = []
    for file in (
        offsets / str(_KILLED_IN - 1),
        commits / str(_KILLED_IN - 1),
        offsets / str(_KILLED_IN),
    ):
        while not file.exists():
            if process.poll() is not None:
                _fail_for_its_end(log)
            if time.monotonic() > deadline:
                fail(f"the process did not come to its third micro-batch within {DEADLINE:g} seconds")
            time.sleep(_POLL)  # the condition is a file; nothing tells when it appears
        moments.append(time.monotonic())
    begun, ended, _ = moments
    time.sleep((ended - begun) / 2)  # no synchronisation: whenever it is killed, no row may be missing


def _fail_for_its_end(log: Path) -> NoReturn:
    said = log.read_text(errors="replace").strip().splitlines()
    fail(f"the process that was to be killed ended by itself: {' | '.join(said[-5:])}")


def _in_the_clear(options: Any) -> dict[str, Any]:
    """The options that were given, as JSON takes them, secrets included: they go through a pipe."""
    from pydantic import SecretStr

    def plain(value: Any) -> Any:
        if isinstance(value, SecretStr):
            return value.get_secret_value()
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list | tuple) else value

    return {key: plain(value) for key, value in options.model_dump(exclude_unset=True).items()}


def _write(work: dict[str, Any]) -> None:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_bundle.contexts import WriteContext

    module, _, name = work["gem"].partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    gem = make(found, work["options"], Path(work["folder"]))
    divide: dict[str, Any] | None = work["divide"]
    spark = _session(gem, Path(work["log"]), work["settings"])
    reader = spark.readStream.name("given") if hasattr(spark.readStream, "name") else spark.readStream
    df = reader.schema(work["schema"]).option("maxFilesPerTrigger", 1).json(work["given"])
    if divide is None:
        context = WriteContext(node="target", pipeline=NAME, query_name=NAME)
        writer, start = gem.write_stream(df, context).outputMode("append"), gem.start
    else:
        gem.input_names = tuple(divide.pop("inputs"))
        writer, start = Dividing(gem, **divide, dies_in=_KILLED_IN).writer(df), DataStreamWriter.start
    start(writer.queryName(NAME).option("checkpointLocation", work["checkpoint"])).awaitTermination()


def _session(gem: Any, log: Path, shared: Mapping[str, str]) -> SparkSession:
    """A Spark as a run of the target starts it, on one core."""
    from gem_bundle.run.environment import resolve_jars
    from gem_bundle.run.jars import fill, spark_version
    from gem_bundle.run.session import SessionRequest, open_session
    from gem_bundle.settings import load_settings

    settings = load_settings(Path.cwd())
    wanted = [fill(coordinate, spark_version=spark_version()) for coordinate in gem.jars()]
    jars = resolve_jars(wanted, settings)
    request = SessionRequest(
        app_name="gem-bundle-conformance",
        settings={
            "spark.master": "local[1]",
            "spark.driver.memory": "1g",
            "spark.ui.enabled": False,
            **shared,
            "spark.sql.warehouse.dir": str(log.with_name("killed-warehouse")),
        },
        gem_settings=gem.session_settings(),
        local_settings=gem.local_settings(),
        defaults=settings.spark,
        jars=[jar.path for jar in jars],
        spark_log=log,
        brief=True,
    )
    return open_session(request).spark


if __name__ == "__main__":
    _write(json.load(sys.stdin))
