"""The archive of dependencies: wheels unpacked into one folder, as a ``.tar.gz`` with the same bytes always.

What compressing yields depends on the zlib at hand, so nothing is compressed here: the files lie in the
wheels compressed already, and a gzip file may consist of many members (RFC 1952, section 2.2). Each file goes
in compressed as it is, as a member of its own; what lies between, the headers of the tar format and very
small files, goes in as members that aren't compressed. Every program that reads gzip reads this.
"""

from __future__ import annotations

import csv
import io
import struct
import tarfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from gem_bundler.wheels.files import SIGNATURES, dist_info, open_wheel, record_line, record_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from gem_bundler.dependencies.lock import DepsLock

_BLOCK = 512
_RECORD = 20 * _BLOCK
_LONGEST_STORED = 0xFFFF
_MOST_PENDING = 1 << 20
_LOCAL_HEADER = struct.Struct("<26xHH")
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


@dataclass(frozen=True, slots=True)
class _Member:
    """A file of the archive: bytes, or a file of a wheel."""

    content: bytes | None = None
    wheel: ZipFile | None = None
    info: ZipInfo | None = None


def write_archive(
    lock: DepsLock,
    files: Mapping[str, Path],
    path: Path,
    report: Callable[[str], None] | None = None,
) -> None:
    """Write ``deps.tar.gz``: what ``pip install --target`` would make of the wheels of a lock.

    It has no scripts and no compiled Python, and the metadata of every distribution, so that versions and
    entry points are found. The same lock gives the same bytes.

    Args:
        lock: What belongs into it.
        files: The wheels by the names of their files.
        path: Where it goes.
        report: Told when two distributions bring the same file with different contents; the last one wins, as
            with pip.

    Raises:
        GemError: GB645 when a wheel is damaged.
    """
    members: dict[str, _Member] = {}
    owners: dict[str, str] = {}
    wheels = []
    try:
        for distribution in lock.distributions:
            wheel = open_wheel(files[distribution.file])
            wheels.append(wheel)
            for name, member in _members(wheel, files[distribution.file]):
                if report and name in members and not _are_equal(members[name], member):
                    report(
                        f"{owners[name]} and {distribution.name} both bring the file {name}; that of "
                        f"{distribution.name} is taken"
                    )
                members[name], owners[name] = member, distribution.name
        with path.open("wb") as target:
            _write(target, members)
    finally:
        for wheel in wheels:
            wheel.close()


def _members(wheel: ZipFile, path: Path) -> Iterator[tuple[str, _Member]]:
    """The files of a wheel by where they are installed, with a ``RECORD`` of exactly these."""
    info = dist_info(wheel, path)
    record = f"{info}/RECORD"
    recorded = {}
    if record in wheel.namelist():
        text = wheel.read(record).decode()
        recorded = {line[0]: (line[1], line[2]) for line in csv.reader(io.StringIO(text)) if len(line) == 3}
    lines = [(record, "", "")]
    for entry in sorted(wheel.infolist(), key=lambda entry: entry.filename):
        name = _installed_name(entry, info)
        if name is None:
            continue
        known = recorded.get(entry.filename, ("", ""))
        lines.append((name, *known) if all(known) else record_line(name, wheel.read(entry)))
        yield name, _Member(wheel=wheel, info=entry)
    yield record, _Member(content=record_text(sorted(lines)))


def _installed_name(entry: ZipInfo, info: str) -> str | None:
    """Where a file of a wheel is installed, or None when it isn't."""
    name = entry.filename
    folder, _, rest = name.partition("/")
    if entry.is_dir() or name.endswith((".pyc", ".pyo")) or "__pycache__" in name.split("/"):
        return None
    if folder == info and rest in {"RECORD", *SIGNATURES}:
        return None
    if folder.endswith(".data"):
        kind, _, inner = rest.partition("/")
        return inner if kind in {"purelib", "platlib", "data"} and inner else None
    return name


def _are_equal(one: _Member, other: _Member) -> bool:
    if one.info is None or other.info is None:
        return one.content == other.content
    return (one.info.CRC, one.info.file_size) == (other.info.CRC, other.info.file_size)


def _write(target: BinaryIO, members: Mapping[str, _Member]) -> None:
    out = _Members(target)
    position = 0
    for name in sorted(members):
        member = members[name]
        entry = tarfile.TarInfo(name)
        entry.mode = 0o644
        if member.info is not None:
            entry.size = member.info.file_size
            if member.info.external_attr >> 16 & 0o100:
                entry.mode = 0o755
        else:
            entry.size = len(member.content or b"")
        header = entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        out.plain(header)
        _put(out, member)
        padding = -entry.size % _BLOCK
        out.plain(bytes(padding))
        position += len(header) + entry.size + padding
    end = 2 * _BLOCK
    out.plain(bytes(end + -(position + end) % _RECORD))
    out.flush()


def _put(out: _Members, member: _Member) -> None:
    if member.info is None or member.wheel is None:
        out.plain(member.content or b"")
    elif member.info.compress_type == ZIP_DEFLATED and member.info.file_size > _BLOCK:
        out.deflated(_raw(member.wheel, member.info), member.info.CRC, member.info.file_size)
    else:
        out.plain(member.wheel.read(member.info))


def _raw(wheel: ZipFile, info: ZipInfo) -> bytes:
    """The bytes of a file as they lie in the zip file."""
    source = wheel.fp
    assert source is not None, "the wheel is open"
    source.seek(info.header_offset)
    name_length, extra_length = _LOCAL_HEADER.unpack(source.read(_LOCAL_HEADER.size))
    source.seek(name_length + extra_length, io.SEEK_CUR)
    return source.read(info.compress_size)


class _Members:
    """Writes a gzip file member by member.

    Args:
        target: Where it goes.
    """

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._pending = bytearray()

    def plain(self, content: bytes) -> None:
        """Add bytes that stay as they are."""
        self._pending += content
        if len(self._pending) >= _MOST_PENDING:
            self.flush()

    def deflated(self, stream: bytes, crc: int, size: int) -> None:
        """Add a stream that is compressed already (RFC 1951).

        Args:
            stream: Its bytes.
            crc: The checksum of what is compressed in it.
            size: The size of what is compressed in it.
        """
        self.flush()
        self._member([stream], crc, size)

    def flush(self) -> None:
        """Write what was added and isn't written yet, in blocks that aren't compressed."""
        if not self._pending:
            return
        content = bytes(self._pending)
        self._pending.clear()
        blocks = []
        for start in range(0, len(content), _LONGEST_STORED):
            block = content[start : start + _LONGEST_STORED]
            is_last = start + _LONGEST_STORED >= len(content)
            blocks += [struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF), block]
        self._member(blocks, zlib.crc32(content), len(content))

    def _member(self, parts: list[bytes], crc: int, size: int) -> None:
        self._target.write(_GZIP_HEADER)
        self._target.writelines(parts)
        self._target.write(struct.pack("<LL", crc, size & 0xFFFFFFFF))
