"""What the server of a run answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gem_bundle.run.serving.guard import BRIEF, Guard
from gem_bundle.run.serving.shown import Shown, json_object, page_routes, refusals
from gem_bundle.runs.requests import Request as Wish

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from gem_bundle.run.serving.metrics import Metrics


@dataclass(frozen=True)
class Health:
    """Whether something is well, and what is wrong where it isn't.

    Args:
        ok: Whether it is well.
        state: How the run is.
        reason: What is wrong; empty where nothing is.
    """

    ok: bool
    state: str
    reason: str = ""


class Watched(Shown, Protocol):
    """The run that is watched; each of its methods may be called from the server's thread."""

    metrics: Metrics

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
    from starlette.responses import JSONResponse
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

    async def control(request: Request) -> Response:
        if not allow_control:
            raise HTTPException(403, "This server only shows: the run was started without `--allow-control`.")
        wish = await wish_of(request)
        run.ask(wish)
        return JSONResponse({"ok": True}, 202)

    async def wish_of(request: Request) -> Wish:
        action = request.url.path.rpartition("/")[2]
        keys = {"target", "now"} if action == "stop" else {"target"}
        content = await json_object(request)
        if content.keys() - keys:
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

    app = Starlette(
        routes=[
            *page_routes(run, allow_control=allow_control),
            Route("/metrics", metrics),
            Route("/health", health),
            Route("/ready", ready),
            Route("/api/v1/stop", control, methods=["POST"]),
            Route("/api/v1/resume", control, methods=["POST"]),
        ],
        exception_handlers=refusals(),
    )
    return Guard(app, host, token)
