"""Rules of `expect` about several rows: values that are there once, in a micro-batch or within the watermark."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import count
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from gem_bundle import Column, Pipeline, PipelineError
from gem_bundle.pipeline.groups import UNDIVIDED, groups_of
from gem_bundle.run.engine import Engine
from gem_filter.expect import Expect
from tests.checked import plan_of
from tests.core.streams import check
from tests.gems.draining import forget_last_commit
from tests.gems.transforms import findings, made, stream_of
from tests.integration.kill_series import kill_often
from tests.integration.pipelines import run, write_pipeline
from tests.samples import a_killed_program, examples, seed, some_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

unique_rows = some_of("unique rows", 1)

ROWS = (Column("at", "timestamp", "10 minutes"), Column("page", "string"), Column("amount", "double"))


@pytest.mark.parametrize(
    ("rule", "code", "said"),
    [
        ({"column": "page"}, None, ""),
        ({"column": "lower(page)", "action": "fail"}, None, ""),
        ({"column": "gone"}, "GB210", "gone"),
        ({"column": "rand()"}, "GB212", "rand"),
        ({"column": "tags"}, "GB213", "can't tell two of them equal"),
        ({"column": "tags", "unique": "within_watermark"}, "GB213", "can't tell two of them equal"),
        ({"column": "said"}, None, ""),
        ({"column": "said", "unique": "within_watermark"}, "GB213", "by which Spark keeps no state"),
        ({"column": "page", "action": "warn"}, None, ""),
    ],
)
def test_what_can_be_unique(rule: dict[str, Any], code: str | None, said: str) -> None:
    rule = {"unique": True, **rule}
    inputs = stream_of(
        *ROWS, Column("tags", "map<string,string>"), Column("said", "string collate utf8_lcase")
    )
    found = findings(Expect, inputs, rules={"once": rule})
    if code is None:
        assert found == []
    else:
        ((found_code, message),) = [(finding.code, finding.message) for finding in found]
        assert said in message
        assert code == found_code
    assert made(Expect, rules={"once": rule}).compares_rows()
    assert not made(Expect, rules={"paid": "amount > 0"}).compares_rows()


ONCE = """
transforms:
  once: {gem: expect, input: ticks, options: {rules: {once: {column: value, unique: true}}}}
targets:
  good: {gem: noop, input: once, GOOD}
  bad: {gem: noop, input: once.rejected, BAD}
"""


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("group: all", "", []),
        ("", "", ["`good` and `bad` are in no group"]),
        ("group: one", "group: other", ["`one` and `other` are several groups"]),
    ],
)
def test_unique_needs_one_group(good: str, bad: str, said: list[str]) -> None:
    text = ONCE.replace(", GOOD", f", {good}" if good else "").replace(", BAD", f", {bad}" if bad else "")
    found = [d for d in check(text).diagnostics if d.severity == "error"]
    assert [d.code for d in found] == ["GB387"] * len(said)
    assert all(words in d.message for words, d in zip(said, found, strict=True))


WITHIN = """
transforms:
  timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}
  once: {gem: expect, input: timely, options: {rules: {once: {column: value, unique: within_watermark}}}}
  few: {gem: select, input: once, options: {columns: [value]}}
  twice: {gem: expect, input: once, options: {rules: {twice: {column: value + 1, unique: within_watermark}}}}
targets:
"""


def _target(name: str, input_: str, more: str = "group: one") -> str:
    return f"  {name}: {{gem: noop, input: {input_}, {more}}}\n"


GOOD_AND_BAD = _target("good", "few") + _target("bad", "once.rejected")
LEFT = "lies between `timely` and this target, keeps state over micro-batches (`deduplicate`)"


@pytest.mark.parametrize(
    ("targets", "old", "new", "said"),
    [
        (GOOD_AND_BAD, "", "", []),
        (GOOD_AND_BAD, "group: one", "group: one, output_mode: update", []),
        (GOOD_AND_BAD, "input: timely", "input: ticks", [("GB327", "`within_watermark` needs a watermark")]),
        (GOOD_AND_BAD, "group: one", "output_mode: append", [("GB387", "are in no group")]),
        # Where its rows aren't all that there is, it lies behind the fork.
        (GOOD_AND_BAD + _target("every", "timely"), "", "", [("GB382", LEFT), ("GB382", LEFT)]),
        (_target("good", "twice"), "", "", [("GB382", "`twice`, which lies between `once` and this target")]),
    ],
)
def test_what_is_remembered_lies_before_the_fork(
    targets: str, old: str, new: str, said: list[tuple[str, str]]
) -> None:
    text = WITHIN + targets
    assert old in text
    checked = check(text.replace(old, new) if old else text)
    found = [d for d in checked.diagnostics if d.severity == "error"]
    assert [(d.code, words in d.message) for d, (_, words) in zip(found, said, strict=True)] == [
        (code, True) for code, _ in said
    ]
    if not said:
        assert checked.plan is not None
        assert [group.fork for group in groups_of(checked.plan)] == [("once", UNDIVIDED)]
        operators = checked.plan.facts["once.rejected"].all_operators()
        assert [o.kind for o in operators if o.stateful] == ["deduplicate"]


def test_what_it_remembers_is_pointed_at() -> None:
    text = WITHIN.replace("input: timely", "input: ticks") + GOOD_AND_BAD
    (found,) = (d for d in check(text).diagnostics if d.severity == "error")
    assert found.path == ("transforms", "once", "options", "rules", "once", "unique")


@unique_rows
@pytest.mark.spark
def test_one_of_each_unique_value_is_let_through(spark: SparkSession) -> None:
    drawn = Random(seed())
    rows = [[drawn.randint(1, 9), drawn.choice(["x", "y", None]), drawn.randint(-1, 5)] for _ in range(60)]
    rules = {
        "once": {"column": "id", "unique": True},
        "pair": {"column": "struct(id, amount)", "unique": True},
        "named": {"column": "page", "unique": "within_watermark", "null": "pass", "action": "reject"},
        "paid": "amount > 0",
    }
    for chosen in (["once"], ["once", "paid"], ["pair"], ["named"], list(rules)):
        pipeline = (
            Pipeline("shop", mode="batch")
            .source("clicks", "rows", {"schema": "id int, page string, amount int", "rows": rows})
            .transform("plausible", "expect", "clicks", {"rules": {name: rules[name] for name in chosen}})
            .target("bad", "noop", "plausible.rejected")
            .target("good", "noop", "plausible")
        )
        good = [list(row) for row in pipeline.dataframe("plausible", spark).collect()]
        rejected = pipeline.dataframe("plausible.rejected", spark).collect()
        bad = [list(json.loads(row.row).values()) for row in rejected]
        assert Counter(map(str, [*good, *bad])) == Counter(map(str, rows)), chosen
        if chosen == ["once"]:
            assert sorted(row[0] for row in good) == sorted({row[0] for row in rows})
        if chosen == ["once", "paid"]:
            # One that can't be paid is no reason to reject the others of its id.
            assert sorted(row[0] for row in good) == sorted({row[0] for row in rows if row[2] > 0})
        if chosen == ["named"]:
            assert Counter(row[1] for row in good) == {
                page: 1 if page else sum(row[1] is None for row in rows) for page in {row[1] for row in rows}
            }
        told = {why.words for row in rejected for why in row.reasons}
        assert told <= {
            "`id is unique` is false",
            "`struct(id, amount) is unique` is false",
            "`page is unique within the watermark` is false",
            "`amount > 0` is false",
        }


UNIQUE = """
pipeline: shop
sources:
  orders: {gem: file, options: {path: orders, format: json, schema: "id int, amount int", max_files_per_trigger: 1}}
transforms:
  once: {gem: expect, input: orders, options: {rules: {once: {column: id, unique: true}}}}
  few: {gem: select, input: once, options: {columns: [id, amount]}}
targets:
  good: {gem: delta, input: few, group: all, options: {path: good}}
  bad: {gem: delta, input: once.rejected, options: {path: bad}}
"""


@unique_rows
@pytest.mark.spark
def test_unique_within_each_micro_batch_of_a_group(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, UNIQUE)
    (tmp_path / "orders").mkdir()
    for number, pairs in enumerate([[(1, 1), (1, 2), (2, 1), (1, 3)], [(1, 7), (3, 1), (3, 1), (None, 1)]]):
        lines = "".join(json.dumps({"id": i, "amount": amount}) + "\n" for i, amount in pairs)
        (tmp_path / "orders" / f"{number}.json").write_text(lines)

    plan = plan_of(file)
    with TemporaryDirectory() as folder:
        answers = list(Engine(spark, folder).ask(plan))
    assert [(a.target, a.streaming, a.error) for a in answers] == [("good", True, None), ("bad", True, None)]
    with pytest.raises(PipelineError, match="compares each row with the others"):
        Pipeline.load(file).dataframe("once", spark)

    assert run(file, available_now=True).ok
    forget_last_commit(tmp_path / "checkpoints/shop/all")
    report = run(file, available_now=True)
    assert report.ok

    good = spark.read.format("delta").load(str(tmp_path / "good")).collect()
    assert sorted(map(tuple, good)) == [(1, 1), (1, 7), (2, 1), (3, 1)]
    bad = spark.read.format("delta").load(str(tmp_path / "bad")).collect()
    rows = sorted((str(json.loads(row.row)["id"]), json.loads(row.row)["amount"]) for row in bad)
    assert rows == [("1", 2), ("1", 3), ("3", 1), ("None", 1)]


def _joined(rules: dict[str, Any]) -> Pipeline:
    """Rows with two columns `page`, and rules for them."""
    pages = {"schema": "page string, team string", "rows": [["home", "web"], ["cart", "shop"]]}
    return (
        Pipeline("shop", mode="batch")
        .source(
            "views",
            "rows",
            {"schema": "id int, page string", "rows": [[1, "home"], [2, "home"], [3, "cart"]]},
        )
        .source("pages", "rows", pages)
        .transform("both", "join", {"v": "views", "p": "pages"}, {"condition": "v.page = p.page"})
        .transform("once", "expect", "both", {"rules": rules})
        .target("good", "noop", "once")
        .target("bad", "noop", "once.rejected")
    )


@pytest.mark.spark
def test_columns_of_one_name_are_told_apart(spark: SparkSession) -> None:
    rules: dict[str, dict[str, Any]] = {
        "once": {"column": "p.page", "unique": True},
        "known": {"condition": "v.id < 9", "action": "fail"},
    }
    good = _joined(rules).dataframe("once", spark).collect()
    assert sorted(map(tuple, good)) == [(1, "home", "home", "web"), (3, "cart", "cart", "shop")]
    (bad,) = _joined(rules).dataframe("once.rejected", spark).collect()
    assert bad.row == '{"id":2,"page":"home","page_2":"home","team":"web"}'
    rules["known"]["condition"] = "v.id < 3"
    with pytest.raises(Exception, match=r"`v\.id < 3` is false.*page.*cart.*page"):
        _joined(rules).dataframe("once", spark).collect()


@pytest.mark.parametrize(
    ("columns", "key", "said"),
    [
        ("[id, v.page, at]", "page", None),
        ("[id, v.page, at]", "v.page", "there is no column `v.page`"),
        (
            "['*']",
            "id",
            "there are several columns `page`, and of rows with values to remember each has its own",
        ),
    ],
)
def test_names_where_values_are_remembered(columns: str, key: str, said: str | None) -> None:
    text = f"""
pipeline: shop
sources:
  views: {{gem: file, options: {{path: v, format: json, schema: "id int, page string, at timestamp"}}}}
  pages: {{gem: rows, mode: batch, options: {{rows: [[home]], schema: "page string"}}}}
transforms:
  timely: {{gem: watermark, input: views, options: {{column: at, delay: 1 hour}}}}
  both: {{gem: join, inputs: {{v: timely, p: pages}}, options: {{condition: v.page = p.page}}}}
  named: {{gem: select, input: both, options: {{columns: {columns}}}}}
  once: {{gem: expect, input: named, options: {{rules: {{once: {{column: {key}, unique: within_watermark}}}}}}}}
targets:
  good: {{gem: delta, input: once, group: one, options: {{path: g}}}}
  bad: {{gem: delta, input: once.rejected, options: {{path: b}}}}
"""
    found = [d.message for d in check(text).diagnostics if d.severity == "error"]
    assert [said in message for message in found] == [True] if said else found == []


REMEMBERED = """
pipeline: shop
sources:
  orders:
    gem: file
    options: {path: orders, format: json, schema: "id int, amount int, at timestamp", max_files_per_trigger: 1}
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 10 minutes}}
  once:
    gem: expect
    input: timely
    options: {rules: {once: {column: id, unique: within_watermark}, paid: amount > 0}}
targets:
  good: {gem: delta, input: once, group: all, options: {path: good}}
  bad: {gem: delta, input: once.rejected, options: {path: bad}}
"""


def write_orders(folder: Path, number: int, *orders: tuple[int | None, int, str]) -> None:
    """Write a file of orders, which is read behind those of lower numbers."""
    fields = [{"id": i, "amount": amount, "at": f"2024-01-01T{at}:00Z"} for i, amount, at in orders]
    place = folder / f"orders/{number}.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text("".join(json.dumps(order) + "\n" for order in fields))
    os.utime(place, (number + 1, number + 1))


@unique_rows
@pytest.mark.spark
@pytest.mark.matrix
def test_a_value_is_remembered_within_the_watermark_and_over_restarts(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = write_pipeline(tmp_path, REMEMBERED)

    def rejected() -> list[tuple[int, str, str, str]]:
        rows = spark.read.format("delta").load(str(tmp_path / "bad")).collect()
        found = [(json.loads(row.row), row) for row in rows]
        return sorted(
            (order["id"] or 0, order["at"][11:16], row.reasons[0].words, row.origin["file"][-6:])
            for order, row in found
        )

    again = "`id is unique within the watermark` is false"
    write_orders(
        tmp_path, 0, (1, 1, "10:00"), (1, 2, "10:01"), (2, 1, "10:00"), (3, -1, "10:00"), (None, 1, "10:00")
    )
    write_orders(tmp_path, 1, (1, 1, "10:05"), (3, 1, "10:05"), (4, 1, "10:05"))
    assert run(file, available_now=True).ok
    forget_last_commit(tmp_path / "checkpoints/shop/all")
    plan = plan_of(file)
    with TemporaryDirectory() as folder:
        answers = list(Engine(spark, folder).ask(plan))
    assert [(a.target, a.streaming, a.error) for a in answers] == [("good", True, None), ("bad", True, None)]

    # What is seen of `2` is in the checkpoint; of `1` it is let go when the watermark has passed it.
    write_orders(tmp_path, 2, (2, 1, "10:06"), (5, 1, "11:30"))
    write_orders(tmp_path, 3, (7, 1, "11:30"))
    write_orders(tmp_path, 4, (1, 1, "11:31"), (6, 1, "10:00"))
    report = run(file, available_now=True)
    assert report.ok
    assert report.held.rejected["once"] == 1, "of the micro-batch that came again nothing is asked for"
    assert report.targets["good"].late_rows == 1
    assert report.targets["good"].state_rows == 6  # three rows, and their claims

    good = spark.read.format("delta").load(str(tmp_path / "good")).collect()
    assert sorted((row.id, row.at.strftime("%H:%M")) for row in good) == [
        (1, "10:00"),
        (1, "11:31"),
        (2, "10:00"),
        (3, "10:05"),
        (4, "10:05"),
        (5, "11:30"),
        (7, "11:30"),
    ]
    assert rejected() == [
        (0, "10:00", "`id is unique within the watermark` is null", "0.json"),
        (1, "10:01", again, "0.json"),
        (1, "10:05", again, "1.json"),
        (2, "10:06", again, "2.json"),
        (3, "10:00", "`amount > 0` is false", "0.json"),
    ]


@a_killed_program
@pytest.mark.spark
@pytest.mark.programs
@pytest.mark.matrix
def test_a_value_comes_through_once_over_kills(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, REMEMBERED)
    random, amounts = Random(seed()), count(100_000)  # of as many digits, so that JSON sorts as they do
    orders = []
    for number in range(examples(4, 80)):
        more = [
            (random.randrange(400), next(amounts) * random.choice((1, 1, 1, 1, -1)), "10:00")
            for _ in range(200)
        ]
        write_orders(tmp_path, number, *more)
        orders += more
    first: dict[int, int] = {}
    for id_, amount, _ in orders:
        if amount > 0:
            first.setdefault(id_, amount)

    died = kill_often("run", file, "--available-now")

    assert run(file, available_now=True).ok, died
    good = spark.read.format("delta").load(str(tmp_path / "good")).collect()
    assert sorted(row.amount for row in good) == sorted(first.values())
    bad = spark.read.format("delta").load(str(tmp_path / "bad")).collect()
    rejected = [(json.loads(row.row)["amount"], {reason.name for reason in row.reasons}) for row in bad]
    others = {amount for _, amount, _ in orders} - set(first.values())
    assert sorted(amount for amount, _ in rejected) == sorted(others)
    assert {amount for amount, names in rejected if "paid" in names} == {a for a in others if a < 0}
