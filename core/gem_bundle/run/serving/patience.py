"""Connections that say nothing: they are closed, so that they don't take the place of others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol


def patient_protocol(seconds: float) -> type[H11Protocol]:
    """Uvicorn's protocol of HTTP, with patience for so many seconds: then a request has to have begun.

    Uvicorn itself waits for ever for the first request of a connection.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            asyncio.get_running_loop().call_later(seconds, self._look_at_it)

        def _look_at_it(self) -> None:
            if self.cycle is None and not self.transport.is_closing():
                self.transport.close()

    return Patient
