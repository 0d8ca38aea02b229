"""The operators of a query that streams restrict: what a gem's `infer` tells the streaming rules.

Most operators can stand anywhere and are not told of. Those named here are allowed in some
output modes only, keep state, or are refused by some trigger (guide: *Unsupported operations*,
*Output modes*, *Continuous processing*). The rules are in `gem_bundle.check.streaming`; a gem only says
what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OperatorKind = Literal[
    "aggregate",
    "analytic_window",
    "cte",
    "current_time",
    "custom",
    "deduplicate",
    "except",
    "filter",
    "generate",
    "intersect",
    "join",
    "limit",
    "offset",
    "python",
    "repartition",
    "row_ids",
    "sample",
    "sort",
    "union",
    "unknown",
    "watermark",
    "with",
]
JoinType = Literal["inner", "left", "right", "full", "left_semi", "left_anti", "cross"]
LACKING: Mapping[str, frozenset[int]] = {
    "left": frozenset({1}),
    "right": frozenset({0}),
    "full": frozenset({0, 1}),
}
"""The inputs of a join, by their positions, whose columns are null where a row of the other one has no
partner, by the join's type; of types that aren't here none has such rows."""

TimeMode = Literal["none", "processing", "event"]
_STATEFUL = frozenset({"aggregate", "custom", "deduplicate", "limit"})
Option = str | tuple[str | int, ...]


def any_of(found: Iterable[bool | None]) -> bool | None:
    """Whether one of them is true; None where that depends on an unknown one."""
    known = list(found)
    return True if True in known else (None if None in known else False)


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator of a query.

    Two operators are the same only if they are one object: a query is a graph of them.

    Args:
        kind: What it is. ``unknown`` stands for whatever a gem does that can't tell; ``custom`` for an
            operator with state of its own; ``python`` for Python code that gets rows; ``cte`` for a
            common table expression, through which the query that uses it doesn't look in Spark's
            checks; ``with`` for that query as a whole, through which what comes behind it does.
        option: The option of the node that asks for it, so that a rule can point at it.
        inputs: The operators just before it. Set by `Facts.after`.
        streams: Whether each of its operands is a stream; None is unknown. Set by `Facts.after`.
        node: The id of the node. Set by the runtime.
    """

    kind: OperatorKind
    option: Option | None = None
    inputs: tuple[Operator, ...] = ()
    streams: tuple[bool | None, ...] = ()
    node: str = ""

    @property
    def streaming(self) -> bool | None:
        """Whether one of its operands is a stream."""
        return any_of(self.streams)

    @property
    def stateful(self) -> bool | None:
        """Whether it keeps state from one micro-batch to the next; None when that can't be told."""
        if self.kind == "join":
            return None if None in self.streams else all(self.streams)
        if self.kind == "unknown":
            return None if self.streaming is None or self.streaming else False
        return self.streaming if self.kind in _STATEFUL else False

    def below(self) -> Iterator[Operator]:
        """The operators before it, nearest first, each once."""
        return walk(self.inputs)


OperatorT = TypeVar("OperatorT", bound=Operator)


@dataclass(frozen=True, eq=False)
class EventTime:
    """One of several columns with a watermark that enter an operator with state.

    Args:
        name: The column, with its input's name in front where it has one: ``orders.at``.
        needed: The operator asks for it itself. Another one is there only if something behind asks
            for it: Spark's optimizer leaves out what nobody does.
    """

    name: str
    needed: bool = False


@dataclass(frozen=True, eq=False)
class AggregateOperator(Operator):
    """An aggregation, or an operator that Spark makes one of: ``select distinct``, ``except``.

    Args:
        event_time: It groups by a column that carries a watermark, as it is, or by a window over one.
        sessions: It groups by session windows.
        alone: It groups by nothing but session windows, and values that are the same for all rows.
        distinct: Its distinct aggregates, as they are written: ``count(distinct page)``.
        distinct_option: The option that has the first of them.
        rows: It is ``select distinct`` or SQL's ``union``: Spark doesn't sort behind it.
        windowed: A window over time is among its groups, so that there are ever more of them.
        folds: One of its groups is an expression that Spark's optimizer makes a column with a watermark of,
            ``struct(at).at``: too late for its check of the aggregation nearest to the sink.
        duration: The length of its windows, as an interval.
        delay: The delay of the watermark that it goes by.
        event_times: Its groups that are certain to carry a watermark.
        clock: An aggregate function with the current time among its arguments, as it is written.
        clock_option: The option that has it.
        key_types: The Spark types of its groups, in order, of ``select distinct`` those of its columns; None
            is unknown.
    """

    kind: OperatorKind = "aggregate"
    event_time: bool | None = None
    sessions: bool | None = None
    alone: bool = False
    distinct: tuple[str, ...] = ()
    distinct_option: Option | None = None
    rows: bool = False
    windowed: bool | None = None
    folds: bool = False
    duration: str | None = None
    delay: str | None = None
    event_times: tuple[str, ...] = ()
    clock: str = ""
    clock_option: Option | None = None
    key_types: tuple[str | None, ...] | None = None


@dataclass(frozen=True, eq=False)
class LimitOperator(Operator):
    """So many rows and no more.

    Args:
        rows: How many; None when that can't be told.
    """

    kind: OperatorKind = "limit"
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class DeduplicateOperator(Operator):
    """A removal of duplicates.

    Args:
        event_time: The columns that decide include one that carries a watermark.
        watermarked: Some column of the input carries one.
        within_watermark: Rows are remembered for as long as the watermark's delay only.
        event_times: The input's columns that are certain to carry one, where they are several.
        drops: It drops what comes again; otherwise such rows are told apart from others behind it.
    """

    kind: OperatorKind = "deduplicate"
    event_time: bool | None = None
    watermarked: bool | None = None
    within_watermark: bool = False
    event_times: tuple[EventTime, ...] = ()
    drops: bool = True

    @property
    def by_event_time(self) -> bool:
        """Whether a watermark decides which rows are late and how long one is remembered, or may."""
        return self.within_watermark or self.event_time is not False


@dataclass(frozen=True, eq=False)
class JoinOperator(Operator):
    """A join. What is about watermarks is asked of a join of two streams only.

    Args:
        how: Which rows stay.
        how_option: The option that says so; `option` is the condition.
        names: The names of its inputs.
        equality: Some columns must be equal, so that Spark can bring partners together.
        event_time_key: One of those columns carries a watermark.
        bounded: Whether a range of time bounds how long rows of the first and of the second input
            are kept.
        watermarked: Whether a column of the first and of the second input carries a watermark.
        times: The columns that carry it, where there is one certain on a side.
        event_times: The same of the first and of the second input, where they are several on a side.
        clock: Its condition asks for the current time.
    """

    kind: OperatorKind = "join"
    how: JoinType = "inner"
    how_option: Option | None = None
    names: tuple[str, str] = ("left", "right")
    equality: bool | None = None
    event_time_key: bool | None = None
    bounded: tuple[bool | None, bool | None] = (None, None)
    watermarked: tuple[bool | None, bool | None] = (None, None)
    times: tuple[str | None, str | None] = (None, None)
    event_times: tuple[tuple[EventTime, ...], tuple[EventTime, ...]] = ((), ())
    clock: bool = False


@dataclass(frozen=True, eq=False)
class StatefulOperator(Operator):
    """A stateful processor of the pipeline's own: Spark's `transformWithState`.

    Args:
        processor: Its class, as ``module:Class``.
        time: What its timers go by.
        mode: The output mode that it declares.
        watermarked: Some column of its rows carries a watermark.
        event_time: One of the columns that come out carries it on.
        rows: It takes and gives rows, and not pandas data frames.
    """

    kind: OperatorKind = "custom"
    processor: str = ""
    time: TimeMode = "none"
    mode: str = "append"
    watermarked: bool | None = None
    event_time: bool = False
    rows: bool = True


@dataclass(frozen=True, eq=False)
class WatermarkOperator(Operator):
    """A watermark.

    Args:
        column: The column it stands on.
        delay: How late rows may be, as an interval.
    """

    kind: OperatorKind = "watermark"
    column: str = ""
    delay: str = ""


Test = Callable[[Operator], bool]


class Ancestry:
    """Which operators come before which, in the queries of a pipeline.

    A question costs next to nothing, however many operators there are; walking anew for each would take
    the square of their number.

    Args:
        operators: The operators nearest to the sinks.
    """

    def __init__(self, operators: Iterable[Operator]) -> None:
        self.operators = _inputs_first(operators)
        self._bit = {id(operator): 1 << n for n, operator in enumerate(self.operators)}
        self._before: dict[int, int] = {}
        for operator in self.operators:
            mask = 0
            for before in operator.inputs:
                mask |= self._before[id(before)] | self._bit[id(before)]
            self._before[id(operator)] = mask
        self._nearest: dict[tuple[Test, Test | None], dict[int, Operator]] = {}

    def is_before(self, before: Operator, operator: Operator) -> bool:
        """Whether the rows of one operator reach another one."""
        return bool(self._before[id(operator)] & self._bit[id(before)])

    def before(self, operator: Operator, among: Iterable[OperatorT]) -> list[OperatorT]:
        """Those of some operators whose rows reach an operator."""
        mask = self._before[id(operator)]
        return [candidate for candidate in among if mask & self._bit[id(candidate)]]

    def before_any(self, operators: Iterable[Operator], among: Iterable[OperatorT]) -> list[OperatorT]:
        """Those of some operators whose rows reach any of these."""
        mask = 0
        for operator in operators:
            mask |= self._before[id(operator)]
        return [candidate for candidate in among if mask & self._bit[id(candidate)]]

    def nearest(self, wanted: Test, stop: Test | None = None) -> dict[int, Operator]:
        """For every operator by its `id`, the nearest one before it that is wanted, where there is one.

        Args:
            wanted: Which ones.
            stop: Beyond which ones not to look.
        """
        known = self._nearest.get((wanted, stop))
        if known is not None:
            return known
        found = self._nearest[wanted, stop] = {}
        for operator in self.operators:
            for before in operator.inputs:
                if stop is not None and stop(before):
                    continue
                nearest = before if wanted(before) else found.get(id(before))
                if nearest is not None:
                    found.setdefault(id(operator), nearest)
        return found


def _inputs_first(operators: Iterable[Operator]) -> list[Operator]:
    """These operators and all before them, each once and behind its inputs."""
    found: dict[int, Operator] = {}
    waiting = list(operators)
    while waiting:
        operator = waiting[-1]
        missing = [before for before in operator.inputs if id(before) not in found]
        if missing and id(operator) not in found:
            waiting.extend(missing)
        else:
            found.setdefault(id(operator), waiting.pop())
    return list(found.values())


def walk(operators: Iterable[Operator]) -> Iterator[Operator]:
    """These operators and all before them, nearest first, each once."""
    seen: set[int] = set()
    waiting = list(operators)[::-1]
    while waiting:
        operator = waiting.pop()
        if id(operator) not in seen:
            seen.add(id(operator))
            yield operator
            waiting.extend(operator.inputs[::-1])
