"""A plan as text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gem_bundle.changes.model import MEANINGS, STOPS, VERDICTS, worst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gem_bundle.changes.model import Change, TargetChanges, Verdict

PaintedAs = Literal["place", "error", "warning", "note", "hint", "ok"]
Paint = "Callable[[str, PaintedAs], str]"


def role(verdict: Verdict) -> PaintedAs:
    """In which colour a verdict is shown."""
    if verdict in STOPS:
        return "error"
    return "warning" if verdict == "from_now_on" else "ok"


def as_text(targets: Iterable[TargetChanges], paint: Callable[[str, PaintedAs], str]) -> Iterator[str]:
    """A plan as lines: each target with its verdict, below it each change at its line.

    Args:
        targets: What becomes of each target.
        paint: Gives a text the colour of its role.
    """
    for target in targets:
        yield f"target {paint(target.target, 'place')}: {paint(target.verdict, role(target.verdict))}"
        for change in target.changes:
            yield from _change(change, paint)
        for note in target.notes:
            yield paint(f"  note: {note}", "note")


def _change(change: Change, paint: Callable[[str, PaintedAs], str]) -> Iterator[str]:
    where = f"{paint(str(change.place), 'place')}: " if change.place.file else ""
    taken = " (accepted)" if change.accepted else ""
    label = paint(f"{change.verdict}[{change.code}]{taken}:", role(change.verdict))
    yield f"  {where}{label} {change.message}"
    if change.hint and not change.accepted:
        yield paint(f"      {change.hint}", "hint")


def summary(targets: Iterable[TargetChanges]) -> tuple[str, Verdict]:
    """How many targets have which verdict, the worst first, and that one; what it means."""
    found = [target.verdict for target in targets]
    worse = worst(found)
    counted = [f"{found.count(verdict)} {verdict}" for verdict in reversed(VERDICTS) if found.count(verdict)]
    text = ", ".join(counted) or "no target with a checkpoint"
    return (f"{text}. {MEANINGS[worse]}" if found else text), worse
