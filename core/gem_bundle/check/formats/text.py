"""A verdict as text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

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
