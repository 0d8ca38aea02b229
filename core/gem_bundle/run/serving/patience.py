"""Connections that make no progress: they take no place of others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol


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


def patient_protocol(seconds: float) -> type[H11Protocol]:
    """Uvicorn's protocol of HTTP, with patience for so many seconds: then a client must have done something.

    Uvicorn itself waits for ever for the first request of a connection, for the rest of any request, and for
    the client to read what it has asked for.

    Args:
        seconds: The patience.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        def connection_made(self, transport: Any) -> None:
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
