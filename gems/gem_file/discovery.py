"""The columns of the files that are there, as Spark will find them; nothing where that isn't certain."""

from __future__ import annotations

import zlib
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from gem_bundle import Column
from gem_file.layout import Layout, read_layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from gem_file.reading import FileSourceOptions

Columns = tuple[Column, ...]

_SECONDS = 5.0

# Options that don't change which columns there are; with any other one nothing is said.
_HARMLESS = frozenset(
    {
        *("path", "format", "infer_schema", "path_glob_filter", "recursive_file_lookup", "merge_schema"),
        *("max_files_per_trigger", "max_bytes_per_trigger", "latest_first", "max_file_age"),
        *("file_name_only", "clean_source", "source_archive_dir", "max_cached_files"),
        *("discard_cached_input_ratio", "ignore_missing_files", "ignore_corrupt_files", "mode"),
        *("datetime_rebase_mode", "int96_rebase_mode", "wholetext"),
        *("header", "sep", "null_value", "date_format", "timestamp_format", "time_zone"),
    }
)


def find_columns(options: FileSourceOptions) -> Columns | None:
    """The columns of the files at a path on this machine.

    Args:
        options: The options of a source without a `schema`.

    Returns:
        The columns of the files and behind them those of names of folders, whose types depend on all
        the values that are there; None when they can't be told.
    """
    given = {name for name in options.model_fields_set if getattr(options, name) not in (None, {})}
    if not given <= _HARMLESS:
        return None
    until = monotonic() + _SECONDS

    def give_up() -> bool:
        return monotonic() > until

    layout = read_layout(
        options.path,
        recursive=bool(options.recursive_file_lookup),
        name_filter=options.path_glob_filter,
        give_up=give_up,
    )
    if layout is None:
        return None
    try:
        columns = _in_files(options, layout, give_up)
    except (OSError, EOFError, ValueError, zlib.error):
        return None
    if not columns:
        return None
    made = columns + tuple(Column(key) for key in layout.keys)
    # With a column in both places, or in two spellings, Spark takes sides or fails.
    return made if len({column.name.lower() for column in made}) == len(made) else None


def _in_files(options: FileSourceOptions, layout: Layout, give_up: Callable[[], bool]) -> Columns | None:
    from gem_file import avro, headers

    if options.format == "text":
        return (Column("value", "string"),)
    if options.format == "xml":
        # Which types Spark finds in elements depends on all of them.
        return None
    if options.format == "json":
        return _in_json(layout, give_up)
    if options.format == "csv":
        separator = "\t" if options.sep == "\\t" else options.sep or ","
        if not options.header or len(separator) != 1 or separator in '"\\':
            return None
        read: Callable[[Path], Columns | None] = partial(
            headers.csv_columns, separator=separator, null=options.null_value or ""
        )
    else:
        readers = {"avro": avro.avro_columns, "orc": headers.orc_columns, "parquet": headers.parquet_columns}
        read = readers[options.format]
    columns = _agreed(read, layout.files, give_up)
    if columns is None or not options.infer_schema or options.format != "csv":
        return columns
    return tuple(Column(column.name) for column in columns)


def _agreed(
    read: Callable[[Path], Columns | None], files: Iterable[Path], give_up: Callable[[], bool]
) -> Columns | None:
    """What all files say: from which of them Spark takes the columns is up to its settings."""
    agreed: Columns = ()
    for file in files:
        found = None if give_up() else read(file)
        if found is None:
            return None
        if not found:
            continue
        if agreed and [column.name for column in agreed] != [column.name for column in found]:
            return None
        both = zip(agreed or found, found, strict=True)
        agreed = tuple(one if one == other else Column(one.name) for one, other in both)
    return agreed


def _in_json(layout: Layout, give_up: Callable[[], bool]) -> Columns | None:
    from gem_file.headers import opened
    from gem_file.json_lines import Records

    records = Records(give_up)
    for file in layout.files:
        with opened(file, newline="") as stream:
            if stream is None or not records.take(stream):
                return None
    return records.columns()
