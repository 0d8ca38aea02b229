"""The source `auto_loader`: files as Databricks' Auto Loader finds them."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle import (
    Column,
    Facts,
    Finding,
    GemError,
    OptionChange,
    Source,
    SourceSemantics,
    StreamReadContext,
    analysed,
)
from gem_bundle.schema import columns_of, quoted
from gem_file.cloud_reading import AutoLoaderOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

FORMAT = "cloudFiles"
# Their columns are always the same, so nothing is inferred and nothing has to be kept.
_FIXED = frozenset({"text", "binaryFile"})


class AutoLoaderSource(Source[AutoLoaderOptions]):
    """Read files of a folder with Auto Loader, which only Databricks has.

    It remembers every file that it has read, so files may be many and come late. With a `schema` the rows
    have exactly its columns, and the `rescued_data_column` after them. Elsewhere the gem `file` reads the
    same files with the same options of their format.

    In visual tools: AutoLoader.
    """

    semantics = SourceSemantics(
        batch=False,
        condition="Files stay where they are, unchanged, until the micro-batch that reads them is committed.",
    )
    example = {
        "format": "json",
        "path": "/Volumes/main/web/clicks",
        "schema_location": "/Volumes/main/web/schemas/clicks",
        "schema_hints": "at timestamp",
    }

    def __init__(self, options: AutoLoaderOptions) -> None:
        super().__init__(options)
        if options.include_existing_files is False:
            self.semantics = replace(self.semantics, only_new="include_existing_files")

    def places(self) -> dict[str, list[str]]:
        """The folder, with those below it, which Auto Loader reads too."""
        return {"path": [f"{self.options.path}/**"]}

    def change(self, option: str, before: Any) -> OptionChange | None:  # noqa: ARG002 (whatever it was)
        """A checkpoint knows the files that were read, whether they were there first or came."""
        if option == "include_existing_files":
            return OptionChange(
                "continues", "the checkpoint knows its files: this is read by a new checkpoint only"
            )
        return None

    def read_stream(self, context: StreamReadContext) -> "DataFrame":
        """The rows of the files that are there, then of those that appear.

        Raises:
            GemError: GB206 when the columns are known from nowhere, GB205 when Spark can't read the schema,
                GB503 where there is no Auto Loader, GB505 when nothing is at the path.
        """
        from pyspark.errors import ParseException

        for finding in self.check():
            raise GemError(finding.code, finding.message, finding.hint, finding.option)
        options = self.options
        reader = context.reader.format(FORMAT).options(**self._reader_options())
        try:
            if options.schema is not None:
                reader = reader.schema(options.schema)
            df = analysed(reader.load(options.path))
        except ParseException as error:
            message = f"Spark can't read the schema `{options.schema}`"
            raise GemError("GB205", message, "Write columns as `name type`.", "schema") from error
        except Exception as error:
            explained = _explained(error, options.path)
            if explained is None:
                raise
            raise explained from error
        columns = self._columns()
        return df if columns is None else df.select(*(quoted(column.name) for column in columns))

    def infer(self) -> Facts:
        """The columns of the schema, if there is one, and the rescued data."""
        return Facts(columns=self._columns(), qualifiers=frozenset())

    def check(self, *inputs: Facts) -> "Iterator[Finding]":  # noqa: ARG002 (a source has none)
        """Inferred columns have to be kept somewhere."""
        options = self.options
        if options.schema is None and options.schema_location is None and options.format not in _FIXED:
            yield Finding(
                "GB206",
                "Auto Loader needs the option `schema`, or `schema_location`: that is where it "
                "keeps the columns that it infers",
                "Declare the columns, or name a folder of this stream's own.",
            )

    def _columns(self) -> tuple[Column, ...] | None:
        options = self.options
        declared = columns_of(options.schema) if options.schema is not None else None
        if declared is None or options.rescued_data_column is None:
            return declared
        if options.rescued_data_column in {column.name for column in declared}:
            return declared
        return (*declared, Column(options.rescued_data_column, "string"))

    def _reader_options(self) -> dict[str, str]:
        tags = self.options.resource_tags or {}
        return {
            **{f"cloudFiles.resourceTag.{key}": value for key, value in tags.items()},
            **self.options.to_spark(),
        }


def _explained(error: Exception, path: str) -> GemError | None:
    """Why the stream can't be read, where that is known."""
    # PySpark has no exception of its own for a source that isn't there; Java's text comes as it is.
    said = str(error)
    if "[DATA_SOURCE_NOT_FOUND]" in said:
        return GemError(
            "GB503",
            "Auto Loader is part of Databricks, and this Spark hasn't got it",
            "Run the pipeline there; elsewhere read the files with the gem `file`, which has the same "
            "options of their format.",
        )
    if "[PATH_NOT_FOUND]" in said:
        return GemError(
            "GB505",
            f"nothing is at `{path}`",
            "Create it, or correct the path; relative paths are relative to the pipeline file.",
            "path",
        )
    return None
