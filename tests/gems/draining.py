"""Streams in tests: run until nothing is left, and run the last micro-batch again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle import WriteContext

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from gem_bundle import Target


def make(gem: type[Any], raw: Mapping[str, Any], folder: Path | None = None) -> Any:
    """A gem with validated options, as the runtime makes it."""
    values = {gem.options_type.canonical(key): value for key, value in raw.items()}
    return gem(gem.options_type.model_validate(values, context={"base_dir": folder or "/"}))


def micro_batches(df: DataFrame, checkpoint: Path) -> list[list[tuple[Any, ...]]]:
    """The rows of each micro-batch until nothing is left."""
    found: list[list[tuple[Any, ...]]] = []

    def take(batch: DataFrame, batch_id: int) -> None:
        found.append([tuple(row) for row in batch.collect()])

    writer = df.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return [rows for rows in found if rows]


def drain(df: DataFrame, checkpoint: Path) -> list[tuple[Any, ...]]:
    """All rows of a stream until nothing is left."""
    return [row for rows in micro_batches(df, checkpoint) for row in rows]


def run(
    target: Target, df: DataFrame, checkpoint: Path, mode: Any = "append", name: str = "q"
) -> StreamingQuery:
    """Write a stream into a target until nothing is left, as the runtime does."""
    context = WriteContext(node="t", pipeline="p", output_mode=mode, query_name=name)
    writer = target.write_stream(df, context).outputMode(mode).queryName(name)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = target.start(writer)
    query.awaitTermination()
    return query


def forget_last_commit(checkpoint: Path) -> None:
    """Make Spark run the last micro-batch again, as if it had died between writing and committing."""
    commits = checkpoint / "commits"
    newest = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    newest.unlink()
    (commits / f".{newest.name}.crc").unlink(missing_ok=True)
