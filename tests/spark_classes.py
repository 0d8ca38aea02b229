"""One archive of Spark's classes for all JVMs that tests start: each of them starts with half of the work.

    python -m tests.spark_classes

records it, unless there is one that suits the environment's Spark and Java. `scripts/test` does so before it runs the
whole suite; without an archive the tests are the same, and slower. Sessions make none of their own then: most would
be of environments that are gone with their test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gem_bundle.run import class_archive_finish
from gem_bundle.run.class_archive import ClassArchive
from gem_bundle.run.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""The JVMs that tests start end before the time that better code takes to make has come back."""

_FOLDER: Final = Path(sys.prefix) / "spark-classes"
_QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def java_options() -> str:
    """What `JAVA_TOOL_OPTIONS` is while tests run."""
    found = [file for place in _FOLDER.glob("*.json") if (file := class_archive_finish.read(place))]
    return f"{OPTIONS} -XX:SharedArchiveFile={found[0]} {_QUIET}" if found else OPTIONS


def main() -> None:
    """Note classes in a process of its own, and have the archive made of them."""
    place = _FOLDER / f"{_key()}.json"
    _FOLDER.mkdir(exist_ok=True)
    if class_archive_finish.read(place) is not None:
        return
    for other in _FOLDER.iterdir():
        other.unlink()
    noted = place.with_suffix(class_archive_finish.ASIDE)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", "from tests import spark_classes; spark_classes.record()", noted],
            cwd=folder,
            env={**os.environ, "JAVA_TOOL_OPTIONS": OPTIONS, "PYTHONPATH": str(Path(__file__).parents[1])},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
    if done.returncode == 0:
        class_path = done.stdout.splitlines()[-1]
        os.environ["JAVA_TOOL_OPTIONS"] = OPTIONS
        class_archive_finish.make(noted, place, [str(find_java().path), "-cp", class_path])
    if class_archive_finish.read(place) is None:
        sys.exit(f"Spark's classes could not be recorded:\n{done.stdout[-4000:]}")


def _key() -> str:
    from gem_bundle.run.jars import spark_home

    files = [find_java().path.resolve(), *sorted((spark_home() / "jars").iterdir()), Path(__file__)]
    known = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return sha256(json.dumps(known).encode()).hexdigest()[:16]


def record() -> None:
    """Let Spark do a little of each thing that tests do."""
    from gem_bundle.run.session import SessionRequest, open_session
    from tests.conftest import DELTA_SETTINGS, resolved_jars

    noted = Path(sys.argv[1])
    recording = " ".join(ClassArchive(noted, noted, recorded=True).options)
    session = open_session(
        SessionRequest(
            "classes",
            settings={
                "spark.master": "local[2]",
                "spark.driver.memory": "1g",
                "spark.driver.defaultJavaOptions": recording,
            },
            gem_settings=DELTA_SETTINGS,
            jars=resolved_jars(),
            spark_log=Path("spark.log").absolute(),
        )
    )
    _batches(session.spark)
    _streams(session.spark)
    class_path = session.spark.sparkContext.getSystemProperty("java.class.path")
    session.close()
    print(class_path)


def _batches(spark: SparkSession) -> None:
    from pyspark.sql import functions as f

    rows = spark.range(100).selectExpr("id", "id % 7 as key", "timestamp_seconds(id) as time", "'a' as word")
    for name in ("json", "csv", "parquet", "delta"):
        rows.write.format(name).save(name)
        table = spark.read.format(name).load(name)
        table.count()
    joined = table.join(rows.select("id", f.col("word").alias("other")), "id", "left")
    joined.groupBy("key", f.window("time", "10 seconds")).agg(f.sum("id"), f.collect_list("other")).collect()
    table.select(f.to_json(f.struct("*")).alias("text")).distinct().show()
    table.createOrReplaceTempView("rows")
    spark.sql(
        "select key, count(*) as n, max(time) from rows group by key having n > 1 order by key"
    ).toPandas()


def _streams(spark: SparkSession) -> None:
    from pyspark.sql import functions as f

    rows = spark.readStream.name("rows").schema("id long, key long, time timestamp, word string").json("json")
    counted = rows.withWatermark("time", "1 second").groupBy(f.window("time", "1 minute"), "key").count()
    changed = rows.withWatermark("time", "1 second").dropDuplicatesWithinWatermark(["id"])

    def write(batch: DataFrame, number: int) -> None:
        batch.write.format("noop").mode("append").save()

    for number, (stream, sink) in enumerate(
        [(counted, "delta"), (changed, "parquet"), (rows, "console"), (rows, "memory")]
    ):
        writer = stream.writeStream.format(sink).queryName(f"q{number}").trigger(availableNow=True)
        writer.option("checkpointLocation", f"c{number}").option("path", f"out{number}").start()
    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", "c")
    writer.trigger(availableNow=True).start()
    for query in spark.streams.active:
        query.awaitTermination()


if __name__ == "__main__":
    main()
