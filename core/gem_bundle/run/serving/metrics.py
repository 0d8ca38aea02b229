"""The metrics of a run: what they are called, and how they follow its micro-batches.

Their names are an interface: people build alerts and pictures on them. Docs/watching.md has them in a table
that a test compares with `METRICS`.
"""

from __future__ import annotations

import platform
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from gem_bundle.run.moments import seconds_of
from gem_bundle.runs.record import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gem_bundle.run.progress import MicroBatch

Kind = Literal["counter", "gauge", "histogram"]
MOST_SOURCES = 100
"""Of so many topics, paths and tables a target's lag is told by name; the label of the others is `OTHERS`."""
OTHERS = "(others)"
_FROM_THE_START = (
    *("rows_in", "rows_out", "late_rows", "micro_batches", "micro_batch_seconds"),
    *("query_restarts", "state_commit_seconds"),
)
# The phases that micro-batches of all sources have.
_PHASES = (
    *("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets"),
    "triggerExecution",
)
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    Args:
        name: Its name; that of a counter without ``_total``.
        kind: Its type.
        help: What it counts or measures, and in what unit.
        labels: Its labels, besides `pipeline`, which all have.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ("target",)

    @property
    def exposed_name(self) -> str:
        """The name by which it is asked for; a histogram has several, which begin with it."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


METRICS = (
    Metric(
        "gem_bundle_run",
        "gauge",
        "1, with the versions of the pipeline, gem-bundle and Python",
        ("version", "gem_bundle", "python"),
    ),
    Metric("gem_bundle_run_start_timestamp_seconds", "gauge", "When the run began", ()),
    Metric(
        "gem_bundle_target_state",
        "gauge",
        "1 for the state that the target's query is in, 0 for the others",
        ("target", "state"),
    ),
    Metric("gem_bundle_query_starts", "counter", "Starts of the target's query in this run"),
    Metric(
        "gem_bundle_query_restarts", "counter", "Starts of the target's query after a failure or as unwell"
    ),
    Metric(
        "gem_bundle_unhealthy",
        "gauge",
        "2 while a limit of the target's health is broken, 1 while it is worth a look, else 0",
        ("target", "limit"),
    ),
    Metric("gem_bundle_rows_in", "counter", "Rows read"),
    Metric("gem_bundle_rows_out", "counter", "Rows written, where Spark can count them"),
    Metric("gem_bundle_late_rows", "counter", "Rows dropped because they were older than the watermark"),
    Metric("gem_bundle_rejected_rows", "counter", "Rows that a node on the way rejected", ("target", "node")),
    Metric(
        "gem_bundle_rule_breaks",
        "counter",
        "Rows that broke a rule by which they are only counted or dropped",
        ("target", "node", "rule"),
    ),
    Metric("gem_bundle_micro_batches", "counter", "Micro-batches that ended, without idle ones"),
    Metric("gem_bundle_micro_batch_seconds", "histogram", "How long micro-batches took"),
    Metric(
        "gem_bundle_micro_batch_phase_seconds",
        "histogram",
        "How long their phases took, by Spark's names: addBatch, queryPlanning, walCommit, …",
        ("target", "phase"),
    ),
    Metric(
        "gem_bundle_last_success_timestamp_seconds", "gauge", "When the last micro-batch ended that had work"
    ),
    Metric("gem_bundle_watermark_timestamp_seconds", "gauge", "The event-time watermark, once there is one"),
    Metric("gem_bundle_state_rows", "gauge", "Rows in the state stores"),
    Metric("gem_bundle_state_memory_bytes", "gauge", "Memory that the state stores use"),
    Metric("gem_bundle_state_commit_seconds", "counter", "Time that commits of the state stores took"),
    Metric(
        "gem_bundle_lag_records",
        "gauge",
        "Records that waited in a topic when the last micro-batch began, or in a followed table behind it",
        ("target", "source"),
    ),
    Metric(
        "gem_bundle_lag_files",
        "gauge",
        "Files of a path on this machine that the query had yet to read behind the last micro-batch",
        ("target", "source"),
    ),
    Metric(
        "gem_bundle_lag_versions",
        "gauge",
        "Versions of a Delta table that the query had yet to read behind the last micro-batch",
        ("target", "source"),
    ),
    Metric(
        "gem_bundle_lag_seconds",
        "gauge",
        "How long these had been there, counted from the start of the run at the earliest",
        ("target", "source"),
    ),
)


class Metrics:
    """The metrics of one run, in a registry of its own.

    Args:
        pipeline: The pipeline's name.
        version: The pipeline's version.
        gem_bundle: The version of gem-bundle.
        rejecting: For each target the nodes on its way that may reject rows.
    """

    def __init__(
        self,
        pipeline: str,
        version: str,
        gem_bundle: str,
        rejecting: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        self._pipeline = pipeline
        self._rejecting = rejecting or {}
        made: dict[str, Any] = {}
        for metric in METRICS:
            labels = ("pipeline", *metric.labels)
            if metric.kind == "histogram":
                found: Any = Histogram(
                    metric.name, metric.help, labels, registry=self.registry, buckets=_SECONDS
                )
            else:
                shape = Counter if metric.kind == "counter" else Gauge
                found = shape(metric.name, metric.help, labels, registry=self.registry)
            made[metric.name.removeprefix("gem_bundle_")] = found
        self._made = made
        self._lagging: dict[str, set[tuple[str, str]]] = {}
        self._of("run", version, gem_bundle, platform.python_version()).set(1)
        self._of("run_start_timestamp_seconds").set(time.time())

    def _of(self, name: str, *labels: str) -> Any:
        return self._made[name].labels(self._pipeline, *labels)

    def states(self, states: Mapping[str, State]) -> None:
        """Set how the queries of targets are."""
        for target, now in states.items():
            for state in get_args(State):
                self._of("target_state", target, state).set(int(state == now))

    def query_started(self, target: str) -> None:
        """Count the start of a query; what it will count is 0 from now on, and not unknown.

        Prometheus takes a counter that is there for the first time for one that has never moved, and one that
        has the value of the run before for the same one.
        """
        self._of("query_starts", target).inc()
        for name in _FROM_THE_START:
            self._of(name, target)
        for phase in _PHASES:
            self._of("micro_batch_phase_seconds", target, phase)
        for node in self._rejecting.get(target, ()):
            self._of("rejected_rows", target, node)

    def add(self, target: str, batch: MicroBatch) -> None:
        """Count one micro-batch."""
        self._of("rows_in", target).inc(batch.rows_in)
        if batch.rows_out is None:
            with suppress(KeyError):
                self._made["rows_out"].remove(self._pipeline, target)
        else:
            self._of("rows_out", target).inc(batch.rows_out)
        self._of("late_rows", target).inc(batch.late_rows)
        for node, rows in batch.held.rejected.items():
            self._of("rejected_rows", target, node).inc(rows)
        for node, rules in batch.held.broken.items():
            for rule, rows in rules.items():
                self._of("rule_breaks", target, node, rule).inc(rows)
        self._of("micro_batches", target).inc()
        self._of("micro_batch_seconds", target).observe(batch.duration_ms / 1000)
        for phase, milliseconds in batch.phases_ms.items():
            self._of("micro_batch_phase_seconds", target, phase).observe(milliseconds / 1000)
        self._of("state_rows", target).set(batch.state_rows)
        self._of("state_memory_bytes", target).set(batch.state_bytes)
        self._of("state_commit_seconds", target).inc(batch.state_commit_ms / 1000)
        self._set_lag(target, batch)
        began = seconds_of(batch.timestamp)
        if began is not None:
            self._of("last_success_timestamp_seconds", target).set(began + batch.duration_ms / 1000)
        watermark = seconds_of(batch.watermark)
        if watermark is not None:
            self._of("watermark_timestamp_seconds", target).set(watermark)

    def _set_lag(self, target: str, batch: MicroBatch) -> None:
        """Set what waits in the sources: topics of a pattern come and go, and none stays for ever."""
        told = batch.lag.keys() | batch.lag_seconds.keys()
        if not told:
            return
        before = self._lagging.get(target, set())
        named = {source for _, source in before} & told
        named |= set(sorted(told - named)[: MOST_SOURCES - len(named)])
        found: dict[tuple[str, str], float] = {}
        for source, count in batch.lag.items():
            unit = f"lag_{batch.lag_units.get(source, 'records')}"
            key = (unit, source if source in named else OTHERS)
            found[key] = found.get(key, 0) + count
        for source, seconds in batch.lag_seconds.items():
            key = ("lag_seconds", source if source in named else OTHERS)
            found[key] = max(found.get(key, 0), seconds)
        for name, source in before - found.keys():
            self._made[name].remove(self._pipeline, target, source)
        for (name, source), value in found.items():
            self._of(name, target, source).set(value)
        self._lagging[target] = set(found)

    def happened(self, event: str, facts: Mapping[str, Any]) -> None:
        """Count what else happened to a target."""
        if event == "restarting":
            self._of("query_restarts", facts["target"]).inc()
        else:
            level = 0 if event == "healthy" else 2 if facts["level"] == "fail" else 1
            self._of("unhealthy", facts["target"], facts["limit"]).set(level)

    def exposed(self, accept: str) -> tuple[bytes, str]:
        """All of them as Prometheus reads them, and the type of that content.

        Args:
            accept: What the reader takes, as in a request's header: OpenMetrics, or the older text format.
        """
        from prometheus_client.exposition import choose_encoder

        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type
