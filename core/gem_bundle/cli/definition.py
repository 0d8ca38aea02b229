"""A pipeline file read only as far as where its checkpoints lie and what its targets are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.cli.output import print_diagnostics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gem_bundle.pipeline.model import Definition


def read_definition(file: str, parameters: Mapping[str, str], profile: str | None) -> Definition:
    """The definition of a pipeline, also of one that `check` would refuse; else the command ends here.

    Args:
        file: The pipeline file.
        parameters: Values for its parameters.
        profile: The profile to use.
    """
    from gem_bundle.pipeline.loader import LoadOptions, load_file

    loaded = load_file(file, LoadOptions(parameters, profile))
    # Where the checkpoints are may depend on a variable that isn't set.
    if loaded.definition is None or any(diagnostic.code == "GB014" for diagnostic in loaded.diagnostics):
        print_diagnostics(loaded.diagnostics)
        raise SystemExit(1)
    return loaded.definition
