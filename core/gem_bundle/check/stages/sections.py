"""The sections of the pipeline file that plugins read, against the plugins' models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import PluginError
from gem_bundle.pipeline.problems import FILE_CODES, problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

    from gem_bundle.pipeline.model import Definition
    from gem_bundle.plugins import Registry


def read_sections(
    definition: Definition, registry: Registry
) -> tuple[dict[str, BaseModel], list[Diagnostic]]:
    """The sections that plugins read, as their models; and what is wrong in the others.

    One that nobody reads is a warning.
    """
    models: dict[str, BaseModel] = {}
    return models, list(_read(definition, registry, models))


def _read(definition: Definition, registry: Registry, models: dict[str, BaseModel]) -> Iterator[Diagnostic]:
    for name, values in definition.sections.items():
        section = registry.sections.get(name)
        place = definition.locator.place((name,), key=True)
        if section is None:
            message = f"no installed plugin reads the section `{name}`"
            hint = "Install the plugin that does, or remove the section."
            yield Diagnostic("GB020", "warning", message, path=(name,), place=place, hint=hint)
            continue
        try:
            model = section.load()
        except PluginError as error:
            yield Diagnostic("GB202", "error", str(error), path=(name,), place=place, hint=error.hint)
            continue
        try:
            models[name] = model.model_validate(values)
        except ValidationError as error:
            for problem in problems(error, values, model):
                if problem.kind == "ignored":
                    continue
                path = (name, *problem.path)
                place = problem.place(definition.locator, path)
                message = f"{name}: {problem.message}"
                yield Diagnostic(
                    FILE_CODES[problem.kind], "error", message, path=path, place=place, hint=problem.hint
                )
