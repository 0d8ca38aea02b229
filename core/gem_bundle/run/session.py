"""The Spark session of a run: found or started, and with which settings.

Where a session is already running (a notebook, a Databricks job), ``SPARK_REMOTE`` names one, or
spark-submit started this process, that environment decides about the master, the jars and all that
is fixed once Spark runs. Elsewhere a local Spark is started, tuned for one machine.

What a session starts with comes in layers, later ones win: gem-bundle's defaults, the machine's
``spark-defaults.conf``, the project's settings, what the gems need, the pipeline's ``spark:``, and what
spark-submit was told.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

Origin = Literal["default", "project", "gem", "pipeline", "environment"]

REMOTE = "SPARK_REMOTE"
SUBMITTED = "PYSPARK_GATEWAY_PORT"

# Settings that are lists: those of all layers are joined.
LISTS = frozenset(
    {
        "spark.driver.extraClassPath",
        "spark.executor.extraClassPath",
        "spark.executorEnv.PYTHONPATH",
        "spark.extraListeners",
        "spark.files",
        "spark.jars",
        "spark.jars.packages",
        "spark.plugins",
        "spark.sql.extensions",
        "spark.sql.queryExecutionListeners",
        "spark.sql.streaming.streamingQueryListeners",
        "spark.submit.pyFiles",
    }
)
_PATH_LISTS = frozenset(
    {
        "spark.driver.extraClassPath",
        "spark.executor.extraClassPath",
        "spark.executorEnv.PYTHONPATH",
    }
)
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True, slots=True)
class Setting:
    """One Spark setting of a session, and where it comes from."""

    key: str
    value: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """What a run wants of its session.

    Args:
        app_name: The application's name in Spark's UI and logs.
        settings: The pipeline's ``spark:``.
        gem_settings: What the gems in use need.
        defaults: The project's Spark settings.
        jars: The jars of the gems in use.
        module_folders: Folders with Python modules of the user; they come first on Python's path, on
            the driver and, in local runs, on executors.
        spark_log: The file that Spark's own log goes to; by default it goes to standard error.
    """

    app_name: str
    settings: Mapping[str, object] = field(default_factory=dict)
    gem_settings: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    jars: Sequence[Path] = ()
    module_folders: Sequence[Path] = ()
    spark_log: Path | None = None


@dataclass(slots=True)
class Session:
    """A session that a run uses.

    Args:
        spark: Spark's own session.
        owned: Whether it was started for this run, so that `close` stops it.
        settings: What it was started with, or what was changed in it, by name.
        refused: What was asked for but is fixed in a session that was already there.
    """

    spark: SparkSession
    owned: bool
    settings: tuple[Setting, ...]
    refused: tuple[Setting, ...] = ()
    _changed: Mapping[str, str | None] = field(default_factory=dict, repr=False)

    def close(self) -> None:
        """Stop Spark if it was started for this run; otherwise give the settings back."""
        if self.owned:
            self.spark.stop()
            return
        for key, value in self._changed.items():
            if value is None:
                self.spark.conf.unset(key)
            else:
                self.spark.conf.set(key, value)


def open_session(request: SessionRequest) -> Session:
    """The session for a run: the one that is there, else a new one.

    Raises:
        GemError: GB501 when a local Spark needs Java and there is none, GB509 when pyspark is
            missing, GB512 when the session can't start.
    """
    from gem_bundle.run.jars import spark_version

    installed = spark_version()
    for folder in reversed(request.module_folders):
        text = str(folder.absolute())
        if text not in sys.path:
            sys.path.insert(0, text)
    running = _running()
    if running is not None:
        return _adopt(running, request, owned=False)
    remote = os.environ.get(REMOTE) or str(request.settings.get("spark.remote", ""))
    if remote:
        return _adopt(_connect(remote), request, owned=True)
    submitted = _submitted() if SUBMITTED in os.environ else None
    settings = plan_settings(request, installed, submitted)
    if submitted is None and is_local(settings["spark.master"].value):
        # Spark would start the first python3 on the search path, which may be another Python.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return Session(_start(request, settings, submitted), True, _sorted(settings))


def plan_settings(
    request: SessionRequest, spark_version: str, submitted: Mapping[str, str] | None = None
) -> dict[str, Setting]:
    """The settings a new session starts with, by name.

    Args:
        request: What the run wants.
        spark_version: The version of Spark that will run.
        submitted: What spark-submit was told, where it started this process; it wins.
    """
    asked: list[tuple[Origin, Mapping[str, object]]] = [
        ("environment", {} if submitted is not None else _machine_defaults()),
        ("project", request.defaults),
        ("gem", request.gem_settings),
        ("pipeline", request.settings),
        ("environment", submitted or {}),
    ]
    master = next(
        (str(layer["spark.master"]) for _, layer in reversed(asked) if "spark.master" in layer),
        "local[*]",
    )
    defaults: dict[str, object] = {"spark.app.name": request.app_name, "spark.master": master}
    defaults |= _defaults(master, spark_version)
    if submitted is None:
        defaults |= _own_files(request, local=is_local(master))
    merged: dict[str, Setting] = {}
    for origin, layer in [("default", defaults), *asked]:
        for key, value in layer.items():
            merged[key] = _joined(merged.get(key), key, value, origin)
    if submitted is not None:
        # The rest of what was submitted is Spark's business.
        wanted = {key for _, layer in [("", defaults), *asked[:-1]] for key in layer}
        merged = {key: setting for key, setting in merged.items() if key in wanted}
    return merged


def is_local(master: str) -> bool:
    """Whether a master means this machine: ``local[…]`` or ``local-cluster[…]``."""
    return master.startswith("local")


def cores(master: str) -> int:
    """How many tasks a local master runs at once."""
    import re

    inside = master.partition("[")[2].rstrip("]").split(",")
    if master.startswith("local-cluster"):
        return max(1, int(inside[0]) * int(inside[1]))
    if not inside[0]:
        return 1
    if re.fullmatch(r"\s*\d+\s*", inside[0]):
        return max(1, int(inside[0]))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _defaults(master: str, spark_version: str) -> dict[str, object]:
    """gem-bundle's own defaults for a master and a version of Spark."""
    found: dict[str, object] = dict(_streaming_defaults(spark_version))
    if not is_local(master):
        return found | _CLUSTER
    if any(find_spec(package) is None for package in ("pandas", "pyarrow")):
        # Spark 4.2 wants Arrow for Python UDFs and warns at each one that it does without.
        found["spark.sql.execution.pythonUDF.arrow.enabled"] = False
    return found | {
        "spark.sql.shuffle.partitions": cores(master),
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
    }


_CLUSTER: dict[str, object] = {
    # State outside the heap, and checkpoints that upload what changed instead of everything. A
    # query that already has a checkpoint keeps the store that it started with.
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": True,
}


def _streaming_defaults(spark_version: str) -> dict[str, object]:
    """Stable source identities, which a checkpoint has from its first run on or never."""
    version = tuple(int(part) for part in spark_version.split(".")[:2] if part.isdigit())
    if version < (4, 2):
        return {}
    found: dict[str, object] = {
        "spark.sql.streaming.queryEvolution.enableSourceEvolution": True,
        "spark.sql.streaming.offsetLog.formatVersion": 2,
    }
    if spark_version == "4.2.0":
        # Its check for an unfinished repartition can't read version 2 of the offset log: without
        # this a query that died in mid-batch can't be restarted ("None.get").
        found["spark.sql.streaming.checkUnfinishedRepartitionOnRestart"] = False
    return found


def _own_files(request: SessionRequest, *, local: bool) -> dict[str, object]:
    found: dict[str, object] = {}
    if request.jars:
        found["spark.jars"] = ",".join(str(jar) for jar in request.jars)
    if local and request.module_folders:
        folders = [str(folder.absolute()) for folder in request.module_folders]
        found["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(folders)
    return found


def _joined(before: Setting | None, key: str, value: object, origin: Origin) -> Setting:
    from gem_bundle.settings import setting_text

    text = setting_text(key, value)
    if before is None or key not in LISTS:
        return Setting(key, text, origin)
    separator = os.pathsep if key in _PATH_LISTS else ","
    items = [part.strip() for part in (*before.value.split(separator), *text.split(separator))]
    joined = separator.join(dict.fromkeys(item for item in items if item))
    return Setting(key, joined, before.origin if joined == before.value else origin)


def _sorted(settings: Mapping[str, Setting]) -> tuple[Setting, ...]:
    return tuple(settings[key] for key in sorted(settings))


def _machine_defaults() -> dict[str, str]:
    """``spark-defaults.conf`` of a Spark installation, where there is one."""
    from gem_bundle.run.jars import spark_home

    folder = os.environ.get("SPARK_CONF_DIR")
    file = (Path(folder) if folder else spark_home() / "conf") / "spark-defaults.conf"
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        key, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if key.startswith("spark.") and value.strip():
            found[key] = value.strip()
    return found


def _submitted() -> dict[str, str]:
    """What spark-submit was told: the Spark properties of the JVM that started this process."""
    from pyspark import SparkConf, SparkContext

    SparkContext.getSystemProperty("java.version")  # connects to that JVM; SparkConf doesn't
    return dict(SparkConf().getAll())


def _running() -> SparkSession | None:
    """The session of this thread, or of this process."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _connect(url: str) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.builder.remote(url).getOrCreate()
        session.version  # noqa: B018 (the first call that reaches the server)
    except ImportError as error:
        raise GemError(
            "GB509",
            f"talking to `{url}` needs packages that aren't installed: {_first_line(error)}",
            "Install them with `pip install 'pyspark[connect]'`.",
        ) from error
    except PySparkException as error:
        raise GemError(
            "GB503",
            f"there is no Spark Connect server at `{url}`: {_first_line(error)}",
            f"Start it, correct {REMOTE}, or unset {REMOTE} to run locally.",
        ) from error
    return session


def _adopt(spark: SparkSession, request: SessionRequest, *, owned: bool) -> Session:
    """A session that is already running: what can still be set is set, the rest is reported."""
    from pyspark.errors import PySparkException

    master = spark.conf.get("spark.master", "") or ""
    defaults: dict[str, object] = dict(_streaming_defaults(spark.version))
    if not is_local(master):
        defaults |= _CLUSTER
    wanted: dict[str, Setting] = {}
    layers: list[tuple[Origin, Mapping[str, object]]] = [
        ("default", defaults | _own_files(request, local=False)),
        ("project", request.defaults),
        ("gem", request.gem_settings),
        ("pipeline", request.settings),
    ]
    for origin, layer in layers:
        for key, value in layer.items():
            if key not in {"spark.master", "spark.remote", "spark.app.name"}:
                wanted[key] = _joined(wanted.get(key), key, value, origin)
    found, refused, changed = {}, [], {}
    for key, setting in wanted.items():
        before = _current(spark, key)
        if _contains(key, before, setting.value):
            found[key] = Setting(key, before or "", "environment")
            continue
        try:
            spark.conf.set(key, setting.value)
        except PySparkException:
            refused.append(setting)
        else:
            found[key], changed[key] = setting, before
    return Session(spark, owned, _sorted(found), tuple(refused), changed)


def _current(spark: SparkSession, key: str) -> str | None:
    from pyspark.errors import PySparkException

    try:
        return spark.conf.get(key, None)
    except PySparkException:
        return None


def _contains(key: str, has: str | None, wants: str) -> bool:
    """Whether a session already has a setting; of files only the names are compared."""
    if has is None or key not in LISTS:
        return has == wants
    names = {part.rpartition("/")[2] for part in has.split(",")}
    return names >= {part.rpartition("/")[2] for part in wants.split(",")}


def _start(
    request: SessionRequest, settings: Mapping[str, Setting], submitted: Mapping[str, str] | None
) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    for key, setting in settings.items():
        if submitted is None or submitted.get(key) != setting.value:
            builder = builder.config(key, setting.value)
    if submitted is not None:
        session: SparkSession = builder.getOrCreate()
        return session
    from py4j.protocol import Py4JError

    log = request.spark_log
    try:
        with _java_home(), _stderr_into(log):
            session = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        said = _last_problem(log) or _first_line(error)
        where = f" (Spark's log: {log})" if log else ""
        raise GemError(
            "GB512",
            f"the Spark session can't start: {said}{where}",
            "`gem-bundle run --show-settings` lists what it is started with.",
        ) from error
    return session


@contextmanager
def _java_home() -> Iterator[None]:
    """Make Spark start the Java that was found, also where JAVA_HOME names one that won't do."""
    from gem_bundle.run.java import find_java

    java = find_java()
    home = os.environ.get("JAVA_HOME")
    if home and Path(home, "bin") != java.path.parent:
        del os.environ["JAVA_HOME"]
        try:
            yield
        finally:
            os.environ["JAVA_HOME"] = home
    else:
        yield


@contextmanager
def _stderr_into(file: Path | None) -> Iterator[None]:
    """Send to a file what a program started meanwhile writes to standard error, for its whole life.

    The JVM is such a program: its own warnings, Spark's log and the workers' output would otherwise
    stand between the lines of the run. Only the launch of a program can give it another standard
    error, and pyspark has no public setting for that.
    """
    if file is None:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # this process has no standard error
        yield
        return
    target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)


def _last_problem(log: Path | None) -> str:
    """The line of Spark's log that most likely says why it didn't start."""
    if log is None or not log.is_file():
        return ""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    problems = [line for line in lines if "Exception" in line or "rror" in line]
    return (problems or lines or [""])[-1]


def _first_line(error: BaseException) -> str:
    lines: Iterable[str] = str(error).strip().splitlines()
    return next(iter(lines), type(error).__name__)
