"""The files that a backfill reads: all of a folder, or those that a stream has read, by its own log."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from gem_bundle import GemError
from gem_bundle.types import local_path
from gem_file.paths import has_wildcards

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

    from gem_bundle import SourcePart
    from gem_file.reading import FileSourceOptions

# No file was changed before or behind them, and they have a day's time to both ends of what Python can tell.
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
_WILDCARD = re.compile(r"[\\*?\[\]{}]")


@dataclass(frozen=True, slots=True)
class Files:
    """Some of the files of a source.

    Args:
        since: They were changed at this moment or later; None for any.
        until: They were changed before it.
        paths: Their paths, as Hadoop's patterns; None for all that are there.
    """

    since: datetime | None = None
    until: datetime | None = None
    paths: tuple[str, ...] | None = None

    def __str__(self) -> str:
        if self.paths is not None:
            return f"{len(self.paths):,} files that the stream has read"
        return "whole" if self.since is None else f"the files changed from {self.since} to {self.until}"

    def modified(self, zone: tzinfo) -> dict[str, str]:
        """The options by which a batch reads files of the time.

        Args:
            zone: The time zone in which Spark reads them.
        """
        if self.since is None or self.until is None:
            return {}
        # Spark leaves out files of exactly these moments.
        second = timedelta(seconds=1)
        since, until = max(self.since, _EARLIEST), min(self.until, _LATEST)
        times = {"modified_after": since - second, "modified_before": until + second}
        return {name: f"{at.astimezone(zone):%Y-%m-%dT%H:%M:%S}" for name, at in times.items()}


def files_of(options: FileSourceOptions, part: SourcePart) -> Files:
    """Which files a part has.

    Args:
        options: The options of the source.
        part: The part.

    Raises:
        GemError: GB453 when files that a stream has read are archived or deleted.
    """
    if options.clean_source not in {None, "off"}:
        message = f"with `clean_source: {options.clean_source}` files that were read are gone"
        raise GemError("GB453", message, "", "clean_source")
    if part.offset is None and not part.complete:
        return Files(part.since, part.until)
    last = part.offset.get("logOffset", -1) if isinstance(part.offset, dict) else None
    seen = [entry for entry in _entries(part) if last is None or entry.get("batchId", 0) <= last]
    wanted = [entry for entry in seen if _in_time(entry, part) and not _filed_elsewhere(entry, options, part)]
    gone = [path for entry in wanted if (path := _gone(entry["path"])) is not None]
    if part.complete and gone:
        more = f" and {len(gone) - 1} others" if len(gone) > 1 else ""
        message = f"{gone[0]}{more} can't be read once more: the stream has read it, and it is gone"
        raise GemError("GB453", message, "Put it back, or write to another place with `--into`.", "path")
    if part.offset is None:
        return Files(part.since, part.until)
    return Files(paths=tuple(_WILDCARD.sub(r"\\\g<0>", unquote(entry["path"])) for entry in wanted))


def _entries(part: SourcePart) -> Iterator[dict[str, Any]]:
    for _, lines in part.log():
        for line in lines:
            entry = json.loads(line)
            if isinstance(entry, dict) and "path" in entry:
                yield entry


def _gone(url: str) -> str | None:
    """A file that was on this machine and isn't there any more."""
    local = local_path(unquote(url))
    return local if local is not None and not Path(local).exists() else None


def _in_time(entry: dict[str, Any], part: SourcePart) -> bool:
    """Whether a file was last changed in the time of a part."""
    changed = datetime.fromtimestamp(entry.get("timestamp", 0) / 1000, UTC)
    return (part.since is None or changed >= part.since) and (part.until is None or changed < part.until)


def _filed_elsewhere(entry: dict[str, Any], options: FileSourceOptions, part: SourcePart) -> bool:
    """Whether a file is certain to lie in the folder of a day that isn't needed."""
    raw = {name.lower() for name in options.spark_options} & {"recursivefilelookup", "basepath"}
    if part.filed is None or options.recursive_file_lookup or options.base_path is not None or raw:
        return False
    base, path = (_plain(text) for text in (options.path, unquote(entry["path"])))
    if has_wildcards(options.path) or not path.startswith(f"{base}/"):
        return False
    name, first, last = part.filed
    for folder in path[len(base) :].split("/")[:-1]:
        column, _, value = folder.partition("=")
        if column.lower() == name.lower():
            try:
                return not first <= date.fromisoformat(value) <= last
            except ValueError:
                return False
    return False


def _plain(path: str) -> str:
    """A path as it is compared: Spark says ``file:/data``, and a pipeline ``/data``."""
    return (local_path(path) or path).rstrip("/")
