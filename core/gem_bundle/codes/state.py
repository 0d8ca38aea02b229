"""GB327 to GB339: state and watermarks."""

from __future__ import annotations

from gem_bundle.codes.code import error, note, warning

STATE = (
    error(
        "GB327",
        "duplicates are removed within a watermark, and there is none",
        why="""
            `within_watermark` remembers a row, and in `expect` a value, for as long as the watermark's delay.
            Without a watermark on a column of the input there is nothing to be within, and Spark refuses the
            query. An expression, a cast or a `select` that leaves the column out loses it.
        """,
        breaks="""
            transforms:
              once:
                gem: deduplicate
                input: ticks
                options: {columns: value, within_watermark: true}
            targets:
              screen: {gem: console, input: once}
        """,
        keeps="""
            transforms:
              timely:
                gem: watermark
                input: ticks
                options: {column: timestamp, delay: 1 hour}
              once:
                gem: deduplicate
                input: timely
                options: {columns: value, within_watermark: true}
            targets:
              screen: {gem: console, input: once}
        """,
        source="Guide, Streaming Deduplication",
    ),
    warning(
        "GB328",
        "a deduplication keeps what it has seen for ever",
        why="""
            To know a duplicate, Spark remembers what it has seen: for ever, unless the columns that are
            compared include event time with a watermark, or `within_watermark` is set. Nothing is said
            when the query starts, and the state store fills over months.
        """,
        breaks="""
            transforms:
              once: {gem: deduplicate, input: ticks, options: {columns: value}}
            targets:
              screen: {gem: console, input: once}
        """,
        keeps="""
            transforms:
              timely:
                gem: watermark
                input: ticks
                options: {column: timestamp, delay: 1 hour}
              once:
                gem: deduplicate
                input: timely
                options: {columns: value, within_watermark: true}
            targets:
              screen: {gem: console, input: once}
        """,
        source="Guide, Streaming Deduplication",
    ),
    error(
        "GB329",
        "a second watermark on a stream",
        why="""
            A stream has one watermark. A second one on the way, on the same column or another, passes Spark's
            checks, and the query fails as soon as the first one advances ("Redefining watermark is
            disallowed"). Behind an aggregation in `append` mode it waits for ever instead: the query goes by
            the slower of the two, and the second one gets its first row only when the first has
            advanced. Two streams that are joined or put together have one each, which is fine.

            `spark.sql.streaming.statefulOperator.allowMultiple: false` brings back the older behaviour,
            in which the last one counts.
        """,
        breaks="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}
              later: {gem: watermark, input: timely, options: {column: timestamp, delay: 1 hour}}
              once:
                gem: deduplicate
                input: later
                options: {columns: value, within_watermark: true}
            targets:
              screen: {gem: console, input: once}
        """,
        keeps="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 hour}}
              once:
                gem: deduplicate
                input: timely
                options: {columns: value, within_watermark: true}
            targets:
              screen: {gem: console, input: once}
        """,
        source="Spark's WatermarkPropagator, when the query runs",
    ),
    error(
        "GB330",
        "a stateful processor and the time it goes by don't fit",
        why="""
            A column that `event_time` marks goes by the watermark of a column that comes in, so there must be
            one. Timers of `time: event` do so too: without a watermark none is ever due, which is a warning.
            With `time: none` there are no timers, which is a warning too, as a class may never come to set
            one; and a time to live of state is for `time: processing` alone. Spark says so when it happens.
            What a class asks for is read in its source, which isn't imported.
        """,
        breaks="""
            transforms:
              quiet:
                gem: stateful
                input: ticks
                options:
                  processor: devices:Silence
                  group_by: value
                  schema: value bigint, at timestamp
                  event_time: at
            targets:
              screen: {gem: console, input: quiet}
        """,
        keeps="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}
              quiet:
                gem: stateful
                input: timely
                options:
                  processor: devices:Silence
                  group_by: value
                  schema: value bigint, at timestamp
                  event_time: at
            targets:
              screen: {gem: console, input: quiet}
        """,
        source="Spark: StatefulProcessorHandleImpl, when a query runs",
    ),
    warning(
        "GB331",
        "windows are kept for ever",
        why="""
            Time goes on, so there are ever more windows. In `complete` mode Spark keeps all of them, and
            writes all of them with every micro-batch, watermark or not; in `update` mode it keeps them
            until a watermark on their event time says that they are over.
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
              screen: {gem: console, input: counts, output_mode: update}
        """,
        keeps="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}
              counts:
                gem: aggregate
                input: timely
                options:
                  window: {column: timestamp, duration: 1 minute}
                  aggregates: {rows: count(*)}
            targets:
              screen: {gem: console, input: counts, output_mode: update}
        """,
        source="Guide, Conditions for watermarking to clean aggregation state",
    ),
    note(
        "GB332",
        "several watermarks become one",
        why="""
            A query has one watermark for all its operators. It is the slowest of those of its streams, so
            a stream without new rows holds back the results of the others; with
            `spark.sql.streaming.multipleWatermarkPolicy: max` it is the fastest, and rows of the slower
            streams are dropped as late.
        """,
        breaks="""
            sources:
              ads: {gem: rate}
              clicks: {gem: rate}
            transforms:
              shown: {gem: watermark, input: ads, options: {column: timestamp, delay: 1 minute}}
              clicked: {gem: watermark, input: clicks, options: {column: timestamp, delay: 1 hour}}
              all: {gem: union, inputs: [shown, clicked]}
              once:
                gem: deduplicate
                input: all
                options: {columns: value, within_watermark: true}
            targets:
              screen: {gem: console, input: once}
        """,
        keeps="""
            sources:
              ads: {gem: rate}
              clicks: {gem: rate}
            transforms:
              all: {gem: union, inputs: [ads, clicks]}
              timely: {gem: watermark, input: all, options: {column: timestamp, delay: 1 hour}}
              once:
                gem: deduplicate
                input: timely
                options: {columns: value, within_watermark: true}
            targets:
              screen: {gem: console, input: once}
        """,
        source="Guide, Policy for handling multiple watermarks",
    ),
    note(
        "GB333",
        "a watermark with a delay of zero",
        why="""
            The watermark is the newest event time of the earlier micro-batches less the delay. With none, a
            row that is only a little older than the newest one is late, and what comes behind drops
            it. That suits streams whose rows come strictly in order.
        """,
        breaks="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 0 seconds}}
              once:
                gem: deduplicate
                input: timely
                options: {columns: value, within_watermark: true}
            targets:
              screen: {gem: console, input: once}
        """,
        keeps="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}
              once:
                gem: deduplicate
                input: timely
                options: {columns: value, within_watermark: true}
            targets:
              screen: {gem: console, input: once}
        """,
        source="Guide, Handling Late Data and Watermarking",
    ),
    note(
        "GB334",
        "a delay of very many windows",
        why="""
            The delay of a watermark is how long Spark waits for late rows: so long a window stays in the
            state, and so much later `append` writes its result. When it is more than sixty times the length
            of the windows, one of the two units is often a slip.
        """,
        breaks="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 10 days}}
              counts:
                gem: aggregate
                input: timely
                options:
                  window: {column: timestamp, duration: 1 minute}
                  aggregates: {rows: count(*)}
            targets:
              screen: {gem: console, input: counts}
        """,
        keeps="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 10 minutes}}
              counts:
                gem: aggregate
                input: timely
                options:
                  window: {column: timestamp, duration: 1 minute}
                  aggregates: {rows: count(*)}
            targets:
              screen: {gem: console, input: counts}
        """,
        source="Guide, Handling Late Data and Watermarking",
    ),
    warning(
        "GB335",
        "a watermark without effect",
        why="""
            A watermark only tells operators with state what they may forget, and only those that go by the
            column that carries it. A `select` that leaves the column out, an expression over it, a
            grouping by something else: then the state grows as if there were no watermark. Where
            nothing keeps state at all, it does nothing, and this is a note.
        """,
        breaks="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}
              counts:
                gem: aggregate
                input: timely
                options: {group_by: {digit: value % 10}, aggregates: {rows: count(*)}}
            targets:
              screen: {gem: console, input: counts, output_mode: update}
        """,
        keeps="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}
              counts:
                gem: aggregate
                input: timely
                options:
                  window: {column: timestamp, duration: 1 minute}
                  group_by: {digit: value % 10}
                  aggregates: {rows: count(*)}
            targets:
              screen: {gem: console, input: counts, output_mode: update}
        """,
        source="Guide, Conditions for watermarking to clean aggregation state",
    ),
    error(
        "GB336",
        "sessions are the only group of a stream",
        why="""
            A session window alone would make one group of the whole stream, which Spark has no plan for: its
            checks let it pass, and the query fails when it is started. Group by what has the sessions, a
            user or a device, too. A literal beside them (`group_by: {kind: "'all'"}`) makes no
            difference, nor does it matter where the session windows were made.
        """,
        breaks="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}
              visits:
                gem: aggregate
                input: timely
                options:
                  session: {column: timestamp, gap: 5 minutes}
                  aggregates: {rows: count(*)}
            targets:
              screen: {gem: console, input: visits}
        """,
        keeps="""
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: timestamp, delay: 1 minute}}
              visits:
                gem: aggregate
                input: timely
                options:
                  session: {column: timestamp, gap: 5 minutes}
                  group_by: {visitor: value % 10}
                  aggregates: {rows: count(*)}
            targets:
              screen: {gem: console, input: visits}
        """,
        source="Guide, Types of time windows: session windows in streaming queries",
    ),
    error(
        "GB337",
        "several columns with a watermark where one must decide",
        why="""
            An aggregation, a deduplication and a join of streams each go by one event time: by it they tell
            late rows and what may be forgotten. Where several columns with a watermark reach them, Spark's
            checks say nothing, and the query fails as soon as it is started ("More than one event time
            columns are available").

            That happens behind a join, to which both streams brought a watermark; to a window together
            with the time that it is over; and to a copy, which is event time as well. Of an aggregation
            (in `append` and `update`, with sessions in `complete` too) the groups count; of a
            deduplication and of each input of a join all columns do that are still used: what the
            deduplication compares, what comes out at the target. What nobody uses behind it Spark
            leaves out by itself.

            A column that is computed carries no watermark: `at + interval 0 seconds` is the same time
            without. A cast to the same type isn't enough, since Spark takes it out again.
            `spark.sql.streaming.statefulOperator.allowMultiple: false` brings back the older behaviour,
            in which the first of them counts, except for `within_watermark`.
        """,
        breaks="""
            sources:
              ads: {gem: rate}
              clicks: {gem: rate}
            transforms:
              shown: {gem: watermark, input: ads, options: {column: timestamp, delay: 1 hour}}
              clicked: {gem: watermark, input: clicks, options: {column: timestamp, delay: 1 hour}}
              paired:
                gem: join
                inputs: [shown, clicked]
                options: {condition: shown.value = clicked.value and shown.timestamp = clicked.timestamp}
              chosen:
                gem: select
                input: paired
                options:
                  columns: {value: shown.value, shown_at: shown.timestamp, clicked_at: clicked.timestamp}
              once:
                gem: deduplicate
                input: chosen
                options: {columns: value, within_watermark: true}
            targets:
              screen: {gem: console, input: once}
        """,
        keeps="""
            sources:
              ads: {gem: rate}
              clicks: {gem: rate}
            transforms:
              shown: {gem: watermark, input: ads, options: {column: timestamp, delay: 1 hour}}
              clicked: {gem: watermark, input: clicks, options: {column: timestamp, delay: 1 hour}}
              paired:
                gem: join
                inputs: [shown, clicked]
                options: {condition: shown.value = clicked.value and shown.timestamp = clicked.timestamp}
              chosen:
                gem: select
                input: paired
                options:
                  columns:
                    value: shown.value
                    shown_at: shown.timestamp + interval 0 seconds
                    clicked_at: clicked.timestamp
              once:
                gem: deduplicate
                input: chosen
                options: {columns: value, within_watermark: true}
            targets:
              screen: {gem: console, input: once}
        """,
        source="Spark's WatermarkSupport, when the query runs",
    ),
    error(
        "GB338",
        "the current time where only what is deterministic can stand",
        why="""
            In a streaming query `current_timestamp()`, `current_date()`, `localtimestamp()` and
            `unix_timestamp()` are the time of the micro-batch, which Spark sets in when it plans
            one, and which it doesn't take for deterministic. The condition of a join and the arguments of
            aggregate functions must be; so the query passes all checks and fails when it is started,
            even where these stand in a static part of it. As a column, in a filter or in a group the current
            time is fine, and so it is beside an aggregate function: `current_timestamp() - max(at)`.
        """,
        breaks="""
            transforms:
              ages:
                gem: aggregate
                input: ticks
                options:
                  group_by: {digit: value % 10}
                  aggregates: {oldest: max(current_timestamp() - timestamp)}
            targets:
              screen: {gem: console, input: ages, output_mode: update}
        """,
        keeps="""
            transforms:
              aged:
                gem: with_columns
                input: ticks
                options: {columns: {age: current_timestamp() - timestamp}}
              ages:
                gem: aggregate
                input: aged
                options:
                  group_by: {digit: value % 10}
                  aggregates: {oldest: max(age)}
            targets:
              screen: {gem: console, input: ages, output_mode: update}
        """,
        source="Spark: INVALID_NON_DETERMINISTIC_EXPRESSIONS and "
        "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION, when a query runs",
    ),
    note(
        "GB339",
        "the state of a processor grows with every new key",
        why="""
            A key that has had a row has state, until somebody takes it away: a timer in whose
            `handleExpiredTimer` it is cleared, a time to live (`ttlDurationMs`), or a `clear` for a row that
            says that it is over. A class that has none of them keeps every key for ever. Where there are
            only so many keys that is as it should be. What a class does is read in its source; where it uses
            other modules of the pipeline nothing is said.
        """,
        breaks="""
            transforms:
              counts:
                gem: stateful
                input: ticks
                options: {processor: "counts:Count", group_by: value, schema: "value bigint, n bigint"}
            targets:
              screen: {gem: console, input: counts}

            # counts.py
            from pyspark.sql import Row
            from pyspark.sql.streaming import StatefulProcessor

            class Count(StatefulProcessor):
                def init(self, handle):
                    self.count = handle.getValueState("count", "n bigint")
        """,
        keeps="""
            transforms:
              counts:
                gem: stateful
                input: ticks
                options:
                  processor: counts:Count
                  group_by: value
                  schema: value bigint, n bigint
                  time: processing
            targets:
              screen: {gem: console, input: counts}

            # counts.py
            from pyspark.sql import Row
            from pyspark.sql.streaming import StatefulProcessor

            class Count(StatefulProcessor):
                def init(self, handle):
                    self.count = handle.getValueState("count", "n bigint", ttlDurationMs=3_600_000)
        """,
        source="Spark: StatefulProcessorHandle",
    ),
)
