"""GB321 to GB326: joins and unions of streams."""

from __future__ import annotations

from gem_bundle.codes.code import error, warning

JOINS = (
    error(
        "GB321",
        "that kind of join can't be of a stream and a static relation",
        why="""
            An outer join keeps the rows of one side that find no partner. When the other side is a stream,
            a partner may always still come, so the side whose rows are kept must be the stream and the
            other one static. A full outer join keeps both and so needs two streams or none; a left
            anti join can only have a static right side.
        """,
        breaks="""
            sources:
              ticks: {gem: rate}
              names:
                gem: rows
                mode: batch
                options: {rows: [{value: 1, name: one}]}
            transforms:
              named: {gem: join, inputs: [ticks, names], options: {how: right, on: value}}
            targets:
              screen: {gem: console, input: named}
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
              names:
                gem: rows
                mode: batch
                options: {rows: [{value: 1, name: one}]}
            transforms:
              named: {gem: join, inputs: [ticks, names], options: {how: left, on: value}}
            targets:
              screen: {gem: console, input: named}
        """,
        source="Guide, Support matrix for joins in streaming queries",
    ),
    error(
        "GB323",
        "an outer join of streams doesn't know when a row has waited long enough",
        why="""
            A left, right, full or left semi join of two streams keeps a row until no partner can come any
            more. That is certain only when the other stream has a watermark and the condition ties its
            event time to this row's: by an equality of event times (or of windows over them), or
            by an upper bound such as `right.at <= left.at + interval 1 hour`. Which side needs the
            bound follows from the side whose rows are kept.
        """,
        breaks="""
            sources:
              ads: {gem: rate}
              clicks: {gem: rate}
            transforms:
              paired:
                gem: join
                inputs: [ads, clicks]
                options: {how: left, condition: ads.value = clicks.value}
            targets:
              screen: {gem: console, input: paired}
        """,
        keeps="""
            sources:
              ads: {gem: rate}
              clicks: {gem: rate}
            transforms:
              shown:
                gem: watermark
                input: ads
                options: {column: timestamp, delay: 10 minutes}
              clicked:
                gem: watermark
                input: clicks
                options: {column: timestamp, delay: 20 minutes}
              paired:
                gem: join
                inputs: {ads: shown, clicks: clicked}
                options:
                  how: left
                  condition: >-
                    ads.value = clicks.value and clicks.timestamp between
                    ads.timestamp and ads.timestamp + interval 1 hour
            targets:
              screen: {gem: console, input: paired}
        """,
        source="Guide, Outer Joins with Watermarking; Support matrix for joins",
    ),
    error(
        "GB324",
        "two streams are joined without an equality",
        why="""
            Spark brings the partners of a join of two streams together by columns that must be equal; with
            a range or nothing at all it would have to compare every row with all that ever came. It
            says so only when the query is started.
        """,
        breaks="""
            sources:
              ads: {gem: rate}
              clicks: {gem: rate}
            transforms:
              paired:
                gem: join
                inputs: [ads, clicks]
                options: {condition: ads.value < clicks.value}
            targets:
              screen: {gem: console, input: paired}
        """,
        keeps="""
            sources:
              ads: {gem: rate}
              clicks: {gem: rate}
            transforms:
              shown:
                gem: watermark
                input: ads
                options: {column: timestamp, delay: 10 minutes}
              clicked:
                gem: watermark
                input: clicks
                options: {column: timestamp, delay: 10 minutes}
              paired:
                gem: join
                inputs: {ads: shown, clicks: clicked}
                options:
                  condition: >-
                    ads.value = clicks.value and clicks.timestamp = ads.timestamp
            targets:
              screen: {gem: console, input: paired}
        """,
        source="Spark: STREAM_JOIN_STREAM_WITHOUT_EQUALITY_PREDICATE_UNSUPPORTED, when a query starts",
    ),
    warning(
        "GB325",
        "a join of streams keeps rows for ever",
        why="""
            An inner join of two streams runs without watermarks, and then keeps every row of both sides,
            because a partner may always come: the state grows until the disk is full. Watermarks on
            both sides together with an equality of event times or a range of time in both directions
            bound it. An outer join is started with a watermark on one side too, lets no row go, and never
            gives one that has no partner.
        """,
        breaks="""
            sources:
              ads: {gem: rate}
              clicks: {gem: rate}
            transforms:
              paired:
                gem: join
                inputs: [ads, clicks]
                options: {condition: ads.value = clicks.value}
            targets:
              screen: {gem: console, input: paired}
        """,
        keeps="""
            sources:
              ads: {gem: rate}
              clicks: {gem: rate}
            transforms:
              shown:
                gem: watermark
                input: ads
                options: {column: timestamp, delay: 10 minutes}
              clicked:
                gem: watermark
                input: clicks
                options: {column: timestamp, delay: 20 minutes}
              paired:
                gem: join
                inputs: {ads: shown, clicks: clicked}
                options:
                  condition: >-
                    ads.value = clicks.value and clicks.timestamp between
                    ads.timestamp and ads.timestamp + interval 1 hour
            targets:
              screen: {gem: console, input: paired}
        """,
        source="Guide, Inner Joins with optional Watermarking",
    ),
    error(
        "GB326",
        "a stream and a static relation are put together",
        why="""
            The rows of a static relation would come once and those of the stream for ever, and Spark
            doesn't define when. Read both as streams, or join the static relation to the stream.
        """,
        breaks="""
            sources:
              ticks: {gem: rate}
              more:
                gem: file
                mode: batch
                options: {format: csv, path: data, schema: "timestamp timestamp, value bigint"}
            transforms:
              all: {gem: union, inputs: [ticks, more]}
            targets:
              screen: {gem: console, input: all}
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
              more:
                gem: file
                options: {format: csv, path: data, schema: "timestamp timestamp, value bigint"}
            transforms:
              all: {gem: union, inputs: [ticks, more]}
            targets:
              screen: {gem: console, input: all}
        """,
        source="Guide, Unsupported Operations",
    ),
)
