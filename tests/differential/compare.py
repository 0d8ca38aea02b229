"""The checker's verdict and Spark's, side by side, target by target."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from gem_bundle.check.checker import check_definition
from gem_bundle.pipeline.document import Document
from gem_bundle.pipeline.loader import LoadOptions, load_values
from gem_bundle.run.engine import query_ends
from gem_bundle.run.failures import root_cause
from tests.differential.changing import changing
from tests.differential.engine import is_asked_whole, plan_of
from tests.differential.generator import before

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.check.checker import Checked
    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.facts import Facts
    from gem_bundle.gem import Source
    from gem_bundle.pipeline.loader import Loaded
    from gem_bundle.pipeline.model import Definition
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.plugins import Registry
    from tests.differential.engine import Spark, Verdict
    from tests.differential.starting import Run, Starter

STREAMING = re.compile(r"GB3(0[1-9]|2[1-9]|3\d)")
OTHER = re.compile(r"GB2\d\d")
# What Spark can say of a target whose rows change others: names and types, and not what is the gem's own.
AT_TARGET = re.compile(r"GB21[0-3]")
NO_STREAM = "GB313"
# That two queries tell the same rows apart in different ways, which Spark, asked about one, can't know.
OF_SEVERAL = "GB218"
BEHIND_FORK = "GB382"
_OUTPUT_MODE = "STREAMING_OUTPUT_MODE"
# A warning, since sessions have functions of their own; none of those here has one.
NO_FUNCTION = "GB216"
_VARIABLE = re.compile(r"`[^`]*`|'[^']*'|\S*#\d+\S*|\d+|\b[A-Z]+\(.*\)(?= \(as)")


@dataclass(frozen=True, slots=True)
class Difference:
    """Why the checker refuses what Spark's check lets pass.

    Args:
        reason: The reason, in one sentence.
        fails: What Spark says when such a query runs.
        waits: The query may also run without failing, and its watermark never advances.
        idles: Without rows the query runs: Spark says it of the first row that comes.
        says: What stands in the checker's message, where the code is about other things too.
    """

    reason: str
    fails: str
    waits: bool = False
    idles: bool = False
    says: str = ""

    def shown_by(self, run: Run) -> bool:
        """Whether a run shows it."""
        if run.error is None:
            # Where no row can ever come out, the optimizer takes out what would have failed.
            nothing = not run.rows and (self.idles or not run.stateful)
            return nothing or (self.waits and not run.advanced)
        said = f"{run.error}\n{root_cause(run.error)}"
        # A query with several such faults fails of whichever Spark comes to first.
        any_of_them = "|".join(difference.fails for difference in DIFFERENCES.values())
        return re.search(f"{any_of_them}|{_FAILS_ANYWAY}", said) is not None


DIFFERENCES: dict[str, Difference] = {
    "GB205": Difference(
        "`within_watermark` of a static relation has no physical plan; Spark's check looks at streams only",
        "No plan for DeduplicateWithinWatermark",
        says="`within_watermark` is for streams",
    ),
    "GB213": Difference(
        "a map can't be the key of a processor with state; Spark hands it over, and PySpark can't read it",
        "KeyError: 'keyType'",
        says="which can't be a key",
    ),
    "GB301": Difference(
        "in append every aggregation must have a watermark; Spark's check looks at one of them, and `except` "
        "becomes one only after it",
        "Append output mode not supported for .*aggregations",
        idles=True,
    ),
    "GB303": Difference(
        "sessions can't be updated; Spark's check looks at one of the aggregations, its planner at each",
        "not supported for session window streaming aggregations",
        says="can't emit the session windows",
    ),
    "GB324": Difference(
        "a join of two streams needs columns that must be equal; Spark says so when it plans the query",
        "without equality predicate|should not take Cross as the JoinType",
    ),
    "GB330": Difference(
        "a time to live of state goes by the clock; what a class asks for Spark only knows when it plans the query",
        "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL|Cannot use TTL",
        says="gives its state a time to live",
    ),
    "GB336": Difference(
        "session windows are the only group: Spark's check lets it pass, its planner doesn't",
        "Global aggregation with session window",
    ),
    "GB329": Difference(
        "a second watermark on the way of the first: the query fails when the watermark advances, or "
        "waits for rows that an aggregation in between never gives out",
        "Redefining watermark is disallowed",
        waits=True,
    ),
    "GB337": Difference(
        "several columns with a watermark where an operator with state goes by one: it finds them when it runs",
        "More than one event time columns",
    ),
    "GB338": Difference(
        "the current time becomes non-deterministic only when a micro-batch is planned",
        "INVALID_NON_DETERMINISTIC_EXPRESSIONS|AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION",
    ),
}
"""Deliberate differences, by code. A run of the differential test starts some queries of each, and
`tests.integration.test_differential` has one of each by name."""

# What ends a query before what a difference is about can be seen of it.
_FAILS_ANYWAY = "DUPLICATE_SOURCE_NAMES"
# What a row of the test's data ends a query with says nothing about the query.
_ABOUT_ROWS = re.compile(
    r"\[(CAST_INVALID_INPUT|CANNOT_PARSE|DIVIDE_BY_ZERO|ARITHMETIC_OVERFLOW|INVALID_ARRAY_INDEX)"
    r"|gem-bundle ends the query|MALFORMED_AVRO_MESSAGE"
)

Kind = Literal["missed", "false alarm", "missed static", "false static", "crash"]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The checker and Spark say different things of a target.

    Args:
        target: The target.
        kind: ``missed`` when only Spark refuses it as a stream, ``false alarm`` when only the checker
            refuses it, ``… static`` when they differ in whether it is a stream at all, ``crash``
            when the checker fails.
        codes: The checker's codes that it is about.
        verdict: What Spark says.
        messages: What the checker says.
        run: What became of the query when it was started.
    """

    target: str
    kind: Kind
    codes: tuple[str, ...]
    verdict: Verdict | None
    messages: tuple[str, ...] = ()
    run: str = ""

    @property
    def group(self) -> tuple[str, str]:
        """What it has in common with others that probably have the same cause."""
        said = " ".join(self.messages[:1])
        if not self.codes and self.verdict is not None:
            said = self.verdict.message
        return self.kind, " ".join([*self.codes, _VARIABLE.sub("…", said)[:140]])

    def __str__(self) -> str:
        said = "; ".join(self.messages) or "nothing"
        run = f"; started, {self.run}" if self.run else ""
        return f"{self.kind} at `{self.target}`: Spark: {self.verdict}{run}; the checker: {said}"


@dataclass(slots=True)
class Compared:
    """What came of one pipeline.

    Args:
        disagreements: Where checker and Spark differ.
        verdicts: Spark's verdicts by target; None when an option isn't valid.
        found: Targets that Spark can't analyse, and the checker says so.
        missed: Targets that Spark can't analyse, and the checker has nothing to say.
        undeclared: Targets that Spark refuses, and the checker has nothing to say, behind a table whose
            columns it can't know.
        deliberate: Codes of deliberate differences.
        options: What is wrong with the options, where there is no plan.
        seconds: How long the checker took.
        runs: Why queries that both accept failed when they were started; empty where one didn't.
    """

    disagreements: list[Disagreement] = field(default_factory=list)
    verdicts: dict[str, Verdict] | None = None
    found: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    undeclared: list[str] = field(default_factory=list)
    deliberate: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    seconds: float = 0.0
    runs: list[str] = field(default_factory=list)


class Comparison:
    """Asks both about one pipeline after the other.

    Args:
        spark: Spark.
        registry: The gems.
        starter: Starts queries that show deliberate differences; without it their codes are enough.
        proofs: How many queries are started for each code.
        samples: How many queries that both accept are started.
    """

    def __init__(
        self,
        spark: Spark,
        registry: Registry,
        starter: Starter | None = None,
        proofs: int = 5,
        samples: int = 0,
    ) -> None:
        self._spark = spark
        self._registry = registry
        self._starter = starter
        self._proofs = proofs
        self._samples = samples
        self._started: Counter[tuple[str, ...]] = Counter()

    def of(self, values: dict[str, Any]) -> Compared:
        """What both say of a pipeline.

        Args:
            values: The pipeline as its file has it.
        """
        loaded = _loaded(values)
        definition = loaded.definition
        if definition is None or any(d.is_error for d in loaded.diagnostics):
            return Compared(options=[str(d) for d in loaded.diagnostics])
        began = time.perf_counter()
        try:
            checked = check_definition(loaded, self._registry)
        except Exception as error:  # noqa: BLE001 (a bug of the checker is a finding, not the end)
            crash = Disagreement("", "crash", (), None, (f"{type(error).__name__}: {error}",))
            return Compared([crash])
        seconds = time.perf_counter() - began
        plan = plan_of(definition, self._registry)
        if plan is None:
            return Compared(options=[str(d) for d in checked.diagnostics if d.is_error])
        verdicts = self._spark.verdicts(plan)
        result = Compared(verdicts=verdicts, seconds=seconds)
        result.disagreements = [
            Disagreement(d.node or "", "crash", (d.code,), None, (d.message,))
            for d in checked.diagnostics
            if d.code == "GB203"
        ]
        placed = by_target(definition, _heard(checked))
        ends = query_ends(plan)
        # What keeps state behind the fork of a group is refused, and Spark is asked about what lies before it.
        parted = {d.node for d in checked.diagnostics if d.code == BEHIND_FORK}
        for target, verdict in verdicts.items():
            said = placed[target]
            if len(verdicts) > 1 and any(d.node != target for d in said):
                said = self._said_of(target, values)
            # Of what lies behind the fork of a group Spark isn't asked.
            names = [n for n in plan.upstream([ends[target].node]) if plan.node(n).kind != "target"]
            asked = {None, target, *names}
            if target in parted and verdict.outcome == "accepted":
                asked -= {target}
            if target in parted and verdict.reason.startswith(_OUTPUT_MODE):
                continue  # what would fit the output mode is what lies behind the fork
            said = [diagnostic for diagnostic in said if diagnostic.node in asked]
            if not is_asked_whole(plan, target):
                said = [d for d in said if d.node != target or not AT_TARGET.fullmatch(d.code)]
            self._judge(result, plan, target, verdict, said)
        return result

    def _said_of(self, target: str, values: dict[str, Any]) -> list[Diagnostic]:
        """What is said of the target's own query: that of a node may be due to another one behind it."""
        nodes = {**values["sources"], **values.get("transforms", {}), **values["targets"]}
        own = {target, *before(nodes, nodes[target])}
        targets = {name: node for name, node in values["targets"].items() if name in own}
        alone = _loaded({**values, "targets": targets})
        assert alone.definition is not None
        return by_target(alone.definition, _heard(check_definition(alone, self._registry)))[target]

    def _judge(
        self, result: Compared, plan: Plan, target: str, verdict: Verdict, said: list[Diagnostic]
    ) -> None:
        streaming = [d for d in said if STREAMING.fullmatch(d.code)]
        other = [d for d in said if OTHER.fullmatch(d.code) and d.node != target]
        # Of a target whose query it refuses Spark isn't asked how its rows change others.
        if changing(plan.node(target).options) is not None and verdict.outcome in {"accepted", "analysis"}:
            other += [d for d in said if AT_TARGET.fullmatch(d.code) and d.node == target]
        if verdict.outcome == "analysis":
            unseen = result.undeclared if _has_undeclared(plan, target) else result.missed
            (result.found if streaming or other else unseen).append(target)
            return
        static = [d for d in said if d.code == NO_STREAM]
        if (verdict.outcome == "static") != bool(static):
            kind: Kind = "false static" if static else "missed static"
            result.disagreements.append(_disagreement(target, kind, static, verdict))
        if plan.definition.mode == "batch" and verdict.outcome == "streaming" and other:
            return  # what Spark's check doesn't like about a batch is an option of a gem
        if verdict.outcome == "streaming" and not streaming:
            if "watermark" in verdict.message and _may_be_marked(plan, target):
                result.undeclared.append(target)
            else:
                result.disagreements.append(_disagreement(target, "missed", [], verdict))
        alarms = other if verdict.outcome == "streaming" else [*streaming, *other]
        if alarms:
            self._false_alarm(result, plan, target, verdict, alarms)
        elif verdict.outcome == "accepted" and plan.definition.mode == "stream":
            self._sample(result, plan, target)

    def _sample(self, result: Compared, plan: Plan, target: str) -> None:
        """Start a query that neither has anything against."""
        if self._starter is None or self._samples <= 0:
            return
        self._samples -= 1
        run = self._starter.start(plan, target)
        if run.error is None or not _ABOUT_ROWS.search(str(run)):
            result.runs.append(str(run) if run.error else "")

    def _false_alarm(
        self, result: Compared, plan: Plan, target: str, verdict: Verdict, alarms: list[Diagnostic]
    ) -> None:
        """An error that Spark's check doesn't have: deliberate, and shown by starting it, or wrong."""
        wrong = [d for d in alarms if d.code not in DIFFERENCES or DIFFERENCES[d.code].says not in d.message]
        codes = tuple(sorted({d.code for d in wrong or alarms}))
        run = None
        stream = verdict.outcome == "accepted" and plan.definition.mode == "stream"
        if self._starter is not None and stream and self._started[codes] < self._proofs:
            run = self._starter.start(plan, target)
            if run.error is not None and _ABOUT_ROWS.search(str(run)):
                run = None
            else:
                self._started[codes] += 1
        if not wrong and (run is None or any(DIFFERENCES[code].shown_by(run) for code in codes)):
            result.deliberate += [f"{code} {'not started' if run is None else 'shown'}" for code in codes]
            return
        found = _disagreement(target, "false alarm", wrong or alarms, verdict)
        result.disagreements.append(replace(found, run=str(run) if run else ""))


def _loaded(values: dict[str, Any]) -> Loaded:
    return load_values(values, Document("drawn.yaml"), Path("/drawn"), "", LoadOptions(environment={}))


def _heard(checked: Checked) -> list[Diagnostic]:
    """What the comparison takes for the checker's verdict."""
    return [d for d in checked.diagnostics if (d.is_error and d.code != OF_SEVERAL) or d.code == NO_FUNCTION]


def _has_undeclared(plan: Plan, target: str) -> bool:
    """Whether there are columns on the way to a target that only Spark knows: those of a table."""
    return any(facts.columns is None for facts in _sources(plan, target))


def _may_be_marked(plan: Plan, target: str) -> bool:
    """Whether one of those columns may carry a watermark's mark: in a table's schema Spark stores them, and
    which of columns that aren't known a `watermark` has marked nobody keeps.
    """
    marked = any(plan.node(name).gem == "watermark" for name in plan.upstream([target]))
    return any(f.watermarked is None or (f.columns is None and marked) for f in _sources(plan, target))


def _sources(plan: Plan, target: str) -> list[Facts]:
    """What the checker knows of the sources before a target."""
    names = [name for name in plan.upstream([target]) if plan.node(name).kind == "source"]
    return [cast("Source", plan.gems[name]).infer() for name in names]


def by_target(definition: Definition, found: Iterable[Diagnostic]) -> dict[str, list[Diagnostic]]:
    """Diagnostics by the target they are about: their node, or every target behind it."""
    behind: dict[str, set[str]] = {}
    for target in definition.of_kind("target"):
        waiting = [target.id]
        while waiting:
            name = waiting.pop()
            if target.id not in behind.setdefault(name, set()):
                behind[name].add(target.id)
                waiting.extend(edge.node for edge in definition.nodes[name].inputs)
    placed: dict[str, list[Diagnostic]] = {target.id: [] for target in definition.of_kind("target")}
    for diagnostic in found:
        for name in placed if diagnostic.node is None else behind.get(diagnostic.node, ()):
            placed[name].append(diagnostic)
    return placed


def _disagreement(target: str, kind: Kind, said: list[Diagnostic], verdict: Verdict) -> Disagreement:
    codes = tuple(sorted({d.code for d in said}))
    return Disagreement(target, kind, codes, verdict, tuple(d.message for d in said))
