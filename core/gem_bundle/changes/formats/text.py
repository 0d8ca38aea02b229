"""A plan as text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gem_bundle.changes.model import MEANINGS, STOPS, VERDICTS, worst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gem_bundle.changes.model import Change, TargetChanges, Verdict

PaintedAs = Literal["place", "error", "warning", "note", "hint", "ok"]
UNKNOWN = "The errors say why."
"""What stands in place of a verdict's meaning where nothing is known of a target."""


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


def summary(targets: Iterable[TargetChanges], unknown: int = 0) -> tuple[str, PaintedAs]:
    """How many targets have which verdict, the worst first, and what that means; with its colour.

    Args:
        targets: What becomes of each target.
        unknown: Of how many others it isn't known.
    """
    found = [target.verdict for target in targets]
    worse = worst(found)
    text = counted(found, unknown) or "no target with a checkpoint"
    if not found and not unknown:
        return text, role(worse)
    return f"{text}. {meaning(found, unknown)}", "error" if unknown else role(worse)


def counted(verdicts: Sequence[Verdict], unknown: int = 0) -> str:
    """How often there is each verdict, the worst first.

    Args:
        verdicts: The verdicts of targets.
        unknown: Of how many others it isn't known.
    """
    found = [f"{verdicts.count(one)} {one}" for one in reversed(VERDICTS) if one in verdicts]
    return ", ".join([*found, f"{unknown} not known"] if unknown else found)


def meaning(verdicts: Sequence[Verdict], unknown: int = 0) -> str:
    """What the worst of some verdicts means.

    Args:
        verdicts: The verdicts of targets.
        unknown: Of how many others it isn't known: no verdict that is better than that counts for all.
    """
    worse = worst(verdicts)
    if not unknown:
        return MEANINGS[worse]
    return f"{UNKNOWN} {MEANINGS[worse]}" if worse in STOPS else UNKNOWN
