"""Which settings a Spark session gets, and where each comes from.

They come in layers, later ones win: gem-bundle's defaults, the machine's ``spark-defaults.conf``, the
project's settings, what the gems need, the pipeline's ``spark:``, and what spark-submit was told.
Settings that are lists (``spark.sql.extensions``) are joined over all layers.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gem_bundle.contexts import SOURCE_NAMING
from gem_bundle.settings import LISTS, PATH_LISTS, setting_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gem_bundle.run.start_guard import StartGuard

Origin = Literal["default", "project", "gem", "pipeline", "environment"]
Layer = tuple[Origin, "Mapping[str, object]"]

# What decides where Spark runs: not a session's to change once it runs.
WHERE = frozenset({"spark.app.name", "spark.master", "spark.remote"})


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
        local_settings: What suits them in a local session, as defaults.
        defaults: The project's Spark settings.
        jars: The jars of the gems in use.
        module_folders: Folders with Python modules of the user; they come first on Python's path, on
            the driver and, in local runs, on executors.
        spark_log: The file that Spark's own log goes to.
        log_name: Whose file in the cache folder it goes to where `spark_log` names none; with neither it goes
            to standard error.
        brief: The session is over in a minute or two, as for a preview or a test: a local Spark then
            spends less on compiling code that hardly runs.
        class_archive: The folder of archives of classes, with which a Spark that is started here starts
            sooner; None to do without.
        records: Whether an archive is made where there is none; not for a session in which little runs.
        guard: What ends the start when nobody needs the session any more.
    """

    app_name: str
    settings: Mapping[str, object] = field(default_factory=dict)
    gem_settings: Mapping[str, str] = field(default_factory=dict)
    local_settings: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    jars: Sequence[Path] = ()
    module_folders: Sequence[Path] = ()
    spark_log: Path | None = None
    log_name: str = ""
    brief: bool = False
    class_archive: Path | None = None
    records: bool = True
    guard: StartGuard | None = None


def settings_to_start(
    request: SessionRequest, spark_version: str, submitted: Mapping[str, str] | None = None
) -> dict[str, Setting]:
    """The settings that a new session starts with, by name.

    Args:
        request: What the run wants.
        spark_version: The version of Spark that will run.
        submitted: What spark-submit was told, where it started this process.
    """
    asked: list[Layer] = [
        ("environment", _machine_defaults() if submitted is None else {}),
        *_request_layers(request),
    ]
    told: list[Layer] = [("environment", submitted or {})]
    master = "local[*]"
    for _, layer in (*asked, *told):
        master = str(layer.get("spark.master", master))
    defaults: dict[str, object] = {"spark.app.name": request.app_name, "spark.master": master}
    defaults |= default_settings(master, spark_version)
    if is_local(master):
        defaults |= request.local_settings
    if request.brief and is_local(master):
        # Half the processor time of a session of 30 micro-batches (20 s for 36 s). With fewer compilers Java
        # also keeps less room for code, 48 MB: when they were full, queries failed in a long test session.
        defaults["spark.driver.defaultJavaOptions"] = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    defaults |= _files(request, master if submitted is None else None)
    wanted = merge_settings([("default", defaults), *asked])
    merged = merge_settings([("default", defaults), *asked, *told])
    # What else was submitted is between spark-submit and Spark.
    return {key: setting for key, setting in merged.items() if key in wanted}


def settings_to_change(request: SessionRequest, spark_version: str, master: str) -> dict[str, Setting]:
    """What a run wants changed in a session that is already there, by name.

    Args:
        request: What the run wants.
        spark_version: The version of Spark that runs.
        master: Its master, or an empty string where it isn't known.
    """
    defaults = streaming_defaults(spark_version) | _files(request, None)
    if not is_local(master):
        defaults |= _CLUSTER
    merged = merge_settings([("default", defaults), *_request_layers(request)])
    return {key: setting for key, setting in merged.items() if key not in WHERE}


def merge_settings(layers: Iterable[Layer]) -> dict[str, Setting]:
    """Settings in layers as one mapping: later layers win, lists are joined and each item kept once."""
    merged: dict[str, Setting] = {}
    for origin, layer in layers:
        for key, value in layer.items():
            text = setting_text(key, value)
            before = merged.get(key)
            if before is not None and key in LISTS:
                text = _join(key, before.value, text)
                origin_of_all = before.origin if text == before.value else origin
                merged[key] = Setting(key, text, origin_of_all)
            else:
                merged[key] = Setting(key, text, origin)
    return merged


def _request_layers(request: SessionRequest) -> list[Layer]:
    return [
        ("project", request.defaults),
        ("gem", request.gem_settings),
        ("pipeline", request.settings),
    ]


def _join(key: str, *values: str) -> str:
    separator = os.pathsep if key in PATH_LISTS else ","
    items = (item.strip() for value in values for item in value.split(separator))
    return separator.join(dict.fromkeys(item for item in items if item))


def contains(key: str, has: str | None, wants: str) -> bool:
    """Whether a session has what is wanted already; files of a list are compared by name."""
    if has is None or key not in LISTS:
        return has == wants
    names = {item.strip().rpartition("/")[2] for item in has.split(",")}
    return names >= {item.strip().rpartition("/")[2] for item in wants.split(",")}


def is_local(master: str) -> bool:
    """Whether a master means this machine: ``local[…]`` or ``local-cluster[…]``."""
    return master.startswith("local")


def cores(master: str) -> int:
    """How many tasks a local master runs at once."""
    if master.startswith("local-cluster"):
        workers, each = (int(n) for n in re.findall(r"\d+", master)[:2])
        return workers * each
    match = re.match(r"local\[\s*(\d+|\*)", master)
    if match is None:
        return 1
    if match.group(1) != "*":
        return int(match.group(1))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_settings(master: str, spark_version: str) -> dict[str, object]:
    """gem-bundle's own defaults for a master and a version of Spark."""
    found = streaming_defaults(spark_version)
    if not is_local(master):
        return found | _CLUSTER
    if any(find_spec(package) is None for package in ("pandas", "pyarrow")):
        # Spark 4.2 wants Arrow for Python UDFs, and warns at each one where it isn't installed.
        found["spark.sql.execution.pythonUDF.arrow.enabled"] = False
    if _minor(spark_version) == (4, 2):
        # Spark's first choice starts a process for every file that it renames in a checkpoint (where
        # Hadoop's native library is missing: 65 processes a micro-batch of an aggregation). This one
        # renames a local file as atomically, and writes the offset and commit logs in a quarter of
        # the time, a whole small micro-batch in four fifths.
        found["spark.sql.streaming.checkpointFileManagerClass"] = (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        )
    return found | {
        # Every micro-batch runs one task for each: 200, Spark's own default, are eight times slower.
        "spark.sql.shuffle.partitions": cores(master),
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        # Nobody else has to reach it, and a host name that means another address can't disturb it.
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
    }


_CLUSTER: dict[str, object] = {
    # State outside the heap, and checkpoints that upload what changed instead of everything. A
    # query that has a checkpoint keeps the store that it started with.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": True,
}


def streaming_defaults(spark_version: str) -> dict[str, object]:
    """What a version needs: stable source identities, which a checkpoint has from its first run on or
    never, and ways around what keeps a query from going on.
    """
    if _minor(spark_version) < (4, 2):
        return {}
    found: dict[str, object] = {
        SOURCE_NAMING: True,
        "spark.sql.streaming.offsetLog.formatVersion": 2,
        # A query that died before its first offsets has left files: it begins with them, as in Spark 4.1.
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": False,
    }
    if spark_version == "4.2.0":
        # Its check for an unfinished repartition can't read version 2 of the offset log: without
        # this a query that died in mid-batch can't be restarted ("None.get").
        found["spark.sql.streaming.checkUnfinishedRepartitionOnRestart"] = False
        # A Python UDF right behind a scan of Parquet or Delta never ends: what such rows go to Python with is
        # written in another order than Python reads it (SPARK-58241).
        found["spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"] = False
    return found


def _minor(version: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match.group(1)), int(match.group(2))) if match else (0, 0)


def _files(request: SessionRequest, master: str | None) -> dict[str, object]:
    """The files a session works with; executors of a local one import from the same folders."""
    found: dict[str, object] = {}
    if request.jars:
        found["spark.jars"] = ",".join(str(jar) for jar in request.jars)
    if request.module_folders and master is not None and is_local(master):
        folders = [str(folder.absolute()) for folder in request.module_folders]
        found["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(folders)
    return found


def _machine_defaults() -> dict[str, str]:
    """``spark-defaults.conf`` of the Spark installation, where there is one."""
    from gem_bundle.run.jars import spark_home

    folder = os.environ.get("SPARK_CONF_DIR")
    file = (Path(folder) if folder else spark_home() / "conf") / "spark-defaults.conf"
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = re.findall(r"^[ \t]*(spark\.[^\s=:]+)[ \t]*[ \t=:][ \t]*(.*?)[ \t]*$", text, re.MULTILINE)
    return dict(pairs)
