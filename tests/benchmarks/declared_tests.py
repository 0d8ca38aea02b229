"""How long declared tests take, against the same steps written by hand in PySpark."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.timing import Comparison, command_seconds, in_turn
from tests.benchmarks.worker import Worker, answer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MODULE = "tests.benchmarks.declared_tests"
GEM_BUNDLE = Path(sys.executable).with_name("gem-bundle")
STEPS = 2
SCHEMA = "shop string, at timestamp, amount double"

PIPELINE = f"""
pipeline: orders
sources:
  orders: {{gem: file, options: {{format: json, path: incoming, schema: "{SCHEMA}"}}}}
transforms:
  dear: {{gem: filter, input: orders, options: {{condition: amount > 1}}}}
  timely: {{gem: watermark, input: orders, options: {{column: at, delay: 30 minutes}}}}
  hourly:
    gem: aggregate
    input: timely
    options:
      window: {{column: at, duration: 1 hour}}
      group_by: [shop]
      aggregates: {{orders: count(*)}}
  counted: {{gem: select, input: hourly, options: {{columns: {{shop: shop, orders: orders}}}}}}
targets:
  stateful: {{gem: delta, input: counted, options: {{path: counts}}}}
  stateless: {{gem: delta, input: dear, options: {{path: dear}}}}
"""
# The second step's row is so late in the hour that the first one's hour is over.
ROWS = [
    [{"shop": "Oslo", "at": "2026-01-05 09:05:00", "amount": 10.0}],
    [{"shop": "Oslo", "at": "2026-01-05 10:45:00", "amount": 20.0}],
]
EXPECTED: dict[str, list[list[dict[str, Any]]]] = {
    "stateful": [[], [{"shop": "Oslo", "orders": 1}]],
    "stateless": ROWS,
}


SECONDS = {"stateful": 1.5, "stateless": 0.7}
"""What a step may take."""


def stateful(pairs: int, folder: Path) -> Comparison:
    """A step of a test with a watermark and windows."""
    return _step(pairs, folder, "stateful")


def stateless(pairs: int, folder: Path) -> Comparison:
    """A step of a test without state."""
    return _step(pairs, folder, "stateless")


def fifty(pairs: int, folder: Path) -> Comparison:
    """One `gem-bundle test` of fifty tests, half of them with state."""
    folder.mkdir()
    (folder / "orders.yaml").write_text(PIPELINE)
    for name, tests in (("one", 1), ("fifty", 25)):
        (folder / f"{name}.test.yaml").write_text(_tests(*(sorted(EXPECTED) * tests)[: 2 * tests or 1]))
    found = in_turn(
        lambda: command_seconds([GEM_BUNDLE, "test", "fifty.test.yaml"], cwd=folder),
        lambda: command_seconds([GEM_BUNDLE, "test", "one.test.yaml"], cwd=folder),
        pairs,
    )
    return found.compared(
        "fifty-tests",
        f"`gem-bundle test` of 50 tests of {STEPS} steps, half of them with state",
        "the same of two tests",
        seconds=180,
    )


def _step(pairs: int, folder: Path, kind: str) -> Comparison:
    with Worker(MODULE, kind, folder, 0) as worker:
        found = in_turn(lambda: worker.run("declared"), lambda: worker.run("by hand"), pairs)
    return found.compared(
        f"step-{kind}",
        f"a step of a declared test, {kind}, in a warm session, 2 cores",
        "the same by hand in PySpark, same session",
        seconds=SECONDS[kind],
    )


def _tests(*kinds: str) -> str:
    """A test file with a test of each kind, as often as it is named."""
    tests = {
        f"{kind} {number}": {
            "steps": [
                {"add": {"orders": rows}, "expect": {kind: expected}}
                for rows, expected in zip(ROWS, EXPECTED[kind], strict=True)
            ]
        }
        for number, kind in enumerate(kinds)
    }
    return json.dumps({"pipeline": "orders.yaml", "tests": tests})


def step_seconds(spark: SparkSession, folder: Path, kind: str) -> float:
    """How long a step of a declared test takes.

    Args:
        spark: The session.
        folder: Where its files go.
        kind: ``stateful`` or ``stateless``.
    """
    from gem_bundle.testing.declared.load import load_tests
    from gem_bundle.testing.declared.run import run_test

    (folder / "orders.yaml").write_text(PIPELINE)
    file = folder / "orders.test.yaml"
    file.write_text(_tests(kind))
    began = time.perf_counter()
    outcome = run_test(load_tests(file).tests[0], lambda: spark)
    seconds = time.perf_counter() - began
    assert outcome.ok, outcome
    return seconds / STEPS


def _by_hand(spark: SparkSession, kind: str) -> float:
    from pyspark.sql import functions as F  # noqa: N812 (its name everywhere)

    spark.conf.set("spark.sql.shuffle.partitions", 1)
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        folder = Path(name)
        (folder / "incoming").mkdir()
        orders = spark.readStream.name("orders").schema(SCHEMA).json(str(folder / "incoming"))
        df = orders.where("amount > 1")
        if kind == "stateful":
            hourly = orders.withWatermark("at", "30 minutes").groupBy(F.window("at", "1 hour"), "shop")
            df = hourly.agg(F.expr("count(*)").alias("orders")).select("shop", "orders")
        got: list[Any] = []

        def capture(batch: DataFrame, _: int) -> None:
            got.extend(batch.collect())

        query = (
            df.writeStream.foreachBatch(capture)
            .outputMode("append")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start()
        )
        for number, rows in enumerate(ROWS):
            file = folder / f"{number}.json"
            file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
            file.rename(folder / "incoming" / file.name)
            query.processAllAvailable()
        query.stop()
        seconds = time.perf_counter() - began
    assert len(got) == sum(map(len, EXPECTED[kind])), got
    return seconds / STEPS


def main(kind: str, folder: str) -> None:
    """Be a worker for tests of a kind."""
    from gem_bundle.testing.running.session import open_session_for

    spark = open_session_for().spark
    at = Path(folder)
    answer(lambda way: step_seconds(spark, at, kind) if way == "declared" else _by_hand(spark, kind))


if __name__ == "__main__":
    main(*sys.argv[1:3])
