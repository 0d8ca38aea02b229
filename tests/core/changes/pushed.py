"""Edits of what stands behind state, or beside it, and still gets into it, and of what a join's rows are never null by:
each was tried in Spark 4.2.

`tests/core/changes/test_below.py` holds the verdicts to them, `tests/integration/test_pushed.py` the truth.
"""

from __future__ import annotations

from typing import NamedTuple

SOURCES = """pipeline: shop
sources:
  a: {gem: file, options: {format: json, path: a, schema: "value string, at timestamp, n int, x double"}}
  b: {gem: file, options: {format: json, path: b, schema: "name string, seen timestamp, m int, y double"}}
  s: {gem: file, mode: batch, options: {format: json, path: s, schema: "name string, k int"}}
transforms:
"""
JOIN = "  j: {gem: join, inputs: {l: a, r: b}, options: {condition: l.value = r.name}}\n"
JOIN_BY_NUMBER = JOIN.replace("l.value = r.name", "l.n = r.m")
BY_NAME = "  j: {gem: join, inputs: {l: o, r: b}, options: {'on': [name]}}\n"
BY_TWO = JOIN.replace("l.value = r.name", "l.value = r.name and l.n = r.m")
WITH_ITSELF = (
    "  o: {gem: select, input: a, options: {columns: [value, n]}}\n"
    "  j: {gem: join, inputs: {l: o, r: o}, options: {'on': [value, n]}}\n"
    "  t: {gem: sql, input: j, options: {query: 'select value, n from j'}}\n"
)
NAMED_AS_A_VALUE = (
    "  o: {gem: select, input: a, options: {columns: [value, n as CALLED]}}\n"
    "  g: {gem: aggregate, input: o, options: {group_by: [value, user], aggregates: {c: count(*)}}}\n"
)
GROUPS_OF_GROUPS = (
    '  g: {gem: sql, input: a, options: {query: "with step as (select value, count(*) as c, max(x) as m from a '
    'group by value, n) select value, sum(c) as k, max(m) as h from step group by value"}}\n'
    "  t: {gem: select, input: g, options: {columns: [READ]}}\n"
)
RESULTS = "  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: {lo: min(value), hi: max(n)}}}\n"
TWICE = '  t: {gem: sql, input: j, options: {query: "select GIVEN from j l join j r on l.x = r.x"}}\n'
PAIRED = JOIN_BY_NUMBER + (
    "  o: {gem: select, input: b, options: {columns: {other: name, u: y}}}\n"
    '  t: {gem: sql, inputs: [j, o], options: {query: "select value, other as name from j join o on y = u"}}\n'
)
TOLD = "  g: {gem: aggregate, input: a, options: {group_by: {k: n > 1}, aggregates: {lo: min(value)}}}\n"
TWICE_READ = '  t: {gem: sql, input: a, options: {query: "select GIVEN from a l join a r on l.x = r.x"}}\n'
CHOSEN_RESULTS = RESULTS + "  t: {gem: select, input: g, options: {columns: [value, hi, lo]}}\n"
JOINED_RESULTS = "  j: {gem: join, inputs: {l: t, r: s}, options: {condition: l.value = r.name}}\n"
GROUPS = "  g: {gem: aggregate, input: a, options: {group_by: [value, n], aggregates: {c: count(*)}}}\n"
MARKED = "  w: {gem: watermark, input: a, options: {column: at, delay: 10 minutes}}\n"
OTHER_MARKED = "  v: {gem: watermark, input: b, options: {column: seen, delay: 10 minutes}}\n"
WINDOWS = MARKED + (
    "  g: {gem: aggregate, input: w, options: {window: {column: at, duration: 1 hour}, group_by: [value], "
    "aggregates: {c: count(*)}}}\n"
)
SEMI_JOIN = (
    "  j: {gem: join, inputs: {l: BEFORE, r: v}, options: {how: left_semi, condition: l.value = r.name and "
    "r.seen >= l.at and r.seen <= l.at + interval 1 day}}\n"
)
ANOTHER_JOIN = (
    "  o: {gem: select, input: a, options: {columns: {kind: value, at_2: at}}}\n"
    "  u: {gem: join, inputs: {l: j, r: o}, options: {condition: l.value = r.kind}}\n"
)
TIMELY_PAIRS = (
    "  j: {gem: join, inputs: {l: w, r: b}, options: {condition: l.value = r.name and l.at <= r.seen}}\n"
    "  t: {gem: select, input: j, options: {columns: [value, at, m]}}\n"
)
LEFT_JOIN = (
    MARKED
    + OTHER_MARKED
    + "  j: {gem: join, inputs: {l: w, r: v}, options: {how: left, condition: l.value = r.name and "
    "r.seen >= l.at and r.seen <= l.at + interval 1 day}}\n"
)
DISTINCT = (
    '  t: {gem: sql, input: w, options: {query: "with step as (select session_window.end as until, value, sum(n) as m '
    "from w group by session_window(at, '90 minutes'), value) select distinct GIVEN from step\"}}\n"
)
FILLED = "  k: {gem: clean, input: j, options: {nulls: {number: 0}}}\n"
BY_WHERE = (
    '  t: {gem: sql, inputs: [a, b], options: {query: "select a.*, b.name from a, b where a.n = b.m"}}\n'
)
READ = "  p: {gem: from_json, input: j, options: {column: name, schema: 'id int, since timestamp'}}\n"
OTHER_WAY_ROUND = (
    MARKED
    + OTHER_MARKED
    + (
        '  j: {gem: sql, inputs: [w, v], options: {query: "select m, name, x, at from v left join w on value = name '
        'and at >= seen and at <= seen + interval 1 day"}}\n'
    )
)
UNPIVOTED = "  u: {gem: unpivot, input: f, options: {values: [lo], ids: [hi]}}\n"
ONCE_EACH = (
    "  g: {gem: deduplicate, input: a, options: {columns: [value]}}\n"
    "  d: {gem: deduplicate, input: b, options: {columns: [m]}}\n"
    '  t: {gem: sql, inputs: {g: g, d: d}, options: {query: "GIVEN"}}\n'
)
LATER = "with q as (select m as n from d) select n from g union all select n from q"
LATE = "at > '2024-01-31 10:30:00'"
LISTS = MARKED + (
    "  g: {gem: aggregate, input: w, options: {group_by: {at: at}, "
    "aggregates: {n: collect_list(value), c: count(*)}}}\n"
)
GROUPS_OF_ONE = "  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: {MADE}}}\n"
COUNTED = (
    "  o: {gem: select, input: g, options: {columns: [c]}}\n"
    "  q: {gem: select, input: o, options: {columns: {d: c}}}\n"
)
SIDES = (
    "  o: {gem: select, input: a, options: {columns: [value, n]}}\n"
    "  j: {gem: join, inputs: {l: o, r: o}, options: {HOW}}\n"
    "  t: {gem: select, input: j, options: {columns: {v: r.value, n: l.n}}}\n"
)
LATERAL = (
    '  t: {gem: sql, input: j, options: {query: "select q.value, n, m, e from j q lateral view '
    "explode(split(q.value, 'o')) v as e\"}}\n"
)
LATERAL_OF_GROUPS = (
    '  t: {gem: sql, input: g, options: {query: "select q.*, e from g q lateral view '
    "explode(split(value, 'o')) v as e\"}}\n"
)
CHOSEN = "  o: {gem: select, input: w, options: {columns: [x, n, value, at]}}\n"
ENDS = (
    '  e: {gem: sql, input: a, options: {query: "select window.start as since, count(*) as c from a '
    "group by window(at, '1 hour')\"}}\n"
)
LIMITS = (
    "  l: {gem: limit, input: a, options: {rows: 3}}\n"
    "  u: {gem: union, inputs: [l, a]}\n"
    "  z: {gem: limit, input: BEFORE, options: {rows: 2}}\n"
)
TABLE = "  k: {gem: join, inputs: {l: BEFORE, r: s}, options: {condition: l.n = r.k}}\n"
ONCE = "  d: {gem: deduplicate, input: w, options: {columns: [value, n]}}\n"
MORE = (
    "  o: {gem: rename, input: b, options: {columns: {name: value, seen: at, m: n, y: x}}}\n"
    "  u: {gem: union, inputs: [a, o]}\n"
)
ROWS_OF_COLUMNS = (
    "  u: {gem: unpivot, input: g, options: {ids: [value], values: [c, n], variable_column_name: called, "
    "value_column_name: value_of}}\n"
)
MOMENTS = (
    "  g: {gem: aggregate, input: a, options: {group_by: [value, at], aggregates: {c: count(*)}}}\n"
    "  w: {gem: watermark, input: g, options: {column: at, delay: 0 seconds}}\n"
)
PACKED = "  p: {gem: to_json, input: w, options: {columns: [value, at], column: packed}}\n"
GROUPS_BY_TIME = (
    "  g: {gem: aggregate, input: w, options: {group_by: [value, at], aggregates: {c: WHAT}}}\n"
    "  f: {gem: filter, input: g, options: {condition: c > 0}}\n"
    "  k: {gem: aggregate, input: f, options: {group_by: [at], aggregates: {n: sum(c), m: count(*)}}}\n"
)
OF_WINDOWS = "  k: {gem: aggregate, input: g, options: {group_by: [BY], aggregates: {n: sum(c)}}}\n"
LARGER_WINDOWS = (
    "  k: {gem: aggregate, input: g, options: {window: {column: window, duration: 1 day}, "
    "aggregates: {n: sum(c)}}}\n"
)
BOTH = "  u: {gem: union, inputs: [g, v], options: {allow_missing_columns: true}}\n"


class Pushed(NamedTuple):
    """An edit.

    Args:
        name: What it is.
        before: The transforms of version 1.
        after: Those of version 2.
        verdict: What is said of it.
        rows: The rows by which Spark showed it, as `tests.differential.edits.rows` has their styles; empty
            where nothing is different on any.
        mode: The target's output mode.
        new_mode: That of version 2, if it is another.
    """

    name: str
    before: str
    after: str
    verdict: str
    rows: str = "dense0"
    mode: str = "append"
    new_mode: str = ""

    def versions(self) -> tuple[str, str]:
        """The pipeline files."""
        return file_of(self.before, self.mode), file_of(self.after, self.new_mode or self.mode)


def file_of(steps: str, mode: str) -> str:
    """The pipeline file of transforms of which the last one is what its target takes.

    Args:
        steps: The transforms.
        mode: The output mode.
    """
    last = steps.strip().splitlines()[-1].partition(":")[0].strip()
    return f"{SOURCES}{steps}targets:\n  out: {{gem: noop, input: {last}, output_mode: {mode}}}\n"


def filter_of(condition: str, before: str) -> str:
    """A filter called `f`.

    Args:
        condition: What it asks.
        before: The node before it.
    """
    return f'  f: {{gem: filter, input: {before}, options: {{condition: "{condition}"}}}}\n'


def _flag(column: str, expression: str, before: str) -> str:
    return (
        f'  c: {{gem: with_columns, input: {before}, options: {{columns: {{{column}: "{expression}"}}}}}}\n'
    )


def _in_sql(query: str, before: str) -> str:
    return f'  f: {{gem: sql, inputs: [{before}, s], options: {{query: "{query}"}}}}\n'


def _asked_first(column: str) -> str:
    """A watermark behind what asks for a column."""
    clean = f"  c: {{gem: clean, input: a, options: {{drop_rows: any, columns: [{column}]}}}}\n"
    return clean + MARKED.replace("input: a", "input: c")


def _no_more(name: str, kept: str, more: str, verdict: str = "mixed", **others: str) -> Pushed:
    return Pushed(name, kept + more, kept, verdict, **others)


def _asked_otherwise(name: str, old: str, new: str, verdict: str, mode: str = "update") -> Pushed:
    """Another condition behind groups."""
    rows = "dense0" if verdict == "mixed" else ""
    return Pushed(name, GROUPS + filter_of(old, "g"), GROUPS + filter_of(new, "g"), verdict, rows, mode)


def _arranged(name: str, old: str, new: str, behind: str, verdict: str) -> Pushed:
    """Results of two types in another order, and something behind them."""
    before, after = (
        RESULTS + f"  t: {{gem: select, input: g, options: {{columns: [value, {columns}]}}}}\n" + behind
        for columns in (old, new)
    )
    return Pushed(f"{name}, in another order", before, after, verdict, mode="update")


def _made_in_order(name: str, columns: str, behind: str) -> Pushed:
    """The same results in the order in which they are made, and something behind them."""
    chosen = f"  t: {{gem: select, input: g, options: {{columns: [{columns}]}}}}\n" + behind
    other = RESULTS.replace("lo: min(value), hi: max(n)", "hi: max(n), lo: min(value)")
    name = f"results made in another order before {name}"
    return Pushed(name, RESULTS + chosen, other + chosen, "refused", mode="update")


def _decided(name: str, condition: str, verdict: str) -> Pushed:
    """A condition behind a join that literals decide a part of."""
    name = f"a condition of which literals decide {name}"
    return Pushed(name, JOIN, JOIN + filter_of(condition, "j"), verdict)


def _unmarked(name: str, state: str, last: str, columns: str, mode: str) -> Pushed:
    """A watermark on a column that nothing behind it reads, which goes."""
    mark = f"  z: {{gem: watermark, input: {last}, options: {{column: at, delay: 10 minutes}}}}\n"
    old, new = (
        f"  t: {{gem: select, input: {read}, options: {{columns: [{columns}]}}}}\n" for read in ("z", last)
    )
    name = f"a watermark behind {name} that nothing goes by"
    return Pushed(name, state + mark + old, state + new, "refused", mode=mode)


def _of_moments(name: str, condition: str, verdict: str = "mixed") -> Pushed:
    """Asked of groups of moments."""
    return Pushed(name, LISTS, LISTS + filter_of(condition, "g"), verdict)


def _of_outer_join(name: str, old: str, new: str, how: str = "left") -> Pushed:
    """What is read of an outer join."""
    joined = LEFT_JOIN.replace("how: left", f"how: {how}")
    return Pushed(name, joined + _in_sql(old, "j"), joined + _in_sql(new, "j"), "refused")


def _unread(name: str, query: str) -> Pushed:
    """A column behind a join that comes out, and that nothing but conditions reads then."""
    old, new = (
        JOIN + f'  t: {{gem: sql, input: j, options: {{query: "select {text}"}}}}\n'
        for text in ("n, m, x from j", query)
    )
    return Pushed(f"a column that nothing but {name} reads", old, new, "refused")


PUSHED = [
    # A conjunction in other words.
    _no_more("a contrary of either", JOIN, filter_of("not (n <= 0 or m <= 1)", "j")),
    _no_more(
        "a contrary of either over groups",
        GROUPS,
        filter_of("not (value <> 'home' or c <= 1)", "g"),
        mode="complete",
    ),
    _no_more(
        "what both of either ask", JOIN, filter_of("not (n <= 0 or m <= 1) or n > 3", "j"), rows="values5"
    ),
    _no_more("either", JOIN, filter_of("n > m or x > 1", "j"), "from_now_on", rows=""),
    _no_more(
        "branches", JOIN, filter_of("case when n > 0 then m > 1 else false end", "j"), "from_now_on", rows=""
    ),
    _no_more(
        "branches by a null behind a join",
        JOIN,
        filter_of("if(n is not null, m > 1, false)", "j"),
        "from_now_on",
        rows="",
    ),
    _no_more(
        "a value for null behind a join",
        JOIN,
        filter_of("coalesce(n > 0 and m > 1, false)", "j"),
        "from_now_on",
        rows="",
    ),
    _no_more(
        "branches by what a table has for a key",
        GROUPS + TABLE.replace("BEFORE", "g"),
        filter_of("if(k > 1, value = 'home', false)", "k"),
        mode="complete",
    ),
    _no_more("branches of one side", JOIN, filter_of("if(n > 1, x > 1, false)", "j")),
    _no_more("a function of both sides", JOIN, filter_of("least(n, m) > 0", "j"), "from_now_on", rows=""),
    Pushed(
        "what is asked of a result, beside a key",
        GROUPS + filter_of("value <> 'cart' and c > 1", "g"),
        GROUPS + filter_of("c > 2 and value <> 'cart'", "g"),
        "continues",
        rows="",
        mode="complete",
    ),
    Pushed(
        "what is asked of a result that is a key",
        GROUPS + filter_of("c = n and c > 2", "g"),
        GROUPS + filter_of("c = n and c > 0", "g"),
        "mixed",
        rows="values5",
        mode="complete",
    ),
    # A column that is a condition.
    _no_more("a flag", JOIN, _flag("h", "n > 0 and m > 1", "j") + filter_of("h", "c")),
    _no_more(
        "a flag of groups",
        GROUPS,
        _flag("h", "value = 'home' and c > 1", "g") + filter_of("h", "c"),
        mode="complete",
    ),
    _no_more(
        "a flag that is either",
        JOIN,
        _flag("h", "n > m or x > 1", "j") + filter_of("h", "c"),
        "from_now_on",
        rows="",
    ),
    _no_more(
        "a flag of groups that is either",
        GROUPS,
        _flag("h", "value = 'home' or c > 1", "g") + filter_of("h", "c"),
        "continues",
        rows="",
        mode="complete",
    ),
    Pushed(
        "a flag of a key, from now on",
        GROUPS,
        GROUPS + _flag("h", "(value = 'home' and n >= 0) is true", "g") + filter_of("h", "c"),
        "from_now_on",
        rows="",
        mode="update",
    ),
    Pushed(
        "a flag of a key and a result, from now on",
        GROUPS,
        GROUPS + _flag("h", "value = 'home' and c > 1", "g") + filter_of("h", "c"),
        "mixed",
        mode="complete",
    ),
    _no_more("a difference", JOIN, _flag("d", "n - m", "j") + filter_of("d > 0", "c")),
    # One side of an `or` is all that Spark leaves of it.
    _no_more("either, or never", GROUPS, filter_of("value = 'home' or 1 = 2", "g"), mode="complete"),
    _no_more(
        "a flag that is either, or never",
        GROUPS,
        _flag("h", "c > n or 1 = 2", "g") + filter_of("h", "c"),
        mode="complete",
    ),
    _no_more("either, or a count that lacks", GROUPS, filter_of("c > n or c is null", "g"), mode="complete"),
    _no_more(
        "in a lambda over results",
        GROUPS,
        filter_of("exists(array(c), v -> v = c)", "g"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more(
        "a result with either",
        GROUPS,
        filter_of("(c > 1 and value = 'home') or (c > 1 and c < 9)", "g"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more(
        "keys with a result",
        GROUPS,
        filter_of("(c > 1 and value = 'home') or (c > 1 and n > 0)", "g"),
        mode="complete",
    ),
    _no_more(
        "a result beside its contrary",
        GROUPS,
        filter_of("(value = 'home' or c > 1) and (value = 'home' or c <= 1)", "g"),
        mode="complete",
    ),
    _no_more(
        "a conjunction that is true",
        GROUPS,
        filter_of("(value = 'home' and c > 1) is true", "g"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more(
        "a conjunction that is equal to true",
        GROUPS,
        filter_of("(value = 'home' and c > 1) = true", "g"),
        mode="complete",
    ),
    _no_more(
        "a conjunction without nulls that is true",
        _flag("h", "coalesce(value, '-') = 'home'", "a")
        + GROUPS.replace("input: a", "input: c").replace("[value, n]", "[h]"),
        filter_of("(h and c > 1) is true", "g"),
        mode="complete",
    ),
    # Branches, and a value for null, stay as they are.
    _no_more(
        "branches over groups",
        GROUPS,
        filter_of("case when value = 'home' then c > 1 else false end", "g"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more(
        "branches by a null over groups",
        GROUPS,
        _flag("h", "if(value is not null, c > 1, false)", "g") + filter_of("h", "c"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more(
        "branches over keys", GROUPS, filter_of("if(value is not null, n > 1, false)", "g"), mode="complete"
    ),
    _no_more(
        "branches of which only one is left",
        GROUPS,
        filter_of("if(c is not null, value = 'home', c > n)", "g"),
        mode="complete",
    ),
    _no_more(
        "a value for null over groups",
        GROUPS,
        filter_of("coalesce(value = 'home' and c > 1, false)", "g"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more(
        "a value for null over what is never null",
        GROUPS,
        filter_of("coalesce(c > 1 and value <=> 'home', false)", "g"),
        mode="complete",
    ),
    # A text of several columns is one of all of them, and a field of it is one of what the text is of.
    _no_more(
        "a text of a key and a result",
        GROUPS + "  t: {gem: to_json, input: g, options: {columns: [value, c]}}\n",
        filter_of("value like '%home%' and value <> 'x'", "t"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more(
        "a text of a key",
        GROUPS + "  t: {gem: to_json, input: g, options: {columns: [value]}}\n",
        filter_of("value like '%home%'", "t"),
        mode="complete",
    ),
    _no_more(
        "a field of a key, with a result",
        GROUPS
        + "  t: {gem: from_json, input: g, options: {column: value, schema: 'p string', keep: true}}\n",
        filter_of("(c > 1 and p is null) or (c > 1 and c < 9)", "t"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more(
        "a field of a key",
        GROUPS
        + "  t: {gem: from_json, input: g, options: {column: value, schema: 'p string', keep: true}}\n",
        filter_of("c > 1 and p is null and n > 0", "t"),
        mode="complete",
    ),
    # What a query asks for itself isn't asked again.
    _no_more(
        "a key that is asked for, against a result",
        '  g: {gem: sql, input: a, options: {query: "select value, n, count(*) as c from a where n > 0 '
        'group by value, n"}}\n',
        filter_of("c > n", "g"),
        "continues",
        rows="",
        mode="complete",
    ),
    # Of a column that a join is by, the other side's is another name for it.
    Pushed(
        "a join by a column, and the other side's read",
        SIDES.replace("HOW", "condition: l.value = r.value and l.n <= r.n"),
        SIDES.replace("HOW", "'on': [value]"),
        "refused",
    ),
    # A lateral view lets the columns through that it doesn't make.
    Pushed(
        "another column beside a lateral view",
        JOIN + LATERAL,
        JOIN + LATERAL.replace("n, m", "n + 1 as n, m"),
        "from_now_on",
        rows="",
    ),
    Pushed(
        "a column less beside a lateral view",
        JOIN + LATERAL,
        JOIN + LATERAL.replace("n, m", "n"),
        "refused",
    ),
    _no_more(
        "a lateral view behind groups", GROUPS, LATERAL_OF_GROUPS, "continues", mode="complete", rows=""
    ),
    _no_more(
        "a lateral view of a column behind groups",
        _flag("z", "split(value, 'o')", "a")
        + GROUPS.replace("input: a", "input: c").replace("[value, n]", "[z]"),
        LATERAL_OF_GROUPS.replace("split(value, 'o')", "z"),
        mode="complete",
    ),
    _no_more(
        "an outer lateral view behind groups",
        GROUPS,
        LATERAL_OF_GROUPS.replace("view", "view outer"),
        "continues",
        mode="complete",
        rows="",
    ),
    # A semi join is put before what chooses columns, and not before what computes some.
    Pushed(
        "columns in another order before a semi join",
        MARKED + OTHER_MARKED + SEMI_JOIN.replace("BEFORE", "w"),
        MARKED + OTHER_MARKED + CHOSEN + SEMI_JOIN.replace("BEFORE", "o"),
        "continues",
        rows="",
    ),
    Pushed(
        "another column before a semi join",
        MARKED + OTHER_MARKED + SEMI_JOIN.replace("BEFORE", "w"),
        MARKED + OTHER_MARKED + _flag("z", "n + 1", "w") + SEMI_JOIN.replace("BEFORE", "c"),
        "refused",
    ),
    Pushed(
        "some columns in another order before a semi join",
        MARKED + OTHER_MARKED + CHOSEN.replace("n, ", "") + SEMI_JOIN.replace("BEFORE", "o"),
        MARKED + OTHER_MARKED + CHOSEN.replace("x, n, value", "value, x") + SEMI_JOIN.replace("BEFORE", "o"),
        "continues",
        rows="",
    ),
    # The ends of a window may be null to Spark.
    _no_more(
        "an end of a window, is true",
        ENDS,
        filter_of("(since > '2024-01-31 10:30:00' and c > 1) is true", "e"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more(
        "an end of a window, equal to true",
        ENDS,
        filter_of("(since < '2024-01-31 10:30:00' and c > 1) = true", "e"),
        rows="wide2",
        mode="complete",
    ),
    # A limit of fewer rows behind a union takes the place of the one before it.
    Pushed(
        "a limit behind another, and behind a union of that",
        LIMITS.replace("BEFORE", "l"),
        LIMITS.replace("BEFORE", "u"),
        "refused",
    ),
    Pushed(
        "a limit of more rows behind a union of another",
        LIMITS.replace("BEFORE", "u"),
        LIMITS.replace("BEFORE", "u").replace("rows: 2", "rows: 5"),
        "refused",
    ),
    # What is equal becomes a key.
    _no_more("a flag of what is equal", JOIN, _flag("h", "n = m", "j") + filter_of("h", "c"), "refused"),
    _no_more("not unequal", JOIN, filter_of("not (n <> m)", "j"), "refused"),
    _no_more("equal or never", JOIN, filter_of("n = m or 1 = 2", "j"), "refused"),
    _no_more("equal is true", JOIN, filter_of("(n = m) = true", "j"), "refused"),
    _no_more(
        "a flag of no unequal one",
        JOIN,
        _flag("h", "not (n <> m or value = 'cart')", "j") + filter_of("h", "c"),
        "refused",
    ),
    _no_more(
        "a key against a result, with nulls",
        GROUPS,
        filter_of("equal_null(c, n)", "g"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more("equal with nulls", JOIN, filter_of("equal_null(n, m)", "j"), "refused"),
    # Keys are asked not to be null.
    _no_more("a key against a result", GROUPS, filter_of("c > n", "g"), mode="complete"),
    Pushed(
        "a key or a result",
        GROUPS + filter_of("c > 1 or n > 1", "g"),
        GROUPS,
        "continues",
        rows="",
        mode="complete",
    ),
    # Tables.
    _no_more("a join with a table", JOIN, TABLE.replace("BEFORE", "j")),
    Pushed(
        "all rows behind a join with a table",
        GROUPS + TABLE.replace("BEFORE", "g"),
        GROUPS + TABLE.replace("BEFORE", "g").replace("condition", "how: left, condition"),
        "mixed",
        mode="complete",
    ),
    Pushed(
        "all rows behind a lookup",
        GROUPS
        + "  k: {gem: lookup, inputs: [g, s], options: {on: {n: k}, columns: {w: name}, prefer: name, missing: drop}}\n",
        GROUPS
        + "  k: {gem: lookup, inputs: [g, s], options: {on: {n: k}, columns: {w: name}, prefer: name}}\n",
        "mixed",
        mode="complete",
    ),
    Pushed(
        "a filter of a table",
        JOIN + filter_of("k >= 1", "s") + TABLE.replace("BEFORE, r: s", "j, r: f"),
        JOIN + filter_of("k >= 0", "s") + TABLE.replace("BEFORE, r: s", "j, r: f"),
        "mixed",
    ),
    Pushed(
        "a filter of a table's column",
        GROUPS + TABLE.replace("BEFORE", "g") + filter_of("k >= 1", "k"),
        GROUPS + TABLE.replace("BEFORE", "g") + filter_of("k >= 0", "k"),
        "mixed",
        mode="complete",
    ),
    _no_more("a filter of both", JOIN + TABLE.replace("BEFORE", "j"), filter_of("x > 1 and k >= 0", "k")),
    Pushed(
        "values of a table",
        GROUPS + _in_sql("select * from g where value in (select name from s where k > 1)", "g"),
        GROUPS + _in_sql("select * from g where value in (select name from s where k > 0)", "g"),
        "mixed",
        mode="complete",
    ),
    Pushed(
        "one value of a table",
        JOIN_BY_NUMBER + _in_sql("select value, n, m from j where x > (select min(k) + 1 from s)", "j"),
        JOIN_BY_NUMBER + _in_sql("select value, n, m from j where x > (select min(k) - 1 from s)", "j"),
        "mixed",
    ),
    # Further back, and in a function's own words.
    Pushed(
        "before groups and a join",
        JOIN + "  g: {gem: aggregate, input: j, options: {group_by: [n], aggregates: {c: count(*)}}}\n",
        JOIN
        + "  g: {gem: aggregate, input: j, options: {group_by: [n], aggregates: {c: count(*)}}}\n"
        + filter_of("n > 0", "g"),
        "mixed",
        mode="update",
    ),
    _no_more("in a lambda", GROUPS, filter_of("exists(array(value), v -> v = 'home')", "g"), mode="complete"),
    Pushed(
        "windows, from now on",
        WINDOWS,
        WINDOWS + filter_of("window.start >= '2024-01-31 11:00:00'", "g"),
        "from_now_on",
        rows="",
        mode="update",
    ),
    Pushed(
        "a key of windows, before the watermark too",
        WINDOWS,
        WINDOWS + filter_of("value = 'home'", "g"),
        "mixed",
        rows="wide2",
        mode="update",
    ),
    # A query has one watermark.
    Pushed(
        "the other watermark is no more",
        WINDOWS + OTHER_MARKED.replace("10 minutes", "20 days") + BOTH,
        WINDOWS + BOTH.replace("v]", "b]"),
        "mixed",
        rows="wide2",
    ),
    Pushed(
        "other rows before the other watermark",
        WINDOWS + filter_of("m > 100", "b") + OTHER_MARKED.replace("input: b", "input: f") + BOTH,
        WINDOWS + filter_of("m >= 0", "b") + OTHER_MARKED.replace("input: b", "input: f") + BOTH,
        "mixed",
        rows="wide2",
    ),
    Pushed(
        "a filter of the way past the groups",
        WINDOWS + filter_of("x > 3", "w") + BOTH.replace("v]", "f]"),
        WINDOWS + filter_of("x >= 0", "w") + BOTH.replace("v]", "f]"),
        "mixed",
        rows="weeks11",
    ),
    Pushed(
        "a union in another order",
        MARKED
        + "  r: {gem: select, input: b, options: {columns: {value: name, at: seen}}}\n"
        + "  u: {gem: union, inputs: [w, r], options: {allow_missing_columns: true}}\n"
        + WINDOWS.partition("\n")[2].replace("input: w", "input: u"),
        MARKED
        + "  r: {gem: select, input: b, options: {columns: {value: name, at: seen}}}\n"
        + "  u: {gem: union, inputs: [r, w], options: {allow_missing_columns: true}}\n"
        + WINDOWS.partition("\n")[2].replace("input: w", "input: u"),
        "mixed",
        rows="far7",
        mode="update",
    ),
]


WINDOWS_JOINED = MARKED + (
    "  g: {gem: aggregate, input: w, options: {window: {column: at, duration: 10 minutes}, group_by: [value], "
    "aggregates: {m: max(x), c: count(*)}, having: HAVING}}\n"
    + OTHER_MARKED
    + "  j: {gem: join, inputs: {l: g, r: v}, options: {condition: l.value = r.name}}\n"
)


def _constant(name: str, before: str, after: str, verdict: str) -> Pushed:
    """An edit of a constant that a join keeps with its rows."""
    join = JOIN.replace("l: a", "l: c")
    return Pushed(name, _flag("z", before, "a") + join, _flag("z", after, "a") + join, verdict)


# Spark works constants out when it plans, and by that knows which of them are null; one that is null is kept as what
# may be null.
COUNTED_IF = (
    '  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: {c: "count_if(WHAT)"}}}\n'
)
GROUPS_THAT_ASK = (
    '  g: {gem: sql, input: a, options: {query: "select value, count(*) as c from a group by value '
    'having max(x) > 0"}}\n' + OTHER_MARKED
)
KEPT_NULLS = [
    _constant(
        "a constant without such an element",
        "element_at(split('a b', '/'), 1)",
        "element_at(split('a b', '/'), 3)",
        "refused",
    ),
    _constant("a constant that is no number", "try_cast('1' as int)", "try_cast('a' as int)", "refused"),
    _constant("a constant of a division", "1 / 2", "x", "refused"),
    _constant("a column of a constant's kind", "x", "1 / 2", "mixed"),
    _constant("a constant of another round value", "round(1.5, 1) + 0", "round(2.5, 1) + 0", "mixed"),
    # It is another key of the join, though it is about the columns of one that the join has.
    Pushed(
        "a filter by what a key is made of behind a join",
        JOIN,
        JOIN + "  f: {gem: filter, input: j, options: {condition: 'substring(name, 1, 1) = value'}}\n",
        "refused",
    ),
    # Of nulls alone Spark counts nothing.
    Pushed(
        "a count of what is never true",
        COUNTED_IF.replace("WHAT", "'a' != 'b'"),
        COUNTED_IF.replace("WHAT", "not 'a' != 'b'"),
        "refused",
        mode="update",
    ),
    Pushed(
        "a count by dates that are never so",
        COUNTED_IF.replace("WHAT", "date '2024-3-31' >= '2024-01-01'"),
        COUNTED_IF.replace("WHAT", "date '2023-3-31' >= '2024-01-01'"),
        "refused",
        mode="update",
    ),
    Pushed(
        "a count by dates in the place of one of all rows",
        COUNTED_IF.replace("WHAT", "n = n or x > 1"),
        COUNTED_IF.replace("WHAT", "date '2024-3-31' >= '2024-01-01'"),
        "mixed",
        mode="update",
    ),
    # Groups of groups by the same time go when they come: nothing of the old rule is left in them.
    Pushed(
        "other results before groups by their time",
        MARKED + GROUPS_BY_TIME.replace("WHAT", "count(*)"),
        MARKED + GROUPS_BY_TIME.replace("WHAT", "count(*) + 1"),
        "from_now_on",
    ),
    Pushed(
        "other results before groups of windows by them",
        WINDOWS + OF_WINDOWS.replace("BY", "window"),
        WINDOWS.replace("count(*)", "count(*) + 1") + OF_WINDOWS.replace("BY", "window"),
        "from_now_on",
        "closed0",
    ),
    Pushed(
        "other results before groups of windows by larger ones",
        WINDOWS.replace("1 hour", "1 minute") + LARGER_WINDOWS,
        WINDOWS.replace("1 hour", "1 minute").replace("count(*)", "count(*) + 1") + LARGER_WINDOWS,
        "mixed",
        "wide0",
    ),
    # What a branch lacks is never asked of it with success, so that nothing is kept to ask anything else.
    Pushed(
        "a condition of what a branch lacks, behind groups that ask for a result",
        GROUPS_THAT_ASK + BOTH,
        GROUPS_THAT_ASK + BOTH + "  f: {gem: filter, input: u, options: {condition: name = 'cart'}}\n",
        "refused",
        mode="update",
    ),
    Pushed(
        "a condition of what a branch lacks, behind groups",
        GROUPS + OTHER_MARKED + BOTH,
        GROUPS + OTHER_MARKED + BOTH + "  f: {gem: filter, input: u, options: {condition: name = 'cart'}}\n",
        "from_now_on",
        mode="update",
    ),
    # What nobody asks for isn't computed, nor its state written.
    Pushed(
        "a condition behind a limit of no rows",
        GROUPS + "  l: {gem: limit, input: g, options: {rows: 0}}\n",
        GROUPS
        + "  l: {gem: limit, input: g, options: {rows: 0}}\n"
        + "  f: {gem: filter, input: l, options: {condition: c > 1}}\n",
        "refused",
        mode="complete",
    ),
    # What is asked of a result stays between the groups and the join, which knows by it what is never null.
    Pushed(
        "what is asked of a result before a join",
        WINDOWS_JOINED.replace("HAVING", "m > 1"),
        WINDOWS_JOINED.replace("HAVING", "c > 1"),
        "refused",
    ),
    Pushed(
        "what else is asked of a result before a join",
        WINDOWS_JOINED.replace("HAVING", "m > 1"),
        WINDOWS_JOINED.replace("HAVING", "m > 2 and c > 0"),
        "mixed",
        rows="wide2",
    ),
    # What is asked of results stands right behind them, whatever chooses columns before it.
    _arranged(
        "results before what is asked of one", "lo, hi", "hi, lo", filter_of("hi > 0", "t"), "continues"
    ),
    _arranged(
        "results before what is asked of a key", "lo, hi", "hi, lo", filter_of("value > 'a'", "t"), "refused"
    ),
    _arranged("results in a message", "lo, hi", "hi, lo", "  f: {gem: to_json, input: t}\n", "refused"),
    _made_in_order("what is asked of one", "value, lo, hi", filter_of("hi > 0", "t")),
    _made_in_order(
        "what is asked of what is made of them",
        "value, 'concat(lo, hi) as c'",
        filter_of("c = 'a' or c <> 'b'", "t"),
    ),
    # What literals decide Spark leaves out, and makes a key of what is left.
    _decided("or", "n = m or 1 = 2", "refused"),
    _decided("and", "n = m and (x > y or 1 = 1)", "refused"),
    _decided("all that there is", "n = m or 'a' = 'a'", "continues"),
    # Of a query that can't be followed Spark keeps the results that somebody reads, too.
    Pushed(
        "a result of groups of groups that somebody reads now",
        GROUPS_OF_GROUPS.replace("READ", "value, k"),
        GROUPS_OF_GROUPS.replace("READ", "value, k, h"),
        "refused",
        mode="update",
    ),
    Pushed(
        "a group of groups that nobody reads any longer",
        GROUPS_OF_GROUPS.replace("READ", "value, k"),
        GROUPS_OF_GROUPS.replace("READ", "k"),
        "from_now_on",
        mode="update",
    ),
    # Where no column is called `user` it is who runs the query: one group.
    Pushed(
        "a column called as a value of Spark is, which goes",
        NAMED_AS_A_VALUE.replace("CALLED", "user"),
        NAMED_AS_A_VALUE.replace("CALLED", "who"),
        "refused",
        mode="update",
    ),
    # Spark reads what a watermark is put on, though nothing behind it does.
    _unmarked("a join", JOIN, "j", "n, m", "append"),
    _unmarked("groups", GROUPS.replace("c: count(*)", "at: max(at), c: count(*)"), "g", "value, c", "update"),
    # A column that only conditions of one input read isn't kept, whatever else the query does or asks.
    _unread("a query's condition", "n, m from j where x > 1"),
    _unread("one of a query's conditions", "n, m + 1 as k from j where x > 1 and m > 2"),
    _unread("what a query's conditions are the contrary of", "n, m from j where not (x > 1 or m > 2)"),
    _unread(
        "a condition on what an inner query makes of it",
        "n, m from (select *, x + 1 as z from j) where z > 2",
    ),
    # Of groups that a condition leaves out no row comes any more, and of the others all have come.
    _asked_otherwise("fewer whole groups", "n >= 0", "n > 0", "from_now_on"),
    _asked_otherwise("more groups", "n > 0", "n >= 0", "mixed"),
    _asked_otherwise("other groups", "value = 'home'", "value <> 'home'", "mixed"),
    _asked_otherwise("fewer of either", "n > 0 or value = 'cart'", "n > 0 and value = 'cart'", "from_now_on"),
    _asked_otherwise("fewer whole groups, all told", "n >= 0", "n > 0", "mixed", mode="complete"),
    Pushed(
        "fewer rows of groups",
        filter_of("n >= 0", "a") + RESULTS.replace("input: a", "input: f"),
        filter_of("n = 0", "a") + RESULTS.replace("input: a", "input: f"),
        "mixed",
        mode="update",
    ),
    Pushed(
        "fewer rows of groups that tell nothing but what they are formed by",
        filter_of("n >= 0", "a")
        + RESULTS.replace("input: a", "input: f").replace("max(n)", "any_value(value)"),
        filter_of("n = 0 and value = 'cart'", "a")
        + RESULTS.replace("input: a", "input: f").replace("max(n)", "any_value(value)"),
        "from_now_on",
        rows="",
        mode="update",
    ),
    Pushed(
        "a condition about the watermark's column, before duplicates that go by it",
        MARKED + "  d: {gem: deduplicate, input: w, options: {columns: [at]}}\n",
        MARKED
        + filter_of("at > '2024-01-31 10:10:00'", "w")
        + "  d: {gem: deduplicate, input: f, options: {columns: [at]}}\n",
        "from_now_on",
        rows="",
    ),
    _asked_otherwise("elements", "exists(array(c), v -> v = n)", "c > 0", "continues", mode="complete"),
    _asked_otherwise(
        "a key or what goes in its place",
        "if(value = 'home', coalesce(n, 0) < c, false)",
        "c > 0",
        "continues",
        mode="complete",
    ),
    # What is asked of a key with a result stays behind the groups, and asks for the key.
    _asked_otherwise("the contrary of a key and a result", "n = c", "n <> c", "continues", mode="complete"),
    _asked_otherwise("no key and a result", "n = c", "c > 0", "mixed", mode="complete"),
    _asked_otherwise(
        "what a value decides beside what asks for it",
        "(c > 2 and c = 3) or (c > 2 and n = 1)",
        "(c > 2 and c <> 3) or (c > 2 and n = 1)",
        "continues",
        mode="complete",
    ),
    _asked_otherwise(
        "what a value decides the other way",
        "(c > 2 and c = 1) or (c > 3 and n = 1)",
        "(c > 2 and c <> 1) or (c > 3 and n = 1)",
        "mixed",
        mode="complete",
    ),
    _asked_otherwise(
        "the same of a key in two ways", "n = 1 and not (n <> 1) and c > 0", "c > 0", "mixed", mode="complete"
    ),
    # What is always so is asked of nothing, before groups as behind them.
    _no_more(
        "that a window begins before it ends",
        WINDOWS,
        filter_of("window.start <= window.end", "g"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more(
        "that an end of a window comes behind its beginning",
        ENDS.replace("as since", "as since, window.end as until"),
        filter_of("until > since", "e"),
        "continues",
        rows="",
        mode="complete",
    ),
    _no_more(
        "that a window ends before it begins",
        WINDOWS,
        filter_of("window.start >= window.end or c > 2", "g"),
        "continues",
        mode="complete",
    ),
    # Rows that are made of columns are there only behind that.
    Pushed(
        "another condition on values that were columns",
        GROUPS + ROWS_OF_COLUMNS + filter_of("value_of > 2 and called <> 'n'", "u"),
        GROUPS + ROWS_OF_COLUMNS + filter_of("value_of > 1", "u"),
        "continues",
        mode="complete",
    ),
    Pushed(
        "another condition on values that were columns, and on a key",
        GROUPS + ROWS_OF_COLUMNS + filter_of("value_of > 2 and value <> 'home'", "u"),
        GROUPS + ROWS_OF_COLUMNS + filter_of("value_of > 1", "u"),
        "mixed",
        mode="complete",
    ),
    Pushed(
        "another condition on what the column of a watermark is packed into",
        MOMENTS + PACKED + filter_of("not (not (packed = 'home') or packed <> 'home')", "p"),
        MOMENTS + PACKED,
        "continues",
        mode="complete",
    ),
    Pushed(
        "another condition on what a key is packed into",
        MOMENTS
        + PACKED.replace("value, at", "value")
        + filter_of("not (not (packed = 'home') or packed <> 'home')", "p"),
        MOMENTS + PACKED.replace("value, at", "value"),
        "mixed",
        mode="complete",
    ),
    Pushed(
        "more asked of both keys of a join",
        BY_TWO,
        BY_TWO + filter_of("l.value <> 'home' and l.n > 0", "j"),
        "from_now_on",
    ),
    Pushed(
        "more asked of a key of a join, where something was asked",
        BY_TWO + filter_of("l.n >= 0 and r.m < 5", "j"),
        BY_TWO + filter_of("l.n >= 0 and r.m < 1", "j"),
        "from_now_on",
    ),
    Pushed(
        "more asked of a key of a join by a column",
        BY_TWO,
        BY_TWO + _flag("so", "case when l.n > 0 then true else l.n < -5 end", "j") + filter_of("so", "c"),
        "from_now_on",
    ),
    Pushed(
        "more asked of something else than a key of a join by a column",
        BY_TWO,
        BY_TWO + _flag("so", "case when l.n > 0 then true else l.x < 2 end", "j") + filter_of("so", "c"),
        "mixed",
    ),
    # Which side stands first, and what is asked of pairs where, changes nothing of what a join keeps.
    Pushed(
        "what a join wants to be equal the other way round, and something else of its pairs",
        BY_TWO.replace("l.n = r.m", "l.x <= r.y and l.n = r.m"),
        BY_TWO.replace("l.value = r.name and l.n = r.m", "r.name = l.value and r.m = l.n and l.x > r.y"),
        "from_now_on",
    ),
    Pushed(
        "what a join wants to be equal in another order",
        BY_TWO,
        BY_TWO.replace("l.value = r.name and l.n = r.m", "l.n = r.m and l.value = r.name"),
        "refused",
    ),
    Pushed(
        "what a join wants to be equal of another column",
        BY_TWO,
        BY_TWO.replace("l.n = r.m", "l.n = cast(r.y as int)"),
        "mixed",
    ),
    # What a condition asks for is asked before groups, and of those that came before that behind them too.
    Pushed(
        "a condition more on a key and a result in a table that is written anew",
        GROUPS,
        GROUPS + _flag("h", "not (c < n)", "g") + filter_of("h", "c"),
        "continues",
        mode="complete",
    ),
    Pushed(
        "a condition less on a key and a result in a table that is written anew",
        GROUPS + _flag("h", "not (c < n)", "g") + filter_of("h", "c"),
        GROUPS,
        "mixed",
        mode="complete",
    ),
    Pushed(
        "a condition more on a key and on a result in a table that is written anew",
        GROUPS,
        GROUPS + filter_of("n is not null and c > 0", "g"),
        "mixed",
        mode="complete",
    ),
    # Spark asks for what is behind a union in each branch of it, and behind joins of the side that it is about.
    *(
        Pushed(
            f"a condition more on a join of all rows of a side behind {what}",
            LEFT_JOIN + step,
            LEFT_JOIN + step + filter_of("(n = m) = true", "u"),
            "refused",
        )
        for what, step in (
            (
                "a union with itself",
                "  u: {gem: sql, input: j, options: {query: 'select * from j union all select * from j'}}\n",
            ),
            (
                "a union with a source",
                "  u: {gem: union, inputs: [j, a], options: {allow_missing_columns: true}}\n",
            ),
            (
                "a join with a table",
                "  u: {gem: join, inputs: {l: j, r: s}, options: {condition: l.n = r.k}}\n",
            ),
        )
    ),
    Pushed(
        "a condition more on a join behind a join with another stream",
        JOIN + ANOTHER_JOIN,
        JOIN + ANOTHER_JOIN + filter_of("n = m", "u"),
        "refused",
    ),
    # A join keeps rows by the order of their columns.
    *(
        Pushed(
            f"columns of one type in another order before a join, {what}",
            f"  o: {{gem: select, input: a, options: {{columns: {before}}}}}\n"
            + JOIN.replace("l: a", "l: o"),
            f"  o: {{gem: select, input: a, options: {{columns: {after}}}}}\n" + JOIN.replace("l: a", "l: o"),
            "mixed",
        )
        for what, before, after in (
            ("computed", "{value: value, s: reverse(value)}", "{s: reverse(value), value: value}"),
            ("called otherwise", "{value: value, n: n, k: n + 1}", "{value: value, k: n + 1, n: n}"),
        )
    ),
    Pushed(
        "columns of one type in another order before a join that gives them in one order",
        "  o: {gem: select, input: a, options: {columns: {s: reverse(value), name: value}}}\n" + BY_NAME,
        "  o: {gem: select, input: a, options: {columns: {name: value, s: reverse(value)}}}\n" + BY_NAME,
        "mixed",
    ),
    # What is asked of results behind a join stands right behind them, but for what is asked of pairs.
    *(
        Pushed(
            f"results of which {what} no more in another order before a join with a table",
            CHOSEN_RESULTS + JOINED_RESULTS + filter_of(condition, "j"),
            CHOSEN_RESULTS + JOINED_RESULTS,
            verdict,
            mode="update",
        )
        for what, condition, verdict in (
            ("something is asked", "hi > 0", "refused"),
            ("pairs are asked", "hi > k - 9", "from_now_on"),
        )
    ),
    # Another gem may make the same state.
    *(
        Pushed(f"{what} that a query does now", before, after, verdict, mode=mode)
        for what, before, after, verdict, mode in (
            (
                "an aggregation",
                GROUPS,
                "  g: {gem: sql, input: a, options: {query: 'select value, n, count(*) + 1 as c from a group by value, "
                "n'}}\n",
                "from_now_on",
                "update",
            ),
            (
                "another aggregation",
                GROUPS,
                "  g: {gem: sql, input: a, options: {query: 'select value, n, count(x) as c from a group by value, n'}}\n",
                "mixed",
                "update",
            ),
            (
                "an aggregation by other keys",
                GROUPS,
                "  g: {gem: sql, input: a, options: {query: 'select value, n, count(*) as c from a group by n, value'}}\n",
                "refused",
                "update",
            ),
        )
    ),
    # Rows are told to be duplicates by their columns in order: of more than four by what these are called.
    *(
        Pushed(
            f"{columns} columns by which rows are told to be duplicates, of which one is called `{called}`",
            before + "  d: {gem: deduplicate, input: LAST}\n".replace("LAST", last),
            before
            + f"  r: {{gem: rename, input: {last}, options: {{columns: {{n: {called}}}}}}}\n"
            + "  d: {gem: deduplicate, input: r}\n",
            verdict,
        )
        for columns, before, last, called, verdict in (
            ("four", "", "a", "number", "from_now_on"),
            ("five", _flag("h", "n + 1", "a"), "c", "so", "from_now_on"),
            ("five", _flag("h", "n + 1", "a"), "c", "number", "refused"),
        )
    ),
    # Two nulls are equal, so that no row is left out for what it lacks: the join stays one of all of a side.
    *(
        Pushed(
            f"a condition more behind a join of all rows of a side that {asked}",
            LEFT_JOIN,
            LEFT_JOIN + filter_of(condition, "j"),
            verdict,
        )
        for asked, condition, verdict in (
            ("takes nulls", "equal_null(n, m)", "from_now_on"),
            ("takes none", "n = m", "refused"),
        )
    ),
    # What is read again doesn't get through where a condition asks for what it lacks.
    *(
        Pushed(
            f"a path more whose rows {lack} what is asked for",
            _flag("h", "n > 1", "a") + filter_of("h", "c"),
            _flag("h", "n > 0", "a")
            + "  u: {gem: union, inputs: [c, a], options: {allow_missing_columns: true}}\n"
            + step
            + filter_of(asked, "r"),
            verdict,
        )
        for lack, step, asked, verdict in (
            ("lack", "  r: {gem: rename, input: u, options: {columns: {h: so}}}\n", "so", "from_now_on"),
            ("have", "  r: {gem: rename, input: u, options: {columns: {n: so}}}\n", "so > 0", "again"),
            (
                "may lack",
                "  r: {gem: rename, input: u, options: {columns: {h: so}}}\n",
                "so is null or so",
                "again",
            ),
        )
    ),
    # Of two columns of one name a query can ask for none.
    Pushed(
        "a column more on both sides of a join before a query",
        WITH_ITSELF,
        WITH_ITSELF.replace("columns: [value, n]", "columns: {value: value, n: n, m: n + 1}"),
        "continues",
        "",
    ),
    Pushed(
        "a column more on both sides of a join before a query for all",
        WITH_ITSELF.replace("select value, n", "select *"),
        WITH_ITSELF.replace("select value, n", "select *").replace(
            "columns: [value, n]", "columns: {value: value, n: n, m: n + 1}"
        ),
        "refused",
        "",
    ),
    # Of a part about two keys Spark asks nothing of the other side.
    Pushed(
        "more asked of two keys of a join together",
        BY_TWO,
        BY_TWO + filter_of("l.value <> 'home' or l.n > 0", "j"),
        "mixed",
    ),
    Pushed(
        "more asked of a key of a join and of something else",
        BY_TWO,
        BY_TWO + filter_of("l.value <> 'home' and l.x > 1", "j"),
        "mixed",
    ),
    # What has no time is in no window anyway.
    Pushed(
        "no more a result compared with the end of its window",
        WINDOWS.replace("count(*)", "max(at)") + filter_of("c > window.end - interval 5 minutes", "g"),
        WINDOWS.replace("count(*)", "max(at)"),
        "from_now_on",
        mode="update",
    ),
    # Whether an outer join is one goes by what a condition behind it is without a value: Spark tries it.
    Pushed(
        "no more two conditions together that are to be true behind an outer join",
        LEFT_JOIN + filter_of("(name = 'cart' and m > 1) is true", "j"),
        LEFT_JOIN,
        "refused",
    ),
    Pushed(
        "no more a value for what an outer join lacks that does not get through",
        LEFT_JOIN + filter_of("coalesce(m, 0) > 1", "j"),
        LEFT_JOIN,
        "refused",
    ),
    Pushed(
        "no more a comparison with nulls behind an outer join",
        LEFT_JOIN + filter_of("m <=> 1", "j"),
        LEFT_JOIN,
        "refused",
    ),
    Pushed(
        "no more branches about what an outer join lacks",
        LEFT_JOIN + filter_of("case when m > 1 then true when y is null then false else true end", "j"),
        LEFT_JOIN,
        "refused",
    ),
    Pushed(
        "a comparison with nulls behind an outer join",
        LEFT_JOIN,
        LEFT_JOIN + filter_of("m <=> 1", "j"),
        "mixed",
    ),
    Pushed(
        "a value for what an outer join lacks that gets through",
        LEFT_JOIN,
        LEFT_JOIN + filter_of("coalesce(m, 5) > 1", "j"),
        "from_now_on",
    ),
    Pushed(
        "branches of which one is about all rows of an outer join",
        LEFT_JOIN,
        LEFT_JOIN + filter_of("case when m > 1 then true when x > 1 then true else false end", "j"),
        "from_now_on",
    ),
    Pushed(
        "rows alone without a partner behind an outer join",
        LEFT_JOIN,
        LEFT_JOIN + filter_of("name is null", "j"),
        "from_now_on",
    ),
    Pushed(
        "no more rows alone without a partner behind an outer join",
        LEFT_JOIN + filter_of("m is null or m > 3", "j"),
        LEFT_JOIN,
        "from_now_on",
    ),
    # A join by event time asks for it behind its watermark, and knows it is there; but not where it is asked before.
    Pushed(
        "a join's event time asked for before its watermark",
        MARKED + TIMELY_PAIRS,
        _asked_first("at") + TIMELY_PAIRS,
        "refused",
    ),
    Pushed(
        "another column asked for before the watermark of a join by event time",
        MARKED + TIMELY_PAIRS,
        _asked_first("x") + TIMELY_PAIRS,
        "mixed",
    ),
    # Rows older than the watermark are late where its column comes to what drops duplicates, of whatever columns.
    Pushed(
        "a source more before duplicates with their time",
        MARKED + ONCE,
        MORE + MARKED.replace("input: a", "input: u") + ONCE,
        "skipped",
        "values0",
    ),
    Pushed(
        "a source more before duplicates without their time",
        MARKED + ONCE + "  t: {gem: select, input: d, options: {columns: [value, n]}}\n",
        MORE
        + MARKED.replace("input: a", "input: u")
        + ONCE
        + "  t: {gem: select, input: d, options: {columns: [value, n]}}\n",
        "continues",
        "values0",
    ),
    # A query that reads its input twice has two sides: what is asked of one of them goes on before it.
    Pushed(
        "both sides of a join equal behind one with itself",
        JOIN_BY_NUMBER + TWICE.replace("GIVEN", "l.*") + filter_of("value = name", "t"),
        JOIN_BY_NUMBER + TWICE.replace("GIVEN", "l.*"),
        "refused",
    ),
    Pushed(
        "pairs of a join's rows with itself",
        JOIN_BY_NUMBER + TWICE.replace("GIVEN", "l.value, r.name"),
        JOIN_BY_NUMBER + TWICE.replace("GIVEN", "l.value, r.name") + filter_of("value < name", "t"),
        "mixed",
    ),
    Pushed(
        "equal on both sides of a join with itself",
        TWICE_READ.replace("GIVEN", "l.value, r.value as other") + filter_of("value = other", "t"),
        TWICE_READ.replace("GIVEN", "l.value, r.value as other"),
        "refused",
    ),
    Pushed(
        "equal on one side of a join with itself",
        TWICE_READ.replace("GIVEN", "r.value, r.value as other, l.n") + filter_of("value = other", "t"),
        TWICE_READ.replace("GIVEN", "r.value, r.value as other, l.n"),
        "mixed",
    ),
    # Which side of a join lacks rows goes by the query, in whatever order its inputs are.
    Pushed(
        "asked of what lacks rows, the second side of a query that reads the second input first",
        OTHER_WAY_ROUND + filter_of("x > 1", "j"),
        OTHER_WAY_ROUND,
        "refused",
    ),
    Pushed(
        "asked of the first side of a query that reads the second input first",
        OTHER_WAY_ROUND + filter_of("m is null or m > 3", "j"),
        OTHER_WAY_ROUND,
        "mixed",
    ),
    Pushed(
        "rows without a partner asked for behind a query that reads the second input first",
        OTHER_WAY_ROUND + filter_of("x is null or x > 3", "j"),
        OTHER_WAY_ROUND,
        "from_now_on",
    ),
    # Pairs of a join's rows are asked for values before that join, which writes what lacks them into others.
    Pushed(
        "pairs of a join's rows, of which both sides go on",
        PAIRED,
        PAIRED + filter_of("value < name", "t"),
        "mixed",
    ),
    Pushed(
        "pairs of a join's rows, of which one side goes on",
        PAIRED.replace("y = u", "x = u"),
        PAIRED.replace("y = u", "x = u") + filter_of("value < name", "t"),
        "from_now_on",
    ),
    # What is equal to a value is none of other values.
    Pushed(
        "a key beside another value than the one there is",
        TOLD,
        TOLD + filter_of("(lo = 'cart' and k) or (lo = 'cart' and lo <> 'x')", "g"),
        "continues",
        mode="complete",
    ),
    # A field of a text is null where there is no text: what asks for it asks for the row.
    Pushed(
        "a field asked for of a text that may lack",
        LEFT_JOIN + READ + filter_of("id is not null", "p"),
        LEFT_JOIN + READ,
        "refused",
    ),
    Pushed(
        "a window over a field of a text that may lack",
        LEFT_JOIN + READ + _flag("later", "session_window(since, '30 seconds')", "p"),
        LEFT_JOIN + READ,
        "refused",
    ),
    # What is distinct is kept by its columns in their order, whatever else the query keeps.
    Pushed(
        "distinct rows of sessions with their columns in another order",
        MARKED + DISTINCT.replace("GIVEN", "until, value"),
        MARKED + DISTINCT.replace("GIVEN", "value, until"),
        "refused",
        mode="complete",
    ),
    # What is filled is tried as such.
    Pushed(
        "another value asked for than what fills a side that lacks",
        LEFT_JOIN + FILLED + filter_of("m > 3", "k"),
        LEFT_JOIN + FILLED,
        "refused",
    ),
    Pushed(
        "a column asked for that is computed of a side that lacks",
        LEFT_JOIN + _flag("so", "coalesce(name, 'cart') = 'home'", "j") + filter_of("so", "c"),
        LEFT_JOIN + _flag("so", "coalesce(name, 'cart') = 'home'", "j"),
        "refused",
    ),
    # Tables behind a comma are joined by what is asked of them.
    Pushed(
        "what is equal behind tables that are joined by where",
        BY_WHERE + filter_of("not (value <> name)", "t"),
        BY_WHERE,
        "refused",
    ),
    Pushed(
        "a field asked for that fills another of a text that may lack",
        LEFT_JOIN + READ + _flag("so", "coalesce(id, 0) > 1", "p") + filter_of("so", "c"),
        LEFT_JOIN + READ + _flag("so", "coalesce(id, 0) > 1", "p"),
        "refused",
    ),
    # What stands before a query is there as often as it is named, and where the optimized plan names it.
    Pushed(
        "a join that a query reads twice",
        JOIN_BY_NUMBER + _in_sql("select * from j union all select * from j", "j"),
        JOIN_BY_NUMBER + _in_sql("select * from j", "j"),
        "refused",
    ),
    Pushed(
        "a common table expression put where it is used",
        ONCE_EACH.replace("GIVEN", LATER),
        ONCE_EACH.replace("GIVEN", "select m as n from d union all select n from g"),
        "refused",
    ),
    Pushed(
        "a common table expression used twice",
        ONCE_EACH.replace("GIVEN", LATER),
        ONCE_EACH.replace("GIVEN", f"{LATER} union all select n from q"),
        "refused",
    ),
    # Spark makes one of a table that is united with itself, and not of another query.
    Pushed(
        "rows once of a table that is united with itself, unpivoted",
        RESULTS + _in_sql("select * from g union select * from g", "g") + UNPIVOTED,
        RESULTS + _in_sql("select * from g union select * from g", "g"),
        "from_now_on",
        mode="update",
    ),
    Pushed(
        "rows once of a query that is united with itself",
        ONCE_EACH.replace("GIVEN", "select value, n from g union select value, n from g"),
        ONCE_EACH.replace("GIVEN", "select distinct value, n from g"),
        "refused",
        mode="update",
    ),
    # A part that is the same for all rows is none of a condition that goes before as a whole.
    _of_moments(
        "a key beside a result that is never null, as a whole", f"({LATE} and n is not null) is true"
    ),
    _of_moments("branches of a key of which one asks for a result", f"if({LATE}, n is not null, at is null)"),
    _of_moments("a key beside a result, as a whole", f"({LATE} and c > 1) is true", "from_now_on"),
    # A filter may ask for what was left out before it: Spark has it go on that far.
    Pushed(
        "a result asked for that was left out",
        RESULTS + "  o: {gem: select, input: g, options: {columns: [lo]}}\n",
        RESULTS + "  o: {gem: select, input: g, options: {columns: [lo]}}\n" + filter_of("hi > 1", "o"),
        "refused",
        mode="update",
    ),
    Pushed(
        "a key asked for that was left out twice",
        GROUPS + COUNTED,
        GROUPS + COUNTED + filter_of("value <> 'cart'", "q"),
        "mixed",
        mode="complete",
    ),
    Pushed(
        "a side that lacks rows asked for what was left out",
        LEFT_JOIN + "  o: {gem: select, input: j, options: {columns: [n]}}\n",
        LEFT_JOIN + "  o: {gem: select, input: j, options: {columns: [n]}}\n" + filter_of("m > 1", "o"),
        "mixed",
    ),
    # Of an outer join Spark leaves one side alone, where nobody reads the other, nor counts the rows.
    _of_outer_join(
        "distinct rows of one side of an outer join, then of both",
        "select distinct value, at from j",
        "select distinct value, at, name from j",
    ),
    _of_outer_join(
        "the largest of one side of an outer join, then its number",
        "select value, at, max(n) as k from j group by value, at",
        "select value, at, count(n) as k from j group by value, at",
    ),
    _of_outer_join(
        "distinct rows of the left side of a right join, which stays, then of its right side",
        "select distinct value, at from j",
        "select distinct name, seen from j",
        how="right",
    ),
]


WORKED_OUT = (
    "  q: {gem: sql, input: j, options: {query: \"select *, md5(split('x', ',')[0]) as h from j\"}}\n"
)
OF_ONES = "  d: {gem: deduplicate, input: BEFORE, options: {columns: [n]}}\n" + JOIN.replace("l: a", "l: d")
MORE_OF_IT = (
    "  w2: {gem: filter, input: a, options: {condition: n > 0}}\n  u: {gem: union, inputs: [a, w2]}\n"
)
EACH_ONCE = "  d: {gem: deduplicate, input: BEFORE}\n" + (
    '  t: {gem: sql, input: d, options: {query: "select * from d union select * from d"}}\n'
)
ASKED_ELSEWHERE = [
    Pushed(
        "a condition on a constant that Spark works out, and its contrary, behind a join",
        JOIN + WORKED_OUT + filter_of("h = 'a'", "q"),
        JOIN + WORKED_OUT + filter_of("h <> 'a'", "q"),
        "mixed",
    ),
    # What is asked before rows are told apart isn't asked again behind, where Spark would still know it.
    *(
        Pushed(
            f"{name} before the rows of a join are told apart",
            OF_ONES.replace("BEFORE", "a") + behind,
            f"  c: {{gem: clean, input: a, options: {{drop_rows: any, columns: [{column}]}}}}\n"
            + OF_ONES.replace("BEFORE", "c")
            + behind,
            verdict,
            "dense0" if verdict == "mixed" else "",
        )
        for name, column, behind, verdict in (
            ("the key of the join asked for", "value", "", "refused"),
            ("another column asked for", "x", "", "mixed"),
            ("what is asked of the join", "x", filter_of("not (x > 2 or value = 'a')", "j"), "refused"),
        )
    ),
    Pushed(
        "whole rows of a union told apart, and again by a query",
        EACH_ONCE.replace("BEFORE", "a"),
        MORE_OF_IT + EACH_ONCE.replace("BEFORE", "u"),
        "refused",
        mode="complete",
    ),
]


def _with_partners(
    name: str, how: str, condition: str, verdict: str, *, old: str = "", made: str = GROUPS
) -> Pushed:
    """Rows that have a partner in a table, or none, behind groups or a join, as a query asks for it."""
    before = made.strip().rpartition("\n")[2].partition(":")[0].strip()
    query = f"  t: {{gem: sql, inputs: [{before}, s], options: {{query: 'select l.* from {before} l {how} join s r on ON'}}}}\n"
    first = made + query.replace("ON", old) if old else made
    mode = "append" if made != GROUPS else "complete" if verdict == "mixed" else "update"
    rows = "dense0" if verdict == "mixed" else ""
    return Pushed(f"{how} join, {name}", first, made + query.replace("ON", condition), verdict, rows, mode)


ONES_WITH_PARTNERS = [
    # Spark asks for them before groups, and before one side of a join: PushDownLeftSemiAntiJoin.
    _with_partners("by a key of groups", "left semi", "l.value = r.name", "mixed"),
    _with_partners("by a key of groups", "left anti", "l.value = r.name", "mixed"),
    _with_partners(
        "by another condition", "left semi", "l.value = r.name and r.k > 1", "mixed", old="l.value = r.name"
    ),
    _with_partners("by a result", "left anti", "l.c = r.k", "from_now_on"),
    _with_partners("by a key and a result", "left semi", "l.value = r.name and l.c > r.k", "from_now_on"),
    _with_partners("by a result, and a key alone", "left semi", "l.c = r.k and l.n > 0", "mixed"),
    _with_partners("by a result, and a key alone", "left anti", "l.c = r.k and l.n > 0", "from_now_on"),
    _with_partners("of a join", "left semi", "l.n = r.k", "mixed", made=JOIN),
    _with_partners("of a join", "left anti", "l.n = r.k", "mixed", made=JOIN),
]

ONCE_PER_RESULT = WINDOWS + "  d: {gem: deduplicate, input: g, options: {columns: [value]}}\n"
GROUPS_OF_ONES = "  g: {gem: aggregate, input: d, options: {group_by: [at], aggregates: {c: count(*)}}}\n"
ONES_BEFORE = MARKED + "  d: {gem: deduplicate, input: w, options: {columns: [n]}}\n" + GROUPS_OF_ONES

OTHER_MODES = [
    # By the output mode other results come to what keeps state behind groups.
    Pushed(f"output mode {old} to {new}, {name}", steps, steps, verdict, rows, old, new)
    for name, steps, old, new, verdict, rows in (
        ("duplicates of results dropped", ONCE_PER_RESULT, "append", "update", "mixed", "dense0"),
        ("duplicates of results dropped", ONCE_PER_RESULT, "update", "append", "mixed", "dense0"),
        ("duplicates dropped before groups", ONES_BEFORE, "update", "append", "from_now_on", ""),
        ("groups", WINDOWS, "update", "append", "from_now_on", ""),
    )
]

ONES_BY_NUMBER = "  g: {gem: aggregate, input: a, options: {group_by: [n], aggregates: {c: count(*)}}}\n"
OF_ALL_NUMBERS = ONES_BY_NUMBER + "  t: {gem: select, input: g, options: {columns: [n]}}\n"
OF_SOME_NUMBERS = (
    ONES_BY_NUMBER
    + "  f: {gem: filter, input: g, options: {condition: n > 1}}\n"
    + "  t: {gem: select, input: f, options: {columns: [n]}}\n"
)
OTHER_MODES += [
    # Which groups there are comes out of state with `complete`, and with `update` of the rows that come.
    Pushed(
        f"output mode {old} to {new}, a condition on groups {name}", before, after, verdict, rows, old, new
    )
    for name, before, after, old, new, verdict, rows in (
        ("goes", OF_SOME_NUMBERS, OF_ALL_NUMBERS, "update", "complete", "mixed", "values5"),
        ("comes", OF_ALL_NUMBERS, OF_SOME_NUMBERS, "update", "complete", "mixed", "dense0"),
        ("goes", OF_SOME_NUMBERS, OF_ALL_NUMBERS, "complete", "update", "from_now_on", ""),
    )
]

TWO_OF_EACH = (
    "  o: {gem: select, input: a, options: {columns: {value: value, n: x, at: at}}}\n"
    "  p: {gem: select, input: a, options: {columns: {value: value, n: n + 0.5, at: at}}}\n"
)
FIRST_ONES = "  d: {gem: deduplicate, input: u, options: {columns: [value, at]}}\n"
UNITED = "  u: {gem: union, inputs: [ONE, OTHER]}\n"
UNITED_IN_A_QUERY = (
    "  u: {gem: sql, inputs: [o, p], options: {query: select * from ONE union all select * from OTHER}}\n"
)


def _other_first(name: str, united: str, behind: str, verdict: str, mode: str = "append") -> Pushed:
    """The same rows, those of the other input first."""
    rows = "dense0" if verdict == "mixed" else ""
    one, other = (
        TWO_OF_EACH + united.replace("ONE", first).replace("OTHER", second) + behind
        for first, second in ("op", "po")
    )
    return Pushed(f"inputs of a union in another order, {name}", one, other, verdict, rows, mode)


OTHERS_FIRST = [
    made
    for called, united in (("", UNITED), (" of a query", UNITED_IN_A_QUERY))
    for made in (
        _other_first(f"the first of each kept{called}", united, FIRST_ONES, "from_now_on"),
        _other_first(
            f"the same in all that is read{called}",
            united,
            f"{FIRST_ONES}  t: {{gem: select, input: d, options: {{columns: [value, at]}}}}\n",
            "continues",
        ),
        _other_first(
            f"what is first in groups{called}",
            united,
            "  g: {gem: aggregate, input: u, options: {group_by: [value], aggregates: {f: first(n)}}}\n",
            "mixed",
            "update",
        ),
        _other_first(
            f"the greatest in groups{called}",
            united,
            "  g: {gem: aggregate, input: u, options: {group_by: [value], aggregates: {f: max(n)}}}\n",
            "continues",
            "update",
        ),
    )
]

COUNTED = (
    "  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: "
    "{n: count(1), t: sum(x), l: count(n)}HAVING}}\n"
)
ALWAYS_A_NUMBER = '  h: {gem: with_columns, input: a, options: {columns: {n: "coalesce(n, 0)"}}}\n'
OF_PRODUCTION = COUNTED.replace("HAVING", "") + (
    "  e: {gem: with_columns, input: g, options: {columns: {env: \"'prod'\"}}}\n"
    '  t: {gem: select, input: e, options: {columns: {value: value, z: "MADE"MORE}}}\n'
)
COUNTED_TWICE = ALWAYS_A_NUMBER + (
    "  g: {gem: aggregate, input: h, options: {group_by: [value], aggregates: {c: count(1), d: MADE}}}\n"
)
WITH_A_NUMBER = (
    ALWAYS_A_NUMBER
    + "  j: {gem: join, inputs: {l: h, r: b}, options: {condition: l.value = r.name}}\n"
    + "  t: {gem: select, input: j, options: {columns: {READ}}}\n"
)


def _of_groups(name: str, before: str, after: str, verdict: str, node: str = "", having: str = "") -> Pushed:
    """Another choice of the results of groups of which some are never null."""
    groups = COUNTED.replace("HAVING", f", having: '{having}'" if having else "") + node
    given = "f" if node else "g"
    versions = (
        f"{groups}  t: {{gem: select, input: {given}, options: {{columns: {each}}}}}\n"
        for each in (before, after)
    )
    return Pushed(f"what is never null, {name}", *versions, verdict, "dense0", "update")


def _asked_of_groups(condition: str, before: str, after: str, verdict: str = "refused") -> Pushed:
    node = f'  f: {{gem: filter, input: g, options: {{condition: "{condition}"}}}}\n'
    return _of_groups(f"asked {condition}, {after}", f"[{before}]", f"[{after}]", verdict, node)


def _made_of_groups(made: str) -> Pushed:
    before, after = (f'{{value: value, z: "{made}"{more}}}' for more in ("", ", t: t"))
    return _of_groups(f"made {made}", before, after, "refused")


def _made_in_groups(made: str) -> Pushed:
    node = '  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: {z: "MADE"MORE}}}\n'
    versions = (node.replace("MADE", made).replace("MORE", more) for more in ("", ", s: sum(x)"))
    return Pushed(f"what is never null, in groups {made}", *versions, "refused", "dense0", "update")


# What Spark knows of what is never null, it doesn't ask: a condition is none then, and so are some branches.
NEVER_NULL = [
    _asked_of_groups("n is not null", "value, l, t", "value, t, l"),
    _asked_of_groups("n is not null and l > 1", "value, l", "value, l, n"),
    _asked_of_groups("n is not null and l > 1", "value, l, t", "value, t, l", "continues"),
    _asked_of_groups("n is null or l > 1", "value, t", "value, t, n"),
    _asked_of_groups("isnotnull(n) or l > 1", "value, l, t", "value, t, l"),
    _asked_of_groups("not (n is null or l > 1)", "value, l", "value, l, n"),
    *map(
        _made_of_groups,
        [
            "coalesce(n, t)",
            "coalesce(n + 1, t)",
            "greatest(coalesce(n, t), l)",
            "if(n is null, t, n)",
            "case when n is null then t when l > 1 then 2 end",
            "nvl2(n, n, t)",
            "n is not null or t > 1",
        ],
    ),
    _asked_of_groups("n is null", "value, n, t", "value, t"),
    _of_groups("having that is never true", "[value, t, n]", "[value, t]", "refused", having="n is null"),
    _of_groups("having", "[value, l]", "[value, l, n]", "refused", having="n is null or l > 1"),
    *map(
        _made_in_groups,
        [
            "coalesce(count(1), sum(x))",
            "coalesce(max(n), count(1), sum(x))",
            "if(count(1) is null, sum(x), 1.0)",
        ],
    ),
    *(
        Pushed(f"what is a constant, {made}", *versions, verdict, "dense0", "update")
        for made, verdict in (
            ("if(env = 'prod', n, t)", "refused"),
            ("case when env = 'dev' then n else t end", "refused"),  # `t` is read twice then
            ("env = 'dev' and t > 1", "refused"),
            ("coalesce(env, t)", "refused"),
        )
        for versions in [[OF_PRODUCTION.replace("MADE", made).replace("MORE", m) for m in ("", ", t: t")]]
    ),
    *(
        Pushed(f"what is never null, counted {before} {after}", *versions, "refused", "dense0", "update")
        for before, after in (("count(n)", "count(x)"), ("count(x)", "count(n + 1)"))
        for versions in [[COUNTED_TWICE.replace("MADE", made) for made in (before, after)]]
    ),
    *(
        Pushed(
            f"what is never null, of a join {made}",
            WITH_A_NUMBER.replace("READ", f'value: value, z: "{made}"'),
            WITH_A_NUMBER.replace("READ", f'value: value, z: "{made}", x: x'),
            "refused",
            "dense0",
        )
        for made in ("coalesce(n, x)", "if(n is null, x, n)")
    ),
]
# Functions that Spark makes one of: of two it keeps one, and another name makes no difference.
SAME_FUNCTIONS = [
    Pushed(
        f"functions that are the same, {after}",
        *(GROUPS_OF_ONE.replace("MADE", made) for made in (before, after)),
        verdict,
        "dense0",
        "update",
    )
    for before, after, verdict in (
        ("p: avg(x)", "p: mean(x)", "continues"),
        ("p: array_agg(n)", "p: collect_list(n)", "continues"),
        ("p: some(n > 1)", "p: max(n > 1)", "continues"),
        ("p: avg(x), q: mean(x)", "p: avg(x), q: avg(n)", "refused"),
        ("p: any_value(n), q: first(n)", "p: any_value(n), q: first(x)", "refused"),
        ("p: std(x), q: stddev_samp(x)", "p: std(x), q: stddev(n)", "refused"),
        ("p: every(n > 1), q: bool_and(n > 1)", "p: every(n > 1), q: every(n > 2)", "refused"),
        ("p: stddev(x), q: std(x)", "p: stddev(x)", "from_now_on"),
    )
]
# The count of no row, and what is made of one: Spark knows it when it plans, and asks for it before the groups.
OF_NO_ROWS = (
    "  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: "
    "{n: count(1), none: count(1) filter (where 1 = 2), never: sum(x) filter (where 1 = 2)}}}\n"
)
OF_NONE = [
    Pushed(f"of no rows, {asked} {way} in {mode}", *versions, verdict, "dense0", mode)
    for asked, mode, verdicts in (
        ("none = 2", "complete", ("mixed", "mixed")),
        ("never is not null", "complete", ("mixed", "mixed")),
        ("none = 0 or n > 0", "complete", ("continues", "continues")),
    )
    for way, verdict in zip(("from now on", "no more"), verdicts, strict=True)
    for asking in [f'{OF_NO_ROWS}  t: {{gem: filter, input: g, options: {{condition: "{asked}"}}}}\n']
    for versions in [(OF_NO_ROWS, asking) if way == "from now on" else (asking, OF_NO_ROWS)]
]
# A condition on results that says what one of them is decides others of its parts: nobody reads `t` for them.
OF_ONE_VALUE = (
    "  g: {gem: aggregate, input: a, options: "
    "{group_by: [value], aggregates: {n: count(1), t: sum(x), b: max(x), c: max(n)}}}\n"
    '  f: {gem: filter, input: g, options: {condition: "ASKED"}}\n'
    "  t: {gem: select, input: f, options: {columns: [READ]}}\n"
)
VALUES_TOLD = [
    Pushed(f"values told by {asked}", *versions, verdict, "dense0", "update")
    for asked, verdict in (
        ("c = 1 and (c > 0 or t > 1)", "refused"),
        ("n = 1 and (t > 1 or n > 0)", "refused"),
        ("c = 1 and if(c = 1, b, t) > 0", "refused"),
        ("not (c <> 1) and (c > 0 or t > 1)", "refused"),
    )
    for versions in [[OF_ONE_VALUE.replace("ASKED", asked).replace("READ", r) for r in ("value", "value, t")]]
]
# An input that a query joins with itself: of each of the two tables other columns are kept.
WITH_ITSELF = '  t: {gem: sql, input: a, options: {query: "select MADE from a l join a r on ASKED"}}\n'
TWO_TABLES = [
    Pushed(f"two tables of one input, {number}", *versions, verdict, "dense0")
    for number, (before, after, verdict) in enumerate(
        (
            (("l.*", "l.x = r.x"), ("l.*", "r.at >= l.at and l.x = r.x"), "refused"),
            (("l.value", "l.x = r.x and r.at >= l.at"), ("r.value", "l.x = r.x and r.at >= l.at"), "refused"),
            (("l.value, r.value v", "l.x = r.x"), ("l.value, r.n v", "l.x = r.x"), "refused"),
            (("l.value || r.value v", "l.x = r.x"), ("l.value v", "l.x = r.x"), "refused"),
            (("l.value", "l.x = r.x"), ("l.value", "l.x = r.x and l.n > 1"), "mixed"),
        )
    )
    for versions in [[WITH_ITSELF.replace("MADE", m).replace("ASKED", a) for m, a in (before, after)]]
]
# Each row once of groups of a query: what tells whether Spark leaves that out is how the paths behind go on.
ONCE_OF_GROUPS = (
    '  t: {gem: sql, input: a, options: {query: "with step as (select x, min(n) as m from a group by x having '
    'count(*) > 1) select distinct x from step where m <=> x"}}\n'
    "  w: {gem: select, input: t, options: {columns: [x]}}\n"
)
COMPUTING = '  u: {gem: select, input: INPUT, options: {columns: ["*", "x + 1 AS c0"]}}\n'
TWO_OPERATORS = [
    Pushed(
        "each row once of groups, on two paths",
        ONCE_OF_GROUPS + COMPUTING.replace("INPUT", "w"),
        ONCE_OF_GROUPS + "  v: {gem: union, inputs: [w, t]}\n" + COMPUTING.replace("INPUT", "v"),
        "refused",
        "dense0",
        "complete",
    )
]
# A condition on results goes through a watermark of groups: they are kept in their own order then.
IN_THEIR_ORDER = (
    "  g: {gem: aggregate, input: a, options: {group_by: [value, at], aggregates: "
    '{n: count(*), total: "last(value, true)", latest: max(n)}}}\n'
    "  q: {gem: select, input: g, options: {columns: [COLUMNS, value as c1, at as page]}}\n"
    "  w: {gem: watermark, input: q, options: {column: page, delay: 1 second}}\n"
    '  f: {gem: filter, input: w, options: {condition: "ASKED"}}\n'
)
THROUGH_A_WATERMARK = [
    Pushed(
        f"through a watermark of groups, {asked}",
        *(
            IN_THEIR_ORDER.replace("ASKED", asked).replace("COLUMNS", columns)
            for columns in ("total, latest", "latest, total")
        ),
        verdict,
        "dense0",
        "complete",
    )
    for asked, verdict in (
        ("not (c1 <> total)", "continues"),
        ("page is null or total = 'home'", "refused"),
        ("c1 <> 'a'", "refused"),
    )
]
# What a query asks of the rows before it forms groups of them goes before a join, as a filter would.
WHERE_OF_GROUPS = (
    "  c: {gem: select, input: b, options: {columns: {at: seen, y: y, m: m, name: name}}}\n"
    '  j: {gem: join, inputs: [a, c], options: {how: inner, "on": [at]}}\n'
    '  g: {gem: sql, input: j, options: {query: "select y, MADE as n from j where ASKED group by y"}}\n'
)
ASKED_BEFORE_GROUPS = [
    Pushed(
        f"asked before groups behind a join: {before} {after}",
        *(WHERE_OF_GROUPS.replace("MADE", made).replace("ASKED", asked) for made, asked in (before, after)),
        verdict,
        "dense0",
        "update",
    )
    for before, after, verdict in (
        (("count(*)", "m > 1"), ("count(m)", "m > 1"), "refused"),
        (("max(y)", "m > 1"), ("max(y)", "1 = 1"), "mixed"),
        (("max(y)", "m > x"), ("max(y)", "m > 1"), "refused"),
    )
]

EDITS = [
    *PUSHED,
    *KEPT_NULLS,
    *ASKED_ELSEWHERE,
    *ONES_WITH_PARTNERS,
    *OTHER_MODES,
    *OTHERS_FIRST,
    *NEVER_NULL,
    *SAME_FUNCTIONS,
    *OF_NONE,
    *VALUES_TOLD,
    *TWO_TABLES,
    *TWO_OPERATORS,
    *THROUGH_A_WATERMARK,
    *ASKED_BEFORE_GROUPS,
]
