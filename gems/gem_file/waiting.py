"""Which files wait for a query: those that are there and that Spark's own log doesn't name."""

from __future__ import annotations

import json
import re
import threading
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote

from gem_bundle.types import local_path
from gem_file.layout import files_below

if TYPE_CHECKING:
    from gem_bundle import WaitingContext
    from gem_file.reading import FileSourceOptions

_SECONDS: Final = 5.0
_ONE: Final = re.compile(r"[0-9]{1,18}")
_WHOLE: Final = re.compile(r"([0-9]{1,18})\.compact")


class FilesThatWait:
    """Counts the files of a source that a query hasn't read, looking at each entry of its log once.

    Args:
        options: The options of the source.
    """

    def __init__(self, options: FileSourceOptions) -> None:
        self._options = options
        self._logs: dict[str, _Log] = {}
        # Each query that reads the source asks in a thread of its own.
        self._lock = threading.Lock()

    def count(self, context: WaitingContext) -> tuple[int, int] | None:
        """How many files wait, and how many there have been.

        Args:
            context: The query's checkpoint.

        Returns:
            None where the files don't lie on this machine, or are too many to be listed in some seconds.
        """
        until = monotonic() + _SECONDS
        options = self._options
        found = files_below(
            options.path,
            recursive=bool(options.recursive_file_lookup),
            name_filter=options.path_glob_filter,
            give_up=lambda: monotonic() > until,
        )
        if found is None:
            return None
        folder = f"{context.checkpoint}/sources"
        with self._lock:
            places = [f"{folder}/{name}" for name in context.folder(folder).names() if name[0] != "."]
            logs = [self._logs.setdefault(place, _Log()).read(context.folder(place)) for place in places]
            # A query may read several folders, and which of its logs is of which source only Spark knows.
            # One log isn't copied: it has all files that were ever read.
            read = logs[0] if len(logs) == 1 else set[str]().union(*logs)
            waiting = sum(str(file) not in read for file in found)
            return waiting, waiting + len(read)


class Names(Protocol):
    """The folder of a log, wherever it lies."""

    def names(self) -> list[str]:
        """The names of its files."""

    def read(self, name: str) -> bytes:
        """What a file holds."""


class _Log:
    """What Spark has written down of files it has read: a file a micro-batch, and at times all in one."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._last = -1

    def read(self, folder: Names) -> set[str]:
        """The files that it names, as paths on this machine where they are.

        Args:
            folder: Where it lies.
        """
        names = folder.names()
        whole = max((int(found[1]) for name in names if (found := _WHOLE.fullmatch(name))), default=-1)
        new = {int(name): name for name in names if _ONE.fullmatch(name)}
        if whole > self._last:
            new = {whole: f"{whole}.compact"} | {n: name for n, name in new.items() if n > whole}
        for number in sorted(n for n in new if n > self._last):
            # The first line is the version of the form.
            for entry in folder.read(new[number]).decode().splitlines()[1:]:
                path = unquote(json.loads(entry)["path"])
                self._files.add(local_path(path) or path)
            self._last = number
        return self._files
