"""The transform `join`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from gem_bundle import Column, Facts, Operator, Pipeline
from gem_combine.join import Join
from gem_event_time.watermark import Watermark
from tests.gems.transforms import Folder, drain, findings, kinds, made, stream_of, table_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

AT = Column("at", "timestamp", "10 minutes")
ID = Column("id", "bigint")
ORDERS = stream_of(ID, AT, Column("amount", "double"))
PAYMENTS = stream_of(Column("ID", "int"), Column("at", "timestamp", "5 minutes"))
PAGES = table_of(ID, Column("page", "string"))


@pytest.mark.parametrize(
    ("written", "how"),
    [
        ("inner", "inner"), ("left", "left"), ("left_outer", "left"), ("leftouter", "left"),
        ("LEFT OUTER", "left"), ("right_outer", "right"), ("outer", "full"), ("full_outer", "full"),
        ("FullOuter", "full"), ("semi", "left_semi"), ("left semi", "left_semi"),
        ("leftanti", "left_anti"), ("anti", "left_anti"),
    ],
)  # fmt: skip
def test_sparks_spellings_of_the_types(written: str, how: str) -> None:
    assert made(Join, how=written, on="id").options.how == how
    assert made(Join, on="id").options.how == "inner"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give either `on` or `condition`"),
        ({"on": "id", "condition": "a.id = b.id"}, "give either `on` or `condition`"),
        ({"how": "cross", "on": "id"}, "a cross join has no `on`"),
        ({"how": "cross", "condition": "true"}, "a cross join has no `condition`"),
        ({"how": "sideways", "on": "id"}, "'left_semi'"),
        ({"how": 1, "on": "id"}, "'left_semi'"),
        ({"on": ["id", "ID"]}, "`ID` stands there twice"),
        ({"on": []}, "at least 1 item"),
        ({"how": "left", "on": "id", "unmatched": "reject"}, "goes with `how: inner`"),
    ],
    ids=str,
)
def test_options_that_do_not_go_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        made(Join, **options)


def test_what_is_known_of_the_columns() -> None:
    def names(right: Facts = PAYMENTS, **options: Any) -> list[tuple[str, str | None]]:
        columns = made(Join, "orders", "payments", **options).infer(ORDERS, right).columns
        return [(column.name, column.delay) for column in columns or ()]

    mine, theirs = ("at", "10 minutes"), ("at", "5 minutes")
    rest = ("amount", None)
    assert names(on="id") == [("id", None), mine, rest, theirs]
    assert names(on="id", how="right") == [("ID", None), mine, rest, theirs]
    assert names(on="at, id", how="left") == [mine, ("id", None), rest]
    assert names(on="at, id", how="right") == [theirs, ("ID", None), rest]
    assert names(on="at, id", how="full") == [("at", None), ("id", None), rest]
    assert names(on="at", how="left_semi") == [mine, ("id", None), rest]
    assert names(condition="orders.id = payments.id", how="left_anti") == [("id", None), mine, rest]
    both = [("id", None), mine, rest, ("ID", None), theirs]
    assert names(condition="orders.id = payments.id") == names(how="cross") == both
    unknown = Facts(streaming=True)
    assert names(unknown, on="id") == names(unknown, condition="true") == []
    assert names(unknown, on="id", how="left_semi") == [("id", None), mine, rest]


def test_two_streams_wait_for_each_other() -> None:
    join = made(Join, "orders", "payments", on="id")
    both = join.infer(ORDERS, PAYMENTS)
    assert (kinds(both), both.operators[0].stateful) == (["join"], True)
    after = join.infer(ORDERS.after(Operator("deduplicate")), PAGES)
    assert (kinds(after), after.operators[0].stateful) == (["join", "deduplicate"], False)
    static = join.infer(PAGES, PAGES)
    assert (static.streaming, static.bounded) == (False, True)
    assert [(c.name, c.qualifier) for c in static.columns or ()] == [
        ("id", "orders"),
        ("page", "orders"),
        ("page", "payments"),
    ]
    unknown = Facts(columns=(ID,))
    assert join.infer(ORDERS, unknown).streaming is True
    assert join.infer(ORDERS, unknown).operators[0].stateful is None


def test_a_column_that_an_input_lacks_is_found() -> None:
    found = findings(Join, ORDERS, PAYMENTS, names=("orders", "payments"), on="id, amount")
    assert [finding.message for finding in found] == ["the input `payments` has no column `amount`"]
    assert found[0].option == "on"
    (finding,) = findings(Join, ORDERS, PAGES, names=("o", "p"), on="idd", how="left")[:1]
    assert (finding.message, finding.hint) == (
        "the input `o` has no column `idd`",
        "Did you mean `id`?",
    )
    assert findings(Join, ORDERS, Facts(), names=("o", "p"), on="id") == []


def test_a_condition_needs_two_names() -> None:
    same = ("orders", "Orders")
    (finding,) = findings(Join, ORDERS, ORDERS, names=same, condition="orders.id = orders.id")
    assert "the inputs `orders` and `Orders` apart" in finding.message
    assert finding.hint == "Name them, for example `inputs: {left: orders, right: Orders}`."
    assert findings(Join, ORDERS, ORDERS, names=same, on="id") == []
    assert findings(Join, ORDERS, ORDERS, names=("a", "b"), condition="a.id = b.id") == []


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"on": "id"}, [(2, "b", "x")]),
        ({"on": "id", "how": "left"}, [(1, "a", None), (2, "b", "x")]),
        ({"on": "id", "how": "right"}, [(2, "b", "x"), (3, None, "y")]),
        ({"on": "id", "how": "full"}, [(1, "a", None), (2, "b", "x"), (3, None, "y")]),
        ({"on": "id", "how": "semi"}, [(2, "b")]),
        ({"on": "id", "how": "anti"}, [(1, "a")]),
        ({"condition": "l.id = r.id - 1"}, [(1, "a", 2, "x"), (2, "b", 3, "y")]),
        ({"condition": "l.id = r.id - 2", "how": "left"}, [(1, "a", 3, "y"), (2, "b", None, None)]),
        ({"condition": "l.id = r.id", "how": "left_anti"}, [(1, "a")]),
        (
            {"how": "cross"},
            [(1, "a", 2, "x"), (1, "a", 3, "y"), (2, "b", 2, "x"), (2, "b", 3, "y")],
        ),
    ],
    ids=str,
)
def test_join(spark: SparkSession, options: dict[str, Any], rows: list[tuple[Any, ...]]) -> None:
    left = spark.sql("select * from values (1, 'a'), (2, 'b') as t(id, v)")
    right = spark.sql("select * from values (2, 'x'), (3, 'y') as t(id, w)")
    joined: Any = made(Join, "l", "r", **options).apply(left, right)
    assert sorted(map(tuple, joined.collect())) == rows


@pytest.mark.spark
def test_names_tell_equal_columns_apart_in_the_next_node(spark: SparkSession) -> None:
    left = spark.sql("select 1 as id, 'a' as v")
    joined: Any = made(Join, "mine", "yours", condition="mine.id = yours.id").apply(left, left)
    (row,) = joined.selectExpr("mine.id", "yours.v as other").collect()
    assert tuple(row) == (1, "a")


@pytest.mark.spark
def test_a_stream_joined_with_itself(spark: SparkSession, tmp_path: Path) -> None:
    """Readers of their own, a range of time, and unpaired rows once the watermark has passed."""
    folder = Folder(spark, tmp_path / "in", "id long, kind string, at timestamp")
    watermark = made(Watermark, column="at", delay="1 minute")
    sent = folder.stream("events").filter("kind = 'sent'")
    got = folder.stream("events__pairs_got").filter("kind = 'got'")
    join = made(
        Join,
        "sent",
        "got",
        how="left_outer",
        condition="sent.id = got.id and got.at between sent.at and sent.at + interval 1 minute",
    )
    outcome = "sent.id", "got.id is not null as paired"
    pairs: Any = join.apply(watermark.apply(sent), watermark.apply(got))  # type: ignore[arg-type]
    pairs = pairs.selectExpr(*outcome)
    unmarked: Any = join.apply(sent, watermark.apply(got))  # type: ignore[arg-type]
    checkpoint = tmp_path / "checkpoint"

    def event(number: int, kind: str, time: str) -> dict[str, Any]:
        return {"id": number, "kind": kind, "at": f"2024-01-01 {time}"}

    folder.add(event(1, "sent", "10:00:00"), event(2, "sent", "10:00:00"))
    assert drain(pairs, checkpoint) == []
    folder.add(event(1, "got", "10:00:30"), event(2, "got", "10:05:00"))
    assert [tuple(row) for row in drain(pairs, checkpoint)] == [(1, True)]
    folder.add(event(3, "sent", "11:00:00"), event(4, "got", "11:00:00"))
    assert [tuple(row) for row in drain(pairs, checkpoint)] == [(2, False)]
    # Spark starts it with a watermark on one side too, and then lets no row go: GB325.
    unmarked = unmarked.selectExpr(*outcome)
    assert [tuple(row) for row in drain(unmarked, tmp_path / "unmarked")] == [(1, True)]
    folder.add(event(5, "got", "12:00:00"))
    assert drain(unmarked, tmp_path / "unmarked") == []


@pytest.mark.spark
def test_a_stream_joined_with_a_static_table(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, tmp_path / "in", "id long")
    pages = spark.sql("select 1 as id, 'home' as page")
    named: Any = made(Join, "clicks", "pages", how="left", on="id").apply(folder.stream("clicks"), pages)
    folder.add({"id": 1}, {"id": 2})
    rows = drain(named, tmp_path / "checkpoint")
    assert sorted(map(tuple, rows)) == [(1, "home"), (2, None)]


def test_rows_without_a_partner_are_told_of_a_table_only() -> None:
    assert findings(Join, ORDERS, PAGES, names=("orders", "pages"), on=["id"], unmatched="reject") == []
    (found,) = findings(Join, ORDERS, PAYMENTS, names=("orders", "payments"), on=["id"], unmatched="reject")
    assert "`payments` is a stream, whose rows may still come" in found.message
    assert not made(Join, on=["id"]).rejects()


@pytest.mark.spark
@pytest.mark.parametrize(
    "options",
    [{"on": ["id"]}, {"condition": "orders.id = pages.id and orders.amount > 0"}],
    ids=["on", "condition"],
)
def test_rows_without_a_partner_are_rejected_once(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any]
) -> None:
    rows = [[1, 1.0], [2, 1.0], [2, 2.0], [3, 1.0], [None, 1.0]]
    pages = [[1, "a"], [2, "b"], [2, "c"], [7, "d"]]
    pipeline = (
        Pipeline("shop", mode="batch", folder=tmp_path)
        .source("orders", "rows", {"schema": "id int, amount double", "rows": rows})
        .source("pages", "rows", {"schema": "id int, page string", "rows": pages})
        .transform("named", "join", ["orders", "pages"], {**options, "unmatched": "reject"})
        .transform("shown", "select", "named", {"columns": ["page", "amount"]})
        .target("good", "file", "shown", {"format": "parquet", "path": "good"})
    )
    good = pipeline.dataframe("named", spark)
    assert sorted(row.page for row in good.collect()) == ["a", "b", "b", "c", "c"]
    bad = pipeline.dataframe("named.rejected", spark).collect()
    assert sorted(json.loads(row.row)["id"] or 0 for row in bad) == [0, 3]
    assert {tuple(why) for row in bad for why in row.reasons} == {("unmatched", "`pages` has no row for it")}
    assert {row.row_schema for row in bad} == {"id int, amount double"}
    report = pipeline.run()
    assert report.held.rejected == {"named": 2}
    assert report.targets["good"].rows_out == 5
    assert spark.read.parquet(str(tmp_path / "good")).count() == 5
