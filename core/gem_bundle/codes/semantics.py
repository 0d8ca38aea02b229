"""GB3xx: streaming semantics."""

from __future__ import annotations

from gem_bundle.codes.code import error

SEMANTICS = (
    error(
        "GB310",
        "the target can't take the output mode",
        why="""
            `append` adds rows that never change, `update` those that changed, `complete` replaces the
            whole result with every micro-batch. A sink that can only add rows can't take the other
            two. In a batch pipeline there is nothing to update: a target appends (`append`) or is
            replaced (`complete`), where it can be: rows of a topic can't, nor those that a `merge` changes.
        """,
        breaks="""
            targets:
              files:
                gem: file
                input: ticks
                output_mode: update
                options: {format: parquet, path: out/ticks}
        """,
        keeps="""
            targets:
              files:
                gem: file
                input: ticks
                output_mode: append
                options: {format: parquet, path: out/ticks}
        """,
        source="Guide, Output Modes, and the table of Output Sinks",
    ),
    error(
        "GB311",
        "a stream goes into a target that takes no streams",
        why="""
            The target can only write a relation that ends, as a whole. Either the pipeline runs as a
            batch (`mode: batch` at the top of the file), or the rows go to a target that takes streams.
        """,
        breaks="""
            # reports/__init__.py
            from gem_bundle import Target, TargetSemantics, hookimpl

            class Report(Target):
                "Write one report."

                semantics = TargetSemantics(streaming=False)

            @hookimpl
            def gem_bundle_register_gems(register):
                register("target", "report", Report)

            # clicks.yaml
            targets:
              summary: {gem: report, input: ticks}
        """,
        keeps="""
            # reports/__init__.py
            from gem_bundle import Target, TargetSemantics, hookimpl

            class Report(Target):
                "Write one report."

                semantics = TargetSemantics(streaming=False)

            @hookimpl
            def gem_bundle_register_gems(register):
                register("target", "report", Report)

            # clicks.yaml
            mode: batch
            sources:
              ticks:
                gem: file
                options: {format: csv, path: data, schema: "value int"}
            targets:
              summary: {gem: report, input: ticks}
        """,
        source="Guide, Output Sinks",
    ),
    error(
        "GB312",
        "the source can't be read that way",
        why="""
            Some sources exist as streams only (a socket has no end), some as static relations only
            (literal rows never change). In a streaming pipeline a source is a stream unless it says
            `mode: batch`; in a batch pipeline all are static.
        """,
        breaks="""
            mode: batch
            sources:
              ticks: {gem: rate}
        """,
        keeps="""
            mode: batch
            sources:
              ticks:
                gem: file
                options: {format: csv, path: data, schema: "value int"}
        """,
        source="Guide, Input Sources",
    ),
    error(
        "GB313",
        "a static relation goes into a target that needs a stream",
        why="""
            In a streaming pipeline each target runs a query that waits for new rows, and behind a
            source with `mode: batch` there never are any. Static sources are for joining with a
            stream. To process data that ends, write `mode: batch` at the top of the file.
        """,
        breaks="""
            sources:
              ticks:
                gem: file
                mode: batch
                options: {format: csv, path: data, schema: "value int"}
        """,
        keeps="""
            mode: batch
            sources:
              ticks:
                gem: file
                options: {format: csv, path: data, schema: "value int"}
        """,
        source="Spark's `writeStream` can be called on a streaming DataFrame only",
    ),
    error(
        "GB314",
        "the trigger can't be used here",
        why="""
            A trigger says when micro-batches run, so a batch pipeline has none. The continuous and the
            real-time trigger don't run micro-batches in the usual sense, and only some sources and
            sinks can do with that: `rate` and `kafka` sources, `kafka` and `console` sinks.
        """,
        breaks="""
            targets:
              files:
                gem: file
                input: ticks
                trigger: {continuous: 1 second}
                options: {format: parquet, path: out/ticks}
        """,
        keeps="""
            targets:
              files:
                gem: file
                input: ticks
                trigger: {processing_time: 1 second}
                options: {format: parquet, path: out/ticks}
        """,
        source="Guide, Triggers, and Continuous Processing, Supported Queries",
    ),
    error(
        "GB320",
        "Spark's analyser refuses the query",
        why="""
            Spark itself says that the query can't be built or can't run as a stream, where the checker alone
            could not know: a function that doesn't exist, columns that only a table or Python code knows.
            `gem-bundle check --engine` asks it without starting the query; the message is Spark's,
            placed at the node where it comes from.
        """,
        breaks="""
            transforms:
              halved:
                gem: with_columns
                input: ticks
                options: {columns: {half: halve(value)}}
            targets:
              screen: {gem: console, input: halved}

            $ gem-bundle check --engine clicks.yaml
        """,
        keeps="""
            transforms:
              halved:
                gem: with_columns
                input: ticks
                options: {columns: {half: value / 2}}
            targets:
              screen: {gem: console, input: halved}

            $ gem-bundle check --engine clicks.yaml
        """,
        source="Guide, Unsupported Operations, and Output Modes",
    ),
)
