"""The options of the formats' readers (SQL guide: *Data Source Option* of each format)."""

from typing import Annotated, Literal

from pydantic import BeforeValidator

from gem_bundle import Field
from gem_bundle.types import DataPath, Timestamp
from gem_file.formats import (
    FileOptions,
    RebaseMode,
    avro,
    csv,
    csv_json,
    format_option,
    json_only,
)

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
        None, description="Whether to go on when a file vanishes between listing and reading."
    )
    ignore_corrupt_files: bool | None = Field(
        None, description="Whether to pass over files that can't be read."
    )

    mode: ParseMode | None = csv_json(
        "What to do with a record that doesn't fit: `PERMISSIVE` makes its values null (default), "
        "`DROPMALFORMED` drops it, `FAILFAST` fails the query."
    )
    column_name_of_corrupt_record: str | None = csv_json(
        "A text column of `schema` that gets records that don't fit."
    )
    multi_line: bool | None = csv_json("Whether a record may span lines.")
    sampling_ratio: float | None = csv_json(
        "The share of records that the schema is inferred from.", gt=0, le=1, advanced=True
    )
    enable_date_time_parsing_fallback: bool | None = csv_json(
        "Whether to try Spark 1's and 2's way of reading dates when the pattern fails.", advanced=True
    )
    single_variant_column: str | None = csv_json(
        "Read each record into one variant column of this name.", since="4.0", advanced=True
    )

    comment: str | None = csv("Skip lines that begin with this character.", max_length=1)
    enforce_schema: bool | None = csv(
        "Whether columns go by position (default), or must have the header's names."
    )
    prefer_date: bool | None = csv("Whether to infer dates and not only timestamps.", advanced=True)
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
    prefers_decimal: bool | None = json_only("Whether to infer decimals and not doubles.")
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
