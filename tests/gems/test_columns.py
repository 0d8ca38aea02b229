"""The transforms `select`, `with_columns`, `rename` and `drop`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, GemError
from gem_columns.drop import Drop
from gem_columns.rename import Rename
from gem_columns.select import Select
from gem_columns.with_columns import WithColumns
from tests.gems.transforms import findings, made, stream_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from gem_bundle import Transform

AT = Column("at", "timestamp", "10 minutes")
ID = Column("id", "bigint")
PAGE = Column("page", "string")
ROWS = stream_of(AT, ID, PAGE)


@pytest.mark.parametrize(
    ("gem", "options", "columns"),
    [
        (Select, {"columns": "id, AT as t"}, [ID, Column("t", "timestamp", "10 minutes")]),
        (Select, {"columns": {"n": "count(*)"}}, [Column("n", "bigint")]),
        (Select, {"columns": ["*", "1 as one"]}, [AT, ID, PAGE, Column("one", "int")]),
        (WithColumns, {"columns": {"ID": "page", "u": "at"}},
         [AT, Column("ID", "string"), PAGE, Column("u", "timestamp", "10 minutes")]),
        (Rename, {"columns": {"AT": "id", "id": "at"}},
         [Column("id", "timestamp", "10 minutes"), Column("at", "bigint"), PAGE]),
        (Drop, {"columns": ["PAGE", "at", "nothing"]}, [ID]),
    ],
)  # fmt: skip
def test_what_is_known_of_the_columns(
    gem: type[Transform[Any]], options: dict[str, Any], columns: list[Column]
) -> None:
    assert made(gem, **options).infer(ROWS) == stream_of(*columns)


@pytest.mark.parametrize(
    ("gem", "options"),
    [
        (Select, {"columns": ["*"]}),
        (Select, {"columns": ["upper(page)"]}),
        (WithColumns, {"columns": {"a": "1"}}),
        (Rename, {"columns": {"a": "b"}}),
        (Drop, {"columns": ["a"]}),
    ],
)
def test_unknown_columns_stay_unknown_and_raise_nothing(
    gem: type[Transform[Any]], options: dict[str, Any]
) -> None:
    unknown = Facts(streaming=True, columns=None)
    assert made(gem, **options).infer(unknown).columns is None
    assert findings(gem, unknown, **options) == []


@pytest.mark.parametrize(
    ("gem", "options"),
    [
        (Select, {"columns": []}),
        (Select, {"columns": {}}),
        (Select, {"columns": ["id, page"]}),
        (Select, {"columns": ["upper(page"]}),
        (Select, {}),
        (WithColumns, {"columns": ["id"]}),
        (WithColumns, {"columns": {"a": "1", "A": "2"}}),
        (Rename, {"columns": {"a": "x", "A": "y"}}),
        (Rename, {"columns": {"a": "x", "b": "X"}}),
        (Rename, {"columns": {"a": ""}}),
        (Drop, {"columns": []}),
    ],
)
def test_options_that_mean_nothing_are_refused(gem: type[Transform[Any]], options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        made(gem, **options)


@pytest.mark.parametrize("gem", [Select, WithColumns, Rename])
def test_a_column_that_does_not_exist_is_found(gem: type[Transform[Any]]) -> None:
    columns = {"pge": "p"} if gem is Rename else {"p": "pge"}
    (finding,) = findings(gem, ROWS, columns=columns)
    where = "columns" if gem is Rename else ("columns", "p")
    assert (finding.severity, finding.option) == ("error", where)
    assert finding.message == "there is no column `pge`"
    assert finding.hint == "Did you mean `page`?"


def test_a_column_to_drop_that_does_not_exist_is_a_warning() -> None:
    (finding,) = findings(Drop, ROWS, columns=["ID", "pages"])
    assert finding.severity == "warning"
    assert finding.message == "there is no column `pages`, so nothing is dropped for it"


@pytest.mark.parametrize("star", ["*", "orders.*", "`a b`.*"])
def test_a_star_has_no_name(star: str) -> None:
    for gem in (Select, WithColumns):
        (finding,) = findings(gem, ROWS, columns={"all": star})
        assert finding.message == f"`{star}` is several columns and can't be called `all`"
    assert findings(Select, ROWS, columns=[star]) == []
    assert findings(Select, ROWS, columns={"n": "2 * count(*)"}) == []


def test_a_second_column_of_the_same_name_is_a_warning() -> None:
    (finding,) = findings(Rename, ROWS, columns={"id": "PAGE"})
    assert finding.severity == "warning"
    assert "two columns `PAGE`" in finding.message
    assert findings(Rename, ROWS, columns={"id": "page", "page": "id"}) == []


@pytest.mark.spark
def test_select(spark: SparkSession) -> None:
    df = spark.sql("select 1 as id, 'a' as page, named_struct('x', 2, 'y', 3) as s")
    chosen = made(Select, columns=["id * 2 as twice", "s.*", "page"]).apply(df)
    assert [row.asDict() for row in chosen.collect()] == [  # type: ignore[union-attr]
        {"twice": 2, "x": 2, "y": 3, "page": "a"}
    ]
    chosen = made(Select, columns={"page": "upper(page)", "a b": "s.x"}).apply(df)
    assert [row.asDict() for row in chosen.collect()] == [{"page": "A", "a b": 2}]  # type: ignore[union-attr]


@pytest.mark.spark
def test_with_columns_replaces_where_a_column_stands(spark: SparkSession) -> None:
    df = spark.sql("select 1 as id, 'a' as page, 2 as n")
    wider = made(WithColumns, columns={"page": "n", "sum": "id + n", "more": "sum + 1"}).apply(df)
    assert [tuple(row) for row in wider.collect()] == [(1, 2, 2, 3, 4)]  # type: ignore[union-attr]
    assert wider.columns == ["id", "page", "n", "sum", "more"]  # type: ignore[union-attr]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"A": "x"}, {"x": 1, "b": 2, "c.d": 3}),
        ({"a": "b", "b": "a"}, {"b": 1, "a": 2, "c.d": 3}),
        ({"a": "b", "b": "c.d", "c.d": "a"}, {"b": 1, "c.d": 2, "a": 3}),
        ({"a": "A"}, {"A": 1, "b": 2, "c.d": 3}),
        ({"c.d": "x y"}, {"a": 1, "b": 2, "x y": 3}),
    ],
    ids=str,
)
def test_rename_happens_at_once(
    spark: SparkSession, columns: dict[str, str], expected: dict[str, int]
) -> None:
    df = spark.sql("select 1 as a, 2 as b, 3 as `c.d`")
    rename = made(Rename, columns=columns)
    (row,) = rename.apply(df).collect()  # type: ignore[union-attr]
    assert row.asDict() == expected
    known = table_of(*[Column(name) for name in df.columns])
    assert [c.name for c in rename.infer(known).columns or ()] == list(expected)


@pytest.mark.spark
def test_a_run_refuses_to_rename_what_is_not_there(spark: SparkSession) -> None:
    with pytest.raises(GemError) as caught:
        made(Rename, columns={"idd": "key"}).apply(spark.range(1))
    assert (caught.value.code, caught.value.option) == ("GB205", "columns")
    assert caught.value.hint == "Did you mean `id`?"


@pytest.mark.spark
def test_drop(spark: SparkSession) -> None:
    df = spark.sql("select 1 as a, 2 as b, 3 as `c.d`")
    assert made(Drop, columns=["A", "c.d", "nothing"]).apply(df).columns == ["b"]  # type: ignore[union-attr]
