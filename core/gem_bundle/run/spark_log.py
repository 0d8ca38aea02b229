"""The file that Spark's own log goes to, begun where a Spark is started here."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from gem_bundle.errors import GemError
from gem_bundle.run.jars import cache_folder


def begin_log(named: Path | None, pipeline: str) -> Path:
    """See to it that Spark's log can be written.

    When nobody names a file, it is one of the pipeline's own in the cache folder. Where none can be written
    there it is one in the user's part of the folder for temporary files, and else none is kept.

    Args:
        named: The file that somebody names.
        pipeline: The pipeline.

    Returns:
        The file.

    Raises:
        GemError: GB511 when the named file can't be written.
    """
    if named is not None:
        try:
            # A file in the way is told by what can't be done then.
            with suppress(FileExistsError):
                named.parent.mkdir(parents=True)
            return _begun(named)
        except OSError as error:
            raise GemError(
                "GB511",
                f"Spark's log can't be written to {named}: {error.strerror or error}",
                "Name a file that you may write to, or none: the log then goes to the cache folder.",
            ) from error
    for folder_of in (_cached_logs, _temporary_logs):
        with suppress(OSError):
            return _begun(folder_of() / f"{pipeline}.log")
    return Path(os.devnull)


def _begun(file: Path) -> Path:
    with file.open("ab"):
        return file


def _cached_logs() -> Path:
    folder = cache_folder() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _temporary_logs() -> Path:
    folder = Path(tempfile.gettempdir(), f"gem-bundle-{os.getuid()}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    # Anybody may make one of that name, or a link that leads elsewhere.
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(folder)
    return folder
