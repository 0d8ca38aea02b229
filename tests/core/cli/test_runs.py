"""`gem-bundle runs`: what runs, ran and died, of a file, of a folder of files, of a root of checkpoints."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from tests.core.cli.known_runs import GONE, PIPELINE, known_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli


def test_the_runs_of_a_file_and_of_a_folder(cli: Cli, project: Callable[..., Path]) -> None:
    folder = project("clicks.yaml", PIPELINE).parent
    project("notes.yaml", "a: 1")
    project("broken.yaml", "pipeline: clicks\ncheckpoints: '${env:NOT_SET_HERE}'\n")
    root = folder / "checkpoints"
    known_run(root, "20260105T090500-a", process=GONE)
    known_run(root, "20260105T090600-b", state="finished", ended="2026-01-05T09:07:00Z")
    known_run(root, "20260105T090700-c")
    expected = [["clicks", "0.1.0", state] for state in ("running", "finished", "died")]
    for arguments in (
        [],
        ["clicks.yaml"],
        ["."],
        ["checkpoints"],
        ["checkpoints/clicks"],
        [f"file://{root}"],
    ):
        result = cli("runs", *arguments)
        head, *lines = result.stdout.splitlines()
        assert result.exit_code == 0
        assert head.split()[:4] == ["pipeline", "version", "state", "since"]
        assert [line.split()[:3] for line in lines] == expected, arguments
    assert "12,000" in lines[0]
    assert "GB014" in cli("runs").stderr
    assert "broken.yaml can't be read, so its runs aren't known" in cli("runs").stderr
    found = json.loads(cli("runs", "clicks.yaml", "--format", "json").stdout)["runs"]
    assert [run["state"] for run in found] == ["running", "finished", "died"]


def test_where_nothing_ran_there_is_nothing_to_list(cli: Cli, project: Callable[..., Path]) -> None:
    project("clicks.yaml", PIPELINE)
    result = cli("runs")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no run is known here" in result.stderr
    assert cli("runs", "gone").exit_code == 1
    assert cli("runs", "clicks.yaml", "--profile", "prdo").exit_code == 1


def test_the_runs_below_a_url(cli: Cli, project: Callable[..., Path]) -> None:
    project("clicks.yaml", PIPELINE)
    root = f"memory://{uuid.uuid4().hex}"
    known_run(root)  # type: ignore[arg-type]
    assert "running" in cli("runs", root).stdout
    unseen = cli("runs", "nowhere://there")
    assert (unseen.exit_code, "error[GB406]" in unseen.stderr) == (1, True)
