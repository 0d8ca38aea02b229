"""A stream whose rows a transform lets through or rejects, divided in each micro-batch as a group does it."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle.kept import let_go
from gem_bundle.rejected import Rejecting, rejected_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_bundle.gem import Transform

NUMBER = "gem_bundle_number"
"""The column by which a row is known again."""

ANYBODY = Rejecting("pipeline", "0.1.0", "node", "gem")
"""Who rejects rows that are looked at by nobody but the suite."""

NEVER_LATE = "36500 days"
"""The delay of a watermark that lets no row go."""


@dataclass(frozen=True)
class Dividing:
    """Writes which rows of a stream a transform lets through and which it rejects.

    Args:
        gem: The transform.
        event_time: The column of the event time of its first input, None without.
        others: Its other inputs, which are tables: folders of JSON files, each with its columns as DDL.
        place: The folder that is written. For each micro-batch there are two folders or more in it; one that
            is whole isn't written again, as a table of Delta isn't that knows the micro-batch.
        dies_in: A micro-batch in which its process and all of that one's group die by SIGKILL, when the rows
            that are let through are written, and those that are rejected aren't; None in none.
    """

    gem: Transform[Any]
    event_time: str | None
    others: Sequence[tuple[str, str]]
    place: str
    dies_in: int | None = None

    def writer(self, df: DataFrame) -> DataStreamWriter:
        """The query that divides a stream, which isn't started.

        Args:
            df: The stream.
        """
        if self.gem.remembers():
            if self.event_time is not None:
                df = df.withWatermark(self.event_time, NEVER_LATE)
            df = self.gem.remember(df, *self._tables(df.sparkSession))
        return df.writeStream.foreachBatch(self._write)

    def _write(self, df: DataFrame, number: int) -> None:
        from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide has it)

        tables = self._tables(df.sparkSession)
        rows = self.gem.recall(df) if self.gem.remembers() else df
        rows = self.gem.settle(rows, *tables) if self.gem.settles() else rows
        rows = rows.persist()  # what decides is found out once
        try:
            for place, through in enumerate(outputs(self.gem.apply(rows, *tables))):
                self._save(numbers_of(through), f"through/{number}-{place}")
            if number == self.dies_in:
                os.killpg(0, signal.SIGKILL)
            rejected = rejected_rows(self.gem.reject(rows, *tables), ANYBODY)
            self._save(
                rejected.select(F.get_json_object("row", f"$.{NUMBER}").cast("int").alias(NUMBER)),
                f"rejected/{number}",
            )
        finally:
            let_go(rows)

    def _tables(self, spark: SparkSession) -> list[DataFrame]:
        return [spark.read.schema(schema).json(path) for path, schema in self.others]

    def _save(self, numbers: DataFrame, place: str) -> None:
        if not Path(self.place, place, "_SUCCESS").exists():
            numbers.coalesce(1).write.mode("overwrite").json(f"{self.place}/{place}")


def divided(place: Path) -> tuple[list[int | None], list[int | None]]:
    """The numbers of the rows that were let through, and of those that were rejected.

    Args:
        place: The folder of a `Dividing`. The number of a row that lost it on its way is None.
    """
    return list(_numbers(place / "through")), list(_numbers(place / "rejected"))


def _numbers(place: Path) -> Iterator[int | None]:
    for file in place.glob("*/*.json"):
        for line in file.read_text("utf-8").splitlines():
            row: Mapping[str, int] = json.loads(line)
            yield row.get(NUMBER)


def numbers_of(df: DataFrame) -> DataFrame:
    """The numbers of rows, None where a transform takes the column away.

    Args:
        df: The rows.
    """
    from pyspark.sql import functions as F  # noqa: N812 (as Spark's guide has it)

    return df.select((F.col(NUMBER) if NUMBER in df.columns else F.lit(None)).cast("int").alias(NUMBER))


def outputs(found: Any) -> list[DataFrame]:
    """What `apply` gives, as a list.

    Args:
        found: One DataFrame, or a mapping of several.
    """
    return list(found.values()) if isinstance(found, dict) else [found]
