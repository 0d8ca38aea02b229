"""How rows are taken that a streaming target would get: in this process, or over Spark Connect."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Protocol

from gem_bundle.run.session import is_remote
from gem_bundle.testing.values import take_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_bundle.gem import OutputMode
    from gem_bundle.schema import StructField

Row = tuple[Any, ...]


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
    df: DataFrame, output_mode: OutputMode, fields: Sequence[StructField], name: str, checkpoint: Path
) -> Capture:
    """The way to take a query's rows.

    Args:
        df: What its target would get.
        output_mode: The target's output mode.
        fields: The columns.
        name: The name of the query.
        checkpoint: The query's checkpoint.
    """
    if not is_remote(df.sparkSession):
        return _Here(df, output_mode, fields)
    begun = (checkpoint / "offsets").is_dir()
    return (_Views if begun and output_mode != "complete" else _Table)(df, output_mode, fields, name)


class _Here:
    """In this process, which drives Spark."""

    def __init__(self, df: DataFrame, output_mode: OutputMode, fields: Sequence[StructField]) -> None:
        self._df = df
        self._output_mode = output_mode
        self._fields = fields
        self._got: list[list[Row]] = []

    def writer(self) -> DataStreamWriter:
        """A function of this process gets every micro-batch."""
        return self._df.writeStream.foreachBatch(self._take).outputMode(self._output_mode)

    def _take(self, batch: DataFrame, batch_id: int) -> None:  # noqa: ARG002 (Spark gives it)
        self._got.append(_rows(batch, self._fields))

    def taken(self, batches: Sequence[int]) -> list[Row]:  # noqa: ARG002 (all that came is of these)
        """What the function got."""
        got, self._got = self._got, []
        if self._output_mode == "complete":
            return got[-1]
        return [row for rows in got for row in rows]

    def close(self) -> None:
        """Nothing is anywhere else."""


class _Elsewhere:
    """On a Spark Connect server, where a function for `foreachBatch` runs and can hand no rows back."""

    def __init__(
        self, df: DataFrame, output_mode: OutputMode, fields: Sequence[StructField], name: str
    ) -> None:
        self._spark = df.sparkSession
        self._output_mode = output_mode
        self._fields = fields
        self._name = name
        # What a view holds has no two columns of one name.
        self._df = df.toDF(*(f"c{i}" for i in range(len(df.columns))))


class _Table(_Elsewhere):
    """By way of a table in the server's memory, which has the name of the query."""

    _before = 0

    def writer(self) -> DataStreamWriter:
        """Spark's sink `memory`."""
        return self._df.writeStream.format("memory").outputMode(self._output_mode)

    def taken(self, batches: Sequence[int]) -> list[Row]:  # noqa: ARG002 (the table has all of them, in order)
        """The rows that the table didn't have at the last call, or all of a complete result."""
        rows = _rows(self._spark.table(self._name), self._fields)
        if self._output_mode == "complete":
            return rows
        before, self._before = self._before, len(rows)
        return rows[before:]

    def close(self) -> None:
        """Drop the table."""
        self._spark.catalog.dropTempView(self._name)


class _Views(_Elsewhere):
    """By way of a global view for each micro-batch.

    The sink `memory` refuses the checkpoint of a query that goes on. This one costs a Python on the server
    for each query.
    """

    def __init__(
        self, df: DataFrame, output_mode: OutputMode, fields: Sequence[StructField], name: str
    ) -> None:
        super().__init__(df, output_mode, fields, name)
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
        found: list[Row] = []
        for batch in batches:
            view = f"{self._prefix}_{batch}"
            found += _rows(self._spark.table(f"global_temp.{view}"), self._fields)
            self._spark.catalog.dropGlobalTempView(view)
        return found

    def close(self) -> None:
        """Every view is dropped when its rows have been taken; what failed has none."""


def _rows(df: DataFrame, fields: Iterable[StructField]) -> list[Row]:
    known = tuple(fields)
    return [take_row(row, known) for row in df.collect()]
