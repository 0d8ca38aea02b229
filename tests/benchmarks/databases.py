"""Rows into PostgreSQL, each once, against Spark's own writer."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

from tests.benchmarks.timing import Comparison, in_turn
from tests.benchmarks.worker import Worker, answer

MODULE = "tests.benchmarks.databases"
ROWS = 1_000_000
GEM, SPARK = "gem", "spark"
COLUMNS = "id bigint, name text, x double precision, at timestamp"


def append(pairs: int, folder: Path) -> Comparison:
    """Rows added to a table in one transaction, against Spark's writer with its defaults."""
    with Worker(MODULE, "append", folder, ROWS) as worker:
        found = in_turn(lambda: worker.run(GEM), lambda: worker.run(SPARK), pairs)
    return found.compared(
        "jdbc",
        f"{ROWS:,} rows added to a table of PostgreSQL by the target `jdbc`, each once",
        "Spark's own JDBC writer, which may write some twice",
        at_most=1.1,
    )


def main(folder: Path, rows: int) -> None:
    """Be a worker: answer every line of standard input with the seconds of one run."""
    from gem_bundle import WriteContext
    from gem_bundle.run.jars import fill, resolve, spark_version
    from gem_bundle.run.session import SessionRequest, open_session
    from gem_bundle.settings import load_settings
    from gem_jdbc.target import JdbcTarget
    from tests.gems.draining import make
    from tests.postgres_server import start_postgres

    server = start_postgres()
    with closing(server):
        gem = make(JdbcTarget, {**server.options(), "table": "numbers"})
        settings = load_settings(Path(__file__))
        jars = resolve(
            [fill(jar, spark_version=spark_version()) for jar in gem.jars()],
            overrides=settings.overrides,
            repositories=settings.repositories,
        )
        request = SessionRequest(
            app_name="bench-jdbc",
            settings={"spark.master": "local[2]", "spark.driver.memory": "2g"},
            jars=[jar.path for jar in jars],
            spark_log=folder / "session.log",
            brief=True,
        )
        spark = open_session(request).spark
        given = "id", "concat('name ', id) as name", "id * 1.5D as x", "timestamp_seconds(id) as at"
        df = spark.range(0, rows, 1, 2).selectExpr(*given).localCheckpoint()
        plain = {**server.options(), "driver": "org.postgresql.Driver", "dbtable": "numbers"}

        def run(way: str) -> float:
            server.sql("DROP TABLE IF EXISTS numbers", f"CREATE TABLE numbers ({COLUMNS})", "CHECKPOINT")
            began = time.perf_counter()
            if way == GEM:
                gem.write(df, WriteContext(node="target"))
            else:
                df.write.format("jdbc").options(**plain).mode("append").save()
            took = time.perf_counter() - began
            (found,) = server.rows("SELECT count(*) AS n FROM numbers")
            assert found["n"] == rows
            return took

        answer(run)


if __name__ == "__main__":
    main(Path(sys.argv[2]), int(sys.argv[3]))
