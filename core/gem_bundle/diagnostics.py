"""What the checker and the runtime say: problems as values, each with a code and a place.

The catalogue of codes is in `gem_bundle.codes`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Severity = Literal["error", "warning", "note"]


class Place(NamedTuple):
    """Where something stands: a file, and a line and column that count from 1 (0 is unknown)."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


NOWHERE = Place()
_LONGEST_TEXT = 4_000  # nobody reads on, and there may be thousands that quote a long value


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem, for the person who can fix it.

    Args:
        code: The stable code, for example ``GB201``; `gem-bundle explain CODE` tells the rule.
        severity: ``error`` stops the pipeline, ``warning`` and ``note`` don't.
        message: What is wrong and why, with the user's own names.
        node: The id of the node it belongs to, where it belongs to one.
        path: The keys that lead to the place in the pipeline file.
        place: File, line and column of the key that must change.
        hint: What to do about it.
    """

    code: str
    severity: Severity
    message: str
    node: str | None = None
    path: tuple[str | int, ...] = ()
    place: Place = NOWHERE
    hint: str = ""

    def __post_init__(self) -> None:
        # What a file says is quoted here, and a stranger's file may say things to the terminal.
        for name in ("message", "hint"):
            text = getattr(self, name)
            if len(text) > _LONGEST_TEXT:
                text = f"{text[:_LONGEST_TEXT]}…"
                object.__setattr__(self, name, text)
            if not text.isprintable():
                object.__setattr__(self, name, _visible(text))

    @property
    def file(self) -> str:
        """The file it stands in, or an empty string."""
        return self.place.file

    @property
    def line(self) -> int:
        """The line, from 1; 0 when there is none."""
        return self.place.line

    @property
    def column(self) -> int:
        """The column, from 1; 0 when there is none."""
        return self.place.column

    @property
    def is_error(self) -> bool:
        """Whether it stops the pipeline."""
        return self.severity == "error"

    def moved(self, place: Place) -> Diagnostic:
        """The same problem at another place."""
        return replace(self, place=place)

    def rewritten(self, change: Callable[[str], str]) -> Diagnostic:
        """The same problem with its message and hint passed through a function."""
        return replace(self, message=change(self.message), hint=change(self.hint))

    def as_dict(self) -> dict[str, object]:
        """The fields as JSON takes them, for ``--format json``."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "hint": self.hint,
            "node": self.node,
            "path": list(self.path),
            "file": self.file,
            "line": self.line,
            "column": self.column,
        }

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place != NOWHERE else ""
        text = f"{where}{self.severity}[{self.code}]: {self.message}"
        return f"{text}\n    {self.hint}" if self.hint else text


def _visible(text: str) -> str:
    """The text with its control characters written out; line breaks stay."""
    return "".join(
        character if character.isprintable() or character == "\n" else ascii(character)[1:-1]
        for character in text
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """What a gem's own `check` or `connect`, or a plugin's rule, reports; it becomes a `Diagnostic`.

    Args:
        code: A code of the catalogue, or one of the plugin's own such as ``ACME001``.
        message: What is wrong and why; the runtime puts the node's name before it.
        hint: What to do about it.
        option: The option that must change, or the way to the key or item in it
            (``("columns", "cents")``, ``("columns", 2)``); the diagnostic points at its line.
        severity: ``error``, ``warning`` or ``note``.
        node: For the rules of plugins: the id of the node it is about; None is the pipeline as a whole.
            A gem speaks of its own node only.
        key: For the rules of plugins, in place of an option: the key of the node that must change, such
            as ``gem`` or ``trigger``.
        word: From a gem: the part of the option's text that must change: where it stands in it once, the
            diagnostic points there.
        since: From a gem's `check`: the Spark version, ``4.1``, that has what it is about: for that one and
            later ones there is nothing to report.
        upto: From a gem's `check`: the newest Spark version, ``4.1``, that has what it is about: for that one
            and older ones there is nothing to report.
    """

    code: str
    message: str
    hint: str = ""
    option: str | tuple[str | int, ...] | None = None
    severity: Severity = "error"
    node: str | None = None
    key: str | None = None
    word: str = ""
    since: str = ""
    upto: str = ""


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics by place, each once, so that output is stable and reads from top to bottom."""
    unique = dict.fromkeys(diagnostics)
    return sorted(unique, key=lambda d: (d.place, d.code, d.message))


# Comparing is slow: with very many names, each of them misspelt, it would take minutes.
_MOST_COMPARED = 500
_LONGEST_COMPARED = 100
_MOST_LISTED = 40


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name a user most likely meant, or None when nothing is close."""
    import difflib

    candidates = {candidate.lower(): candidate for candidate in known}
    if len(candidates) > _MOST_COMPARED or len(name) > _LONGEST_COMPARED:
        return candidates.get(name.lower())
    close = difflib.get_close_matches(name.lower(), candidates, n=1, cutoff=0.6)
    return candidates[close[0]] if close else None


def suggest(name: str, known: Iterable[str], *, what: str = "") -> str:
    """The sentence that goes into a hint: the close name if there is one, else all that exist.

    Args:
        name: What the user wrote.
        known: What exists.
        what: The plural noun for what is listed, for example ``sources``.
    """
    names = sorted(known)
    close = nearest(name, names)
    if close is not None:
        return f"Did you mean `{close}`?"
    if not names:
        return f"There are no {what}." if what else ""
    return f"Known {what}: {listed_names(names)}." if what else f"Known: {listed_names(names)}."


def listed_names(names: Iterable[object], *, most: int = _MOST_LISTED) -> str:
    """Names in a sentence of a message, which stays readable when there are thousands of them.

    Args:
        names: Nodes, columns, options and the like, in the order in which they are told.
        most: How many are told, before the number of the others.

    Returns:
        For example "`a`, `b` and 3 more"; empty without names.
    """
    told = [f"`{name}`" for name in names]
    more = f" and {len(told) - most:,} more" if len(told) > most else ""
    return ", ".join(told[:most]) + more
