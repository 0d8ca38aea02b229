"""Rows that change those with their key: one of each key, and the statement that merges them.

Of several rows of a key the last one counts, by the sequence; where that is equal, a delete comes after the
others, and of those the one with the greater values in the columns that are updated. The same holds between
a row that comes and the one in the table, so it doesn't matter in which micro-batches rows come. What was
deleted isn't there to compare with: its key and sequence are remembered in a table of their own, written
before the rows are. Of the entries of a key the greatest counts, so it does no harm when that happens twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.diagnostics import suggest
from gem_bundle.errors import GemError
from gem_bundle.expressions import backquoted, qualified
from gem_bundle.merging.naming import SOURCE, TARGET
from gem_bundle.merging.ordering import NO_SEQUENCE, SEVERAL_ROWS, is_orderable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from gem_bundle.merging.options import MergeOptions

_KEY, _SEQUENCE, _DELETED, _CLEARED = "__gem_key_{}", "__gem_sequence_{}", "__gem_deleted", "__gem_cleared"
_ORDER, _PLACE = "__gem_order", "__gem_place"


def schema_of(merge: MergeOptions, df: DataFrame) -> StructType:
    """The columns that the table has for certain, in the order of the rows': one that is made has them so.

    Args:
        merge: How rows are merged.
        df: The rows.

    Raises:
        GemError: GB205 when the rows lack a column of the key, or the sequence has no order, GB207 when new
            rows get no key.
    """
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
    source = df.alias(SOURCE)
    brought = merge.brought(df.columns)
    schema = source.selectExpr(*(f"{text} as {backquoted(name)}" for name, text in brought.items())).schema
    for expression in merge.sequence_by:
        kind = source.selectExpr(f"{expression} as sequence").schema.fields[0].dataType
        if not is_orderable(kind):
            message = f"`{expression}` is {kind.simpleString()}, which has no order"
            raise GemError("GB205", message, "Order by something else.", ("merge", "sequence_by"))
    return schema


class Upserts:
    """How rows are merged into a table that is there.

    Args:
        merge: The option.
        df: Rows that come: all have the columns of these.
        types: The types of the table's columns, by name.
        widened: Whether the table gets columns that it lacks.

    Raises:
        GemError: GB205 when the table lacks a column that is to be updated, GB214 when the sequence can't be
            told of a row of the table.
    """

    def __init__(
        self, merge: MergeOptions, df: DataFrame, types: Mapping[str, str], *, widened: bool
    ) -> None:
        self._merge = merge
        self._columns = {name.lower(): name for name in types}
        self._check_updated(widened)
        self._inserted, self._updated = merge.inserted(df.columns), merge.updated(df.columns)
        sequence: list[str] = []
        for expression in merge.sequence_by:
            text = qualified(expression, TARGET, list(types))
            if text is None:
                message = f"it can't be told what `{expression}` is of a row of the table"
                hint = "Let the table have its columns, or make a column of it before, and name that."
                raise GemError("GB214", message, hint, ("merge", "sequence_by"))
            sequence.append(text)
        self._kept_sequence = tuple(sequence)
        self._compared: tuple[tuple[str, str], ...] = ()
        if merge.sequence_by and not isinstance(merge.update, dict) and not merge.ignore_null_updates:
            fields = {field.name.lower(): field for field in df.schema.fields}
            self._compared = tuple(
                (fields[name.lower()].name, types[self._columns[name.lower()]])
                for name in sorted(self._updated, key=str.lower)
                if is_orderable(fields[name.lower()].dataType)
            )

    def rows(self, df: DataFrame, remembered: DataFrame | None, table: Callable[[], DataFrame]) -> DataFrame:
        """One row of each key, with what the statement asks for beside its columns.

        Args:
            df: The rows that come.
            remembered: What is remembered of the table; None when nothing is.
            table: Its rows, where they are needed.
        """
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
        if remembered is not None:
            rows = self._unless_deleted(rows, remembered, keys, sequence)
        if merge.ignore_null_updates:
            rows = self._unless_late(rows, table(), keys, sequence)
        compared = F.struct(*(F.col(backquoted(name)).cast(kind) for name, kind in self._compared))
        order = [F.col(name) for name in sequence] + [F.col(_DELETED)]
        order += [compared] if self._compared else []
        rows = rows.withColumn(_ORDER, F.struct(*order))
        last = of_key.orderBy(F.col(_ORDER).desc())
        updated = {name.lower() for name in self._updated}
        key_names = {name.lower() for name in merge.key_columns()}
        whole = isinstance(merge.update, dict) or (
            not merge.ignore_null_updates and all(c.lower() in updated | key_names for c in self._used(df))
        )
        if whole:
            rows = rows.withColumn(_PLACE, F.row_number().over(last)).where(F.col(_PLACE) == 1)
            return rows.withColumn(_CLEARED, F.lit(False)).drop(_PLACE, _ORDER)
        return self._folded(rows, df.columns, [*keys, *sequence], keys, updated)

    def entries(self, rows: DataFrame, table_id: str) -> DataFrame:
        """What is to be remembered: the keys that rows delete, with the sequence up to which.

        Args:
            rows: Those of `rows`.
            table_id: The table.
        """
        from pyspark.sql import functions as F  # noqa: N812

        merge = self._merge
        return rows.where(F.col(_DELETED)).select(
            F.lit(table_id).alias("table_id"),
            F.struct(*(F.col(_KEY.format(i)).alias(f"k{i}") for i in range(len(merge.key_columns())))).alias(
                "key"
            ),
            F.struct(
                *(F.col(_SEQUENCE.format(i)).alias(f"s{i}") for i in range(len(merge.sequence_by)))
            ).alias("sequence"),
        )

    def remembered(self, df: DataFrame) -> StructType:
        """The columns of what is remembered.

        Args:
            df: The rows that come.
        """
        keys = df.alias(SOURCE).select(self._key().alias("key"), self._sequence().alias("sequence"))
        return keys.selectExpr("'' as table_id", "*").schema

    def statement(self, table: str, view: str, only: str = "") -> str:
        """The statement that merges rows.

        Args:
            table: The table's name in SQL.
            view: The name that the rows have in it.
            only: A condition on the rows of the table that may be changed; an empty text for none.
        """
        merge = self._merge
        if isinstance(merge.on, str):
            on = merge.on
        else:
            on = " and ".join(f"target.{backquoted(t)} <=> source.{backquoted(s)}" for t, s in merge.pairs())
        later = self._later()
        clauses = (
            [f"when matched and ({later}) and source.{_DELETED} then delete"] if merge.delete_when else []
        )
        matched = f"when matched and ({later})"
        if self._updated:
            if not self._is_whole():
                everything = {**self._inserted, **self._updated}
                clauses.append(f"{matched} and source.{_CLEARED} then update set {_set(everything)}")
            updated = dict(self._updated)
            if merge.ignore_null_updates:
                updated = {
                    name: f"coalesce({text}, target.{backquoted(name)})" for name, text in updated.items()
                }
            clauses.append(f"{matched} and not source.{_DELETED} then update set {_set(updated)}")
        elif merge.delete_when and self._inserted:
            # A row that came back behind a delete of the same micro-batch is a new one.
            clauses.append(f"{matched} and source.{_CLEARED} then update set {_set(self._inserted)}")
        if self._inserted:
            columns = ", ".join(backquoted(name) for name in self._inserted)
            values = ", ".join(self._inserted.values())
            clauses.append(
                f"when not matched and not source.{_DELETED} then insert ({columns}) values ({values})"
            )
        if merge.unmatched_by_source is not None:
            unmatched = merge.unmatched_by_source
            when = f" and ({unmatched.when})" if unmatched.when else ""
            what = f"update set {_set(unmatched.update)}" if unmatched.update else "delete"
            clauses.append(f"when not matched by source{when} then {what}")
        also = f" and {only}" if only else ""
        into = f"merge into {table} as target using {view} as source on ({on}){also}"
        return "\n".join([into, *clauses])

    def _check_updated(self, widened: bool) -> None:
        """Whether the table has the columns that get values by expressions."""
        merge = self._merge
        given = {"update": merge.update if isinstance(merge.update, dict) else {}}
        if merge.unmatched_by_source is not None:
            given["unmatched_by_source"] = merge.unmatched_by_source.update or {}
        for option, assigned in given.items():
            missing = [name for name in assigned if name.lower() not in self._columns]
            if missing and not widened:
                message = f"the table has no column `{missing[0]}`, which is to be updated"
                hint = suggest(missing[0], list(self._columns.values()), what="columns")
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
        self, rows: DataFrame, remembered: DataFrame, keys: Sequence[str], sequence: Sequence[str]
    ) -> DataFrame:
        """The rows that come behind the last delete of their key that is remembered."""
        from pyspark.sql import functions as F  # noqa: N812

        known = remembered.groupBy(F.col("key").alias("__gem_known")).agg(
            F.max("sequence").alias("__gem_until")
        )
        key = F.struct(*(F.col(name).alias(f"k{i}") for i, name in enumerate(keys)))
        pairs = [(F.col(name), F.col(f"__gem_until.s{i}")) for i, name in enumerate(sequence)]
        joined = rows.join(known, key.eqNullSafe(F.col("__gem_known")), "left")
        # After a crash what is remembered may have deletes that the table doesn't have yet.
        later = F.col("__gem_known").isNull() | _is_later(pairs) | _is_same_delete(pairs)
        return joined.where(later).drop("__gem_known", "__gem_until")

    def _unless_late(
        self, rows: DataFrame, table: DataFrame, keys: Sequence[str], sequence: Sequence[str]
    ) -> DataFrame:
        """The rows that come behind the table's own of their key."""
        from pyspark.sql import functions as F  # noqa: N812

        there = table.alias(TARGET).select(
            F.lit(True).alias("__gem_there"),
            *(
                F.col(f"{TARGET}.{backquoted(name)}").alias(f"__gem_there_{i}")
                for i, (name, _) in enumerate(self._merge.pairs())
            ),
            *(F.expr(text).alias(f"__gem_until_{i}") for i, text in enumerate(self._kept_sequence)),
        )
        same = [F.col(name).eqNullSafe(F.col(f"__gem_there_{i}")) for i, name in enumerate(keys)]
        pairs = [(F.col(name), F.col(f"__gem_until_{i}")) for i, name in enumerate(sequence)]
        joined = rows.join(there, same, "left")
        # A delete with the sequence of the row in the table comes after it.
        later = F.col("__gem_there").isNull() | _is_later(pairs) | _is_same_delete(pairs)
        return joined.where(later).drop(*(c for c in joined.columns if c not in rows.columns))

    def _is_whole(self) -> bool:
        """Whether an update gives a row all that a new one gets."""
        if self._merge.ignore_null_updates:
            return False
        keys = {target.lower() for target, _ in self._merge.pairs()}
        return {name.lower() for name in self._inserted} <= {name.lower() for name in self._updated} | keys

    def _later(self) -> str:
        """The condition that a row comes behind the one in the table."""
        if not self._merge.sequence_by:
            return "true"
        deleted = f"source.{_DELETED}"
        if self._compared:
            own = [f"cast(source.{backquoted(name)} as {kind})" for name, kind in self._compared]
            there = [f"target.{backquoted(self._columns[name.lower()])}" for name, _ in self._compared]
            # Structs can be compared whatever is null in them.
            deleted += f" or {_struct(own)} > {_struct(there)}"
        found = deleted
        for position in range(len(self._kept_sequence) - 1, -1, -1):
            row, its = f"source.{_SEQUENCE.format(position)}", f"({self._kept_sequence[position]})"
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
