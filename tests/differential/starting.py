"""Starting a query that Spark's check lets pass: what becomes of it when there is something to do."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from gem_bundle.run.engine import query_ends
from gem_bundle.run.failures import headline, root_cause
from gem_bundle.run.frames import Frames
from gem_bundle.schema import fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from gem_bundle.gem import Transform
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.frames import Read

# Far enough apart that every watermark passes every window, and each in a micro-batch of its own.
_TIMES = ("2024-01-31 10:00:00", "2024-03-31 10:00:00", "2024-05-31 10:00:00")
_EPOCH = "1970-01-01T00:00:00.000Z"
_SECONDS = 120
# Micro-batches without rows, one after the other, behind which nothing new comes: a processor that goes by the
# clock begins them for ever, and the watermarks of all others have advanced after two.
_EMPTY = 6
_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a query.

    Args:
        rows: How many rows came out.
        advanced: Whether the watermark ever advanced.
        stateful: Whether it kept state: what the optimizer makes nothing of (`limit 0`) keeps none.
        error: Why it failed, if it did.
    """

    rows: int = 0
    advanced: bool = False
    stateful: bool = False
    error: Exception | None = None

    def __str__(self) -> str:
        if self.error is None:
            return f"it runs, {self.rows} rows come out, the watermark {'advances' if self.advanced else 'stands'}"
        return f"it fails: {headline(root_cause(self.error))}"


def _needed(plan: Plan, target: str) -> dict[str, str]:
    """The settings that the transforms before a target can't do without."""
    names = [name for name in plan.upstream([target]) if plan.node(name).kind == "transform"]
    return {key: value for name in names for key, value in plan.gems[name].session_settings().items()}


def _calling_nobody(plan: Plan) -> Plan:
    """The plan with transforms that call no service, not even to ask it."""
    gems = dict(plan.gems)
    for node in plan.definition.of_kind("transform"):
        if node.gem == "rest_enrich":
            posting = gems[node.id].options.model_copy(update={"method": "POST"})
            gems[node.id] = cast("Transform", type(gems[node.id])(posting)).for_preview()
    return replace(plan, gems=gems)


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def is_done(query: StreamingQuery) -> bool:
    """Wait until a query has ended by itself, or has read everything and goes on."""
    last = time.monotonic() + _SECONDS
    while time.monotonic() < last:
        if query.awaitTermination(1):
            return True
        latest = query.recentProgress[-_EMPTY:]
        if len(latest) == _EMPTY and not any(batch.numInputRows for batch in latest):
            return True
    return False


class Starter:
    """Runs queries until all that is there has been read; sources stand in as files of a row each.

    Args:
        spark: The session.
        folder: Where files may be.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def start(self, plan: Plan, target: str) -> Run:
        """Run one target's query until everything has been read."""
        node = plan.node(target)
        checkpoint = tempfile.mkdtemp(dir=self._folder)
        settings = {_PARTITIONS: "1", **_needed(plan, target)}
        before = {name: self._spark.conf.get(name, None) for name in settings}
        _set(self._spark, settings)
        try:
            df = Frames(_calling_nobody(plan), self._spark, self._reader(plan)).of(*query_ends(plan)[target])
            writer = df.writeStream.format("noop").outputMode(node.output_mode)
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            try:
                if not is_done(query):
                    return Run(error=TimeoutError(f"more than {_SECONDS} seconds"))
                progress = query.recentProgress
                rows = sum(max(batch.sink.numOutputRows, 0) for batch in progress)
                marks = {batch.eventTime.get("watermark", _EPOCH) for batch in progress}
                stateful = any(batch.stateOperators for batch in progress)
                return Run(rows, bool(marks - {_EPOCH}), stateful)
            finally:
                query.stop()
        except Exception as error:  # noqa: BLE001 (what it raises is the answer)
            return Run(error=error)
        finally:
            _set(self._spark, before)
            shutil.rmtree(checkpoint, ignore_errors=True)

    def _reader(self, plan: Plan) -> Read:
        def read(node: Node, name: str) -> DataFrame:
            columns = plan.facts[node.id].columns or ()
            schema = ", ".join(f"`{column.name}` {column.type}" for column in columns)
            path = self._files(schema)
            if node.mode == "batch":
                return self._spark.read.schema(schema).parquet(path)
            reader = self._spark.readStream.name(name).option("maxFilesPerTrigger", 1)
            return reader.schema(schema).parquet(path)

        return read

    def _files(self, schema: str) -> str:
        """A folder with a few files, each with one row, its times later than those of the one before."""
        folder = self._folder / hashlib.sha256(schema.encode()).hexdigest()[:16]
        if not folder.exists():
            for moment in _TIMES:
                values = {
                    "timestamp": f"timestamp '{moment}'",
                    "bigint": "1L",
                    "int": "1",
                    "string": f"'{moment}'",
                }
                row = [
                    f"cast({values.get(str(field.type), 'null')} as {field.type}) as `{field.name}`"
                    for field in fields_of(schema) or ()
                ]
                self._spark.range(1).selectExpr(*row).coalesce(1).write.mode("append").parquet(str(folder))
        return str(folder)
