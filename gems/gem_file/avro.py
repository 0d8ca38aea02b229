"""The columns in the header of an Avro file (Avro specification: *Object Container Files*), without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.avro import AvroSchema

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle import Column

_MAGIC = b"Obj\x01"
_MAX_HEADER = 1 << 20


def avro_columns(file: Path) -> tuple[Column, ...] | None:
    """The fields of the record that an Avro file holds; None where it isn't one, or holds something else.

    A type that isn't certain is unknown: Spark keeps what Avro hasn't in properties of its own.
    """
    with file.open("rb") as stream:
        header = stream.read(_MAX_HEADER)
    try:
        return AvroSchema(_metadata(header)["avro.schema"].decode()).columns
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _metadata(header: bytes) -> dict[str, bytes]:
    """The file's metadata: a map, which stands behind the magic number in blocks."""
    if not header.startswith(_MAGIC):
        raise ValueError("not an Avro file")
    reader = _Reader(header, len(_MAGIC))
    found: dict[str, bytes] = {}
    while count := reader.long():
        if count < 0:
            count = -count
            reader.long()  # the size of the block, for those who pass over it
        for _ in range(count):
            key = reader.bytes().decode()
            found[key] = reader.bytes()
    return found


class _Reader:
    """Reads Avro's binary encoding from left to right."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def long(self) -> int:
        """A number in zigzag coding, seven bits a byte, the lowest first."""
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)

    def bytes(self) -> bytes:
        """Bytes behind their number."""
        length = self.long()
        start, self._at = self._at, self._at + length
        if length < 0 or self._at > len(self._data):
            raise ValueError("the header ends too early")
        return self._data[start : self._at]
