"""The tables of `docs/change-a-pipeline.md`, made of the code: ``python -m tests.core.changes.page`` renews them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gem_bundle.changes.model import MEANINGS, VERDICTS
from gem_bundle.gem import Gem
from gem_bundle.options import metadata
from gem_bundle.plugins import load_registry
from tests.core.changes.edits import EDITS, edited_verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[3] / "docs" / "change-a-pipeline.md"
_EFFECTS = ("continues", "from_now_on", "skipped", "again", "mixed", "refused")


def rendered(page: str) -> str:
    """The page with its tables made anew."""
    for name, lines in (("verdicts", _verdicts()), ("edits", _edits()), ("options", _options())):
        table = "\n".join(lines)
        marks = f"<!-- {name} -->", f"<!-- /{name} -->"
        page = re.sub(
            f"{marks[0]}\n.*?{marks[1]}", lambda _, t=table, m=marks: f"{m[0]}\n{t}\n{m[1]}", page, flags=re.S
        )
    return page


def _verdicts() -> Iterator[str]:
    yield "| verdict | |"
    yield "| --- | --- |"
    for verdict in VERDICTS:
        yield f"| `{verdict}` | {MEANINGS[verdict]} |"


def _edits() -> Iterator[str]:
    yield "| edit | verdict | code |"
    yield "| --- | --- | --- |"
    for edit in EDITS:
        found = edited_verdict(edit)
        codes = ", ".join(
            f"[{code}](reference/diagnostics/gb4.md#{code.lower()})"
            for code in dict.fromkeys(change.code for change in found.changes)
        )
        yield f"| {edit.name} | `{found.verdict}` | {codes} |"


def _options() -> Iterator[str]:
    yield "| gem | what its options mean |"
    yield "| --- | --- |"
    registry = load_registry({})
    for kind in ("source", "transform", "target"):
        for name in registry.names(kind):
            gem = registry.get(kind, name).load()
            said: dict[str, list[str]] = {}
            for option, info in gem.options_type.model_fields.items():
                word = metadata(info).get("change") or gem.options_type.default_change
                said.setdefault(word or "by the rule", []).append(option)
            told = []
            for effect in (*_EFFECTS, "by the rule"):
                options = said.get(effect, [])
                if not options:
                    continue
                listed = "all others" if len(options) > 8 else ", ".join(f"`{option}`" for option in options)
                told.append(f"{effect}: {listed}")
            decides = "; some it decides by their values" if gem.change is not Gem.change else ""
            yield f"| {kind} `{name}` | {'; '.join(told) or 'it has none'}{decides} |"


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
