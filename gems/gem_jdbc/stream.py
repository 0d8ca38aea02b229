"""The data source that Spark reads a followed table by, in Python processes of its own."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gem_bundle import PassingError, UnreachableError
from gem_bundle.diagnostics import listed_names
from gem_jdbc.asking import Connection
from gem_jdbc.dialects import dialect_of
from gem_jdbc.following import Followed, Following, Horizon, RefusedError, UnansweredError, Value, parts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import DataType, StructType

FORMAT = "gem_bundle_jdbc"
SHORT_WAIT = 0.5
"""So many seconds a micro-batch waits for transactions before it says that nothing is new."""
_PAUSES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
_LATEST = "latest"
_EARLIEST = "earliest"


def data_source() -> "type[DataSource]":
    """The data source, which knows what it needs by its options; its classes travel by value."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    class Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
        def __init__(self, reading: Reading) -> None:
            self._reading = reading

        def initialOffset(self) -> dict[str, Value | None]:  # noqa: N802 (Spark's name)
            return self._reading.beginning()

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
            limit = self._reading.limit
            return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
            self._reading.end_here()

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Value | None]:  # noqa: N802
            return self._reading.next_end(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
            return [InputPartition(query) for query in self._reading.queries(start, end)]

        def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
            return self._reading.rows(partition.value)

        def stop(self) -> None:
            self._reading.close()

    class FollowedTable(DataSource):
        @classmethod
        def name(cls) -> str:
            return FORMAT

        def streamReader(self, schema: "StructType") -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
            return Reader(Reading(dict(self.options), schema))

    return FollowedTable


class Reading:
    """Reads the rows whose values lie behind the one up to which they were read.

    It is made anew in each of Spark's processes; only that which asks for offsets keeps a connection.

    Args:
        options: What `options_for` has made.
        schema: The columns.
    """

    def __init__(self, options: dict[str, str], schema: "StructType") -> None:
        given = json.loads(options["followed"])
        self._url = options["url"]
        self._login = (options.get("user"), options.get("password"))
        self._followed = Followed(**given["what"])
        self._columns: str = given["columns"]
        self._settings: list[str] = given["settings"]
        self._starting: str = given["starting"]
        self.limit: int | None = given["limit"]
        self._parts: int = given["parts"]
        self._longest: float | None = given["longest"]
        self._schema = schema
        self._connection: Connection | None = None
        self._horizon: Horizon | None = None
        self._end: Value | None = None
        self._ends = False

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None, "_horizon": None}

    def beginning(self) -> dict[str, Value | None]:
        """Where a query begins that has no checkpoint."""
        if self._starting == _EARLIEST:
            return self._offset(None)
        if self._starting == _LATEST:
            return self._offset(self._one(self._following.reach(self._followed, None, None)))
        return self._offset(self._one(self._following.value(self._followed, self._starting)))

    def end_here(self) -> None:
        """Find where such a run ends: once those have ended who were under way at its start."""
        self._ends = True
        self._end = self._reached(None, None)

    def next_end(self, start: dict[str, Any], most: int | None) -> dict[str, Value | None]:
        """Where the next micro-batch ends; where it begins while nothing is new, or may not be read yet.

        Args:
            start: Where it begins.
            most: How many rows it has at most.
        """
        after = self._value(start)
        end = self._end if self._ends else self._reached(after, SHORT_WAIT)
        if end is None:
            return start
        found = self._one(self._following.reach(self._followed, after, end, most))
        return start if found is None else self._offset(found)

    def queries(self, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
        """What is asked for the parts of a micro-batch."""
        after, until = self._value(start), self._value(end)
        if until is None or until == after:
            return []
        least = None
        if self._parts > 1:
            least = self._one(self._following.least(self._followed, after, until))
        ranges = parts(after, until, least, self._parts)
        return [self._following.rows(self._followed, self._columns, *bounds) for bounds in ranges]

    def rows(self, query: str) -> "Iterator[pa.RecordBatch]":
        """The rows of a part, by a connection of its own."""
        with _told():
            connection = self._connected()
            try:
                yield from connection.batches(query, arrow_schema(self._schema))
            finally:
                connection.close()

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()

    @property
    def _following(self) -> Following:
        following = dialect_of(self._url).following
        assert following is not None
        return following

    def _reached(self, after: Value | None, seconds: float | None) -> Value | None:
        """Up to which value all is there; None when that isn't known in time, or nothing is new."""
        began = time.monotonic()
        pauses = iter(_PAUSES)
        pause = 0.0
        with _told():
            if self._horizon is None:
                self._horizon = Horizon(
                    self._following, self._followed, self._asking(), time.monotonic, self._longest
                )
            while True:
                found = self._horizon.step(after)
                if found is not None or not self._horizon.waits:
                    return found
                pause = next(pauses, pause)
                if seconds is not None and time.monotonic() - began + pause > seconds:
                    return None
                time.sleep(pause)

    def _one(self, query: str) -> Value | None:
        with _told():
            ((value,),) = self._asking().rows(query)
        return value  # type: ignore[return-value]

    def _asking(self) -> Connection:
        if self._connection is None:
            self._connection = self._connected()
        return self._connection

    def _connected(self) -> Connection:
        user, password = self._login
        address = self._following.address(self._url, user, password)
        return Connection(self._following, address, self._settings, password or "")

    def _offset(self, value: Value | None) -> dict[str, Value | None]:
        return {self._followed.column: value}

    def _value(self, offset: dict[str, Any]) -> Value | None:
        column = self._followed.column
        if column not in offset:
            known = listed_names(offset)
            raise UnreachableError(
                f"the checkpoint has values of {known}, and the stream is by `{column}` now",
                "Give the source another id, so that it is a new one.",
            )
        value: Value | None = offset[column]
        return value


@contextmanager
def _told() -> Iterator[None]:
    """What the database says, as errors that a run knows in Spark's words too."""
    try:
        yield
    except UnansweredError as error:
        raise PassingError(
            f"the database can't be used: {error.words}", "Start it, or correct the address."
        ) from None
    except RefusedError as error:
        raise UnreachableError(f"the database refuses what the stream asks: {error.words}") from None


def arrow_schema(schema: "StructType") -> "pa.Schema":
    """The columns as Spark wants them of Arrow.

    Args:
        schema: The columns, of types that `Following.expression` knows.
    """
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _arrow_type(field.dataType), True) for field in schema.fields])


def _arrow_type(kind: "DataType") -> "pa.DataType":
    import pyarrow as pa
    from pyspark.sql.types import ArrayType, DecimalType

    if isinstance(kind, ArrayType):
        return pa.list_(pa.field("element", _arrow_type(kind.elementType), True))
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    known = {
        "boolean": pa.bool_(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
    return known[kind.simpleString()]
