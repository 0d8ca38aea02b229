"""Records of runs as a run leaves them, for the commands that look at them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gem_bundle.files import open_folder
from gem_bundle.run.progress import Totals
from gem_bundle.runs.process import Process, this_process
from gem_bundle.runs.record import RunRecord, TargetState, write_run
from tests.core.run.test_report_and_view import BATCH

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.runs.requests import Request

PIPELINE = """
pipeline: clicks
parameters: {root: checkpoints}
checkpoints: ${root}
sources: {ticks: {gem: rate}}
targets:
  table: {gem: file, input: ticks, options: {path: out, format: json}}
  other: {gem: file, input: ticks, options: {path: other, format: json}}
"""
GONE = replace(this_process(), began="1")
ELSEWHERE = Process("spark-1", 4711)
FAILURE = {
    "code": "GB507",
    "severity": "error",
    "message": "target `table`: Python code raised ValueError: bad",
    "file": "clicks.yaml",
    "line": 7,
    "column": 3,
}


def known_run(folder: Path, run: str = "20260105T090500-ab", **fields: Any) -> RunRecord:
    """Leave the record of a run that is alive, as far as nothing else is said, and return it."""
    totals = Totals("table")
    totals.add(BATCH)
    now = datetime.now(UTC).isoformat()
    record = RunRecord(
        run,
        "clicks",
        "0.1.0",
        process=this_process(),
        state="running",
        started="2026-01-05T09:05:00.123Z",
        heartbeat=now,
        seconds=10.0,
        targets={
            "table": TargetState(
                "running", f"{folder}/clicks/table", totals.as_dict(), (totals.as_dict()["last"],)
            ),
            "other": TargetState("running", f"{folder}/clicks/other", Totals("other").as_dict()),
        },
    )
    record = replace(record, **fields)
    write_run(open_folder(f"{folder}/{record.pipeline}/.runs"), record)
    return record


def asked(folder: Path, record: RunRecord) -> list[Request]:
    """What a run was asked."""
    from gem_bundle.runs.requests import take

    return take(open_folder(f"{folder}/clicks/.runs"), record.id)
