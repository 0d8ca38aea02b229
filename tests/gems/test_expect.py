"""The transform `expect`."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import count
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gem_bundle import Column, Facts, Pipeline, PipelineError
from gem_bundle.check import check_file
from gem_bundle.pipeline.groups import UNDIVIDED, groups_of
from gem_bundle.rejected import COLUMNS
from gem_bundle.run.engine import Engine
from gem_filter.expect import Expect
from gem_filter.rules import rules_of
from tests.core.streams import check
from tests.gems.draining import forget_last_commit
from tests.gems.transforms import findings, kinds, made, stream_of
from tests.integration.kill_series import kill_often
from tests.integration.pipelines import run, write_pipeline
from tests.samples import a_killed_program, examples, seed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = (Column("at", "timestamp", "10 minutes"), Column("page", "string"), Column("amount", "double"))


def _conditions(**rules: Any) -> list[str]:
    expect = made(Expect, rules=rules)
    return [rule.condition for rule in rules_of(expect.options.rules, "reject")]


def test_short_forms_are_conditions() -> None:
    assert _conditions(
        a="amount > 0",
        b={"condition": "page = 'x'"},
        c={"column": "page", "not_null": True},
        d={"column": "page", "in": ["it's", 1, 1.5, True, "a\\b"]},
        e={"column": "amount * 2", "between": [0, 10]},
        f={"column": "page", "matches": r"^\d+'$", "length": 3},
        g={"column": "page", "length": {"min": 1, "max": 80}},
        h={"column": "p.q", "length": {"max": 2}},
    ) == [
        "amount > 0",
        "page = 'x'",
        "page is not null",
        r"page in ('it\'s', 1, 1.5, true, 'a\\b')",
        "(amount * 2) between 0 and 10",
        r"page rlike '^\\d+\'$' and length(page) = 3",
        "length(page) >= 1 and length(page) <= 80",
        "length((p.q)) <= 2",
    ]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({}, "needs a `condition`"),
        ({"column": "page"}, "nothing is said of the `column`"),
        ({"not_null": True}, "needs a `condition`"),
        ({"condition": "true", "column": "page"}, "not both"),
        ({"condition": "true", "matches": "x"}, "not both"),
        ({"column": "page", "in": []}, "at least 1"),
        ({"column": "page", "in": [None]}, "valid"),
        ({"column": "page", "between": [2, 1]}, "the lower one comes first"),
        ({"column": "page", "between": [1]}, "required"),
        ({"column": "page", "length": {}}, "a `min`, a `max`"),
        ({"column": "page", "length": {"min": 2, "max": 1}}, "no length"),
        ({"column": "page", "length": -1}, "negative"),
        ({"column": "page", "not_null": True, "null": "pass"}, "broken by null"),
        ({"condition": "true", "null": "maybe"}, "'broken' or 'pass'"),
        ({"condition": "true", "action": "ignore"}, "'reject'"),
        ({"column": "page", "unique": "always"}, "or `within_watermark`"),
        ({"column": "page", "unique": 1}, "`unique` is true, for the rows of a micro-batch"),
        ({"column": "page", "unique": True, "not_null": True}, "`unique` stands alone"),
        ({"column": "page", "distinct": True}, "not permitted"),
        ({"column": "page", "foreign_key": "pages"}, "valid dictionary"),
        ({"column": "page", "foreign_key": {"input": "pages"}}, "required"),
        (
            {"column": "page", "not_null": True, "foreign_key": {"input": "pages", "column": "page"}},
            "stands alone",
        ),
        (" ", "empty"),
        ({"column": "page", "between": ["a", 5]}, "'a' and 5 are of two kinds"),
        ({"column": "page", "between": [True, 5]}, "of two kinds"),
        ({"column": "page", "matches": "("}, "is no regular expression: a bracket isn't closed"),
        ({"column": "page", "in": [1.5, float("nan")]}, "nan can't be written so: say `isnan"),
        ({"column": "page", "between": [0, float("inf")]}, "inf can't be written so"),
    ],
)
def test_a_rule_says_one_thing(rule: Any, said: str) -> None:
    with pytest.raises(ValidationError, match="(?s)" + said.replace("`", ".")):
        made(Expect, rules={"a": rule})


def test_there_is_a_rule_and_nothing_else() -> None:
    for options in (
        {},
        {"rules": {}},
        {"rules": {" ": "true"}},
        {"rules": {"a": "true"}, "most": 3},
        {"rules": ["true"]},
    ):
        with pytest.raises(ValidationError):
            made(Expect, **options)


def test_rows_pass_as_they_are() -> None:
    expect = made(Expect, rules={"paid": "amount > 0"})
    assert expect.infer(stream_of(*ROWS)) == stream_of(*ROWS)
    assert kinds(expect.infer(stream_of(*ROWS))) == ["filter"]


def test_rejected_rows_have_columns_of_their_own_and_keep_event_time() -> None:
    expect = made(Expect, rules={"paid": "amount > 0"})
    known = expect.infer_rejected(stream_of(*ROWS))
    assert [(c.name, c.type) for c in known.columns or ()] == [(c.name, c.type) for c in COLUMNS]
    assert [(c.name, c.delay) for c in known.event_time or ()] == [("event_time", "10 minutes")]
    assert expect.infer_rejected(stream_of(*ROWS[1:])).event_time == ()
    (unknown,) = expect.infer_rejected(Facts(streaming=True)).event_time or ()
    assert unknown.watermarked is None


def test_it_rejects_where_a_rule_does() -> None:
    assert made(Expect, rules={"a": "true"}).rejects()
    assert not made(Expect, rules={"a": "true"}, action="fail").rejects()
    assert made(
        Expect, rules={"a": {"condition": "true", "action": "reject"}, "b": "true"}, action="fail"
    ).rejects()
    assert not made(Expect, rules={"a": {"condition": "true", "action": "fail"}}).rejects()


@pytest.mark.parametrize(
    ("rule", "option", "code"),
    [
        ("gone > 0", ("rules", "a"), "GB210"),
        ({"condition": "gone > 0"}, ("rules", "a", "condition"), "GB210"),
        ({"column": "pag", "not_null": True}, ("rules", "a", "column"), "GB210"),
        ("amount + 1", ("rules", "a"), "GB213"),
        ("max(amount) > 0", ("rules", "a"), "GB212"),
        ("amount >", ("rules", "a"), "GB214"),
        ("lenght(page) > 0", ("rules", "a"), "GB216"),
        ("rand() > 0.5", ("rules", "a"), "GB212"),
        ("page <> uuid()", ("rules", "a"), "GB212"),
        ("at < now()", ("rules", "a"), "GB212"),
        ("at < current_timestamp", ("rules", "a"), "GB212"),
        ("at < current_timestamp()", ("rules", "a"), "GB212"),
        ("date(at) <= current_date", ("rules", "a"), "GB212"),
        ("unix_timestamp(at) < unix_timestamp()", ("rules", "a"), "GB212"),
        ("monotonically_increasing_id() < 9", ("rules", "a"), "GB212"),
        ("spark_partition_id() = 0", ("rules", "a"), "GB212"),
        ("input_file_name() <> ''", ("rules", "a"), "GB212"),
        ("amount in (select 1)", ("rules", "a"), "GB212"),
        ({"column": "shuffle(split(page, ''))[0]", "not_null": True}, ("rules", "a", "column"), "GB212"),
    ],
)
def test_what_is_wrong_with_a_rule(rule: Any, option: Any, code: str) -> None:
    (finding,) = findings(Expect, stream_of(*ROWS), rules={"b": "amount > 0", "a": rule})
    assert (finding.code, finding.option) == (code, option)


def test_a_limit_on_what_no_rule_rejects_is_refused() -> None:
    (finding,) = findings(Expect, stream_of(*ROWS), rules={"a": "amount > 0"}, action="drop", max_rejected=3)
    assert (finding.code, finding.option) == ("GB205", "max_rejected")
    rules = {"a": "amount > 0", "b": {"condition": "true", "action": "reject"}}
    assert not findings(Expect, stream_of(*ROWS), rules=rules, action="drop", max_rejected=3)


def test_what_depends_on_the_row_alone_is_fine() -> None:
    columns = (*ROWS, Column("current_date", "date"), Column("now", "timestamp"))
    rules = {
        "a": "current_date > date'2024-01-01' and `now` > at",
        "b": "page not in ('rand()', 'select') and unix_timestamp(at) > 0",
        "c": {"column": "page", "matches": "now()"},
    }
    assert findings(Expect, stream_of(*columns), rules=rules) == []


def test_what_decides_is_its_lineage() -> None:
    def rows(**rules: Any) -> Any:
        lineage = made(Expect, rules=rules).lineage(stream_of(*ROWS))
        assert lineage is not None
        assert set(lineage.columns) == {"at", "page", "amount"}
        return lineage.rows

    assert rows(a="amount > 0").uses == {"0:amount"}
    assert rows(a="amount > 0") == rows(b="amount > 0")
    assert rows(a="amount > 0") != rows(a={"condition": "amount > 0", "null": "pass"})
    assert rows(a={"condition": "amount > 0", "action": "fail"}).uses == frozenset()


def _pipeline(rows: list[Any], **options: Any) -> Pipeline:
    source = {"schema": "id int, page string, amount double", "rows": rows}
    return (
        Pipeline("shop", version="1.2.3", mode="batch")
        .source("clicks", "rows", source)
        .transform("plausible", "expect", "clicks", options)
        .target("good", "noop", "plausible")
        .target("bad", "noop", "plausible.rejected")
    )


def test_an_output_that_is_not_there_cannot_be_looked_at() -> None:
    nobody: Any = None
    for node, message in (
        ("plausible.refused", "`plausible` has no output `refused`"),
        ("clicks.rejected", "no output"),
    ):
        with pytest.raises(PipelineError, match=message) as raised:
            _pipeline([], rules={"a": "true"}).dataframe(node, nobody)
        assert [found.code for found in raised.value.diagnostics] == ["GB106"]


@pytest.mark.spark
def test_a_row_has_all_its_reasons(spark: SparkSession) -> None:
    rows = [[1, "home", 1.5], [2, "shop", -1.0], [3, None, None], [4, "home", None]]
    rules = {
        "paid": {"condition": "amount > 0", "null": "pass"},
        "known": {"column": "page", "in": ["home", "cart"]},
        "there": {"column": "amount", "not_null": True},
    }
    pipeline = _pipeline(rows, rules=rules)
    good = pipeline.dataframe("plausible", spark).collect()
    assert [tuple(row) for row in good] == [(1, "home", 1.5)]
    bad = pipeline.dataframe("plausible.rejected", spark)
    assert [field.name for field in bad.schema] == [column.name for column in COLUMNS]
    found = {json.loads(row.row)["id"]: row for row in bad.collect()}
    assert {key: [tuple(why) for why in row.reasons] for key, row in found.items()} == {
        2: [("paid", "`amount > 0` is false"), ("known", "`page in ('home', 'cart')` is false")],
        3: [("known", "`page in ('home', 'cart')` is null"), ("there", "`amount is not null` is false")],
        4: [("there", "`amount is not null` is false")],
    }
    row = found[2].asDict()
    assert json.loads(row["row"]) == {"id": 2, "page": "shop", "amount": -1.0}
    assert row["row_schema"] == "id int, page string, amount double"
    assert (row["pipeline"], row["pipeline_version"]) == ("shop", "1.2.3")
    assert (row["node"], row["gem"], row["schema_version"]) == ("plausible", "expect", 1)
    assert (row["origin"], row["event_time"]) == (None, None)
    assert row["rejected_at"] is not None


@pytest.mark.spark
def test_a_rule_that_fails_ends_both_queries_and_shows_the_row(spark: SparkSession) -> None:
    rules = {"paid": {"condition": "amount > 0", "action": "fail"}, "known": "page = 'home'"}
    fine = _pipeline([[1, "home", 1.5], [2, "shop", 1.0]], rules=rules)
    assert [row.id for row in fine.dataframe("plausible", spark).collect()] == [1]
    assert fine.dataframe("plausible.rejected", spark).count() == 1
    wrong = _pipeline([[1, "home", 1.5], [2, "shop", -1.0]], rules=rules)
    for output in ("plausible", "plausible.rejected"):
        with pytest.raises(Exception, match="gem-bundle ends the query"):
            wrong.dataframe(output, spark).collect()


@pytest.mark.spark
def test_a_run_that_a_rule_ends_says_so_at_the_node(spark: SparkSession, tmp_path: Path) -> None:
    del spark  # the warm session is taken by the run
    pipeline = (
        Pipeline("shop", mode="batch", folder=tmp_path)
        .source("clicks", "rows", {"schema": "id int", "rows": [[1], [-2]]})
        .transform("plausible", "expect", "clicks", {"action": "fail", "rules": {"counted": "id > 0"}})
        .target("good", "file", "plausible", {"format": "parquet", "path": "out"})
    )
    try:
        found = list(pipeline.run().diagnostics)
    except PipelineError as error:
        found = list(error.diagnostics)
    (diagnostic,) = found
    assert (diagnostic.code, diagnostic.node) == ("GB515", "plausible")
    assert 'the rule `counted`: `id > 0` is false. The row: {"id":-2}' in diagnostic.message
    assert not list((tmp_path / "out").glob("*.parquet"))


_CONDITIONS = {
    "positive": ("amount > 0", lambda row: None if row[2] is None else row[2] > 0),
    "named": ("page is not null", lambda row: row[1] is not None),
    "short": ("length(page) <= 3", lambda row: None if row[1] is None else len(row[1]) <= 3),
    "even": ("id % 2 = 0", lambda row: None if row[0] is None else row[0] % 2 == 0),
    "unknown": ("cast(null as boolean)", lambda _: None),
}


@pytest.mark.spark
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_each_row_is_in_one_output_with_the_right_reasons(spark: SparkSession, data: st.DataObject) -> None:
    texts = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=5)
    numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32)
    drawn = data.draw(st.lists(st.tuples(texts, numbers), max_size=30))
    rows = [[number, *row] for number, row in enumerate(drawn)]
    names = data.draw(st.lists(st.sampled_from(sorted(_CONDITIONS)), min_size=1, unique=True))
    null_passes = {name: data.draw(st.booleans()) for name in names}
    rules = {
        name: {"condition": _CONDITIONS[name][0], "null": "pass" if null_passes[name] else "broken"}
        for name in names
    }

    def broken(row: list[Any]) -> list[str]:
        kept = {name: _CONDITIONS[name][1](row) for name in names}
        return [name for name in names if not (null_passes[name] if kept[name] is None else kept[name])]

    pipeline = _pipeline(rows, rules=rules)
    good = {row.id for row in pipeline.dataframe("plausible", spark).collect()}
    bad = pipeline.dataframe("plausible.rejected", spark).collect()
    why = {json.loads(row.row)["id"]: [reason.name for reason in row.reasons] for row in bad}
    assert len(bad) == len(why)
    assert good == {row[0] for row in rows if not broken(row)}
    assert why == {row[0]: broken(row) for row in rows if broken(row)}


KEY = {"column": "page", "foreign_key": {"input": "pages", "column": "name"}}
PAGES = Facts(streaming=False, columns=(Column("name", "string"),))


@pytest.mark.parametrize(
    ("rule", "names", "second", "said"),
    [
        (KEY, ("clicks", "pages"), PAGES, None),
        (KEY, ("clicks",), None, "the node has no further input `pages`"),
        (KEY, ("clicks", "other"), PAGES, "no rule looks anything up in the input `other`"),
        (KEY, ("clicks", "pages"), Facts(streaming=True, columns=PAGES.columns), "is a stream"),
        ({**KEY, "column": "gone"}, ("clicks", "pages"), PAGES, "there is no column `gone`"),
        ({**KEY, "column": "concat(page, rand())"}, ("clicks", "pages"), PAGES, "rand"),
        (
            {"column": "page", "foreign_key": {"input": "pages", "column": "gone"}},
            ("clicks", "pages"),
            PAGES,
            "there is no column `gone`",
        ),
        ({**KEY, "action": "drop"}, ("clicks", "pages"), PAGES, None),
        ({**KEY, "column": "array(page)"}, ("clicks", "pages"), PAGES, "an array<string> and a string"),
        ({**KEY, "column": "amount"}, ("clicks", "pages"), PAGES, None),
    ],
)
def test_a_foreign_key_is_looked_up_in_a_static_input(
    rule: dict[str, Any], names: tuple[str, ...], second: Facts | None, said: str | None
) -> None:
    inputs = (stream_of(*ROWS), *([second] if second is not None else []))
    found = findings(Expect, *inputs, names=names, rules={"known": rule})
    messages = [finding.message for finding in found]
    assert messages == [] if said is None else any(said in message for message in messages), messages


@pytest.mark.spark
def test_rows_whose_key_is_not_there_are_rejected(spark: SparkSession) -> None:
    rows = [[1, "home", 1.5], [2, "shop", 1.0], [3, None, 1.0], [4, "cart", -1.0], [5, "home", 2.0]]
    rules = {"known": KEY, "paid": "amount > 0", "named": {**KEY, "null": "pass"}}
    pipeline = (
        Pipeline("shop", mode="batch")
        .source("clicks", "rows", {"schema": "id int, page string, amount double", "rows": rows})
        .source("pages", "rows", {"schema": "name string", "rows": [["home"], ["cart"], ["home"], [None]]})
        .transform("plausible", "expect", ["clicks", "pages"], {"rules": rules})
        .target("bad", "noop", "plausible.rejected")
        .target("good", "noop", "plausible")
    )
    good = pipeline.dataframe("plausible", spark)
    assert good.columns == ["id", "page", "amount"]
    assert sorted(row.id for row in good.collect()) == [1, 5]
    bad = pipeline.dataframe("plausible.rejected", spark).collect()
    found = {json.loads(row.row)["id"]: [tuple(why) for why in row.reasons] for row in bad}
    assert found == {
        2: [("known", "`page is in pages.name` is false"), ("named", "`page is in pages.name` is false")],
        3: [("known", "`page is in pages.name` is null")],
        4: [("paid", "`amount > 0` is false")],
    }
    assert {row.row_schema for row in bad} == {"id int, page string, amount double"}
    report = pipeline.run()
    assert report.held.rejected == {"plausible": 3}


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


@pytest.mark.spark
def test_unique_within_each_micro_batch_of_a_group(spark: SparkSession, tmp_path: Path) -> None:
    file = write_pipeline(tmp_path, UNIQUE)
    (tmp_path / "orders").mkdir()
    for number, pairs in enumerate([[(1, 1), (1, 2), (2, 1), (1, 3)], [(1, 7), (3, 1), (3, 1), (None, 1)]]):
        lines = "".join(json.dumps({"id": i, "amount": amount}) + "\n" for i, amount in pairs)
        (tmp_path / "orders" / f"{number}.json").write_text(lines)

    plan = check_file(file).plan
    assert plan is not None
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


@pytest.mark.spark
def test_what_has_to_be_found_out_is_counted_and_left_out_too(spark: SparkSession) -> None:
    rows = [[1, "home"], [1, "cart"], [1, "shop"], [2, "shop"], [3, "home"]]
    rules = {
        "once": {"column": "id", "unique": True, "action": "drop"},
        "known": {**KEY, "action": "warn"},
        "small": {"condition": "id < 3"},
    }
    pipeline = (
        Pipeline("shop", mode="batch")
        .source("clicks", "rows", {"schema": "id int, page string", "rows": rows})
        .source("pages", "rows", {"schema": "name string", "rows": [["home"], ["cart"]]})
        .transform("plausible", "expect", ["clicks", "pages"], {"rules": rules})
        .target("bad", "noop", "plausible.rejected")
        .target("good", "noop", "plausible")
    )
    good = pipeline.dataframe("plausible", spark)
    assert sorted(map(tuple, good.collect())) == [(1, "cart"), (2, "shop")]
    report = pipeline.run()
    assert report.held.rejected == {"plausible": 1}
    assert report.held.broken == {"plausible": {"once": 2, "known": 2}}


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
    plan = check_file(file).plan
    assert plan is not None
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
