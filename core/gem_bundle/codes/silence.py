"""GB019: comments that silence."""

from __future__ import annotations

from gem_bundle.codes.code import note

SILENCE = (
    note(
        "GB019",
        "a comment that silences nothing",
        why="""
            A comment `# gem-bundle: ignore GB328` silences a warning or a note of a node. It stands
            behind the node's key, behind the key that the warning is about, or on a line of its own
            right above one of them; several codes have commas between them, and a reason may follow.
            `disable` in the table `[check]` of the project's settings silences a code everywhere.

            This one names no code, a code that doesn't exist, or one that isn't reported there: what it
            was for may be gone, or the comment may have moved. Errors can't be silenced.
        """,
        breaks="""
            sources:
              ticks: {gem: rate}  # gem-bundle: ignore GB328
        """,
        keeps="""
            transforms:
              once:  # gem-bundle: ignore GB328 there are few different values
                gem: deduplicate
                input: ticks
                options: {columns: value}
            targets:
              screen: {gem: console, input: once}
        """,
    ),
)
