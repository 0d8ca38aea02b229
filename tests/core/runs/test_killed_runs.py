"""The record of a run that was killed is told from that of one that lives, on a disk and in an object store."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from gem_bundle.files import open_folder
from gem_bundle.runs.life import SILENT_SECONDS, judge
from gem_bundle.runs.process import Process
from gem_bundle.runs.record import read_runs
from tests.samples import drawn, seed

if TYPE_CHECKING:
    from tests.s3_server import S3

ROOT = Path(__file__).parents[3]
KILLS = 20
DAILY = 2
PIPELINE = """
pipeline: clicks
checkpoints: {checkpoints}
sources: {{ticks: {{gem: rate}}}}
targets: {{table: {{gem: file, input: ticks, options: {{path: out, format: json}}}}}}
"""
# A run but for its queries: what writes the record is the run's own.
PROGRAM = """
import sys, time
from gem_bundle.pipeline.loader import load_file
from tests.core.run.test_recorder import BATCH, Run
run = Run(load_file(sys.argv[1]).definition)
with run.recorder as recorder:
    run.stop.started("table")
    recorder.started(run.report)
    while True:
        run.report.targets["table"].add(BATCH)
        recorder.progress(BATCH, run.report.targets["table"])
        recorder._renew("running")
        time.sleep(0.001)
"""


def kill(folder: Path, checkpoints: str, number: int) -> None:
    file = folder / f"{number}.yaml"
    file.write_text(PIPELINE.format(checkpoints=checkpoints))
    records = open_folder(f"{checkpoints}/clicks/.runs")
    before = {record.id for record in read_runs(records)}
    chance = Random(f"{seed()} {number}")
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, file], cwd=ROOT)
    try:
        wanted = chance.randrange(40)
        while True:
            assert process.poll() is None
            found = [record for record in read_runs(records) if record.id not in before]
            # A record says "starting" until its first heartbeat with a query that runs.
            if (
                found
                and found[0].state == "running"
                and found[0].targets["table"].totals.get("micro_batches", 0) >= wanted
            ):
                break
        assert judge(found[0]).state == "running"
    finally:
        process.kill()
        process.wait()
    (last,) = [record for record in read_runs(records) if record.id not in before]
    verdict = judge(last)
    assert (verdict.state, verdict.why, verdict.is_alive) == ("died", "its process is gone", False)
    # From another machine the age of what it has written tells.
    elsewhere = replace(last, process=Process("spark-1", last.process.pid, "another boot"))
    beat = datetime.fromisoformat(last.heartbeat)
    assert judge(elsewhere, now=beat + timedelta(seconds=SILENT_SECONDS - 1)).is_alive
    assert judge(elsewhere, now=beat + timedelta(seconds=SILENT_SECONDS + 1)).state == "died"
    assert beat <= datetime.now(UTC)


@pytest.mark.programs
def test_a_killed_run_on_a_disk_has_died(tmp_path: Path) -> None:
    for number in drawn(range(KILLS), DAILY, "disk"):
        kill(tmp_path, str(tmp_path / "checkpoints"), number)


@pytest.mark.programs
@pytest.mark.network
def test_a_killed_run_in_an_object_store_has_died(tmp_path: Path, s3: S3) -> None:
    place = s3.place()
    for number in drawn(range(KILLS), DAILY, "store"):
        kill(tmp_path, place, number)
