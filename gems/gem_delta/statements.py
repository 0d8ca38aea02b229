"""MERGE statements, each one commit, and the tables that they change.

Delta takes the number of a micro-batch for a MERGE from the settings of the session alone
(``spark.databricks.delta.write.txnAppId`` and ``txnVersion``). So statements run in a session beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from gem_bundle import GemError, analysed
from gem_bundle.diagnostics import listed_names, suggest
from gem_bundle.expressions import backquoted
from gem_bundle.merging import SessionBeside, refused, remembered_name
from gem_delta.connection import DeltaOptions, says_absent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_TRANSACTION = "spark.databricks.delta.write.txn"
_TO_ALL_TABLES = "spark.databricks.delta.schema.autoMerge.enabled"
_APPEARED = frozenset({"DELTA_PATH_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS"})
# What a writer is told by options, a statement is told by settings.
_SETTINGS = {
    "compression": "spark.sql.parquet.compression.codec",
    "max_records_per_file": "spark.sql.files.maxRecordsPerFile",
    "optimize_write": "spark.databricks.delta.optimizeWrite.enabled",
    "user_metadata": "spark.databricks.delta.commitInfo.userMetadata",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is when a run begins.

    Args:
        options: Which one it is.
        types: The types of its columns, by name.
        id: Delta's own id of it: another table in its place has another one.
        partitions: The columns that it is partitioned by.
        clustered: Those that it is clustered by.
    """

    options: DeltaOptions
    types: Mapping[str, str]
    id: str
    partitions: tuple[str, ...]
    clustered: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        """Its name in a statement."""
        return self.options.sql_name

    @property
    def columns(self) -> dict[str, str]:
        """Its names of columns, by name in lower case."""
        return {name.lower(): name for name in self.types}

    def rows(self, spark: SparkSession) -> DataFrame:
        """Its rows."""
        return _rows(self.options, spark)

    def append(self, df: DataFrame) -> None:
        """Add rows."""
        writer = df.write.format("delta").mode("append")
        if self.options.table is not None:
            writer.saveAsTable(self.options.table)
        else:
            writer.save(self.options.path)

    def type(self, column: str) -> str | None:
        """The type of a column, whatever the case of its name."""
        name = self.columns.get(column.lower())
        return None if name is None else self.types[name]


def table_for(
    options: DeltaOptions,
    schema: StructType,
    spark: SparkSession,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    *,
    new: bool,
) -> Table:
    """A table with the columns that rows bring: made, or widened, where that has to be.

    Args:
        options: Which table.
        schema: The columns.
        spark: The session of the rows.
        partition_by: The columns that a new table is partitioned by.
        cluster_by: The columns that it is clustered by.
        new: Whether the table takes new columns.

    Raises:
        GemError: GB205 when it lacks columns and doesn't take new ones, GB510 when there is no such schema.
    """
    from pyspark.errors import AnalysisException

    try:
        found = _rows(options, spark).schema
    except AnalysisException as error:
        if not says_absent(error):
            raise
        if cluster_by:
            make_clustered(options, schema, spark, cluster_by)
        else:
            _write_nothing(options, schema, spark, partition_by)
        found = _rows(options, spark).schema
    there = {field.name.lower() for field in found.fields}
    missing = [field.name for field in schema.fields if field.name.lower() not in there]
    if missing and not (new or takes_new_columns(spark)):
        named = listed_names(missing)
        hint = suggest(missing[0], [field.name for field in found.fields], what="columns")
        message = f"the table `{options.table or options.path}` has no column {named}"
        raise GemError("GB205", message, f"{hint} Or let it have them: `merge_schema: true`.", "merge_schema")
    if missing or (new and _differ(found, schema)):
        _write_nothing(options, schema, spark, (), merge=True)
        found = _rows(options, spark).schema
    detail = spark.sql(f"describe detail {options.sql_name}").first()
    assert detail is not None
    types = {field.name: field.dataType.simpleString() for field in found.fields}
    clustered = detail.asDict().get("clusteringColumns")
    return Table(
        options, types, detail["id"], tuple(detail["partitionColumns"] or ()), tuple(clustered or ())
    )


def remembered_beside(options: DeltaOptions, schema: StructType, spark: SparkSession) -> Table:
    """The table that keeps what a table itself doesn't show: in its folder, or beside it in the catalog.

    Args:
        options: The table itself.
        schema: The columns of what is kept.
        spark: The session of the rows.
    """
    if options.path is not None:
        beside = DeltaOptions(path=f"{options.path.rstrip('/')}/_remembered")
    else:
        beside = DeltaOptions(table=remembered_name(options.table or ""))
    # Not looked for first: in the folder of a table, Delta takes what isn't there for a partition.
    _write_nothing(beside, schema, spark, ())
    return table_for(beside, schema, spark, new=True)


def is_there(options: DeltaOptions, spark: SparkSession) -> bool:
    """Whether there is such a table.

    Args:
        options: Which one.
        spark: The session.
    """
    from pyspark.errors import AnalysisException

    try:
        _rows(options, spark)
    except AnalysisException as error:
        if not says_absent(error):
            raise
        return False
    return True


def make_clustered(
    options: DeltaOptions, schema: StructType, spark: SparkSession, cluster_by: Sequence[str]
) -> None:
    """Make a table that is clustered, unless it is there.

    By a statement: Delta 4.4 passes over what a writer is told of clusters, or refuses it.

    Args:
        options: Which table.
        schema: Its columns.
        spark: The session of the rows.
        cluster_by: Those of them that it is clustered by.

    Raises:
        GemError: GB510 when there is no such schema.
    """
    from pyspark.errors import AnalysisException

    known = {field.name.lower(): field.name for field in schema.fields}
    columns = ", ".join(backquoted(known.get(name.lower(), name)) for name in cluster_by)
    view = f"gem_bundle_{uuid4().hex}"
    spark.createDataFrame([], schema).createOrReplaceTempView(view)
    try:
        spark.sql(
            f"create table if not exists {options.sql_name} using delta "
            f"cluster by ({columns}) as table {view}"
        )
    except AnalysisException as error:
        if says_absent(error) and options.table is not None:
            raise _no_schema(options.table) from error
        raise
    finally:
        spark.catalog.dropTempView(view)


def _no_schema(table: str) -> GemError:
    message = f"there is no schema for the table `{table}`"
    return GemError("GB510", message, "Create it, or correct the name.", "table")


class Statements:
    """Runs MERGE statements, one after the other.

    Args:
        options: How the table is written.
        spark: The session of the rows.
    """

    def __init__(self, options: DeltaOptions, spark: SparkSession) -> None:
        self._session = SessionBeside(spark)
        self._settings = {
            _SETTINGS[name]: str(getattr(options, name)).lower()
            if name == "optimize_write"
            else str(getattr(options, name))
            for name in _SETTINGS
            if getattr(options, name, None) is not None
        }

    def merge(
        self, source: DataFrame, text: Callable[[str], str], micro_batch: tuple[str, int] | None = None
    ) -> int | None:
        """Run a statement.

        Args:
            source: The rows that it merges.
            text: Makes the statement of the name that the rows have in it.
            micro_batch: The query and the number of its micro-batch: one that the table has is passed over.

        Returns:
            How many rows of the table it changed; None for a micro-batch that was passed over.

        Raises:
            GemError: GB515 when the rows can't be put in order.
        """
        settings = dict(self._settings)
        if micro_batch is not None:
            query, number = micro_batch
            settings |= {f"{_TRANSACTION}AppId": query, f"{_TRANSACTION}Version": str(number)}
        with refused():
            found = self._session.run(source, text, settings)
        return None if found is None else int(found["num_affected_rows"])


def _rows(options: DeltaOptions, spark: SparkSession) -> DataFrame:
    if options.table is not None:
        return analysed(spark.table(options.table))
    return analysed(spark.read.format("delta").load(options.path))


def takes_new_columns(spark: SparkSession) -> bool:
    """Whether a session lets all tables have new columns; one that doesn't tell doesn't.

    Args:
        spark: The session.
    """
    from pyspark.errors import PySparkException

    try:
        return str(spark.conf.get(_TO_ALL_TABLES, "false")).lower() == "true"
    except PySparkException:  # as serverless ones of Databricks say of most settings
        return False


def _differ(found: StructType, schema: StructType) -> bool:
    """Whether a column has other fields in it than the table's."""
    there = {field.name.lower(): field.dataType.simpleString() for field in found.fields}
    return any(
        "struct" in kind and there.get(field.name.lower()) != kind
        for field in schema.fields
        for kind in [field.dataType.simpleString()]
    )


def _write_nothing(
    options: DeltaOptions,
    schema: StructType,
    spark: SparkSession,
    partition_by: Sequence[str],
    *,
    merge: bool = False,
) -> None:
    """Make a table, or give it more columns, by writing no rows."""
    from pyspark.errors import AnalysisException

    empty = spark.createDataFrame([], schema)
    writer = empty.write.format("delta").partitionBy(*partition_by)
    writer = writer.mode("append").option("mergeSchema", "true") if merge else writer.mode("error")
    try:
        if options.table is not None:
            writer.saveAsTable(options.table)
        else:
            writer.save(options.path)
    except AnalysisException as error:
        if error.getCondition() in _APPEARED:
            return  # somebody else has made it meanwhile
        if says_absent(error) and options.table is not None:
            raise _no_schema(options.table) from error
        raise
