"""Make an archive of the classes that a Java has noted, and put it in its place; and what that place holds.

This is started as a program that outlives the session; nobody waits for it.
It imports nothing but Python's own modules, so that it runs as a file, without gem-bundle's packages.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ASIDE = ".new"
"""How the names of noted classes and of an archive end while Java writes them."""

LIMIT = 2 << 30
"""How many bytes the archives may take together, with what is noted for others; each takes some 200 MB."""

_FORMAT = 1
_ARCHIVE = ".jsa"
# The first bytes of an archive. Java writes them last, so what has them is whole.
_MAGIC = (0xF00BABA2).to_bytes(4, sys.byteorder)
# A class as Java notes it: its name, where it is from, its address, those of what it extends, and its loader.
_NOTED = re.compile(
    rb"^([^\s/]+) source: (.+)\n"
    rb" klass: 0x0*(\w+) super: 0x0*(\w+)((?: interfaces:(?: 0x\w+)+)?)"
    rb" loader: \[loader data: \w+ (of '\w+'|for instance a '[^']+')",
    re.MULTILINE,
)
_OF_JAVA_ITSELF = (b"of ", b"for instance a 'jdk/internal/loader/ClassLoaders$")
# One that is made while a program runs comes from elsewhere.
_OF_JAVA, _OF_JARS = (b"jrt:", b"shared objects file"), b"file:"
_OF_A_PROCESS = re.compile(r"-(\d+)\.")
_CHUNK = 1 << 22
_WRITING = ".writing-"
_NICE = 10
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


def make(noted: Path, place: Path, java: Sequence[str]) -> None:
    """Have an archive made of the classes that a Java has noted, and put it in its place.

    Args:
        noted: What it has noted. It is removed.
        place: The description of the archive.
        java: A Java, with the options and the class path of the one that has noted them.
    """
    folder = place.parent
    names, aside = noted.with_suffix(f".names{ASIDE}"), noted.with_suffix(f".jsa{ASIDE}")
    try:
        with _alone(folder):
            if read(place) is None:
                classes = list(classes_of(noted))
                # A jar that has changed meanwhile ends Java: without Spark's jars there is still most of it.
                for listed in (classes, [line for line in classes if b"source:" not in line]):
                    names.write_bytes(b"\n".join([*listed, b""]))
                    ended = _dump(names, aside, java)
                    if ended == 0:
                        finish(aside, place)
                    if ended <= 0:
                        break  # or it was killed
    except OSError:
        pass
    finally:
        for file in (noted, rotated(noted), names, aside):
            with suppress(OSError):
                file.unlink()
        tidy(folder, place)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one archive be made at a time: a second one would take the machine's time for what will be there.

    Raises:
        OSError: When one is being made.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _dump(names: Path, aside: Path, java: Sequence[str]) -> int:
    """Let Java make an archive of listed classes; how it has ended."""
    options = ("-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={aside}")
    done = subprocess.run(
        [java[0], *options, *java[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode


def classes_of(noted: Path) -> Iterator[bytes]:
    """Lines of the list of classes for an archive, in the order in which they were first loaded.

    A class of a loader that isn't Java's own, such as that of Spark's jars, is listed with its jar and with
    the numbers of what it extends.

    Args:
        noted: What a Java has noted. Its last lines may be cut off.

    Raises:
        OSError: When it can't be read.
    """
    told = noted.read_bytes()
    with suppress(FileNotFoundError):
        told = rotated(noted).read_bytes() + told
    numbers: dict[bytes, int] = {}
    listed: set[bytes] = set()
    for name, source, klass, parent, interfaces, loader in _NOTED.findall(told):
        if name in listed or not source.startswith((*_OF_JAVA, _OF_JARS)):
            continue
        number = len(listed)
        line = b"%b id: %d" % (name.replace(b".", b"/"), number)
        if not loader.startswith(_OF_JAVA_ITSELF):
            above = [
                numbers.get(address.removeprefix(b"0x").lstrip(b"0")) for address in interfaces.split()[1:]
            ]
            extends = numbers.get(parent)
            if not source.endswith(b".jar") or extends is None or None in above:
                continue
            line += b" super: %d" % extends
            if above:
                line += b" interfaces: " + b" ".join(b"%d" % each for each in above if each is not None)
            line += b" source: " + unquote_to_bytes(source.removeprefix(_OF_JARS))
        numbers[klass] = number
        listed.add(name)
        yield line


def rotated(noted: Path) -> Path:
    """Where a Java moves what it has noted when that gets long."""
    return noted.with_name(f"{noted.name}.0")


def finish(aside: Path, place: Path) -> None:
    """Move what Java has written to its place, unless it is incomplete.

    Args:
        aside: What Java has written.
        place: Its description.
    """
    try:
        if not _is_whole(aside):
            return
        size, crc32 = aside.stat().st_size, _crc32(aside)
        file = place.with_name(f"{place.stem}-{crc32:08x}{_ARCHIVE}")
        _to_disk(aside)
        aside.replace(file)
        _write(place, {"format": _FORMAT, "file": file.name, "size": size, "crc32": crc32})
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


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
    used = _tidy_asides(folder)
    described: set[str] = set()
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
    for file in folder.glob(f"*{_ARCHIVE}"):
        # One that has just come to its place is described a moment later.
        if file.name not in described and _age(file) > _A_MINUTE:
            with suppress(OSError):
                file.unlink()


def _tidy_asides(folder: Path) -> int:
    """Remove what killed processes left, and the oldest of what is written where that is much.

    Whoever still writes to one of those only makes no archive.

    Returns:
        How many bytes the others take.
    """
    used = 0
    for file in sorted(filter(_is_aside, folder.iterdir()), key=_age):
        with suppress(OSError):
            size = file.stat().st_size
            if used + size > LIMIT // 4 or (_age(file) > _AN_HOUR and not _is_of_the_living(file)):
                file.unlink()
            else:
                used += size
    return used


def _is_aside(file: Path) -> bool:
    return ASIDE in (file.suffix, Path(file.stem).suffix) or file.name.startswith(_WRITING)


def _is_of_the_living(file: Path) -> bool:
    """Whether the process that a file is named after still runs."""
    found = _OF_A_PROCESS.search(file.name)
    if found is None:
        return False
    try:
        os.kill(int(found[1]), 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _age(file: Path) -> float:
    try:
        return time.time() - file.stat().st_mtime
    except OSError:
        return 0.0


def main() -> None:
    """Make an archive of what the session before has noted, if it is wanted."""
    noted, place, *java = sys.argv[1:]
    os.nice(_NICE)
    if place:
        make(Path(noted), Path(place), java)
    else:
        for file in (Path(noted), rotated(Path(noted))):
            with suppress(OSError):
                file.unlink()


if __name__ == "__main__":
    main()
