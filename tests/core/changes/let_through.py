"""Edits by which less gets through behind state, and edits by which rows get other columns.

Each was tried in Spark 4.2: `tests/core/changes/test_below.py` holds the verdicts to them,
`tests/integration/test_pushed.py` the truth.
"""

from __future__ import annotations

from tests.core.changes.pushed import GROUPS, JOIN, JOIN_BY_NUMBER, MARKED, Pushed, filter_of

_AT_TIMES = MARKED + (
    "  g: {gem: aggregate, input: w, options: {window: {column: at, duration: 90 minutes}, group_by: {value: value, "
    "k: at + interval 0 seconds}, aggregates: {m: max(at), c: count(*)}}}\n"
)
_BY_NUMBERS = _AT_TIMES.replace("at + interval 0 seconds", "n + 1").replace("max(at)", "max(n)")
_CLEANED = "  f: {gem: clean, input: g, options: {white_space: collapse}}\n"
_WITHOUT_NULLS = _CLEANED.replace("collapse", "collapse, drop_rows: any, columns: [n]")


def _query(query: str, before: str) -> str:
    return f'  f: {{gem: sql, input: {before}, options: {{query: "{query}"}}}}\n'


# A condition where there was none lets through less, as another filter would.
ASKED_NOW = [
    Pushed(
        "a query asks for a key now",
        GROUPS + _query("select value, n, c from g", "g"),
        GROUPS + _query("select value, n, c from g where n > 0", "g"),
        "from_now_on",
        "dense0",
        "update",
    ),
    Pushed(
        "a query asks for a key now, and all groups come out",
        GROUPS + _query("select value, n, c from g", "g"),
        GROUPS + _query("select value, n, c from g where n > 0", "g"),
        "mixed",
        "dense0",
        "complete",
    ),
    Pushed(
        "a query asks for a key no more",
        GROUPS + _query("select value, n, c from g where n > 0", "g"),
        GROUPS + _query("select value, n, c from g", "g"),
        "mixed",
        "dense0",
        "update",
    ),
    Pushed(
        "a query asks for the key of a join now",
        JOIN_BY_NUMBER + _query("select * from j", "j"),
        JOIN_BY_NUMBER + _query("select * from j where n > 0", "j"),
        "from_now_on",
    ),
    Pushed(
        "a query asks for anything else of a join now",
        JOIN + _query("select * from j", "j"),
        JOIN + _query("select * from j where n > 0", "j"),
        "mixed",
    ),
    Pushed(
        "a condition on a key that is computed of what no row lacks",
        _AT_TIMES + filter_of("minute(k) / 10 > c", "g"),
        _AT_TIMES,
        "from_now_on",
        "dense0",
        "update",
    ),
    Pushed(
        "a condition on a key that is computed of what rows lack",
        _BY_NUMBERS + filter_of("k > c", "g"),
        _BY_NUMBERS,
        "mixed",
    ),
    Pushed(
        "a condition on results that stands beside another one of the same",
        GROUPS + filter_of("(c >= 2 and c > 1) or (c >= 2 and n < 1)", "g"),
        GROUPS,
        "from_now_on",
        "dense0",
        "update",
    ),
    Pushed(
        "a condition on results that stands beside its contrary",
        GROUPS + filter_of("c < 2 and (c >= 2 or n < 1)", "g"),
        GROUPS,
        "mixed",
        "dense0",
        "update",
    ),
    Pushed(
        "rows without a key are dropped now",
        GROUPS + _CLEANED,
        GROUPS + _WITHOUT_NULLS,
        "from_now_on",
        "dense0",
        "update",
    ),
    Pushed(
        "rows without a key are dropped no more",
        GROUPS + _WITHOUT_NULLS,
        GROUPS + _CLEANED,
        "mixed",
        "dense0",
        "update",
    ),
]
_CHOSEN = "  s1: {gem: select, input: a, options: {columns: [COLUMNS]}}\n"
_READ_BACK = _CHOSEN + filter_of("n > 0", "s1")
_WITHOUT = _CHOSEN.replace("COLUMNS", "value")
_CHOSEN_BY_NAME = "  k: {gem: bulk_columns, input: BEFORE, options: {matching: ^n, expression: '{column} is null', keep: false}}\n"
# A filter has what was left out before it, and hands it on to nobody.
READ_BACK = [
    Pushed(
        "what a filter asks for is left out before it",
        filter_of("n > 0", "a"),
        "  d: {gem: drop, input: a, options: {columns: [n]}}\n" + filter_of("n > 0", "d"),
        "from_now_on",
    ),
    Pushed(
        "what a filter asks for is no longer left out before it",
        "  d: {gem: drop, input: a, options: {columns: [n]}}\n" + filter_of("n > 0", "d"),
        filter_of("n > 0", "a"),
        "from_now_on",
    ),
    Pushed(
        "what a filter asks for is chosen no more",
        _READ_BACK.replace("COLUMNS", "value, n"),
        _READ_BACK.replace("COLUMNS", "value"),
        "from_now_on",
    ),
    Pushed(
        "what a filter asks for is chosen no more, and nobody else reads it",
        _READ_BACK.replace("COLUMNS", "value, n")
        + _WITHOUT.replace("s1", "e").replace("input: a", "input: f"),
        _READ_BACK.replace("COLUMNS", "value") + _WITHOUT.replace("s1", "e").replace("input: a", "input: f"),
        "continues",
    ),
    Pushed(
        "what a filter asks for is left out in place of a watermark before it",
        "  w: {gem: watermark, input: a, options: {column: at, delay: 5 minutes}}\n"
        + filter_of("n > 0", "w"),
        "  w: {gem: drop, input: a, options: {columns: [n]}}\n" + filter_of("n > 0", "w"),
        "from_now_on",
    ),
    Pushed(
        "a constant is chosen by its name",
        _CHOSEN_BY_NAME.replace("BEFORE", "a"),
        '  c: {gem: with_columns, input: a, options: {columns: {nice: "1"}}}\n'
        + _CHOSEN_BY_NAME.replace("BEFORE", "c"),
        "from_now_on",
    ),
]


def _join_of(before: str, condition: str) -> str:
    return f'  j: {{gem: join, inputs: {{l: {before}, r: b}}, options: {{condition: "{condition}"}}}}\n'


_BY_N = "l.n = r.m"
_BY_VALUE = "l.value = r.name"
_BY_BOTH = f"{_BY_VALUE} and {_BY_N}"
_ON_TOP_OF = "  o: {gem: select, input: f, options: {columns: [value, n as k]}}\n"
_NARROWED = '  f: {gem: sql, input: a, options: {query: "select value, n from a where n > LEAST"}}\n'
# Spark asks an inner join's other side for the same of its key, so that partners of what is left out don't come.
BEFORE_JOINS = [
    Pushed(
        "a condition on the key of a join before it",
        _join_of("a", _BY_N),
        filter_of("n > 0", "a") + _join_of("f", _BY_N),
        "from_now_on",
    ),
    Pushed(
        "a condition on both keys of a join before it, each by itself",
        _join_of("a", _BY_BOTH),
        filter_of("n > 0 and value > 'a'", "a") + _join_of("f", _BY_BOTH),
        "from_now_on",
    ),
    Pushed(
        "a condition on both keys of a join before it at once",
        _join_of("a", _BY_BOTH),
        filter_of("n > 0 or value = 'home'", "a") + _join_of("f", _BY_BOTH),
        "mixed",
    ),
    Pushed(
        "a condition on the key of a join before it, which is called otherwise there",
        _ON_TOP_OF.replace("input: f", "input: a") + _join_of("o", "l.k = r.m"),
        filter_of("n > 0", "a") + _ON_TOP_OF + _join_of("o", "l.k = r.m"),
        "from_now_on",
    ),
    Pushed(
        "a condition on anything else before a join",
        _join_of("a", _BY_N),
        filter_of("x > 0", "a") + _join_of("f", _BY_N),
        "mixed",
    ),
    Pushed(
        "a condition on what a join's key is computed of before it",
        _join_of("a", "l.n + 1 = r.m"),
        filter_of("n > 0", "a") + _join_of("f", "l.n + 1 = r.m"),
        "mixed",
    ),
    Pushed(
        "a condition on the key of a join before it that lets through less now",
        _NARROWED.replace("LEAST", "-1") + _join_of("f", _BY_N),
        _NARROWED.replace("LEAST", "0") + _join_of("f", _BY_N),
        "from_now_on",
    ),
    Pushed(
        "a condition on the key of a join before it that lets through more now",
        _NARROWED.replace("LEAST", "0") + _join_of("f", _BY_N),
        _NARROWED.replace("LEAST", "-1") + _join_of("f", _BY_N),
        "mixed",
    ),
]

_OF_KEYS = GROUPS.replace("input: a", "input: BEFORE").replace("count(*)", "MADE")
_WITH_TABLE = "  t: {gem: join, inputs: {l: a, r: s}, options: {how: inner, condition: l.n OF r.k}}\n"
_JOINED = _WITH_TABLE + _OF_KEYS.replace("BEFORE", "t")
# Of groups whose results are told by their keys nothing of the rows that came is there.
RESULTS_OF_KEYS = [
    Pushed(
        f"{what} behind groups with {made}",
        *(steps.replace("MADE", made) for steps in versions),
        verdict,
        "dense0",
        "update",
    )
    for made, verdict in (("min(n)", "from_now_on"), ("count(*)", "mixed"))
    for what, versions in (
        (
            "another condition on keys",
            [_OF_KEYS.replace("BEFORE", "a") + filter_of(f"n = c and n {so} 0", "g") for so in ("<=", ">")],
        ),
        (
            "a condition on keys and results, and another join before it",
            [_JOINED.replace("OF", of) + filter_of("n < 5 and c < 100", "g") for of in ("=", "<")],
        ),
    )
]

_LIMITED = (
    "  z: {gem: limit, input: a, options: {rows: 9}}\n"
    "  u: {gem: select, input: z, options: {columns: [FIRST]}}\n"
    "  v: {gem: select, input: u, options: {columns: [THEN]}}\n"
)
_IN_ORDER = "value, n, n + 1 as y"
# What chooses columns behind a limit goes before it, and no condition does, which then is asked just before the join;
# but of several that choose only the nearest, where something is asked of the rows alone.
BEHIND_LIMITS = [
    Pushed(
        f"columns in another order behind a limit, {what}",
        *(
            _LIMITED.replace("FIRST", first).replace("THEN", then) + _join_of("v", condition)
            for first, then in ((_IN_ORDER, "value, n, y"), edited)
        ),
        verdict,
    )
    for what, condition, edited, verdict in (
        ("before a join", _BY_VALUE, (_IN_ORDER, "value, y, n"), "mixed"),
        (
            "before a join that asks it",
            f"{_BY_VALUE} and l.value > 'a'",
            (_IN_ORDER, "value, y, n"),
            "refused",
        ),
        (
            "just behind, before a join that asks it",
            f"{_BY_VALUE} and l.value > 'a'",
            ("value, n + 1 as y, n", "value, y, n"),
            "mixed",
        ),
    )
]

_MATCHED = (
    "  u: {gem: select, input: a, options: {columns: [value, n as user, x]}}\n"
    "  d: {gem: drop, input: u, options: {columns: [LEFT_OUT]}}\n"
    "  m: {gem: fuzzy_match, inputs: [d, u], options: {id: value, fields: {value: {}}, block_by: [user]}}\n"
)
_SCORED = (
    "  c: {gem: select, input: a, options: {columns: [x, n]}}\n"
    "  d: {gem: select, input: b, options: {columns: [y as x, m as n]}}\n"
    "  m: {gem: fuzzy_match, inputs: [c, d], options: {id: x, fields: {x: {}}, block_by: [n]}}\n"
    "  g: {gem: aggregate, input: m, options: {group_by: [GROUPS], aggregates: {k: count(*)}}}\n"
)
BLOCKS = [
    Pushed(
        "groups by a score, which is never null, in another order",
        _SCORED.replace("GROUPS", "score, right_id"),
        _SCORED.replace("GROUPS", "right_id, score"),
        "refused",
        "dense0",
        "update",
    ),
    Pushed(
        "the column that blocks are by is left out, and is a value of Spark's",
        _MATCHED.replace("LEFT_OUT", "x"),
        _MATCHED.replace("LEFT_OUT", "user"),
        "refused",
    ),
]

LET_THROUGH = [*BLOCKS, *BEHIND_LIMITS, *RESULTS_OF_KEYS, *ASKED_NOW, *READ_BACK, *BEFORE_JOINS]
