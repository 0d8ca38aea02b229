"""What queries within a query compute, and nobody reads."""

from __future__ import annotations

import pytest

from gem_bundle.expressions.query import query_tree
from gem_sql.unread import without_unread
from tests.core.changes.edits import verdict

GROUPS = "select a, n, sum(b) / count(*) as m from t group by a, n"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            f"with s as ({GROUPS}) select a from s",
            "WITH s AS (SELECT a, n FROM t GROUP BY a, n) SELECT a FROM s",
        ),
        ("select a from (select a, b as c from t) q", "SELECT a FROM (SELECT a FROM t) AS q"),
        (
            "select a from (select a, c from (select a, b as c, d as e from t) u) q",
            "SELECT a FROM (SELECT a FROM (SELECT a FROM t) AS u) AS q",
        ),
        (
            "select q.a from (select a, x as z from t) q join (select a, y from u) r on q.a = r.a",
            "SELECT q.a FROM (SELECT a FROM t) AS q JOIN (SELECT a FROM u) AS r ON q.a = r.a",
        ),
        ("select count(*) as k from (select a, b from t) q", None),
        ("select a from (select a, A as b from t) q where B > 1", None),
        ("select * from (select a, b as c from t) q", None),
        ("select q.* from (select a, b as c from t) q", None),
        ("select a from (select a, b as c from t) q natural join u", None),
        ("select a from (select a, max(b) as m from t group by 1) q", None),
        ("select a from (select a, n + 1 as m, count(*) as k from t group by all) q", None),
        ("select a from (select a, b as c from t order by 2) q", None),
        ("select a from (select a, b as c from t order by c) q", None),
        ("select a from (select a, max(b) as m from t group by a having m > 1) q", None),
        ("select 1 as one from (select count(*) as n, max(b) as m from t) q", None),
        ("select a from (select a, explode(b) as e from t) q", None),
        ("select a from (select a, (select max(x) from u) as e from t) q", None),
        ("select a from (select distinct a, b from t) q", None),
        ("select a from (select a, b from t union all select a, c from u) q", None),
        ("select x from (select a, b from t) q(x, y)", None),
        ("with s(x, y) as (select a, b from t) select x from s", None),
        ("select a from t where b in (select c from u)", None),
        ("select a, b as c from t", None),
    ],
)
def test_what_is_left_out(query: str, expected: str | None) -> None:
    tree = query_tree(query)
    found = without_unread(tree)
    if expected is None:
        assert found is tree
    else:
        assert found.sql(dialect="spark") == expected
        assert tree == query_tree(query)


SHOP = """
pipeline: shop
sources:
  t: {gem: file, options: {format: json, path: t, schema: "a string, n int, b int"}}
transforms:
  s: {gem: sql, input: t, options: {query: "QUERY"}}
targets:
  out: {gem: console, input: s, output_mode: update}
"""


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (GROUPS.replace("sum(b)", "avg(b)"), "continues"),
        (GROUPS.replace("sum(b) / ", ""), "continues"),
        (GROUPS.replace("n, sum", "b as n, sum").replace("a, n", "a, b"), "mixed"),
    ],
)
def test_an_edit_of_what_nobody_reads(after: str, expected: str) -> None:
    whole = "with s as ({}) select a, max(a) as k from s group by a"
    found = verdict(*(SHOP.replace("QUERY", whole.format(query)) for query in (GROUPS, after)))
    assert found.verdict == expected


def test_a_branch_between_groups_of_an_inner_query_is_asked_behind_them() -> None:
    query = "select at, min(n) as m from (select distinct at, n from w) q where true group by at"
    timely = "  w: {gem: watermark, input: t, options: {column: at, delay: 1 hour}}\n  s:"
    behind = '  f: {gem: filter, input: s, options: {condition: "CONDITION"}}\ntargets:'
    asked = SHOP.replace("QUERY", query).replace("b int", "at timestamp").replace("  s:", timely)
    asked = asked.replace("input: t, options: {query", "input: w, options: {query").replace(
        "targets:", behind
    )
    asked = asked.replace("input: s, output_mode: update", "input: f")

    def edited(old: str, new: str) -> str:
        return verdict(*(asked.replace("CONDITION", condition) for condition in (old, new))).verdict

    assert (
        edited("if(at > '2024-01-01', m > 3, false)", "if(at > '2024-02-01', m > 3, false)") == "from_now_on"
    )
    assert edited("at > '2024-01-01' or m > 3", "at <> '2024-02-01' or m > 3") == "from_now_on"
    assert edited("at > '2024-01-01' and m > 3", "at <> '2024-02-01' and m > 3") == "mixed"
