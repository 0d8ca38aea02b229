"""What a micro-batch is taken once with: the seam between the target `jdbc` and a kind of database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of the rows of a micro-batch: from a staging table into the table, in one transaction.

    Args:
        table: The table, as the database's SQL has it.
        columns: The columns that are written, by their names in the table.
        transactions: The table that knows which micro-batches are there.
        query: Whose micro-batches.
        number: The number of the micro-batch.
        stage: The staging table.
        keys: By which columns a row replaces another; empty where rows are added.
        sequence: The column that tells which of several rows is the last.
        replace: The rows that are there go first.
    """

    table: str
    columns: tuple[str, ...]
    transactions: str
    query: str
    number: int
    stage: str
    keys: tuple[str, ...] = ()
    sequence: str | None = None
    replace: bool = False


BATCH = "batch-"
"""How the id of a batch begins: nobody runs it again, but a task of Spark's may."""


class Transactions(Protocol):
    """The statements by which a database takes a micro-batch once. Run again, each changes nothing."""

    outcome: str
    """A query that tells, in the session of a statement, what came of it: ``done``, ``begun``, ``lost``,
    ``several`` (rows of a key) or ``null_key``."""

    row: str
    """The column that the staging table has besides, for a number that no two rows share."""

    def has_key(self, table: str, keys: Sequence[str]) -> str:
        """A query for one row that tells whether the database itself keeps rows apart by these columns."""
        ...

    def add_key(self, table: str, keys: Sequence[str]) -> str:
        """Have a new table keep its rows apart by these columns."""
        ...

    def prepare(self, transactions: str, table: str) -> str:
        """Make the table of transactions where it isn't there, and tell of a table: ``there`` or ``absent``.

        What batches have noted long ago, and left, goes.
        """
        ...

    def begin(self, move: Move) -> str:
        """Make the staging table, unless the micro-batch is there already: ``done`` or ``begun``."""
        ...

    def move(self, move: Move) -> str:
        """Move the rows, note the number, drop the staging table: all or nothing."""
        ...
