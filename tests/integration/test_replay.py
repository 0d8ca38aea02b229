"""Rejected rows that come back in: each once, through kills, and with a new reason where they are rejected again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.loader import load_file
from gem_bundle.replay.api import Replayed, Wanted, replay
from gem_bundle.replay.counts import counts
from gem_bundle.run.options import RunOptions
from tests.integration.pipelines import run, write_pipeline
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

    reasons = counts(lambda options: load_file(file, options), RunOptions(quiet=True), str(unpaid))
    assert counts(None, RunOptions(quiet=True), str(unpaid)) == reasons, "no pipeline is needed"
    of_all = counts(lambda options: load_file(file, options), RunOptions(quiet=True))
    assert [found for found in of_all if found.node == "plausible"] == reasons
    assert {found.node for found in of_all} == {"parsed", "plausible"}
    assert [(r.node, r.reason, r.rows) for r in reasons] == [
        ("plausible", "paid", 3),
        ("plausible", "never", 1),
    ]
    assert all(json.loads(sample)["id"] in {0, 7, 17} for r in reasons for sample in r.samples)


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
    assert (first.rows, first.written) == (7 * each, {"good": 7 * each, "unread": 0, "implausible": 0})
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
