"""What happens in a run, for those who listen; one who listens too slowly is let go."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

MOST_LISTENERS = 32
MOST_WAITING = 256
KEEP_ALIVE_SECONDS = 15.0


class Events:
    """Passes events to listeners; all but `publish` belongs to the server's thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._closed = False

    def begin(self) -> None:
        """Let events arrive, from the loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def publish(self, event: str, content: dict[str, Any]) -> None:
        """Tell of an event, from any thread; never waits.

        Args:
            event: What it is.
            content: What there is to say of it.
        """
        if self._loop is None or self._closed:
            return
        try:
            self._loop.call_soon_threadsafe(self._pass_on, encoded(event, content))
        except RuntimeError:  # the loop has ended
            self._closed = True

    def close(self) -> None:
        """Say good-bye to all listeners."""
        self._closed = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._pass_on, None)

    def _pass_on(self, content: bytes | None) -> None:
        for queue in list(self._listeners):
            try:
                queue.put_nowait(content)
            except asyncio.QueueFull:
                self._listeners.discard(queue)
                # The one who is too slow gets the end next, and may come again.
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)

    @property
    def is_full(self) -> bool:
        """Whether nobody more may listen."""
        return self._closed or len(self._listeners) >= MOST_LISTENERS

    async def listen(self, first: Callable[[], bytes]) -> AsyncIterator[bytes]:
        """The events from now on, as server-sent events.

        Args:
            first: Makes what the listener gets at once.
        """
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING)
        self._listeners.add(queue)
        try:
            yield first()
            while True:
                try:
                    content = await asyncio.wait_for(queue.get(), KEEP_ALIVE_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if content is None:
                    return
                yield content
        finally:
            self._listeners.discard(queue)


def encoded(event: str, content: dict[str, Any]) -> bytes:
    """An event as the protocol has it."""
    return f"event: {event}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n".encode()
