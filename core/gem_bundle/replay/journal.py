"""Which rejected rows have come back in: beside the checkpoints, so that none does twice.

Each replay has a folder with the rows that it takes, and a file that says when, by which version, and whether
it has come to its end. One that was killed is finished with the same rows under the same number.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from gem_bundle.files import open_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

_KEY = "__gem_bundle_key"
_COPY = "__gem_bundle_copy"
_TAKEN = "__gem_bundle_taken"
_ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Replay:
    """One replay.

    Args:
        id: Its number.
        node: The node whose rejected rows it takes.
        place: Where they lie.
        pipeline_version: The version of the pipeline that they go through.
        began: When it began, ISO 8601 in UTC.
        rows: How many they are.
        done: Whether all have been written.
    """

    id: str
    node: str
    place: str
    pipeline_version: str
    began: str
    rows: int
    done: bool = False


def replays_of(plan: Plan, node: Node) -> str:
    """The folder that tells which rejected rows of a node have come back in, also under former names.

    Args:
        plan: The pipeline.
        node: The node.
    """
    return f"{plan.definition.checkpoints.rstrip('/')}/{plan.definition.name}/.replays/{node.identity}"


class Journal:
    """The replays of a node.

    Args:
        folder: Their folder.
        spark: The session.
    """

    def __init__(self, folder: str, spark: SparkSession) -> None:
        self._folder = folder
        self._spark = spark

    def replays(self) -> list[Replay]:
        """All replays, the oldest first."""
        folder = open_folder(self._folder)
        with suppress(FileNotFoundError):
            names = (name for name in folder.names() if name.endswith(".json") and name[0] != ".")
            return [Replay(**json.loads(folder.read(name))) for name in sorted(names)]
        return []

    def waiting(self, rejected: DataFrame) -> DataFrame:
        """The rows that haven't come back in; of equal ones as many as there are left.

        Args:
            rejected: The rejected rows.
        """
        return self.marked(rejected, _TAKEN).where(f"not {_TAKEN}").drop(_TAKEN)

    def marked(self, rejected: DataFrame, name: str) -> DataFrame:
        """The rows, each with whether it has come back in; of equal ones as many as have.

        Args:
            rejected: The rejected rows.
            name: The name of the column that tells it.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812

        alike = Window.partitionBy(_KEY).orderBy(_KEY)
        keyed = _keyed(rejected).withColumn(_COPY, F.row_number().over(alike))
        taken = [self._rows(replay) for replay in self.replays()]
        if not taken:
            return rejected.withColumn(name, F.lit(False))
        paths = self._spark.read.parquet(*taken)
        counts = _keyed(paths).groupBy(_KEY).agg(F.count(F.lit(1)).alias("taken"))
        back = F.col(_COPY) <= F.coalesce("taken", F.lit(0))
        return keyed.join(counts, [_KEY], "left").select(*rejected.columns, back.alias(name))

    def begin(self, replay: Replay, rows: DataFrame, check: Callable[[DataFrame], object]) -> Replay:
        """Write down which rows a replay takes; before that nothing has happened.

        Args:
            replay: The replay.
            rows: The rejected rows that it takes.
            check: Raises where those can't come back in: then the replay hasn't begun.
        """
        rows.write.parquet(self._rows(replay), mode="overwrite")
        check(self.taken(replay))
        counted = replace(replay, rows=self.taken(replay).count())
        self._keep(counted)
        return counted

    def taken(self, replay: Replay) -> DataFrame:
        """The rejected rows that a replay takes."""
        return self._spark.read.parquet(self._rows(replay))

    def end(self, replay: Replay) -> None:
        """Write down that all rows of a replay have been written."""
        self._keep(replace(replay, done=True))

    def _keep(self, replay: Replay) -> None:
        content = json.dumps(asdict(replay), indent=2).encode()
        open_folder(self._folder).write(f"{replay.id}.json", content)

    def _rows(self, replay: Replay) -> str:
        return f"{self._folder}/{replay.id}.{_ROWS}"


def _keyed(rejected: DataFrame) -> DataFrame:
    """The rows with what tells one from another, whatever becomes of their table's files."""
    from pyspark.sql import functions as F  # noqa: N812

    # A map's entries may come in any order.
    texts = F.to_json(F.array_sort(F.map_entries("origin")))
    others = [F.col(name) for name in rejected.columns if name != "origin"]
    everything = F.to_json(F.struct(*others, texts.alias("origin")), {"ignoreNullFields": "false"})
    return rejected.withColumn(_KEY, F.sha2(everything, 256))
