"""Draws pipelines and edits of them, asks for the verdict, and has Spark show what is true."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from tests.differential.edits.draw import Edit
from tests.differential.edits.drawn import EACH, MOVED, drawn_edits
from tests.differential.edits.known import Known
from tests.differential.edits.rows import SEVERAL, STYLES, again

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.model import Change, TargetChanges
    from gem_bundle.plugins import Registry
    from tests.differential.edits.drawn import Drawn
    from tests.differential.edits.truth import Experiments, First, Truth

Judged = Literal["right", "better", "refused missed", "worse", "a little worse", "late", "unshown", "useless"]
AGAIN: dict[Judged, int] = {"worse": SEVERAL, "unshown": 9, "a little worse": 2}
"""On how many other rows an edit is tried that is called worse than it was on those before."""

FURTHER = 2
"""On how many other rows an edit is tried that is called harmless beside rows of state, and was on the first."""

# From harmless to fatal, as an experiment can tell them apart.
_LEVEL = {"continues": 0, "from_now_on": 1, "wrong": 2, "refused": 3}
_SAID = {"same": 0, "continues": 0, "from_now_on": 1, "skipped": 2, "again": 2, "mixed": 2, "refused": 3}
HARMLESS = frozenset(said for said, level in _SAID.items() if level < _LEVEL["wrong"])
"""The verdicts by which no row is lost, doubled or mixed."""


@dataclass(frozen=True)
class Tried:
    """An edit that was tried.

    Args:
        seed: What the pipeline, its edits and their rows come from.
        edit: What was done.
        before: Version 1.
        said: The verdict, with its changes.
        truth: What became of it.
        judged: What the verdict was worth.
    """

    seed: str
    edit: Edit
    before: dict[str, Any]
    said: TargetChanges
    truth: Truth
    judged: Judged

    def __str__(self) -> str:
        told = "\n".join(f"    {c.verdict}[{c.code}]: {c.message[:300]}" for c in self.said.changes)
        return (
            f"{self.seed} {self.edit.kind} ({self.edit.node}): called {self.said.verdict}, is {self.truth.outcome} "
            f"[{self.judged}]\n    {self.truth.reason}\n{told}"
        )


@dataclass
class EditTally:
    """What came of many edits.

    Args:
        counts: How many were judged how.
        kinds: The same by kind of edit.
        shown: Those that weren't right, by how they were judged.
    """

    counts: Counter[Judged] = field(default_factory=Counter)
    kinds: Counter[tuple[str, Judged]] = field(default_factory=Counter)
    shown: dict[Judged, list[Tried]] = field(default_factory=dict)

    def add(self, tried: Tried) -> None:
        """Count one."""
        self.counts[tried.judged] += 1
        self.kinds[tried.edit.kind, tried.judged] += 1
        if tried.judged not in {"right", "useless", "unshown", "late"}:
            self.shown.setdefault(tried.judged, []).append(tried)

    @property
    def told(self) -> int:
        """How many edits have shown something."""
        return sum(self.counts.values()) - self.counts["useless"] - self.counts["unshown"]

    @property
    def dangerous(self) -> int:
        """How many were called better than they are."""
        return self.counts["better"] + self.counts["refused missed"]

    def lines(self) -> Iterator[str]:
        """The tally in words."""
        listed = ", ".join(f"{count} {judged}" for judged, count in self.counts.most_common())
        share = 100 * self.counts["worse"] / max(1, self.told)
        yield f"{sum(self.counts.values())} edits: {listed}; called worse than they are: {share:.1f} %"
        for judged in ("better", "refused missed", "worse", "a little worse"):
            for tried in self.shown.get(judged, ()):
                yield str(tried)


def try_edits(
    seed: str,
    experiments: Experiments,
    registry: Registry,
    most: int = EACH,
    known: Known | None = None,
    further: int = 0,
    *,
    asked: bool = False,
    states: int = 0,
    at_once: int = 1,
) -> Iterator[Tried]:
    """The edits of the pipeline of a seed, tried one after the other; none where it is not worth it.

    Args:
        seed: What the pipeline, its edits and their rows come from.
        experiments: Where they are tried.
        registry: The gems.
        most: How many are tried at most.
        known: What became of those that were tried before.
        further: On how many other rows one is tried that is called harmless beside rows of state, and was.
        asked: Some pipelines ask for more before their target, or are edited to.
        states: At how many nodes a pipeline keeps state at least.
        at_once: How many edits are made of a pipeline before it goes on, as one.
    """
    known = Known() if known is None else known
    with ExitStack() as closing:
        firsts: dict[int, First] = {}

        def first(drawn: Drawn, number: int) -> First:
            """What version 1 has left of some rows."""
            if number not in firsts:
                rows = seed if number < 0 else again(seed, number)
                firsts[number] = experiments.first(rows, drawn.old, drawn.target)
                closing.callback(firsts[number].close)
            return firsts[number]

        def find(drawn: Drawn, number: int) -> Truth:
            """The truth over some rows."""
            return experiments.of(first(drawn, number), drawn.new, drawn.target)

        def left(drawn: Drawn) -> SparkCheckpoint:
            """What Spark has left of version 1."""
            return first(drawn, -1).checkpoint

        for drawn in drawn_edits(seed, registry, most, asked=asked, states=states, at_once=at_once):
            versions, edit = [drawn.before, drawn.after], drawn.edit
            truth = known.of(seed, versions, partial(find, drawn, -1))
            if truth.outcome == "unfit":
                return
            checkpoint = None
            if edit.kind == MOVED:
                checkpoint = known.checkpoint(seed, drawn.before, partial(left, drawn))
            said = drawn.said(registry, checkpoint)
            judged = judge(edit, said, truth)
            # Over other rows the checkpoint is another one, and this verdict goes by the checkpoint.
            number = 0
            while checkpoint is None and number < AGAIN.get(judged, 0):
                # What makes no difference to some rows may make one to others.
                other = known.of(again(seed, number), versions, partial(find, drawn, number))
                if _shows_more(other, truth):
                    truth, judged = other, judge(edit, said, other)
                number += 1
            if checkpoint is None and judged == "right" and truth.kept and said.verdict in HARMLESS:
                for number in Random(f"{seed}:{drawn.number}").sample(range(len(STYLES)), further):
                    other = known.of(again(seed, number), versions, partial(find, drawn, number))
                    if _shows_more(other, truth):
                        truth, judged = other, judge(edit, said, other)
            yield Tried(seed, Edit(edit.kind, drawn.after, edit.node), drawn.before, said, truth, judged)


def judge(edit: Edit, said: TargetChanges, truth: Truth) -> Judged:
    """What a verdict is worth, beside what became of the edit."""
    if truth.outcome == "useless":
        return "useless"
    if truth.as_before and said.changes and all(change.code == "GB440" for change in said.changes):
        return "right"  # nothing is told but settings that a checkpoint keeps, so that they have no effect
    level, true = _SAID[said.verdict], _LEVEL[truth.outcome]
    if level == true or (level == 0 and truth.arrived) or (level == 1 and truth.arrived_since):
        return "right"
    if true == _LEVEL["refused"]:
        return "refused missed"
    if truth.again and true < level and any(change.verdict == "again" for change in said.changes):
        return "right"  # it is what the plan says, though what follows makes nothing of it
    if said.verdict == "skipped" and true < level and _skips(said):
        # The rows of the second phase wait where version 2 doesn't look.
        return "right"
    if said.verdict == "mixed" and level > true and (not truth.kept or truth.same):
        return "unshown"
    if level > true:
        return "worse" if level > 1 else "a little worse"
    if level == 1 and truth.outcome == "wrong" and all(map(_moves_the_watermark, said.changes)):
        return "late"
    return "better"


def _moves_the_watermark(change: Change) -> bool:
    """Whether a change does nothing but to let other rows be late, or from another micro-batch on.

    Which rows are late goes by the watermark of the moment: until the edit that is the old delay's, and with
    `complete` no micro-batch without rows has moved it yet.
    """
    return change.code == "GB426" or (change.code == "GB433" and change.before == "complete")


def _shows_more(other: Truth, truth: Truth) -> bool:
    """Whether what became of an edit over other rows is worse, or tells more of what it does."""
    level, before = _LEVEL.get(other.outcome, -1), _LEVEL[truth.outcome]
    if level != before:
        return level > before
    return other.kept > truth.kept == 0 or (truth.same and not other.same)


def _skips(said: TargetChanges) -> bool:
    """Whether rows are skipped because a place is read no more, on fewer ways, or from the newest on alone."""
    return {change.code for change in said.changes if change.verdict == "skipped"} <= {
        "GB411",
        "GB412",
        "GB414",
        "GB418",
    }
