"""The page of a pipeline file that somebody works on: its verdict as it is saved, first rows, and its run."""

from __future__ import annotations

import json
import re
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from gem_bundle.check.checker import check_definition
from gem_bundle.errors import GemError, PipelineError
from gem_bundle.pipeline.loader import LoadOptions, load_document, read_file
from gem_bundle.pipeline.secrets import HIDDEN
from gem_bundle.run.api import open_for, prepare
from gem_bundle.run.found import micro_batch_of, of_interest, runs_in
from gem_bundle.run.options import RunOptions
from gem_bundle.run.preview import preview
from gem_bundle.run.serving.drawn import Drawn, draw, may_be_secret
from gem_bundle.run.serving.events import Events
from gem_bundle.run.serving.guard import Guard
from gem_bundle.run.serving.history import History
from gem_bundle.run.serving.shown import json_object, page_routes, refusals
from gem_bundle.runs.record import runs_place
from gem_bundle.types import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from pyspark.sql import SparkSession
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.pipeline.document import Document
    from gem_bundle.pipeline.model import Definition
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.preview import Preview

ROWS = 20
_TIMEOUT_SECONDS = 30.0
_LOOK_SECONDS = 1.0
# A look at a store lists a folder, which costs money there.
_LOOK_SECONDS_REMOTE = 10.0
_NEVER_READ = {"pipeline": "", "version": "", "description": "", "mode": "", "nodes": []}
_KEY = re.compile(r"[\"']?(?P<key>[\w.\-]+)[\"']?\s*:")


class FilePage:
    """What the page of a pipeline file shows.

    Use it as a context manager: meanwhile it looks for a run of the pipeline, and with its end Spark ends.

    Args:
        file: The pipeline file.
        parameters: Values for its parameters.
        profile: The profile to use.
    """

    def __init__(self, file: str, parameters: Mapping[str, Any], profile: str | None) -> None:
        self.events = Events()
        self._file = file
        self._parameters = parameters
        self._profile = profile
        self._drawn = Drawn({}, str)
        self._definition: Definition | None = None
        self._run: dict[str, Any] = {}
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, name="gem-bundle-runs", daemon=True)
        self._spark = _Spark()

    def __enter__(self) -> Self:
        self._looking.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._spark.close()

    def check(self) -> list[Diagnostic]:
        """Read and check the file as it is now, and tell those who look."""
        document = read_file(self._file)
        checked = check_definition(load_document(document, LoadOptions(self._parameters, self._profile)))
        if checked.known is not None:
            self._definition = checked.definition
            self._drawn = draw(checked.known, checked.diagnostics)
        else:
            self._drawn = self._broken(document, checked.diagnostics)
        self.events.publish("pipeline", {**self.pipeline(), "control": False})
        return checked.diagnostics

    def _broken(self, document: Document, diagnostics: list[Diagnostic]) -> Drawn:
        """A file that can't be read, with the graph that it had."""
        before = self._drawn
        changed = {
            "file": document.file,
            "diagnostics": before.without_secrets(found.as_dict() for found in diagnostics),
            "text": before.conceal(_without_pairs(document.source)),
        }
        return Drawn({**_NEVER_READ, **before.content, **changed}, before.conceal)

    # What the server asks.

    def pipeline(self) -> dict[str, Any]:
        """The pipeline as JSON takes it."""
        return {"kind": "file", **self._drawn.content}

    def status(self) -> dict[str, Any]:
        """The run of the pipeline that is alive, or its last one; empty where none is known."""
        return self._run

    def targets(self) -> list[str]:
        """The ids of the run's targets."""
        return list(self._run.get("targets", ()))

    def history(self) -> dict[str, Any]:
        """The last micro-batches, which are all that the run's record has of its history."""
        history = History()
        for name, target in self._run.get("targets", {}).items():
            for batch in target["recent"]:
                with suppress(TypeError, ValueError):  # another version of gem-bundle has written it
                    history.add(name, micro_batch_of(batch))
        return history.as_dict()

    def plan(self, target: str) -> str:  # noqa: ARG002 (the run's process alone has it)
        """Nothing: only the run's own server has it."""
        return ""

    def preview(self, node: str) -> dict[str, Any]:
        """The first rows of a node, as JSON takes them.

        Args:
            node: The node, or ``id.output``.

        Raises:
            PipelineError: When it can't be read.
        """
        options = RunOptions(parameters=self._parameters, profile=self._profile, quiet=True)
        plan, _ = prepare(lambda load_options: load_document(read_file(self._file), load_options), options)
        with self._spark.session(plan, options) as spark:
            found = preview(plan, node, spark, ROWS, _TIMEOUT_SECONDS)
            return _told(found)

    def without_secrets(self, diagnostics: list[Diagnostic]) -> list[dict[str, Any]]:
        """Diagnostics as JSON takes them, without what nobody is to see."""
        return self._drawn.without_secrets(found.as_dict() for found in diagnostics)

    def _look(self) -> None:
        """Look for a run of the pipeline, until the end."""
        while True:
            definition = self._definition
            place = runs_place(definition) if definition is not None else ""
            if self._over.wait(_LOOK_SECONDS_REMOTE if is_remote(place) else _LOOK_SECONDS):
                return
            if place:
                self._look_once(place)

    def _look_once(self, place: str) -> None:
        try:
            runs = of_interest(runs_in(place))
        except GemError:  # it can't be seen now; what is known stays
            return
        found: dict[str, Any] = {}
        for run in runs[:1]:
            found = run.as_dict()
            found["diagnostics"] = self._drawn.without_secrets(found["diagnostics"])
            for target in found["targets"].values():
                if target["failure"] is not None:
                    (target["failure"],) = self._drawn.without_secrets([target["failure"]])
        if _lasting(found) != _lasting(self._run):
            self._run = found
            self.events.publish("run", found)


def make_file_app(page: FilePage, host: str, token: str) -> ASGIApp:
    """The application that answers for a pipeline file.

    Args:
        page: What it shows.
        host: Where the server listens.
        token: What requests have to carry; empty where they need nothing.
    """
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def first_rows(request: Request) -> Response:
        content = await json_object(request)
        node = content.get("node")
        if not isinstance(node, str) or len(content) > 1:
            raise HTTPException(400, "`preview` takes the id of a node as `node`.")
        try:
            return JSONResponse(await run_in_threadpool(page.preview, node))
        except PipelineError as error:
            return JSONResponse({"diagnostics": page.without_secrets(list(error.diagnostics))}, 422)

    routes = [
        *page_routes(page, allow_control=False),
        Route("/api/v1/preview", first_rows, methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes, exception_handlers=refusals()), host, token)


class _Spark:
    """A session that is kept for the next look, as long as it fits the pipeline; one look at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._session: SparkSession | None = None
        self._needs: object = None

    @contextmanager
    def session(self, plan: Plan, options: RunOptions) -> Iterator[SparkSession]:
        """The session, one that was opened for the same gems and settings."""
        gems = {(gem.kind, plan.definition.nodes[name].gem) for name, gem in plan.gems.items()}
        needs = (gems, plan.definition.spark)
        with self._lock:
            if self._session is None or needs != self._needs:
                self._end()
                opened = open_for(plan, plan.definition.nodes, options)
                self._session, self._needs = self._stack.enter_context(opened).spark, needs
            yield self._session

    def close(self) -> None:
        """End Spark, where it was started."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._session = None
        self._stack.close()


def _told(found: Preview) -> dict[str, Any]:
    return {
        "node": found.node,
        "streaming": found.streaming,
        "columns": [{"name": f.name, "type": f.dataType.simpleString()} for f in found.schema.fields],
        "rows": [[_word(value) for value in row] for row in found.rows],
        "complete": found.complete,
    }


def _word(value: Any) -> str | None:
    """A value as people read it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            return f"0x{bytes(value[:32]).hex()}"
    as_dict = getattr(value, "asDict", None)
    return json.dumps(as_dict(recursive=True), default=str, ensure_ascii=False) if as_dict else str(value)


def _lasting(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run without what changes with every look."""
    return {key: value for key, value in run.items() if key not in {"heartbeat", "silence", "why"}}


def _without_pairs(text: str) -> str:
    """A YAML that can't be read, without what stands behind and below keys that are called as secrets are."""
    lines: list[str] = []
    depth: int | None = None
    for line in text.split("\n"):
        own = len(line) - len(line.lstrip())
        if depth is not None and (own > depth or not line.strip()):
            lines.append(HIDDEN if line.strip() else line)
            continue
        secret = next((key for key in _KEY.finditer(line) if may_be_secret(key["key"])), None)
        depth = None if secret is None else own
        lines.append(line if secret is None else f"{line[: secret.end()]} {HIDDEN}")
    return "\n".join(lines)
