"""A verdict as workflow commands of GitHub Actions, which become annotations of a pull request.

The form and its escapes are those of *Workflow commands for GitHub Actions*: in a value of a property
``%``, line breaks, ``:`` and ``,`` are escaped, in the message ``%`` and line breaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.check.formats.files import checkout, relative

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.diagnostics import Diagnostic

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_IN_MESSAGES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = {**_IN_MESSAGES, ":": "%3A", ",": "%2C"}


def as_annotation(diagnostic: Diagnostic, root: Path | None = None) -> str:
    """One diagnostic as a line that GitHub turns into an annotation at the file's line.

    Args:
        diagnostic: What to write down.
        root: The root of the checked out repository, which files are named from; by default
            `checkout`.
    """
    properties: dict[str, object] = {}
    if diagnostic.file:
        properties["file"] = relative(diagnostic.file, root or checkout())
    if diagnostic.line:
        properties["line"] = diagnostic.line
        if diagnostic.column:
            properties["col"] = diagnostic.column
    properties["title"] = diagnostic.code
    listed = ",".join(f"{name}={_escaped(str(value), _IN_PROPERTIES)}" for name, value in properties.items())
    text = "\n".join(part for part in (diagnostic.message, diagnostic.hint) if part)
    return f"::{_COMMANDS[diagnostic.severity]} {listed}::{_escaped(text, _IN_MESSAGES)}"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)
