"""Spark's plan of a running query, as text."""

from __future__ import annotations

import io
import sys
import threading
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_ONE_AT_A_TIME = threading.Lock()


class _OwnThread(io.TextIOBase):
    """Keeps what this thread prints, and lets through what others print meanwhile."""

    def __init__(self, others: TextIO) -> None:
        self._own = threading.get_ident()
        self._others = others
        self.text = io.StringIO()

    def write(self, text: str, /) -> int:
        """Keep a text, or let it through."""
        return (self.text if threading.get_ident() == self._own else self._others).write(text)

    def flush(self) -> None:
        """Let through what others have printed."""
        self._others.flush()


def plan_text(query: StreamingQuery, *, extended: bool = False) -> str:
    """What ``StreamingQuery.explain`` prints: the plan of the last micro-batch.

    Args:
        query: The query; may be asked from any thread.
        extended: With the logical plans too.
    """
    with _ONE_AT_A_TIME:
        printed = _OwnThread(sys.stdout)
        with redirect_stdout(printed):
            query.explain(extended)
    return printed.text.getvalue().strip()
