"""The columns that files themselves tell of, as Spark reads them, format by format and without Spark.

Each function says nothing (None) when the columns aren't certain, also when the file is broken. A column
whose type isn't certain has none.
"""

from __future__ import annotations

import gzip
import json
import re
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from gem_bundle import Column
from gem_bundle.schema import columns_of_json, type_of_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Columns = tuple[Column, ...]

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_ORC_TYPE = b"spark.sql.catalyst.type"
_COMPRESSED = frozenset({".bz2", ".deflate", ".lz4", ".snappy", ".zst", ".zstd", ".xz", ".br", ".gzip"})
_MAX_LINE = 1 << 20

# Types that mean the same to Spark whatever its settings are.
_PARQUET = {
    ("BOOLEAN", "NONE"): "boolean",
    ("INT32", "NONE"): "int",
    ("INT64", "NONE"): "bigint",
    ("FLOAT", "NONE"): "float",
    ("DOUBLE", "NONE"): "double",
    ("BYTE_ARRAY", "STRING"): "string",
    ("INT32", "DATE"): "date",
}
_ORC = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date32[day]": "date",
}


def parquet_columns(file: Path) -> Columns | None:
    """The columns in a Parquet file's footer; nothing without pyarrow, which gem-bundle doesn't ask for."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        return None
    try:
        with ParquetFile(file) as parquet:
            footer, schema = parquet.metadata.metadata or {}, parquet.schema
            if _SPARK_SCHEMA in footer:
                return columns_of_json(json.loads(footer[_SPARK_SCHEMA]))
            names = list(parquet.schema_arrow.names)
            leaves = [schema.column(index) for index in range(len(schema))]
    except (ArrowException, OSError, ValueError):
        return None
    types = {
        leaf.path: _PARQUET.get((leaf.physical_type, leaf.logical_type.type))
        for leaf in leaves
        if "." not in leaf.path and not leaf.max_repetition_level
    }
    return tuple(Column(name, types.get(name)) for name in names)


def orc_columns(file: Path) -> Columns | None:
    """The columns in an ORC file's footer; nothing without pyarrow."""
    try:
        from pyarrow import ArrowException
        from pyarrow.orc import ORCFile
    except ImportError:
        return None
    try:
        schema = ORCFile(file).schema
    except (ArrowException, OSError, ValueError):
        return None
    return tuple(Column(field.name, _orc_type(str(field.type), field.metadata)) for field in schema)


def _orc_type(kind: str, attributes: dict[bytes, bytes] | None) -> str | None:
    """The type of a column: where ORC hasn't it, Spark keeps it in an attribute."""
    if not attributes:
        return _ORC.get(kind)
    known = type_of_json(attributes.get(_ORC_TYPE, b"unknown").decode())
    return None if known is None else str(known)


def csv_columns(file: Path, separator: str = ",", null: str = "") -> Columns | None:
    """The columns that the first line of a CSV file names; an empty answer for an empty file.

    Args:
        file: The file.
        separator: What stands between the names: one character.
        null: The text that stands for null, which can't be a name.
    """
    line = ""
    with opened(file) as stream:
        if stream is None:
            return None
        while not line.strip(" \n"):
            line = stream.readline(_MAX_LINE)
            if not line:
                return ()
    line = line.rstrip("\n")
    cell = rf'(?:"[^"\\]*"|[^"\\{re.escape(separator)}]*)'
    if len(line) >= _MAX_LINE - 1 or not line.replace(separator, " ").isprintable():
        return None
    if not re.fullmatch(rf"{cell}(?:{re.escape(separator)}{cell})*", line):
        return None
    names = [name.strip('"') for name in re.findall(rf"(?:^|(?<={re.escape(separator)})){cell}", line)]
    unclear = any(not name or name == null or name != name.strip() for name in names)
    return None if unclear else tuple(Column(name, "string") for name in names)


@contextmanager
def opened(file: Path, newline: str | None = None) -> Iterator[IO[str] | None]:
    """A text file, unpacked; None for a way of packing that Python can't read.

    Args:
        file: The file.
        newline: As `open` takes it.
    """
    if file.suffix in _COMPRESSED:
        yield None
        return
    opened: Any = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", encoding="utf-8", newline=newline) as stream:
        yield stream
