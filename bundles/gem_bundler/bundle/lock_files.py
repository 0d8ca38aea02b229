"""The files beside a pipeline and in the cache: seen whole by others, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gem_bundle.errors import GemError


def write_lock(path: Path, content: bytes) -> None:
    """Write a lock, so that others see it whole or not at all; an equal one is left as it is.

    Raises:
        GemError: GB647 when it can't be written.
    """
    try:
        if not (path.is_file() and path.read_bytes() == content):
            write_whole(path, content)
    except OSError as error:
        raise GemError(
            "GB647",
            f"the lock `{path.name}` can't be written: {error.strerror}",
            f"It is kept beside the pipeline, in `{path.parent}`: make that folder writable.",
        ) from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that others see it whole or not at all.

    Raises:
        OSError: When it can't be written.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
