"""The Spark session of a run: the one that is there, or a new one.

Where a session is already running (a notebook, a Databricks job), ``SPARK_REMOTE`` names one, or
spark-submit started this process, that environment decides about the master, the jars and all else
that is fixed once Spark runs. Elsewhere a local Spark is started, set up for one machine.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from gem_bundle.contexts import is_over_connect
from gem_bundle.errors import GemError
from gem_bundle.run.class_archive import class_archive
from gem_bundle.run.lost_java import forget_java, has_lost_java
from gem_bundle.run.lost_server import address_of, lost_server, socket_of, watched
from gem_bundle.run.setting import value_of
from gem_bundle.run.spark_log import begin_log
from gem_bundle.run.spark_settings import (
    SessionRequest,
    Setting,
    contains,
    is_local,
    settings_to_change,
    settings_to_start,
)

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from gem_bundle.run.class_archive import ClassArchive
    from gem_bundle.run.java import Java
    from gem_bundle.run.lost_server import Patience

__all__ = ["Session", "SessionRequest", "Setting", "brings_jars", "open_session"]

_REMOTE = "SPARK_REMOTE"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
_DATABRICKS = "DATABRICKS_RUNTIME_VERSION"
# Spark 4.2 sets it in the copy of a session that a streaming query works with.
_OF_A_QUERY = "spark.sql.streaming.internal.stateStore.partitions"
# What a pipeline or a project gives stands in `extraJavaOptions`, and counts before these.
_JAVA_OPTIONS = "spark.driver.defaultJavaOptions"


@dataclass(slots=True)
class Session:
    """A session that a run uses.

    Args:
        spark: Spark's own session.
        owned: Whether it was started for this run, so that `close` stops it.
        settings: What it was started with, or what a run wants of it, by name.
        refused: What was wanted but is fixed in the session that was there.
        has_own_jars: Its jars are those of this run; otherwise somebody else chose them.
        log: The file with Spark's own log; None where there is none, or it is somebody else's.
    """

    spark: SparkSession
    owned: bool
    settings: tuple[Setting, ...]
    refused: tuple[Setting, ...] = ()
    has_own_jars: bool = False
    log: Path | None = None
    _before: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    _archive: ClassArchive | None = field(default=None, repr=False)
    _patience: Patience | None = field(default=None, repr=False)
    _quiet: tuple[logging.Logger, ...] = field(default=(), repr=False)

    def drop_classes(self) -> None:
        """Keep no archive of the classes of this session: what it was opened for has not run."""
        if self._archive is not None:
            self._archive.wanted = False

    def close(self) -> None:
        """Stop Spark if it was started for this run; otherwise put changed settings back.

        Where Java is gone, or a server, there is nothing of either to do; pyspark may start another.
        """
        if has_lost_java():
            forget_java()
            return
        if self._patience is not None:
            self._patience.closing = True
        if self.owned:
            self.spark.stop()
            return
        try:
            self._put_back()
        except Exception as error:
            if lost_server(error) is None:
                raise

    def _put_back(self) -> None:
        for logger in self._quiet:
            logger.disabled = False
        for key, value in self._before.items():
            if value is None:
                self.spark.conf.unset(key)
            else:
                self.spark.conf.set(key, value)


def open_session(request: SessionRequest) -> Session:
    """The session for a run.

    Raises:
        GemError: GB501 when a Spark has to be started and there is no Java for it, GB503 when there
            is no server at ``SPARK_REMOTE``, GB509 when pyspark is missing, GB511 when the file for
            Spark's log can't be written, GB512 when the session can't start.
    """
    from gem_bundle.run.jars import spark_version

    version = spark_version()
    for folder in reversed(request.module_folders):
        text = str(folder.absolute())
        if text not in sys.path:
            sys.path.insert(0, text)
    running = _running()
    if running is not None:
        return _adopt(running, request, owned=False)
    remote = os.environ.get(_REMOTE) or str(request.settings.get("spark.remote", ""))
    if remote:
        return _connect(remote, request)
    submitted = _submitted() if _SUBMITTED in os.environ else None
    settings = settings_to_start(request, version, submitted)
    if submitted is None:
        return _start(request, settings)
    told = submitted.items()
    spark = _build({k: s for k, s in settings.items() if (k, s.value) not in told})
    return Session(spark, True, _sorted(settings))


def brings_jars() -> bool:
    """Whether the environment decides about jars, so that a run needn't resolve its own.

    That is so where a session is running, where ``SPARK_REMOTE`` names one, under spark-submit and on
    Databricks.
    """
    variables = (_REMOTE, _SUBMITTED, _DATABRICKS)
    return any(os.environ.get(name) for name in variables) or _running() is not None


def _running() -> SparkSession | None:
    """The session of this thread, else of this process."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.active()
    except PySparkException:
        return None
    # PySpark calls the session active in which a DataFrame was last made, on any thread: where a function of
    # `foreachBatch` makes one, that is the copy that its query works with, also when the query has ended.
    if value_of(session, _OF_A_QUERY) is None:
        return session
    return SparkSession.builder.getOrCreate()


def _adopt(spark: SparkSession, request: SessionRequest, *, owned: bool) -> Session:
    """A session that is already there: what can still be set is set, the rest is reported."""
    from pyspark.errors import PySparkException

    quiet = _quiet_client() if is_over_connect(spark) else ()
    master = value_of(spark, "spark.master") or ""
    found: dict[str, Setting] = {}
    refused: list[Setting] = []
    before: dict[str, str | None] = {}
    for key, setting in settings_to_change(request, spark.version, master).items():
        value = value_of(spark, key)
        if contains(key, value, setting.value):
            found[key] = Setting(key, value or "", "environment")
            continue
        try:
            spark.conf.set(key, setting.value)
        except PySparkException:
            refused.append(setting)
        else:
            found[key], before[key] = setting, value
    return Session(spark, owned, _sorted(found), tuple(refused), _before=before, _quiet=quiet)


def _sorted(settings: Mapping[str, Setting]) -> tuple[Setting, ...]:
    return tuple(settings[key] for key in sorted(settings))


def _connect(url: str, request: SessionRequest) -> Session:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    address = address_of(url)
    try:
        _reach(url)
        spark = SparkSession.builder.remote(url).getOrCreate()
        spark.version  # noqa: B018 (asks the server)
    except ImportError as error:
        raise GemError(
            "GB509",
            f"talking to `{address}` needs packages that aren't installed: {_first_line(error)}",
            "Install them with `pip install 'gem-bundle[connect-client]'`.",
        ) from error
    except (PySparkException, OSError) as error:
        raise GemError(
            "GB503",
            f"there is no Spark Connect server at `{address}`: {_first_line(error).replace(url, address)}",
            f"Start it, correct {_REMOTE}, or unset it to run locally.",
        ) from error
    patience = watched(spark, url)
    return replace(_adopt(spark, request, owned=True), _patience=patience)


def _quiet_client() -> tuple[logging.Logger, ...]:
    """Let a failure be told once: pyspark's client prints it as JSON when it raises it.

    Returns:
        Who did so until now.
    """
    from pyspark.logger import PySparkLogger

    names = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
    loud = tuple(found for found in map(PySparkLogger.getLogger, names) if not found.disabled)
    for found in loud:
        found.disabled = True
    return loud


def _reach(url: str) -> None:
    """Open a connection and close it again: the client itself tries for ten minutes."""
    import socket

    place = socket_of(url)
    if place is not None:
        socket.create_connection(place, timeout=10).close()


def _submitted() -> dict[str, str]:
    """What spark-submit was told: the Spark properties of the JVM that started this process."""
    from pyspark import SparkConf, SparkContext

    SparkContext.getSystemProperty("java.version")  # connects to that JVM, which SparkConf doesn't
    return dict(SparkConf().getAll())


class _ArchiveRefusedError(Exception):
    """A Java has ended as soon as it was started with an archive of classes."""


def _start(request: SessionRequest, settings: Mapping[str, Setting]) -> Session:
    """Start a Spark of one's own."""
    from gem_bundle.run.java import find_java

    if request.spark_log is not None or request.log_name:
        request = replace(request, spark_log=begin_log(request.spark_log, request.log_name))
    if is_local(settings["spark.master"].value):
        # Spark would start the first python3 on the search path, which may be another Python.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    java = find_java()
    archive = _archive(request, java, settings)
    if archive is not None:
        try:
            return _start_with(archive, java, request, settings)
        except _ArchiveRefusedError:
            archive.forget()
    return _start_with(None, java, request, settings)


def _start_with(
    archive: ClassArchive | None, java: Java, request: SessionRequest, settings: Mapping[str, Setting]
) -> Session:
    from pyspark import SparkContext

    log = request.spark_log
    began = log.stat().st_size if log is not None and _is_kept(log) else 0
    told = settings if archive is None else {**settings, _JAVA_OPTIONS: _with_options(settings, archive)}
    with (
        _java_home(java.path),
        _stderr_into(log),
        _watched(request),
    ):
        try:
            spark = _build(told)
        except _start_errors() as error:
            if request.guard is not None and request.guard.given_up:
                raise
            if archive is not None and "JAVA_GATEWAY_EXITED" in str(error):
                raise _ArchiveRefusedError from error
            said = _read_from(log, began) or str(error)
            reason = _first_problem(said) or _first_line(error)
            where = f"Spark's log is {log}. " if _is_kept(log) else ""
            raise GemError(
                "GB512",
                f"the Spark session can't start: {reason}",
                f"{where}`gem-bundle run --show-settings` lists what it is started with.",
            ) from error
    log = log if _is_kept(log) else None
    if archive is None or not archive.recorded:
        return Session(spark, True, _sorted(told), has_own_jars=True, log=log)
    values = {key: setting.value for key, setting in settings.items()}
    kept = archive.finish(java, values, SparkContext.getSystemProperty("java.class.path"))
    noted = archive if kept else None
    return Session(spark, True, _sorted(told), has_own_jars=True, log=log, _archive=noted)


def _is_kept(log: Path | None) -> bool:
    return log is not None and log.is_file()


def _watched(request: SessionRequest) -> AbstractContextManager[None]:
    """While Spark starts, whoever asked for it may give it up."""
    return nullcontext() if request.guard is None else request.guard.watched()


def _archive(request: SessionRequest, java: Java, settings: Mapping[str, Setting]) -> ClassArchive | None:
    """The archive of classes to start with, unless nobody wants one or Spark or its options are another's."""
    from gem_bundle.run.jars import spark_home

    given = settings.get(_JAVA_OPTIONS)
    own = given is not None and given.origin != "default"
    if request.class_archive is None or request.spark_log is None or own or os.environ.get(_DATABRICKS):
        return None
    values = {key: setting.value for key, setting in settings.items()}
    folder, home = request.class_archive, spark_home()
    return class_archive(folder, java, home, values, os.environ, records=request.records)


def _with_options(settings: Mapping[str, Setting], archive: ClassArchive) -> Setting:
    given = settings.get(_JAVA_OPTIONS)
    return Setting(_JAVA_OPTIONS, " ".join([*([given.value] if given else []), *archive.options]), "default")


def _start_errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return (PySparkException, Py4JError)


def _build(settings: Mapping[str, Setting]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    for key, setting in settings.items():
        builder = builder.config(key, setting.value)
    Thread(target=_import_ahead, daemon=True).start()
    session: SparkSession = builder.getOrCreate()
    return session


def _import_ahead() -> None:
    """Import what PySpark imports with the first value that it hands to Java, while Java starts."""
    with suppress(Exception):
        import_module("pyspark.testing.utils")


@contextmanager
def _java_home(java: Path) -> Iterator[None]:
    """Make Spark start the Java that was found, also where JAVA_HOME names one that won't do."""
    home = os.environ.get("JAVA_HOME")
    if not home or Path(home, "bin") == java.parent:
        yield
        return
    del os.environ["JAVA_HOME"]
    try:
        yield
    finally:
        os.environ["JAVA_HOME"] = home


@contextmanager
def _stderr_into(file: Path | None) -> Iterator[None]:
    """Send to a file what a program that is started now writes to standard error, all its life.

    The JVM is that program: its own warnings, Spark's log and what Python workers print would else
    stand between the lines of the run. Programs get their standard error when they are launched, and
    pyspark has no public way to give the JVM another than its own.
    """
    if file is None:
        yield
        return
    try:
        kept = os.dup(2)
    except OSError:  # this process has no standard error
        yield
        return
    target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        sys.stderr.flush()
        os.dup2(target, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)


def _read_from(log: Path | None, began: int) -> str:
    if log is None or not log.is_file():
        return ""
    return log.read_bytes()[began:].decode(errors="replace")


def _first_problem(said: str) -> str:
    """The line that says why Spark didn't start, of all that it says when it doesn't."""
    lines = [line.strip().removeprefix(": ") for line in said.splitlines()]
    problem = next((ln for ln in lines if re.search("Exception: |Error: |^Invalid ", ln)), "")
    return re.sub(r'^Exception in thread "main" ', "", problem)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
