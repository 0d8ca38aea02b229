"""GB2xx: gems and their options."""

from __future__ import annotations

from gem_bundle.codes.code import error, warning

GEMS = (
    error(
        "GB201",
        "unknown gem",
        why="""
            No installed plugin registers a gem of this kind and name. It may be misspelt, be one of
            another kind (there is a `kafka` source and a `kafka` target), or belong to a package that
            isn't installed here. `gem-bundle gems` lists what is.
        """,
        breaks="""
            sources:
              ticks: {gem: rates}
        """,
        keeps="""
            sources:
              ticks: {gem: rate}
        """,
    ),
    error(
        "GB202",
        "a gem can't be used: two plugins register it, or its class can't be loaded",
        why="""
            When two installed packages register a gem of one kind and name, neither is taken: which
            one a pipeline gets must not depend on the order of a folder. Uninstall one of them, or
            switch a plugin off with `GEM_BUNDLE_DISABLE_PLUGINS`.

            When a gem's class can't be loaded, or fails while it takes its options, its package is
            broken or doesn't fit to the other installed ones: update it, or tell its authors.
        """,
        breaks="""
            # better_rate/__init__.py
            from gem_bundle import hookimpl

            @hookimpl
            def gem_bundle_register_gems(register):
                register("source", "rate", "better_rate.source:BetterRate")
        """,
        keeps="""
            # better_rate/__init__.py
            from gem_bundle import hookimpl

            @hookimpl
            def gem_bundle_register_gems(register):
                register("source", "better_rate", "better_rate.source:BetterRate")
        """,
    ),
    warning(
        "GB203",
        "an installed plugin is broken",
        why="""
            A plugin that can't be imported, registers nonsense or implements a hook that doesn't exist
            is left out, and all others go on. A gem that fails in its part of a check loses that part.
            Both are bugs of the plugin: update or remove it, or tell its authors.
        """,
        breaks="""
            # acme_gems/__init__.py
            from gem_bundle import hookimpl

            @hookimpl
            def gem_bundle_register_gem(register):
                register("source", "acme", "acme_gems.source:AcmeSource")
        """,
        keeps="""
            # acme_gems/__init__.py
            from gem_bundle import hookimpl

            @hookimpl
            def gem_bundle_register_gems(register):
                register("source", "acme", "acme_gems.source:AcmeSource")
        """,
    ),
    error(
        "GB204",
        "unknown option",
        why="""
            Spark silently ignores an option that it doesn't know, so a misspelt limit is no limit.
            Here every option is declared by its gem, in snake_case; Spark's own spelling is accepted
            as well. What a gem doesn't declare can be passed on through `spark_options`, unchecked,
            where the gem has that option. `gem-bundle describe GEM` shows them all.
        """,
        breaks="""
            sources:
              ticks:
                gem: rate
                options: {rows_per_sec: 10}
        """,
        keeps="""
            sources:
              ticks:
                gem: rate
                options: {rowsPerSecond: 10}
        """,
    ),
    error(
        "GB205",
        "an option's value is wrong",
        why="""
            The value isn't of the option's type or not within its bounds. Lengths of time need a unit,
            lists of brokers `host:port`, schemas a type for each column; numbers that are meant as
            texts need quotes. `gem-bundle describe GEM` shows what each option takes.
        """,
        breaks="""
            sources:
              ticks:
                gem: rate
                options: {rows_per_second: 0}
            transforms:
              timely:
                gem: watermark
                input: ticks
                options: {column: timestamp, delay: 10}
        """,
        keeps="""
            sources:
              ticks:
                gem: rate
                options: {rows_per_second: 1}
            transforms:
              timely:
                gem: watermark
                input: ticks
                options: {column: timestamp, delay: 10 minutes}
        """,
    ),
    error(
        "GB206",
        "a required option is missing",
        why="""
            Without this option the gem can't do anything: what to read, what to compare, where to
            write. `gem-bundle describe GEM` shows a working example.
        """,
        breaks="""
            transforms:
              even: {gem: filter, input: ticks}
        """,
        keeps="""
            transforms:
              even: {gem: filter, input: ticks, options: {condition: value % 2 = 0}}
        """,
    ),
    error(
        "GB207",
        "options don't go together",
        why="""
            Each value is right by itself, but two options exclude each other, one needs another, or
            one of several must be given. Spark often takes one of the two without saying which.
        """,
        breaks="""
            sources:
              ticks:
                gem: kafka
                options:
                  bootstrap_servers: [localhost:9092]
                  subscribe: [clicks]
                  subscribe_pattern: clicks_.*
        """,
        keeps="""
            sources:
              ticks:
                gem: kafka
                options:
                  bootstrap_servers: [localhost:9092]
                  subscribe_pattern: clicks_.*
        """,
    ),
    error(
        "GB208",
        "an option is given twice, in two spellings",
        why="""
            An option can be written in snake_case or as Spark spells it. Both at once say two things
            about one thing.
        """,
        breaks="""
            sources:
              ticks:
                gem: rate
                options: {rows_per_second: 10, rowsPerSecond: 100}
        """,
        keeps="""
            sources:
              ticks:
                gem: rate
                options: {rows_per_second: 100}
        """,
    ),
    error(
        "GB209",
        "two nodes want different values of a Spark setting",
        why="""
            All nodes of a pipeline share one session, and a setting has one value in it. Two catalogs with
            one name, say, would be one of the two for all nodes. Settings that are lists, as extensions
            are, are joined; what the pipeline says itself under `spark` decides.
        """,
        breaks="""
            sources:
              ticks:
                gem: table
                options: {table: lake.web.ticks, catalog: {kind: hadoop, warehouse: tables}}
            targets:
              copy:
                gem: table
                input: ticks
                options: {table: lake.web.copy, catalog: {kind: hadoop, warehouse: copies}}

            # gem-bundle.toml
            [check]
            spark_version = "4.1"
        """,
        keeps="""
            sources:
              ticks:
                gem: table
                options: {table: lake.web.ticks, catalog: {kind: hadoop, warehouse: tables}}
            targets:
              copy:
                gem: table
                input: ticks
                options: {table: backup.web.copy, catalog: {kind: hadoop, warehouse: copies}}

            # gem-bundle.toml
            [check]
            spark_version = "4.1"
        """,
    ),
)
