"""Rows as changes of a history of versions, each micro-batch in one commit: the option `history`.

The changes of a key that a micro-batch has are put among those that made its versions, and the versions
are made anew; what differs is written. Each version tells of the change that began it, and its end of one
that closed it. Changes of which the versions tell nothing are remembered in a table of their own: those that
touched no tracked column, with the one that began their version, and deletes of what wasn't there. A change
that comes late may give them a meaning. They are written before the versions are, and one that is there
already stays as it is, so it does no harm when that happens twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gem_bundle import GemError
from gem_bundle.expressions import backquoted
from gem_delta.merging import SOURCE
from gem_delta.statements import (
    NO_SEQUENCE,
    Statements,
    Table,
    is_orderable,
    only_partitions,
    refused,
    remembered_beside,
    table_for,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from gem_delta.into import DeltaTargetOptions
    from gem_delta.merging import HistoryOptions

# Where a change is known from; a later one counts before an earlier one with its sequence.
_TABLE, _REMEMBERED, _ROWS = 0, 1, 2


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What was found out once a run.

    Args:
        statements: Runs statements.
        table: The table of versions.
        remembered: The table of the changes of which those tell nothing.
        columns: The rows' columns that the table has.
        tracked: Those of them whose changes make a version.
        compared: Those of them that can be put in order.
    """

    statements: Statements
    table: Table
    remembered: Table
    columns: tuple[str, ...]
    tracked: tuple[str, ...]
    compared: tuple[str, ...]


class Histories:
    """Puts changes into a table of versions.

    Args:
        options: The options of the target, with `history`.
    """

    def __init__(self, options: DeltaTargetOptions) -> None:
        assert options.history is not None
        self._options = options
        self._history: HistoryOptions = options.history
        self._prepared: _Prepared | None = None

    def write(self, df: DataFrame, micro_batch: tuple[str, int] | None) -> None:
        """Put changes where they belong.

        Args:
            df: The changes.
            micro_batch: The query and the number of its micro-batch; None for a batch.

        Raises:
            GemError: GB205 when columns are missing, GB510 when there is no such schema, GB515 when a change
                has no sequence.
        """
        if self._prepared is None:
            self._prepared = self._prepare(df)
        prepared = self._prepared
        with refused():
            changes = self._changes(df, prepared).persist()
            events = self._events(changes, prepared).persist()
            try:
                self._remember(events, prepared)
                keys = [(name, f"key.{backquoted(f'k{i}')}") for i, name in enumerate(self._history.keys)]
                only = only_partitions(prepared.table, keys, changes)
                differences = self._differences(self._versions(events), changes, prepared)
                prepared.statements.merge(
                    differences, lambda view: self._statement(prepared, view, only), micro_batch
                )
            finally:
                events.unpersist()
                changes.unpersist()

    def _prepare(self, df: DataFrame) -> _Prepared:
        from pyspark.sql.types import BooleanType, StringType, StructField, StructType

        history, options, spark = self._history, self._options, df.sparkSession
        out = {name.lower() for name in history.leave_out}
        fields = [field for field in df.schema.fields if field.name.lower() not in out]
        columns = tuple(field.name for field in fields)
        named = {name.lower() for name in columns}
        for option, names in (("keys", history.keys), ("track", history.track or [])):
            missing = [name for name in names if name.lower() not in named]
            if missing:
                message = f"there is no column {', '.join(f'`{name}`' for name in missing)} in the table"
                raise GemError("GB205", message, "Correct `history`.", ("history", option))
        own = [name for name in (history.start, history.end, history.current) if name is not None]
        doubled = [name for name in own if name.lower() in named]
        if doubled:
            message = f"the rows have a column `{doubled[0]}` already"
            raise GemError("GB205", message, "Name another one in `history`.", "history")
        source = df.alias(SOURCE)
        kind = source.selectExpr(f"{history.sequence_by} as sequence").schema.fields[0].dataType
        if not is_orderable(kind):
            message = f"`{history.sequence_by}` is {kind.simpleString()}, which has no order"
            raise GemError("GB205", message, "Order by something else.", ("history", "sequence_by"))
        versions = [StructField(name, kind) for name in (history.start, history.end)]
        if history.current is not None:
            versions.append(StructField(history.current, BooleanType()))
        statements = Statements(options, spark)
        new = bool(options.merge_schema)
        table = table_for(options, StructType([*fields, *versions]), spark, options.partition_by, new=new)
        row = StructType([StructField(field.name, field.dataType) for field in fields])
        keys = {field.name.lower(): field.dataType for field in fields}
        key = StructType([StructField(f"k{i}", keys[name.lower()]) for i, name in enumerate(history.keys)])
        noted = [
            StructField("table_id", StringType()),
            StructField("key", key),
            StructField("sequence", kind),
            StructField("deleted", BooleanType()),
            StructField("row", row),
        ]
        remembered = remembered_beside(options, StructType(noted), spark)
        return _Prepared(
            statements,
            table,
            remembered,
            columns,
            tuple(history.tracked(columns)),
            tuple(field.name for field in fields if is_orderable(field.dataType)),
        )

    def _row(self, prepared: _Prepared, qualifier: str = "") -> Column:
        """The columns of a row as one, in the table's types."""
        from pyspark.sql.functions import col, struct

        return struct(
            *(
                col(f"{qualifier}{backquoted(name)}").cast(str(prepared.table.type(name))).alias(name)
                for name in prepared.columns
            )
        )

    def _key(self, prepared: _Prepared) -> Column:
        from pyspark.sql.functions import col, struct

        return struct(
            *(
                col(backquoted(name)).cast(str(prepared.table.type(name))).alias(f"k{i}")
                for i, name in enumerate(self._history.keys)
            )
        )

    def _changes(self, df: DataFrame, prepared: _Prepared) -> DataFrame:
        """The rows that came, as changes."""
        from pyspark.sql import functions as F  # noqa: N812

        history = self._history
        sequence = F.coalesce(F.expr(history.sequence_by), F.raise_error(F.lit(NO_SEQUENCE)))
        deleted = F.lit(False) if history.delete_when is None else F.expr(history.delete_when)
        return df.alias(SOURCE).select(
            self._key(prepared).alias("key"),
            sequence.cast(str(prepared.table.type(history.start))).alias("sequence"),
            F.coalesce(deleted, F.lit(False)).alias("deleted"),
            self._row(prepared).alias("row"),
            F.lit(_ROWS).alias("place"),
        )

    def _there(self, changes: DataFrame, prepared: _Prepared) -> DataFrame:
        """The versions of the keys that changes are of."""
        from pyspark.sql import functions as F  # noqa: N812

        history = self._history
        current = F.lit(None) if history.current is None else F.col(backquoted(history.current))
        versions = prepared.table.rows(changes.sparkSession).select(
            self._key(prepared).alias("key"),
            F.col(backquoted(history.start)).alias("start"),
            F.col(backquoted(history.end)).alias("end"),
            current.alias("current"),
            self._row(prepared).alias("row"),
        )
        return _of_keys(versions, changes)

    def _events(self, changes: DataFrame, prepared: _Prepared) -> DataFrame:
        """All changes of the keys that changes are of, one of a sequence, with the run that each is in.

        A run is of changes behind each other that make one version, or of deletes.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812

        there = self._there(changes, prepared)
        begun = there.select("key", F.col("start").alias("sequence"), F.lit(False).alias("deleted"), "row")
        following = F.lead("start").over(Window.partitionBy("key").orderBy("start"))
        ended = there.withColumn("following", following).where(
            F.col("end").isNotNull() & ~F.col("end").eqNullSafe(F.col("following"))
        )
        ended = ended.select("key", F.col("end").alias("sequence"), F.lit(True).alias("deleted"), "row")
        table = begun.unionByName(ended).withColumn("place", F.lit(_TABLE))
        remembered = prepared.remembered.rows(changes.sparkSession)
        remembered = remembered.where(F.col("table_id") == prepared.table.id)
        fitted = F.struct(
            *(
                F.col(f"row.{backquoted(name)}").cast(str(prepared.table.type(name))).alias(name)
                for name in prepared.columns
            )
        )
        remembered = remembered.select("key", "sequence", "deleted", fitted.alias("row"))
        remembered = _of_keys(remembered.withColumn("place", F.lit(_REMEMBERED)), changes)
        same = Window.partitionBy("key", "sequence")
        known = table.unionByName(remembered)
        # What is remembered tells more of a change than the version that it began.
        known = known.withColumn("first", F.row_number().over(same.orderBy(F.col("place").desc())))
        known = known.where(F.col("first") == 1).drop("first")
        compared = F.struct(
            F.col("deleted"), *(F.col(f"row.{backquoted(name)}") for name in prepared.compared)
        )
        both = known.unionByName(changes).withColumns(
            {
                "noted": F.max(F.col("place") == _REMEMBERED).over(same),
                "first": F.row_number().over(same.orderBy(compared.desc(), F.col("place").asc())),
            }
        )
        both = both.where(F.col("first") == 1).drop("first")
        of_key = Window.partitionBy("key").orderBy("sequence")
        tracked = F.struct(*(F.col(f"row.{backquoted(name)}") for name in prepared.tracked))
        both = both.withColumn("tracked", tracked)
        before = F.lag("deleted").over(of_key)
        other = ~F.col("tracked").eqNullSafe(F.lag("tracked").over(of_key))
        begins = F.when(before.isNull(), True).when(F.col("deleted"), ~before).otherwise(before | other)
        both = both.withColumn("begins", begins.cast("int"))
        both = both.withColumn("run", F.sum("begins").over(of_key))
        run = Window.partitionBy("key", "run")
        return both.withColumn("length", F.count(F.lit(1)).over(run)).drop("tracked", "begins")

    def _remember(self, events: DataFrame, prepared: _Prepared) -> None:
        """Keep the changes of which the versions tell nothing."""
        from pyspark.sql import functions as F  # noqa: N812

        untold = (F.col("length") > 1) | (F.col("deleted") & (F.col("run") == 1)) | F.col("noted")
        noted = events.where(untold & (F.col("place") != _REMEMBERED))
        noted = noted.select(F.lit(prepared.table.id).alias("table_id"), "key", "sequence", "deleted", "row")
        if noted.isEmpty():
            return
        prepared.statements.merge(
            noted,
            lambda view: (
                f"""
                merge into {prepared.remembered.sql} as target using {view} as source
                on target.table_id = source.table_id and target.key <=> source.key
                and target.sequence = source.sequence
                when matched then update set deleted = source.deleted, row = source.row
                when not matched then insert (table_id, key, sequence, deleted, row)
                values (source.table_id, source.key, source.sequence, source.deleted, source.row)
            """
            ),
        )

    def _versions(self, events: DataFrame) -> DataFrame:
        """The versions that all changes of a key make."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812

        runs = events.groupBy("key", "run").agg(
            F.min("sequence").alias("start"),
            F.max("deleted").alias("deleted"),
            F.max_by("row", "sequence").alias("row"),
        )
        end = F.lead("start").over(Window.partitionBy("key").orderBy("start"))
        versions = runs.withColumn("end", end).where(~F.col("deleted"))
        return versions.select("key", "start", "end", F.col("end").isNull().alias("current"), "row")

    def _differences(self, versions: DataFrame, changes: DataFrame, prepared: _Prepared) -> DataFrame:
        """The versions that aren't in the table so, and those in the table that are no more."""
        from pyspark.sql import functions as F  # noqa: N812

        there = self._there(changes, prepared)
        there = there.select(*(F.col(name).alias(f"old_{name}") for name in there.columns))
        same = F.col("key").eqNullSafe(F.col("old_key")) & F.col("start").eqNullSafe(F.col("old_start"))
        both = versions.join(there, same, "full")
        names = ["end", *(["current"] if self._history.current is not None else [])]
        equal = F.lit(len(prepared.compared) == len(prepared.columns))
        for name in names:
            equal = equal & F.col(name).eqNullSafe(F.col(f"old_{name}"))
        for name in prepared.compared:
            equal = equal & F.col(f"row.{backquoted(name)}").eqNullSafe(F.col(f"old_row.{backquoted(name)}"))
        gone = F.col("start").isNull()
        found = both.where(gone | F.col("old_start").isNull() | ~equal)
        return found.select(
            F.coalesce("key", "old_key").alias("key"),
            F.coalesce("start", "old_start").alias("start"),
            "end",
            "current",
            "row",
            gone.alias("gone"),
        )

    def _statement(self, prepared: _Prepared, view: str, only: str) -> str:
        history = self._history
        keys = " and ".join(
            f"target.{backquoted(name)} <=> source.key.k{i}" for i, name in enumerate(history.keys)
        )
        made = {name: f"source.row.{backquoted(name)}" for name in prepared.columns}
        made |= {history.start: "source.start", history.end: "source.end"}
        if history.current is not None:
            made[history.current] = "source.current"
        columns = ", ".join(map(backquoted, made))
        assigned = ", ".join(f"target.{backquoted(name)} = {text}" for name, text in made.items())
        return f"""
            merge into {prepared.table.sql} as target using {view} as source
            on {keys} and target.{backquoted(history.start)} <=> source.start{only}
            when matched and source.gone then delete
            when matched then update set {assigned}
            when not matched and not source.gone then insert ({columns}) values ({", ".join(made.values())})
        """


def _of_keys(rows: DataFrame, changes: DataFrame) -> DataFrame:
    """The rows whose key a change has."""
    keys = changes.select(changes["key"].alias("changed")).distinct()
    return rows.join(keys, rows["key"].eqNullSafe(keys["changed"]), "left_semi")
