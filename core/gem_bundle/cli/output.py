"""What the commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gem_bundle.check.formats.text import Role
    from gem_bundle.diagnostics import Diagnostic

_PAINTS: dict[str, dict[str, Any]] = {
    "place": {"bold": True},
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow", "bold": True},
    "note": {"fg": "cyan", "bold": True},
    "hint": {"dim": True},
    "ok": {"fg": "green", "bold": True},
}


def wants_colour() -> bool | None:
    """Whether to colour: None leaves it to whether the output is a terminal.

    ``NO_COLOR`` (https://no-color.org) with any value, and ``TERM=dumb``, mean no.
    """
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def paint(text: str, role: Role | Literal["ok"]) -> str:
    """The text in the colour of its role; click takes the colour away where it can't be shown."""
    return click.style(text, **_PAINTS[role])


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print diagnostics as text to standard error, without the values of secrets."""
    from gem_bundle.check.formats.text import as_text

    for diagnostic in diagnostics:
        click.echo(as_text(scrubbed_diagnostic(diagnostic), paint), err=True)


def print_error(message: str, hint: str = "", code: str = "") -> None:
    """Print an error that has no place in a file to standard error.

    Args:
        message: What is wrong and why.
        hint: What to do about it.
        code: Its diagnostic code, where it has one.
    """
    label = paint(f"error[{code}]:" if code else "error:", "error")
    lines = [f"{label} {message}", *(paint(f"    {line}", "hint") for line in hint.splitlines())]
    click.echo(scrubbed("\n".join(lines)), err=True)


def print_note(text: str) -> None:
    """Print a line about what is going on to standard error."""
    click.echo(scrubbed(text), err=True)


def print_json(value: object) -> None:
    """Print a value as JSON to standard output."""
    import json

    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def heading(text: str) -> str:
    """The line above a part of a text."""
    return click.style(text, bold=True)


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 error``, ``2 errors``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def aligned(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Rows of texts as lines with straight columns, two spaces between them.

    On a terminal a long last column is wrapped; elsewhere every row is one line, for ``grep``.
    """
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines = []
    for row in rows:
        head = indent + "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False))
        lines += wrapped(row[-1], head, " " * len(head))
    return lines


def wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """A text as lines that fit the terminal, or as one line where there is no terminal.

    Args:
        text: The text.
        first: What stands before its first line.
        rest: What stands before the others; by default the same.
    """
    rest = first if rest is None else rest
    if not sys.stdout.isatty():
        return [f"{first}{text}".rstrip()]
    import shutil
    import textwrap

    width = max(shutil.get_terminal_size().columns, len(rest) + 30)
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [first.rstrip()]


def scrubbed_diagnostic(diagnostic: Diagnostic) -> Diagnostic:
    """The diagnostic without the values of secrets."""
    return diagnostic.rewritten(scrubbed)


def scrubbed(text: str) -> str:
    """The text without the values of secrets: an error may quote what it was given."""
    from gem_bundle.pipeline.secrets import hidden

    return hidden(text)
