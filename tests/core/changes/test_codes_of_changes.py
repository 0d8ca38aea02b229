"""The examples of the catalogue: each edit that breaks a rule is told by its code, and the kept form isn't."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gem_bundle.changes.against import plan_against
from gem_bundle.check import check_file
from gem_bundle.codes import CODES
from gem_bundle.pipeline.loader import LoadOptions

if TYPE_CHECKING:
    from pathlib import Path

    from gem_bundle.changes.model import TargetChanges

EDITS = [code for code in CODES.values() if "--against before.yaml" in code.breaks]


def planned(text: str, folder: Path) -> list[TargetChanges]:
    """The plan of an example: two files, each below its name."""
    _, *parts = re.split(r"^# (\S+\.yaml)\n", text, flags=re.MULTILINE)
    files = dict(zip(parts[::2], parts[1::2], strict=True))
    plans = []
    for name in ("clicks.yaml", "before.yaml"):
        text = re.sub(r"^\$.*\n?", "", files[name], flags=re.MULTILINE)
        file = folder / name
        file.write_text(f"pipeline: clicks\n{text}", encoding="utf-8")
        checked = check_file(file, LoadOptions(environment={}))
        assert checked.plan is not None, checked.diagnostics
        plans.append(checked.plan)
    return plan_against(*plans)


@pytest.mark.parametrize("code", EDITS, ids=lambda code: code.code)
def test_an_edit_is_told_by_its_code(code: object, tmp_path: Path) -> None:
    broken = planned(code.breaks, tmp_path)  # type: ignore[attr-defined]
    kept = planned(code.keeps, tmp_path)  # type: ignore[attr-defined]
    assert code.code in {c.code for target in broken for c in target.changes}  # type: ignore[attr-defined]
    assert code.code not in {c.code for target in kept for c in target.changes}  # type: ignore[attr-defined]


def test_most_codes_have_an_edit_that_shows_them() -> None:
    assert len(EDITS) > 18
