"""A plan as JSON, for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.changes.model import TargetChanges
    from gem_bundle.diagnostics import Diagnostic


def as_json(targets: Iterable[TargetChanges], diagnostics: Iterable[Diagnostic], *, ok: bool) -> str:
    """A plan as ``{"ok": …, "targets": {id: {"verdict": …, …}}, "diagnostics": [{…}]}``.

    Args:
        targets: What becomes of each target; of others it isn't known, and the diagnostics say why.
        diagnostics: What was found about the pipeline and its checkpoints.
        ok: Whether a run may go on.
    """
    found = {
        target.target: {
            "verdict": target.verdict,
            "changes": [change.as_dict() for change in target.changes],
            "notes": list(target.notes),
        }
        for target in targets
    }
    content = {"ok": ok, "targets": found, "diagnostics": [d.as_dict() for d in diagnostics]}
    return json.dumps(content, indent=2, ensure_ascii=False)
