"""Rows that Spark keeps in memory and on disk, and lets go of whatever becomes of their query."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame


def let_go(df: DataFrame) -> None:
    """Have Spark forget rows that it keeps.

    A query that is stopped in the middle of a micro-batch is interrupted, and with it what is asked of Spark
    from its thread: Spark would forget that it keeps the rows, and keep them to the end of the session. So it
    is asked from another thread.

    Args:
        df: The rows, which were persisted.
    """
    _from_another_thread(df.unpersist)


@contextmanager
def set_apart(df: DataFrame) -> Iterator[DataFrame]:
    """Rows that are computed now, and no longer know of what.

    For statements that write what they were read from: what `persist` keeps is computed anew when a table is
    written that it has rows of. And Spark 4.1 can't plan a MERGE of rows that a view computes of a catalog's
    table (https://github.com/apache/spark/issues/56515).

    Args:
        df: The rows.

    Yields:
        The rows, which are kept that long.
    """
    rows = df.localCheckpoint()
    forget = _forgetting(rows)
    try:
        yield rows
    finally:
        _from_another_thread(forget)


def _forgetting(rows: DataFrame) -> Callable[[], None]:
    """What has Spark forget rows that were checkpointed; over Spark Connect the server does it by itself.

    There is a public way only for rows that were persisted.
    """
    java: Any = getattr(rows, "_jdf", None)
    if java is None:
        return lambda: None
    try:
        kept = java.queryExecution().logical().rdd().id()
    except Exception:  # noqa: BLE001 (another Spark may have another plan of them)
        return lambda: None  # they go when nobody refers to them any more
    context: Any = rows.sparkSession.sparkContext

    def forget() -> None:
        # The way of the rows themselves warns that they can't be had again.
        context._jsc.sc().unpersistRDD(kept, False)

    return forget


def _from_another_thread(ask: Callable[[], object]) -> None:
    raised: list[BaseException] = []

    def asked() -> None:
        try:
            ask()
        except BaseException as error:  # noqa: BLE001 (raised where it is waited for)
            raised.append(error)

    asking = threading.Thread(target=asked, name="gem-bundle-let-go", daemon=True)
    asking.start()
    asking.join()
    if raised:
        raise raised[0]
