"""The connection to Redis, on the driver and on executors."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gem_bundle import GemError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from redis import Redis

_LOGIN = "Correct `password` and `username`."
_ALLOW = "Let the user run EVAL, EXISTS, TYPE, XINFO and XRANGE on these streams."
_REACH = "Check host and port, and that it runs."

Places = str | dict[str, str]


@dataclass(frozen=True)
class Settings:
    """What is read, and from where. It goes to other processes as the options of Spark's reader.

    Args:
        url: The server.
        streams: The keys.
        username: The user to log in as.
        password: In the clear: Spark doesn't show an option of that name.
        certificates: Those to trust in place of the system's, as PEM.
        verify: Whether the server's must be trusted.
        timeout: Seconds to wait for the server.
        starting: Where to start.
        ending: Where a batch read ends.
        limit: The most entries in a micro-batch.
        per_partition: The most entries that one task reads.
        fetch: The most entries asked for at once.
        binary: Whether values are bytes.
        fail_on_loss: Whether to fail when entries are gone that weren't read.
    """

    url: str
    streams: tuple[str, ...]
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)
    verify: bool = True
    timeout: float = 10.0
    starting: Places = "earliest"
    ending: Places = "latest"
    limit: int | None = None
    per_partition: int = 10_000
    fetch: int = 1_000
    binary: bool = False
    fail_on_loss: bool = True

    def to_options(self) -> dict[str, str]:
        """The settings as texts, which is what Spark passes on. Only the password is in one of its own."""
        rest = {name: value for name, value in asdict(self).items() if name != "password"}
        found = {"settings": json.dumps(rest)}
        return found if self.password is None else {**found, "password": self.password}

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Settings:
        """The settings that `to_options` made a text of."""
        found: dict[str, Any] = json.loads(options["settings"])
        return cls(**{**found, "streams": tuple(found["streams"]), "password": options.get("password")})

    def place(self, stream: str, *, end: bool = False) -> str:
        """Where to start with a stream, or where to end: a word or an id."""
        places = self.ending if end else self.starting
        return places if isinstance(places, str) else places.get(stream, "latest" if end else "earliest")


@contextmanager
def connected(settings: Settings) -> Iterator[Redis]:
    """A client, until the block ends. What goes wrong with Redis in the block is told in a sentence.

    Raises:
        GemError: When the server can't be reached, doesn't take the login, or refuses a command.
    """
    with speaking(settings), connect(settings) as client:
        yield client


@contextmanager
def speaking(settings: Settings) -> Iterator[None]:
    """Tell in a sentence what goes wrong with Redis in the block.

    Raises:
        GemError: When something does.
    """
    import redis

    try:
        yield
    except redis.RedisError as error:
        for kind, option, what, hint in (
            (redis.AuthenticationError, "password", "doesn't take the login", _LOGIN),
            (redis.exceptions.NoPermissionError, "username", "doesn't allow the user to read", _ALLOW),
            (redis.ConnectionError, "url", "can't be reached", _REACH),
            (redis.TimeoutError, "url", "can't be reached", _REACH),
            (redis.RedisError, None, "refuses a command", ""),
        ):
            if isinstance(error, kind):
                text = _said(error, settings)
                message = f"the server `{settings.url}` {what}: {text}"
                raise GemError("GB503", message, hint, option) from error


def connect(settings: Settings, *, retries: int = 3) -> Redis:
    """A client of the server.

    Args:
        settings: Where it is.
        retries: How often to try again when a connection fails.
    """
    import redis
    from redis.backoff import ExponentialBackoff
    from redis.retry import Retry

    parts = urlsplit(settings.url)
    tls: dict[str, Any] = {}
    if parts.scheme == "rediss":
        tls = {
            "ssl": True,
            "ssl_cert_reqs": "required" if settings.verify else "none",
            "ssl_check_hostname": settings.verify,
            "ssl_ca_data": settings.certificates,
        }
    return redis.Redis(
        host=parts.hostname or "",
        port=parts.port or 6379,
        db=int(parts.path.strip("/") or 0),
        username=settings.username,
        password=settings.password,
        socket_timeout=settings.timeout,
        socket_connect_timeout=settings.timeout,
        retry=Retry(ExponentialBackoff(cap=2.0, base=0.1), retries),
        protocol=2,
        **tls,
    )


def _said(error: Exception, settings: Settings) -> str:
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return text.replace(settings.password, "**********") if settings.password else text
