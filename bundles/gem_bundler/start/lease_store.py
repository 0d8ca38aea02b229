"""Where leases lie: small files beside a checkpoint, through fsspec."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Protocol

from gem_bundle.errors import GemError

SETTLE_SECONDS = 2.0
"""How long after a create that may not be atomic one looks whose words are there."""


class Store(Protocol):
    """Where the generations of one lease lie."""

    settle: float
    """How long after a create one has to wait before looking who won; 0 where it is atomic."""

    def generations(self) -> list[int]:
        """The generations that are there, in order."""

    def read(self, generation: int) -> bytes:
        """One generation's content; raises FileNotFoundError."""

    def create(self, generation: int, content: bytes) -> None:
        """Write a new generation; raises FileExistsError."""

    def write(self, generation: int, content: bytes) -> None:
        """Write over a generation."""

    def remove(self, generation: int) -> None:
        """Remove a generation, if it is there."""


class FileStore:
    """The generations of a lease as files beside a checkpoint.

    Args:
        checkpoint: The checkpoint's location: a path, or a URL that fsspec or Databricks knows.

    Raises:
        GemError: GB662 when nothing here can read and write that kind of place.
    """

    def __init__(self, checkpoint: str) -> None:
        import fsspec

        folder, _, target = checkpoint.rstrip("/").rpartition("/")
        try:
            self._fs, self._folder = fsspec.core.url_to_fs(_mounted(folder))
        except (ImportError, ValueError) as error:
            scheme = folder.partition(":")[0]
            raise GemError(
                "GB662",
                f"no lease can be kept beside the checkpoint {checkpoint}: {error}",
                f"Add the package that teaches fsspec `{scheme}:` (s3fs, gcsfs, adlfs, …) to the bundle, or "
                "choose another place for the checkpoints.",
            ) from error
        self._name = f".{target}.lease."
        self.settle = 0.0 if "file" in self._protocols() else SETTLE_SECONDS

    def _protocols(self) -> tuple[str, ...]:
        protocol = self._fs.protocol
        return (protocol,) if isinstance(protocol, str) else tuple(protocol)

    def generations(self) -> list[int]:
        """The generations that are there, in order."""
        self._fs.invalidate_cache()
        try:
            names = [str(path).rpartition("/")[2] for path in self._fs.ls(self._folder, detail=False)]
        except FileNotFoundError:
            return []
        found = (re.fullmatch(rf"{re.escape(self._name)}(\d{{1,18}})", name) for name in names)
        return sorted(int(match[1]) for match in found if match)

    def read(self, generation: int) -> bytes:
        """One generation's content."""
        content: bytes = self._fs.cat_file(self._path(generation))
        return content

    def create(self, generation: int, content: bytes) -> None:
        """Write a new generation, by whatever the store has against two who do so at once."""
        path = self._path(generation)
        if not self.settle:  # folders are no concern of object stores
            self._fs.makedirs(self._folder, exist_ok=True)
        try:
            with self._fs.open(path, "xb") as file:
                file.write(content)
        except (NotImplementedError, ValueError):  # the store knows no exclusive create
            if self._fs.exists(path):
                raise FileExistsError(path) from None
            self.write(generation, content)

    def write(self, generation: int, content: bytes) -> None:
        """Write over a generation."""
        self._fs.pipe_file(self._path(generation), content)

    def remove(self, generation: int) -> None:
        """Remove a generation, if it is there."""
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._path(generation))

    def _path(self, generation: int) -> str:
        return f"{self._folder}/{self._name}{generation}"


def _mounted(url: str) -> str:
    """A Databricks URL by the path under which a cluster mounts it."""
    if not url.startswith("dbfs:"):
        return url
    path = "/" + url.removeprefix("dbfs:").lstrip("/")
    return path if path.startswith("/Volumes/") else f"/dbfs{path}"
