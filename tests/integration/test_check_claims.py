"""What the checker says that Spark does, shown by Spark: rows that are lost, queries that read nothing or fail.

Each test runs what a rule warns of, or refuses, and checks the pipeline that does the same.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from gem_bundle.check import check_file
from tests.samples import some_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

claims_of_checks = some_of("what checks claim of Spark", 2)

pytestmark = pytest.mark.spark

SCHEMA = "v int, at timestamp"


@pytest.fixture
def said(tmp_path: Path) -> Callable[[str], set[str]]:
    """The codes of what a check says of a pipeline in the test's folder."""

    def check(text: str) -> set[str]:
        file = tmp_path / "p.yaml"
        file.write_text(f"pipeline: p\n{text}")
        return {found.code for found in check_file(file).diagnostics}

    return check


def put(folder: Path, name: str, *rows: dict[str, Any], time: int | None = None) -> None:
    """A file of JSON rows; its time decides which file is the newest."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    if time is not None:
        os.utime(folder / name, (time, time))


def stream(spark: SparkSession, path: Path, name: str = "a", **options: Any) -> DataFrame:
    reader = spark.readStream.name(name).schema(SCHEMA)
    return reader.options(**options).json(str(path))


def drain(writer: DataStreamWriter, checkpoint: Path, **trigger: Any) -> list[int]:
    """Run a query until it has read what is there: how many rows each micro-batch had."""
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(
        **(trigger or {"availableNow": True})
    )
    query = writer.start()
    try:
        query.awaitTermination(120)
        return [progress["numInputRows"] for progress in query.recentProgress]
    finally:
        query.stop()


def into(df: DataFrame, folder: Path) -> DataStreamWriter:
    return df.writeStream.format("json").option("path", str(folder))


def values(spark: SparkSession, folder: Path) -> list[int | None]:
    rows = spark.read.schema("v int").json(str(folder)).collect()
    return sorted((row.v for row in rows), key=lambda value: (value is not None, value))


# Places


def test_the_second_query_into_a_folder_loses_its_rows(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]]
) -> None:
    put(tmp_path / "a", "1.json", {"v": 1})
    put(tmp_path / "b", "1.json", {"v": 2})
    drain(into(stream(spark, tmp_path / "a"), tmp_path / "out"), tmp_path / "c1")
    drain(into(stream(spark, tmp_path / "b"), tmp_path / "out"), tmp_path / "c2")

    assert values(spark, tmp_path / "out") == [1]
    assert "GB342" in said(
        "sources:\n"
        "  a: {gem: file, options: {format: json, path: a, schema: v int}}\n"
        "  b: {gem: file, options: {format: json, path: b, schema: v int}}\n"
        "targets:\n"
        "  t: {gem: file, input: a, options: {format: json, path: out}}\n"
        "  u: {gem: file, input: b, options: {format: json, path: out}}\n"
    )


LOOP = (
    "sources:\n"
    "  a: {{gem: file, options: {{format: json, path: data, schema: v int{more}}}}}\n"
    "targets: {{t: {{gem: file, input: a, {mode}options: {{format: json, path: {to}}}}}}}\n"
)


@claims_of_checks
@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ("1 as a, 2 as b", "1 as a, 2 as c", False),
        ("1 as a, 2 as c", "1 as a, 2 as b", False),
        ("1 as a", "date'2024-01-31' as a", True),
        ("date'2024-01-31' as a", "1 as a", True),
        ("'x' as a", "array(1) as a", True),
        ("array(1) as a", "'x' as a", True),
    ],
)
def test_the_second_writer_with_other_columns_fails(
    spark: SparkSession, tmp_path: Path, first: str, second: str, merged: bool
) -> None:
    table = str(tmp_path / "table")
    spark.range(1).selectExpr(*first.split(", ")).write.format("delta").save(table)
    rows = spark.range(1).selectExpr(*second.split(", ")).write.format("delta").mode("append")

    with pytest.raises(PySparkException, match=r"DELTA_(METADATA_MISMATCH|FAILED_TO_MERGE_FIELDS)"):
        rows.option("mergeSchema", merged).save(table)


def test_a_query_that_writes_where_it_reads_reads_nothing(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]]
) -> None:
    data = tmp_path / "data"
    put(data, "1.json", {"v": 1})

    rows = [sum(drain(into(stream(spark, data), data), tmp_path / "c")) for _ in range(2)]
    assert rows == [0, 0]
    assert said(LOOP.format(more="", mode="", to="data")) == {"GB345"}


def test_a_query_that_writes_below_what_it_reads_reads_its_own_rows_again(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]]
) -> None:
    data = tmp_path / "data"
    put(data, "1.json", {"v": 1})

    def again() -> int:
        source = stream(spark, data, recursiveFileLookup="true")
        return sum(drain(into(source, data / "out"), tmp_path / "c"))

    assert [again() for _ in range(3)] == [1, 1, 1]
    assert said(LOOP.format(more=", recursive_file_lookup: true", mode="", to="data/out")) == {"GB345"}


def test_a_batch_that_replaces_what_it_reads_loses_it(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]]
) -> None:
    data = tmp_path / "data"
    put(data, "1.json", {"v": 1})
    df = spark.read.schema("v int").json(str(data))
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist"):
        df.write.mode("overwrite").json(str(data))

    assert not (data / "1.json").exists()
    text = LOOP.format(more="", mode="output_mode: complete, ", to="data")
    assert said(f"mode: batch\n{text}") == {"GB345"}


def test_folders_below_are_read_only_when_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data"
    put(data, "1.json", {"v": 1})
    put(data / "below", "2.json", {"v": 2})
    put(data / "_hidden", "3.json", {"v": 3})
    put(data / ".hidden", "4.json", {"v": 4})

    assert sum(drain(stream(spark, data).writeStream.format("noop"), tmp_path / "c1")) == 1
    recursive = stream(spark, data, recursiveFileLookup="true")
    assert sum(drain(recursive.writeStream.format("noop"), tmp_path / "c2")) == 2
    wild = stream(spark, data / "*")
    assert sum(drain(wild.writeStream.format("noop"), tmp_path / "c3")) == 4


def test_a_checkpoint_among_data_is_read_as_data(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]]
) -> None:
    data = tmp_path / "data"
    for number in (1, 2):
        put(data, f"{number}.json", {"v": number})
        source = stream(spark, data, recursiveFileLookup="true")
        drain(into(source, tmp_path / "out"), data / "checkpoints" / "p" / "t")

    assert None in values(spark, tmp_path / "out")
    text = LOOP.format(more=", recursive_file_lookup: true", mode="", to="out")
    assert said(f"checkpoints: data/checkpoints\n{text}") == {"GB347"}
    assert said(f"checkpoints: data/_checkpoints\n{text}") == set()


@claims_of_checks
def test_what_cleans_a_table_up_removes_a_checkpoint_in_it(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]]
) -> None:
    table = tmp_path / "table"
    spark.range(1).write.format("delta").save(str(table))
    for folder in ("checkpoints", "_checkpoints"):
        put(table / folder, "0", {"v": 1})
    settings = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        spark.sql(f"vacuum delta.`{table}` retain 0 hours")
    finally:
        for name in settings:
            spark.conf.unset(name)

    assert not (table / "checkpoints" / "0").exists()
    assert (table / "_checkpoints" / "0").exists()
    text = "sources: {a: {gem: rate}}\ntargets: {t: {gem: delta, input: a, options: {path: table}}}\n"
    assert said(f"checkpoints: table/checkpoints\n{text}") == {"GB347"}
    assert said(f"checkpoints: table/_checkpoints\n{text}") == set()


# What a run reads


def test_a_first_run_from_the_end_reads_nothing(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]]
) -> None:
    table = str(tmp_path / "table")
    spark.range(3).write.format("delta").save(table)

    def rows() -> int:
        source = spark.readStream.name("a").format("delta").option("startingVersion", "latest").load(table)
        return sum(drain(source.writeStream.format("noop"), tmp_path / "c"))

    first = rows()
    spark.range(5).write.format("delta").mode("append").save(table)
    # As long as nothing was read, Delta notes nothing down, and begins at the end again.
    assert (first, rows()) == (0, 0)
    assert said(
        "sources: {a: {gem: delta, options: {path: table, starting_version: latest}}}\n"
        "targets: {t: {gem: noop, input: a, trigger: {available_now: true}}}\n"
    ) == {"GB351"}


@pytest.mark.parametrize("trigger", ["availableNow", "once"])
def test_a_first_run_of_rate_reads_nothing(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]], trigger: str
) -> None:
    source = spark.readStream.name("a").format("rate").option("rowsPerSecond", 1000).load()
    batch = spark.readStream.name("a").format("rate-micro-batch").option("rowsPerBatch", 3).load()

    assert sum(drain(source.writeStream.format("noop"), tmp_path / "c1", **{trigger: True})) == 0
    assert sum(drain(batch.writeStream.format("noop"), tmp_path / "c2", **{trigger: True})) == 3
    kind = {"availableNow": "available_now", "once": "once"}[trigger]
    text = "sources: {{a: {{gem: {}}}}}\ntargets: {{t: {{gem: noop, input: a, trigger: {{{}: true}}}}}}\n"
    assert "GB351" in said(text.format("rate", kind))
    assert "GB351" not in said(text.format("rate_micro_batch, options: {rows_per_batch: 3}", kind))


@claims_of_checks
def test_newest_files_first_makes_the_older_rows_late(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]]
) -> None:
    data = tmp_path / "data"
    for day in range(1, 5):
        put(data, f"{day}.json", {"v": day, "at": f"2024-01-0{day} 00:00:00"}, time=1_700_000_000 + day)

    def dropped(**options: Any) -> int:
        source = stream(spark, data, maxFilesPerTrigger="1", **options)
        once = source.withWatermark("at", "1 hour").dropDuplicates(["at"])
        writer = once.writeStream.format("noop").option(
            "checkpointLocation", str(tmp_path / f"c{len(options)}")
        )
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(120)
        return sum(p["stateOperators"][0]["numRowsDroppedByWatermark"] for p in query.recentProgress)

    assert dropped() == 0
    assert dropped(latestFirst="true") == 2
    assert "GB352" in said(
        "sources:\n"
        "  a: {gem: file, options: {format: json, path: data, schema: at timestamp, latest_first: true}}\n"
        "transforms:\n"
        "  w: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}\n"
        "  d: {gem: deduplicate, input: w, options: {columns: at}}\n"
        "targets: {t: {gem: noop, input: d}}\n"
    )


def test_once_puts_everything_into_one_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path / "data", f"{number}.json", {"v": number})
    source = stream(spark, tmp_path / "data", maxFilesPerTrigger="1")

    assert drain(source.writeStream.format("noop"), tmp_path / "c1", once=True) == [3]
    assert drain(source.writeStream.format("noop"), tmp_path / "c2", availableNow=True) == [1, 1, 1]


# Triggers


def rate(spark: SparkSession, name: str = "a", **options: Any) -> DataFrame:
    return spark.readStream.name(name).format("rate").options(**options).load()


def refused(writer: DataStreamWriter, checkpoint: Path, **trigger: Any) -> str:
    """Why Spark doesn't start a query."""
    with pytest.raises((PySparkException, Py4JError)) as caught:
        writer.option("checkpointLocation", str(checkpoint)).trigger(**trigger).start().stop()
    return str(caught.value)


CONTINUOUS: dict[str, tuple[str, Callable[[DataFrame, SparkSession], DataFrame]]] = {
    "{gem: watermark, input: a, options: {column: timestamp, delay: 1 hour}}": (
        "EventTimeWatermark",
        lambda df, _: df.withWatermark("timestamp", "1 hour"),
    ),
    "{gem: union, inputs: [a, b]}": ("Union", lambda df, spark: df.union(rate(spark, "b"))),
    "{gem: select, input: a, options: {columns: ['explode(array(value))']}}": (
        "Generate",
        lambda df, _: df.selectExpr("explode(array(value))"),
    ),
    "{gem: select, input: a, options: {columns: {now: current_timestamp()}}}": (
        "current time",
        lambda df, _: df.selectExpr("current_timestamp()"),
    ),
    "{gem: repartition, input: a, options: {partitions: 2}}": (
        "Repartition",
        lambda df, _: df.repartition(2),
    ),
}


@pytest.mark.parametrize("transform", CONTINUOUS)
def test_what_continuous_processing_refuses(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]], transform: str
) -> None:
    word, apply = CONTINUOUS[transform]
    writer = apply(rate(spark), spark).writeStream.format("noop")

    assert f"Continuous processing does not support {word}" in refused(
        writer, tmp_path, continuous="1 second"
    )
    assert "GB360" in said(
        f"sources: {{a: {{gem: rate}}, b: {{gem: rate}}}}\ntransforms: {{x: {transform}}}\n"
        "targets: {t: {gem: noop, input: x, trigger: {continuous: 1 second}}}\n"
    )


@pytest.mark.parametrize("mode", ["append", "update"])
def test_what_continuous_processing_runs(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]], mode: str
) -> None:
    df = rate(spark).where("value % 2 = 0").selectExpr("value * 2 as v", "rand() as r")
    writer = df.writeStream.format("noop").outputMode(mode).option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(continuous="1 second").start()
    query.stop()

    assert query.exception() is None
    assert not said(
        "sources: {a: {gem: rate}}\n"
        "transforms:\n"
        "  f: {gem: filter, input: a, options: {condition: value % 2 = 0}}\n"
        "  s: {gem: select, input: f, options: {columns: {v: value * 2, r: rand()}}}\n"
        f"targets: {{t: {{gem: noop, input: s, output_mode: {mode}, trigger: {{continuous: 1 second}}}}}}\n"
    )


@pytest.mark.parametrize(
    ("mode", "interval", "condition", "code"),
    [
        ("append", "5 seconds", "OUTPUT_MODE_NOT_SUPPORTED", "GB361"),
        ("update", "1 second", "INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL", "GB363"),
    ],
)
def test_what_real_time_mode_refuses(
    spark: SparkSession,
    tmp_path: Path,
    said: Callable[[str], set[str]],
    mode: str,
    interval: str,
    condition: str,
    code: str,
) -> None:
    writer = rate(spark).writeStream.format("console").outputMode(mode)

    assert condition in refused(writer, tmp_path, realTime=interval)
    assert said(
        "sources: {a: {gem: kafka, options: {bootstrap_servers: 'a:1', subscribe: t}}}\n"
        f"targets: {{t: {{gem: console, input: a, output_mode: {mode}, trigger: {{real_time: {interval}}}}}}}\n"
    ) == {code}


@claims_of_checks
def test_an_option_that_spark_does_not_know_is_ignored(
    spark: SparkSession, tmp_path: Path, said: Callable[[str], set[str]]
) -> None:
    put(tmp_path / "data", "1.json", {"v": 1})
    rows = spark.read.schema("v int").option("optionOfTheFuture", "x").json(str(tmp_path / "data"))

    assert [row.v for row in rows.collect()] == [1]
    (tmp_path / "gem-bundle.toml").write_text('check.spark_version = "4.0"')
    source = "{gem: file, options: {format: json, path: data, schema: v int, time_format: HH}}"
    assert said(f"sources: {{a: {source}}}\ntargets: {{t: {{gem: noop, input: a}}}}\n") == {"GB370"}
