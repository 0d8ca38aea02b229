"""Several columns with a watermark where an operator with state goes by one."""

from __future__ import annotations

import pytest

from tests.core.streams import TWO_MARKED, assert_found, check, errors

TIMELY = "  timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}\n"
COPIED = f"transforms:\n{TIMELY}  copied: {{gem: with_columns, input: timely, options: {{columns: {{at: timestamp}}}}}}\n"
ONE = "spark: {spark.sql.streaming.statefulOperator.allowMultiple: false}\n"
CHOSEN = """  paired:
    gem: join
    inputs: [shown, clicked]
    options: {condition: shown.value = clicked.value and shown.timestamp = clicked.timestamp}
  chosen:
    gem: select
    input: paired
    options: {columns: {value: shown.value, shown_at: shown.timestamp, clicked_at: clicked.timestamp}}
"""


def target(node: str = "last", mode: str = "append") -> str:
    return f"targets:\n  screen: {{gem: console, input: {node}, output_mode: {mode}}}\n"


def once(*options: str, source: str = "copied", name: str = "last") -> str:
    return f"  {name}: {{gem: deduplicate, input: {source}, options: {{{', '.join(options)}}}}}\n"


def then(gem: str, options: str, source: str = "once", name: str = "last") -> str:
    return f"  {name}: {{gem: {gem}, input: {source}, options: {{{options}}}}}\n"


def several(piece: str) -> list[str]:
    """The nodes at which several event times are found."""
    return [node for code, node in errors(piece) if code == "GB337"]


# Deduplications


def test_a_copy_of_event_time_is_event_time_too() -> None:
    (found,) = assert_found(COPIED + once("columns: value", "within_watermark: ▶true") + target(), "GB337")
    assert found.severity == "error"
    assert found.message == (
        "transform `last`: several columns of its input carry a watermark (`timestamp` and `at`), and Spark goes "
        "by one: the query fails as soon as it is started"
    )
    assert found.hint == (
        "Leave all but one out in a `select` before it, or take the watermark off the others there: "
        "`at + interval 0 seconds`. A cast isn't enough."
    )


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("columns", ["columns: value", "columns: at", "columns: [AT, timestamp]", ""])
def test_all_columns_that_come_out_count(columns: str, mode: str) -> None:
    assert several(COPIED + once(columns) + target(mode=mode)) == ["last"]


@pytest.mark.parametrize(
    "columns", ["{at: timestamp + interval 0 seconds}", "{at: string(timestamp)}", "{timestamp: timestamp}"]
)
def test_one_event_time_is_fine(columns: str) -> None:
    piece = COPIED.replace("{at: timestamp}", columns)
    assert several(piece + once("columns: value", "within_watermark: true") + target()) == []


def test_one_column_that_is_selected_twice_is_one() -> None:
    for columns in ("[value, timestamp, timestamp]", "[value, timestamp, TIMESTAMP]"):
        piece = f"transforms:\n{TIMELY}" + then("select", f"columns: {columns}", "timely", "copied")
        assert several(piece + once("columns: value") + target()) == []


@pytest.mark.parametrize(
    ("behind", "fails"),
    [
        ("columns: [value, at]", False),
        ("columns: [value, at, timestamp]", True),
        ("columns: [value, at, at as timestamp]", False),
        ("columns: {first: at, second: at}", False),
        ("columns: {first: at, second: timestamp}", True),
        ("columns: {first: at, second: timestamp.start}", False),
        ("columns: ['*']", True),
    ],
)
def test_what_nobody_uses_behind_it_is_left_out(behind: str, fails: bool) -> None:
    piece = COPIED + once("columns: value", name="once") + then("select", behind)
    assert several(piece + target()) == (["once"] if fails else [])


def test_what_the_deduplication_uses_itself_is_not_left_out() -> None:
    none = then("select", "columns: [value]")
    assert several(COPIED + once("columns: [at]", name="once") + none + target()) == []
    assert several(COPIED + once("columns: [at, timestamp]", name="once") + none + target()) == ["once"]
    assert several(COPIED + once("", name="once") + none + target()) == ["once"]
    within = once("columns: value", "within_watermark: true", name="once")
    assert several(COPIED + within + none + target()) == ["once"]


@pytest.mark.parametrize(
    "behind",
    [
        then("rename", "columns: {at: moment}"),
        then("filter", "condition: value > 1"),
        then("limit", "rows: 5"),
        then("sql", "query: 'select timestamp, o.at from once o'"),
        "  last: {gem: union, inputs: [once, copied]}\n",
        "  last: {gem: union, inputs: [copied, once], options: {by_name: true}}\n",
        "  last:\n    gem: sql\n    inputs: [copied, once]\n"
        "    options: {query: select * from copied union all select * from once}\n",
        once("columns: value", source="once"),
    ],
)
def test_columns_are_followed_to_the_target(behind: str) -> None:
    assert "once" in several(COPIED + once("columns: value", name="once") + behind + target())


def test_where_one_target_leaves_a_column_out_it_is_said_at_the_other() -> None:
    piece = COPIED + once("columns: value", name="once") + then("select", "columns: [value, at]")
    targets = "targets:\n  narrow: {gem: console, input: last}\n  wide:\n    gem: console\n    input: ▶once\n"
    text = (piece + targets).replace("▶", "")
    (found,) = [d for d in check(text).diagnostics if d.code == "GB337"]
    line = next(n for n, row in enumerate((piece + targets).splitlines(), 1) if "▶" in row)
    assert (found.node, found.line) == ("wide", line)
    assert found.message.startswith("target `wide`: at `once` several columns of its input carry a watermark")


@pytest.mark.parametrize(
    ("options", "fails"),
    [("topic: t", True), ("topic: t, value: string(value)", False), ("topic: t, key: string(value)", False)],
)
def test_a_target_that_computes_columns_may_leave_some_out(options: str, fails: bool) -> None:
    brokers = "bootstrap_servers: 'localhost:9092'"
    kafka = f"targets:\n  sent: {{gem: kafka, input: last, options: {{{brokers}, {options}}}}}\n"
    assert several(COPIED + once("columns: value") + kafka) == (["last"] if fails else [])


def test_the_older_behaviour_takes_the_first_except_within_a_watermark() -> None:
    within = once("columns: value", "within_watermark: true")
    assert several(ONE + COPIED + once("columns: value") + target()) == []
    assert several(ONE + COPIED + within + target()) == ["last"]


def test_static_rows_have_no_event_time() -> None:
    piece = (
        "sources:\n  ticks: {gem: rate}\n  names:\n    gem: file\n    mode: batch\n"
        "    options: {format: csv, path: n, schema: 'value bigint, at timestamp'}\n"
        "transforms:\n  timely: {gem: watermark, input: names, options: {column: at, delay: 1 minute}}\n"
        "  copied: {gem: with_columns, input: timely, options: {columns: {also: at}}}\n"
        + once("columns: value", name="once")
        + "  last: {gem: join, inputs: [ticks, once], options: {on: value}}\n"
    )
    assert several(piece + target()) == []


# Joins


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_each_input_of_a_join_has_one_event_time(how: str) -> None:
    condition = "copied.value = clicked.value and copied.timestamp = clicked.timestamp"
    piece = (
        TWO_MARKED
        + "  copied: {gem: with_columns, input: shown, options: {columns: {at: timestamp}}}\n"
        + f"  last:\n    gem: join\n    inputs: [copied, clicked]\n    options:\n      how: {how}\n"
        + f"      condition: ▶{condition}\n"
    )
    text = piece.replace("▶", "")
    (found,) = [d for d in check(text + target()).diagnostics if d.is_error]
    assert (found.code, found.node) == ("GB337", "last")
    assert found.line == next(n for n, row in enumerate(piece.splitlines(), 1) if "▶" in row)
    assert (
        "columns of one of its inputs carry a watermark (`copied.timestamp` and `copied.at`)" in found.message
    )
    assert several(ONE + text + target()) == []


def test_each_input_may_have_one() -> None:
    assert several(TWO_MARKED + CHOSEN + target("chosen")) == []


def test_a_left_semi_join_makes_copies_behind_it() -> None:
    piece = (
        TWO_MARKED
        + "  copied: {gem: with_columns, input: shown, options: {columns: {at: timestamp}}}\n"
        + "  last:\n    gem: join\n    inputs: [copied, clicked]\n    options:\n      how: left_semi\n"
        + "      condition: copied.value = clicked.value and copied.timestamp = clicked.timestamp\n"
    )
    assert several(piece + target()) == []


def test_behind_a_join_of_two_marked_streams_there_are_two() -> None:
    within = once("columns: value", "within_watermark: true", source="chosen")
    assert several(TWO_MARKED + CHOSEN + within + target()) == ["last"]
    one = CHOSEN.replace(", clicked_at: clicked.timestamp", "")
    assert several(TWO_MARKED + one + within + target()) == []


def test_event_times_of_one_name_are_two_behind_a_join() -> None:
    paired = CHOSEN[: CHOSEN.index("  chosen:")]
    piece = TWO_MARKED + paired + once("within_watermark: true", source="paired")
    (found,) = [d for d in check(piece + target()).diagnostics if d.code == "GB337"]
    assert "(`shown.timestamp` and `clicked.timestamp`)" in found.message


@pytest.mark.parametrize(
    ("columns", "fails"),
    [
        ("shown.timestamp, clicked.timestamp as clicked_at", True),
        ("shown.timestamp, views.value", False),
        ("clicked.timestamp", False),
    ],
)
def test_a_third_stream(columns: str, fails: bool) -> None:
    text = (
        f"select {columns} from shown join clicked on shown.value = clicked.value "
        "and shown.timestamp = clicked.timestamp join views on views.value = shown.value"
    )
    sources = TWO_MARKED.replace("  clicks: {gem: rate}\n", "  clicks: {gem: rate}\n  views: {gem: rate}\n")
    piece = sources + f"  last: {{gem: sql, inputs: [shown, clicked, views], options: {{query: '{text}'}}}}\n"
    assert several(piece + target()) == (["last"] if fails else [])
    # Without a condition at each join Spark may join in another order.
    first, second = (
        "shown.value = clicked.value and shown.timestamp = clicked.timestamp",
        "views.value = shown.value",
    )
    comma = text.replace(f" join clicked on {first} join views on {second}", ", clicked, views where ")
    assert several(piece.replace(text, f"{comma}{first} and {second}") + target()) == []


def test_a_join_with_a_static_relation_goes_by_no_event_time() -> None:
    piece = (
        "sources:\n  ticks: {gem: rate}\n  names:\n    gem: file\n    mode: batch\n"
        "    options: {format: csv, path: n, schema: 'value bigint, name string'}\n"
        + COPIED
        + "  last: {gem: join, inputs: [copied, names], options: {on: value}}\n"
    )
    assert several(piece + target()) == []


# Aggregations


def grouped(groups: str, window: str = "window: {column: timestamp, duration: 1 minute}, ") -> str:
    return then("aggregate", f"{window}group_by: {groups}, aggregates: {{rows: count(*)}}", "copied")


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_window_and_the_time_it_is_over_are_two(mode: str) -> None:
    piece = COPIED + (
        "  last:\n    gem: aggregate\n    input: copied\n    options:\n"
        "      window: {column: timestamp, duration: 1 minute}\n"
        "      group_by: ▶[timestamp]\n      aggregates: {rows: count(*)}\n"
    )
    (found,) = assert_found(piece + target(mode=mode), "GB337")
    assert "several groups carry a watermark (`window` and `timestamp`)" in found.message
    assert found.hint == (
        "Group by one of them only, or take the watermark off: `timestamp + interval 0 seconds`."
    )
    assert several(ONE + piece.replace("▶", "") + target(mode=mode)) == []


@pytest.mark.parametrize(
    ("groups", "fails"),
    [
        ("[value]", False),
        ("[at]", True),
        ("{moment: at}", True),
        ("[cast(at as timestamp)]", False),
        ("[at + interval 0 seconds]", False),
        ("{again: \"window(timestamp, '1 minute')\"}", False),
    ],
)
def test_groups_that_are_event_time(groups: str, fails: bool) -> None:
    assert several(COPIED + grouped(groups) + target()) == (["last"] if fails else [])


def test_one_event_time_under_two_names_is_one_group() -> None:
    assert several(COPIED + grouped("{first: at, second: at}", "") + target()) == []
    assert several(COPIED + grouped("{first: at, second: timestamp}", "") + target()) == ["last"]
    assert several(COPIED + grouped("[at, AT]", "") + target()) == []


def test_complete_keeps_everything_and_looks_for_no_event_time_but_sessions_do() -> None:
    assert several(COPIED + grouped("[at]") + target(mode="complete")) == []
    session = "session: {column: timestamp, gap: 1 minute}, "
    assert several(COPIED + grouped("[at]", session) + target(mode="complete")) == ["last"]


def test_of_two_targets_complete_is_fine() -> None:
    targets = target() + "  board: {gem: memory, input: last, output_mode: complete}\n"
    assert several(COPIED + grouped("[at]") + targets) == ["screen"]


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("select distinct * from copied", True),
        ("select distinct value, at from copied", False),
        ("select at, timestamp, count(*) as n from copied group by 1, 2", True),
        ("select at, at as other, count(*) as n from copied group by 1, 2", False),
        ("select at, timestamp, count(*) as n from copied group by all", True),
        ("select at, timestamp, count(*) as n from copied group by rollup (at, timestamp)", False),
        ("with c as (select distinct * from copied) select value from copied", False),
        ("select distinct * from (select distinct * from copied)", False),
    ],
)
def test_groups_in_a_query(text: str, fails: bool) -> None:
    piece = COPIED + then("sql", f"query: {text}".replace("query: ", 'query: "') + '"', "copied")
    assert several(piece + target()) == (["last"] if fails else [])
