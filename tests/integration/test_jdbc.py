"""Files into PostgreSQL, and its rows as a stream: nothing lost or doubled, whoever is killed on the way."""

from __future__ import annotations

import signal
import time
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.pipelines import add_rows, command, finish, run, write_pipeline
from tests.samples import a_killed_program, examples

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.postgres_server import Postgres

pytestmark = pytest.mark.spark

FILES = 14
ROWS = examples(150, 10_000)
KEYS = examples(40, 5_000)
TEXT = """
pipeline: into_a_database
parameters: {{url: "{url}", user: {user}, password: {password}}}
sources:
  changes:
    gem: file
    options:
      format: json
      path: in
      schema: "id int, at int, value string"
      max_files_per_trigger: 1
targets:
  log:
    gem: jdbc
    input: changes
    options: {{url: "${{url}}", user: "${{user}}", password: "${{password}}", table: {schema}.log}}
  latest:
    gem: jdbc
    input: changes
    options:
      url: ${{url}}
      user: ${{user}}
      password: ${{password}}
      table: {schema}.latest
      upsert: {{on: [id], sequence_by: at}}
"""


class Feed:
    """Changes of some keys out of their order, and what a table of them is at the end.

    Args:
        folder: Where the pipeline is.
        postgres: The server.
    """

    def __init__(self, folder: Path, postgres: Postgres) -> None:
        self.schema = postgres.new_schema()
        self.file = write_pipeline(folder, TEXT.format(schema=self.schema, **postgres.options()))
        draw = Random(7)
        order = list(range(FILES * ROWS))
        draw.shuffle(order)
        self.rows: list[dict[str, Any]] = [
            {"id": draw.randrange(KEYS), "at": at, "value": f"v{at}"} for at in order
        ]
        self._postgres = postgres
        for number in range(FILES):
            add_rows(folder / "in", f"{number}.json", self.rows[number * ROWS : (number + 1) * ROWS])

    def start(self) -> subprocess.Popen[str]:
        """Start a run of its own."""
        return command("run", self.file, "--available-now")

    def wait_for(self, running: subprocess.Popen[str], micro_batch: int) -> None:
        """Wait until the database has a micro-batch."""
        asked = f"to_regclass('{self.schema}.gem_bundle_transactions') IS NOT NULL AS made"
        done = f"SELECT max(micro_batch) AS n FROM {self.schema}.gem_bundle_transactions"
        while not self._postgres.rows(f"SELECT {asked}")[0]["made"] or (
            (self._postgres.rows(done)[0]["n"] or 0) < micro_batch
        ):
            assert running.poll() is None, finish(running)

    def check(self) -> None:
        """The tables are what they would be if nothing had ever happened."""
        wanted: dict[int, dict[str, Any]] = {}
        for row in sorted(self.rows, key=lambda row: row["at"]):
            wanted[row["id"]] = row
        found = self._postgres.rows(f"SELECT * FROM {self.schema}.latest ORDER BY id")
        assert found == [wanted[key] for key in sorted(wanted)]
        logged = self._postgres.rows(f"SELECT * FROM {self.schema}.log ORDER BY at")
        assert logged == sorted(self.rows, key=lambda row: row["at"])
        left = self._postgres.rows(f"SELECT tablename FROM pg_tables WHERE schemaname = '{self.schema}'")
        assert {row["tablename"] for row in left} == {"log", "latest", "gem_bundle_transactions"}


@a_killed_program
@pytest.mark.parametrize("kill", range(20))
def test_a_killed_run_leaves_each_row_once(
    spark: SparkSession, tmp_path: Path, postgres: Postgres, kill: int
) -> None:
    feed = Feed(tmp_path, postgres)
    running = feed.start()
    feed.wait_for(running, 1 + kill // 4)
    time.sleep(kill % 4 * 0.04)  # no synchronisation: it is killed in different places of a micro-batch
    running.send_signal(signal.SIGKILL)
    finish(running)
    assert run(feed.file, available_now=True).ok
    feed.check()


@a_killed_program
@pytest.mark.parametrize("kill", range(5))
def test_a_killed_server_has_each_row_once(
    spark: SparkSession, tmp_path: Path, postgres: Postgres, kill: int
) -> None:
    feed = Feed(tmp_path, postgres)
    running = feed.start()
    feed.wait_for(running, 1 + kill)
    time.sleep(kill * 0.04)  # as above
    postgres.kill()
    postgres.start()
    status, _, err = finish(running)
    assert status in {0, 1}, err
    assert "Traceback" not in err
    assert run(feed.file, available_now=True).ok
    feed.check()


STREAM = """
pipeline: out_of_a_database
sources:
  rows:
    gem: jdbc
    options:
      url: "{url}"
      user: {user}
      password: "${{env:PASSWORD_OF_THE_TEST}}"
      table: {table}
      increasing: id
      max_rows_per_trigger: 40
      num_partitions: 2
targets:
  copy: {{gem: delta, input: rows, options: {{path: copy}}}}
"""


@a_killed_program
@pytest.mark.parametrize("kill", range(5))
def test_a_killed_run_has_each_row_of_a_table_once(
    spark: SparkSession, tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, kill: int
) -> None:
    table = f"{postgres.new_schema()}.t"
    postgres.sql(f"CREATE TABLE {table} AS SELECT n AS id FROM generate_series(1, 600) n")
    login = postgres.options()
    monkeypatch.setenv("PASSWORD_OF_THE_TEST", login.pop("password"))
    file = write_pipeline(tmp_path, STREAM.format(table=table, **login))
    running = command("run", file, "--available-now")
    log = tmp_path / "copy" / "_delta_log"
    while len(list(log.glob("*.json"))) < 2 + kill:
        assert running.poll() is None, finish(running)
        time.sleep(0.01)  # a poll of the table's log, which tells nobody that it has grown
    time.sleep(kill * 0.04)  # as above
    running.send_signal(signal.SIGKILL)
    finish(running)
    postgres.sql(f"INSERT INTO {table} SELECT generate_series(601, 700)")
    assert run(file, available_now=True).ok
    found = sorted(row.id for row in spark.read.format("delta").load(str(tmp_path / "copy")).collect())
    assert found == list(range(1, 701))
