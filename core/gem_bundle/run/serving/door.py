"""Who comes in: as many clients as leave the run its processors and file handles; the others are told so."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Set

_REFUSED_SECONDS = 1.0
_BREATH_SECONDS = 0.05
_AT_A_TIME = 32
_A_SECOND = 50
_PROBES_A_SECOND = 20
_PROBES = (b"GET /health ", b"GET /ready ")
_FULL = b'{"error":"Too many ask already."}'
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
    b"Retry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(_FULL), _FULL)
)


class Allowance:
    """How often something may happen: so many times at once, and from then on so many times a second.

    Args:
        at_once: How many times at once.
        a_second: How many times a second.
    """

    def __init__(self, at_once: int, a_second: int) -> None:
        self._most = self._left = float(at_once)
        self._a_second = a_second
        self._then = time.monotonic()

    def take(self) -> bool:
        """Whether it may happen now."""
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._then) * self._a_second)
        self._then = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Door:
    """Takes the connections of a socket that listens, and hands on those that are served.

    An event loop's own server makes a transport and a task of each connection before anybody can say that
    it is one too many: of a crowd that comes again and again, that is a good part of a processor. Here it is
    a few calls of the system, and between two looks at the crowd there is a pause.

    Probes of a cluster come in where others don't: it would end a run that doesn't answer them.

    Args:
        listening: The socket.
        served: The connections that are served.
        protocol: Makes what serves a connection.
        most: How many are served at once, and how many at most wait to be refused.
    """

    def __init__(
        self,
        listening: socket.socket,
        served: Set[object],
        protocol: Callable[[], asyncio.Protocol],
        most: int,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._served = served
        self._protocol = protocol
        self._most = most
        self._coming: dict[asyncio.Task[None], asyncio.Protocol] = {}
        self._silent: dict[socket.socket, asyncio.TimerHandle] = {}
        self._allowed = Allowance(most, _A_SECOND)
        self._probes = Allowance(_PROBES_A_SECOND, _PROBES_A_SECOND)
        self._pause: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        self._open()

    def close(self) -> None:
        """Take no more, and let go who waits to be refused."""
        self._loop.remove_reader(self._listening)
        if self._pause is not None:
            self._pause.cancel()
        for one in list(self._silent):
            self._let_go(one)

    def _open(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening, self._look)

    def _look(self) -> None:
        """Take those who stand there."""
        refused = False
        for _ in range(_AT_A_TIME):
            try:
                one, _address = self._listening.accept()
            except BlockingIOError:
                break
            except OSError:
                # The client has gone, or there are no file handles: none for anybody, for now.
                refused = True
                break
            one.setblocking(False)
            if self._inside < self._most and self._allowed.take():
                self._let_in(one)
            else:
                refused = True
                self._refuse(one)
        if refused:
            self._loop.remove_reader(self._listening)
            self._pause = self._loop.call_later(_BREATH_SECONDS, self._open)

    @property
    def _inside(self) -> int:
        """How many are served or about to be: a task ends a little after its connection is served."""
        return len(self._served) + sum(one not in self._served for one in self._coming.values())

    def _let_in(self, one: socket.socket) -> None:
        protocol = self._protocol()
        task = self._loop.create_task(self._serve(one, protocol))
        self._coming[task] = protocol
        task.add_done_callback(self._coming.pop)

    async def _serve(self, one: socket.socket, protocol: asyncio.Protocol) -> None:
        with suppress(OSError):
            await self._loop.connect_accepted_socket(lambda: protocol, one)

    def _refuse(self, one: socket.socket) -> None:
        """Refuse what a client asks; where it has asked nothing yet, wait a moment for that."""
        import socket

        try:
            begins = one.recv(len(_PROBES[0]), socket.MSG_PEEK)
        except BlockingIOError:
            if len(self._silent) >= self._most:
                # Each that waits takes a file handle, of which the run needs some too.
                one.close()
            else:
                self._silent[one] = self._loop.call_later(_REFUSED_SECONDS, self._let_go, one)
                self._loop.add_reader(one, self._heard, one)
            return
        except OSError:
            one.close()
            return
        if begins.startswith(_PROBES) and self._probes.take():
            self._let_in(one)
            return
        with one, suppress(OSError):
            # What nobody has read would reset the connection, and the client not see the answer.
            one.recv(65536)
            one.send(_REFUSAL)

    def _heard(self, one: socket.socket) -> None:
        self._loop.remove_reader(one)
        self._silent.pop(one).cancel()
        self._refuse(one)

    def _let_go(self, one: socket.socket) -> None:
        self._loop.remove_reader(one)
        self._silent.pop(one).cancel()
        one.close()
