"""Avro schemas as messages are read by them, whatever Spark makes of their types."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gem_bundle.schema import with_article

NAMED = frozenset({"record", "enum", "fixed"})
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


class SchemaTextError(ValueError):
    """Why a text is no Avro schema, as a sentence without its end."""


@dataclass(frozen=True)
class FieldOf:
    """A field of a record.

    Args:
        name: Its name.
        part: What it holds.
        aliases: Its other names.
        has_default: Whether it has a default.
        default: The default, as JSON has it.
    """

    name: str
    part: "Part"
    aliases: tuple[str, ...] = ()
    has_default: bool = False
    default: Any = None


@dataclass
class Node:
    """A type.

    Args:
        kind: What it is: ``record``, ``union``, ``long``.
        name: Its full name, of a named one.
        aliases: Its other full names.
        fields: Those of a record.
        branches: Those of a union.
        items: What an array or a map holds.
        symbols: Those of an enum.
        default: The symbol that an enum has for those it doesn't know.
        size: How many bytes a fixed has.
    """

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[FieldOf, ...] = ()
    branches: tuple["Part", ...] = ()
    items: "Part" = ""
    symbols: tuple[str, ...] = ()
    default: str | None = None
    size: int = 0

    @property
    def short(self) -> str:
        """Its name without the namespace."""
        return self.name.rpartition(".")[2]

    @property
    def told(self) -> str:
        """It, in a sentence: ``an int``, ``the enum `Kind```."""
        if self.kind in NAMED:
            return f"the {self.kind} `{self.name}`"
        return {"null": "null", "union": "a union"}.get(self.kind) or with_article(self.kind)


Part = Node | str
"""A type, or the full name of one that stands elsewhere in the schema."""


@dataclass
class Schema:
    """A schema.

    Args:
        root: What it describes.
        names: The types in it that have a name, by that.
    """

    root: Part = ""
    names: dict[str, Node] = field(default_factory=dict)

    def of(self, part: Part) -> Node:
        """A type, looked up where it is a name."""
        return self.names[part] if isinstance(part, str) else part

    def nodes(self) -> Iterator[Node]:
        """All types in it.

        Raises:
            SchemaTextError: When it names one that isn't there.
        """
        waiting: list[Part] = [self.root, *self.names.values()]
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                if part not in self.names:
                    raise SchemaTextError(f"there is no type `{part}`")
                continue
            yield part
            waiting += part.branches
            waiting += [part.items] if part.kind in {"array", "map"} else []
            waiting += [each.part for each in part.fields]


def parsed(text: str, known: Iterable[str] = ()) -> Schema:
    """Read a schema.

    Args:
        text: The schema, as JSON.
        known: Schemas whose types it may name, each after those that it names itself.

    Raises:
        SchemaTextError: When it is none.
    """
    schema = Schema()
    try:
        for each in (*known, text):
            # A name alone is how a registry has a schema that is nothing but a primitive type.
            schema.root = _Reader(schema).read(json.loads(each), "")
        for _ in schema.nodes():
            pass  # all names have to be known
    except RecursionError:
        raise SchemaTextError("it is nested too deeply") from None
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise SchemaTextError(f"it is no Avro schema: {type(error).__name__}: {error}") from None
    return schema


def whole(text: str, known: Iterable[str]) -> str:
    """A schema that names no types of other ones: they are put where they are named first.

    Args:
        text: The schema, as JSON.
        known: The schemas whose types it names, each after those that it names itself.

    Raises:
        SchemaTextError: When one of them is none.
    """
    parsed(text, known)
    definitions: dict[str, Any] = {}
    for each in known:
        _define(json.loads(each), "", definitions)
    return json.dumps(_inlined(json.loads(text), "", definitions))


def _define(part: Any, space: str, definitions: dict[str, Any]) -> None:
    if isinstance(part, dict) and part.get("type") in {"record", "error", "enum", "fixed"}:
        full = _full(str(part["name"]), str(part.get("namespace") or space))
        short, below = full.rpartition(".")[2], full.rpartition(".")[0]
        definitions[full] = {**part, "name": short, "namespace": below}


def _inlined(part: Any, space: str, definitions: dict[str, Any]) -> Any:
    if isinstance(part, str):
        found = None if part in _PRIMITIVES else definitions.pop(_full(part, space), None)
        return part if found is None else _inlined(found, "", definitions)
    if isinstance(part, list):
        return [_inlined(each, space, definitions) for each in part]
    if not isinstance(part, dict):
        return part
    kind = part["type"]
    if kind in {"record", "error"}:
        below = _full(str(part["name"]), str(part.get("namespace") or space)).rpartition(".")[0]
        fields = [{**each, "type": _inlined(each["type"], below, definitions)} for each in part["fields"]]
        return {**part, "fields": fields}
    if kind in {"array", "map"}:
        key = "items" if kind == "array" else "values"
        return {**part, key: _inlined(part[key], space, definitions)}
    if kind in {"enum", "fixed"} or (isinstance(kind, str) and kind in _PRIMITIVES):
        return part
    # An object around a name or another type says nothing that matters here.
    return _inlined(kind, space, definitions)


class _Reader:
    def __init__(self, schema: Schema) -> None:
        self._names = schema.names

    def read(self, part: Any, space: str) -> Part:
        if isinstance(part, str):
            return Node(part) if part in _PRIMITIVES else _full(part, space)
        if isinstance(part, list):
            return Node("union", branches=tuple(self.read(each, space) for each in part))
        kind = part["type"]
        if not isinstance(kind, str):
            return self.read(kind, space)
        if kind in {"record", "error", "enum", "fixed"}:
            return self._named(part, "record" if kind == "error" else kind, space)
        if kind in {"array", "map"}:
            return Node(kind, items=self.read(part["items" if kind == "array" else "values"], space))
        return self.read(kind, space)

    def _named(self, part: Mapping[str, Any], kind: str, space: str) -> Node:
        full = _full(str(part["name"]), str(part.get("namespace") or space))
        below = full.rpartition(".")[0]
        node = Node(kind, full, tuple(_full(each, below) for each in part.get("aliases") or ()))
        self._names[full] = node
        if kind == "fixed":
            node.size = int(part["size"])
        elif kind == "enum":
            node.symbols, node.default = tuple(map(str, part["symbols"])), part.get("default")
        else:
            node.fields = tuple(
                FieldOf(
                    str(each["name"]),
                    self.read(each["type"], below),
                    tuple(each.get("aliases") or ()),
                    "default" in each,
                    each.get("default"),
                )
                for each in part["fields"]
            )
        return node


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"
