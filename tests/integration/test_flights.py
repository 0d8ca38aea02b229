"""The demo: the flights of 2013 through files, watermark, join and windows into a Delta table."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gem_bundle.cli import main
from tests.integration.flights import ROOT, Flights, Run, lay_out, link_days, table_rows
from tests.samples import a_killed_program, the_flights

pytestmark = pytest.mark.spark

DAYS = 16
NEXT_DAY = "2014,1,1,NA,1200,NA,NA,1500,NA,UA,1,NA,EWR,ORD,NA,719,12,0,2014-01-01T17:00:00Z"


@pytest.fixture
def demo(feed: Path, tmp_path: Path) -> Path:
    """The demo's folder with the first days of the feed."""
    lay_out("flights", tmp_path)
    link_days(feed, tmp_path / "data", DAYS)
    return tmp_path


@the_flights
def test_a_whole_year_and_the_first_flight_of_the_next_one(feed: Path, tmp_path: Path) -> None:
    """The README's first command, with every row; and once more when there is a new file."""
    year = Flights(link_days(feed, tmp_path / "data", 365))

    said = _scripts_demo(tmp_path)

    closed = year.hours()
    assert table_rows(tmp_path / "out" / "hours") == closed
    flights_in_table = sum(row[3] for row in closed)
    assert year.ask("select count(*) from flights") == [(336_776,)]
    assert 336_700 < flights_in_table < 336_776
    assert "read 336,776 flights" in said
    assert f"wrote {len(closed):,} rows" in said
    assert "dropped 0 flights as late" in said
    assert f"{len(year.hours(closed_only=False)) - len(closed)} rows are not in the table yet" in said
    assert _screen(said) == [
        [str(hour), airport, airline, str(minutes)]
        for hour, airport, airline, _, _, minutes, _, _ in sorted(closed, key=lambda row: (-row[5], row[:3]))[
            :10
        ]
    ]

    _add_file(tmp_path / "data" / "flights", "2014-01-01.csv", NEXT_DAY)
    said = _scripts_demo(tmp_path)

    both = Flights(tmp_path / "data")
    assert "read 1 flights" in said
    assert table_rows(tmp_path / "out" / "hours") == year.hours(closed_only=False) == both.hours()

    said = _scripts_demo(tmp_path)
    assert "found nothing new" in said
    assert table_rows(tmp_path / "out" / "hours") == both.hours()


@a_killed_program
@pytest.mark.matrix
def test_no_row_is_lost_or_doubled_when_a_run_is_killed(demo: Path) -> None:
    pipeline, table = demo / "flights.yaml", demo / "out" / "hours"
    small = ("-p", "files_per_trigger=2")
    expected = Flights(demo / "data").hours()

    for batches in (3, 2):
        with Run(pipeline, *small, log=demo / "spark.log") as run:
            run.until(batches)
            assert _told(pipeline)[:2] == (0, "Running")
            run.signal(signal.SIGKILL)
            assert run.wait() == -signal.SIGKILL
        assert _told(pipeline) == (1, "Died", True)
        partly = table_rows(table)
        assert 0 < len(partly) < len(expected)
        assert set(partly) < set(expected)

    with Run(pipeline, *small, log=demo / "spark.log") as run:
        assert run.wait() == 0
    assert table_rows(table) == expected
    assert run.end()["totals"]["late_rows"] == 0
    assert run.progress()[0]["batch_id"] >= 5  # it continued and did not begin anew
    assert _told(pipeline)[:2] == (1, "Finished")


@the_flights
@pytest.mark.matrix
def test_a_stopped_run_ends_its_micro_batch_and_the_next_one_continues(demo: Path) -> None:
    pipeline, table = demo / "flights.yaml", demo / "out" / "hours"
    small = ("-p", "files_per_trigger=2")
    flights = Flights(demo / "data")

    with Run(pipeline, *small, log=demo / "spark.log") as run:
        run.until(2)
        run.signal(signal.SIGTERM)
        assert run.wait() == 0
    first = run.end()
    assert first["status"] == "stopped"
    assert "stopping" in {event["event"] for event in run.events}
    assert _newest_commit(demo) == run.progress()[-1]["batch_id"] == _newest_of(first)
    written = _commits(table)

    with Run(pipeline, *small, log=demo / "spark.log") as run:
        assert run.wait() == 0
    second = run.end()
    assert second["status"] == "finished"
    assert run.progress()[0]["batch_id"] == _newest_of(first) + 1
    read = first["totals"]["rows_in"] + second["totals"]["rows_in"]
    assert flights.ask("select count(*) from flights") == [(read,)]
    assert _commits(table)[: len(written)] == written
    assert table_rows(table) == flights.hours()


def _told(pipeline: Path) -> tuple[int, str, bool]:
    """What `gem-bundle status` says: its exit status, how the run is, whether the process is known to be gone."""
    result = CliRunner().invoke(main, ["status", str(pipeline)])
    return result.exit_code, result.stdout.splitlines()[1].split()[0], "process is gone" in result.stdout


def _scripts_demo(folder: Path) -> str:
    """What `scripts/demo` prints when it is started from somewhere else."""
    done = subprocess.run(
        [ROOT / "scripts" / "demo", folder],
        cwd="/",
        env={**os.environ, "VENV": sys.prefix},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _screen(said: str) -> list[list[str]]:
    """Hour, airport, airline and minutes of the rows that the console target printed."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in said.splitlines()
        if line.startswith("|2013-")
    ]
    return [[row[0], row[1], row[2], row[5]] for row in rows]


def _add_file(folder: Path, name: str, *rows: str) -> None:
    """A new daily file, written elsewhere and renamed as the feed's own are."""
    header = next(folder.iterdir()).read_text().partition("\n")[0]
    draft = folder.parent / name
    draft.write_text("\n".join((header, *rows, "")))
    draft.rename(folder / name)


def _newest_commit(demo: Path) -> int:
    folder = demo / "checkpoints" / "flights" / "table" / "commits"
    return max(int(entry.name) for entry in folder.iterdir() if entry.name.isdigit())


def _newest_of(report: dict) -> int:  # type: ignore[type-arg]
    newest: int = report["targets"]["table"]["last"]["batch_id"]
    return newest


def _commits(table: Path) -> list[str]:
    return [entry.read_text() for entry in sorted((table / "_delta_log").glob("*.json"))]
