"""Records that don't parse: what Spark's readers tell of them, for the source `file` where it rejects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gem_bundle import ORIGIN, Rejects, reason
from gem_bundle.required import absent_fields, missing_field
from gem_bundle.schema import fields_of, quoted
from gem_file.formats import formats_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame

    from gem_bundle.schema import StructField
    from gem_file.reading import FileSourceOptions

RECORD = "__gem_bundle_record"
_AGAIN = "__gem_bundle_again"
# What is about files, or the schema, and not about how one record is written.
_NOT_LEXICAL = frozenset(
    {
        "header",
        "multi_line",
        "mode",
        "column_name_of_corrupt_record",
        "sampling_ratio",
        "enforce_schema",
        "column_pruning",
        "single_variant_column",
        "encoding",
        "line_sep",
        "input_buffer_size",
        "use_legacy_xml_parser",
    }
)


def reading_options(options: Mapping[str, str]) -> dict[str, str]:
    """The reader's options with which it tells of records that don't parse.

    Args:
        options: Those that it has.
    """
    return {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": RECORD}


def with_record(schema: str) -> str:
    """A schema in DDL with the column for records that don't parse.

    Args:
        schema: The columns of the rows.
    """
    # In front, as columns of folder names stand last.
    return f"{RECORD} string, {schema}"


def undivided(df: DataFrame, schema: str) -> DataFrame:
    """The rows with where each is from that is rejected.

    Args:
        df: The rows as they were read with `with_record`.
        schema: The columns of the rows.
    """
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

    origin = [
        part
        for name, field in (
            ("file", "path"),
            ("block_start", "block_start"),
            ("block_length", "block_length"),
        )
        for part in (F.lit(name), F.col(f"_metadata.file_{field}").cast("string"))
    ]
    columns = [quoted(field.name) for field in fields_of(schema) or ()] or [
        quoted(name) for name in df.columns if name != RECORD
    ]
    told = F.when(is_rejected(df, schema), F.create_map(*origin)).alias(ORIGIN)
    return df.select(RECORD, *columns, told)


def is_rejected(df: DataFrame, schema: str) -> Column:
    """Whether a row doesn't parse, or lacks a field that has to be there.

    Args:
        df: The rows.
        schema: Their columns.
    """
    from pyspark.sql import functions as F  # noqa: N812

    columns = _columns(df)
    # Spark doesn't parse columns that nobody asks for, and doesn't see what is wrong with them then: all have
    # to be asked for here, in a way that its optimizer doesn't see through. Else what is a good row would be
    # up to the columns that the target takes.
    nothing = F.size(F.array(*(column.isNull() for column in columns))) < 0
    found = F.col(RECORD).isNotNull() | nothing
    absent = [absent for _, absent in _absent(schema)]
    # So that Spark doesn't take these columns for never null, by which it would keep state otherwise.
    return found | F.array_contains(F.array(*absent), F.lit(True)) if absent else found


def rejects(df: DataFrame, options: FileSourceOptions, schema: str) -> Rejects:
    """The rows that are rejected, and why.

    Args:
        df: The undivided rows.
        options: How records are written.
        schema: The columns of the rows.
    """
    from pyspark.sql import functions as F  # noqa: N812

    fields = fields_of(schema) or ()
    columns = _columns(df)
    rows = df.where(is_rejected(df, schema)).select(
        F.col(RECORD).alias("record"), *columns, RECORD, ORIGIN, _again(options, fields).alias(_AGAIN)
    )
    missing = [F.when(there, missing_field(path)) for path, there in _absent(schema)]
    of_others = F.array_compact(F.array(*missing)) if missing else F.array(reason("", ""))
    why = F.when(F.col(RECORD).isNotNull(), _unread(options, fields)).otherwise(of_others)
    return Rejects(rows, why)


def _columns(df: DataFrame) -> list[Column]:
    """The columns of the rows, without those that tell of records."""
    from pyspark.sql import functions as F  # noqa: N812

    return [F.col(quoted(name)) for name in df.columns if not name.startswith("__gem_bundle_")]


def _absent(schema: str) -> list[tuple[str, Column]]:
    from pyspark.sql import functions as F  # noqa: N812

    fields = fields_of(schema) or ()
    return list(absent_fields(F.struct(*(quoted(field.name) for field in fields)), fields)) if fields else []


def _again(options: FileSourceOptions, fields: Iterable[StructField]) -> Column:
    """The record with all of its values as texts, and itself where it can't be read so either."""
    from pyspark.sql import functions as F  # noqa: N812

    parse: dict[str, Any] = {"csv": F.from_csv, "json": F.from_json, "xml": F.from_xml}
    texts = ", ".join(f"{quoted(field.name)} string" for field in fields)
    given = reading_options(_lexical(options))
    again: Column = parse[options.format](F.col(RECORD), f"{RECORD} string, {texts}", given)
    return again


def _lexical(options: FileSourceOptions) -> dict[str, str]:
    """The options that say how a record is written."""
    names = {
        name
        for name, info in type(options).model_fields.items()
        if name not in _NOT_LEXICAL and formats_of(info)
    }
    kept = options.model_copy(
        update={name: None for name in type(options).model_fields if name not in names | {"path", "format"}}
    )
    return {**kept.to_spark(), **{key: str(value) for key, value in options.spark_options.items()}}


def _unread(options: FileSourceOptions, fields: Iterable[StructField]) -> Column:
    """Why a record doesn't parse."""
    from pyspark.sql import functions as F  # noqa: N812

    again, form = F.col(_AGAIN), options.format.upper()
    broken = {
        "csv": "the record isn't CSV with as many values as the schema has columns",
        "json": "the record isn't one or several objects of JSON",
        "xml": f"the record isn't one element `{options.row_tag}` of XML",
    }
    wrong = [
        F.when(
            again.getField(field.name).isNotNull() & F.col(quoted(field.name)).isNull(),
            F.lit(f"`{field.name}` doesn't fit {field.type}"),
        )
        for field in fields
        # Of XML Spark reads no value where one doesn't fit.
        if options.format != "xml"
    ]
    said = F.concat_ws("; ", *wrong)
    words = F.when(said == "", F.lit("a value doesn't fit the schema")).otherwise(said)
    unread = again.isNull() | again.getField(RECORD).isNotNull()
    if options.format == "csv":
        # A record has no values for columns that come from names of folders.
        named = F.col(ORIGIN)["file"].rlike(f"/({'|'.join(re.escape(field.name) for field in fields)})=")
        unread &= ~named | (said == "")
    return F.array(
        F.when(unread, reason(f"not_{form.lower()}", broken[options.format])).otherwise(
            reason("wrong_type", words)
        )
    )
