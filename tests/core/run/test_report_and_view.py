"""What a run shows and writes."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest

from gem_bundle.errors import GemError
from gem_bundle.run.progress import MicroBatch, Totals
from gem_bundle.run.report import Report
from gem_bundle.run.view import JsonView, LiveView, QuietView, make_view, summary

if TYPE_CHECKING:
    from pathlib import Path

BATCH = MicroBatch(
    batch_id=4,
    timestamp="2013-01-01T00:00:00.000Z",
    rows_in=12_000,
    rows_out=340,
    rows_per_second=2_500.0,
    watermark="2013-01-01T05:00:00.000Z",
    state_rows=77,
    late_rows=3,
    duration_ms=4_800,
)


def ended_report() -> Report:
    report = Report("flights", "1.0.0")
    report.targets = {"worst": Totals("worst")}
    report.start()
    report.targets["worst"].add(BATCH)
    report.end("finished", 10.0)
    return report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(report: Report, view: JsonView | LiveView) -> None:
    view.started(report)
    view.progress(BATCH, report.targets["worst"])
    view.tick()
    view.stopping("SIGTERM")
    view.ended(report)


def test_json_lines_have_one_object_for_each_event() -> None:
    stream = io.StringIO()
    shown(ended_report(), JsonView(stream))
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["started", "progress", "stopping", "ended"]
    assert events[1]["target"] == "worst"
    assert events[1]["total_rows_in"] == 12_000
    assert events[3]["totals"] == {
        "micro_batches": 1,
        "rows_in": 12_000,
        "rows_out": 340,
        "late_rows": 3,
        "rejected_rows": 0,
    }


@pytest.mark.parametrize("width", [140, 80])
def test_the_live_view_ends_with_the_numbers_and_a_summary(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    shown(ended_report(), LiveView(stream))
    text = " ".join(stream.getvalue().split())
    for part in ("2013-01-01 05:00:00", "12,000", "2,500", "4.8 s", "77"):
        assert part in text
    assert "Stopping (SIGTERM)" in text
    assert "Finished after 10.0 s: 1 micro-batch, 12,000 rows in (1,200 rows/s), 340 rows out" in text


def test_the_view_fits_the_output() -> None:
    assert isinstance(make_view("auto", quiet=False, stream=io.StringIO()), JsonView)
    assert isinstance(make_view("auto", quiet=False, stream=Terminal()), LiveView)
    assert isinstance(make_view("text", quiet=False, stream=io.StringIO()), LiveView)
    assert isinstance(make_view("json", quiet=False, stream=Terminal()), JsonView)
    assert type(make_view("auto", quiet=True)) is QuietView


def test_a_summary_leaves_out_what_is_not_known() -> None:
    report = ended_report()
    report.targets["worst"].rows_out = None
    assert "rows out" not in summary(report)
    assert "3 late rows dropped" in summary(report)
    assert summary(Report("p", "1")) == "Finished after 0.0 s: 0 rows out."


def test_the_report_is_written_whole(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    ended_report().write(file)
    content = json.loads(file.read_text())
    assert content["targets"]["worst"]["rows_in"] == 12_000
    assert content["status"] == "finished"
    assert list(tmp_path.iterdir()) == [file]


def test_a_report_that_can_not_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(GemError) as raised:
        ended_report().write(tmp_path / "none" / "report.json")
    assert raised.value.code == "GB511"
