"""The page of a real run, open in a browser while it goes on."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING

import pytest

from gem_bundle.reference.run_shapes import HISTORY, PIPELINE, PLAN, REPORT, RUN
from gem_bundle.run.options import ServeOptions
from gem_bundle.run.serving.server import answering
from gem_bundle.ui.page import FilePage, make_file_app
from tests.browser import page_numbers
from tests.core.run.test_answers import ask
from tests.core.run.test_page import assert_shows
from tests.integration.flights import Flights, lay_out, link_days, table_rows
from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.integration.test_steering import command, known
from tests.samples import some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gem_bundle.run.report import Report
    from tests.browser import Browser

the_page_of_a_program = some_of("the page of a program's run", 1)

pytestmark = pytest.mark.spark

FAILING = """\
pipeline: failing
sources:
  numbers: {gem: file, options: {path: in, format: json, schema: "id bigint"}}
transforms:
  checked:
    gem: with_columns
    input: numbers
    options: {columns: {fine: "if(id < 3, id, raise_error('three is too many'))"}}
targets:
  kept: {gem: file, input: checked, options: {path: kept, format: json}}
  all: {gem: file, input: numbers, options: {path: all, format: json}}
"""


class Served:
    """A run in a thread of its own, with its page."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._reports: list[Report] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self._reports.append(run(self.file, serve=ServeOptions(allow_control=True)))

    @property
    def address(self) -> str:
        """Where its server answers, as soon as its record says so."""
        while self._thread.is_alive():
            if found := known(self.file).get("address"):
                return str(found)
            self._thread.join(0.1)
        raise AssertionError("the run has ended")

    def end(self) -> Report:
        """The report, once it is over; it is stopped where the page hasn't done so."""
        if self._thread.is_alive():
            command("stop", self.file)
        self._thread.join()
        return self._reports[0]


@the_page_of_a_program
def test_the_flights_are_watched_and_stopped_on_the_page(
    spark: SparkSession, browser: Browser, feed: Path, tmp_path: Path
) -> None:
    file = lay_out("flights", tmp_path) / "flights.yaml"
    file.write_text(file.read_text().replace("{available_now: true}", "{processing_time: 100 milliseconds}"))
    data = link_days(feed, tmp_path / "data", 2)
    served = Served(file)
    try:
        browser.open(served.address)
        rows = Flights(data).ask("select count(*) from flights")[0][0]
        browser.until(lambda: shown_rows(browser) == f"{rows:,}", "the first days are shown")
        for day in sorted((feed / "flights").iterdir())[2:5]:
            os.link(day, data / "flights" / day.name)
        rows = Flights(data).ask("select count(*) from flights")[0][0]
        browser.until(lambda: shown_rows(browser) == f"{rows:,}", "the other days are shown")
        # What hour is over is written by a micro-batch of its own, which has no rows to read.
        written = len(Flights(data).hours())
        browser.until(
            lambda: page_numbers(browser)["totals"]["rows out"] == f"{written:,}", "all hours are shown"
        )
        browser.click("#show-plan")
        browser.until_text("#plan", "== Physical Plan ==")
        assert "StateStoreSave" in browser.text("#plan")
        assert browser.run("return document.querySelectorAll('.node').length") == 8
        assert "2 columns" in browser.text("#graph")
        for path, shape in (
            ("status", RUN),
            ("pipeline", PIPELINE),
            ("history", HISTORY),
            ("plan?target=table", PLAN),
        ):
            shape.model_validate_json(json.dumps(ask(served.address, f"GET /api/v1/{path}")[1]))
        browser.run("scrollTo(0, 0)")
        browser.picture("flights", whole=False)
        browser.click("#stop")
        browser.click("#ask-yes")
        browser.until_text("#connection", "The run has ended")
        report = served.end()
        assert report.status == "stopped"
        REPORT.model_validate_json(json.dumps(report.as_dict()))
        assert_shows(browser, report.as_dict())
        browser.picture("flights-stopped")
        assert browser.messages() == []
        assert table_rows(tmp_path / "out" / "hours") == Flights(data).hours()
        assert (report.rows_in, report.rows_out) == (rows, written)
    finally:
        served.end()


def shown_rows(browser: Browser) -> str:
    """How many rows the page says were read; empty before it shows a run."""
    found: str = page_numbers(browser)["totals"].get("rows in", "")
    return found


@the_page_of_a_program
def test_a_failure_of_a_run_is_shown_where_it_is(
    spark: SparkSession, browser: Browser, tmp_path: Path
) -> None:
    file = write_pipeline(tmp_path, FAILING)
    add_rows(tmp_path / "in", "1.json", [{"id": 1}, {"id": 2}])
    served = Served(file)
    try:
        browser.open(served.address)
        browser.until(lambda: shown_rows(browser) == "4", "the first rows are shown")
        add_rows(tmp_path / "in", "2.json", [{"id": 3}])
        browser.until_text("#connection", "The run has ended")
        report = served.end()
        (failure,) = report.diagnostics
        browser.until_text("#problems", failure.code)
        assert f"error[{failure.code}] {failure.place}" in browser.text("#problems")
        assert "three is too many" in browser.text("#problems")
        assert failure.node in {"checked", "kept"}
        assert "failed" in browser.text(f'.node[data-id="{failure.node}"]')
        assert browser.text(f"#line-{failure.line}").split("\n")[1] == FAILING.splitlines()[failure.line - 1]
        assert (
            browser.run(f"return document.querySelector('#line-{failure.line}').dataset.severity") == "error"
        )
        assert_shows(browser, report.as_dict())
        assert browser.messages() == []
    finally:
        served.end()


@the_page_of_a_program
def test_first_rows_of_a_file_that_is_being_written(
    spark: SparkSession, browser: Browser, tmp_path: Path
) -> None:
    text = FAILING.replace("id < 3", "id < 2")
    file = write_pipeline(tmp_path, text)
    add_rows(tmp_path / "in", "1.json", [{"id": 0}, {"id": 1}])
    options = ServeOptions()
    with FilePage(str(file), {}, None) as page:
        page.check()
        with answering(make_file_app(page, options.host, ""), options, page.events) as address:
            browser.open(address)
            for node, wanted in (("numbers", ["0", "1"]), ("checked", ["0\t0", "1\t1"])):
                browser.until_text("#graph", node)
                browser.click(f'.node[data-id="{node}"]')
                browser.click("#details .preview button")
                browser.until_text("#details .preview caption", "2 rows")
                rows = browser.text("#details .preview tbody").split("\n")
                assert sorted(row.strip() for row in rows) == wanted
            browser.picture("preview")
            assert browser.barriers() == []
            assert not (tmp_path / "kept").exists()
            assert not (tmp_path / "checkpoints").exists()
            add_rows(tmp_path / "in", "2.json", [{"id": 2}])
            browser.click("#details .preview button")
            browser.until_text("#details .preview", "three is too many")
            assert [message for message in browser.messages() if "422" not in message] == []
