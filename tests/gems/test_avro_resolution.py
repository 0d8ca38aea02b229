"""Messages of one Avro schema as messages of another: by hand, and as Spark's own Avro resolves them."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gem_avro.from_avro import _MARK, _is_plain, _marked
from gem_avro.parsing import SchemaTextError, parsed, whole
from gem_avro.resolution import ResolutionError, UnreadableError, _Resolution, resolve
from gem_bundle.avro import AvroSchema, AvroSchemaError
from tests.samples import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def record(*fields: tuple[Any, ...], name: str = "R", **more: Any) -> dict[str, Any]:
    """A record; a field is a name, a type and, where it has one, a default."""
    made = [{"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})} for f in fields]
    return {"type": "record", "name": name, "fields": made, **more}


def moved(writer: Any, reader: Any, message: bytes) -> bytes:
    return resolve(parsed(json.dumps(writer)), parsed(json.dumps(reader))).message(message)


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
CLICK = record(("page", "string"), ("n", "int"))


@pytest.mark.parametrize(
    ("writer", "reader", "message", "expected"),
    [
        (CLICK, record(("n", "long"), ("page", "string")), b"\x04ab\x0e", b"\x0e\x04ab"),
        (CLICK, record(("n", "double")), b"\x04ab\x0e", struct.pack("<d", 7)),
        (CLICK, record(("n", ["null", "long"])), b"\x04ab\x0e", b"\x02\x0e"),
        (CLICK, record(("page", "bytes"), ("team", "string", "web")), b"\x04ab\x0e", b"\x04ab\x06web"),
        (CLICK, record(("x", {"type": "array", "items": "int"}, [1, 2])), b"\x04ab\x0e", b"\x04\x02\x04\x00"),
        (CLICK, record(("x", {"type": "map", "values": "int"}, {})), b"\x04ab\x0e", b"\x00"),
        (
            CLICK,
            record(("x", ["null", "int"], None), ("y", ["int", "null"], 1)),
            b"\x02a\x00",
            b"\x00\x00\x02",
        ),
        (record(("e", ENUM)), record(("e", {**ENUM, "symbols": ["B", "A"]})), b"\x00", b"\x02"),
        (record(("e", ENUM)), record(("e", {**ENUM, "symbols": ["B"], "default": "B"})), b"\x00", b"\x00"),
        (record(("f", "float")), record(("f", "double")), struct.pack("<f", 1.5), struct.pack("<d", 1.5)),
        (record(("u", ["int", "string"])), record(("u", "string")), b"\x02\x02a", b"\x02a"),
        (record(("u", ["int", "string"])), record(("u", ["string", "long"])), b"\x00\x02", b"\x02\x02"),
        # Blocks: with their size before them, and several of them.
        (
            record(("a", {"type": "array", "items": "int"})),
            record(("a", {"type": "array", "items": "long"})),
            b"\x03\x04\x02\x04\x02\x06\x00",
            b"\x04\x02\x04\x02\x06\x00",
        ),
        (
            record(("m", {"type": "map", "values": "int"}), ("n", "int")),
            record(("n", "long")),
            b"\x02\x02k\x02\x00\x0a",
            b"\x0a",
        ),
        # A record that holds itself, which only the writer's may.
        (
            record(("next", ["null", "R"]), ("n", "int")),
            record(("n", "long")),
            b"\x02\x00\x02\x06",
            b"\x06",
        ),
        (
            CLICK,
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": "url", "type": "string", "aliases": ["page"]}],
            },
            b"\x04ab\x0e",
            b"\x04ab",
        ),
    ],
    ids=str,
)
def test_messages_get_the_reader_s_schema(writer: Any, reader: Any, message: bytes, expected: bytes) -> None:
    assert moved(writer, reader, message) == expected
    assert moved(writer, reader, message + b"more") == expected + b"more"


def test_a_message_of_the_same_schema_stays_as_it_is() -> None:
    more = [{**each, "doc": "told", "default": ""} for each in CLICK["fields"][:1]] + CLICK["fields"][1:]
    assert resolve(parsed(json.dumps(CLICK)), parsed(json.dumps({**CLICK, "fields": more}))).move is None
    assert moved(CLICK, CLICK, b"no record at all") == b"no record at all"


@pytest.mark.parametrize(
    ("writer", "reader", "said"),
    [
        (CLICK, record(("url", "string")), "the field `url` isn't in it and has no default"),
        (CLICK, record(("page", "int")), "`page`: a string can't become an int"),
        (CLICK, record(("page", ["null", "int"])), "`page`: a string is none of the types of the union"),
        (record(("e", ENUM)), record(("e", {**ENUM, "symbols": ["B"]})), "the enum `E` has no `A`"),
        (record(("e", ENUM)), record(("e", {**ENUM, "name": "F"})), "`e`: the enum `E` isn't `F`"),
        (CLICK, record(("x", "int", "seven")), "the default 'seven' is no value of an int"),
    ],
    ids=str,
)
def test_schemas_that_do_not_resolve(writer: Any, reader: Any, said: str) -> None:
    with pytest.raises(ResolutionError) as raised:
        moved(writer, reader, b"\x00\x00")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "message", [b"", b"\x04a", b"\x04ab", b"\x03", b"\xff" * 12, b"\x04ab" + b"\xff" * 10 + b"\x01"]
)
def test_messages_that_are_none(message: bytes) -> None:
    with pytest.raises(UnreadableError):
        moved(CLICK, record(("n", "double"), ("page", "string")), message)


def test_a_few_bytes_that_promise_any_number_of_values_are_no_message() -> None:
    nothing = record(("a", {"type": "array", "items": "null"}), ("n", "int"))
    with pytest.raises(UnreadableError):
        moved(nothing, record(("n", "long")), b"\xfe\xff\xff\xff\xff\xff\x7f\x00\x02")


def test_a_list_that_promises_more_than_there_is_is_no_message_of_the_same_schema_either() -> None:
    numbers = record(("a", {"type": "array", "items": "int"}))
    assert moved(numbers, numbers, b"\x02\x02\x00") == b"\x02\x02\x00"
    with pytest.raises(UnreadableError):
        moved(numbers, numbers, long(1_000_000_000) + b"\x02\x00")


def test_types_of_other_schemas_are_put_where_they_are_named_first() -> None:
    team = json.dumps({"type": "record", "name": "a.Team", "fields": [{"name": "kind", "type": "Kind"}]})
    kind = json.dumps({"type": "enum", "name": "a.Kind", "symbols": ["X"]})
    click = json.dumps(record(("team", "a.Team"), ("other", ["null", "a.Team"]), name="b.Click"))
    text = whole(click, [kind, team])
    assert AvroSchema(text).columns is not None
    assert [c.type for c in AvroSchema(text).columns or ()] == ["struct<kind: string>"] * 2
    assert resolve(parsed(click, [kind, team]), parsed(text)).move is None
    with pytest.raises(SchemaTextError, match=r"there is no type `a\.Team`"):
        parsed(click)


# Against Spark

SIMPLE: list[Any] = ["boolean", "int", "long", "float", "double", "bytes", "string"]


class Drawn:
    """Draws a schema with a message of it, and one that came of it later."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._count = 0

    def name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def one_of(self, *values: Any) -> Any:
        return self._draw(st.sampled_from(values))

    def type(self, depth: int) -> Any:
        kind = self.one_of(
            "simple", "simple", "enum", "fixed", *(["array", "map", "record", "union"] * (depth > 0))
        )
        if kind == "enum":
            return {
                "type": "enum",
                "name": self.name("E"),
                "symbols": ["A", "B", "C"][: self.one_of(1, 2, 3)],
            }
        if kind == "fixed":
            return {"type": "fixed", "name": self.name("F"), "size": self.one_of(0, 1, 3)}
        if kind == "array":
            return {"type": "array", "items": self.type(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": self.type(depth - 1)}
        if kind == "record":
            return self.record(depth - 1)
        if kind == "union":
            some = self._draw(
                st.lists(st.sampled_from(["null", *SIMPLE]), min_size=1, max_size=3, unique=True)
            )
            return some + ([self.record(depth - 1)] if depth > 1 and self.one_of(True, False) else [])
        return self.one_of(*SIMPLE)

    def record(self, depth: int) -> Any:
        fields = [(self.name("f"), self.type(depth)) for _ in range(self.one_of(1, 2, 3))]
        return record(*fields, name=self.name("R"))

    def message(self, part: Any, names: dict[str, Any]) -> bytes:
        """A value of a type, as the specification encodes it."""
        if isinstance(part, str) and part in names:
            part = names[part]
        if isinstance(part, list):
            index = self._draw(st.integers(0, len(part) - 1))
            return long(index) + self.message(part[index], names)
        kind = part if isinstance(part, str) else part["type"]
        if kind == "record":
            names[part["name"]] = part
            return b"".join(self.message(each["type"], names) for each in part["fields"])
        if kind == "enum":
            return long(self._draw(st.integers(0, len(part["symbols"]) - 1)))
        if kind == "fixed":
            return self._draw(st.binary(min_size=part["size"], max_size=part["size"]))
        if kind in {"array", "map"}:
            items = [
                (text(f"k{n}") if kind == "map" else b"")
                + self.message(part["items" if kind == "array" else "values"], names)
                for n in range(self.one_of(0, 1, 2))
            ]
            if not items:
                return b"\x00"
            body = b"".join(items)
            sized = self.one_of(True, False)
            head = long(-len(items)) + long(len(body)) if sized else long(len(items))
            return head + body + b"\x00"
        return {
            "null": lambda: b"",
            "boolean": lambda: bytes([self.one_of(0, 1)]),
            "int": lambda: long(self._draw(st.integers(-(2**31), 2**31 - 1))),
            "long": lambda: long(self._draw(st.integers(-(2**63), 2**63 - 1))),
            "float": lambda: struct.pack("<f", self._draw(st.floats(width=32, allow_nan=False))),
            "double": lambda: struct.pack("<d", self._draw(st.floats(allow_nan=False))),
            "string": lambda: text(self._draw(st.text(max_size=3))),
            "bytes": lambda: long(1) + b"a",
        }[kind]()

    def later(self, part: Any) -> Any:
        """What somebody makes of a type, which mostly resolves."""
        change = self.one_of(*("same",) * 3, "null", "wider", "other", "odd")
        if isinstance(part, list):
            grown = [self.later(each) for each in part]
            return (
                grown
                if len({str(each) for each in grown}) == len(grown) and change != "other"
                else part[::-1]
            )
        if change == "null" and part != "null":
            return ["null", part] if self.one_of(True, False) else [part, "null"]
        if isinstance(part, str):
            wider = {"int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"]}
            wider |= {"string": ["bytes"], "bytes": ["string"]}
            if change == "wider" and part in wider:
                return self.one_of(*wider[part])
            return self.one_of(*SIMPLE) if change == "odd" else part
        if part["type"] == "enum":
            symbols = self.one_of(["A", "B", "C"], ["C", "B", "A"], ["B"], part["symbols"])
            default = {"default": symbols[0]} if change == "other" else {}
            return {**part, "symbols": symbols, **default}
        if part["type"] in {"array", "map"}:
            key = "items" if part["type"] == "array" else "values"
            return {**part, key: self.later(part[key])}
        if part["type"] == "record":
            return self.later_record(part)
        return {**part, "size": 2} if change == "odd" else part

    def later_record(self, part: Any) -> Any:
        fields = [{**each, "type": self.later(each["type"])} for each in part["fields"]]
        for each in fields:
            if self.one_of(*(False,) * 5, True):
                each["aliases"], each["name"] = [each["name"]], self.name("g")
        if len(fields) > 1 and self.one_of(False, True):
            fields.pop(self._draw(st.integers(0, len(fields) - 1)))
        if self.one_of(False, True):
            fields.reverse()
        if self.one_of(False, True):
            kind, default = self.one_of(
                ("int", 7),
                ("string", "é"),
                ("bytes", "\x00\xff"),
                (["null", "int"], None),
                ("double", 1),
                ("long", None),
            )
            added = {"name": self.name("h"), "type": kind}
            fields.insert(0, added if kind == "long" else {**added, "default": default})
        return {**part, "fields": fields}


def long(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def text(value: str) -> bytes:
    return long(len(value.encode())) + value.encode()


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[Any, Any, list[bytes]]:
    """A writer's schema, a reader's, and messages: whole ones, cut ones, ones with a byte that is another."""
    drawn = Drawn(draw)
    writer = drawn.record(2)
    reader = drawn.later_record(writer)
    good = [drawn.message(writer, {}) for _ in range(4)]
    cut = [each[: draw(st.integers(0, len(each)))] for each in good[:1]]
    longer = [good[0] + b"\x00"]
    odd = [bytes([draw(st.integers(0, 255)), *good[1][1:]])]
    return writer, reader, good + cut + longer + odd


def is_modest(schema: AvroSchema, message: bytes) -> bool:
    """Whether Spark can be given a message: for lists and texts that promise too much it takes all memory."""
    walk = _Resolution(parsed(schema.text), parsed(schema.text))
    try:
        walk.skip(walk.writer.root)(message, 0, bytearray())
    except (IndexError, OverflowError) as error:
        return "such" in str(error)
    return True


@pytest.mark.spark
def test_messages_are_resolved_as_spark_resolves_them(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.avro.functions import from_avro

    told = {"read": 0, "unread": 0}

    @settings(max_examples=examples(5, 240), deadline=None, suppress_health_check=list(HealthCheck))
    @given(evolutions())
    def agrees(drawn: tuple[Any, Any, list[bytes]]) -> None:
        writer, reader, messages = drawn
        try:
            w, r = AvroSchema(json.dumps(writer)), AvroSchema(json.dumps(reader))
        except AvroSchemaError:
            assume(False)
        resolved = resolve(parsed(w.text), parsed(r.text))
        if not is_modest(w, messages[-1]):
            messages.pop()
        rows = []
        for message in messages:
            try:
                own: bytes | None = resolved.message(message)
            except (ResolutionError, UnreadableError):
                own = None
            rows.append((bytearray(message), None if own is None else bytearray(own)))
        df = spark.createDataFrame(rows, "message binary, own binary").coalesce(1)
        flat = _is_plain(w) and _is_plain(r)
        marked = _marked(r, flat=flat)
        theirs = from_avro(
            F.concat("message", F.lit(_MARK)),
            _marked(w, flat=flat),
            {"avroSchema": marked, "mode": "PERMISSIVE"},
        )
        ours = from_avro(F.concat("own", F.lit(_MARK)), marked, {"mode": "PERMISSIVE"})
        for row, (message, own) in zip(
            df.select(theirs.alias("t"), ours.alias("o")).collect(), rows, strict=True
        ):
            ends = [
                None
                if each is None or each["__gem_bundle_end"] is None
                else bytes(each["__gem_bundle_end"]) == _MARK
                for each in (row.t, row.o)
            ]
            assert (ends[0] or False) == (ends[1] or False), (message, own, row)
            if ends[0]:
                assert repr(row.t) == repr(row.o), (message, own)
            told["read" if ends[0] else "unread"] += 1

    agrees()
    assert all(told.values())
