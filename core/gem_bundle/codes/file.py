"""GB001 to GB009: the file and its shape."""

from __future__ import annotations

from gem_bundle.codes.code import error

FILE = (
    error(
        "GB001",
        "the file can't be read",
        why="""
            The pipeline file isn't there, is a folder, or this user may not read it. When the folder
            has a file with a similar name, the hint names it.
        """,
        breaks="$ gem-bundle check clikcs.yaml",
        keeps="$ gem-bundle check clicks.yaml",
    ),
    error(
        "GB002",
        "the file isn't valid YAML",
        why="""
            What stands there can't be read as YAML, so nothing behind it can be checked. Most often a
            quote or a bracket isn't closed, a line is indented by a tab or by too much, or a text that
            contains `: ` or begins with one of `* & ! @ %` has no quotes around it.
        """,
        breaks="""
            transforms:
              all:
                gem: select
                input: ticks
                options:
                  columns: [*, value + 1 as next]
        """,
        keeps="""
            transforms:
              all:
                gem: select
                input: ticks
                options:
                  columns: ["*", value + 1 as next]
        """,
        source="YAML 1.2; plain words are read by its core schema, so `on`, `no` and `12:30` are texts",
    ),
    error(
        "GB003",
        "a key stands twice in one mapping",
        why="""
            Most YAML readers silently take the last of the two, so one half of what you wrote would
            have no effect. For two nodes the ids must differ; for two options one has to go.
        """,
        breaks="""
            sources:
              ticks:
                gem: rate
                options:
                  rows_per_second: 10
                  num_partitions: 2
                  rows_per_second: 100
        """,
        keeps="""
            sources:
              ticks:
                gem: rate
                options:
                  rows_per_second: 100
                  num_partitions: 2
        """,
    ),
    error(
        "GB004",
        "unknown key",
        why="""
            A key that nothing reads would silently have no effect, so it is an error: most often it is
            misspelt, or stands one level too high or too low. Keys at the top of the file that begin
            with `x-` are ignored; they are the place for anchors and notes.
        """,
        breaks="""
            targets:
              screen:
                gem: console
                input: ticks
                triger: {processing_time: 10 seconds}
        """,
        keeps="""
            x-pace: &pace {processing_time: 10 seconds}

            targets:
              screen:
                gem: console
                input: ticks
                trigger: *pace
        """,
    ),
    error(
        "GB005",
        "a value has the wrong type or isn't allowed there",
        why="""
            The key is known, but it doesn't take this value: a list where one text is expected, a word
            that isn't one of the choices, two keys of which exactly one is wanted. Numbers and the
            words true, false and null are texts only when they stand in quotes.
        """,
        breaks="""
            targets:
              screen:
                gem: console
                input: ticks
                output_mode: overwrite
                trigger: {processing_time: 10 seconds, once: true}
        """,
        keeps="""
            targets:
              screen:
                gem: console
                input: ticks
                output_mode: append
                trigger: {processing_time: 10 seconds}
        """,
    ),
    error(
        "GB006",
        "a required key is missing",
        why="""
            Every pipeline has a name (checkpoints and query names come from it), every node has a gem,
            and every transform and target has an input.
        """,
        breaks="""
            pipeline: clicks
            sources:
              ticks:
                options: {rows_per_second: 10}
            targets:
              screen:
                gem: console
                input: ticks
        """,
        keeps="""
            pipeline: clicks
            sources:
              ticks:
                gem: rate
                options: {rows_per_second: 10}
            targets:
              screen:
                gem: console
                input: ticks
        """,
    ),
    error(
        "GB007",
        "YAML tags are not allowed: a pipeline file is data",
        why="""
            Tags tell a YAML reader to build objects, which in many readers means to run code. Checking
            a pipeline that a stranger wrote must never run anything of theirs, so no tag has any
            effect here and all are refused. A text that happens to begin with `!` needs quotes.
        """,
        breaks="""
            transforms:
              live:
                gem: filter
                input: ticks
                options:
                  condition: !isnull(value)
        """,
        keeps="""
            transforms:
              live:
                gem: filter
                input: ticks
                options:
                  condition: "!isnull(value)"
        """,
    ),
    error(
        "GB008",
        "the file is too large, too deep or expands too far",
        why="""
            A pipeline file has at most 1 MB, 60 levels and 100,000 values, aliases counted each time
            they are used, 2,000 nodes with 5,000 inputs, 10,000 references, and 50,000 characters in
            one text. The limits are far beyond what a person writes; they keep a file of a few lines
            from filling the memory. Data belongs into files that the pipeline reads.
        """,
        breaks="""
            x-a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
            x-b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
            x-c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
            x-d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]
            x-e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]
        """,
        keeps="""
            sources:
              ticks:
                gem: file
                options: {format: csv, path: data, schema: "value int"}
        """,
    ),
)
