"""A gem described by its own declarations: options, semantics, jars and an example.

What `gem-bundle describe` prints, the reference pages and editors' schemas come from here, so that there is
nothing to keep in step by hand.

Names are imported when they are first used, so that nobody pays for the pages or the schema of all gems to
look at one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gem_bundle.describe.facts import GemDescription as GemDescription
    from gem_bundle.describe.facts import OptionDescription as OptionDescription
    from gem_bundle.describe.facts import describe_fields as describe_fields
    from gem_bundle.describe.facts import describe_gem as describe_gem
    from gem_bundle.describe.markdown import example_yaml as example_yaml
    from gem_bundle.describe.markdown import option_notes as option_notes
    from gem_bundle.describe.markdown import options_table as options_table
    from gem_bundle.describe.markdown import table as table
    from gem_bundle.describe.markdown import value_in_words as value_in_words
    from gem_bundle.describe.pipeline import pipeline_schema as pipeline_schema
    from gem_bundle.describe.schema import json_schema as json_schema
    from gem_bundle.describe.semantics import semantics_in_words as semantics_in_words
    from gem_bundle.describe.words import type_in_words as type_in_words

_HOMES = {
    "facts": (
        "GemDescription",
        "OptionDescription",
        "describe_fields",
        "describe_gem",
    ),
    "markdown": (
        "example_yaml",
        "option_notes",
        "options_table",
        "table",
        "value_in_words",
    ),
    "pipeline": ("pipeline_schema",),
    "schema": ("json_schema",),
    "semantics": ("semantics_in_words",),
    "words": ("type_in_words",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605 (derived, so that it can't differ from what is importable)


def __getattr__(name: str) -> object:
    from gem_bundle.late import load_name

    return load_name(__name__, _HOME, name)


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
