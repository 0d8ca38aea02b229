"""Edits in front of transforms that say what they make of what: no more is called mixed than is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.checkpoint import SparkCheckpoint
from gem_bundle.changes.compare import compare
from gem_bundle.changes.lineages import lineage_of
from gem_bundle.changes.logs import Commit
from gem_bundle.changes.sides import new_side, old_side
from gem_bundle.plugins import load_registry
from gem_filter.filter import Filter, FilterOptions
from tests.core.changes.edits import plan, verdict
from tests.core.changes.test_shapes import of_one

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.facts import Facts
    from gem_bundle.gem import Transform
    from gem_bundle.lineage import Lineage

SOURCES = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: data, schema: "page string, n int, at timestamp"}}
  pages: {gem: file, mode: batch, options: {format: json, path: pages, schema: "page string, team string, n int, at timestamp"}}
"""
ROUTED = f"""{SOURCES.replace("  pages", "  # pages")}
transforms:
  wide: {{gem: with_columns, input: clicks, options: {{columns: {{n: n + 1, at: at}}}}}}
  dealt:
    gem: route
    input: wide
    options: {{matching: MATCHING, rest: other, conditions: {{large: "n > 10", home: "page = 'home'"}}}}
  counts: {{gem: aggregate, input: dealt.OUTPUT, options: {{group_by: [page], aggregates: {{rows: count(*)}}}}}}
targets:
  out: {{gem: console, input: READ, output_mode: update}}
"""


@pytest.mark.parametrize(
    ("read", "output", "matching", "old", "new", "expected"),
    [
        ("dealt.large", "large", "all", "n > 10", "n > 20", "from_now_on"),
        ("dealt.home", "large", "all", "n > 10", "n > 20", "continues"),
        ("dealt.home", "large", "first", "n > 10", "n > 20", "from_now_on"),
        ("dealt.large", "large", "first", "page = 'home'", "page = 'cart'", "continues"),
        ("dealt.other", "large", "all", "page = 'home'", "page = 'cart'", "from_now_on"),
        ("counts", "large", "all", "n > 10", "n > 20", "mixed"),
        ("counts", "home", "all", "n > 10", "n > 20", "continues"),
        ("counts", "home", "first", "n > 10", "n > 20", "mixed"),
        # What comes to the node in other columns gets no further than what asks for them.
        ("counts", "home", "all", "n + 1", "n + 2", "continues"),
        ("counts", "large", "all", "n + 1", "n + 2", "mixed"),
        ("counts", "large", "all", "at: at", "at: at + interval 1 hour", "continues"),
    ],
)
def test_each_output_of_a_route_goes_by_its_own_condition(
    read: str, output: str, matching: str, old: str, new: str, expected: str
) -> None:
    before = ROUTED.replace("READ", read).replace("OUTPUT", output).replace("MATCHING", matching)
    if read != "counts":
        before = "".join(line for line in before.splitlines(True) if not line.startswith("  counts"))
    assert old in before
    assert verdict(before, before.replace(old, new)).verdict == expected


def test_a_route_behind_state_is_put_before_it_where_it_goes_by_what_is_grouped_by() -> None:
    text = f"""{SOURCES.replace("  pages", "  # pages")}
transforms:
  counts: {{gem: aggregate, input: clicks, options: {{group_by: [page], aggregates: {{rows: count(*)}}}}}}
  dealt: {{gem: route, input: counts, options: {{conditions: {{some: "CONDITION"}}}}}}
targets:
  out: {{gem: console, input: dealt.some, output_mode: update}}
"""
    for old, new, expected in (
        ("rows > 1", "rows > 2", "from_now_on"),
        ("page > 'a'", "page > 'b'", "mixed"),
    ):
        before, after = text.replace("CONDITION", old), text.replace("CONDITION", new)
        assert verdict(before, after).verdict == expected


TWO = f"""{SOURCES}
transforms:
  wide: {{gem: with_columns, input: clicks, options: {{columns: {{n: n + 1}}}}}}
  found: {{gem: lookup, inputs: [wide, pages], options: {{on: [page], columns: {{team: team, other: n}}}}}}
  counts: {{gem: aggregate, input: found, options: {{group_by: [team], aggregates: {{total: sum(n)}}}}}}
targets:
  out: {{gem: console, input: READ, output_mode: update}}
"""


@pytest.mark.parametrize(
    ("read", "old", "new", "expected"),
    [
        ("found", "other: n", "other: at", "from_now_on"),
        ("counts", "other: n", "other: at", "continues"),
        ("counts", "team: team", "team: page", "mixed"),
        ("counts", "{on: [page]", "{missing: drop, on: [page]", "mixed"),
        ("counts", "{on: [page]", "{prefer: at, on: [page]", "mixed"),
        ("counts", "n + 1", "n + 2", "mixed"),
    ],
)
def test_what_is_looked_up_reaches_what_reads_it(read: str, old: str, new: str, expected: str) -> None:
    before = TWO.replace("READ", read)
    if read != "counts":
        before = "".join(line for line in before.splitlines(True) if not line.startswith("  counts"))
    assert old in before
    assert verdict(before, before.replace(old, new)).verdict == expected


LESS = f"""{SOURCES}
transforms:
  wide: {{gem: with_columns, input: clicks, options: {{columns: {{n: n + 1}}}}}}
  kept: {{gem: select, input: wide, options: {{columns: [page, n]}}}}
  seen: {{gem: select, input: pages, options: {{columns: [page, n]}}}}
  less: {{gem: set_operation, inputs: [kept, seen], options: {{operation: except}}}}
  out_of: {{gem: with_columns, input: less, options: {{columns: {{double: n * 2}}}}}}
targets:
  out: {{gem: console, input: out_of, output_mode: update}}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("n + 1", "n + 2", "mixed"),
        ("n + 1}", "n + 1, at: at + interval 1 hour}", "continues"),
        ("n * 2", "n * 3", "from_now_on"),
    ],
)
def test_rows_that_came_through_once_are_state_by_all_their_columns(
    old: str, new: str, expected: str
) -> None:
    assert old in LESS
    assert verdict(LESS, LESS.replace(old, new)).verdict == expected


CALLED = f"""{SOURCES.replace("  pages", "  # pages")}
transforms:
  wide: {{gem: with_columns, input: clicks, options: {{columns: {{n: n + 1}}}}}}
  clean: {{gem: python, input: wide, options: {{function: "jobs:clean", arguments: {{least: 1}}}}}}
targets:
  out: {{gem: console, input: clean}}
"""


def left(folder: Path, *operators: str, batches: int = 1) -> SparkCheckpoint:
    """A checkpoint with the state of these operators of Spark."""
    for number, name in enumerate(operators):
        place = folder / "state" / str(number) / "_metadata"
        place.mkdir(parents=True)
        described = {"operatorInfo": {"operatorId": number, "operatorName": name}, "stateStoreInfo": []}
        (place / "metadata").write_text(f"v1\n{json.dumps(described)}\n")
    return SparkCheckpoint(str(folder), "id", commits=tuple(map(Commit, range(batches))))


@pytest.mark.parametrize(
    ("operators", "batches", "expected"),
    [((), 1, "from_now_on"), ((), 0, "mixed"), (("stateStoreSave",), 1, "mixed"), (("",), 1, "mixed")],
)
@pytest.mark.parametrize(("old", "new"), [("n + 1", "n + 2"), ("least: 1", "least: 2")])
def test_a_checkpoint_without_state_tells_that_a_function_keeps_none(
    tmp_path: Path, operators: tuple[str, ...], batches: int, expected: str, old: str, new: str
) -> None:
    before, after = plan(CALLED), plan(CALLED.replace(old, new))
    checkpoint = left(tmp_path, *operators, batches=batches)
    found = compare(version_of(before, "out"), version_of(after, "out"), after, "out", checkpoint=checkpoint)
    assert found.verdict == expected


def test_state_that_is_others_is_none_of_a_function(tmp_path: Path) -> None:
    text = CALLED.replace(
        "  clean:",
        "  once: {gem: deduplicate, input: wide, options: {columns: [page]}}\n  clean:",
    ).replace("gem: python, input: wide", "gem: python, input: once")
    before, after = plan(text), plan(text.replace("least: 1", "least: 2"))
    for number, (names, expected) in enumerate(
        [(["dedupe"], "from_now_on"), (["dedupe", "stateStoreSave"], "mixed")]
    ):
        checkpoint = left(tmp_path / str(number), *names)
        found = compare(
            version_of(before, "out"), version_of(after, "out"), after, "out", checkpoint=checkpoint
        )
        assert found.verdict == expected


@pytest.mark.parametrize(
    ("having", "expected"),
    [
        # Spark never asks whether what is never null is null, so that nothing keeps what nobody reads.
        ("m is not null", "refused"),
        ("few is not null", "refused"),
        ("m is not null and rows > 1", "refused"),
        ("m > 1", "from_now_on"),
        ("m is null", "refused"),
        ("most is not null", "from_now_on"),
    ],
)
def test_a_condition_on_groups_keeps_what_it_asks_for(having: str, expected: str) -> None:
    text = f"""{SOURCES.replace("  pages", "  # pages")}
transforms:
  counts:
    gem: aggregate
    input: clicks
    options:
      group_by: [page]
      aggregates: {{rows: count(*), m: "coalesce(sum(n), 0)", few: count(*) filter (where n > 1), most: max(n)}}
      having: {having}
  named: {{gem: drop, input: counts, options: {{columns: COLUMNS}}}}
targets:
  out: {{gem: console, input: named, output_mode: update}}
"""
    asked, _, _ = having.partition(" ")
    other = "m" if asked == "most" else "most"
    kept, lost = f"[{other}]", f"[{other}, {asked}]"
    assert verdict(text.replace("COLUMNS", kept), text.replace("COLUMNS", lost)).verdict == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("l.n < r.n", "r.n < l.n", "mixed"),
        ("l.n < r.n", "L.n  <  R.N", "continues"),
        ("l.n - r.n", "r.n - l.n", "mixed"),
        ("sum(l.n)", "sum(r.n)", "mixed"),
        ("l.made.x", "l.made.y", "mixed"),
        # Of two fields that are all there is Spark keeps the whole.
        ("l.made.x + 1", "l.made.y + 1", "refused"),
    ],
)
def test_a_column_is_not_another_input_s_of_the_same_name(old: str, new: str, expected: str) -> None:
    text = """
        pipeline: shop
        sources:
          a: {gem: file, options: {format: json, path: a, schema: "u string, n int, made struct<x: int, y: int>"}}
          b: {gem: file, options: {format: json, path: b, schema: "u string, n int"}}
        transforms:
          pairs: {gem: join, inputs: {l: a, r: b}, options: {condition: l.u = r.u and l.n < r.n}}
          flat:
            gem: aggregate
            input: pairs
            options:
              group_by: {apart: l.n - r.n, x: l.made.x, z: l.made.x + 1}
              aggregates: {total: sum(l.n)}
        targets:
          out: {gem: console, input: flat, output_mode: update}
    """
    assert old in text
    assert verdict(text, text.replace(old, new)).verdict == expected


@pytest.mark.parametrize(
    ("options", "old", "new", "expected"),
    [
        ("explode: [tags]", "page string", "page timestamp", "continues"),
        ("explode: [tags]", "array<string>", "array<bigint>", "mixed"),
        ("explode: [tags, more]", "page string", "page timestamp", "mixed"),
    ],
)
def test_elements_of_an_array_are_followed(options: str, old: str, new: str, expected: str) -> None:
    text = f"""
pipeline: shop
sources:
  clicks:
    gem: file
    options: {{format: json, path: d, schema: "page string, n int, tags array<string>, more array<int>"}}
transforms:
  flat: {{gem: flatten, input: clicks, options: {{{options}}}}}
  some: {{gem: aggregate, input: flat, options: {{group_by: [n], aggregates: {{t: max(length(tags))}}}}}}
targets:
  out: {{gem: console, input: some, output_mode: update}}
"""
    found = verdict(text, text.replace(old, new))
    assert found.verdict == expected, found.changes


def test_an_unpivot_of_one_column_makes_one_row_of_each() -> None:
    head = SOURCES.replace("  pages", "  # pages") + "transforms:\n"
    rest = """
  last: {gem: deduplicate, input: INPUT, options: {columns: [at]}}
targets:
  out: {gem: console, input: last}
"""
    before = head + rest.replace("INPUT", "clicks")
    for options, expected in (
        ("values: [page]", "from_now_on"),
        ("values: [page], include_nulls: false", "mixed"),
        ("values: [n], ids: [at]", "from_now_on"),
    ):
        long = f"  long: {{gem: unpivot, input: clicks, options: {{{options}}}}}"
        assert verdict(before, head + long + rest.replace("INPUT", "long")).verdict == expected
    long = "  long: {gem: unpivot, input: clicks, options: {ids: [at], values: [VALUES]}}"
    one, two, other = (
        head + long.replace("VALUES", v) + rest.replace("INPUT", "long") for v in ("n", "n, n2", "page")
    )
    wide = "  wide: {gem: with_columns, input: clicks, options: {columns: {n2: n + 1}}}\n"
    one, two, other = (
        t.replace("transforms:\n", "transforms:\n" + wide).replace(
            "unpivot, input: clicks", "unpivot, input: wide"
        )
        for t in (one, two, other)
    )
    assert verdict(one, other).verdict == "from_now_on"
    assert verdict(one, two).verdict == "mixed"
    # A column that stays is there too where it is called as the values are.
    one = head + wide + long.replace("VALUES", "n, n2") + rest.replace("INPUT", "long")
    one = one.replace("ids: [at], ", "").replace("columns: [at]", "columns: [n2]")
    one = one.replace("input: clicks, options: {values", "input: wide, options: {values")
    named = wide + "  named: {gem: with_columns, input: wide, options: {columns: {value: page}}}\n"
    two = one.replace(wide, named).replace("unpivot, input: wide", "unpivot, input: named")
    one, two = (text[: text.index("  last")] + text[text.index("targets") :] for text in (one, two))
    one, two = (text.replace("input: last", "input: long") for text in (one, two))
    assert verdict(one, two).verdict == "from_now_on"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("struct(at as t)", "struct(at as u)", "from_now_on"),
        ("struct(at)", "struct(at as t)", "from_now_on"),
        ("struct(at)", "struct(at as AT)", "continues"),
        ("struct(n as t, at as u).t", "struct(n as u, at as t).t", "from_now_on"),
        ("struct(n as t).t", "struct( n as t ).t", "continues"),
    ],
)
def test_the_name_of_a_field_is_a_part_of_its_struct(old: str, new: str, expected: str) -> None:
    text = SOURCES.replace("  pages", "  # pages") + (
        """
transforms:
  last: {gem: with_columns, input: clicks, options: {columns: {s: "MADE"}}}
targets:
  out: {gem: console, input: last}
"""
    )
    assert verdict(text.replace("MADE", old), text.replace("MADE", new)).verdict == expected


def test_a_struct_is_made_of_what_is_put_into_it_and_nothing_else() -> None:
    text = SOURCES.replace("  pages", "  # pages") + (
        """
transforms:
  pairs: {gem: join, inputs: {l: clicks, r: clicks}, options: {how: inner, "on": [at]}}
  last: {gem: select, input: pairs, options: {columns: [COLUMNS]}}
targets:
  out: {gem: console, input: last}
"""
    )
    before, after = (text.replace("COLUMNS", names) for names in ("at, l.n, struct(at as t) as s", "at, l.n"))
    assert verdict(before, after).verdict == "from_now_on"


ONCE = """
  some: {gem: filter, input: clicks, options: {condition: n > 1}}
  once: {gem: deduplicate, input: some, options: {columns: [page]}}
"""


@pytest.mark.parametrize(
    "last",
    [
        # What has come out by the old condition doesn't come by the new one.
        "{gem: select, input: once, options: {columns: [page]}}",
        "{gem: select, input: once, options: {columns: [page, n]}}",
        "{gem: aggregate, input: once, options: {group_by: [page], aggregates: {c: count(*)}}}",
    ],
)
def test_what_is_dropped_goes_by_rows_that_the_old_rule_let_through(last: str) -> None:
    steps = f"{ONCE}  last: {last}"
    assert of_one(steps, steps.replace("n > 1", "n > 2")) == "mixed"
    assert of_one(steps, steps.replace("[page]}}\n  last", "[n]}}\n  last")) == "refused"


@pytest.mark.parametrize(
    ("columns", "read", "expected"),
    [("page", "page", "from_now_on"), ("page, at", "page", "mixed"), ("page", "page, n", "mixed")],
)
def test_what_tells_for_ever_what_has_come_out_doesnt_go_by_a_watermark(
    columns: str, read: str, expected: str
) -> None:
    late = "  late: {gem: watermark, input: clicks, options: {column: at, delay: 1 hour}}\n"
    steps = f"""  once: {{gem: deduplicate, input: late, options: {{columns: [{columns}]}}}}
  last: {{gem: select, input: once, options: {{columns: [{read}]}}}}"""
    without = steps.replace("late", "clicks")
    assert of_one(late + steps, without, "append") == expected
    assert of_one(without, late + steps, "append") == expected


@pytest.mark.parametrize(
    ("made", "expected"), [("concat(page, 'x')", "mixed"), ("c + 1", "continues"), ("page", "mixed")]
)
def test_a_condition_on_what_is_made_of_groups_is_put_before_them(made: str, expected: str) -> None:
    steps = f"""
  counted: {{gem: aggregate, input: clicks, options: {{group_by: [page], aggregates: {{c: count(*)}}}}}}
  wide: {{gem: with_columns, input: counted, options: {{columns: {{w: "{made}"}}}}}}
  last: {{gem: filter, input: wide, options: {{condition: w > '1'}}}}"""
    assert of_one(steps, steps.replace("'1'", "'2'"), "complete") == expected


@pytest.mark.parametrize(
    ("read", "condition", "expected"),
    [
        ("late", "at > timestamp '2024-01-01'", "continues"),
        ("counted", "at > timestamp '2024-01-01'", "mixed"),
        ("late", "page > '2024-01-01'", "mixed"),
    ],
)
def test_no_condition_on_event_time_is_put_before_its_watermark(
    read: str, condition: str, expected: str
) -> None:
    steps = f"""
  counted: {{gem: aggregate, input: clicks, options: {{group_by: [page, at], aggregates: {{c: count(*)}}}}}}
  late: {{gem: watermark, input: counted, options: {{column: at, delay: 1 hour}}}}
  last: {{gem: filter, input: {read}, options: {{condition: "{condition}"}}}}"""
    assert of_one(steps, steps.replace("2024", "2025"), "complete") == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("to_json(struct(*))", "from_now_on"),
        ("to_json(struct(wide.*))", "from_now_on"),
        ("hash(*)", "from_now_on"),
        ("upper(page)", "continues"),
    ],
)
def test_a_star_reads_all_columns(made: str, expected: str) -> None:
    text = f"""{SOURCES.replace("  pages", "  # pages")}
transforms:
  wide: {{gem: with_columns, input: clicks, options: {{columns: {{m: n + 1}}}}}}
  told: {{gem: select, input: wide, options: {{columns: ["{made} as told"]}}}}
targets:
  out: {{gem: console, input: told}}
"""
    assert verdict(text, text.replace("n + 1", "n + 2")).verdict == expected


@pytest.mark.parametrize(("made", "expected"), [("count(*)", "continues"), ("max(hash(*))", "mixed")])
def test_rows_are_counted_whatever_their_columns(made: str, expected: str) -> None:
    text = f"""{SOURCES.replace("  pages", "  # pages")}
transforms:
  wide: {{gem: with_columns, input: clicks, options: {{columns: {{m: n + 1}}}}}}
  told: {{gem: aggregate, input: wide, options: {{aggregates: {{a: "{made}"}}}}}}
targets:
  out: {{gem: console, input: told, output_mode: update}}
"""
    assert verdict(text, text.replace("n + 1", "n + 2")).verdict == expected


@pytest.mark.parametrize(
    "query",
    [
        "select page, n from clicks where n > (select max(n) from pages where n > 1)",
        "select page, n from clicks where page in (select page from pages where n > 1)",
        "select page, n from clicks where exists (select 1 from pages p where p.page = clicks.page and p.n > 1)",
        "select page, (select max(n) from pages where n > 1) as most from clicks",
        "select q.page from (select * from clicks where n > (select max(n) from pages where n > 1)) as q",
        "select a.page from clicks a join pages b on a.page = b.page where a.n > (select max(n) from pages where n > 1)",
    ],
)
def test_what_another_query_is_asked_for_is_a_part_of_the_rule(query: str) -> None:
    text = f"""{SOURCES}
transforms:
  told: {{gem: sql, inputs: [clicks, pages], options: {{query: "{query}"}}}}
  once: {{gem: deduplicate, input: told, options: {{columns: [page]}}}}
targets:
  out: {{gem: console, input: READ}}
"""
    for read, expected in (("told", "from_now_on"), ("once", "mixed")):
        old = text.replace("READ", read)
        if read == "told":
            old = "".join(line for line in old.splitlines(True) if not line.startswith("  once"))
        assert verdict(old, old.replace("n > 1", "n > 2")).verdict == expected
        # What the other query reads is no column of the stream's.
        pages = old.replace(
            'pages, schema: "page string, team string', 'elsewhere, schema: "page string, team string'
        )
        assert verdict(old, pages).verdict not in {"same", "continues"}, read


def test_a_node_that_is_the_same_shares_its_gem_and_what_that_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    made = Filter.lineage

    def counted(self: Filter, *inputs: Facts) -> Lineage | None:
        asked.append(self.node)
        return made(self, *inputs)

    monkeypatch.setattr(Filter, "lineage", counted)
    before = f"""{SOURCES}
transforms:
  large: {{gem: filter, input: clicks, options: {{condition: n > 10}}}}
  mine: {{gem: filter, input: large, options: {{condition: "page = 'home'"}}}}
  counts: {{gem: aggregate, input: mine, options: {{group_by: [page], aggregates: {{rows: count(*)}}}}}}
targets:
  out: {{gem: console, input: counts, output_mode: update}}
"""
    old, new = plan(before), plan(before.replace("n > 10", "n > 20"))
    version = version_of(new, "out")
    asked.clear()
    now = new_side(version, new, "out")
    ran = old_side(version_of(old, "out"), load_registry(), now=now)
    assert {name for name, gem in ran.gems.items() if gem is now.gems[name]} == {
        "clicks",
        "mine",
        "counts",
        "out",
    }
    assert asked == []

    assert compare(version_of(old, "out"), version, new, "out").verdict == "mixed"
    assert sorted(asked) == ["large", "large", "mine"]


@pytest.mark.parametrize(
    ("conditions", "shared"),
    [
        ('large: "n > 10", home: "page = 1"', True),
        ('home: "page = 1", large: "n > 10"', False),
        ('large: "n > 11", home: "page = 1"', False),
    ],
)
def test_the_order_of_entries_makes_another_gem(conditions: str, shared: bool) -> None:
    text = ROUTED.replace("MATCHING", "first").replace("OUTPUT", "large").replace("READ", "counts")
    before = text.replace('large: "n > 10", home: "page = \'home\'"', 'large: "n > 10", home: "page = 1"')
    new = plan(text.replace('large: "n > 10", home: "page = \'home\'"', conditions))
    now = new_side(version_of(new, "out"), new, "out")
    ran = old_side(version_of(plan(before), "out"), load_registry(), now=now)
    assert (ran.gems["dealt"] is now.gems["dealt"]) is shared


def test_what_a_transform_makes_is_kept_for_the_same_inputs_only() -> None:
    found = plan(ROUTED.replace("MATCHING", "first").replace("OUTPUT", "large").replace("READ", "counts"))
    wide = cast("Transform", found.gems["wide"])
    facts = found.facts["clicks"]
    first = lineage_of(wide, [facts])
    assert first is not None
    assert lineage_of(wide, [facts]) is first
    other = lineage_of(wide, [facts.with_columns(None)])
    assert other is not first
    assert lineage_of(wide, [facts.with_columns(None)], "no such output") is None
    assert lineage_of(wide, [facts]) is first


def test_a_gem_that_has_no_hash_is_asked_as_others_are() -> None:
    @dataclass
    class Held(Filter):
        options: FilterOptions

    gem = Held(FilterOptions(condition="n > 10"))
    with pytest.raises(TypeError, match="unhashable"):
        hash(gem)
    facts = plan(
        ROUTED.replace("MATCHING", "first").replace("OUTPUT", "large").replace("READ", "counts")
    ).facts
    made = lineage_of(gem, [facts["clicks"]])
    assert made is not None
    assert lineage_of(gem, [facts["clicks"]]) is made
