"""The time zone that a run has where no setting gives one: the machine's, where Spark runs on it."""

from __future__ import annotations

import os
import sys
import zoneinfo
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.contexts import is_over_connect

if TYPE_CHECKING:
    from collections.abc import Mapping

TIME_ZONE = "spark.sql.session.timeZone"
_LOCAL = Path("/etc/localtime")
_ZONES = "zoneinfo/"
_UTC = frozenset({"Etc/UCT", "Etc/UTC", "Etc/Universal", "Etc/Zulu", "UCT", "UTC", "Universal", "Z", "Zulu"})
# Where others may say what zone Spark has: a server, `spark-submit`, a cluster of Databricks.
_ELSEWHERE = ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "DATABRICKS_RUNTIME_VERSION")
_OF_JAVA = "user.timezone"


def effective_zone(settings: Mapping[str, str]) -> str:
    """The time zone of a run of this machine's Spark; empty where it isn't known.

    Args:
        settings: What is said of Spark's settings.
    """
    java = (
        *settings.values(),
        *(os.environ.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")),
    )
    said = any(os.environ.get(name) for name in _ELSEWHERE) or any(_OF_JAVA in text for text in java)
    if said or settings.get("spark.remote"):
        return ""
    own, running = machine_zone(), _of_session()
    return own if running in {None, own} else ""


def machine_zone() -> str:
    """The time zone that Java takes on this machine; empty where it can't be told."""
    if os.name != "posix":
        return ""
    given = os.environ.get("TZ", "").removeprefix(":")
    if not given:
        try:
            _, found, given = str(_LOCAL.readlink()).rpartition(_ZONES)
        except OSError:  # it is a copy, or missing
            return ""
        if not found:
            return ""
    return named(given)


def named(zone: str) -> str:
    """A time zone by one name; empty where there is none of that name.

    Args:
        zone: A name of it.
    """
    if zone in _UTC:
        return "UTC"
    try:
        zoneinfo.ZoneInfo(zone)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return ""
    return zone


def _of_session() -> str | None:
    """The time zone of the session that runs; None where none does, empty where that is elsewhere."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        spark = SparkSession.active()
        return "" if is_over_connect(spark) else named(spark.conf.get(TIME_ZONE) or "")
    except PySparkException:  # there is none
        return None
