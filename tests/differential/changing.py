"""Whether Spark can make sense of what a target says of rows that change others, asked of the rows that come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

_SOURCE = "source"


def changing(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """How the rows of a target change others: its ``merge``, ``history`` or ``upsert``; None where they don't.

    Args:
        options: The target's options, as its pipeline file has them.
    """
    return next((options[name] for name in ("merge", "history", "upsert") if name in options), None)


def analyse(df: DataFrame, how: Mapping[str, Any]) -> None:
    """Let Spark analyse keys, sequence and conditions, each by itself.

    Args:
        df: The rows that come.
        how: What `changing` gives, with columns for its key.

    Raises:
        Exception: What Spark says of the first that it refuses.
    """
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide calls it)

    rows = df.alias(_SOURCE)
    names = [*how.get("on", how.get("keys", [])), *how.get("track", [])]
    if "keys" in how and "track" not in how:
        names += df.columns  # all whose changes make a version
    for name in names:
        column = F.col(f"{_SOURCE}.`{name}`")
        _ = rows.where(column.eqNullSafe(column)).schema
    if "sequence_by" in how:
        _ = rows.where(F.expr(f"({how['sequence_by']}) < ({how['sequence_by']})")).schema
    if "delete_when" in how:
        _ = rows.where(how["delete_when"]).schema
