"""Edits in front of rejected rows: what they do to those, and to the rows that are let through."""

from __future__ import annotations

import pytest

from tests.core.changes.edits import verdict

BASE = """
pipeline: shop
sources:
  texts: {gem: file, options: {format: json, path: data, schema: "value string, n int, at timestamp"}}
transforms:
  timely: {gem: watermark, input: texts, options: {column: at, delay: 1 hour}}
  some: {gem: with_columns, input: timely, options: {columns: {n: n + 1}}}
  parsed: {gem: from_json, input: some, options: {column: value, schema: "a int not null", rejects: true}}
  plausible: {gem: expect, input: parsed, options: {rules: {paid: a > 0}}}
  by_hour:
    gem: aggregate
    input: parsed.rejected
    options: {window: {column: event_time, duration: 1 hour}, aggregates: {rows: count(*)}}
targets:
  out: {gem: file, input: INPUT, options: {format: json, path: out}}
"""
GOOD, BAD, UNREAD, COUNTED = "plausible", "plausible.rejected", "parsed.rejected", "by_hour"


@pytest.mark.parametrize(
    ("read", "old", "new", "expected"),
    [
        (GOOD, "a > 0", "a > 1", "from_now_on"),
        (BAD, "a > 0", "a > 1", "from_now_on"),
        # The name of a rule is a reason of rejected rows, and nothing of the others.
        (GOOD, "paid: a", "large: a", "continues"),
        (BAD, "paid: a", "large: a", "from_now_on"),
        (GOOD, "{rules", "{action: fail, rules", "from_now_on"),
        (GOOD, "a int not null", "a int", "from_now_on"),
        (UNREAD, "a int not null", "a int", "from_now_on"),
        # What `from_json` doesn't keep is in the rows that it rejects.
        (GOOD, "n + 1", "n + 2", "continues"),
        (BAD, "n + 1", "n + 2", "continues"),
        (UNREAD, "n + 1", "n + 2", "from_now_on"),
        (COUNTED, "a int not null", "a int", "mixed"),
        (GOOD, "plausible, options: {format", "plausible.rejected, options: {format", "from_now_on"),
    ],
)
def test_what_an_edit_does(read: str, old: str, new: str, expected: str) -> None:
    before = BASE.replace("INPUT", read)
    assert old in before
    assert verdict(before, before.replace(old, new)).verdict == expected


def test_a_text_that_was_rejected_is_let_through() -> None:
    before = BASE.replace("INPUT", GOOD).replace("parsed.rejected", "parsed")
    before = before.replace("column: event_time", "column: at").replace(
        "rejects: true", "rejects: true, keep: true"
    )
    assert verdict(before, before.replace("rejects: true", "rejects: false")).verdict == "from_now_on"


def test_another_output_is_told_with_both_names() -> None:
    before = BASE.replace("INPUT", GOOD)
    (change,) = verdict(before, before.replace("input: plausible,", "input: plausible.rejected,")).changes
    assert (change.code, change.verdict, change.path) == ("GB425", "from_now_on", ("targets", "out", "input"))
    assert "read `plausible` and reads `plausible.rejected`" in change.message


def test_another_output_is_told_with_both_names_by_a_transform() -> None:
    before = """
        pipeline: shop
        sources: {ticks: {gem: rate}}
        transforms:
          dealt: {gem: route, input: ticks, options: {conditions: {odd: value % 2 = 1}, rest: even}}
          counts: {gem: aggregate, input: dealt.odd, options: {aggregates: {n: count(*)}}}
        targets:
          out: {gem: console, input: counts, output_mode: complete}
    """
    (change,) = verdict(before, before.replace("dealt.odd", "dealt.even")).changes
    assert (change.code, change.verdict) == ("GB425", "mixed")
    assert "read `dealt.odd` and reads `dealt.even`" in change.message


REMEMBERED = """
pipeline: shop
sources:
  orders: {gem: file, options: {format: json, path: data, schema: "id int, n int, m int, at timestamp"}}
transforms:
  timely: {gem: watermark, input: orders, options: {column: at, delay: 1 hour}}
  some: {gem: with_columns, input: timely, options: {columns: {id: id + 1, m: m + 1}}}
  once: {gem: expect, input: some, options: {rules: {once: {column: id, unique: within_watermark}, paid: n > 0}}}
  all: {gem: select, input: some, options: {columns: [id, n, m, at]}}
targets:
  out: {gem: delta, input: once, group: all, options: {path: out}}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("unique: within_watermark", "unique: true", "refused"),
        ("input: once", "input: all", "refused"),
        # A rule keeps its values apart from those of others, and of what it was before.
        ("column: id", "column: id + 1", "from_now_on"),
        ("paid: n > 0", "paid: n > 1", "from_now_on"),
        ("paid: n > 0", "few: {column: n, unique: within_watermark}", "from_now_on"),
        ("id: id + 1", "id: id + 2", "mixed"),
        ("id: id + 1", "id: cast(id as bigint)", "mixed"),
        ("m: m + 1", "m: m + 2", "from_now_on"),
        # Rows that come once more are rejected, and not left out.
        ("orders", "sales", "again"),
    ],
)
def test_what_an_edit_does_to_values_that_are_remembered(old: str, new: str, expected: str) -> None:
    assert old in REMEMBERED
    assert verdict(REMEMBERED, REMEMBERED.replace(old, new)).verdict == expected
    if expected == "refused":
        assert verdict(REMEMBERED.replace(old, new), REMEMBERED).verdict == expected


@pytest.mark.parametrize(
    ("read", "behind", "expected"),
    [
        ("plausible", "{gem: select, input: INPUT, options: {columns: [at]}}", "continues"),
        ("plausible.rejected", "{gem: select, input: INPUT, options: {columns: [node, row]}}", "from_now_on"),
        ("plausible.rejected", "{gem: select, input: INPUT, options: {columns: [gem, row]}}", "continues"),
        ("plausible.rejected", "{gem: aggregate, input: INPUT, options: {group_by: [node], aggregates: {c: count(*)}}}", "mixed"),
        ("plausible.rejected", "{gem: aggregate, input: INPUT, options: {group_by: [gem], aggregates: {c: count(*)}}}", "continues"),
    ],
)  # fmt: skip
def test_rejected_rows_have_the_name_of_their_node(read: str, behind: str, expected: str) -> None:
    before = f"""
        pipeline: shop
        sources: {{orders: {{gem: file, options: {{format: json, path: data, schema: "n int, at timestamp"}}}}}}
        transforms:
          plausible: {{gem: expect, input: orders, options: {{rules: {{paid: n > 0}}}}}}
          last: {behind.replace("INPUT", read)}
        targets: {{out: {{gem: console, input: last, output_mode: update}}}}
    """
    for new in ("sound", "sound: {was: plausible, "):
        after = before.replace("plausible: {", new if "was" in new else f"{new}: {{")
        after = after.replace("input: plausible", "input: sound")
        changes = verdict(before, after)
        assert changes.verdict == expected, changes
        assert [change.code for change in changes.changes] == ["GB443"]
