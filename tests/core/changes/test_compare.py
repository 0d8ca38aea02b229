"""The verdict on an edit, kind by kind: two versions of a pipeline, and what becomes of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gem_bundle.changes.against import plan_against
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import SparkCheckpoint
from gem_bundle.changes.compare import compare, compare_with_checkpoint
from gem_bundle.changes.logs import Offsets
from gem_bundle.changes.model import VERDICTS, TargetChanges, worst
from gem_bundle.changes.wording import told_both
from tests.core.changes.edits import BASE, EDITS, Edit, edited_verdict, plan, verdict

MORE = '  more: {gem: file, options: {format: json, path: more, schema: "page string, n int, at timestamp"}}'


def codes(found: TargetChanges) -> list[tuple[str, str]]:
    return [(change.verdict, change.code) for change in found.changes]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_an_edit_has_its_verdict(edit: Edit) -> None:
    found = edited_verdict(edit)
    assert (found.verdict, tuple(change.code for change in found.changes)) == (edit.verdict, edit.codes)
    of_targets = [change for change in found.changes if change.code in {"GB430", "GB431", "GB432"}]
    assert all(change.hint for change in of_targets if change.stops)


def test_a_change_says_where_it_stands_what_it_was_and_what_it_is() -> None:
    (change,) = verdict(BASE, BASE.replace("n > 0", "n > 1")).changes
    assert (change.place.file, change.place.line) == ("shop.yaml", 7)
    assert (change.node, change.before, change.after) == ("some", "n > 0", "n > 1")
    assert change.path == ("transforms", "some", "options", "condition")
    assert change.message.startswith("transform `some`: `condition` was `n > 0` and is `n > 1`")
    assert "--fresh" in change.hint
    assert change.stops


def test_long_texts_are_shown_around_their_difference() -> None:
    long = "n > 0 and " * 12
    condition = f"{long}n < 5 and {long}n < 7"
    one, other = (BASE.replace("n > 0", text) for text in (condition, condition.replace("n < 5", "n < 6")))
    (change,) = verdict(one, other).changes
    shown = change.message.partition(" was ")[2].partition(": the state")[0]
    before, _, after = shown.partition(" and is ")
    assert before.startswith("`…")
    assert before.endswith("…`")
    assert (before.replace("n < 5", "n < 6"), "n < 5" in before) == (after, True)
    # At the end nothing is left out.
    (change,) = verdict(one, one.replace("n < 7", "n < 8")).changes
    assert "n < 7` and is `…" in change.message


def test_texts_of_several_lines_are_shown_on_one() -> None:
    query = BASE.replace(
        "{gem: filter, input: timely, options: {condition: n > 0}}",
        '{gem: sql, input: timely, options: {query: "select *\\nfrom timely\\n  where n > 0\\n"}}',
    )
    (change,) = verdict(query, query.replace("n > 0", "n > 1")).changes
    was = "select * from timely where n > 0"
    assert f"`query` was `{was}` and is `{was[:-1]}1`: the state" in change.message
    assert change.before == "select *\nfrom timely\n  where n > 0\n"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("a\nb", "a\n\nb", "`a\\nb` and is `a\\n\\nb` (only blanks and line breaks differ)"),
        ("a b", "a b\n", "`a b` and is `a b\\n` (only blanks and line breaks differ)"),
        ("x " * 60 + "\nb", "x " * 60 + "\n\nb", " \\nb` and is `"),
        ("a  b", "a b", "`a  b` and is `a b`"),
        ("\t", "\n", "`\\t` and is `\\n`"),
        ("a\x1b[2J", None, "`a\\x1b[2J` and is nothing"),
        ({"a": 1, "b": None}, {"a": 2, "b": None}, '`{"a": 1}` and is `{"a": 2}`'),
        ({"a": 1, "b": None}, {"a": 1}, '`{"a": 1, "b": null}` and is `{"a": 1}`'),
        ([{"a": None, "b": "x\ny"}], [None], '`[{"b": "x y"}]` and is `[null]`'),
        ({"secret": True}, {"secret": True}, "what isn't kept and is what isn't kept"),
    ],
)
def test_a_value_is_shown_so_that_it_can_be_told_from_the_other(before: Any, after: Any, said: str) -> None:
    sentence = told_both(before, after)
    assert said in sentence
    assert sentence.isprintable()


@pytest.mark.parametrize("first", ["", "description: Clicks of a shop.\n"])
def test_of_a_node_that_is_no_more_the_section_of_its_kind_is_told(first: str) -> None:
    more = BASE.replace("transforms:", f"{MORE}\ntransforms:\n  both: {{gem: union, inputs: [clicks, more]}}")
    more = more.replace("input: clicks,", "input: both,")
    found = {c.code: c for c in verdict(more, first + BASE).changes}
    lines = (first + BASE).splitlines()
    for code, section in (("GB411", "sources"), ("GB421", "transforms")):
        change = found[code]
        assert change.path == (section,)
        assert (change.place.line, change.place.column) == (lines.index(f"{section}:") + 1, 1)


def test_where_there_is_no_such_section_any_more_it_is_the_file() -> None:
    text = """
        pipeline: shop
        sources:
          clicks: {gem: file, options: {format: json, path: data, schema: "n int"}}
        transforms:
          some: {gem: filter, input: clicks, options: {condition: n > 0}}
        targets:
          out: {gem: file, input: some, options: {format: json, path: out}}
    """
    head, _, tail = text.partition("        transforms:")
    without = head + "        targets:" + tail.partition("        targets:")[2].replace("some", "clicks")
    (change,) = verdict(text, without).changes
    assert (change.code, change.path, change.place.line) == ("GB421", (), 2)


def test_what_is_accepted_does_not_stop() -> None:
    found = verdict(BASE, BASE.replace("n > 0", "n > 1"))
    assert found.stops
    assert not found.accepting([("GB423", "")]).stops
    assert not found.accepting([("GB423", "some")]).stops
    assert found.accepting([("GB423", "counts"), ("GB422", "")]).stops


def test_a_transform_with_another_id_is_no_change_of_rows() -> None:
    edited = BASE.replace("  counts:", "  sums:").replace("input: counts", "input: sums")
    assert codes(verdict(BASE, edited)) == [("continues", "GB443")]


def test_transforms_come_and_go() -> None:
    without = BASE.replace("  some: {gem: filter, input: timely, options: {condition: n > 0}}\n", "").replace(
        "input: some", "input: timely"
    )
    assert codes(verdict(BASE, without)) == [("mixed", "GB421")]
    assert codes(verdict(without, BASE)) == [("mixed", "GB420")]
    more = BASE.replace("input: named", "input: once").replace(
        "targets:", "  once: {gem: deduplicate, input: named, options: {columns: [path, window]}}\ntargets:"
    )
    assert codes(verdict(BASE, more)) == [("refused", "GB422")]
    assert codes(verdict(more, BASE)) == [("refused", "GB422")]


def test_a_column_that_no_state_is_made_of_is_no_matter_to_it() -> None:
    edited = BASE.replace("input: some\n", "input: wide\n").replace(
        "  counts:", "  wide: {gem: with_columns, input: some, options: {columns: {x: n + 1}}}\n  counts:"
    )
    assert codes(verdict(BASE, edited)) == [("continues", "GB420")]


def test_a_source_that_is_new_or_gone() -> None:
    two = """
        pipeline: shop
        sources:
          clicks: {gem: file, options: {format: json, path: data, schema: "n int"}}
          more: {gem: file, options: {format: json, path: more, schema: "n int"}}
        transforms:
          all: {gem: union, inputs: [clicks, more]}
        targets:
          out: {gem: file, input: all, options: {format: json, path: out}}
    """
    one = """
        pipeline: shop
        sources:
          clicks: {gem: file, options: {format: json, path: data, schema: "n int"}}
        targets:
          out: {gem: file, input: clicks, options: {format: json, path: out}}
    """
    assert codes(verdict(one, two)) == [("continues", "GB410"), ("continues", "GB420")]
    assert codes(verdict(two, one)) == [("continues", "GB421"), ("skipped", "GB411")]


JOINED = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "n int"}}
  more: {gem: file, options: {format: json, path: more, schema: "n int"}}
  names: {gem: file, mode: batch, options: {format: json, path: names, schema: "n int"}}
transforms:
  known: {gem: join, inputs: [more, names], options: {on: [n]}}
  some: {gem: filter, input: known, options: {condition: n > 0}}
  once: {gem: deduplicate, input: some, options: {columns: [n]}}
  both: {gem: union, inputs: [clicks, once]}
targets:
  all: {gem: noop, input: both}
  out: {gem: noop, input: both}
"""
ALONE = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "n int"}}
transforms:
  some: {gem: filter, input: clicks, options: {condition: n > 5}, was: other}
targets:
  all: {gem: noop, input: some}
  out: {gem: noop, input: clicks}
"""


def test_what_stands_in_the_file_for_other_targets_is_not_called_no_more() -> None:
    parted = JOINED.replace("out: {gem: noop, input: both", "out: {gem: noop, input: clicks")
    renamed = parted.replace("  some: {", "  few: {was: some, ").replace("input: some", "input: few")
    # In the last one `some` is the name of another node.
    for text, told in (
        (parted, "is no longer before target `out`"),
        (renamed, "is no longer before target `out`"),
        (ALONE, "is no more"),
    ):
        changes = verdict(JOINED, text).changes
        assert {change.node for change in changes} == {"more", "names", "known", "some", "once", "both"}
        assert all(f"`{change.node}`" in change.message and told in change.message for change in changes)


def test_the_project_has_moved() -> None:
    old, new = plan(BASE), plan(BASE, "/elsewhere")
    found = compare(version_of(old, "out"), version_of(new, "out"), new, "out")
    assert ("refused", "GB416") in codes(found)


def test_targets_that_are_new_gone_or_renamed() -> None:
    other = BASE + "  other: {gem: noop, input: some}\n"
    found = {t.target: t for t in plan_against(plan(other), plan(BASE))}
    assert found["out"].verdict == "same"
    assert codes(found["other"]) == [("new", "GB444")]
    assert "`clicks` from its beginning" in found["other"].changes[0].message
    found = {t.target: t for t in plan_against(plan(BASE), plan(other))}
    assert codes(found["other"]) == [("gone", "GB445")]
    renamed = BASE.replace("  out: {", "  files: {")
    (found_again,) = (t for t in plan_against(plan(renamed), plan(BASE)) if t.target == "files")
    assert codes(found_again) == [("again", "GB435")]
    said = renamed.replace("files: {", "files: {was: out, ")
    assert [t.verdict for t in plan_against(plan(said), plan(BASE))] == ["continues"]


def test_a_checkpoint_without_a_record_is_compared_as_far_as_spark_tells() -> None:
    made = plan(BASE)
    version = version_of(made, "out")
    offsets = (Offsets(0, "v2", sources={"clicks": {"logOffset": 0}}),)
    found = compare_with_checkpoint(made, version, SparkCheckpoint("/c", "id", offsets))
    assert ("continues", "GB446") in codes(found)
    assert found.notes
    offsets = (Offsets(0, "v2", sources={"clicks": {"logOffset": 0}, "views": None}),)
    found = compare_with_checkpoint(made, version, SparkCheckpoint("/c", "id", offsets))
    assert ("skipped", "GB411") in codes(found)
    assert [change.path for change in found.changes if change.code == "GB411"] == [("sources",)]


def test_the_worst_verdict_counts() -> None:
    assert worst([]) == "same"
    assert worst(["continues", "skipped", "from_now_on"]) == "skipped"
    assert worst(VERDICTS) == "refused"


def test_the_kinds_of_changes_that_are_left() -> None:
    streams = """
        pipeline: shop
        sources:
          clicks: {gem: file, options: {format: json, path: data, schema: "n int, at timestamp"}}
          more: {gem: file, options: {format: json, path: more, schema: "n int, at timestamp"}}
        transforms:
          pairs: {gem: join, inputs: [clicks, more], options: {on: [n]}}
          once: {gem: select, input: pairs, options: {columns: [n]}}
        targets:
          out: {gem: console, input: once}
    """
    rate = streams.replace(
        'clicks: {gem: file, options: {format: json, path: data, schema: "n int, at timestamp"}}',
        "clicks: {gem: rate}",
    ).replace("on: [n]", "condition: clicks.value = more.n")
    assert ("refused", "GB413") in codes(verdict(streams, rate.replace("[n]}", "[more.n]}")))
    assert ("mixed", "GB417") in codes(
        verdict(streams, streams.replace("more: {gem: file,", "more: {gem: file, mode: batch,"))
    )
    swapped = verdict(streams, streams.replace("[clicks, more]", "[more, clicks]"))
    assert codes(swapped) == [("mixed", "GB425")]
    counted = """
        pipeline: shop
        sources: {ticks: {gem: rate}}
        transforms: {counts: {gem: aggregate, input: ticks, options: {aggregates: {n: count(*)}}}}
        targets: {out: {gem: console, input: counts, output_mode: update}}
    """
    assert codes(verdict(counted, counted.replace("update", "complete"))) == [("continues", "GB433")]
    assert codes(verdict(counted.replace("update", "complete"), counted)) == [("from_now_on", "GB433")]
    # More rows beside those of groups don't change what the groups are of, nor what is asked of them.
    counts = """
        pipeline: shop
        sources: {clicks: {gem: file, options: {format: json, path: data, schema: "page string, n bigint"}}}
        transforms:
          counts: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {n: count(*)}}}
          united: {gem: union, inputs: [counts, clicks]}
          few: {gem: filter, input: counts, options: {condition: page = 'home'}}
        targets: {out: {gem: console, input: few, output_mode: update}}
    """
    fork = counts.replace("input: counts, options: {condition", "input: united, options: {condition")
    counts = counts.replace("          united: {gem: union, inputs: [counts, clicks]}\n", "")
    assert codes(verdict(counts, fork)) == [
        ("again", "GB418"),
        ("from_now_on", "GB420"),
        ("from_now_on", "GB425"),
    ]
    # What another output of a node was read of isn't what the union has of it.
    dealt = """
        pipeline: shop
        sources: {clicks: {gem: file, options: {format: json, path: data, schema: "page string, n bigint"}}}
        transforms:
          dealt: {gem: route, input: clicks, options: {conditions: {home: page = 'home'}, rest: others}}
          united: {gem: union, inputs: [dealt.others, clicks]}
          sums: {gem: aggregate, input: READ, options: {group_by: [page], aggregates: {n: sum(n)}}}
          few: {gem: filter, input: sums, options: {condition: n > 1}}
        targets: {out: {gem: console, input: few, output_mode: update}}
    """
    alone = dealt.replace("          united: {gem: union, inputs: [dealt.others, clicks]}\n", "")
    found = codes(verdict(alone.replace("READ", "dealt.home"), dealt.replace("READ", "united")))
    assert ("mixed", "GB425") in found
    # A condition that Spark asks before distinct rows is asked there whatever comes out.
    distinct = """
        pipeline: shop
        sources: {ticks: {gem: rate}}
        transforms:
          some: {gem: sql, input: ticks, options: {query: select distinct value from ticks}}
          few: {gem: filter, input: some, options: {condition: value > 3}}
        targets: {out: {gem: console, input: few, output_mode: update}}
    """
    assert codes(verdict(distinct, distinct.replace("update", "complete"))) == [("continues", "GB433")]
    twice = """
        pipeline: shop
        sources: {ticks: {gem: rate}}
        transforms: {both: {gem: union, inputs: {a: ticks, b: ticks}}}
        targets: {out: {gem: console, input: both}}
    """
    once = twice.replace(", b: ticks", ", b: ticks").replace("input: both", "input: ticks")
    assert ("skipped", "GB418") in codes(verdict(once, twice))
    rows = "{gem: file, options: {format: json, path: data, schema: n int}}"
    once, twice = (text.replace("{gem: rate}", rows) for text in (once, twice))
    assert ("again", "GB418") in codes(verdict(once, twice))


def test_versions_are_told() -> None:
    made = plan(BASE)
    now = version_of(made, "out")
    before = replace(
        now,
        spark="4.1.1",
        nodes=tuple(replace(node, distribution_version="0.0.1") for node in now.nodes),
    )
    assert {c.code for c in compare(before, replace(now, spark="4.2.0"), made, "out").changes} == {
        "GB441",
        "GB442",
    }
    back = compare(replace(now, spark="4.2.0"), replace(now, spark="4.1.1"), made, "out")
    assert codes(back) == [("refused", "GB441")]


def test_of_settings_that_an_earlier_record_did_not_keep_nothing_is_said() -> None:
    zone = BASE.replace("pipeline: shop", "pipeline: shop\nspark: {spark.sql.session.timeZone: Asia/Tokyo}")
    assert codes(verdict(BASE, zone)) == [("mixed", "GB448")]
    assert not verdict(BASE, zone, ran=lambda version: replace(version, deciding=None)).changes
    found = verdict(BASE, zone).changes[0]
    assert found.message.startswith("the setting `spark.sql.session.timeZone` was the machine's own")
    assert found.with_new_state().verdict == "from_now_on"


def test_the_code_of_a_function_has_changed() -> None:
    called = """
        pipeline: shop
        sources: {ticks: {gem: rate}}
        transforms: {clean: {gem: python, input: ticks, options: {function: "textwrap:dedent"}}}
        targets: {out: {gem: console, input: clean}}
    """
    made = plan(called)
    now = version_of(made, "out")
    before = replace(
        now, nodes=tuple(replace(n, functions={"function": "other"}) if n.functions else n for n in now.nodes)
    )
    (change,) = compare(before, now, made, "out").changes
    assert (change.code, change.node) == ("GB424", "clean")


UNSEEN = """
    pipeline: shop
    sources: {ticks: {gem: rate}}
    transforms:
      clean: {gem: python, input: ticks, options: {function: "compiled:clean"}}
      whole: {gem: filter, input: clean, options: {condition: "true"}}
    targets: {out: {gem: foreach, input: whole, options: {function: "json.decoder:JSONDecoder"}}}
"""


@pytest.mark.parametrize("edited", [UNSEEN, UNSEEN.replace('"true"', "1 = 1")], ids=["same", "edited"])
def test_of_a_function_whose_code_is_not_found_it_is_not_known(edited: str) -> None:
    found = verdict(UNSEEN, edited)
    assert "GB424" not in {change.code for change in found.changes}
    (note,) = found.notes
    assert note.startswith("whether the code of `compiled:clean`, which `clean` calls, has changed")


def test_another_function_is_told_of_whether_its_code_is_found_or_not() -> None:
    found = verdict(UNSEEN, UNSEEN.replace("compiled:clean", "compiled:other"))
    assert ("GB423", found.notes) == (found.changes[0].code, ())


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_filter_behind_a_join_is_put_before_it_where_it_is_about_one_side(mode: str) -> None:
    pairs = """
        pipeline: shop
        sources:
          a: {gem: file, options: {format: json, path: a, schema: "n int, x int, at timestamp"}}
          b: {gem: file, options: {format: json, path: b, schema: "n int, y int, at timestamp"}}
        transforms:
          pairs: {gem: join, inputs: [a, b], options: {condition: a.n = b.n}}
          flat: {gem: select, input: pairs, options: {columns: [a.n as n, a.x as x, b.y as y]}}
        targets:
          out: {gem: console, input: flat, output_mode: MODE}
    """.replace("MODE", mode)
    for condition, wanted in (("x > 1", "mixed"), ("x > y", "from_now_on"), ("x = y", "refused")):
        some = f"          some: {{gem: filter, input: flat, options: {{condition: {condition}}}}}\n"
        text = pairs.replace("        targets:", f"{some}        targets:").replace(
            "console, input: flat", "console, input: some"
        )
        assert verdict(pairs, text).verdict == wanted, condition


def test_an_outer_join_keeps_what_an_inner_one_needs() -> None:
    outer = """
        pipeline: shop
        sources:
          a: {gem: file, options: {format: json, path: a, schema: "n int, at timestamp"}}
          b: {gem: file, options: {format: json, path: b, schema: "n int, at timestamp"}}
        transforms:
          ta: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}
          tb: {gem: watermark, input: b, options: {column: at, delay: 1 hour}}
          pairs:
            gem: join
            inputs: [ta, tb]
            options: {how: left, condition: "ta.n = tb.n and ta.at >= tb.at and ta.at <= tb.at + interval 1 hour"}
          flat: {gem: select, input: pairs, options: {columns: [ta.n as n]}}
        targets:
          out: {gem: console, input: flat}
    """
    inner = outer.replace("how: left", "how: inner")
    assert verdict(outer, inner).verdict == "from_now_on"
    assert verdict(inner, outer).verdict == "refused"


def test_a_state_that_cant_be_told_is_another_one_where_a_columns_type_is() -> None:
    nested = """
        pipeline: shop
        sources:
          a: {gem: file, options: {format: json, path: a, schema: "n int, x int"}}
        transforms:
          most: {gem: sql, input: a, options: {query: "select max(n) as n from (select n from a) q"}}
        targets:
          out: {gem: console, input: most, output_mode: update}
    """
    assert verdict(nested, nested.replace("n int", "n string")).verdict == "refused"
    assert verdict(nested, nested.replace("max(n)", "min(n)")).verdict == "mixed"


def test_a_result_that_nobody_reads_is_not_kept() -> None:
    """Spark prunes it before it plans the state, so that who drops it gives the state another shape."""
    ticks = """
        pipeline: shop
        sources:
          ticks: {gem: rate}
        transforms:
          sums:
            gem: aggregate
            input: ticks
            options: {group_by: [timestamp], aggregates: {n: sum(value), m: approx_top_k(value)}}
          fewer: {gem: drop, input: sums, options: {columns: [m]}}
        targets:
          out: {gem: console, input: fewer, output_mode: update}
    """
    found = verdict(ticks, ticks.replace("columns: [m]", "columns: [m, n]"))
    assert codes(found) == [("refused", "GB422")]
    assert found.changes[0].message.endswith("its values in the checkpoint are (bigint), not ()")
    # What Spark keeps for this function is not known, but that it keeps something.
    found = verdict(ticks, ticks.replace("input: fewer", "input: sums"))
    assert ("refused", "GB422") in codes(found)
    assert any(change.message.endswith("`m` is kept now") for change in found.changes)
    used = ticks.replace("approx_top_k(value)", "max(value)")
    later = (
        used.replace("columns: [m]", "columns: [m, n]")
        .replace(
            "        targets:",
            """          at:
            gem: with_columns
            input: fewer
            options: {columns: {l: "timestampadd(HOUR, 1, timestamp)"}}
        targets:""",
        )
        .replace("input: fewer, output", "input: at, output")
    )
    assert verdict(used, later).verdict == "refused"


def test_a_watermark_less_before_a_join_is_another_shape_of_its_rows_where_the_join_asks_for_event_time() -> (
    None
):
    pairs = """
        pipeline: shop
        sources:
          a: {gem: file, options: {format: json, path: a, schema: "n int, at timestamp"}}
          b: {gem: file, options: {format: json, path: b, schema: "m int, seen timestamp"}}
        transforms:
          ta: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}
          pairs: {gem: join, inputs: {l: ta, r: b}, options: {condition: l.n = r.m}}
          flat: {gem: select, input: pairs, options: {columns: [n, at, seen]}}
        targets:
          out: {gem: console, input: flat}
    """
    timely = pairs.replace("l.n = r.m", "l.n = r.m and l.at <= r.seen")

    def without(text: str) -> str:
        return text.replace("l: ta", "l: a").replace(
            "          ta: {gem: watermark, input: a, options: {column: at, delay: 1 hour}}\n", ""
        )

    assert codes(verdict(timely, without(timely))) == [("refused", "GB422")]
    # What may be null finds room where something was never null.
    assert codes(verdict(without(timely), timely)) == [("mixed", "GB420")]
    # It lets no row go, but keeps late ones, or doesn't, for all the partners that are still to come.
    assert codes(verdict(pairs, without(pairs))) == [("mixed", "GB421")]
    assert codes(verdict(without(pairs), pairs)) == [("mixed", "GB420")]
    other = timely.replace(
        "gem: watermark, input: a, options: {column: at, delay: 1 hour}",
        "gem: filter, input: a, options: {condition: n > 0}",
    )
    assert verdict(timely, other).verdict == "refused"


def test_what_was_written_by_the_old_rule_can_be_computed_anew_where_the_target_can() -> None:
    text = """
        pipeline: shop
        sources:
          clicks: {gem: file, options: {format: json, path: data, schema: "n int, at timestamp"}}
        transforms:
          timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
          some: {gem: filter, input: timely, options: {condition: n > 0}}
        targets:
          out: {gem: TARGET, input: some, options: {path: outMORE}}
    """
    for gem, more, hint in (
        (
            "delta",
            "",
            "`gem-bundle backfill shop.yaml --target out --from TIME --to TIME` computes earlier results by it.",
        ),
        ("file", ", format: json", ""),
    ):
        before = text.replace("TARGET", gem).replace("MORE", more)
        (change,) = verdict(before, before.replace("n > 0", "n > 1")).changes
        assert (change.verdict, change.hint) == ("from_now_on", hint)


MODES = """
    pipeline: shop
    sources:
      clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int, at timestamp"}}
    transforms:
      timely: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}
      counts:
        gem: aggregate
        input: timely
        options: {window: {column: at, duration: 1 hour}, aggregates: {total: sum(n)}}
    targets: {out: {gem: console, input: counts, output_mode: MODE}}
"""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("complete", "append", "again"),
        ("complete", "update", "from_now_on"),
        ("append", "update", "from_now_on"),
        ("update", "append", "from_now_on"),
        ("append", "complete", "mixed"),
    ],
)
def test_another_output_mode(before: str, after: str, expected: str) -> None:
    one, other = (MODES.replace("MODE", mode) for mode in (before, after))
    (change,) = verdict(one, other).changes
    assert (change.verdict, change.code) == (expected, "GB433")
    assert (change.before, change.after, change.path) == (before, after, ("targets", "out", "output_mode"))
    # Results that are written anew from the state are none of new state.
    assert change.with_new_state().verdict == ("from_now_on" if expected == "again" else expected)


def test_without_state_the_output_mode_makes_no_difference() -> None:
    text = MODES.replace("input: counts", "input: timely")
    for before, after in (("append", "update"), ("update", "append")):
        (change,) = verdict(text.replace("MODE", before), text.replace("MODE", after)).changes
        assert (change.verdict, change.code) == ("continues", "GB433")
        assert "without state that makes no difference" in change.message


REPLACED = """
    pipeline: shop
    sources: {clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int"}}}
    transforms: {step: STEP}
    targets: {out: {gem: console, input: step, output_mode: update}}
"""
ONCE = "{gem: deduplicate, input: clicks, options: {columns: [page]}}"
COUNTED = "{gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {n: count(*)}}}"
FILTERED = "{gem: filter, input: clicks, options: {condition: n > 0}}"
QUERIED = "{gem: sql, input: clicks, options: {query: select * from clicks where n > 1}}"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (ONCE, COUNTED, ("refused", "GB422")),
        (FILTERED, COUNTED, ("refused", "GB422")),
        (COUNTED, FILTERED, ("refused", "GB422")),
        (FILTERED, QUERIED, ("from_now_on", "GB420")),
    ],
)
def test_a_transform_in_whose_place_another_gem_comes(
    before: str, after: str, expected: tuple[str, str]
) -> None:
    (change,) = verdict(REPLACED.replace("STEP", before), REPLACED.replace("STEP", after)).changes
    assert (change.verdict, change.code) == expected
    was, now = (text.partition("gem: ")[2].partition(",")[0] for text in (before, after))
    assert change.message.startswith(f"transform `step` was a `{was}` and is a `{now}`")
    assert (change.before, change.after, change.path) == (was, now, ("transforms", "step", "gem"))
    assert change.with_new_state().verdict == "from_now_on"
