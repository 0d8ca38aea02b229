"""A YAML document as plain values that remember where they stand.

The pipeline file is data: tags are refused, nothing is ever constructed from it, and aliases can't
blow it up. Scalars are read by the core schema of YAML 1.2, so ``on``, ``off``, ``yes`` and ``no`` are texts and
``12:30`` is not a number; dates stay texts too. Anchors, aliases and merge keys (``<<``) work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gem_bundle.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

Path = tuple[str | int, ...]

MAX_BYTES = 4_000_000
MAX_DEPTH = 60
MAX_VALUES = 200_000

_STANDARD_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")
)
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}$|0x[0-9a-fA-F]{1,250}$|0o[0-7]{1,250}$")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$")
_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class Locator(Protocol):
    """Tells where a value of a pipeline stands."""

    def place(self, path: Sequence[str | int], *, key: bool = False) -> Place:
        """The place of the value at a path, or of its key; the nearest one above where it's missing."""

    def text(self, path: Sequence[str | int]) -> str | None:
        """The scalar at a path as it was written, if there is one."""


@dataclass(slots=True)
class _Node:
    line: int
    column: int
    scalar: str | None = None
    plain: bool = False
    items: list[_Node] | None = None
    pairs: list[tuple[_Node, _Node]] | None = None
    value: Any = None
    converted: bool = False
    size: int = 1
    merged: dict[str, tuple[_Node, _Node]] | None = None


@dataclass
class Document:
    """One parsed file.

    Args:
        file: Its name as the user wrote it.
        root: The top node, or None when the file is empty or can't be parsed.
        values: The whole document as plain Python values.
        diagnostics: What is wrong with it as YAML.
    """

    file: str
    root: _Node | None = None
    values: Any = None
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def place(self, path: Sequence[str | int], *, key: bool = False) -> Place:
        """The place of the value at a path, or of its key; the nearest one above where it's missing."""
        node = self.root
        if node is None:
            return Place(self.file)
        found = node
        for step in path:
            child = _child(found, step)
            if child is None:
                break
            node, found = child
        else:
            if not key:
                node = found
        return Place(self.file, node.line, node.column)

    def text(self, path: Sequence[str | int]) -> str | None:
        """The scalar at a path as it was written, if there is one."""
        found = self.root
        for step in path:
            child = _child(found, step) if found else None
            if child is None:
                return None
            found = child[1]
        return found.scalar if found else None

    def report(self, code: str, message: str, node: _Node, hint: str = "") -> None:
        """Note a problem at a node."""
        place = Place(self.file, node.line, node.column)
        self.diagnostics.append(Diagnostic(code, "error", message, place=place, hint=hint))


def _child(node: _Node, step: str | int) -> tuple[_Node, _Node] | None:
    if node.merged is not None and isinstance(step, str):
        return node.merged.get(step)
    if node.items is not None and isinstance(step, int) and 0 <= step < len(node.items):
        return node.items[step], node.items[step]
    return None


def parse(text: str | bytes, file: str) -> Document:
    """Read a YAML text; whatever is wrong with it is in the document's diagnostics.

    Args:
        text: The file's contents.
        file: The name to put into diagnostics.
    """
    document = Document(file)
    start = _Node(1, 1)
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            document.report("GB002", "the file isn't UTF-8 text", _Node(line, 1), "Save it as UTF-8.")
            return document
    if len(text) > MAX_BYTES:
        document.report("GB008", f"the file has more than {MAX_BYTES:,} characters", start)
        return document
    import yaml

    try:
        document.root = _compose(text, document)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        node = _Node(mark.line + 1, mark.column + 1) if mark else start
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        context = getattr(error, "context", None)
        sentence = f"{context}: {problem}" if context else str(problem)
        document.report("GB002", f"this isn't valid YAML: {sentence}", node, _yaml_hint(text, node))
        return document
    if document.root is not None and not document.diagnostics:
        budget = [MAX_VALUES]
        document.values = _convert(document.root, document, budget, ())
    return document


def _yaml_hint(text: str, node: _Node) -> str:
    lines = text.splitlines()
    line = lines[node.line - 1] if 0 < node.line <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "Indent with spaces; YAML doesn't take tabs."
    if line.count(": ") > 1:
        return "Put values that contain `: ` in quotes."
    return "Look at the indentation, quotes and brackets of this line and the one before it."


def _compose(text: str, document: Document) -> _Node | None:
    """Build the tree from the parser's events: depth is bounded, explicit tags can be seen."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    anchors: dict[str, _Node] = {}
    stack: list[_Node] = []
    keys: list[_Node | None] = []
    root: _Node | None = None
    for event in yaml.parse(text, Loader=loader):
        mark = event.start_mark
        if isinstance(event, yaml.DocumentStartEvent):
            if root is not None:
                node = _Node(mark.line + 1, mark.column + 1)
                document.report("GB002", "a pipeline file holds one document", node, "Remove `---`.")
                return root
            continue
        if isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            stack.pop()
            keys.pop()
            continue
        if isinstance(event, yaml.AliasEvent):
            node = anchors.get(event.anchor) or _Node(mark.line + 1, mark.column + 1, scalar="")
            if event.anchor not in anchors:
                document.report("GB002", f"there is no anchor `{event.anchor}` above", node)
            elif node in stack:
                here = _Node(mark.line + 1, mark.column + 1)
                document.report("GB008", f"the anchor `{event.anchor}` contains itself", here)
                return None
        elif isinstance(event, yaml.NodeEvent):
            node = _Node(mark.line + 1, mark.column + 1)
            if isinstance(event, yaml.ScalarEvent):
                node.scalar = event.value
                node.plain = bool(event.implicit[0]) and event.tag is None
            elif isinstance(event, yaml.SequenceStartEvent):
                node.items = []
            else:
                node.pairs = []
            if event.tag is not None and event.tag not in _STANDARD_TAGS and event.tag != "!":
                document.report(
                    "GB007", f"the tag `{event.tag}` is not allowed", node, "A pipeline file is data."
                )
            if event.anchor:
                anchors[event.anchor] = node
        else:
            continue
        if stack:
            parent = stack[-1]
            if parent.items is not None:
                parent.items.append(node)
            elif keys[-1] is None:
                keys[-1] = node
            else:
                assert parent.pairs is not None
                parent.pairs.append((keys[-1], node))
                keys[-1] = None
        else:
            root = node
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append(node)
            keys.append(None)
            if len(stack) > MAX_DEPTH:
                document.report("GB008", f"this is nested deeper than {MAX_DEPTH} levels", node)
                return None
    return root


def _convert(node: _Node, document: Document, budget: list[int], seen: tuple[int, ...]) -> Any:
    """Plain values of a node; aliases are converted once, and counted each time they are used."""
    if node.converted:
        budget[0] -= node.size
        if budget[0] < 0:
            _report_once(document, node)
        return node.value
    before = budget[0]
    budget[0] -= 1
    if budget[0] < 0:
        _report_once(document, node)
        return None
    if node.scalar is not None:
        node.value = _scalar(node.scalar) if node.plain else node.scalar
    elif node.items is not None:
        node.value = [_convert(item, document, budget, seen) for item in node.items]
    else:
        node.merged = _merge(node, document)
        node.value = {
            key: _convert(value, document, budget, seen) for key, (_, value) in node.merged.items()
        }
    node.converted = True
    node.size = before - budget[0]
    return node.value


def _report_once(document: Document, node: _Node) -> None:
    if not any(d.code == "GB008" for d in document.diagnostics):
        document.report(
            "GB008", f"the file expands to more than {MAX_VALUES:,} values", node, "Use fewer aliases."
        )


def _merge(node: _Node, document: Document) -> dict[str, tuple[_Node, _Node]]:
    """The pairs of a mapping by key, merge keys filled in behind the mapping's own."""
    if node.merged is not None:
        return node.merged
    own: dict[str, tuple[_Node, _Node]] = {}
    inherited: list[_Node] = []
    for key, value in node.pairs or ():
        if key.scalar is None:
            document.report("GB002", "a key must be a single word or text", key)
            continue
        if key.scalar == "<<" and key.plain:
            inherited.extend(value.items if value.items is not None else [value])
            continue
        if key.scalar in own:
            first = own[key.scalar][0]
            document.report(
                "GB003",
                f"the key `{key.scalar}` stands twice here, first in line {first.line}",
                key,
                "Remove one of the two, or rename it.",
            )
            continue
        own[key.scalar] = (key, value)
    merged = dict(own)
    for parent in inherited:
        if parent.pairs is None:
            document.report("GB005", "`<<` takes a mapping, or a list of mappings", parent)
            continue
        for name, pair in _merge(parent, document).items():
            merged.setdefault(name, pair)
    return merged


def _scalar(text: str) -> Any:
    if text in _NULLS:
        return None
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "-+.0123456789":
        if _INTEGER.match(text):
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        if _FLOAT.match(text):
            return float(text.replace(".inf", "inf").replace(".Inf", "inf").replace(".INF", "inf")
                         .replace(".nan", "nan").replace(".NaN", "nan").replace(".NAN", "nan"))
    return text
