"""State and watermarks: what is kept for ever, and watermarks that don't do what they seem to."""

from __future__ import annotations

import pytest

from tests.core.streams import BY_VALUE, TWO_MARKED, TWO_STREAMS, assert_found, check, errors

SCREEN = "targets:\n  screen: {gem: console, input: last}\n"
UPDATED = "targets:\n  screen: {gem: console, input: last, output_mode: update}\n"


def codes(piece: str) -> list[tuple[str, str]]:
    """The codes and nodes of everything that is found, in the order of the file."""
    return [(d.code, d.node or "") for d in check(piece.replace("▶", "")).diagnostics]


def timely(
    delay: str = "1 minute", column: str = "timestamp", name: str = "timely", source: str = "ticks"
) -> str:
    return f"  {name}: {{gem: watermark, input: {source}, options: {{column: {column}, delay: {delay}}}}}\n"


def windows(source: str, over: str = "timestamp", duration: str = "1 minute", name: str = "last") -> str:
    return (
        f"  {name}:\n    gem: aggregate\n    input: {source}\n    options:\n"
        f"      window: {{column: {over}, duration: {duration}}}\n      aggregates: {{rows: count(*)}}\n"
    )


def once(source: str, *options: str) -> str:
    return f"  last: {{gem: deduplicate, input: {source}, options: {{{', '.join(options)}}}}}\n"


# Deduplication


def test_a_deduplication_without_a_watermark_keeps_all_it_has_seen() -> None:
    piece = "transforms:\n  last: {gem: deduplicate, input: ticks, options: {columns: ▶[value]}}\n"
    (found,) = assert_found(piece + SCREEN, "GB328")

    assert found.severity == "warning"
    assert (
        found.message
        == "transform `last`: what it has seen is kept for ever, because no column carries a watermark"
    )
    assert found.hint == "Put a `watermark` on the event time before it, and set `within_watermark: true`."


def test_by_all_columns_there_is_no_key_to_point_at() -> None:
    assert_found("transforms:\n  ▶last: {gem: deduplicate, input: ticks}\n" + SCREEN, "GB328")


def test_a_deduplication_by_other_columns_than_event_time() -> None:
    piece = (
        "transforms:\n"
        "  timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}\n"
        "  last: {gem: deduplicate, input: timely, options: {columns: ▶[value]}}\n"
    )
    (kept,) = assert_found(piece + SCREEN, "GB328")

    assert "don't include the event time that carries the watermark" in kept.message
    assert kept.hint.startswith("Set `within_watermark: true`")


@pytest.mark.parametrize(
    "options", [["columns: [timestamp]"], ["columns: [value, timestamp]"], ["columns: [TIMESTAMP]"], []]
)
def test_a_deduplication_by_event_time_forgets(options: list[str]) -> None:
    assert codes("transforms:\n" + timely() + once("timely", *options) + SCREEN) == []


def test_within_the_watermark_any_columns_will_do() -> None:
    for options in (["within_watermark: true"], ["columns: [value]", "within_watermark: true"]):
        assert codes("transforms:\n" + timely() + once("timely", *options) + SCREEN) == []


@pytest.mark.parametrize(
    "before",
    [
        "",
        "  plain: {gem: select, input: timely, options: {columns: [value]}}\n",
        "  plain: {gem: with_columns, input: timely, options: {columns: {timestamp: timestamp + interval 1 day}}}\n",
        "  plain: {gem: sql, input: timely, options: {query: select value from timely}}\n",
    ],
)
def test_within_the_watermark_needs_one(before: str) -> None:
    piece = (
        f"transforms:\n{timely() + before if before else ''}"
        f"  last:\n    gem: deduplicate\n    input: {'plain' if before else 'ticks'}\n"
        "    options: {columns: [value], within_watermark: ▶true}\n"
    )
    found = [d for d in check(piece.replace("▶", "") + SCREEN).diagnostics if d.is_error]

    assert [(d.code, d.node) for d in found] == [("GB327", "last")]
    line = next(n for n, text in enumerate(piece.splitlines(), 1) if "▶" in text)
    assert (found[0].line, found[0].column) == (line, piece.splitlines()[line - 1].index("▶") + 1)
    assert (
        found[0].message
        == "transform `last`: `within_watermark` needs a watermark, and no column carries one"
    )


def test_a_static_relation_is_deduplicated_without_state() -> None:
    piece = """
sources:
  ticks: {gem: rate}
  names: {gem: file, mode: batch, options: {format: csv, path: names, schema: "value bigint"}}
transforms:
  known: {gem: deduplicate, input: names, options: {columns: [value]}}
  last: {gem: join, inputs: [ticks, known], options: {on: [value]}}
"""
    assert codes(piece + SCREEN) == []


def test_two_targets_behind_one_deduplication_say_it_once() -> None:
    piece = (
        "transforms:\n  last: {gem: deduplicate, input: ticks, options: {columns: ▶[value]}}\n"
        "targets:\n  screen: {gem: console, input: last}\n  table: {gem: memory, input: last}\n"
    )
    assert_found(piece, "GB328")


# A second watermark


@pytest.mark.parametrize("column", ["timestamp", "later"])
def test_a_stream_has_one_watermark(column: str) -> None:
    piece = (
        "transforms:\n"
        + timely()
        + "  two: {gem: with_columns, input: timely, options: {columns: {later: timestamp}}}\n"
        f"  again: {{gem: watermark, input: two, options: {{column: ▶{column}, delay: 1 hour}}}}\n"
        "  last: {gem: deduplicate, input: again, options: {within_watermark: true}}\n"
    )
    (found,) = assert_found(piece + SCREEN, "GB329")

    assert found.message.startswith("transform `again`: the stream already has the watermark of `timely`")
    assert "`timely`" in found.hint


def test_a_second_watermark_behind_an_aggregation_waits_for_ever() -> None:
    piece = "transforms:\n" + timely() + windows("timely", name="counts")
    piece += "  again: {gem: watermark, input: counts, options: {column: window, delay: 1 hour}}\n"
    piece += windows("again", "window", "1 hour")
    assert errors(piece + SCREEN) == [("GB329", "again")]


def test_the_older_behaviour_takes_the_last_watermark() -> None:
    setting = "spark: {spark.sql.streaming.statefulOperator.allowMultiple: SETTING}\n"
    piece = (
        "transforms:\n" + timely() + timely("1 hour", name="again", source="timely") + once("again") + SCREEN
    )

    assert errors(setting.replace("SETTING", "false") + piece) == []
    assert errors(setting.replace("SETTING", "true") + piece) == [("GB329", "again")]


def test_each_of_two_streams_has_a_watermark_of_its_own() -> None:
    piece = TWO_MARKED + "  last: {gem: union, inputs: [shown, clicked]}\n"
    assert errors(piece + SCREEN) == []


def test_a_watermark_behind_two_that_have_one() -> None:
    piece = TWO_MARKED + (
        "  all: {gem: union, inputs: [shown, clicked]}\n"
        "  again: {gem: watermark, input: all, options: {column: timestamp, delay: 1 hour}}\n"
        "  last: {gem: deduplicate, input: again, options: {within_watermark: true}}\n"
    )
    assert errors(piece + SCREEN) == [("GB329", "again")]


# Windows


def test_windows_without_a_watermark_are_kept_in_update_mode() -> None:
    (found,) = check("transforms:\n" + windows("ticks") + UPDATED).diagnostics

    assert (found.code, found.severity, found.node) == ("GB331", "warning", "last")
    assert found.message.endswith(
        "the windows of `last` are kept for ever, because no watermark says when one is over"
    )


def test_windows_that_are_kept_are_said_where_they_are_made() -> None:
    piece = "transforms:\n" + windows("ticks").replace("window: {", "window: ▶{")
    assert_found(piece + UPDATED, "GB331")
    sessions = piece.replace("window", "session").replace("duration", "gap") + "      group_by: [value]\n"
    kept, refused = assert_found(sessions + UPDATED.replace("update", "▶update"), "GB331", "GB303")
    assert (kept.severity, refused.severity) == ("warning", "error")


def test_windows_over_another_column_than_the_watermarks() -> None:
    piece = (
        "transforms:\n"
        + timely()
        + "  two: {gem: with_columns, input: timely, options: {columns: {seen: timestamp + interval 1 day}}}\n"
        + windows("two", "seen")
    )
    unused, kept = check(piece + UPDATED).diagnostics

    assert (unused.code, unused.node) == ("GB335", "timely")
    assert (kept.code, kept.node) == ("GB331", "last")
    assert kept.message.endswith(
        "because they are not over `timestamp`, which carries the watermark of `timely`"
    )
    assert kept.hint == "Make the windows over `timestamp` as it is, or let `timely` name their column."


def test_a_watermark_that_comes_after_the_windows() -> None:
    piece = (
        "transforms:\n"
        + windows("ticks", name="counts")
        + timely(column="window", name="last", source="counts")
    )
    found = {d.code: d for d in check(piece + UPDATED).diagnostics}

    assert found.keys() == {"GB331", "GB335"}
    assert found["GB331"].message.endswith("because the watermark of `last` comes only after them")
    assert found["GB331"].hint == "Put `last` before `counts`."
    assert found["GB335"].hint == "Remove it, or put it before what keeps state."


def test_complete_keeps_all_windows_whatever_the_watermark() -> None:
    target = "targets:\n  screen: {gem: console, input: last, output_mode: ▶complete}\n"
    for piece in ("transforms:\n" + windows("ticks"), "transforms:\n" + timely() + windows("timely")):
        (found,) = assert_found(piece + target, "GB331")
        assert "`complete` keeps every window of `last` for ever" in found.message
        assert found.hint.startswith("Use `append` or `update` with a watermark")


def test_complete_with_sessions_doesnt_propose_update() -> None:
    piece = (
        "transforms:\n" + timely() + windows("timely").replace("window", "session").replace("duration", "gap")
    ) + "      group_by: [value]\n"
    (found,) = check(piece + UPDATED.replace("update", "complete")).diagnostics

    assert found.hint.startswith("Use `append` with a watermark")


@pytest.mark.parametrize("mode", ["append", "update"])
def test_windows_over_event_time_come_to_an_end(mode: str) -> None:
    assert codes("transforms:\n" + timely() + windows("timely") + UPDATED.replace("update", mode)) == []


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_groups_that_are_no_windows_may_be_few(mode: str) -> None:
    piece = f"transforms:\n  last: {{gem: aggregate, input: ticks, {BY_VALUE}}}\n"
    assert codes(piece + UPDATED.replace("update", mode)) == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (
            "select window(timestamp, '1 minute') as w, count(*) as n from ticks group by window(timestamp, '1 minute')",
            True,
        ),
        ("select window(timestamp, '1 minute') as w, count(*) as n from ticks group by 1", True),
        ("select window(timestamp, '1 minute') as w, count(*) as n from ticks group by w", True),
        ("select value, count(*) as n from ticks group by value", False),
    ],
)
def test_windows_of_a_query(query: str, found: bool) -> None:
    piece = f'transforms:\n  last: {{gem: sql, input: ticks, options: {{query: "{query}"}}}}\n'
    assert codes(piece + UPDATED) == ([("GB331", "last")] if found else [])


# Several watermarks


@pytest.mark.parametrize(
    "combine",
    [
        "{gem: union, inputs: [shown, clicked]}",
        "{gem: join, inputs: [shown, clicked], options: {on: [timestamp]}}",
    ],
)
def test_several_watermarks_become_one(combine: str) -> None:
    target = "targets:\n  screen: {gem: console, input: ▶last}\n"
    piece = (
        TWO_MARKED
        + f"  both: {combine}\n  last: {{gem: deduplicate, input: both, options: {{within_watermark: true}}}}\n"
    )
    (found,) = assert_found(piece + target, "GB332")

    assert found.severity == "note"
    assert found.message == (
        "target `screen`: the watermarks of `clicked` and `shown` become one for the whole query: it goes with the "
        "slowest stream, and while that has no rows, nothing is emitted or forgotten"
    )
    assert "multipleWatermarkPolicy: max" in found.hint


def test_the_policy_max_drops_the_slower_streams_rows() -> None:
    setting = "spark: {spark.sql.streaming.multipleWatermarkPolicy: max}\n"
    piece = TWO_MARKED + "  last: {gem: join, inputs: [shown, clicked], options: {on: [timestamp]}}\n"
    (found,) = check(setting + piece + SCREEN).diagnostics

    assert found.code == "GB332"
    assert found.message.endswith(
        "it goes with the fastest stream, and rows of slower ones are dropped as late"
    )
    assert found.hint == "Remove `spark.sql.streaming.multipleWatermarkPolicy: max` if those rows matter."


def test_targets_with_one_watermark_each_have_nothing_to_combine() -> None:
    piece = TWO_MARKED + (
        "  one: {gem: deduplicate, input: shown, options: {within_watermark: true}}\n"
        "  two: {gem: deduplicate, input: clicked, options: {within_watermark: true}}\n"
        "targets:\n  first: {gem: console, input: one}\n  second: {gem: console, input: two}\n"
    )
    assert codes(piece) == []


def test_one_watermark_over_two_ways_is_one() -> None:
    piece = (
        "transforms:\n"
        + timely()
        + "  last: {gem: join, inputs: {a: timely, b: timely}, options: {on: [timestamp]}}\n"
    )
    assert codes(piece + SCREEN) == []


# The delay


@pytest.mark.parametrize("delay", ["0 seconds", "0 minutes", "0 days"])
def test_a_delay_of_zero_makes_rows_late_at_once(delay: str) -> None:
    piece = (
        f"transforms:\n  timely: {{gem: watermark, input: ticks, options: {{column: ▶timestamp, delay: {delay}}}}}\n"
        + once("timely", "within_watermark: true")
    )
    (found,) = assert_found(piece + SCREEN, "GB333")

    assert found.severity == "note"
    assert found.message.startswith(
        "transform `timely`: the delay is zero: a row whose `timestamp` is older than"
    )


@pytest.mark.parametrize(
    ("delay", "window", "many"),
    [
        ("1 hour", "1 minute", False),
        ("61 minutes", "1 minute", True),
        ("10 days", "1 minute", True),
        ("10 days", "1 day", False),
        ("1 month", "1 day", True),
        ("10 minutes", "1 hour", False),
    ],
)
def test_a_delay_of_very_many_windows_may_be_a_slip(delay: str, window: str, many: bool) -> None:
    piece = (
        f"transforms:\n  timely: {{gem: watermark, input: ticks, options: {{column: timestamp, delay: ▶{delay}}}}}\n"
        + windows("timely", duration=window)
    )
    if not many:
        assert codes(piece + SCREEN) == []
        return
    (found,) = assert_found(piece + SCREEN, "GB334")
    assert found.severity == "note"
    assert f"rows may be {delay} late, and a window of `last` is {window} long" in found.message


# Watermarks without effect


def test_a_watermark_with_no_state_behind_it_is_a_note() -> None:
    piece = (
        "transforms:\n  last: {gem: watermark, input: ticks, options: {column: ▶timestamp, delay: 1 minute}}\n"
        + SCREEN
    )
    (found,) = assert_found(piece, "GB335")

    assert found.severity == "note"
    assert (
        found.message
        == "transform `last`: the watermark has no effect, because nothing behind it keeps state"
    )


@pytest.mark.parametrize(
    "between",
    [
        "  plain: {gem: select, input: timely, options: {columns: [value]}}\n",
        "  plain: {gem: drop, input: timely, options: {columns: [timestamp]}}\n",
        "  plain: {gem: with_columns, input: timely, options: {columns: {timestamp: timestamp + interval 1 day}}}\n",
        "  plain: {gem: sql, input: timely, options: {query: select value from timely}}\n",
    ],
)
def test_a_column_that_is_lost_on_the_way_takes_the_watermark_with_it(between: str) -> None:
    piece = f"transforms:\n{timely()}{between}  last: {{gem: aggregate, input: plain, {BY_VALUE}}}\n"
    (found,) = check(piece + UPDATED).diagnostics

    assert (found.code, found.severity, found.node) == ("GB335", "warning", "timely")
    assert found.message == (
        "transform `timely`: the watermark has no effect, because what keeps state behind it (`last`) doesn't group, "
        "compare or join by `timestamp`"
    )


def test_a_watermark_that_one_of_two_targets_needs_has_an_effect() -> None:
    piece = (
        "transforms:\n" + timely() + windows("timely") + UPDATED + "  raw: {gem: console, input: timely}\n"
    )
    assert codes(piece) == []


def test_what_keeps_state_without_the_watermark_is_named_once() -> None:
    piece = (
        "transforms:\n" + timely() + f"  counts: {{gem: aggregate, input: timely, {BY_VALUE}}}\n"
        "targets:\n  first: {gem: console, input: counts, output_mode: update}\n"
        "  second: {gem: console, input: counts, output_mode: update}\n"
    )
    (found,) = check(piece).diagnostics
    assert found.message.count("`counts`") == 1


def test_a_limit_doesnt_go_by_time_and_isnt_to_blame() -> None:
    piece = "transforms:\n" + timely() + "  last: {gem: limit, input: timely, options: {rows: 3}}\n"
    (found,) = check(piece + SCREEN).diagnostics
    assert (found.code, found.severity) == ("GB335", "note")


@pytest.mark.parametrize(
    "between", ["", "  plain: {gem: select, input: timely, options: {columns: [value]}}\n"]
)
def test_where_only_deduplications_are_behind_a_watermark_they_say_it(between: str) -> None:
    source = "plain" if between else "timely"
    piece = (
        f"transforms:\n{timely()}{between}"
        f"  one: {{gem: deduplicate, input: {source}, options: {{columns: [value]}}}}\n"
        f"  last: {{gem: deduplicate, input: one, options: {{columns: [value]}}}}\n"
    )
    assert codes(piece + SCREEN) == [("GB328", "one"), ("GB328", "last")]


def test_where_something_else_is_behind_a_watermark_it_is_said_of_the_watermark() -> None:
    piece = (
        f"transforms:\n{timely()}"
        "  once: {gem: deduplicate, input: timely, options: {columns: [value]}}\n"
        f"  last: {{gem: aggregate, input: once, {BY_VALUE}}}\n"
    )
    found = check(piece + UPDATED).diagnostics
    assert [(d.code, d.node) for d in found] == [("GB335", "timely"), ("GB328", "once")]
    assert "(`last`, `once`)" in found[0].message or "(`once`, `last`)" in found[0].message


@pytest.mark.parametrize("how", ["inner", "left"])
def test_watermarks_that_a_join_doesnt_go_by(how: str) -> None:
    piece = (
        TWO_MARKED
        + f"  last: {{gem: join, inputs: [shown, clicked], options: {{how: {how}, on: [value]}}}}\n"
    )
    found = codes(piece + SCREEN)

    assert ("GB335", "shown") in found
    assert ("GB335", "clicked") in found


def test_a_watermark_of_a_static_relation_is_no_watermark() -> None:
    piece = """
sources:
  ticks: {gem: rate}
  names: {gem: file, mode: batch, options: {format: csv, path: n, schema: "value bigint, since timestamp"}}
transforms:
  timely: {gem: watermark, input: names, options: {column: since, delay: 0 seconds}}
  last: {gem: join, inputs: [ticks, timely], options: {on: [value]}}
"""
    assert codes(piece + SCREEN) == []


# What can't be known


def test_python_code_may_go_by_the_watermark() -> None:
    piece = (
        "transforms:\n"
        + timely()
        + "  last: {gem: python, input: timely, options: {function: 'tests.core.named_jobs:sessions'}}\n"
    )
    assert codes(piece + SCREEN) == []


def test_python_code_may_put_a_watermark() -> None:
    piece = (
        "transforms:\n  marked: {gem: python, input: ticks, options: {function: 'tests.core.named_jobs:marked'}}\n"
        "  last: {gem: deduplicate, input: marked, options: {columns: [id], within_watermark: true}}\n"
    )
    assert codes(piece + SCREEN) == []
    assert codes(piece.replace(", within_watermark: true", "") + SCREEN) == []
    assert codes(piece.replace("columns: [id], ", "") + SCREEN) == []


def test_windows_over_columns_that_arent_known() -> None:
    piece = """
sources:
  ticks: {gem: file, options: {format: json, path: data, infer_schema: true}}
transforms:
"""
    assert codes(piece + windows("ticks", "at") + UPDATED) == []
    assert codes(piece + once("ticks", "columns: [id]") + SCREEN) == []


def test_an_expression_that_isnt_followed_may_pass_event_time_on() -> None:
    piece = (
        "transforms:\n"
        + timely()
        + "  plain: {gem: sql, input: timely, options: {query: 'select * from timely lateral view explode(array(1)) t as n'}}\n"
        + windows("plain")
    )
    assert codes(piece + UPDATED) == []


# Two nodes in one diagnostic


def test_a_diagnostic_names_both_nodes_that_it_is_about() -> None:
    piece = TWO_STREAMS + (
        "transforms:\n"
        "  shown: {gem: watermark, input: ads, options: {column: timestamp, delay: 1 minute}}\n"
        "  again: {gem: watermark, input: shown, options: {column: timestamp, delay: 2 minutes}}\n"
        "  clicked: {gem: watermark, input: clicks, options: {column: timestamp, delay: 1 minute}}\n"
        "  both: {gem: union, inputs: [again, clicked]}\n"
        "  last: {gem: deduplicate, input: both, options: {within_watermark: true}}\n"
    )
    found = {d.code: d for d in check(piece + SCREEN).diagnostics}

    assert found["GB329"].node == "again"
    assert "`shown`" in found["GB329"].message
    assert "`again` and `clicked`" in found["GB332"].message
