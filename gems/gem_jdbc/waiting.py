"""How many rows of a followed table wait for a query: those whose values lie behind what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle import Waiting

if TYPE_CHECKING:
    from gem_bundle import WaitingContext
    from gem_jdbc.asking import Connection
    from gem_jdbc.following import Value
    from gem_jdbc.opening import Opened

_PYTHON = "org.apache.spark.sql.execution.datasources.v2.python."
PATIENCE_SECONDS = 5
"""A count that takes longer isn't worth what it costs the database."""


class RowsWaiting:
    """Counts the rows that wait, and those that were read since it first counted.

    Args:
        opened: The table.
        name: What it is called.
    """

    def __init__(self, opened: Opened, name: str) -> None:
        self._opened = opened
        self._name = name
        self._read = 0
        self._until: Value | None = None

    def told(self, context: WaitingContext) -> Waiting | None:
        """How many rows wait.

        Args:
            context: Up to where the query has read its sources. Spark doesn't say which of them this is: of
                two by columns of one name none is told.

        Raises:
            RefusedError: When the database doesn't count them, or not in time.
        """
        column = self._opened.followed.column
        offsets = [
            position.offset
            for position in context.positions
            if position.description.startswith(_PYTHON)
            and isinstance(position.offset, dict)
            and set(position.offset) == {column}
        ]
        if len(offsets) != 1:
            return None
        value = offsets[0][column]
        with self._opened.connected() as connection:
            connection.run(self._opened.following.patience(PATIENCE_SECONDS))
            if self._until is not None and value != self._until:
                self._read += self._count(connection, self._until, value)
            self._until = value
            waits = self._count(connection, value, None)
        return Waiting(self._name, waits, "records", self._read + waits)

    def _count(self, connection: Connection, after: Value | None, until: Value | None) -> int:
        ((count,),) = connection.rows(self._opened.following.count(self._opened.followed, after, until))
        return int(str(count))
