"""A YAML document as plain values that remember where they stand.

The pipeline file is data: tags are refused, nothing is ever constructed from it, and aliases can't
blow it up. Scalars are read by the core schema of YAML 1.2, so ``on``, ``off``, ``yes`` and ``no``
are texts and ``12:30`` is not a number; dates stay texts too. Anchors, aliases and merge keys
(``<<``) work.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Protocol

from gem_bundle.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

Path = tuple[str | int, ...]

MAX_BYTES = 1_000_000
MAX_TEXT = 50_000
MAX_DEPTH = 60
MAX_VALUES = 100_000

_INTEGER = re.compile(r"[-+]?[0-9]{1,300}|0x[0-9a-fA-F]{1,250}|0o[0-7]{1,250}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]{1,300}(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = (
    dict.fromkeys(("", "~", "null", "Null", "NULL"))
    | dict.fromkeys(("true", "True", "TRUE"), True)
    | dict.fromkeys(("false", "False", "FALSE"), False)
    | dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf"))
    | dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf"))
    | dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan"))
)
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_NUMERIC_START = frozenset("-+.0123456789")
# What YAML doesn't allow in a text (YAML 1.2, 5.1). A file that is all ASCII, as most are, doesn't
# pay for the second expression, which takes longer to compile than such a file to parse.
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
_UNPRINTABLE = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]"


class Unknown(str):
    """The stand-in for a value that is not known, and about which nothing more is to be said.

    Either it is a secret, which a check doesn't look up, or what is wrong with it is reported
    already. It is a text, so that most types accept it; `problems` ignores what the others say.

    Attributes:
        written: The text as the file has it, where that is known.
    """

    __slots__ = ("written",)

    written: str


class Locator(Protocol):
    """Tells where a value of a pipeline stands."""

    def place(self, path: Sequence[str | int], *, key: bool = False) -> Place:
        """The place of the value at a path, or of its key.

        Where the path ends early, it is the key of the last step that is there.
        """

    def text(self, path: Sequence[str | int]) -> str | None:
        """The scalar at a path as it was written, if there is one."""


def place_within(locator: Locator, path: Sequence[str | int], start: int, word: str) -> Place:
    """The place of a part of a scalar; that of the scalar where the file doesn't have it as it stands.

    Args:
        locator: Tells places of the file.
        path: The way to the scalar.
        start: Where the part begins in the value, from 0.
        word: The part. Where it isn't there but stands in the scalar just once, that is meant.
    """
    place = locator.place(path)
    written = locator.text(path) or ""
    source: str = getattr(locator, "source", "")
    if not word or not source or not place.line:
        return place
    if not written.startswith(word, start):
        if written.count(word) != 1:
            return place
        start = written.index(word)
    ends = [0, *(found.end() for found in _LINE_BREAK.finditer(source))]
    at = ends[place.line - 1] + place.column - 2
    for _ in range(_count(written, word, start) + 1):
        at = source.find(word, at + 1)
        if at < 0:
            return place
    line = bisect_right(ends, at)
    return Place(place.file, line, at - ends[line - 1] + 1)


def _count(text: str, word: str, end: int) -> int:
    """How often a word begins before a position."""
    count, at = 0, text.find(word)
    while 0 <= at < end:
        count, at = count + 1, text.find(word, at + 1)
    return count


class _Node:
    """One node of the tree: a scalar, a sequence (`items`) or a mapping (`pairs`)."""

    __slots__ = (
        "column",
        "depth",
        "items",
        "line",
        "merged",
        "pairs",
        "plain",
        "scalar",
        "size",
        "value",
    )

    def __init__(self, line: int, column: int) -> None:
        self.line = line
        self.column = column
        self.scalar: str | None = None
        self.plain = False
        self.items: list[_Node] | None = None
        self.pairs: list[tuple[_Node, _Node]] | None = None
        self.merged: dict[str, tuple[_Node, _Node]] | None = None
        self.value: Any = None
        self.depth = 0  # how many levels of sequences and mappings it holds, aliases followed
        self.size = 0  # how many values it expands to; 0 until it is converted


class _TooLargeError(Exception):
    """The document goes beyond one of the limits; it is reported already."""


class Document:
    """One parsed file.

    Args:
        file: Its name as the user wrote it.

    Attributes:
        root: The top node, or None when the file is empty or can't be parsed.
        values: The whole document as plain Python values; None where nothing can be made of it.
        diagnostics: What is wrong with it as YAML.
        source: The file's text, for what is no value: comments.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: _Node | None = None
        self.values: Any = None
        self.diagnostics: list[Diagnostic] = []
        self.source = ""

    def place(self, path: Sequence[str | int], *, key: bool = False) -> Place:
        """The place of the value at a path, or of its key; see `Locator.place`."""
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

    def report(self, code: str, message: str, line: int, column: int, hint: str = "") -> None:
        """Note a problem at a line and column."""
        place = Place(self.file, line, column)
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
    if len(text) > MAX_BYTES:
        unit = "bytes" if isinstance(text, bytes) else "characters"
        document.report("GB008", f"the file has more than {MAX_BYTES:,} {unit}", 1, 1, _SMALLER)
        return document
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = error.object[: error.start]
            line = before.count(b"\n") + 1
            column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
            document.report("GB002", "the file isn't UTF-8 text", line, column, "Save it as UTF-8.")
            return document
    document.source = text
    unprintable = re.search(_CONTROL if text.isascii() else _UNPRINTABLE, text)
    if unprintable:
        start = unprintable.start()
        line = text.count("\n", 0, start) + 1
        column = start - text.rfind("\n", 0, start)
        number = f"{ord(unprintable[0]):04X}"
        message = f"the file contains the character U+{number}, which YAML doesn't allow"
        hint = f'Remove it; between double quotes it can be written as `"\\u{number}"`.'
        document.report("GB002", message, line, column, hint)
        return document
    try:
        document.root = _compose(text, document)
        if document.root is not None:
            document.values = _convert(document.root, document, [MAX_VALUES])
    except _TooLargeError:
        document.values = None
    return document


_SMALLER = "A pipeline file is written by hand; put data into files beside it."


def _compose(text: str, document: Document) -> _Node | None:
    """The tree of a text, or None with a diagnostic where it isn't YAML."""
    import yaml

    try:
        try:
            return _Composer(document).compose(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.scanner.ScannerError as error:
            # Newer libyaml reads ahead up to a limit of its own, and says nothing of what stands before that.
            if "nesting depth" not in (error.problem or ""):
                raise
            document.diagnostics.clear()
            return _Composer(document).compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        context = str(getattr(error, "context", None) or "")
        problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
        mark = getattr(error, "problem_mark", None)
        began = getattr(error, "context_mark", None)
        lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text.rstrip(" \n\r"))
        if began and (mark is None or mark.line >= len(lines) or "end of stream" in problem):
            mark = began  # what is never closed is best looked for where it is opened
        if mark is None or mark.line >= len(lines):
            line, column = len(lines), len(lines[-1]) + 1
        else:
            line, column = mark.line + 1, mark.column + 1
        sentence = f"{context}: {problem}" if context else problem
        from gem_bundle.pipeline.yaml_hints import yaml_hint

        start = (began.line, began.column) if began else None
        hint = yaml_hint(lines, (line - 1, column - 1), start, sentence)
        document.report("GB002", f"this isn't valid YAML: {sentence}", line, column, hint)
        return None


class _Composer:
    """Builds the tree from the parser's events, so that depth is bounded and tags can be seen."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._anchors: dict[str, _Node] = {}
        self._open: list[_Node] = []
        self._keys: list[_Node | None] = []
        self._root: _Node | None = None

    def compose(self, text: str, loader: Any) -> _Node | None:
        import yaml

        budget = MAX_VALUES
        event: Any
        for event in yaml.parse(text, Loader=loader):
            kind = event.__class__
            if kind is yaml.ScalarEvent:
                node = self._new(event)
                if len(event.value) > MAX_TEXT:
                    self._report("GB008", f"a text has more than {MAX_TEXT:,} characters", event, _SMALLER)
                    raise _TooLargeError
                node.scalar = event.value
                node.plain = event.implicit[0]
                if event.tag is not None:
                    node.value, node.size = Unknown(event.value), 1
                self._attach(node)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._leave()
            elif kind is yaml.MappingStartEvent:
                node = self._new(event)
                node.pairs = []
                self._enter(node)
            elif kind is yaml.SequenceStartEvent:
                node = self._new(event)
                node.items = []
                self._enter(node)
            elif kind is yaml.AliasEvent:
                self._attach(self._alias(event))
            elif kind is yaml.DocumentStartEvent and self._root is not None:
                self._report(
                    "GB002",
                    "a pipeline file holds one document, and here a second one begins",
                    event,
                    "Remove the `---`, or put the second pipeline into a file of its own.",
                )
                return self._root
            budget -= 1
            if budget < 0:
                message = f"the file has more than {MAX_VALUES:,} values"
                self._report("GB008", message, event, _SMALLER)
                raise _TooLargeError
        return self._root

    def _report(self, code: str, message: str, event: Any, hint: str = "") -> None:
        mark = event.start_mark
        self._document.report(code, message, mark.line + 1, mark.column + 1, hint)

    def _new(self, event: Any) -> _Node:
        mark = event.start_mark
        node = _Node(mark.line + 1, mark.column + 1)
        if event.tag is not None:
            shown = event.tag.replace("tag:yaml.org,2002:", "!!")
            hint = "A pipeline file is data. A text that begins with `!` needs quotes."
            self._report("GB007", f"the YAML tag `{shown}` is not allowed", event, hint)
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any) -> _Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            hint = f"Put `&{event.anchor}` before the value it stands for, further up in the file."
            message = f"there is no anchor `&{event.anchor}` above this alias"
            self._report("GB002", message, event, hint)
            node = _Node(event.start_mark.line + 1, event.start_mark.column + 1)
            node.scalar = ""
            node.value, node.size = Unknown(), 1
        elif any(node is outer for outer in self._open):
            hint = "A value can't be a part of itself."
            message = f"the value of the anchor `&{event.anchor}` contains itself"
            self._report("GB008", message, event, hint)
            raise _TooLargeError
        return node

    def _enter(self, node: _Node) -> None:
        node.depth = 1
        self._attach(node)
        self._open.append(node)
        self._keys.append(None)
        self._limit(len(self._open), node)

    def _leave(self) -> None:
        node = self._open.pop()
        self._keys.pop()
        if self._open:
            self._deepen(self._open[-1], node)

    def _attach(self, node: _Node) -> None:
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        self._deepen(parent, node)
        if parent.items is not None:
            parent.items.append(node)
        elif (key := self._keys[-1]) is not None:
            assert parent.pairs is not None
            parent.pairs.append((key, node))
            self._keys[-1] = None
        else:
            self._keys[-1] = node
            if node.scalar is None:
                message = "a key must be a single word or text"
                hint = "Put quotes around the key, or around a value that holds `{` or `[`."
                self._document.report("GB002", message, node.line, node.column, hint)

    def _deepen(self, parent: _Node, child: _Node) -> None:
        if parent.depth <= child.depth:
            parent.depth = child.depth + 1
            self._limit(parent.depth, parent)

    def _limit(self, depth: int, node: _Node) -> None:
        if depth > MAX_DEPTH:
            message = f"this is nested deeper than {MAX_DEPTH} levels"
            self._document.report("GB008", message, node.line, node.column, "Use fewer levels.")
            raise _TooLargeError


def _spend(document: Document, node: _Node, budget: list[int], values: int) -> None:
    budget[0] -= values
    if budget[0] < 0:
        message = f"the file expands to more than {MAX_VALUES:,} values"
        document.report("GB008", message, node.line, node.column, "Use fewer aliases.")
        raise _TooLargeError


def _convert(node: _Node, document: Document, budget: list[int]) -> Any:
    """Plain values of a node; aliases are converted once, and counted each time they are used.

    The recursion is as deep as the tree, which `_Composer` bounds.
    """
    if node.size:
        _spend(document, node, budget, node.size)
        return node.value
    before = budget[0]
    _spend(document, node, budget, 1)
    if node.scalar is not None:
        node.value = _scalar(node.scalar) if node.plain else node.scalar
        node.size = 1
        return node.value
    if node.items is not None:
        node.value = [_convert(item, document, budget) for item in node.items]
    else:
        pairs = _merge(node, document, budget)
        node.value = {key: _convert(pair[1], document, budget) for key, pair in pairs.items()}
    node.size = before - budget[0]
    return node.value


def _merge(node: _Node, document: Document, budget: list[int]) -> dict[str, tuple[_Node, _Node]]:
    """The pairs of a mapping by key: its own, then what merge keys add; the first one wins."""
    if node.merged is not None:
        return node.merged
    own: dict[str, tuple[_Node, _Node]] = {}
    inherited: list[_Node] = []
    for pair in node.pairs or ():
        key, value = pair
        name = key.scalar
        if name is None:
            continue  # `_Composer` has reported it
        if name == "<<" and key.plain:
            inherited += value.items if value.items is not None else [value]
        elif name in own:
            document.report(
                "GB003",
                f"the key `{name}` stands twice here, first in line {own[name][0].line}",
                key.line,
                key.column,
                "Remove one of the two, or rename it.",
            )
        else:
            own[name] = pair
    for parent in inherited:
        if isinstance(parent.value, Unknown):
            continue
        if parent.pairs is None:
            message = "`<<` takes a mapping, or a list of mappings"
            hint = "Write `<<: *name` with an anchor `&name` at a mapping."
            document.report("GB005", message, parent.line, parent.column, hint)
            continue
        found = _merge(parent, document, budget)
        _spend(document, node, budget, len(found))
        for name, pair in found.items():
            own.setdefault(name, pair)
    node.merged = own
    return own


def _scalar(text: str) -> Any:
    """A plain scalar by the core schema of YAML 1.2 (10.3.2)."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMERIC_START:
        if _INTEGER.fullmatch(text):
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text
