"""What Spark itself left in a checkpoint, read without a JVM.

The offset log says of each micro-batch what it was to read, and the commit log which ones are done. Beside
them lie a file with the query's id, what some sources keep for themselves, and the state with a description
of each operator. Spark calls none of that a public format, so what isn't as expected is left out; what is
broken is said to be, and so is what is missing, where one part tells for certain that another was there.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.changes.logs import batches_of, last_commits, last_offsets, query_id
from gem_bundle.changes.missing import missing_parts
from gem_bundle.changes.reading import names_in
from gem_bundle.changes.state_files import (
    operators_of,
    read_kinds,
    read_operators,
    read_partitions,
    read_stores,
)
from gem_bundle.errors import describe_error
from gem_bundle.files import NoFilesError, below, open_folder, split
from gem_bundle.types import is_remote, local_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from gem_bundle.changes.logs import Commit, Offsets
    from gem_bundle.changes.state_files import StateOperator, StateStore

_PARTITIONS = "spark.sql.shuffle.partitions"


class UnseenError(OSError):
    """A checkpoint can't be looked at from here; the text says why, as the end of a sentence."""


@dataclass(frozen=True)
class SparkCheckpoint:
    """What Spark left of a query.

    Args:
        location: Where it lies.
        query: The id of the query; empty when it can't be told.
        offsets: What the last micro-batches were to read, newest last.
        commits: The last micro-batches that are done, newest last.
        problems: What is broken, each as a sentence without its end.
        has_state: Whether state of any operator is there; None when nobody has looked.
    """

    location: str
    query: str = ""
    offsets: tuple[Offsets, ...] = ()
    commits: tuple[Commit, ...] = ()
    problems: tuple[str, ...] = ()
    has_state: bool | None = None

    @property
    def newest(self) -> Offsets | None:
        """What the newest micro-batch was to read."""
        return self.offsets[-1] if self.offsets else None

    @property
    def next_batch(self) -> int:
        """The number of the next micro-batch; one without a commit is run again."""
        done = self.commits[-1].batch if self.commits else -1
        newest = self.newest
        if newest is None or self.continuous:
            return done + 1
        # Commits may be lost or never written: only the newest micro-batch is run again.
        return max(done + 1, newest.batch)

    @property
    def unfinished(self) -> int | None:
        """The number of a micro-batch that was begun and isn't done."""
        newest = self.newest
        return newest.batch if newest is not None and newest.batch >= self.next_batch else None

    @property
    def named(self) -> bool | None:
        """Whether its sources have names, which they have from the first run or never."""
        return None if self.newest is None else self.newest.format == "v2"

    @property
    def continuous(self) -> bool | None:
        """Whether continuous processing made it; None when it has processed nothing."""
        return None if self.newest is None else self.newest.continuous

    @property
    def watermark(self) -> int | None:
        """The watermark of the next micro-batch, in milliseconds since 1970; None when there is none."""
        if self.commits and self.commits[-1].watermark:
            return self.commits[-1].watermark
        return (self.newest.watermark if self.newest is not None else None) or None

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that it froze, as its log has them."""
        return {} if self.newest is None else self.newest.settings

    @cached_property
    def frozen(self) -> Mapping[str, str]:
        """The settings that it froze, with the number of partitions that its state has."""
        # Spark 4.2 writes it into the log from the first restart on only.
        partitions = self.partitions
        return {**self.settings} | ({_PARTITIONS: str(partitions)} if partitions is not None else {})

    @cached_property
    def operators(self) -> tuple[StateOperator, ...]:
        """The stateful operators; they are looked at when they are asked for.

        Raises:
            UnseenError: When they can't be from here, here and below.
        """
        with _looking(self.location):
            return tuple(read_operators(self.location))

    @property
    def kinds(self) -> tuple[str, ...]:
        """What Spark calls the stateful operators, without a look at their state; empty when unknown."""
        with _looking(self.location):
            return tuple(read_kinds(self.location))

    @cached_property
    def stores(self) -> tuple[tuple[str, tuple[StateStore, ...]], ...]:
        """What Spark calls the stateful operators, with their stores, without a look at what these hold."""
        with _looking(self.location):
            return tuple(read_stores(self.location))

    @property
    def partitions(self) -> int | None:
        """How many partitions its state has, by what is said of it; None without state or when unknown."""
        with _looking(self.location):
            return read_partitions(self.location)

    @cached_property
    def source_logs(self) -> tuple[str, ...]:
        """The names of the sources that keep something of their own."""
        with _looking(self.location):
            return tuple(sorted(names_in(below(self.location, "sources"))))


def read_checkpoint(location: str, last: int = 1) -> SparkCheckpoint | None:
    """What Spark left in a checkpoint, without changing anything.

    Args:
        location: The checkpoint's location: a path, or a URL that fsspec or Databricks knows.
        last: How many of the last micro-batches are read.

    Returns:
        None where there is no checkpoint yet.

    Raises:
        UnseenError: When it can't be looked at from here.
    """
    with _looking(location):
        checkpoint = _read(location, last)
    if checkpoint is None and not is_remote(location) and not _is_here(location):
        raise UnseenError("it lies on Spark's side, not on this machine")
    return checkpoint


@contextmanager
def _looking(location: str) -> Iterator[None]:
    """Say what keeps a look at a checkpoint from being one, whatever its place raises."""
    try:
        yield
    except NoFilesError as error:
        raise UnseenError(str(error)) from error
    except Exception as error:  # every store raises what its client raises
        if not is_remote(location) and not isinstance(error, OSError):
            raise
        raise UnseenError(describe_error(error)) from error


def _is_here(location: str) -> bool:
    if "DATABRICKS_RUNTIME_VERSION" in os.environ and location.startswith("/Volumes/"):
        return True
    return local_path(location) is not None


def _read(location: str, last: int) -> SparkCheckpoint | None:
    top = open_folder(location)
    names = set(top.names())
    if _is_file(location, names):
        return SparkCheckpoint(location, problems=("a file lies where its folder should be",))
    if not names:
        return None
    problems: list[str] = []
    query = ""
    if "metadata" in names:
        query, problem = query_id(top)
        problems += [problem] if problem else []
    elif "offsets" in names or batches_of(location, "commits"):
        problems.append("the file `metadata` is missing")
    else:
        return None
    begun, done = batches_of(location, "offsets"), batches_of(location, "commits")
    offsets, problem = last_offsets(location, begun[-last:])
    problems += [problem] if problem else []
    commits, problem = last_commits(location, done[-last:])
    problems += [problem] if problem else []
    state = operators_of(location) if "state" in names else []
    found = SparkCheckpoint(location, query, offsets, commits, tuple(problems), bool(state))
    if problems:
        # What is broken tells nothing of what else there was.
        return found
    return replace(found, problems=tuple(missing_parts(location, begun, done, found.newest, state)))


def _is_file(location: str, names: Collection[str]) -> bool:
    """Whether a file lies where the checkpoint's folder should be."""
    path = local_path(location)
    if path is not None:
        return not names and Path(path).is_file()
    folder, name = split(location)
    # Asked for the names in a file, a store gives the file's own.
    return set(names) == {name} and open_folder(folder).size(name) > 0
