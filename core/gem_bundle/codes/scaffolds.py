"""GB80x: what `gem-bundle new` writes."""

from __future__ import annotations

from gem_bundle.codes.code import error

SCAFFOLDS = (
    error(
        "GB801",
        "a name can't be used for a project or a gem",
        why="""
            The name of a project becomes the name of a folder and of a pipeline; that of a gem also
            names a Python package, classes, and a distribution for `pip`. So it is made of lower-case
            letters, digits and underscores or hyphens, and begins with a letter. The message says what
            is wrong, and the hint has a name that would do.

            A gem can be called by its own name, `acme_queue`, or by its distribution's,
            `gem-acme-queue`: what is written is the same.
        """,
        breaks="$ gem-bundle new gem 'Acme Queue' --kind source",
        keeps="$ gem-bundle new gem acme_queue --kind source",
    ),
    error(
        "GB802",
        "another distribution has a gem or a package of that name",
        why="""
            Of two sources with one name no pipeline can use either, and of two packages with one name
            Python imports only one. A name that begins with your own, or your company's, is rarely taken.
        """,
        breaks="$ gem-bundle new gem kafka --kind source",
        keeps="$ gem-bundle new gem acme_kafka --kind source",
    ),
    error(
        "GB803",
        "something is there already",
        why="""
            `gem-bundle new` makes a folder and writes over nothing: where the folder is there and isn't
            empty, the message names what is in it, and nothing is written.
        """,
        breaks="""
            $ gem-bundle new clicks
            $ gem-bundle new clicks
        """,
        keeps="$ gem-bundle new clicks",
    ),
)
