"""GB380 to GB389: targets that share a query."""

from __future__ import annotations

from gem_bundle.codes.code import error, warning

TARGET_GROUPS = (
    error(
        "GB380",
        "targets of a group need different queries",
        why="""
            The targets of a group are written by one query, from the same micro-batches. A query has one
            output mode and one trigger, and with `continuous` and `real_time` it has no micro-batches that
            targets could share.

            A target that takes the rows that a node rejects is in the group of the node's other targets,
            without saying so.
        """,
        breaks="""
            targets:
              table: {gem: delta, input: ticks, group: both, options: {path: tables/ticks}}
              topic:  # gem-bundle: ignore GB341
                gem: kafka
                input: ticks
                group: both
                trigger: {processing_time: 10 seconds}
                options: {bootstrap_servers: ["localhost:9092"], topic: ticks, value: cast(value as string)}
        """,
        keeps="""
            targets:
              table:
                gem: delta
                input: ticks
                group: both
                trigger: {processing_time: 10 seconds}
                options: {path: tables/ticks}
              topic:  # gem-bundle: ignore GB341
                gem: kafka
                input: ticks
                group: both
                trigger: {processing_time: 10 seconds}
                options: {bootstrap_servers: ["localhost:9092"], topic: ticks, value: cast(value as string)}
        """,
        source="Guide, Triggers, and Using Foreach and ForeachBatch",
    ),
    error(
        "GB381",
        "the rows of a group don't come through one node",
        why="""
            The query of a group ends at the last node through which all rows of its targets come, and from
            there each micro-batch is written to each target. Streams that meet nowhere before the targets
            are two queries.
        """,
        breaks="""
            sources:
              ticks: {gem: rate}
              tocks: {gem: rate}
            targets:
              first: {gem: delta, input: ticks, group: both, options: {path: tables/ticks}}
              second: {gem: delta, input: tocks, group: both, options: {path: tables/tocks}}
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
            targets:
              first: {gem: delta, input: ticks, group: both, options: {path: tables/ticks}}
              second: {gem: delta, input: ticks, group: both, options: {path: tables/again}}
        """,
        source="Guide, Using Foreach and ForeachBatch",
    ),
    error(
        "GB382",
        "something with state lies behind the fork of a group",
        why="""
            What lies between the last node that a group's targets share and one of its targets is computed
            for each micro-batch by itself. A count would count each micro-batch alone there, and what drops
            duplicates would know none from before. State belongs before the fork, where the query keeps it.
            A rule with `unique: within_watermark` has its own there: the query forks at its node, through
            which then all rows come.
        """,
        breaks="""
            sources:
              ticks: {gem: rate}
            transforms:
              counts: {gem: aggregate, input: ticks, options: {aggregates: {n: count(*)}}}
            targets:
              lines:  # gem-bundle: ignore GB340 GB341
                {gem: console, input: ticks, output_mode: update, group: both}
              sums:  # gem-bundle: ignore GB340
                {gem: console, input: counts, output_mode: update, group: both}
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
            transforms:
              counts: {gem: aggregate, input: ticks, options: {aggregates: {n: count(*)}}}
            targets:
              lines:  # gem-bundle: ignore GB340 GB341
                {gem: console, input: counts, output_mode: update, group: both}
              sums:  # gem-bundle: ignore GB340
                {gem: console, input: counts, output_mode: update, group: both}
        """,
        source="Guide, Using Foreach and ForeachBatch: a micro-batch is a static DataFrame there",
    ),
    error(
        "GB383",
        "a gem can't be in a group",
        why="""
            A target of a group gets micro-batches, one after the other, from a query that isn't its own. Some
            sinks are more than that: a folder of files has a log that belongs to one query, and a table in
            memory lives in one.
        """,
        breaks="""
            targets:
              table: {gem: delta, input: ticks, group: both, options: {path: tables/ticks}}
              files: {gem: file, input: ticks, group: both, options: {format: json, path: ticks}}
        """,
        keeps="""
            targets:
              table: {gem: delta, input: ticks, options: {path: tables/ticks}}
              files: {gem: file, input: ticks, options: {format: json, path: ticks}}
        """,
    ),
    error(
        "GB384",
        "a target of a group can't be treated alone",
        why="""
            A group has one query and one checkpoint. So its targets run together, begin anew together, and
            none of them can be filled again by `backfill`, which has to know the query that writes a table.
        """,
        breaks="""
            $ gem-bundle run clicks.yaml --target table
        """,
        keeps="""
            $ gem-bundle run clicks.yaml --target table --target topic
        """,
    ),
    warning(
        "GB385",
        "a group in a batch pipeline",
        why="""
            A group is a query that several targets share, and a batch pipeline has no queries: its targets
            are written one after the other.
        """,
        breaks="""
            mode: batch
            sources:
              ticks: {gem: rows, options: {schema: "value int", rows: [[1]]}}
            targets:
              table: {gem: delta, input: ticks, group: both, options: {path: tables/ticks}}
        """,
        keeps="""
            mode: batch
            sources:
              ticks: {gem: rows, options: {schema: "value int", rows: [[1]]}}
            targets:
              table: {gem: delta, input: ticks, options: {path: tables/ticks}}
        """,
    ),
    error(
        "GB386",
        "groups need a Spark of one's own",
        why="""
            A group is written by a function that Spark calls with each micro-batch. Over Spark Connect the
            server calls it, far from the run that has to know what became of each target, so groups run in
            sessions of their own only.
        """,
        breaks="""
            $ SPARK_REMOTE=sc://spark:15002 gem-bundle run clicks.yaml
        """,
        keeps="""
            $ gem-bundle run clicks.yaml
        """,
        source="Guide, Using Foreach and ForeachBatch",
    ),
    error(
        "GB387",
        "a micro-batch is to be looked at before it is written",
        why="""
            With `max_rejected` a micro-batch that has too many bad rows isn't written at all. Spark tells how
            many there were when it has written it, so they are counted before that, by the query of a group.

            A rule with `unique` compares the rows of a micro-batch with each other, or with those of earlier
            ones. The query of a group has it as a table, and the good rows and the others are told apart in
            the same one.

            And where somebody outside is asked which rows are rejected, as `rest_enrich` does, two queries
            might be told different things: then a row would be in both outputs, or in none. The query of a
            group asks once, and keeps what it was told beside its checkpoint until the rows are written.
        """,
        breaks="""
            sources:
              ticks: {gem: rate}
            transforms:
              even:  # gem-bundle: ignore GB109
                gem: expect
                input: ticks
                options: {rules: {even: value % 2 = 0}, max_rejected: 5%}
            targets:
              table: {gem: delta, input: even, options: {path: tables/even}}
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
            transforms:
              even:  # gem-bundle: ignore GB109
                gem: expect
                input: ticks
                options: {rules: {even: value % 2 = 0}, max_rejected: 5%}
            targets:
              table: {gem: delta, input: even, group: tables, options: {path: tables/even}}
        """,
    ),
    error(
        "GB388",
        "what a target rejects is taken by another query",
        why="""
            A target learns of rows that were refused while it delivers a micro-batch. Its own query writes
            them to whoever takes its output `rejected`, before the micro-batch is committed: that target is
            in the group of the one that rejects, and needn't say so. In another group it is another query.
        """,
        breaks="""
            sources:
              ticks: {gem: rate}
            targets:
              receiver:
                gem: foreach
                input: ticks
                group: one
                options: {function: "jobs:send", rejects: true}
              refused: {gem: delta, input: receiver.rejected, group: other, options: {path: tables/refused}}
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
            targets:
              receiver: {gem: foreach, input: ticks, options: {function: "jobs:send", rejects: true}}
              refused: {gem: delta, input: receiver.rejected, options: {path: tables/refused}}
        """,
        source="Guide, Using Foreach and ForeachBatch",
    ),
    warning(
        "GB389",
        "good rows and rejected ones of two queries, which read different rows",
        why="""
            Each target is a query of its own, so a node is computed twice where one target takes its rows
            and another one those that it rejects. A row is in exactly one of both places as both queries
            read the same rows. A source that begins behind what is there, as `kafka` does unless it is told
            otherwise, gives them different ones the first time: what comes between the two starts is read by
            one of them only, and is in neither place where that query has no use for it. `rate` and
            `socket` give each query rows of its own all the time.

            A group is one query for both.
        """,
        breaks="""
            sources:
              clicks:
                gem: kafka
                options: {bootstrap_servers: ["localhost:9092"], subscribe: clicks}
            transforms:
              parsed:
                gem: from_json
                input: clicks
                options: {column: value, schema: "page string not null", rejects: true}
            targets:
              good: {gem: delta, input: parsed, options: {path: tables/good}}
              broken: {gem: delta, input: parsed.rejected, options: {path: tables/broken}}
        """,
        keeps="""
            sources:
              clicks:
                gem: kafka
                options: {bootstrap_servers: ["localhost:9092"], subscribe: clicks}
            transforms:
              parsed:
                gem: from_json
                input: clicks
                options: {column: value, schema: "page string not null", rejects: true}
            targets:
              good: {gem: delta, input: parsed, group: clicks, options: {path: tables/good}}
              broken: {gem: delta, input: parsed.rejected, options: {path: tables/broken}}
        """,
        source="Kafka integration guide, startingOffsets; guide, Using Foreach and ForeachBatch",
    ),
    warning(
        "GB390",
        "a limit of health that can't be measured",
        why="""
            A limit under `health` is compared with what a run measures of a target. Here nothing measures
            it: there is no watermark, no state, no output of rejected rows, or the sources can't tell what
            waits in them. So the target would never be unwell by it, whatever happens. In a batch pipeline
            there are no micro-batches, so neither limits nor `restarts` mean anything.
        """,
        breaks="""
            sources: {ticks: {gem: rate}}
            targets:
              screen:
                gem: console
                input: ticks
                health: {state_rows: 1000000}
        """,
        keeps="""
            sources: {ticks: {gem: rate}}
            targets:
              screen:
                gem: console
                input: ticks
                health: {batch_time: 5 minutes}
        """,
    ),
)
