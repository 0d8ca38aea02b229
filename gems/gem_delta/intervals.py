"""Rows of a Delta table in the place of others, for an interval, while a stream may be writing to the table.

Delta replaces them in one commit (``replaceWhere``), and fails it when somebody has committed such rows since
the version that it read. What was committed before that version, and isn't among the new rows, is gone: which
micro-batch of a query was the last one in it, the table's history says, before it and afterwards.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from gem_bundle import RowsReplaced, analysed
from gem_delta.connection import says_absent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from gem_delta.connection import DeltaOptions

# Delta's exceptions for a commit that lost against another one, by class and by condition.
_CONFLICT = re.compile(
    r"Concurrent(?:Append|DeleteRead|DeleteDelete|Transaction|Write)Exception|DELTA_CONCURRENT_"
)
_APPEARED = frozenset({"DELTA_PATH_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS"})
_STREAM = "STREAMING UPDATE"
_NEWEST = 20


def read(options: DeltaOptions, condition: str, spark: SparkSession) -> DataFrame | None:
    """The rows of a table for which a condition holds; None where there is no table yet."""
    from pyspark.errors import AnalysisException

    if options.is_absent():
        return None
    try:
        if options.table is not None:
            return analysed(spark.table(options.table)).where(condition)
        return analysed(spark.read.format("delta").load(options.path)).where(condition)
    except AnalysisException as error:
        if says_absent(error):
            return None
        raise


def last_batch(options: DeltaOptions, query: str, spark: SparkSession) -> int | None:
    """The last micro-batch of a query in a table.

    Args:
        options: The table.
        query: The id of the query.
        spark: The session.
    """
    from pyspark.errors import AnalysisException

    if options.is_absent():
        return None
    try:
        newest = _history(options, spark, _NEWEST)
        found = _last_batch(newest, query)
        # A history may be long, and a stream's own commits are among the newest as a rule.
        return (
            found
            if found is not None or len(newest) < _NEWEST
            else _last_batch(_history(options, spark), query)
        )
    except AnalysisException as error:
        if says_absent(error):
            return None
        raise


def replace(
    options: DeltaOptions, df: DataFrame, condition: str, query: str, partition_by: Sequence[str]
) -> RowsReplaced | None:
    """Replace the rows for which a condition holds, in one commit.

    Args:
        options: The table, and how it is written.
        df: The new rows.
        condition: The condition.
        query: The id of the query that may be writing; an empty text for none.
        partition_by: The columns that a new table is partitioned by.

    Returns:
        None when Delta didn't take it, because of another commit.
    """
    spark = df.sparkSession
    token = f"gem-bundle backfill {uuid4().hex}"
    given = {name: value for name, value in options.to_spark().items() if name.lower() != "usermetadata"}
    writer = df.write.format("delta").options(**given)
    writer = writer.option("userMetadata", token).partitionBy(*partition_by)
    if read(options, condition, spark) is None:
        writer = writer.mode("error")  # others may be making it
    else:
        writer = writer.mode("overwrite").option("replaceWhere", condition)
    try:
        if options.table is not None:
            writer.saveAsTable(options.table)
        else:
            writer.save(options.path)
    except Exception as error:
        if getattr(error, "getCondition", lambda: None)() in _APPEARED:
            return None
        if _CONFLICT.search(f"{type(error).__name__} {error} {getattr(error, 'java_exception', '')}"):
            return None
        raise
    history = _history(options, spark)
    made = next((entry for entry in history if entry["userMetadata"] == token), None)
    if made is None:  # Delta makes no commit when there is nothing to remove and nothing to add
        return RowsReplaced(0, 0)
    metrics = made["operationMetrics"] or {}
    # A first version has read none.
    seen = -1 if made["readVersion"] is None else int(made["readVersion"])
    # Of files that have other rows too, Delta writes those anew.
    copied = _number(metrics.get("numCopiedRows")) or 0
    written = _number(metrics.get("numOutputRows"))
    return RowsReplaced(
        None if written is None else written - copied,
        _number(metrics.get("numDeletedRows")),
        _last_batch(history, query, seen),
    )


def _history(options: DeltaOptions, spark: SparkSession, most: int | None = None) -> list[Row]:
    """The commits of a table, the newest first."""
    limit = "" if most is None else f" limit {most}"
    return spark.sql(f"describe history {options.sql_name}{limit}").collect()


def _last_batch(history: list[Row], query: str, version: int | None = None) -> int | None:
    """The last micro-batch of a query in a version of a table, or in its newest one."""
    for entry in history:
        said: dict[str, Any] = entry["operationParameters"] or {}
        if entry["operation"] != _STREAM or said.get("queryId") != query:
            continue
        if version is None or int(entry["version"]) <= version:
            return _number(said.get("epochId"))
    return None


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and value.isdecimal() else None
