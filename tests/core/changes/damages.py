"""What may have become of a file of a checkpoint: drawn damage, of the kinds that a reader stumbles over."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from random import Random

ODD: list[Any] = [
    None,
    True,
    -1,
    10**400,
    1.5,
    "",
    "x",
    "\ud800",
    "²",
    [],
    {},
    [[]],
    [None],
    {"a": {"b": []}},
]
DEEP = [f"{'[' * depth}{']' * depth}" for depth in (300, 900, 100_000)]


def damages(file: Path, random: Random, drawn: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Ways to damage a file, each with a name and what does it; the file is there again for the next one.

    Args:
        file: The file.
        random: Draws.
        drawn: How many of each drawn kind.
    """
    content = file.read_bytes()

    def put(broken: bytes) -> Callable[[], None]:
        return lambda: _put(file, broken)

    for broken in (b"", b"v1\n", b"\xff\xfe\x00", content[: len(content) // 2], random.randbytes(40)):
        yield f"{broken[:40]!r}", put(broken)
    for deep in DEEP:
        yield f"{len(deep)} deep", put(deep.encode())
        yield f"a line {len(deep)} deep", put(b"v1\n" + deep.encode())
        yield f"a field {len(deep)} deep", put(_mutated(content, random, deep))
    for number in range(drawn):
        yield f"odd {number}", put(_mutated(content, random, json.dumps(random.choice(ODD))))
    yield "a folder", lambda: _make_folder(file)
    _put(file, content)


# What is missing of a checkpoint whose last micro-batches are 4 and 5, and how that is told.
MISSING = {
    "offsets/5": "`offsets/5` is missing, and by `commits` micro-batch 5 is done",
    "offsets/4": "`offsets/4` is missing, and by `commits` micro-batch 4 is done",
    "offsets": "`offsets` is missing or empty, and by `commits` micro-batch 5 is done",
    "sources": "`sources/0` is missing, where Spark lists the files that it has read",
    "sources/0": "`sources/0` is missing, where Spark lists the files that it has read",
    "sources/0/2": "`sources/0/2` is missing, where Spark lists files that it has read",
    "sources/0/0": "`sources/0/0` is missing, where Spark lists files that it has read",
    "metadata": "the file `metadata` is missing",
}


def remove(place: Path) -> None:
    """Remove a file, or a folder with all that is in it.

    Args:
        place: The file or folder.
    """
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()


def _put(file: Path, content: bytes) -> None:
    if file.is_dir():
        file.rmdir()
    file.write_bytes(content)


def _make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _mutated(content: bytes, random: Random, other: str) -> bytes:
    """The content with another value, as JSON, somewhere in one of the JSONs in it."""
    text = content.decode("latin-1")
    found = list(_objects(text))
    if not found:
        return other.encode()
    start, end, value = random.choice(found)
    places = list(_places(value))
    if not places:
        return other.encode()
    inner, key = random.choice(places)
    inner[key] = "MARK"
    written = json.dumps(value, separators=(",", ":")).replace('"MARK"', other)
    return f"{text[:start]}{written}{text[end:]}".encode("latin-1")


def _objects(text: str) -> Iterator[tuple[int, int, Any]]:
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except ValueError:
            end = at + 1
        else:
            yield at, end, value
        at = text.find("{", end)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(inner)
