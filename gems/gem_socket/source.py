"""The source `socket`: lines of text from a TCP server."""

import os
import socket
from typing import TYPE_CHECKING

from gem_bundle import (
    MICRO_BATCH_TRIGGERS,
    Column,
    Facts,
    Field,
    Finding,
    Options,
    Source,
    SourceSemantics,
    StreamReadContext,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

CONNECT_SECONDS = 2.0


class SocketOptions(Options):
    """Options of the source `socket`, from the guide's *Input sources*."""

    default_change = "from_now_on"

    host: str = Field(min_length=1, description="The server's host.", examples=["localhost"], place=True)
    port: int = Field(gt=0, lt=65536, description="The server's port.", examples=[9999], place=True)
    include_timestamp: bool = Field(
        False, description="Add a column `timestamp`, the time at which a line came in."
    )


class SocketSource(Source[SocketOptions]):
    """Read lines of UTF-8 text from a TCP server, for experiments.

    The server must take a connection for each query, and one more for the look before a run: start
    netcat as `nc -lk 9999`. Lines that were sent once can't be read again.
    """

    semantics = SourceSemantics(
        batch=False,
        replayable=False,
        condition="Never: a server doesn't send its lines again.",
        triggers=MICRO_BATCH_TRIGGERS | {"continuous"},
        backlog=False,
        only_new=True,
    )
    example = {"host": "localhost", "port": 9999}

    def read_stream(self, context: StreamReadContext) -> "DataFrame":
        """The lines as they come, read on the driver."""
        return context.reader.format("socket").options(**self.options.to_spark()).load()

    def infer(self) -> Facts:
        """The line, and the time at which it came if it is asked for."""
        columns = [Column("value", "string")]
        if self.options.include_timestamp:
            columns.append(Column("timestamp", "timestamp"))
        return Facts(columns=tuple(columns), qualifiers=frozenset())

    def connect(self) -> "Iterator[Finding]":
        """Connect to the server, and hang up."""
        if os.environ.get("SPARK_REMOTE"):
            # Spark's driver, which reads the socket, is on another machine.
            return
        address = (self.options.host, self.options.port)
        try:
            socket.create_connection(address, timeout=CONNECT_SECONDS).close()
        except OSError as error:
            yield Finding(
                "GB503",
                f"no server answers at {self.options.host}:{self.options.port} ({error})",
                "Start it (`nc -lk 9999` sends what you type), or correct host and port.",
                "host" if isinstance(error, socket.gaierror) else "port",
            )
