"""Edits of a YAML text that leave everything else as it is: comments, quotes, blank lines, order.

Only the rows, or the single values, that change are written anew, in the way in which they were written.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import yaml

from gem_bundle.pipeline.document import parse
from gem_bundle.testing.declared.edit_list import (
    BlockList,
    CannotEditError,
    Edit,
    Entry,
    FlowList,
    child,
    content_end,
    is_inline,
)
from gem_bundle.testing.rows.notation import flow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gem_bundle.pipeline.document import Path

__all__ = ["CannotEditError", "Editor", "Entry"]


class Editor:
    """Collects edits of one YAML text, and makes them.

    Args:
        source: The text.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._root = yaml.compose(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self._values: Any = deepcopy(parse(source, "").values)
        self._edits: list[Edit] = []

    def set_value(self, path: Path, value: Any) -> None:
        """Give the value at a path another one.

        Args:
            path: The keys that lead to it; it must be there.
            value: The new value.

        Raises:
            CannotEditError: When it is written in a way that can't be changed.
        """
        node = self._node(path)
        self._edits.append(self._replaced(node, flow(value), path))
        self._put(path, value)

    def set_list(self, path: Path, entries: Sequence[Entry]) -> None:
        """Give a list other entries.

        Args:
            path: The keys that lead to it; it must be there.
            entries: All entries that it shall have, in order.

        Raises:
            CannotEditError: When it is written in a way that can't be changed.
        """
        node = self._node(path)
        if not isinstance(node, yaml.SequenceNode):
            raise CannotEditError(path)
        parent = self._node(path[:-1])
        if node.flow_style:
            self._edits += FlowList(self._source, node, parent).edits(entries)
        else:
            self._edits += BlockList(self._source, node, parent, path).edits(entries)
        self._put(path, [entry.value for entry in entries])

    def add_key(self, path: Path, key: str, lines: str) -> int:
        """Add a key at the end of a mapping.

        Args:
            path: The keys that lead to the mapping; it must be written over several lines.
            key: The key.
            lines: The key and its value as YAML, each line ended.

        Returns:
            The line of the result in which the key stands, from 1.

        Raises:
            CannotEditError: When it is written in a way that can't be changed.
        """
        node = self._node(path)
        if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
            raise CannotEditError(path)
        last = content_end(node, self._source)
        end = self._source.find("\n", last)
        at = len(self._source) if end < 0 else end + 1
        pad = " " * node.start_mark.column
        written = "".join(f"{pad}{line}\n" if line else "\n" for line in lines.splitlines())
        start = "\n\n" if end < 0 else "\n"
        self._edits.append(Edit(at, at, start + written))
        self._put((*path, key), parse(lines, "").values[key])
        return self._source.count("\n", 0, at) + len(start) + 1

    def result(self) -> str:
        """The text with all edits.

        Raises:
            CannotEditError: When it doesn't say what it should, because of an alias for example.
        """
        found = self._source
        for edit in sorted(self._edits, key=lambda edit: edit.start, reverse=True):
            found = found[: edit.start] + edit.text + found[edit.end :]
        document = parse(found, "")
        if document.diagnostics or _said(document.values) != _said(self._values):
            raise CannotEditError(())
        return found

    def _node(self, path: Path) -> yaml.Node:
        node: yaml.Node | None = self._root
        for step in path:
            node = child(node, step)
        if node is None:
            raise CannotEditError(path)
        return node

    def _replaced(self, node: yaml.Node, value: str, path: Path) -> Edit:
        if not is_inline(node):
            raise CannotEditError(path)
        start, end = node.start_mark.index, node.end_mark.index
        return Edit(start, end, f" {value}" if start == end else value)

    def _put(self, path: Path, value: Any) -> None:
        """Remember what the text shall say."""
        holder = self._values
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = parse(f"value: {flow(value)}", "").values["value"]


def _said(values: Any) -> str:
    """What a document says, in whatever order its keys stand."""
    return json.dumps(values, sort_keys=True)
