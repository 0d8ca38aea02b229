"""Edits by which less gets through behind state, and edits by which rows get other columns.

Each was tried in Spark 4.2: `tests/core/changes/test_below.py` holds the verdicts to them,
`tests/integration/test_pushed.py` the truth.
"""

from __future__ import annotations

from tests.core.changes.pushed import JOIN, JOIN_BY_NUMBER, MARKED, Pushed, filter_of

_GROUPED = "  g: {gem: aggregate, input: a, options: {group_by: [value, n], aggregates: {c: count(*)}}}\n"
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
        _GROUPED + _query("select value, n, c from g", "g"),
        _GROUPED + _query("select value, n, c from g where n > 0", "g"),
        "from_now_on",
        "dense0",
        "update",
    ),
    Pushed(
        "a query asks for a key now, and all groups come out",
        _GROUPED + _query("select value, n, c from g", "g"),
        _GROUPED + _query("select value, n, c from g where n > 0", "g"),
        "mixed",
        "dense0",
        "complete",
    ),
    Pushed(
        "a query asks for a key no more",
        _GROUPED + _query("select value, n, c from g where n > 0", "g"),
        _GROUPED + _query("select value, n, c from g", "g"),
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
        "rows without a key are dropped now",
        _GROUPED + _CLEANED,
        _GROUPED + _WITHOUT_NULLS,
        "from_now_on",
        "dense0",
        "update",
    ),
    Pushed(
        "rows without a key are dropped no more",
        _GROUPED + _WITHOUT_NULLS,
        _GROUPED + _CLEANED,
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

LET_THROUGH = [*ASKED_NOW, *READ_BACK]
