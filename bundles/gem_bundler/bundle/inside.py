"""A bundle's wheel from the inside: its manifest and its pipeline files, wherever it is imported from."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from gem_bundle.diagnostics import suggest

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.pipeline.loader import Loaded, LoadOptions
    from gem_bundler.bundle.manifest import Manifest
    from gem_bundler.bundle.model import BundlePipeline


@dataclass
class Installed:
    """A bundle's wheel where it is imported from: a folder, or a zip file.

    Args:
        package: The import name of its package.
    """

    package: str

    @cached_property
    def manifest(self) -> Manifest:
        """What is in it.

        Raises:
            PipelineError: GB630 or GB631 when it can't be used.
        """
        from gem_bundler.bundle.manifest import NAME, parse

        return parse(self.data(f"{self.package}/{NAME}") or b"", f"{self.package}/{NAME}")

    def data(self, path: str) -> bytes | None:
        """The bytes of a file of the wheel, or None where it isn't there."""
        try:
            content: bytes = self._loader.get_data(f"{self._root}/{path}")
        except OSError:
            return None
        return content

    def pipeline(self, name: str | None) -> BundlePipeline:
        """The pipeline of that name, or the first one.

        Raises:
            click.UsageError: When there is none of that name.
        """
        pipelines = {pipeline.name: pipeline for pipeline in self.manifest.pipelines}
        if name is None:
            return self.manifest.pipelines[0]
        if name not in pipelines:
            known = suggest(name, pipelines, what="pipelines")
            raise click.UsageError(f"The bundle has no pipeline `{name}`. {known}")
        return pipelines[name]

    def load(self, pipeline: BundlePipeline, root: Path, options: LoadOptions) -> Loaded:
        """Read a pipeline file out of the wheel.

        Args:
            pipeline: Which one.
            root: What its relative paths are relative to.
            options: Parameters, profile, environment.
        """
        from dataclasses import replace
        from pathlib import Path

        from gem_bundle.pipeline.document import parse
        from gem_bundle.pipeline.loader import load_document

        folder = f"{self.package}/project"

        def within(path: str) -> bytes | None:
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(pipeline.file), path))
            return self.data(f"{folder}/{beside}")

        content = self.data(f"{folder}/{pipeline.file}") or b""
        loaded = load_document(parse(content, pipeline.file), options, root)
        if loaded.definition is not None:
            # Its own modules come first, as in a start: the root may have others of the same name.
            loaded.definition = replace(loaded.definition, within=within, modules=Path(self._root))
        return loaded

    @cached_property
    def _loader(self) -> Any:
        found = find_spec(self.package)
        assert found is not None, f"{self.package} starts itself, so it can be imported"
        return found.loader

    @cached_property
    def _root(self) -> str:
        """The folder or the zip file, as Python's path has it: a zip answers to no other spelling."""
        found = find_spec(self.package)
        assert found is not None
        assert found.origin is not None
        return found.origin.replace(os.sep, "/").rpartition("/")[0].rpartition("/")[0]
