"""How rows get into a table: by Spark's writer alone, or by a staging table and one transaction."""

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gem_bundle import GemError
from gem_bundle.schema import StructField, fields_of, quoted, type_of
from gem_jdbc.connection import ask, database_errors, run, said
from gem_jdbc.fitting import columns_for, has_type
from gem_jdbc.transactions import BATCH, Move

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from gem_bundle import WriteContext
    from gem_jdbc.into import JdbcTargetOptions
    from gem_jdbc.transactions import Transactions

_LAST_PART = re.compile(r'(?:"(?:[^"]|"")+"|[^".]+)\Z')
_SETTINGS = ("num_partitions", "query_timeout", "create_table_options", "create_table_column_types")


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was found out of the table, once a run.

    Args:
        columns: The table's names of the rows' columns, in their order.
        keys: Its names of the columns of the key.
        sequence: Its name of the column that rows of a key are ordered by.
    """

    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    sequence: str | None = None


def prepare(options: "JdbcTargetOptions", df: "DataFrame", spark: "SparkSession") -> Prepared:
    """Make the tables that are missing, and find out whether the table takes the rows.

    Raises:
        GemError: GB205 when it doesn't, GB207 when it doesn't keep rows apart by the key, GB503 when the
            database can't be reached.
    """
    transactions = options.dialect.transactions
    raw = _raw(options)
    if not options.is_transactional or transactions is None:
        if options.dialect.make is not None:
            _refuse_driver(options, df, spark)
            _make_or_compare(options, df, spark)
        return Prepared()
    noted = _in_staging(options, options.transaction_table)
    there = run(spark, options, transactions.prepare(noted, options.table), transactions.outcome, raw)
    if there == "absent":
        _make(options, df.schema, spark)
        if options.upsert is not None:
            keys = _compared(options, df.schema, df.schema).keys
            run(spark, options, transactions.add_key(options.table, keys), transactions.outcome, raw)
    prepared = _compared(options, df.schema, _schema(options, spark))
    if prepared.keys:
        (kept,) = ask(spark, options, transactions.has_key(options.table, prepared.keys), raw).collect()
        if not kept[0]:
            names = ", ".join(prepared.keys)
            raise GemError(
                "GB207",
                f"the table `{options.table}` has no unique index over just {names}, by which rows could "
                f"replace others",
                f"Create one: `CREATE UNIQUE INDEX ON {options.table} ({names})`.",
                "upsert",
            )
    return prepared


def write_once(
    options: "JdbcTargetOptions", prepared: Prepared, df: "DataFrame", context: "WriteContext"
) -> None:
    """Write the rows of a batch, all or nothing where the database can.

    Raises:
        GemError: GB515 when a key is null or has several rows.
    """
    transactions = options.dialect.transactions
    if not options.is_transactional or transactions is None:
        _append(options, df, options.table, replaces=context.output_mode == "complete")
        return
    # A task that runs again must know the batch, and nobody else may ever mean it.
    query = f"{BATCH}{uuid.uuid4()}"
    _write_staged(options, transactions, prepared, df, query, 0, context)


def write_micro_batch(
    options: "JdbcTargetOptions", prepared: Prepared, df: "DataFrame", number: int, context: "WriteContext"
) -> None:
    """Write the rows of a micro-batch, unless they are there already.

    Raises:
        GemError: GB515 when a key is null or has several rows, GB508 when it can't be told whose micro-batch
            it is.
    """
    transactions = options.dialect.transactions
    if not options.is_transactional or transactions is None:
        _append(options, df, options.table, replaces=context.output_mode == "complete")
        return
    if not context.query:
        raise GemError(
            "GB508",
            "it can't be told which query's micro-batch this is, and so whether the database has it",
            "Start the query under the name that its context has.",
        )
    _write_staged(options, transactions, prepared, df, context.query, number, context)


def _write_staged(
    options: "JdbcTargetOptions",
    transactions: "Transactions",
    prepared: Prepared,
    df: "DataFrame",
    query: str,
    number: int,
    context: "WriteContext",
) -> None:
    from pyspark.sql.functions import monotonically_increasing_id

    spark, raw = df.sparkSession, _raw(options)
    move = Move(
        table=options.table,
        columns=prepared.columns,
        transactions=_in_staging(options, options.transaction_table),
        query=query,
        number=number,
        stage=_in_staging(options, f"gem_bundle_stage_{uuid.uuid4().hex[:16]}"),
        keys=prepared.keys,
        sequence=prepared.sequence,
        replace=context.output_mode == "complete",
    )
    if run(spark, options, transactions.begin(move), transactions.outcome, raw) == "done":
        return
    # Not the number of the partition: Spark says of rows that stand in the query that all are in one.
    numbered = df.withColumn(transactions.row, monotonically_increasing_id())
    _append(options, numbered, move.stage)
    outcome = run(spark, options, transactions.move(move), transactions.outcome, raw)
    if outcome != "done":
        raise _refused(options, outcome)


def _refused(options: "JdbcTargetOptions", outcome: str) -> GemError:
    if outcome == "lost":
        return GemError(
            "GB508",
            "the database has crashed while the micro-batch was written, and the staging table is empty",
            "Nothing of the micro-batch is in the table: the next run writes it.",
        )
    keys = ", ".join(options.upsert.on) if options.upsert is not None else ""
    if outcome == "null_key":
        return GemError(
            "GB515",
            f"a row has no value in its key ({keys})",
            "Nothing of its micro-batch is in the table. Leave such rows out with `filter` or `expect`.",
            "upsert",
        )
    sequence = options.upsert.sequence_by if options.upsert is not None else None
    several = f"with the same `{sequence}`, " if sequence is not None else ""
    return GemError(
        "GB515",
        f"several rows of a key ({keys}) are in one micro-batch, {several}and nothing tells which is the "
        f"last",
        "Nothing of the micro-batch is in the table. "
        + ("Order them by another column" if sequence is not None else "Give `sequence_by`")
        + ", or have one row of each key by `aggregate` or `deduplicate`.",
        "upsert",
    )


def _append(options: "JdbcTargetOptions", df: "DataFrame", table: str, *, replaces: bool = False) -> None:
    """Have Spark write the rows into a table."""
    given = {**_writer_settings(options), **options.login(), "dbtable": table}
    with database_errors(options):
        writer = _unshifted(options, df).write.format("jdbc").options(**given)
        if replaces:
            # Without it, Spark makes the table anew, without its indexes and rights.
            writer.option("truncate", "true").mode("overwrite").save()
        else:
            writer.mode("append").save()


def _make(options: "JdbcTargetOptions", schema: "StructType", spark: "SparkSession") -> None:
    """Make the table: by Spark, as its writer does with no rows, where what it makes loses nothing."""
    make = options.dialect.make
    try:
        if make is None:
            _append(options, spark.createDataFrame([], schema), options.table)
            return
        chosen = fields_of(options.create_table_column_types or "") or ()
        types = {field.name.lower(): field.type for field in chosen}
        statement = make(options.table, _columns(options, schema), types, options.create_table_options or "")
        run(spark, options, statement, "SELECT 'made' AS outcome", _raw(options))
    except GemError:
        raise
    except Exception as error:
        message = said(error, options)
        if message is None:
            raise
        raise GemError(
            "GB510",
            f"there is no table `{options.table}`, and it can't be made: {message}",
            "Create it, or correct the name.",
            "table",
        ) from error


def _schema(options: "JdbcTargetOptions", spark: "SparkSession") -> "StructType":
    """The columns of the table that is there."""
    with database_errors(options):
        reader = spark.read.format("jdbc").options(**{**_raw(options), **options.login()})
        return reader.option("dbtable", options.table).load().schema


def _refuse_driver(options: "JdbcTargetOptions", df: "DataFrame", spark: "SparkSession") -> None:
    """Refuse a driver that cuts parts of seconds, as it isn't the one of this database."""
    other = options.dialect.cuts_times_of
    if other is None or all(field.dataType.typeName() != "timestamp" for field in df.schema.fields):
        return
    (version,) = ask(spark, options, "SELECT version() AS version", _raw(options)).collect()
    if other in version[0]:
        raise GemError(
            "GB207",
            f"the database is {other}, of whose times the driver of {options.dialect.name} cuts parts of "
            f"seconds",
            f"Write it as `jdbc:{other.lower()}:…`, so that it has its own driver.",
            "url",
        )


def _make_or_compare(options: "JdbcTargetOptions", df: "DataFrame", spark: "SparkSession") -> None:
    """Make the table where it isn't there; else see that the rows fit, which the database would round."""
    try:
        table = _schema(options, spark)
    except GemError:
        raise
    # PySpark has no type for what a driver says of a table that isn't there, in other words each.
    except Exception as error:
        if said(error, options) is None:
            raise
        _make(options, df.schema, spark)
        return
    columns_for(df.schema, table, options.table)


def _columns(options: "JdbcTargetOptions", schema: "StructType") -> "tuple[StructField, ...]":
    found = []
    for column in schema.fields:
        text = column.dataType.simpleString()
        kind = type_of(text)
        if kind is None or not has_type(kind, arrays=options.dialect.arrays):
            message = f"{options.dialect.name} has no type for the column `{column.name}`: {text}"
            raise GemError("GB205", message, "Write it as text, with `to_json`, or take it apart.", "table")
        found.append(StructField(column.name, kind, column.nullable))
    return tuple(found)


def _unshifted(options: "JdbcTargetOptions", df: "DataFrame") -> "DataFrame":
    """Rows whose times without a time zone get there as they are."""
    kinds = {field.name: field.dataType.typeName() for field in df.schema.fields}
    if not options.dialect.shifts_ntz or "timestamp_ntz" not in kinds.values():
        return df
    from pyspark.sql.functions import col

    columns = {name: col(quoted(name)) for name in kinds}
    return df.select(
        *(
            column.cast("string").alias(name) if kinds[name] == "timestamp_ntz" else column
            for name, column in columns.items()
        )
    )


def _compared(options: "JdbcTargetOptions", rows: "StructType", table: "StructType") -> Prepared:
    columns = columns_for(rows, table, options.table)
    if options.upsert is None:
        return Prepared(columns)
    names = dict(zip((field.name.lower() for field in rows.fields), columns, strict=True))
    wanted = [*options.upsert.on, *filter(None, [options.upsert.sequence_by])]
    missing = [name for name in wanted if name.lower() not in names]
    if missing:
        message = f"there is no column {', '.join(f'`{name}`' for name in missing)} in the rows"
        raise GemError("GB205", message, "Correct `upsert`.", "upsert")
    sequence = options.upsert.sequence_by
    return Prepared(
        columns,
        tuple(names[name.lower()] for name in options.upsert.on),
        None if sequence is None else names[sequence.lower()],
    )


def _in_staging(options: "JdbcTargetOptions", name: str) -> str:
    """A table of ours, in the schema that was named, or in that of the table."""
    schema = options.staging_schema
    prefix = f"{schema}." if schema is not None else _LAST_PART.sub("", options.table)
    return f"{prefix}{name}"


def _writer_settings(options: "JdbcTargetOptions") -> dict[str, str]:
    found = options.to_spark()
    return {"batchsize": str(options.batch_size), **found}


def _raw(options: "JdbcTargetOptions") -> dict[str, str]:
    """What the driver is told by the user, also where it isn't Spark's writer that asks."""
    return {name: str(value) for name, value in options.spark_options.items()}
