"""What a run of the differential test comes to: counts that show what was covered, and disagreements."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.differential.generator import before

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.differential.compare import Compared, Disagreement
    from tests.differential.generator import Drawn

_OUTCOMES = ("accepted", "streaming", "static", "analysis")
_VARIABLE = re.compile(r"`[^`]*`|'[^']*'|\S*#\d+\S*|\d+")


@dataclass
class Tally:
    """Counts over pipelines; two of them add up."""

    pipelines: int = 0
    unanalysable: int = 0
    options: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    shapes: Counter[tuple[str, str]] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    mistakes: Counter[tuple[str, str]] = field(default_factory=Counter)
    deliberate: Counter[str] = field(default_factory=Counter)
    disagreements: dict[tuple[str, str], list[tuple[str, Disagreement]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    missed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unforeseen: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    sampled: int = 0
    found: int = 0
    undeclared: int = 0
    seconds: float = 0.0
    checking: float = 0.0

    def add(self, drawn: Drawn, compared: Compared) -> None:
        """Count one pipeline."""
        self.pipelines += 1
        for disagreement in compared.disagreements:
            self.disagreements[disagreement.group].append((drawn.seed, disagreement))
        self.options.update(compared.options[:1])
        self.sampled += len(compared.runs)
        for text in filter(None, compared.runs):
            self.unforeseen[_VARIABLE.sub("…", text)[:140]].append(drawn.seed)
        self.deliberate.update(compared.deliberate)
        self.checking += compared.seconds
        verdicts = compared.verdicts or {}
        self.unanalysable += any(verdict.outcome == "analysis" for verdict in verdicts.values())
        for target, verdict in verdicts.items():
            mode = drawn.shapes.get(target, "target")
            self.outcomes[mode, verdict.outcome] += 1
            for name in behind(drawn, target):
                self.shapes[_kind(drawn.shapes.get(name, "?")), verdict.outcome] += 1
            if verdict.outcome == "streaming":
                self.refusals[_VARIABLE.sub("…", verdict.message)[:120]] += 1
        self.found += len(compared.found)
        self.undeclared += len(compared.undeclared)
        for target in compared.missed:
            verdict = verdicts[target]
            self.mistakes[drawn.mistake or "none on purpose", "missed"] += 1
            self.missed[verdict.reason].append(f"{drawn.seed} {verdict}")
        for _ in compared.found:
            self.mistakes[drawn.mistake or "none on purpose", "found"] += 1

    def merge(self, other: Tally) -> None:
        """Add the counts of another run."""
        self.pipelines += other.pipelines
        self.unanalysable += other.unanalysable
        self.found += other.found
        self.undeclared += other.undeclared
        self.sampled += other.sampled
        self.seconds += other.seconds
        self.checking += other.checking
        for name in ("options", "outcomes", "shapes", "refusals", "mistakes", "deliberate"):
            getattr(self, name).update(getattr(other, name))
        for group, found in other.disagreements.items():
            self.disagreements[group] += found
        for reason, texts in other.missed.items():
            self.missed[reason] += texts
        for reason, seeds in other.unforeseen.items():
            self.unforeseen[reason] += seeds

    @property
    def missed_targets(self) -> int:
        """Targets that only Spark says can't be analysed."""
        return sum(map(len, self.missed.values()))

    def lines(self) -> Iterator[str]:
        """The report."""
        yield f"pipelines: {self.pipelines}, of which Spark can't analyse {self.unanalysable}"
        if self.options:
            yield f"  with options that aren't valid: {sum(self.options.values())}"
            yield from (f"    {count:6} {text[:150]}" for text, count in self.options.most_common(5))
        yield ""
        yield from _table("targets", self.outcomes)
        yield from _table("targets behind", self.shapes)
        yield "Spark's refusals of streams:"
        yield from (f"{count:7}  {text}" for text, count in self.refusals.most_common())
        yield ""
        yield "mistakes that are not about streams:"
        for name in sorted({name for name, _ in self.mistakes}):
            found, missed = self.mistakes[name, "found"], self.mistakes[name, "missed"]
            yield f"  {name:28} found {found:6} missed {missed:6}"
        broken = self.found + self.missed_targets
        rate = 100 * self.missed_targets / broken if broken else 0.0
        yield f"  missed {self.missed_targets} of {broken} targets: {rate:.2f} %"
        yield f"  and {self.undeclared} behind tables whose columns only Spark knows"
        for reason, texts in sorted(self.missed.items(), key=lambda item: -len(item[1])):
            yield f"  {len(texts):6}  {reason}"
            yield from (f"          {text[:240]}" for text in texts[:2])
        if self.deliberate:
            yield "deliberate differences:"
            yield from (f"{count:7}  {text}" for text, count in sorted(self.deliberate.items()))
        if self.sampled:
            failed = sum(map(len, self.unforeseen.values()))
            yield f"queries that both accept: {self.sampled} started, {failed} failed"
            for text, seeds in sorted(self.unforeseen.items(), key=lambda item: -len(item[1])):
                yield f"{len(seeds):7}  {text}  ({', '.join(seeds[:3])})"
        yield ""
        yield f"disagreements: {sum(map(len, self.disagreements.values()))} in {len(self.disagreements)} groups"
        for (kind, what), wrong in sorted(self.disagreements.items(), key=lambda item: -len(item[1])):
            yield f"  {len(wrong):6}  {kind}: {what}"
            for seed, disagreement in wrong[:2]:
                yield f"          {seed}: {str(disagreement)[:400]}"
        if self.pipelines:
            pace, checking = 1000 * self.seconds / self.pipelines, 1000 * self.checking / self.pipelines
            yield f"{pace:.0f} ms per pipeline, of which the checker takes {checking:.1f} ms"


def behind(drawn: Drawn, target: str) -> set[str]:
    """The nodes whose rows reach a target."""
    values = drawn.values
    nodes = {**values["sources"], **values.get("transforms", {}), **values["targets"]}
    return before(nodes, nodes[target])


def _kind(shape: str) -> str:
    for suffix in (" order by", " limit", " offset"):
        shape = shape.replace(suffix, "")
    return shape


def _table(what: str, counts: Counter[tuple[str, str]]) -> Iterator[str]:
    yield f"{what:36}" + "".join(f"{outcome:>11}" for outcome in _OUTCOMES)
    for name in sorted({name for name, _ in counts}):
        yield f"  {name:34}" + "".join(f"{counts[name, outcome]:11}" for outcome in _OUTCOMES)
    yield ""
