"""What can be said of expressions before Spark runs, and the option types they come in."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from gem_bundle import Column, Facts, Operator, combined
from gem_bundle.expressions import (
    UNKNOWN_DELAY,
    WINDOW_TYPE,
    Analysis,
    analyse,
    check_expression,
    column_of,
    find,
    join_condition,
    missing_columns,
    only_narrows,
    project,
    reference,
    split_alias,
    time_delay,
)
from gem_bundle.types import ColumnExpressions, ExpressionList, Interval, interval_length
from tests.counting import calls_of
from tests.samples import examples

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
    # A struct of known type has no mark inside unless it says so; one of unknown type may have.
    assert find(["window", "start"], COLUMNS) == Column("start", "timestamp")
    assert find(["window", "nothing"], COLUMNS) == Column("nothing")
    assert find(["made", "x"], COLUMNS) == Column("x", delay=UNKNOWN_DELAY)
    # Two columns of one name: what they have in common.
    assert find(["at"], (replace(AT, qualifier="a"), Column("at", "timestamp", qualifier="b"))) == Column(
        "at", "timestamp", UNKNOWN_DELAY
    )


@pytest.mark.parametrize(
    ("expression", "kind", "delay"),
    [
        ("at", "timestamp", "10 minutes"),
        ("`AT`", "timestamp", "10 minutes"),
        ("at + interval 1 minute", "timestamp", None),
        ("cast(at as timestamp)", "timestamp", None),
        ("max(at)", "timestamp", None),
        ("coalesce(at)", "timestamp", None),
        ("upper(made.x)", None, None),
        ("made.x * made.y", None, None),
        ("struct(at).at", "timestamp", "10 minutes"),
        ("(array(at)[0])", "timestamp", None),
        ("array(struct(at))[0].at", "timestamp", "10 minutes"),
        ("made.x", None, UNKNOWN_DELAY),
        ("window(at, '1 minute')", WINDOW_TYPE, "10 minutes"),
        ("window(id, '1 minute')", None, None),
        ("window(made.x, '1 minute')", None, None),
        ("window(at, '1 minute').start", "timestamp", None),
        ("window_time(window)", "timestamp", "10 minutes"),
        ("windows(at)", None, None),
        ("window(at, '1 minute') = window", "boolean", None),
        ("null", "void", None),
        ("current_timestamp", "timestamp", None),
        ("id between 1 and 2 and made is not null", "boolean", None),
        ("case when id > 1 then at end", "timestamp", None),
        ("id * 1.5", "decimal(23,1)", None),
        ("sum(id) over (partition by made)", "bigint", None),
        ("collect_list(struct(id, 'x' as t))", "array<struct<id: bigint, t: string>>", None),
        ("from_json(made, 'a int, b array<long>').b[0]", "bigint", None),
        ("transform(array(id), x -> x > 1)", "array<boolean>", None),
        ("(select max(id) from other)", None, None),
    ],
)
def test_what_an_expression_makes(expression: str, kind: str | None, delay: str | None) -> None:
    assert column_of(expression, "x", COLUMNS) == Column("x", kind, delay)
    assert analyse(f"{expression} as x", COLUMNS).column == Column("x", kind, delay)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        # Spark 4.2.0 was asked for these.
        ("price + 7", "decimal(11,2)"),
        ("-7 - price", "decimal(11,2)"),
        ("price * 100", "decimal(14,2)"),
        ("price / 7", "decimal(14,6)"),
        ("price % 7L", "decimal(3,2)"),
        ("price + cast(7 as int)", "decimal(13,2)"),
        ("price + try_cast(7 as bigint)", "decimal(23,2)"),
        ("pmod(price, 123)", "decimal(5,2)"),
        ("try_add(price, (7))", "decimal(11,2)"),
        ("coalesce(price, 7)", "decimal(12,2)"),
        ("round(price)", "decimal(9,0)"),
        ("round(price, 1)", "decimal(10,1)"),
        ("round(price, 3)", "decimal(11,2)"),
        ("bround(price, -1)", "decimal(9,0)"),
        ("round(price, -12)", "decimal(13,0)"),
        ("bround(price)", "decimal(9,0)"),
        ("ceil(price)", "decimal(9,0)"),
        ("floor(cast(price as decimal(20,0)))", "decimal(20,0)"),
        ("sum(price + 0)", "decimal(21,2)"),
    ],
)
def test_decimals_have_the_digits_that_spark_gives_them(expression: str, kind: str) -> None:
    assert column_of(expression, "x", [Column("price", "decimal(10,2)")]) == Column("x", kind)


def test_a_struct_keeps_event_time_inside() -> None:
    made = column_of("struct(at, id as n)", "s", COLUMNS)
    assert made == Column("s", "struct<at: timestamp, n: bigint>", marks=((("at",), "10 minutes"),))
    assert column_of("s.at", "t", [made]) == Column("t", "timestamp", "10 minutes")
    assert column_of("s.n", "t", [made]) == Column("t", "bigint")
    # A window directly over a field has no watermark: the field must become a column first.
    assert time_delay("s.at", [made]) is None
    several = column_of("array(s)", "a", [made])
    assert several.marks == ((("0", "at"), "10 minutes"),)
    assert column_of("a[0].at", "t", [several]).delay == "10 minutes"
    assert column_of("a.at", "t", [several]) == Column("t", "array<timestamp>")


def test_sessions_are_known_by_their_windows() -> None:
    window = column_of("(session_window(at, '1 minute'))", "w", COLUMNS)
    assert window == Column("w", WINDOW_TYPE, "10 minutes", session=True)
    assert column_of("w", "v", [window]).session
    assert not column_of("window_time(w)", "v", [window]).session


def test_without_event_time_nothing_becomes_event_time() -> None:
    known = (ID, Column("seen", "timestamp"), Column("s", "struct<a: int>"))
    for expression in ("struct(seen).seen", "window(seen, '1 day')", "s.a", "array(s)[0].a", "f(s).x"):
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
        ("window_time(window(at, '1 minute'))", "10 minutes"),
        ("nothing", UNKNOWN_DELAY),
    ],
)
def test_what_a_window_inherits(expression: str, delay: str | None) -> None:
    assert time_delay(expression, COLUMNS) == delay


def test_a_projection_of_unknown_columns_has_names_and_no_more() -> None:
    stream = Facts(streaming=True, columns=None)
    assert project(["at", "s.b", "upper(page) as page"], stream) == (
        Column("at", delay=UNKNOWN_DELAY),
        Column("b", delay=UNKNOWN_DELAY),
        Column("page"),
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
    # Over two steps within one projection Spark loses the mark.
    assert project(["at as t", "t", "t as u", "u as v"], facts) == (
        Column("t", "timestamp", "10 minutes"),
        Column("t", "timestamp", "10 minutes"),
        Column("u", "timestamp", "10 minutes"),
        Column("v", "timestamp", None),
    )
    groups = (Column("hour", "int"),)
    assert project({"next": "hour + 1"}, facts, earlier=groups) == (Column("next", "int"),)


def test_the_names_that_spark_gives() -> None:
    facts = Facts(streaming=True, columns=COLUMNS).called("orders")
    names = {
        "upper('x')": "upper(x)",
        "count(*)": "count(1)",
        "sum(distinct orders.id)": "sum(DISTINCT id)",
        "id % 2": "(id % 2)",
        "not (id = 1 and id < 3)": "(NOT ((id = 1) AND (id < 3)))",
        "cast(id as string)": "id",
        "date(at)": "at",
        "window(at, '1 day')": "window",
        "orders.window.end": "end",
    }
    assert {e: analyse(e, facts.columns).column.name for e in names} == names
    for expression in ("made[0]", "power(id, 2)", "at + interval 1 day", "id over ()", "x.y + 1", "+id"):
        assert analyse(expression, facts.columns).column.name == ""


def test_stars_stand_for_columns() -> None:
    orders = Facts(streaming=True, columns=COLUMNS).called("orders")
    assert project(["*", "1 as one"], orders) == (*(orders.columns or ()), Column("one", "int"))
    both = orders.with_columns([*(orders.columns or ()), Column("paid", "int", qualifier="payments")])
    assert project(["payments.*"], both) == (Column("paid", "int", qualifier="payments"),)
    assert project(["other.*"], both) is None
    assert project(["* except (id)"], both) is None
    # How many columns these make depends on their arguments.
    assert project(["inline(made)"], orders) is None
    assert project(["stack(2, 1, 2)"], orders) is None


def test_references_keep_the_name_of_their_input() -> None:
    (at,) = Facts(streaming=True, columns=(AT,)).called("orders").columns or ()
    assert project(["at", "orders.at", "at as t", "(at)"], Facts(columns=(at,))) == (
        at,
        at,
        Column("t", "timestamp", "10 minutes"),
        at,
    )


def test_what_is_in_an_expression() -> None:
    found = analyse("count(distinct id, `made`) + sum(DISTINCT id) filter (where id > 1) + max(id)", COLUMNS)
    assert found.aggregates
    assert found.distinct == ("count(distinct id, `made`)", "sum(DISTINCT id)")
    assert not any((found.analytic, found.generator, found.row_ids, found.current_time))
    over = analyse("sum(id) over (order by at) + count(*) over w", COLUMNS)
    assert (over.analytic, over.aggregates, over.distinct) == (True, False, ())
    assert analyse("rank() over (order by sum(id))", COLUMNS).aggregates
    assert analyse("explode(made) as e", COLUMNS).generator
    assert analyse("json_tuple(made, 'a')", COLUMNS).generator
    assert analyse("monotonically_increasing_id() % 2", COLUMNS).row_ids
    for now in ("current_date", "now()", "at > current_timestamp() - interval 1 day", "CURDATE()"):
        assert analyse(now, COLUMNS).current_time
    assert not analyse("current_date", [Column("current_date", "date")]).current_time
    assert not analyse("current_date + 1", [Column("current_date", "date")]).current_time
    unread = analyse("id >>> 1", COLUMNS, name="x")
    assert unread == Analysis(Column("x", delay=UNKNOWN_DELAY), parsed=False)


def test_columns_outside_of_aggregates_must_be_grouped_by() -> None:
    def wrong(expression: str, *groups: str) -> tuple[str, ...]:
        return analyse(expression, COLUMNS, groups=groups).grouped_wrongly

    assert wrong("max(id) + id") == ("id",)
    assert wrong("id", "at") == ("id",)
    assert wrong("id", "ID", "at") == ()
    assert wrong("orders.id + 1", "(id)") == ()
    assert wrong("date(at)", "date( AT )") == ()
    assert wrong("at", "date(at)") == ("at",)
    assert wrong("window.end", "window") == ()
    assert wrong("made", "id as made") == ("made",)
    # What these do with columns isn't known.
    assert wrong("f(id) + window(at, '1 day').start", "at") == ()
    assert wrong("id", "id >>> 1") == ()


MAP = "a map<int, bigint>"


def problems(expression: str, columns: Any = COLUMNS, **rules: Any) -> list[tuple[str, str]]:
    found = check_expression(expression, Facts(streaming=True, columns=columns), "o", **rules)
    return [(finding.code, finding.message) for finding in found]


def test_unknown_names_are_found() -> None:
    assert problems("idd") == [("GB210", "there is no column `idd`")]
    assert problems("idd + upper(`a b`) > 1 as x") == [
        ("GB210", "there is no column `idd`"),
        ("GB210", "there is no column `a b`"),
    ]
    assert problems("window.ende") == [("GB210", "`window` has no field `ende`")]
    assert problems("at.x") == [("GB210", "`at` is a timestamp and has no field `x`")]
    assert problems("struct(id as n).m") == [("GB210", "there is no field `m`")]
    assert problems("oders.nothing.x") == [("GB210", "there is no column `oders.nothing.x`")]
    (finding,) = check_expression("idd > 1", Facts(columns=COLUMNS), ("columns", "x"))
    assert finding.option == ("columns", "x")
    assert finding.hint == "Did you mean `id`?"
    qualified = Facts(columns=COLUMNS).called("orders")
    (finding,) = check_expression("orders.idd = 1", qualified, "condition")
    assert finding.hint == "Did you mean `id`?"
    # The node's own columns can't be seen by aggregates and window functions.
    assert problems("sum(total)", also=["total"], aggregates="allowed") == [
        ("GB210", "there is no column `total`")
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "ID", "_metadata.file_path", "orders.at", "made.x.y", "made['k'].z", "current_date", "current_user", "new + 1",
        "transform(made, x -> x.y + id)", "aggregate(made, 0, (total, x) -> total + x, total -> total)",
        "window.start", "exists(made, x -> x > id)", "(select max(foreign) from other)", "f(x => id)",
        "timestampadd(hour, 1, at)", "date_add(day, 1, at)", "extract(day from at)", "trim(both 'x' from made)",
        "position('a' in made)", "count(*)", "struct(*)", "cast(made as struct<foreign: int>).foreign",
        "id in (select foreign from other)", "exists(select 1 from other where foreign = id)", "made:a.b",
        "sum(id) over w", "interval 1 hour + interval '2' day > interval 3 days", "from_json(made, 'a int').a",
    ],
)  # fmt: skip
def test_other_names_are_no_columns(expression: str) -> None:
    assert problems(expression, also=["new"], aggregates="allowed") == []
    assert problems(expression, None, aggregates="allowed") == []


def test_names_that_nodes_before_dropped() -> None:
    assert problems("gone > 1", dropped=["Gone"]) == []
    assert problems("orders.gone > 1", dropped=["gone"]) == []
    assert problems("anything > 1", dropped=None) == []
    assert problems("gone > 1") == [("GB210", "there is no column `gone`")]


def test_ambiguous_names_are_found() -> None:
    two = (
        replace(ID, qualifier="orders"),
        replace(ID, qualifier="payments"),
        replace(AT, qualifier="orders"),
    )
    assert problems("id > 1", two) == [("GB211", "`id` may be `orders.id` or `payments.id`")]
    assert problems("orders.id = payments.ID and at is not null", two) == []
    assert problems("id", (ID, Column("id", "string"))) == [("GB211", "there are several columns `id`")]
    # One column that was selected twice is still one.
    assert problems("id", (ID, ID)) == []


@pytest.mark.parametrize(
    ("expression", "rules", "message"),
    [
        ("max(id) > 1", {}, "`max` is an aggregate function, which can't stand here"),
        ("id", {"aggregates": "required"}, "there is no aggregate function in it"),
        ("rank() over (order by id)", {"analytic": False}, "a window function (`over`) can't stand here"),
        ("explode(made)", {"generators": False}, "`explode` makes several rows of one, which can't be done here"),
        ("explode(made) + 1", {}, "`explode` can't stand within another expression"),
        ("sum(max(id))", {"aggregates": "allowed"}, "`max` can't stand within another aggregate function"),
        ("rank()", {}, "`rank` needs an `over (…)`"),
        ("upper(made) over (order by id)", {}, "`upper` is a function of one row and can't have an `over (…)`"),
        ("count(distinct id) over ()", {}, "`count(distinct …)` can't have an `over (…)`"),
        ("sum(rank() over (order by id))", {"aggregates": "allowed"},
         "`rank(…) over (…)` can't stand within an aggregate function"),
        ("id + max(id)", {"aggregates": "allowed", "groups": ["at"]},
         "`id` is neither grouped by nor within an aggregate function"),
    ],
)  # fmt: skip
def test_functions_that_stand_where_they_can_t(expression: str, rules: dict[str, Any], message: str) -> None:
    assert problems(expression, **rules) == [("GB212", message)]


def test_functions_that_may_stand_there() -> None:
    assert problems("sum(sum(id)) over (order by max(id))", aggregates="allowed") == []
    assert problems("my_aggregate(id)", aggregates="required") == []
    assert problems("explode(collect_list(id))", aggregates="allowed") == []
    assert problems("(explode(made)) as e") == []
    assert problems("id", aggregates="allowed", groups=["id"]) == []


@pytest.mark.parametrize(
    ("expression", "rules", "message"),
    [
        ("id % 2", {"wants": "boolean"}, "`id % 2` is a bigint, and a condition must be true or false"),
        ("id", {"wants": "boolean"}, "`id` is a bigint, and a condition must be true or false"),
        ("null", {"wants": "boolean"}, "`null` is a void, and a condition must be true or false"),
        ("id", {"wants": "timestamp"}, "`id` is a bigint, and windows are over times"),
        ("struct(at)", {"wants": "timestamp"}, "`struct(at)` is a struct<at: timestamp>, and windows are over times"),
        ("id", {"wants": "interval"}, "`id` is a bigint, and a length of time is needed, as a text"),
        ("at + 1", {}, "`+` can't be applied to a timestamp and an int"),
        ("at > 5", {}, "`>` can't be applied to a timestamp and an int"),
        ("id and true", {}, "a bigint is no condition: `and`, `or` and `not` need booleans"),
        ("sum(id > 1)", {"aggregates": "allowed"}, "`sum` can't be applied to a boolean"),
        ("coalesce(at, 0)", {}, "`coalesce` can't be a timestamp and an int at once"),
        ("case when id then 1 end", {}, "a bigint is no condition for a `when`"),
        ("array(1) || 'x'", {}, "`||` can't be applied to an array<int> and a string"),
        ("-at", {}, "`-` can't be applied to a timestamp"),
        ("~ (id > 1)", {}, "`~` can't be applied to a boolean"),
        ("array(1) like 'x'", {}, "`like` can't be applied to an array<int>"),
        ("array(1) not rlike 'x'", {}, "`rlike` can't be applied to an array<int>"),
        ("at is true", {}, "`is` can't be applied to a timestamp and a boolean"),
        ("trim(array(id))", {}, "`trim` can't be applied to an array<bigint>"),
        ("substring(array(id), 1)", {}, "`substring` can't be applied to an array<bigint>"),
        ("extract(hour from id)", {}, "`extract` can't be applied to a bigint"),
        ("position('a' in array(id))", {}, "`position` can't be applied to an array<bigint>"),
        ("window(id, '1 minute').start", {}, "`window` is over times, and this is a bigint"),
        ("window_time(struct(id))", {}, "`window_time` is over windows, and this is a struct<id: bigint>"),
        ("map(1, id)", {"wants": "order"}, f"`map(1, id)` is {MAP}, and Spark can't put such values in order"),
        ("map(1, id)", {"wants": "equality"}, f"`map(1, id)` is {MAP}, and Spark can't tell two of them equal"),
        ("count(*) over (order by map(1, id) desc)", {}, f"`map(1, id)` is {MAP}, and Spark can't put such values in order"),
        ("count(*) over (partition by map(1, id))", {}, f"`map(1, id)` is {MAP}, and Spark can't put such values in order"),
        ("id in", {"wants": "boolean"}, "`id in` is a bigint, and a condition must be true or false"),
    ],
)  # fmt: skip
def test_wrong_types(expression: str, rules: dict[str, Any], message: str) -> None:
    assert problems(expression, **rules) == [("GB213", message)]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("replace(made)", "`replace` takes 2 or 3 arguments, not 1"),
        ("upper(made, 1)", "`upper` takes 1 argument, not 2"),
        ("coalesce()", "`coalesce` takes at least 1 argument, not 0"),
        ("if(id > 1, 2)", "`if` takes 3 arguments, not 2"),
        ("now(1)", "`now` takes no arguments, not 1"),
        ("make_timestamp(1, 2, 3, 4)", "`make_timestamp` takes 1, 2, 3, 6 or 7 arguments, not 4"),
        ("sum(distinct id, made)", "`sum` takes 1 argument, not 2"),
        ("sum(id, 1) over (order by id)", "`sum` takes 1 argument, not 2"),
        ("substring()", "`substring` takes 2 or 3 arguments, not 0"),
        ("substr(made)", "`substring` takes 2 or 3 arguments, not 1"),
        ("trim()", "`trim` takes 1 or 2 arguments, not 0"),
    ],
)
def test_wrong_numbers_of_arguments(expression: str, message: str) -> None:
    found = list(check_expression(expression, Facts(columns=COLUMNS), "o", aggregates="allowed"))
    assert [(finding.code, finding.message) for finding in found] == [("GB215", message)]


@pytest.mark.parametrize(
    "expression",
    [
        "coalesce(*)",
        "struct(*)",
        "hash(at, id, made)",
        "mask(lower('a'), upperChar => 'x')",
        "dateadd(day, 1, at)",
        "dateadd(at, 1)",
        "datediff(hour, at, at)",
        "count(distinct id, made)",
        "count(distinct *)",
        "count(id, made)",
        "ours(1, 2, 3)",
        "percentile_cont(0.5) within group (order by id)",
        "lag(id, 2) over (order by at)",
    ],
)
def test_numbers_of_arguments_that_may_be_right(expression: str) -> None:
    assert list(check_expression(expression, Facts(columns=COLUMNS), "o", aggregates="allowed")) == []


def test_functions_that_are_nearly_spark_s() -> None:
    def said(expression: str) -> list[tuple[str, str, str]]:
        found = check_expression(expression, Facts(columns=COLUMNS), "o", aggregates="allowed")
        return [(finding.code, finding.severity, finding.hint) for finding in found]

    for expression, hint in {
        "uper(made)": "Did you mean `upper` or `user`?",
        "dateFormat(at, 'yyyy')": "Did you mean `date_format`?",
        "max(substrng(made, 1))": "Did you mean `substring`?",
        "max(subsrting(made, 1))": "Did you mean `substring`?",
        "count_distinct(id)": "In SQL it is `count(distinct …)`.",
        "id > lit(5)": "In SQL it is the value itself.",
        "cnt(id)": "Did you mean `count`?",
        "lwr(made)": "Did you mean `lower`?",
    }.items():
        assert said(expression) == [("GB216", "warning", hint)]
    for fine in ("sun(id)", "ours(id)", "our_own(id)", "upper(made)"):
        assert said(fine) == []


@pytest.mark.parametrize("expression", ["user", "USER", "upper(user) as who", "user = made", "max(`user`)"])
def test_a_name_that_spark_takes_for_who_runs_it(expression: str) -> None:
    def told(*columns: Column) -> list[tuple[str, str, str]]:
        found = check_expression(
            expression, Facts(columns=columns), "o", aggregates="allowed", dropped=["user"]
        )
        return [(finding.code, finding.severity, finding.hint) for finding in found]

    assert told(*COLUMNS) == [("GB219", "warning", "Write `current_user()` if that is meant.")]
    assert told(*COLUMNS, Column("user", "string")) == []


def test_values_that_no_column_is_called_say_nothing() -> None:
    for expression in ("current_user", "session_user = made", "current_date", "upper(current_user())"):
        assert list(check_expression(expression, Facts(columns=COLUMNS), "o")) == []
    assert list(check_expression("user", Facts(), "o")) == []
    assert list(check_expression("user", Facts(columns=COLUMNS), "o", also=["user"])) == []


def test_elements_of_what_has_none() -> None:
    assert problems("id[0] > 1") == [("GB210", "a bigint has no elements")]
    assert problems("upper(made)['x'] = 1") == []
    assert problems("array(struct(id as a))['a'][0] + at") == [
        ("GB213", "`+` can't be applied to a bigint and a timestamp")
    ]


def test_names_that_no_input_has() -> None:
    def said(expression: str, facts: Facts) -> list[str]:
        return [finding.message for finding in check_expression(expression, facts, "o")]

    plain = Facts(columns=COLUMNS, qualifiers=frozenset())
    assert said("nobody.id > 1", plain) == ["there is no column `nobody.id`"]
    assert said("nobody.id", plain) == ["there is no column `nobody.id`"]
    assert said("window.start > at", plain) == []
    assert said("session.id > 1", plain) == []
    # A table's own name may stand before its columns.
    assert said("nobody.id > 1", Facts(columns=COLUMNS)) == []
    called = plain.called("Orders")
    assert said("orders.id > 1", called) == []
    assert said("nobody.id > 1", called) == ["there is no column `nobody.id`"]


def test_inputs_keep_the_names_that_may_stand_before_columns() -> None:
    left, right = (Facts(columns=COLUMNS, qualifiers=frozenset()).called(name) for name in "lr")
    assert combined(Operator("union"), [left, right]).qualifiers == {"l", "r"}
    assert combined(Operator("union"), [left, Facts(columns=COLUMNS)]).qualifiers is None
    assert combined(Operator("unknown"), [left, right]).qualifiers is None
    assert left.with_columns(COLUMNS).called("R").qualifiers == {"r"}


def test_fields_of_structs_that_are_made_on_the_spot() -> None:
    facts = Facts(columns=COLUMNS)
    found = list(check_expression("struct(id as a, ours(id) as b).c", facts, "o"))
    assert [(f.code, f.message, f.hint) for f in found] == [
        ("GB210", "there is no field `c`", "Known fields: `a`, `b`.")
    ]
    for fine in (
        "struct(id as a, ours(id) as b).B",
        "struct((id)).id",
        "struct(ours(id)).x",
        "ours(id).c",
        "struct(id, made).made",
    ):
        assert list(check_expression(fine, facts, "o")) == []


@pytest.mark.parametrize(
    ("expression", "wants"),
    [
        ("id > 1", "boolean"), ("made", "boolean"), ("f(id)", "boolean"), ("at", "timestamp"),
        ("window", "timestamp"), ("date(at)", "timestamp"), ("'2024-01-01'", "timestamp"), ("'5 minutes'", "interval"),
        ("case when id > 1 then '1 minute' else '2 minutes' end", "interval"), ("at > '2024-01-01'", "boolean"),
    ],
)  # fmt: skip
def test_types_that_fit(expression: str, wants: Any) -> None:
    assert problems(expression, wants=wants) == []


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("id % = 0", "`%` and `=` stand side by side"),
        ("id +", "nothing stands behind the last `+`"),
        ("= id", "nothing stands before `=`"),
        ("f(id,)", "`,` and `)` stand side by side"),
        ("a..b", "`.` and `.` stand side by side"),
        ("(id", "`)` is missing"),
        ("id]", "`]` closes nothing"),
        ("id = 'x", "a ' is not closed"),
        ("-- nothing", "there is nothing in it"),
        ("cast(id as)", "the type is missing behind the last `as` of a `cast`"),
        ("upper(try_cast(f(id) as ) )", "the type is missing behind the last `as` of a `cast`"),
        ("cast(id as nothing)", "there is no type `nothing`"),
        ("* id", "nothing stands before `*`"),
        ("a b c", "`a`, `b` and `c` stand side by side"),
        ("f(id, `a b` c `d`)", "`a b`, `c` and `d` stand side by side"),
    ],
)
def test_what_can_t_be_read(expression: str, reason: str) -> None:
    assert problems(expression) == [("GB214", f"`{expression}` can't be read: {reason}")]


@pytest.mark.parametrize(
    "expression",
    [
        *("* except (id)", "cast(id as interval day)", "cast(id as Numeric)", "f(id as x)", "f(*)"),
        *("id in", "at + interval 1 day 2 hours", "position('a' in made)"),
        "first(made) ignore nulls over (partition by id)",
        "sum(id) over (partition by made order by at desc nulls last rows between 1 preceding and current row)",
        "id in (select a b from c d where e > 1)",
    ],
)
def test_what_looks_odd_and_can_be_read(expression: str) -> None:
    assert problems(expression) == []


@pytest.mark.parametrize(
    "expression",
    [
        "id >>> 1",
        "made:x[0]",
        "/* + */ (",
        "cast(made as array<void>)",
        "cast(made as struct<>)",
        "id; x",
    ],
)
def test_what_only_spark_can_read_is_passed_over(expression: str) -> None:
    assert problems(expression) == []
    assert not analyse(expression, COLUMNS).parsed


HOSTILE = [
    "(" * 5000 + "id" + ")" * 5000, "not " * 100_000 + "id", "id + " * 200_000 + "id", "f(" * 3000, "'" * 100_001,
    "id" + "[0]" * 4000, "a." * 9000 + "a", " and ".join(["id > 1"] * 900), "case when " * 2000,
    "struct(" * 40 + "1" + ")" * 40, "decimal(" * 40 + "1" + ")" * 40, "cast(a as " + "array<" * 300 + "int)",
    "interval " * 2000, "`" * 9999, "\0" * 1000, "a" + " " * 19_000 + "b", "id in (" + ",".join(["1"] * 4000) + ")",
    "id" + " as" * 6000, "-" * 15_000, "x -> " * 3000, "a=" * 9000,
]  # fmt: skip


@pytest.mark.sample(7)
@pytest.mark.parametrize("expression", HOSTILE, ids=lambda text: text[:12])
def test_hostile_expressions_end_soon(expression: str) -> None:
    assert calls_of(lambda: ask_everything(expression)) < 2_000_000


def ask_everything(expression: str) -> None:
    """All that a check could want to know of an expression."""
    facts = Facts(streaming=True, columns=COLUMNS)
    analyse(expression, COLUMNS)
    list(check_expression(expression, facts, "o", groups=["id"]))
    join_condition(expression, facts, facts, ("l", "r"))
    project([expression], facts)
    time_delay(expression, COLUMNS)


@given(st.text(alphabet="abid01.,()[]<>=+-*/%'\"` \n!&|~^:?as", max_size=40))
@settings(max_examples=examples(60, 3000), deadline=None)
def test_any_text_is_an_expression_or_none(text: str) -> None:
    facts = Facts(streaming=True, columns=COLUMNS)
    assert isinstance(analyse(text, COLUMNS, name="x"), Analysis)
    assert isinstance(list(check_expression(text, facts, "o", groups=[text])), list)
    join_condition(text, facts, facts, ("l", "r"))


def test_every_expression_is_as_much_work_however_many_there_are() -> None:
    def calls(numbers: range) -> int:
        texts = [f"case when id > {n} and made is not null then id * {n} else {n} end" for n in numbers]
        return calls_of(lambda: [analyse(text, COLUMNS, name="x") for text in texts])

    first = calls(range(1_000, 1_100))
    assert first < 100 * 3_000
    assert calls(range(2_000, 2_500)) < 6 * first


@pytest.mark.programs
def test_plain_references_need_no_parser() -> None:
    probe = """
import sys
from gem_bundle.expressions import *
from gem_bundle.expressions import analyse, check_expression, project, time_delay
from gem_bundle.facts import Column, Facts
columns = (Column("at", "timestamp"), Column("id", "bigint"))
facts = Facts(columns=columns)
analyse("at as t", columns), list(check_expression("orders.id", facts, "o")), list(check_expression("x", facts, "o"))
project(["*", "at", "(id) as n"], facts), time_delay("at", columns)
assert "sqlglot" not in sys.modules
analyse("id + 1", columns)
assert "sqlglot" in sys.modules and "pyspark" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", probe], check=True)


def test_the_parser_says_nothing(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    for expression in (
        "made -> '$.a[', 1",
        "select 1; drop table x",
        "explain id",
        "id at time zone 'x'",
        "@id",
    ):
        analyse(expression, COLUMNS)
    assert caplog.records == []
    assert capsys.readouterr() == ("", "")


def test_only_names_that_can_be_nothing_else_are_missing() -> None:
    facts = Facts(streaming=True, columns=COLUMNS)
    fine = ["ID", "_metadata", "x.y", "amount * 2", "current_date", "new", "at as t", "t", "*"]
    assert list(missing_columns(fine, facts, "columns", also=["new"])) == []
    (finding,) = missing_columns(["idd"], facts, "columns")
    assert (finding.code, finding.option, finding.severity) == ("GB210", "columns", "error")
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


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("b.at <= a.at + interval 1 hour", "b.at <= a.at + interval 30 minutes", True),
        ("b.at <= a.at + interval 1 hour", "b.at <= a.at + interval '59 minutes'", True),
        ("b.at <= a.at + interval 1 hour", "b.at <= a.at + interval 2 hours", False),
        ("a.n = b.n and b.at >= a.at - interval 1 hour", "a.n = b.n and b.at >= a.at - interval 1 minute", True),
        ("b.at >= a.at - interval 1 hour", "b.at >= a.at - interval 90 minutes", False),
        ("b.at between a.at - interval 1 hour and a.at + interval 1 hour", "b.at between a.at - interval 1 minute and a.at + interval 1 hour", True),
        ("b.at between a.at - interval 1 hour and a.at + interval 1 hour", "b.at between a.at - interval 1 minute and a.at + interval 2 hours", False),
        ("b.at - interval 1 hour < a.at", "b.at - interval 1 minute < a.at", True),
        # Whether the end is a part of it is another matter, and so is another column.
        ("b.at <= a.at + interval 1 hour", "b.at < a.at + interval 30 minutes", False),
        ("b.at <= a.at + interval 1 hour", "b.seen <= a.at + interval 30 minutes", False),
        ("b.at <= a.at + interval 1 hour", "b.at <= a.at + interval 30 minutes and a.n > 1", False),
        ("b.at <= a.at + interval 1 day", "b.at <= a.at + interval 1 hour", False),
        ("b.at <= a.at + n", "b.at <= a.at + m", False),
        ("b.at <= (", "b.at <= a.at", False),
    ],
)  # fmt: skip
def test_a_condition_that_only_narrows(before: str, after: str, expected: bool) -> None:
    assert only_narrows(before, after) is expected
