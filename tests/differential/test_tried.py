"""Conditions drawn at random: with what ends a query rewritten, they have the values that Spark finds."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from gem_bundle import Column
from gem_bundle.ddl import quoted
from gem_bundle.expressions import tried
from gem_bundle.schema import fields_of
from tests import samples
from tests.differential.expressions import Writer
from tests.differential.relations import Col, Relation
from tests.differential.sources import STREAMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

# A fine value, one that is at the edge, and one that casts, divisions and sums trip over.
VALUES = {
    "string": ("'12'", "'2024-01-01'", "'soon'"),
    "bigint": ("1", "0", "-9223372036854775808"),
    "int": ("1", "0", "2147483647"),
    "double": ("1.5", "0", "'NaN'"),
    "decimal(10,2)": ("1.5", "0", "99999999.99"),
    "boolean": ("true", "false", "true"),
    "binary": ("X'31'", "X''", "X'FF'"),
    "array<string>": ("array('1', 'x')", "array()", "array(null)"),
}
MOMENT = "timestamp'2024-01-01 10:00:00'"
# Each time that they are asked for they have another value.
OTHERS_EACH_TIME = ("current", "now(", "rand", "uuid", "shuffle")


class Rows:
    """Rows of a stream's columns: one of each kind of values, and one of nulls.

    Args:
        spark: The session.
        schema: The columns.
    """

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self.columns = tuple(Column(field.name, str(field.type)) for field in fields_of(schema))
        rows = [f"select {', '.join(self._value(c, n) for c in self.columns)}" for n in range(4)]
        self.all = spark.sql(" union all ".join(rows)).coalesce(1)
        self.each = [spark.sql(row) for row in rows]

    def _value(self, column: Column, number: int) -> str:
        kind = column.type or ""
        literals = VALUES.get(kind, (MOMENT if kind.startswith(("date", "timestamp")) else "null",) * 3)
        literal = literals[number] if number < len(literals) else "null"
        return f"cast({literal} as {kind}) as {quoted(column.name)}"


def values(rows: DataFrame, expressions: Sequence[str]) -> list[tuple[str, ...]] | None:
    """What expressions are, row by row; None where Spark gives up."""
    try:
        found = rows.selectExpr(*(f"{text} as c{n}" for n, text in enumerate(expressions))).collect()
    except Exception:  # noqa: BLE001 (most of PySpark's, and some of Java's)
        return None
    return [tuple(map(str, row)) for row in found]


@pytest.mark.parametrize("name", STREAMS)
def test_drawn_conditions_keep_their_values(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(PySparkException, "_log_exception", lambda _: None, raising=False)
    rows = Rows(spark, STREAMS[name])
    relation = Relation(name, tuple(Col(c.name, c.type or "") for c in rows.columns), False)
    random = Random(f"{samples.seed()} {name}")
    for _ in range(samples.examples(2, 60)):
        writer = Writer.over(random, relation)
        expression = (writer.boolean(3) if random.random() < 0.7 else writer.any(3))[0]
        rewritten = tried(expression, rows.columns)
        if any(word in expression for word in OTHERS_EACH_TIME) or rewritten.raising:
            continue
        plain = [values(row, [expression]) for row in rows.each]
        if plain == [None] * len(plain):
            continue  # Spark finds nothing in it, or doesn't take it
        found = values(rows.all, [rewritten.expression])
        assert found is not None, f"`{expression}` became `{rewritten.expression}`, which ends the query"
        for number, expected in enumerate(plain):
            assert expected in (None, [found[number]]), (
                f"`{expression}` became `{rewritten.expression}`, in row {number}"
            )
