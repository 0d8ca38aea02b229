"""A verdict as JSON, for programs."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.diagnostics import Diagnostic


def as_json(diagnostics: Iterable[Diagnostic], *, ok: bool) -> str:
    """A verdict as ``{"ok": …, "diagnostics": [{…}]}``.

    Args:
        diagnostics: What was found.
        ok: The verdict.
    """
    found = [diagnostic.as_dict() for diagnostic in diagnostics]
    return written({"ok": ok, "diagnostics": found})


def written(value: object) -> str:
    """Something as indented JSON, in little more memory than its text: `json.dumps` has all its pieces first.

    Args:
        value: What JSON can have.
    """
    out = io.StringIO()
    json.dump(value, out, indent=2, ensure_ascii=False)
    return out.getvalue()
