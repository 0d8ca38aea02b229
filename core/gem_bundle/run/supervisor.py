"""The queries of a run: started together, watched together, stopped together."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from gem_bundle.contexts import is_over_connect
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.pipeline.groups import groups_of, query_group
from gem_bundle.pipeline.health import Restarts
from gem_bundle.pipeline.secrets import hidden
from gem_bundle.run.behind import Behind
from gem_bundle.run.failures import build_failure, query_failure, stuck_failure
from gem_bundle.run.frames import NodeFailure
from gem_bundle.run.health import TargetHealth
from gem_bundle.run.held import HeldRows
from gem_bundle.run.leaving import STOP_POLL_SECONDS, Leaving, stop_all
from gem_bundle.run.lost_java import has_lost_java
from gem_bundle.run.lost_server import lost_server
from gem_bundle.run.passing import passing_reason
from gem_bundle.run.progress import ProgressReader
from gem_bundle.run.queries import frames_of, query_of, query_of_group
from gem_bundle.run.restarts import Restarting, RestartPlan
from gem_bundle.run.waiting import Waits, waits_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.run.groups import GroupQuery
    from gem_bundle.run.health import Change
    from gem_bundle.run.progress import MicroBatch, Totals
    from gem_bundle.run.queries import DescribedQuery
    from gem_bundle.run.report import Report, Status
    from gem_bundle.run.steering import StopRequest
    from gem_bundle.runs.record import State
    from gem_bundle.runs.requests import Request

POLL_SECONDS = 0.2
_HEALTH_SECONDS = 1.0


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

    def happened(self, event: str, facts: Mapping[str, Any]) -> None:
        """Something else: a target is ``unhealthy`` or ``healthy`` again, or a query is ``restarting``."""

    def ended(self, report: Report) -> None:
        """The run is over."""


@dataclass
class _Running:
    query: StreamingQuery
    reader: ProgressReader
    totals: list[Totals]
    group: GroupQuery | None
    waits: Waits
    behind: Behind = field(default_factory=Behind)
    leaving: Leaving | None = None

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

    def passing(self) -> str:
        """Why the query may be started again after its failure; empty where it may not."""
        if self.group is not None and self.group.failures:
            return passing_reason([cause for _, cause in self.group.failures])
        error = _failure(self.query)
        return passing_reason([error]) if error is not None else ""


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
    frames = frames_of(plan, spark, targets)
    queries: list[DescribedQuery] = []
    failures: list[Diagnostic] = []
    groups = {group.name: group for group in groups_of(plan, targets)}
    for node in targets:
        try:
            if name := query_group(plan, node):
                if (group := groups.pop(name, None)) is not None:
                    queries.append(query_of_group(plan, group, frames))
            else:
                queries.append(query_of(plan, node, frames))
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
                query = made.start(plan, spark)
            except Exception as error:  # noqa: BLE001
                failures.append(build_failure(plan, made.targets[0].id, error))
                break
            running.append(_running(plan, made, query, report, stop))
    if failures:
        for found in failures:
            if found.node in report.targets:
                stop.failed(found.node, found)
        stop_all([entry.query for entry in running], stop, stop_timeout, view.tick)
        report.diagnostics.extend(dict.fromkeys(failures))
        report.end("failed", time.monotonic() - began)
        return
    view.started(report)
    watch = _Watch(plan, targets, spark, running, report, view, stop, stop_timeout)
    report.end(watch.until_the_end(), time.monotonic() - began)


def _running(
    plan: Plan, made: DescribedQuery, query: StreamingQuery, report: Report, stop: StopRequest
) -> _Running:
    for node in made.targets:
        stop.started(node.id, query)
    totals = [report.targets[node.id] for node in made.targets]
    waits = waits_of(plan, [node.id for node in made.targets])
    return _Running(query, ProgressReader(query, made.copies), totals, made.group, waits)


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
    restarts: RestartPlan = field(default_factory=RestartPlan)
    health: dict[str, TargetHealth] = field(default_factory=dict)
    looked: float = 0.0

    def __post_init__(self) -> None:
        self.health = {node.id: TargetHealth(node) for node in self.targets if node.health.limits}

    def until_the_end(self) -> Status:
        """Watch until all have ended, one has failed, or the run is asked to stop; then stop the others."""
        while (self.running or self.restarts) and not self.stop and not self.report.diagnostics:
            for entry in list(self.running):
                self._show(entry)
                if entry.leaving is not None:
                    if entry.leaving.is_over():
                        self._has_left(entry, entry.leaving)
                    elif entry.leaving.is_stuck():
                        self._abandon(entry)
                elif not entry.query.isActive:
                    self._has_ended(entry, "finished")
            for request in self.stop.asked():
                self._do(request)
            if self.health:
                self._judge()
            for nodes in self.restarts.due():
                self._start(nodes[0])
            self.view.tick()
            if self.running and not self.report.diagnostics:
                self._wait()
            elif self.restarts and not self.report.diagnostics:
                time.sleep(POLL_SECONDS)
        self.stop.states.update(dict.fromkeys(self.restarts.waiting(), "stopped"))
        if self.running:
            for entry in self.running:
                self._leave(entry, self.timeout)
            self.view.stopping(self.stop.reason or "another target failed")
        while self.running:
            for entry in list(self.running):
                leaving = self._leave(entry, self.timeout)
                if leaving.is_over():
                    self._has_ended(entry, "stopped")
                elif leaving.is_stuck():
                    self._abandon(entry)
            self.view.tick()
            time.sleep(STOP_POLL_SECONDS)
        if self.report.diagnostics:
            return "failed"
        return "stopped" if "stopped" in self.stop.states.values() else "finished"

    def _wait(self) -> None:
        """Wait a moment, and not longer than until a query that is to stop has stopped."""
        leaving = [entry.leaving for entry in self.running if entry.leaving is not None]
        if not leaving:
            _wait(self.running[0].query)
            return
        until = time.monotonic() + POLL_SECONDS
        while time.monotonic() < until and not any(each.is_over() for each in leaving):
            time.sleep(STOP_POLL_SECONDS)

    def _leave(self, entry: _Running, timeout: float) -> Leaving:
        """Let a query stop when its micro-batch has ended; none waits for that of another."""
        if entry.leaving is None:
            self._are("stopping", entry)
            entry.leaving = Leaving(entry.query, self.stop, timeout)
        if timeout == 0:
            entry.leaving.at_once()
        return entry.leaving

    def _has_left(self, entry: _Running, leaving: Leaving) -> None:
        self._has_ended(entry, "stopped")
        if self.report.diagnostics:
            return
        if leaving.then is not None:
            leaving.then()
            return
        for target in entry.targets:
            if target in self.health:
                self._tell(self.health[target].begin())

    def _abandon(self, entry: _Running) -> None:
        """Go on without a query that doesn't stop: what it does ends with the process, as in a crash."""
        self.running.remove(entry)
        failures = [stuck_failure(self.plan, target) for target in entry.targets]
        for target, failure in zip(entry.targets, failures, strict=True):
            self.stop.failed(target, failure)
        self.report.diagnostics.append(failures[0])

    def _are(self, state: State, *entries: _Running) -> None:
        self.stop.states.update({target: state for entry in entries for target in entry.targets})

    def _has_ended(self, entry: _Running, state: State) -> None:
        """Take leave of a query: of what it reported between the last look and its end, and how it ended."""
        self._show(entry)
        self.running.remove(entry)
        self._are(state, entry)
        failures = entry.failures(self.plan, stopped=state == "stopped")
        own = {failure.node: failure for failure in failures}
        for target in entry.targets if failures else ():
            self.stop.failed(target, own.get(target, failures[0]))
        if failures and state == "finished":
            reason = entry.passing()
            nodes = [self.plan.node(target) for target in entry.targets]
            if reason and self._start_later(nodes, reason, _restarts(nodes)):
                return
        self.report.diagnostics.extend(failures)

    def _start_later(self, nodes: Sequence[Node], reason: str, limits: Restarts | None) -> bool:
        """Let a query that has ended be started again after a while, where it may be."""
        if limits is None or not self.restarts.take(nodes, limits):
            return False
        ids = [node.id for node in nodes]
        self.stop.states.update(dict.fromkeys(ids, "starting"))
        for target in ids:
            totals = self.report.targets[target]
            totals.restarts += 1
            failure = self.stop.failures.get(target)
            told = failure.rewritten(hidden).as_dict() if failure is not None else None
            event = Restarting(target, reason, totals.restarts, limits.wait, told)
            self.view.happened("restarting", event.as_dict())
        return True

    def _judge(self) -> None:
        """Hold what was measured against the limits, and do what the pipeline says about what is broken."""
        if time.monotonic() - self.looked < _HEALTH_SECONDS:
            return
        self.looked = time.monotonic()
        for entry in [entry for entry in self.running if entry.leaving is None]:
            watched = {target: self.health[target] for target in entry.targets if target in self.health}
            if any(health.asks_for_progress for health in watched.values()) and not _is_at_work(entry.query):
                for health in watched.values():
                    health.rests()
            for health in watched.values():
                self._tell(health.look())
            if entry in self.running:
                self._treat(entry)

    def _tell(self, changes: Iterable[Change]) -> None:
        """Tell of limits that are broken now, or are not any more."""
        for change in changes:
            unwell = self.health[change.target].unwell.values()
            self.stop.unwell[change.target] = [found.as_dict() for found in unwell]
            self.view.happened(change.event, change.as_dict())

    def _treat(self, entry: _Running) -> None:
        """Start a query again, or end the run, where a target of it is unwell and that is to be done then."""
        for target in entry.targets:
            node = self.plan.node(target)
            health = self.health.get(target)
            broken = [u for u in health.unwell.values() if u.level == "fail"] if health is not None else []
            if not broken or node.health.on_unhealthy == "report":
                continue
            failure = _unwell(self.plan, node, broken[0].reason)
            self.stop.failures[target] = failure
            # What hangs doesn't end by itself: it is run once more, as after a crash.
            hangs = any(found.limit == "no_progress" for found in broken)
            leaving = self._leave(entry, 0.0 if hangs else self.timeout)
            if node.health.on_unhealthy == "restart":
                leaving.then = partial(self._start_unwell, entry.targets, target, failure, broken[0].reason)
            else:
                self._give_up(target, failure)
            return

    def _start_unwell(self, targets: list[str], target: str, failure: Diagnostic, reason: str) -> None:
        """Start a query again that was stopped as a target of it was unwell, or end the run."""
        nodes = [self.plan.node(name) for name in targets]
        if not self._start_later(nodes, reason, _restarts(nodes) or Restarts()):
            self._give_up(target, failure)

    def _give_up(self, target: str, failure: Diagnostic) -> None:
        self.stop.failed(target, failure)
        self.report.diagnostics.append(failure)

    def _show(self, entry: _Running) -> None:
        for batch in _show(entry, self.view):
            for target in entry.targets:
                if target in self.health:
                    self.health[target].ended(batch[target])

    def _do(self, request: Request) -> None:
        """Stop the query of a target, or start it again; what is so already stays so."""
        entry = next((entry for entry in self.running if request.target in entry.targets), None)
        if request.action == "stop" and entry is not None:
            self._leave(entry, 0.0 if request.now else self.timeout).then = None
        elif request.action == "stop":
            dropped = self.restarts.drop(request.target)
            self.stop.states.update({node.id: "stopped" for node in dropped})
        elif request.action == "resume" and entry is None and request.target in self.report.targets:
            self.restarts.drop(request.target)
            self._start(self.plan.node(request.target))
        elif request.action == "resume" and entry is not None and entry.leaving is not None:
            entry.leaving.then = partial(self._start, self.plan.node(request.target))

    def _start(self, node: Node) -> None:
        """Start the query of a target, and with it those of its group."""
        groups = groups_of(self.plan, self.targets)
        group = next((g for g in groups if node.id in {other.id for other in g.targets}), None)
        try:
            # Built anew, as by a new run: what a static source has grown by is seen.
            frames = frames_of(self.plan, self.spark, self.targets)
            if group is None:
                made = query_of(self.plan, node, frames)
            else:
                made = query_of_group(self.plan, group, frames)
            query = made.start(self.plan, self.spark)
        except Exception as error:
            at, cause = (error.node, error.error) if isinstance(error, NodeFailure) else (node.id, error)
            # Whatever a gem raises belongs to its node; that nobody answers is no node's.
            if has_lost_java():
                raise
            if lost_server(cause) is not None:
                raise cause from None
            failure = build_failure(self.plan, at, cause)
            self.stop.failed(node.id, failure)
            nodes = [node] if group is None else list(group.targets)
            reason = passing_reason([cause])
            if not reason or not self._start_later(nodes, reason, _restarts(nodes)):
                self.report.diagnostics.append(failure)
            return
        for found in made.targets:
            if found.id in self.health:
                self._tell(self.health[found.id].begin())
        self.running.append(_running(self.plan, made, query, self.report, self.stop))


def _restarts(nodes: Iterable[Node]) -> Restarts | None:
    """How often a query is started again, as the first of its targets says that says anything."""
    return next((node.restarts for node in nodes if node.restarts is not None), None)


def _unwell(plan: Plan, node: Node, reason: str) -> Diagnostic:
    locator, own = plan.definition.locator, (*node.path, "health")
    is_own = locator.place(own, key=True) != locator.place(node.path, key=True)
    path = own if is_own else ("health",)
    hint = "`gem-bundle status --progress 20` shows its last micro-batches."
    message = f"target `{node.id}` is unwell: {reason}"
    return Diagnostic("GB520", "error", message, node.id, path, locator.place(path, key=True), hint)


def _is_at_work(query: StreamingQuery) -> bool:
    """Whether a query is in the middle of a micro-batch; also where it doesn't say."""
    try:
        return bool(query.status["isTriggerActive"])
    except Exception:  # noqa: BLE001 (it has just ended, or its server doesn't answer)
        return True


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


def _show(entry: _Running, view: View) -> Iterator[dict[str, MicroBatch]]:
    """Tell of the micro-batches that have ended: for each what it was to each target."""
    for read in entry.reader.read():
        batch = entry.behind.told(entry.waits.told(read))
        of_targets: dict[str, MicroBatch] = {}
        for totals in entry.totals:
            written = batch if entry.group is None else _of_target(batch, entry.group, totals.target)
            totals.add(written)
            view.progress(written, totals)
            of_targets[totals.target] = written
        yield of_targets
        if entry.group is not None:
            entry.group.forget(batch.batch_id)


def _of_target(batch: MicroBatch, group: GroupQuery, target: str) -> MicroBatch:
    held = HeldRows()
    held.add(batch.held)
    held.add(group.held(batch.batch_id))
    return replace(batch, rows_out=group.rows(batch.batch_id, target), held=held)


def _is_interrupt(error: Exception) -> bool:
    """Whether a query's error is only the stop that interrupted it."""
    text = str(error)
    return any(
        sign in text for sign in ("InterruptedException", "ClosedByInterruptException", "SPARK_JOB_CANCELLED")
    )
