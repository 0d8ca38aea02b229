"""Joins and unions of streams: the guide's support matrix, and what makes their state come to an end."""

from __future__ import annotations

import pytest

from tests.core.streams import STATIC, TWO_MARKED, TWO_STREAMS, assert_found, check, errors

KINDS = ("inner", "left", "right", "full", "left_semi", "left_anti", "cross")
SCREEN = "targets:\n  screen: {gem: console, input: paired}\n"
TABLES = """
sources:
  ads: {gem: rate}
  clicks: {gem: rate}
  names:
    gem: file
    mode: batch
    options: {format: csv, path: names, schema: "value bigint, name string"}
  teams:
    gem: file
    mode: batch
    options: {format: csv, path: teams, schema: "value bigint, team string"}
"""


def join(how: str, left: str, right: str) -> str:
    options = "{how: ▶cross}" if how == "cross" else f"{{how: ▶{how}, on: [value]}}"
    used = TABLES
    for name in ("ads", "clicks", "names", "teams"):
        if name not in {left, right}:
            used = without(used, name)
    return (
        used
        + f"transforms:\n  paired: {{gem: join, inputs: [{left}, {right}], options: {options}}}\n"
        + SCREEN
    )


def without(sources: str, name: str) -> str:
    """The sources without one that isn't used."""
    kept, skipping = [], False
    for line in sources.splitlines():
        if line.startswith("  ") and not line.startswith("   "):
            skipping = line.startswith(f"  {name}:")
        if not skipping:
            kept.append(line)
    return "\n".join(kept) + "\n"


def ranged(condition: str, how: str = "inner", left: str = "shown", right: str = "clicked") -> str:
    """A join of two streams with a watermark each."""
    marked = TWO_MARKED
    for name, source in (("shown", "ads"), ("clicked", "clicks")):
        if name not in {left, right}:
            marked = "".join(x for x in marked.splitlines(True) if not x.startswith(f"  {name}:"))
            assert source in {left, right}
    if marked.rstrip().endswith("transforms:"):
        marked = TWO_STREAMS + "transforms:\n"
    return (
        f"{marked}  paired:\n    gem: join\n    inputs: {{ads: {left}, clicks: {right}}}\n"
        f"    options:\n      how: {how}\n      condition: {condition}\n{SCREEN}"
    )


EQUAL = "ads.value = clicks.value"
BETWEEN = f"{EQUAL} and clicks.timestamp between ads.timestamp and ads.timestamp + interval 1 hour"
LATER_THAN = f"{EQUAL} and clicks.timestamp >= ads.timestamp"
AT_MOST = f"{EQUAL} and clicks.timestamp <= ads.timestamp + interval 1 hour"


def codes(piece: str) -> list[str]:
    """What is found, but for notes."""
    return [d.code for d in check(piece.replace("▶", "")).diagnostics if d.severity != "note"]


# The matrix

STREAM_STATIC = {"right": "GB321", "full": "GB321"}
STATIC_STREAM = {"left": "GB321", "full": "GB321", "left_semi": "GB321", "left_anti": "GB321"}
STREAM_STREAM = {
    "inner": "GB325",
    "left": "GB323",
    "right": "GB323",
    "full": "GB323",
    "left_semi": "GB323",
    "left_anti": "GB321",
    "cross": "GB324",
}


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize(
    ("left", "right", "refused"),
    [("ads", "names", STREAM_STATIC), ("names", "ads", STATIC_STREAM), ("ads", "clicks", STREAM_STREAM)],
    ids=["stream-static", "static-stream", "stream-stream"],
)
def test_the_matrix(how: str, left: str, right: str, refused: dict[str, str]) -> None:
    code = refused.get(how)
    assert codes(join(how, left, right)) == ([code] if code else [])


@pytest.mark.parametrize("how", KINDS)
def test_two_static_relations_are_joined_in_any_way(how: str) -> None:
    piece = join(how, "names", "teams").replace("▶", "").replace(SCREEN, "")
    piece = piece.replace("sources:\n", "sources:\n  ads: {gem: rate}\n")
    last = "names.value" if how == "cross" else "value"
    piece += (
        f"  keys: {{gem: select, input: paired, options: {{columns: [{last} as value]}}}}\n"
        "  all: {gem: join, inputs: [ads, keys], options: {on: [value]}}\n"
        "targets:\n  screen: {gem: console, input: all}\n"
    )
    assert codes(piece) == []


@pytest.mark.parametrize(
    ("how", "left", "right", "message", "hint"),
    [
        (
            "right",
            "ads",
            "names",
            "a right outer join can't have a stream on the left and a static relation on the right: rows of "
            "`names` would wait for partners for ever",
            "Put `names` first, or use a left outer or an inner join.",
        ),
        (
            "left",
            "names",
            "ads",
            "a left outer join can't have a static relation on the left and a stream on the right: rows of "
            "`names` would wait for partners for ever",
            "Put the stream `ads` first, or use an inner join.",
        ),
        (
            "left_semi",
            "names",
            "ads",
            "a left semi join can't have a static relation on the left and a stream on the right: rows of "
            "`names` would wait for partners for ever",
            "Put the stream `ads` first, or use an inner join.",
        ),
        (
            "full",
            "ads",
            "names",
            "a full outer join can't be of a stream and a static relation: the rows of `names` would wait for "
            "partners for ever",
            "Use `how: left`, which keeps all rows of the stream `ads`, or an inner join.",
        ),
        (
            "full",
            "names",
            "ads",
            "a full outer join can't be of a stream and a static relation: the rows of `names` would wait for "
            "partners for ever",
            "Use `how: right`, which keeps all rows of the stream `ads`, or an inner join.",
        ),
        (
            "left_anti",
            "ads",
            "clicks",
            "a left anti join can't have a stream on the right: that no partner of a row of `ads` will ever "
            "come through `clicks` is never certain",
            "Read `clicks` with `mode: batch`, or use a left join with a range of time and keep the rows without "
            "a partner.",
        ),
    ],
)
def test_the_kind_that_is_refused_is_named_with_the_inputs(
    how: str, left: str, right: str, message: str, hint: str
) -> None:
    (found,) = assert_found(join(how, left, right), "GB321")

    assert found.message == f"transform `paired`: {message}"
    assert found.hint == hint


def test_inputs_have_the_names_that_the_join_gives_them() -> None:
    piece = join("full", "ads", "names").replace("[ads, names]", "{shown: ads, known: names}")
    (found,) = assert_found(piece, "GB321")

    assert "the rows of `known`" in found.message
    assert "the stream `shown`" in found.hint


def test_the_remedies_are_remedies() -> None:
    assert codes(join("right", "names", "ads")) == []
    assert codes(join("left", "ads", "names")) == []
    assert codes(join("inner", "names", "ads")) == []


# Two streams


# Which kinds are refused, and which keep rows for ever, with watermarks on the sides and a condition.
@pytest.mark.parametrize(
    ("condition", "left", "right", "expected"),
    [
        (BETWEEN, "shown", "clicked", dict.fromkeys(KINDS[:5], "")),
        (
            BETWEEN,
            "shown",
            "clicks",
            {"inner": "GB325", "left": "GB323", "right": "GB325", "full": "GB325", "left_semi": "GB323"},
        ),
        (
            BETWEEN,
            "ads",
            "clicked",
            {"inner": "GB325", "left": "GB325", "right": "GB323", "full": "GB325", "left_semi": "GB325"},
        ),
        (
            BETWEEN,
            "ads",
            "clicks",
            {"inner": "GB325", "left": "GB323", "right": "GB323", "full": "GB323", "left_semi": "GB323"},
        ),
        (
            AT_MOST,
            "shown",
            "clicked",
            {"inner": "GB325", "left": "GB325", "right": "GB323", "full": "GB325", "left_semi": "GB325"},
        ),
        (
            LATER_THAN,
            "shown",
            "clicked",
            {"inner": "GB325", "left": "GB323", "right": "GB325", "full": "GB325", "left_semi": "GB323"},
        ),
        (
            EQUAL,
            "shown",
            "clicked",
            {"inner": "GB325", "left": "GB323", "right": "GB323", "full": "GB323", "left_semi": "GB323"},
        ),
        ("ads.timestamp = clicks.timestamp", "shown", "clicked", dict.fromkeys(KINDS[:5], "")),
        ("ads.timestamp = clicks.timestamp", "shown", "clicks", dict.fromkeys(KINDS[:5], "")),
        ("ads.timestamp = clicks.timestamp", "ads", "clicked", dict.fromkeys(KINDS[:5], "")),
        (f"clicks.timestamp = ads.timestamp and {EQUAL}", "shown", "clicked", dict.fromkeys(KINDS[:5], "")),
    ],
)
def test_what_watermarks_and_conditions_make_of_a_join(
    condition: str, left: str, right: str, expected: dict[str, str]
) -> None:
    for how, code in expected.items():
        found = check(ranged(condition, how, left, right)).diagnostics
        about_state = [d.code for d in found if d.code in {"GB321", "GB323", "GB324", "GB325"}]
        assert about_state == ([code] if code else []), how


@pytest.mark.parametrize(
    "condition",
    [
        "ads.value < clicks.value",
        "ads.value = clicks.value or ads.value = 1",
        "ads.timestamp between clicks.timestamp and clicks.timestamp + interval 1 hour",
        "true",
        "ads.value = 1 and clicks.value = 1",
    ],
)
@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_join_of_streams_needs_an_equality(condition: str, how: str) -> None:
    (found,) = [d for d in check(ranged(condition, how)).diagnostics if d.is_error]

    assert found.code == "GB324"
    assert "the streams `ads` and `clicks` are joined without any columns that must be equal" in found.message


@pytest.mark.parametrize(
    "condition",
    [
        "ads.value = clicks.value",
        "clicks.value = ads.value",
        "ads.value + 1 = clicks.value * 2",
        "ads.value <=> clicks.value",
        "ads.value = clicks.value and ads.value > 1",
        "not (ads.value > 1) and (ads.value = clicks.value)",
        # In other words, as Spark finds it when it optimizes.
        "ads.value = clicks.value or (clicks.value is null and ads.value is null)",
        "not (ads.value <> clicks.value or ads.value < 1)",
        "ads.value = clicks.value or 1 = 2",
    ],
)
def test_an_equality_may_be_of_expressions(condition: str) -> None:
    assert codes(ranged(f'"{condition}"', "inner", "ads", "clicks")) == ["GB325"]


@pytest.mark.parametrize(
    ("options", "brings"), [("{condition: ads.value < clicks.value}", True), ("{how: cross}", False)]
)
def test_a_filter_behind_a_join_may_bring_the_equality(options: str, brings: bool) -> None:
    piece = TWO_STREAMS + (
        f"transforms:\n  paired: {{gem: join, inputs: [ads, clicks], options: {options}}}\n"
        "  equal: {gem: filter, input: paired, options: {condition: ads.value = clicks.value}}\n"
        "targets:\n  screen: {gem: console, input: equal}\n"
    )
    assert ("GB324" in codes(piece)) is not brings
    # In the query of another target nothing brings it.
    assert "GB324" in codes(piece + "  all: {gem: console, input: paired}\n")


def test_an_outer_join_without_an_equality_isnt_completed_by_a_filter() -> None:
    piece = ranged("ads.value < clicks.value", "left").replace(SCREEN, "") + (
        "  equal: {gem: filter, input: paired, options: {condition: ads.value = clicks.value}}\n"
        "targets:\n  screen: {gem: console, input: equal}\n"
    )
    assert errors(piece) == [("GB324", "paired")]


def test_a_join_without_an_equality_is_said_at_what_asks_for_it() -> None:
    (found,) = assert_found(join("cross", "ads", "clicks"), "GB324")
    assert found.hint == "Use `how: inner`, and name the columns that must be equal in `on`."


@pytest.mark.parametrize(
    ("how", "left", "right", "reason"),
    [
        (
            "left",
            "shown",
            "clicks",
            "a row of `ads` has waited long enough for a partner, and `clicks` has no watermark",
        ),
        (
            "left_semi",
            "ads",
            "clicks",
            "a row of `ads` has waited long enough for a partner, and `clicks` has no watermark",
        ),
        (
            "right",
            "ads",
            "clicked",
            "a row of `clicks` has waited long enough for a partner, and `ads` has no watermark",
        ),
        (
            "full",
            "ads",
            "clicks",
            "a row of `ads` has waited long enough for a partner, and neither has a watermark",
        ),
    ],
)
def test_an_outer_join_says_whose_watermark_is_missing(how: str, left: str, right: str, reason: str) -> None:
    (found,) = [d for d in check(ranged(BETWEEN, how, left, right)).diagnostics if d.is_error]

    assert found.code == "GB323"
    assert found.message.endswith(reason)
    lacking = {"shown": ["clicks"], "clicked": ["ads"]}.get(
        left if left == "shown" else right, ["ads", "clicks"]
    )
    assert found.hint.startswith(
        f"Put a `watermark` on the event time of `{'` and of `'.join(lacking)}`; and "
    )


@pytest.mark.parametrize("how", ["left", "right", "full", "left_semi"])
def test_an_outer_join_that_never_forgets_one_side_is_a_warning(how: str) -> None:
    condition = LATER_THAN if how == "right" else AT_MOST
    piece = ranged(condition, how).replace("condition: ", "condition: ▶")
    found = {d.code: d for d in check(piece.replace("▶", "")).diagnostics}

    kept = "ads" if how == "right" else "clicks"
    assert found["GB325"].severity == "warning"
    assert f"the join keeps the rows of `{kept}` for ever, because the condition" in found["GB325"].message
    line = next(n for n, text in enumerate(piece.splitlines(), 1) if "▶" in text)
    assert (found["GB325"].line, found["GB325"].column) == (line, piece.splitlines()[line - 1].index("▶") + 1)
    assert all(not d.is_error for d in found.values())


@pytest.mark.parametrize(
    ("how", "condition", "code"),
    [
        ("inner", EQUAL, "GB325"),
        ("left", EQUAL, "GB323"),
        ("inner", "ads.value < clicks.value", "GB324"),
    ],
)
def test_what_is_about_a_condition_is_said_there(how: str, condition: str, code: str) -> None:
    piece = ranged(f"▶{condition}", how, "ads", "clicks")
    (found,) = assert_found(piece, code)
    assert found.path[-1] == "condition"


def test_an_outer_join_says_that_the_range_is_missing() -> None:
    (found,) = [d for d in check(ranged(EQUAL, "left")).diagnostics if d.is_error]

    assert found.message.endswith("and the condition doesn't say how much later a partner in `clicks` can be")
    assert found.hint.startswith("Let the event times be equal or add a range of time to the `condition`")
    assert "clicks.timestamp <= ads.timestamp + interval 1 hour" in found.hint


@pytest.mark.parametrize(
    "bound",
    [
        "clicks.timestamp <= my_function(ads.timestamp)",
        "date(clicks.timestamp) = date(ads.timestamp)",
        "clicks.timestamp <= ads.timestamp + interval 1 month",
        "clicks.timestamp <> ads.timestamp",
        "clicks.timestamp <= ads.timestamp + interval 1 hour or ads.value > 3",
    ],
)
def test_a_condition_over_time_that_spark_cant_take_apart_bounds_nothing(bound: str) -> None:
    for how, code in (("inner", "GB325"), ("left", "GB323")):
        assert code in codes(ranged(f"{EQUAL} and ({bound})", how))


@pytest.mark.parametrize(
    ("how", "left", "right", "waiting"),
    [
        ("left", "ads", "clicked", "`ads`"),
        ("right", "shown", "clicks", "`clicks`"),
        ("full", "shown", "clicks", "`ads` and of `clicks`"),
        ("left_semi", "ads", "clicked", ""),
    ],
)
def test_an_outer_join_with_one_watermark_never_gives_a_row_without_a_partner(
    how: str, left: str, right: str, waiting: str
) -> None:
    """Spark starts it, and lets no row go: `tests/gems/test_join.py` has it run."""
    (found,) = [d for d in check(ranged(BETWEEN, how, left, right)).diagnostics if d.code == "GB325"]
    assert "keeps the rows of `ads` and of `clicks` for ever" in found.message
    told = f": those of {waiting} that have no partner never come out" if waiting else "has no watermark"
    assert found.message.endswith(told)


def test_an_inner_join_says_which_rows_it_keeps() -> None:
    growth = {}
    for left, right in (("ads", "clicks"), ("shown", "clicks"), ("ads", "clicked"), ("shown", "clicked")):
        condition = EQUAL if left == "shown" and right == "clicked" else BETWEEN
        (found,) = [
            d for d in check(ranged(condition, "inner", left, right)).diagnostics if d.code == "GB325"
        ]
        assert found.severity == "warning"
        growth[left, right] = found.message.removeprefix("transform `paired`: the join keeps the rows of ")

    assert growth == {
        ("ads", "clicks"): "`ads` and of `clicks` for ever, because `ads` and `clicks` have no watermark",
        ("shown", "clicks"): "`ads` and of `clicks` for ever, because `clicks` has no watermark",
        ("ads", "clicked"): "`ads` and of `clicks` for ever, because `ads` has no watermark",
        (
            "shown",
            "clicked",
        ): "`ads` and of `clicks` for ever, because the condition doesn't say how far apart in "
        "time partners can be",
    }


def test_a_join_of_windows_ends_with_the_windows() -> None:
    by = "options: {window: {column: timestamp, duration: 1 minute}, aggregates: {NAME: count(*)}}"
    piece = TWO_MARKED + (
        f"  shows: {{gem: aggregate, input: shown, {by.replace('NAME', 'shows')}}}\n"
        f"  counts: {{gem: aggregate, input: clicked, {by.replace('NAME', 'clicks')}}}\n"
        "  paired: {gem: join, inputs: [shows, counts], options: {how: HOW, on: [window]}}\n"
    )
    for how in ("inner", "left", "right", "full", "left_semi"):
        assert codes(piece.replace("HOW", how) + SCREEN) == []


def test_a_stream_joined_with_itself() -> None:
    piece = """
transforms:
  timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}
  paired:
    gem: join
    inputs: {a: timely, b: timely}
    options: {how: left, condition: CONDITION}
"""
    assert errors(piece.replace("CONDITION", "a.value = b.value") + SCREEN) == [("GB323", "paired")]
    assert errors(piece.replace("CONDITION", "a.timestamp = b.timestamp") + SCREEN) == []


def test_cascaded_joins_are_judged_one_by_one() -> None:
    piece = """
sources:
  ads: {gem: rate}
  clicks: {gem: rate}
  buys: {gem: rate}
transforms:
  pairs: {gem: join, inputs: [ads, clicks], options: {how: left, on: ▶[value]}}
  paired: {gem: join, inputs: [pairs, buys], options: {how: inner, on: ▶[value]}}
"""
    found = assert_found(piece + SCREEN, "GB323", "GB325")
    assert [d.node for d in found] == ["pairs", "paired"]


def test_joins_that_lead_to_no_target_are_not_judged() -> None:
    piece = TWO_STREAMS + (
        "transforms:\n  paired: {gem: join, inputs: [ads, clicks], options: {how: left, on: [value]}}\n"
        "targets:\n  screen: {gem: console, input: ads}\n"
    )
    assert "GB323" not in codes(piece)


def test_a_join_that_leads_to_several_targets_is_reported_once() -> None:
    piece = TWO_STREAMS + (
        "transforms:\n  paired: {gem: join, inputs: [ads, clicks], options: {how: left, on: ▶[value]}}\n"
        "targets:\n  screen: {gem: console, input: paired}\n  second: {gem: memory, input: paired}\n"
    )
    assert_found(piece, "GB323")


# Unions


def test_a_stream_and_a_static_relation_are_not_put_together() -> None:
    piece = """
sources:
  ticks: {gem: rate}
  more:
    gem: file
    mode: batch
    options: {format: csv, path: more, schema: "timestamp timestamp, value bigint"}
transforms:
  all: {gem: ▶union, inputs: INPUTS}
targets:
  screen: {gem: console, input: all}
"""
    for inputs in ("[ticks, more]", "[more, ticks]"):
        (found,) = assert_found(piece.replace("INPUTS", inputs), "GB326")
        assert "a stream and a static relation can't be put together" in found.message


def test_streams_are_put_together_and_static_relations_too() -> None:
    streams = TWO_STREAMS + (
        "transforms:\n  all: {gem: union, inputs: [ads, clicks]}\ntargets:\n  screen: {gem: console, input: all}\n"
    )
    assert_found(streams)
    tables = without(without(TABLES, "clicks"), "teams") + (
        "transforms:\n  twice: {gem: union, inputs: {a: names, b: names}}\n"
        "  paired: {gem: join, inputs: [ads, twice], options: {on: [value]}}\n"
    )
    assert codes(tables + SCREEN) == []


def test_a_union_in_a_query_is_one_too() -> None:
    piece = (
        "sources:\n  ticks: {gem: rate}\n" + STATIC.lstrip("\n") + "transforms:\n"
        "  all:\n    gem: sql\n    inputs: [ticks, names]\n"
        "    options: {query: ▶select value from ticks union all select value from names}\n"
        "targets:\n  screen: {gem: console, input: all}\n"
    )
    assert_found(piece, "GB326")


# Joins in SQL


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select * from ads join clicks on ads.value = clicks.value", "GB325"),
        ("select * from ads join clicks using (value)", "GB325"),
        ("select * from ads left join clicks using (value)", "GB323"),
        ("select * from ads right outer join clicks on ads.value = clicks.value", "GB323"),
        ("select * from ads full outer join clicks on ads.value = clicks.value", "GB323"),
        ("select * from ads left semi join clicks on ads.value = clicks.value", "GB323"),
        ("select * from ads left anti join clicks on ads.value = clicks.value", "GB321"),
        ("select * from ads join clicks on ads.value < clicks.value", "GB324"),
        ("select * from ads cross join clicks", "GB324"),
        ("select ads.value from ads cross join clicks where ads.value = clicks.value", "GB324"),
        ("select ads.value from ads cross join clicks on ads.value = clicks.value", "GB324"),
        ("select ads.value from ads join clicks where ads.value = clicks.value", ""),
        ("select a.value from ads a join clicks c on a.value = c.value", "GB325"),
        (
            "with c as (select value as v from clicks) select ads.value from ads left join c on ads.value = c.v",
            "GB323",
        ),
        ("select ads.value from ads, clicks where ads.value = clicks.value", ""),
    ],
)
def test_joins_in_a_query(query: str, expected: str) -> None:
    piece = TWO_STREAMS + (
        f"transforms:\n  paired:\n    gem: sql\n    inputs: [ads, clicks]\n    options:\n      query: ▶{query}\n"
    )
    assert_found(piece.replace("▶", "▶" if expected else "") + SCREEN, *([expected] if expected else []))


@pytest.mark.parametrize(
    ("how", "expected"), [("left join", ""), ("right join", "GB321"), ("full join", "GB321"), ("join", "")]
)
def test_joins_of_a_stream_and_a_static_relation_in_a_query(how: str, expected: str) -> None:
    piece = (
        "sources:\n  ticks: {gem: rate}\n" + STATIC.lstrip("\n") + "transforms:\n"
        "  paired:\n    gem: sql\n    inputs: [ticks, names]\n"
        f"    options:\n      query: select name from ticks {how} names on ticks.value = names.value\n"
    )
    assert codes(piece + SCREEN) == ([expected] if expected else [])


# What can't be known


@pytest.mark.parametrize("how", KINDS[:5])
def test_what_python_code_gives_may_be_a_stream_or_not(how: str) -> None:
    piece = TWO_STREAMS + (
        "transforms:\n  cleaned: {gem: python, input: clicks, options: {function: 'jobs:clean'}}\n"
        f"  paired: {{gem: join, inputs: [INPUTS], options: {{how: {how}, on: [value]}}}}\n"
    )
    for inputs in ("ads, cleaned", "cleaned, ads"):
        assert errors(piece.replace("INPUTS", inputs) + SCREEN) == []


def test_python_code_may_have_put_a_watermark() -> None:
    piece = TWO_STREAMS + (
        "transforms:\n  cleaned: {gem: python, input: clicks, options: {function: 'jobs:clean'}}\n"
        "  paired:\n    gem: join\n    inputs: [ads, cleaned]\n"
        "    options: {how: left, condition: ads.timestamp = cleaned.at}\n"
    )
    assert errors(piece + SCREEN) == []


def test_sources_without_known_columns_may_have_anything() -> None:
    piece = """
sources:
  ads: {gem: file, options: {format: json, path: ads, infer_schema: true}}
  clicks: {gem: file, options: {format: json, path: clicks, infer_schema: true}}
transforms:
  shown: {gem: watermark, input: ads, options: {column: at, delay: 1 minute}}
  clicked: {gem: watermark, input: clicks, options: {column: at, delay: 1 minute}}
  paired: {gem: join, inputs: {a: shown, b: clicked}, options: {how: left, condition: a.id = b.id and b.at < a.until}}
"""
    assert errors(piece + SCREEN) == []


@pytest.mark.parametrize(
    ("later", "found"),
    [
        ("interval 1 hour 5 minutes + a.timestamp", []),
        ("a.timestamp + interval 1 hour 5 minutes", []),
        ("a.timestamp + interval 1 day 2 hours 5 minutes", []),
        ("a.timestamp + interval 1 hour + 5 minutes", []),
        ("a.timestamp + interval 1 hour - 5 minutes", []),
        ("a.timestamp + interval -1 hour", []),
        ("a.timestamp + interval '1 hour 5 minutes'", []),
        ("a.timestamp + interval '5 minutes' + interval '1' hour", []),
        ("a.timestamp + interval '01:30' hour to minute + interval 1 day", []),
        # The second is cast to the type of the sum, and that Spark doesn't follow.
        ("interval 1 hour + interval 5 minutes + a.timestamp", [("GB323", "joined")]),
        # Nor does it compute: a product bounds nothing, on whichever side and behind whatever it stands.
        ("a.timestamp + 2 * interval 1 hour", [("GB323", "joined")]),
        ("a.timestamp + interval 1 hour * 2", [("GB323", "joined")]),
        ("a.timestamp + interval 1 hour / 2", [("GB323", "joined")]),
        ("a.timestamp + interval 5 minutes + 2 * interval 1 hour", [("GB323", "joined")]),
        ("a.timestamp + interval '5 minutes' + 2 * interval 1 hour", [("GB323", "joined")]),
        ("a.timestamp + interval '1' hour + 2 * interval '5' minutes", [("GB323", "joined")]),
        ("a.timestamp + interval 1 hour - 2 * interval 5 minutes", [("GB323", "joined")]),
        ("a.timestamp - (interval '-1' hour + 2 * interval 1 hour)", [("GB323", "joined")]),
        ("a.timestamp - (interval 1 day - interval 1 day)", []),
        ("a.timestamp - abs(interval 1 hour)", [("GB323", "joined")]),
        ("a.timestamp + -(interval 1 hour)", []),
        ("a.timestamp + +interval 1 hour", [("GB323", "joined")]),
    ],
)
def test_a_query_keeps_its_intervals_of_several_units(later: str, found: list[tuple[str, str]]) -> None:
    query = f"select a.* from shown a left join clicked b on a.value = b.value and {later} >= b.timestamp"
    joined = f'  joined: {{gem: sql, inputs: [shown, clicked], options: {{query: "{query}"}}}}\n'
    assert errors(f"{TWO_MARKED}{joined}targets:\n  out: {{gem: noop, input: joined}}\n") == found


@pytest.mark.parametrize(
    ("later", "bounded"),
    [
        ("ads.timestamp + interval 1 day 2 hours 5 minutes", True),
        ("ads.timestamp + interval '5 minutes' + 2 * interval '1' hour", False),
        ("ads.timestamp + interval 5 minutes + 2 * interval 1 hour", False),
    ],
)
def test_a_condition_computes_no_intervals(later: str, bounded: bool) -> None:
    condition = f'"{EQUAL} and clicks.timestamp <= {later}"'
    assert errors(ranged(condition, "left")) == ([] if bounded else [("GB323", "paired")])
