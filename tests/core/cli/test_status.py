"""`gem-bundle status`: how a run is, and an exit status that says it too."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gem_bundle.cli import status
from gem_bundle.runs.record import TargetState
from tests.core.cli.known_runs import ELSEWHERE, FAILURE, GONE, PIPELINE, known_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.core.cli.conftest import Cli


@pytest.fixture
def root(project: Callable[..., Path]) -> Path:
    return project("clicks.yaml", PIPELINE).parent / "checkpoints"


def test_a_run_that_is_alive_is_told_in_the_words_of_its_summary(cli: Cli, root: Path) -> None:
    record = known_run(root)
    result = cli("status", "clicks.yaml", "--progress", "3")
    assert (result.exit_code, result.stderr) == (0, "")
    head, summed, beat, *rest = result.stdout.splitlines()
    assert head == f"clicks 0.1.0, {record.process}, since 2026-01-05 09:05:00"
    assert summed == (
        "  Running for 10.0 s: 1 micro-batch, 12,000 rows in (1,200 rows/s), 340 rows out, 3 late rows dropped."
    )
    assert beat.endswith("s ago")
    assert rest == [
        "  table: running",
        "    micro-batch 4: 12,000 rows in, 340 rows out, 2,500 rows/s, took 4.8 s",
        "    watermark 2013-01-01 05:00:00, 77 state rows",
        "    total 12,000 rows in, 340 rows out",
        "    2013-01-01 00:00:00 micro-batch 4: 12,000 rows in, 340 rows out, 2,500 rows/s, took 4.8 s",
        "  other: running",
        "    total 0 rows in, 0 rows out",
    ]


def test_the_exit_status_says_whether_it_is_alive_and_healthy(cli: Cli, root: Path) -> None:
    record = known_run(root)
    failed = {**record.targets, "table": replace(record.targets["table"], state="failed", failure=FAILURE)}
    for fields, words in [
        ({"process": GONE}, "Died after 10.0 s or later (its process is gone)"),
        ({"process": ELSEWHERE, "heartbeat": "2026-01-05T09:05:10Z"}, "(no heartbeat for"),
        ({"heartbeat": "2026-01-05T09:05:10Z"}, "Silent after 10.0 s (no heartbeat for"),
        ({"state": "finished", "ended": "2026-01-05T09:05:10.5Z"}, "Finished at 2026-01-05 09:05:10 after"),
        (
            {"state": "stopped", "ended": "2026-01-05T09:05:10Z", "reason": "SIGTERM"},
            "after 10.0 s (SIGTERM)",
        ),
        ({"targets": failed, "state": "stopping"}, "clicks.yaml:7:3: error[GB507]: target `table`: Python"),
    ]:
        known_run(root, **fields)
        result = cli("status", "clicks.yaml")
        assert result.exit_code == 1
        assert words in result.stdout
        assert "Traceback" not in result.output
    known_run(root, process=ELSEWHERE)
    assert cli("status", "clicks.yaml").exit_code == 0


def test_of_several_runs_those_that_live_are_told_else_the_last(cli: Cli, root: Path) -> None:
    known_run(root, "20260105T090500-a", process=ELSEWHERE, targets={"table": TargetState()})
    known_run(root, "20260105T090600-b", targets={"other": TargetState()})
    known_run(root, "20260105T090700-c", process=GONE)
    result = cli("status", "clicks.yaml", "--format", "json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["ok"] is True
    assert [(run["id"][-1], run["state"], run["healthy"]) for run in found["runs"]] == [
        ("b", "running", True),
        ("a", "running", True),
    ]
    for name in "ab":
        known_run(root, f"20260105T090{5 if name == 'a' else 6}00-{name}", process=GONE)
    found = json.loads(cli("status", "clicks.yaml", "--format", "json").stdout)
    assert [(run["id"][-1], run["state"], run["why"]) for run in found["runs"]] == [
        ("c", "died", "its process is gone")
    ]


def test_watching_goes_on_until_the_run_is_over(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = known_run(root)
    steps = iter([{"seconds": 20.0}, {"state": "finished", "seconds": 30.0}])
    monkeypatch.setattr(status, "_pause", lambda: known_run(root, record.id, **next(steps)))
    result = cli("status", "clicks.yaml", "--watch")
    assert result.exit_code == 1
    said = [line.split(":")[0].strip() for line in result.stdout.splitlines() if " s: 1 micro" in line]
    assert said == ["Running for 10.0 s", "Running for 20.0 s", "Finished at - after 30.0 s"]

    def interrupted() -> None:
        raise KeyboardInterrupt

    known_run(root)
    monkeypatch.setattr(status, "_pause", interrupted)
    assert cli("status", "clicks.yaml", "--watch").exit_code == 0


def test_plans_are_shown_by_target(cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = known_run(root)
    plans = {"table": "== Physical Plan ==\nScan", "other": ""}
    monkeypatch.setattr("gem_bundle.run.asking.plans_of", lambda definition, run: plans)
    lines = cli("status", "clicks.yaml", "--plan").stdout.splitlines()
    assert lines[-5:] == [
        "  plan of table:",
        "    == Physical Plan ==",
        "    Scan",
        "  plan of other:",
        "    none yet",
    ]
    told = json.loads(cli("status", "clicks.yaml", "--plan", "--format", "json").stdout)
    assert told["runs"][0]["plans"] == plans
    assert (told["runs"][0]["id"], told["ok"]) == (record.id, True)
    assert "plans" not in json.loads(cli("status", "clicks.yaml", "--format", "json").stdout)["runs"][0]


def test_where_nothing_ran_it_says_so(cli: Cli, root: Path) -> None:
    result = cli("status", "clicks.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[GB517]: no run of `clicks` is known" in result.stderr
    known_run(root)
    assert "GB517" in cli("status", "clicks.yaml", "-p", "root=elsewhere").stderr
    unseen = cli("status", "clicks.yaml", "-p", "root=nowhere://there")
    assert (unseen.exit_code, "error[GB406]" in unseen.stderr) == (1, True)
    assert "GB001" in cli("status", "gone.yaml").stderr


def test_the_run_of_a_profile_that_there_is_not_is_not_told(cli: Cli, root: Path) -> None:
    known_run(root)
    result = cli("status", "clicks.yaml", "--profile", "prdo")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[GB013]: there is no profile `prdo`" in result.stderr


@pytest.mark.programs
def test_looking_at_runs_imports_no_engine(root: Path) -> None:
    known_run(root)
    for command in ("status", "stop", "runs"):
        code = (
            "import sys\nfrom gem_bundle.cli import main\n"
            f"main(['{command}', 'clicks.yaml'], standalone_mode=False)\n"
            "heavy = {'pyspark', 'py4j', 'rich', 'sqlglot', 'fsspec', 'pandas'} & set(sys.modules)\n"
            "print(*sorted(heavy), file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.strip()) == (0, "")
