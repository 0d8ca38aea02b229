"""GB301 to GB309: queries and output modes."""

from __future__ import annotations

from gem_bundle.codes.code import error

QUERIES = (
    error(
        "GB301",
        "append can't emit rows that may still change",
        why="""
            In `append` mode a row is written once and never again, so a group can only be written when
            it is certain that it gets no more rows. A watermark on the event time gives that
            certainty, and it does so for groups that contain the event time itself or a window over
            it, as they are: any expression over the column (`date(at)`, `window.start`, a cast) has
            no watermark any more.

            Spark checks the aggregation nearest to the sink and fails at others when they are
            started; here all of them are checked.
        """,
        breaks="""
            transforms:
              counts:
                gem: aggregate
                input: ticks
                options:
                  window: {column: timestamp, duration: 1 minute}
                  aggregates: {rows: count(*)}
            targets:
              screen: {gem: console, input: counts}
        """,
        keeps="""
            transforms:
              timely:
                gem: watermark
                input: ticks
                options: {column: timestamp, delay: 10 minutes}
              counts:
                gem: aggregate
                input: timely
                options:
                  window: {column: timestamp, duration: 1 minute}
                  aggregates: {rows: count(*)}
            targets:
              screen: {gem: console, input: counts}
        """,
        source="Guide, Output Modes; Conditions for watermarking to clean aggregation state",
    ),
    error(
        "GB302",
        "complete needs an aggregation",
        why="""
            `complete` writes the whole result with every micro-batch, and Spark keeps a whole result for
            aggregations only: all rows that ever came would have to be kept otherwise.
        """,
        breaks="""
            targets:
              screen: {gem: console, input: ticks, output_mode: complete}
        """,
        keeps="""
            targets:
              screen: {gem: console, input: ticks, output_mode: append}
        """,
        source="Guide, Output Modes",
    ),
    error(
        "GB303",
        "the operator can't be emitted in that output mode",
        why="""
            `update` writes the rows that changed. A session that grows swallows others, which nobody
            can be told, so session windows need `append` or `complete`. A left, right or full join of
            two streams emits a row without a partner when none can come any more, which is a row that
            is added: it needs `append`. Inner and left semi joins of two streams take `append` and
            `update`; no join of two streams takes `complete`.
        """,
        breaks="""
            transforms:
              timely:
                gem: watermark
                input: ticks
                options: {column: timestamp, delay: 10 minutes}
              visits:
                gem: aggregate
                input: timely
                options:
                  session: {column: timestamp, gap: 5 minutes}
                  group_by: {digit: value % 10}
                  aggregates: {rows: count(*)}
            targets:
              screen: {gem: console, input: visits, output_mode: update}
        """,
        keeps="""
            transforms:
              timely:
                gem: watermark
                input: ticks
                options: {column: timestamp, delay: 10 minutes}
              visits:
                gem: aggregate
                input: timely
                options:
                  session: {column: timestamp, gap: 5 minutes}
                  group_by: {digit: value % 10}
                  aggregates: {rows: count(*)}
            targets:
              screen: {gem: console, input: visits, output_mode: append}
        """,
        source="Guide, Output Modes; Types of time windows; Support matrix for joins",
    ),
    error(
        "GB304",
        "a stream can't be sorted",
        why="""
            Sorting needs all rows, and a stream never has them. The one exception is the result of an
            aggregation in `complete` mode, which is whole in every micro-batch.
        """,
        breaks="""
            transforms:
              ordered: {gem: sort, input: ticks, options: {by: value desc}}
            targets:
              screen: {gem: console, input: ordered}
        """,
        keeps="""
            transforms:
              counts:
                gem: aggregate
                input: ticks
                options: {group_by: {digit: value % 10}, aggregates: {rows: count(*)}}
              ordered: {gem: sort, input: counts, options: {by: rows desc}}
            targets:
              screen: {gem: console, input: ordered, output_mode: complete}
        """,
        source="Guide, Unsupported Operations",
    ),
    error(
        "GB305",
        "the rows of a stream can't be limited in that way",
        why="""
            A limit lets the first rows of a stream through and nothing afterwards, which makes sense for
            rows that are added (`append`) and for a whole result (`complete`), but not for rows that
            change (`update`). An offset would skip rows whose order is never settled; Spark refuses it
            in every query with a stream, even over its static inputs.
        """,
        breaks="""
            transforms:
              some: {gem: limit, input: ticks, options: {rows: 10}}
            targets:
              screen: {gem: console, input: some, output_mode: update}
        """,
        keeps="""
            transforms:
              some: {gem: limit, input: ticks, options: {rows: 10}}
            targets:
              screen: {gem: console, input: some, output_mode: append}
        """,
        source="Guide, Unsupported Operations; Spark's UnsupportedOperationChecker",
    ),
    error(
        "GB306",
        "a stream has no distinct aggregates",
        why="""
            `count(distinct …)` and its kind need every value that ever came. `approx_count_distinct`
            keeps a sketch of fixed size instead; where each value is to count once within a time,
            remove duplicates first.
        """,
        breaks="""
            transforms:
              counts:
                gem: aggregate
                input: ticks
                options: {aggregates: {values: count(distinct value)}}
            targets:
              screen: {gem: console, input: counts, output_mode: update}
        """,
        keeps="""
            transforms:
              counts:
                gem: aggregate
                input: ticks
                options: {aggregates: {values: approx_count_distinct(value)}}
            targets:
              screen: {gem: console, input: counts, output_mode: update}
        """,
        source="Guide, Unsupported Operations",
    ),
    error(
        "GB307",
        "a stream has no window functions",
        why="""
            `row_number() over (…)` and its kind look at all rows of a partition in an order, and of a
            stream more rows may come at any time. Time windows (the gem `aggregate`) are another thing
            and work. Within one micro-batch, `foreach_batch` can use window functions.
        """,
        breaks="""
            transforms:
              numbered:
                gem: with_columns
                input: ticks
                options: {columns: {place: row_number() over (order by value)}}
            targets:
              screen: {gem: console, input: numbered}
        """,
        keeps="""
            transforms:
              numbered:
                gem: with_columns
                input: ticks
                options: {columns: {place: value + 1}}
            targets:
              screen: {gem: console, input: numbered}
        """,
        source="Guide, Unsupported Operations: non-time windows",
    ),
    error(
        "GB308",
        "operators with state follow each other in a mode that loses rows",
        why="""
            In `update` and `complete` an aggregation emits results that change later, with times that may
            lie behind the watermark. A second aggregation, join or deduplication behind it would drop
            those as late rows, so Spark allows the chain in `append` only.
            `spark.sql.streaming.statefulOperator.checkCorrectness.enabled: false` runs it nevertheless.
        """,
        breaks="""
            transforms:
              digits:
                gem: aggregate
                input: ticks
                options: {group_by: {digit: value % 10}, aggregates: {rows: count(*)}}
              sizes:
                gem: aggregate
                input: digits
                options: {group_by: [rows], aggregates: {digits: count(*)}}
            targets:
              screen: {gem: console, input: sizes, output_mode: update}
        """,
        keeps="""
            transforms:
              timely:
                gem: watermark
                input: ticks
                options: {column: timestamp, delay: 10 minutes}
              minutes:
                gem: aggregate
                input: timely
                options:
                  window: {column: timestamp, duration: 1 minute}
                  aggregates: {rows: count(*)}
              hours:
                gem: aggregate
                input: minutes
                options:
                  window: {column: window, duration: 1 hour}
                  aggregates: {most: max(rows)}
            targets:
              screen: {gem: console, input: hours, output_mode: append}
        """,
        source="Guide, Policy for multiple stateful operations: Unsupported Operations, chained operators",
    ),
    error(
        "GB309",
        "an operation that streams don't have",
        why="""
            A stream can't be sampled or intersected, it can't stand on the right of `except`, and
            `monotonically_increasing_id()` would begin anew with every micro-batch. Spark refuses them in
            every output mode.
        """,
        breaks="""
            transforms:
              numbered:
                gem: with_columns
                input: ticks
                options: {columns: {id: monotonically_increasing_id()}}
            targets:
              screen: {gem: console, input: numbered}
        """,
        keeps="""
            transforms:
              numbered:
                gem: with_columns
                input: ticks
                options: {columns: {id: uuid()}}
            targets:
              screen: {gem: console, input: numbered}
        """,
        source="Guide, Unsupported Operations; Spark's UnsupportedOperationChecker",
    ),
)
