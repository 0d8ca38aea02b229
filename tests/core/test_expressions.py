"""What can be said of expressions without parsing them, and the option types they come in."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gem_bundle import Column, Facts
from gem_bundle.expressions import (
    UNKNOWN_DELAY,
    column_of,
    find,
    missing_columns,
    project,
    reference,
    split_alias,
    time_delay,
)
from gem_bundle.types import ColumnExpressions, ExpressionList, Interval, interval_length

AT = Column("at", "timestamp", "10 minutes")
ID = Column("id", "bigint")
OPAQUE = Column("made")
WINDOW = Column("window", "struct<start: timestamp, end: timestamp>", "10 minutes")
COLUMNS = (AT, ID, OPAQUE, WINDOW)


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        ("at", ("at",)),
        ("  At ", ("At",)),
        ("`a b`", ("a b",)),
        ("`a``b`.c", ("a`b", "c")),
        ("orders . at", ("orders", "at")),
        ("((at))", ("at",)),
        ("_id", ("_id",)),
        ("at + 1", None),
        ("(a) + (b)", None),
        ("f(a)", None),
        ("1a", None),
        ("'at'", None),
        ("null", None),
        ("TRUE", None),
        ("a.", None),
        ("a.*", None),
        ("*", None),
    ],
)
def test_a_reference_is_a_name_and_nothing_else(expression: str, parts: tuple[str, ...] | None) -> None:
    assert reference(expression) == parts


@pytest.mark.parametrize(
    ("expression", "body", "name"),
    [
        ("at as t", "at", "t"),
        ("a * 2  AS  `two a`", "a * 2", "two a"),
        ("cast(a as int)", "cast(a as int)", None),
        ("cast(a as int) as b", "cast(a as int)", "b"),
        ("'x as y'", "'x as y'", None),
        ("a -- b as c", "a -- b as c", None),
        ("at t", "at t", None),
        ("bias", "bias", None),
    ],
)
def test_a_name_that_an_expression_gives_itself(expression: str, body: str, name: str | None) -> None:
    assert split_alias(expression) == (body, name)


def test_a_reference_finds_columns_as_spark_does() -> None:
    assert find(["AT"], COLUMNS) == Column("AT", "timestamp", "10 minutes")
    assert find(["nothing"], COLUMNS) is None
    # Behind an input's name stands its column; its type and its mark are the column's.
    assert find(["orders", "at"], COLUMNS) == AT
    # A struct of known type has no mark inside; one of unknown type may have.
    assert find(["window", "start"], COLUMNS) == Column("start")
    assert find(["made", "x"], COLUMNS) == Column("x", delay=UNKNOWN_DELAY)
    # Two columns of one name: what they have in common.
    assert find(["at"], (AT, Column("at", "timestamp"))) == Column("at", "timestamp", UNKNOWN_DELAY)


@pytest.mark.parametrize(
    ("expression", "delay"),
    [
        ("at", "10 minutes"),
        ("`AT`", "10 minutes"),
        ("at + interval 1 minute", None),
        ("cast(at as timestamp)", None),
        ("max(at)", None),
        ("coalesce(at)", None),
        ("upper(made.x)", None),
        ("made.x * made.y", None),
        ("struct(at)", None),
        ("struct(at).at", UNKNOWN_DELAY),
        ("(array(at)[0])", UNKNOWN_DELAY),
        ("array(struct(at))[0].at", UNKNOWN_DELAY),
        ("made.x", UNKNOWN_DELAY),
        ("window(at, '1 minute')", "10 minutes"),
        ("(session_window(at, '1 minute'))", "10 minutes"),
        ("window(id, '1 minute')", None),
        ("window(made.x, '1 minute')", None),
        ("window(at, '1 minute').start", UNKNOWN_DELAY),
        ("window_time(window)", "10 minutes"),
        ("windows(at)", None),
        ("window(at, '1 minute') = window", None),
        ("null", None),
        ("current_timestamp", None),
    ],
)
def test_which_expressions_may_be_event_time(expression: str, delay: str | None) -> None:
    assert column_of(expression, "x", COLUMNS) == Column(
        "x", "timestamp" if expression in {"at", "`AT`"} else None, delay
    )


def test_without_event_time_nothing_becomes_event_time() -> None:
    known = (ID, Column("seen", "timestamp"), Column("s", "struct<a: int>"))
    for expression in ("struct(seen).seen", "window(seen, '1 day')", "s.a", "array(s)[0].a"):
        assert column_of(expression, "x", known).delay is None


@pytest.mark.parametrize(
    ("expression", "delay"),
    [
        ("at", "10 minutes"),
        ("window", "10 minutes"),
        ("window_time(window)", "10 minutes"),
        ("orders.at", "10 minutes"),
        ("made.at", UNKNOWN_DELAY),
        ("made.x", None),
        ("at + interval 1 day", None),
        ("window_time(window(at, '1 minute'))", UNKNOWN_DELAY),
        ("nothing", UNKNOWN_DELAY),
    ],
)
def test_what_a_window_inherits(expression: str, delay: str | None) -> None:
    assert time_delay(expression, COLUMNS) == delay


def test_a_projection_of_unknown_columns_has_names_and_no_more() -> None:
    stream = Facts(streaming=True, columns=None)
    assert project(["at", "upper(page) as page"], stream) == (
        Column("at", delay=UNKNOWN_DELAY),
        Column("page", delay=UNKNOWN_DELAY),
    )
    static = Facts(streaming=False, columns=None)
    assert project({"a": "at"}, static) == (Column("a"),)
    assert project(["*", "1 as one"], stream) is None
    assert project(["upper(page)"], stream) is None


def test_expressions_may_refer_to_what_the_same_projection_made() -> None:
    facts = Facts(streaming=True, columns=COLUMNS)
    assert project({"t": "at", "again": "t"}, facts) == (
        Column("t", "timestamp", "10 minutes"),
        Column("again", "timestamp", "10 minutes"),
    )
    # Under its own name Spark's analyser drops the mark; this is left open.
    assert project(["at as t", "t"], facts) == (
        Column("t", "timestamp", "10 minutes"),
        Column("t", "timestamp", UNKNOWN_DELAY),
    )


def test_only_names_that_can_be_nothing_else_are_missing() -> None:
    facts = Facts(streaming=True, columns=COLUMNS)
    fine = ["ID", "_metadata", "x.y", "amount * 2", "current_date", "new", "at as t", "t", "*"]
    assert list(missing_columns(fine, facts, "columns", also=["new"])) == []
    (finding,) = missing_columns(["idd"], facts, "columns")
    assert (finding.code, finding.option, finding.severity) == ("GB205", "columns", "error")
    assert finding.message == "there is no column `idd`"
    assert finding.hint == "Did you mean `id`?"
    assert list(missing_columns(["idd"], Facts(columns=None), "columns")) == []


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("10 minutes", (0, 600_000_000)),
        ("1 hour 30 minutes", (0, 5_400_000_000)),
        ("interval 2 DAYS", (0, 172_800_000_000)),
        ("1.5 seconds", (0, 1_500_000)),
        ("+3 weeks", (0, 3 * 604_800_000_000)),
        ("1 year 2 months", (14, 0)),
        ("5 milliseconds 7 microseconds", (0, 5_007)),
        ("0 seconds", (0, 0)),
    ],
)
def test_an_interval_has_a_length(text: str, length: tuple[int, int]) -> None:
    assert interval_length(text) == length
    assert TypeAdapter(Interval).validate_python(text) == text


@pytest.mark.parametrize(
    "value",
    ["10 m", "5 min", "10minutes", "1.5 minutes", "1 hour, 3 minutes", "5 nanoseconds", "ten minutes",
     "minutes", "", "-1 minute", "5", 5, "99999999999999 hours", "5 minutess"],
)  # fmt: skip
def test_what_spark_could_not_read_is_no_interval(value: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Interval).validate_python(value)


@pytest.mark.parametrize(
    ("value", "expressions"),
    [
        ("a, b desc", ["a", "b desc"]),
        ("f(a, b), 'x, y', `c, d`", ["f(a, b)", "'x, y'", "`c, d`"]),
        ("a < 1, b > 2", ["a < 1", "b > 2"]),
        (r"'it\'s, so', b", [r"'it\'s, so'", "b"]),
        (["a", 1, True], ["a", "1", "true"]),
        (7, ["7"]),
    ],
)
def test_a_text_is_a_list_of_expressions(value: Any, expressions: list[str]) -> None:
    assert TypeAdapter(ExpressionList).validate_python(value) == expressions
    assert TypeAdapter(ColumnExpressions).validate_python(value) == expressions


@pytest.mark.parametrize("value", [["a, b"], "a,,b", ["f(a"], ["'a"], {"x": "a, b"}, [[]]])
def test_what_is_no_expression_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ColumnExpressions).validate_python(value)
