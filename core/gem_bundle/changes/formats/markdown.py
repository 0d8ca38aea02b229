"""A plan as Markdown, for a comment on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.changes.formats.text import counted, is_accepted, meaning
from gem_bundle.changes.model import worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.changes.model import Change, TargetChanges
    from gem_bundle.diagnostics import Diagnostic

_ACCEPTED = " (accepted)"


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
    verdict = worst(target.verdict for target in targets)
    stops, accepted = any(target.stops for target in targets), is_accepted(targets)
    if errors:
        title = counted(targets, unknown) if targets else "not known"
        yield f"### ❌ `{file}`: {title}"
    else:
        sign = "❌" if stops else "⚠️" if accepted or verdict == "from_now_on" else "✅"
        yield f"### {sign} `{file}`: {verdict}{_ACCEPTED * accepted}"
    yield ""
    said = meaning(targets, len(errors))
    yield said + (" A run stops before it starts." if stops else "")
    for place in dict.fromkeys(["", *(_elsewhere(e, file) for e in errors)]):
        here = [e for e in errors if _elsewhere(e, file) == place]
        if place:
            yield ""
            yield f"**`{place}`**"
        if here:
            yield from _table("severity", ((e.severity, e.line, e.code, e.message, e.hint) for e in here))
    for target in targets:
        if not target.changes and not target.notes:
            continue
        yield ""
        yield f"**{target.target}**: {_verdict(target)}"
        rows = (
            (_verdict(c), c.place.line, c.code, c.message, "" if c.accepted else c.hint)
            for c in target.changes
        )
        if target.changes:
            yield from _table("verdict", rows)
        for note in target.notes:
            yield ""
            yield note


def _elsewhere(error: Diagnostic, file: str) -> str:
    """The other file that an error stands in: a line of that version isn't one of the pipeline's."""
    return "" if error.place.file == file else error.place.file


def _verdict(found: Change | TargetChanges) -> str:
    return found.verdict + _ACCEPTED * found.accepted


def _table(kind: str, rows: Iterable[tuple[str, int, str, str, str]]) -> Iterator[str]:
    yield ""
    yield f"| {kind} | line | code | what | |"
    yield "| --- | ---: | --- | --- | --- |"
    for said, line, code, message, hint in rows:
        yield f"| {said} | {line or ''} | {code} | {_cell(message)} | {_cell(hint)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
