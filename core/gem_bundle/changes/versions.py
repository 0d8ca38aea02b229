"""Another version of a pipeline: a file, or what a plugin has made of one, such as a bundle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.check.checker import check_definition, check_file
from gem_bundle.pipeline.document import parse
from gem_bundle.pipeline.loader import load_document
from gem_bundle.plugins import load_registry

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.check.checker import Checked
    from gem_bundle.pipeline.loader import LoadOptions
    from gem_bundle.pipeline.model import Definition

_ARCHIVES = frozenset({".whl", ".zip"})


def check_version(
    place: Path, now: Definition, options: LoadOptions, work: Path
) -> tuple[Checked, Path | None]:
    """Check another version of a pipeline.

    Args:
        place: A pipeline file; or a folder or an archive that a plugin knows.
        now: The pipeline as it is now: relative paths of a version that isn't a file are relative to the same
            folder.
        options: Parameters, profile, environment.
        work: An empty folder.

    Returns:
        What the check finds; and the folder with the modules of its functions, where that isn't the file's.

    Raises:
        PipelineError: When a plugin knows the place and can't read it.
    """
    if place.is_dir() or (place.suffix in _ARCHIVES and place.exists()):
        registry = load_registry()
        for reader in registry.version_readers:
            found = reader.read(place, now.name, work)
            if found is not None:
                name, text = found
                loaded = load_document(parse(text, f"{place}/{name}"), options, now.folder)
                return check_definition(loaded, registry), work
    return check_file(str(place), options), None
