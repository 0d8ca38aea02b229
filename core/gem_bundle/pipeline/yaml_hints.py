"""What to do about a text that isn't YAML: the parser says what it expected, and not what was meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s)#[^\n]*")
_COMMA = "In `{…}` and `[…]` a comma ends a value: put the whole value in quotes."
_COLON = "Put values that contain `: ` in quotes."
_HASH = "A `#` after a space begins a comment, which hides what follows: put the whole value in quotes."
_QUOTE = (
    "A value that begins with a quote ends at the next one: put the whole value in quotes of the other kind."
)


def yaml_hint(lines: Sequence[str], at: tuple[int, int], began: tuple[int, int] | None, problem: str) -> str:
    """What to do about a text that can't be parsed.

    Args:
        lines: The text.
        at: Where the parser gave up: line and column from 0.
        began: Where what it was in begins, if it was in something.
        problem: What the parser says.
    """
    row, column = at
    line = lines[row]
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "Indent with spaces; YAML doesn't take tabs."
    if "scanning an alias" in problem or "scanning an anchor" in problem:
        return "A text that begins with `*` or `&` needs quotes."
    if "cannot start any token" in problem and line[column:].strip():
        return f"A text that begins with `{line[column]}` needs quotes."
    hint = None
    if "flow mapping" in problem or "flow sequence" in problem:
        hint = _in_brackets(lines, at, began) if began else None
    elif "block mapping" in problem:
        hint = _after_a_value(line, column)
    if hint is None and line.count(": ") > 1 and "{" not in line:
        hint = _COLON
    return hint or "Look at the indentation, quotes and brackets of this line and the one before it."


def _in_brackets(lines: Sequence[str], at: tuple[int, int], began: tuple[int, int]) -> str | None:
    """What ended a value between brackets too early."""
    row, column = at
    opening = lines[began[0]][began[1] : began[1] + 1]
    if at <= began:  # it is never closed: what is in it goes on to the end
        body, stop = "\n".join([lines[began[0]][began[1] + 1 :], *lines[began[0] + 1 :]]), ""
    else:
        inside = list(lines[began[0] : row + 1])
        inside[-1] = inside[-1][:column]
        inside[0] = inside[0][began[1] + 1 :]
        body, stop = "\n".join(inside), lines[row][column : column + 1]
    blank = _QUOTED.sub(lambda match: "'" + "_" * (len(match[0]) - 2) + "'", body)
    if _COMMENT.search(blank):
        return _HASH
    if blank.count("(") > blank.count(")") and "," in blank:
        return _COMMA
    entry = re.split(r"[,{\[]", blank)[-1]
    wrong = stop if stop in {"{", "["} else blank.rstrip()[-1:]
    if wrong in {"{", "[", "}", "]"}:
        return f"In `{{…}}` and `[…]` a value can't have a `{wrong}` in it: put the whole value in quotes."
    if stop == ":":
        return _COLON
    if stop in {"}", "]"} or at <= began:
        return f"The `{opening}` of line {began[0] + 1} isn't closed; or put its value in quotes."
    return _QUOTE if entry.rpartition(": ")[2].lstrip().startswith("'") else None


def _after_a_value(line: str, column: int) -> str | None:
    """What ended a value of a block mapping too early."""
    value = line[:column].partition(": ")[2].lstrip()
    if value[:1] in {"'", '"'}:
        return _QUOTE
    if value[:1] in {"{", "["}:
        return f"A value that begins with `{value[0]}` ends with its bracket: a text that does needs quotes."
    return None
