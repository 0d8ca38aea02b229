"""The option `merge` of the target `table`: rows of Iceberg tables that others replace or delete."""

import uuid
from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from gem_bundle import Facts, Field, Finding, GemError, OptionChange, Options
from gem_bundle.expressions import backquoted, check_expression, missing_names
from gem_bundle.kept import let_go
from gem_bundle.schema import without_equality, without_order
from gem_bundle.types import Expression, StringList

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

_PROPERTY = "spark.sql.iceberg.snapshot-property."
"""What Spark is told so that Iceberg writes it into the snapshot that a statement makes."""

_DELETES = "__gem_bundle_deletes"
_RANK = "__gem_bundle_rank"
_UNTOLD = "__gem_bundle_untold"


class MergeOptions(Options):
    """How rows take the place of those with their key."""

    on: StringList = Field(
        description="The columns of the key, compared so that null equals null.",
        examples=[["id"]],
        min_length=1,
    )
    sequence_by: str | None = Field(
        None,
        description="The column that tells which of several rows of a key is the last: of those of a "
        "micro-batch it is written, and in the table it isn't replaced by an earlier one.",
        examples=["updated_at"],
    )
    delete_when: Expression | None = Field(
        None,
        description="Rows for which this holds delete the row with their key.",
        examples=["op = 'd'"],
    )
    leave_out: StringList = Field([], description="Columns that the table doesn't get.", examples=[["op"]])

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.sequence_by is not None and self.sequence_by.lower() in {name.lower() for name in self.on}:
            raise ValueError(
                f"`sequence_by: {self.sequence_by}` is in the key: all rows of a key have one value of it"
            )
        used = {name.lower() for name in (*self.on, *filter(None, [self.sequence_by]))}
        lost = [name for name in self.leave_out if name.lower() in used]
        if lost:
            raise ValueError(f"the table has to have `{lost[0]}`, by which rows are merged")
        return self

    def check(self, facts: Facts) -> "Iterator[Finding]":
        """The columns are there and can be compared, and one row of a key comes last."""
        yield from missing_names(self.on, facts, ("merge", "on"))
        yield from missing_names(self.leave_out, facts, ("merge", "leave_out"))
        for number, name in enumerate(self.on):
            column = facts.column(name) if facts.columns is not None else None
            if column is not None and column.type and (part := without_equality(column.type)):
                yield Finding(
                    "GB213",
                    f"`{name}` can't be a key: Spark doesn't compare a {part} for equality",
                    "Choose other columns.",
                    ("merge", "on", number),
                )
        if self.delete_when is not None:
            yield from check_expression(self.delete_when, facts, ("merge", "delete_when"))
        if self.sequence_by is not None:
            yield from missing_names([self.sequence_by], facts, ("merge", "sequence_by"))
            column = facts.column(self.sequence_by)
            if column is not None and without_order(column.type):
                yield Finding(
                    "GB213",
                    f"`{self.sequence_by}` is {column.type}, which has no order",
                    "Order by another column.",
                    ("merge", "sequence_by"),
                )
        elif not any(o.kind in {"aggregate", "deduplicate", "unknown"} for o in facts.operators):
            yield Finding(
                "GB207",
                "several rows of a key in one micro-batch end the query: nothing tells which is the last",
                "Give `sequence_by`, or have one row of each key by `aggregate` or `deduplicate`.",
                "merge",
                "warning",
            )

    def written(self, facts: Facts) -> Facts:
        """What is known of the columns that the table gets.

        Args:
            facts: The rows.
        """
        out = {name.lower() for name in self.leave_out}
        columns = facts.columns
        return facts.with_columns(
            None if columns is None else [c for c in columns if c.name.lower() not in out]
        )

    def change(self, before: "Mapping[str, Any]") -> OptionChange:
        """What other options of the merge do."""
        now = self.model_dump(mode="json")
        if any(now[name] != before.get(name) for name in ("on", "sequence_by")):
            return OptionChange(
                "mixed", "rows that the table has by the old key and sequence are matched by the new ones"
            )
        return OptionChange("from_now_on", "what comes from now on is merged by the new rules")


class Merging:
    """Merges rows into an Iceberg table, each micro-batch as one snapshot.

    Args:
        options: How.
        table: The table, which is there.
    """

    def __init__(self, options: MergeOptions, table: str) -> None:
        self._options = options
        self._table = table
        self._written: dict[str, int] = {}

    def write(self, df: "DataFrame", micro_batch: tuple[str, int] | None) -> None:
        """Merge rows into the table, unless it has the micro-batch.

        Args:
            df: The rows.
            micro_batch: The query and the number of the micro-batch; None for a batch.

        Raises:
            GemError: GB205 when the table lacks a column, GB515 when it can't be told which row of a key is
                the last.
        """
        spark = df.sparkSession
        columns = self.kept(df).columns
        self._check_columns(spark, columns)
        # Computed once, and also where the table has them: what a stream keeps has to be committed.
        rows = self._last(df).persist()
        view = f"gem_bundle_{uuid.uuid4().hex}"
        try:
            self._refuse_unordered(rows)
            if micro_batch is None:
                rows.createOrReplaceTempView(view)
                spark.sql(self._statement(columns, view)).collect()
            elif not self._has(spark, *micro_batch):
                rows.createOrReplaceTempView(view)
                self._merge(spark, self._statement(columns, view), *micro_batch)
        finally:
            spark.catalog.dropTempView(view)
            let_go(rows)

    def kept(self, df: "DataFrame") -> "DataFrame":
        """The columns that the table gets.

        Args:
            df: The rows.
        """
        return df.drop(*self._options.leave_out)

    def _merge(self, spark: "SparkSession", statement: str, query: str, number: int) -> None:
        """Run the statement, whose snapshot then says which micro-batch it was."""
        setting = f"{_PROPERTY}{_mark(query)}"
        spark.conf.set(setting, str(number))
        try:
            spark.sql(statement).collect()
        finally:
            spark.conf.unset(setting)

    def _has(self, spark: "SparkSession", query: str, number: int) -> bool:
        """Whether the table has a micro-batch: only where a run begins with one of which nobody knows."""
        before = self._written.get(query)
        self._written[query] = number
        if before is not None and number > before:
            return False
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

        told = F.col("summary").getItem(_mark(query)).cast("bigint")
        (found,) = spark.table(f"{self._table}.snapshots").agg(F.max(told)).collect()
        return found[0] is not None and found[0] >= number

    def _last(self, df: "DataFrame") -> "DataFrame":
        """The last rows of each key, with whether they delete."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

        options = self._options
        deletes = F.lit(False)
        if options.delete_when is not None:
            deletes = F.coalesce(F.expr(options.delete_when), F.lit(False))
        rows = df.withColumn(_DELETES, deletes)
        window = Window.partitionBy(*map(backquoted, options.on))
        if options.sequence_by is None:
            # All of them: `_refuse_unordered` speaks of several.
            return rows.withColumn(_RANK, F.count(F.lit(1)).over(window))
        sequence = F.col(backquoted(options.sequence_by))
        rows = rows.withColumn(_UNTOLD, F.max(sequence.isNull()).over(window))
        last = window.orderBy(sequence.desc_nulls_last())
        ranked = rows.withColumn(_RANK, F.rank().over(last)).where(F.col(_RANK) == 1)
        return ranked.withColumn(_RANK, F.count(F.lit(1)).over(window))

    def _refuse_unordered(self, rows: "DataFrame") -> None:
        from pyspark.sql import functions as F  # noqa: N812

        sequence = self._options.sequence_by
        untold = F.lit(None) if sequence is None else F.col(_UNTOLD)
        (found,) = rows.agg(F.max(_RANK), F.max(untold)).collect()
        if found[1]:
            raise GemError(
                "GB515",
                f"a row has no value in its sequence `{sequence}`, so it can't be told which rows it comes "
                f"after",
                "Nothing of the micro-batch is in the table. Leave such rows out with `filter` or `expect`.",
                ("merge", "sequence_by"),
            )
        if found[0] is None or found[0] == 1:
            return
        keys = ", ".join(self._options.on)
        same = f" with the same `{sequence}`" if sequence is not None else ""
        raise GemError(
            "GB515",
            f"several rows of a key ({keys}){same} are in one micro-batch, and nothing tells which is the "
            f"last",
            "Nothing of the micro-batch is in the table. "
            + ("Order them by another column" if sequence is not None else "Give `sequence_by`")
            + ", or have one row of each key by `aggregate` or `deduplicate`.",
            "merge",
        )

    def _check_columns(self, spark: "SparkSession", columns: "Sequence[str]") -> None:
        there = {name.lower() for name in spark.table(self._table).columns}
        missing = [name for name in columns if name.lower() not in there]
        if missing:
            raise GemError(
                "GB205",
                f"the table `{self._table}` has no column {', '.join(f'`{name}`' for name in missing)}",
                "Add it by ALTER TABLE, or name it in `leave_out`.",
                "table",
            )

    def _statement(self, columns: list[str], view: str) -> str:
        options = self._options
        names = [backquoted(name) for name in columns]
        match = " AND ".join(f"target.{key} <=> source.{key}" for key in map(backquoted, options.on))
        newer = ""
        if options.sequence_by is not None:
            by = backquoted(options.sequence_by)
            newer = f" AND (target.{by} IS NULL OR source.{by} >= target.{by})"
        updated = ", ".join(f"target.{name} = source.{name}" for name in names)
        inserted = ", ".join(f"source.{name}" for name in names)
        clauses = [
            f"MERGE INTO {self._table} AS target USING {view} AS source ON {match}",
            f"WHEN MATCHED AND source.{_DELETES}{newer} THEN DELETE",
            f"WHEN MATCHED AND NOT source.{_DELETES}{newer} THEN UPDATE SET {updated}",
            f"WHEN NOT MATCHED AND NOT source.{_DELETES}",
            f"THEN INSERT ({', '.join(names)}) VALUES ({inserted})",  # noqa: S608 (names, quoted)
        ]
        return " ".join(clauses)


def _mark(query: str) -> str:
    """What a snapshot says of the query whose micro-batch it is; each query has its own."""
    return f"gem-bundle.{query}"
