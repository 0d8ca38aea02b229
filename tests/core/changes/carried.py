"""Edits of joins that stand behind a join of streams, by which something of its rows is to be equal.

Each was tried in Spark 4.2: `tests/core/changes/test_below.py` holds the verdicts to them,
`tests/integration/test_pushed.py` the truth.
"""

from __future__ import annotations

from tests.core.changes.pushed import JOIN, LEFT_JOIN, MARKED, OTHER_MARKED, Pushed

WITH_TABLE = "  t: {gem: join, inputs: {l: j, r: s}, options: {how: HOW, condition: CONDITION}}\n"
BY_QUERY = (
    '  t: {gem: sql, inputs: [j, s], options: {query: "select n, m, k from j join s on n = k WHERE"}}\n'
)
TIMELY = (
    MARKED
    + OTHER_MARKED
    + "  j: {gem: join, inputs: {l: w, r: v}, options: {condition: l.value = r.name and l.at = r.seen}}\n"
)
GROUPS = (
    "  g: {gem: aggregate, input: INPUT, options: {window: {column: at, duration: 1 hour}, "
    "group_by: [n, m], aggregates: {c: count(*)}}}\n"
)
BY_GROUPS = (
    "  g: {gem: sql, input: j, options: {query: \"select window(at, '1 hour') as w, n, count(*) as c from j WHERE "
    "group by window(at, '1 hour'), n, m HAVING\"}}\n"
)


def _wanted(
    name: str,
    before: str,
    after: str,
    verdict: str,
    *,
    how: str = "inner",
    joined: str = JOIN,
    behind: tuple[str, str] = ("", ""),
    rows: str | None = None,
) -> Pushed:
    table = joined + WITH_TABLE.replace("HOW", how)
    versions = (
        table.replace("CONDITION", on) + more for on, more in zip((before, after), behind, strict=True)
    )
    shown = rows if rows is not None else "" if verdict == "from_now_on" else "dense0"
    return Pushed(f"a join with a table, {name}", *versions, verdict, shown)


def _queried(name: str, more: str) -> Pushed:
    before, after = (JOIN + BY_QUERY.replace("WHERE", where) for where in ("", more))
    return Pushed(f"a join with a table, {name}", before, after, "refused")


def _grouped(name: str, before: str, after: str) -> Pushed:
    versions = (TIMELY + each.replace("INPUT", "j") for each in (before, after))
    return Pushed(f"groups of a join of streams, {name}", *versions, "refused")


ONE = "l.n = r.k"
_OF_GROUPS = "  f: {gem: filter, input: g, options: {condition: CONDITION}}\n"
_ANOTHER = "  u: {gem: join, inputs: {l: t, r: s}, options: {condition: CONDITION}}\n"
_FILTER = "  u: {gem: filter, input: t, options: {condition: CONDITION}}\n"

CARRIED = [
    # Both equal one of the table, so that they are equal: InferFiltersFromConstraints.
    _wanted("by one of each side", ONE, f"{ONE} and l.m = r.k", "refused"),
    _wanted("by one of each side, which partners", ONE, f"{ONE} and l.m = r.k", "refused", how="left_semi"),
    _wanted("by one of each side, if there is one", ONE, f"{ONE} and l.m = r.k", "from_now_on", how="left"),
    _wanted(
        "by one of each side, unless there is one", ONE, f"{ONE} and l.m = r.k", "mixed", how="left_anti"
    ),
    _wanted("by one and what is computed", ONE, f"{ONE} and l.m + 1 = r.k", "refused"),
    # What is computed is never put in the place of a column, and a cast neither.
    _wanted("by what is computed of each side", "l.n + 1 = r.k", "l.n + 1 = r.k and l.m + 1 = r.k", "mixed"),
    _wanted("by one that is cast", "l.x = r.k", "l.x = r.k and l.m = r.k", "refused"),
    # What a join asks of one of its inputs alone it asks before: PushPredicateThroughJoin.
    _wanted("by both", ONE, f"{ONE} and l.n = l.m", "refused"),
    _wanted("by both, which partners", ONE, f"{ONE} and l.n = l.m", "refused", how="left_semi"),
    _wanted("by both, if there is one", ONE, f"{ONE} and l.n = l.m", "from_now_on", how="left"),
    # It asks for values too, so that an outer join of streams is an inner one.
    _wanted("behind an outer join", ONE, f"{ONE} and l.m = r.k", "refused", joined=LEFT_JOIN),
    _wanted(
        "with another behind it",
        ONE,
        ONE,
        "refused",
        behind=tuple(_ANOTHER.replace("CONDITION", f"l.value = r.name{m}") for m in ("", " and l.m = l.k")),
    ),
    _wanted(
        "with a filter behind it",
        ONE,
        ONE,
        "refused",
        behind=tuple(_FILTER.replace("CONDITION", condition) for condition in ("x > 0", "m = k")),
    ),
    # Through groups it gets before them by their keys.
    _grouped("a filter behind", GROUPS, GROUPS + _OF_GROUPS.replace("CONDITION", "n = m and c > 0")),
    _grouped(
        "a join with a table behind",
        *(
            GROUPS + WITH_TABLE.replace("l: j", "l: g").replace("HOW", "inner").replace("CONDITION", on)
            for on in (ONE, f"{ONE} and l.m = r.k")
        ),
    ),
    _grouped(
        "a join with a table between, and a filter behind",
        *(
            WITH_TABLE.replace("HOW", "inner").replace("CONDITION", ONE)
            + GROUPS.replace("INPUT", "t").replace("[n,", "[k,")
            + more
            for more in ("", _OF_GROUPS.replace("CONDITION", "k = m"))
        ),
    ),
    _grouped(
        "a condition before, in one query",
        *(BY_GROUPS.replace("HAVING", "").replace("WHERE", w) for w in ("", "where n = m")),
    ),
    _grouped(
        "a condition of a query",
        *(BY_GROUPS.replace("WHERE", "").replace("HAVING", h) for h in ("", "having n = m and count(*) > 1")),
    ),
    _queried("by a query", " where n = m"),
    _queried("by a query of a table", " where m = k"),
]
