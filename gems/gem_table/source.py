"""The source `table`: a table of any catalog."""

from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from gem_bundle import (
    Facts,
    Field,
    Finding,
    GemError,
    OptionChange,
    Options,
    ReadContext,
    Source,
    SourceSemantics,
    StreamReadContext,
)
from gem_bundle.types import TableName
from gem_table.catalog import CatalogOptions, check_name, missing_iceberg

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame


class TableSourceOptions(Options):
    """Options of the source `table`, from the guide's *Table APIs*."""

    default_change = "from_now_on"

    table: TableName = Field(
        passed=False,
        description="The name of the table; a batch reads views too.",
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
    spark_options: dict[str, str | int | float | bool] = Field(
        {},
        description="Options of the table's own format, passed on as they are.",
        examples=[{"maxFilesPerTrigger": 10}],
    )

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.catalog is not None:
            check_name(self.table)
        return self


class TableSource(Source[TableSourceOptions]):
    """Read a table of a catalog: Hive, Iceberg, Unity Catalog, or Spark's own.

    Whether it can be a stream, and what a stream does with changed rows, is up to its format.
    For Delta tables the gem `delta` has all options.

    In visual tools: CatalogTable, Hive, Iceberg.
    """

    semantics = SourceSemantics(
        condition="The table's format keeps what was not read yet, as Delta and Iceberg do."
    )
    example = {"table": "main.web.clicks"}

    def places(self) -> dict[str, list[str]]:
        """The table."""
        return {"table": [f"table:{self.options.table}"]}

    def change(self, option: str, before: Any) -> OptionChange | None:
        """The checkpoint's offsets are those of the table."""
        if option == "catalog" and self.options.catalog is not None and isinstance(before, dict):
            return self.options.catalog.change(before)
        if option in {"table", "catalog"}:
            return OptionChange(
                "refused",
                "the offsets of the checkpoint are those of the other table",
                "Give the source another id, so that it is a new one.",
            )
        return None

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

    def check(self, *inputs: Facts) -> "Iterator[Finding]":  # noqa: ARG002 (a source has none)
        """There is an Iceberg for the pipeline's Spark."""
        if self.options.catalog is not None:
            yield missing_iceberg()

    def connect(self) -> "Iterator[Finding]":
        """Whether the catalog answers."""
        if self.options.catalog is not None:
            yield from self.options.catalog.knock()

    def read(self, context: ReadContext) -> "DataFrame":
        """The rows that are in the table now.

        Raises:
            GemError: GB510 when there is no such table.
        """
        return self._load(context)

    def read_stream(self, context: StreamReadContext) -> "DataFrame":
        """The rows of the table, then those that come.

        Raises:
            GemError: GB510 when there is no such table.
        """
        return self._load(context)

    def _load(self, context: "ReadContext | StreamReadContext") -> "DataFrame":
        from pyspark.errors import AnalysisException

        try:
            return context.table(self.options.table, self.options.to_spark())
        except AnalysisException as error:
            if error.getCondition() in {"TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"}:
                message = f"there is no table `{self.options.table}`"
                raise GemError("GB510", message, "Create it, or correct the name.", "table") from error
            raise
