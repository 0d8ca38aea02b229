"""What others watch the metrics of runs with: alert rules for Prometheus, a dashboard for Grafana."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert rule.

    Args:
        name: Its name.
        expression: When it is so, in PromQL.
        lasting: For how long it has to be so.
        severity: How bad it is.
        summary: What is so, in one line; ``$labels`` and ``$value`` are filled in.
        action: What to do about it.
    """

    name: str
    expression: str
    lasting: str
    severity: Literal["warning", "critical"]
    summary: str
    action: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture of the dashboard.

    Args:
        title: Its title.
        unit: The unit of its values, as Grafana calls it.
        queries: What it shows, in PromQL, each with its legend.
    """

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


_WHERE = "{{ $labels.pipeline }}, target {{ $labels.target }}"
ALERTS = (
    Alert(
        "GemBundleTargetFailed",
        'gem_bundle_target_state{state="failed"} == 1',
        "0m",
        "critical",
        f"{_WHERE}: its query has failed",
        "`gem-bundle status` tells with what, and where in the pipeline file.",
    ),
    Alert(
        "GemBundleUnhealthy",
        "gem_bundle_unhealthy == 2",
        "0m",
        "critical",
        f"{_WHERE}: it breaks the limit {{{{ $labels.limit }}}} of its health",
        "`gem-bundle status` tells what was measured, and since when.",
    ),
    Alert(
        "GemBundleNoProgress",
        "time() - gem_bundle_last_success_timestamp_seconds > 900"
        ' and on (pipeline, target, instance) gem_bundle_target_state{state="running"} == 1',
        "5m",
        "warning",
        f"{_WHERE}: no micro-batch with rows has ended for {{{{ $value | humanizeDuration }}}}",
        "See whether its sources get rows, and whether a micro-batch runs for so long.",
    ),
    Alert(
        "GemBundleFallsBehind",
        "gem_bundle_lag_records > 100000 and deriv(gem_bundle_lag_records[15m]) > 0",
        "15m",
        "warning",
        f"{_WHERE}: {{{{ $value | humanize }}}} records behind {{{{ $labels.source }}}}, and more and more",
        "Give it more cores, or let a micro-batch take more at once.",
    ),
    Alert(
        "GemBundleWatermarkBehind",
        "time() - gem_bundle_watermark_timestamp_seconds > 3600",
        "15m",
        "warning",
        f"{_WHERE}: its watermark is {{{{ $value | humanizeDuration }}}} behind",
        "Until it moves on, windows stay open and their rows in the state: see which source is late.",
    ),
    Alert(
        "GemBundleLateRows",
        "rate(gem_bundle_late_rows_total[15m]) / rate(gem_bundle_rows_in_total[15m]) > 0.01",
        "15m",
        "warning",
        f"{_WHERE}: {{{{ $value | humanizePercentage }}}} of the rows are dropped as late",
        "A longer delay of the watermark keeps them.",
    ),
    Alert(
        "GemBundleRejectedRows",
        "sum by (pipeline, target, instance) (rate(gem_bundle_rejected_rows_total[15m]))"
        " / sum by (pipeline, target, instance) (rate(gem_bundle_rows_in_total[15m])) > 0.01",
        "15m",
        "warning",
        f"{_WHERE}: {{{{ $value | humanizePercentage }}}} of the rows are rejected",
        "The output `rejected` of the nodes has them, each with its reasons.",
    ),
    Alert(
        "GemBundleQueryRestarts",
        "increase(gem_bundle_query_restarts_total[1h]) > 3",
        "0m",
        "warning",
        f"{_WHERE}: its query was started again {{{{ $value | humanize }}}} times within an hour",
        "`gem-bundle status` tells with what it failed last.",
    ),
    Alert(
        "GemBundleRestarts",
        "changes(gem_bundle_run_start_timestamp_seconds[1h]) > 3",
        "0m",
        "warning",
        "{{ $labels.pipeline }}: started again {{ $value }} times within an hour",
        "`gem-bundle runs` tells how each of its runs ended.",
    ),
)

_TARGET = '{pipeline=~"$pipeline", target=~"$target"}'
_OF_TARGET = "{{pipeline}} {{target}}"
PANELS = (
    Panel(
        "Rows per second",
        "rowsps",
        (
            (f"rate(gem_bundle_rows_in_total{_TARGET}[$__rate_interval])", f"{_OF_TARGET} in"),
            (f"rate(gem_bundle_rows_out_total{_TARGET}[$__rate_interval])", f"{_OF_TARGET} out"),
        ),
    ),
    Panel("Records behind", "short", ((f"gem_bundle_lag_records{_TARGET}", f"{_OF_TARGET} {{{{source}}}}"),)),
    Panel(
        "Files and versions behind",
        "short",
        (
            (f"gem_bundle_lag_files{_TARGET}", f"{_OF_TARGET} {{{{source}}}}, files"),
            (f"gem_bundle_lag_versions{_TARGET}", f"{_OF_TARGET} {{{{source}}}}, versions"),
        ),
    ),
    Panel("Time behind", "s", ((f"gem_bundle_lag_seconds{_TARGET}", f"{_OF_TARGET} {{{{source}}}}"),)),
    Panel(
        "Micro-batches: how long nine of ten take at most",
        "s",
        (
            (
                "histogram_quantile(0.9, sum by (le, pipeline, target) "
                f"(rate(gem_bundle_micro_batch_seconds_bucket{_TARGET}[$__rate_interval])))",
                _OF_TARGET,
            ),
        ),
    ),
    Panel(
        "Micro-batches: seconds per second, by phase",
        "percentunit",
        (
            (
                f"rate(gem_bundle_micro_batch_phase_seconds_sum{_TARGET}[$__rate_interval])",
                f"{_OF_TARGET} {{{{phase}}}}",
            ),
        ),
    ),
    Panel(
        "Watermark behind now",
        "s",
        ((f"time() - gem_bundle_watermark_timestamp_seconds{_TARGET}", _OF_TARGET),),
    ),
    Panel(
        "Since the last micro-batch",
        "s",
        ((f"time() - gem_bundle_last_success_timestamp_seconds{_TARGET}", _OF_TARGET),),
    ),
    Panel("Rows in the state", "short", ((f"gem_bundle_state_rows{_TARGET}", _OF_TARGET),)),
    Panel("Memory of the state", "bytes", ((f"gem_bundle_state_memory_bytes{_TARGET}", _OF_TARGET),)),
    Panel(
        "Late and rejected rows per second",
        "rowsps",
        (
            (f"rate(gem_bundle_late_rows_total{_TARGET}[$__rate_interval])", f"{_OF_TARGET} late"),
            (
                f"rate(gem_bundle_rejected_rows_total{_TARGET}[$__rate_interval])",
                f"{_OF_TARGET} rejected by {{{{node}}}}",
            ),
        ),
    ),
    Panel(
        "Queries that aren't running",
        "short",
        (
            (
                'gem_bundle_target_state{pipeline=~"$pipeline", target=~"$target", state!="running"} == 1',
                f"{_OF_TARGET} {{{{state}}}}",
            ),
        ),
    ),
)


def alert_rules() -> dict[str, Any]:
    """The alert rules, as a file of rules has them."""
    rules = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.lasting,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "description": alert.action},
        }
        for alert in ALERTS
    ]
    return {"groups": [{"name": "gem-bundle", "rules": rules}]}


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana imports it."""
    source = {"type": "prometheus", "uid": "${source}"}

    def variable(name: str, query: str) -> dict[str, Any]:
        return {
            "name": name,
            "type": "query",
            "datasource": source,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "current": {"text": "All", "value": "$__all"},
        }

    return {
        "title": "gem-bundle",
        "uid": "gem-bundle",
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": "prometheus"},
                variable("pipeline", "label_values(gem_bundle_run, pipeline)"),
                variable("target", 'label_values(gem_bundle_target_state{pipeline=~"$pipeline"}, target)'),
            ]
        },
        "panels": [
            {
                "id": number + 1,
                "type": "timeseries",
                "title": panel.title,
                "datasource": source,
                "gridPos": {"h": 8, "w": 12, "x": number % 2 * 12, "y": number // 2 * 8},
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + at), "expr": query, "legendFormat": legend, "datasource": source}
                    for at, (query, legend) in enumerate(panel.queries)
                ],
            }
            for number, panel in enumerate(PANELS)
        ],
    }
