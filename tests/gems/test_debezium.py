"""The transform `from_debezium`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts
from gem_bundle.rejected import Rejecting, read_ending, rejected_rows
from gem_json.from_debezium import FromDebezium
from tests.gems.transforms import findings, made, stream_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPTIONS = {"schema": "id bigint, name string", "source": "lsn bigint"}
KAFKA = stream_of(Column("key", "binary"), Column("value", "binary"), Column("topic", "string"))


def envelope(op: str | None, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "before": before,
        "after": after,
        "source": {"lsn": 7, "db": "shop"},
        "op": op,
        "ts_ms": 5,
        **more,
    }


ADA, EVE = {"id": 1, "name": "ada"}, {"id": 1, "name": "eve"}
CHANGES = [
    envelope("c", None, ADA),
    envelope("u", ADA, EVE),
    {"schema": {"type": "struct"}, "payload": envelope("d", EVE, None)},
    None,
    "",
    envelope("m", message={"prefix": "x"}),
    envelope("r", None, {"id": 2}),
]
ROWS = [
    (1, "ada", "c", 5, 7),
    (1, "eve", "u", 5, 7),
    (1, "eve", "d", 5, 7),
    (2, None, "r", 5, 7),
]
WRONG = [
    ("not_a_change", "{"),
    ("not_a_change", "[]"),
    ("not_a_change", ADA),
    ("truncated", envelope("t")),
    ("unknown_op", envelope("x", None, ADA)),
    ("wrong_type", envelope("c", None, {"id": "one"})),
    ("wrong_type", {"payload": envelope("c", None, {"id": "one"})}),
    ("no_row", envelope("u", ADA, None)),
    ("no_row", envelope("d", None, None)),
]


def texts(spark: SparkSession, values: list[Any]) -> DataFrame:
    rows = [(value if value is None or isinstance(value, str) else json.dumps(value),) for value in values]
    return spark.createDataFrame(rows, "value string")


def test_columns_of_the_row_and_of_the_change() -> None:
    columns = (
        Column("id", "bigint"),
        Column("name", "string"),
        Column("op", "string"),
        Column("ts_ms", "bigint"),
        Column("lsn", "bigint"),
    )
    assert made(FromDebezium, **OPTIONS).infer(KAFKA) == stream_of(*columns)
    kept = made(FromDebezium, **OPTIONS, keep=True).infer(KAFKA)
    assert kept == stream_of(Column("key", "binary"), Column("topic", "string"), *columns)
    assert made(FromDebezium, schema="id int").infer(Facts()).columns == (Column("id", "int"), *columns[2:4])


@pytest.mark.parametrize("more", [{"schema": "op string"}, {"schema": "a int", "source": "TS_MS int"}])
def test_two_columns_of_one_name_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="two columns"):
        made(FromDebezium, **more)


def test_what_is_wrong_with_the_column() -> None:
    (missing,) = findings(FromDebezium, KAFKA, column="valu", **OPTIONS)
    assert (missing.option, missing.hint) == ("column", "Did you mean `value`?")
    numbers = stream_of(Column("value", "bigint"))
    (number,) = findings(FromDebezium, numbers, **OPTIONS)
    assert number.message == "`value` is a bigint; JSON is read from text or bytes"


@pytest.mark.spark
def test_each_change_is_a_row_and_anything_else_is_rejected_or_ends_the_query(spark: SparkSession) -> None:
    df = texts(spark, CHANGES)
    strict = made(FromDebezium, **OPTIONS)
    strict.node = "changes"
    assert [tuple(row) for row in strict.apply(df).collect()] == ROWS
    binary = df.selectExpr("cast(value as binary) as value")
    assert [tuple(row) for row in strict.apply(binary).collect()] == ROWS

    both = texts(spark, [*CHANGES, *(value for _, value in WRONG)])
    lenient = made(FromDebezium, **OPTIONS, rejects=True)
    assert [tuple(row) for row in lenient.apply(both).collect()] == ROWS
    rejected = rejected_rows(lenient.reject(both), Rejecting("p", "1", "changes", "from_debezium")).collect()
    assert [row.reasons[0].name for row in rejected] == [name for name, _ in WRONG]

    with pytest.raises(Exception, match="truncated") as caught:
        strict.apply(texts(spark, [envelope("t")])).collect()
    ended = read_ending(str(caught.value))
    assert ended is not None
    assert (ended.node, ended.words) == ("changes", "the table was truncated, and no row tells of that")
