"""The target `delta` with `merge` and `history`: compared with what plain Python makes of the same changes."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gem_bundle import Column, Facts, GemError, StreamReadContext, WriteContext
from gem_bundle.expressions import columns_named, equal_columns, qualified
from gem_bundle.operators import AggregateOperator
from gem_delta.connection import DeltaOptions
from gem_delta.pruning import only_files
from gem_delta.source import DeltaSource
from gem_delta.statements import Statements, Table
from gem_delta.target import DeltaTarget, _reason
from gem_json.from_debezium import FromDebezium
from tests import samples
from tests.gems import merging
from tests.gems.draining import forget_last_commit, make, run
from tests.gems.merging import KEYS, MERGE, change
from tests.samples import what_merges_do

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

HISTORY = {
    "keys": KEYS,
    "sequence_by": "at",
    "delete_when": "op = 'd'",
    "track": ["city"],
    "leave_out": ["op"],
}
VERSIONS = ("id", "part", "at", "city", "note", "valid_from", "valid_to", "is_current")
COLUMNS = (
    Column("id", "string"),
    Column("part", "int"),
    Column("at", "int"),
    Column("op", "string"),
    Column("city", "string"),
    Column("tags", "map<string,int>"),
)
FACTS = Facts(streaming=True, columns=COLUMNS)


def target(folder: Path | None = None, **raw: Any) -> DeltaTarget:
    made: DeltaTarget = make(DeltaTarget, {"path": "t", **raw}, folder)
    return made


def said(made: DeltaTarget, facts: Facts = FACTS) -> list[tuple[str, str, Any]]:
    return [(f.code, f.severity, f.option) for f in made.check(facts)]


# Options and checks


def test_why_an_operation_failed() -> None:
    assert _reason(ValueError("[A] is so.\nmore")) == "[A] is so."
    java = "An error occurred while calling o1.sql.\n: E: Exception thrown in awaitResult:\n\tat x\n"
    assert _reason(ValueError(java)) == "E: Exception thrown in awaitResult:"
    assert _reason(ValueError(java + "Caused by: F: why\n\tat y\n")) == "F: why"
    assert _reason(ValueError()) == "ValueError"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"merge": {"on": ["id"]}, "history": HISTORY}, "one of the two"),
        ({"merge": {"on": []}}, "at least 1"),
        ({"merge": {"on": "target.id > source.id"}}, "needs an equality"),
        ({"merge": {"on": ["id"], "sequence_by": "id"}}, "in the key"),
        ({"merge": {"on": ["id"], "update": "none", "ignore_null_updates": True}}, "for `update: all`"),
        ({"merge": {"on": ["id"], "update": {"n": "1"}, "ignore_null_updates": True}}, "for `update: all`"),
        ({"merge": {"on": ["id"], "update": "none", "insert": "none"}}, "nothing is written"),
        ({"merge": {"on": ["id"], "unmatched_by_source": {"update": {}}}}, "at least 1"),
        ({"merge": {"on": ["id"], "insert": ["name"]}}, "`insert` has to give `id`"),
        ({"merge": {"on": ["id"], "insert": {"ID": "1", "n": "2"}, "leave_out": ["Id"]}}, "has to have"),
        ({"merge": {"on": ["id"]}, "save_mode": "overwrite"}, "`save_mode` is for rows that are added"),
        ({"merge": {"on": ["id"]}, "spark_options": {"a": 1}}, "`spark_options` is for rows that are added"),
        ({"history": {**HISTORY, "start": "at", "end": "At"}}, "different columns"),
        ({"history": {**HISTORY, "start": "id"}}, "not in the key"),
        ({"history": {**HISTORY, "sequence_by": "part"}}, "in the key"),
        ({"history": {**HISTORY, "leave_out": ["id"]}}, "has to have the columns of the key"),
        ({"history": {**HISTORY, "track": []}}, "at least 1"),
        ({"history": {**HISTORY, "track": ["Op"]}}, "`leave_out` keeps from the table"),
        ({"history": {**HISTORY, "start": ""}}, "at least 1"),
        ({"history": {**HISTORY, "current": ""}}, "at least 1"),
        ({"table_operations": {"optimize": False}}, "nothing to do"),
        ({"table_operations": {"optimize": False, "z_order_by": ["a"], "vacuum": True}}, "needs"),
        ({"cluster_by": ["a"], "partition_by": ["b"]}, "`cluster_by` or `partition_by`"),
        ({"cluster_by": ["a"], "table_operations": {"z_order_by": ["a"]}}, "`cluster_by` or `z_order_by`"),
        ({"cluster_by": ["a"], "overwrite_schema": True}, "`cluster_by` or `overwrite_schema`"),
        ({"cluster_by": ["a", "b", "c", "d", "e"]}, "at most 4"),
        ({"cluster_by": ["a", "A"]}, "`A` twice"),
    ],
)
def test_options_that_are_refused(raw: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        target(**raw)


def test_what_it_promises() -> None:
    for made in (target(merge=MERGE), target(history=HISTORY)):
        assert made.semantics.output_modes == {"append", "update"}
        assert made.semantics.batch_modes == {"append"}
        assert (made.semantics.delivery, made.semantics.grouped) == ("exactly_once", "exactly_once")
        assert not made.semantics.replaces_intervals
    assert target().semantics.output_modes == target().semantics.batch_modes == {"append", "complete"}


@pytest.mark.parametrize(
    ("merge", "found"),
    [
        (MERGE, []),
        ({"on": ["idd"]}, [("GB210", "error", ("merge", "on")), ("GB207", "warning", "merge")]),
        ({**MERGE, "leave_out": ["opp"]}, [("GB210", "error", ("merge", "leave_out"))]),
        ({**MERGE, "update": ["at", "twon"]}, [("GB210", "error", ("merge", "update"))]),
        ({**MERGE, "delete_when": "opp = 'd'"}, [("GB210", "error", ("merge", "delete_when"))]),
        ({**MERGE, "delete_when": "part"}, [("GB213", "error", ("merge", "delete_when"))]),
        ({**MERGE, "sequence_by": "att"}, [("GB210", "error", ("merge", "sequence_by"))]),
        ({**MERGE, "sequence_by": "Tags"}, [("GB213", "error", ("merge", "sequence_by"))]),
        ({**MERGE, "on": ["tags"]}, [("GB213", "error", ("merge", "on"))]),
        ({**MERGE, "sequence_by": "source.at"}, [("GB214", "error", ("merge", "sequence_by"))]),
        ({**MERGE, "sequence_by": "coalesce(at, 0)"}, []),
        ({**MERGE, "leave_out": ["at"]}, [("GB207", "error", ("merge", "sequence_by"))]),
        ({**MERGE, "update": ["city"]}, [("GB207", "error", ("merge", "sequence_by"))]),
        ({**MERGE, "update": ["city", "at"]}, []),
        ({**MERGE, "update": "none"}, []),
        (
            {**MERGE, "unmatched_by_source": "delete"},
            [("GB207", "warning", ("merge", "unmatched_by_source"))],
        ),
        ({"on": "target.id = source.id and target.part > 1", "sequence_by": ["at", "city"]}, []),
        ({"on": "target.key = source.id", "sequence_by": "at"}, [("GB207", "error", ("merge", "insert"))]),
        ({**MERGE, "sequence_by": "rand()"}, [("GB212", "error", ("merge", "sequence_by"))]),
        (
            {**MERGE, "on": "target.id = source.id and rand() > 0.5"},
            [("GB212", "error", ("merge", "on"))],
        ),
        ({**MERGE, "sequence_by": "current_timestamp"}, [("GB212", "error", ("merge", "sequence_by"))]),
        ({**MERGE, "sequence_by": ["at", "1"]}, [("GB213", "error", ("merge", "sequence_by"))]),
        ({**MERGE, "sequence_by": "struct(at, tags)"}, [("GB213", "error", ("merge", "sequence_by"))]),
    ],
)
def test_what_a_check_says_of_a_merge(merge: dict[str, Any], found: list[Any]) -> None:
    assert said(target(merge=merge)) == found


ALL = {"id": "source.id", "at": "source.at"}
ONE = {"on": ["id"], "sequence_by": "at"}
ORDER = ("table_operations", "z_order_by")


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ({"partition_by": ["op"], "merge": {**MERGE, "leave_out": ["OP"]}}, [("GB210", "partition_by")]),
        ({"partition_by": ["op"], "history": HISTORY}, [("GB210", "partition_by")]),
        ({"partition_by": ["is_current"], "history": HISTORY}, []),
        (
            {"partition_by": ["is_current"], "history": {**HISTORY, "current": None}},
            [("GB210", "partition_by")],
        ),
        ({"partition_by": ["tags"]}, [("GB213", "partition_by")]),
        ({"partition_by": ["day"], "merge": {**ONE, "insert": {**ALL, "day": "date(at)"}}}, []),
        ({"partition_by": ["city"], "merge": {**ONE, "insert": ALL}}, []),
        (
            {"partition_by": ["city"], "merge": {**ONE, "insert": ALL, "update": ["at"]}},
            [("GB210", "partition_by")],
        ),
        ({"cluster_by": ["valid_from"], "history": HISTORY}, []),
        ({"cluster_by": ["is_current"], "history": HISTORY}, [("GB213", "cluster_by")]),
        (
            {"cluster_by": ["op", "nope"], "merge": {**MERGE, "leave_out": ["op"]}},
            [("GB210", "cluster_by")] * 2,
        ),
        ({"table_operations": {"z_order_by": ["nope", "tags", "Id"]}}, [("GB210", ORDER), ("GB213", ORDER)]),
        ({"table_operations": {"z_order_by": ["id"]}, "partition_by": ["ID"]}, [("GB207", ORDER)]),
        ({"table_operations": {"z_order_by": ["op"]}, "history": HISTORY}, [("GB210", ORDER)]),
    ],
)
def test_columns_by_which_files_are_laid_out(tmp_path: Path, raw: dict[str, Any], found: list[Any]) -> None:
    assert [(f.code, f.option) for f in target(tmp_path, **raw).check(FACTS)] == found


@pytest.mark.parametrize(
    ("merge", "found"),
    [
        (
            {"update": {"at": "source.at", "city": "source.zzz", "part": "zzz"}},
            [("GB210", ("merge", "update", "city"))],
        ),
        ({"update": {"at": "at"}}, [("GB211", ("merge", "update", "at"))]),
        ({"update": {"at": "at"}, "insert": ["id"]}, [("GB211", ("merge", "update", "at"))]),
        ({"update": {"part": "at"}, "insert": ["id"]}, []),
        ({"update": {"note": "target.note + source.part", "part": "concat(note, op)"}, "insert": ALL}, []),
        ({"insert": {**ALL, "part": "target.part"}}, [("GB210", ("merge", "insert", "part"))]),
        ({"insert": {**ALL, "part": "max(part)"}}, [("GB212", ("merge", "insert", "part"))]),
        ({"insert": {**ALL, "part": "coalesce(part, `source`.at)"}}, []),
        ({"on": "target.id = source.id and source.zz > 1"}, [("GB210", ("merge", "on"))]),
        ({"on": "target.id = source.id and max(source.at) > 1"}, [("GB212", ("merge", "on"))]),
        ({"on": "target.id = source.id and target.day > 1 and exists(target.days, d -> d > 1)"}, []),
        (
            {"unmatched_by_source": {"when": "source.id = 1"}},
            [("GB210", ("merge", "unmatched_by_source", "when"))],
        ),
        (
            {"unmatched_by_source": {"when": "gone and at > 1", "update": {"at": "source.at"}}},
            [("GB210", ("merge", "unmatched_by_source", "update", "at"))],
        ),
    ],
)
def test_expressions_are_over_the_rows_that_they_may_name(merge: dict[str, Any], found: list[Any]) -> None:
    facts = Facts(streaming=False, columns=COLUMNS).after(AggregateOperator())
    raw = {"on": ["id"], **merge}
    assert [(f.code, f.option) for f in target(merge=raw).check(facts)] == found
    unknown = Facts(streaming=False).after(AggregateOperator())
    assert {f.code for f in target(merge=raw).check(unknown)} <= {"GB212"}


def test_expressions_over_a_table_that_is_there(tmp_path: Path) -> None:
    """Its columns are in its log."""
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in {"id": "string", "at": "integer", "day": "date"}.items()
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    metadata = {"metaData": {"schemaString": schema, "partitionColumns": ["at"], "configuration": {}}}
    (log / f"{0:020}.json").write_text(json.dumps(metadata), encoding="utf-8")

    def told(**merge: Any) -> list[Any]:
        facts = Facts(streaming=False, columns=COLUMNS).after(AggregateOperator())
        made = target(tmp_path, merge={"on": ["id"], **merge})
        made.discover()
        return [f.message for f in made.check(facts)]

    def ordered(*columns: str, **raw: Any) -> list[Any]:
        made = target(tmp_path, table_operations={"z_order_by": columns}, **raw)
        made.discover()
        return [(f.code, f.severity) for f in made.check(Facts(streaming=True, columns=COLUMNS))]

    assert told(on="target.id = source.id and target.dey > '2026-01-01'", insert=["id"]) == [
        "there is no column `target.dey`"
    ]
    assert told(update={"nope": "source.at", "day": "target.day"}, insert=["id"]) == [
        "there is no column `nope`"
    ]
    assert told(unmatched_by_source={"when": "day", "update": {"at": "att"}}, insert=["id", "at"]) == [
        "`day` is a date, and a condition must be true or false",
        "there is no column `att`",
    ]
    assert ordered("day", "id", "nope") == [("GB210", "error")]
    assert ordered("at") == [("GB207", "error")]
    assert ordered("nope", path=None, table="somewhere") == [("GB210", "warning")]


def test_rows_of_an_aggregation_need_no_sequence() -> None:
    assert said(target(merge={"on": ["id"]})) == [("GB207", "warning", "merge")]
    assert said(target(merge={"on": ["id"]}), FACTS.after(AggregateOperator())) == []
    assert said(target(merge={"on": ["id"]}), Facts(streaming=True).after(AggregateOperator())) == []


@pytest.mark.parametrize(
    ("history", "found"),
    [
        (HISTORY, []),
        ({**HISTORY, "keys": ["idd"]}, [("GB210", "error", ("history", "keys"))]),
        ({**HISTORY, "keys": ["tags"]}, [("GB213", "error", ("history", "keys"))]),
        ({**HISTORY, "sequence_by": "tags"}, [("GB213", "error", ("history", "sequence_by"))]),
        ({**HISTORY, "track": ["twon"]}, [("GB210", "error", ("history", "track"))]),
        ({**HISTORY, "start": "city"}, [("GB205", "error", ("history", "start"))]),
        ({**HISTORY, "track": None}, [("GB213", "error", ("history", "track"))]),
        ({**HISTORY, "track": None, "leave_out": ["op", "tags"]}, []),
        (
            {**HISTORY, "track": None, "leave_out": ["op", "tags", "city"]},
            [("GB205", "error", ("history", "track"))],
        ),
        ({**HISTORY, "delete_when": "part"}, [("GB213", "error", ("history", "delete_when"))]),
        ({**HISTORY, "sequence_by": "struct(at, tags)"}, [("GB213", "error", ("history", "sequence_by"))]),
        ({**HISTORY, "sequence_by": "uuid()"}, [("GB212", "error", ("history", "sequence_by"))]),
        ({**HISTORY, "sequence_by": "1"}, [("GB213", "error", ("history", "sequence_by"))]),
    ],
)
def test_what_a_check_says_of_a_history(history: dict[str, Any], found: list[Any]) -> None:
    assert said(target(history=history)) == found


def test_what_an_edit_does() -> None:
    def effect(option: str, before: Any, **raw: Any) -> str | None:
        change = target(**raw).change(option, before)
        return None if change is None else change.effect

    merge = target(merge=MERGE).options.merge
    history = target(history=HISTORY).options.history
    assert merge is not None
    assert history is not None
    ran, was = merge.model_dump(mode="json"), history.model_dump(mode="json")
    assert effect("merge", {**ran, "delete_when": None}, merge=MERGE) == "from_now_on"
    assert effect("merge", {**ran, "on": ["id"]}, merge=MERGE) == "mixed"
    assert effect("merge", {**ran, "sequence_by": ["city"]}, merge=MERGE) == "mixed"
    assert effect("merge", None, merge=MERGE) == "mixed"
    assert effect("merge", ran) == "mixed"
    assert effect("history", {**was, "start": "since"}, history=HISTORY) == "refused"
    assert effect("history", {**was, "track": ["note"]}, history=HISTORY) == "mixed"
    assert effect("history", {**was, "delete_when": None}, history=HISTORY) == "from_now_on"
    assert effect("cluster_by", ["id"], cluster_by=["at"]) == "continues"


@pytest.mark.parametrize(
    ("expression", "meant"),
    [
        ("at", "target.`at`"),
        ("`a``b`.c", "target.`a``b`.`c`"),
        ("coalesce(at, city) + at", "coalesce(target.at, target.city) + target.at"),
        ("cast(`a``b` as int)", "cast(target.`a``b` as int)"),
        ("timestampadd(day, 1, at)", None),
        ("filter(at, x -> x > 1)", None),
        ("source.at", None),
        ("gone", None),
        ("at +", None),
    ],
)
def test_an_expression_of_a_row_is_written_for_one_of_the_table(expression: str, meant: str | None) -> None:
    assert qualified(expression, "target", ["at", "City", "a`b"]) == meant


def test_columns_that_expressions_name() -> None:
    assert columns_named("a.b") == ("a",)
    assert columns_named("coalesce(a, b.c)") == ("a", "b")
    assert columns_named("coalesce(a,") is None
    assert equal_columns(
        "(target.a = source.b) and source.c <=> TARGET.c and target.d > 1", "target", "source"
    ) == (
        ("a", "b"),
        ("c", "c"),
    )
    assert equal_columns("target.a = target.b or target.a = source.a", "target", "source") == ()
    assert equal_columns("target.a =", "target", "source") is None


# The rules, without Spark: what holds of them whatever the changes are


ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, "a", "b"]),
        st.just(1),
        st.integers(0, 5),
        st.sampled_from(["u", "u", "d"]),
        st.sampled_from([None, "x", "y"]),
        st.sampled_from([None, 1]),
    ),
    max_size=12,
)


@given(ROWS, st.randoms(use_true_random=False))
def test_what_becomes_of_changes_does_not_depend_on_their_order(rows: list[Any], random: Random) -> None:
    shuffled = random.sample(rows, len(rows))
    assert merging.upserted(rows) == merging.upserted(shuffled)
    assert merging.versions(rows) == merging.versions(shuffled)


@given(ROWS)
def test_versions_follow_each_other_and_the_last_ones_are_the_upserts(rows: list[Any]) -> None:
    found = merging.versions(rows)
    of_keys: dict[Any, list[Any]] = {}
    for version in sorted(found, key=lambda version: version[5]):
        of_keys.setdefault(version[:2], []).append(version)
    for history in of_keys.values():
        for earlier, later in pairwise(history):
            assert earlier[6] <= later[5]
            assert earlier[6] < later[5] or earlier[3] != later[3], "a change that touches nothing makes none"
    upserts = {(*row[:3], *row[4:]) for row in merging.upserted(rows)}
    assert {version[:5] for version in found if version[7]} == upserts


# With Spark


def rows(spark: SparkSession, folder: Path, columns: Sequence[str], name: str = "t") -> list[Any]:
    found = spark.read.format("delta").load(str(folder / name)).select(*columns).collect()
    return sorted(map(tuple, found), key=str)


def write(spark: SparkSession, made: DeltaTarget, batches: Sequence[Sequence[Any]], first: int = 0) -> None:
    """Write micro-batches."""
    context = WriteContext(node="t", pipeline="p", query_name="q", query="one")
    for number, batch in enumerate(batches, start=first):
        made.write_batch(spark.createDataFrame(list(batch), merging.SCHEMA), number, context)


def parts(found: Sequence[Any], count: int) -> list[Sequence[Any]]:
    size = -(-len(found) // count)
    return [found[start : start + size] for start in range(0, len(found), size)]


def drawn_changes(count: int, keys: int, within: int) -> list[Any]:
    random = Random(samples.seed())
    return merging.late(random, merging.changes(random, count, keys), within)


HOW = {"merge": MERGE, "history": HISTORY}
BOTH = pytest.mark.parametrize("way", HOW)


def made_of(way: str, found: Sequence[Any]) -> list[Any]:
    """What plain Python makes of changes."""
    return sorted(merging.upserted(found) if way == "merge" else merging.versions(found), key=str)


def columns_of(way: str) -> Sequence[str]:
    return merging.COLUMNS if way == "merge" else VERSIONS


@what_merges_do
@pytest.mark.spark
@pytest.mark.sample(1)
@pytest.mark.parametrize("partitioned", [False, True])
@BOTH
def test_tables_are_what_plain_python_makes_of_the_changes(
    spark: SparkSession, tmp_path: Path, way: str, partitioned: bool
) -> None:
    changes = drawn_changes(150, 12, 60)
    made = target(tmp_path, **{way: HOW[way]}, partition_by=["part"] if partitioned else [])
    batches = parts(changes, samples.examples(2, 5))
    write(spark, made, batches)
    # A run that begins anew doesn't know what the table has.
    context = WriteContext(node="t", pipeline="p", query_name="q", query="one")
    again = target(tmp_path, **{way: HOW[way]})
    again.write_batch(spark.createDataFrame(list(batches[-1]), merging.SCHEMA), len(batches) - 1, context)
    assert rows(spark, tmp_path, columns_of(way)) == made_of(way, changes)


@what_merges_do
@pytest.mark.sample(1)
@pytest.mark.spark
@BOTH
def test_micro_batches_of_one_row_and_of_all_rows_make_the_same_tables(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    changes = drawn_changes(samples.examples(4, 100), samples.examples(2, 6), 5)
    write(spark, target(tmp_path, path="one", **{way: HOW[way]}), [[change] for change in changes])
    write(spark, target(tmp_path, path="all", **{way: HOW[way]}), [changes])
    one, whole = (rows(spark, tmp_path, columns_of(way), name) for name in ("one", "all"))
    assert one == whole == made_of(way, changes)


@what_merges_do
@pytest.mark.sample(1)
@pytest.mark.spark
@pytest.mark.parametrize("kind", ["path", "table"])
@BOTH
def test_a_late_row_does_not_bring_back_what_was_deleted(
    spark: SparkSession, tmp_path: Path, way: str, kind: str
) -> None:
    raw = {kind: "t" if kind == "path" else "late_rows", way: HOW[way]}
    name = f"delta.`{tmp_path}/t`" if kind == "path" else "late_rows"
    gone = [change(5, "d"), change(5, "d", key=None)]
    late = [change(3), change(5, city="z"), change(4, key=None)]
    batches = [[change(1), change(1, key=None)], gone, late, [change(6)]]

    def found() -> list[Any]:
        return sorted(map(tuple, spark.table(name).select(*columns_of(way)).collect()), key=str)

    try:
        write(spark, make(DeltaTarget, raw, tmp_path), batches[:3])
        assert found() == made_of(way, [row for batch in batches[:3] for row in batch])
        again = make(DeltaTarget, raw, tmp_path)
        write(spark, again, batches[3:], first=3)
        assert found() == made_of(way, [row for batch in batches for row in batch])
        assert spark.table("late_rows_remembered").count() > 0 if kind == "table" else True
    finally:
        spark.sql("drop table if exists late_rows")
        spark.sql("drop table if exists late_rows_remembered")


@what_merges_do
@pytest.mark.sample(1)
@pytest.mark.spark
@BOTH
def test_a_crash_between_what_is_remembered_and_the_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    made = target(tmp_path, **{way: HOW[way]})
    batches = [[change(1), change(3)], [change(2), change(5, "d"), change(4, note=9), change(6, "d")]]
    write(spark, made, batches[:1])

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as crashing:
        crashing.setattr(Statements, "merge", crash)
        with pytest.raises(KeyboardInterrupt):
            write(spark, made, batches[1:], first=1)
    remembered = spark.read.format("delta").load(str(tmp_path / "t" / "_remembered"))
    assert remembered.count() > 0
    write(spark, made, batches[1:], first=1)
    assert rows(spark, tmp_path, columns_of(way)) == made_of(way, [row for batch in batches for row in batch])


ENVELOPES = [
    {"op": "c", "ts_ms": 1, "after": {"id": 1, "city": "Brno"}, "source": {"lsn": 1}},
    {"op": "c", "ts_ms": 1, "after": {"id": 2, "city": "Wien"}, "source": {"lsn": 2}},
    {"op": "r", "ts_ms": 1, "after": {"id": 3, "city": None}, "source": {"lsn": 3}},
    {
        "op": "u",
        "ts_ms": 2,
        "before": {"id": 1, "city": "Brno"},
        "after": {"id": 1, "city": "Nitra"},
        "source": {"lsn": 4},
    },
    {"op": "d", "ts_ms": 2, "before": {"id": 2, "city": "Wien"}, "after": None, "source": {"lsn": 5}},
    None,
]


@what_merges_do
@pytest.mark.spark
def test_changes_from_elsewhere_make_a_copy(spark: SparkSession, tmp_path: Path) -> None:
    """The change feed of a Delta table, and Debezium's messages of the same changes, tombstones among them."""
    table = f"delta.`{tmp_path}/original`"
    keeps = "tblproperties (delta.enableChangeDataFeed = true)"
    spark.sql(f"create table {table} (id bigint, city string) using delta {keeps}")
    spark.sql(f"insert into {table} values (1, 'Brno'), (2, 'Wien'), (3, null)")
    spark.sql(f"update {table} set city = 'Nitra' where id = 1")
    spark.sql(f"delete from {table} where id = 2")
    original = sorted(map(tuple, spark.table(table).collect()))
    assert original == [(1, "Nitra"), (3, None)]

    feed = make(DeltaSource, {"path": "original", "read_change_feed": True, "starting_version": 0}, tmp_path)
    changed = feed.read_stream(StreamReadContext(node="f", spark=spark, name="f"))
    changed = changed.where("_change_type <> 'update_preimage'").withColumnRenamed(
        "_commit_version", "version"
    )
    copied = {
        "on": ["id"],
        "sequence_by": "version",
        "delete_when": "_change_type = 'delete'",
        "leave_out": ["_change_type", "_commit_timestamp"],
    }
    run(target(tmp_path, path="copy", merge=copied), changed, tmp_path / "c1")
    assert rows(spark, tmp_path, ("id", "city"), "copy") == original

    messages = [(None if envelope is None else json.dumps(envelope),) for envelope in ENVELOPES]
    for number, some in enumerate((messages[:4], messages[4:])):
        spark.createDataFrame(some, "value string").coalesce(1).write.parquet(
            str(tmp_path / "in" / str(number))
        )
    captured = spark.readStream.name("m").schema("value string").option("maxFilesPerTrigger", 1)
    taken = make(FromDebezium, {"schema": "id bigint, city string", "source": "lsn bigint"})
    taken.input_names = ("m",)
    plans = taken.apply(captured.parquet(str(tmp_path / "in" / "*")))
    merged = {"on": ["id"], "sequence_by": ["ts_ms", "lsn"], "delete_when": "op = 'd'", "leave_out": ["op"]}
    run(target(tmp_path, path="captured", merge=merged), plans, tmp_path / "c2")
    assert rows(spark, tmp_path, ("id", "city"), "captured") == original


# What of the table is read

VALUES = {
    "tinyint": "1, -3",
    "bigint": "9223372036854775807, -9223372036854775808, 5",
    "decimal(10,2)": "1.5, -99999999.99",
    "date": "date'1582-10-14', date'2026-03-01', date'9999-12-31'",
    # Of these two of the hour that is there twice, the text is the same.
    "timestamp": "timestamp'2025-10-26 00:30:00.1Z', timestamp'2025-10-26 01:30:00.1Z', timestamp'0001-01-02 00:00:00Z'",
    "timestamp_ntz": "timestamp_ntz'2025-10-26 02:30:00', timestamp_ntz'0001-01-01 00:00:00'",
    "string": r"""'', "it's \\n", 'Košice'""",
    "double": "double('NaN'), -0.0d, 1e300d",
    "boolean": "true",
}


@what_merges_do
@pytest.mark.spark
def test_the_condition_on_the_table_holds_for_all_rows_that_come(spark: SparkSession) -> None:
    """By the values of partitions, and by the least and the greatest one, whatever the type, and nulls too."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Vienna")
    try:
        for kind, values in VALUES.items():
            rows = spark.sql(f"select explode(array({values}, null)) as k").selectExpr(
                f"cast(k as {kind}) as k"
            )
            less = rows.where("k is not null").limit(1)
            for partitions, clustered in ((("k",), ()), ((), ("K",))):
                table = Table(DeltaOptions(path="t"), {"k": kind}, "1", partitions, clustered)
                for some in (rows, less):
                    only = only_files(table, [("k", "k")], some)
                    held = some.alias("target").where(only or "true").count()
                    assert held == some.count(), (kind, only)
                unordered = kind in {"double", "boolean"}
                assert bool(only) is bool(partitions or not unordered), (kind, partitions)
                if only:
                    assert rows.alias("target").where(only).count() == 1, (kind, only)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@what_merges_do
@pytest.mark.spark
def test_keys_of_another_type_than_the_table_s_say_nothing(spark: SparkSession) -> None:
    table = Table(DeltaOptions(path="t"), {"k": "string", "n": "int"}, "1", ("k", "n"))
    rows = spark.sql("select 1 as k, 5000000000L as n")
    assert only_files(table, [("k", "k"), ("n", "n")], rows) == "(target.`n` in (5000000000))"
    many = spark.sql("select '1' as k, id as n from range(300)")
    assert only_files(table, [("k", "k"), ("n", "n")], many) == (
        "(target.`k` between '1' and '1') and (target.`n` between 0 and 299)"
    )


@what_merges_do
@pytest.mark.spark
@pytest.mark.sample(1)
@pytest.mark.matrix
@pytest.mark.parametrize(
    ("way", "layout"),
    [
        ("merge", {"cluster_by": ["ID"]}),
        ("merge", {"partition_by": ["part"]}),
        ("history", {"cluster_by": ["ID"]}),
    ],
)
def test_files_that_no_row_belongs_to_are_not_read(
    spark: SparkSession, tmp_path: Path, way: str, layout: dict[str, Any]
) -> None:
    """A file with other keys is gone meanwhile, and the table is as if it had been there."""
    path = tmp_path / "t"
    rest = {"merge": "", "history": ", 1, null, true"}[way]
    keys = {"merge": {"on": ["part", "id"]}, "history": {"keys": ["part", "id"]}}[way]
    made = target(tmp_path, **{way: {**keys, "sequence_by": "at"}}, **layout)
    context = WriteContext(node="t", pipeline="p", query_name="q", query="one")
    came = spark.sql("select id, int(id div 1000) as part, 2 as at, 'b' as city from range(10, 1290)")
    made.write_batch(came.where("false"), 0, context)
    files: set[Path] = set()
    for first in (0, 1000, 2000):
        before = set(path.rglob("*.parquet"))
        rows = f"select id, id div 1000, 1, 'a'{rest} from range({first}, {first + 300}, 1, 1)"
        spark.sql(f"insert into delta.`{path}` {rows}")
        files = set(path.rglob("*.parquet")) - before
    (gone,) = files
    gone.rename(tmp_path / "gone")
    made = target(tmp_path, **{way: {**keys, "sequence_by": "at"}})
    made.write_batch(came, 1, context)
    (tmp_path / "gone").rename(gone)
    table = spark.read.format("delta").load(str(path)).where("true" if way == "merge" else "is_current")
    found = table.groupBy("city").count().collect()
    assert {(row[0], row[1]) for row in found} == {("a", 10 + 10 + 300), ("b", 1280)}


@what_merges_do
@pytest.mark.sample(1)
@pytest.mark.spark
@merging.WAYS
def test_columns_that_are_updated_and_columns_that_are_inserted(
    spark: SparkSession, tmp_path: Path, merge: dict[str, Any], batches: Any, found: list[Any]
) -> None:
    write(spark, target(tmp_path, merge=merge), batches)
    columns = [
        name
        for name in merging.COLUMNS
        if isinstance(merge.get("insert"), str | None) or name in merge["insert"]
    ]
    assert rows(spark, tmp_path, columns) == found
    write(spark, target(tmp_path, merge=merge), batches[-1:], first=len(batches) - 1)
    assert rows(spark, tmp_path, columns) == found


@what_merges_do
@pytest.mark.spark
def test_rows_that_a_batch_lacks(spark: SparkSession, tmp_path: Path) -> None:
    made = target(
        tmp_path,
        merge={"on": ["id"], "unmatched_by_source": {"when": "target.at < 5", "update": {"note": "-1"}}},
    )
    write(spark, made, [[change(1), change(9, key="l"), change(1, key="m")], [change(2, key="m")], []])
    assert rows(spark, tmp_path, ("id", "at", "note")) == [("k", 1, -1), ("l", 9, 1), ("m", 2, 1)]
    gone = target(tmp_path, merge={"on": ["id"], "unmatched_by_source": "delete"})
    gone.write(spark.createDataFrame([change(3)], merging.SCHEMA), WriteContext(node="t"))
    assert rows(spark, tmp_path, ("id", "at")) == [("k", 3)]


@what_merges_do
@pytest.mark.spark
def test_rows_that_cannot_be_put_in_order_end_the_query(spark: SparkSession, tmp_path: Path) -> None:
    unordered = target(tmp_path, merge={"on": ["id"]})
    write(spark, unordered, [[change(1)]])
    with pytest.raises(GemError, match="several rows of a key") as caught:
        write(spark, unordered, [[change(2), change(3)]], first=1)
    assert caught.value.code == "GB515"
    for how in ({"merge": {"on": ["id"], "sequence_by": "at"}}, {"history": HISTORY}):
        with pytest.raises(GemError, match="no value in its sequence") as caught:
            write(spark, target(tmp_path, path=next(iter(how)), **how), [[change(None)]])  # type: ignore[arg-type]
        assert caught.value.code == "GB515"
    with pytest.raises(GemError, match="which query's micro-batch") as caught:
        unordered.write_batch(spark.createDataFrame([change(1)], merging.SCHEMA), 0, WriteContext(node="t"))
    assert caught.value.code == "GB508"
    mapped = spark.createDataFrame([change(1)], merging.SCHEMA).selectExpr("*", "map('a', at) as tags")
    for how in (
        {"merge": {"on": ["id"], "sequence_by": "tags"}},
        {"history": {**HISTORY, "sequence_by": "tags"}},
    ):
        with pytest.raises(GemError, match="which has no order"):
            target(tmp_path, path="mapped", **how).write(mapped, WriteContext(node="t"))  # type: ignore[arg-type]
    context = WriteContext(node="t", output_mode="complete")
    with pytest.raises(GemError, match="replaces all rows") as caught:
        unordered.write(spark.createDataFrame([change(1)], merging.SCHEMA), context)
    assert caught.value.code == "GB207"
    assert rows(spark, tmp_path, ("id", "at")) == [("k", 1)]


@what_merges_do
@pytest.mark.sample(1)
@pytest.mark.spark
@BOTH
def test_new_columns_need_to_be_asked_for(spark: SparkSession, tmp_path: Path, way: str) -> None:
    how = MERGE if way == "merge" else {**HISTORY, "track": None}
    write(spark, target(tmp_path, **{way: how}), [[change(1)]])
    context = WriteContext(node="t", query_name="q", query="two")
    wider = spark.createDataFrame([change(2, key="l")], merging.SCHEMA).selectExpr(
        "*", "named_struct('b', note) as more"
    )
    with pytest.raises(GemError, match="no column `more`") as caught:
        target(tmp_path, **{way: how}).write_batch(wider, 0, context)
    assert (caught.value.code, caught.value.option) == ("GB205", "merge_schema")
    target(tmp_path, merge_schema=True, **{way: how}).write_batch(wider, 0, context)
    deeper = wider.selectExpr("* except (at, more)", "3 as at", "named_struct('b', 2, 'c', 'x') as more")
    target(tmp_path, merge_schema=True, **{way: how}).write_batch(deeper, 1, context)
    found = rows(spark, tmp_path, ("id", "at", "more"))
    assert ("k", 1, None) in found
    assert ("l", 3, (2, "x")) in found


@what_merges_do
@pytest.mark.sample(1)
@pytest.mark.spark
@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("merge", "path"),
        ("merge into what is there", "path"),
        ("history", "path"),
        ("append", "path"),
        ("history", "table"),
        ("merge", "table"),
    ],
)
def test_rows_of_a_state_that_come_again(spark: SparkSession, tmp_path: Path, way: str, kind: str) -> None:
    """Spark 4.2 ends a query whose target doesn't look at all rows that come from state."""
    raw: dict[str, Any] = {
        "merge": {"merge": {"on": ["name"]}},
        "merge into what is there": {"merge": {"on": ["name"], "insert": "none"}},
        "history": {"history": {"keys": ["name"], "sequence_by": "count"}},
        "append": {"table_operations": {"every": 100}},
    }[way]
    mode = "append" if way == "append" else "update"
    expected = {
        "merge": [[("a", 1)], [("a", 2)]],
        "merge into what is there": [[], []],
        "history": [[("a", 1)], [("a", 1), ("a", 2)]],
        "append": [[("a", 1)], [("a", 1)]],
    }[way]
    files = tmp_path / "in"
    files.mkdir()
    df = spark.readStream.name("x").schema("name string").json(str(files))
    counted = df.groupBy("name").count()
    if way == "append":
        counted = df.selectExpr("name", "1L as count").dropDuplicates(["name"])
    if way == "history":
        raw["history"]["track"] = ["doubled"]
        counted = counted.selectExpr("*", "count * 2 as doubled")
    raw[kind] = "t" if kind == "path" else "counted_rows"
    name = f"delta.`{tmp_path}/t`" if kind == "path" else "counted_rows"

    def once() -> list[Any]:
        run(make(DeltaTarget, raw, tmp_path), counted, tmp_path / "c", mode)
        return sorted(map(tuple, spark.table(name).select("name", "count").collect()))

    try:
        for found in expected:
            spark.createDataFrame([("a",)], "name string").coalesce(1).write.mode("append").json(str(files))
            assert once() == found
        before = spark.sql(f"describe history {name}").count()
        forget_last_commit(tmp_path / "c")
        assert once() == expected[-1]
        assert spark.sql(f"describe history {name}").count() == before
    finally:
        spark.sql("drop table if exists counted_rows")
        spark.sql("drop table if exists counted_rows_remembered")


@what_merges_do
@pytest.mark.spark
@pytest.mark.sample(1)
@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["path", "table"])
def test_a_table_keeps_the_columns_that_it_is_clustered_by(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    raw = {kind: "t" if kind == "path" else "clustered_rows", "cluster_by": ["AT", "id"]}
    name = f"delta.`{tmp_path}/t`" if kind == "path" else "clustered_rows"
    rows = spark.createDataFrame([change(1)], merging.SCHEMA)
    rows.write.parquet(str(tmp_path / "in"))
    reader = StreamReadContext(node="x", spark=spark, name="x").reader
    stream = reader.schema(merging.SCHEMA).parquet(str(tmp_path / "in"))

    def made(**more: Any) -> DeltaTarget:
        found: DeltaTarget = make(DeltaTarget, {**raw, **more}, tmp_path)
        return found

    def told() -> tuple[Any, int]:
        detail = spark.sql(f"describe detail {name}").first()
        assert detail is not None
        return detail["clusteringColumns"], spark.table(name).count()

    try:
        run(made(), stream, tmp_path / "c")
        assert told() == (["at", "id"], 1)
        made(save_mode="ignore").write(rows, WriteContext(node="t"))
        made().write(rows, WriteContext(node="t"))
        assert told() == (["at", "id"], 2)
        made(table_operations={"every": 1}).write(rows, WriteContext(node="t", output_mode="complete"))
        assert told() == (["at", "id"], 1)
        spark.sql("drop table if exists clustered_rows")
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        made(save_mode="error").write(rows, WriteContext(node="t"))
        with pytest.raises(GemError, match="exists already"):
            made(save_mode="error").write(rows, WriteContext(node="t"))
        assert told() == (["at", "id"], 1)
    finally:
        spark.sql("drop table if exists clustered_rows")


@what_merges_do
@pytest.mark.spark
def test_an_operation_that_fails_says_which_and_is_done_once_it_can_be(
    spark: SparkSession, tmp_path: Path
) -> None:
    def batch(z_order_by: str) -> None:
        made = target(tmp_path, table_operations={"every": 1, "z_order_by": [z_order_by]})
        write(spark, made, [[change(1)]])

    for _ in range(2):
        with pytest.raises(GemError, match=r"`table_operations`: `optimize .* zorder by .*nope") as caught:
            batch("nope")
        assert (caught.value.code, caught.value.option) == ("GB508", ("table_operations", "z_order_by"))
    batch("id")
    assert rows(spark, tmp_path, ["at"]) == [(1,)]


@what_merges_do
@pytest.mark.sample(1)
@pytest.mark.spark
@pytest.mark.parametrize("way", ["append", "merge", "history"])
def test_small_files_become_larger_ones_now_and_then(spark: SparkSession, tmp_path: Path, way: str) -> None:
    how = {way: HOW[way]} if way in HOW else {}
    operations = {"every": 2, "z_order_by": ["id"], "vacuum": True}
    files = tmp_path / "in"
    for number in range(2):
        row = spark.createDataFrame([change(number, key=str(number))], merging.SCHEMA)
        row.coalesce(1).write.mode("append").parquet(str(files))
    df = spark.readStream.name("x").schema(merging.SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(files))
    made = target(tmp_path, table_operations=operations, **how)
    run(made, df, tmp_path / "checkpoint")
    assert rows(spark, tmp_path, ("id", "at")) == [(str(number), number) for number in range(2)]
    history = spark.sql(f"describe history delta.`{tmp_path}/t`").collect()
    done = [entry["operation"] for entry in reversed(history)]
    assert done.count("OPTIMIZE") == 1
    assert done[-1] == "VACUUM END"
    forget_last_commit(tmp_path / "checkpoint")
    run(target(tmp_path, table_operations=operations, **how), df, tmp_path / "checkpoint")
    assert len(rows(spark, tmp_path, ("id",))) == 2
