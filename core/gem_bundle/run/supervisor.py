"""The queries of a run: started together, watched together, stopped together."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from gem_bundle.gem import WriteContext, is_over_connect
from gem_bundle.pipeline.groups import groups_of, rejects
from gem_bundle.run.failures import build_failure, query_failure
from gem_bundle.run.frames import Frames, NodeFailure, unmarked
from gem_bundle.run.groups import GroupQuery
from gem_bundle.run.held import HeldRows, observed_by_stream
from gem_bundle.run.progress import ROWS_OUT, ProgressReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.gem import Target
    from gem_bundle.pipeline.groups import Group
    from gem_bundle.pipeline.model import Node, Trigger
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.progress import MicroBatch, Totals
    from gem_bundle.run.report import Report, Status
    from gem_bundle.run.steering import StopRequest
    from gem_bundle.runs.record import State
    from gem_bundle.runs.requests import Request

POLL_SECONDS = 0.2


class View(Protocol):
    """Somebody who is told what happens; see `gem_bundle.run.view`."""

    def started(self, report: Report) -> None:
        """All queries run."""

    def progress(self, batch: MicroBatch, totals: Totals) -> None:
        """A micro-batch ended."""

    def tick(self) -> None:
        """A moment has passed."""

    def stopping(self, reason: str) -> None:
        """The queries are asked to stop."""

    def ended(self, report: Report) -> None:
        """The run is over."""


@dataclass
class _Query:
    """What one query writes.

    Args:
        targets: The targets, several where they are a group.
        writer: Its configured writer.
        group: What writes its micro-batches, where they are a group.
    """

    targets: tuple[Node, ...]
    writer: DataStreamWriter
    group: GroupQuery | None = None

    def start(self, plan: Plan) -> StreamingQuery:
        """Start it."""
        if self.group is not None:
            return self.group.start(self.writer)
        return cast("Target", plan.gems[self.targets[0].id]).start(self.writer)


@dataclass
class _Running:
    query: StreamingQuery
    reader: ProgressReader
    totals: list[Totals]
    group: GroupQuery | None

    @property
    def targets(self) -> list[str]:
        """The ids of the targets that it writes."""
        return [totals.target for totals in self.totals]

    def failures(self, plan: Plan, *, stopped: bool = False) -> list[Diagnostic]:
        """Why the query has ended, if it has failed, and not only because it was stopped."""
        error = _failure(self.query)
        if error is None or (stopped and _is_interrupt(error)):
            return []
        if self.group is not None and self.group.failures:
            return [build_failure(plan, node, cause) for node, cause in self.group.failures]
        return [query_failure(plan, self.totals[0].target, error)]


def run_queries(
    plan: Plan,
    targets: Sequence[Node],
    spark: SparkSession,
    report: Report,
    view: View,
    stop: StopRequest,
    *,
    stop_timeout: float,
) -> None:
    """Run the streaming queries of a pipeline until all have ended, one has failed, or `stop` is set.

    All queries are built before the first one starts, so a mistake in one leaves nothing running. When
    one fails, the others end their micro-batch and stop.

    Args:
        plan: The pipeline.
        targets: The targets to run, their triggers final.
        spark: The session.
        report: Where numbers and the outcome go.
        view: Who is told.
        stop: Asked between two polls.
        stop_timeout: Seconds a micro-batch may take to end after a request to stop.
    """
    frames = _frames(plan, spark, targets)
    queries: list[_Query] = []
    failures: list[Diagnostic] = []
    groups = {group.name: group for group in groups_of(plan, targets)}
    for node in targets:
        try:
            if node.group or rejects(plan, node):
                if (group := groups.pop(node.group or node.identity, None)) is not None:
                    queries.append(_of_group(plan, group, frames))
            else:
                queries.append(_Query((node,), _writer(plan, node, frames)))
        except NodeFailure as failure:
            failures.append(build_failure(plan, failure.node, failure.error))
        except Exception as error:  # noqa: BLE001 (whatever a gem raises belongs to its node)
            failures.append(build_failure(plan, node.id, error))
    began = time.monotonic()
    report.start()
    running: list[_Running] = []
    if not failures:
        for made in queries:
            try:
                query = made.start(plan)
            except Exception as error:  # noqa: BLE001
                failures.append(build_failure(plan, made.targets[0].id, error))
                break
            running.append(_running(made, query, report, stop))
    if failures:
        for found in failures:
            if found.node in report.targets:
                stop.failed(found.node, found)
        _stop(running, stop, stop_timeout, view.tick)
        report.diagnostics.extend(dict.fromkeys(failures))
        report.end("failed", time.monotonic() - began)
        return
    view.started(report)
    watch = _Watch(plan, targets, spark, running, report, view, stop, stop_timeout)
    report.end(watch.until_the_end(), time.monotonic() - began)


def _frames(plan: Plan, spark: SparkSession, targets: Iterable[Node]) -> Frames:
    """The DataFrames of a run, with what transforms reject counted where all triggers let it be."""
    counting = all(counts(node) for node in targets)
    return Frames(plan, spark, observe=observed_by_stream if counting else None)


def _running(made: _Query, query: StreamingQuery, report: Report, stop: StopRequest) -> _Running:
    for node in made.targets:
        stop.started(node.id, query)
    totals = [report.targets[node.id] for node in made.targets]
    return _Running(query, ProgressReader(query), totals, made.group)


@dataclass
class _Watch:
    """The queries while they run.

    Args:
        plan: The pipeline.
        targets: The targets of this run.
        spark: The session.
        running: The queries that run.
        report: Where numbers and failures go.
        view: Who is told.
        stop: Asked between two looks.
        timeout: Seconds a micro-batch may take to end after a request to stop.
    """

    plan: Plan
    targets: Sequence[Node]
    spark: SparkSession
    running: list[_Running]
    report: Report
    view: View
    stop: StopRequest
    timeout: float

    def until_the_end(self) -> Status:
        """Watch until all have ended, one has failed, or the run is asked to stop; then stop the others."""
        while self.running and not self.stop and not self.report.diagnostics:
            for entry in list(self.running):
                _show(entry, self.view)
                if not entry.query.isActive:
                    self._has_ended(entry, "finished")
            for request in self.stop.asked():
                self._do(request)
            self.view.tick()
            if self.running and not self.report.diagnostics:
                _wait(self.running[0].query)
        if self.running:
            self._are("stopping", *self.running)
            self.view.stopping(self.stop.reason or "another target failed")
            _stop(self.running, self.stop, self.timeout, self.view.tick)
            for entry in list(self.running):
                self._has_ended(entry, "stopped")
        if self.report.diagnostics:
            return "failed"
        return "stopped" if "stopped" in self.stop.states.values() else "finished"

    def _are(self, state: State, *entries: _Running) -> None:
        self.stop.states.update({target: state for entry in entries for target in entry.targets})

    def _has_ended(self, entry: _Running, state: State) -> None:
        """Take leave of a query: of what it reported between the last look and its end, and how it ended."""
        _show(entry, self.view)
        self.running.remove(entry)
        self._are(state, entry)
        failures = entry.failures(self.plan, stopped=state == "stopped")
        self.report.diagnostics.extend(failures)
        own = {failure.node: failure for failure in failures}
        for target in entry.targets if failures else ():
            self.stop.failed(target, own.get(target, failures[0]))

    def _do(self, request: Request) -> None:
        """Stop the query of a target, or start it again; what is so already stays so."""
        entry = next((entry for entry in self.running if request.target in entry.targets), None)
        if request.action == "stop" and entry is not None:
            self._are("stopping", entry)
            timeout = 0.0 if request.now else self.timeout
            _stop([entry], self.stop, timeout, self._meanwhile)
            self._has_ended(entry, "stopped")
        elif request.action == "resume" and entry is None and request.target in self.report.targets:
            self._start(self.plan.node(request.target))

    def _meanwhile(self) -> None:
        """Go on reading what the queries report: Spark keeps the last hundred reports of each only."""
        for entry in self.running:
            _show(entry, self.view)
        self.view.tick()

    def _start(self, node: Node) -> None:
        """Start the query of a target, and with it those of its group."""
        try:
            # Built anew, as by a new run: what a static source has grown by is seen.
            frames = _frames(self.plan, self.spark, self.targets)
            groups = groups_of(self.plan, self.targets)
            group = next((g for g in groups if node.id in {other.id for other in g.targets}), None)
            if group is None:
                made = _Query((node,), _writer(self.plan, node, frames))
            else:
                made = _of_group(self.plan, group, frames)
            query = made.start(self.plan)
        except Exception as error:  # noqa: BLE001 (whatever a gem raises belongs to its node)
            at, cause = (error.node, error.error) if isinstance(error, NodeFailure) else (node.id, error)
            failure = build_failure(self.plan, at, cause)
            self.report.diagnostics.append(failure)
            self.stop.failed(node.id, failure)
            return
        self.running.append(_running(made, query, self.report, self.stop))


def _failure(query: StreamingQuery) -> Exception | None:
    """What a query has failed with. Over Spark Connect only waiting for it tells the cause."""
    from pyspark.errors import PySparkException

    error = query.exception()
    if error is not None and is_over_connect(query):
        try:
            query.awaitTermination(1)
        except PySparkException as told:
            return told
    return error


def _wait(query: StreamingQuery) -> None:
    """Wait a moment, and not longer than the query lives."""
    # Why a query failed is read from the query right after.
    with suppress(Exception):
        query.awaitTermination(POLL_SECONDS)  # type: ignore[arg-type]


def _show(entry: _Running, view: View) -> None:
    for batch in entry.reader.read():
        for totals in entry.totals:
            written = batch if entry.group is None else _of_target(batch, entry.group, totals.target)
            totals.add(written)
            view.progress(written, totals)
        if entry.group is not None:
            entry.group.forget(batch.batch_id)


def _of_target(batch: MicroBatch, group: GroupQuery, target: str) -> MicroBatch:
    held = HeldRows()
    held.add(batch.held)
    held.add(group.held(batch.batch_id))
    return replace(batch, rows_out=group.rows(batch.batch_id, target), held=held)


def _stop(running: Sequence[_Running], stop: StopRequest, timeout: float, tick: Callable[[], None]) -> None:
    """Let each query end its micro-batch, then stop it.

    A stop in the middle leaves a micro-batch that was begun and not committed; it would be run again
    at the next start, which sinks that write at least once show as doubled rows. So a query is
    stopped when it is between two triggers, or right after one has ended.
    """
    deadline = time.monotonic() + timeout
    for entry in running:
        query = entry.query
        before = query.lastProgress
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            latest = query.lastProgress
            if stop.now or (latest is not None and (before is None or latest.batchId > before.batchId)):
                break
            tick()
        query.stop()


def _is_interrupt(error: Exception) -> bool:
    """Whether a query's error is only the stop that interrupted it."""
    text = str(error)
    return any(
        sign in text for sign in ("InterruptedException", "ClosedByInterruptException", "SPARK_JOB_CANCELLED")
    )


def _writer(plan: Plan, node: Node, frames: Frames) -> DataStreamWriter:
    """The configured writer of a target that has a query of its own."""
    target = cast("Target", plan.gems[node.id])
    edge = node.inputs[0]
    query_name = f"{plan.definition.name}_{node.id}"
    context = WriteContext(node.id, plan.definition.name, node.output_mode, query_name)
    df = counted(unmarked(frames.of(edge.node, edge.output)), target, node)
    return _configured(plan, node, target.write_stream(df, context), query_name)


def _of_group(plan: Plan, group: Group, frames: Frames) -> _Query:
    """The query of a group."""
    written = GroupQuery(plan, group)
    name = f"{plan.definition.name}_{group.name}"
    writer = _configured(plan, group.targets[0], written.writer(frames), name)
    return _Query(group.targets, writer, written)


def _configured(plan: Plan, node: Node, writer: DataStreamWriter, query_name: str) -> DataStreamWriter:
    writer = writer.outputMode(node.output_mode).queryName(query_name)
    if node.group or cast("Target", plan.gems[node.id]).semantics.restartable:
        writer = writer.option("checkpointLocation", plan.definition.checkpoint(node.id))
    settings = trigger_arguments(node.trigger)
    return writer.trigger(**settings) if settings else writer


def counted(df: DataFrame, target: Target, node: Node) -> DataFrame:
    """The rows, counted on their way where Spark doesn't say how many the sink got.

    Continuous and real-time queries take no such counter.
    """
    if target.semantics.counts_rows or not counts(node):
        return df
    from pyspark.sql.functions import count, lit

    return df.observe(ROWS_OUT, count(lit(1)).alias("rows"))


def counts(node: Node) -> bool:
    """Whether a query with the trigger of a target takes counters of rows."""
    return node.trigger.kind not in {"continuous", "real_time"}


def trigger_arguments(trigger: Trigger) -> dict[str, Any]:
    """A trigger as ``DataStreamWriter.trigger`` takes it; empty for the default one."""
    names = {
        "processing_time": "processingTime",
        "available_now": "availableNow",
        "once": "once",
        "continuous": "continuous",
        "real_time": "realTime",
    }
    if trigger.kind == "default":
        return {}
    return {names[trigger.kind]: trigger.interval if trigger.interval is not None else True}
