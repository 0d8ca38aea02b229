"""GB350 to GB352: what sources read, and in which order."""

from __future__ import annotations

from gem_bundle.codes.code import warning

SOURCES = (
    warning(
        "GB350",
        "a source can't be read again, and a target writes each row exactly once",
        why="""
            After a failure Spark asks the source for the rows of the unfinished micro-batch once more.
            A socket can't send them again: they are lost, however carefully the target writes. That a
            row arrives exactly once takes both, a source that can be read again and such a target.
        """,
        breaks="""
            sources:
              lines: {gem: socket, options: {host: localhost, port: 9999}}
            targets:
              files:
                gem: file
                input: lines
                options: {format: parquet, path: out/lines}
        """,
        keeps="""
            sources:
              lines: {gem: file, options: {format: text, path: data/lines}}
            targets:
              files:
                gem: file
                input: lines
                options: {format: parquet, path: out/lines}
        """,
        source="Guide, Input Sources, column Fault-tolerant, and Fault Tolerance Semantics",
    ),
    warning(
        "GB351",
        "the first run reads nothing",
        why="""
            A run with the trigger `available_now` or `once` takes what is there when it starts, and
            ends. A source that begins at the end (for a stream from Kafka that is the default) takes
            note of where that is, and the run ends without a row. What was there before is never read,
            what comes until the next run is read by that one; `delta` even begins at the end again as
            long as nothing was read. `rate` and `socket` have no rows before they are read.
        """,
        breaks="""
            sources:
              clicks:
                gem: kafka
                options: {bootstrap_servers: ["localhost:9092"], subscribe: clicks}
            targets:
              files:
                gem: file
                input: clicks
                trigger: {available_now: true}
                options: {format: parquet, path: out/clicks}
        """,
        keeps="""
            sources:
              clicks:
                gem: kafka
                options:
                  bootstrap_servers: ["localhost:9092"]
                  subscribe: clicks
                  starting_offsets: earliest
            targets:
              files:
                gem: file
                input: clicks
                trigger: {available_now: true}
                options: {format: parquet, path: out/clicks}
        """,
        source="Kafka integration guide, startingOffsets; guide, Triggers",
    ),
    warning(
        "GB352",
        "newer rows before older ones, and a watermark",
        why="""
            A watermark follows the newest row that has come. When a backlog is read from its newest
            end, the first micro-batches move the watermark past all that is older, and what the later
            ones bring is dropped as late, without a word.
        """,
        breaks="""
            sources:
              ticks:
                gem: file
                options:
                  format: json
                  path: data
                  schema: at timestamp
                  latest_first: true
                  max_files_per_trigger: 10
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: at, delay: 1 hour}}
              once: {gem: deduplicate, input: timely, options: {columns: at}}
            targets:
              screen: {gem: console, input: once}
        """,
        keeps="""
            sources:
              ticks:
                gem: file
                options:
                  format: json
                  path: data
                  schema: at timestamp
                  max_files_per_trigger: 10
            transforms:
              timely: {gem: watermark, input: ticks, options: {column: at, delay: 1 hour}}
              once: {gem: deduplicate, input: timely, options: {columns: at}}
            targets:
              screen: {gem: console, input: once}
        """,
        source="Guide, Input Sources, option latestFirst, and Handling Late Data and Watermarking",
    ),
)
