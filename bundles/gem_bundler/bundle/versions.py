"""A pipeline as a bundle has it, for a comparison with the one that is being worked on."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

from gem_bundle.diagnostics import Diagnostic, suggest
from gem_bundle.errors import PipelineError
from gem_bundler.bundle.manifest import NAME, parse, read

if TYPE_CHECKING:
    from pathlib import Path


def read_version(place: Path, pipeline: str, code: Path) -> tuple[str, bytes] | None:
    """The file of a pipeline in a bundle.

    Args:
        place: The bundle's folder, or its wheel.
        pipeline: The name of the pipeline.
        code: A folder, which gets the modules of the bundle.

    Returns:
        The file's path within the project, and what it holds; None where the place is no bundle.

    Raises:
        PipelineError: GB630 or GB631 when it is a bundle that can't be used, or has no such pipeline.
    """
    if place.is_dir():
        if not (place / NAME).is_file():
            return None
        place = place / read(place).archive
    try:
        with ZipFile(place) as archive:
            inner = next((name for name in archive.namelist() if name.endswith(f"_bundle/{NAME}")), None)
            if inner is None:
                return None
            manifest = parse(archive.read(inner), f"{place}/{inner}")
            found = next((one for one in manifest.pipelines if one.name == pipeline), None)
            if found is None:
                known = suggest(pipeline, [one.name for one in manifest.pipelines], what="pipelines")
                message = f"the bundle `{place}` has no pipeline `{pipeline}`"
                raise PipelineError([Diagnostic("GB630", "error", message, hint=known)])
            archive.extractall(code)
            return found.file, archive.read(f"{manifest.package}/project/{found.file}")
    except (BadZipFile, OSError, KeyError) as error:
        message = f"the bundle `{place}` can't be read ({type(error).__name__}: {error})"
        hint = "Name the folder that `gem-bundle build` wrote, or copy it again."
        raise PipelineError([Diagnostic("GB630", "error", message, hint=hint)]) from error
