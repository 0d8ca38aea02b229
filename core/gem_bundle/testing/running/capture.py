"""How rows are taken that a streaming target would get: in this process, or over Spark Connect."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from typing import TYPE_CHECKING, Protocol

from gem_bundle.contexts import is_over_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_bundle.semantics import OutputMode

    Through = Callable[[DataFrame], DataFrame]


_NOT_IN_FILES = re.compile(r"\b(void|interval)\b")


class Capture(Protocol):
    """Takes the rows of one query's micro-batches."""

    def writer(self) -> DataStreamWriter:
        """Spark's writer of the query, to which its name and checkpoint are still to be given."""

    def taken(self, batches: Sequence[int]) -> list[Row]:
        """The rows of micro-batches that have ended: of all, or in complete mode of the last one.

        Args:
            batches: Those that have ended since the last call, at least one.
        """

    def close(self) -> None:
        """Leave nothing behind; called when the query has ended."""


def capture(
    df: DataFrame,
    output_mode: OutputMode,
    name: str,
    checkpoint: Path,
    *,
    each: bool = False,
    through: Through | None = None,
) -> Capture:
    """The way to take a query's rows.

    Args:
        df: What its target would get.
        output_mode: The target's output mode.
        name: The name that the query will have.
        checkpoint: The query's checkpoint.
        each: Micro-batches are asked for one by one.
        through: What becomes of each micro-batch on its way to the target; only where this process drives
            Spark.
    """
    if not is_over_connect(df.sparkSession):
        return _Here(df, output_mode, through)
    if output_mode == "complete" or not (each or (checkpoint / "offsets").is_dir()):
        return _Table(df, output_mode, name)
    if output_mode == "append" and not _NOT_IN_FILES.search(df.schema.simpleString()):
        return _Files(df, checkpoint)
    return _Views(df, output_mode)


class _Here:
    """In this process, which drives Spark."""

    def __init__(self, df: DataFrame, output_mode: OutputMode, through: Through | None = None) -> None:
        self._df = df
        self._output_mode = output_mode
        self._through = through
        self._got: dict[int, list[Row]] = {}

    def writer(self) -> DataStreamWriter:
        """A function of this process gets every micro-batch."""
        return self._df.writeStream.foreachBatch(self._take).outputMode(self._output_mode)

    def _take(self, batch: DataFrame, batch_id: int) -> None:
        self._got[batch_id] = (batch if self._through is None else self._through(batch)).collect()

    def taken(self, batches: Sequence[int]) -> list[Row]:
        """What the function got."""
        got = [self._got.pop(batch, []) for batch in batches]
        return got[-1] if self._output_mode == "complete" else [row for rows in got for row in rows]

    def close(self) -> None:
        """Nothing is anywhere else."""


class _Elsewhere:
    """On a Spark Connect server, where a function for `foreachBatch` runs and can hand no rows back."""

    def __init__(self, df: DataFrame, output_mode: OutputMode) -> None:
        self._spark = df.sparkSession
        self._output_mode = output_mode
        self._columns = df.columns
        # What a view holds has no two columns of one name.
        self._df = df.toDF(*(f"c{i}" for i in range(len(df.columns))))

    def _rows(self, df: DataFrame) -> list[Row]:
        return df.toDF(*self._columns).collect()


class _Table(_Elsewhere):
    """By way of a table in the server's memory, which has the name of the query."""

    def __init__(self, df: DataFrame, output_mode: OutputMode, name: str) -> None:
        super().__init__(df, output_mode)
        self._name = name
        self._before = 0

    def writer(self) -> DataStreamWriter:
        """Spark's sink `memory`."""
        return self._df.writeStream.format("memory").outputMode(self._output_mode)

    def taken(self, batches: Sequence[int]) -> list[Row]:  # noqa: ARG002 (the table has all of them, in order)
        """The rows that the table didn't have at the last call, or all of a complete result."""
        rows = self._rows(self._spark.table(self._name))
        if self._output_mode == "complete":
            return rows
        before, self._before = self._before, len(rows)
        return rows[before:]

    def close(self) -> None:
        """Drop the table."""
        self._spark.catalog.dropTempView(self._name)


class _Files(_Elsewhere):
    """By way of files, of which Spark notes for each micro-batch which they are.

    The sink `memory` refuses the checkpoint of a query that goes on, and doesn't tell micro-batches apart.
    """

    def __init__(self, df: DataFrame, checkpoint: Path) -> None:
        super().__init__(df, "append")
        self._folder = checkpoint.with_name(f"{checkpoint.name}-rows-{uuid.uuid4().hex}")
        self._seen: set[str] = set()

    def writer(self) -> DataStreamWriter:
        """Spark's sink of Parquet files."""
        writer = self._df.writeStream.format("parquet").option("path", str(self._folder))
        return writer.outputMode(self._output_mode)

    def taken(self, batches: Sequence[int]) -> list[Row]:
        """The rows of the files of these micro-batches."""
        files = [file for batch in batches for file in self._files(batch)]
        return self._rows(self._spark.read.schema(self._df.schema).parquet(*files)) if files else []

    def _files(self, batch: int) -> list[str]:
        log = self._folder / "_spark_metadata"
        # Every tenth entry holds those before it too.
        entry = next(file for name in (f"{batch}", f"{batch}.compact") if (file := log / name).is_file())
        _, *lines = entry.read_text(encoding="utf-8").splitlines()
        new = [path for line in lines if (path := json.loads(line)["path"]) not in self._seen]
        self._seen.update(new)
        return new

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)


class _Views(_Elsewhere):
    """By way of a global view for each micro-batch: for what no file can hold, and for changed rows.

    It costs a Python on the server for each query, which Spark gives up when it takes ten seconds to start.
    """

    def __init__(self, df: DataFrame, output_mode: OutputMode) -> None:
        super().__init__(df, output_mode)
        self._prefix = f"gem_bundle_{uuid.uuid4().hex}"

    def writer(self) -> DataStreamWriter:
        """A function that keeps each micro-batch on the server."""
        prefix = self._prefix

        # Within a function, so that it is sent with its code: the server needn't have gem-bundle.
        def keep(batch: DataFrame, batch_id: int) -> None:
            batch.localCheckpoint().createOrReplaceGlobalTempView(f"{prefix}_{batch_id}")

        return self._df.writeStream.foreachBatch(keep).outputMode(self._output_mode)

    def taken(self, batches: Sequence[int]) -> list[Row]:
        """The rows of the views, which are dropped."""
        got = []
        for batch in batches:
            view = f"{self._prefix}_{batch}"
            got.append(self._rows(self._spark.table(f"global_temp.{view}")))
            self._spark.catalog.dropGlobalTempView(view)
        return got[-1] if self._output_mode == "complete" else [row for rows in got for row in rows]

    def close(self) -> None:
        """Every view is dropped when its rows have been taken; what failed has none."""
