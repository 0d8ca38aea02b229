"""Output modes: what a target can be given in append, update and complete mode."""

from __future__ import annotations

import pytest

from tests.core.streams import (
    BY_VALUE,
    BY_WINDOW,
    STATIC,
    TIMELY,
    TWO_MARKED,
    TWO_STREAMS,
    assert_found,
    check,
    errors,
)

BY_SESSION = """
    options:
      session: {column: timestamp, gap: 1 minute}
      group_by: [value]
      aggregates: {rows: count(*)}
"""
RANGE = (
    "ads.value = clicks.value and clicks.timestamp between ads.timestamp and ads.timestamp + interval 1 hour"
)


def screen(node: str, mode: str = "append") -> str:
    """A target with its output mode marked."""
    return f"targets:\n  screen: {{gem: console, input: {node}, output_mode: ▶{mode}}}\n"


def plain(node: str, mode: str = "append") -> str:
    return screen(node, mode).replace("▶", "")


def counted(options: str = BY_WINDOW, source: str = "timely") -> str:
    return f"transforms:\n{TIMELY}  counts:\n    gem: aggregate\n    input: {source}\n    {options.strip()}\n"


# Append


def test_append_needs_a_watermark_for_an_aggregation() -> None:
    piece = f"transforms:\n  counts:\n    gem: aggregate\n    input: ticks\n    {BY_WINDOW.strip()}\n"
    (found,) = assert_found(piece + screen("counts"), "GB301")

    assert found.message == (
        "target `screen`: append can't emit the aggregation `counts`, whose result may still change: "
        "no watermark says when a group has got all its rows"
    )
    assert found.hint == (
        "Put a `watermark` on the event time before `counts`, and group by it or by a `window` over it; or "
        "use `update` or `complete`."
    )
    assert errors(counted() + plain("counts")) == []


def test_without_the_key_the_place_is_the_targets() -> None:
    piece = f"transforms:\n  counts: {{gem: aggregate, input: ticks, {BY_VALUE}}}\n"
    assert_found(piece + "targets:\n  ▶screen: {gem: console, input: counts}\n", "GB301")


@pytest.mark.parametrize("by", ["timestamp", "window(timestamp, '1 minute')", "timestamp, value"])
def test_append_takes_groups_that_contain_event_time(by: str) -> None:
    options = f'options: {{group_by: ["{by}"], aggregates: {{rows: count(*)}}}}'.replace(
        ", value", '", "value'
    )
    assert errors(counted(options) + plain("counts")) == []


@pytest.mark.parametrize(
    "by", ["value", "date(timestamp)", "cast(timestamp as timestamp)", "timestamp + interval 1 hour"]
)
def test_append_refuses_groups_that_contain_only_what_is_made_of_event_time(by: str) -> None:
    options = f"options: {{group_by: {{key: {by}}}, aggregates: {{rows: count(*)}}}}"
    found = [d for d in check(counted(options) + plain("counts")).diagnostics if d.is_error]

    assert [d.code for d in found] == ["GB301"]
    assert "it doesn't group by `timestamp`, which carries the watermark of `timely`" in found[0].message
    assert found[0].hint.startswith("Pass `timestamp` on as it is")


def test_append_refuses_an_aggregation_over_all_rows() -> None:
    options = "options: {aggregates: {rows: count(*)}}"
    assert errors(counted(options) + plain("counts")) == [("GB301", "screen")]


def test_a_watermark_behind_the_aggregation_doesnt_serve_it() -> None:
    piece = (
        "transforms:\n"
        "  counts: {gem: aggregate, input: ticks, options: {group_by: [timestamp], aggregates: {rows: count(*)}}}\n"
        "  late: {gem: watermark, input: counts, options: {column: ▶timestamp, delay: 1 minute}}\n"
    )
    note, found = assert_found(piece + screen("late"), "GB335", "GB301")

    assert note.severity == "note"
    assert found.message.endswith("the watermark of `late` comes only after it")
    assert found.hint.startswith("Put `late` before `counts`")


def test_all_aggregations_of_a_query_are_looked_at_not_only_the_last() -> None:
    piece = counted() + f"  again: {{gem: aggregate, input: counts, {BY_VALUE.replace('value', 'rows')}}}\n"
    (found,) = assert_found(piece + screen("again"), "GB301")

    assert "the aggregation `again`" in found.message
    first = (
        f"transforms:\n  counts: {{gem: aggregate, input: ticks, {BY_VALUE.replace('count(*)', 'max(timestamp)')}}}\n"
        "  late: {gem: watermark, input: counts, options: {column: rows, delay: 1 minute}}\n"
        "  again: {gem: aggregate, input: late, options: {group_by: [rows], aggregates: {all: count(*)}}}\n"
    )
    (found,) = assert_found(first + screen("again"), "GB301")
    assert "the aggregation `counts`" in found.message


@pytest.mark.parametrize(
    "query",
    [
        "select distinct value from timely",
        "select value from timely union select value + 1 as value from timely",
    ],
)
def test_append_refuses_distinct_rows_without_event_time(query: str) -> None:
    piece = f"transforms:\n{TIMELY}  once: {{gem: sql, input: timely, options: {{query: {query}}}}}\n"
    found = [d for d in check(piece + plain("once")).diagnostics if d.is_error]

    assert [d.code for d in found] == ["GB301"]
    assert "append can't emit the distinct rows of `once`" in found[0].message
    assert "aggregation" not in found[0].message + found[0].hint


def test_append_takes_distinct_rows_with_event_time() -> None:
    query = "select distinct value, timestamp from timely"
    piece = f'transforms:\n{TIMELY}  once: {{gem: sql, input: timely, options: {{query: "{query}"}}}}\n'
    assert errors(piece + plain("once")) == []


def test_an_aggregation_of_a_static_relation_is_no_aggregation_of_a_stream() -> None:
    piece = (
        "sources:\n  ticks: {gem: rate}\n" + STATIC.lstrip("\n") + "transforms:\n"
        "  sizes: {gem: aggregate, input: names, options: {group_by: [value], aggregates: {size: count(*)}}}\n"
        "  sized: {gem: join, inputs: [ticks, sizes], options: {on: [value]}}\n"
    )
    assert_found(piece + plain("sized"))
    assert errors(piece + plain("sized", "complete")) == [("GB302", "screen")]


def test_session_windows_can_be_appended_and_completed() -> None:
    piece = counted(BY_SESSION)

    assert errors(piece + plain("counts")) == []
    assert errors(piece + plain("counts", "complete")) == []
    (found,) = assert_found(piece + screen("counts", "update"), "GB303")
    assert "a session that grows takes the place of others" in found.message
    assert found.hint == "Use `append` or `complete`."


def test_for_session_windows_update_is_not_proposed() -> None:
    (found,) = assert_found(
        f"transforms:\n  counts:\n    gem: aggregate\n    input: ticks\n    {BY_SESSION.strip()}\n"
        + screen("counts"),
        "GB301",
    )

    assert found.hint.endswith("; or use `complete`.")


def test_sessions_stay_sessions_when_they_are_grouped_by_again() -> None:
    piece = counted(BY_SESSION) + (
        "  passed: {gem: rename, input: counts, options: {columns: {session_window: visit}}}\n"
        "  again:\n    gem: aggregate\n    input: passed\n"
        "    options: {group_by: [visit, value], aggregates: {all: count(*)}}\n"
    )
    assert errors(piece + plain("again")) == []
    *found, _ = assert_found(piece + screen("again", "▶▶update"), "GB303", "GB303", "GB308")
    assert {"`counts`" in d.message for d in found} == {True, False}
    assert {"`again`" in d.message for d in found} == {True, False}


# Update and complete


def test_complete_needs_an_aggregation_of_the_stream() -> None:
    (found,) = assert_found(screen("ticks", "complete"), "GB302")

    assert found.hint == "Use `append`, or put an `aggregate` before the target."
    assert_found(
        f"transforms:\n  counts: {{gem: aggregate, input: ticks, {BY_VALUE}}}\n" + plain("counts", "complete")
    )


def test_complete_takes_distinct_rows() -> None:
    piece = (
        "transforms:\n  once: {gem: sql, input: ticks, options: {query: select distinct value from ticks}}\n"
    )
    assert_found(piece + plain("once", "complete"))


@pytest.mark.parametrize("mode", ["append", "update"])
def test_rows_without_operators_can_be_appended_and_updated(mode: str) -> None:
    piece = (
        "transforms:\n"
        "  even: {gem: filter, input: ticks, options: {condition: value % 2 = 0}}\n"
        "  halves: {gem: select, input: even, options: {columns: {half: value / 2}}}\n"
    )
    assert_found(piece + plain("halves", mode))


@pytest.mark.parametrize(
    ("how", "update"),
    [("inner", True), ("left_semi", True), ("left", False), ("right", False), ("full", False)],
)
def test_joins_of_streams_and_output_modes(how: str, update: bool) -> None:
    piece = TWO_MARKED + (
        "  paired:\n    gem: join\n    inputs: {ads: shown, clicks: clicked}\n"
        f"    options: {{how: {how}, condition: '{RANGE}'}}\n"
    )
    assert errors(piece + plain("paired")) == []
    assert errors(piece + plain("paired", "update")) == ([] if update else [("GB303", "screen")])
    assert errors(piece + plain("paired", "complete")) == [("GB302", "screen"), ("GB303", "screen")]


def test_a_join_that_cant_be_updated_is_said_at_the_output_mode() -> None:
    piece = TWO_MARKED + (
        "  paired:\n    gem: join\n    inputs: {ads: shown, clicks: clicked}\n"
        f"    options: {{how: left, condition: '{RANGE}'}}\n"
    )
    target = "targets:\n  screen: {gem: console, input: ▶paired, output_mode: ▶update}\n"
    _, found = assert_found(piece + target, "GB332", "GB303")

    assert found.message.startswith(
        "target `screen`: update can't emit a left outer join of two streams (`paired`)"
    )
    assert found.hint == "Use `append`."


@pytest.mark.parametrize("how", ["inner", "left", "left_semi", "left_anti", "cross"])
@pytest.mark.parametrize("mode", ["append", "update"])
def test_joins_with_a_static_relation_can_be_appended_and_updated(how: str, mode: str) -> None:
    options = "{how: cross}" if how == "cross" else f"{{how: {how}, on: [value]}}"
    piece = (
        "sources:\n  ticks: {gem: rate}\n" + STATIC.lstrip("\n") + "transforms:\n"
        f"  named: {{gem: join, inputs: [ticks, names], options: {options}}}\n"
    )
    assert_found(piece + plain("named", mode))


# Sort and limit


def test_a_stream_cant_be_sorted() -> None:
    piece = "transforms:\n  ordered: {gem: sort, input: ticks, options: {by: ▶value}}\n"
    for mode in ("append", "update"):
        (found,) = assert_found(piece + plain("ordered", mode), "GB304")
        assert found.message.startswith("transform `ordered`: a stream can't be sorted: that takes all rows")
        assert "Remove `ordered`" in found.hint


def test_in_complete_mode_a_sort_without_an_aggregation_is_said_at_the_mode() -> None:
    piece = "transforms:\n  ordered: {gem: sort, input: ticks, options: {by: value}}\n"
    _, found = assert_found(piece + screen("ordered", "▶complete"), "GB302", "GB304")
    assert found.message.startswith("target `screen`: `ordered` can't sort a stream: that takes all rows")


def test_a_sort_before_two_targets_is_said_once_where_it_is() -> None:
    piece = """
transforms:
  ordered: {gem: sort, input: ticks, options: {by: ▶value}}
targets:
  first: {gem: console, input: ordered}
  second: {gem: memory, input: ordered}
"""
    assert_found(piece, "GB304")


@pytest.mark.parametrize(
    ("mode", "codes"), [("complete", []), ("update", ["GB304"]), ("append", ["GB301", "GB304"])]
)
def test_the_result_of_an_aggregation_is_sorted_in_complete_mode(mode: str, codes: list[str]) -> None:
    piece = f"transforms:\n  counts: {{gem: aggregate, input: ticks, {BY_VALUE}}}\n"
    piece += "  ordered: {gem: sort, input: counts, options: {by: rows desc}}\n"

    assert [code for code, _ in errors(piece + plain("ordered", mode))] == codes


def test_what_goes_into_an_aggregation_cant_be_sorted() -> None:
    piece = (
        "transforms:\n  ordered: {gem: sort, input: ticks, options: {by: value}}\n"
        f"  counts: {{gem: aggregate, input: ordered, {BY_VALUE}}}\n"
    )
    assert_found(piece + screen("counts", "complete"), "GB304")


def test_distinct_rows_cant_be_sorted() -> None:
    piece = (
        "transforms:\n  once: {gem: sql, input: ticks, options: {query: select distinct value from ticks}}\n"
        "  ordered: {gem: sort, input: once, options: {by: value}}\n"
    )
    assert_found(piece + screen("ordered", "complete"), "GB304")


def test_a_static_relation_can_be_sorted_and_limited() -> None:
    piece = (
        "sources:\n  ticks: {gem: rate}\n" + STATIC.lstrip("\n") + "transforms:\n"
        "  ordered: {gem: sort, input: names, options: {by: name}}\n"
        "  first: {gem: limit, input: ordered, options: {rows: 3}}\n"
        "  named: {gem: join, inputs: [ticks, first], options: {on: [value]}}\n"
    )
    for mode in ("append", "update"):
        assert_found(piece + plain("named", mode))


def test_update_cant_emit_the_rows_of_a_limit() -> None:
    piece = "transforms:\n  some: {gem: limit, input: ticks, options: {rows: 3}}\n"

    assert_found(piece + plain("some"))
    (found,) = assert_found(piece + screen("some", "update"), "GB305")
    assert "update can't emit the rows of `some`" in found.message


@pytest.mark.parametrize(("mode", "codes"), [("complete", []), ("update", ["GB305"]), ("append", ["GB301"])])
def test_a_limit_behind_an_aggregation(mode: str, codes: list[str]) -> None:
    piece = f"transforms:\n  counts: {{gem: aggregate, input: ticks, {BY_VALUE}}}\n"
    piece += "  some: {gem: limit, input: counts, options: {rows: 3}}\n"

    assert [code for code, _ in errors(piece + plain("some", mode))] == codes


def test_a_sort_behind_a_with_says_what_is_in_the_way() -> None:
    text = "with c as (select value, count(*) as n from ticks group by value) select * from c order by n"
    piece = f"transforms:\n  asked:\n    gem: sql\n    input: ticks\n    options: {{query: '{text}'}}\n"
    (found,) = assert_found(piece + screen("asked", "complete"), "GB304")

    assert found.message.endswith("Spark doesn't see the aggregation before it, which stands in a `with`")
    assert found.hint == "Write the `with` as a subquery, or sort in a node of its own."


# Chains

CHAIN = f"transforms:\n  counts: {{gem: aggregate, input: ticks, {BY_VALUE}}}\n"
BEHIND = {
    "aggregate": "  last: {gem: aggregate, input: counts, options: {group_by: [rows], aggregates: {all: count(*)}}}\n",
    "distinct": "  last: {gem: sql, input: counts, options: {query: select distinct rows from counts}}\n",
}


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("mode", ["update", "complete"])
def test_state_behind_an_aggregation_drops_what_changes(behind: str, mode: str) -> None:
    (found,) = assert_found(CHAIN + BEHIND[behind] + screen("last", mode), "GB308")

    assert (
        f"in the output mode `{mode}` the aggregation `counts` emits results that change later"
        in found.message
    )
    assert "`last` behind it" in found.message


def test_a_join_of_aggregated_streams_names_both() -> None:
    piece = TWO_MARKED + (
        f"  shows:\n    gem: aggregate\n    input: shown\n    {BY_WINDOW.strip()}\n"
        f"  counts:\n    gem: aggregate\n    input: clicked\n    {BY_WINDOW.strip()}\n"
        "  both: {gem: join, inputs: [shows, counts], options: {on: [window]}}\n"
    )
    target = "targets:\n  screen: {gem: console, input: ▶both, output_mode: ▶▶update}\n"
    _, first, second = assert_found(piece + target, "GB332", "GB308", "GB308")
    assert {"`shows`" in d.message for d in (first, second)} == {True, False}
    assert {"`counts`" in d.message for d in (first, second)} == {True, False}
    assert errors(piece + plain("both")) == []


def test_a_deduplication_by_event_time_behind_an_aggregation() -> None:
    piece = counted() + "  once: {gem: deduplicate, input: counts, options: {columns: [COLUMNS]}}\n"
    by_window = piece.replace("COLUMNS", "window")
    assert errors(by_window + plain("once", "update")) == [("GB308", "screen")]
    # By other columns its state doesn't go by the watermark, so that no row is late for it.
    assert errors(piece.replace("COLUMNS", "rows") + plain("once", "update")) == []


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_deduplication_may_come_before_an_aggregation(mode: str) -> None:
    piece = f"transforms:\n{TIMELY}  once: {{gem: deduplicate, input: timely, options: {{within_watermark: true}}}}\n"
    piece += f"  counts:\n    gem: aggregate\n    input: once\n    {BY_WINDOW.strip()}\n"
    assert_found(piece + plain("counts", mode))


def test_the_check_of_chains_can_be_switched_off() -> None:
    setting = "spark: {spark.sql.streaming.statefulOperator.checkCorrectness.enabled: SETTING}\n"
    piece = CHAIN + BEHIND["aggregate"] + plain("last", "update")

    assert errors(setting.replace("SETTING", "false") + piece) == []
    assert errors(setting.replace("SETTING", "true") + piece) == [("GB308", "screen")]


def test_without_sparks_check_errors_are_warnings() -> None:
    setting = "spark: {spark.sql.streaming.unsupportedOperationCheck: false}\n"
    piece = "transforms:\n  ordered: {gem: sort, input: ticks, options: {by: ▶value}}\n"
    (found,) = assert_found(setting + piece + plain("ordered"), "GB304")

    assert found.severity == "warning"
    assert check(setting + piece.replace("▶", "") + plain("ordered")).ok


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("with c as (QUERY) select n, count(*) as m from c group by n", "warning"),
        ("select n, count(*) as m from (QUERY) as c group by n", "error"),
    ],
)
def test_a_chain_that_spark_doesnt_see_loses_rows_all_the_same(text: str, severity: str) -> None:
    text = text.replace("QUERY", "select value, count(*) as n from ticks group by value")
    piece = f"transforms:\n  asked:\n    gem: sql\n    input: ticks\n    options: {{query: '{text}'}}\n"
    (found,) = assert_found(piece + screen("asked", "update"), "GB308")
    assert found.severity == severity
    assert "`asked` aggregates twice: its first aggregation emits" in found.message


def test_of_a_chain_only_neighbours_are_named() -> None:
    piece = CHAIN + (
        "  sizes: {gem: aggregate, input: counts, options: {group_by: [rows], aggregates: {all: count(*)}}}\n"
        "  last: {gem: aggregate, input: sizes, options: {group_by: [all], aggregates: {n: count(*)}}}\n"
    )
    found = assert_found(piece + screen("last", "▶▶update").replace("▶▶▶", "▶▶"), "GB308", "GB308")
    named = {tuple(name for name in ("counts", "sizes", "last") if f"`{name}`" in d.message) for d in found}
    assert named == {("counts", "sizes"), ("sizes", "last")}


def test_of_each_side_of_a_join_the_nearest_aggregation_is_named() -> None:
    piece = TWO_STREAMS + (
        f"transforms:\n  shows: {{gem: aggregate, input: ads, {BY_VALUE}}}\n"
        "  sizes: {gem: aggregate, input: shows, options: {group_by: [value], aggregates: {all: count(*)}}}\n"
        f"  counts: {{gem: aggregate, input: clicks, {BY_VALUE}}}\n"
        "  both: {gem: join, inputs: [sizes, counts], options: {on: [value]}}\n"
    )
    found = [d for d in check(piece + plain("both", "update")).diagnostics if d.code == "GB308"]
    behind = [d.message for d in found if "`both` behind it" in d.message]
    assert len(found) == 3
    assert ["the aggregation `sizes`" in m for m in sorted(behind)] == [False, True]
    assert not any("`shows`" in message for message in behind)


# Several targets


def test_each_target_is_judged_by_its_own_mode() -> None:
    piece = f"""
transforms:
  counts: {{gem: aggregate, input: ticks, {BY_VALUE}}}
  ordered: {{gem: sort, input: counts, options: {{by: rows}}}}
targets:
  first: {{gem: console, input: counts, output_mode: ▶append}}
  second: {{gem: console, input: counts, output_mode: update}}
  third: {{gem: memory, input: counts, output_mode: complete}}
  fourth: {{gem: console, input: ordered, output_mode: ▶update}}
  fifth: {{gem: console, input: ordered, output_mode: complete}}
  sixth: {{gem: console, input: ticks, output_mode: ▶complete}}
"""
    found = assert_found(piece, "GB301", "GB304", "GB302")
    assert [d.node for d in found] == ["first", "fourth", "sixth"]


def test_a_batch_pipeline_has_no_streaming_rules() -> None:
    piece = f"""
mode: batch
sources:
  ticks: {{gem: file, options: {{format: csv, path: data, schema: "value bigint"}}}}
transforms:
  counts: {{gem: aggregate, input: ticks, {BY_VALUE}}}
  ordered: {{gem: sort, input: counts, options: {{by: rows}}}}
  sizes: {{gem: aggregate, input: ordered, options: {{aggregates: {{all: count(distinct rows)}}}}}}
targets:
  files: {{gem: file, input: sizes, output_mode: append, options: {{format: csv, path: out}}}}
"""
    assert_found(piece)


# What can't be known


@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_python_code_may_have_put_things_right(mode: str) -> None:
    piece = (
        "transforms:\n  cleaned: {gem: python, input: ticks, options: {function: 'jobs:clean'}}\n"
        f"  counts:\n    gem: aggregate\n    input: cleaned\n    {BY_WINDOW.strip()}\n"
        "  ordered: {gem: sort, input: cleaned, options: {by: value}}\n"
    )
    assert errors(piece + plain("counts", "append")) == []
    assert errors(piece + plain("cleaned", mode)) == []
    assert errors(piece + plain("ordered", "complete")) == []


def test_python_code_behind_an_aggregation_changes_nothing_about_it() -> None:
    piece = f"transforms:\n  counts: {{gem: aggregate, input: ticks, {BY_VALUE}}}\n"
    piece += "  cleaned: {gem: python, input: counts, options: {function: 'jobs:clean'}}\n"
    assert errors(piece + plain("cleaned")) == [("GB301", "screen")]


def test_columns_that_arent_known_may_carry_a_watermark() -> None:
    piece = """
sources:
  clicks: {gem: file, options: {format: json, path: data, infer_schema: true}}
transforms:
  timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 minute}}
  counts:
    gem: aggregate
    input: timely
    options: {window: {column: at, duration: 1 minute}, aggregates: {rows: count(*)}}
"""
    assert errors(piece + plain("counts")) == []
    unmarked = piece.replace("input: timely", "input: clicks").replace("  timely:", "  # timely:", 1)
    assert errors(unmarked + plain("counts")) == []


@pytest.mark.parametrize(
    "query",
    [
        "select * from ticks pivot (count(*) for value in (1, 2))",
        "select * from ticks, lateral (select value + 1)",
        "select * from somewhere_else",
        "this is !! no query",
    ],
)
def test_a_query_that_isnt_followed_is_unknown(query: str) -> None:
    piece = f"transforms:\n  asked:\n    gem: sql\n    input: ticks\n    options:\n      query: {query}\n"
    for mode in ("append", "update", "complete"):
        streaming = [code for code, _ in errors(piece + plain("asked", mode)) if code >= "GB3"]
        assert streaming in ([], ["GB313"])


# Event time on its way


@pytest.mark.parametrize(
    ("transforms", "kept"),
    [
        ("{gem: rename, input: timely, options: {columns: {timestamp: at}}}", "at"),
        ("{gem: select, input: timely, options: {columns: {at: timestamp}}}", "at"),
        ("{gem: select, input: timely, options: {columns: [timestamp as at]}}", "at"),
        ("{gem: select, input: timely, options: {columns: ['*']}}", "timestamp"),
        ("{gem: drop, input: timely, options: {columns: [value]}}", "timestamp"),
        ("{gem: filter, input: timely, options: {condition: value > 1}}", "timestamp"),
        ("{gem: with_columns, input: timely, options: {columns: {at: timestamp, double: value * 2}}}", "at"),
        ("{gem: with_columns, input: timely, options: {columns: {timestamp: timestamp}}}", "timestamp"),
        ("{gem: repartition, input: timely, options: {partitions: 2}}", "timestamp"),
        ("{gem: limit, input: timely, options: {rows: 3}}", "timestamp"),
        ("{gem: deduplicate, input: timely, options: {within_watermark: true}}", "timestamp"),
        ("{gem: sql, input: timely, options: {query: select timestamp as at from timely}}", "at"),
        ("{gem: sql, input: timely, options: {query: select * from timely where value > 1}}", "timestamp"),
        (
            "{gem: sql, input: timely, options: {query: with t as (select timestamp as at from timely) select * from t}}",
            "at",
        ),
        (
            "{gem: with_columns, input: timely, options: {columns: {timestamp: timestamp + interval 1 hour}}}",
            None,
        ),
        ("{gem: select, input: timely, options: {columns: {at: cast(timestamp as timestamp)}}}", None),
        ("{gem: select, input: timely, options: {columns: {at: 'date_trunc(''hour'', timestamp)'}}}", None),
        (
            "{gem: sql, input: timely, options: {query: select timestamp + interval 1 hour as at from timely}}",
            None,
        ),
    ],
)
def test_event_time_goes_through_what_passes_a_column_on(transforms: str, kept: str | None) -> None:
    column = kept or ("timestamp" if "{timestamp:" in transforms else "at")
    piece = (
        f"transforms:\n{TIMELY}  passed: {transforms}\n"
        f"  counts: {{gem: aggregate, input: passed, options: {{group_by: [{column}], aggregates: {{n: count(*)}}}}}}\n"
    )
    assert errors(piece + plain("counts")) == ([] if kept else [("GB301", "screen")])


def test_json_is_no_event_time_before_a_watermark() -> None:
    piece = """
sources:
  texts: {gem: socket, options: {host: localhost, port: 9999, include_timestamp: true}}
transforms:
  timely: {gem: watermark, input: texts, options: {column: timestamp, delay: 1 minute}}
  parsed: {gem: from_json, input: timely, options: {column: value, schema: "at timestamp, id int", keep: KEEP}}
  counts: {gem: aggregate, input: parsed, options: {group_by: [BY], aggregates: {n: count(*)}}}
"""
    kept = piece.replace("KEEP", "true")
    assert errors(kept.replace("BY", "timestamp") + plain("counts")) == []
    assert errors(kept.replace("BY", "at") + plain("counts")) == [("GB301", "screen")]
    assert errors(piece.replace("KEEP", "false").replace("BY", "at") + plain("counts")) == [
        ("GB301", "screen")
    ]


@pytest.mark.parametrize(
    ("first", "second", "codes"), [("shown", "clicks", []), ("clicks", "shown", ["GB301"])]
)
def test_the_first_input_of_a_union_gives_it_its_event_time(
    first: str, second: str, codes: list[str]
) -> None:
    piece = TWO_STREAMS + (
        "transforms:\n  shown: {gem: watermark, input: ads, options: {column: timestamp, delay: 1 minute}}\n"
        f"  all: {{gem: union, inputs: [{first}, {second}]}}\n"
        "  counts: {gem: aggregate, input: all, options: {group_by: [timestamp], aggregates: {n: count(*)}}}\n"
    )
    assert [code for code, _ in errors(piece + plain("counts"))] == codes


def test_both_sides_of_a_join_keep_their_event_time() -> None:
    piece = TWO_MARKED + (
        "  paired:\n    gem: join\n    inputs: {ads: shown, clicks: clicked}\n"
        f"    options: {{condition: '{RANGE}'}}\n"
        "  counts: {gem: aggregate, input: paired, options: {group_by: [BY], aggregates: {n: count(*)}}}\n"
    )
    for by, codes in {"ads.timestamp": [], "clicks.timestamp": [], "ads.value": ["GB301"]}.items():
        assert [code for code, _ in errors(piece.replace("BY", by) + plain("counts"))] == codes


@pytest.mark.parametrize(
    ("column", "codes"),
    [("window", []), ("window_time(window)", []), ("window.start", ["GB301"]), ("window.end", ["GB301"])],
)
def test_windows_over_windows(column: str, codes: list[str]) -> None:
    piece = counted() + (
        "  hours:\n    gem: aggregate\n    input: counts\n"
        f"    options: {{window: {{column: {column}, duration: 1 hour}}, aggregates: {{most: max(rows)}}}}\n"
    )
    assert [code for code, _ in errors(piece + plain("hours"))] == codes


# Queries in SQL


@pytest.mark.parametrize(
    ("query", "append", "update", "complete"),
    [
        ("select value from timely", "", "", "GB302"),
        ("select count(*) as n from timely", "GB301", "", ""),
        ("select timestamp, count(*) as n from timely group by timestamp", "", "", ""),
        ("select timestamp as at, count(*) as n from timely group by at", "", "", ""),
        ("select value, timestamp, count(*) as n from timely group by 1, 2", "", "", ""),
        ("select value, count(*) as n from timely group by 1", "GB301", "", ""),
        ("select value, count(*) as n from timely group by value order by n", "GB301 GB304", "GB304", ""),
        ("select value from timely order by value", "GB304", "GB304", "GB302 GB304"),
        (
            "select * from (select value, count(*) as n from timely group by value) as c order by n",
            "GB301 GB304",
            "GB304",
            "",
        ),
        (
            # Spark looks for an aggregation before a sort in the same query only.
            "with c as (select value, count(*) as n from timely group by value) select * from c order by n",
            "GB301 GB304",
            "GB304",
            "GB304",
        ),
        ("select value from timely limit 3", "", "GB305", "GB302"),
        ("select distinct timestamp from timely", "", "", ""),
        ("select distinct value from timely", "GB301", "", ""),
        ("select distinct value from timely order by value", "GB301 GB304", "GB304", "GB304"),
        (
            "select n, count(*) as m from (select value, count(*) as n from timely group by value) as c group by n",
            "GB301",
            "GB308",
            "GB308",
        ),
        (
            # Spark's check doesn't see this chain, so it is a warning.
            "with c as (select value, count(*) as n from timely group by value) "
            "select n, count(*) as m from c group by n",
            "GB301",
            "",
            "",
        ),
        ("select n from (select count(*) as n from timely) as c where n > 1", "GB301", "", ""),
        ("select value, count(*) as n from timely group by value having count(*) > 1", "GB301", "", ""),
        ("select value, count(*) as n from timely group by all", "GB301", "", ""),
        ("select a.value from timely a join timely b on a.timestamp = b.timestamp", "", "", "GB302 GB303"),
    ],
)
def test_what_a_query_makes_of_a_stream(query: str, append: str, update: str, complete: str) -> None:
    piece = f'transforms:\n{TIMELY}  asked: {{gem: sql, input: timely, options: {{query: "{query}"}}}}\n'
    for mode, codes in (("append", append), ("update", update), ("complete", complete)):
        assert sorted(code for code, _ in errors(piece + plain("asked", mode))) == codes.split(), mode
