"""Small files beside the data, wherever that lies: records, leases, and what Spark keeps in a checkpoint.

A file is written as a whole or not at all. On a disk it is written under another name and renamed; object
stores show a file only when it is complete; elsewhere (HDFS, SFTP) it is renamed too.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from gem_bundle.types import is_remote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

P = ParamSpec("P")
T = TypeVar("T")

_OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "memory"})

_FILE_SYSTEMS = _OBJECT_STORES | {"dbfs", "hdfs", "viewfs", "wasb", "wasbs"}

EXPIRED: Final = re.compile(r"\bExpiredToken|\b(?:provided|security) token [\w ]*\bexpired\b")
"""What a store says of temporary credentials whose time is over."""

PASSING: Final = re.compile(
    r"slow ?down|reduce your request rate|service ?(?:is )?(?:currently )?(?:unavailable|unable to handle)"
    r"|internal ?(?:server )?error|too ?many ?requests|server ?(?:is )?busy|request ?time(?:d )?-?out"
    r"|timeout period|bad gateway|gateway time-?out|throttl|backend ?error|\[Errno (?:11|16|121)\]",
    re.IGNORECASE,
)
"""What a store says that is busy or ill, and may answer the next time."""

NEW_CREDENTIALS: Final = (
    "Start again with new credentials: in the environment (`AWS_SESSION_TOKEN` and the like), or in Spark's "
    "settings."
)
"""What to do about that."""

INSTALL: Final = (
    "For a place in the cloud, install the package that teaches fsspec its scheme (s3fs, gcsfs, adlfs, …)."
)
"""What to do where nothing here can read and write a kind of place."""


class NoFilesError(OSError):
    """Nothing here can read and write that kind of place; the text says why."""


class Folder(Protocol):
    """A folder with small files.

    Attributes:
        location: Where it lies, as this machine sees it.
        exclusive: Of two who create a file at once, one fails for certain.
    """

    location: str
    exclusive: bool

    def names(self) -> list[str]:
        """The names of the files and folders in it; none where there is no folder."""

    def read(self, name: str) -> bytes:
        """What a file holds; raises FileNotFoundError."""

    def size(self, name: str) -> int:
        """The size of a file in bytes; raises FileNotFoundError."""

    def create(self, name: str, content: bytes) -> None:
        """Write a file that isn't there yet; raises FileExistsError."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file, as a whole or not at all; one of that name is replaced."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""


def open_folder(location: str) -> Folder:
    """The folder at a place; it need not exist.

    Args:
        location: A path, or a URL that fsspec or Databricks knows.

    Raises:
        NoFilesError: When nothing here can read and write that kind of place.
    """
    mounted = _mounted(location)
    if not is_remote(mounted):
        return _LocalFolder(Path(mounted.removeprefix("file://").removeprefix("file:")))
    return _RemoteFolder(mounted)


class _LocalFolder:
    exclusive = True

    def __init__(self, path: Path) -> None:
        self.location = str(path)
        self._path = path

    def names(self) -> list[str]:
        try:
            return os.listdir(self._path)  # noqa: PTH208 (only names are needed)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()

    def size(self, name: str) -> int:
        return (self._path / name).stat().st_size

    def create(self, name: str, content: bytes) -> None:
        self._path.mkdir(parents=True, exist_ok=True)
        with (self._path / name).open("xb") as file:
            file.write(content)

    def write(self, name: str, content: bytes) -> None:
        self._path.mkdir(parents=True, exist_ok=True)
        draft = self._path / f".{name.lstrip('.')}.{os.getpid()}.tmp"
        try:
            with draft.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path / name)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)


def _again_with_new_credentials(
    ask: Callable[Concatenate[_RemoteFolder, P], T],
) -> Callable[Concatenate[_RemoteFolder, P], T]:
    """Ask a store once more where it says that credentials have expired: there may be new ones by now."""

    @wraps(ask)
    def asked(self: _RemoteFolder, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return ask(self, *args, **kwargs)
        except OSError as error:
            reason = self.reason(error)
            if not EXPIRED.search(str(reason)):
                raise
        self.log_in()
        try:
            return ask(self, *args, **kwargs)
        except OSError as error:
            raise self.reason(error) from error

    return asked


class _RemoteFolder:
    exclusive = False

    def __init__(self, url: str) -> None:
        import fsspec

        self.location = url
        try:
            self._fs: Any
            self._fs, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise NoFilesError(str(error)) from error
        protocol = self._fs.protocol
        self._protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self._stores_objects = not _OBJECT_STORES.isdisjoint(self._protocols)

    def log_in(self) -> None:
        import fsspec

        # A client that was made before keeps the credentials that it found then.
        self._fs, self._root = fsspec.core.url_to_fs(self.location, skip_instance_cache=True)

    def reason(self, error: OSError) -> OSError:
        # Asked for the head of an object, S3 refuses without a word; asked for a list, it says why.
        if error.errno != errno.EINVAL:
            return error
        self._fs.invalidate_cache()
        try:
            self._fs.ls(self._root)
        except FileNotFoundError:
            return error
        except OSError as told:
            return told
        return error

    @_again_with_new_credentials
    def names(self) -> list[str]:
        self._fs.invalidate_cache()
        try:
            return [
                str(path).rstrip("/").rpartition("/")[2] for path in self._fs.ls(self._root, detail=False)
            ]
        except (FileNotFoundError, NotADirectoryError):
            return []

    @_again_with_new_credentials
    def read(self, name: str) -> bytes:
        content: bytes = self._fs.cat_file(self._path(name))
        return content

    @_again_with_new_credentials
    def size(self, name: str) -> int:
        return int(self._fs.size(self._path(name)) or 0)

    @_again_with_new_credentials
    def create(self, name: str, content: bytes) -> None:
        path = self._path(name)
        self._make()
        try:
            with self._fs.open(path, "xb") as file:
                file.write(content)
        except (NotImplementedError, ValueError):  # the store knows no exclusive create
            if self._fs.exists(path):
                raise FileExistsError(path) from None
            self._fs.pipe_file(path, content)

    @_again_with_new_credentials
    def write(self, name: str, content: bytes) -> None:
        self._make()
        if self._stores_objects:
            self._fs.pipe_file(self._path(name), content)
            return
        draft = self._path(f".{name.lstrip('.')}.{os.getpid()}.tmp")
        self._fs.pipe_file(draft, content)
        self._fs.mv(draft, self._path(name))

    @_again_with_new_credentials
    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._path(name))

    def _make(self) -> None:
        if not self._stores_objects or "memory" in self._protocols:
            self._fs.makedirs(self._root, exist_ok=True)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def advice(said: str, otherwise: str = INSTALL) -> str:
    """What to do about what a store said.

    Args:
        said: Its words.
        otherwise: What to do where it isn't that credentials have expired.
    """
    return f"The credentials have expired. {NEW_CREDENTIALS}" if EXPIRED.search(said) else otherwise


def in_file_system(place: str) -> bool:
    """Whether a place lies in a file system that Spark knows, and that isn't this machine's."""
    scheme, found, _ = place.partition(":")
    return bool(found) and scheme.lower() in _FILE_SYSTEMS


def split(location: str) -> tuple[str, str]:
    """The folder that something lies in, and its name there."""
    folder, _, name = location.rstrip("/").rpartition("/")
    return folder or "/", name


def below(location: str, *names: str) -> str:
    """The place of something below a folder."""
    return "/".join([location.rstrip("/"), *names])


def numbered(names: Iterable[str]) -> Iterator[int]:
    """The numbers among names, as Spark calls the files of its logs; in no order."""
    return (int(name) for name in names if name.isascii() and name.isdigit() and len(name) < 19)


def _mounted(url: str) -> str:
    """A Databricks URL by the path under which a cluster mounts it."""
    if not url.startswith("dbfs:"):
        return url
    path = "/" + url.removeprefix("dbfs:").lstrip("/")
    return path if path.startswith("/Volumes/") else f"/dbfs{path}"
