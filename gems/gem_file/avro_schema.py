"""The schema that `avro_schema_url` leads to, looked at before Spark fails at it in the middle of a run."""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle import Finding, GemError, UnreachableError
from gem_bundle.avro import AvroSchemaError, DeclaredAvro, avro_schema, without_comments
from gem_bundle.types import local_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_file.formats import FileOptions

OPTION = "avro_schema_url"

_HTTP = re.compile(r"https?://[^/?#@\s]+/[!-~]*")
_SECONDS = 5.0
_MOST_BYTES = 16 << 20
_GONE = frozenset({404, 410})
_ELSE = "Correct it, or give the schema by `avro_schema`; relative paths are relative to the pipeline file."


def url_findings(options: FileOptions, *, gives_columns: bool = False) -> Iterator[Finding]:
    """What is wrong with the schema there: nothing at all where only Spark can look.

    Args:
        options: The options of a source or a target.
        gives_columns: Whether Spark takes the columns from the schema.
    """
    url = options.avro_schema_url
    if url is None:
        return
    try:
        content = _read(url)
        problem = None if content is None else _problem(content, gives_columns=gives_columns)
    except GemError as error:
        yield Finding(error.code, error.message, error.hint, OPTION)
    else:
        if problem is not None:
            hint = problem.hint or "Correct the file, or give the schema by `avro_schema`."
            yield Finding("GB205", f"`{url}` has no Avro schema that Spark takes: {problem}", hint, OPTION)


def columns_problem(text: str) -> AvroSchemaError | None:
    """Why Spark makes no columns of an Avro schema; None where it does."""
    try:
        if avro_schema(text).record is None:
            return AvroSchemaError("it describes no record, which is what has columns")
    except AvroSchemaError as error:
        return error
    return None


def _problem(content: bytes, *, gives_columns: bool) -> AvroSchemaError | None:
    """What is wrong with a schema. As Spark reads it, it may have comments, and anything behind it."""
    try:
        text = without_comments(content.decode(json.detect_encoding(content)))
    except UnicodeDecodeError:
        return AvroSchemaError("it isn't text")
    try:
        _, end = json.JSONDecoder().raw_decode(text.lstrip())
        text = text.lstrip()[:end]
    except (ValueError, RecursionError):
        pass  # which says what is wrong, below
    try:
        DeclaredAvro(text)
    except AvroSchemaError as error:
        return error
    return columns_problem(text) if gives_columns else None


def _read(url: str) -> bytes | None:
    """What is there; None where only Spark can look.

    Raises:
        GemError: GB505 when nothing is there, GB503 when it can't be asked.
    """
    if _HTTP.fullmatch(url):
        return _fetched(url)
    place = local_path(url)
    if place is None:
        return None
    try:
        return Path(place).read_bytes()
    except FileNotFoundError:
        raise GemError("GB505", f"no Avro schema is at `{url}`", _ELSE) from None
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise GemError("GB505", f"the Avro schema at `{url}` can't be read: {why}", _ELSE) from None


def _fetched(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "gem-bundle"})  # noqa: S310 (http or https)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 (as above)
            found: bytes = answer.read(_MOST_BYTES)
            return found
    except urllib.error.HTTPError as error:
        with error:
            if error.code in _GONE:
                raise GemError("GB505", f"no Avro schema is at `{url}` (HTTP {error.code})", _ELSE) from None
            raise UnreachableError(f"`{url}` answers HTTP {error.code}, and no Avro schema", _ELSE) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        why = f"no answer within {_SECONDS:g} seconds" if isinstance(reason, TimeoutError) else str(reason)
        raise UnreachableError(f"the Avro schema at `{url}` can't be fetched: {why}", _ELSE) from None
