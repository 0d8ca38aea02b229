"""Tables beside a stream that come, go, are exchanged or called otherwise."""

from __future__ import annotations

import pytest

from tests.core.changes.edits import verdict

TEAMS = 'teams: {gem: file, mode: batch, options: {format: json, path: teams, schema: "page string, team string"}}'
OTHERS = TEAMS.replace("teams", "others")
SHOP = """
pipeline: shop
sources:
  clicks: {gem: file, options: {format: json, path: clicks, schema: "page string, n int"}}
  TABLE
transforms:
  wide: {gem: join, inputs: {c: clicks, t: NAME}, options: {how: left, condition: c.page = t.page}}
  named: {gem: select, input: wide, options: {columns: [c.page, team, n]}}
  last: LAST
targets:
  out: {gem: console, input: last, output_mode: update}
"""
SUMS = "{gem: aggregate, input: named, options: {group_by: [team], aggregates: {s: sum(n)}}}"
LARGE = "{gem: filter, input: named, options: {condition: n > 0}}"
OWN = "{gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {s: sum(n)}}}"


def shop(table: str, last: str) -> str:
    return SHOP.replace("TABLE", table).replace("NAME", table.partition(":")[0]).replace("LAST", last)


@pytest.mark.parametrize(
    ("new", "last", "expected"),
    [
        (OTHERS, SUMS, ("mixed", {"GB410", "GB411"})),
        (OTHERS, LARGE, ("from_now_on", {"GB410", "GB411"})),
        # Another id is nothing, and another place under the old one is told by itself.
        (TEAMS.replace("teams:", "named_teams:"), SUMS, ("continues", {"GB412"})),
        (TEAMS.replace("path: teams", "path: others"), SUMS, ("mixed", {"GB414"})),
        (TEAMS.replace("path: teams", "path: others"), LARGE, ("from_now_on", {"GB414"})),
    ],
)
def test_another_table(new: str, last: str, expected: tuple[str, set[str]]) -> None:
    changes = verdict(shop(TEAMS, last), shop(new, last))
    assert (changes.verdict, {change.code for change in changes.changes}) == expected


def test_a_table_that_what_is_new_reads_is_told_by_that() -> None:
    before = """
        pipeline: shop
        sources: {clicks: {gem: file, options: {format: json, path: clicks, schema: "page string, n int"}}}
        transforms: {last: {gem: aggregate, input: clicks, options: {group_by: [page], aggregates: {s: sum(n)}}}}
        targets: {out: {gem: console, input: last, output_mode: update}}
    """
    wide = "wide: {gem: lookup, inputs: [clicks, teams], options: {'on': [page], columns: [team]}}"
    after = before.replace("sources: {", f"sources: {{{TEAMS}, ").replace("last: {", f"{wide}, last: {{")
    after = after.replace("input: clicks", "input: wide")
    assert verdict(before, after).verdict == "from_now_on"
