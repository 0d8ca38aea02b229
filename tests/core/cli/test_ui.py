"""`gem-bundle ui`: the page of a file, which follows it as it is saved."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.check.checker import check_file
from gem_bundle.files import open_folder
from gem_bundle.run.options import ServeOptions
from gem_bundle.run.serving.server import answering
from gem_bundle.runs.record import runs_place, write_run
from gem_bundle.ui import page as ui_page
from gem_bundle.ui.page import FilePage, make_file_app
from tests.browser import ENTER, TAB
from tests.core.run.test_page import assert_a_hundred_nodes_are_readable, hundred_nodes
from tests.core.run.test_report_and_view import BATCH
from tests.core.runs.test_record import RECORD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser import Browser
    from tests.core.cli.conftest import Cli

TEXT = """\
pipeline: clicks
description: Clicks by the minute.
sources:
  ticks: {gem: rate, description: It ticks.}
transforms:
  even: {gem: filter, input: ticks, options: {condition: value % 2 = 0}}
targets:
  table: {gem: file, input: even, options: {path: out, format: json}}
"""


class Shown:
    """The page of a file, without Spark."""

    def __init__(self, page: FilePage, address: str) -> None:
        self.page = page
        self.address = address

    def ask(self, path: str, content: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=60)
        if content is not None:
            headers["Content-Type"] = "application/json"
        connection.request(
            "GET" if content is None else "POST", path, content and json.dumps(content), headers
        )
        answer = connection.getresponse()
        found = json.loads(answer.read())
        connection.close()
        return answer.status, found


@contextmanager
def shown(file: Path, token: str = "") -> Iterator[Shown]:
    with FilePage(str(file), {}, None) as page:
        page.check()
        options = ServeOptions()
        with answering(make_file_app(page, options.host, token), options, page.events) as address:
            yield Shown(page, address)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "clicks.yaml"
    found.write_text(TEXT)
    return found


@pytest.mark.servers
def test_what_is_said_follows_the_file(file: Path) -> None:
    with shown(file) as ui:
        assert ui.ask("/api/v1/status") == (200, {})
        assert ui.ask("/api/v1/history") == (200, {"targets": {}})
        _, found = ui.ask("/api/v1/pipeline")
        assert (found["kind"], found["control"], found["diagnostics"]) == ("file", False, [])
        assert [node["id"] for node in found["nodes"]] == ["ticks", "even", "table"]

        file.write_text(TEXT.replace("value %", "valeu %"))
        ui.page.check()
        _, found = ui.ask("/api/v1/pipeline")
        (problem,) = found["diagnostics"]
        assert (problem["node"], problem["line"]) == ("even", 6)
        assert found["nodes"][0]["outputs"][0]["columns"], "what is known is shown, errors or not"

        file.write_text(
            TEXT.replace("ticks: {", "ticks: [") + "password: hunter2\ntoken:\n  - hunter3\nend: 1\n"
        )
        ui.page.check()
        _, found = ui.ask("/api/v1/pipeline")
        assert [problem["severity"] for problem in found["diagnostics"]] == ["error"]
        assert len(found["nodes"]) == 3, "the graph is the last that there was"
        assert "hunter" not in json.dumps(found)
        assert found["text"].endswith("end: 1\n")

        file.unlink()
        ui.page.check()
        assert ui.ask("/api/v1/pipeline")[1]["diagnostics"][0]["code"] == "GB001"


@pytest.mark.servers
def test_the_run_of_the_pipeline_is_beside_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui_page, "_LOOK_SECONDS", 0.01)
    with shown(file) as ui:
        definition = ui.page._definition
        assert definition is not None
        recent = tuple({**BATCH.as_dict(), "batch_id": number} for number in range(3))
        (target,) = RECORD.targets.values()
        target = replace(target, recent=(*recent, {"batch_id": 7, "of": "another version"}))
        write_run(open_folder(runs_place(definition)), replace(RECORD, targets={"table": target}))
        found: dict[str, Any] = {}
        while not found:
            _, found = ui.ask("/api/v1/status")
        assert found["id"] == RECORD.id
        (history,) = ui.ask("/api/v1/history")[1]["targets"].values()
        assert history["rows_in"] == [BATCH.rows_in] * 3


@pytest.mark.servers
def test_only_what_it_asks_for_is_previewed(file: Path) -> None:
    with shown(file) as ui:
        wrong: list[Any] = [[], {"node": 1}, {}, {"node": "even", "rows": 5}]
        for content in wrong:
            assert ui.ask("/api/v1/preview", content)[0] == 400, content
        assert ui.ask("/api/v1/preview", {"node": "even"}, Origin="http://evil.example")[0] == 403
        assert ui.ask("/api/v1/stop", {})[0] == 404
        file.write_text(TEXT.replace("value %", "valeu %"))
        status, found = ui.ask("/api/v1/preview", {"node": "even"})
        assert (status, found["diagnostics"][0]["node"]) == (422, "even")
    with shown(file, token="c0ffee") as ui:
        assert ui.ask("/api/v1/preview", {"node": "even"})[0] == 401
        assert ui.ask("/api/v1/pipeline")[0] == 401


@contextmanager
def command(file: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`gem-bundle ui` as somebody starts it: the address that it says, and its process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gem_bundle", "ui", str(file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        address = process.stderr.readline().strip().removeprefix("Serving at ")
        assert "Watching 1 file" in process.stderr.readline()
        yield address, process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.programs
def test_the_page_follows_the_file_while_it_is_written(browser: Browser, file: Path) -> None:
    with command(file) as (address, _):
        browser.open(address)
        browser.until_text("#title", "clicks")
        browser.click('.node[data-id="ticks"]')
        assert "It ticks." in browser.text("#details")
        assert "timestamp\ttimestamp" in browser.text("#details")
        browser.click('.node[data-id="even"]')
        assert "condition\tvalue % 2 = 0" in browser.text("#details")

        file.write_text(TEXT.replace("value %", "valeu %"))
        (found,) = check_file(file).diagnostics
        browser.until_text("#problems", f"error[{found.code}] {found.place}")
        assert found.line == 6
        assert browser.run("return document.querySelector('#line-6').dataset.severity") == "error"
        assert "error" in browser.text('.node[data-id="even"]').split("\n")
        assert "condition\tvaleu % 2 = 0" in browser.text("#details"), (
            "what is shown of a node is what it is now"
        )
        assert found.message in browser.text("#details")
        assert browser.barriers() == []
        browser.picture("ui")

        fourth = "  fourth: {gem: filter, input: even, description: And of four., options: {condition: value % 4 = 0}}"
        text = TEXT.replace("targets:", f"{fourth}\ntargets:").replace(
            "input: even, options: {path", "input: fourth, options: {path"
        )
        file.write_text(text)
        browser.until(lambda: not browser.text("#problems"), "the problem is gone")
        nodes = "return [...document.querySelectorAll('.node')].map((e) => e.dataset.id)"
        assert browser.run(nodes) == ["ticks", "even", "fourth", "table"]
        edges = (
            "return [...document.querySelectorAll('.edge')].map((e) => `${e.dataset.from} ${e.dataset.to}`)"
        )
        assert browser.run(edges) == ["ticks even", "even fourth", "fourth table"]
        assert "error" not in browser.text('.node[data-id="even"]')
        browser.click('.node[data-id="fourth"]')
        assert "And of four." in browser.text("#details")
        assert "condition\tvalue % 4 = 0" in browser.text("#details")
        assert browser.messages() == []


@pytest.mark.programs
def test_the_page_of_a_file_is_for_everybody(browser: Browser, file: Path) -> None:
    file.write_text(TEXT.replace("value %", "valeu %"))
    with shown(file) as ui:
        browser.open(ui.address)
        browser.until_text("#problems", "valeu")
        pressed: list[str] = []
        while "file" not in pressed and len(pressed) < 40:
            browser.press(TAB)
            focus = "const e = document.activeElement; return e.dataset.id ?? (e.id || e.innerText)"
            pressed.append(browser.run(focus))
            if pressed[-1] == "even":
                browser.press(ENTER)
            elif pressed[-1] == "First rows":
                browser.press(ENTER)
                browser.until_text("#details .preview", "error[")
        wanted = ["graph", "ticks", "even", "table", "details", "Close", "First rows", "file"]
        assert [name for name in pressed if name in wanted] == wanted
        for width, dark in ((390, False), (390, True), (1400, True)):
            browser.open(ui.address, width=width, dark=dark)
            browser.until_text("#problems", "valeu")
            browser.click('.node[data-id="even"]')
            assert browser.barriers() == []
            assert browser.run("return document.documentElement.scrollWidth") <= width
            browser.picture(f"ui-{width}-{'dark' if dark else 'light'}")
        assert [message for message in browser.messages() if "422" not in message] == []


@pytest.mark.programs
def test_a_file_with_a_hundred_nodes_is_drawn_without_overlaps(browser: Browser, file: Path) -> None:
    file.write_text(hundred_nodes())
    with shown(file) as ui:
        for width in (1400, 390):
            browser.open(ui.address, width=width)
            browser.until_text("#title", "wide")
            assert_a_hundred_nodes_are_readable(browser)


@pytest.mark.programs
def test_the_command_serves_until_it_is_asked_to_end(file: Path) -> None:
    with command(file) as (address, process):
        connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
        connection.request("GET", "/api/v1/pipeline")
        assert json.loads(connection.getresponse().read())["pipeline"] == "clicks"
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert (process.wait(60), process.stderr.read().strip()) == (0, "")


@pytest.mark.servers
def test_a_port_that_is_taken_and_one_for_strangers(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = cli("ui", str(file), "--serve", str(port))
    assert result.exit_code == 1
    assert f"the page can't be at 127.0.0.1:{port}: {os.strerror(98)}" in result.stderr
    monkeypatch.delenv("GEM_BUNDLE_SERVE_TOKEN", raising=False)
    result = cli("ui", str(file), "--serve", "0.0.0.0:0")
    assert (result.exit_code, "GB518" in result.stderr) == (1, True)


def test_a_file_that_is_not_there_has_no_page(cli: Cli, file: Path) -> None:
    result = cli("ui", str(file.with_name("cliks.yaml")))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[GB001]: the file can't be read" in result.stderr
    assert "Serving" not in result.stderr
