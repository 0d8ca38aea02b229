"""Rows that Spark keeps in memory and on disk, and lets go of whatever becomes of their query."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def let_go(df: DataFrame) -> None:
    """Have Spark forget rows that it keeps.

    A query that is stopped in the middle of a micro-batch is interrupted, and with it what is asked of Spark
    from its thread: Spark would forget that it keeps the rows, and keep them to the end of the session. So it
    is asked from another thread.

    Args:
        df: The rows, which were persisted.
    """
    raised: list[BaseException] = []

    def ask() -> None:
        try:
            df.unpersist()
        except BaseException as error:  # noqa: BLE001 (raised where it is waited for)
            raised.append(error)

    asking = threading.Thread(target=ask, name="gem-bundle-let-go", daemon=True)
    asking.start()
    asking.join()
    if raised:
        raise raised[0]
