"""The transforms `window_function`, `lookup`, `compare` and `fuzzy_match`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, GemError
from gem_columns.window_function import WindowFunction
from gem_combine.compare import Compare
from gem_combine.fuzzy_match import FuzzyMatch
from gem_combine.lookup import Lookup
from tests.gems.transforms import (
    Folder,
    assert_agrees,
    drain,
    facts_of,
    findings,
    kinds,
    made,
    stream_of,
    table_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ID = Column("id", "bigint")
PAGE = Column("page", "string")
AT = Column("at", "timestamp", "10 minutes")
BETWEEN = {"value": "n", "start": "a", "end": "b"}


def framed(**frame: str) -> dict[str, Any]:
    return {"columns": {"a": "max(b)"}, "order_by": ["at"], "frame": frame}


@pytest.mark.parametrize(
    ("gem", "options", "words"),
    [
        (WindowFunction, {"columns": {"a": "sum(b) + 1"}}, "more than one call"),
        (WindowFunction, {"columns": {"a": "b"}}, "more than one call"),
        (WindowFunction, {"columns": {"a": "sum(b) over ()"}}, "more than one call"),
        (WindowFunction, {"columns": {"a": "max(b)", "A": "min(b)"}}, "stands twice"),
        (WindowFunction, {"columns": {"a": "max(b)"}, "frame": {"start": "3"}}, "no bound"),
        (
            WindowFunction,
            {"columns": {"a": "max(b)"}, "frame": {"unit": "range", "start": "3 preceding"}},
            "one expression in `order_by`",
        ),
        (WindowFunction, framed(start="unbounded following"), "can't begin at"),
        (WindowFunction, framed(end="unbounded preceding"), "can't end at"),
        (WindowFunction, framed(start="current row", end="3 preceding"), "no row is between"),
        (WindowFunction, framed(start="-3 preceding"), "no row is between"),
        (WindowFunction, framed(start="2 following", end="1 following"), "no row is between"),
        (
            WindowFunction,
            framed(unit="range", start="interval 1 hour preceding", end="interval 61 minutes preceding"),
            "no row is between",
        ),
        (WindowFunction, framed(start="1.5 preceding"), "no number of rows"),
        (WindowFunction, framed(start="interval 1 hour preceding"), "no number of rows"),
        (Lookup, {"columns": ["a"]}, "how a row is found"),
        (Lookup, {"columns": {"a": "b", "A": "c"}, "on": ["x"]}, "stands twice in `columns`"),
        (Compare, {"on": ["id", "ID"]}, "stands twice"),
        (Compare, {"on": ["status"]}, "rename the key"),
        (Compare, {"on": ["id"], "tolerance": {"a": -1}}, "isn't negative"),
        (Compare, {"on": ["id"], "tolerance": {"a": float("nan")}}, "isn't negative"),
        (Compare, {"on": ["id"], "tolerance": {"ID": 1}}, "a key"),
        (Compare, {"on": ["id"], "columns": ["b"], "tolerance": {"a": 1}}, "isn't among the `columns`"),
    ],
)
def test_options_that_cant_be(gem: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        made(gem, **options)


@pytest.mark.parametrize(
    "frame",
    [
        {"start": "-1 following"},
        {"start": "current row", "end": "0 preceding"},
        {"start": "2 preceding", "end": "-1 following"},
        {"start": "1 + 1 preceding", "end": "1 preceding"},
        # A month may be longer.
        {"unit": "range", "start": "interval 1 month preceding", "end": "interval 30 days preceding"},
        {"unit": "range", "start": "interval '2' hour preceding", "end": "interval 1 hour preceding"},
    ],
)
def test_frames_with_rows_are_taken(frame: dict[str, str]) -> None:
    rows = table_of(Column("b", "int"), AT)
    assert findings(WindowFunction, rows, **framed(**frame)) == []


@pytest.mark.parametrize(
    ("key", "start", "refused"),
    [
        ("page", "3 preceding", True),
        ("page desc", "unbounded preceding", False),
        ("at", "3 preceding", True),
        ("at", "interval 1 hour preceding", False),
        ("id desc", "3 preceding", False),
        ("cast(id as double)", "3 preceding", False),
        ("cast(id as double)", "interval 1 hour preceding", True),
        ("to_date(at)", "3 preceding", False),
    ],
)
def test_a_frame_by_values_is_of_numbers_or_times(key: str, start: str, refused: bool) -> None:
    options = {"columns": {"a": "sum(id)"}, "order_by": [key], "frame": {"unit": "range", "start": start}}
    found = findings(WindowFunction, table_of(ID, PAGE, AT), **options)
    assert [(f.option, f.code) for f in found] == ([("frame", "GB213")] if refused else [])


def test_keys_of_windows_have_an_order() -> None:
    rows = table_of(ID, Column("tags", "map<string, int>"))
    found = findings(
        WindowFunction, rows, columns={"a": "sum(id)"}, partition_by="tags", order_by="tags desc"
    )
    assert [(f.option, f.code) for f in found] == [(("partition_by", 0), "GB213"), (("order_by", 0), "GB213")]


def test_window_functions_are_checked() -> None:
    rows = table_of(ID, PAGE)
    columns = {
        "a": "rank()",
        "b": "upper(page)",
        "c": "sum(gone)",
        "d": "count(distinct page)",
        "e": "first(id)",
    }
    found = findings(WindowFunction, rows, columns=columns, partition_by="nobody")
    assert [(f.option, f.code) for f in found] == [
        (("partition_by", 0), "GB210"),
        (("columns", "a"), "GB205"),
        (("columns", "b"), "GB212"),
        (("columns", "c"), "GB210"),
        (("columns", "d"), "GB212"),
    ]
    assert kinds(made(WindowFunction, columns={"a": "max(id)"}).infer(stream_of(ID))) == ["analytic_window"]


def test_lookups_are_checked() -> None:
    rows, table = stream_of(AT, ID, PAGE), table_of(Column("id", "boolean"), Column("team", "string"))
    found = findings(Lookup, rows, table, on=["id", "gone"], columns={"page": "team", "t": "owner"})
    assert [(f.option, f.code) for f in found] == [
        ("on", "GB210"),
        ("on", "GB210"),
        ("columns", "GB210"),
        (("columns", "page"), "GB205"),
        (("on", "id"), "GB213"),
    ]
    (finding,) = findings(Lookup, rows, stream_of(PAGE), on=["page"], columns={"p": "page"}, names=("r", "t"))
    assert finding.message == "the table, `t`, is a stream, and a lookup needs all of it"
    found = findings(Lookup, rows, table, range=BETWEEN, columns={"t": "team"}, prefer="gone")
    assert [f.option for f in found] == ["range", "range", ("range", "value"), "prefer"]
    known = made(Lookup, on=["id"], columns={"t": "team", "u": "gone"}).infer(rows, table)
    assert known.columns == (AT, ID, PAGE, Column("t", "string"), Column("u"))


def test_what_is_compared_is_checked() -> None:
    names = ("a", "b")
    found = findings(Compare, stream_of(ID), table_of(ID), names=names, on=["id"])
    assert ["is a stream" in f.message for f in found] == [True]
    found = findings(Compare, table_of(ID, PAGE), table_of(ID, AT), names=names, on=["id", "key"])
    assert [f.message for f in found] == [
        "the input `a` has no column `key`",
        "the input `b` has no column `key`",
        "`b` lacks `page`",
    ]
    tags = table_of(ID, Column("m", "map<string, int>"), Column("n", "int"))
    others = table_of(ID, Column("m", "map<string, int>"), Column("n", "date"))
    assert [f.code for f in findings(Compare, tags, others, names=names, on=["id"])] == ["GB213", "GB213"]
    assert findings(Compare, tags, others, names=names, on=["n"], columns=["id"])[0].option == "columns"


@pytest.mark.spark
def test_frames_are_as_they_are_said(spark: SparkSession) -> None:
    df = spark.sql("select * from values ('a', 1, 10), ('a', 2, 20), ('a', 4, 40), ('b', 1, 5) as t(g, t, v)")
    options: dict[str, Any] = {
        "columns": {"s": "sum(v)", "n": "row_number()", "v": "max(v) filter (where t < 4)"},
        "partition_by": ["g"],
        "order_by": ["t"],
    }
    frames: list[tuple[dict[str, Any], list[tuple[int, int, int]]]] = [
        ({}, [(10, 1, 10), (30, 2, 20), (70, 3, 20), (5, 1, 5)]),
        (
            {"frame": {"start": "1 preceding", "end": "1 following"}},
            [(30, 1, 20), (70, 2, 20), (60, 3, 20), (5, 1, 5)],
        ),
        (
            {"frame": {"unit": "range", "start": "1 preceding"}},
            [(10, 1, 10), (30, 2, 20), (40, 3, None), (5, 1, 5)],  # type: ignore[list-item]
        ),
    ]
    for frame, expected in frames:
        gem = made(WindowFunction, **options, **frame)
        found: Any = gem.apply(df)
        assert found.columns == ["g", "t", "v", "s", "n"]
        assert [(row.s, row.n, row.v) for row in found.orderBy("g", "t").collect()] == expected
        assert_agrees(gem.infer(facts_of(df)), found)


def test_what_is_looked_up_by_has_an_order() -> None:
    rows = table_of(ID, AT, Column("tags", "map<string, int>"))
    table = table_of(ID, PAGE, Column("a", "timestamp"), Column("b", "int"), Column("m", "map<string, int>"))
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({"range": {"value": "tags", "start": "a", "end": "a"}}, [("range", "value")]),
        ({"range": {"value": "at", "start": "a", "end": "b"}}, [("range", "end")]),
        ({"range": {"value": "id", "start": "m", "end": "b"}}, [("range", "start")]),
        ({"range": {"value": "date(at)", "start": "a", "end": "a"}}, []),
        ({"on": ["id"], "prefer": "m"}, ["prefer"]),
        ({"on": ["id"], "prefer": "m['a']"}, []),
    ]
    for options, places in cases:
        found = findings(Lookup, rows, table, names=("rows", "table"), columns=["page"], **options)
        assert [(f.option, f.code) for f in found] == [(place, "GB213") for place in places]


@pytest.mark.spark
def test_a_row_stays_one_row(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import col

    rows = spark.sql("select * from values ('x', 5), ('x', 10), ('x', 20), ('y', 7), (null, 7) as t(k, n)")
    table = spark.sql(
        "select * from values ('x', null, 10, 'low', 1), ('x', 10, 20, 'high', 2), ('x', 12, 15, 'mid', 3), "
        "('y', 0, null, 'any', 4), ('y', 5, 9, 'five', 9) as t(code, a, b, name, version)"
    ).selectExpr("*", "map(name, version) as tags")
    keyed: dict[str, Any] = {"on": {"k": "code"}, "columns": {"found": "name"}, "prefer": "version"}
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        (keyed, ["mid", "mid", "mid", "five", None]),
        (keyed | {"range": BETWEEN}, ["low", "high", None, "five", None]),
        (keyed | {"range": {**BETWEEN, "end_inclusive": True}}, ["low", "high", "high", "five", None]),
        (keyed | {"range": BETWEEN, "missing": "drop"}, ["low", "high", "five"]),
        ({"range": BETWEEN, "columns": {"found": "version"}, "prefer": "-version"}, [1, 2, 4, 1, 1]),
        (keyed | {"columns": {"found": "tags"}}, [{"mid": 3}] * 3 + [{"five": 9}, None]),
    ]
    for options, names in cases:
        gem = made(Lookup, "rows", "table", **options)
        found: Any = gem.apply(rows, table)
        assert [row.found for row in found.orderBy(col("k").asc_nulls_last(), "n").collect()] == names
        assert_agrees(gem.infer(facts_of(rows), facts_of(table)), found)
    strict = made(Lookup, **{key: value for key, value in keyed.items() if key != "prefer"})
    with pytest.raises(PySparkException, match="several rows of the table fit one row"):
        strict.apply(rows, table).collect()  # type: ignore[union-attr]
    for wrong in ({"on": ["k"], "columns": ["name"]}, {"on": {"k": "code"}, "columns": {"n": "name"}}):
        with pytest.raises(GemError):
            made(Lookup, **wrong).apply(rows, table)
    folder = Folder(spark, tmp_path / "in", "k string, n bigint")
    streamed: Any = made(Lookup, **keyed).apply(folder.stream("rows"), table)
    folder.add({"k": "x", "n": 1}, {"k": "z", "n": 2})
    assert sorted(map(tuple, drain(streamed, tmp_path / "checkpoint"))) == [("x", 1, "mid"), ("z", 2, None)]


def test_only_numbers_have_a_tolerance() -> None:
    rows = table_of(ID, AT, PAGE, Column("v", "double"), Column("gone", None))
    tolerance = {"at": 1, "page": 1, "v": 0.1, "gone": 1}
    found = findings(Compare, rows, rows, names=("old", "new"), on=["id"], tolerance=tolerance)
    # Where Spark isn't strict, a text may be a number.
    expected = [(("tolerance", "at"), "error")] * 2 + [(("tolerance", "page"), "warning")] * 2
    assert [(f.option, f.severity) for f in found] == expected


@pytest.mark.spark
def test_what_differs_is_told_by_key(spark: SparkSession) -> None:
    left = spark.sql(
        "select * from values (1, 1.0D, 'a'), (2, 2.0D, 'b'), (3, 3.0D, null), (null, 4.0D, 'd'), (5, 5.0D, 'e'), "
        "(5, 5.0D, 'e'), (6, 6.0D, 'f') as t(id, v, s)"
    )
    right = spark.sql(
        "select * from values ('a', 1, 1.004D), ('B', 2, 2.5D), (null, 3, null), ('d', null, 4.0D), "
        "('e', 5, 5.0D), ('g', 7, 7.0D) as t(s, ID, v)"
    )
    gem = made(Compare, "old", "new", on=["id"], tolerance={"v": 0.01})
    found: Any = gem.apply(left, right)
    rows = {row.id: (row.status, row.differing) for row in found.collect()}
    assert rows == {
        1: ("matched", []),
        2: ("differing", ["v", "s"]),
        3: ("differing", ["v"]),
        None: ("matched", []),
        5: ("several", None),
        6: ("only_left", None),
        7: ("only_right", None),
    }
    assert_agrees(gem.infer(facts_of(left), facts_of(right)), found)
    only: Any = made(Compare, on=["id"], columns=["s"], matched=False).apply(left, right)
    assert sorted(row.id for row in only.collect()) == [2, 5, 6, 7]
    assert [row.right.s for row in only.filter("id = 2").collect()] == ["B"]
    for wrong in ({"on": ["gone"]}, {"on": ["id"], "tolerance": {"gone": 1}}):
        with pytest.raises(GemError):
            made(Compare, **wrong).apply(left, right)
    with pytest.raises(GemError, match="alone has `s`"):
        made(Compare, "old", "new", on=["id"]).apply(left.drop("s"), right)


def test_what_is_nearly_the_same_is_checked() -> None:
    rows = stream_of(AT, ID, PAGE, Column("tags", "array<string>"))
    options: dict[str, Any] = {"id": "key", "fields": {"tags": {}, "page": {}}, "block_by": ["gone"]}
    found = findings(FuzzyMatch, rows, table_of(ID, PAGE), names=("a", "b"), **options)
    assert [(f.option, f.message.partition(":")[0]) for f in found] == [
        ("id", "input `a`"),
        (("fields", "tags"), "input `a`"),
        (("block_by", 0), "input `a`"),
        ("id", "input `b`"),
        (("fields", "tags"), "input `b`"),
        (("block_by", 0), "input `b`"),
    ]
    options = {"id": "id", "fields": {"page": {}}, "block_by": ["id"]}
    (finding,) = findings(FuzzyMatch, rows, rows, names=("a", "a"), **options)
    assert (finding.severity, finding.option) == ("warning", "pairs")
    known = made(FuzzyMatch, **options).infer(rows, rows)
    assert known.columns == (
        Column("left_id", "bigint"),
        Column("right_id", "bigint"),
        Column("score", "double"),
    )
    assert kinds(known) == ["filter", "join"]


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("tags", ("GB213", "error")),
        ("rand()", ("GB212", "warning")),
        ("page, cast(10 * rand(3) as int)", ("GB212", "warning")),
        ("year(current_date()) - year(at)", None),
    ],
)
def test_rows_can_agree_in_what_they_are_blocked_by(key: str, found: tuple[str, str] | None) -> None:
    rows = table_of(ID, AT, PAGE, Column("tags", "map<string, int>"))
    options: dict[str, Any] = {"id": "id", "fields": {"page": {}}, "block_by": key}
    told = findings(FuzzyMatch, rows, rows, names=("a", "b"), **options)
    assert [(f.code, f.severity) for f in told] == [found] * 2 if found else told == []


@pytest.mark.spark
def test_rows_that_are_nearly_the_same_are_paired(spark: SparkSession) -> None:
    people = spark.sql(
        "select * from values (1, ' Robert Smith', 'x'), (2, 'rupert smith', 'x'), (3, 'Smith Robert', 'x'), "
        "(4, 'Robert Smith', 'y'), (5, null, 'x'), (6, '', 'x') as t(id, name, town)"
    )
    cases: list[tuple[dict[str, Any], dict[tuple[int, int], float]]] = [
        ({}, {(1, 2): 0.83}),
        ({"measure": "words"}, {(1, 3): 1.0}),
        ({"measure": "sound"}, {(1, 2): 1.0}),
        ({"measure": "equal"}, {}),
    ]
    for field, expected in cases:
        options: dict[str, Any] = {
            "id": "id",
            "fields": {"name": field},
            "block_by": "town",
            "pairs": "within",
        }
        gem = made(FuzzyMatch, "left", "right", **options)
        found: Any = gem.apply(people, people)
        assert {(row.left_id, row.right_id): round(row.score, 2) for row in found.collect()} == expected
        assert_agrees(gem.infer(facts_of(people), facts_of(people)), found)
    across: Any = made(
        FuzzyMatch,
        id="id",
        fields={"name": {}, "town": {"measure": "equal", "weight": 3}},
        block_by=["soundex(trim(name))"],
        threshold=0.25,
    ).apply(people.filter("id = 1"), people.filter("id in (1, 4)"))
    assert {(row.right_id, row.score) for row in across.collect()} == {(1, 1.0), (4, 0.25)}
