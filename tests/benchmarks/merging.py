"""Changes into a large Delta table by `merge`, against a MERGE statement that somebody wrote by hand."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.timing import Comparison, in_turn
from tests.benchmarks.worker import Worker, answer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MODULE = "tests.benchmarks.merging"
THERE = 10_000_000
ROWS = 100_000
GEM, BY_HAND = "gem", "by_hand"
STATEMENT = """
merge into delta.`{table}` as target
using (
    select * from (select *, row_number() over (partition by id order by at desc) as place from changes)
    where place = 1
) as source
on target.id = source.id
when matched and source.at > target.at then update set name = source.name, x = source.x, at = source.at
when not matched then insert (id, name, x, at) values (source.id, source.name, source.x, source.at)
"""


def merge(pairs: int, folder: Path) -> Comparison:
    """Changes merged by the target, against a statement that does as much."""
    with Worker(MODULE, "merge", folder, THERE) as worker:
        found = in_turn(lambda: worker.run(GEM), lambda: worker.run(BY_HAND), pairs)
    return found.compared(
        "merge",
        f"{ROWS:,} changes merged into {THERE:,} rows of a Delta table by the target `delta`",
        "a MERGE statement written by hand, which doesn't know a micro-batch again",
        at_most=1.05,
    )


def main(folder: Path, there: int) -> None:
    """Be a worker: answer every line of standard input with the seconds of one run."""
    from gem_bundle import WriteContext
    from gem_bundle.run.jars import fill, resolve, spark_version
    from gem_bundle.run.session import SessionRequest, open_session
    from gem_bundle.settings import load_settings
    from gem_delta.target import DeltaTarget
    from tests.gems.draining import make

    tables = {way: folder / way for way in (GEM, BY_HAND)}
    gem = make(DeltaTarget, {"path": str(tables[GEM]), "merge": {"on": ["id"], "sequence_by": "at"}})
    settings = load_settings(Path(__file__))
    coordinates = [fill(jar, spark_version=spark_version()) for jar in gem.jars()]
    jars = resolve(coordinates, overrides=settings.overrides, repositories=settings.repositories)
    request = SessionRequest(
        app_name="bench-merge",
        settings={"spark.master": "local[2]", "spark.driver.memory": "2g"},
        gem_settings=gem.session_settings(),
        local_settings=gem.local_settings(),
        jars=[jar.path for jar in jars],
        spark_log=folder / "session.log",
        brief=True,
    )
    spark = open_session(request).spark
    given = "id", "concat('name ', id) as name", "id * 1.5D as x"
    for table in tables.values():
        rows = spark.range(0, there, 1, 8).selectExpr(*given, "0L as at")
        rows.write.format("delta").save(str(table))
    number = {GEM: 0, BY_HAND: 0}

    def changes(at: int) -> DataFrame:
        # Every tenth is a second change of a key, and every tenth is of a new one.
        drawn = f"id * 7919 % {there} + if(id % 10 = 0, {there * at}, 0) as id"
        rows = spark.range(0, ROWS * 9 // 10, 1, 2).selectExpr(drawn)
        again = rows.where("id % 9 = 0")
        both = rows.selectExpr(*given, f"{at}L as at").union(again.selectExpr(*given, f"{at + 1}L as at"))
        return both.localCheckpoint()

    def run(way: str) -> float:
        number[way] += 2
        df = changes(number[way])
        began = time.perf_counter()
        if way == GEM:
            context = WriteContext(node="target", query_name="bench", query="bench")
            gem.write_batch(df, number[way], context)
        else:
            df.createOrReplaceTempView("changes")
            spark.sql(STATEMENT.format(table=tables[BY_HAND])).collect()
        return time.perf_counter() - began

    answer(run)


if __name__ == "__main__":
    main(Path(sys.argv[2]), int(sys.argv[3]))
