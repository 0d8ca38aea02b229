"""The transform `route`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Pipeline
from gem_filter.route import Route
from tests.gems.transforms import findings, kinds, made, stream_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = stream_of(Column("at", "timestamp", "10 minutes"), Column("amount", "double"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"conditions": {}}, "at least 1"),
        ({"conditions": {"Large": "true"}}, "pattern"),
        ({"conditions": {"large": "true"}, "rest": "large"}, "both called `large`"),
        ({"conditions": {"rejected": "true"}}, "choose another name"),
        ({"conditions": {"large": "true"}, "matching": "any"}, "'first' or 'all'"),
    ],
)
def test_options_that_cant_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        made(Route, **options)


def test_conditions_are_over_the_row_alone() -> None:
    conditions = {"a": "gone > 1", "b": "amount", "c": "amount > rand()", "d": "at < current_timestamp()"}
    found = findings(Route, ROWS, conditions=conditions)
    assert [(f.option, f.code) for f in found] == [
        (("conditions", "a"), "GB210"),
        (("conditions", "b"), "GB213"),
        (("conditions", "c"), "GB212"),
        (("conditions", "d"), "GB212"),
    ]
    assert kinds(made(Route, conditions={"a": "true"}).infer_output("a", ROWS)) == ["filter"]


def test_the_columns_of_an_output_are_known() -> None:
    pipeline = Pipeline("routed", mode="batch")
    pipeline.source("orders", "rows", {"rows": [{"id": 1, "amount": 2.5}]})
    dealt = {"conditions": {"large": "amount > 100"}, "rest": "small"}
    pipeline.transform("dealt", "route", "orders", dealt)
    pipeline.transform("named", "select", "dealt.small", {"columns": ["id", "amuont"]})
    pipeline.target("out", "noop", "named")
    assert [(d.code, d.node) for d in pipeline.check()] == [("GB210", "named")]


@pytest.mark.spark
def test_each_row_goes_where_it_belongs(spark: SparkSession) -> None:
    df = spark.sql("select * from values (1, 50.0D), (2, 500.0D), (3, null), (4, -1.0D) as t(id, amount)")
    conditions = {"huge": "amount > 100", "paid": "amount > 0"}
    for options, expected in (
        ({"rest": "other"}, {"huge": [2], "paid": [1], "other": [3, 4]}),
        ({"matching": "all", "rest": "other"}, {"huge": [2], "paid": [1, 2], "other": [3, 4]}),
        ({}, {"huge": [2], "paid": [1]}),
    ):
        outputs: Any = made(Route, conditions=conditions, **options).apply(df)
        assert {name: sorted(row.id for row in out.collect()) for name, out in outputs.items()} == expected
