"""The source `file`: files of a folder."""

from __future__ import annotations

import copy
import re
from fnmatch import fnmatchcase
from glob import glob
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator

from gem_bundle import (
    Facts,
    Field,
    Finding,
    GemError,
    ReadContext,
    Source,
    SourceSemantics,
    StreamReadContext,
)
from gem_bundle.schema import columns_of, quoted
from gem_bundle.types import ByteSize, DataPath, FixedDuration, Schema, is_remote, local_path
from gem_file.formats import AVRO_JAR, RawOptions
from gem_file.reading import ReadingOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

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
_BATCH_ONLY = ("modified_before", "modified_after")


class FileSourceOptions(ReadingOptions):
    """Options of the source `file`, from the guide's *Input sources*."""

    path: DataPath = Field(
        passed=False,
        description="The folder, or a glob of folders or files. Files must appear there complete, by a "
        "move.",
        examples=["data/clicks", "s3a://bucket/clicks/*/"],
    )
    schema: Schema | None = Field(  # type: ignore[assignment]
        None,
        passed=False,
        description="The columns of the rows, all of them. A stream needs it, or `infer_schema`. Columns "
        "that come from names of folders (`day=2024-01-31`) stand last: Spark takes values by position "
        "when such a folder appears while a query runs.",
        examples=["page string, at timestamp"],
    )
    infer_schema: bool = Field(
        False,
        passed=False,
        description="Let Spark find the columns in the files that are there when the run starts; for "
        "csv, without it, a batch has text columns.",
    )
    max_files_per_trigger: int | None = Field(
        None, gt=0, description="The most new files a micro-batch takes (default: all)."
    )
    max_bytes_per_trigger: ByteSize | None = Field(
        None,
        gt=0,
        since="4.0",
        description="The most bytes of new files a micro-batch takes, about (default: all).",
        examples=["512m"],
    )
    latest_first: bool | None = Field(
        None, description="Whether to take the newest files first, for a large backlog."
    )
    max_file_age: FixedDuration | None = Field(
        None,
        description="Ignore files that are older than the newest one by more than this (default: 1 "
        "week). All files count in the first micro-batch.",
        examples=["2 days"],
    )
    file_name_only: bool | None = Field(
        None, description="Whether files of the same name in different folders are the same file."
    )
    clean_source: Literal["off", "archive", "delete"] | None = Field(
        None,
        description="What to do with files that have been read (default: `off`). Best effort, and for "
        "a folder that nothing else reads.",
    )
    source_archive_dir: DataPath | None = Field(
        None, description="Where `clean_source: archive` moves files; outside of what `path` matches."
    )
    max_cached_files: int | None = Field(
        None, ge=0, advanced=True, description="The most listed files kept for later micro-batches."
    )
    discard_cached_input_ratio: float | None = Field(
        None,
        ge=0,
        le=1,
        advanced=True,
        description="List the folder again when fewer than this share of a micro-batch's files are left.",
    )
    spark_options: RawOptions = Field(
        {}, advanced=True, description="Further options of Spark's reader, passed on as they are."
    )

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.schema is not None and self.infer_schema:
            raise ValueError("give `schema` or `infer_schema`, not both")
        if self.max_files_per_trigger is not None and self.max_bytes_per_trigger is not None:
            raise ValueError("give `max_files_per_trigger` or `max_bytes_per_trigger`, not both")
        if self.clean_source == "archive" and self.source_archive_dir is None:
            raise ValueError("`clean_source: archive` needs `source_archive_dir`")
        if self.source_archive_dir is not None:
            if self.clean_source != "archive":
                raise ValueError("`source_archive_dir` is for `clean_source: archive`")
            if archive_is_read_again(self.path, self.source_archive_dir):
                raise ValueError(
                    f"archived files in `{self.source_archive_dir}` would be read again as part of "
                    f"`{self.path}`; move them out of what the path matches"
                )
        return self


class FileSource(Source[FileSourceOptions]):
    """Read files of a folder: csv, json, parquet, orc, text or avro.

    With a `schema` the rows have exactly its columns. Columns that Spark would add, because folders
    are called `day=2024-01-31`, are there when the schema names them.
    """

    semantics = SourceSemantics(
        condition="The files stay where they are, unchanged, until the micro-batch that reads them is "
        "committed.",
    )
    example: ClassVar = {"format": "json", "path": "data/clicks", "schema": "page string, at timestamp"}

    # TODO-free: set by the runtime
    streaming: bool | None = None
