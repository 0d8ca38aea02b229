"""A plan as Markdown, for a comment on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.formats.text import counted, meaning
from gem_bundle.changes.model import STOPS, worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.changes.model import TargetChanges
    from gem_bundle.diagnostics import Diagnostic

_SIGNS = {"skipped": "❌", "again": "❌", "mixed": "❌", "refused": "❌", "from_now_on": "⚠️"}


def as_markdown(
    file: str, targets: Iterable[TargetChanges], errors: Iterable[Diagnostic] = (), unknown: int = 0
) -> str:
    """A plan as Markdown: a line that sums it up, a table of errors, and one for each target with changes.

    Args:
        file: The pipeline file.
        targets: What becomes of each target.
        errors: Why it isn't known of others, or of any.
        unknown: Of how many others it isn't.
    """
    return "\n".join(_lines(file, list(targets), list(errors), unknown)) + "\n"


def _lines(file: str, targets: list[TargetChanges], errors: list[Diagnostic], unknown: int) -> Iterator[str]:
    verdicts = [target.verdict for target in targets]
    verdict = worst(verdicts)
    if errors:
        title = counted(verdicts, unknown) if targets else "not known"
        yield f"### ❌ `{file}`: {title}"
    else:
        yield f"### {_SIGNS.get(verdict, '✅')} `{file}`: {verdict}"
    yield ""
    said = meaning(verdicts, len(errors))
    yield said + (" A run stops before it starts." if verdict in STOPS else "")
    if errors:
        yield from _table("severity", ((e.severity, e.line, e.code, e.message, e.hint) for e in errors))
    for target in targets:
        if not target.changes and not target.notes:
            continue
        yield ""
        yield f"**{target.target}**: {target.verdict}"
        rows = ((c.verdict, c.place.line, c.code, c.message, c.hint) for c in target.changes)
        if target.changes:
            yield from _table("verdict", rows)
        for note in target.notes:
            yield ""
            yield note


def _table(kind: str, rows: Iterable[tuple[str, int, str, str, str]]) -> Iterator[str]:
    yield ""
    yield f"| {kind} | line | code | what | |"
    yield "| --- | ---: | --- | --- | --- |"
    for said, line, code, message, hint in rows:
        yield f"| {said} | {line or ''} | {code} | {_cell(message)} | {_cell(hint)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
