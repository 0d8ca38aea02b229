"""What Spark keeps of pipelines: each was tried in Spark 4.2.

`tests/core/changes/test_kept.py` holds what `plan` thinks to it, `tests/integration/test_shaped.py` Spark.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.core.changes.pushed import MARKED, OTHER_MARKED, file_of, filter_of

BOTH_MARKED = MARKED + OTHER_MARKED
GROUPS = MARKED + (
    "  g: {gem: aggregate, input: w, options: {window: {column: at, duration: 1 hour}, group_by: [value, n], "
    "aggregates: {c: count(*)}}}\n"
)
COMPUTED = MARKED + (
    "  g: {gem: aggregate, input: w, options: {window: {column: at, duration: 1 hour}, aggregates: "
    "{n: first(value), h: count(*)}}}\n"
    "  c: {gem: with_columns, input: g, options: {columns: {k: \"concat(n, 'x')\"}}}\n"
)
RESULTS_ASKED = (
    "  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: {m: max(n), h: count(*), k: min(x)}}}\n"
    '  f: {gem: filter, input: g, options: {condition: "ASKED"}}\n'
    "  r: {gem: rename, input: f, options: {columns: {h: hx}}}\n"
    "  e: {gem: filter, input: r, options: {condition: hx <= m}}\n"
    "  z: {gem: select, input: e, options: {columns: [value, k]}}\n"
)


class Kept(NamedTuple):
    """A pipeline.

    Args:
        name: What it is about.
        steps: Its transforms.
        mode: The output mode of its target.
        operators: What is kept, operator by operator: the node, the types of its keys and those of its values.
    """

    name: str
    steps: str
    mode: str
    operators: tuple[tuple[str, str, str], ...]

    @property
    def file(self) -> str:
        """The pipeline file."""
        return file_of(self.steps, self.mode)


def _semi_join(left: str) -> str:
    return (
        f"  j: {{gem: join, inputs: {{l: {left}, r: v}}, options: {{how: left_semi, condition: l.value = r.name "
        "and r.seen >= l.at and r.seen <= l.at + interval 1 day}}\n"
    )


_BY_COMPUTED_TIME = (
    '  j: {gem: join, inputs: {l: BEFORE, r: b}, options: {condition: "l.value = r.name"}}\n'
    "  t: {gem: select, input: j, options: {columns: [value, n, m, seen, l.at + interval 1 month as c]}}\n"
) + filter_of("seen = c", "t")

PIPELINES = [
    *(
        Kept(
            f"columns in another order behind a limit, before a query that asks for {asked}",
            (
                "  z: {gem: limit, input: a, options: {rows: 3}}\n"
                "  u: {gem: select, input: z, options: {columns: [value, n, n + 1 as y]}}\n"
                "  o: {gem: select, input: u, options: {columns: [value, y, n]}}\n"
                '  t: {gem: sql, inputs: [o, b], options: {query: "select o.*, b.m from o join b on o.value = b.name '
                f'where {asked}"}}}}\n'
            ),
            "append",
            (("z", "", ""), ("t", "string", f"{value}; int; int; |; string; int; |")),
        )
        for asked, value in (("o.n > 0", "string"), ("b.m > 0", "string!"))
    ),
    Kept(
        "results in another order, unpivoted, and a condition on what comes of that",
        (
            "  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: {m: avg(x), c: count(n)}}}\n"
            "  o: {gem: select, input: g, options: {columns: [c, m]}}\n"
            "  u: {gem: unpivot, input: o, options: {values: [m, c]}}\n"
        )
        + filter_of("value >= 1", "u"),
        "update",
        (("g", "string", "bigint!; double; bigint"),),
    ),
    *(
        Kept(
            f"groups by one value beside {computed}",
            f'  g: {{gem: aggregate, input: a, options: {{group_by: {{k: "hash(42)", v: value}}, aggregates: '
            f'{{c: "{computed}"}}}}}}\n',
            "complete",
            (("g", keys, "bigint!"),),
        )
        for computed, keys in (
            ("count(*)", "string"),
            ("count_if(n > 1)", "int; string"),
            ("count(*) filter (where n between 1 and 2)", "int; string"),
            ("count(nullif(n, 1))", "int; string"),
            ("count(if(value = 'between', 1, n))", "string"),
        )
    ),
    Kept(
        "groups of a query by one value",
        (
            '  g: {gem: sql, input: a, options: {query: "select value, hash(42) as k, count(*) between 1 and 2 as q '
            'from a group by value, hash(42)"}}\n'
        ),
        "complete",
        (("g", "string; int", "bigint!"),),
    ),
    Kept(
        "blocks of two types",
        (
            "  c: {gem: select, input: a, options: {columns: [value, n as k]}}\n"
            "  d: {gem: select, input: b, options: {columns: [name as value, cast(m as bigint) as k]}}\n"
            "  u: {gem: fuzzy_match, inputs: [c, d], options: {id: value, fields: {value: {}}, block_by: [k]}}\n"
        ),
        "append",
        (("u", "bigint", "left string; right string; left string; right string; left int; right bigint"),),
    ),
    Kept(
        "a time some units later that is joined",
        (
            '  c: {gem: sql, input: a, options: {query: "select value, n, timestampadd(HOUR, 1, at) as t from a"}}\n'
            "  j: {gem: join, inputs: {l: c, r: b}, options: {condition: l.n = r.m}}\n"
        ),
        "append",
        (("j", "int", "string; int; timestamp; |; string; timestamp; int; double; |"),),
    ),
    Kept(
        "a condition on what is computed of event time behind a join",
        MARKED + _BY_COMPUTED_TIME.replace("BEFORE", "w"),
        "append",
        (("j", "string; None", "string; timestamp!; int; |; string; timestamp; int; |"),),
    ),
    Kept(
        "a condition on what is computed of any time behind a join",
        _BY_COMPUTED_TIME.replace("BEFORE", "a"),
        "append",
        (("j", "string; None", "string; timestamp; int; |; string; timestamp; int; |"),),
    ),
    Kept(
        "the nulls of two tables that are compared",
        (
            '  t: {gem: sql, input: a, options: {query: "select l.* from a l join a r on '
            'l.n > r.n and l.value <=> r.value"}}\n'
        ),
        "append",
        (("t", "string; boolean", "string; timestamp; int; double; |; string; int; |"),),
    ),
    Kept(
        "a condition that asks whether a list is null",
        (
            '  t: {gem: sql, input: a, options: {query: "select value from (select value, '
            'collect_list(n) as m, max(n) as h from a group by value) q where m is null"}}\n'
        ),
        "complete",
        (("t", "string", ""),),
    ),
    Kept(
        "a list that is never null and comes out",
        (
            '  t: {gem: sql, input: a, options: {query: "select value, m from (select '
            "value, collect_list(n) as m, collect_set(n) as h from a group by value) q "
            'where h is null"}}\n'
        ),
        "complete",
        (("t", "string", "binary"),),
    ),
    Kept(
        "exploded results of an inner query",
        (
            '  t: {gem: sql, input: a, options: {query: "select value, e from (select '
            "value, collect_list(n) as m from a group by value) q lateral view explode(m) "
            'x as e where m is not null"}}\n'
        ),
        "complete",
        (("t", "?", "binary"),),
    ),
    Kept(
        "a semi join before each table of another join",
        BOTH_MARKED
        + _semi_join("w")
        + (
            '  t: {gem: sql, input: j, options: {query: "select r.n, l.x as y from j l '
            'join j r on l.n = r.n"}}\n'
        ),
        "append",
        (
            ("j", "string", "string; timestamp!; int; |; string; timestamp!; |"),
            ("j", "string", "string; timestamp!; int; double; |; string; timestamp!; |"),
            ("t", "int", "int; double; |; int; |"),
        ),
    ),
    Kept(
        "groups before each table of a join",
        (
            '  g: {gem: sql, input: a, options: {query: "select value, count(n) as n, '
            'sum(x) as total from a group by value"}}\n'
        )
        + (
            '  t: {gem: sql, input: g, options: {query: "select l.* from g l join g r on '
            'l.total = r.total"}}\n'
        ),
        "update",
        (
            ("g", "string", "double"),
            ("g", "string", "bigint!; double"),
            ("t", "double", "string; bigint!; double!; |; double!; |"),
        ),
    ),
    Kept(
        "a copy before a semi join",
        BOTH_MARKED
        + ('  c: {gem: with_columns, input: w, options: {columns: {k: n, z: "1"}}}\n')
        + _semi_join("c"),
        "append",
        (("j", "string", "string; timestamp!; int; double; |; string; timestamp!; |"),),
    ),
    Kept(
        "what is computed before a semi join",
        BOTH_MARKED
        + ('  c: {gem: with_columns, input: w, options: {columns: {k: n, z: "n + 1"}}}\n')
        + _semi_join("c"),
        "append",
        (("j", "string", "string; timestamp; int; double; int; int; |; string; timestamp!; |"),),
    ),
    Kept(
        "copies of what is computed before a semi join",
        BOTH_MARKED
        + ('  c: {gem: with_columns, input: w, options: {columns: {z: "n + 1"}}}\n')
        + ('  d: {gem: with_columns, input: c, options: {columns: {y: z, q: "null"}}}\n')
        + _semi_join("d"),
        "append",
        (("j", "string", "string; timestamp; int; double; int; |; string; timestamp!; |"),),
    ),
    Kept(
        "a copy, a condition and a semi join",
        BOTH_MARKED
        + ("  c: {gem: with_columns, input: w, options: {columns: {k: n}}}\n")
        + ("  f: {gem: filter, input: c, options: {condition: k > 1}}\n")
        + _semi_join("f"),
        "append",
        (("j", "string", "string; timestamp!; int; double; |; string; timestamp!; |"),),
    ),
    Kept(
        "a copy, partitions and a semi join",
        BOTH_MARKED
        + ("  c: {gem: with_columns, input: w, options: {columns: {k: n}}}\n")
        + ("  f: {gem: repartition, input: c, options: {partitions: 4, columns: [k]}}\n")
        + _semi_join("f"),
        "append",
        (("j", "string", "string; timestamp!; int; double; |; string; timestamp!; |"),),
    ),
    Kept(
        "a constant that is worked out before a semi join",
        BOTH_MARKED
        + ('  c: {gem: with_columns, input: w, options: {columns: {k: "1 + 2"}}}\n')
        + _semi_join("c"),
        "append",
        (("j", "string", "string; timestamp!; int; double; |; string; timestamp!; |"),),
    ),
    Kept(
        "a constant that is worked out beside what is computed",
        BOTH_MARKED
        + ('  b2: {gem: with_columns, input: w, options: {columns: {z: "n * 2"}}}\n')
        + ('  c: {gem: with_columns, input: b2, options: {columns: {k: "1 + 2", l: n}}}\n')
        + _semi_join("c"),
        "append",
        (("j", "string", "string; timestamp; int; double; int; int!; int; |; string; timestamp!; |"),),
    ),
    Kept(
        "other names before a semi join that a query names last",
        BOTH_MARKED
        + ("  c: {gem: select, input: w, options: {columns: [value as x1, at as t, n, n as m1]}}\n")
        + ("  d: {gem: select, input: c, options: {columns: [x1 as x2, t, m1, n]}}\n")
        + (
            '  j: {gem: sql, inputs: [v, d], options: {query: "select x2, m1 from d left '
            'semi join v on x2 = name and seen >= t and seen <= t + interval 1 day"}}\n'
        ),
        "append",
        (("j", "string", "string; timestamp!; int; |; string; timestamp!; |"),),
    ),
    Kept(
        "what is united before a semi join",
        BOTH_MARKED
        + ("  c: {gem: select, input: w, options: {columns: [value, at, n, n as m1]}}\n")
        + ('  e: {gem: select, input: w, options: {columns: [value, at, n, "1 as m1"]}}\n')
        + ("  u: {gem: union, inputs: [c, e]}\n")
        + _semi_join("u"),
        "append",
        (
            ("j", "string", "string; timestamp!; int; |; string; timestamp!; |"),
            ("j", "string", "string; timestamp!; int; |; string; timestamp!; |"),
        ),
    ),
    Kept(
        "a key that is found to be a constant",
        (
            "  g: {gem: aggregate, input: a, options: {group_by: {value: value, k: "
            '"if(false, n, 3)", l: "if(false, n, 3)"}, aggregates: {c: count(*)}}}\n'
        ),
        "complete",
        (("g", "string; int", "bigint!"),),
    ),
    Kept(
        "a key that is a constant",
        (
            '  g: {gem: aggregate, input: a, options: {group_by: {value: value, k: "date '
            "'2024-01-31' >= '2024-01-01'\"}, aggregates: {c: count(*)}}}\n"
        ),
        "complete",
        (("g", "string", "bigint!"),),
    ),
    Kept(
        "a key that is equal to itself",
        (
            "  g: {gem: aggregate, input: a, options: {group_by: {value: value, k: n <=> "
            "n}, aggregates: {c: count_if(n <=> n), d: count(*)}}}\n"
        ),
        "complete",
        (("g", "string; boolean", "bigint!; bigint!"),),
    ),
    Kept(
        "each once behind a condition on groups",
        GROUPS
        + ("  f: {gem: filter, input: g, options: {condition: c > 1}}\n")
        + ('  d: {gem: sql, input: f, options: {query: "select distinct window, value, n, c from f"}}\n'),
        "append",
        (("g", "struct<timestamp, timestamp>; string; int", "bigint!"),),
    ),
    Kept(
        "each once by other names",
        GROUPS
        + ("  f: {gem: rename, input: g, options: {columns: {value: v}}}\n")
        + ('  d: {gem: sql, input: f, options: {query: "select distinct * from f"}}\n'),
        "append",
        (("g", "struct<timestamp, timestamp>; string; int", "bigint!"),),
    ),
    Kept(
        "each once without one of the keys",
        GROUPS
        + ("  f: {gem: select, input: g, options: {columns: [window, value, c]}}\n")
        + ('  d: {gem: sql, input: f, options: {query: "select distinct * from f"}}\n'),
        "append",
        (
            ("g", "struct<timestamp, timestamp>; string; int", "bigint!"),
            ("d", "struct<timestamp, timestamp>; string; bigint", ""),
        ),
    ),
    Kept(
        "each once with another key",
        GROUPS
        + ("  f: {gem: with_columns, input: g, options: {columns: {n: n + 1}}}\n")
        + ('  d: {gem: sql, input: f, options: {query: "select distinct * from f"}}\n'),
        "append",
        (
            ("g", "struct<timestamp, timestamp>; string; int", "bigint!"),
            ("d", "struct<timestamp, timestamp>; string; int; bigint", ""),
        ),
    ),
    Kept(
        "each once before what is grouped by something computed",
        GROUPS
        + ('  d: {gem: sql, input: g, options: {query: "select distinct * from g"}}\n')
        + (
            "  h: {gem: aggregate, input: d, options: {group_by: {z: n + 1, window: "
            "window}, aggregates: {c: count(*)}}}\n"
        ),
        "append",
        (
            ("g", "struct<timestamp, timestamp>; string; int", "bigint!"),
            ("d", "struct<timestamp, timestamp>; string; int; bigint", ""),
            ("h", "int; struct<timestamp, timestamp>", "bigint!"),
        ),
    ),
    Kept(
        "counts of constants",
        (
            "  g: {gem: aggregate, input: a, options: {group_by: [value], aggregates: {c: "
            "count_if(2 > 1), d: \"count_if('a' = 'b')\", e: count(null), f: "
            "\"count_if(concat('i', 't') like 'a%')\", h: count(1), i: count(-1), j: "
            "\"count('a')\"}}}\n"
        ),
        "complete",
        (("g", "string", "bigint!"),),
    ),
    Kept(
        "counts by a condition that asks for nulls of a pivot",
        MARKED
        + (
            "  g: {gem: aggregate, input: w, options: {window: {column: at, duration: 1 "
            "hour}, aggregates: {n: collect_list(value), m: stddev(n)}, pivot: {column: "
            "value, values: [a, b]}}}\n"
        )
        + (
            "  h: {gem: aggregate, input: g, options: {group_by: {window: window}, "
            "aggregates: {z: count(1) filter (where a_n is not null), y: count(1)}}}\n"
        ),
        "append",
        (
            ("g", "struct<timestamp, timestamp>", ""),
            ("h", "struct<timestamp, timestamp>", "bigint!"),
        ),
    ),
    Kept(
        "a condition on results that goes through groups",
        COMPUTED
        + (
            '  t: {gem: sql, input: c, options: {query: "select window, h, k, max(n) as m from c group by all"}}\n'
            '  f: {gem: sql, input: t, options: {query: "select window, k, max(m) as m, sum(h) as s from t where '
            'h > 1 group by window, k"}}\n'
        ),
        "append",
        (
            ("g", "struct<timestamp, timestamp>", "string; boolean!; bigint!"),
            ("t", "struct<timestamp, timestamp>; bigint; string", "string"),
            ("f", "struct<timestamp, timestamp>; string", "string; bigint"),
        ),
    ),
    Kept(
        "a condition on results of groups of results",
        COMPUTED
        + (
            '  t: {gem: sql, input: c, options: {query: "select window, h, k, max(n) as m from c group by all"}}\n'
            '  f: {gem: sql, input: t, options: {query: "select window, k, max(m) as m, sum(h) as s from t where '
            "m > 'a' group by window, k\"}}\n"
        ),
        "append",
        (
            ("g", "struct<timestamp, timestamp>", "string; boolean!; bigint!"),
            ("t", "struct<timestamp, timestamp>; bigint; string", "string"),
            ("f", "struct<timestamp, timestamp>; string", "string; bigint"),
        ),
    ),
    Kept(
        "a condition beside one that never holds",
        RESULTS_ASKED.replace("ASKED", "not (date(timestamp '2024-01-01 00:00:00') >= '2024-01-01')"),
        "complete",
        (("g", "string", "double"),),
    ),
    Kept(
        "a condition beside one that always holds",
        RESULTS_ASKED.replace("ASKED", "timestamp '2024-01-01 00:00:00' = '2024-01-01 00:00:00'"),
        "complete",
        (("g", "string", "int; bigint!; double"),),
    ),
]
