"""When a Spark Connect server goes away before what runs on it has ended: killed, or started again."""

from __future__ import annotations

import re
import socket
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from gem_bundle.errors import GemError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOST_SERVER = "GB525"

_PATIENCE_SECONDS = 10.0
"""For so long a server's port may refuse connections before the server counts as gone."""
_PAUSE_SECONDS = 90.0
"""pyspark's client waits less between two attempts: a refusal from before that was another failure's."""
_LOOK_SECONDS = 0.2
_CONNECT_SECONDS = 5.0
_PORT = 15002

# What is said of a session of a server that has been started again since, or has ended it.
_FORGOTTEN = re.compile(
    r"INVALID_HANDLE\.SESSION_(?:CHANGED|NOT_FOUND|CLOSED)|incorrect server side session identifier"
)
# pyspark's client ends its session by itself when it hears that.
_CLOSED = "[NO_ACTIVE_SESSION]"
# What is said by a server that is about to end, and may still listen.
_SIGNS = re.compile(
    r"Application error processing RPC|SparkContext was shut down|stopped SparkContext|Shutdown in progress"
)
# Before Spark 4.1 pyspark tells gRPC's status in its text only, and in a class of its own when it gives up.
_UNAVAILABLE = re.compile(r"\A<_\w+ of RPC that terminated with:\s+status = StatusCode\.UNAVAILABLE")
_GIVEN_UP = "RetriesExceeded"
_OVER_CONNECT = "pyspark.errors.exceptions.connect"
_HINT = "Start it again, then this: a run goes on where its checkpoints are. Its log says why it has ended."
_AGAIN = "Start this again: a run goes on where its checkpoints are."

_connected: list[tuple[str, tuple[str, int] | None]] = []


def lost_server(error: BaseException) -> GemError | None:
    """That a Spark Connect server is gone, where that is what an error says.

    Args:
        error: What was raised.

    Returns:
        GB525 for whoever started the run; None for any other failure.
    """
    if _is_unavailable(error):
        return _gone()
    over_connect = type(error).__module__ == _OVER_CONNECT
    if over_connect and (gone := ending_server(str(error))) is not None:
        return gone
    closed = over_connect and _CLOSED in str(error)
    if closed or (_is_of_pyspark(error) and _FORGOTTEN.search(str(error))):
        said = f"{_name()} doesn't know this session any more: it was started again, or has ended the session"
        return GemError(LOST_SERVER, said, _AGAIN)
    return None


def ending_server(said: str) -> GemError | None:
    """That the server has ended that this process has connected to, where what has failed is a sign of that.

    Args:
        said: What failed on it.

    Returns:
        GB525 once it listens no more; None where it goes on doing so.
    """
    return ended_server() if _connected and _SIGNS.search(said) else None


def ended_server() -> GemError | None:
    """That the server has ended that this process has connected to; what it does at its end is waited for.

    Returns:
        GB525 once it listens no more; None where it goes on doing so.
    """
    until = time.monotonic() + _PATIENCE_SECONDS
    place = _connected[-1][1] if _connected else None
    while place is not None and not _refuses(place):
        if time.monotonic() >= until:
            return None
        time.sleep(_LOOK_SECONDS)
    return _gone() if place is not None else None


def address_of(url: str) -> str:
    """A server's address as people may see it: without what comes with it, such as a token.

    Args:
        url: What ``SPARK_REMOTE`` has.
    """
    return url.partition(";")[0].rstrip("/")


def socket_of(url: str) -> tuple[str, int] | None:
    """The host and the port of a server that is talked to without a proxy; else None.

    Args:
        url: What ``SPARK_REMOTE`` has.
    """
    parts = urlsplit(url)
    if parts.scheme != "sc" or not parts.hostname or getproxies():
        return None
    return parts.hostname, parts.port or _PORT


class Patience:
    """How long pyspark's client is let ask for a server that doesn't answer.

    By itself it asks for ten minutes, which is right where a network fails for a while. Where the port
    refuses connections the server has ended, and its sessions and queries with it.

    Args:
        place: The server's host and port; None where they can't be tried.

    Attributes:
        closing: The session is being closed: what can't be told the server now, it finds out by itself.
    """

    def __init__(self, place: tuple[str, int] | None) -> None:
        self.closing = False
        self._place = place
        self._since: float | None = None
        self._last = 0.0
        self._is_over = False

    def is_over(self) -> bool:
        """Whether there is nobody left to ask; told at each attempt that has failed."""
        if self._is_over:
            return True
        now = time.monotonic()
        if not self.closing and not _refuses(self._place):
            self._since = None
            return False
        if self._since is None or now - self._last > _PAUSE_SECONDS:
            self._since = now
        self._last = now
        self._is_over = now - self._since >= _PATIENCE_SECONDS
        return self._is_over


def watched(spark: SparkSession, url: str) -> Patience:
    """Remember the server of a session, and let the session's client not ask for it when it is gone.

    Args:
        spark: A session over Spark Connect that was made here.
        url: What it was made with.
    """
    # What has come of it is told as an error.
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    place = socket_of(url)
    _connected.append((address_of(url), place))
    patience = Patience(place)
    client = spark.client
    client.set_retry_policies([_impatient(policy, patience) for policy in client.get_retry_policies()])
    return patience


def _impatient(policy: Any, patience: Patience) -> Any:
    """A policy of pyspark's client that ends with our patience, else the same."""
    kind = type(policy)

    def can_retry(self: Any, error: BaseException) -> bool:
        return bool(kind.can_retry(self, error)) and not patience.is_over()

    made = type(kind.__name__, (kind,), {"can_retry": can_retry})()
    vars(made).update(vars(policy))
    return made


def _refuses(place: tuple[str, int] | None) -> bool:
    if place is None:
        return False
    try:
        socket.create_connection(place, timeout=_CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _is_unavailable(error: BaseException) -> bool:
    """Whether a call has ended with gRPC's status for a server that isn't there."""
    if type(error).__module__.partition(".")[0] == "grpc":
        asked = getattr(error, "code", None)
    elif _is_of_pyspark(error):
        if type(error).__name__ == _GIVEN_UP or _UNAVAILABLE.match(str(error)):
            return True
        asked = getattr(error, "getGrpcStatusCode", None)
    else:
        return False
    return callable(asked) and getattr(asked(), "name", "") == "UNAVAILABLE"


def _is_of_pyspark(error: BaseException) -> bool:
    if "pyspark.errors" not in sys.modules:
        return False
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException)


def _gone() -> GemError:
    return GemError(LOST_SERVER, f"{_name()} went away: nobody answers there any more", _HINT)


def _name() -> str:
    return f"the Spark Connect server at {_connected[-1][0]}" if _connected else "the Spark Connect server"
