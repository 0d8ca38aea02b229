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
from gem_bundle.merging import NO_SEQUENCE, SOURCE, TARGET, is_orderable, refused
from gem_delta.pruning import only_files
from gem_delta.statements import (
    Statements,
    Table,
    remembered_beside,
    table_for,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from gem_delta.into import DeltaTargetOptions
    from gem_delta.merging import HistoryOptions

# Where a change is known from: a version that it ended, one that it began, what is remembered, the rows that
# came.
_ENDED, _BEGAN, _REMEMBERED, _CAME = 0, 1, 2, 3


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
        from gem_bundle.kept import let_go

        if self._prepared is None:
            self._prepared = self._prepare(df)
        prepared = self._prepared
        with refused():
            changes = self._changes(df, prepared).persist()
            try:
                keys = [(name, f"key.{backquoted(f'k{i}')}") for i, name in enumerate(self._history.keys)]
                only = only_files(prepared.table, keys, changes)
                events = self._events(changes, prepared, only).persist()
                try:
                    self._write(events, prepared, only, micro_batch)
                finally:
                    let_go(events)
            finally:
                let_go(changes)

    def _write(
        self, events: DataFrame, prepared: _Prepared, only: str, micro_batch: tuple[str, int] | None
    ) -> None:
        # This looks at all rows, as Spark wants it of those that come from a stream's state.
        counted = events.selectExpr(
            "count_if(untold) as untold", "count_if(differs or gone) as differing"
        ).first()
        assert counted is not None
        if counted["untold"]:
            self._remember(events, prepared)
        # A micro-batch that the table has makes no difference.
        if counted["differing"]:
            prepared.statements.merge(
                events.where("differs or gone"),
                lambda view: self._statement(prepared, view, only),
                micro_batch,
            )

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
        table = table_for(
            options,
            StructType([*fields, *versions]),
            spark,
            options.partition_by,
            options.cluster_by,
            new=new,
        )
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
            F.lit(_CAME).alias("origin"),
        )

    def _told(self, keys: DataFrame, prepared: _Prepared, only: str) -> DataFrame:
        """The changes that the versions of some keys tell of: one that began each, one that ended it."""
        from pyspark.sql import functions as F  # noqa: N812

        history = self._history
        versions = prepared.table.rows(keys.sparkSession).alias(TARGET)
        if only:
            versions = versions.where(only)
        start, end = F.col(backquoted(history.start)), F.col(backquoted(history.end))
        current = F.lit(None) if history.current is None else F.col(backquoted(history.current))
        versions = versions.select(
            self._key(prepared).alias("key"),
            self._row(prepared).alias("row"),
            F.struct(end.alias("end"), current.cast("boolean").alias("current")).alias("was"),
            start.alias("start"),
        )
        # That a version ended where the next one began tells nothing: a beginning counts before an end.
        both = F.array(
            F.struct(
                F.col("start").alias("sequence"), F.lit(False).alias("deleted"), F.lit(_BEGAN).alias("origin")
            ),
            F.struct(
                F.col("was.end").alias("sequence"),
                F.lit(True).alias("deleted"),
                F.lit(_ENDED).alias("origin"),
            ),
        )
        found = _of_keys(versions, keys).select("key", "row", "was", F.inline(both))
        return found.where(F.col("sequence").isNotNull())

    def _remembered(self, keys: DataFrame, prepared: _Prepared) -> DataFrame:
        """The changes of some keys that are remembered."""
        from pyspark.sql import functions as F  # noqa: N812

        rows = prepared.remembered.rows(keys.sparkSession)
        rows = _of_keys(rows.where(F.col("table_id") == prepared.table.id), keys)
        row = self._row(prepared, "row.").alias("row")
        return rows.select("key", "sequence", "deleted", row, F.lit(_REMEMBERED).alias("origin"))

    def _events(self, changes: DataFrame, prepared: _Prepared, only: str) -> DataFrame:
        """What follows from all changes of the keys that changes are of.

        One row for each sequence of a key where a version begins, changes or goes, or where there is
        something to remember.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812

        keys = changes.select("key").distinct()
        every = self._told(keys, prepared, only).unionByName(
            self._remembered(keys, prepared).unionByName(changes), allowMissingColumns=True
        )

        def order(of: str) -> list[Column]:
            names = [f"{of}row.{backquoted(name)}" for name in prepared.compared]
            return [F.col(f"{of}deleted"), *map(F.col, names)]

        change = F.struct("deleted", "row", "origin")
        came = F.col("origin") == _CAME
        # What is remembered tells more of a change than the version that it began.
        known = F.max_by(change, F.when(~came, F.struct("origin", *order(""))))
        new = F.max_by(change, F.when(came, F.struct(*order(""))))
        was = F.when(F.col("origin") == _BEGAN, F.struct("was.end", "was.current", "row"))
        of_sequence = every.groupBy("key", "sequence").agg(
            known.alias("known"),
            new.alias("new"),
            F.first(was, ignorenulls=True).alias("was"),
            F.max(F.col("origin") == _REMEMBERED).alias("noted"),
        )
        later = F.col("known").isNull() | (F.struct(*order("new.")) > F.struct(*order("known.")))
        chosen = of_sequence.select(
            "key",
            "sequence",
            "was",
            "noted",
            F.when(later, F.col("new")).otherwise(F.col("known")).alias("one"),
        ).select("key", "sequence", "was", "noted", "one.*")

        # A run is of changes behind each other that make one version, or of deletes.
        on = Window.partitionBy("key").orderBy("sequence")
        tracked = F.struct(*(F.col(f"row.{backquoted(name)}") for name in prepared.tracked))
        before = F.lag("deleted").over(on)
        other = ~tracked.eqNullSafe(F.lag(tracked).over(on))
        begins = F.when(before.isNull(), True).when(F.col("deleted"), ~before).otherwise(before | other)
        runs = chosen.withColumns({"begins": begins, "first": before.isNull()})
        runs = runs.withColumn("ends", F.coalesce(F.lead("begins").over(on), F.lit(True)))
        # Backwards, so that Spark goes over a key once.
        back = Window.partitionBy("key").orderBy(F.col("sequence").desc())
        so_far = back.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        behind = back.rowsBetween(Window.unboundedPreceding, -1)
        begun = F.last(F.when(F.col("begins"), F.col("sequence")), ignorenulls=True)
        made = F.last(F.when(F.col("ends"), F.col("row")), ignorenulls=True)
        runs = runs.withColumns({"end": begun.over(behind), "made": made.over(so_far)})

        version = F.col("begins") & ~F.col("deleted")
        alone = F.col("begins") & F.col("ends")
        untold = ~alone | (F.col("deleted") & F.col("first")) | F.col("noted")
        there = F.col("was").isNotNull()
        found = runs.select(
            "key",
            "sequence",
            "deleted",
            "row",
            "end",
            "made",
            (untold & (F.col("origin") != _REMEMBERED)).alias("untold"),
            (version & ~(there & self._is_as_it_was(prepared))).alias("differs"),
            (there & ~version).alias("gone"),
        )
        return found.where("untold or differs or gone")

    def _is_as_it_was(self, prepared: _Prepared) -> Column:
        from pyspark.sql import functions as F  # noqa: N812

        # What Spark can't compare is written again.
        equal = F.lit(len(prepared.compared) == len(prepared.columns))
        equal = equal & F.col("end").eqNullSafe(F.col("was.end"))
        if self._history.current is not None:
            equal = equal & F.col("end").isNull().eqNullSafe(F.col("was.current"))
        for name in map(backquoted, prepared.compared):
            equal = equal & F.col(f"made.{name}").eqNullSafe(F.col(f"was.row.{name}"))
        return equal

    def _remember(self, events: DataFrame, prepared: _Prepared) -> None:
        """Keep the changes of which the versions tell nothing."""
        from pyspark.sql.functions import lit

        noted = events.where("untold")
        prepared.remembered.append(
            noted.select(lit(prepared.table.id).alias("table_id"), "key", "sequence", "deleted", "row")
        )

    def _statement(self, prepared: _Prepared, view: str, only: str) -> str:
        history = self._history
        keys = " and ".join(
            f"target.{backquoted(name)} <=> source.key.k{i}" for i, name in enumerate(history.keys)
        )
        made = {name: f"source.made.{backquoted(name)}" for name in prepared.columns}
        made |= {history.start: "source.sequence", history.end: "source.end"}
        if history.current is not None:
            made[history.current] = "source.end is null"
        columns = ", ".join(map(backquoted, made))
        assigned = ", ".join(f"target.{backquoted(name)} = {text}" for name, text in made.items())
        also = f" and {only}" if only else ""
        return f"""
            merge into {prepared.table.sql} as target using {view} as source
            on {keys} and target.{backquoted(history.start)} <=> source.sequence{also}
            when matched and source.gone then delete
            when matched then update set {assigned}
            when not matched and not source.gone then insert ({columns}) values ({", ".join(made.values())})
        """


def _of_keys(rows: DataFrame, keys: DataFrame) -> DataFrame:
    """The rows that have one of some keys."""
    changed = keys.withColumnRenamed("key", "changed")
    return rows.join(changed, rows["key"].eqNullSafe(changed["changed"]), "left_semi")
