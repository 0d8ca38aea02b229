"""A real Prometheus scrapes the server of a run: metrics, alert rules, the dashboard's queries, a restart."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.parse
import urllib.request
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gem_bundle.run.serving.watching import alert_rules, dashboard
from tests.core.run.test_serving import Served
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.programs, pytest.mark.network]
ROOT = Path(__file__).parents[3]
# What Grafana puts in, as it is by default.
GIVEN = {"$__rate_interval": "1m", "$pipeline": ".*", "$target": ".*"}


@cache
def programs() -> tuple[str, str]:
    """Prometheus and promtool; without them this fails with the sentence that says how to get them."""
    done = subprocess.run([ROOT / "scripts/prometheus"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    server, tool = done.stdout.splitlines()[-1].split()
    return server, tool


def promtool(*arguments: str | Path, given: str = "") -> None:
    """Let promtool check something; it has to be right without a remark."""
    done = subprocess.run(
        [programs()[1], *map(str, arguments)], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Prometheus:
    """A Prometheus that scrapes one server."""

    def __init__(self, folder: Path, target: str, rules: Path) -> None:
        self.port = free_port()
        config = folder / "prometheus.yml"
        config.write_text(
            yaml.safe_dump(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(rules)],
                    "scrape_configs": [
                        {"job_name": "gem-bundle", "static_configs": [{"targets": [target]}]},
                    ],
                }
            )
        )
        promtool("check", "config", config)
        self.log = (folder / "prometheus.log").open("w")
        self.process = subprocess.Popen(
            [
                programs()[0],
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer; an error of Prometheus's is one of the test."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}") as answer:
            return json.loads(answer.read())["data"]

    def values(self, expression: str) -> list[float]:
        return [float(found["value"][1]) for found in self.ask("query", query=expression)["result"]]

    def history(self, metric: str) -> list[float]:
        """All that was scraped of one series within an hour, in its order, whatever came between."""
        (found,) = self.ask("query", query=f"{metric}[1h]")["result"]
        return [float(value) for _, value in found["values"]]

    def scraped_after(self, moment: float) -> None:
        """Wait until the server was scraped after a moment."""
        while not any(at > moment for at in self.values("timestamp(gem_bundle_run)")):
            assert self.process.poll() is None, "Prometheus has ended"
            time.sleep(0.2)

    def until(self, expression: str, value: float) -> None:
        """Wait until a query has one value."""
        while self.process.poll() is None:
            try:
                if self.values(expression) == [value]:
                    return
            except OSError:
                pass  # it is starting
            time.sleep(0.2)
        raise AssertionError("Prometheus has ended")


@contextmanager
def scraped(folder: Path, target: str) -> Iterator[Prometheus]:
    rules = folder / "rules.yml"
    rules.write_text(yaml.safe_dump(alert_rules()))
    promtool("check", "rules", rules)
    made = Prometheus(folder, target, rules)
    try:
        yield made
    finally:
        made.close()


def test_promtool_has_nothing_against_the_metrics(tmp_path: Path) -> None:
    with ExitStack() as stack:
        run = Served(tmp_path, stack)
        run.begin()
        run.micro_batch()
        promtool("check", "metrics", given=run.ask("/metrics")[1])


def test_a_real_prometheus_scrapes_a_run_and_its_next_one(tmp_path: Path) -> None:
    port = free_port()
    with scraped(tmp_path, f"127.0.0.1:{port}") as prometheus:
        with ExitStack() as stack:
            run = Served(tmp_path, stack, port=port)
            run.begin()
            for _ in range(3):
                run.micro_batch()
            totals = run.run.report.targets["table"]
            prometheus.until("gem_bundle_micro_batches_total", 3)
            assert prometheus.values("gem_bundle_rows_in_total") == [totals.rows_in]
            assert prometheus.values("gem_bundle_rows_out_total") == [totals.rows_out]
            assert prometheus.values("gem_bundle_micro_batch_seconds_sum") == pytest.approx(
                [totals.busy_ms / 1000]
            )
            run.run.stop.failed("table", run_failure())
            run.server.tick()
            prometheus.until('ALERTS{alertname="GemBundleTargetFailed", alertstate="firing"}', 1)
            asked = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
            for expression in asked:
                prometheus.ask("query", query=filled(expression))
            groups = prometheus.ask("rules")["groups"]
            assert {rule["health"] for group in groups for rule in group["rules"]} <= {"ok", "unknown"}
        with ExitStack() as stack:
            again = Served(tmp_path, stack, port=port)
            again.begin()
            again.micro_batch()
            prometheus.until("gem_bundle_micro_batches_total", 1)
            assert prometheus.values("gem_bundle_rows_in_total") == [
                again.run.report.targets["table"].rows_in
            ], "counters are those of the run that lives"
            # What Prometheus makes of counters that begin anew: the rows of both runs, and not fewer.
            assert prometheus.values("resets(gem_bundle_micro_batches_total[5m])") == [1]


def run_failure() -> Any:
    from gem_bundle.diagnostics import Diagnostic

    return Diagnostic("GB508", "error", "it broke")


def filled(expression: str) -> str:
    for name, value in GIVEN.items():
        expression = expression.replace(name, value)
    assert not re.search(r"\$\w", expression)
    return expression
