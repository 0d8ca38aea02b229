"""The page of a run in a real browser: what it shows, that it is readable by everybody, and what it may do."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.check.checker import check_file
from gem_bundle.diagnostics import Diagnostic, Place
from gem_bundle.run.held import HeldRows
from gem_bundle.run.options import ServeOptions
from gem_bundle.run.progress import Totals
from gem_bundle.run.recorder import Recorder
from gem_bundle.run.report import Report
from gem_bundle.run.serving.drawn import draw
from gem_bundle.run.serving.server import RunServer
from gem_bundle.run.steering import StopRequest
from gem_bundle.run.view import QuietView
from gem_bundle.runs.requests import Request
from tests.browser import ENTER, TAB, page_numbers
from tests.core.run.test_report_and_view import BATCH
from tests.samples import some_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser import Browser

the_page = some_of("the page of a run", 1)

pytestmark = pytest.mark.programs

PIPELINE = """\
pipeline: clicks
version: 2.0.0
description: Clicks per page, with what is wrong with them aside.
sources:
  clicks:
    gem: kafka
    description: What the shop's pages send.
    options: {bootstrap_servers: "localhost:9092", subscribe: clicks}
  pages: {gem: file, mode: batch, options: {path: pages, format: csv, schema: "page string, team string"}}
transforms:
  parsed: {gem: from_json, input: clicks, options: {column: value, schema: "page string, at timestamp"}}
  timely: {gem: watermark, input: parsed, options: {column: at, delay: 10 minutes}}
  named: {gem: join, inputs: [timely, pages], options: {how: left, on: [page]}}
  counts:
    gem: aggregate
    input: named
    options: {window: {column: at, duration: 1 minute}, group_by: [team], aggregates: {clicks: count(*)}}
targets:
  table: {gem: file, input: counts, options: {path: out, format: json}}
  raw: {gem: file, input: timely, options: {path: raw, format: json}}
"""


class Shown:
    """A run without Spark, with its page."""

    def __init__(self, file: Path, stack: ExitStack, **options: Any) -> None:
        checked = check_file(file)
        definition = checked.definition
        assert checked.plan is not None, checked.diagnostics
        assert definition is not None
        targets = [node.id for node in definition.of_kind("target")]
        self.report = Report(definition.name, definition.version, targets={n: Totals(n) for n in targets})
        self.stop = StopRequest()
        places = {name: definition.checkpoint(name) for name in targets}
        self.recorder = Recorder(definition, places, self.report, QuietView(), self.stop)
        stack.enter_context(self.recorder)
        drawn = draw(checked.plan, checked.diagnostics)
        self.server = RunServer(ServeOptions(**options), {}, self.recorder, self.stop, drawn=drawn)
        stack.enter_context(self.server)
        self.began = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
        self.batches = 0

    @property
    def address(self) -> str:
        return self.server.address

    def begin(self) -> None:
        self.report.start()
        for name in self.report.targets:
            self.stop.started(name)
        self.server.started(self.report)

    def micro_batches(self, count: int = 1, **numbers: Any) -> None:
        for _ in range(count):
            number = self.batches
            self.batches += 1
            at = self.began + timedelta(seconds=5 * number)
            for place, totals in enumerate(self.report.targets.values()):
                batch = replace(
                    BATCH,
                    batch_id=number,
                    timestamp=at.isoformat().replace("+00:00", "Z"),
                    rows_in=12_000 + 900 * (number % 7) - 500 * place,
                    rows_out=2_000 + 100 * (number % 5),
                    watermark=(at - timedelta(minutes=10)).isoformat().replace("+00:00", "Z"),
                    duration_ms=3_000 + 150 * (number % 4),
                    phases_ms={"addBatch": 2_400, "queryPlanning": 300 + 20 * (number % 4), "walCommit": 120},
                    state_rows=500 + number,
                    state_bytes=4_000_000 + 1_000 * number,
                    late_rows=number % 3,
                    lag={"clicks": 900 - 10 * (number % 9)},
                    held=HeldRows({"parsed": number % 2}, {}),
                )
                batch = replace(batch, **numbers)
                totals.add(batch)
                self.server.progress(batch, totals)

    def end(self) -> None:
        for name, state in self.stop.states.items():
            if state == "running":
                self.stop.states[name] = "stopped"
        self.report.end("failed" if self.stop.failures else "stopped", 61.5)
        self.report.diagnostics = list(self.stop.failures.values())
        self.server.ended(self.report)


@contextmanager
def shown(folder: Path, text: str = PIPELINE, **options: Any) -> Iterator[Shown]:
    file = folder / "clicks.yaml"
    file.write_text(text)
    with ExitStack() as stack:
        run = Shown(file, stack, **options)
        yield run
        if not run.report.ended:
            run.end()


def expected_numbers(report: dict[str, Any]) -> dict[str, Any]:
    """A report in the words of the page."""

    def word(number: int | None) -> str:
        return "-" if number is None else f"{number:,}"

    return {
        "state": report["status"],
        "totals": {
            name.replace("_", " ").replace("micro ", "micro-"): word(number)
            for name, number in report["totals"].items()
        },
        "targets": {
            name: {
                "Rows in": word(totals["rows_in"]),
                "Rows out": word(totals["rows_out"]),
                "Micro-batches": word(totals["micro_batches"]),
                "Late": word(totals["late_rows"]),
                "Rejected": word(sum(totals["rejected"].values())),
            }
            for name, totals in report["targets"].items()
        },
    }


LAG_CHARTS = {
    "Records behind": "behind 7",
    "Files behind": "behind 5",
    "Versions behind": "behind 1",
    "Behind for": "time 1 min 1 s",
}


def charts_of(browser: Browser) -> dict[str, str]:
    """The charts by their titles, with their newest values as screen readers tell them."""
    labels = browser.run(
        "return [...document.querySelectorAll('#charts [role=img]')].map((e) => e.getAttribute('aria-label'))"
    )
    return dict(label.split(", newest: ") for label in labels)


def assert_shows(browser: Browser, report: dict[str, Any]) -> None:
    """The page shows what a report says, as soon as it has drawn it."""
    expected = expected_numbers(report)

    def found() -> dict[str, Any]:
        shown = page_numbers(browser)
        for name, numbers in expected["targets"].items():
            shown["targets"][name] = {key: shown["targets"][name][key] for key in numbers}
        return shown

    browser.until(lambda: found() == expected, f"the page doesn't show {expected}")
    assert found() == expected


@the_page
def test_it_shows_a_run_while_it_goes_on_and_its_report_at_the_end(browser: Browser, tmp_path: Path) -> None:
    with shown(tmp_path) as run:
        run.begin()
        run.micro_batches(40)
        browser.open(run.address)
        browser.until_text("#state", "running")
        browser.until(
            lambda: browser.run("return document.querySelectorAll('#charts canvas').length") >= 6, "charts"
        )
        assert browser.run("return document.querySelectorAll('.node').length") == 8
        assert browser.barriers() == []
        browser.picture("run-light")
        lag = {"clicks": 7, "in": 3, "out": 2, "orders": 1}
        units = {"in": "files", "out": "files", "orders": "versions"}
        run.micro_batches(3, lag=lag, lag_units=units, lag_seconds={"in": 61, "clicks": 2})
        browser.until(
            lambda: page_numbers(browser)["totals"]["micro-batches"] == "86", "the new ones are shown"
        )
        # After the last event the totals are asked for once; behind that only time goes on.
        for what in ("the last event", "the run gets older"):
            before = browser.text("#summary")
            browser.until(lambda before=before: browser.text("#summary") != before, what)  # type: ignore[misc]
        # The same by what the page was told while it was open, and by what the server has kept.
        assert charts_of(browser).items() >= LAG_CHARTS.items()
        browser.open(run.address)
        browser.until(lambda: charts_of(browser).items() >= LAG_CHARTS.items(), "one chart for each unit")
        run.end()
        browser.until_text("#connection", "The run has ended")
        assert_shows(browser, run.report.as_dict())
        assert browser.messages() == []


@the_page
def test_in_the_dark_and_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    with shown(tmp_path) as run:
        run.begin()
        run.micro_batches(12)
        for name, width, dark in (("dark", 1400, True), ("phone", 390, False), ("phone-dark", 390, True)):
            browser.open(run.address, width=width, dark=dark)
            browser.until_text("#state", "running")
            browser.until_text("#batches", "addBatch")
            browser.click('.node[data-id="timely"]')
            assert "10 minutes" in browser.text("#details")
            assert "page\tstring" in browser.text("#details")
            assert browser.barriers() == []
            wide = browser.run("return document.documentElement.scrollWidth")
            assert wide <= width, "nothing but tables and the graph is scrolled sideways"
            browser.picture(f"run-{name}")
        assert browser.messages() == []


def test_it_is_used_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    with shown(tmp_path, allow_control=True) as run:
        run.begin()
        run.micro_batches(2)
        browser.open(run.address)
        browser.until_text("#stop", "Stop")
        seen: list[str] = []
        while "skip" not in seen[1:] and len(seen) < 60:
            browser.press(TAB)
            seen.append(
                browser.run(
                    "const e = document.activeElement; return e.dataset.id ?? (e.id || e.className || e.textContent)"
                )
            )
            if seen[-1] == "parsed":
                browser.press(ENTER)
                assert "page string, at timestamp" in browser.text("#details")
        wanted = ["skip", "stop", "smaller", "fit", "larger", "graph", "clicks", "pages", "parsed", "details"]
        assert [name for name in seen if name in wanted][: len(wanted)] == wanted
        assert {"Stop table", "Stop raw", "chosen", "show-plan", "file"} <= set(seen)


@the_page
def test_the_buttons_stop_and_resume(browser: Browser, tmp_path: Path) -> None:
    with shown(tmp_path, allow_control=True) as run:
        run.begin()
        run.micro_batches(2)
        browser.open(run.address)
        browser.until_text("#targets", "Stop table")
        browser.click("#targets tbody tr:nth-child(1) button")
        browser.click("#ask-no")
        assert list(run.stop.asked()) == []
        browser.click("#targets tbody tr:nth-child(1) button")
        assert browser.barriers() == []
        browser.picture("ask")
        browser.click("#ask-yes")
        asked: list[Request] = []

        def all_asked(count: int) -> bool:
            asked.extend(run.stop.asked())
            return len(asked) == count

        by = "127.0.0.1 over HTTP"
        browser.until(lambda: all_asked(1), "the query is asked to stop")
        run.stop.states["table"] = "stopped"
        run.server.tick()
        browser.until_text("#targets", "Resume table")
        browser.click("#targets tbody tr:nth-child(1) button")
        browser.until(lambda: all_asked(2), "it is asked to go on")
        assert asked == [Request("stop", "table", by=by), Request("resume", "table", by=by)]
        assert not run.stop
        browser.click("#stop")
        browser.click("#ask-yes")
        browser.until(lambda: run.stop.reason, "the run is asked to stop")
        assert run.stop.reason == f"asked by {by}"
        assert browser.messages() == []


def test_without_control_there_are_no_buttons(browser: Browser, tmp_path: Path) -> None:
    with shown(tmp_path) as run:
        run.begin()
        browser.open(run.address)
        browser.until_text("#targets", "running")
        assert "Stop" not in browser.text("body")


def test_a_failure_is_shown_with_its_place(browser: Browser, tmp_path: Path) -> None:
    with shown(tmp_path) as run:
        run.begin()
        run.micro_batches(3)
        browser.open(run.address)
        browser.until_text("#state", "running")
        file = str(tmp_path / "clicks.yaml")
        message = "transform `counts`: the column <b>`team`</b> is\nno longer there"
        failure = Diagnostic("GB507", "error", message, "counts", (), Place(file, 14, 3), "Look at `pages`.")
        run.stop.failed("table", failure)
        run.end()
        browser.until_text("#connection", "The run has ended")
        browser.until_text("#problems", "GB507")
        problem = browser.text("#problems")
        assert f"error[GB507] {file}:14:3" in problem
        assert message in problem
        assert "Look at `pages`." in problem
        assert browser.text("#state") == "failed"
        assert browser.text('.node[data-id="counts"]').split("\n")[2] == "failed"
        assert browser.run("return document.querySelector('#line-14').dataset.severity") == "error"
        browser.click("#problems a")
        assert browser.run("return location.hash") == "#line-14"
        assert browser.barriers() == []
        browser.picture("failure")
        assert_shows(browser, run.report.as_dict())
        assert browser.messages() == []


def test_what_a_run_tells_of_its_health_is_shown(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shown(tmp_path) as run:
        run.begin()
        run.micro_batches()
        status = run.server.status

        def unwell() -> dict[str, Any]:
            found = status()
            table = found["targets"]["table"]
            since = "2026-01-05T09:07:00.000Z"
            table["unwell"] = [
                {"limit": "state_rows", "level": "fail", "reason": "500 rows, too many", "since": since}
            ]
            table["totals"] = {**table["totals"], "restarts": 3}
            last = table["totals"]["last"]
            table["totals"]["last"] = {**last, "lag_seconds": {"clicks": 61}}
            return found

        monkeypatch.setattr(run.server, "status", unwell)
        browser.open(run.address)
        browser.until_text("#problems", "target `table` is unwell: 500 rows, too many")
        assert browser.text('.node[data-id="table"]').split("\n")[2] == "running, unwell"
        row = page_numbers(browser)["targets"]["table"]
        assert row["Behind"] == "clicks 900 for 1 min 1 s"
        assert row["Restarts"] == "3"
        assert browser.messages() == []


def hundred_nodes() -> str:
    """A pipeline that is as large as the page is made for."""
    lines = ["pipeline: wide", "sources:"]
    lines += [f"  s{n}: {{gem: rate}}" for n in range(20)]
    lines.append("transforms:")
    for layer in range(3):
        for n in range(20):
            before = f"s{n}" if layer == 0 else f"t{layer - 1}_{n}"
            other = f"s{(n + 7) % 20}" if layer == 0 else f"t{layer - 1}_{(n * 3 + 1) % 20}"
            if n % 4:
                lines.append(
                    f"  t{layer}_{n}: {{gem: filter, input: {before}, options: {{condition: value > 0}}}}"
                )
            else:
                lines.append(f"  t{layer}_{n}: {{gem: union, inputs: [{before}, {other}]}}")
    lines.append("targets:")
    lines += [
        f"  target_{n}: {{gem: file, input: t2_{n}, options: {{path: out{n}, format: json}}}}"
        for n in range(20)
    ]
    return "\n".join(lines)


def assert_a_hundred_nodes_are_readable(browser: Browser) -> None:
    """No box and no label covers another one, and what is written into a box stays in it."""
    boxes = browser.run(
        """
        return [...document.querySelectorAll(".node, .edge-label")].map((element) => {
          const {left, top, right, bottom} = element.getBoundingClientRect();
          return [element.dataset.id ?? "label", left, top, right, bottom];
        })
        """
    )
    assert len([box for box in boxes if box[0] != "label"]) == 100
    assert len(boxes) == 100 + 95, "each edge has its label"
    overlaps = [
        (one[0], other[0])
        for at, one in enumerate(boxes)
        for other in boxes[at + 1 :]
        if one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]
    ]
    assert overlaps == []
    too_small = "return [...document.querySelectorAll('.node')].filter((e) => e.scrollHeight > e.clientHeight + 1).length"
    assert browser.run(too_small) == 0


@the_page
def test_a_hundred_nodes_are_drawn_without_overlaps(browser: Browser, tmp_path: Path) -> None:
    with shown(tmp_path, hundred_nodes()) as run:
        run.begin()
        run.micro_batches()
        for width in (1400, 390):
            browser.open(run.address, width=width)
            browser.until_text('.node[data-id="target_0"]', "rows/s")
            assert_a_hundred_nodes_are_readable(browser)
        browser.open(run.address)
        browser.until_text('.node[data-id="target_0"]', "rows/s")
        browser.click("#fit")
        browser.picture("hundred")
        assert browser.messages() == []


def test_with_a_token_the_page_asks_for_it(browser: Browser, tmp_path: Path) -> None:
    with shown(tmp_path, token="c0ffee") as run:
        run.begin()
        run.micro_batches()
        browser.open(run.address)
        browser.until_text("#token", "GEM_BUNDLE_SERVE_TOKEN")
        assert "clicks" not in browser.run("return document.documentElement.outerHTML")
        assert browser.barriers() == []
        browser.driver.find_element("css selector", "#token-text").send_keys("c0ffee\n")
        browser.until_text("#state", "running")
        assert [message for message in browser.messages() if "401" not in message] == []
        browser.run("sessionStorage.clear()")
        browser.open(f"{run.address}/#token=c0ffee")
        browser.until_text("#state", "running")
        assert "c0ffee" not in browser.run("return location.href")
        browser.run("sessionStorage.clear()")
