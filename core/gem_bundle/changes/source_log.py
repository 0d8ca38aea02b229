"""What Spark keeps of a source in a checkpoint beside its offsets: the files it has read, where it began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.files import below, numbered, open_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMPACT = ".compact"


def read_source_log(location: str, reader: str) -> list[tuple[int, list[str]]]:
    """The entries of a source's own log, oldest first: the number of each, and its lines without the header.

    Now and then Spark puts all entries into one, whose name ends in ``.compact``, and removes the others.

    Args:
        location: The location of the checkpoint.
        reader: The name of the source's reader.
    """
    folder = open_folder(below(location, "sources", reader))
    compact, later = entries_in(folder.names())
    found = [(compact, _lines(folder.read(f"{compact}{_COMPACT}")))] if compact >= 0 else []
    return found + [(number, _lines(folder.read(str(number)))) for number in later]


def entries_in(names: Sequence[str]) -> tuple[int, list[int]]:
    """The entry of such a log that has all before it too, -1 for none, and those behind it, in order.

    Args:
        names: The names in the log's folder.
    """
    compacts = numbered(name.removesuffix(_COMPACT) for name in names if name.endswith(_COMPACT))
    compact = max(compacts, default=-1)
    return compact, sorted(number for number in numbered(names) if number > compact)


def _lines(content: bytes) -> list[str]:
    # The first entry of Kafka's begins with a zero byte, for a Spark that nobody has any more.
    return content.decode("utf-8", "replace").lstrip("\0").splitlines()[1:]
