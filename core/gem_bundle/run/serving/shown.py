"""The page, and what only the page asks for: the pipeline, its numbers over time, Spark's plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from gem_bundle.run.serving.assets import POLICY, PREFIX, assets

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


class Shown(Protocol):
    """What the page shows; each of its methods may be called from any thread."""

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
    from starlette.responses import JSONResponse
    from starlette.responses import Response as Plain
    from starlette.routing import Route

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
        Route("/api/v1/pipeline", pipeline),
        Route("/api/v1/history", history),
        Route("/api/v1/plan", plan),
    ]
