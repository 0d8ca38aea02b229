"""What `from_avro` and `to_avro` have in common: a schema as text, as YAML or in a file."""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from gem_bundle.avro import AvroSchemaError, avro_schema
from gem_bundle.types import DataPath, is_remote

AVRO_JAR = "org.apache.spark:spark-avro_{scala}:{spark}"
HEADER_BYTES = 5


def _as_text(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _check_text(text: str) -> str:
    try:
        avro_schema(text)
    except AvroSchemaError as error:
        raise ValueError(f"this is no Avro schema that Spark takes: {error}") from None
    return text


def _check_file(path: str) -> str:
    """Read it into the option, so that a record of what ran has the schema and not where it lay."""
    if is_remote(path):
        raise ValueError("a schema's file lies beside the pipeline, on a disk; give the text by `schema`")
    try:
        text = Path(path.removeprefix("file:")).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it isn't UTF-8"
        raise ValueError(f"`{path}` can't be read: {reason.lower()}") from None
    try:
        avro_schema(text)
    except AvroSchemaError as error:
        raise ValueError(f"`{path}` is no Avro schema that Spark takes: {error}") from None
    return text


AvroText = Annotated[
    str,
    BeforeValidator(_as_text),
    AfterValidator(_check_text),
    WithJsonSchema({"type": ["string", "object", "array"]}),
]
"""An Avro schema as JSON in a text, or as YAML."""

AvroFile = Annotated[DataPath, AfterValidator(_check_file)]
"""A file with an Avro schema; the gem reads the schema in it."""


def header(schema_id: int) -> bytes:
    """What stands before a message with the id of its schema: a zero, and the id in four bytes."""
    return b"\x00" + schema_id.to_bytes(HEADER_BYTES - 1, "big")
