"""`gem-bundle metrics`: the list, the alert rules and the dashboard, all of metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gem_bundle.run.serving.metrics import METRICS
from gem_bundle.run.serving.watching import ALERTS, PANELS, alert_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.core.cli.conftest import Cli

KNOWN = {metric.exposed_name: metric for metric in METRICS}
# What Prometheus adds to the labels of each sample.
ADDED = {"pipeline", "instance", "le"}


def used(expression: str) -> set[str]:
    """The metrics of an expression, by the names that they have in the table."""
    names = set(re.findall(r"gem_bundle_\w+", expression))
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


def check_expression(expression: str) -> None:
    names = used(expression)
    assert names <= KNOWN.keys(), expression
    labels = ADDED.union(*(KNOWN[name].labels for name in names))
    for selected in re.findall(r"\{([^}]*)\}", expression):
        assert set(re.findall(r"(\w+)\s*[!=]~?", selected)) <= labels, expression
    for grouped in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
        assert {label.strip() for label in grouped.split(",")} <= labels, expression


def test_the_list(cli: Cli) -> None:
    lines = cli("metrics").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [[metric.exposed_name, metric.kind] for metric in METRICS]
    found = json.loads(cli("metrics", "--format", "json").stdout)["metrics"]
    assert [metric["name"] for metric in found] == list(KNOWN)
    assert found[0]["labels"][0] == "pipeline"


def test_alerts_and_dashboard_ask_for_metrics_and_labels_that_there_are(
    cli: Cli, project: Callable[..., Path]
) -> None:
    folder = project().parent
    result = cli("metrics", "--alerts", "rules.yml", "--grafana", "board.json")
    assert (result.exit_code, result.stdout) == (0, "")
    (group,) = yaml.safe_load((folder / "rules.yml").read_text())["groups"]
    assert [rule["alert"] for rule in group["rules"]] == [alert.name for alert in ALERTS]
    for rule in group["rules"]:
        check_expression(rule["expr"])
        labels = ADDED.union(*(KNOWN[name].labels for name in used(rule["expr"])))
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= labels
    board: dict[str, Any] = json.loads((folder / "board.json").read_text())
    assert [panel["title"] for panel in board["panels"]] == [panel.title for panel in PANELS]
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    for expression in asked:
        check_expression(expression)
    # What can be watched is watched: by a picture or by an alert.
    watched = set().union(*map(used, [*asked, *(alert.expression for alert in ALERTS)]))
    assert KNOWN.keys() - watched == {
        "gem_bundle_run",
        "gem_bundle_query_starts_total",
        "gem_bundle_micro_batches_total",
        "gem_bundle_state_commit_seconds_total",
        "gem_bundle_rule_breaks_total",
    }


def test_a_place_that_can_not_be_written(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    result = cli("metrics", "--alerts", "gone/rules.yml")
    assert (result.exit_code, "error[GB511]: gone/rules.yml can't be written" in result.stderr) == (1, True)


def test_standard_output_takes_them_too(cli: Cli, project: Callable[..., Path]) -> None:
    project()
    result = cli("metrics", "--alerts", "-")
    assert yaml.safe_load(result.stdout) == alert_rules()
    assert result.stderr == ""
    assert json.loads(cli("metrics", "--grafana", "-").stdout)["title"] == "gem-bundle"
    assert not Path("-").exists()
