"""Rows that Spark keeps are let go of, also from the thread of a query that is stopped."""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.kept import let_go, set_apart

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parents[2]


def persisted(df: DataFrame) -> ExitStack:
    stack = ExitStack()
    rows = df.persist()
    rows.count()
    stack.callback(let_go, rows)
    return stack


def apart(df: DataFrame) -> ExitStack:
    stack = ExitStack()
    rows = stack.enter_context(set_apart(df.selectExpr("id", "uuid() as drawn")))
    assert rows.collect() == rows.collect()
    return stack


@pytest.mark.spark
@pytest.mark.parametrize("keep", [persisted, apart])
def test_a_thread_that_is_interrupted_lets_go_of_rows(
    spark: SparkSession, keep: Callable[[DataFrame], ExitStack]
) -> None:
    java: Any = spark
    before = set(java.sparkContext._jsc.getPersistentRDDs())
    held = keep(spark.range(7, 9))
    kept = set(java.sparkContext._jsc.getPersistentRDDs()) - before
    assert len(kept) == 1
    raised: list[BaseException] = []

    def interrupted() -> None:
        """As Spark does it with the thread of a query that it stops: in it this function is called back."""
        thread = java._jvm.java.lang.Thread
        thread.currentThread().interrupt()
        try:
            held.close()
            assert thread.currentThread().isInterrupted(), "it is still to stop"
        except BaseException as error:  # noqa: BLE001 (told in the thread of the test)
            raised.append(error)

    thread = threading.Thread(target=interrupted)
    thread.start()
    thread.join()

    assert raised == []
    assert not kept & set(java.sparkContext._jsc.getPersistentRDDs())


def test_nobody_lets_go_of_rows_otherwise() -> None:
    found = [
        path.relative_to(ROOT)
        for folder in ("core", "gems")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "kept.py" and re.search(r"\.unpersist\(", path.read_text(encoding="utf-8"))
    ]
    assert found == [], "call `gem_bundle.kept.let_go`"
