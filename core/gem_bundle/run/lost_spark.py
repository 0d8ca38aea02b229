"""When Spark ends before the run does: its Java here, or its server."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gem_bundle.check.streaming.sources import ENDING_TRIGGERS
from gem_bundle.contexts import is_over_connect
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.run.lost_java import lost_java
from gem_bundle.run.lost_server import LOST_SERVER, ended_server, ending_server, lost_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gem_bundle.errors import GemError
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.report import Report
    from gem_bundle.run.session import Session
    from gem_bundle.run.steering import StopRequest


def lost_spark(error: BaseException, log: Path | None = None) -> GemError | None:
    """That an error comes of Spark having ended, here or on its server.

    Args:
        error: What was raised.
        log: Spark's log, if it goes to a file.

    Returns:
        GB524 or GB525 for whoever started the run; None for any other failure.
    """
    return lost_server(error) or lost_java(f"{type(error).__name__}: {error}", log)


def of_all(plan: Plan, error: GemError) -> Diagnostic:
    """What keeps the whole pipeline from running, and no node of it."""
    place = plan.definition.locator.place(())
    return Diagnostic(error.code, "error", error.message, place=place, hint=error.hint)


@contextmanager
def told_of_its_end(
    plan: Plan, targets: Sequence[Node], session: Session, report: Report, stop: StopRequest
) -> Iterator[None]:
    """End a run as failed when Spark ends in its middle, whatever else that makes fail.

    Args:
        plan: The pipeline.
        targets: The targets that are run.
        session: The session.
        report: Where the outcome goes.
        stop: Told of the failure of each target.
    """
    began = time.monotonic()
    try:
        yield
    except Exception as error:
        lost = lost_spark(error, session.log)
        if lost is None:
            raise
        failure: Diagnostic | None = of_all(plan, lost)
    else:
        failure = _ended(plan, targets, session, report)
    if failure is not None:
        for target in report.targets:
            stop.failed(target, failure)
        report.diagnostics = [failure]
        report.end("failed", time.monotonic() - began)


def _ended(plan: Plan, targets: Sequence[Node], session: Session, report: Report) -> Diagnostic | None:
    """That Spark has ended, where that is why the queries have."""
    told = next((found for found in report.diagnostics if found.code == LOST_SERVER), None)
    if told is not None:
        return told
    said = "\n".join(diagnostic.message for diagnostic in report.diagnostics)
    if not is_over_connect(session.spark):
        lost = lost_java(said, session.log) if said else None
    elif report.status == "finished" and any(_is_endless(plan, node) for node in targets):
        # A server that is told to end stops its queries, as if they had come to their end.
        lost = ended_server()
    else:
        lost = ending_server(said)
    return of_all(plan, lost) if lost is not None else None


def _is_endless(plan: Plan, target: Node) -> bool:
    """Whether a query goes on until it is stopped."""
    return plan.definition.mode == "stream" and target.trigger.kind not in ENDING_TRIGGERS
