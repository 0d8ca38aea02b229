"""What is silenced: warnings and notes that a project's settings or a comment on a node take back.

A comment looks so, and may give its reason behind the codes::

    transforms:
      once:                      # gem-bundle: ignore GB328 there are few keys
        gem: deduplicate

It stands behind the node's key, behind the key that the diagnostic is about, or on a line of its own
directly above one of the two. Errors stay: a pipeline that can't run doesn't run.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle.diagnostics import Diagnostic, Place, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.pipeline.document import Locator
    from gem_bundle.pipeline.model import Definition

CODE = "GB019"
_MARK = "gem-bundle:"
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#[ \t]*gem-bundle:[ \t]*(\S*)[ \t]*")
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_CODES = re.compile(r"[A-Z]+[0-9]+(?:[ \t]*,[ \t]*[A-Z]+[0-9]+)*(?!\w)")
# Only a check by itself can say that a comment is of no use; what else finds is found elsewhere.
_OF_A_CHECK = re.compile(r"GB[0-3]")
_LONG = 20
_MOST_NOTES = 100


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment that silences.

    Args:
        line: The line it stands on.
        column: Where it begins.
        codes: What it silences.
    """

    line: int
    column: int
    codes: tuple[str, ...]


@dataclass
class Silence:
    """What is not to be reported of one pipeline.

    Args:
        disabled: Codes that the project's settings silence everywhere.
        comments: The comments of the file, by the line that they are about.
        locator: Where things stand.
        definition: The pipeline, if it could be read.
        wrong: What is wrong with the comments themselves.
    """

    disabled: frozenset[str] = frozenset()
    comments: dict[int, list[Comment]] = field(default_factory=dict)
    locator: Locator | None = None
    definition: Definition | None = None
    wrong: list[Diagnostic] = field(default_factory=list)
    _used: set[tuple[int, str]] = field(default_factory=set)
    _errors: set[tuple[int, str]] = field(default_factory=set)

    def kept(self, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Those that are reported."""
        return [found for found in diagnostics if not self._silences(found)]

    def useless(self, *, complete: bool) -> list[Diagnostic]:
        """A note for each comment that silences nothing, up to a hundred; asked when all has been `kept`.

        Args:
            complete: Every rule could look at the pipeline: there are no errors that kept one from it.
        """
        return list(islice(self._useless(complete=complete), _MOST_NOTES))

    def _useless(self, *, complete: bool) -> Iterator[Diagnostic]:
        from gem_bundle.codes import CODES

        yield from self.wrong
        for comment in (comment for comments in self.comments.values() for comment in comments):
            for code in comment.codes:
                if (comment.line, code) in self._used:
                    continue
                if code.startswith("GB") and code not in CODES:
                    close = nearest(code, CODES)
                    hint = f"Did you mean {close}?" if close else "`gem-bundle explain` lists them."
                    yield self._note(comment, f"there is no code {code}", hint)
                elif (comment.line, code) in self._errors:
                    hint = "Correct what it is about, then remove the comment."
                    yield self._note(comment, f"{code} is an error here, and errors can't be silenced", hint)
                elif complete and (_OF_A_CHECK.match(code) or not code.startswith("GB")):
                    hint = "Remove it; or put it on the line of the node or of the key, or right above."
                    yield self._note(comment, f"there is no {code} here to be silenced", hint)

    def _silences(self, found: Diagnostic) -> bool:
        silenced = found.code in self.disabled
        for line in self._lines(found) if self.comments else ():
            for comment in self.comments.get(line, ()):
                if found.code in comment.codes:
                    (self._errors if found.is_error else self._used).add((comment.line, found.code))
                    silenced = True
        return silenced and not found.is_error

    def _lines(self, found: Diagnostic) -> set[int]:
        """The lines on which a comment can be about it: of its place, its key and its node."""
        assert self.locator is not None
        lines = {found.line}
        if found.path and found.place.file == self.locator.place(()).file:
            lines.add(self.locator.place(found.path, key=True).line)
            node = self.definition.nodes.get(found.node) if self.definition and found.node else None
            if node is not None:
                lines.add(self.locator.place(node.path, key=True).line)
        return lines - {0}

    def _note(self, comment: Comment, message: str, hint: str) -> Diagnostic:
        assert self.locator is not None
        place = Place(self.locator.place(()).file, comment.line, comment.column)
        return Diagnostic(CODE, "note", message, place=place, hint=hint)


def read_silence(
    text: str, locator: Locator, definition: Definition | None, disabled: frozenset[str]
) -> Silence:
    """What the comments of a pipeline file and the settings of its project silence.

    Args:
        text: The file, which is valid YAML; empty where there is none.
        locator: Where its values stand.
        definition: What could be read of it.
        disabled: The codes that the settings silence.
    """
    silence = Silence(disabled, locator=locator, definition=definition)
    if _MARK not in text:
        return silence
    file = locator.place(()).file
    lines = _BREAK.split(text)
    below = _next_lines(lines)
    scalars = list(_scalars(text))
    for line, column, word, rest in _comments(lines, scalars):
        codes = _CODES.match(rest)
        if word == "ignore" and codes is not None:
            alone = not lines[line - 1][: column - 1].strip()
            found = tuple(dict.fromkeys(re.findall(r"\w+", codes[0])))
            comment = Comment(line, column, found)
            silence.comments.setdefault(below[line] if alone else line, []).append(comment)
        elif len(word) < _LONG and nearest(word, ["ignore"]):
            message = "this comment silences nothing: it doesn't say what"
            hint = "Write `# gem-bundle: ignore GB328`, with commas between several codes."
            silence.wrong.append(
                Diagnostic(CODE, "note", message, place=Place(file, line, column), hint=hint)
            )
    return silence


class _Scalar(NamedTuple):
    """Where a text or another single value begins and ends, and whether it is a block (``|``, ``>``)."""

    start: tuple[int, int]
    end: tuple[int, int]
    block: bool

    def holds(self, place: tuple[int, int]) -> bool:
        """Whether a place behind its start belongs to it, and not to a comment behind a ``|``."""
        return place < self.end and not (self.block and place[0] == self.start[0])


def _comments(lines: list[str], scalars: list[_Scalar]) -> Iterator[tuple[int, int, str, str]]:
    """The comments that are for gem-bundle: line, column, first word, and the rest."""
    starts = [scalar.start for scalar in scalars]
    for number, content in enumerate(lines):
        for match in _COMMENT.finditer(content) if _MARK in content else ():
            place = (number, match.start())
            before = bisect_right(starts, place)
            if not before or not scalars[before - 1].holds(place):
                yield number + 1, match.start() + 1, match.group(1), content[match.end() :]
                break


def _next_lines(lines: list[str]) -> list[int]:
    """For each line, counted from 1, the first one below it that isn't a comment."""
    below = [len(lines)] * (len(lines) + 1)
    for line in range(len(lines) - 1, 0, -1):
        is_comment = lines[line].lstrip()[:1] == "#"
        below[line] = below[line + 1] if is_comment else line + 1
    return below


def _scalars(text: str) -> Iterator[_Scalar]:
    """The single values of a YAML file, in which `#` begins no comment."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    event: Any
    try:
        for event in yaml.parse(text, Loader=loader):
            if event.__class__ is yaml.ScalarEvent:
                start: Any = event.start_mark
                end: Any = event.end_mark
                block = event.style in {"|", ">"}
                yield _Scalar((start.line, start.column), (end.line, end.column), block)
    except yaml.YAMLError:
        return  # in a second document, which is no part of the pipeline
