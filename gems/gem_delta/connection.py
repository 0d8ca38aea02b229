"""What the source and the target `delta` have in common: the jar, the session, which table."""

from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from gem_bundle import Field, GemError, Options
from gem_bundle.types import DataPath, TableName, local_path

if TYPE_CHECKING:
    from collections.abc import Mapping

DELTA_JAR = "io.delta:delta-spark_{spark_minor}_{scala}:4.4.0"
DELTA_CLASS = "io.delta.sql.DeltaSparkSessionExtension"
SESSION_SETTINGS: "Mapping[str, str]" = {
    "spark.sql.extensions": DELTA_CLASS,
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# Delta reads a table's log with 50 tasks, which take longer than the log of a small table, and looks with
# 10,000 for the files that no version has.
LOCAL_SETTINGS: "Mapping[str, str]" = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}
RawOptions = dict[str, str | int | float | bool]

# How Spark and Delta 4.4 say that a table isn't there: in a batch, for a path, in a stream, in a catalog.
_ABSENT = frozenset(
    {
        "DELTA_PATH_DOES_NOT_EXIST",
        "DELTA_SCHEMA_NOT_SET",
        "DELTA_TABLE_NOT_FOUND",
        "PATH_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
        "TABLE_OR_VIEW_NOT_FOUND",
    }
)


class DeltaOptions(Options):
    """Which Delta table is meant: one at a path, or one of a catalog."""

    default_change = "from_now_on"

    path: DataPath | None = Field(
        None, passed=False, description="The folder of the table.", examples=["tables/clicks"], place=True
    )
    table: TableName | None = Field(
        None,
        passed=False,
        description="The name of the table in the catalog, in place of `path`.",
        examples=["main.web.clicks"],
        place=True,
    )

    @model_validator(mode="after")
    def _one_table(self) -> Self:
        if (self.path is None) == (self.table is None):
            raise ValueError("give `path` or `table`, one of the two")
        return self

    def places(self) -> dict[str, list[str]]:
        """The table, as a path or as a name."""
        if self.path is not None:
            return {"path": [self.path]}
        return {"table": [f"table:{self.table}"]}

    @property
    def sql_name(self) -> str:
        """The table's name in a statement of SQL."""
        if self.table is not None:
            return self.table
        path = (self.path or "").replace("`", "``")
        return f"delta.`{path}`"

    def absent(self) -> GemError:
        """What to say when the table isn't there."""
        if self.table is not None:
            hint = "Create it, or correct the name."
            return GemError("GB510", f"there is no table `{self.table}`", hint, "table")
        hint = "Create it, or correct the path; relative paths are relative to the pipeline file."
        return GemError("GB505", f"there is no Delta table at `{self.path}`", hint, "path")

    def is_absent(self) -> bool:
        """Whether the table's folder certainly isn't there; False where only Spark can tell."""
        local = local_path(self.path) if self.path is not None else None
        return local is not None and not (Path(local) / "_delta_log").is_dir()


def says_absent(error: Exception) -> bool:
    """Whether an error of Spark says that the table isn't there."""
    condition = getattr(error, "getCondition", lambda: None)()
    return condition in _ABSENT


# How Delta 4.4 says that it can't read an older state of a table any more, or not yet.
_NO_VERSION = frozenset(
    {
        "DELTA_LOG_FILE_NOT_FOUND",
        "DELTA_NO_RECREATABLE_HISTORY_FOUND",
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        "DELTA_TRUNCATED_TRANSACTION_LOG",
        "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION",
        "DELTA_VERSION_NOT_FOUND",
    }
)


def says_no_version(error: Exception) -> str | None:
    """Why the table can't be read as it was; None when an error of Spark says something else."""
    condition = getattr(error, "getCondition", lambda: None)()
    if condition not in _NO_VERSION:
        return None
    told: dict[str, str] = getattr(error, "getMessageParameters", dict)() or {}
    if condition == "DELTA_VERSION_NOT_FOUND":
        return f"it has the versions {told.get('earliest')} to {told.get('latest')}"
    if condition == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT":
        return f"its newest version is of {told.get('lastCommitTimestamp')}"
    if condition == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION":
        return f"its oldest version is of {told.get('commitTs')}"
    if condition == "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION":
        return "that is older than its `delta.deletedFileRetentionDuration`, and files of it may be gone"
    return "its log doesn't reach back so far any more (`delta.logRetentionDuration`)"


class NeedsDelta:
    """What the source and the target have Spark have."""

    def jars(self) -> tuple[str, ...]:
        """Delta's own."""
        return (DELTA_JAR,)

    def jar_classes(self) -> tuple[str, ...]:
        """What Spark knows Delta by."""
        return (DELTA_CLASS,)

    def session_settings(self) -> "Mapping[str, str]":
        """Delta's extension and catalog."""
        return SESSION_SETTINGS

    def local_settings(self) -> "Mapping[str, str]":
        """Few tasks for a table's log."""
        return LOCAL_SETTINGS
