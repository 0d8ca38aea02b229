"""An expression as the words, signs and values that it is written in, with their places."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""
    (?P<space>(?:\s|--[^\n]*|/\*.*?\*/)+)
  | (?P<text>[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
  | (?P<quoted>`(?:[^`]|``)+`)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|bd|[lLsSyYdDfF])?(?!\w))
  | (?P<word>[^\W\d]\w*)
  | (?P<sign><=>|>>>|<>|!=|<=|>=|==|<<|>>|->|=>|\|\||::|[-+*/%<>=~&|^!.,()\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)


class UnreadableError(Exception):
    """An expression isn't read: something in it isn't known."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a sign or a value.

    Args:
        kind: ``text``, ``quoted``, ``number``, ``word`` or ``sign``.
        text: As it is written.
        start: Where it begins.
        end: Where it ends.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """By which it is told: a keyword, a function or a sign; nothing for a value."""
        return self.text.lower() if self.kind in {"word", "sign"} else ""


def tokens(source: str) -> Iterator[Token]:
    """What an expression is written in, without spaces and comments.

    Args:
        source: The expression.

    Raises:
        UnreadableError: When something in it is none of these.
    """
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise UnreadableError
        at = match.end()
        if match.lastgroup != "space":
            yield Token(match.lastgroup or "", match.group(), match.start(), at)
