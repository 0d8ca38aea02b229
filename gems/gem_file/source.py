"""The source `file`: files of a folder."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from zoneinfo import ZoneInfo

from gem_bundle import (
    ORIGIN,
    Column,
    Facts,
    Finding,
    GemError,
    OptionChange,
    PartRead,
    ReadContext,
    Rejects,
    Source,
    SourcePart,
    SourceSemantics,
    StreamReadContext,
    analysed,
)
from gem_bundle.rejected import accepted_rows
from gem_bundle.schema import columns_of, fields_of, quoted, schema_of
from gem_bundle.types import local_path
from gem_file.formats import AVRO_CLASS, AVRO_JAR
from gem_file.paths import has_wildcards, is_missing
from gem_file.reading import FileSourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, DataFrameReader
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

    from gem_bundle import Waiting, WaitingContext
    from gem_file.backfill import Files
    from gem_file.waiting import FilesThatWait

_TEXT_SCHEMA = "value string"
_STREAM_ONLY = (
    "max_files_per_trigger",
    "max_bytes_per_trigger",
    "latest_first",
    "max_file_age",
    "file_name_only",
    "clean_source",
    "source_archive_dir",
    "max_cached_files",
    "discard_cached_input_ratio",
)
# Those of ORC have, in files of old Hives, nothing but a place.
_NAMED = frozenset({"avro", "json", "parquet"})
_BATCH_ONLY = ("modified_before", "modified_after")


class FileSource(Source[FileSourceOptions]):
    """Read files of a folder: csv, json, parquet, orc, text, avro or xml.

    With a `schema` the rows have exactly its columns. Columns that Spark would add, because folders
    are called `day=2024-01-31`, are there when the schema names them.

    With `rejects: true` records of csv, json and xml that don't parse go to the output `rejected`: broken
    ones, ones with values of another type or, in csv, with too few or too many, and where a column is `not
    null` ones without it. What Spark reads without a word is let through: what follows the first value of a
    line of json, or of a file of json with `multi_line`, is passed over, and a number too large for a double
    is infinite. A record of csv with more values than `max_columns` ends the query, as without `rejects`.

    In visual tools: Avro, CSV, FixedFormat, JSON, ORC, Parquet, Text, XML.
    """

    semantics = SourceSemantics(
        condition="Files stay where they are, unchanged, until the micro-batch that reads them is committed.",
        lag=frozenset({"files", "time"}),
    )
    example = {"format": "json", "path": "data/clicks", "schema": "page string, at timestamp"}

    def __init__(self, options: FileSourceOptions) -> None:
        super().__init__(options)
        if options.latest_first:
            self.semantics = replace(self.semantics, newest_first="latest_first")

        if local_path(options.path) is None:
            self.semantics = replace(self.semantics, lag=frozenset())
        self._waiting: FilesThatWait | None = None

    def waiting(self, context: "WaitingContext") -> "Waiting | None":
        """The files at a path on this machine that Spark's log doesn't name."""
        from gem_bundle import Waiting
        from gem_file.waiting import FilesThatWait

        if self._waiting is None:
            self._waiting = FilesThatWait(self.options)
        found = self._waiting.count(context)
        return None if found is None else Waiting(self.options.path, found[0], "files", found[1])

    def places(self) -> dict[str, list[str]]:
        """The folder, with those below it where they are read too."""
        below = "/**" if self.options.recursive_file_lookup else ""
        return {"path": [self.options.path + below]}

    def jars(self) -> tuple[str, ...]:
        """Avro is no part of Spark's own distribution."""
        return (AVRO_JAR,) if self.options.format == "avro" else ()

    def jar_classes(self) -> tuple[str, ...]:
        """What Spark knows its Avro by."""
        return (AVRO_CLASS,) if self.options.format == "avro" else ()

    def read(self, context: ReadContext) -> "DataFrame":
        """The rows of all files that are there now.

        Raises:
            GemError: GB505 when nothing is at the path, GB205 when Spark can't read the schema.
        """
        self._refuse(streaming=False)
        declared = self._declared()
        if declared is not None and self.options.rejects:
            from gem_file.records import reading_options, with_record

            reader = context.reader.options(**reading_options(self._batch_options()))
            return _divided(self._load(reader, with_record(declared)), declared, whole=context.undivided)
        df = self._load(context.reader.options(**self._batch_options()), declared)
        return df if declared is None else _exactly(df, declared)

    def read_stream(self, context: StreamReadContext) -> "DataFrame":
        """The rows of the files that are there, then of those that appear.

        Raises:
            GemError: GB206 without a schema, GB312 for options that only a batch has, GB505 when
                nothing is at the path, GB205 when the schema can't be used.
        """
        self._refuse(streaming=True)
        reader = context.reader.options(**self._options())
        declared = self._declared()
        if declared is not None and self.options.rejects:
            from gem_file.records import reading_options, with_record

            reader = reader.options(**reading_options(self._options()))
            df = self._load(reader, with_record(declared))
            self._refuse_misplaced(df, declared)
            return _divided(df, declared, whole=context.undivided)
        if declared is None:
            found = self._load(context.spark.read.options(**self._batch_options()))
            return self._load(reader, found.schema)
        df = self._load(reader, declared)
        self._refuse_misplaced(df, declared)
        return _exactly(df, declared)

    def rejects(self) -> bool:
        """Whether that is asked for."""
        return self.options.rejects

    def rejected(self, rows: "DataFrame") -> "SparkColumn":
        """The records that don't parse."""
        from gem_file.records import is_rejected

        return is_rejected(rows, self._declared() or "")

    def reject(self, rows: "DataFrame") -> Rejects:
        """The records that don't parse, with the text where Spark has it."""
        from gem_file.records import rejects

        return rejects(rows, self.options, self._declared() or "")

    def infer(self) -> Facts:
        """The columns of the schema, if there is one."""
        declared = self._declared()
        return Facts(columns=columns_of(declared) if declared else None, qualifiers=frozenset())

    def check(self, *inputs: Facts) -> "Iterator[Finding]":  # noqa: ARG002 (a source has none)
        """What a stream needs, and what only a stream or only a batch knows."""
        if self.streaming is not None:
            yield from self._findings(streaming=self.streaming)

    def connect(self) -> "Iterator[Finding]":
        """Look whether anything is at a local path, and at an Avro schema; other places are left to Spark."""
        if is_missing(self.options.path):
            yield Finding("GB505", *self._missing(), option="path")
        if self.options.avro_schema_url is not None:
            from gem_file.avro_schema import url_findings

            yield from url_findings(self.options, gives_columns=self._takes_columns_of_avro())

    def discover(self) -> "tuple[Column, ...] | None":
        """The columns of files at a local path, as far as it is certain that Spark finds the same."""
        from gem_file.discovery import find_columns

        return find_columns(self.options)

    def for_preview(self) -> Self:
        """The same files, one a micro-batch, and none of them archived or deleted."""
        changes = {
            "clean_source": None,
            "source_archive_dir": None,
            "max_bytes_per_trigger": None,
            "max_files_per_trigger": 1,
        }
        clone = copy.copy(self)
        clone.options = self.options.model_copy(update=changes)
        return clone

    def change(self, option: str, before: Any) -> OptionChange | None:
        """Which files are read: the checkpoint keeps the whole paths of those that were."""
        if option == "schema" and self._is_in_another_order(before):
            return OptionChange("from_now_on", "its columns are found by their names", only_order=True)
        from gem_file.changes import change_of_files

        return change_of_files(self.options, option, before)

    def for_backfill(self, part: SourcePart) -> PartRead | None:
        """All files, or those that a stream has read; by a margin those that came in the meantime.

        Raises:
            GemError: GB453 when files that a stream has read are archived or deleted.
        """
        from gem_file.backfill import files_of

        files = files_of(self.options, part)
        return PartRead(_Some(self.options, files), str(files))

    def _is_in_another_order(self, before: Any) -> bool:
        """Whether the columns are those of another schema, in files whose values have names."""
        options = self.options
        if options.format not in _NAMED or options.spark_options or not isinstance(before, str):
            return False
        old, new = fields_of(before), fields_of(options.schema or "")
        if not old or not new:
            return False
        return sorted(old, key=lambda field: field.name) == sorted(new, key=lambda field: field.name)

    def _declared(self) -> str | None:
        if self.options.format == "text" and not self.options.infer_schema:
            return self.options.schema or _TEXT_SCHEMA
        return self.options.schema

    def _options(self) -> dict[str, str]:
        options = self.options.to_spark()
        if self.options.format == "xml":
            # The other parser ends the query at an attribute that doesn't fit, whatever `mode` is, and
            # takes the rest of a file for damaged where a row is.
            options.setdefault("useLegacyXMLParser", "true")
        return options

    def _batch_options(self) -> dict[str, str]:
        options = self._options()
        if self.options.infer_schema and self.options.format == "csv":
            options["inferSchema"] = "true"
        return options

    def _load(
        self, reader: "DataFrameReader | DataStreamReader", schema: "str | StructType | None" = None
    ) -> "DataFrame":
        from pyspark.errors import AnalysisException, ParseException

        reader = reader.format(self.options.format)
        try:
            given = reader if schema is None else reader.schema(schema)
            return analysed(given.load(self._paths()))  # type: ignore[arg-type]
        except ParseException as error:
            message = f"Spark can't read the schema `{schema}`"
            raise GemError("GB205", message, "Write columns as `name type`.", "schema") from error
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                raise GemError("GB505", *self._missing(), "path") from error
            if error.getCondition() == "UNABLE_TO_INFER_SCHEMA":
                message = f"there is no file at `{self.options.path}` to take the columns from"
                raise GemError("GB505", message, "Declare them with `schema`.", "path") from error
            raise

    def _paths(self) -> str | list[str]:
        """What Spark is given to load."""
        return self.options.path

    def _refuse(self, *, streaming: bool) -> None:
        for finding in self._findings(streaming=streaming):
            if finding.severity == "error":
                raise GemError(finding.code, finding.message, finding.hint, finding.option)
        if is_missing(self.options.path):
            raise GemError("GB505", *self._missing(), "path")

    def _refuse_misplaced(self, df: "DataFrame", declared: str) -> None:
        """Refuse columns of folder names before others: Spark would give each the other's values.

        That happens when the first such folder appears while the query runs, so it must not depend
        on what is there now.
        """
        columns = list(columns_of(declared) or ())
        position = {name.lower(): index for index, name in enumerate(df.columns)}
        placed = sorted(columns, key=lambda column: position.get(column.name.lower(), -1))
        if placed != columns:
            raise GemError(
                "GB205",
                "columns that come from names of folders must stand last in the schema",
                f"Write `schema: {schema_of(placed)}`.",
                "schema",
            )

    def _missing(self) -> tuple[str, str]:
        return (
            f"nothing is at `{self.options.path}`",
            "Create it, or correct the path; relative paths are relative to the pipeline file.",
        )

    def _findings(self, *, streaming: bool) -> "Iterator[Finding]":
        options = self.options
        given = options.model_fields_set
        if streaming and not options.infer_schema and self._declared() is None:
            yield Finding(
                "GB206",
                "a stream of files needs the option `schema`: Spark doesn't look into files beforehand",
                "Declare the columns, or write `infer_schema: true` to take those of the files that are "
                "there when the run starts.",
            )
        yield from self._check_avro()
        for name in _BATCH_ONLY if streaming else ():
            if name in given:
                message = f"`{name}` can't be used for a stream"
                yield Finding("GB312", message, "Remove it, or read with `mode: batch`.", name)
        for name in () if streaming else _STREAM_ONLY:
            if name in given:
                message = f"`{name}` has no effect: the files are read as a batch"
                yield Finding("GB207", message, "Remove it.", name, "warning")
        limits = {"max_files_per_trigger", "max_bytes_per_trigger"} & given
        if streaming and options.latest_first and limits and "max_file_age" in given:
            message = f"Spark ignores `max_file_age` with `latest_first` and `{limits.pop()}`"
            yield Finding("GB207", message, "Remove it.", "max_file_age", "warning")

    def _check_avro(self) -> "Iterator[Finding]":
        """Spark has types for the Avro schema, where the columns are taken from it."""
        schema = self.options.avro_schema
        if schema is None or not self._takes_columns_of_avro():
            return
        from gem_file.avro_schema import columns_problem

        error = columns_problem(schema)
        if error is not None:
            hint = error.hint or "Declare the columns with `schema`."
            yield Finding("GB205", f"of `avro_schema` Spark makes no columns: {error}", hint, "avro_schema")

    def _takes_columns_of_avro(self) -> bool:
        # With a depth, Spark takes records that hold themselves.
        return self.options.schema is None and not (self.options.recursive_field_max_depth or 0) > 0


class _Some(FileSource):
    """Some of the files, read as a batch.

    Args:
        options: The options of the source.
        files: Which ones.
    """

    def __init__(self, options: FileSourceOptions, files: "Files") -> None:
        super().__init__(options)
        self.streaming = False
        self._files = files

    def read(self, context: ReadContext) -> "DataFrame":
        zone = self.options.time_zone or str(context.spark.conf.get("spark.sql.session.timeZone"))
        self.options = self.options.model_copy(update=self._files.modified(ZoneInfo(zone)))
        declared = self._declared()
        if self._files.paths == () and declared is not None:
            if context.undivided:
                from gem_file.records import with_record

                declared = f"{with_record(declared)}, {ORIGIN} map<string, string>"
            return context.spark.createDataFrame([], declared)
        df = super().read(context)
        return df.limit(0) if self._files.paths == () else df

    def _paths(self) -> str | list[str]:
        return list(self._files.paths) if self._files.paths else self.options.path

    def _batch_options(self) -> dict[str, str]:
        options = super()._batch_options()
        path = self.options.path
        local = local_path(path)
        alone = has_wildcards(path) or (local is not None and Path(local).is_file())
        if self._files.paths and not alone and not self.options.recursive_file_lookup:
            # Else names of folders, `day=2024-01-31`, are no columns of single files.
            options.setdefault("basePath", path)
        return options


def _divided(df: "DataFrame", declared: str, *, whole: bool) -> "DataFrame":
    """All rows, or those that aren't rejected."""
    from gem_file.records import is_rejected, undivided

    rows = undivided(df, declared)
    return rows if whole else accepted_rows(rows, is_rejected(rows, declared))


def _exactly(df: "DataFrame", declared: str) -> "DataFrame":
    """The declared columns in their order; Spark appends those of folder names it discovers."""
    columns = columns_of(declared)
    if columns is None or [column.name for column in columns] == df.columns:
        return df
    return df.select(*(quoted(column.name) for column in columns))
