"""What the server of a run answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gem_bundle.run.serving.events import encoded
from gem_bundle.run.serving.guard import BRIEF, MOST_BYTES, Guard
from gem_bundle.run.serving.shown import Shown, page_routes
from gem_bundle.runs.requests import Request as Wish

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from gem_bundle.run.serving.events import Events
    from gem_bundle.run.serving.metrics import Metrics


@dataclass(frozen=True)
class Health:
    """Whether something is well, and what is wrong where it isn't.

    Args:
        ok: Whether it is.
        state: How the run is.
        reason: What is wrong.
    """

    ok: bool
    state: str
    reason: str = ""


class Watched(Shown, Protocol):
    """The run that is watched; each of its methods may be called from the server's thread."""

    metrics: Metrics
    events: Events

    def status(self) -> dict[str, Any]:
        """The run as JSON takes it."""

    def health(self) -> Health:
        """Whether it works."""

    def ready(self) -> Health:
        """Whether all its queries run."""

    def ask(self, wish: Wish) -> None:
        """Ask it to do something."""


def make_app(run: Watched, host: str, token: str, *, allow_control: bool) -> ASGIApp:
    """The application that answers for a run.

    Args:
        run: The run.
        host: Where the server listens.
        token: What requests have to carry; empty where they need nothing.
        allow_control: Let requests stop the run, and stop and resume single targets.
    """
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse, StreamingResponse
    from starlette.responses import Response as Plain
    from starlette.routing import Route

    async def metrics(request: Request) -> Response:
        # Not on the loop: with many targets it takes milliseconds, and events shouldn't wait.
        content, kind = await run_in_threadpool(run.metrics.exposed, request.headers.get("accept", ""))
        return Plain(content, headers={"content-type": kind})

    def told(request: Request, found: Health) -> Response:
        content: dict[str, Any] = {"ok": found.ok}
        if not request.scope.get(BRIEF):
            content |= {"state": found.state, "reason": found.reason}
        return JSONResponse(content, 200 if found.ok else 503)

    async def health(request: Request) -> Response:
        return told(request, run.health())

    async def ready(request: Request) -> Response:
        return told(request, run.ready())

    async def status(_: Request) -> Response:
        return JSONResponse(run.status())

    async def events(_: Request) -> Response:
        if run.events.is_full:
            raise HTTPException(503, "Too many are listening already.")
        listening = run.events.listen(lambda: encoded("run", run.status()))
        return StreamingResponse(listening, media_type="text/event-stream")

    async def control(request: Request) -> Response:
        if not allow_control:
            raise HTTPException(403, "This server only shows: the run was started without `--allow-control`.")
        wish = await wish_of(request)
        run.ask(wish)
        return JSONResponse({"ok": True}, 202)

    async def wish_of(request: Request) -> Wish:
        # A page of another origin can't send this type without asking first, and is never allowed to.
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HTTPException(415, "Send JSON, as `Content-Type: application/json`.")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                raise HTTPException(413, f"A request has at most {MOST_BYTES:,} bytes.")
        action = request.url.path.rpartition("/")[2]
        keys = {"target", "now"} if action == "stop" else {"target"}
        try:
            content = json.loads(body or b"{}")
        except ValueError as error:
            raise HTTPException(400, "That is no JSON.") from error
        if not isinstance(content, dict) or content.keys() - keys:
            raise HTTPException(400, f"`{action}` takes {' and '.join(sorted(keys))}.")
        target, now = content.get("target", ""), content.get("now", False)
        if target not in ["", *run.targets()] or not isinstance(now, bool):
            raise HTTPException(
                400, f"The run has the targets {', '.join(run.targets())}; `now` is a boolean."
            )
        if action == "resume" and not target:
            raise HTTPException(400, "`resume` takes the id of a target.")
        client = request.client.host if request.client else "somebody"
        return Wish("stop" if action == "stop" else "resume", target, now, f"{client} over HTTP")

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    async def broken(_: Request, error: Exception) -> Response:  # noqa: ARG001 (Starlette's shape)
        return JSONResponse({"error": "That failed; the run goes on."}, 500)

    app = Starlette(
        routes=[
            *page_routes(run, allow_control=allow_control),
            Route("/metrics", metrics),
            Route("/health", health),
            Route("/ready", ready),
            Route("/api/v1/status", status),
            Route("/api/v1/events", events),
            Route("/api/v1/stop", control, methods=["POST"]),
            Route("/api/v1/resume", control, methods=["POST"]),
        ],
        exception_handlers={HTTPException: refused, Exception: broken},
    )
    return Guard(app, host, token)
