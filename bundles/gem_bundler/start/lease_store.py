"""Where leases lie: small files beside a checkpoint."""

from __future__ import annotations

from typing import Protocol

from gem_bundle.errors import GemError
from gem_bundle.files import NoFilesError, numbered, open_folder, split

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
        folder, target = split(checkpoint)
        try:
            self._folder = open_folder(folder)
        except NoFilesError as error:
            scheme = folder.partition(":")[0]
            raise GemError(
                "GB662",
                f"no lease can be kept beside the checkpoint {checkpoint}: {error}",
                f"Add the package that teaches fsspec `{scheme}:` (s3fs, gcsfs, adlfs, …) to the bundle, or "
                "choose another place for the checkpoints.",
            ) from error
        self._name = f".{target}.lease."
        self.settle = 0.0 if self._folder.exclusive else SETTLE_SECONDS

    def generations(self) -> list[int]:
        """The generations that are there, in order."""
        names = [name for name in self._folder.names() if name.startswith(self._name)]
        return sorted(numbered(name.removeprefix(self._name) for name in names))

    def read(self, generation: int) -> bytes:
        """One generation's content."""
        return self._folder.read(f"{self._name}{generation}")

    def create(self, generation: int, content: bytes) -> None:
        """Write a new generation, by whatever the store has against two who do so at once."""
        self._folder.create(f"{self._name}{generation}", content)

    def write(self, generation: int, content: bytes) -> None:
        """Write over a generation."""
        self._folder.write(f"{self._name}{generation}", content)

    def remove(self, generation: int) -> None:
        """Remove a generation, if it is there."""
        self._folder.remove(f"{self._name}{generation}")
