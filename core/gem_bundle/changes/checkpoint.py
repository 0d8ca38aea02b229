"""What Spark itself left in a checkpoint, read without a JVM.

The offset log says of each micro-batch what it was to read, and the commit log which ones are done. Beside
them lie a file with the query's id, what some sources keep for themselves, and the state with a description
of each operator. Spark calls none of that a public format, so what isn't as expected is left out; what is
broken is said to be, and so is what is missing, where one part tells for certain that another was there.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gem_bundle.changes.reading import check_plain, loaded
from gem_bundle.errors import describe_error
from gem_bundle.files import NoFilesError, below, numbered, open_folder, split
from gem_bundle.types import is_remote, local_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from gem_bundle.files import Folder

_PARTITIONS = "spark.sql.shuffle.partitions"
_LOG_VERSIONS = ("v1", "v2")
# The version, what the micro-batch has of its own, and an offset of each source, of which there is one.
_LEAST_OFFSETS = 3
_LARGEST_ZIP = 32_000_000
# More than any query has; a larger number is no operator's.
_MOST_OPERATORS = 1000
# No file, or a folder where one should be: stores tell one for the other.
_NO_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class UnseenError(OSError):
    """A checkpoint can't be looked at from here; the text says why, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """What a micro-batch was to read.

    Args:
        batch: The number of the micro-batch.
        format: The version of the log, ``v1`` or ``v2``.
        watermark: The watermark it ran with, in milliseconds since 1970; None when there is none.
        planned: When it was planned, in milliseconds since 1970.
        settings: The settings that it froze.
        sources: Up to where it read each source, by the source's name, or in a log of version 1 by its
            position; None for a source that has nothing yet.
    """

    batch: int
    format: str
    watermark: int | None = None
    planned: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Commit:
    """A micro-batch that is done.

    Args:
        batch: Its number.
        watermark: The watermark of the next one, in milliseconds since 1970; None when there is none.
    """

    batch: int
    watermark: int | None = None


@dataclass(frozen=True, slots=True)
class StateStore:
    """A store of a stateful operator.

    Args:
        name: Its name; ``default`` where there is one.
        partitions: How many partitions it has.
        keys: The names and types of the columns of its keys; None when they can't be told.
        values: The same of its values.
        nullable: Which of the values may be null; None when that can't be told.
    """

    name: str
    partitions: int | None = None
    keys: tuple[tuple[str, str], ...] | None = None
    values: tuple[tuple[str, str], ...] | None = None
    nullable: tuple[bool, ...] | None = None


@dataclass(frozen=True, slots=True)
class StateOperator:
    """A stateful operator of the query.

    Args:
        id: Its number: the one nearest to the target has 0.
        name: What Spark calls it (``stateStoreSave``, ``dedupe``, ``symmetricHashJoin``); empty when unknown.
        stores: Its stores.
        bytes: The size of the files of its state.
        rows: How many keys its state has, where a file says so (RocksDB); None otherwise.
        rows_batch: The micro-batch behind which they were counted.
    """

    id: int
    name: str = ""
    stores: tuple[StateStore, ...] = ()
    bytes: int = 0
    rows: int | None = None
    rows_batch: int | None = None


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
        """Whether continuous processing made it: it keeps no settings and no time beside what it has read."""
        if self.newest is None:
            return None
        return self.newest.format == "v1" and self.newest.planned is None and not self.newest.settings

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
            return tuple(_operators(self.location))

    @property
    def kinds(self) -> tuple[str, ...]:
        """What Spark calls the stateful operators, without a look at their state; empty when unknown."""
        state = below(self.location, "state")
        with _looking(self.location):
            return tuple(_kind(_described(below(state, str(n)))) for n in sorted(numbered(_names(state))))

    @cached_property
    def stores(self) -> tuple[tuple[str, tuple[StateStore, ...]], ...]:
        """What Spark calls the stateful operators, with their stores, without a look at what these hold."""
        state = below(self.location, "state")
        with _looking(self.location):
            folders = [below(state, str(number)) for number in sorted(numbered(_names(state)))]
            described = [(folder, _described(folder)) for folder in folders]
            return tuple((_kind(said), _stores(folder, said)) for folder, said in described)

    @property
    def partitions(self) -> int | None:
        """How many partitions its state has, by what is said of it; None without state or when unknown."""
        state = below(self.location, "state")
        with _looking(self.location):
            described = [_described(below(state, str(n))) for n in numbered(_names(state))]
        found = [_number(store.get("numPartitions")) for said in described for store in _said_of_stores(said)]
        # A limit of all rows has one, whatever the others have.
        return max((count for count in found if count is not None), default=None)

    @cached_property
    def source_logs(self) -> tuple[str, ...]:
        """The names of the sources that keep something of their own."""
        with _looking(self.location):
            return tuple(sorted(_names(below(self.location, "sources"))))


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
        query, problem = _query(top)
        problems += [problem] if problem else []
    elif "offsets" in names or _batches(location, "commits"):
        problems.append("the file `metadata` is missing")
    else:
        return None
    begun, done = _batches(location, "offsets"), _batches(location, "commits")
    offsets, problem = _last_offsets(location, begun[-last:])
    problems += [problem] if problem else []
    commits, problem = _last_commits(location, done[-last:])
    problems += [problem] if problem else []
    state = set(numbered(_names(below(location, "state")))) if "state" in names else set()
    found = SparkCheckpoint(location, query, offsets, commits, tuple(problems), bool(state))
    if problems:
        # What is broken tells nothing of what else there was.
        return found
    missing = [
        _missing_offsets(found, begun, done),
        _missing_source(found, "sources" in names),
        _missing_state(found, state),
    ]
    return replace(found, problems=tuple(problem for problem in missing if problem))


def _is_file(location: str, names: Collection[str]) -> bool:
    """Whether a file lies where the checkpoint's folder should be."""
    path = local_path(location)
    if path is not None:
        return not names and Path(path).is_file()
    folder, name = split(location)
    # Asked for the names in a file, a store gives the file's own.
    return set(names) == {name} and open_folder(folder).size(name) > 0


def _batches(location: str, log: str) -> list[int]:
    """The micro-batches that a log has, in order."""
    return sorted(numbered(open_folder(below(location, log)).names()))


def _missing_offsets(found: SparkCheckpoint, begun: list[int], done: list[int]) -> str:
    """Which entry isn't in the offset log that was, by the log of commits.

    Spark removes the oldest entries of both logs. Asynchronous progress tracking leaves out the same in both,
    so that only an entry which has its commit is missed.

    Args:
        found: The checkpoint.
        begun: The micro-batches that the offset log has.
        done: Those that the commit log has.
    """
    if not done:
        return ""
    if not begun:
        return f"`offsets` is missing or empty, and by `commits` micro-batch {done[-1]} is done"
    batch = done[-1]
    if batch <= begun[-1] and not found.continuous:
        # Micro-batches go on from the last but one, continuous processing from the last that is done.
        batch = begun[-1] - 1
    if batch in begun or batch not in done:
        return ""
    return f"`offsets/{batch}` is missing, and by `commits` micro-batch {batch} is done"


def _missing_source(found: SparkCheckpoint, has_logs: bool) -> str:
    """Which source that reads files has no list of them any more.

    Args:
        found: The checkpoint.
        has_logs: Whether the folder of such lists is there.
    """
    # Spark freezes settings with each micro-batch: an entry without any is none of its own.
    read = found.newest.sources.items() if found.newest is not None and found.settings else ()
    listed = [name for name, offset in read if _lists_files(offset)]
    if not listed:
        return ""
    there = _names(below(found.location, "sources")) if has_logs else []
    lost = next((name for name in listed if name not in there), None)
    return (
        "" if lost is None else f"`sources/{lost}` is missing, where Spark lists the files that it has read"
    )


def _lists_files(offset: Any) -> bool:
    """Whether an offset is one of a source that reads files: the number of an entry of its own log."""
    number = (
        _number(offset["logOffset"]) if isinstance(offset, dict) and set(offset) == {"logOffset"} else None
    )
    return number is not None and number >= 0


_OF_STATE = re.compile(r"(\d{1,18})\.(?:delta|snapshot)")


def _missing_state(found: SparkCheckpoint, operators: Collection[int]) -> str:
    """What isn't in the state that was.

    Only one partition is looked at, and only where Spark's own store of files keeps it, which writes one
    file for each micro-batch, whatever that had.

    Args:
        found: The checkpoint.
        operators: The numbers of the operators that have state.
    """
    if not operators or not found.commits or found.continuous:
        return ""
    lost = next((number for number in range(max(operators)) if number not in operators), None)
    if lost is not None and max(operators) < _MOST_OPERATORS:
        return f"`state/{lost}` is missing"
    place = below(found.location, "state", str(min(operators)), "0")
    names = _names(place)
    stores = sorted(name for name in names if "." not in name and not name.startswith("_"))
    if stores:
        place = below(place, stores[0])
        names = _names(place)
    versions = [int(match[1]) for match in map(_OF_STATE.fullmatch, names) if match]
    batch = found.commits[-1].batch
    # State of version N is what micro-batch N - 1 left.
    if not versions or max(versions) > batch:
        return ""
    inner = place.removeprefix(found.location.rstrip("/") + "/")
    return f"`{inner}/{batch + 1}.delta` is missing, the state behind micro-batch {batch}"


def _query(folder: Folder) -> tuple[str, str]:
    """The query's id, and what is wrong with the file that has it."""
    try:
        found = loaded(folder.read("metadata"))
    except _NO_FILE:
        return "", "`metadata` is no file"
    except ValueError:
        return "", "the file `metadata` isn't JSON"
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        return "", "the file `metadata` has no query id"
    return found["id"], ""


def _last_offsets(location: str, batches: list[int]) -> tuple[tuple[Offsets, ...], str]:
    """Some entries of the offset log, and what is wrong with the newest."""
    folder = open_folder(below(location, "offsets"))
    found: list[Offsets] = []
    wrong = ""
    for batch in batches:
        lines, problem = _log(folder, batch)
        if not problem and len(lines) < _LEAST_OFFSETS:
            problem = "is cut off"
        if not problem:
            found.append(_offsets(batch, lines))
        elif batch == batches[-1]:
            wrong = f"`offsets/{batch}` {problem}"
    return tuple(found), wrong


def _last_commits(location: str, batches: list[int]) -> tuple[tuple[Commit, ...], str]:
    """Some entries of the commit log, and what is wrong with the newest."""
    folder = open_folder(below(location, "commits"))
    found: list[Commit] = []
    wrong = ""
    for batch in batches:
        lines, problem = _log(folder, batch)
        if not problem:
            found.append(Commit(batch, _number(_object(lines, 1).get("nextBatchWatermarkMs"))))
        elif batch == batches[-1]:
            wrong = f"`commits/{batch}` {problem}"
    return tuple(found), wrong


def _log(folder: Folder, batch: int) -> tuple[list[str], str]:
    """The lines of an entry of a log, and what is wrong with it."""
    try:
        lines = folder.read(str(batch)).decode("utf-8").splitlines()
    except _NO_FILE:
        return [], "is no file"
    except UnicodeDecodeError:
        return [], "can't be read"
    if not lines:
        return [], "is empty"
    if lines[0] not in _LOG_VERSIONS:
        return [], "does not begin with a version of Spark's log"
    try:
        _object(lines, 1)
    except ValueError:
        return [], "is cut off"
    return lines, ""


def _offsets(batch: int, lines: list[str]) -> Offsets:
    head = _object(lines, 1)
    settings = head.get("conf")
    sources: dict[str, Any] = {}
    for position, line in enumerate(lines[2:]):
        name, value = str(position), line
        if lines[0] == "v2":
            name, _, value = line.partition(":")
        sources[name] = _offset(value)
    return Offsets(
        batch,
        lines[0],
        _number(head.get("batchWatermarkMs")),
        _number(head.get("batchTimestampMs")),
        {str(key): str(value) for key, value in settings.items()} if isinstance(settings, dict) else {},
        sources,
    )


def _offset(text: str) -> Any:
    if text == "-":
        return None
    try:
        return loaded(text)
    except ValueError:
        return text


def _object(lines: list[str], line: int) -> dict[str, Any]:
    # Continuous processing writes an empty line where micro-batches have theirs.
    found = loaded(lines[line]) if len(lines) > line and lines[line] else {}
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _names(location: str) -> list[str]:
    return [name for name in open_folder(location).names() if not name.startswith(".")]


def _operators(location: str) -> Iterator[StateOperator]:
    state = below(location, "state")
    for number in sorted(numbered(_names(state))):
        folder = below(state, str(number))
        described = _described(folder)
        rows, rows_batch = _rows(folder)
        yield StateOperator(
            number,
            _kind(described),
            _stores(folder, described),
            _bytes(folder),
            rows,
            rows_batch,
        )


def _stores(folder: str, described: Mapping[str, Any]) -> tuple[StateStore, ...]:
    return tuple(_store(folder, store) for store in _said_of_stores(described))


def _said_of_stores(described: Mapping[str, Any]) -> list[dict[str, Any]]:
    stores = described.get("stateStoreInfo")
    return [store for store in stores if isinstance(store, dict)] if isinstance(stores, list) else []


def _kind(described: Mapping[str, Any]) -> str:
    info = described.get("operatorInfo")
    return str(info.get("operatorName", "")) if isinstance(info, dict) else ""


def _described(folder: str) -> dict[str, Any]:
    """What Spark says of an operator; version 2 of the file has a name of its own for each micro-batch."""
    for place, names in (
        (below(folder, "_metadata"), ["metadata"]),
        (below(folder, "_metadata", "v2"), None),
    ):
        listed = names or [str(n) for n in sorted(numbered(_names(place)), reverse=True)]
        for name in listed:
            try:
                lines = open_folder(place).read(name).decode("utf-8", "replace").splitlines()
                found = loaded(lines[-1]) if lines else None
            except (*_NO_FILE, ValueError):
                continue
            if isinstance(found, dict):
                return found
    return {}


def _store(folder: str, described: Mapping[str, Any]) -> StateStore:
    name = str(described.get("storeName", ""))
    inner = [] if name in {"", "default"} else [name]
    keys, values = _schemas(below(folder, "0", *inner, "_metadata"))
    return StateStore(
        name,
        _number(described.get("numPartitions")),
        None if keys is None else _fields(keys),
        None if values is None else _fields(values),
        None if values is None else tuple(field.get("nullable") is not False for field in values["fields"]),
    )


Columns = tuple[tuple[str, str], ...]
Schema = dict[str, Any]


def _schemas(folder: str) -> tuple[Schema | None, Schema | None]:
    """The schemas of keys and values, out of a file with texts of Java's around two of them in JSON."""
    try:
        text = open_folder(folder).read("schema").decode("utf-8", "replace")
    except _NO_FILE:
        return None, None
    found: list[Schema] = []
    decoder = json.JSONDecoder()
    at = text.find('{"type":"struct"')
    while at >= 0 and len(found) < 2:
        try:
            schema, end = decoder.raw_decode(text, at)
            check_plain(schema)
        except (ValueError, RecursionError):
            break
        if _fields(schema) is None:
            break
        found.append(schema)
        at = text.find('{"type":"struct"', end)
    return (found[0], found[1]) if len(found) == 2 else (None, None)


def _fields(schema: Mapping[str, Any]) -> Columns | None:
    """The names and types of the fields of a struct; None when it isn't as Spark writes it."""
    fields = schema.get("fields")
    if not isinstance(fields, list) or not all(isinstance(one, dict) for one in fields):
        return None
    return tuple((str(one.get("name")), _type(one.get("type"))) for one in fields)


def _type(kind: Any) -> str:
    """A type of Spark's JSON as DDL has it."""
    if not isinstance(kind, dict):
        names = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
        return names.get(str(kind), str(kind))
    inner = kind.get("type")
    if inner == "struct":
        fields = ", ".join(f"{name}: {found}" for name, found in _fields(kind) or ())
        return f"struct<{fields}>"
    if inner == "array":
        return f"array<{_type(kind.get('elementType'))}>"
    if inner == "map":
        return f"map<{_type(kind.get('keyType'))}, {_type(kind.get('valueType'))}>"
    return str(inner)


def _bytes(folder: str) -> int:
    """The size of all files below a folder."""
    opened = open_folder(folder)
    total = 0
    for name in opened.names():
        if name.startswith("."):
            continue
        inner = below(folder, name)
        if "." in name or not open_folder(inner).names():
            try:
                total += opened.size(name)
            except OSError:
                continue
        else:
            total += _bytes(inner)
    return total


_SNAPSHOT = re.compile(r"(\d+)(?:_[\w-]+)?\.zip")


def _rows(folder: str) -> tuple[int | None, int | None]:
    """How many keys the last snapshots of RocksDB hold, and of which micro-batch they are."""
    total: int | None = None
    batch: int | None = None
    for partition in numbered(_names(folder)):
        place = below(folder, str(partition))
        opened = open_folder(place)
        names = [name for name in opened.names() if _SNAPSHOT.fullmatch(name)]
        newest = max(names, key=lambda name: int(name.partition(".")[0].partition("_")[0]), default=None)
        if newest is None:
            # A partition without rows may have none yet.
            continue
        try:
            if opened.size(newest) > _LARGEST_ZIP:
                return None, None
            with zipfile.ZipFile(io.BytesIO(opened.read(newest))) as archive:
                lines = archive.read("metadata").decode("utf-8", "replace").splitlines()
            keys = _number(loaded(lines[-1]).get("numKeys"))
        except Exception:  # noqa: BLE001 (an archive that is damaged raises errors of many kinds)
            return None, None
        if keys is None:
            return None, None
        total = (total or 0) + keys
        # State of version N is what micro-batch N - 1 left.
        version = int(newest.partition(".")[0].partition("_")[0]) - 1
        batch = version if batch is None else min(batch, version)
    return total, batch
