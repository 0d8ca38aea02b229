"""How a verdict is written down: as text for people, as JSON for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gem_bundle.diagnostics import Diagnostic

    Role = Literal["place", "error", "warning", "note", "hint"]
    Paint = Callable[[str, Role], str]

INDENT = "    "


def _plain(text: str, role: Role) -> str:  # noqa: ARG001 (the signature of a paint)
    return text


def as_text(diagnostic: Diagnostic, paint: Paint = _plain) -> str:
    """One diagnostic as ``file:line:column: error[GB310]: message``, the hint indented below.

    Args:
        diagnostic: What to write down.
        paint: Colours a part of the text according to its role.
    """
    where = str(diagnostic.place)
    head = paint(f"{where}:", "place") + " " if where else ""
    label = paint(f"{diagnostic.severity}[{diagnostic.code}]:", diagnostic.severity)
    first, *more = diagnostic.message.splitlines() or [""]
    hint = [paint(f"{INDENT}{line}", "hint") for line in diagnostic.hint.splitlines()]
    return "\n".join([f"{head}{label} {first}", *(f"{INDENT}{line}" for line in more), *hint])


def as_json(diagnostics: Iterable[Diagnostic], *, ok: bool) -> str:
    """A verdict as ``{"ok": …, "diagnostics": [{…}]}``.

    Args:
        diagnostics: What was found.
        ok: The verdict.
    """
    found = [diagnostic.as_dict() for diagnostic in diagnostics]
    return json.dumps({"ok": ok, "diagnostics": found}, indent=2, ensure_ascii=False)
