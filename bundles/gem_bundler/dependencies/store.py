"""Where wheels are kept, so that a bundle can be built again without an index."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundler.bundle.lock_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundler.bundle.model import LockedDistribution
    from gem_bundler.dependencies.installed import Packed

_PACKED_KEPT = 8


class WheelStore:
    """Wheels in the cache, by their content; several processes may use it at once.

    Args:
        cache: gem-bundle's cache folder.
    """

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "wheels"
        self._packed = cache / "wheels-packed"

    def find(self, wanted: LockedDistribution) -> Path | None:
        """The file of a distribution, if it is there and unchanged."""
        folder = self._packed / wanted.name if wanted.packed else self._folder
        path = folder / wanted.sha256 / wanted.file
        return path if path.is_file() and digest(path.read_bytes()) == wanted.sha256 else None

    def keep(self, path: Path) -> str:
        """Take a wheel into the store; returns its hash."""
        content = path.read_bytes()
        found = digest(content)
        self._put(self._folder / found / path.name, content)
        return found

    def keep_packed(self, packed: Packed) -> None:
        """Take a wheel that was packed here; of each distribution the last few are kept."""
        folder = self._packed / packed.facts.name
        self._put(folder / digest(packed.content) / packed.file, packed.content)
        by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in by_age[_PACKED_KEPT:]:
            shutil.rmtree(old, ignore_errors=True)

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """A folder for downloads, gone at the end."""
        with tempfile.TemporaryDirectory(prefix="gem-bundle-wheels-") as folder:
            yield Path(folder)

    @staticmethod
    def _put(path: Path, content: bytes) -> None:
        if not (path.is_file() and path.read_bytes() == content):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)


def digest(content: bytes) -> str:
    """The SHA-256 of some bytes, in hexadecimal."""
    return sha256(content).hexdigest()
