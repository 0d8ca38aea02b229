"""Who is let in: requests to names of this machine, from no other page, with the token where there is one."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from gem_bundle.run.serving.address import is_own, own_names
from gem_bundle.run.serving.assets import assets

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BRIEF = "gem_bundle.brief"
"""The key in a request's scope that says: answer with yes or no only."""

MOST_BYTES = 10_000
# A cluster's probes carry no token; they learn yes or no.
_PROBES = frozenset({"/health", "/ready"})


# What an answer has that doesn't say otherwise.
_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
}


class Refusal(NamedTuple):
    """Why a request isn't answered."""

    status: int
    why: str


class Guard:
    """Refuses what mustn't be answered before anything looks at it.

    Args:
        app: What answers.
        host: Where the server listens.
        token: What requests have to carry; empty where they need nothing.
    """

    def __init__(self, app: ASGIApp, host: str, token: str) -> None:
        self._app = app
        self._names = own_names(host)
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        from starlette.datastructures import Headers
        from starlette.responses import JSONResponse

        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(headers)
        sending = _careful(send)
        if refusal is None and not self._is_known(headers):
            if scope["path"] in assets() and scope["method"] in {"GET", "HEAD"}:
                pass  # a browser can't send a token before there is a page that asks for it
            elif scope["path"] in _PROBES and scope["method"] in {"GET", "HEAD"}:
                scope[BRIEF] = True
            else:
                refusal = Refusal(401, "This server wants a token: `Authorization: Bearer …`.")
        if refusal is None:
            await self._app(scope, receive, sending)
            return
        more = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
        await JSONResponse({"error": refusal.why}, refusal.status, more)(scope, receive, sending)

    def _refusal(self, headers: Headers) -> Refusal | None:
        host = headers.get("host", "")
        if not is_own(host, self._names):
            return Refusal(403, "The `Host` header names another machine. Ask by address, or by its name.")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return Refusal(403, "Pages of other origins aren't answered.")
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MOST_BYTES:
            return Refusal(413, f"A request has at most {MOST_BYTES:,} bytes.")
        return None

    def _is_known(self, headers: Headers) -> bool:
        if not self._token:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and secrets.compare_digest(given.strip().encode(), self._token)


def _careful(send: Send) -> Send:
    """Sends answers with the headers that all of them have."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            more = [pair for pair in _HEADERS.items() if pair[0] not in names]
            message = {**message, "headers": [*given, *more]}
        await send(message)

    return sending
