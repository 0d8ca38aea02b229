"""A plan as Markdown, for a comment on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.model import MEANINGS, STOPS, worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.changes.model import TargetChanges

_SIGNS = {"skipped": "❌", "again": "❌", "mixed": "❌", "refused": "❌", "from_now_on": "⚠️"}


def as_markdown(file: str, targets: Iterable[TargetChanges]) -> str:
    """A plan as Markdown: a line that sums it up, and a table for each target with changes.

    Args:
        file: The pipeline file.
        targets: What becomes of each target.
    """
    return "\n".join(_lines(file, list(targets))) + "\n"


def _lines(file: str, targets: list[TargetChanges]) -> Iterator[str]:
    verdict = worst(target.verdict for target in targets)
    sign = _SIGNS.get(verdict, "✅")
    yield f"### {sign} `{file}`: {verdict}"
    yield ""
    yield MEANINGS[verdict] + (" A run stops before it starts." if verdict in STOPS else "")
    for target in targets:
        if not target.changes:
            continue
        yield ""
        yield f"**{target.target}**: {target.verdict}"
        yield ""
        yield "| verdict | line | code | what | |"
        yield "| --- | ---: | --- | --- | --- |"
        for change in target.changes:
            line = str(change.place.line or "")
            told = (_cell(change.message), _cell(change.hint))
            yield f"| {change.verdict} | {line} | {change.code} | {told[0]} | {told[1]} |"
        for note in target.notes:
            yield ""
            yield note


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
