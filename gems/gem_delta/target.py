"""The target `delta`: rows into a Delta table, each once."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle import (
    Facts,
    Finding,
    GemError,
    OptionChange,
    ReadContext,
    RowsReplaced,
    Target,
    TargetSemantics,
    WriteContext,
)
from gem_bundle.merging import merged_or_added
from gem_bundle.types import local_path
from gem_delta.connection import (
    NeedsDelta,
    says_absent,
)
from gem_delta.into import BATCH_ONLY, DeltaTargetOptions, SaveMode
from gem_delta.layout import check_layout
from gem_delta.log import has_files, read_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_delta.histories import Histories
    from gem_delta.log import TableMetadata
    from gem_delta.upserts import Upserts

_TO_ALL_TABLES = "spark.databricks.delta.schema.automerge.enabled"
_EXISTS = frozenset({"DELTA_PATH_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS"})


@contextmanager
def looked_at(df: "DataFrame", wanted: bool) -> "Iterator[DataFrame]":
    """Have Spark compute rows, where that is wanted, before they are written.

    Delta passes over a micro-batch that it has without looking at its rows. Where those come from a stream's
    state, Spark 4.2 ends the query then, since the state was never committed.

    Args:
        df: The rows.
        wanted: Whether to.
    """
    if not wanted:
        yield df
        return
    from gem_bundle.kept import let_go

    rows = df.persist()
    try:
        rows.count()
        yield rows
    finally:
        let_go(rows)


class DeltaTarget(NeedsDelta, Target[DeltaTargetOptions]):
    """Write into a Delta table: add rows, change those with their key (`merge`), keep versions of them
    (`history`), or replace them all (`complete`).

    The table is created when it isn't there. Each micro-batch is one commit, and carries the number
    of the query and its own: one that is run again changes nothing.

    In visual tools: DeltaTableOperations, Delta.
    """

    semantics = TargetSemantics(
        output_modes=frozenset({"append", "complete"}),
        delivery="exactly_once",
        condition="The query keeps its checkpoint: the table knows micro-batches by its id.",
        shared="conflicts",
        replaces_intervals=True,
        grouped="exactly_once",
    )
    example = {"path": "tables/clicks", "partition_by": ["day"]}

    def __init__(self, options: DeltaTargetOptions) -> None:
        super().__init__(options)
        self._changing: Upserts | Histories | None = None
        self._written: dict[str, int] = {}
        self._is_there = False
        self._there: TableMetadata | None = None
        self._is_new = False
        if options.merge is not None or options.history is not None:
            self.semantics = replace(
                self.semantics,
                output_modes=frozenset({"append", "update"}),
                batch_modes=frozenset({"append"}),
                replaces_intervals=False,
            )

    def places(self) -> dict[str, list[str]]:
        """The table."""
        return self.options.places()

    def columns_taken(self, settings: "Mapping[str, str]") -> Literal["any", "new", "same"]:
        """A table to which rows are added takes new columns when it is told so, or all tables are."""
        if any(k.lower() == _TO_ALL_TABLES and v.lower() == "true" for k, v in settings.items()):
            return "any"
        options = self.options
        if self._is_changing:
            return "any"  # the table has other columns than the rows
        if options.save_mode not in {None, "append"} or options.replace_where or options.overwrite_schema:
            return "any"
        raw = {name.lower() for name in options.spark_options}
        return "new" if options.merge_schema or "mergeschema" in raw else "same"

    def begins_anew(self) -> OptionChange | None:
        """A table knows micro-batches by their query, and a new checkpoint is a new query.

        Changes with a sequence change nothing when they come once more.
        """
        if self.options.history is not None or (self.options.merge and self.options.merge.sequence_by):
            return None
        path = self.options.path
        local = local_path(path) if path is not None else None
        if local is None or not has_files(Path(local) / "_delta_log"):
            return None
        return OptionChange(
            "again", "the table has rows already, and takes those of a new checkpoint for others"
        )

    def takes_over(self) -> OptionChange:
        """A table takes micro-batches from any number on."""
        return OptionChange("from_now_on")

    def change(self, option: str, before: Any) -> OptionChange | None:
        """Another table gets what comes from now on; how a table is partitioned stays."""
        if option in {"path", "table"}:
            return OptionChange("from_now_on", "the new table gets what comes from now on, the old one stays")
        options = self.options
        for name, given in (("merge", options.merge), ("history", options.history)):
            if option == name and given is not None and before is not None:
                return given.change(before)
        if option == "merge":
            return merged_or_added(options.merge)
        if option == "history":
            written = "from now on" if options.history is None else "so far"
            return OptionChange(
                "mixed",
                f"the rows that are written {written} are no versions, and stand beside some",
                "Write into another table, under another id.",
            )
        if option == "partition_by":
            return OptionChange(
                "refused",
                "Delta doesn't write into a table that is partitioned by other columns",
                "Write into another table, or put it back.",
            )
        if option == "cluster_by":
            return OptionChange(
                "continues",
                "the table that is there keeps its clusters",
                "`ALTER TABLE … CLUSTER BY (…)` gives it others.",
            )
        return None

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The columns of merges, conditions and the layout exist; options are for a batch or for a stream."""
        (facts,) = inputs
        merge, history, there = self.options.merge, self.options.history, self._there
        written = facts
        if merge is not None:
            yield from merge.check(facts, None if there is None else there.columns)
            written = merge.written(facts)
        if history is not None:
            yield from history.check(facts)
            written = history.written(facts)
        yield from check_layout(self.options, facts, written, there, new=self._is_new)
        if self.options.replace_where is not None and not facts.streaming:
            from gem_delta.replacing import check_replaced

            yield from check_replaced(self.options.replace_where, facts, there)
            if self.options.save_mode == "append":
                message = "`replace_where` has no effect: `save_mode: append` replaces nothing"
                yield Finding("GB207", message, "Remove one of the two.", "replace_where", "warning")
        for name in BATCH_ONLY:
            if facts.streaming and name in self.options.model_fields_set:
                message = f"`{name}` has no effect: it is for batches"
                yield Finding("GB207", message, "Remove it.", name, "warning")

    def discover(self) -> None:
        """Read the log of a table at a local path: expressions and the layout may name its columns."""
        local = local_path(self.options.path) if self.options.path is not None else None
        self._there = None if local is None else read_metadata(Path(local) / "_delta_log")
        self._is_new = self.options.is_absent()

    def write(self, df: "DataFrame", context: WriteContext) -> None:
        """Add the rows to the table, or replace what is there.

        Raises:
            GemError: GB207 when save mode and output mode contradict each other, GB510 when the
                catalog has no such schema, GB511 when the table is there and the save mode is `error`.
        """
        if self._is_changing:
            if context.output_mode == "complete":
                message = (
                    "the output mode `complete` replaces all rows, and `merge` and `history` change some"
                )
                raise GemError("GB207", message, "Remove one of the two.", "merge")
            self._change(df, None)
        else:
            self._write(df, self._save_mode(context), self.options.to_spark())
        self._operate(df.sparkSession)

    @property
    def _is_changing(self) -> bool:
        return self.options.merge is not None or self.options.history is not None

    def _change(self, df: "DataFrame", micro_batch: tuple[str, int] | None) -> None:
        """Merge rows into the table, or into its versions."""
        if self._changing is None:
            if self.options.merge is not None:
                from gem_delta.upserts import Upserts

                self._changing = Upserts(self.options)
            else:
                from gem_delta.histories import Histories

                self._changing = Histories(self.options)
        self._changing.write(df, micro_batch)

    def _write(self, df: "DataFrame", mode: SaveMode, settings: "Mapping[str, str]") -> None:
        from pyspark.errors import AnalysisException
        from pyspark.sql.functions import lit

        options = self.options
        if options.cluster_by and self._make_clustered(df) and mode in {"error", "ignore"}:
            mode = "append"
        overwrites = bool(options.cluster_by) and mode == "overwrite"
        if overwrites:
            # Delta's writer takes a table that it overwrites for a new one, without clusters.
            settings = {"replaceWhere": "true", **settings}
        writer = df.write.format("delta").mode(mode).options(**settings).partitionBy(*options.partition_by)
        try:
            if overwrites and options.table is not None:
                # By name Spark 4.0 replaces the table, whatever the writer is told of its rows.
                df.writeTo(options.table).options(**settings).overwrite(lit(True))
            elif options.table is not None:
                writer.saveAsTable(options.table)
            else:
                writer.save(options.path)
        except AnalysisException as error:
            if error.getCondition() in _EXISTS:
                message = f"`{options.table or options.path}` exists already, and `save_mode` is `error`"
                hint = "Remove it, or choose `append`, `overwrite` or `ignore`."
                raise GemError("GB511", message, hint, "save_mode") from error
            if says_absent(error):
                raise self._no_schema() from error
            raise

    def write_stream(
        self,
        df: "DataFrame",
        context: WriteContext,
    ) -> "DataStreamWriter":
        """A writer that makes one commit of each micro-batch."""
        options = self.options
        if self._is_changing or options.table_operations is not None:
            return super().write_stream(df, context)
        if options.cluster_by:
            self._make_clustered(df)
        writer = df.writeStream.format("delta").options(**options.to_spark())
        if options.path is not None:
            writer = writer.option("path", options.path)
        return writer.partitionBy(*options.partition_by)

    def write_batch(self, df: "DataFrame", batch_id: int, context: WriteContext) -> None:
        """Make one commit of a micro-batch; Delta passes over one that it has already.

        Raises:
            GemError: GB510 when the catalog has no such schema; with `merge` and `history` GB205 when the
                table lacks columns, GB508 when it can't be told whose micro-batch it is, GB515 when changes
                can't be put in order.
        """
        options = self.options
        if not context.query:
            raise GemError(
                "GB508",
                "it can't be told which query's micro-batch this is, and so whether the table has it",
                "Start the query under the name that its context has.",
            )
        if self._is_changing:
            self._change(df, (context.query, batch_id))
        else:
            self._add(df, batch_id, context)
        if options.table_operations is not None and (batch_id + 1) % options.table_operations.every == 0:
            self._operate(df.sparkSession)

    def _add(self, df: "DataFrame", batch_id: int, context: WriteContext) -> None:
        options = self.options
        for_batches = {options.spark_name(name) for name in BATCH_ONLY}
        settings = {key: text for key, text in options.to_spark().items() if key not in for_batches}
        # By these numbers Delta knows a micro-batch again, as it knows those of its own sink.
        settings |= {"txnAppId": context.query, "txnVersion": str(batch_id)}
        with looked_at(df, self._may_be_known(batch_id, context)) as rows:
            self._write(rows, "overwrite" if context.output_mode == "complete" else "append", settings)

    def _make_clustered(self, df: "DataFrame") -> bool:
        """Make the table, which the writers of Spark can't have clustered, where it isn't there."""
        from gem_delta.statements import is_there, make_clustered

        options = self.options
        made = not self._is_there and not is_there(options, df.sparkSession)
        if made:
            make_clustered(options, df.schema, df.sparkSession, options.cluster_by)
        self._is_there = True
        return made

    def _may_be_known(self, batch_id: int, context: WriteContext) -> bool:
        """Whether the table may have a micro-batch: a run begins, or begins again, with one of which nobody
        knows.
        """
        before = self._written.get(context.query)
        self._written[context.query] = batch_id
        return (before is None or batch_id <= before) and not self.options.is_absent()

    def _operate(self, spark: "SparkSession") -> None:
        operations = self.options.table_operations
        if operations is None:
            return
        for option, statement in operations.statements(self.options.sql_name):
            try:
                spark.sql(statement).collect()
            except Exception as error:
                raise GemError(
                    "GB508",
                    f"`table_operations`: `{statement}` failed: {_reason(error)}",
                    f"The rows are in the table. Mend `{option}`, or leave it out; else the next run begins "
                    "with the same statement.",
                    ("table_operations", option),
                ) from error

    def start(self, writer: "DataStreamWriter") -> "StreamingQuery":
        """Start into the path, or into the table of the catalog.

        Raises:
            GemError: GB510 when the catalog has no such schema.
        """
        from pyspark.errors import AnalysisException

        options = self.options
        if options.table is None or self._is_changing or options.table_operations is not None:
            return writer.start()
        try:
            return writer.toTable(options.table)
        except AnalysisException as error:
            if says_absent(error):
                raise self._no_schema() from error
            raise

    @classmethod
    def at(cls, place: str) -> "DeltaTarget":
        """The table at a path, or ``table:`` and the name of one."""
        if place.startswith("table:"):
            return cls(DeltaTargetOptions(table=place.removeprefix("table:")))
        return cls(DeltaTargetOptions(path=place))

    def read_interval(self, condition: str, context: ReadContext) -> "DataFrame | None":
        """The rows of the table for which a condition holds; None where there is no table yet."""
        from gem_delta.intervals import read

        return read(self.options, condition, context.spark)

    def last_batch(self, query: str, context: ReadContext) -> int | None:
        """The last micro-batch of a query that the table's history tells of."""
        from gem_delta.intervals import last_batch

        return last_batch(self.options, query, context.spark)

    def replace_interval(self, df: "DataFrame", condition: str, context: WriteContext) -> RowsReplaced | None:
        """Put rows in the place of those for which a condition holds, in one commit."""
        from gem_delta.intervals import replace

        if self.options.cluster_by:
            self._make_clustered(df)
        return replace(self.options, df, condition, context.query, self.options.partition_by)

    def _no_schema(self) -> GemError:
        message = f"there is no schema for the table `{self.options.table}`"
        return GemError("GB510", message, "Create it, or correct the name.", "table")

    def _save_mode(self, context: WriteContext) -> SaveMode:
        given = self.options.save_mode
        if context.output_mode != "complete":
            return given or ("overwrite" if self.options.replace_where else "append")
        if given not in {None, "overwrite"}:
            message = f"`save_mode: {given}` contradicts the output mode `complete`, which overwrites"
            raise GemError("GB207", message, "Remove one of the two.", "save_mode")
        return "overwrite"


def _reason(error: Exception) -> str:
    """What Delta or Spark says: the last cause, where an error says only that there is one."""
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    said = [line.removeprefix(": ") for line in lines if line and not line.startswith("An error occurred")]
    return (causes[-1:] or said[:1] or [type(error).__name__])[0]
