"""Make the checkpoints of other Sparks that tests read: run it with a Python that has such a pyspark.

    python -m venv /tmp/spark-4.0 && /tmp/spark-4.0/bin/pip install pyspark==4.0.1
    /tmp/spark-4.0/bin/python scripts/checkpoints.py tests/core/changes/checkpoints

Hand-written PySpark, as somebody has it who comes to gem-bundle with it. Only what describes a checkpoint is
kept, and nothing of the state itself.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEPT = (
    "metadata",
    "offsets/*",
    "commits/*",
    "sources/*/[0-9]*",
    "state/*/_metadata/**/*",
    "state/*/0/_metadata/schema",
    "state/*/0/*/_metadata/schema",
)
LAST = 2
SCHEMA = "id string, at timestamp, n int"


def rows(folder: Path, number: int) -> None:
    """A file of rows, a minute later than the last one."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{"id": f"k{n % 3}", "at": f"2026-01-01T00:{number:02}:{n:02}Z", "n": n} for n in range(20)]
    hidden = folder / f".{number}.json"
    hidden.write_text("".join(json.dumps(line) + "\n" for line in lines))
    hidden.rename(folder / f"{number}.json")


def stateless(spark: SparkSession, folder: Path) -> DataFrame:
    """A filter."""
    return read(spark, folder / "a").where("n > 3")


def aggregation(spark: SparkSession, folder: Path) -> DataFrame:
    """A windowed aggregation."""
    from pyspark.sql.functions import sum as total
    from pyspark.sql.functions import window

    timely = read(spark, folder / "a").withWatermark("at", "30 seconds")
    counted = timely.groupBy(window("at", "1 minute"), "id").agg(total("n").alias("n"))
    return counted.selectExpr("window.start as start", "id", "n")


def joined(spark: SparkSession, folder: Path) -> DataFrame:
    """A join of two streams, without the duplicates of one."""
    from pyspark.sql.functions import expr

    left = read(spark, folder / "a").withWatermark("at", "30 seconds").dropDuplicates(["id", "at"]).alias("l")
    right = read(spark, folder / "b").withWatermark("at", "1 minute").alias("r")
    near = "l.id = r.id and r.at between l.at and l.at + interval 30 seconds"
    return left.join(right, expr(near)).selectExpr("l.id as id", "l.at as at", "r.n as n")


def read(spark: SparkSession, folder: Path) -> DataFrame:
    """The rows of a folder, a file a micro-batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


QUERIES = {"stateless": (stateless, "HDFSBacked"), "aggregation": (aggregation, "HDFSBacked")}
QUERIES |= {"joined": (joined, "RocksDB"), "joined_files": (joined, "HDFSBacked")}
PROVIDER = "org.apache.spark.sql.execution.streaming.state.{}StateStoreProvider"


def make(spark: SparkSession, name: str, folder: Path) -> Path:
    """Run one of the queries three times, each time with new rows; returns its checkpoint."""
    query, provider = QUERIES[name]
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDER.format(provider))
    for number in range(3):
        rows(folder / "a", number)
        rows(folder / "b", number)
        writer = query(spark, folder).writeStream.format("parquet").option("path", str(folder / "out"))
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    return folder / "checkpoint"


def main(out: Path) -> None:
    """Make them all in a folder named after the version of Spark."""
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    target = out / spark.version
    shutil.rmtree(target, ignore_errors=True)
    for name in QUERIES:
        work = Path(tempfile.mkdtemp())
        keep(make(spark, name, work), target / name, str(work))
        shutil.rmtree(work)
    spark.stop()


def keep(checkpoint: Path, target: Path, work: str) -> None:
    """Copy what tests read, with one name for the folder that it was made in."""
    for pattern in KEPT:
        files = [
            file for file in checkpoint.glob(pattern) if file.is_file() and not file.name.startswith(".")
        ]
        if pattern in {"offsets/*", "commits/*"}:
            files = sorted(files, key=lambda file: int(file.name))[-LAST:]
        for file in files:
            to = target / file.relative_to(checkpoint)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(file.read_bytes().replace(work.encode(), b"/made"))


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
