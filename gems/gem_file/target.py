"""The target `file`: files in a folder."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import model_validator

from gem_bundle import (
    Column,
    Facts,
    Field,
    Finding,
    GemError,
    OptionChange,
    Target,
    TargetSemantics,
    WriteContext,
)
from gem_bundle.diagnostics import listed_names
from gem_bundle.expressions import missing_names
from gem_bundle.types import DataPath, FixedDuration, StringList, local_path
from gem_file.formats import (
    AVRO_CLASS,
    AVRO_JAR,
    FileOptions,
    RawOptions,
    avro,
    csv,
    json_only,
    xml,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

SaveMode = Literal["append", "overwrite", "error", "ignore"]
# What Spark 4.2 says it has (CODEC_NOT_AVAILABLE). Its text formats also take the class of a codec.
_TEXT_CODECS = ("none", "uncompressed", "bzip2", "gzip", "lz4", "snappy", "deflate")
_CODECS = {
    "csv": _TEXT_CODECS,
    "json": _TEXT_CODECS,
    "text": _TEXT_CODECS,
    "xml": _TEXT_CODECS,
    "parquet": ("none", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd"),
    "orc": ("none", "uncompressed", "snappy", "zlib", "lzo", "lz4", "zstd", "brotli"),
    "avro": ("uncompressed", "snappy", "deflate", "bzip2", "xz", "zstandard"),
}
_HALF_A_LOG = "the new folder's log begins in the middle, so Spark can't read what is written there"
_LOG_OF_ANOTHER_PLACE = (
    "the folder has a log already, which names its files by their whole paths: if it came from another "
    "place, Spark looks for them there and can't read what was written"
)
# The files of a folder's log, by the micro-batch that they end with.
_LOGGED = re.compile(r"(\d+)(?:\.compact)?")
# What a reader has to be told, for all files of a folder alike.
_TOLD_TO_READERS = frozenset(
    [
        *("header", "sep", "quote", "escape", "char_to_escape_quote_escaping", "null_value", "empty_value"),
        *("date_format", "timestamp_format", "timestamp_ntz_format", "time_format", "encoding", "line_sep"),
        *("row_tag", "attribute_prefix", "value_tag"),
    ]
)
_WITH_TYPES = frozenset({"parquet", "orc", "avro"})
_NESTED = ("array<", "map<", "struct<")
# XML 1.0, 2.3: what names begin with and are made of, as far as Spark's writer takes them.
_XML_NAME = re.compile(r"[^\W\d][\w.\-]*")


class FileTargetOptions(FileOptions):
    """Options of the target `file`, from the guide's *Output sinks* and the formats' own."""

    path: DataPath = Field(
        passed=False, description="The folder.", examples=["out/clicks", "s3a://bucket/clicks"], place=True
    )
    partition_by: StringList = Field(
        [],
        passed=False,
        description="Columns that become folders (`day=2024-01-31`) and leave the files.",
    )
    compression: str | None = Field(
        None,
        description="How files are compressed; the names depend on the format.",
        examples=["zstd"],
        change="continues",
    )
    max_records_per_file: int | None = Field(
        None,
        gt=0,
        description="Begin another file after this many rows (default: no limit).",
        change="continues",
    )
    save_mode: SaveMode | None = Field(
        None,
        passed=False,
        description="What a batch does with what is there; by default it follows the output mode: "
        "`append` adds to it, `complete` overwrites it.",
        change="continues",
    )
    partition_overwrite_mode: Literal["static", "dynamic"] | None = Field(
        None,
        description="Whether overwriting replaces all folders (`static`) or those with new rows.",
        change="continues",
    )
    retention: FixedDuration | None = Field(
        None,
        description="Forget files of a stream after this long: readers that follow Spark's log of the "
        "folder don't see them any more (default: never).",
        examples=["30 days"],
        change="continues",
    )

    escape_quotes: bool | None = csv("Whether values with quotes are quoted (default: true).")
    quote_all: bool | None = csv("Whether all values are quoted.")
    extension: str | None = csv("The extension of the files (default: csv).", since="4.0", advanced=True)
    ignore_null_fields: bool | None = json_only("Whether null columns are left out (default: true).")
    write_non_ascii_character_as_code_point: bool | None = json_only(
        "Whether to write other characters than ASCII as `\\u` sequences.", since="4.0", advanced=True
    )
    record_name: str | None = avro("The name of the record in the Avro schema.", advanced=True)
    record_namespace: str | None = avro("The namespace of the record.", advanced=True)
    root_tag: str | None = xml("The element around the rows of a file (default: `ROWS`).", examples=["books"])
    declaration: str | None = xml(
        "What stands in the file's declaration; an empty text leaves it out.", advanced=True
    )
    array_element_name: str | None = xml(
        "The element of an array within an array (default: `item`).", advanced=True
    )
    spark_options: RawOptions = Field(
        {}, advanced=True, description="Further options of Spark's writer, passed on as they are."
    )

    @model_validator(mode="after")
    def _codec_of_the_format(self) -> Self:
        codec = self.compression
        codecs = _CODECS[self.format]
        if codec is None or codec.lower() in codecs or (codecs is _TEXT_CODECS and "." in codec):
            return self
        raise ValueError(
            f"`compression: {codec}` is none of {self.format}'s: {', '.join(f'`{c}`' for c in codecs)}"
        )


class FileTarget(Target[FileTargetOptions]):
    """Write files into a folder: csv, json, parquet, orc, text, avro or xml.

    A stream only appends; what each micro-batch wrote stands in the folder's log (`_spark_metadata`).

    In visual tools: Avro, CSV, FixedFormat, JSON, ORC, Parquet, Text, XML.
    """

    semantics = TargetSemantics(
        output_modes=frozenset({"append"}),
        delivery="exactly_once",
        condition="Read the folder with Spark: it follows the log in `_spark_metadata` and passes over "
        "files of micro-batches that never ended.",
        shared="loses_rows",
    )
    example = {"format": "parquet", "path": "out/clicks", "partition_by": ["day"]}

    def places(self) -> dict[str, list[str]]:
        """The folder."""
        return {"path": [self.options.path]}

    def jars(self) -> tuple[str, ...]:
        """Avro is no part of Spark's own distribution."""
        return (AVRO_JAR,) if self.options.format == "avro" else ()

    def jar_classes(self) -> tuple[str, ...]:
        """What Spark knows its Avro by."""
        return (AVRO_CLASS,) if self.options.format == "avro" else ()

    def connect(self) -> "Iterator[Finding]":
        """Look at the Avro schema that the files are to have; whether the rows fit is left to Spark."""
        if self.options.avro_schema_url is not None:
            from gem_file.avro_schema import url_findings

            yield from url_findings(self.options)

    def columns_by_place(self, columns: "Sequence[str]") -> "Sequence[str]":
        """Spark reads CSV by the places of columns, and goes by the header of one of the files if by any."""
        if self.options.format != "csv":
            return ()
        apart = {name.lower() for name in self.options.partition_by or ()}
        return [name for name in columns if name.lower() not in apart]

    def columns_by_type(self, columns: "Sequence[str]") -> "Sequence[str]":
        """A file of Parquet, ORC or Avro has its types in it; names of folders are text."""
        if self.options.format not in _WITH_TYPES:
            return ()
        apart = {name.lower() for name in self.options.partition_by or ()}
        return [name for name in columns if name.lower() not in apart]

    def begins_anew(self) -> OptionChange | None:
        """The folder's log knows micro-batches by their number, whoever wrote them."""
        written = self._logged()
        if not written:
            return None
        return OptionChange(
            "skipped",
            f"the folder's log `_spark_metadata` has micro-batches up to {max(written)}, and Spark passes "
            "over those of a new checkpoint with the same numbers: their rows are never written",
            "Write into another folder, or move this one away.",
        )

    def _logged(self) -> list[int]:
        """The micro-batches that the folder's log has, as far as that can be seen."""
        path = local_path(self.options.path)
        try:
            log = [] if path is None else (Path(path) / "_spark_metadata").iterdir()
            return [int(match[1]) for file in log if (match := _LOGGED.fullmatch(file.name))]
        except OSError:
            return []

    def takes_over(self) -> OptionChange:
        """The folder has no log of the micro-batches before."""
        return OptionChange("mixed", _HALF_A_LOG, "Give the target another id, so that it begins anew.")

    def change(self, option: str, before: Any) -> OptionChange | None:  # noqa: ARG002 (whatever it was)
        """Another folder has no log of the micro-batches before, and one folder is of one kind of files."""
        if option == "path":
            hint = "Give the target another id, so that it begins anew, or keep the folder."
            why = _LOG_OF_ANOTHER_PLACE if self._logged() else _HALF_A_LOG
            return OptionChange("mixed", why, hint)
        if option in {"format", "partition_by"}:
            return OptionChange(
                "mixed",
                "the folder then has files of both kinds, which can't be read together",
                "Write to another folder, under another id.",
            )
        if option in _TOLD_TO_READERS:
            return OptionChange(
                "mixed",
                "the folder then has files that are written in two ways, and a reader is told one of them",
                "Write to another folder, under another id.",
            )
        return None

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The columns exist and the format can hold them; options are for a batch or for a stream."""
        (facts,) = inputs
        yield from missing_names(self.options.partition_by, facts, "partition_by")
        yield from self._check_types(facts)
        given = self.options.model_fields_set
        if facts.streaming and "save_mode" in given:
            message = "`save_mode` has no effect: a stream always appends"
            yield Finding("GB207", message, "Remove it.", "save_mode", "warning")
        if facts.streaming is False and "retention" in given:
            message = "`retention` has no effect: a batch keeps no log of its files"
            yield Finding("GB207", message, "Remove it.", "retention", "warning")

    def write(self, df: "DataFrame", context: WriteContext) -> None:
        """Add the rows to the folder, or replace what is there.

        Raises:
            GemError: GB207 when save mode and output mode contradict each other, GB511 when
                something is there and the save mode is `error`.
        """
        from pyspark.errors import AnalysisException

        options = self.options
        writer = df.write.format(options.format).mode(self._save_mode(context))
        writer = writer.options(**options.to_spark()).partitionBy(*options.partition_by)
        try:
            writer.save(options.path)
        except AnalysisException as error:
            if error.getCondition() == "PATH_ALREADY_EXISTS":
                message = f"`{options.path}` exists already, and `save_mode` is `error`"
                hint = "Remove it, or choose `append`, `overwrite` or `ignore`."
                raise GemError("GB511", message, hint, "save_mode") from error
            raise

    def write_stream(
        self,
        df: "DataFrame",
        context: WriteContext,  # noqa: ARG002 (a stream of files only appends)
    ) -> "DataStreamWriter":
        """A writer that adds files to the folder."""
        writer = df.writeStream.format(self.options.format).options(**self.options.to_spark())
        return writer.option("path", self.options.path).partitionBy(*self.options.partition_by)

    def _save_mode(self, context: WriteContext) -> SaveMode:
        given = self.options.save_mode
        if context.output_mode != "complete":
            return given or "append"
        if given not in {None, "overwrite"}:
            message = f"`save_mode: {given}` contradicts the output mode `complete`, which overwrites"
            raise GemError("GB207", message, "Remove one of the two.", "save_mode")
        return "overwrite"

    def _check_types(self, facts: Facts) -> "Iterator[Finding]":
        if facts.columns is None:
            return
        folders = {name.lower() for name in self.options.partition_by}
        columns = [column for column in facts.columns if column.name.lower() not in folders]
        if not columns and facts.streaming is False:
            yield Finding("GB205", "all columns are in `partition_by`; none is left", "", "partition_by")
        elif self.options.format == "text":
            if [column.type or "string" for column in columns] != ["string"]:
                names = listed_names(column.name for column in columns)
                message = f"text files take one column of type string, and here are {names or 'none'}"
                yield Finding("GB205", message, "Put it together with `select`.", "format")
        elif self.options.format == "csv":
            for column in columns:
                if column.type and column.type.startswith(_NESTED):
                    message = f"csv files can't hold `{column.name}`, a {column.type}"
                    yield Finding("GB205", message, "Select its parts, or write json.", "format")
        elif self.options.format == "xml":
            yield from self._check_xml(columns)

    def _check_xml(self, columns: "Iterable[Column]") -> "Iterator[Finding]":
        prefix = "_" if self.options.attribute_prefix is None else self.options.attribute_prefix
        for column in columns:
            attribute = bool(prefix) and column.name.startswith(prefix)
            name = column.name[len(prefix) :] if attribute else column.name
            if not _XML_NAME.fullmatch(name):
                kind = "attribute" if attribute else "element"
                message = f"`{column.name}` can't be written: `{name}` is no name of an {kind}"
                yield Finding("GB205", message, "Rename it before this target.", "format")
            if column.type and column.type.startswith("interval"):
                message = f"xml files can't hold `{column.name}`, an {column.type}"
                yield Finding("GB205", message, "Cast it to `string`, or write json.", "format")
            if column.type == "binary":
                message = f"`{column.name}` is written as a list of numbers, which isn't read as binary again"
                yield Finding("GB205", message, "Write `base64` of it.", "format", "warning")
