"""Rows that change those of a Delta table with their key, each micro-batch in one commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gem_bundle.expressions import backquoted
from gem_bundle.merging import Upserts as Rules
from gem_bundle.merging import refused, schema_of
from gem_delta.pruning import may_prune, only_files
from gem_delta.statements import Statements, Table, remembered_beside, table_for, takes_new_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.merging import MergeOptions
    from gem_delta.into import DeltaTargetOptions


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What was found out once a run.

    Args:
        statements: Runs statements.
        table: The table.
        remembered: The table of deleted keys; None when none are remembered.
        rules: How rows are merged into the table.
    """

    statements: Statements
    table: Table
    remembered: Table | None
    rules: Rules

    def deleted(self, spark: SparkSession) -> DataFrame | None:
        """What is remembered of the table."""
        from pyspark.sql.functions import col

        if self.remembered is None:
            return None
        return self.remembered.rows(spark).where(col("table_id") == self.table.id)


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
        spark, rules = df.sparkSession, prepared.rules
        rows = rules.rows(df, prepared.deleted(spark), lambda: prepared.table.rows(spark))
        named = [target for target, _ in merge.pairs()]
        prunes = merge.unmatched_by_source is None and may_prune(prepared.table, named)
        if prepared.remembered is None and not prunes:
            return prepared.statements.merge(
                rows, lambda view: rules.statement(prepared.table.sql, view), micro_batch
            )
        kept = rows.persist()
        try:
            with refused():
                keys = [(target, backquoted(source)) for target, source in merge.pairs()]
                only = only_files(prepared.table, keys, kept) if prunes else ""
                if prepared.remembered is not None:
                    deletes = rules.entries(kept, prepared.table.id)
                    if not deletes.isEmpty():
                        prepared.remembered.append(deletes)
            return prepared.statements.merge(
                kept, lambda view: rules.statement(prepared.table.sql, view, only), micro_batch
            )
        finally:
            let_go(kept)

    def _prepare(self, df: DataFrame) -> _Prepared:
        merge, options, spark = self._merge, self._options, df.sparkSession
        schema = schema_of(merge, df)
        statements = Statements(options, spark)
        table = table_for(
            options,
            schema,
            spark,
            options.partition_by,
            options.cluster_by,
            new=bool(options.merge_schema) and bool(schema.fields),
        )
        rules = Rules(merge, df, table.types, widened=takes_new_columns(spark))
        remembered = None
        if merge.remembers:
            remembered = remembered_beside(options, rules.remembered(df), spark)
        return _Prepared(statements, table, remembered, rules)
