"""Rows that change those of an Iceberg table with their key, each micro-batch as one snapshot.

A snapshot carries the query and the number of its micro-batch. What is remembered of deletes is in a table of
its own, whose snapshots carry them too. It is written first: so no row is ever gone of which nothing is
remembered, and a run that is killed between the two finds its own deletes there, which it doesn't take for
earlier ones.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gem_bundle import GemError
from gem_bundle.kept import set_apart
from gem_bundle.merging import SessionBeside, Upserts, refused, remembered_name, schema_of
from gem_table.lacking import WITHOUT_TYPE, is_without_type, told_of_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

    from gem_bundle.merging import MergeOptions

_TO_SNAPSHOT = "spark.sql.iceberg.snapshot-property."
"""What a statement is told so that Iceberg writes it into the snapshot that it makes."""

_TABLE = "gem-bundle.table"
"""What a snapshot of deletes says of the table that they are of."""

_ID = "gem-bundle.id"
"""The property by which a table is known: another one in its place hasn't got it."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    """The table of deletes that lies beside the one that rows are merged into.

    Args:
        table: Its name.
        id: What its entries are of: the table, its key, and what comes first in the sequence.
        schema: The columns that entries have by the options.
        there: Those that it has itself, from other options too.
    """

    table: str
    id: str
    schema: StructType
    there: StructType

    def rows(self, spark: SparkSession) -> DataFrame:
        """What is remembered of the table."""
        from pyspark.sql.functions import col

        return _shaped(spark.table(self.table).where(col("table_id") == self.id), self.schema)

    def append(self, entries: DataFrame, micro_batch: tuple[str, int] | None) -> None:
        """Add entries, as one snapshot."""
        writer = _shaped(entries, self.there).writeTo(self.table)
        writer = writer.option(f"snapshot-property.{_TABLE}", self.id)
        if micro_batch is not None:
            query, number = micro_batch
            writer = writer.option(f"snapshot-property.{_mark(query)}", str(number))
        writer.append()


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What was found out once a run.

    Args:
        session: Runs statements.
        rules: How rows are merged.
        remembered: The deletes that are remembered; None when none are.
    """

    session: SessionBeside
    rules: Upserts
    remembered: _Remembered | None


class Merging:
    """Merges rows into an Iceberg table.

    Args:
        merge: How.
        table: The table, which is there when the first rows come.
    """

    def __init__(self, merge: MergeOptions, table: str) -> None:
        self._merge = merge
        self._table = table
        self._written: dict[str, int] = {}
        self._prepared: _Prepared | None = None

    def write(self, df: DataFrame, micro_batch: tuple[str, int] | None) -> None:
        """Merge rows into the table, unless it has the micro-batch.

        Args:
            df: The rows.
            micro_batch: The query and the number of the micro-batch; None for a batch.

        Raises:
            GemError: GB205 when the table lacks a column, GB213 when Iceberg has no type for the sequence,
                GB214 when it can't be told of a row of the table, GB515 when it can't be told which row of a
                key is the last.
        """
        if self._prepared is None:
            self._prepared = self._prepare(df)
        prepared, spark = self._prepared, df.sparkSession
        known = micro_batch is not None and self._may_be_known(*micro_batch)
        deletes = None if prepared.remembered is None else prepared.remembered.rows(spark)
        rows = prepared.rules.rows(df, deletes, lambda: spark.table(self._table))
        # Computed before anything is written, and also where the table has them: what a stream keeps has to
        # be committed.
        with refused(), set_apart(rows) as kept:
            whole = self._merge.unmatched_by_source is not None
            if whole and micro_batch is not None and kept.isEmpty() and df.isEmpty():
                return  # a micro-batch without rows says nothing of what is there
            if micro_batch is None or not (known and self._has(self._table, micro_batch, kept)):
                self._remember(kept, micro_batch, known=known)
                self._run(kept, micro_batch)

    def _run(self, rows: DataFrame, micro_batch: tuple[str, int] | None) -> None:
        """Run the statement, whose snapshot then says which micro-batch it was."""
        assert self._prepared is not None
        settings = {}
        if micro_batch is not None:
            query, number = micro_batch
            settings[f"{_TO_SNAPSHOT}{_mark(query)}"] = str(number)
        rules = self._prepared.rules
        self._prepared.session.run(rows, lambda view: rules.statement(self._table, view), settings)
        # The catalog of the session beside is another one, and this one's may keep tables.
        _refresh(rows.sparkSession, self._table)

    def _remember(self, rows: DataFrame, micro_batch: tuple[str, int] | None, *, known: bool) -> None:
        """Remember the deletes among rows, unless those of the micro-batch are there."""
        assert self._prepared is not None
        remembered = self._prepared.remembered
        if remembered is None:
            return
        if known and micro_batch and self._has(remembered.table, micro_batch, rows, of=remembered.id):
            return
        entries = self._prepared.rules.entries(rows, remembered.id)
        if not entries.isEmpty():
            remembered.append(entries, micro_batch)

    def _may_be_known(self, query: str, number: int) -> bool:
        """Whether the tables may have a micro-batch: a run begins with one of which nobody knows."""
        before = self._written.get(query)
        self._written[query] = number
        return before is None or number <= before

    def _has(self, table: str, micro_batch: tuple[str, int], rows: DataFrame, *, of: str = "") -> bool:
        """Whether a table has a micro-batch, by what its snapshots say.

        Args:
            table: The table.
            micro_batch: The query and the number of its micro-batch.
            rows: The rows, for their session.
            of: What the snapshots' entries are of; empty where that is no question.
        """
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

        query, number = micro_batch
        summary = F.col("summary")
        snapshots = rows.sparkSession.table(f"{table}.snapshots")
        if of:
            snapshots = snapshots.where(summary.getItem(_TABLE) == of)
        (found,) = snapshots.agg(F.max(summary.getItem(_mark(query)).cast("bigint"))).collect()
        return found[0] is not None and found[0] >= number

    def _prepare(self, df: DataFrame) -> _Prepared:
        merge, spark = self._merge, df.sparkSession
        schema = schema_of(merge, df)
        _refresh(spark, self._table)
        types = {
            field.name: field.dataType.simpleString() for field in spark.table(self._table).schema.fields
        }
        there = {name.lower() for name in types}
        missing = [field.name for field in schema.fields if field.name.lower() not in there]
        if missing:
            raise GemError(
                "GB205",
                f"the table `{self._table}` has no column {', '.join(f'`{name}`' for name in missing)}",
                "Add it by ALTER TABLE, or name it in `leave_out`.",
                "table",
            )
        rules = Upserts(merge, df, types, widened=False)
        remembered = self._remembered(rules.remembered(df), spark) if merge.remembers else None
        return _Prepared(SessionBeside(spark), rules, remembered)

    def _remembered(self, schema: StructType, spark: SparkSession) -> _Remembered:
        """The table of deletes: made where it isn't there, with more fields where it lacks some."""
        merge = self._merge
        for text, field in zip(merge.sequence_by, _fields(schema, "sequence"), strict=True):
            kind = field.dataType.simpleString()
            if is_without_type(kind):
                raise GemError("GB213", told_of_type(text, kind), WITHOUT_TYPE, ("merge", "sequence_by"))
        table = remembered_name(self._table)
        empty = spark.createDataFrame([], schema)
        empty.write.format("iceberg").mode("ignore").saveAsTable(table)
        _refresh(spark, table)
        there = spark.table(table).schema
        for part in ("key", "sequence"):
            names = {field.name for field in _fields(there, part)}
            for field in _fields(schema, part):
                if field.name not in names:
                    kind = field.dataType.simpleString()
                    spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({part}.{field.name} {kind})").collect()
        # Of another key nothing of it is true, and of a sequence that begins otherwise.
        by = json.dumps([[target.lower() for target, _ in merge.pairs()], merge.sequence_by[0]])
        return _Remembered(table, f"{self._id(spark)} {by}", schema, spark.table(table).schema)

    def _id(self, spark: SparkSession) -> str:
        """By what the table is known; it is given something where it has nothing."""
        rows = spark.sql(f"SHOW TBLPROPERTIES {self._table}").collect()
        found = {row["key"]: row["value"] for row in rows}.get(_ID)
        if found is None:
            found = uuid.uuid4().hex
            spark.sql(f"ALTER TABLE {self._table} SET TBLPROPERTIES ('{_ID}' = '{found}')").collect()
        return str(found)


def _shaped(entries: DataFrame, schema: StructType) -> DataFrame:
    """Entries with the fields of a schema: those that they lack are null."""
    from pyspark.sql import functions as F  # noqa: N812

    def shaped(part: str) -> Column:
        names = {field.name for field in _fields(entries.schema, part)}
        made = [
            (F.col(f"{part}.{field.name}") if field.name in names else F.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in _fields(schema, part)
        ]
        return F.struct(*made).alias(part)

    return entries.select("table_id", shaped("key"), shaped("sequence"))


def _fields(schema: StructType, part: str) -> list[StructField]:
    """The fields of a column that is a struct."""
    kind = schema[part].dataType
    return list(getattr(kind, "fields", []))


def _refresh(spark: SparkSession, table: str) -> None:
    """Have a session forget what its catalog keeps of a table."""
    spark.sql(f"REFRESH TABLE {table}").collect()


def _mark(query: str) -> str:
    """What a snapshot says of the query whose micro-batch it is; each query has its own."""
    return f"gem-bundle.{query}"
