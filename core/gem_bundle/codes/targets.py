"""GB340 to GB347: targets and the places of a pipeline."""

from __future__ import annotations

from gem_bundle.codes.code import error, note, warning

TARGETS = (
    warning(
        "GB340",
        "a sink that is for looking at stands beside targets that keep their rows",
        why="""
            `console`, `memory` and `noop` promise nothing about rows when a run fails: what was shown
            is gone, or is shown again, and a memory table begins anew. Beside a target that must not
            lose a row, such a sink is a query more that runs, costs and can fail, and a failure of it
            ends the whole run.
        """,
        breaks="""
            targets:
              files:
                gem: file
                input: ticks
                options: {format: parquet, path: out/ticks}
              screen: {gem: console, input: ticks}
        """,
        keeps="""
            targets:
              files:
                gem: file
                input: ticks
                options: {format: parquet, path: out/ticks}
        """,
        source="Guide, Output Sinks, column Fault-tolerant",
    ),
    note(
        "GB341",
        "a target gets rows at least once",
        why="""
            When a run fails between writing and remembering that it was written, the micro-batch runs
            again. This target then gets its rows a second time. That does no harm where who reads them
            knows a row by a key, or where the function that gets them merges. A `foreach_batch` whose
            function does so may say `idempotent: true`.
        """,
        breaks="""
            targets:
              topic:
                gem: kafka
                input: ticks
                options: {bootstrap_servers: ["localhost:9092"], topic: ticks}
        """,
        keeps="""
            targets:
              merged:
                gem: foreach_batch
                input: ticks
                options: {function: "jobs:merge", idempotent: true}
        """,
        source="Guide, Output Sinks, and Using Foreach and ForeachBatch",
    ),
    error(
        "GB342",
        "two targets write to one place, and rows are lost",
        why="""
            A folder that a stream writes files to has a log, and in it each micro-batch of one query. A
            second query finds its own numbers there as done already: what it writes is passed over
            without an error.

            A target with `output_mode: complete` replaces what is there, and so removes what another
            target wrote. And where each of two writes a column to a Delta table that the other one doesn't
            have, or both write one with types that can't become one, the second to write fails.
        """,
        breaks="""
            targets:
              all:
                gem: file
                input: ticks
                options: {format: parquet, path: out/ticks}
              again:
                gem: file
                input: ticks
                options: {format: parquet, path: out/ticks/}
        """,
        keeps="""
            targets:
              all:
                gem: file
                input: ticks
                options: {format: parquet, path: out/ticks}
              again:
                gem: file
                input: ticks
                options: {format: parquet, path: out/again}
        """,
    ),
    warning(
        "GB343",
        "two targets write to one table",
        why="""
            Each target is a query of its own. Two that add rows to a table mostly don't disturb each
            other, but when both change the table itself (they create it in the first run, or add a
            column), one fails and ends the run. A started run goes on where it was.
        """,
        breaks="""
            targets:
              all: {gem: delta, input: ticks, options: {path: tables/ticks}}
              again: {gem: delta, input: ticks, options: {path: tables/ticks}}
        """,
        keeps="""
            transforms:
              twice: {gem: union, inputs: {first: ticks, second: ticks}}
            targets:
              all: {gem: delta, input: twice, options: {path: tables/ticks}}
        """,
    ),
    warning(
        "GB344",
        "a place is both read and written",
        why="""
            A target writes where a source of the same pipeline reads. If its rows come from that
            source, each comes back as a new one, without end unless a filter stops it. If they come
            from elsewhere, the two run side by side: on a first run there may be nothing to read yet,
            and a run that ends by itself hasn't read all that it has written. Two pipelines, one after
            the other, do what is meant.
        """,
        breaks="""
            sources:
              ticks: {gem: rate}
              stored: {gem: delta, options: {path: tables/ticks}}
            targets:
              store: {gem: delta, input: ticks, options: {path: tables/ticks}}
              copy: {gem: delta, input: stored, options: {path: tables/copy}}
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
            targets:
              store: {gem: delta, input: ticks, options: {path: tables/ticks}}
              copy: {gem: delta, input: ticks, options: {path: tables/copy}}
        """,
    ),
    error(
        "GB345",
        "a query writes files into the folder that it reads",
        why="""
            In a folder that a stream writes to, Spark follows the log of what was written and sees no
            other files: a query that writes into the folder it reads from reads nothing at all, and
            says nothing. With `recursive_file_lookup` or wildcards it reads its own files again,
            without end.

            A batch that replaces the folder it reads (`output_mode: complete`) empties it first, and
            the rows are gone.
        """,
        breaks="""
            sources:
              ticks:
                gem: file
                options: {format: json, path: data, schema: "value int"}
            targets:
              clean:
                gem: file
                input: ticks
                options: {format: json, path: data}
        """,
        keeps="""
            sources:
              ticks:
                gem: file
                options: {format: json, path: data, schema: "value int"}
            targets:
              clean:
                gem: file
                input: ticks
                options: {format: json, path: clean}
        """,
    ),
    warning(
        "GB346",
        "ids of targets differ in upper and lower case only",
        why="""
            A target's checkpoint is the folder `<checkpoints>/<pipeline>/<id>`. On a file system that
            takes upper and lower case for the same, as on macOS and Windows, two such targets share it,
            and a checkpoint belongs to one query.
        """,
        breaks="""
            targets:
              hours: {gem: console, input: ticks}
              Hours: {gem: console, input: ticks}
        """,
        keeps="""
            targets:
              hours: {gem: console, input: ticks}
              days: {gem: console, input: ticks}
        """,
        source="Guide, Recovering from Failures with Checkpointing: each query needs a location of its own",
    ),
    error(
        "GB347",
        "checkpoints and data lie within each other",
        why="""
            Who reads a folder with all folders below takes the files of a checkpoint in it for data:
            rows that nobody wrote appear. What cleans a table up (`VACUUM`) removes files that it
            doesn't know, and with them the checkpoint. Data in a checkpoint is deleted with it. A
            folder whose name begins with `_` or `.` is passed over by readers and clean-ups alike, and
            is fine.

            For a source that reads one folder without those below it is a warning: with the first
            folder of a partition the query fails.
        """,
        breaks="""
            checkpoints: out/ticks/checkpoints
            targets:
              files:
                gem: file
                input: ticks
                options: {format: parquet, path: out/ticks}
        """,
        keeps="""
            checkpoints: out/checkpoints
            targets:
              files:
                gem: file
                input: ticks
                options: {format: parquet, path: out/ticks}
        """,
    ),
)
