"""One use of a gem of any kind, where a test asks not for rows but for what happens on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from gem_bundle.gem import ReadContext, WriteContext
from gem_bundle.testing.conformance.inputs import Folder
from gem_bundle.testing.conformance.streams import NAME, read_stream, rows_of, write_stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.testing.conformance.suite import GemConformance
    from gem_bundle.testing.conformance.targets import TargetConformance
    from gem_bundle.testing.conformance.transforms import TransformConformance


def use_once(suite: GemConformance, gem: Any, spark: SparkSession, checkpoint: Path) -> None:
    """Read, apply or write with a gem, in batch where it can."""
    if gem.kind == "source":
        _read(gem, spark)
    elif gem.kind == "transform":
        _apply(cast("TransformConformance", suite), gem)
    else:
        _write(cast("TargetConformance", suite), gem, spark, checkpoint)


def reads(source: Any, *, streaming: bool) -> bool:
    """Whether a source can be read so: its semantics allow it, and its own rules with these options."""
    if not (source.semantics.streaming if streaming else source.semantics.batch):
        return False
    before = source.streaming
    source.streaming = streaming
    try:
        return not any(finding.severity == "error" for finding in source.check())
    finally:
        source.streaming = before


def _read(gem: Any, spark: SparkSession) -> None:
    if reads(gem, streaming=False):
        gem.streaming = False
        rows_of(gem.read(ReadContext(NAME, spark)))
    if reads(gem, streaming=True):
        # Only looked at: what runs is Spark's.
        read_stream(gem, spark).columns  # noqa: B018


def _apply(suite: TransformConformance, gem: Any) -> None:
    found = gem.apply(*suite.tables())
    for df in found.values() if isinstance(found, dict) else [found]:
        df.columns  # noqa: B018


def _write(suite: TargetConformance, gem: Any, spark: SparkSession, checkpoint: Path) -> None:
    given = Folder(checkpoint.with_name("given"), suite.schema)
    given.add(suite.rows(1))
    if gem.semantics.batch:
        gem.write(given.table(spark), WriteContext(node="target", pipeline=NAME))
    if gem.semantics.streaming:
        write_stream(gem, given.stream(spark, "given"), checkpoint, _mode(gem))


def _mode(gem: Any) -> Any:
    return "append" if "append" in gem.semantics.output_modes else "update"
