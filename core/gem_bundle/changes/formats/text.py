"""A plan as text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gem_bundle.changes.model import ALL_RIGHT, MEANINGS, STOPS, VERDICTS, worst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gem_bundle.changes.model import Change, TargetChanges

PaintedAs = Literal["place", "error", "warning", "note", "hint", "ok"]
UNKNOWN = "The errors say why."
"""What stands in place of a verdict's meaning where nothing is known of a target."""
_COMPARED = "What can be compared goes on."


def role(found: Change | TargetChanges) -> PaintedAs:
    """In which colour a verdict is shown: red is what stops a run."""
    if found.stops:
        return "error"
    return "warning" if found.accepted or found.verdict == "from_now_on" else "ok"


def as_text(targets: Iterable[TargetChanges], paint: Callable[[str, PaintedAs], str]) -> Iterator[str]:
    """A plan as lines: each target with its verdict, below it each change at its line.

    Args:
        targets: What becomes of each target.
        paint: Gives a text the colour of its role.
    """
    for target in targets:
        yield f"target {paint(target.target, 'place')}: {paint(target.verdict, role(target))}"
        for change in target.changes:
            yield from _change(change, paint)
        for note in target.notes:
            yield paint(f"  note: {note}", "note")


def _change(change: Change, paint: Callable[[str, PaintedAs], str]) -> Iterator[str]:
    where = f"{paint(str(change.place), 'place')}: " if change.place.file else ""
    taken = " (accepted)" if change.accepted else ""
    label = paint(f"{change.verdict}[{change.code}]{taken}:", role(change))
    yield f"  {where}{label} {change.message}"
    if change.hint and not change.accepted:
        yield paint(f"      {change.hint}", "hint")


def summary(targets: Iterable[TargetChanges], unknown: int = 0) -> tuple[str, PaintedAs]:
    """How many targets have which verdict, the worst first, and what that means; with its colour.

    Args:
        targets: What becomes of each target.
        unknown: Of how many others it isn't known.
    """
    found = list(targets)
    text = counted(found, unknown) or "no target with a checkpoint"
    roles = {"error"} if unknown else {role(target) for target in found}
    worse: PaintedAs = "error" if "error" in roles else "warning" if "warning" in roles else "ok"
    if not found and not unknown:
        return text, worse
    return f"{text}. {meaning(found, unknown)}", worse


def counted(targets: Sequence[TargetChanges], unknown: int = 0) -> str:
    """How often there is each verdict, the worst first.

    Args:
        targets: What becomes of each target.
        unknown: Of how many others it isn't known.
    """
    verdicts = [target.verdict for target in targets]
    found = [f"{verdicts.count(one)} {one}" for one in reversed(VERDICTS) if one in verdicts]
    return ", ".join([*found, f"{unknown} not known"] if unknown else found)


def meaning(targets: Sequence[TargetChanges], unknown: int = 0) -> str:
    """What the worst verdict of some targets means.

    Args:
        targets: What becomes of each target.
        unknown: Of how many others it isn't known: no verdict that is better than that counts for all.
    """
    worse = worst(target.verdict for target in targets)
    if unknown:
        return f"{UNKNOWN} {MEANINGS[worse]}" if worse in STOPS else UNKNOWN
    if is_accepted(targets):
        return f"{MEANINGS[worse]} That is accepted and stops no run."
    if worse in STOPS or not any(target.notes for target in targets):
        return MEANINGS[worse]
    return f"{_COMPARED if worse in ALL_RIGHT else MEANINGS[worse]} The notes say what can't be known."


def is_accepted(targets: Sequence[TargetChanges]) -> bool:
    """Whether a run starts for nothing but that somebody has taken all that would stop it.

    Args:
        targets: What becomes of each target.
    """
    return any(target.accepted for target in targets) and not any(target.stops for target in targets)
