"""Rows that change those with their key, each micro-batch in one commit: the option `merge`.

Of several rows of a key the last one counts, by the sequence; where that is equal, a delete comes after the
others, and of those the one with the greater values in the columns that are updated. The same holds between
a row that comes and the one in the table, so it doesn't matter in which micro-batches rows come. What was
deleted isn't there to compare with: its key and sequence are added to a table of their own, before the rows
are written. Of the entries of a key the greatest counts, so it does no harm when that happens twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gem_bundle import GemError
from gem_bundle.diagnostics import suggest
from gem_bundle.expressions import backquoted, qualified
from gem_delta.naming import SOURCE, TARGET
from gem_delta.pruning import may_prune, only_files
from gem_delta.statements import (
    NO_SEQUENCE,
    SEVERAL_ROWS,
    Statements,
    Table,
    is_orderable,
    refused,
    remembered_beside,
    table_for,
    takes_new_columns,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from gem_delta.into import DeltaTargetOptions
    from gem_delta.merging import MergeOptions

_KEY, _SEQUENCE, _DELETED, _CLEARED = "__gem_key_{}", "__gem_sequence_{}", "__gem_deleted", "__gem_cleared"
_ORDER, _PLACE = "__gem_order", "__gem_place"


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What was found out once a run.

    Args:
        statements: Runs statements.
        table: The table.
        remembered: The table of deleted keys; None when none are remembered.
        inserted: What a new row gets, by column.
        updated: What a row that is there gets, by column.
        sequence: The sequence of a row of the table.
        compared: Columns of the rows that decide where sequences are equal, with the table's types.
    """

    statements: Statements
    table: Table
    remembered: Table | None
    inserted: Mapping[str, str]
    updated: Mapping[str, str]
    sequence: tuple[str, ...]
    compared: tuple[tuple[str, str], ...]


class Upserts:
    """Merges micro-batches into a table.

    Args:
        options: The options of the target, with `merge`.
    """

    def __init__(self, options: DeltaTargetOptions) -> None:
        assert options.merge is not None
        self._options = options
        self._merge: MergeOptions = options.merge
        self._prepared: _Prepared | None = None

    def write(self, df: DataFrame, micro_batch: tuple[str, int] | None) -> None:
        """Merge rows.

        Args:
            df: The rows.
            micro_batch: The query and the number of its micro-batch; None for a batch.

        Raises:
            GemError: GB205 when the table lacks columns, GB214 when the sequence can't be told of a row of
                the table, GB510 when there is no such schema, GB515 when rows can't be put in order.
        """
        if self._prepared is None:
            self._prepared = self._prepare(df)
        prepared = self._prepared
        if self._merge.unmatched_by_source is not None and micro_batch is not None and df.count() == 0:
            return  # a micro-batch without data says nothing of what is there
        changed = self._write(df, prepared, micro_batch)
        if micro_batch is not None and not changed:
            # Spark wants all rows looked at that come from a stream's state; here nobody may have done it.
            df.count()

    def _write(self, df: DataFrame, prepared: _Prepared, micro_batch: tuple[str, int] | None) -> int | None:
        from gem_bundle.kept import let_go

        merge = self._merge
        rows = self._rows(df, prepared)
        named = [target for target, _ in merge.pairs()]
        prunes = merge.unmatched_by_source is None and may_prune(prepared.table, named)
        if prepared.remembered is None and not prunes:
            return prepared.statements.merge(
                rows, lambda view: self._statement(prepared, view, ""), micro_batch
            )
        kept = rows.persist()
        try:
            with refused():
                keys = [(target, backquoted(source)) for target, source in merge.pairs()]
                only = only_files(prepared.table, keys, kept) if prunes else ""
                if prepared.remembered is not None:
                    self._remember(prepared.remembered, kept)
            return prepared.statements.merge(
                kept, lambda view: self._statement(prepared, view, only), micro_batch
            )
        finally:
            let_go(kept)

    def _prepare(self, df: DataFrame) -> _Prepared:
        merge, options, spark = self._merge, self._options, df.sparkSession
        named = {name.lower() for name in df.columns}
        missing = [name for name in merge.key_columns() if name.lower() not in named]
        if missing:
            message = f"there is no column {', '.join(f'`{name}`' for name in missing)} in the rows"
            raise GemError("GB205", message, "Correct `merge`.", ("merge", "on"))
        lost = merge.lost_keys(df.columns)
        if lost:
            message = f"new rows get no `{lost[0]}`, by which they are to be found again"
            hint = f"Let `insert` give `{lost[0]}`, or have a column of that name before."
            raise GemError("GB207", message, hint, ("merge", "insert"))
        inserted, updated = merge.inserted(df.columns), merge.updated(df.columns)
        source = df.alias(SOURCE)
        # In the order of the rows' columns: a table that is made has them so.
        brought = merge.brought(df.columns)
        schema = source.selectExpr(
            *(f"{text} as {backquoted(name)}" for name, text in brought.items())
        ).schema
        for expression in merge.sequence_by:
            kind = source.selectExpr(f"{expression} as sequence").schema.fields[0].dataType
            if not is_orderable(kind):
                message = f"`{expression}` is {kind.simpleString()}, which has no order"
                raise GemError("GB205", message, "Order by something else.", ("merge", "sequence_by"))
        statements = Statements(options, spark)
        table = table_for(
            options,
            schema,
            spark,
            options.partition_by,
            options.cluster_by,
            new=bool(options.merge_schema) and bool(brought),
        )
        self._check_updated(table, spark)
        sequence: list[str] = []
        for expression in merge.sequence_by:
            text = qualified(expression, TARGET, list(table.types))
            if text is None:
                message = f"it can't be told what `{expression}` is of a row of the table"
                hint = "Let the table have its columns, or make a column of it before, and name that."
                raise GemError("GB214", message, hint, ("merge", "sequence_by"))
            sequence.append(text)
        compared: tuple[tuple[str, str], ...] = ()
        if merge.sequence_by and not isinstance(merge.update, dict) and not merge.ignore_null_updates:
            fields = {field.name.lower(): field for field in df.schema.fields}
            compared = tuple(
                (fields[name.lower()].name, str(table.type(name)))
                for name in sorted(updated, key=str.lower)
                if is_orderable(fields[name.lower()].dataType)
            )
        remembered = None
        if merge.remembers:
            keys = source.select(self._key().alias("key"), self._sequence().alias("sequence"))
            schema = keys.selectExpr("'' as table_id", "*").schema
            remembered = remembered_beside(options, schema, spark)
        return _Prepared(statements, table, remembered, inserted, updated, tuple(sequence), compared)

    def _check_updated(self, table: Table, spark: SparkSession) -> None:
        """Whether the table has the columns that get values by expressions."""
        merge = self._merge
        given = {"update": merge.update if isinstance(merge.update, dict) else {}}
        if merge.unmatched_by_source is not None:
            given["unmatched_by_source"] = merge.unmatched_by_source.update or {}
        for option, assigned in given.items():
            missing = [name for name in assigned if table.type(name) is None]
            if missing and not takes_new_columns(spark):
                message = f"the table has no column `{missing[0]}`, which is to be updated"
                hint = suggest(missing[0], list(table.types), what="columns")
                raise GemError("GB205", message, hint or "Correct the name.", ("merge", option))

    def _key(self) -> Column:
        from pyspark.sql.functions import col, struct

        return struct(
            *(
                col(f"{SOURCE}.{backquoted(name)}").alias(f"k{i}")
                for i, name in enumerate(self._merge.key_columns())
            )
        )

    def _sequence(self) -> Column:
        from pyspark.sql.functions import coalesce, expr, lit, raise_error, struct

        return struct(
            *(
                coalesce(expr(text), raise_error(lit(NO_SEQUENCE))).alias(f"s{i}")
                for i, text in enumerate(self._merge.sequence_by)
            )
        )

    def _rows(self, df: DataFrame, prepared: _Prepared) -> DataFrame:
        """One row of each key, with what the statement asks for beside its columns."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812

        merge = self._merge
        source = df.alias(SOURCE)
        names = range(len(merge.sequence_by))
        keys = [_KEY.format(i) for i in range(len(merge.key_columns()))]
        sequence = [_SEQUENCE.format(i) for i in names]
        found = (
            F.lit(False) if merge.delete_when is None else F.coalesce(F.expr(merge.delete_when), F.lit(False))
        )
        rows = source.select(
            *(F.col(backquoted(name)) for name in df.columns),
            *(
                F.col(backquoted(name)).alias(key)
                for key, name in zip(keys, merge.key_columns(), strict=True)
            ),
            *(
                F.coalesce(F.expr(text), F.raise_error(F.lit(NO_SEQUENCE))).alias(name)
                for name, text in zip(sequence, merge.sequence_by, strict=True)
            ),
            found.alias(_DELETED),
        )
        of_key = Window.partitionBy(*keys)
        if not merge.sequence_by:
            several = F.count(F.lit(1)).over(of_key) > 1
            checked = F.when(several, F.raise_error(F.lit(SEVERAL_ROWS))).otherwise(F.col(_DELETED))
            return rows.withColumns({_DELETED: checked, _CLEARED: F.lit(False)})
        if prepared.remembered is not None:
            rows = self._unless_deleted(rows, prepared.remembered, prepared.table, keys, sequence)
        if merge.ignore_null_updates:
            rows = self._unless_late(rows, prepared, keys, sequence)
        compared = F.struct(*(F.col(backquoted(name)).cast(kind) for name, kind in prepared.compared))
        order = [F.col(name) for name in sequence] + [F.col(_DELETED)]
        order += [compared] if prepared.compared else []
        rows = rows.withColumn(_ORDER, F.struct(*order))
        last = of_key.orderBy(F.col(_ORDER).desc())
        updated = {name.lower() for name in prepared.updated}
        key_names = {name.lower() for name in merge.key_columns()}
        whole = isinstance(merge.update, dict) or (
            not merge.ignore_null_updates and all(c.lower() in updated | key_names for c in self._used(df))
        )
        if whole:
            rows = rows.withColumn(_PLACE, F.row_number().over(last)).where(F.col(_PLACE) == 1)
            return rows.withColumn(_CLEARED, F.lit(False)).drop(_PLACE, _ORDER)
        return self._folded(rows, df.columns, [*keys, *sequence], keys, updated)

    def _used(self, df: DataFrame) -> Sequence[str]:
        """The columns that the table gets, as far as they are the rows' own."""
        merge = self._merge
        if isinstance(merge.insert, list):
            return merge.insert
        out = {name.lower() for name in merge.leave_out}
        return [] if merge.insert == "none" else [name for name in df.columns if name.lower() not in out]

    def _folded(
        self,
        rows: DataFrame,
        columns: Sequence[str],
        own: Sequence[str],
        keys: Sequence[str],
        updated: set[str],
    ) -> DataFrame:
        """The rows of a key behind its last delete as one: the last's updated columns, the first's others."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812

        order = F.col(_ORDER)
        of_key = Window.partitionBy(*keys)
        on = of_key.orderBy(order).rowsBetween(Window.currentRow, Window.unboundedFollowing)
        last = of_key.orderBy(order.desc())
        deletes = F.sum(F.col(_DELETED).cast("int")).over(on)
        rows = rows.withColumns(
            {
                "__gem_deletes": deletes,
                _PLACE: F.row_number().over(last),
                _CLEARED: F.max(_DELETED).over(of_key),
            }
        ).where((F.col("__gem_deletes") == 0) | (F.col(_PLACE) == 1))
        made = []
        for name in columns:
            column = F.col(backquoted(name))
            if name.lower() not in updated:
                value = F.min_by(column, order)
            elif self._merge.ignore_null_updates:
                value = F.max_by(column, F.when(column.isNotNull(), order))
            else:
                value = F.max_by(column, order)
            made.append(value.alias(name))
        others = [F.max_by(name, order).alias(name) for name in own if name not in keys]
        return rows.groupBy(*keys).agg(
            *made, *others, F.max_by(_DELETED, order).alias(_DELETED), F.max(_CLEARED).alias(_CLEARED)
        )

    def _unless_deleted(
        self, rows: DataFrame, remembered: Table, table: Table, keys: Sequence[str], sequence: Sequence[str]
    ) -> DataFrame:
        """The rows that come behind the last delete of their key that is remembered."""
        from pyspark.sql import functions as F  # noqa: N812

        known = remembered.rows(rows.sparkSession).where(F.col("table_id") == table.id)
        known = known.groupBy(F.col("key").alias("__gem_known")).agg(F.max("sequence").alias("__gem_until"))
        key = F.struct(*(F.col(name).alias(f"k{i}") for i, name in enumerate(keys)))
        pairs = [(F.col(name), F.col(f"__gem_until.s{i}")) for i, name in enumerate(sequence)]
        joined = rows.join(known, key.eqNullSafe(F.col("__gem_known")), "left")
        # After a crash what is remembered may have deletes that the table doesn't have yet.
        later = F.col("__gem_known").isNull() | _is_later(pairs) | _is_same_delete(pairs)
        return joined.where(later).drop("__gem_known", "__gem_until")

    def _unless_late(
        self, rows: DataFrame, prepared: _Prepared, keys: Sequence[str], sequence: Sequence[str]
    ) -> DataFrame:
        """The rows that come behind the table's own of their key."""
        from pyspark.sql import functions as F  # noqa: N812

        table = prepared.table.rows(rows.sparkSession).alias(TARGET)
        there = table.select(
            F.lit(True).alias("__gem_there"),
            *(
                F.col(f"{TARGET}.{backquoted(name)}").alias(f"__gem_there_{i}")
                for i, (name, _) in enumerate(self._merge.pairs())
            ),
            *(F.expr(text).alias(f"__gem_until_{i}") for i, text in enumerate(prepared.sequence)),
        )
        same = [F.col(name).eqNullSafe(F.col(f"__gem_there_{i}")) for i, name in enumerate(keys)]
        pairs = [(F.col(name), F.col(f"__gem_until_{i}")) for i, name in enumerate(sequence)]
        joined = rows.join(there, same, "left")
        # A delete with the sequence of the row in the table comes after it.
        later = F.col("__gem_there").isNull() | _is_later(pairs) | _is_same_delete(pairs)
        return joined.where(later).drop(*(c for c in joined.columns if c not in rows.columns))

    def _remember(self, remembered: Table, rows: DataFrame) -> None:
        """Keep the keys that rows delete, with the sequence up to which."""
        from pyspark.sql import functions as F  # noqa: N812

        merge = self._merge
        deletes = rows.where(F.col(_DELETED))
        if deletes.isEmpty():
            return
        assert self._prepared is not None
        entries = deletes.select(
            F.lit(self._prepared.table.id).alias("table_id"),
            F.struct(*(F.col(_KEY.format(i)).alias(f"k{i}") for i in range(len(merge.key_columns())))).alias(
                "key"
            ),
            F.struct(
                *(F.col(_SEQUENCE.format(i)).alias(f"s{i}") for i in range(len(merge.sequence_by)))
            ).alias("sequence"),
        )
        remembered.append(entries)

    def _statement(self, prepared: _Prepared, view: str, only: str) -> str:
        merge = self._merge
        if isinstance(merge.on, str):
            on = merge.on
        else:
            on = " and ".join(f"target.{backquoted(t)} <=> source.{backquoted(s)}" for t, s in merge.pairs())
        later = self._later(prepared)
        clauses = (
            [f"when matched and ({later}) and source.{_DELETED} then delete"] if merge.delete_when else []
        )
        matched = f"when matched and ({later})"
        if prepared.updated:
            if not self._is_whole(prepared):
                everything = {**prepared.inserted, **prepared.updated}
                clauses.append(f"{matched} and source.{_CLEARED} then update set {_set(everything)}")
            updated = dict(prepared.updated)
            if merge.ignore_null_updates:
                updated = {
                    name: f"coalesce({text}, target.{backquoted(name)})" for name, text in updated.items()
                }
            clauses.append(f"{matched} and not source.{_DELETED} then update set {_set(updated)}")
        elif merge.delete_when and prepared.inserted:
            # A row that came back behind a delete of the same micro-batch is a new one.
            clauses.append(f"{matched} and source.{_CLEARED} then update set {_set(prepared.inserted)}")
        if prepared.inserted:
            columns = ", ".join(backquoted(name) for name in prepared.inserted)
            values = ", ".join(prepared.inserted.values())
            clauses.append(
                f"when not matched and not source.{_DELETED} then insert ({columns}) values ({values})"
            )
        if merge.unmatched_by_source is not None:
            unmatched = merge.unmatched_by_source
            when = f" and ({unmatched.when})" if unmatched.when else ""
            what = f"update set {_set(unmatched.update)}" if unmatched.update else "delete"
            clauses.append(f"when not matched by source{when} then {what}")
        also = f" and {only}" if only else ""
        into = f"merge into {prepared.table.sql} as target using {view} as source on ({on}){also}"
        return "\n".join([into, *clauses])

    def _is_whole(self, prepared: _Prepared) -> bool:
        """Whether an update gives a row all that a new one gets."""
        if self._merge.ignore_null_updates:
            return False
        keys = {target.lower() for target, _ in self._merge.pairs()}
        return {name.lower() for name in prepared.inserted} <= {
            name.lower() for name in prepared.updated
        } | keys

    def _later(self, prepared: _Prepared) -> str:
        """The condition that a row comes behind the one in the table."""
        if not self._merge.sequence_by:
            return "true"
        deleted = f"source.{_DELETED}"
        if prepared.compared:
            own = [f"cast(source.{backquoted(name)} as {kind})" for name, kind in prepared.compared]
            columns = prepared.table.columns
            there = [f"target.{backquoted(columns[name.lower()])}" for name, _ in prepared.compared]
            # Structs can be compared whatever is null in them.
            deleted += f" or {_struct(own)} > {_struct(there)}"
        found = deleted
        for position in range(len(prepared.sequence) - 1, -1, -1):
            row, its = f"source.{_SEQUENCE.format(position)}", f"({prepared.sequence[position]})"
            found = f"{its} is null or {row} > {its} or ({row} = {its} and ({found}))"
        return found


def _struct(values: Sequence[str]) -> str:
    fields = ", ".join(f"'c{position}', {value}" for position, value in enumerate(values))
    return f"named_struct({fields})"


def _set(assigned: Mapping[str, str]) -> str:
    return ", ".join(f"target.{backquoted(name)} = {text}" for name, text in assigned.items())


def _is_later(pairs: Sequence[tuple[Column, Column]]) -> Column:
    """Whether the first ones are behind the second ones, compared one after the other."""
    from pyspark.sql import functions as F  # noqa: N812

    found = F.lit(False)
    for one, other in reversed(pairs):
        found = other.isNull() | (one > other) | ((one == other) & found)
    return found


def _is_same_delete(pairs: Sequence[tuple[Column, Column]]) -> Column:
    """Whether a row is a delete and has just this sequence."""
    from pyspark.sql.functions import col

    found = col(_DELETED)
    for one, other in pairs:
        found = found & one.eqNullSafe(other)
    return found
