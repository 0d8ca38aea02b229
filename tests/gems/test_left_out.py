"""Columns that a projection left out: Spark finds them for what follows, and no mistake is told."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from gem_bundle import Column, Facts
from gem_columns.drop import Drop
from gem_columns.select import Select
from gem_columns.unpivot import Unpivot
from gem_combine.fuzzy_match import FuzzyMatch
from gem_combine.join import Join
from gem_combine.lookup import Lookup
from gem_combine.union import Union
from gem_event_time.aggregate import Aggregate
from gem_filter.expect import Expect
from gem_filter.filter import Filter
from gem_filter.limit import Limit
from gem_filter.route import Route
from gem_order.repartition import Repartition
from gem_order.sort import Sort
from gem_sql.query import Sql
from tests.gems.transforms import findings, made, stream_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from gem_bundle import Transform

ROWS = (Column("at", "timestamp", "10 minutes"), Column("id", "bigint"))


def test_a_filter_finds_columns_that_a_select_before_it_left_out() -> None:
    selected = made(Select, columns=["id"]).infer(stream_of(*ROWS))
    assert findings(Filter, selected, condition="at > current_timestamp()") == []
    assert len(findings(Filter, selected, condition="gone")) == 1


UNKNOWN = Facts(streaming=False)


@pytest.mark.parametrize(
    "rows",
    [
        made(Select, columns=["id"]).infer(UNKNOWN),
        made(Drop, columns=["at"]).infer(made(Select, columns=["id", "at"]).infer(UNKNOWN)),
        made(Limit, rows=3).infer(made(Select, columns=["id"]).infer(UNKNOWN)),
        made(Sql, "rows", query="select id from rows").infer(UNKNOWN),
        made(Select, columns=["id"], rejects=True).infer_rejected(UNKNOWN),
        made(Aggregate, group_by=["id"], aggregates={"n": "count(*)"}).infer_rejected(UNKNOWN),
    ],
    ids=["select", "drop", "limit", "sql", "rejected", "rejected_of_any"],
)
@pytest.mark.parametrize(
    ("gem", "options"),
    [
        (Filter, {"condition": "page = 'a'"}),
        (Sort, {"by": ["page"]}),
        (Repartition, {"columns": "page"}),
        (Route, {"conditions": {"a": "page = 'a'"}}),
    ],
    ids=["filter", "sort", "repartition", "route"],
)
def test_any_column_may_be_left_out_of_a_table_that_is_not_known(
    gem: type[Transform[Any]], options: dict[str, Any], rows: Facts
) -> None:
    assert rows.columns is not None
    assert findings(gem, rows, **options) == []


@pytest.mark.parametrize(
    "rows",
    [
        made(Union).infer(*[made(Select, columns=["id"]).infer(UNKNOWN)] * 2),
        made(Join, "a", "b", on=["id"]).infer(*[made(Select, columns=["id"]).infer(UNKNOWN)] * 2),
        made(Sql, "rows", query="with r as (select id from rows) select * from r").infer(UNKNOWN),
        made(Unpivot, ids=["id"], values=["at"]).infer(table_of(*ROWS, Column("page", "string"))),
        made(Aggregate, group_by=["id"], aggregates={"n": "count(*)"}).infer(
            table_of(*ROWS, Column("page", "string"))
        ),
    ],
    ids=["union", "join", "alias", "unpivot", "aggregate"],
)
def test_no_column_is_left_out_behind_what_makes_rows_anew(rows: Facts) -> None:
    assert [found.code for found in findings(Filter, rows, condition="page = 'a'")] == ["GB210"]


@pytest.mark.spark
@pytest.mark.parametrize(
    "gem",
    [
        made(Select, columns=["id"]),
        made(Select, columns={"id": "upper(name)"}),
        made(Drop, columns=["name"]),
        made(Sql, "a", query="select id from a"),
        made(Sql, "a", query="select id from a order by name"),
        made(Sql, "a", query="with r as (select id from a) select * from r"),
        made(Sql, "a", query="select id from (select id, name from a) as r"),
        made(Sql, "a", query="select id from a union all select id from a"),
        made(Sql, "a", "b", query="select a.id from a join b on a.id = b.id"),
        made(Unpivot, ids=["id"], values=["name"]),
        made(Aggregate, group_by=["id"], aggregates={"n": "count(*)"}),
        made(Aggregate, group_by={"k": "upper(name)"}, aggregates={"n": "count(*)"}),
        made(Union, "a", "a"),
        made(Join, "a", "b", on=["id"]),
        made(Join, "a", "b", on=["id"], how="left_semi"),
        made(Lookup, "a", "b", on=["id"], columns={"cost": "price"}),
        made(FuzzyMatch, "a", "b", id="id", fields={"name": {}}, block_by=["name"]),
    ],
    ids=lambda gem: f"{type(gem).__name__} {gem.options.model_dump(exclude_unset=True)}",
)
def test_spark_finds_the_columns_that_are_said_to_be_left_out(
    spark: SparkSession, gem: Transform[Any]
) -> None:
    from pyspark.errors import AnalysisException

    frames = {
        "a": spark.sql("select * from values (1, 'x', timestamp'2026-01-01') as t(id, name, at)"),
        "b": spark.sql("select * from values (1, 'x', 3) as t(id, name, price)"),
    }
    inputs = [frames[name] for name in gem.input_names or ("a",)]
    facts = gem.infer(
        *(
            table_of(*(Column(field.name, field.dataType.simpleString()) for field in df.schema))
            for df in inputs
        )
    )
    df: Any = gem.apply(*inputs)
    found = set()
    for name in {name for before in inputs for name in before.columns} - set(df.columns):
        with suppress(AnalysisException):
            assert df.filter(f"{name} is not null").columns == df.columns
            found.add(name)
    assert facts.columns is not None
    assert facts.hidden is not None
    # Of a column that both inputs of a join have Spark can't tell which is meant.
    assert found == facts.hidden - ({"name"} if len(inputs) > 1 else set())


@pytest.mark.spark
@pytest.mark.parametrize("action", ["reject", "drop", "warn", "fail"])
def test_a_rule_is_about_the_columns_that_come_in(spark: SparkSession, action: str) -> None:
    from pyspark.errors import AnalysisException

    rows = spark.sql("select * from values (1, 'x'), (2, 'y') as t(id, name)")
    options: dict[str, Any] = {"rules": {"named": {"condition": "name = 'x'", "action": action}}}
    before = table_of(Column("id", "int"), Column("name", "string"))
    selected = made(Select, columns=["id"])

    assert [found.code for found in findings(Expect, selected.infer(before), **options)] == ["GB210"]
    selected_rows = cast("DataFrame", selected.apply(rows))
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        # Over Connect it is the server that finds out, when it is asked for the columns.
        _ = cast("DataFrame", made(Expect, **options).apply(selected_rows)).columns
