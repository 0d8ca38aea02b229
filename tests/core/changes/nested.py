"""Edits of what is read of nested columns behind a join, or of other columns in the place of some: each was tried
in Spark 4.2.

`tests/core/changes/test_below.py` holds the verdicts to them, `tests/integration/test_pushed.py` the truth.
"""

from __future__ import annotations

from tests.core.changes.pushed import JOIN, JOIN_BY_NUMBER, LEFT_JOIN, MARKED, TABLE, Pushed

JOINED = JOIN.replace("l: a", "l: o")
FIELDS = "  o: {gem: with_columns, input: INPUT, options: {columns: {p: 'struct(n, x, n * 2 as k)'}}}\n"
TEXT = (
    '  o: {gem: with_columns, input: a, options: {columns: {p: "from_json(to_json(struct(n, x, n * 2 as k)), '
    "'n int, x double, k int')\"}}}\n"
)
INNER = "  o: {gem: with_columns, input: a, options: {columns: {p: 'struct(n, struct(x, n * 2 as k, value) as q)'}}}\n"
WINDOWS = "  o: {gem: with_columns, input: w, options: {columns: {p: \"window(at, '1 hour')\"}}}\n"
ELEMENTS = (
    '  o: {gem: with_columns, input: a, options: {columns: {p: "from_json(to_json(array(struct(n, x, value, '
    "n * 2 as k))), 'array<struct<n: int, x: double, value: string, k: int>>')\"}}}\n"
)
APART = "  z: {gem: sql, input: j, options: {query: 'select m, explode(p) as e from j'}}\n"
OTHER = "  o2: {gem: select, input: b, options: {columns: {other: name, u: y}}}\n"
SECOND = (
    "  z: {gem: sql, inputs: [j, o2], options: {query: 'select p, m, u from j join o2 on value = other'}}\n"
)


def _select(columns: str, before: str, called: str = "t") -> str:
    return f"  {called}: {{gem: select, input: {before}, options: {{columns: {{{columns}}}}}}}\n"


def _reads(
    name: str,
    old: str,
    new: str,
    verdict: str,
    *,
    made: str = FIELDS,
    behind: str = "",
    joined: str = JOINED,
    mode: str = "append",
) -> Pushed:
    """What a `select` reads, behind a join and what may stand between."""
    last = behind.strip().rpartition("\n")[2].partition(":")[0].strip() or "j"
    steps = made.replace("INPUT", "a") + joined + behind
    rows = "dense0" if verdict == "mixed" else ""
    return Pushed(name, steps + _select(old, last), steps + _select(new, last), verdict, rows, mode)


def _queries(
    name: str, old: str, new: str, verdict: str, *, made: str, joined: str, mode: str = "append"
) -> Pushed:
    """What a query reads."""
    before, after = (
        made.replace("INPUT", "a")
        + joined
        + f'  t: {{gem: sql, inputs: INPUTS, options: {{query: "{query}"}}}}\n'
        for query in (old, new)
    )
    inputs = "[j]" if joined else "[o, b]"
    return Pushed(
        name,
        before.replace("INPUTS", inputs),
        after.replace("INPUTS", inputs),
        verdict,
        "dense0" if verdict == "mixed" else "",
        mode,
    )


def _elements(name: str, old: str, new: str, verdict: str) -> Pushed:
    return _reads(f"of elements {name}", old, new, verdict, made=ELEMENTS, behind=APART)


RESULTS = "  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: {lo: min(n), c: count(*), z: sum(x)}}}\n"
OF_RESULTS = "  p: {gem: with_columns, input: BEFORE, options: {columns: {p: 'struct(z, c, lo)'}}}\n"
ALL_PAIRS = "  y: {gem: sql, inputs: {g: p, s: s}, options: {query: 'select g.*, s.k from g cross join s'}}\n"
ELSEWHERE = "  h: {gem: repartition, input: g, options: {partitions: 2}}\n"


def _results(
    name: str, old: str, new: str, verdict: str, *, pairs: bool = False, moved: bool = False
) -> Pushed:
    """What is read of results that are put together."""
    before = RESULTS + OF_RESULTS.replace("BEFORE", "g")
    after = RESULTS + ELSEWHERE + OF_RESULTS.replace("BEFORE", "h") if moved else before
    joined, read = (ALL_PAIRS, "y") if pairs else ("", "p")
    versions = (made + joined + _select(f"v: value, {f}", read) for made, f in ((before, old), (after, new)))
    where = "of results, and all pairs with a table" if pairs else "of results"
    return Pushed(
        f"what is read {where}, {name}",
        *versions,
        verdict,
        "" if verdict == "from_now_on" else "dense0",
        "update",
    )


PARTS = "named_struct('u', n, 'v', m)"
ONE_OF_TWO = f"if(x > 0, {PARTS}, null)"
MOVED = "  y: {gem: repartition, input: k, options: {partitions: 2}}\n"
POSITIVE = "  y: {gem: filter, input: k, options: {condition: p.u > 0}}\n"
WITH_A_TABLE = "  y: {gem: sql, inputs: [k, s], options: {query: 'select k.value, k.p, s.k from k join s on s.name = k.value'}}\n"


def _taken(
    name: str,
    made: str,
    old: str,
    new: str,
    verdict: str,
    *,
    behind: str = "",
    beside: str = "",
    of: str = JOIN,
) -> Pushed:
    """What is taken out of a column that is put together behind a join, or behind groups."""
    before = of.strip().rpartition("\n")[2].partition(":")[0].strip()
    put = f'  k: {{gem: with_columns, input: {before}, options: {{columns: {{p: "{made}"{beside}}}}}}}\n'
    steps = of + put + behind
    versions = (steps + _select(read, "y" if behind else "k") for read in (old, new))
    mode = "append" if of == JOIN else "update"
    return Pushed(f"what is taken out, {name}", *versions, verdict, "", mode)


def _greatest(name: str, made: str, old: str, new: str, verdict: str) -> Pushed:
    """What groups take out of it."""
    steps = MARKED + JOIN.replace("l: a", "l: w")
    put = f'  k: {{gem: with_columns, input: j, options: {{columns: {{p: "{made}"}}}}}}\n'
    grouped = "  t: {gem: aggregate, input: k, options: {group_by: [at, value], aggregates: {c: GIVEN}}}\n"
    versions = (steps + put + grouped.replace("GIVEN", given) for given in (old, new))
    return Pushed(f"what groups take out, {name}", *versions, verdict, "")


TAKEN_OUT = [
    # Spark finds what it is put together of: SimplifyExtractValueOps.
    _taken("a field of elements", f"array({PARTS})", "q: p.u", "q: p.v", "refused"),
    _taken("a field of an element", f"array({PARTS})", "q: 'p[0]'", "q: 'p[0].v'", "refused"),
    _taken(
        "an element of a field", "named_struct('u', array(n, m))", "q: 'p.u[0]'", "q: 'p.u[1]'", "refused"
    ),
    _taken("a field of a field", f"named_struct('p', {PARTS}, 'x', x)", "q: p.p.u", "q: p.p.v", "refused"),
    _taken("a field of a value", f"map('k', {PARTS})", "q: p.k.u", "q: p.k.v", "refused"),
    _taken("an element by get", "array(n, m)", "q: p", "q: 'get(p, 1)'", "refused"),
    _taken("an element that isn't there", "array(n, m)", "q: p", "q: 'get(p, 5)'", "refused"),
    _taken("an element by a column", "array(n, m)", "q: p", "q: 'p[n]'", "from_now_on"),
    _taken("an element by element_at", "array(n, m)", "q: p", "q: 'element_at(p, 1)'", "from_now_on"),
    _taken("how many there are", "array(n, m)", "q: p", "q: size(p)", "refused"),
    _taken("how many entries there are", "map('u', n, 'v', m)", "q: p", "q: cardinality(p)", "refused"),
    # Of several that may be it, where no more than one is made of columns: PushFoldableIntoBranches.
    _taken("a field of one of two", ONE_OF_TWO, "q: p.u", "q: p.v", "refused"),
    _taken("a field of one case", f"case when x > 0 then {PARTS} end", "q: p.u", "q: p.v", "refused"),
    _taken(
        "a field of one of two that have columns",
        f"case when x > 0 then {PARTS} else named_struct('u', m, 'v', n) end",
        "q: p.u",
        "q: p.v",
        "from_now_on",
    ),
    _taken(
        "an element of one of two", "if(x > 0, array(n, m), null)", "q: 'p[0]'", "q: 'p[1]'", "from_now_on"
    ),
    _taken(
        "a value of one of two", "if(x > 0, map('u', n, 'v', m), null)", "q: p.u", "q: p.v", "from_now_on"
    ),
    # It computes nothing twice but what is cheap, and what it would stays as it is, with all beside it:
    # CollapseProject.
    _taken(
        "the same twice of one of two", ONE_OF_TWO, "q: p.u, r: p.u + 1", "q: p.v, r: p.v + 1", "from_now_on"
    ),
    _taken("the same twice, and once", ONE_OF_TWO, "q: p.u + p.u", "q: p.u", "refused"),
    _taken("the same, asked before", ONE_OF_TWO, "q: p.u", "q: p.v", "refused", behind=POSITIVE),
    _taken(
        "fields of elements twice",
        f"array({PARTS})",
        "q: p.u, r: size(p.u)",
        "q: p.v, r: size(p.v)",
        "from_now_on",
    ),
    _taken(
        "a field beside what isn't cheap, twice",
        PARTS,
        "q: p.u, r: w, s: w + 1",
        "q: p.v, r: w, s: w + 1",
        "from_now_on",
        beside=", w: sqrt(x)",
    ),
    _taken(
        "a field beside what isn't cheap",
        PARTS,
        "q: p.u, r: w",
        "q: p.v, r: w",
        "refused",
        beside=", w: sqrt(x)",
    ),
    _taken(
        "a field beside a result, twice",
        "named_struct('u', lo, 'v', z)",
        "q: p.u, r: c, s: c + 1",
        "q: p.v, r: c, s: c + 1",
        "from_now_on",
        of=RESULTS,
    ),
    _taken(
        "a field beside a key, twice",
        "named_struct('u', lo, 'v', z)",
        "q: p.u, r: value, s: upper(value)",
        "q: p.v, r: value, s: upper(value)",
        "refused",
        of=RESULTS,
    ),
    # Before what it can't make one with others fields alone are taken out, each once: NestedColumnAliasing.
    _taken("an element, moved", "array(n, m)", "q: 'p[0]'", "q: 'p[1]'", "from_now_on", behind=MOVED),
    _taken("how many there are, moved", "array(n, m)", "q: p", "q: size(p)", "from_now_on", behind=MOVED),
    _taken(
        "a field of an element, moved",
        f"array({PARTS})",
        "q: 'p[0].u'",
        "q: 'p[0].v'",
        "refused",
        behind=MOVED,
    ),
    _taken(
        "the same twice of one of two, moved",
        ONE_OF_TWO,
        "q: p.u, r: p.u + 1",
        "q: p.v, r: p.v + 1",
        "refused",
        behind=MOVED,
    ),
    _taken(
        "an element, joined with a table",
        "array(n, m)",
        "q: 'p[0]'",
        "q: 'p[1]'",
        "from_now_on",
        behind=WITH_A_TABLE,
    ),
    _greatest("another field", PARTS, "max(p.u)", "max(p.v)", "refused"),
    _greatest("the same twice", ONE_OF_TWO, "max(p.u) - min(p.u)", "max(p.v) - min(p.v)", "refused"),
]


PAIRS_IN_A_QUERY = "select value, READ from (select value, struct(n, m) as q from a join b on value = name)"
DEEPER = (
    "select value, READ from (select value, q.u as r from (select value, struct(struct(n, m) as u, m) as q from a "
    "join b on value = name))"
)
STEP_OF_RESULTS = (
    "with g as (select value, count(*) as c, sum(x) as z, min(n) as lo from a group by value), "
    "k as (select value, struct(c, z) as p, lo from g) select value, READ from k"
)
RESULTS_PUT_TOGETHER = "select value, READ from (select value, struct(count(*) as c, sum(x) as z) as p from a group by valueHAVING)"
GROUPED = (
    "  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: "
    "{p: 'struct(count(*) as c, sum(x) as z)', lo: min(n)}}}\n"
)
MORE_THAN_ONE = "  f: {gem: filter, input: g, options: {condition: lo > 1}}\n"


def _within(name: str, query: str, old: str, new: str, verdict: str, having: str = "") -> Pushed:
    """What a query takes out of what a query in it puts together."""
    joined = " join b " in query
    before, after = (
        f'  t: {{gem: sql, inputs: {"[a, b]" if joined else "[a]"}, options: {{query: "{text}"}}}}\n'
        for text in (
            query.replace("READ", old).replace("HAVING", ""),
            query.replace("READ", new).replace("HAVING", having),
        )
    )
    return Pushed(f"within a query, {name}", before, after, verdict, "", "append" if joined else "update")


WITHIN = [
    _within("another field", PAIRS_IN_A_QUERY, "q.n", "q.m", "refused"),
    _within("all fields", PAIRS_IN_A_QUERY, "q.n", "q", "refused"),
    _within("another field, deeper", DEEPER, "r.n", "r.m", "refused"),
    _within("another one of results", STEP_OF_RESULTS, "p.c", "p.z", "refused"),
    _within("results in another order", STEP_OF_RESULTS, "p.c, lo", "lo, p.c", "refused"),
    _within("another one, of results put together in groups", RESULTS_PUT_TOGETHER, "p.c", "p.z", "refused"),
    _within("two of them in another order", RESULTS_PUT_TOGETHER, "p.c, p.z", "p.z, p.c", "continues"),
    _within(
        "one of them, with a condition", RESULTS_PUT_TOGETHER, "p.c", "p.c", "refused", " having count(*) > 1"
    ),
    Pushed(
        "another one of results put together in groups",
        GROUPED + _select("value: value, q: p.c", "g"),
        GROUPED + _select("value: value, q: p.z", "g"),
        "refused",
        "",
        "update",
    ),
    # Between groups and what is read of them a condition keeps Spark from making one of both.
    Pushed(
        "one of results put together in groups, with a condition",
        GROUPED + _select("value: value, q: p.c", "g"),
        GROUPED + MORE_THAN_ONE + _select("value: value, q: p.c", "f"),
        "refused",
        "",
        "update",
    ),
]


NESTED = [
    *TAKEN_OUT,
    *WITHIN,
    # Spark makes one of groups and a struct of their results where no more than one of those is taken out.
    _results("one of two", "q: p.c, r: p.z", "q: p.c", "refused"),
    _results("one behind another result", "q: z, r: p.c", "r: p.c, q: z", "refused"),
    _results("one behind another result, and all", "q: z, r: p.c", "q: z, r: p.c, s: p", "refused"),
    _results("one behind itself", "q: z, r: p.z", "r: p.z, q: z", "continues"),
    _results("another one of two", "q: p.c, r: p.z", "q: p.c, r: p.lo", "from_now_on"),
    _results("one of two", "q: p.c, r: p.z", "q: p.c", "refused", pairs=True),
    _results("another one", "q: p.c", "q: p.z", "refused", pairs=True),
    _results("another one of two", "q: p.c, r: p.z", "q: p.c, r: p.lo", "from_now_on", pairs=True),
    _results("the same, moved", "q: p.c, r: p.z", "q: p.c, r: p.z", "refused", pairs=True, moved=True),
    # Spark keeps those fields of a column that somebody reads, each where the column was: NestedColumnAliasing.
    _reads("another field of another type", "q: p.n, m: m", "q: p.x, m: m", "refused"),
    _reads("another field of one type", "q: p.n, m: m", "q: p.k, m: m", "mixed"),
    _reads("a field more", "q: p.n, m: m", "q: p.n, r: p.k, m: m", "refused"),
    _reads(
        "a field more that is all there is", "q: p.n, r: p.x, m: m", "q: p.n, r: p.x, s: p.k, m: m", "refused"
    ),
    _reads(
        "a column beside all of its fields",
        "q: p.n, r: p.x, s: p.k",
        "q: p.n, r: p.x, s: p.k, v: p",
        "from_now_on",
    ),
    _reads("a column beside one of its fields", "q: p.n, m: m", "q: p.n, r: p, m: m", "refused"),
    _reads("fields of one type in another order", "q: p.n, r: p.k, m: m", "r: p.k, q: p.n, m: m", "mixed"),
    _reads(
        "fields of other types in another order", "q: p.n, r: p.x, m: m", "r: p.x, q: p.n, m: m", "refused"
    ),
    _reads("the same field in an expression", "q: p.n, m: m", "q: p.n + 1, m: m", "from_now_on"),
    _reads("another field in an expression", "q: p.n, m: m", "q: p.x + 1, m: m", "refused"),
    _reads(
        "another field that is filled",
        "q: 'coalesce(p.n, 0)'",
        "q: 'coalesce(p.k, 0)'",
        "mixed",
        made=TEXT,
    ),
    _reads(
        "another field beside whether there is one",
        "q: p is null, r: p.n",
        "q: p is null, r: p.x",
        "from_now_on",
        made=TEXT,
    ),
    _reads(
        "another field beside whether there is one that never lacks",
        "q: p is null, r: p.n",
        "q: p is null, r: p.x",
        "refused",
    ),
    _reads(
        "another field beside all, packed", "q: to_json(p), r: p.n", "q: to_json(p), r: p.x", "from_now_on"
    ),
    _reads(
        "another field, of all rows",
        "q: p.n, m: m",
        "q: p.k, m: m",
        "mixed",
        joined=LEFT_JOIN.replace("l: w", "l: o"),
        made=FIELDS.replace("INPUT", "w"),
    ),
    _reads("another field within one", "r: p.q.k, m: m", "r: p.n, m: m", "mixed", made=INNER),
    _reads(
        "a struct beside one of its fields, within one",
        "r: p.q.k, m: m",
        "r: p.q.k, s: p.q, m: m",
        "refused",
        made=INNER,
    ),
    _reads(
        "another field within one, in two steps",
        "r: q.k, m: m",
        "r: q.x, m: m",
        "refused",
        made=INNER,
        behind=_select("q: p.q, m: m", "j", "z"),
    ),
    _reads(
        "the end of a window for its beginning",
        "q: p.start, m: m",
        "q: p.end, m: m",
        "mixed",
        made=MARKED + WINDOWS,
    ),
    _reads(
        "another field behind a rename",
        "q: pp.n, m: m",
        "q: pp.k, m: m",
        "mixed",
        behind="  z: {gem: rename, input: j, options: {columns: {p: pp}}}\n",
    ),
    _reads(
        "another field behind a condition of pairs",
        "q: p.n, m: m",
        "q: p.x, m: m",
        "refused",
        behind="  z: {gem: filter, input: j, options: {condition: p.n > m}}\n",
    ),
    _reads(
        "another field behind a table",
        "q: p.n, k: k",
        "q: p.x, k: k",
        "refused",
        behind=TABLE.replace("BEFORE", "j").replace("  k:", "  z:"),
    ),
    _reads(
        "another field behind a limit",
        "q: p.n, m: m",
        "q: p.x, m: m",
        "refused",
        behind="  z: {gem: limit, input: j, options: {rows: 3}}\n",
    ),
    _reads(
        "another field behind another join", "q: p.n, u: u", "q: p.x, u: u", "refused", behind=OTHER + SECOND
    ),
    _reads(
        "another field of a key",
        "q: p.n, m: m",
        "q: p.x, m: m",
        "refused",
        joined=JOIN_BY_NUMBER.replace("l: a", "l: o").replace("l.n", "l.p.n"),
    ),
    _reads(
        "no more a field that is a key",
        "q: p.n, m: m",
        "m: m",
        "from_now_on",
        joined=JOIN_BY_NUMBER.replace("l: a", "l: o").replace("l.n", "l.p.n"),
    ),
    _reads(
        "another field of a struct put together of some",
        "q: z.n, v: v",
        "q: z.m, v: v",
        "refused",
        made=TEXT,
        behind=_select("z: 'struct(p.n as n, p.x as m)', v: value", "j", "s0"),
    ),
    # What a watermark, or an unpivot, hands on it takes whole.
    _reads(
        "another field behind a watermark",
        "q: p.n, at: at",
        "q: p.x, at: at",
        "from_now_on",
        behind="  z: {gem: watermark, input: j, options: {column: at, delay: 10 minutes}}\n",
    ),
    _reads(
        "another field behind an unpivot",
        "q: p.n, v: value",
        "q: p.x, v: value",
        "from_now_on",
        behind="  z: {gem: unpivot, input: j, options: {ids: [p], values: [n, m]}}\n",
    ),
    _queries(
        "another field in groups behind a join",
        "select value, max(p.n) as c from j group by value",
        "select value, max(p.x) as c from j group by value",
        "refused",
        made=FIELDS,
        joined=JOINED,
        mode="update",
    ),
    _queries(
        "another field asked for by a query's condition of pairs",
        "select p.n as q from o join b on value = name",
        "select p.n as q from o join b on value = name and p.x > y",
        "refused",
        made=TEXT,
        joined="",
    ),
    _queries(
        "another field behind a query's join",
        "select p.n as q from o join b on value = name",
        "select p.k as q from o join b on value = name",
        "mixed",
        made=TEXT,
        joined="",
    ),
    _elements("another field of one type", "q: e.n, m: m", "q: e.k, m: m", "mixed"),
    _elements("two fields for one", "q: e.n, m: m", "q: e.n, r: e.x, m: m", "refused"),
    _elements("none for one", "q: e.n, m: m", "m: m", "refused"),
    # Of what is put together behind a join Spark keeps what is read of it.
    *(
        _reads(
            f"another part of {name} put together behind a join",
            f"q: {old}",
            f"q: {new}",
            "refused",
            made="",
            joined=JOIN,
            behind=f'  z: {{gem: with_columns, input: j, options: {{columns: {{p: "{made}"}}}}}}\n',
        )
        for name, made, old, new in (
            ("a struct", "struct(n, m, x)", "p.n", "p.m"),
            ("a struct with names", "named_struct('u', n, 'v', m)", "p.u", "p.v"),
            ("an array", "array(n, m)", '"p[0]"', '"p[1]"'),
            ("a map", "map('u', n, 'v', m)", "\"p['u']\"", "\"p['v']\""),
        )
    ),
    _reads(
        "another field of a struct of which the type isn't known",
        "t: p.at",
        "t: p.later",
        "mixed",
        made=FIELDS.replace("struct(n, x, n * 2 as k)", "struct(at, n, timestampadd(HOUR, 1, at) as later)"),
    ),
    _reads(
        "another part of what is put together behind a join, and goes through a watermark",
        "q: p.n, at: at",
        "q: p.m, at: at",
        "from_now_on",
        made="",
        joined=JOIN,
        behind="  y: {gem: with_columns, input: j, options: {columns: {p: 'struct(n, m)'}}}\n"
        "  z: {gem: watermark, input: y, options: {column: at, delay: 10 minutes}}\n",
    ),
    # Branches that literals decide are none.
    _reads(
        "another branch that literals decide",
        "q: 'if(1 = 1, n, m)', v: value",
        "q: 'case when 1 = 2 then n else m end', v: value",
        "refused",
        made="",
        joined=JOIN,
    ),
    # Another column in the place of one.
    _reads(
        "another column of one type",
        "q: n, m: m",
        "q: k, m: m",
        "mixed",
        made="  o: {gem: with_columns, input: a, options: {columns: {k: n * 2 + 1}}}\n",
    ),
]
