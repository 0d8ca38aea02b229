"""The page of the pipeline file: every key, with those of the sections that plugins read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from gem_bundle.describe.facts import describe_fields
from gem_bundle.describe.markdown import options_table
from gem_bundle.describe.pipeline import REQUIRED
from gem_bundle.pipeline import model
from gem_bundle.pipeline.parameters import DECLARATION, ParameterType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.describe.facts import OptionDescription
    from gem_bundle.plugins import SectionEntry


def pipeline_file_page(sections: Iterable[SectionEntry]) -> str:
    """All keys of a pipeline file.

    Args:
        sections: The sections that plugins read.

    Raises:
        PluginError: When the model of one of them can't be loaded.
    """
    return "\n\n".join(_parts(sections))


def _parts(sections: Iterable[SectionEntry]) -> Iterator[str]:
    yield "# Keys of the pipeline file"
    yield (
        "Unknown keys are errors; one that begins with "
        f"`{model.EXTENSION_PREFIX}` may hold anything, for YAML's anchors. "
        "`gem-bundle schema` writes all this as a JSON Schema, for editors."
    )
    yield "## The file"
    yield options_table(map(_as_it_is_checked, describe_fields(model.PipelineShape)), "key")
    yield (
        f"A parameter is declared by its default, or by a mapping of {_words(sorted(DECLARATION))}; "
        f"its type is {_words(get_args(ParameterType), 'or')}."
    )
    for name, shape in model.NODE_SHAPES.items():
        yield f"## A node in `{name}`"
        yield f"{shape.__doc__} {model.ID_RULE.replace('Use', 'Its id is', 1)}"
        # A target's trigger is a table of its own.
        keys = [key for key in describe_fields(shape) if not key.name.startswith("trigger.")]
        yield options_table(keys, "key")
    yield "### `trigger`"
    yield "Exactly one of:"
    yield options_table(describe_fields(model.TriggerShape), "key")
    for section in sections:
        yield section_page(section, level=2)


def section_page(section: SectionEntry, level: int = 1) -> str:
    """The keys of a section that a plugin reads.

    Args:
        section: The section.
        level: The level of its heading.

    Raises:
        PluginError: When its model can't be loaded.
    """
    whose = f"It is read by the plugin `{section.origin.plugin}` of `{section.origin.distribution}`."
    keys = options_table(describe_fields(section.load()), "key")
    return f"{'#' * level} `{section.name}`\n\n{whose}\n\n{keys}"


def _as_it_is_checked(key: OptionDescription) -> OptionDescription:
    """A key whose value is a mapping that is checked part by part, for which the model takes anything."""
    kind = "mapping" if key.type == "any value" else key.type
    return replace(key, type=kind, required=key.name in REQUIRED)


def _words(words: Iterable[str], last: str = "and") -> str:
    *first, end = [f"`{word}`" for word in words]
    return f"{', '.join(first)} {last} {end}"
