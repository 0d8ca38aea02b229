"""Connections that are too many, or make no progress: they take no place and no time of others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

_REFUSED_SECONDS = 1.0
_FULL = b'{"error":"Too many ask already."}'
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
    b"Retry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(_FULL), _FULL)
)


class _Seen(NamedTuple):
    """What a connection does.

    Args:
        request: The request that is answered, or was the last one; None before the first one.
        waits: How many bytes wait for the client to read them.
        is_stuck: Whether the next thing is the client's to do: to read, to begin a request, or to end one.
    """

    request: object
    waits: int
    is_stuck: bool


class Refused(asyncio.Protocol):
    """A connection that is one too many: whatever it asks, it is told so, and nothing looks at what it asks.

    Args:
        others: All others of these. Where they are too many as well, it is closed at once: each takes a file
            handle, of which the run needs some too.
        most: How many these may be.
    """

    def __init__(self, others: set[Refused], most: int) -> None:
        self._others = others
        self._most = most

    def connection_made(self, transport: Any) -> None:
        """Let it wait a moment, or close it."""
        self._transport = transport
        if len(self._others) >= self._most:
            transport.abort()
            return
        self._others.add(self)
        self._late = asyncio.get_running_loop().call_later(_REFUSED_SECONDS, self.close)

    def close(self) -> None:
        """Close it without a word."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 (asyncio's shape)
        """Refuse what it asks."""
        # What is still on its way resets the connection, and the client may not read the answer: be it so.
        self._transport.write(_REFUSAL)
        self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 (asyncio's shape)
        """Make room for another one."""
        if self in self._others:
            self._others.remove(self)
            self._late.cancel()


def patient_protocol(seconds: float, most: int, refused: set[Refused]) -> type[H11Protocol]:
    """Uvicorn's protocol of HTTP, with patience for so many seconds: then a client must have done something.

    Uvicorn itself waits for ever for the first request of a connection, for the rest of any request, and for
    the client to read what it has asked for. And it reads each request in full before it says that there are
    too many, which takes a crowd's worth of the processors that the run needs.

    Args:
        seconds: The patience.
        most: How many connections are served at once, and how many at most wait to be refused.
        refused: Those that wait to be refused are there.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        def __new__(cls, *_: Any, server_state: Any, **__: Any) -> Any:
            if len(server_state.connections) >= most:
                return Refused(refused, most)
            return super().__new__(cls)

        def connection_made(self, transport: Any) -> None:
            if len(self.connections) >= most:  # several came at once, and the others were first
                one = Refused(refused, most)
                transport.set_protocol(one)
                one.connection_made(transport)
                return
            super().connection_made(transport)
            self._seen = _Seen(None, 0, is_stuck=True)
            asyncio.get_running_loop().call_later(seconds, self._look_at_it)

        def _look_at_it(self) -> None:
            if self.transport.is_closing():
                return
            answered = self.cycle is None or self.cycle.response_complete
            waits = self.transport.get_write_buffer_size()
            is_stuck = waits > 0 or answered or self.conn.their_state is h11.SEND_BODY
            before, self._seen = self._seen, _Seen(self.cycle, waits, is_stuck)
            if is_stuck and before == self._seen:
                # Not `close`: that waits until all has been read.
                self.transport.abort()
            else:
                asyncio.get_running_loop().call_later(seconds, self._look_at_it)

    return Patient
