"""The record of a run, and what a run is asked: whole or not there, wherever the checkpoints lie."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gem_bundle.files import open_folder
from gem_bundle.runs.process import Process
from gem_bundle.runs.record import (
    RunRecord,
    RunRecordError,
    TargetState,
    read_run,
    read_runs,
    remove_run,
    write_run,
)
from gem_bundle.runs.requests import Request, ask, is_asked, take

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.files import Folder

RECORD = RunRecord(
    "20260105T090500-ab",
    "clicks",
    "1.0.0",
    process=Process("spark-1", 4711, "b", "n", "1"),
    state="running",
    targets={
        "table": TargetState("failed", "/c/table", {"rows_in": 3}, ({"batch_id": 1},), {"code": "GB507"})
    },
    diagnostics=({"code": "GB507"},),
)


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.network)])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    if request.param == "s3":
        return open_folder(f"{request.getfixturevalue('s3').place()}/clicks/.runs")
    return open_folder(
        f"memory://{uuid.uuid4().hex}" if request.param == "memory" else f"{tmp_path}/clicks/.runs"
    )


def test_records_and_requests_lie_where_the_checkpoints_do(folder: Folder) -> None:
    later = replace(RECORD, id="20260105T100000-aa", state="finished")
    assert read_runs(folder) == []
    for record in (RECORD, later, RECORD):
        write_run(folder, record)
    assert read_runs(folder) == [later, RECORD]
    asked = [Request("stop", "table", by="me"), Request("resume", "table"), Request("stop", now=True)]
    for request in asked:
        ask(folder, RECORD.id, request)
    assert take(folder, later.id) == []
    assert is_asked(folder, RECORD.id)
    assert take(folder, RECORD.id) == asked
    assert take(folder, RECORD.id) == []
    ask(folder, RECORD.id, asked[0])
    remove_run(folder, RECORD.id)
    assert read_runs(folder) == [later]
    assert len(folder.names()) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no JSON"),
        ("[]", "is no record of a run"),
        ('{"format": 2}', "was written by a later gem-bundle"),
        ('{"format": 1, "id": "x"}', "is no record of a run"),
        (
            '{"format": 1, "id": "x", "pipeline": "p", "version": "1", "state": "odd"}',
            "is no record of a run",
        ),
        ('{"format": 1, "id": "x", "pipeline": "p", "version": "1", "targets": {"a": 1}}', "is no record"),
    ],
)
def test_what_is_no_record_is_left_out_and_not_fatal(tmp_path: Path, text: str, why: str) -> None:
    folder = open_folder(str(tmp_path))
    write_run(folder, RECORD)
    (tmp_path / "run-x.json").write_text(text)
    with pytest.raises(RunRecordError, match=why):
        read_run(folder, "x")
    assert read_runs(folder) == [RECORD]


def test_a_record_with_more_than_is_known_can_be_read(tmp_path: Path) -> None:
    folder = open_folder(str(tmp_path))
    content = {**RECORD.as_dict(), "mood": "good"}
    content["targets"]["table"]["mood"] = "good"
    (tmp_path / f"run-{RECORD.id}.json").write_text(json.dumps(content))
    assert read_runs(folder) == [RECORD]


@pytest.mark.parametrize("text", ["{", "[]", '{"action": "dance"}', '{"action": "stop", "target": 1}'])
def test_what_is_no_request_is_taken_away(tmp_path: Path, text: str) -> None:
    folder = open_folder(str(tmp_path))
    (tmp_path / "ask-r-1.json").write_text(text)
    assert take(folder, "r") == []
    assert folder.names() == []
