"""Rejected rows: their columns, and how the rows come back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gem_bundle import StreamReadContext
from gem_bundle.rejected import (
    COLUMNS,
    RejectedIn,
    Rejecting,
    Rejects,
    read_ending,
    reason,
    rejected_rows,
    restored_rows,
)
from gem_bundle.schema import type_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY = Rejecting("shop", "1.0.0", "plausible", "expect")

# Of each kind of type that a row may have, values at its ends and what JSON has no word for.
VALUES = """
    select * from values
    (
        1Y, 2S, 3, 9223372036854775807, float('1.1'), double('1e308'), 12345678901234567890.123456789,
        'é"\\n', X'00FF', true, date'0001-01-01', timestamp'2024-02-29 01:02:03.123456Z',
        timestamp_ntz'9999-12-31 23:59:59.999999',
        array(1, null), map('a', 1, 'b', null), map(1, 'x', 2, null),
        named_struct('a b', 1, 'in', named_struct('t', timestamp'1970-01-01 00:00:00.000001Z')),
        map(date'2024-01-01', array(map(1.5, 'y'))), interval '1 02:03:04.5' day to second
    ),
    (
        null, null, null, null, float('nan'), double('-infinity'), null,
        '', X'', null, null, null, null, array(), map(), map(), named_struct('a b', null, 'in', null), null, null
    ),
    (
        null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
        map(), null
    )
    as t(i1, i2, i4, i8, f4, f8, d, s, b, t, day, at, ntz, a, m, mi, st, deep, iv)
"""


def _rejected(df: DataFrame) -> DataFrame:
    from pyspark.sql.functions import array

    return rejected_rows(Rejects(df, array(reason("all", "each of them"))), BY)


def test_the_types_are_written_as_everywhere() -> None:
    assert [str(type_of(column.type or "")) for column in COLUMNS] == [column.type for column in COLUMNS]


def test_other_errors_are_no_endings() -> None:
    assert read_ending("[DIVIDE_BY_ZERO] Division by zero") is None
    assert read_ending("gem-bundle ends the query: {oh") is None
    assert read_ending('gem-bundle ends the query: {"node": "x"}') is None


def test_an_ending_is_found_behind_the_plan() -> None:
    plan = "raise_error(concat(gem-bundle ends the query: , to_json(...)))\n"
    said = '{"node": "plausible", "rule": "paid", "words": "null", "row": "{}"} SQLSTATE: P0001'
    ended = read_ending(f"{plan} gem-bundle ends the query: {said}")
    assert ended is not None
    assert (ended.node, ended.rule, ended.words, ended.row) == ("plausible", "paid", "null", "{}")


@pytest.mark.spark
def test_rows_come_back_with_their_types_and_values(spark: SparkSession) -> None:
    df = spark.sql(VALUES)
    bad = _rejected(df)
    assert [(f.name, f.dataType.simpleString()) for f in bad.schema] == [
        (column.name, str(column.type).replace(": ", ":").replace(", ", ",")) for column in COLUMNS
    ]
    (schema,) = {row.row_schema for row in bad.collect()}
    restored = restored_rows(bad, schema)
    assert restored.schema.simpleString() == df.schema.simpleString()
    assert list(map(str, restored.collect())) == list(map(str, df.collect()))


@pytest.mark.spark
def test_two_columns_of_one_name_are_both_there(spark: SparkSession) -> None:
    df = spark.sql("select 1 as a, 2 as A, 3 as a_2, 4 as a")
    (row,) = _rejected(df).collect()
    assert json.loads(row.row) == {"a": 1, "A_3": 2, "a_2": 3, "a_4": 4}
    assert [tuple(back) for back in restored_rows(_rejected(df), row.row_schema).collect()] == [(1, 2, 3, 4)]


@pytest.mark.spark
def test_the_origin_is_what_the_columns_tell(spark: SparkSession, tmp_path: object) -> None:
    kafka = spark.sql("select X'00' as value, 't' as topic, 3 as partition, bigint(7) as offset")
    (row,) = _rejected(kafka).collect()
    assert row.origin == {"topic": "t", "partition": "3", "offset": "7"}
    (row,) = _rejected(spark.sql("select 't' as topic, '3' as partition, 7 as offset")).collect()
    assert row.origin is None
    (row,) = _rejected(spark.sql("select 1 as id, bigint(4) as _commit_version")).collect()
    assert row.origin == {"version": "4"}
    spark.range(1).write.parquet(f"{tmp_path}/in")
    (row,) = _rejected(spark.read.parquet(f"{tmp_path}/in").filter("id = 0")).collect()
    assert row.origin["file"].endswith(".parquet")
    assert json.loads(row.row) == {"id": 0}


@pytest.mark.spark
def test_the_origin_tells_the_micro_batch_where_it_is_known(spark: SparkSession) -> None:
    from pyspark.sql.functions import array

    at = 1_767_603_600_123
    df = spark.sql("select 'clicks' as topic, 1 as partition, 7L as offset")
    told = []
    for rows in (df, df.select("topic")):
        rejects = Rejects(rows, array(reason("all", "each of them")))
        told += rejected_rows(rejects, BY, micro_batch=RejectedIn(12, at)).collect()
    assert [row.origin for row in told] == [
        {"topic": "clicks", "partition": "1", "offset": "7", "micro_batch": "12"},
        {"micro_batch": "12"},
    ]
    assert {row.rejected_at.timestamp() for row in told} == {at / 1000}


@pytest.mark.spark
def test_the_event_time_keeps_its_watermark(spark: SparkSession) -> None:
    reader = StreamReadContext("ticks", spark, "ticks").reader
    stream = reader.format("rate").load().withWatermark("timestamp", "10 minutes")
    field = _rejected(stream).schema["event_time"]
    assert field.metadata["spark.watermarkDelayMs"] == 600_000
