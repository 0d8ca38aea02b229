"""Passes events to OpenLineage's client, in a thread of its own, so that no receiver holds the run up."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError, describe_error

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_WAITING = 1000
_END_SECONDS = 10.0


def check_lineage(place: str) -> None:
    """See to it that events can be sent.

    Args:
        place: A URL, or a file.

    Raises:
        GemError: GB509 without the client, GB511 when the file can't be written.
    """
    try:
        import openlineage.client  # noqa: F401 (only whether it is there)
    except ImportError as error:
        message = f"`--lineage` needs a package that isn't installed: {error}"
        raise GemError("GB509", message, "Install it with `pip install 'gem-bundle[lineage]'`.") from error
    if not is_url(place):
        try:
            with open(place, "a", encoding="utf-8"):  # noqa: PTH123 (as the client opens it)
                pass
        except OSError as error:
            message = f"{place} can't be written: {error.strerror or error}"
            raise GemError("GB511", message, "Name a file in a folder that you may write to.") from error


def is_url(place: str) -> bool:
    """Whether events are sent to a server, and not written to a file."""
    return place.startswith(("http://", "https://"))


class Sender:
    """Sends events one after the other; what can't be sent is said once, and the run goes on.

    Args:
        place: A URL, or a file to which a line is added for each.
        warn: Who is told when one can't be sent.
    """

    def __init__(self, place: str, warn: Callable[[Diagnostic], None] | None = None) -> None:
        self._place = place
        self._warn = warn
        self._waiting: queue.Queue[Any] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._send, name="gem-bundle-lineage", daemon=True)
        self._thread.start()

    def send(self, event: Any) -> None:
        """Send an event, soon; where too many wait already the oldest is left out."""
        while True:
            try:
                self._waiting.put_nowait(event)
                return
            except queue.Full:
                with suppress(queue.Empty):
                    self._waiting.get_nowait()

    def close(self) -> None:
        """Send what waits, and end; a receiver that doesn't answer isn't waited for."""
        self.send(None)
        self._thread.join(_END_SECONDS)

    def _client(self) -> Any:
        from openlineage.client import OpenLineageClient
        from openlineage.client.transport.file import FileConfig, FileTransport
        from openlineage.client.transport.http import HttpConfig, HttpTransport

        if not is_url(self._place):
            return OpenLineageClient(transport=FileTransport(FileConfig(self._place, append=True)))
        config: dict[str, Any] = {"url": self._place}
        return OpenLineageClient(transport=HttpTransport(HttpConfig.from_dict(config)))

    def _send(self) -> None:
        client: Any = None
        warned = False
        while (event := self._waiting.get()) is not None:
            try:
                client = client or self._client()
                client.emit(event)
            except Exception as error:  # noqa: BLE001 (whatever a transport raises)
                if not warned and self._warn is not None:
                    self._warn(_unsent(self._place, error))
                warned = True


def _unsent(place: str, error: Exception) -> Diagnostic:
    message = f"an event of the run's lineage can't be sent to {place}: {describe_error(error)}"
    hint = (
        "The run goes on, and the next events are tried too. OpenLineage's client reads OPENLINEAGE_API_KEY."
    )
    return Diagnostic("GB521", "warning", message, hint=hint)
