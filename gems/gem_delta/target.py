"""The target `delta`: rows into a Delta table, each once."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gem_bundle import (
    Facts,
    Field,
    Finding,
    GemError,
    OptionChange,
    ReadContext,
    RowsReplaced,
    Target,
    TargetSemantics,
    WriteContext,
)
from gem_bundle.expressions import missing_names
from gem_bundle.types import Expression, StringList, local_path
from gem_delta.connection import (
    DELTA_JAR,
    LOCAL_SETTINGS,
    SESSION_SETTINGS,
    DeltaOptions,
    RawOptions,
    says_absent,
)
from gem_delta.log import has_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

SaveMode = Literal["append", "overwrite", "error", "ignore"]
_TO_ALL_TABLES = "spark.databricks.delta.schema.automerge.enabled"
_BATCH_ONLY = ("save_mode", "replace_where", "partition_overwrite_mode")
_EXISTS = frozenset({"DELTA_PATH_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS"})


class DeltaTargetOptions(DeltaOptions):
    """Options of the target `delta`, from Delta's *Table streaming writes* and *Table batch writes*."""

    partition_by: StringList = Field(
        [], passed=False, description="Columns a new table is partitioned by.", examples=[["day"]]
    )
    merge_schema: bool | None = Field(
        None,
        description="Whether new columns are added to the table; else they fail the query.",
        change="continues",
    )
    overwrite_schema: bool | None = Field(
        None,
        description="Whether overwriting (`complete`) may change the columns and the partitions.",
        change="continues",
    )
    save_mode: SaveMode | None = Field(
        None,
        passed=False,
        description="What a batch does with what is there; by default it follows the output mode: "
        "`append` adds to it, `complete` overwrites it.",
        change="continues",
    )
    replace_where: Expression | None = Field(
        None,
        description="Overwrite only the rows for which this holds, in a batch.",
        examples=["day >= '2024-01-31'"],
        change="continues",
    )
    partition_overwrite_mode: Literal["static", "dynamic"] | None = Field(
        None,
        description="Whether a batch that overwrites replaces the table (`static`) or the partitions "
        "that it has rows for.",
        change="continues",
    )
    optimize_write: bool | None = Field(
        None,
        description="Whether to shuffle rows before writing, for fewer and larger files.",
        change="continues",
    )
    max_records_per_file: int | None = Field(
        None,
        gt=0,
        description="Begin another file after this many rows (default: no limit).",
        change="continues",
    )
    compression: str | None = Field(
        None, description="How the Parquet files are compressed.", examples=["zstd"], change="continues"
    )
    user_metadata: str | None = Field(
        None, description="A text that each commit carries in its history.", change="continues"
    )
    spark_options: RawOptions = Field(
        {}, advanced=True, description="Further options of Delta's writer, passed on as they are."
    )


class DeltaTarget(Target[DeltaTargetOptions]):
    """Write into a Delta table: add rows (`append`), or replace them all (`complete`).

    The table is created when it isn't there. Each micro-batch is one commit, and carries the number
    of the query and its own: one that is run again changes nothing.
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

    def places(self) -> dict[str, list[str]]:
        """The table."""
        return self.options.places()

    def columns_taken(self, settings: "Mapping[str, str]") -> Literal["any", "new", "same"]:
        """A table to which rows are added takes new columns when it is told so, or all tables are."""
        if any(k.lower() == _TO_ALL_TABLES and v.lower() == "true" for k, v in settings.items()):
            return "any"
        options = self.options
        if options.save_mode not in {None, "append"} or options.replace_where or options.overwrite_schema:
            return "any"
        raw = {name.lower() for name in options.spark_options}
        return "new" if options.merge_schema or "mergeschema" in raw else "same"

    def begins_anew(self) -> OptionChange | None:
        """A table knows micro-batches by their query, and a new checkpoint is a new query."""
        path = self.options.path
        local = local_path(path) if path is not None else None
        if local is None or not has_files(Path(local) / "_delta_log"):
            return None
        return OptionChange(
            "again", "the table has rows already, and takes those of a new checkpoint for others"
        )

    def change(self, option: str, before: Any) -> OptionChange | None:  # noqa: ARG002 (whatever it was)
        """Another table gets what comes from now on; how a table is partitioned stays."""
        if option in {"path", "table"}:
            return OptionChange("from_now_on", "the new table gets what comes from now on, the old one stays")
        if option == "partition_by":
            return OptionChange(
                "refused",
                "Delta doesn't write into a table that is partitioned by other columns",
                "Write into another table, or put it back.",
            )
        return None

    def jars(self) -> tuple[str, ...]:
        """Delta's own."""
        return (DELTA_JAR,)

    def session_settings(self) -> "Mapping[str, str]":
        """Delta's extension and catalog."""
        return SESSION_SETTINGS

    def local_settings(self) -> "Mapping[str, str]":
        """Few tasks for a table's log."""
        return LOCAL_SETTINGS

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The columns of partitions exist; options are for a batch or for a stream."""
        (facts,) = inputs
        yield from missing_names(self.options.partition_by, facts, "partition_by")
        partitions = {name.lower() for name in self.options.partition_by}
        if facts.columns and partitions.issuperset(column.name.lower() for column in facts.columns):
            yield Finding("GB205", "all columns are in `partition_by`; none is left", "", "partition_by")
        for name in _BATCH_ONLY:
            if facts.streaming and name in self.options.model_fields_set:
                message = f"`{name}` has no effect: it is for batches"
                yield Finding("GB207", message, "Remove it.", name, "warning")

    def write(self, df: "DataFrame", context: WriteContext) -> None:
        """Add the rows to the table, or replace what is there.

        Raises:
            GemError: GB207 when save mode and output mode contradict each other, GB510 when the
                catalog has no such schema, GB511 when the table is there and the save mode is `error`.
        """
        self._write(df, self._save_mode(context), self.options.to_spark())

    def _write(self, df: "DataFrame", mode: SaveMode, settings: "Mapping[str, str]") -> None:
        from pyspark.errors import AnalysisException

        options = self.options
        writer = df.write.format("delta").mode(mode).options(**settings).partitionBy(*options.partition_by)
        try:
            if options.table is not None:
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
        context: WriteContext,  # noqa: ARG002 (Delta takes the output mode from the query)
    ) -> "DataStreamWriter":
        """A writer that makes one commit of each micro-batch."""
        options = self.options
        writer = df.writeStream.format("delta").options(**options.to_spark())
        if options.path is not None:
            writer = writer.option("path", options.path)
        return writer.partitionBy(*options.partition_by)

    def write_batch(self, df: "DataFrame", batch_id: int, context: WriteContext) -> None:
        """Make one commit of a micro-batch; Delta passes over one that it has already.

        Raises:
            GemError: GB510 when the catalog has no such schema.
        """
        options = self.options
        for_batches = {options.spark_name(name) for name in _BATCH_ONLY}
        settings = {key: text for key, text in options.to_spark().items() if key not in for_batches}
        # By these numbers Delta knows a micro-batch again, as it knows those of its own sink.
        settings |= {"txnAppId": context.query, "txnVersion": str(batch_id)}
        self._write(df, "overwrite" if context.output_mode == "complete" else "append", settings)

    def start(self, writer: "DataStreamWriter") -> "StreamingQuery":
        """Start into the path, or into the table of the catalog.

        Raises:
            GemError: GB510 when the catalog has no such schema.
        """
        from pyspark.errors import AnalysisException

        if self.options.table is None:
            return writer.start()
        try:
            return writer.toTable(self.options.table)
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

    def replace_interval(self, df: "DataFrame", condition: str, context: WriteContext) -> RowsReplaced | None:
        """Put rows in the place of those for which a condition holds, in one commit."""
        from gem_delta.intervals import replace

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
