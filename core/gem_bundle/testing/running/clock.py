"""The clock of a test: the time that processors go by which have timers or a time to live by the clock.

Spark takes the time of a micro-batch from its checkpoint where the micro-batch is begun there and not done.
So each one is begun twice: first it is only laid down, then it gets the test's time, and runs. By itself such
a query would begin one micro-batch after the other, for ever.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gem_bundle.operators import StatefulOperator

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gem_bundle.semantics import OutputMode
    from gem_bundle.testing.running.prepared import Prepared

START = datetime(1970, 1, 1, tzinfo=UTC)
"""What the clock says until a test says something else."""

_LAID_DOWN = "gem-bundle: the micro-batch is laid down"


def goes_by_the_clock(prepared: Prepared, target: str) -> bool:
    """Whether the query of a target has a processor that goes by the clock.

    Args:
        prepared: The pipeline.
        target: The id of the target.
    """
    facts = prepared.plan.facts[prepared.plan.node(target).inputs[0].key]
    return any(
        isinstance(operator, StatefulOperator) and operator.time == "processing" and operator.streaming
        for operator in facts.all_operators()
    )


def lay_down(df: DataFrame, output_mode: OutputMode, checkpoint: Path, now: datetime) -> None:
    """Begin the next micro-batch of a query at a time, without running it.

    Args:
        df: What flows into the target. There is something new to read, if only a file without rows.
        output_mode: The target's output mode.
        checkpoint: The query's checkpoint, in which every micro-batch is done.
        now: The time that it gets.

    Raises:
        Exception: Spark's own, where the query fails before it comes to its rows.
    """
    message = _LAID_DOWN

    # Within a function, so that it is sent with its code: a server needn't have gem-bundle.
    def stop(batch: DataFrame, batch_id: int) -> None:  # noqa: ARG001 (as Spark calls it)
        raise RuntimeError(message)

    writer = df.writeStream.foreachBatch(stop).outputMode(output_mode).trigger(once=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        query.awaitTermination()
    except Exception as error:
        if _LAID_DOWN not in str(error):
            raise
    offsets = checkpoint / "offsets"
    newest = max((entry for entry in offsets.iterdir() if entry.name.isdigit()), key=lambda e: int(e.name))
    version, told, rest = newest.read_text(encoding="utf-8").split("\n", 2)
    timed = json.loads(told) | {"batchTimestampMs": int(now.timestamp() * 1000)}
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
    newest.write_text(f"{version}\n{json.dumps(timed)}\n{rest}", encoding="utf-8")
