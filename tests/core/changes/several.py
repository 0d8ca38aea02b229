"""Edits of queries over several tables, which Spark plans as joins one behind another.

Each was tried in Spark 4.2: `tests/core/changes/test_below.py` holds the verdicts to them,
`tests/integration/test_pushed.py` the truth.
"""

from __future__ import annotations

from tests.core.changes.pushed import Pushed

NODE = '  t: {gem: sql, inputs: TABLES, options: {query: "QUERY"}}\n'
OTHER = "  c: {gem: select, input: a, options: {columns: {kind: value, z: n}}}\n"
PAIRS = "select n, m, k from a join b on a.value = b.name"
JOINED = f"{PAIRS} join s on a.n = s.k"
PARTNERS = "select n, m from a join b on a.value = b.name left semi join s on a.n = s.k"
NAMED = (
    "with j as (select a.n, b.m, a.value as v from a join b on a.value = b.name) "
    "select j.v, k from j join s on j.n = s.k"
)
WITH_OTHER = "select n, m, kind from a join b on a.value = b.name join c on c.kind = a.value"


def _edit(name: str, before: str, after: str, verdict: str = "refused", tables: str = "[a, b, s]") -> Pushed:
    node = NODE.replace("TABLES", tables)
    others = OTHER if "c" in tables else ""
    versions = (others + node.replace("QUERY", query) for query in (before, after))
    return Pushed(f"several tables, {name}", *versions, verdict)


GROUPS = "  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: {lo: min(n), c: count(*), z: sum(x)}}}\n"
BEHIND = (
    "  y: {gem: sql, inputs: {g: g, s: s}, options: {query: 'QUERY'}}\n"
    "  t: {gem: select, input: y, options: {columns: [COLUMNS]}}\n"
)


def _behind(name: str, query: str, columns: tuple[str, str], verdict: str = "refused") -> Pushed:
    """What is read of results behind a query."""
    versions = (GROUPS + BEHIND.replace("QUERY", query).replace("COLUMNS", each) for each in columns)
    rows = "dense0" if verdict == "refused" else ""
    return Pushed(f"what is read behind a query, {name}", *versions, verdict, rows, "update")


LESS = ("value, c, z", "value, c")
SEVERAL = [
    _behind("with a hint", "select /*+ broadcast(s) */ g.*, s.k from g join s on g.value = s.name", LESS),
    _behind(
        "over three tables",
        "select g.*, s.k, u.k as k2 from g left join s on g.value = s.name left join s u on g.lo = u.k",
        LESS,
    ),
    _behind(
        "over three tables, one of whose keys it is",
        "select g.*, s.k, u.k as k2 from g left join s on g.value = s.name left join s u on g.c = u.k",
        ("value, c, z", "value, z"),
        "from_now_on",
    ),
    # What a query asks another one isn't followed: names tell what is read.
    _behind("that asks another one", "select g.* from g where value in (select name from s)", LESS),
    _edit("another column", JOINED, JOINED.replace("select n", "select x")),
    _edit("by another column of a stream", JOINED, JOINED.replace("a.n", "b.m"), "mixed"),
    _edit("another key of the streams", JOINED, JOINED.replace("a.value = b.name", "a.n = b.m")),
    _edit("what both are asked for", JOINED, f"{JOINED} where n = m"),
    _edit("what one is asked for", JOINED, f"{JOINED} where x > 1", "mixed"),
    _edit("partners of one", PARTNERS, f"{PARTNERS} and b.m = s.k"),
    _edit(
        "one that may be missing, and what both are asked for",
        f"{PAIRS} left join s on a.n = s.k",
        f"{PAIRS} left join s on a.n = s.k where n = m",
    ),
    _edit(
        "columns of one name",
        f"{PAIRS} join s using (name)",
        f"{PAIRS} join s using (name)".replace("n, m", "x, m"),
    ),
    # Spark joins first what a condition joins: ReorderJoin.
    _edit(
        "in another order",
        "select n, m, k from a, s, b where a.value = b.name and a.n = s.k",
        "select n, m, k from a, s, b where a.value = b.name and b.m = s.k",
    ),
    _edit(
        "all pairs with one",
        "select n, m, k from a cross join s join b on a.value = b.name",
        "select n, m, k from a cross join s join b on a.value = b.name and s.k = b.m",
        "mixed",
    ),
    _edit("of a query that has a name", NAMED, f"{NAMED} and j.m = s.k"),
    _edit("three streams", WITH_OTHER, f"{WITH_OTHER} and c.z = b.m", tables="[a, b, c]"),
]
