"""What it is worth that several targets share a query, what that costs one, and what rules cost.

Each comparison has one session; its two ways take turns in it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.engine import micro_batch_seconds, pipeline_in, run_in, session_for, write_events
from tests.benchmarks.timing import in_turn
from tests.benchmarks.worker import Worker, answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.benchmarks.timing import Comparison, Pairs

MODULE = "tests.benchmarks.groups"
ROWS = 1_000_000
PYTHON_ROWS = 200_000
MICRO_BATCHES = 4
# Rules cost little for each row: a micro-batch has many, so that what it costs itself doesn't hide that, and there are few.
RULED_ROWS = 5_000_000
RULED_MICRO_BATCHES = 2
CORES = 2
TARGETS = 4
_BY_HAND = frozenset({"nothing", "uncounted"})

_SOURCE = """
pipeline: {name}
spark: {{spark.master: 'local[2]', spark.driver.memory: 2g, spark.sql.session.timeZone: UTC}}
sources:
  events:
    gem: file
    options:
      format: {format}
      path: {format}
      schema: "id bigint, at timestamp, team int, amount double"
      max_files_per_trigger: {files}
transforms:
  {shared}
  {parts}
targets:
  {targets}
"""
_LIGHT = "shared: {gem: with_columns, input: events, options: {columns: {gross: amount * 1.19}}}"
_NOTHING = "shared: {gem: select, input: events, options: {columns: [id, at, team, amount]}}"
_PYTHON = """shared:
    gem: python
    input: events
    options: {function: "shared:taxed"}"""
_FUNCTION = '''
"""A function of the pipeline's that takes a while for each row."""

from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType


def taxed(df):
    def slow(amount):
        for _ in range(3000):
            amount = amount * 1.0000001
        return amount

    return df.withColumn("amount", F.udf(slow, DoubleType())("amount"))
'''
_RULES = """shared:
    gem: expect
    input: events
    options:
      rules: {a: amount >= 0, b: id >= 0, c: team < 1000, d: {column: at, not_null: true}, e: amount < 1000}"""


def four_tables(pairs: int, folder: Path, rows: int = ROWS) -> Comparison:
    """Four Delta tables over one source with light work: a query for each, against a group."""
    found = _in_turn("light", "four", pairs, folder, rows)
    return found.compared(
        "group",
        f"a group of four Delta tables, {rows:,} rows of JSON",
        "a query for each of them",
        at_least=1.25,
    )


def with_python(pairs: int, folder: Path, rows: int = PYTHON_ROWS) -> Comparison:
    """The same with a Python function in what they share."""
    found = _in_turn("python", "four", pairs, folder, rows)
    return found.compared(
        "group-python",
        f"a group of four Delta tables behind a Python function of 3,000 loop turns, {rows:,} rows of JSON",
        "a query for each of them",
        at_least=2.5,
    )


def alone(pairs: int, folder: Path, rows: int = ROWS) -> Comparison:
    """A group of one target, against an ordinary query."""
    found = _in_turn("light", "one", pairs, folder, rows)
    return found.compared(
        "group-of-one",
        f"a group of one Delta table, {rows:,} rows of JSON",
        "the table by itself",
        at_most=1.05,
    )


def rules(pairs: int, folder: Path, rows: int = RULED_ROWS) -> Comparison:
    """Five rules that reject and whose rows are counted, against the pipeline without them."""
    return _behind_rules("expect", "JSON", pairs, folder, rows)


def rules_over_parquet(pairs: int, folder: Path, rows: int = RULED_ROWS) -> Comparison:
    """The same where rows cost least: of Parquet nothing is parsed."""
    return _behind_rules("expect-parquet", "Parquet", pairs, folder, rows)


def without(pairs: int, folder: Path, rows: int = RULED_ROWS) -> Comparison:
    """A pipeline that uses nothing of all that, against the query by hand: what its micro-batches take."""
    found = _in_turn("nothing", "parquet", pairs, folder, rows)
    return found.compared(
        "no-rules",
        f"the micro-batches of a Delta table with neither rules nor a group, {rows:,} rows of Parquet",
        "the same query in PySpark, its rows counted by `observe` as by any run, same session",
        at_most=1.01,
    )


def counted(pairs: int, folder: Path, rows: int = RULED_ROWS) -> Comparison:
    """The same against a query that doesn't count its rows: what any run costs a table that is written fast."""
    found = _in_turn("uncounted", "parquet", pairs, folder, rows)
    return found.compared(
        "counted-rows",
        f"the micro-batches of a Delta table, whose rows a run counts, {rows:,} rows of Parquet",
        "the same query in PySpark, nothing counted, same session",
        at_most=1.03,
    )


def _behind_rules(name: str, format_: str, pairs: int, folder: Path, rows: int) -> Comparison:
    found = _in_turn("rules", format_.lower(), pairs, folder, rows)
    ours = f"a Delta table behind five rules, {rows:,} rows of {format_}"
    return found.compared(name, ours, "the same without rules", at_most=1.1)


def _in_turn(work: str, what: str, pairs: int, folder: Path, rows: int) -> Pairs:
    with Worker(MODULE, f"{work}-{what}", folder / work, rows) as worker:
        return in_turn(lambda: worker.run("first"), lambda: worker.run("second"), pairs)


def _files_per_trigger(shared: str) -> int:
    """A file is one task: where processors are what is short, a micro-batch has one for each, as it has of topics."""
    return CORES if shared == _PYTHON else 1


def _written(name: str, shared: str, count: int, group: str, format_: str) -> str:
    # By what the function has made: of another column Spark would filter before it, and each query would call it
    # for its own rows only.
    part = "cast(floor(amount) as bigint)" if shared == _PYTHON else "team"
    parts = [
        f"part{n}: {{gem: filter, input: shared, options: {{condition: {part} % {count} = {n}}}}}"
        for n in range(count)
    ]
    targets = [
        f"table{n}: {{gem: delta, input: part{n}, {group} trigger: {{available_now: true}}, "
        f"options: {{path: {name}/table{n}}}}}"
        for n in range(count)
    ]
    return _SOURCE.format(
        name=name,
        shared=shared,
        format=format_,
        files=_files_per_trigger(shared),
        parts="\n  ".join(parts),
        targets="\n  ".join(targets),
    )


def _work(kind: str, folder: Path, rows: int) -> Callable[[str], float]:
    work, what = kind.split("-")
    shared = {"light": _LIGHT, "python": _PYTHON, "rules": _RULES}.get(work, _LIGHT)
    count = TARGETS if what == "four" else 1
    format_ = "parquet" if what == "parquet" else "json"
    grouped = _written("grouped", shared, count, "group: all,", format_)
    plain = _written("plain", shared, count, "", format_)
    ways = {"first": grouped, "second": plain}
    if work in _BY_HAND:
        ways = {"first": plain}
    if work == "rules":
        ways = {"first": plain, "second": _written("without", _NOTHING, 1, "", format_)}
    files = {way: pipeline_in(folder, text) for way, text in ways.items()}
    (folder / "shared.py").write_text(_FUNCTION, encoding="utf-8")
    spark = session_for(files["first"])
    micro_batches = RULED_MICRO_BATCHES if work in {"rules", *_BY_HAND} else MICRO_BATCHES
    write_events(spark, folder, rows, micro_batches * _files_per_trigger(shared))
    (folder / "events").rename(folder / "parquet")
    if format_ == "json":
        (folder / "json").mkdir()
        for file in sorted((folder / "parquet").iterdir()):
            spark.read.parquet(str(file)).coalesce(1).write.json(str(folder / "writing"), mode="overwrite")
            (part,) = (folder / "writing").glob("*.json")
            part.rename(folder / "json" / f"{file.stem}.json")

    def run(way: str) -> float:
        shutil.rmtree(folder / files[way].stem, ignore_errors=True)
        return run_in(files[way])

    def micro_batches_of(way: str) -> float:
        for left in ("plain", "by_hand"):
            shutil.rmtree(folder / left, ignore_errors=True)
        with micro_batch_seconds(spark) as seconds:
            if way == "first":
                run_in(files[way])
            else:
                _by_hand(spark, folder, counted=work == "nothing")
        assert len(seconds) >= RULED_MICRO_BATCHES
        return sum(seconds)

    return micro_batches_of if work in _BY_HAND else run


def _by_hand(spark: SparkSession, folder: Path, *, counted: bool) -> None:
    """The pipeline that uses nothing, as somebody writes it without gem-bundle.

    Args:
        spark: The session.
        folder: Where the rows are, and the table.
        counted: Its rows are counted, as every run has always done: else what that costs would be taken for what
            rules and groups cost those who use none.
    """
    from pyspark.sql import functions as F  # noqa: N812

    events = (
        spark.readStream.name("events")
        .schema("id bigint, at timestamp, team int, amount double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "parquet"))
    )
    shared = events.withColumn("gross", F.expr("amount * 1.19"))
    written = shared.where("team % 1 = 0")
    if counted:
        written = written.observe("rows", F.count(F.lit(1)).alias("rows"))
    writer = written.writeStream.format("delta").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(folder / "by_hand/checkpoint")).start(
        str(folder / "by_hand/table0")
    )
    query.awaitTermination()


def main(work: str, folder: str, detail: str) -> None:
    """Be a worker: answer every line of standard input with the seconds of one run."""
    answer(_work(work, Path(folder), int(detail)))


if __name__ == "__main__":
    main(*sys.argv[1:])
