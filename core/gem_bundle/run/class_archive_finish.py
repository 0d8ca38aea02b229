"""Put an archive of classes in its place, once Java has written it; and what that place holds.

This is started as a program that outlives the session and waits for the end of its Java; nobody waits for it.
It imports nothing but Python's own modules, so that it runs as a file, without gem-bundle's packages.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from pathlib import Path

ASIDE = ".new"
"""How the name of an archive ends while Java writes it."""

LIMIT = 2 << 30
"""How many bytes the archives may take together; each takes some 170 MB."""

_FORMAT = 1
_ARCHIVE = ".jsa"
# The first bytes of a dynamic archive. Java writes them last, so what has them is whole.
_MAGIC = (0xF00BABA8).to_bytes(4, sys.byteorder)
_CHUNK = 1 << 22
_WRITING = ".writing-"
_A_MINUTE = 60
_AN_HOUR = 60 * _A_MINUTE


def read(place: Path) -> Path | None:
    """The archive that is described at a place.

    A Java that maps half an archive crashes, so each is compared with its description first; one that differs
    is removed, with its description.

    Args:
        place: The description, in the folder of the archive.

    Returns:
        The archive; None when there is none.
    """
    try:
        said = json.loads(place.read_bytes())
        file = place.with_name(said["file"])
        if said["format"] == _FORMAT and (said["size"], said["crc32"]) == (file.stat().st_size, _crc32(file)):
            return file
    except FileNotFoundError:
        if not place.exists():
            return None
        file = place
    except (OSError, ValueError, LookupError, TypeError):
        file = place
    for damaged in {place, file}:
        with suppress(OSError):
            damaged.unlink()
    return None


def finish(aside: Path, place: Path) -> None:
    """Move what Java has written to its place, unless it is incomplete or there is a better one.

    Args:
        aside: What Java has written.
        place: Its description.
    """
    folder = place.parent
    try:
        if not _is_whole(aside):
            return
        size, crc32 = aside.stat().st_size, _crc32(aside)
        known = read(place)
        # Two sessions may have recorded at once; the larger archive has more of the classes.
        if known is None or known.stat().st_size < size:
            file = folder / f"{place.stem}-{crc32:08x}{_ARCHIVE}"
            _to_disk(aside)
            aside.replace(file)
            _write(place, {"format": _FORMAT, "file": file.name, "size": size, "crc32": crc32})
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        tidy(folder, place)


def _is_whole(file: Path) -> bool:
    try:
        with file.open("rb") as archive:
            return archive.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _crc32(file: Path) -> int:
    found = 0
    with file.open("rb") as archive:
        while chunk := archive.read(_CHUNK):
            found = zlib.crc32(chunk, found)
    return found


def _to_disk(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(place: Path, said: dict[str, object]) -> None:
    handle, temporary = tempfile.mkstemp(prefix=_WRITING, dir=place.parent)
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(said, file)
        Path(temporary).replace(place)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def tidy(folder: Path, newest: Path | None = None) -> None:
    """Remove archives that weren't used for long when there are too many, and what killed processes left.

    Args:
        folder: The folder of the archives.
        newest: The description of one that stays.
    """
    described: set[str] = set()
    used = 0
    for place in sorted(folder.glob("*.json"), key=_age):
        try:
            said = json.loads(place.read_bytes())
            name, size = str(said["file"]), int(said["size"])
        except (OSError, ValueError, LookupError, TypeError):
            continue
        used += size
        if used > LIMIT and place != newest:
            with suppress(OSError):
                place.unlink()
        else:
            described.add(name)
    for file in folder.iterdir():
        if file.suffix == _ARCHIVE:
            # One that has just come to its place is described a moment later.
            left = file.name not in described and _age(file) > _A_MINUTE
        else:
            left = (file.suffix == ASIDE or file.name.startswith(_WRITING)) and _age(file) > _AN_HOUR
        if left:
            with suppress(OSError):
                file.unlink()


def _age(file: Path) -> float:
    try:
        return time.time() - file.stat().st_mtime
    except OSError:
        return 0.0


def main() -> None:
    """Wait for the end of a Java, read what it still says, and put its archive in its place, if any."""
    ended, aside, *place = sys.argv[1:]
    while os.read(int(ended), _CHUNK):
        pass
    with suppress(OSError):
        if place:
            finish(Path(aside), Path(*place))
        else:
            Path(aside).unlink()


if __name__ == "__main__":
    main()
