"""A connection through ADBC's driver: questions, and the rows of a table as Arrow has them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gem_jdbc.following import Following, RefusedError, Rows, UnansweredError

if TYPE_CHECKING:
    import pyarrow as pa

_TYPE = ("ADBC:postgresql:typname", "POSTGRESQL:type")
_UNANSWERED = re.compile(r"\bSQLSTATE: (?:08|57P0[123]|53300|28)|failed to connect|connection|terminat", re.I)
_NOISE = re.compile(
    r"\A\w+: (?:\[libpq\] )?(?:Failed to \w+(?: \w+)?: )?(?:ERROR:\s*|FATAL:\s*)?|\s*Query was: .*", re.S
)


def missing(following: Following) -> list[str]:
    """The distributions that aren't installed and that a stream needs."""
    needed = {following.driver.partition(".")[0]: following.package, "pyarrow": "pyarrow"}
    return [package for module, package in needed.items() if find_spec(module) is None]


class Connection:
    """A connection, on which each statement is a transaction of its own.

    Args:
        following: The kind of database.
        address: Where it is, with the login.
        settings: Statements that the session begins with.
        secret: What isn't to be shown in what the driver says.
    """

    def __init__(
        self, following: Following, address: str, settings: Sequence[str] = (), secret: str = ""
    ) -> None:
        self._secret = secret
        driver = import_module(following.driver)
        with self._errors(driver, connecting=True):
            self._driver = driver
            self._connection = driver.connect(address, autocommit=True)
        for statement in settings:
            self.run(statement)

    def close(self) -> None:
        """End it."""
        self._connection.close()

    def run(self, statement: str) -> None:
        """Run a statement that gives no rows, or whose rows nobody wants.

        Raises:
            RefusedError: When the database refuses it.
        """
        with self._errors(self._driver), self._connection.cursor() as cursor:
            cursor.execute(statement)

    def rows(self, query: str) -> Rows:
        """All rows of a query.

        Raises:
            RefusedError: When the database refuses it.
        """
        with self._errors(self._driver), self._connection.cursor() as cursor:
            cursor.execute(query)
            found: Rows = cursor.fetchall()
            return found

    def columns(self, query: str) -> dict[str, Mapping[str, str]]:
        """What the driver tells of the columns of a query: the `type` that the database has.

        Raises:
            RefusedError: When the database refuses it.
        """
        with self._errors(self._driver), self._connection.cursor() as cursor:
            cursor.execute(query)
            schema = cursor.fetch_record_batch().schema
            return {field.name: {"type": _told(field.metadata or {})} for field in schema}

    def batches(self, query: str, schema: "pa.Schema") -> "Iterator[pa.RecordBatch]":
        """The rows of a query, as columns of some types.

        Args:
            query: The query.
            schema: The columns that it has.

        Raises:
            RefusedError: When the database refuses it.
        """
        with self._errors(self._driver), self._connection.cursor() as cursor:
            cursor.execute(query)
            for batch in cursor.fetch_record_batch():
                if batch.num_rows:
                    yield fitted(batch, schema)

    @contextmanager
    def _errors(self, driver: Any, *, connecting: bool = False) -> Iterator[None]:
        try:
            yield
        except driver.Error as error:
            words = " ".join(_NOISE.sub("", str(error)).split())
            if self._secret:
                words = words.replace(self._secret, "**********")
            lost = connecting or (
                isinstance(error, driver.OperationalError) and _UNANSWERED.search(str(error))
            )
            raise (UnansweredError if lost else RefusedError)(words) from None


def fitted(batch: "pa.RecordBatch", schema: "pa.Schema") -> "pa.RecordBatch":
    """A batch with just the types of a schema, in which nothing is rounded.

    Args:
        batch: The batch.
        schema: The columns in their order.
    """
    import pyarrow as pa

    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _told(metadata: Mapping[bytes, bytes]) -> str:
    found = [metadata[key.encode()].decode() for key in _TYPE if key.encode() in metadata]
    return found[0] if found else ""
