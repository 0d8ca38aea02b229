"""Rejected rows that come back in: each once, through kills, and with a new reason where they are rejected again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.loader import load_file
from gem_bundle.replay.api import Replayed, Wanted, replay
from gem_bundle.replay.counts import OfNode, counts
from gem_bundle.run.options import RunOptions
from tests.integration.kill_series import kill_at
from tests.integration.pipelines import add_rows, run, write_pipeline
from tests.integration.test_groups import (
    MANY,
    ROWS,
    SHOP,
    add,
    assert_each_is_good_or_rejected,
    ids,
    table,
    write_texts,
)
from tests.samples import a_killed_program, drawn, from_another_place, rows_that_come_back

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# Of 20 lines two are broken, and of the others three are unpaid; paid is now what is at least -1.
MENDED = SHOP.replace("paid: amount > 0", "paid: amount >= -1")
NEVER = SHOP.replace("paid: amount > 0", "never: amount > 1000")


def again(file: Path, node: str, place: Path, **wanted: Any) -> Replayed:
    return replay(
        lambda options: load_file(file, options), RunOptions(quiet=True), Wanted(node, str(place), **wanted)
    )


@rows_that_come_back
@pytest.mark.matrix
def test_each_row_comes_back_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_pipeline(tmp_path, SHOP)
    add(tmp_path, "a.txt", range(20))
    assert run(file, available_now=True).ok
    unpaid, orders = tmp_path / "out/unpaid", tmp_path / "out/orders"
    before = ids(spark, orders)
    assert sorted(json.loads(row.row)["id"] for row in table(spark, unpaid)) == [0, 7, 17]

    # Rejected again: they stay, with the new reason.
    write_pipeline(tmp_path, NEVER)
    assert again(file, "plausible", unpaid, where="row like '%17%'") == Replayed(
        "plausible", 1, {"orders": 0, "most": 0, "unpaid": 1}
    )
    told = [(json.loads(row.row)["id"], row.reasons[0].name) for row in table(spark, unpaid)]
    assert sorted(told) == [(0, "paid"), (7, "paid"), (17, "never"), (17, "paid")]

    write_pipeline(tmp_path, MENDED)
    assert again(file, "plausible", unpaid, dry_run=True).rows == 3
    assert again(file, "plausible", unpaid, limit=1).rows == 1

    # Killed between one target and the next: the same rows once more, and no others.
    from gem_delta.target import DeltaTarget

    write: Callable[..., None] = DeltaTarget.write_batch

    def dying(self: DeltaTarget, df: Any, batch_id: int, context: Any) -> None:
        write(self, df, batch_id, context)
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(DeltaTarget, "write_batch", dying)
        with pytest.raises(KeyboardInterrupt):
            again(file, "plausible", unpaid)
    done = again(file, "plausible", unpaid)
    assert (done.rows, done.resumed, done.written["orders"]) == (2, 2, 2)
    assert again(file, "plausible", unpaid) == Replayed("plausible", 0)
    assert ids(spark, orders) == sorted([*before, 0, 7, 17])

    found = counts(lambda options: load_file(file, options), RunOptions(quiet=True), str(unpaid))
    reasons = found.rejected
    alone = counts(None, RunOptions(quiet=True), str(unpaid))
    assert [replace(reason, replayed=None) for reason in reasons] == list(alone.rejected), (
        "without a pipeline"
    )
    of_all = counts(lambda options: load_file(file, options), RunOptions(quiet=True))
    assert tuple(reason for reason in of_all.rejected if reason.node == "plausible") == reasons
    assert [(of.node, of.rows, of.several, of.replayed) for of in of_all.nodes] == [
        ("parsed", 2, 0, 0),
        ("plausible", 4, 0, 4),
    ]
    assert [(r.node, r.reason, r.rows, r.replayed) for r in reasons] == [
        ("plausible", "paid", 3, 3),
        ("plausible", "never", 1, 1),
    ]
    assert all(json.loads(sample)["id"] in {0, 7, 17} for r in reasons for sample in r.samples)


FILES = """
pipeline: kept
sources:
  orders: {gem: file, options: {path: in, format: json, schema: "id int, at timestamp, amount double"}}
transforms:
  plausible: {gem: expect, input: orders, options: {rules: {paid: amount > 0}}}
targets:
  good: {gem: delta, input: plausible, options: {path: out/good}}
  bad: {gem: file, input: plausible.rejected, options: {path: out/json, format: json}}
  worse: {gem: file, input: plausible.rejected, options: {path: out/parquet, format: parquet}}
"""


@from_another_place
def test_rows_come_back_from_files(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, FILES)
    rows = [{"id": n, "at": "2026-01-05T09:00:00.123456Z", "amount": n % 4 - 1} for n in range(8)]
    add_rows(tmp_path / "in", "a.json", rows)
    assert run(file, available_now=True).ok
    # Rows that are rejected again have to go where a batch can put them.
    bad = "{gem: delta, input: plausible.rejected, options: {path: out/bad}}"
    lines = [
        line for line in FILES.replace("> 0", ">= 0").splitlines() if line[:6] not in {"  bad:", "  wors"}
    ]
    write_pipeline(tmp_path, "\n".join([*lines, f"  bad: {bad}"]))
    good = tmp_path / "out/good"
    assert ids(spark, good) == [2, 3, 6, 7]

    json_, parquet = tmp_path / "out/json", tmp_path / "out/parquet"
    written = {"good": 1, "bad": 0}
    assert again(file, "plausible", json_, where="row like '%:1,%'") == Replayed("plausible", 1, written)
    assert again(file, "plausible", parquet, where="row like '%:5,%'") == Replayed("plausible", 1, written)
    assert again(file, "plausible", json_, where="row like '%:1,%'").rows == 0
    rest = again(file, "plausible", json_, where="row not like '%:5,%'")
    assert rest == Replayed("plausible", 2, {"good": 0, "bad": 2})
    assert again(file, "plausible", json_, where="row not like '%:5,%'").rows == 0

    assert ids(spark, good) == [1, 2, 3, 5, 6, 7]
    assert {row.at.microsecond for row in table(spark, good)} == {123456}
    assert sorted(json.loads(row.row)["id"] for row in table(spark, tmp_path / "out/bad")) == [0, 4]


def test_a_row_is_counted_under_each_of_its_reasons(spark: SparkSession, tmp_path: Path) -> None:
    rules = "paid: amount > 0, known: id < 9"
    file = write_pipeline(tmp_path, FILES.replace("paid: amount > 0", rules))
    rows = [{"id": 8, "amount": -1}, {"id": 9, "amount": 0}, {"id": 9, "amount": 0}, {"id": 10, "amount": 5}]
    add_rows(tmp_path / "in", "a.json", rows)
    assert run(file, available_now=True).ok
    found = counts(None, RunOptions(quiet=True), str(tmp_path / "out/parquet"))
    assert [(r.reason, r.rows, len(r.samples)) for r in found.rejected] == [("known", 3, 3), ("paid", 3, 3)]
    assert found.nodes == (OfNode("plausible", 4, 2, None),)


SPLIT = """
pipeline: apart
sources:
  lines: {gem: file, options: {path: in, format: json, schema: "id int, code string, words string"}}
  table: {gem: delta, options: {path: table}}
transforms:
  parts: {gem: with_columns, input: lines, options: {columns: {parts: "split(words, ' ')"}}}
  plausible: {gem: expect, input: parts, options: {rules: {large: id > 2}}}
  whole: {gem: expect, input: table, options: {rules: {large: id > 2}}}
targets:
  good: {gem: delta, input: plausible, options: {path: out/good}}
  bad: {gem: delta, input: plausible.rejected, options: {path: out/bad}}
  more: {gem: delta, input: whole, options: {path: out/more}}
  less: {gem: delta, input: whole.rejected, options: {path: out/less}}
"""


@rows_that_come_back
def test_no_source_is_needed_whose_columns_are_known_and_a_renamed_node_finds_its_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_pipeline(tmp_path, SPLIT)
    add_rows(tmp_path / "in", "a.json", [{"id": n, "code": "abc", "words": f"{n} b"} for n in range(5)])
    source = spark.read.schema("id int, code string, words string").json(str(tmp_path / "in"))
    source.write.format("delta").save(str(tmp_path / "table"))
    assert run(file, available_now=True).ok
    mended = SPLIT.replace("id > 2", "id > 0")
    write_pipeline(tmp_path, mended)
    assert again(file, "plausible", tmp_path / "out/bad", where="row like '%:1,%'").rows == 1

    # Both sources are gone; of the table nothing else tells the columns.
    (tmp_path / "in").rename(tmp_path / "gone")
    (tmp_path / "table").rename(tmp_path / "moved")
    renamed = mended.replace("  plausible:", "  sane:").replace("input: plausible", "input: sane")
    write_pipeline(tmp_path, renamed.replace("{large: id > 0}}", "{large: id > 0}}, was: plausible", 1))
    done = again(file, "sane", tmp_path / "out/bad")
    assert done == Replayed("sane", 2, {"good": 1, "bad": 1}), "not the one that has come back in before"
    assert ids(spark, tmp_path / "out/good") == [1, 2, 3, 4]
    assert {tuple(row.parts) for row in table(spark, tmp_path / "out/good")} == {
        (str(n), "b") for n in range(1, 5)
    }
    # The second time it is only Spark that finds out, as with places that no preflight can look at.
    for looked in (True, False):
        if not looked:
            monkeypatch.setattr("gem_delta.source.DeltaSource.connect", lambda _: ())
        with pytest.raises(PipelineError) as failed:
            again(file, "whole", tmp_path / "out/less")
        assert [(found.code, found.node) for found in failed.value.diagnostics] == [("GB505", "table")]
    (tmp_path / "moved").rename(tmp_path / "table")
    done = again(file, "whole", tmp_path / "out/less")
    assert done == Replayed("whole", 3, {"more": 2, "less": 1}), "what failed had not begun"


# A replay writes down what it takes, writes to each of three tables, and writes down that it is done.
WRITES = [
    (where, when, number)
    for where, calls in (
        ("gem_bundle.replay.journal:Journal.begin", 1),
        ("gem_bundle.replay.journal:Journal._keep", 2),
        ("gem_delta.target:DeltaTarget.write_batch", 3),
    )
    for number in range(1, calls + 1)
    for when in ("before", "behind")
]


@a_killed_program
@pytest.mark.programs
def test_a_replay_that_is_killed_loses_and_doubles_nothing(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, SHOP)
    add(tmp_path, "a.txt", range(20 * len(WRITES)))
    assert run(file, available_now=True).ok
    unpaid, orders = tmp_path / "out/unpaid", tmp_path / "out/orders"
    good, odd = ids(spark, orders), []
    # Of each two rows one is let in now, and one is rejected again.
    write_pipeline(tmp_path, SHOP.replace("paid: amount > 0", "odd: id % 20 != 17"))
    for moment in drawn(WRITES, 1, about="writes of a replay"):
        number = 20 * WRITES.index(moment) + 7
        where = f"reasons[0].name = 'paid' and row rlike '\"id\":({number}|{number + 10}),'"
        kill_at(*moment, "replay", file, "plausible", "--from", unpaid, "--where", where, "--quiet")

        done = again(file, "plausible", unpaid, where=where)

        assert done.rows == (0 if moment == WRITES[5] else 2), moment  # it had been written down as done
        good, odd = [*good, number], [*odd, number + 10]
        assert ids(spark, orders) == sorted(good), moment
        rejected = [row for row in table(spark, unpaid) if row.reasons[0].name == "odd"]
        assert sorted(json.loads(row.row)["id"] for row in rejected) == odd, moment
        assert again(file, "plausible", unpaid, where=where).rows == 0, moment


LARGE = "{gem: filter, input: plausible, options: {condition: amount >= 50}}"
TO_LARGE = "{gem: delta, input: large, group: all, options: {path: out/large}}"


@pytest.mark.parametrize(
    ("edit", "node", "code", "says"),
    [
        ({}, "parsedd", "GB108", "no node `parsedd`"),
        ({"\npipeline": "\nmode: batch\npipeline"}, "parsed", "GB460", "the pipeline is a batch"),
        ({"input: parsed.rejected": "input: plausible.rejected"}, "parsed", "GB460", "nobody takes those"),
        (
            {
                "format: text,": "format: json, schema: value string, rejects: true,",
                "input: plausible.rejected": "input: lines.rejected",
            },
            "lines",
            "GB460",
            "`lines` rejected can't come back in: it has no input",
        ),
        (
            {TO_LARGE: "{gem: file, input: large, options: {format: json, path: out/large}}"},
            "parsed",
            "GB460",
            "target `most` (`file`) takes rows of its own query only",
        ),
        (
            {
                LARGE: "{gem: deduplicate, input: plausible, options: {columns: [id]}}",
                TO_LARGE: TO_LARGE.replace("group: all, ", ""),
            },
            "parsed",
            "GB460",
            "something on the way to target `most` keeps state",
        ),
    ],
)
def test_what_can_not_come_back_in(
    edit: dict[str, str], node: str, code: str, says: str, tmp_path: Path
) -> None:
    text = SHOP
    for old, new in edit.items():
        assert old in text
        text = text.replace(old, new)
    file = write_pipeline(tmp_path, text)
    with pytest.raises(PipelineError) as refused:
        again(file, node, tmp_path / "out")
    assert code in {d.code for d in refused.value.diagnostics}
    assert any(says in d.message for d in refused.value.diagnostics)


def test_a_place_without_rejected_rows(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, SHOP)
    add(tmp_path, "a.txt", range(3))
    spark.range(3).write.format("delta").save(str(tmp_path / "numbers"))
    with pytest.raises(PipelineError, match="there is no table"):
        counts(None, RunOptions(quiet=True), str(tmp_path / "nowhere"))
    for place, says in (("nowhere", "there is no table"), ("numbers", "aren't rejected rows")):
        with pytest.raises(PipelineError) as refused:
            again(file, "parsed", tmp_path / place)
        (found,) = refused.value.diagnostics
        assert found.code == "GB461"
        assert says in found.message


# How each kind of broken row is mended: in its text, or by the pipeline that no longer minds it. The eighth is
# the name that is there twice, which Spark reads, so there is nothing to mend.
MENDED_TEXTS = {
    0: """concat(text, 'unt": 1.25}')""",
    1: """concat('{"id": ', regexp_extract(text, 'id": "([0-9]+)', 1), ', "amount": 2.5}')""",
    5: """'{"id": -5, "amount": 1}'""",
    6: """'{"id": -6, "amount": 1}'""",
    8: """replace(text, '99999999999', '9')""",
    9: """'{"id": -9, "amount": 1}'""",
}
MENDED_MANY = (
    MANY.replace("id bigint not null", "id bigint")  # 2
    .replace("paid: amount > 0", "paid: amount >= -1")  # 3
    .replace("max: 80", "max: 81")  # 4
    .replace("duplicate_names: reject", "duplicate_names: last")  # 7
)
# The kind of a row by what it says, as somebody who mends it finds out.
KIND_OF = """case
  when text like '%"amo' then 0
  when text like '%"much"%' then 1
  when not is_valid_utf8(text) then 5
  when text like '[[[%' then 6
  when text like '%99999999999%' then 8
  when text = '' then 9
end"""


def mended(kind: str) -> str:
    """A text, mended where its kind is."""
    cases = " ".join(f"when {number} then {text}" for number, (text) in MENDED_TEXTS.items())
    return f"case {kind} {cases} else text end"


@rows_that_come_back
def test_a_replay_is_a_run_over_mended_input(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, MANY)
    write_texts(spark, tmp_path)
    assert run(file, available_now=True).ok
    assert_each_is_good_or_rejected(spark, tmp_path)

    # Somebody mends the data, in a table of rejected rows with the same columns, and the pipeline.
    unread = spark.read.format("delta").load(str(tmp_path / "out/unread"))
    value = "cast(unbase64(get_json_object(row, '$.value')) as string)"
    texts = unread.selectExpr("*", f"{value} as text").selectExpr("*", f"{KIND_OF} as kind")
    row = f"concat('{{\"value\":\"', base64(cast({mended('kind')} as binary)), '\"}}') as row"
    others = [name for name in unread.columns if name != "row"]
    texts.selectExpr(*others, row).write.format("delta").save(str(tmp_path / "mended"))
    write_pipeline(tmp_path, MENDED_MANY)
    first = again(file, "parsed", tmp_path / "mended")
    second = again(file, "plausible", tmp_path / "out/implausible")
    each = ROWS // 1000
    assert (first.rows, first.written) == (8 * each, {"good": 8 * each, "unread": 0, "implausible": 0})
    assert (second.rows, second.written) == (2 * each, {"good": 2 * each, "implausible": 0})

    (tmp_path / "over").mkdir()
    written = spark.read.parquet(str(tmp_path / "texts")).selectExpr("cast(value as string) as text")
    whole = written.selectExpr("text", f"{KIND_OF} as kind").selectExpr(
        f"cast({mended('kind')} as binary) as value"
    )
    whole.write.parquet(str(tmp_path / "over/texts"))
    over = write_pipeline(tmp_path / "over", MENDED_MANY)
    assert run(over, available_now=True).ok
    good = [
        spark.read.format("delta").load(str(place / "out/good")) for place in (tmp_path, tmp_path / "over")
    ]
    assert good[0].count() == good[1].count() == ROWS
    assert good[0].exceptAll(good[1]).collect() == []
    for name in ("unread", "implausible"):
        assert spark.read.format("delta").load(str(tmp_path / "over/out" / name)).count() == 0
