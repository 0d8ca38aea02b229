"""Where a backfill would lose rows, or write some twice: said before anything starts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from gem_bundle.backfill.column import TimeColumn, target_facts, time_column, trace
from gem_bundle.backfill.interval import FIRST_MOMENT, LAST_MOMENT, earlier, length_of, shown
from gem_bundle.changes.canonical import version_of
from gem_bundle.changes.history import what_ran
from gem_bundle.changes.sides import new_side, old_side
from gem_bundle.changes.ways import can_be_read_again, writers_beside
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.operators import AggregateOperator, DeduplicateOperator, JoinOperator
from gem_bundle.plugins import load_registry
from gem_bundle.run.places import absolute_place, owners_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gem_bundle.backfill.column import Trace
    from gem_bundle.backfill.interval import Interval
    from gem_bundle.changes.checkpoint import SparkCheckpoint
    from gem_bundle.changes.record import Record
    from gem_bundle.changes.sides import Side
    from gem_bundle.gem import Target
    from gem_bundle.operators import Operator
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

_INTO = "Write it to another place with `--into`, and look at it with `--compare` first."
_RUN_FIRST = "Run the pipeline first, or write to another place with `--into`."
_ELSEWHERE = "Name another place with `--into`"
_WHOLE = "Leave `--margin` and `--partition` away, so that its sources are read whole."
_NO_MICRO_BATCHES = frozenset({"continuous", "real_time"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a backfill is to do.

    Args:
        target: The id of the target.
        interval: The span of time.
        column: The column that it is on, if somebody named one.
        into: Another place to write to; None for the target's own.
        compare: Only tell the differences.
    """

    target: str
    interval: Interval
    column: str | None = None
    into: str | None = None
    compare: bool = False

    @property
    def replaces(self) -> bool:
        """Whether it puts rows in the place of those that the live run has written."""
        return self.into is None and not self.compare


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found out before the start.

    Args:
        problems: Why it can't be done.
        column: The column that the interval is on.
        bounded: Sources must not be read further than the live run has, which may yet write such rows.
        side: What leads to the target; None where that wasn't looked at.
        reach: How much earlier or later than the interval its rows' own rows may be: the length of windows.
    """

    problems: tuple[Diagnostic, ...] = ()
    column: TimeColumn | None = None
    bounded: bool = False
    side: Side | None = None
    reach: timedelta = timedelta(0)


def judge(
    plan: Plan,
    wanted: Wanted,
    checkpoint: SparkCheckpoint | None,
    record: Record | None,
    environment: Mapping[str, str] | None = None,
    *,
    cut: bool = False,
) -> Judged:
    """Whether an interval can be computed anew, with no row lost or written twice.

    Args:
        plan: The checked pipeline.
        wanted: What is to be done.
        checkpoint: What Spark left of the live run; None when there is nothing.
        record: What is kept of what ran.
        environment: Environment variables, for the project's settings; None is the process's.
        cut: Only what came to the sources about the interval is read, and not all that they have.
    """
    node = plan.node(wanted.target)
    judge = _Judge(plan, wanted, checkpoint, cut=cut)
    judge.check_target(node)
    if judge.problems:
        return Judged(tuple(judge.problems))
    column = time_column(target_facts(plan, node.id), wanted.column)
    if isinstance(column, str):
        judge.refuse("GB451", f"there is no column that an interval can be on: {column}", _NAME_A_COLUMN)
        return Judged(tuple(judge.problems))
    if column.kind == "date" and not wanted.interval.whole_days:
        why = f"`{column}` is a date, and {wanted.interval} isn't in whole days"
        judge.refuse("GB451", why, "Give dates.")
    side = new_side(version_of(plan, node.id, environment=environment), plan, node.id)
    found = trace(side, column)
    judge.check_operators(side, column, found)
    judge.check_sources(side)
    if wanted.replaces:
        judge.check_live(node)
        if not judge.problems:
            judge.check_column(column, found, record)
    if wanted.into is None and not judge.problems:
        judge.check_over(side, found)
    aggregates = [operator for operator in side.stateful if isinstance(operator, AggregateOperator)]
    reach = judge.reach(aggregates) if cut and not judge.problems else timedelta(0)
    return Judged(tuple(judge.problems), column, not aggregates, side, reach)


_NAME_A_COLUMN = (
    "Name one with `--column`: a column that the target has, such as `at`, or `window.start` of a window."
)


_HOW = {"is": "names", "lies in": "names a place in", "holds": "names a folder around"}


def _elsewhere(gem: Target) -> str:
    """What to do about a place that can't be written to."""
    if gem.semantics.replaces_intervals:
        return f"{_ELSEWHERE}, or leave it out: then the rows of the interval in its own are replaced."
    return f"{_ELSEWHERE}."


class _Judge:
    def __init__(
        self, plan: Plan, wanted: Wanted, checkpoint: SparkCheckpoint | None, *, cut: bool = False
    ) -> None:
        self._plan = plan
        self._wanted = wanted
        self._checkpoint = checkpoint
        self._cut = cut
        self.problems: list[Diagnostic] = []

    def refuse(self, code: str, why: str, hint: str, node: str | None = None) -> None:
        name = node or self._wanted.target
        found = self._plan.node(name)
        place = self._plan.definition.locator.place(found.path, key=True)
        message = f"target `{self._wanted.target}` can't be computed anew for a time: {why}"
        self.problems.append(Diagnostic(code, "error", message, name, found.path, place, hint))

    def check_target(self, node: Node) -> None:
        """A stream that adds rows, into a place where rows can be put in the place of others."""
        plan, wanted = self._plan, self._wanted
        if plan.definition.mode == "batch":
            self.refuse("GB450", "the pipeline is a batch already", "Run it: `gem-bundle run`.")
            return
        gem = cast("Target", plan.gems[node.id])
        if wanted.into is not None:
            self.check_into(wanted.into, gem)
            return
        if node.group:
            why = f"it is in the group `{node.group}`, and a table can't tell whose micro-batches it has"
            self.refuse("GB384", why, _INTO)
        if not gem.semantics.replaces_intervals:
            what = "be compared" if wanted.compare else "take the place of others in one step"
            why = f"rows of `{node.gem}` can't {what}"
            self.refuse("GB450", why, "Write to a table with `--into`.")
        elif node.output_mode != "append":
            why = f"in the mode `{node.output_mode}` its rows are written again and again"
            self.refuse("GB450", why, _INTO)
        for other in writers_beside(plan, node.id):
            why = f"target `{other}` writes to the same place, and its rows would be gone"
            self.refuse("GB450", why, _INTO, other)

    def check_into(self, into: str, gem: Target) -> None:
        """Another place is one that nothing of the pipeline has, however it is written."""
        if not into.strip():
            self.refuse("GB450", "`--into` is empty, and names no place", _elsewhere(gem))
            return
        if self._wanted.compare:
            return  # it is read only
        for node, kind, how in owners_of(self._plan, absolute_place(into)):
            if kind == "target":
                is_own = node == self._wanted.target
                has = "the place that it writes to itself" if is_own else f"what target `{node}` writes to"
                so = "rows would be there twice" if is_own else "rows of both would be mixed there"
            elif kind == "source":
                has, so = f"what source `{node}` reads", "it would read what is written there"
            elif kind == "checkpoint":
                has = f"the checkpoint of `{node}`" if node else "the folder with the pipeline's checkpoints"
                so = "that is Spark's alone"
            else:
                has, so = "the pipeline's own file", "a table has its folder for itself"
            so = so if how == "is" else "a table has its folder for itself, and removes other files from it"
            self.refuse("GB450", f"`--into` {_HOW[how]} {has}: {so}", _elsewhere(gem), node)

    def check_operators(self, side: Side, column: TimeColumn, found: Trace) -> None:
        """Whether a row of the interval is the same one, whatever lies outside."""
        replaces = self._wanted.replaces
        inside = "Only with `--into` or `--compare` it can be left to a batch." if replaces else _WHOLE
        aggregates = any(isinstance(operator, AggregateOperator) for operator in side.stateful)
        for operator in side.stateful:
            why, everywhere = self._depends(operator, column, found)
            if isinstance(operator, JoinOperator) and not why and aggregates and replaces:
                why = f"`{operator.node}` joins two streams before they are aggregated, and when a group of "
                why += "them is over can't be known"
            if isinstance(operator, AggregateOperator) and not why and found.loose and replaces:
                why = f"`{column}` isn't what `{operator.node}` groups by, but something made of it"
            if why and (everywhere or replaces or self._cut):
                self.refuse("GB452", why, "" if everywhere else inside, operator.node or None)

    def _depends(self, operator: Operator, column: TimeColumn, found: Trace) -> tuple[str, bool]:
        """Why rows depend on others outside of an interval; and whether that keeps any batch from it."""
        name = f"`{operator.node}`"
        if isinstance(operator, AggregateOperator):
            if operator.sessions is not False:
                return f"sessions of {name} may begin in the interval and end outside of it", False
            if operator.event_time is not True:
                return f"{name} doesn't group by event time, so each group has rows of any time", False
        elif isinstance(operator, DeduplicateOperator):
            if operator.within_watermark:
                what = "drops" if operator.drops else "finds"
                return f"{name} {what} duplicates within the watermark, and a batch has none", True
            if operator.node in found.unkeyed:
                why = f"{name} keeps the first of some duplicates, which goes by when they came, not by"
                return f"{why} `{column}`", True
        elif isinstance(operator, JoinOperator):
            if operator.how != "inner":
                return (
                    f"whether a row of {name} has a partner ({operator.how}) may be known later only",
                    False,
                )
        elif operator.kind == "limit":
            return f"which rows {name} takes goes by when they came", True
        else:
            gem = self._plan.node(operator.node).gem if operator.node else operator.kind
            return f"`{gem}` doesn't say which rows {name} puts together", False
        return "", False

    def reach(self, aggregates: Sequence[AggregateOperator]) -> timedelta:
        """How far from an interval rows may be that its windows are made of."""
        length = timedelta(0)
        for operator in aggregates:
            if operator.duration is not None:
                length += length_of(operator.duration)
            elif operator.windowed is not False:
                why = (
                    f"how long the windows of `{operator.node}` are isn't known, so not which rows they have"
                )
                self.refuse("GB452", why, _WHOLE, operator.node)
        return length

    def check_sources(self, side: Side) -> None:
        """Whether the rows can be read once more."""
        for node in side.version.nodes:
            if node.kind != "source" or node.mode == "batch":
                continue
            if not can_be_read_again(self._plan, node.id):
                why = f"its source `{node.id}` (`{node.gem}`) keeps no rows that could be read once more"
                self.refuse("GB453", why, "", node.id)

    def check_live(self, node: Node) -> None:
        """Whether it is known what the live run has written and will write."""
        checkpoint = self._checkpoint
        if checkpoint is None or not checkpoint.commits:
            why = "no micro-batch of it is done yet, and the first run would write the same rows again"
            self.refuse("GB454", why, _RUN_FIRST)
        elif not checkpoint.named:
            why = "its checkpoint has no names of sources, so that it can't be said what was read of which"
            self.refuse("GB454", why, _INTO)
        elif node.trigger.kind in _NO_MICRO_BATCHES:
            self.refuse("GB454", f"with the trigger `{node.trigger.kind}` micro-batches don't end", _INTO)

    def check_column(self, column: TimeColumn, found: Trace, record: Record | None) -> None:
        """Whether rows that are there have the time that they would get now."""
        versions = what_ran(record, self._checkpoint).versions if record is not None else ()
        untold = versions[0].first_batch if versions else None
        if untold != 0:
            # No later run tells it either: its record begins where that run does.
            these = "are there" if untold is None else f"micro-batches before {untold} have written"
            why = f"no record tells how `{column}` of the rows was made that {these}"
            self.refuse("GB451", why, _INTO)
            return
        if found.origin is None:
            why = f"how `{column}` is made can't be followed to the sources"
            self.refuse("GB451", why, _INTO)
            return
        registry = load_registry()
        columns = {
            node.identity: known
            for node in self._plan.definition.of_kind("source")
            if (known := self._plan.facts[node.id].columns) is not None
        }
        for version in reversed(versions):
            if trace(old_side(version, registry, columns), column).origin != found.origin:
                why = (
                    f"`{column}` was made in another way from micro-batch {version.first_batch} on, so that "
                    "rows which are there may belong to another time now"
                )
                self.refuse("GB451", why, _INTO)
                return

    def check_over(self, side: Side, found: Trace) -> None:
        """Whether all groups of the interval have been written, and none will come."""
        groups = [operator for operator in side.stateful if isinstance(operator, AggregateOperator)]
        done = done_watermark(self._checkpoint) if self._checkpoint is not None else None
        if not groups or self._checkpoint is None:
            return
        if done is None:
            self.refuse("GB454", "the live run has no watermark yet", _INTO)
            return
        length = timedelta(0)
        for operator in groups if found.beyond else ():
            if operator.windowed is not False and operator.duration is None:
                why = f"how long the windows of `{operator.node}` are isn't known, so not when they are over"
                self.refuse("GB454", why, "Name their end: `--column window.end`.", operator.node)
                return
            length += length_of(operator.duration) if operator.duration else timedelta(0)
        if done - self._wanted.interval.end < length:
            last = shown(earlier(done, length))
            why = (
                f"windows of {self._wanted.interval} are still open in the live run, whose watermark is "
                f"{shown(done)}"
            )
            self.refuse("GB454", why, f"Take an interval that ends at {last} at the latest.")


def done_watermark(checkpoint: SparkCheckpoint) -> datetime | None:
    """The watermark of the last micro-batch that is done: what is over by it has been written.

    Args:
        checkpoint: What Spark left, of the last two micro-batches.
    """
    last = checkpoint.next_batch - 1
    found = next((offsets.watermark for offsets in checkpoint.offsets if offsets.batch == last), None)
    if not found:
        return None
    try:
        return datetime.fromtimestamp(found / 1000, UTC)
    except (OverflowError, ValueError):  # one broken time of a row is enough for that
        return LAST_MOMENT if found > 0 else FIRST_MOMENT
