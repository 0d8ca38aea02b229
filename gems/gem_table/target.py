"""The target `table`: a table of any catalog."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import model_validator

from gem_bundle import (
    Facts,
    Field,
    Finding,
    GemError,
    OptionChange,
    Options,
    Target,
    TargetSemantics,
    WriteContext,
)
from gem_bundle.expressions import missing_names
from gem_bundle.merging import MergeOptions, merged_or_added
from gem_bundle.types import DataPath, StringList, TableName
from gem_table.catalog import CatalogOptions, check_name, missing_iceberg
from gem_table.raw_options import change_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_table.merging import Merging

SaveMode = Literal["append", "overwrite", "error", "ignore"]
_TO_ALL_TABLES = "spark.databricks.delta.schema.automerge.enabled"
_FILES = frozenset({"csv", "json", "parquet", "orc", "text", "avro", "xml"})


class TableTargetOptions(Options):
    """Options of the target `table`, from the guide's *Table APIs*."""

    default_change = "continues"

    table: TableName = Field(
        passed=False,
        description="The name of the table.",
        examples=["clicks", "main.web.clicks"],
        place=True,
    )
    catalog: CatalogOptions | None = Field(
        None,
        passed=False,
        description="Where the catalog of Iceberg tables is that the table's name begins with; without it "
        "the session knows the catalog.",
        examples=[{"kind": "hadoop", "warehouse": "tables"}],
        place=True,
    )
    merge: MergeOptions | None = Field(
        None,
        passed=False,
        description="Rows change those of an Iceberg table with their key: upserts and deletes. Without it "
        "they are added.",
        examples=[{"on": ["id"], "sequence_by": "updated_at"}],
    )
    format: str | None = Field(
        None,
        passed=False,
        description="The format of the table; by default that of the table that is there, and Spark's "
        "`spark.sql.sources.default` for a new one.",
        examples=["parquet", "iceberg"],
    )
    path: DataPath | None = Field(
        None, description="Where a new table has its files; by default the catalog decides.", place=True
    )
    partition_by: StringList = Field(
        [], passed=False, description="Columns a new table is partitioned by.", examples=[["day"]]
    )
    save_mode: SaveMode | None = Field(
        None,
        passed=False,
        description="What a batch does with what is there; by default it follows the output mode: "
        "`append` adds to it, `complete` overwrites it.",
    )
    spark_options: dict[str, str | int | float | bool] = Field(
        {}, description="Options of the table's own format, passed on as they are.", change="from_now_on"
    )

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        iceberg = self.format is not None and self.format.lower() == "iceberg"
        if self.catalog is not None:
            check_name(self.table)
            if self.format is not None and not iceberg:
                raise ValueError(f"`catalog` is one of Iceberg tables: remove `format: {self.format}`")
        if self.merge is None:
            return self
        if self.catalog is None and not iceberg:
            raise ValueError(
                "`merge` is for Iceberg tables, by `catalog` or by `format: iceberg`: of other tables of a "
                "catalog it isn't known whether rows can change. The gem `delta` merges into Delta tables"
            )
        for name in ("save_mode", "spark_options"):
            if name in self.model_fields_set:
                raise ValueError(f"`{name}` has no effect on `merge`: remove it")
        return self


class TableTarget(Target[TableTargetOptions]):
    """Write into a table of a catalog: Hive, Iceberg, Unity Catalog, or Spark's own.

    The table is created when it isn't there. For Delta tables the gem `delta` has all options.

    In visual tools: CatalogTable, Hive, Iceberg.
    """

    semantics = TargetSemantics(
        output_modes=frozenset({"append", "complete"}),
        delivery="exactly_once",
        condition="The table's format gives it: Delta, Iceberg and tables of files do. Tables of files "
        "take append only.",
        shared="conflicts",
    )
    example = {"table": "main.web.clicks", "partition_by": ["day"]}

    def __init__(self, options: TableTargetOptions) -> None:
        super().__init__(options)
        self._merging: Merging | None = None
        self._streaming: bool | None = None
        if options.merge is not None:
            self.semantics = replace(
                self.semantics,
                output_modes=frozenset({"append", "update"}),
                batch_modes=frozenset({"append"}),
                condition="The table keeps the snapshot of the query's last micro-batch, which tells its "
                "number.",
                grouped="exactly_once",
            )

    def places(self) -> dict[str, list[str]]:
        """The table, and the folder of its files where it is given."""
        options = self.options
        table = {"table": [f"table:{options.table}"]}
        return table if options.path is None else {**table, "path": [options.path]}

    def columns_taken(self, settings: "Mapping[str, str]") -> Literal["any", "new", "same"]:
        """What is known of formats that are named: which one a table that is there has isn't.

        A stream into a table of files writes files as they are, whatever columns the table has. A batch into
        one is held to its columns; one into a Delta table is cast to them, and only new ones are refused,
        for which there is no word here.
        """
        options = self.options
        if options.merge is not None or options.save_mode not in {None, "append"} or self._streaming is None:
            return "any"
        form = (options.format or "").lower()
        if form in _FILES:
            return "any" if self._streaming else "same"
        if form != "delta" or not self._streaming:
            return "any"
        if any(key.lower() == _TO_ALL_TABLES and said.lower() == "true" for key, said in settings.items()):
            return "any"
        given = {name.lower(): str(value).lower() for name, value in options.spark_options.items()}
        return "new" if given.get("mergeschema") == "true" else "same"

    def takes_over(self) -> OptionChange:
        """A table of files has a log of micro-batches, from the first one on."""
        form = self._form
        if form and form not in _FILES:
            return OptionChange("from_now_on")
        where = "" if form else "it may be a table of files, as new ones are by default: "
        hint = "Give the target another id, so that it begins anew."
        return OptionChange(
            "refused",
            f"{where}the log of its files begins in the middle, and Spark fails in the first micro-batch",
            hint if form else f"{hint} If it is one of another kind, such as Delta, accept the change.",
        )

    def change(self, option: str, before: Any) -> OptionChange | None:
        """Another table gets what comes from now on, unless it is one of files."""
        given = self.options.merge
        if option == "merge" and given is not None and isinstance(before, dict):
            return given.change(before)
        if option == "merge":
            return merged_or_added(given)
        if option == "catalog" and self.options.catalog is not None and isinstance(before, dict):
            changed = self.options.catalog.change(before)
            if changed.effect == "continues":
                return changed
        if option == "path":
            return OptionChange("continues", "the table that is there keeps its files where they are")
        if option in {"table", "catalog"}:
            taken = self.takes_over()
            if taken.effect != "from_now_on":
                return taken
            return OptionChange("from_now_on", "the new table gets what comes from now on, the old one stays")
        if option == "partition_by" and (self.options.format or "").lower() in _FILES:
            return OptionChange(
                "mixed",
                "the table that is there keeps its partitions, and finds files by others in the wrong places",
                "Write into another table, or put it back.",
            )
        if option in {"format", "partition_by"}:
            return OptionChange("refused", "the table that is there has its format and partitions already")
        if option == "spark_options":
            return change_of(before, self.options.spark_options, self._form)
        return None

    @property
    def _form(self) -> str:
        """The format in small letters, where it is named."""
        return "iceberg" if self.options.catalog is not None else (self.options.format or "").lower()

    def jars(self) -> tuple[str, ...]:
        """Those of the catalog."""
        return () if self.options.catalog is None else self.options.catalog.jars()

    def jar_classes(self) -> tuple[str, ...]:
        """Those of the catalog."""
        return () if self.options.catalog is None else self.options.catalog.jar_classes()

    def session_settings(self) -> "Mapping[str, str]":
        """The catalog."""
        options = self.options
        return {} if options.catalog is None else options.catalog.spark_settings(options.table)

    def connect(self) -> "Iterator[Finding]":
        """Whether the catalog answers."""
        if self.options.catalog is not None:
            yield from self.options.catalog.knock()

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The columns of partitions and of a merge exist; the save mode is for batches; there is an Iceberg
        for the pipeline's Spark.
        """
        (facts,) = inputs
        self._streaming = facts.streaming
        if self.options.catalog is not None:
            yield missing_iceberg()
        if self.options.merge is not None:
            from gem_table.lacking import check_lacking

            yield from self.options.merge.check(facts, None)
            yield from check_lacking(self.options.merge, facts)
        written = facts if self.options.merge is None else self.options.merge.written(facts)
        yield from missing_names(self.options.partition_by, written, "partition_by")
        if facts.streaming and "save_mode" in self.options.model_fields_set:
            message = "`save_mode` has no effect: it is for batches"
            yield Finding("GB207", message, "Remove it.", "save_mode", "warning")

    def write(self, df: "DataFrame", context: WriteContext) -> None:
        """Add the rows to the table, replace what is there, or merge.

        Raises:
            GemError: GB207 when save mode and output mode contradict each other, GB510 when the
                catalog has no such schema, GB511 when the table is there and the save mode is `error`; with
                `merge` as `write_batch`.
        """
        if self.options.merge is None:
            self._add(df, context)
            return
        if context.output_mode == "complete":
            message = "the output mode `complete` replaces all rows, and `merge` changes some"
            raise GemError("GB207", message, "Remove one of the two.", "merge")
        self._change(df, None, context)

    def _add(self, df: "DataFrame", context: WriteContext) -> None:
        from pyspark.errors import AnalysisException

        options = self.options
        writer = df.write.mode(self._save_mode(context)).options(**options.to_spark())
        found = self._format(df.sparkSession)
        writer = (writer.format(found) if found else writer).partitionBy(*options.partition_by)
        try:
            writer.saveAsTable(options.table)
        except AnalysisException as error:
            if error.getCondition() == "SCHEMA_NOT_FOUND":
                raise self._no_schema() from error
            if error.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS":
                message = f"the table `{options.table}` exists already, and `save_mode` is `error`"
                hint = "Remove it, or choose `append`, `overwrite` or `ignore`."
                raise GemError("GB511", message, hint, "save_mode") from error
            raise

    def write_stream(self, df: "DataFrame", context: WriteContext) -> "DataStreamWriter":
        """A writer in the table's format, or one that merges each micro-batch.

        Raises:
            GemError: GB310 when the table is one of files and the output mode isn't append.
        """
        options = self.options
        if options.merge is not None:
            self._make(df, options.merge, context)
            return super().write_stream(df, context)
        writer = df.writeStream.options(**options.to_spark())
        found = self._format(df.sparkSession)
        if found in _FILES and context.output_mode != "append":
            message = f"`{options.table}` is a table of {found} files, and those can only be appended to"
            raise GemError("GB310", message, "Write into a Delta table for `complete`.", "format")
        return (writer.format(found) if found else writer).partitionBy(*options.partition_by)

    def write_batch(self, df: "DataFrame", batch_id: int, context: WriteContext) -> None:
        """Merge a micro-batch, unless the table has it.

        Raises:
            GemError: GB508 when it can't be told whose micro-batch it is; else as `Merging.write`.
        """
        if self.options.merge is None:
            super().write_batch(df, batch_id, context)
            return
        if not context.query:
            raise GemError(
                "GB508",
                "it can't be told which query's micro-batch this is, and so whether the table has it",
                "Start the query under the name that its context has.",
            )
        self._change(df, (context.query, batch_id), context)

    def _change(self, df: "DataFrame", micro_batch: tuple[str, int] | None, context: WriteContext) -> None:
        """Merge rows into the table, which is made before the first of a run."""
        assert self.options.merge is not None
        if self._merging is None:
            from gem_table.merging import Merging

            self._make(df, self.options.merge, context)
            self._merging = Merging(self.options.merge, self.options.table)
        self._merging.write(df, micro_batch)

    def _make(self, df: "DataFrame", merge: MergeOptions, context: WriteContext) -> None:
        """Make the table where it isn't there, without rows."""
        spark = df.sparkSession
        if not spark.catalog.tableExists(self.options.table):
            from gem_bundle.merging import schema_of

            self._add(spark.createDataFrame([], schema_of(merge, df)), context)

    def start(self, writer: "DataStreamWriter") -> "StreamingQuery":
        """Start into the table; it is created if it isn't there.

        Raises:
            GemError: GB510 when the catalog has no such schema.
        """
        from pyspark.errors import AnalysisException

        if self.options.merge is not None:
            return writer.start()
        try:
            return writer.toTable(self.options.table)
        except AnalysisException as error:
            if error.getCondition() == "SCHEMA_NOT_FOUND":
                raise self._no_schema() from error
            raise

    def _format(self, spark: "SparkSession") -> str | None:
        """The format that was asked for, else the one that the table has; None for Spark's default.

        Spark's writers compare the format they were given, or their default, with the table's, and
        refuse the table when they differ.
        """
        if self.options.catalog is not None:
            return "iceberg"
        if self.options.format is not None or not spark.catalog.tableExists(self.options.table):
            return self.options.format
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {self.options.table}").collect()
        found = [row["data_type"] for row in rows if row["col_name"] == "Provider"]
        return found[0].lower() if found else None

    def _no_schema(self) -> GemError:
        message = f"there is no schema for the table `{self.options.table}`"
        return GemError("GB510", message, "Create it, or correct the name.", "table")

    def _save_mode(self, context: WriteContext) -> SaveMode:
        given = self.options.save_mode
        if context.output_mode != "complete":
            return given or "append"
        if given not in {None, "overwrite"}:
            message = f"`save_mode: {given}` contradicts the output mode `complete`, which overwrites"
            raise GemError("GB207", message, "Remove one of the two.", "save_mode")
        return "overwrite"
