"""The preflight: does the server answer, take the login, and have the streams?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle import Finding
from gem_redis_streams.connection import connect, speaking
from gem_redis_streams.ids import NONE
from gem_redis_streams.pages import look

if TYPE_CHECKING:
    from gem_redis_streams.connection import Settings

SECONDS = 5.0


def check_streams(settings: Settings) -> list[Finding]:
    """What is wrong with the server or the streams; nothing is changed.

    Raises:
        GemError: When the server can't be reached, or doesn't allow to read.
    """
    found = []
    hasty = replace(settings, timeout=min(settings.timeout, SECONDS))
    with speaking(hasty), connect(hasty, retries=0) as client:
        for stream in settings.streams:
            kind = client.type(stream)
            name = kind.decode() if isinstance(kind, bytes) else str(kind)
            if name not in ("stream", "none"):
                message = f"`{stream}` in `{settings.url}` is a {name}, and not a stream"
                found.append(Finding("REDIS002", message, "Correct the key.", "streams"))
                continue
            if name == "none":
                message = f"there is no stream `{stream}` in `{settings.url}` yet"
                hint = "A stream of Spark reads it as soon as it appears, if that is its key."
                found.append(Finding("REDIS001", message, hint, "streams", "warning"))
            look(client, stream, NONE, None, 1)
    return found
