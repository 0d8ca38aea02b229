"""How long pipelines run, against the same queries written by hand in PySpark.

Each side of a comparison that needs its own session is a process of its own.
"""

import shutil
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from tests.benchmarks.timing import Comparison, in_turn
from tests.benchmarks.worker import Worker, answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import QueryProgressEvent

ROWS = 10_000_000
SMALL_FILES = 30
SMALL_ROWS = 1_000
MODULE = "tests.benchmarks.engine"
SESSION = "spark: {spark.master: 'local[2]', spark.driver.memory: 1g, spark.sql.session.timeZone: UTC}"

FIVE_TRANSFORMS = f"""
pipeline: five_transforms
{SESSION}
sources:
  events:
    gem: file
    options: {{format: parquet, path: events, schema: "id bigint, at timestamp, team int, amount double"}}
  teams:
    gem: file
    mode: batch
    options: {{format: parquet, path: teams, schema: "team int, name string"}}
transforms:
  large: {{gem: filter, input: events, options: {{condition: amount > 10}}}}
  taxed: {{gem: with_columns, input: large, options: {{columns: {{gross: amount * 1.19}}}}}}
  timely: {{gem: watermark, input: taxed, options: {{column: at, delay: 1 hour}}}}
  named: {{gem: join, inputs: [timely, teams], options: {{how: left, on: [team]}}}}
  sums:
    gem: aggregate
    input: named
    options:
      window: {{column: at, duration: 1 hour}}
      group_by: [name]
      aggregates: {{events: count(*), gross: sum(gross)}}
targets:
  nowhere: {{gem: noop, input: sums, trigger: {{available_now: true}}}}
"""

SMALL_BATCHES = f"""
pipeline: small_batches
{SESSION}
sources:
  events:
    gem: file
    options:
      format: parquet
      path: events
      schema: "id bigint, at timestamp, team int, amount double"
      max_files_per_trigger: 1
transforms:
  timely: {{gem: watermark, input: events, options: {{column: at, delay: 1 minute}}}}
  sums:
    gem: aggregate
    input: timely
    options:
      window: {{column: at, duration: 1 minute}}
      group_by: [team]
      aggregates: {{events: count(*), amount: sum(amount)}}
targets:
  nowhere: {{gem: noop, input: sums, trigger: {{available_now: true}}}}
"""


def overhead(pairs: int, folder: Path, rows: int = ROWS) -> Comparison:
    """Five transforms, against the same query by hand in the same session."""
    with Worker(MODULE, "five_transforms", folder / "five", rows) as worker:
        found = in_turn(lambda: worker.run("pipeline"), lambda: worker.run("by_hand"), pairs)
    return found.compared(
        "overhead",
        f"five transforms over {rows:,} rows",
        "the same query in PySpark, same session",
        at_most=1.03,
    )


def small_batches(pairs: int, folder: Path, files: int = SMALL_FILES) -> Comparison:
    """A windowed aggregation over small micro-batches, against Spark as it comes."""
    with (
        Worker(MODULE, "small_batches", folder / "ours", files) as ours,
        Worker(MODULE, "small_batches_by_default", folder / "theirs", files) as theirs,
    ):
        found = in_turn(ours.run, theirs.run, pairs)
    return found.compared(
        "small-batches",
        f"windowed aggregation over {files} small micro-batches, 2 cores",
        "the same query in PySpark with Spark's default settings",
        at_least=5,
    )


def pipeline_in(folder: Path, text: str) -> Path:
    file = folder / f"{text.split()[1]}.yaml"
    file.write_text(text)
    return file


def session_for(file: Path) -> "SparkSession":
    """The session that `gem-bundle run` would open for a pipeline."""
    from gem_bundle.pipeline.loader import load_file
    from gem_bundle.run.api import prepare
    from gem_bundle.run.environment import open_plan_session
    from gem_bundle.run.options import RunOptions

    plan, _ = prepare(lambda options: load_file(file, options), RunOptions())
    return open_plan_session(plan).spark


def write_events(spark: "SparkSession", folder: Path, rows: int, files: int) -> None:
    """Events of one day, in files that follow one another in time."""
    for number in range(files):
        first = rows * number // files
        spark.range(first, rows * (number + 1) // files, 1, 1).selectExpr(
            "id",
            f"timestamp_seconds(1700000000 + id * 86400 / {rows}) as at",
            "cast(id % 1000 as int) as team",
            "cast(id * 7919 % 10007 as double) / 100 as amount",
        ).write.parquet(str(folder / "writing"), mode="overwrite")
        (folder / "events").mkdir(exist_ok=True)
        (part,) = (folder / "writing").glob("*.parquet")
        part.rename(folder / "events" / f"{number:03}.parquet")


def _ended(df: "DataFrame", checkpoint: Path) -> float:
    """Run a stream by hand until it has read everything; the seconds it took."""
    began = time.perf_counter()
    query = (
        df.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return time.perf_counter() - began


def run_in(file: Path) -> float:
    """Run a pipeline file in the session that is there; the seconds it took."""
    from gem_bundle.run.api import run_file

    shutil.rmtree(file.parent / "checkpoints", ignore_errors=True)
    began = time.perf_counter()
    report = run_file(file)
    seconds = time.perf_counter() - began
    assert report.ok, report.diagnostics
    return seconds


@contextmanager
def micro_batch_seconds(spark: "SparkSession") -> "Iterator[list[float]]":
    """What each micro-batch of the one query takes that runs in the block, once that has ended."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    seconds: list[float] = []
    ended = Event()

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: object) -> None:  # noqa: N802
            pass

        def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802
            seconds.append(event.progress.durationMs["triggerExecution"] / 1000)

        def onQueryIdle(self, event: object) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: object) -> None:  # noqa: N802
            ended.set()

    listener = Listener()
    spark.streams.addListener(listener)
    try:
        yield seconds
        assert ended.wait(60)
    finally:
        spark.streams.removeListener(listener)


def _small_batches_by_hand(spark: "SparkSession", folder: Path) -> float:
    from pyspark.sql import functions as F  # noqa: N812 (its name everywhere)

    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    events = (
        spark.readStream.schema("id bigint, at timestamp, team int, amount double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "events"))
    )
    sums = (
        events.withWatermark("at", "1 minute")
        .groupBy(F.window("at", "1 minute"), "team")
        .agg(F.expr("count(*)").alias("events"), F.expr("sum(amount)").alias("amount"))
    )
    return _ended(sums, folder / "checkpoint")


def _five_transforms(folder: Path, rows: int) -> Callable[[str], float]:
    from pyspark.sql import functions as F  # noqa: N812

    file = pipeline_in(folder, FIVE_TRANSFORMS)
    (folder / "events").mkdir()
    (folder / "teams").mkdir()
    spark = session_for(file)
    write_events(spark, folder, rows, 4)
    spark.range(1000).selectExpr("cast(id as int) as team", "concat('team ', id) as name").write.parquet(
        str(folder / "teams"), mode="overwrite"
    )

    def by_hand() -> float:
        shutil.rmtree(folder / "checkpoint", ignore_errors=True)
        began = time.perf_counter()
        events = (
            spark.readStream.name("events")
            .schema("id bigint, at timestamp, team int, amount double")
            .parquet(str(folder / "events"))
        )
        teams = spark.read.schema("team int, name string").parquet(str(folder / "teams"))
        sums = (
            events.where("amount > 10")
            .withColumn("gross", F.expr("amount * 1.19"))
            .withWatermark("at", "1 hour")
            .join(teams, ["team"], "left")
            .groupBy(F.window("at", "1 hour"), "name")
            .agg(F.expr("count(*)").alias("events"), F.expr("sum(gross)").alias("gross"))
        )
        _ended(sums, folder / "checkpoint")
        return time.perf_counter() - began

    return lambda way: run_in(file) if way == "pipeline" else by_hand()


def _small_batches(folder: Path, files: int) -> Callable[[str], float]:
    file = pipeline_in(folder, SMALL_BATCHES)
    (folder / "events").mkdir()
    spark = session_for(file)
    write_events(spark, folder, files * SMALL_ROWS, files)
    return lambda _way: run_in(file)


def _small_batches_by_default(folder: Path, files: int) -> Callable[[str], float]:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.driver.memory", "1g").getOrCreate()
    write_events(spark, folder, files * SMALL_ROWS, files)
    return lambda _way: _small_batches_by_hand(spark, folder)


WORK = {
    "five_transforms": _five_transforms,
    "small_batches": _small_batches,
    "small_batches_by_default": _small_batches_by_default,
}


def main(work: str, folder: str, detail: str) -> None:
    """Be a worker: answer every line of standard input with the seconds of one run."""
    answer(WORK[work](Path(folder), int(detail)))


if __name__ == "__main__":
    main(*sys.argv[1:])
