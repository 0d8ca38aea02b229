"""What is missing in a checkpoint, where one part of it tells for certain that another was there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_bundle.changes.reading import names_in, whole
from gem_bundle.changes.source_log import entries_in
from gem_bundle.changes.state_files import versions_in
from gem_bundle.files import below

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundle.changes.logs import Offsets

# More than any query has; a larger number is no operator's.
_MOST_OPERATORS = 1000
_CHANGES = {"snapshot": "delta"}


def missing_parts(
    location: str, begun: Sequence[int], done: Sequence[int], newest: Offsets | None, operators: Sequence[int]
) -> Iterator[str]:
    """What is missing, each as a sentence without its end.

    Args:
        location: The location of the checkpoint.
        begun: The micro-batches that the offset log has, in order.
        done: Those that the commit log has, in order.
        newest: The newest entry of the offset log.
        operators: The numbers of the operators that have state, in order.
    """
    continuous = newest is not None and newest.continuous
    found = [_missing_offsets(begun, done, continuous=continuous)]
    if newest is not None:
        found.append(_missing_source(location, newest))
    if operators and done and not continuous:
        found.append(_missing_state(location, operators, done[-1]))
    yield from filter(None, found)


def _missing_offsets(begun: Sequence[int], done: Sequence[int], *, continuous: bool) -> str:
    """Which entry isn't in the offset log that was, by the log of commits.

    Spark removes the oldest entries of both logs. Asynchronous progress tracking leaves out the same in both,
    so that only an entry which has its commit is missed.

    Args:
        begun: The micro-batches that the offset log has.
        done: Those that the commit log has.
        continuous: Whether continuous processing wrote them.
    """
    if not done:
        return ""
    if not begun:
        return f"`offsets` is missing or empty, and by `commits` micro-batch {done[-1]} is done"
    batch = done[-1]
    if batch <= begun[-1] and not continuous:
        # Micro-batches go on from the last but one, continuous processing from the last that is done.
        batch = begun[-1] - 1
    if batch in begun or batch not in done:
        return ""
    return f"`offsets/{batch}` is missing, and by `commits` micro-batch {batch} is done"


def _missing_source(location: str, newest: Offsets) -> str:
    """Which source that reads files has no list of them any more.

    Args:
        location: The location of the checkpoint.
        newest: The newest entry of the offset log.
    """
    # Spark freezes settings with each micro-batch: an entry without any is none of its own.
    read = newest.sources.items() if newest.settings else ()
    listed = {name: number for name, offset in read if (number := _last_listed(offset)) is not None}
    there = names_in(below(location, "sources")) if listed else []
    for name, number in listed.items():
        if name not in there:
            return f"`sources/{name}` is missing, where Spark lists the files that it has read"
        lost = _missing_entry(names_in(below(location, "sources", name)), number)
        if lost is not None:
            return f"`sources/{name}/{lost}` is missing, where Spark lists files that it has read"
    return ""


def _last_listed(offset: Any) -> int | None:
    """The last entry of the own log of a source of files, by its offset; None for one of another source."""
    number = whole(offset["logOffset"]) if isinstance(offset, dict) and set(offset) == {"logOffset"} else None
    return number if number is not None and number >= 0 else None


def _missing_entry(names: Sequence[str], last: int) -> int | None:
    """Which entry of a source's own log isn't there; None when all are.

    Args:
        names: The names in the log's folder.
        last: The last entry that is counted.
    """
    compact, later = entries_in(names)
    there = set(later)
    return next((number for number in range(last, compact, -1) if number not in there), None)


def _missing_state(location: str, operators: Sequence[int], batch: int) -> str:
    """What isn't in the state that was.

    Only one partition is looked at. Both of Spark's own stores write a file for each micro-batch, whatever
    that had; what others do isn't known.

    Args:
        location: The location of the checkpoint.
        operators: The numbers of the operators that have state, in order.
        batch: The last micro-batch that is done.
    """
    lost = next((number for number in range(operators[-1]) if number not in operators), None)
    if lost is not None and operators[-1] < _MOST_OPERATORS:
        return f"`state/{lost}` is missing"
    place = below(location, "state", str(operators[0]), "0")
    names = names_in(place)
    # RocksDB's own files lie in a folder for all of a store's versions.
    stores = sorted(name for name in names if "." not in name and name != "SSTs" and not name.startswith("_"))
    if stores:
        place = below(place, stores[0])
        names = names_in(place)
    version, kind = max(versions_in(names).values(), default=(batch + 1, ""))
    if version > batch:
        return ""
    inner = place.removeprefix(location.rstrip("/") + "/")
    return (
        f"`{inner}/{batch + 1}.{_CHANGES.get(kind, kind)}` is missing, the state behind micro-batch {batch}"
    )
