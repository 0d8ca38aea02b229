"""The options of the source `file`, and of the formats' readers (SQL guide: *Data Source Option* of each)."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, model_validator

from gem_bundle import Field
from gem_bundle.schema import columns_of
from gem_bundle.types import ByteSize, DataPath, FixedDuration, ReadSchema, Timestamp
from gem_file.formats import (
    WHY_NOT,
    FileOptions,
    RawOptions,
    RebaseMode,
    avro,
    csv,
    csv_json,
    csv_json_xml,
    format_option,
    json_only,
    xml,
)
from gem_file.paths import archive_is_read_again

ParseMode = Annotated[
    Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"],
    BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value),
]
QuoteHandling = Literal[
    "STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR"
]


class ReadingOptions(FileOptions):
    """Which files are read, and how their formats are."""

    path_glob_filter: str | None = Field(
        None, description="Read only files whose name matches this glob.", examples=["*.csv"]
    )
    recursive_file_lookup: bool | None = Field(
        None,
        description="Whether to read all folders below; names of folders are then no columns.",
    )
    base_path: DataPath | None = Field(
        None,
        advanced=True,
        description="The folder below which names of folders (`day=2024-01-31`) are columns.",
    )
    modified_before: Timestamp | None = Field(
        None, description="Read only files last changed before this time. Not for streams."
    )
    modified_after: Timestamp | None = Field(
        None, description="Read only files last changed after this time. Not for streams."
    )
    ignore_missing_files: bool | None = Field(
        None,
        description="Whether to go on when a file vanishes between listing and reading.",
        change="continues",
    )
    ignore_corrupt_files: bool | None = Field(
        None, description="Whether to pass over files that can't be read.", change="continues"
    )

    mode: ParseMode | None = csv_json_xml(
        "What to do with a record that doesn't fit: `PERMISSIVE` makes its values null (default), "
        "`DROPMALFORMED` drops it, `FAILFAST` fails the query."
    )
    column_name_of_corrupt_record: str | None = csv_json_xml(
        "A text column of `schema` that gets records that don't fit."
    )
    multi_line: bool | None = csv_json("Whether a record may span lines.")
    sampling_ratio: float | None = csv_json_xml(
        "The share of records that the schema is inferred from.", gt=0, le=1, advanced=True
    )
    enable_date_time_parsing_fallback: bool | None = csv_json(
        "Whether to try Spark 1's and 2's way of reading dates when the pattern fails.", advanced=True
    )
    single_variant_column: str | None = csv_json_xml(
        "Read each record into one variant column of this name.", since="4.0", advanced=True
    )

    comment: str | None = csv("Skip lines that begin with this character.", max_length=1)
    enforce_schema: bool | None = csv(
        "Whether columns go by position (default), or must have the header's names."
    )
    prefer_date: bool | None = format_option(
        "csv xml", "Whether to infer dates and not only timestamps.", advanced=True
    )
    nan_value: str | None = csv("The text that stands for not-a-number.", advanced=True)
    positive_inf: str | None = csv("The text that stands for infinity.", advanced=True)
    negative_inf: str | None = csv("The text that stands for minus infinity.", advanced=True)
    max_columns: int | None = csv("The most columns a record may have.", gt=0, advanced=True)
    max_chars_per_column: int | None = csv(
        "The most characters a value may have; -1 for any number.", ge=-1, advanced=True
    )
    unescaped_quote_handling: QuoteHandling | None = csv(
        "What to do with a quote that isn't escaped.", advanced=True
    )
    input_buffer_size: int | None = csv("The parser's buffer, in characters.", gt=0, advanced=True)
    column_pruning: bool | None = csv("Whether to parse only the columns that are used.", advanced=True)

    primitives_as_string: bool | None = json_only("Whether to infer all simple values as text.")
    prefers_decimal: bool | None = format_option("json xml", "Whether to infer decimals and not doubles.")
    infer_timestamp: bool | None = json_only("Whether to infer timestamps.", advanced=True)
    drop_field_if_all_null: bool | None = json_only(
        "Whether to leave columns that are always empty out when inferring.", advanced=True
    )
    allow_comments: bool | None = json_only("Whether to skip Java and C++ comments.", advanced=True)
    allow_unquoted_field_names: bool | None = json_only(
        "Whether names may stand without quotes.", advanced=True
    )
    allow_single_quotes: bool | None = json_only(
        "Whether single quotes are quotes too (default: true).", advanced=True
    )
    allow_numeric_leading_zeros: bool | None = json_only(
        "Whether numbers may begin with zeros.", advanced=True
    )
    allow_non_numeric_numbers: bool | None = json_only(
        "Whether NaN and Infinity are numbers (default: true).", advanced=True
    )
    allow_backslash_escaping_any_character: bool | None = json_only(
        "Whether a backslash may stand before any character.", advanced=True
    )
    allow_unquoted_control_chars: bool | None = json_only(
        "Whether texts may hold control characters.", advanced=True
    )

    exclude_attribute: bool | None = xml("Whether to leave attributes out.")
    ignore_surrounding_spaces: bool | None = xml("Whether to drop white space around values (default: true).")
    row_validation_xsd_path: DataPath | None = xml(
        "An XSD file; rows that it refuses count as damaged.", spark="rowValidationXSDPath", advanced=True
    )
    ignore_namespace: bool | None = xml("Whether to drop the prefixes of namespaces.", advanced=True)
    wildcard_col_name: str | None = xml(
        "The column that gets elements which no column is for (default: `xs_any`).", advanced=True
    )

    wholetext: bool | None = format_option("text", "Whether a file is one row, and not each line.")
    merge_schema: bool | None = format_option(
        "parquet orc", "Whether to merge the schemas of all files when inferring."
    )
    datetime_rebase_mode: RebaseMode | None = format_option(
        "parquet avro", "How to read dates and times from before the Gregorian calendar.", advanced=True
    )
    int96_rebase_mode: RebaseMode | None = format_option(
        "parquet",
        "How to read INT96 timestamps from before the Gregorian calendar.",
        spark="int96RebaseMode",
        advanced=True,
    )
    enable_stable_identifiers_for_union_type: bool | None = avro(
        "Whether fields of a union are named after their types and not numbered.", advanced=True
    )
    stable_identifier_prefix_for_union_type: str | None = avro(
        "What the names of a union's fields begin with.", advanced=True
    )
    recursive_field_max_depth: int | None = avro(
        "How deep a recursive schema is followed; -1 refuses one.", ge=-1, le=15, advanced=True
    )


class FileSourceOptions(ReadingOptions):
    """Options of the source `file`, from the guide's *Input sources*."""

    path: DataPath = Field(
        passed=False,
        description="The folder, or a glob of folders or files. Files must appear there complete, by a move.",
        examples=["data/clicks", "s3a://bucket/clicks/*/"],
        place=True,
    )
    schema: ReadSchema | None = Field(  # type: ignore[assignment]
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
    rejects: bool = Field(
        False,
        passed=False,
        description="Hand records that don't parse to the output `rejected`, with their file, and not to the "
        "ordinary one. A column with `not null` in `schema` has to be there then. For csv, json and xml.",
    )
    max_files_per_trigger: int | None = Field(
        None, gt=0, description="The most new files a micro-batch takes (default: all).", change="continues"
    )
    max_bytes_per_trigger: ByteSize | None = Field(
        None,
        gt=0,
        since="4.0",
        description="The most bytes of new files a micro-batch takes, about (default: all).",
        examples=["512m"],
        change="continues",
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
        None,
        description="Whether files of the same name in different folders are the same file.",
    )
    clean_source: Literal["off", "archive", "delete"] | None = Field(
        None,
        description="What to do with files that have been read (default: `off`). Best effort, and for "
        "a folder that nothing else reads.",
        change="continues",
    )
    source_archive_dir: DataPath | None = Field(
        None,
        description="Where `clean_source: archive` moves files; outside of what `path` matches.",
        change="continues",
    )
    max_cached_files: int | None = Field(
        None,
        ge=0,
        advanced=True,
        description="The most listed files kept for later micro-batches.",
        change="continues",
    )
    discard_cached_input_ratio: float | None = Field(
        None,
        ge=0,
        le=1,
        advanced=True,
        description="List the folder again when fewer than this share of a micro-batch's files are left.",
        change="continues",
    )
    use_legacy_xml_parser: bool | None = xml(
        "Whether to read each row by itself (default: true). With false Spark 4.2 reads a file as a whole: "
        "it then minds the encoding that the file declares, but a damaged row may take those behind it "
        "along, and an attribute that doesn't fit its type ends the query in every `mode`.",
        spark="useLegacyXMLParser",
        advanced=True,
    )
    spark_options: RawOptions = Field(
        {}, advanced=True, description="Further options of Spark's reader, passed on as they are."
    )

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.schema is not None and self.infer_schema:
            raise ValueError("give `schema` or `infer_schema`, not both")
        if self.rejects:
            self._refuse_with_rejects()
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

    def _refuse_with_rejects(self) -> None:
        if self.format in WHY_NOT:
            raise ValueError(f"records of {self.format} can't be rejected: {WHY_NOT[self.format]}")
        if self.schema is None:
            raise ValueError("`rejects` needs `schema`: what a record has to have, with its types")
        raw = {key.lower(): value for key, value in self.spark_options.items()}
        mode = str(raw.get("mode", self.mode or "PERMISSIVE")).upper()
        if mode != "PERMISSIVE":
            raise ValueError(
                f"`mode: {mode}` does something else with records that don't parse than `rejects`: "
                "remove one of the two"
            )
        names = [column.name for column in columns_of(self.schema) or ()]
        corrupt = raw.get("columnnameofcorruptrecord", self.column_name_of_corrupt_record)
        if corrupt is not None or "_corrupt_record" in names:
            raise ValueError(
                "with `rejects` records that don't parse go to the output `rejected`, and no column gets "
                "them: remove `column_name_of_corrupt_record`, and `_corrupt_record` from `schema`"
            )
        if raw.get("singlevariantcolumn", self.single_variant_column) is not None:
            raise ValueError("a `single_variant_column` takes every record: remove it, or `rejects`")
