"""Another version of a pipeline: a file, or what a plugin has made of one, such as a bundle."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import load_document, read_file
from gem_bundle.plugins import load_registry
from gem_bundle.settings import settings_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gem_bundle.check.checker import Checked
    from gem_bundle.pipeline.document import Document
    from gem_bundle.pipeline.loader import LoadOptions
    from gem_bundle.pipeline.model import Definition

_ARCHIVES = frozenset({".whl", ".zip"})
_FUNCTION = re.compile(r"(\w+)(\.\w+)*:\w+(\.\w+)*")


def check_version(place: Path, now: Definition, options: LoadOptions, work: Path) -> Checked:
    """Check another version of a pipeline, as though it lay where the pipeline lies now.

    Relative paths are relative to the same folder, since there it ran. Its modules and its project's settings
    are those it has beside it; a file that was copied out of its project has those of the pipeline as it is.

    Args:
        place: A pipeline file; or a folder or an archive that a plugin knows.
        now: The pipeline as it is now.
        options: Parameters, profile, environment. What the version doesn't know of them is left out: it is
            compared as it was.
        work: An empty folder.

    Raises:
        PipelineError: When a plugin knows the place and can't read it.
    """
    registry = load_registry()
    document, modules, project = None, None, None
    if place.is_dir() or (place.suffix in _ARCHIVES and place.exists()):
        for reader in registry.version_readers:
            found = reader.read(place, now.name, work)
            if found is not None:
                name, text = found
                document, modules = parse(text, f"{place}/{name}"), work
                break
    if document is None:
        document = read_file(place)
        folder = place.absolute().parent
        modules = folder if any(map(_in(folder), _texts(document.values))) else None
        project = folder if settings_file(folder) is not None else None
    loaded = load_document(document, _known(document, options), now.folder)
    if loaded.definition is not None:
        loaded.definition = replace(loaded.definition, modules=modules, project=project)
    return check_definition(loaded, registry)


def _in(folder: Path) -> Callable[[str], bool]:
    """Whether a text names a function or a class of a module in a folder."""

    def is_there(text: str) -> bool:
        named = _FUNCTION.fullmatch(text)
        return named is not None and ((folder / f"{named[1]}.py").is_file() or (folder / named[1]).is_dir())

    return is_there


def _texts(values: Any) -> Iterator[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, dict | list):
        for value in values.values() if isinstance(values, dict) else values:
            yield from _texts(value)


def _known(document: Document, options: LoadOptions) -> LoadOptions:
    """The options without the parameters and the profile that a version hasn't had yet."""
    values = document.values if isinstance(document.values, dict) else {}
    sections = (values.get("parameters"), values.get("profiles"))
    parameters, profiles = (section if isinstance(section, dict) else {} for section in sections)
    return replace(
        options,
        parameters={name: value for name, value in options.parameters.items() if name in parameters},
        profile=options.profile if options.profile in profiles else None,
    )
