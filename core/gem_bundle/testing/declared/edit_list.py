"""Lists in YAML texts, edited so that comments and the way in which they are written stay."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from gem_bundle.testing.rows.notation import flow, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gem_bundle.pipeline.document import Path

_WIDTH = 110
_COMMENT = re.compile(r"\s*#")


class CannotEditError(Exception):
    """A value is written in a way that can't be changed without touching others: an alias, say.

    Args:
        path: The keys that lead to it.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path


class Entry(NamedTuple):
    """An entry that a list shall have.

    Args:
        value: What it shall be.
        was: The position of the entry that it was; None for a new one.
        keys: What of that entry changes: keys of a mapping, or positions of a list.
    """

    value: Any
    was: int | None = None
    keys: tuple[str | int, ...] = ()


class Edit(NamedTuple):
    """What takes the place of a part of a text.

    Args:
        start: Where the part begins.
        end: Where it ends.
        text: What takes its place.
    """

    start: int
    end: int
    text: str


def child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    """The value under a key or at a position; None when there is none."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: yaml.Node = node.value[step]
        return found
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == str(step)), None)
    return None


def is_inline(node: yaml.Node) -> bool:
    """Whether a node ends where its text ends, and not where the next thing begins."""
    if isinstance(node, yaml.CollectionNode):
        return bool(node.flow_style)
    return getattr(node, "style", None) not in {"|", ">"}


def content_end(node: yaml.Node, source: str) -> int:
    """Where the text of a node ends, without comments and line breaks after it."""
    if isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}:
        return len(source[: node.end_mark.index].rstrip())
    if is_inline(node) or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return content_end(last[1] if isinstance(last, tuple) else last, source)


def _with_changes(source: str, node: yaml.Node, start: int, end: int, entry: Entry) -> str | None:
    """The text from one place to another with the changes of an entry; None where it must be written anew."""
    edits = []
    for key in entry.keys:
        value = child(node, key)
        if value is None or not is_inline(value) or not _has(entry.value, key):
            return None
        at, until = value.start_mark.index, value.end_mark.index
        if not start <= at <= until <= end:  # it stands elsewhere, under an anchor
            return None
        written = flow(entry.value[key])
        edits.append((at, until, f" {written}" if at == until else written))
    found = source[start:end]
    for at, until, written in sorted(edits, reverse=True):
        found = found[: at - start] + written + found[until - start :]
    return found


def _has(value: Any, key: str | int) -> bool:
    return key in value if isinstance(value, dict) else isinstance(key, int) and key < len(value)


class BlockList:
    """A list with an entry on each line, or on several, after a dash."""

    def __init__(self, source: str, node: yaml.SequenceNode, parent: yaml.Node, path: Path) -> None:
        self._source = source
        self._node = node
        self._parent = parent
        self._path = path
        self._indent = int(self._dash(node.value[0]) - self._line_start(self._dash(node.value[0])))

    def edits(self, entries: Sequence[Entry]) -> Iterator[Edit]:
        """The edits that give it these entries.

        Raises:
            CannotEditError: When it is written in a way that can't be changed.
        """
        starts = [self._line_start(self._dash(item)) for item in self._node.value]
        ends = [self._line_end(content_end(item, self._source)) for item in self._node.value]
        if any(
            self._source[start : self._dash(item)].strip()
            for start, item in zip(starts, self._node.value, strict=True)
        ):
            raise CannotEditError(self._path)
        # What stands between two entries stays before the second one.
        gaps = ["", *(self._source[ends[i - 1] : starts[i]] for i in range(1, len(starts)))]
        kept = {entry.was for entry in entries}
        lines = []
        before = ""
        position = 0
        for entry in entries:
            if entry.was is None:
                lines.append(self._new(entry.value))
                continue
            # Comments before an entry that goes stay, for they may be about what follows.
            while position < entry.was:
                if position not in kept:
                    before += gaps[position] if _has_comment(gaps[position]) else ""
                position += 1
            position = max(position, entry.was + 1)
            lines.append(before + gaps[entry.was] + self._chunk(entry, starts, ends))
            before = ""
        rest = "".join(gap for gap in gaps[position:] if _has_comment(gap))
        written = "".join(lines) + before + rest
        if not entries:
            yield from self._emptied()
        if not self._source.endswith("\n") and ends[-1] == len(self._source):
            written = written.removesuffix("\n")
        yield Edit(starts[0], ends[-1], written)

    def _emptied(self) -> Iterator[Edit]:
        """A list without entries is written behind its key."""
        key = (
            next((k for k, value in self._parent.value if value is self._node), None)
            if isinstance(self._parent, yaml.MappingNode)
            else None
        )
        colon = self._source.find(":", key.end_mark.index) if key is not None else -1
        if colon < 0:
            raise CannotEditError(self._path)
        yield Edit(colon + 1, colon + 1, " []")

    def _chunk(self, entry: Entry, starts: list[int], ends: list[int]) -> str:
        """The lines of an entry that was there."""
        assert entry.was is not None
        start, end, node = starts[entry.was], ends[entry.was], self._node.value[entry.was]
        found = _with_changes(self._source, node, start, end, entry)
        if found is None:
            after = self._source[content_end(node, self._source) : end].rstrip("\n")
            inside = self._source[node.start_mark.index : content_end(node, self._source)]
            comments = [line for line in inside.split("\n")[1:] if _COMMENT.match(line)]
            above = "".join(f"{' ' * self._indent}{line.strip()}\n" for line in comments)
            found = above + self._new(entry.value, node, after)
        return found if found.endswith("\n") else f"{found}\n"

    def _new(self, value: Any, like: yaml.Node | None = None, after: str = "") -> str:
        """The lines of a new entry, written like another one."""
        like = self._node.value[0] if like is None else like
        pad = " " * self._indent
        if isinstance(value, dict) and value and isinstance(like, yaml.MappingNode) and not like.flow_style:
            lines = [f"{text(str(key))}: {flow(inner)}" for key, inner in value.items()]
            return f"{pad}- " + f"\n{pad}  ".join(lines) + f"{after}\n"
        return f"{pad}- {flow(value)}{after}\n"

    def _dash(self, item: yaml.Node) -> int:
        before = self._source[: item.start_mark.index].rstrip()
        if not before.endswith("-"):
            raise CannotEditError(self._path)
        return len(before) - 1

    def _line_start(self, index: int) -> int:
        return self._source.rfind("\n", 0, index) + 1

    def _line_end(self, index: int) -> int:
        found = self._source.find("\n", index)
        return len(self._source) if found < 0 else found + 1


def _has_comment(gap: str) -> bool:
    return any(_COMMENT.match(line) for line in gap.split("\n"))


class FlowList:
    """A list between brackets, in one line or in several."""

    def __init__(self, source: str, node: yaml.SequenceNode, parent: yaml.Node) -> None:
        self._source = source
        self._node = node
        self._parent = parent
        self._start = int(node.start_mark.index)
        self._end = int(node.end_mark.index)
        line_start = source.rfind("\n", 0, self._start) + 1
        line = source[line_start : self._start]
        self._line_indent = len(line) - len(line.lstrip(" -"))
        self._column = self._start - line_start

    def edits(self, entries: Sequence[Entry]) -> Iterator[Edit]:
        """The edits that give it these entries."""
        bodies = [self._body(entry) for entry in entries]
        if [entry.was for entry in entries] == list(range(len(self._node.value))):
            # The same entries in the same order: all between them stays.
            for node, body in zip(self._node.value, bodies, strict=True):
                yield Edit(node.start_mark.index, node.end_mark.index, body)
            return
        written = f"[{', '.join(bodies)}]"
        is_one_line = "\n" not in self._source[self._start : self._end]
        if is_one_line and (not bodies or self._column + len(written) <= _WIDTH):
            yield Edit(self._start, self._end, written)
        elif is_one_line and isinstance(self._parent, yaml.MappingNode) and not self._parent.flow_style:
            yield from self._as_block(bodies)
        elif is_one_line:
            pad = " " * (self._line_indent + 4)
            lines = "".join(f"\n{pad}{body}," for body in bodies)
            yield Edit(self._start, self._end, f"[{lines}\n{' ' * (self._line_indent + 2)}]")
        else:
            yield Edit(self._start, self._end, self._lines(entries, bodies))

    def _as_block(self, bodies: Sequence[str]) -> Iterator[Edit]:
        """A list that has become too long for one line."""
        line_end = self._source.find("\n", self._end)
        line_end = len(self._source) if line_end < 0 else line_end
        before = len(self._source[: self._start].rstrip(" "))
        pad = " " * (self._line_indent + 2)
        yield Edit(before, self._end, "")
        yield Edit(line_end, line_end, "".join(f"\n{pad}- {body}" for body in bodies))

    def _body(self, entry: Entry) -> str:
        if entry.was is None:
            return flow(entry.value)
        node = self._node.value[entry.was]
        start, end = node.start_mark.index, node.end_mark.index
        found = _with_changes(self._source, node, start, end, entry)
        return flow(entry.value) if found is None else found

    def _lines(self, entries: Sequence[Entry], bodies: Sequence[str]) -> str:
        """The list over several lines, with its comments where they were."""
        before, after, closing = self._comments()
        first = self._node.value[0] if self._node.value else None
        pad = " " * (first.start_mark.column if first is not None else self._line_indent + 4)
        lines = ["["]
        kept = {entry.was for entry in entries}
        ends_with_comma = first is not None and bool(
            re.match(r"\s*,", self._source[self._node.value[-1].end_mark.index : self._end])
        )
        position = 0
        for number, (entry, body) in enumerate(zip(entries, bodies, strict=True), 1):
            index = entry.was
            if index is not None:
                while position < index:
                    if position not in kept:
                        lines += (pad + comment for comment in before[position])
                    position += 1
                position = max(position, index + 1)
                lines += (pad + comment for comment in before[index])
            comma = "," if number < len(entries) or ends_with_comma else ""
            comment = after[index] if index is not None else ""
            lines.append(f"{pad}{body}{comma}{comment and '  ' + comment}")
        for comments in (*before[position:], closing):
            lines += (pad + comment for comment in comments)
        last = self._source[self._source.rfind("\n", 0, self._end) + 1 : self._end - 1]
        own_line = not last.strip()
        ending = f"\n{last if own_line else ' ' * self._line_indent}]"
        return "\n".join(lines) + (ending if own_line or "#" in lines[-1] else "]")

    def _comments(self) -> tuple[list[list[str]], list[str], list[str]]:
        """The comments above each entry, the one behind each entry, and those after the last one."""
        before: list[list[str]] = []
        after: list[str] = []
        at = self._start + 1
        for node in [*self._node.value, None]:
            gap = self._source[at : self._end - 1 if node is None else node.start_mark.index]
            first, _, rest = gap.lstrip(", ").partition("\n")
            above = [line.strip() for line in rest.split("\n") if _COMMENT.match(line)]
            same = first.strip() if first.strip().startswith("#") else ""
            if at == self._start + 1:
                above = [same, *above] if same else above
            else:
                after.append(same)
            before.append(above)
            at = at if node is None else node.end_mark.index
        return before[:-1], after, before[-1]
