"""The state in a checkpoint, as Spark describes it: operators, their stores, and how much these keep."""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gem_bundle.changes.reading import NO_FILE, check_plain, loaded, names_in, whole
from gem_bundle.files import below, numbered, open_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_Columns = tuple[tuple[str, str], ...]
_Schema = dict[str, Any]
_LARGEST_ZIP = 32_000_000
# Changes or all of it, by either of Spark's stores, with ids where those are switched on.
_VERSION = re.compile(r"(\d{1,18})(?:_[\w-]+)?\.(delta|snapshot|changelog|zip)")


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


def versions_in(names: Iterable[str]) -> dict[str, tuple[int, str]]:
    """The files of state among some, each with its version, which micro-batch N makes N + 1, and its kind.

    Args:
        names: The names in the folder of a store.
    """
    found = ((name, _VERSION.fullmatch(name)) for name in names)
    return {name: (int(match[1]), match[2]) for name, match in found if match is not None}


def operators_of(location: str) -> list[int]:
    """The numbers of the operators that have state, in order.

    Args:
        location: The location of the checkpoint.
    """
    return sorted(numbered(names_in(below(location, "state"))))


def read_operators(location: str) -> Iterator[StateOperator]:
    """The stateful operators, with what their state holds.

    Args:
        location: The location of the checkpoint.
    """
    for number, folder in _folders(location):
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


def read_kinds(location: str) -> Iterator[str]:
    """What Spark calls the stateful operators, without a look at their state; empty when unknown.

    Args:
        location: The location of the checkpoint.
    """
    for _, folder in _folders(location):
        yield _kind(_described(folder))


def read_stores(location: str) -> Iterator[tuple[str, tuple[StateStore, ...]]]:
    """What Spark calls the stateful operators, with their stores, without a look at what these hold.

    Args:
        location: The location of the checkpoint.
    """
    for _, folder in _folders(location):
        described = _described(folder)
        yield _kind(described), _stores(folder, described)


def read_partitions(location: str) -> int | None:
    """How many partitions the state has, by what is said of it; None without state or when unknown.

    Args:
        location: The location of the checkpoint.
    """
    described = [_described(folder) for _, folder in _folders(location)]
    found = [whole(store.get("numPartitions")) for said in described for store in _said_of_stores(said)]
    # A limit of all rows has one, whatever the others have.
    return max((count for count in found if count is not None), default=None)


def _folders(location: str) -> list[tuple[int, str]]:
    return [(number, below(location, "state", str(number))) for number in operators_of(location)]


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
        listed = names or [str(n) for n in sorted(numbered(names_in(place)), reverse=True)]
        for name in listed:
            try:
                lines = open_folder(place).read(name).decode("utf-8", "replace").splitlines()
                found = loaded(lines[-1]) if lines else None
            except (*NO_FILE, ValueError):
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
        whole(described.get("numPartitions")),
        None if keys is None else _fields(keys),
        None if values is None else _fields(values),
        None if values is None else tuple(field.get("nullable") is not False for field in values["fields"]),
    )


def _schemas(folder: str) -> tuple[_Schema | None, _Schema | None]:
    """The schemas of keys and values, out of a file with texts of Java's around two of them in JSON."""
    try:
        text = open_folder(folder).read("schema").decode("utf-8", "replace")
    except NO_FILE:
        return None, None
    found: list[_Schema] = []
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


def _fields(schema: Mapping[str, Any]) -> _Columns | None:
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


def _rows(folder: str) -> tuple[int | None, int | None]:
    """How many keys the last snapshots of RocksDB hold, and of which micro-batch they are."""
    total: int | None = None
    batch: int | None = None
    for partition in numbered(names_in(folder)):
        place = below(folder, str(partition))
        opened = open_folder(place)
        snapshots = {
            name: version for name, (version, kind) in versions_in(opened.names()).items() if kind == "zip"
        }
        newest = max(snapshots, key=snapshots.__getitem__, default=None)
        if newest is None:
            # A partition without rows may have none yet.
            continue
        try:
            if opened.size(newest) > _LARGEST_ZIP:
                return None, None
            with zipfile.ZipFile(io.BytesIO(opened.read(newest))) as archive:
                lines = archive.read("metadata").decode("utf-8", "replace").splitlines()
            keys = whole(loaded(lines[-1]).get("numKeys"))
        except Exception:  # noqa: BLE001 (an archive that is damaged raises errors of many kinds)
            return None, None
        if keys is None:
            return None, None
        total = (total or 0) + keys
        version = snapshots[newest] - 1
        batch = version if batch is None else min(batch, version)
    return total, batch
