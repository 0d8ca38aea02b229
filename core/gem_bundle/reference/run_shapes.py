"""The shapes of what runs tell, made from the classes that make it; what no class says is said here."""

from __future__ import annotations

import inspect
from typing import Any, Literal

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.reference.shapes import Key, Shape, by_name, keys_of, list_of, shape, without
from gem_bundle.replay.counts import Counted, OfNode, Reason
from gem_bundle.run.health import Unwell
from gem_bundle.run.held import HeldRows
from gem_bundle.run.progress import MicroBatch, Totals
from gem_bundle.run.report import Report
from gem_bundle.run.restarts import Restarting
from gem_bundle.run.serving.app import Health
from gem_bundle.run.serving.history import Point
from gem_bundle.runs.life import Verdict
from gem_bundle.runs.process import Process
from gem_bundle.runs.record import FORMAT, RunRecord, State, TargetState

_WAITING = "as `lag_units` says"
_SINCE_1970 = "seconds since 1970"


def _property(of: type, name: str) -> str:
    """What the docstring of a property says."""
    return (inspect.getdoc(getattr(of, name)) or "").replace("None", "null")


def _only(keys: dict[str, Key], *names: str) -> dict[str, Key]:
    return {name: keys[name] for name in names}


_diagnostic = keys_of(Diagnostic)
DIAGNOSTIC = shape(
    "Diagnostic",
    "A problem, as `check --format json` has it too.",
    {
        **_only(_diagnostic, "code", "severity", "message", "hint", "node"),
        "path": Key(list_of(str | int), _diagnostic["path"].meaning),
        "file": Key(str, _property(Diagnostic, "file")),
        **{name: Key(int, _property(Diagnostic, name)) for name in ("line", "column")},
    },
)
_micro_batch = {
    **without(keys_of(MicroBatch, units={"lag": _WAITING, "newest": _WAITING}), {"held", "positions"}),
    **keys_of(HeldRows),
}
MICRO_BATCH = shape(
    "Micro-batch", "One micro-batch of a target. Idle ones, without any work, aren't told.", _micro_batch
)
_totals = keys_of(Totals, types={"last": MICRO_BATCH | None})
TOTALS = shape(
    "Totals",
    "The numbers of a target since the start of the run.",
    {**without(_totals, {"held"}), **keys_of(HeldRows)},
)
_unwell = keys_of(
    Unwell, units=dict.fromkeys(("value", "bound"), "seconds, a count or a share of 1, as the limit")
)
UNWELL = shape("Broken limit", "A limit of health that a target breaks.", _unwell)
TARGET = shape(
    "Target",
    "A target of a run.",
    keys_of(
        TargetState,
        types={
            "totals": TOTALS,
            "recent": list_of(MICRO_BATCH),
            "failure": DIAGNOSTIC | None,
            "unwell": list_of(UNWELL),
        },
    ),
)
_record = keys_of(
    RunRecord,
    types={
        "process": shape("Process", "The process of a run.", keys_of(Process)),
        "targets": by_name(TARGET),
        "diagnostics": list_of(DIAGNOSTIC),
    },
)
RUN = shape(
    "Run",
    "A run, as its record has it, and what that is worth.",
    {
        "format": Key(int, f"{FORMAT}; it grows when a key changes its meaning."),
        **_record,
        "healthy": Key(
            bool,
            "Whether it is alive, none of its queries has failed, and no target breaks a limit at `fail`.",
        ),
        **keys_of(Verdict),
        "plans": Key(
            by_name(str), "Spark's plan of each query that runs; with `status --plan` only.", always=False
        ),
    },
)
_report = keys_of(Report, types={"targets": by_name(TOTALS), "diagnostics": list_of(DIAGNOSTIC)})
REPORT = shape(
    "Report",
    "What a run did.",
    {
        **_only(_report, "pipeline", "version", "status", "started", "ended", "seconds"),
        "totals": Key(
            shape(
                "Totals of a run",
                "The numbers of all targets; what targets of one group share counts once.",
                {
                    "micro_batches": Key(int, _property(Report, "micro_batches")),
                    "rows_in": Key(int, _property(Report, "rows_in")),
                    "rows_out": Key(int | None, _property(Report, "rows_out")),
                    "late_rows": Key(int, _property(Report, "late_rows")),
                    "rejected_rows": Key(int, "Rows that transforms rejected."),
                },
            ),
            "The numbers of all targets.",
        ),
        **keys_of(HeldRows),
        **_only(_report, "targets", "diagnostics"),
    },
)

_TARGET_ID = Key(str, "The id of the target.")
_EVERY_STATE = by_name(State)
EVENTS: dict[str, tuple[type[Shape], str]] = {
    "run": (RUN, "at once, to whoever begins to listen; on the page of a file, whenever a run of it is seen"),
    "states": (
        shape(
            "States",
            "How the queries are.",
            {
                "state": Key(State, "How the run is."),
                "targets": Key(_EVERY_STATE, "How the query of each target is, by id."),
            },
        ),
        "a query starts, stops, fails or waits to be started again",
    ),
    "progress": (
        shape("Progress", "A micro-batch, and whose it is.", {"target": _TARGET_ID, **_micro_batch}),
        "a micro-batch ended",
    ),
    "unhealthy": (
        shape("Unhealthy", "A limit that a target breaks.", {"target": _TARGET_ID, **_unwell}),
        "a target breaks a limit of its health, or the other level of one",
    ),
    "healthy": (
        shape("Healthy", "A limit that a target broke, as it was.", {"target": _TARGET_ID, **_unwell}),
        "a target doesn't break a limit any more",
    ),
    "restarting": (
        shape(
            "Restarting",
            "A query that will be started again.",
            keys_of(Restarting, types={"failure": DIAGNOSTIC | None}),
        ),
        "a query has failed, or is unwell, and will be started again",
    ),
    "ended": (REPORT, "the run is over"),
}

_flow = {
    "streaming": Key(bool, "Whether it is a stream; else it is static."),
    "columns": Key(
        list_of(
            shape(
                "Column",
                "A column, as far as the check knows it.",
                {
                    "name": Key(str, "Its name."),
                    "type": Key(str | None, "Its Spark type as DDL, or null where it isn't known."),
                    "watermark": Key(
                        str | None,
                        "The watermark's delay, such as `10 minutes`, of one that is event time.",
                        unit="",
                    ),
                },
            )
        )
        | None,
        "Its columns; null where they aren't known.",
    ),
}
NODE = shape(
    "Node",
    "A node of the pipeline.",
    {
        "id": Key(str, "Its id."),
        "kind": Key(Literal["source", "transform", "target"], "What it is."),
        "gem": Key(str, "The name of its gem."),
        "description": Key(str, "Its description, as the file has it."),
        "mode": Key(Literal["stream", "batch"] | None, "How a source is read; null for others."),
        "output_mode": Key(
            Literal["append", "update", "complete"] | None, "That of a target; null for others."
        ),
        "trigger": Key(str | None, "That of a target, in words; null for others."),
        "group": Key(str, "The group of targets that it is in; or an empty text."),
        "options": Key(
            dict[str, Any],
            "Its options as the file has them; what is secret in them is asterisks. Of a pipeline in Python "
            "`…` stands for each value.",
        ),
        "inputs": Key(
            list_of(
                shape(
                    "Input",
                    "What a node reads.",
                    {
                        "node": Key(str, "The id of the node that gives it."),
                        "output": Key(str, "Which of its outputs; empty for the ordinary one."),
                        "name": Key(str, "What expressions call it."),
                    },
                )
            ),
            "What it reads, in order.",
        ),
        "outputs": Key(
            list_of(
                shape(
                    "Output",
                    "What a node gives.",
                    {"output": Key(str, "Its name; empty for the ordinary one."), **_flow},
                )
            ),
            "What it gives, the ordinary output first.",
        ),
    },
)
PIPELINE = shape(
    "Pipeline",
    "A pipeline as the page draws it, without its secrets.",
    {
        "kind": Key(Literal["run", "file"], "Whether it is that of a run, or a file that is being written."),
        "control": Key(bool, "Whether requests may stop the run, and stop and resume single targets."),
        "pipeline": Key(str, "Its name."),
        "version": Key(str, "Its version."),
        "description": Key(str, "Its description."),
        "mode": Key(str, "`stream` or `batch`; empty where its file never could be read."),
        "file": Key(str, "Its file, as the user wrote it; empty for a pipeline in Python."),
        "nodes": Key(list_of(NODE), "Its nodes: sources, transforms, targets."),
        "diagnostics": Key(list_of(DIAGNOSTIC), "What the check says of it."),
        "text": Key(str, "The text of its file."),
    },
)
_points = keys_of(Point, units={"time": _SINCE_1970})
HISTORY = shape(
    "History",
    "The numbers of a run over time.",
    {
        "targets": Key(
            by_name(
                shape(
                    "Columns of a target",
                    "Each key has the values of all points, the oldest first. A point is one micro-batch, or "
                    "several one after the other: the older they are, the more. What happened is added up "
                    "then, and what is so is as it was last.",
                    {
                        **{name: key._replace(type=list_of(key.type)) for name, key in _points.items()},
                        "lag": _points["lag"]._replace(
                            type=by_name(list_of(int | None)), unit="as its key says"
                        ),
                        "phases_ms": _points["phases_ms"]._replace(type=by_name(list_of(int))),
                    },
                )
            ),
            "By the ids of the targets.",
        )
    },
)
PLAN = shape(
    "Plan",
    "Spark's plan of the query of a target.",
    {
        "target": _TARGET_ID,
        "plan": Key(str, "The plan, as `StreamingQuery.explain` prints it; empty while there is none."),
    },
)
_health = keys_of(Health)
HEALTH = shape(
    "Health",
    "Whether something is well. Without the token, where one is wanted, only `ok` is told.",
    {**_health, **{name: _health[name]._replace(always=False) for name in ("state", "reason")}},
)
STOP = shape(
    "Stop request",
    "What is to stop.",
    {
        "target": Key(str, "The id of the target to stop; by default the whole run stops.", always=False),
        "now": Key(
            bool, "Don't wait for the running micro-batches to end; they are run once more.", always=False
        ),
    },
)
RESUME = shape(
    "Resume request", "What is to go on.", {"target": Key(str, "The id of the target to start again.")}
)
ACCEPTED = shape("Accepted", "It is asked, and done soon.", {"ok": Key(Literal[True], "Always true.")})
PREVIEW = shape(
    "Preview request", "What is to be shown.", {"node": Key(str, "The id of a node, or `id.output`.")}
)
ROWS = shape(
    "First rows",
    "The first rows of a node.",
    {
        "node": Key(str, "What was asked for."),
        "streaming": Key(bool, "Whether it is a stream."),
        "columns": Key(
            list_of(
                shape(
                    "Column of rows",
                    "A column of the rows.",
                    {"name": Key(str, "Its name."), "type": Key(str, "Its Spark type.")},
                )
            ),
            "Their columns.",
        ),
        "rows": Key(list_of(list[str | None]), "Their values in the order of the columns, as texts."),
        "complete": Key(bool, "Whether these are all rows that there are."),
    },
)
REFUSED = shape("Refusal", "Why a request isn't answered.", {"error": Key(str, "Why, in a sentence.")})
NO_ROWS = shape(
    "No rows",
    "Why there are no first rows.",
    {"diagnostics": Key(list_of(DIAGNOSTIC), "What keeps them from being read.")},
)
STATUS = shape(
    "Status",
    "The runs of a pipeline that are alive, or may be; else its last one.",
    {
        "ok": Key(bool, "Whether all of `runs` are healthy: the exit status is 0."),
        "runs": Key(list_of(RUN), "The runs, the newest first."),
    },
)
REJECTED = shape(
    "Rejected rows",
    "What was rejected, in one place or in all of a pipeline.",
    keys_of(
        Counted,
        types={
            "rejected": list_of(
                shape(
                    "Reason",
                    "Rows that a node rejected on one day for one reason. A row with several reasons is "
                    "under each of them.",
                    keys_of(
                        Reason,
                        types={"samples": list_of(str)},
                        units={"day": "", "rows": "rows", "replayed": "rows"},
                    ),
                )
            ),
            "nodes": list_of(
                shape(
                    "Rows of a node",
                    "All rows that a node rejected, each once.",
                    keys_of(OfNode, units=dict.fromkeys(("rows", "several", "replayed"), "rows")),
                )
            ),
        },
        units={"rejected": ""},
    ),
)
RUNS = shape("Runs", "The runs that are known.", {"runs": Key(list_of(RUN), "The runs, the newest first.")})
