"""GB360 to GB372: triggers, and the Spark that a pipeline is for."""

from __future__ import annotations

from gem_bundle.codes.code import error, note, warning

TRIGGERS = (
    error(
        "GB360",
        "continuous processing doesn't have this operation",
        why="""
            Continuous processing (`trigger: {continuous: …}`) takes each row by itself: `select`,
            `with_columns` and `filter` are fine, also in `sql`. There are no aggregations, joins,
            unions, watermarks or other partitionings, rows aren't made into several (`explode`), and no
            function gives the current time. Spark says so when the query starts.

            An option of a source that continuous processing ignores is a warning.
        """,
        breaks="""
            transforms:
              seen: {gem: with_columns, input: ticks, options: {columns: {at: current_timestamp()}}}
            targets:
              screen: {gem: console, input: seen, trigger: {continuous: 1 second}}
        """,
        keeps="""
            transforms:
              even: {gem: filter, input: ticks, options: {condition: value % 2 = 0}}
            targets:
              screen: {gem: console, input: even, trigger: {continuous: 1 second}}
        """,
        source="Guide, Continuous Processing, Supported Queries",
    ),
    error(
        "GB361",
        "real-time mode can't run this query",
        why="""
            Real-time mode hands each row on as soon as it comes. It takes the output mode `update`
            only, and in Spark 4.1 and 4.2 queries without state whose rows stay in their task:
            `select`, `filter`, `explode`, `union`, watermarks, and joins with static relations that are
            small enough to be broadcast. Aggregations, deduplications, joins of streams, other
            partitionings and Python code are refused, some of them only when the first rows come.
        """,
        breaks="""
            sources:
              clicks:
                gem: kafka
                options: {bootstrap_servers: ["localhost:9092"], subscribe: clicks}
            targets:
              screen: {gem: console, input: clicks, trigger: {real_time: 5 minutes}}
        """,
        keeps="""
            sources:
              clicks:
                gem: kafka
                options: {bootstrap_servers: ["localhost:9092"], subscribe: clicks}
            targets:
              screen:
                gem: console
                input: clicks
                output_mode: update
                trigger: {real_time: 5 minutes}
        """,
        source="Spark, STREAMING_REAL_TIME_MODE",
    ),
    warning(
        "GB362",
        "the trigger `once` is deprecated",
        why="""
            `once` puts all that waits into one micro-batch: limits such as `max_files_per_trigger`
            don't count, and a large backlog fails for lack of memory. `available_now` processes the
            same rows and ends too, in as many micro-batches as the limits ask for, and moves the
            watermark on between them.
        """,
        breaks="""
            sources:
              lines: {gem: file, options: {format: text, path: data}}
            targets:
              screen: {gem: console, input: lines, trigger: {once: true}}
        """,
        keeps="""
            sources:
              lines: {gem: file, options: {format: text, path: data}}
            targets:
              screen: {gem: console, input: lines, trigger: {available_now: true}}
        """,
        source="Guide, Triggers",
    ),
    error(
        "GB363",
        "the interval of real-time mode is too short",
        why="""
            In real-time mode rows don't wait for the interval: it is how long a micro-batch lasts, and
            so how often a checkpoint is written. Spark refuses less than 5 seconds, which the setting
            `spark.sql.streaming.realTimeMode.minBatchDuration` can change; 5 minutes are usual.
        """,
        breaks="""
            sources:
              clicks:
                gem: kafka
                options: {bootstrap_servers: ["localhost:9092"], subscribe: clicks}
            targets:
              screen:
                gem: console
                input: clicks
                output_mode: update
                trigger: {real_time: 1 second}
        """,
        keeps="""
            sources:
              clicks:
                gem: kafka
                options: {bootstrap_servers: ["localhost:9092"], subscribe: clicks}
            targets:
              screen:
                gem: console
                input: clicks
                output_mode: update
                trigger: {real_time: 5 minutes}
        """,
        source="Spark, INVALID_STREAMING_REAL_TIME_MODE_TRIGGER_INTERVAL",
    ),
    note(
        "GB364",
        "the interval is shorter than any micro-batch",
        why="""
            A micro-batch without any work takes about 100 milliseconds to plan and to write down. With
            a shorter interval the next one starts as soon as the one before it ends, which it also does
            without a trigger. Latencies below that take another mode: `real_time`, or `continuous`.
        """,
        breaks="""
            targets:
              screen: {gem: console, input: ticks, trigger: {processing_time: 10 milliseconds}}
        """,
        keeps="""
            targets:
              screen: {gem: console, input: ticks, trigger: {processing_time: 1 second}}
        """,
        source="Guide, Continuous Processing, on the latency of micro-batches",
    ),
    error(
        "GB365",
        "asynchronous progress tracking can't be used with this query",
        why="""
            With asynchronous progress tracking the checkpoint is written beside the micro-batches.
            State needs to know exactly where a micro-batch began, so only queries without state can do
            with that. A run that ends by itself (`available_now`, `once`) would end before its progress
            is written, and real-time mode has a way of its own. Spark says so when the query starts.
        """,
        breaks="""
            sources:
              lines: {gem: file, options: {format: text, path: data}}
            targets:
              topic:  # gem-bundle: ignore GB341
                gem: kafka
                input: lines
                trigger: {available_now: true}
                options:
                  bootstrap_servers: ["localhost:9092"]
                  topic: lines
                  async_progress_tracking_enabled: true
        """,
        keeps="""
            sources:
              lines: {gem: file, options: {format: text, path: data}}
            targets:
              topic:  # gem-bundle: ignore GB341
                gem: kafka
                input: lines
                trigger: {processing_time: 1 second}
                options:
                  bootstrap_servers: ["localhost:9092"]
                  topic: lines
                  async_progress_tracking_enabled: true
        """,
        source="Guide, Asynchronous Progress Tracking, Limitations",
    ),
    error(
        "GB370",
        "Spark has this in a later version only",
        why="""
            An option, a trigger, a type or the output mode `update` behind a join of two streams came with a
            later Spark than the one the pipeline is for. Spark ignores options and settings that it doesn't
            know, so nothing fails and nothing happens; the others it refuses.

            Which Spark that is, the pipeline's job says where it names a runtime of Databricks
            (`spark_version` under `cluster`), else the project's settings: `spark_version` in the table
            `[check]`; by default it is the installed one.
        """,
        breaks="""
            sources:
              ticks:
                gem: file
                options: {format: csv, path: data, schema: page string, time_format: "HH:mm"}

            # gem-bundle.toml
            [check]
            spark_version = "4.0"
        """,
        keeps="""
            sources:
              ticks:
                gem: file
                options: {format: csv, path: data, schema: page string, time_format: "HH:mm"}

            # gem-bundle.toml
            [check]
            spark_version = "4.1"
        """,
    ),
    error(
        "GB371",
        "something has no release for a Spark that is this new",
        why="""
            A node needs something beside Spark that is made for each of its versions, and isn't made yet
            for the one that the pipeline is for. The release for an older one fails as soon as it is used.

            Which Spark that is, is said as for GB370: by the pipeline's job, by `spark_version` in the table
            `[check]` of the project's settings, or by what is installed.
        """,
        breaks="""
            sources:
              ticks:
                gem: table
                options: {table: lake.web.ticks, catalog: {kind: hadoop, warehouse: tables}}

            # gem-bundle.toml
            [check]
            spark_version = "4.2"
        """,
        keeps="""
            sources:
              ticks:
                gem: table
                options: {table: lake.web.ticks, catalog: {kind: hadoop, warehouse: tables}}

            # gem-bundle.toml
            [check]
            spark_version = "4.1"
        """,
    ),
    note(
        "GB372",
        "this Spark knows the sources of a checkpoint by their order",
        why="""
            A checkpoint has an offset for each source that its query reads. Since Spark 4.2 they stand there
            by the sources' ids, so that sources can be added, removed and put in another order. Older Sparks
            have them by their order in the query only: after such an edit one source would go on where
            another ended, or the query doesn't start. `gem-bundle plan` says what an edit does.

            Which Spark that is, is said as for GB370: by the pipeline's job, by `spark_version` in the table
            `[check]` of the project's settings, or by what is installed.
        """,
        breaks="""
            sources: {ticks: {gem: rate}, tocks: {gem: rate}}
            transforms: {both: {gem: union, inputs: [ticks, tocks]}}
            targets: {screen: {gem: noop, input: both}}

            # gem-bundle.toml
            [check]
            spark_version = "4.1"
        """,
        keeps="""
            sources: {ticks: {gem: rate}, tocks: {gem: rate}}
            transforms: {both: {gem: union, inputs: [ticks, tocks]}}
            targets: {screen: {gem: noop, input: both}}

            # gem-bundle.toml
            [check]
            spark_version = "4.2"
        """,
        source="Guide, Recovery Semantics after Changes in a Streaming Query",
    ),
)
