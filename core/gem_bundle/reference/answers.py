"""The page of what runs tell as JSON: over HTTP, on the command line, and in their reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gem_bundle.describe.markdown import table
from gem_bundle.reference import run_shapes as shapes
from gem_bundle.reference.shapes import Shape, keys_table, link, with_inner

if TYPE_CHECKING:
    from collections.abc import Iterator


class Answer(NamedTuple):
    """What something answers with.

    Args:
        asked: What is asked: a request, or a command.
        shape: The shape of what it answers.
        meaning: What that is.
        brings: The shape of what a request brings; None for one that brings nothing.
    """

    asked: str
    shape: type[Shape]
    meaning: str
    brings: type[Shape] | None = None


HTTP = (
    Answer("GET /health", shapes.HEALTH, "Whether the run works: status 200, else 503."),
    Answer("GET /ready", shapes.HEALTH, "Whether all its queries run: status 200, else 503."),
    Answer("GET /api/v1/status", shapes.RUN, "The run, with the newest numbers."),
    Answer("GET /api/v1/pipeline", shapes.PIPELINE, "The pipeline."),
    Answer("GET /api/v1/history", shapes.HISTORY, "The numbers of the run over time."),
    Answer("GET /api/v1/plan?target=ID", shapes.PLAN, "Spark's plan of the query of a target."),
    Answer("POST /api/v1/stop", shapes.ACCEPTED, "Stops the run, or a target of it.", shapes.STOP),
    Answer("POST /api/v1/resume", shapes.ACCEPTED, "Starts the query of a target again.", shapes.RESUME),
    Answer("POST /api/v1/preview", shapes.ROWS, "First rows; `gem-bundle ui` only.", shapes.PREVIEW),
)
COMMANDS = (
    Answer("gem-bundle status FILE --format json", shapes.STATUS, "How the run of a pipeline is."),
    Answer("gem-bundle runs --format json", shapes.RUNS, "What runs, ran and died."),
    Answer("gem-bundle run FILE --report REPORT", shapes.REPORT, "Written into the file REPORT at the end."),
    Answer("gem-bundle rejected FILE|PLACE --format json", shapes.REJECTED, "What was rejected, and why."),
)
REFUSALS = {
    400: "What it brings isn't what is taken, or isn't JSON.",
    401: "It has no token, and one is wanted; or another one.",
    403: "Its `Host` names another machine, or a page of another origin makes it, or the run was started "
    "without `--allow-control`.",
    404: "There is no such path, or no such target.",
    405: "The path takes another method.",
    413: "It has more than 10,000 bytes.",
    415: "What it brings isn't `application/json`.",
    422: "The pipeline, or what it reads, gives no first rows.",
    500: "The server has failed to answer; the run goes on.",
    503: "Too many ask at once, or too many listen to events.",
}


def answers_page() -> str:
    """All requests, events and commands that tell of runs, and every key of what they tell."""
    return "\n\n".join(_parts())


def _parts() -> Iterator[str]:
    yield "# JSON of runs"
    yield (
        "What the server of `gem-bundle run --serve` and `gem-bundle ui`, the commands and the report of a "
        "run tell. A key is always there unless it is optional; `null` is what isn't known, or isn't there. "
        "A number without a unit is a count, or a place in an order. "
        "A later gem-bundle may add keys, and events; a key never changes its meaning while `format` of a "
        f"{link(shapes.RUN)} and the `v1` of the paths stay."
    )
    yield "## Over HTTP"
    yield _http_table()
    yield (
        "`gem-bundle ui` has those below `/api/v1` but `stop` and `resume`. Its status is that of a run "
        "which is alive, or of the last one, and an empty object where none is known; its history is that of "
        "the last micro-batches. It has no plans."
    )
    yield "## Events"
    yield (
        "`GET /api/v1/events` answers with server-sent events: a line `event: ` with a name, a line `data: ` "
        "with an object, and an empty line. A line that begins with `:` says that the server is still there."
    )
    rows = [(f"`{name}`", link(shape), when) for name, (shape, when) in shapes.EVENTS.items()]
    rows.append(("`pipeline`", link(shapes.PIPELINE), "the file was read again; `gem-bundle ui` only"))
    yield table(("event", "has", "when"), rows)
    yield "## Refused requests"
    yield (
        f"Their answer is a {link(shapes.REFUSED)}; behind 422 it is {link(shapes.NO_ROWS)}, and behind 503 "
        f"of `/health` and `/ready` it is {link(shapes.HEALTH)}."
    )
    yield table(("status", "why"), [(str(status), why) for status, why in REFUSALS.items()])
    yield "## On the command line"
    yield table(
        ("command", "has", "what"), [(f"`{each.asked}`", link(each.shape), each.meaning) for each in COMMANDS]
    )
    for shape in documented_shapes():
        yield f"## {shape.__name__}"
        yield shape.__doc__ or ""
        yield keys_table(shape)


def documented_shapes() -> list[type[Shape]]:
    """The shapes of all that is told, and of what requests bring, with what is in them."""
    told = [*HTTP, *COMMANDS]
    brought = [each.brings for each in told if each.brings is not None]
    events = [shape for shape, _ in shapes.EVENTS.values()]
    return with_inner([*(each.shape for each in told), *brought, *events, shapes.REFUSED, shapes.NO_ROWS])


def _http_table() -> str:
    rows = []
    for each in HTTP:
        brings = link(each.brings) if each.brings is not None else ""
        rows.append((f"`{each.asked}`", brings, link(each.shape), each.meaning))
    return table(("request", "brings", "answer", "what"), rows)
