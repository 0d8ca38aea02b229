"""What a gem infers of its rows, compared with what Spark's analyser says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.facts import UNKNOWN_DELAY, Facts
from gem_bundle.schema import type_of
from gem_bundle.testing.conformance.inputs import facts_of
from gem_bundle.types import interval_length

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from gem_bundle.facts import Column


def differences(inferred: object, df: DataFrame, *, how: str) -> Iterator[str]:
    """What was inferred and isn't so. What is unknown may be anything.

    Args:
        inferred: What `infer` has returned.
        df: What the gem has returned.
        how: What it was, for the message: ``as a stream``.
    """
    if not isinstance(inferred, Facts):
        yield f"`infer` returns {type(inferred).__name__}; it must return `Facts`"
        return
    real = facts_of(df)
    if inferred.streaming is not None and inferred.streaming != real.streaming:
        yield (
            f"`infer` says that the rows are {_streaming(inferred.streaming)}, and {how} Spark says "
            f"{_streaming(real.streaming)}"
        )
    if inferred.columns is None:
        return
    names = [column.name for column in inferred.columns]
    if names != df.columns:
        yield f"`infer` says that the columns are {names}, and {how} Spark says {df.columns}"
        return
    for column, truth in zip(inferred.columns, real.columns or (), strict=True):
        yield from _column(column, truth, how)


def _column(column: Column, truth: Column, how: str) -> Iterator[str]:
    if column.type is not None and truth.type is not None:
        kind = type_of(column.type)
        if kind is None:
            yield f"`infer` gives `{column.name}` the type `{column.type}`, which is none of Spark's"
        elif str(kind) != truth.type:
            yield (
                f"`infer` says that `{column.name}` is `{column.type}`, and {how} Spark says `{truth.type}`"
            )
    if column.delay != UNKNOWN_DELAY and _milliseconds(column.delay) != _milliseconds(truth.delay):
        yield (
            f"`infer` says that `{column.name}` has {_watermark(column.delay)}, and {how} Spark says "
            f"{_watermark(truth.delay)}"
        )


def _streaming(streaming: bool | None) -> str:
    return "a stream" if streaming else "static"


def _watermark(delay: str | None) -> str:
    return "no watermark" if delay is None else f"a watermark of {delay}"


def _milliseconds(delay: str | None) -> int | str | None:
    try:
        return None if delay is None else interval_length(delay)[1] // 1000
    except ValueError:
        return delay  # no interval, and so no delay that Spark could have
