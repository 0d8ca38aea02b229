"""What the tests of the flights examples share: running them, and computing the same without Spark."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples"
Row = tuple[Any, ...]

# The question of flights.yaml, asked in DuckDB. Spark's round() rounds halves away from zero, as
# DuckDB's does.
HOURS: Final = """
    select
        date_trunc('hour', scheduled) as hour,
        origin as airport,
        name as airline,
        count(*) as flights,
        count(*) - count(dep_time) as cancelled,
        coalesce(sum(greatest(dep_delay, 0)) filter (dep_delay is not null), 0)::bigint as minutes_late,
        round(avg(dep_delay), 1) as mean_delay,
        max(dep_delay) as longest_delay
    from flights left join airlines using (carrier)
    group by all
"""


class Flights:
    """Flights and airlines as the daily files have them, in DuckDB."""

    def __init__(self, data: Path) -> None:
        import duckdb  # which the fast tests collect, and would load for nothing

        self._db = duckdb.connect()
        self._db.execute(
            "create table flights as select *, make_timestamp(year, month, day, hour, minute, 0) "
            "as scheduled from read_csv($files, header = true, nullstr = 'NA')",
            {"files": str(data / "flights" / "*.csv")},
        )
        self._db.execute(
            "create table airlines as from read_csv($file, header = true)",
            {"file": str(data / "airlines.csv")},
        )

    def ask(self, query: str) -> list[Row]:
        """The rows of a query over ``flights`` and ``airlines``."""
        return self._db.execute(query).fetchall()

    def hours(self, *, closed_only: bool = True) -> list[Row]:
        """The rows that the table must hold, in order.

        Args:
            closed_only: Only hours whose end the watermark has passed: two hours behind the
                latest flight (guide: *Handling Late Data and Watermarking*).
        """
        query = HOURS
        if closed_only:
            query += """
            having date_trunc('hour', any_value(scheduled)) + interval 1 hour
                <= (select max(scheduled) - interval 2 hours from flights)
            """
        return self.ask(f"from ({query}) order by all")


def table_rows(table: Path, columns: str = "*") -> list[Row]:
    """The rows of a Delta table in order, read from its log and its Parquet files without Spark."""
    files: dict[str, None] = {}
    for entry in sorted((table / "_delta_log").glob("*.json")):
        for line in entry.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files[str(table / action["add"]["path"])] = None
            elif "remove" in action:
                del files[str(table / action["remove"]["path"])]
    import duckdb

    with duckdb.connect() as db:
        # Spark's timestamps are instants; the session's time zone says how they read.
        db.execute("set timezone = 'UTC'")
        return db.execute(
            f"select {columns} from (select * replace (hour::timestamp as hour) from read_parquet($files)) "
            "order by all",
            {"files": list(files)},
        ).fetchall()


def lay_out(example: str, folder: Path) -> Path:
    """A copy of an example's pipelines in a folder, with no data in it."""
    for file in (EXAMPLES / example).glob("*.yaml"):
        shutil.copy(file, folder)
    return folder


def link_days(feed: Path, folder: Path, days: int) -> Path:
    """The first days of a feed in another folder, as the same files with the same times."""
    (folder / "flights").mkdir(parents=True)
    os.link(feed / "airlines.csv", folder / "airlines.csv")
    for file in sorted((feed / "flights").iterdir())[:days]:
        os.link(file, folder / "flights" / file.name)
    return folder


class Run:
    """A `gem-bundle run` in a process group of its own, so that a test can kill it with its JVM.

    Args:
        arguments: What follows ``gem-bundle run``.
        log: The file that Spark's log goes to.
        environment: Environment variables, besides those of this process.
    """

    def __init__(self, *arguments: str | Path, log: Path, **environment: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.said: list[str] = []
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "gem_bundle",
                "run",
                *arguments,
                "--log-format",
                "json",
                "--spark-log",
                log,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **environment},
        )

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.signal(9)
        self._process.communicate()

    def follow(self) -> Iterator[dict[str, Any]]:
        """The events as they come, until the run ends."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said.append(line)
            if line.startswith("{"):
                event = json.loads(line)
                self.events.append(event)
                yield event

    def until(self, batches: int) -> None:
        """Wait until that many micro-batches of this run have ended."""
        seen = 0
        for event in self.follow():
            seen += event["event"] == "progress"
            if seen == batches:
                return
        raise AssertionError(f"the run ended after {seen} micro-batches:\n{''.join(self.said)}")

    def signal(self, number: int) -> None:
        """Send a signal: SIGKILL to Spark's JVM too, as if the machine went down."""
        if number == 9:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for the end and return the exit status."""
        for _ in self.follow():
            pass
        return self._process.wait()

    def progress(self) -> list[dict[str, Any]]:
        """The micro-batches that ended."""
        return [event for event in self.events if event["event"] == "progress"]

    def end(self) -> dict[str, Any]:
        """The run's report; only a run that was not killed has one."""
        assert self.events, "".join(self.said)
        assert self.events[-1]["event"] == "ended", "".join(self.said)
        return self.events[-1]
