"""The page, and what only the page asks for: the pipeline, its numbers over time, Spark's plans."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from gem_bundle.run.serving.assets import POLICY, PREFIX, assets
from gem_bundle.run.serving.events import encoded
from gem_bundle.run.serving.guard import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from gem_bundle.run.serving.events import Events


class Shown(Protocol):
    """What the page shows; each of its methods may be called from any thread."""

    events: Events

    def status(self) -> dict[str, Any]:
        """The run as JSON takes it; empty where there is none."""

    def targets(self) -> list[str]:
        """The ids of the targets."""

    def pipeline(self) -> dict[str, Any]:
        """The pipeline as JSON takes it."""

    def history(self) -> dict[str, Any]:
        """The numbers over time as JSON takes them."""

    def plan(self, target: str) -> str:
        """Spark's plan of the query of a target; empty while there is none."""


def page_routes(shown: Shown, *, allow_control: bool) -> list[Route]:
    """The routes of the page.

    Args:
        shown: What it shows.
        allow_control: Whether it offers to stop the run, and to stop and resume single targets.
    """
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse, StreamingResponse
    from starlette.responses import Response as Plain
    from starlette.routing import Route

    async def status(_: Request) -> Response:
        return JSONResponse(shown.status())

    async def events(_: Request) -> Response:
        if shown.events.is_full:
            raise HTTPException(503, "Too many are listening already.")
        listening = shown.events.listen(lambda: encoded("run", shown.status()))
        return StreamingResponse(listening, media_type="text/event-stream")

    async def pipeline(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(shown.pipeline) | {"control": allow_control})

    async def history(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(shown.history))

    async def plan(request: Request) -> Response:
        target = request.query_params.get("target", "")
        if target not in shown.targets():
            raise HTTPException(404, f"There are the targets {', '.join(shown.targets())}.")
        # Spark is asked: that may take a while, and events shouldn't wait.
        return JSONResponse({"target": target, "plan": await run_in_threadpool(shown.plan, target)})

    async def asset(request: Request) -> Response:
        found = assets().get(request.url.path)
        if found is None:
            raise HTTPException(404, "There is no such file.")
        # Asked again each time, and sent again only when it is another one: a new version is seen at once.
        headers = {"etag": found.tag, "cache-control": "no-cache", "content-security-policy": POLICY}
        if request.headers.get("if-none-match") == found.tag:
            return Plain(status_code=304, headers=headers)
        return Plain(found.content, headers=headers, media_type=found.kind)

    return [
        Route("/", asset),
        Route(f"{PREFIX}{{name:path}}", asset),
        Route("/api/v1/status", status),
        Route("/api/v1/events", events),
        Route("/api/v1/pipeline", pipeline),
        Route("/api/v1/history", history),
        Route("/api/v1/plan", plan),
    ]


async def json_object(request: Request) -> dict[str, Any]:
    """The object that a request brings; anything else is refused."""
    from starlette.exceptions import HTTPException

    # A page of another origin can't send this type without asking first, and is never allowed to.
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "Send JSON, as `Content-Type: application/json`.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"A request has at most {MOST_BYTES:,} bytes.")
    try:
        content = json.loads(body or b"{}")
    except ValueError as error:
        raise HTTPException(400, "That is no JSON.") from error
    if not isinstance(content, dict):
        raise HTTPException(400, "Send an object.")
    return content


def refusals() -> Mapping[Any, Callable[[Request, Any], Any]]:
    """How an application says that it doesn't answer a request."""
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse

    async def refused(_: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    async def broken(_: Request, error: Exception) -> Response:  # noqa: ARG001 (Starlette's shape)
        return JSONResponse({"error": "That failed; the run goes on."}, 500)

    return {HTTPException: refused, Exception: broken}
