"""The transform `expect`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gem_bundle import Column, Facts, Pipeline, PipelineError
from gem_bundle.rejected import COLUMNS
from gem_filter.expect import Expect
from gem_filter.rules import rules_of
from tests.gems.transforms import findings, kinds, made, stream_of

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
