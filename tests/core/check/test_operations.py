"""Operations that streams don't have, whatever the output mode."""

from __future__ import annotations

import pytest

from tests.core.streams import STATIC, TIMELY, TWO_STREAMS, assert_found, check, errors

MODES = ("append", "update", "complete")


def target(node: str, mode: str = "append") -> str:
    return f"targets:\n  screen: {{gem: console, input: {node}, output_mode: {mode}}}\n"


def query(text: str, inputs: str = "ticks") -> str:
    return f"transforms:\n  asked:\n    gem: sql\n    inputs: [{inputs}]\n    options:\n      query: {text}\n"


# Distinct aggregates


@pytest.mark.parametrize(
    "aggregate",
    [
        "count(distinct value)",
        "sum(distinct value)",
        "count(DISTINCT value, timestamp)",
        "collect_list(distinct value)",
    ],
)
@pytest.mark.parametrize("mode", ["update", "complete"])
def test_a_stream_has_no_distinct_aggregates(aggregate: str, mode: str) -> None:
    piece = f"transforms:\n  counts: {{gem: aggregate, input: ticks, options: {{aggregates: {{n: '{aggregate}'}}}}}}\n"
    assert errors(piece + target("counts", mode)) == [("GB306", "counts")]
    asked = query(f"select {aggregate} as n from ticks")
    assert errors(asked + target("asked", mode)) == [("GB306", "asked")]


def test_distinct_aggregates_are_listed() -> None:
    piece = (
        "transforms:\n  counts:\n    gem: aggregate\n    input: ticks\n    options:\n"
        "      aggregates: {n: count(distinct value), all: count(*), m: sum(distinct value)}\n"
    )
    (found,) = check(piece + target("counts", "update")).diagnostics

    assert found.code == "GB306"
    assert found.message.lower().startswith(
        "transform `counts`: a stream has no distinct aggregates (`count(distinct value)`, `sum(distinct value)`)"
    )
    assert found.hint == "Use `approx_count_distinct(…)`, or a `deduplicate` with a watermark before it."


@pytest.mark.parametrize("aggregate", ["approx_count_distinct(value)", "count(value)", "max(value)"])
def test_other_aggregates_are_fine(aggregate: str) -> None:
    piece = f"transforms:\n  counts: {{gem: aggregate, input: ticks, options: {{aggregates: {{n: {aggregate}}}}}}}\n"
    assert_found(piece + target("counts", "update"))


def test_a_select_with_an_aggregate_is_an_aggregation() -> None:
    piece = "transforms:\n  counts: {gem: select, input: ticks, options: {columns: {n: ▶count(distinct value)}}}\n"
    assert_found(piece + target("counts", "update"), "GB306")
    total = piece.replace("▶", "").replace("distinct ", "")
    assert errors(total + target("counts", "append")) == [("GB301", "screen")]


def test_static_relations_have_distinct_aggregates() -> None:
    piece = (
        "sources:\n  ticks: {gem: rate}\n" + STATIC.lstrip("\n") + "transforms:\n"
        "  sizes: {gem: aggregate, input: names, options: {group_by: [value], aggregates: {n: count(distinct name)}}}\n"
        "  sized: {gem: join, inputs: [ticks, sizes], options: {on: [value]}}\n"
    )
    assert_found(piece + target("sized"))


@pytest.mark.parametrize(
    "aggregates",
    [
        "{n: ▶COUNT( DISTINCT  value ), all: count(*)}",
        "{all: count(*), n: '▶COUNT( DISTINCT  value )'}",
    ],
)
def test_a_distinct_aggregate_is_pointed_at_in_the_users_own_words(aggregates: str) -> None:
    aggregates = aggregates.replace("'▶", "▶'")
    piece = (
        f"transforms:\n  counts: {{gem: aggregate, input: ticks, options: {{aggregates: {aggregates}}}}}\n"
    )
    (found,) = assert_found(piece + target("counts", "update"), "GB306")
    assert "(`COUNT( DISTINCT  value )`)" in found.message


def test_the_first_of_several_distinct_aggregates_is_pointed_at() -> None:
    piece = (
        "transforms:\n  counts:\n    gem: aggregate\n    input: ticks\n    options:\n      aggregates:\n"
        "        all: count(*)\n        n: ▶count(distinct value)\n        m: sum(distinct value)\n"
    )
    assert_found(piece + target("counts", "update"), "GB306")


# Sessions


@pytest.mark.parametrize("mode", ["append", "complete"])
def test_sessions_cant_be_the_only_group_of_a_stream(mode: str) -> None:
    piece = (
        f"transforms:\n{TIMELY}  visits:\n    gem: aggregate\n    input: timely\n    options:\n"
        "      session: ▶{column: timestamp, gap: 1 minute}\n      aggregates: {rows: count(*)}\n"
    )
    found = [d for d in check(piece.replace("▶", "") + target("visits", mode)).diagnostics if d.is_error]
    assert [(d.code, d.node) for d in found] == [("GB336", "visits")]
    line = next(n for n, text in enumerate(piece.splitlines(), 1) if "▶" in text)
    assert (found[0].line, found[0].column) == (line, piece.splitlines()[line - 1].index("▶") + 1)
    assert found[0].hint == "Group by a column too, in `group_by`."
    assert errors(piece.replace("▶", "") + "      group_by: [value]\n" + target("visits", mode)) == []


@pytest.mark.parametrize(
    ("groups", "alone"),
    [
        ("session_window(timestamp, '1 minute')", True),
        ("1", True),
        ("visit", True),
        ("visit, 'all'", True),
        ("visit, -1, true, null, date '2026-01-01', cast('1' as int)", True),
        ("visit, current_date()", False),
        ("visit, upper('all')", False),
        ("rollup(visit)", False),
        ("SESSION_WINDOW(timestamp, '1 minute'), value", False),
        ("value, 1", False),
        ("window(timestamp, '1 minute')", False),
    ],
)
def test_sessions_in_a_query(groups: str, alone: bool) -> None:
    made = "window(timestamp, '1 minute')" if groups.startswith("window") else (
        "session_window(timestamp, '1 minute')"
    )  # fmt: skip
    text = f'"select {made} as visit, count(*) as n from timely group by {groups}"'
    piece = f"transforms:\n{TIMELY}" + query(text, "timely").removeprefix("transforms:\n")
    assert errors(piece + target("asked")) == ([("GB336", "asked")] if alone else [])


@pytest.mark.parametrize(
    ("groups", "alone"),
    [
        ("{kind: 1}", True),
        ("{kind: \"'all'\", other: 'null'}", True),
        ("{kind: \"date '2026-01-01'\"}", True),
        ("{kind: \"'all'\", other: value}", False),
        ("{day: current_date()}", False),
        ("{any: rand()}", False),
    ],
)
def test_a_literal_beside_sessions_is_no_group(groups: str, alone: bool) -> None:
    piece = (
        f"transforms:\n{TIMELY}  visits:\n    gem: aggregate\n    input: timely\n    options:\n"
        "      session: {column: timestamp, gap: 1 minute}\n"
        f"      group_by: {groups}\n      aggregates: {{rows: count(*)}}\n"
    )
    assert errors(piece + target("visits")) == ([("GB336", "visits")] if alone else [])


@pytest.mark.parametrize(
    ("how", "alone"),
    [
        ("{gem: aggregate, input: made, options: {group_by: [visit], aggregates: {rows: count(*)}}}", True),
        (
            "{gem: aggregate, input: made, options: {group_by: [VISIT, value], aggregates: {n: count(*)}}}",
            False,
        ),
        (
            "{gem: aggregate, input: made, options: {group_by: [visit.start], aggregates: {n: count(*)}}}",
            False,
        ),
        ("{gem: sql, input: made, options: {query: select visit from made group by visit}}", True),
        ("{gem: sql, input: made, options: {query: select distinct visit from made}}", True),
        ("{gem: sql, input: made, options: {query: 'select distinct visit, value from made'}}", False),
    ],
)
def test_sessions_made_before_are_alone_too(how: str, alone: bool) -> None:
    piece = (
        f"transforms:\n{TIMELY}  made:\n    gem: select\n    input: timely\n    options:\n"
        "      columns: {visit: \"session_window(timestamp, '1 minute')\", value: value}\n"
        f"  visits: {how}\n"
    )
    said = [found for found in errors(piece + target("visits")) if found[0] == "GB336"]
    assert said == ([("GB336", "visits")] if alone else [])


def test_a_batch_may_have_nothing_but_sessions() -> None:
    piece = (
        "mode: batch\nsources:\n"
        "  ticks: {gem: file, options: {format: csv, path: d, schema: 'timestamp timestamp'}}\n"
        "transforms:\n  visits:\n    gem: aggregate\n    input: ticks\n    options:\n"
        "      session: {column: timestamp, gap: 1 minute}\n      aggregates: {rows: count(*)}\n"
        "targets:\n  screen: {gem: console, input: visits}\n"
    )
    assert_found(piece)


# Window functions


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_stream_has_no_window_functions(mode: str) -> None:
    piece = (
        "transforms:\n  numbered:\n    gem: with_columns\n    input: ticks\n    options:\n      columns:\n"
        "        double: value * 2\n        place: ▶row_number() over (order by value)\n"
    )
    (found,) = assert_found(piece + target("numbered", mode), "GB307")
    assert "a window function (`over (…)`)" in found.message
    assert "`foreach_batch`" in found.hint


@pytest.mark.parametrize(
    "expression",
    [
        "sum(value) over (partition by value % 2)",
        "lag(value) over (order by timestamp)",
        "1 + rank() over (order by value)",
    ],
)
def test_window_functions_in_select_and_queries(expression: str) -> None:
    piece = (
        f"transforms:\n  placed: {{gem: select, input: ticks, options: {{columns: [▶{expression} as p]}}}}\n"
    )
    assert_found(piece + target("placed"), "GB307")
    assert_found(query(f"▶select {expression} as p from ticks") + target("asked"), "GB307")


def test_time_windows_are_no_window_functions() -> None:
    piece = "transforms:\n  placed: {gem: with_columns, input: ticks, options: {columns: {w: 'window(timestamp, ''1 hour'')'}}}\n"
    assert_found(piece + target("placed"))


def test_static_relations_have_window_functions() -> None:
    piece = (
        "sources:\n  ticks: {gem: rate}\n" + STATIC.lstrip("\n") + "transforms:\n"
        "  placed:\n    gem: with_columns\n    input: names\n"
        "    options: {columns: {place: row_number() over (order by name)}}\n"
        "  known: {gem: join, inputs: [ticks, placed], options: {on: [value]}}\n"
    )
    assert_found(piece + target("known"))


# Row ids


@pytest.mark.parametrize("mode", ["append", "update"])
def test_rows_of_a_stream_cant_be_numbered(mode: str) -> None:
    piece = (
        "transforms:\n  numbered:\n    gem: with_columns\n    input: ticks\n"
        "    options: {columns: {id: ▶monotonically_increasing_id()}}\n"
    )
    (found,) = assert_found(piece + target("numbered", mode), "GB309")
    assert found.hint == "Use `uuid()`, or a column that identifies the row."


def test_rows_beside_a_stream_cant_be_numbered_either() -> None:
    piece = (
        "sources:\n  ticks: {gem: rate}\n" + STATIC.lstrip("\n") + "transforms:\n"
        "  numbered:\n    gem: with_columns\n    input: names\n"
        "    options: {columns: {id: ▶monotonically_increasing_id()}}\n"
        "  known: {gem: join, inputs: [ticks, numbered], options: {on: [value]}}\n"
    )
    assert_found(piece + target("known"), "GB309")


@pytest.mark.parametrize(
    "where",
    [
        "select monotonically_increasing_id() as id from ticks",
        "select value from ticks where monotonically_increasing_id() > 1",
    ],
)
def test_row_ids_in_a_query(where: str) -> None:
    assert errors(query(where) + target("asked")) == [("GB309", "asked")]


def test_row_ids_in_a_filter() -> None:
    piece = "transforms:\n  some: {gem: filter, input: ticks, options: {condition: ▶monotonically_increasing_id() > 3}}\n"
    assert_found(piece + target("some"), "GB309")


@pytest.mark.parametrize("expression", ["uuid()", "rand()", "current_timestamp()", "explode(array(1, 2))"])
def test_what_looks_like_it_is_fine(expression: str) -> None:
    piece = (
        f"transforms:\n  made: {{gem: select, input: ticks, options: {{columns: {{id: '{expression}'}}}}}}\n"
    )
    assert_found(piece + target("made"))


# Sets, samples, offsets


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select value from ads intersect select value from clicks", True),
        ("select value from ads intersect all select value from clicks", True),
        ("select value from ads except select value from clicks", True),
        ("select value from ads except all select value from clicks", True),
        ("select value from ads union all select value from clicks", False),
    ],
)
def test_set_operations_of_two_streams(text: str, found: bool) -> None:
    piece = TWO_STREAMS + query(text, "ads, clicks")
    codes = errors(piece + target("asked", "update"))
    assert codes == ([("GB309", "asked")] if found else [])


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("kind", ["except", "except all", "minus"])
def test_what_is_taken_off_by_a_stream_is_refused_whatever_the_mode(kind: str, mode: str) -> None:
    piece = TWO_STREAMS + query(f"▶select value from ads {kind} select value from clicks", "ads, clicks")
    (found,) = assert_found(piece + target("asked", mode), "GB309")
    assert "`except` can't have a stream on the right" in found.message


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("select value from ticks except select value from names", ["GB301"]),
        ("select value from names except select value from ticks", ["GB309"]),
        ("select value from ticks intersect select value from names", ["GB309"]),
        ("select value from names intersect select value from ticks", ["GB309"]),
    ],
)
def test_set_operations_with_a_static_relation(text: str, codes: list[str]) -> None:
    piece = "sources:\n  ticks: {gem: rate}\n" + STATIC.lstrip("\n") + query(text, "ticks, names")
    assert [code for code, _ in errors(piece + target("asked"))] == codes


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_stream_cant_be_sampled(mode: str) -> None:
    piece = query("▶select value from ticks tablesample (10 percent)")
    (found,) = assert_found(piece + target("asked", mode), "GB309")
    assert "a stream can't be sampled" in found.message


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_stream_has_no_offset(mode: str) -> None:
    (found,) = assert_found(query("▶select value from ticks offset 3") + target("asked", mode), "GB305")
    assert "which rows come first is never settled" in found.message


def test_nor_has_what_is_beside_it() -> None:
    piece = (
        "sources:\n  ticks: {gem: rate}\n" + STATIC.lstrip("\n") + "transforms:\n"
        "  rest: {gem: sql, input: names, options: {query: ▶select * from names offset 3}}\n"
        "  known: {gem: join, inputs: [ticks, rest], options: {on: [value]}}\n"
    )
    assert_found(piece + target("known"), "GB305")


# Subqueries in expressions


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select value from ads where value in (select value from clicks)", True),
        ("select value from ads where value not in (select value from names)", False),
        ("select value from ads where exists (select 1 from clicks)", True),
        ("select value from ads where exists (select 1 from names where names.value = ads.value)", False),
        ("select value from names where value in (select value from clicks)", True),
        ("select value, (select max(value) from clicks) as m from ads", True),
        ("select value, (select max(value) from names) as m from ads", False),
        (
            "select value from ads where value = (select max(n.value) from names n join clicks using (value))",
            True,
        ),
        ("select value from ads where value in (select value from (select value from clicks))", True),
        (
            "select value from ads where value in (with c as (select value from clicks) select value from c)",
            True,
        ),
        (
            "select value, count(*) as n from ads group by value having count(*) > (select 1 from clicks)",
            True,
        ),
    ],
)
def test_a_stream_in_a_subquery(text: str, found: bool) -> None:
    static = STATIC.lstrip("\n")
    piece = f"sources:\n  ads: {{gem: rate}}\n  clicks: {{gem: rate}}\n{static}" + query(
        f"▶{text}", "ads, clicks, names"
    )
    marks = [d for d in check(piece.replace("▶", "") + target("asked", "update")).diagnostics if d.is_error]
    assert [d.code for d in marks] == (["GB309"] if found else [])
    if found:
        assert marks[0].message == (
            "transform `asked`: a stream can't be in a subquery of an expression: what is in it is never settled"
        )


# What is followed of a query


@pytest.mark.parametrize(
    ("text", "append", "update"),
    [
        (
            "select value, sum(value) over w as s from ticks window w as (partition by value)",
            "GB307",
            "GB307",
        ),
        ("select value from ticks window w as (partition by value)", "", ""),
        ("select value, n from ticks lateral view explode(array(1, 2)) t as n", "", ""),
        (
            "select n, count(*) as m from ticks lateral view outer explode(array(1, 2)) t as n group by n",
            "GB301",
            "",
        ),
        ("select value, count(*) as n from ticks group by rollup (value)", "GB301", ""),
        ("select value, count(*) as n from ticks group by value with rollup", "GB301", ""),
        ("select value, count(*) as n from ticks group by cube (value, timestamp)", "GB301", ""),
        ("select value, count(*) as n from ticks group by grouping sets ((value), ())", "GB301", ""),
        (
            "select value, count(distinct timestamp) as n from ticks group by cube (value)",
            "GB301 GB306",
            "GB306",
        ),
        (
            "select * from (select value, timestamp from ticks) pivot (count(*) for value in (1, 2))",
            "GB301",
            "GB308",
        ),
        ("select value from ticks a join ticks b using (value) order by value", "GB304", "GB304"),
        ("select value from ticks a left join ticks b using (value)", "GB323", "GB303 GB323"),
        ("select value from ticks a join ticks b using (value, timestamp)", "", ""),
    ],
)
def test_clauses_of_a_query(text: str, append: str, update: str) -> None:
    for mode, codes in (("append", append), ("update", update)):
        found = errors(query(text) + target("asked", mode))
        assert " ".join(sorted(code for code, _ in found)) == codes, mode


# Once, and where it is asked for


def test_an_operator_before_several_targets_is_reported_once() -> None:
    piece = (
        "transforms:\n  numbered: {gem: with_columns, input: ticks, options: {columns: {id: ▶monotonically_increasing_id()}}}\n"
        "targets:\n  first: {gem: console, input: numbered}\n  second: {gem: memory, input: numbered}\n"
    )
    assert_found(piece, "GB309")


def test_an_operator_that_no_target_needs_is_not_reported() -> None:
    piece = "transforms:\n  numbered: {gem: with_columns, input: ticks, options: {columns: {id: monotonically_increasing_id()}}}\n"
    assert "GB309" not in [d.code for d in check(piece).diagnostics]


def test_several_operators_of_one_node_are_all_reported() -> None:
    piece = """
transforms:
  made:
    gem: select
    input: ticks
    options:
      columns:
        id: ▶monotonically_increasing_id()
        place: ▶row_number() over (order by value)
"""
    assert_found(piece + target("made"), "GB309", "GB307")


def test_list_items_are_pointed_at() -> None:
    piece = "transforms:\n  made: {gem: select, input: ticks, options: {columns: [value, ▶monotonically_increasing_id() as id]}}\n"
    assert_found(piece + target("made"), "GB309")


def test_a_batch_has_all_of_them() -> None:
    piece = (
        "mode: batch\nsources:\n  ticks: {gem: file, options: {format: csv, path: d, schema: 'value bigint'}}\n"
        "transforms:\n"
        "  made:\n    gem: select\n    input: ticks\n    options:\n      columns:\n"
        "        value: value\n        id: monotonically_increasing_id()\n"
        "        place: row_number() over (order by value)\n"
        "  rest: {gem: sql, input: made, options: {query: select count(distinct value) as n from made offset 1}}\n"
        "targets:\n  files: {gem: file, input: rest, options: {format: csv, path: out}}\n"
    )
    assert_found(piece)


# What can't be known


@pytest.mark.parametrize("mode", MODES)
def test_python_code_is_not_looked_into(mode: str) -> None:
    piece = "transforms:\n  made: {gem: python, input: ticks, options: {function: 'jobs:numbered'}}\n"
    assert errors(piece + target("made", mode)) == []


@pytest.mark.parametrize(
    "expression", ["my_rank(value)", "row_number", "transform(array(value), x -> x + 1)"]
)
def test_functions_that_arent_known_are_no_window_functions(expression: str) -> None:
    piece = f"transforms:\n{TIMELY}  made: {{gem: with_columns, input: timely, options: {{columns: {{n: '{expression}'}}}}}}\n"
    assert not [code for code, _ in errors(piece + target("made")) if code.startswith("GB3")]


# The current time


@pytest.mark.parametrize(
    "clock",
    [
        "current_timestamp()",
        "current_timestamp",
        "CURRENT_DATE()",
        "current_date",
        "curdate()",
        "localtimestamp()",
        "unix_timestamp()",
        "date_add(current_date(), 1)",
    ],
)
def test_the_current_time_in_an_aggregate_function(clock: str) -> None:
    piece = (
        "transforms:\n  ages:\n    gem: aggregate\n    input: ticks\n    options:\n      group_by: [value]\n"
        f"      aggregates:\n        rows: count(*)\n        newer: ▶count_if(string({clock}) > value)\n"
    )
    (found,) = assert_found(piece + target("ages", "update"), "GB338")
    assert found.message.startswith(
        f"transform `ages`: `count_if(string({clock}) > value)` has the current time among the arguments"
    )
    assert found.hint == "Compute it in a `with_columns` before, and aggregate that column."
    asked = query(f"select value, count_if(string({clock}) > value) as n from ticks group by value")
    assert errors(asked + target("asked", "update")) == [("GB338", "asked")]


@pytest.mark.parametrize(
    "expression",
    [
        "current_timestamp() - max(timestamp)",
        "max(timestamp > now())",
        "count(*) filter (where timestamp > current_timestamp())",
        "max(unix_timestamp(timestamp))",
        "current_date()",
    ],
)
def test_the_current_time_beside_an_aggregate_function(expression: str) -> None:
    piece = (
        "transforms:\n  ages:\n    gem: aggregate\n    input: ticks\n    options:\n      group_by: [value]\n"
        f"      aggregates: {{found: '{expression}'}}\n"
    )
    assert errors(piece + target("ages", "update")) == []
    asked = query(f"select value, {expression} as n from ticks group by value")
    assert errors(asked + target("asked", "update")) == []


def test_a_column_called_current_date_is_no_time() -> None:
    piece = (
        "transforms:\n  made: {gem: with_columns, input: ticks, options: {columns: {current_date: value}}}\n"
        "  ages: {gem: aggregate, input: made, options: {aggregates: {latest: max(current_date)}}}\n"
    )
    assert errors(piece + target("ages", "update")) == []


def test_a_group_with_the_current_time_is_computed_before_the_function() -> None:
    new = "timestamp > current_timestamp()"
    options = f"{{group_by: {{new: {new}}}, aggregates: {{rows: count({new})}}}}"
    piece = f"transforms:\n  ages: {{gem: aggregate, input: ticks, options: {options}}}\n"
    assert errors(piece + target("ages", "update")) == []
    asked = query(f"select count({new}) as n from ticks group by {new}")
    assert errors(asked + target("asked", "update")) == []


def test_the_current_time_in_the_aggregation_of_a_select_and_in_a_having() -> None:
    piece = (
        "transforms:\n  ages: {gem: select, input: ticks, options: {columns: {n: ▶max(current_date())}}}\n"
    )
    assert_found(piece + target("ages", "update"), "GB338")
    asked = query("select value from ticks group by value having max(timestamp) < max(current_date())")
    assert errors(asked + target("asked", "update")) == [("GB338", "asked")]


@pytest.mark.parametrize("how", ["inner", "left_semi", "left_anti", "left"])
def test_the_current_time_in_the_condition_of_a_join(how: str) -> None:
    static = f"sources:\n  ticks: {{gem: rate}}{STATIC}transforms:\n"
    piece = (
        f"{static}  named:\n    gem: join\n    inputs: [ticks, names]\n    options:\n      how: {how}\n"
        "      condition: ▶ticks.value = names.value and names.since < current_timestamp()\n"
    )
    (found,) = assert_found(piece + target("named"), "GB338")
    assert found.message.startswith("transform `named`: the condition asks for the current time")
    text = piece.replace("▶", "").replace("current_timestamp()", "now()")
    assert errors(text + target("named")) == []


def test_the_current_time_in_a_query_with_a_join() -> None:
    static = f"sources:\n  ticks: {{gem: rate}}{STATIC}"
    joined = "select ticks.value from ticks join names on ticks.value = names.value"
    asked = static + query(f"{joined} and names.since < current_date()", "ticks, names")
    assert errors(asked + target("asked")) == [("GB338", "asked")]
    asked = static + query(f"{joined} where names.since < current_date()", "ticks, names")
    assert errors(asked + target("asked")) == []


def test_the_current_time_in_a_static_part_of_a_query() -> None:
    piece = (
        f"sources:\n  ticks: {{gem: rate}}{STATIC}transforms:\n"
        "  latest:\n    gem: aggregate\n    input: names\n"
        "    options: {group_by: [value], aggregates: {old: max(since < current_date())}}\n"
        "  named: {gem: join, inputs: [ticks, latest], options: {on: value}}\n"
    )
    assert errors(piece + target("named")) == [("GB338", "latest")]


def test_a_batch_may_use_the_current_time_anywhere() -> None:
    piece = (
        f"mode: batch\nsources:{STATIC}transforms:\n"
        "  latest: {gem: aggregate, input: names, options: {aggregates: {old: max(since < current_date())}}}\n"
        "targets:\n  screen: {gem: console, input: latest}\n"
    )
    assert errors(piece) == []
