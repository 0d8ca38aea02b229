"""What a diagnostic code is."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gem_bundle.diagnostics import Severity


@dataclass(frozen=True, slots=True)
class Code:
    """One rule.

    Args:
        code: Its stable name.
        severity: How it is reported.
        title: The rule in a few words.
        why: Why it is a rule, for the person who broke it; empty lines separate paragraphs.
        breaks: What breaks it: a piece of a pipeline file (which stands for a whole one), command
            lines that begin with ``$``, or another file whose name stands in a comment above it.
        keeps: What keeps it, in the same form.
        source: Where the rule comes from, when it isn't gem-bundle's own.
    """

    code: str
    severity: Severity
    title: str
    why: str = ""
    breaks: str = ""
    keeps: str = ""
    source: str = ""


def error(code: str, title: str, *, why: str, breaks: str, keeps: str, source: str = "") -> Code:
    """A rule whose breach keeps a pipeline from running."""
    return Code(code, "error", title, _sentences(why), _text(breaks), _text(keeps), source)


def warning(code: str, title: str, *, why: str, breaks: str, keeps: str, source: str = "") -> Code:
    """A rule whose breach a pipeline can live with."""
    return Code(code, "warning", title, _sentences(why), _text(breaks), _text(keeps), source)


def note(code: str, title: str, *, why: str, breaks: str, keeps: str, source: str = "") -> Code:
    """Something worth knowing that is wrong only sometimes."""
    return Code(code, "note", title, _sentences(why), _text(breaks), _text(keeps), source)


def _sentences(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def _text(text: str) -> str:
    return dedent(text).strip("\n")
