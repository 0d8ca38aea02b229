"""What a comparison of two versions of a pipeline says: for each target its changes, each with a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from gem_bundle.diagnostics import NOWHERE, Diagnostic, Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.pipeline.model import Definition

Verdict = Literal["same", "continues", "from_now_on", "new", "gone", "skipped", "again", "mixed", "refused"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""From harmless to fatal: a target's verdict is the worst of its changes'."""

STOPS: frozenset[Verdict] = frozenset({"skipped", "again", "mixed", "refused"})
"""What keeps a run from starting, unless it is accepted."""

ALL_RIGHT: frozenset[Verdict] = frozenset({"same", "continues"})
"""By these no row is different."""

MEANINGS: dict[Verdict, str] = {
    "same": "Nothing has changed.",
    "continues": "All rows are right.",
    "from_now_on": "Rows from now on go by the new rule; earlier results stay as they were.",
    "new": "There is no checkpoint yet; the sources are read from where their options say.",
    "gone": "The target is no more; what is left of it stays.",
    "skipped": "Rows will never be read.",
    "again": "Rows that were processed come once more.",
    "mixed": "What the old rule made gets into new results, or what was written can't be read any more.",
    "refused": "Spark won't start, or fails in the first micro-batch.",
}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts; ``same`` of none."""
    return max(verdicts, key=VERDICTS.index, default="same")


def settled(difference: str) -> tuple[Verdict, str]:
    """What a change of state alone is with new state.

    Args:
        difference: What is different.
    """
    return "from_now_on", f"{difference}; of new state, rows from now on go by it"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between what ran last and the pipeline as it is now.

    Args:
        verdict: What becomes of rows.
        code: The diagnostic code of this kind of change.
        message: What is different and what that does, with the user's own names.
        node: The id of the node it is about; empty for the pipeline as a whole.
        path: The keys that lead to it in the pipeline file.
        place: Where it stands there.
        hint: What to do about it.
        before: What it was, as JSON has it; None where there was nothing.
        after: What it is now.
        accepted: Somebody has taken it on purpose.
        what: The half of the message that says what is different; empty where it has no halves.
        anew: What becomes of rows with new state (`run --fresh`), and the message then; None where that is
            no other.
    """

    verdict: Verdict
    code: str
    message: str
    node: str = ""
    path: tuple[str | int, ...] = ()
    place: Place = field(default=NOWHERE)
    hint: str = ""
    before: Any = None
    after: Any = None
    accepted: bool = False
    what: str = ""
    anew: tuple[Verdict, str] | None = None

    @property
    def difference(self) -> str:
        """What is different, without what that does."""
        return self.what or self.message.partition(";")[0]

    @property
    def stops(self) -> bool:
        """Whether it keeps a run from starting."""
        return self.verdict in STOPS and not self.accepted

    def diagnostic(self) -> Diagnostic:
        """The change as a run reports it when it stops."""
        message = f"{self.verdict}: {self.message}"
        nevertheless = f"To run it nevertheless: `--accept {self.taken}`."
        told = f"--accept {self.taken}`" in self.hint
        hint = " ".join(filter(None, [self.hint, "" if told else nevertheless]))
        return Diagnostic(self.code, "error", message, self.node or None, self.path, self.place, hint)

    @property
    def taken(self) -> str:
        """What `--accept` names it by."""
        return f"{self.code}:{self.node}" if self.node else self.code

    def of_state(self) -> Change:
        """The same change where it is about state, so that new state settles it."""
        return self if self.anew is not None else replace(self, anew=settled(self.difference))

    def with_new_state(self) -> Change:
        """The change as it is for a target that begins with new state where it ended."""
        if self.anew is None:
            return self
        verdict, message = self.anew
        return replace(self, verdict=verdict, message=message, anew=None)

    def as_dict(self) -> dict[str, Any]:
        """The change as JSON has it."""
        return {
            "verdict": self.verdict,
            "node": self.node or None,
            "path": list(self.path),
            "line": self.place.line,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "before": self.before,
            "after": self.after,
            "accepted": self.accepted,
        }


@dataclass(frozen=True, slots=True)
class TargetChanges:
    """What an edit does to one target.

    Args:
        target: Its id.
        changes: Its changes, in the order of the file.
        notes: What can't be known, and why.
    """

    target: str
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of its changes' verdicts."""
        return worst(change.verdict for change in self.changes)

    @property
    def stops(self) -> bool:
        """Whether a run of the target doesn't start."""
        return any(change.stops for change in self.changes)

    @property
    def accepted(self) -> bool:
        """Whether a run of it starts for nothing but that somebody has taken all that would stop it."""
        return self.verdict in STOPS and not self.stops

    def with_new_state(self) -> TargetChanges:
        """The same changes as they are for a target that begins with new state where it ended."""
        return replace(self, changes=tuple(change.with_new_state() for change in self.changes))

    def accepting(self, accepted: Iterable[tuple[str, str]]) -> TargetChanges:
        """The same changes, those that would stop a run taken on purpose where somebody says so.

        Args:
            accepted: Codes, each with the id of a node, or an empty text for all nodes.
        """
        taken = set(accepted)
        return replace(
            self,
            changes=tuple(
                replace(change, accepted=True)
                if change.verdict in STOPS and taken & {(change.code, ""), (change.code, change.node)}
                else change
                for change in self.changes
            ),
        )


def at_section(definition: Definition, kind: str) -> tuple[tuple[str, ...], Place]:
    """The section of a kind of node, for what is said of one that is no more; the file where it has none.

    Args:
        definition: The pipeline.
        kind: The kind.
    """
    path = (f"{kind}s",)
    place = definition.locator.place(path, key=True)
    is_there = place != definition.locator.place(()) or any(n.kind == kind for n in definition.nodes.values())
    return path if is_there else (), place


def in_order(changes: Iterable[Change]) -> list[Change]:
    """Changes in the order of the file; those of which no line is known come last."""
    return sorted(changes, key=lambda c: (not c.place.line, c.place, c.code, c.message))
