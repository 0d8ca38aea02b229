"""Where rejected rows lie: a table that a gem knows how to read, or a folder of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from gem_bundle.contexts import ReadContext
from gem_bundle.diagnostics import Diagnostic, listed_names
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.rejected import COLUMNS
from gem_bundle.run.places import TABLE, absolute_place, targets_at
from gem_bundle.types import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.gem import Target
    from gem_bundle.pipeline.plan import Plan

_FORMATS = ("parquet", "orc", "json")


def rejected_in(plan: Plan, place: str, spark: SparkSession) -> DataFrame:
    """The rejected rows that a target has put into a place.

    Args:
        plan: The pipeline.
        place: A path, which may be relative to the current folder, ``table:`` and the name of a table, or
            what else a target calls its place: ``kafka://localhost:9092/broken``.
        spark: The session.

    Raises:
        PipelineError: GB461 when there is no such place, or what is there aren't rejected rows.
    """
    where = absolute_place(place)
    df = _table(plan, where, spark)
    if df is None:
        df = _files(where, spark)
    if df is None:
        raise _wrong(
            plan,
            f"there is no table of Delta, no topic and no folder of {', '.join(_FORMATS)} files: {place}",
        )
    lacking = [column.name for column in COLUMNS if column.name not in df.columns]
    if lacking:
        named = listed_names(lacking)
        raise _wrong(plan, f"what is in {place} aren't rejected rows: they have no {named}")
    return df.select(*(column.name for column in COLUMNS))


def _table(plan: Plan, where: str, spark: SparkSession) -> DataFrame | None:
    try:
        tables = (made.read_rejected(ReadContext("rejected", spark)) for made in targets_with(plan, where))
        return next((found for found in tables if found is not None), None)
    except GemError as error:
        raise _wrong(plan, error.message) from error


def targets_with(plan: Plan, where: str) -> Iterator[Target]:
    """Targets that may have put rejected rows into a place, those of a pipeline first.

    Args:
        plan: The pipeline.
        where: The place, a path absolute.
    """
    # One of the pipeline knows how to log in.
    own = [cast("Target", plan.gems[node.id]) for node in plan.definition.of_kind("target")]
    for target in own:
        if target.holds_rejected() and where in {
            place for found in target.places().values() for place in found
        }:
            yield target
    yield from targets_at(where, list(map(type, own)), rejected=True)


def _files(where: str, spark: SparkSession) -> DataFrame | None:
    """The rows of a folder of files, by what their names end in."""
    if is_remote(where) or where.startswith(TABLE) or not Path(where).is_dir():
        return None
    files = (path for path in Path(where).rglob("*.*") if path.name[0] not in "._")
    endings = {path.suffix.lstrip(".") for path in files}
    found = [format_ for format_ in _FORMATS if format_ in endings]
    if not found:
        return None
    schema = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
    return spark.read.schema(schema).format(found[0]).load(where)


def _wrong(plan: Plan, message: str) -> PipelineError:
    hint = "Name the place that the target of the rejected rows writes to."
    place = plan.definition.locator.place(())
    return PipelineError([Diagnostic("GB461", "error", message, place=place, hint=hint)])
