"""What builds on this machine have proved on executors, so that the next one needn't start Spark for it."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from typing import TYPE_CHECKING

from gem_bundle.run.jars import cache_folder, spark_version
from gem_bundler.bundle.lock_files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundler.bundle.manifest import Manifest


class Proofs:
    """Remembers what was loaded on executors, by the content of all that they load.

    That is the archive of dependencies, which holds the runtime and the gems, and the project's own modules.
    The pipeline isn't part of it: it is checked on the driver, and each time.

    Args:
        cache: Where it is remembered; by default `cache_folder`.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self._folder = (cache or cache_folder()) / "proofs"

    def has(self, manifest: Manifest) -> bool:
        """Whether executors have loaded the same before."""
        return (self._folder / _key(manifest)).is_file()

    def keep(self, manifest: Manifest) -> None:
        """Remember that executors have loaded everything of a bundle."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._folder / _key(manifest), f"{manifest.name} {manifest.version}\n".encode())


def _key(manifest: Manifest) -> str:
    """The hash of what decides whether executors can load a bundle here."""
    pipelines = {f"{manifest.package}/project/{pipeline.file}" for pipeline in manifest.pipelines}
    facts = {
        "python": sys.version,
        "spark": spark_version(),
        "package": manifest.package,
        "deps": [file.sha256 for file in manifest.files if file.path == manifest.deps],
        "gems": [(gem.kind, gem.name) for gem in manifest.gems],
        "modules": manifest.modules,
        "contents": [(file.path, file.sha256) for file in manifest.contents if file.path not in pipelines],
    }
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
