"""Where resolved jars are kept: by content, with a lock for every question that was answered.

The store holds

- ``locks/<key>.json``: an answer. It is written last, so that an interrupted run leaves no half one;
- ``files/<sha256>/<name>.jar``: the jars, each once, however many pipelines use it;
- ``ivy``: Ivy's own cache, so that a pipeline with one more gem downloads only what is new;
- ``resolving-…``: the work of a process that is resolving now.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FORMAT = 1
_A_DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar that a session needs.

    Args:
        coordinate: What it is: ``group:artifact:version``.
        path: Where it lies in the cache.
        sha256: The checksum of its content.
        size: In bytes.
        origin: The repository it came from.
        requested_by: The coordinates that depend on it; empty for one that was asked for.
        cached: Whether it was taken from the cache, without asking a repository.
    """

    coordinate: str
    path: Path
    sha256: str
    size: int
    origin: str
    requested_by: tuple[str, ...] = ()
    cached: bool = False

    def is_intact(self) -> bool:
        """Whether the file is there with the content it was resolved with."""
        try:
            return self.path.stat().st_size == self.size and checksum(self.path) == self.sha256
        except OSError:
            return False


class JarStore:
    """A folder of jars and locks that several processes may use at once.

    Args:
        folder: Made when something is put into it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def ivy(self) -> Path:
        """The folder of Ivy's cache."""
        return self.folder / "ivy"

    def read(self, key: str) -> list[Jar] | None:
        """The jars of an answer, unverified; None when it isn't there or can't be read."""
        try:
            entries = json.loads(self._lock(key).read_bytes())["jars"]
            return [
                Jar(
                    coordinate=entry["coordinate"],
                    path=self._file(entry["sha256"], entry["file"]),
                    sha256=entry["sha256"],
                    size=entry["size"],
                    origin=entry["origin"],
                    requested_by=tuple(entry["requested_by"]),
                    cached=True,
                )
                for entry in entries
            ]
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def write(self, key: str, jars: Iterable[Jar], question: Mapping[str, object]) -> list[Jar]:
        """Take jars into the store and write the answer's lock.

        Returns:
            The jars as they lie in the store.
        """
        kept = [self._keep(jar) for jar in jars]
        entries = [
            {
                "coordinate": jar.coordinate,
                "file": jar.path.name,
                "sha256": jar.sha256,
                "size": jar.size,
                "origin": jar.origin,
                "requested_by": jar.requested_by,
            }
            for jar in kept
        ]
        content = {"format": FORMAT, **question, "jars": entries}
        _write(self._lock(key), json.dumps(content, indent=1).encode())
        return kept

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """A folder for the time of a resolution; what killed processes left is swept up first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob("resolving-*"):
            if _is_abandoned(left):
                shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="resolving-", dir=self.folder) as folder:
            yield Path(folder)

    def _lock(self, key: str) -> Path:
        return self.folder / "locks" / f"{key}.json"

    def _file(self, sha256: str, name: str) -> Path:
        return self.folder / "files" / sha256 / name

    def _keep(self, jar: Jar) -> Jar:
        kept = replace(jar, path=self._file(jar.sha256, jar.path.name))
        if not kept.is_intact():
            _write(kept.path, jar.path.read_bytes())
        return kept


def checksum(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _is_abandoned(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > _A_DAY
    except OSError:  # its owner has just removed it
        return False


def _write(path: Path, content: bytes) -> None:
    """Write a file so that others see it whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
