"""A verdict as JSON, for programs."""

from __future__ import annotations

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
    return json.dumps({"ok": ok, "diagnostics": found}, indent=2, ensure_ascii=False)
