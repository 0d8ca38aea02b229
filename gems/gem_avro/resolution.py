"""Messages of one Avro schema as messages of another: the rules of the specification's *Schema Resolution*.

Spark resolves by one schema of the messages, which is fixed when a query starts. A topic gets new ones while
the query runs, so executors put each message into the reader's schema, which Spark reads. Nothing is made of
the values: bytes are moved, and numbers widened. Logical types stand on others, so they don't matter here.
Where the specification leaves something open, it is decided as Apache Avro's own library for Java does.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gem_avro.parsing import NAMED, Part, Schema

Move = Callable[[bytes, int, bytearray], int]
"""Moves a value that begins at a place in a message to the end of another one; returns where it ends."""

_MOST_OF_NOTHING = 1_000_000
"""Values without bytes, of which a few bytes can promise any number."""

_WIDER = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_FIXED = {"null": 0, "boolean": 1, "float": 4, "double": 8}


class ResolutionError(ValueError):
    """Why a message of one schema isn't one of the other, as a sentence without its end."""


class UnreadableError(ValueError):
    """A message isn't one of its own schema."""


@dataclass(frozen=True)
class Resolved:
    """How messages of one schema become messages of another.

    Args:
        move: How a message is moved; None where it stays as it is.
    """

    move: Move | None

    def message(self, data: bytes) -> bytes:
        """A message of the reader's schema; what stands behind it still does.

        Args:
            data: The message.

        Raises:
            ResolutionError: When it can't become one.
            UnreadableError: When it is no message of its own schema.
        """
        if self.move is None:
            return data
        out = bytearray()
        try:
            end = self.move(data, 0, out)
        except (IndexError, struct.error, OverflowError, RecursionError) as error:
            raise UnreadableError(str(error)) from None
        if end > len(data):
            raise UnreadableError("it ends too early")
        return bytes(out + data[end:])


def resolve(writer: Schema, reader: Schema) -> Resolved:
    """How messages of one schema become messages of another.

    Args:
        writer: The schema that they were written with.
        reader: The other one. It doesn't hold itself.
    """
    resolution = _Resolution(writer, reader)
    if resolution.is_same(writer.root, reader.root, frozenset()):
        # Spark makes room for as many items as a list promises: nobody may promise more than there is.
        lists = any(node.kind in {"array", "map"} for node in writer.nodes())
        return Resolved(_copying(resolution.skip(writer.root)) if lists else None)
    return Resolved(resolution.tried(writer.root, reader.root))


class _Slot(NamedTuple):
    """What is done with a field of the writer's.

    Args:
        position: Where it goes among the reader's; None where it is left out.
        move: How it gets there.
    """

    position: int | None
    move: Move


@dataclass
class _Resolution:
    writer: Schema
    reader: Schema
    _skips: dict[tuple[str, bool], Move] = field(default_factory=dict)

    # Which are the same

    def is_same(self, writer: Part, reader: Part, seen: frozenset[tuple[str, str]]) -> bool:
        """Whether values of one are values of the other, byte for byte."""
        w, r = self.writer.of(writer), self.reader.of(reader)
        if w.kind != r.kind:
            return False
        if w.kind in NAMED and w.kind != "record" and not self._is_called(w, r):
            return False
        if w.kind == "fixed":
            return w.size == r.size
        if w.kind == "enum":
            return w.symbols == r.symbols[: len(w.symbols)]
        if w.kind in {"array", "map"}:
            return self.is_same(w.items, r.items, seen)
        if w.kind == "union":
            branches = [(index, self._branch(part, r)) for index, part in enumerate(w.branches)]
            return len(w.branches) == len(r.branches) and all(
                index == found and self.is_same(w.branches[index], r.branches[index], seen)
                for index, found in branches
            )
        if w.kind == "record":
            if (w.name, r.name) in seen:
                return True
            inner = seen | {(w.name, r.name)}
            names = [self._name_in(r, w, each.name) for each in w.fields]
            return names == [each.name for each in r.fields] and all(
                self.is_same(a.part, b.part, inner) for a, b in zip(w.fields, r.fields, strict=True)
            )
        return True

    def _is_called(self, w: Any, r: Any) -> bool:
        return w.name == r.name or w.name in r.aliases

    def _name_in(self, r: Any, w: Any, name: str) -> str:
        """What the reader calls a field of the writer's."""
        if any(each.name == name for each in r.fields) or not self._is_called(w, r):
            return name
        return next((each.name for each in r.fields if name in each.aliases), name)

    # How they are moved

    def moved(self, writer: Part, reader: Part) -> Move:
        w, r = self.writer.of(writer), self.reader.of(reader)
        if w.kind == "union":
            return _of_union([self.tried(part, reader) for part in w.branches])
        if r.kind == "union" and w.kind != "union":
            found = self._branch(writer, r)
            if found is None:
                raise ResolutionError(f"{w.told} is none of the types of the union")
            return _behind(_long(found), self.moved(writer, r.branches[found]))
        if self.is_same(writer, reader, frozenset()):
            return _copying(self.skip(writer))
        if w.kind != r.kind:
            if r.kind not in _WIDER.get(w.kind, ()):
                raise ResolutionError(f"{w.told} can't become {r.told}")
            return _widened(w.kind, r.kind)
        if w.kind in NAMED and w.kind != "record" and not self._is_called(w, r):
            raise ResolutionError(f"the {w.kind} `{w.name}` isn't `{r.name}`")
        if w.kind == "fixed":
            raise ResolutionError(f"the fixed `{w.name}` has {w.size} bytes and not {r.size}")
        if w.kind == "enum":
            return _of_enum(w, r)
        if w.kind in {"array", "map"}:
            item = self.tried(w.items, r.items)
            return _of_blocks(_behind_key(item) if w.kind == "map" else item)
        return self._record(w, r)

    def tried(self, writer: Part, reader: Part, where: str = "") -> Move:
        """How a value is moved; one that can't be fails when it comes, and not before."""
        try:
            return self.moved(writer, reader)
        except ResolutionError as error:
            words = f"{where}{error}"

        def fail(data: bytes, at: int, out: bytearray) -> int:  # noqa: ARG001 (as all moves)
            raise ResolutionError(words)

        return fail

    def _record(self, w: Any, r: Any) -> Move:
        positions = {each.name: number for number, each in enumerate(r.fields)}
        slots: list[_Slot] = []
        found: set[int] = set()
        for each in w.fields:
            position = positions.get(self._name_in(r, w, each.name))
            if position is None or position in found:
                slots.append(_Slot(None, self.skip(each.part, jumping=True)))
            else:
                found.add(position)
                move = self.tried(each.part, r.fields[position].part, f"`{each.name}`: ")
                slots.append(_Slot(position, move))
        made: list[bytes | None] = [None] * len(r.fields)
        for number, each in enumerate(r.fields):
            if number not in found:
                if not each.has_default:
                    raise ResolutionError(f"the field `{each.name}` isn't in it and has no default")
                made[number] = encoded(self.reader, each.part, each.default)
        return _of_record(slots, made)

    def _branch(self, writer: Part, union: Any) -> int | None:
        """Which branch of the reader's union a value of the writer's is read by."""
        w = self.writer.of(writer)
        alike: int | None = None
        for number, part in enumerate(union.branches):
            r = self.reader.of(part)
            if r.kind != w.kind:
                continue
            if w.kind not in NAMED or self._is_called(w, r):
                return number
            if w.kind == "record" and self._fits(w, r) and (alike is None or w.short == r.short):
                alike = number
        if alike is not None:
            return alike
        wider = _WIDER.get(w.kind, ())
        return next((n for n, part in enumerate(union.branches) if self.reader.of(part).kind in wider), None)

    def _fits(self, w: Any, r: Any) -> bool:
        fields = {each.name: each.part for each in r.fields}
        try:
            self._record(w, r)
            for each in w.fields:
                name = self._name_in(r, w, each.name)
                if name in fields:
                    self.moved(each.part, fields[name])
        except ResolutionError:
            return False
        return True

    # What is passed over

    def skip(self, part: Part, *, jumping: bool = False) -> Move:
        """Passes over a value of the writer's.

        Args:
            part: Its type.
            jumping: Believe what lists say of their length in bytes: what is in them isn't read.
        """
        node = self.writer.of(part)
        if node.kind in _FIXED or node.kind == "fixed":
            return _skipping(node.size if node.kind == "fixed" else _FIXED[node.kind])
        if node.kind in {"int", "long", "enum"}:
            return _skip_number
        if node.kind in {"bytes", "string"}:
            return _skip_bytes
        if node.kind == "union":
            return _of_union([self.skip(each, jumping=jumping) for each in node.branches])
        if node.kind in {"array", "map"}:
            item = self.skip(node.items, jumping=jumping)
            return _skipping_blocks(_skipping_key(item) if node.kind == "map" else item, jumping=jumping)
        key = (node.name, jumping)
        if key not in self._skips:
            moves: list[Move] = []

            def skip(data: bytes, at: int, out: bytearray) -> int:
                for move in moves:
                    at = move(data, at, out)
                return at

            # Known before its fields are: it may hold itself.
            self._skips[key] = skip
            moves += [self.skip(each.part, jumping=jumping) for each in node.fields]
        return self._skips[key]


# Numbers and bytes


def _long(number: int) -> bytes:
    """A number in zigzag coding, seven bits a byte, the lowest first."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins there, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise OverflowError("a number has too many bytes")


def _skip_number(data: bytes, at: int, out: bytearray) -> int:  # noqa: ARG001
    for end in range(at, at + 10):
        if data[end] < 0x80:
            return end + 1
    raise OverflowError("a number has too many bytes")


def _skip_bytes(data: bytes, at: int, out: bytearray) -> int:  # noqa: ARG001
    length, at = _number(data, at)
    return _within(data, at, length)


def _within(data: bytes, at: int, length: int) -> int:
    if length < 0 or at + length > len(data):
        raise IndexError("it ends too early")
    return at + length


def _skipping(size: int) -> Move:
    return lambda data, at, out: _within(data, at, size)  # noqa: ARG005


def _copying(skip: Move) -> Move:
    def copy(data: bytes, at: int, out: bytearray) -> int:
        end = skip(data, at, out)
        out += data[at:end]
        return end

    return copy


def _behind(prefix: bytes, move: Move) -> Move:
    def moved(data: bytes, at: int, out: bytearray) -> int:
        out += prefix
        return move(data, at, out)

    return moved


def _widened(writer: str, reader: str) -> Move:
    if reader in {"long", "bytes", "string"}:
        return _copying(_skip_number if reader == "long" else _skip_bytes)
    code = "<f" if reader == "float" else "<d"

    def from_number(data: bytes, at: int, out: bytearray) -> int:
        number, end = _number(data, at)
        out += struct.pack(code, number)
        return end

    def from_float(data: bytes, at: int, out: bytearray) -> int:
        end = _within(data, at, 4)
        out += struct.pack("<d", *struct.unpack("<f", data[at:end]))
        return end

    return from_float if writer == "float" else from_number


# Composed types


def _of_union(branches: list[Move]) -> Move:
    def moved(data: bytes, at: int, out: bytearray) -> int:
        index, at = _number(data, at)
        if not 0 <= index < len(branches):
            raise IndexError("a union has no such branch")
        return branches[index](data, at, out)

    return moved


def _of_enum(w: Any, r: Any) -> Move:
    known = {symbol: _long(number) for number, symbol in enumerate(r.symbols)}
    default = known.get(r.default) if r.default is not None else None
    symbols = [known.get(symbol, default) for symbol in w.symbols]

    def moved(data: bytes, at: int, out: bytearray) -> int:
        index, at = _number(data, at)
        if not 0 <= index < len(symbols):
            raise IndexError("an enum has no such symbol")
        found = symbols[index]
        if found is None:
            raise ResolutionError(f"the enum `{r.name}` has no `{w.symbols[index]}`")
        out += found
        return at

    return moved


def _of_record(slots: list[_Slot], made: list[bytes | None]) -> Move:
    placed = [slot.position for slot in slots if slot.position is not None]
    count = len(made)
    if placed == list(range(count)):

        def straight(data: bytes, at: int, out: bytearray) -> int:
            for slot in slots:
                at = slot.move(data, at, out)
            return at

        return straight

    def moved(data: bytes, at: int, out: bytearray) -> int:
        values: list[bytes | bytearray | None] = [*made]
        for position, move in slots:
            value = bytearray()
            at = move(data, at, value)
            if position is not None:
                values[position] = value
        for found in values:
            assert found is not None, "each field has a value or a default"
            out += found
        return at

    return moved


def _behind_key(item: Move) -> Move:
    key = _copying(_skip_bytes)
    return lambda data, at, out: item(data, key(data, at, out), out)


def _skipping_key(item: Move) -> Move:
    return lambda data, at, out: item(data, _skip_bytes(data, at, out), out)


def _count(data: bytes, at: int) -> tuple[int, int | None, int]:
    """How many items a block has, in how many bytes where it says that, and where they begin."""
    count, at = _number(data, at)
    size = None
    if count < 0:
        count = -count
        size, at = _number(data, at)
    if count > max(len(data) - at, _MOST_OF_NOTHING):
        raise IndexError("a list promises more than there is")
    return count, size, at


def _of_blocks(item: Move) -> Move:
    def moved(data: bytes, at: int, out: bytearray) -> int:
        while True:
            count, _, at = _count(data, at)
            out += _long(count)
            if not count:
                return at
            for _ in range(count):
                at = item(data, at, out)

    return moved


def _skipping_blocks(item: Move, *, jumping: bool) -> Move:
    def skip(data: bytes, at: int, out: bytearray) -> int:
        while True:
            count, size, at = _count(data, at)
            if not count:
                return at
            if jumping and size is not None:
                at = _within(data, at, size)
                continue
            for _ in range(count):
                at = item(data, at, out)

    return skip


# Defaults


def encoded(schema: Schema, part: Part, value: Any) -> bytes:
    """A default, which a schema has as JSON, as a message has it.

    Args:
        schema: The schema.
        part: The part of it whose default it is.
        value: The default.

    Raises:
        ResolutionError: When it is none of that type.
    """
    node = schema.of(part)
    try:
        return _encoded(schema, node, value)
    except (TypeError, ValueError, KeyError, AttributeError, struct.error) as error:
        if isinstance(error, ResolutionError):
            raise
        raise ResolutionError(f"the default {value!r} is no value of {node.told}") from None


def _encoded(schema: Schema, node: Any, value: Any) -> bytes:
    kind = node.kind
    if kind == "union":
        for index, part in enumerate(node.branches):
            try:
                return _long(index) + encoded(schema, part, value)
            except ResolutionError:
                continue
        raise ValueError
    if kind == "record":
        whole = b""
        for each in node.fields:
            if each.name not in value and not each.has_default:
                raise KeyError(each.name)
            whole += encoded(schema, each.part, value.get(each.name, each.default))
        return whole
    if kind in {"array", "map"}:
        if kind == "array" and isinstance(value, list):
            items = [encoded(schema, node.items, item) for item in value]
        elif kind == "map" and isinstance(value, dict):
            items = [_text(key) + encoded(schema, node.items, item) for key, item in value.items()]
        else:
            raise TypeError
        return (_long(len(items)) + b"".join(items) if items else b"") + b"\x00"
    if kind == "enum":
        return _long(node.symbols.index(value))
    return _simple(node, value)


def _simple(node: Any, value: Any) -> bytes:
    kind = node.kind
    whole = isinstance(value, int) and not isinstance(value, bool)
    if kind == "null" and value is None:
        return b""
    if kind == "boolean" and isinstance(value, bool):
        return bytes([value])
    if (
        kind in {"int", "long"}
        and whole
        and -(1 << (31 if kind == "int" else 63)) <= value < (1 << (31 if kind == "int" else 63))
    ):
        return _long(value)
    if kind in {"float", "double"} and (whole or isinstance(value, float)):
        return struct.pack("<f" if kind == "float" else "<d", value)
    if isinstance(value, str) and kind == "string":
        return _text(value)
    if isinstance(value, str) and kind in {"bytes", "fixed"}:
        raw = value.encode("latin-1")
        if kind == "fixed" and len(raw) != node.size:
            raise ValueError
        return raw if kind == "fixed" else _long(len(raw)) + raw
    raise TypeError


def _text(value: str) -> bytes:
    raw = value.encode()
    return _long(len(raw)) + raw
