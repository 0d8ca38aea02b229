"""What is known of the rows that flow through a pipeline before anything runs.

None always means *unknown*, and no rule that needs the fact fires: never a false alarm.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gem_bundle.operators import EventTime, Operator, any_of, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

UNKNOWN_DELAY = "unknown"
"""The `Column.delay` of a column that may be event time and may be not, so that no rule that misses a
watermark fires on it."""

MAX_COLUMNS = 500
"""Of more columns nothing is known: joins of a node with itself can double them again and again."""

REJECTED = "rejected"
"""The name of the output for rows that a gem can't use; see `gem_bundle.rejected`."""

UNKNOWN_OPERATOR = Operator("unknown")

# Operators behind which a column may carry a watermark though none before did.
_MAY_MARK = frozenset({"watermark", "unknown", "custom", "python"})
"""Stands for the operators of a gem that can't tell what it is made of."""


@dataclass(frozen=True, slots=True)
class Unsteady:
    """Why a column has another value in each query, and in each try of one, though its row is the same.

    Args:
        column: The name under which it was made.
        what: What makes it so: ``rand``.
        why: What that does: ``is left to chance``.
        node: The node that makes it; empty until that is known.
    """

    column: str
    what: str
    why: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column as far as it is known before Spark runs.

    Args:
        name: Its name.
        type: Its Spark type as DDL (``bigint``, ``struct<a: int>``), or None when unknown.
        delay: The watermark's delay when the column is event time, for example ``10 minutes``.
        session: It is the window of sessions of an aggregation.
        qualifier: The name of the input it comes from, by which expressions may call it:
            ``orders.id``.
        marks: Event time inside a column of a complex type, which is event time again when it is taken
            out: the way to each field in lower case, and its delay. A step into an array is ``0``, into
            a map's values ``1``.
        entered: What it was when it entered operators with state (see `entering`): where it is, those
            are needed. It doesn't count when columns are compared.
        unsteady: Why its values aren't the same in each query; None where nothing is known of that. It
            doesn't count when columns are compared.
    """

    name: str
    type: str | None = None
    delay: str | None = None
    session: bool = False
    qualifier: str | None = None
    marks: tuple[tuple[tuple[str, ...], str], ...] = ()
    entered: tuple[EventTime, ...] = field(default=(), compare=False, repr=False)
    unsteady: Unsteady | None = field(default=None, compare=False, repr=False)

    @property
    def watermarked(self) -> bool | None:
        """Whether it carries a watermark; None when that can't be told."""
        return None if self.delay == UNKNOWN_DELAY else self.delay is not None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about the rows that flow out of a node, before anything runs.

    Args:
        streaming: Whether it is a stream; False is a static relation.
        columns: The columns in order, or None when they can't be known, or are more than `MAX_COLUMNS`.
        bounded: Whether the rows come to an end by themselves.
        operators: The operators passed through, those nearest to the output; each knows the ones
            before it. A gem that can't tell leaves an operator of the kind ``unknown``. They don't count
            when facts are compared.
        hidden: The names, in lower case, of columns that a projection before has left out: Spark still
            finds them for a filter, a sort or a repartition. None when there may be any, because the
            columns before are unknown.
        qualifiers: The names, in lower case, that may stand before a column's: ``orders.id``. None when
            there may be any, such as a table's own.
        unmarked: No column carries a watermark for certain, though the columns are unknown.
    """

    streaming: bool | None = None
    columns: tuple[Column, ...] | None = None
    bounded: bool | None = None
    operators: tuple[Operator, ...] = field(default=(), compare=False)
    hidden: frozenset[str] | None = field(default=frozenset(), compare=False)
    qualifiers: frozenset[str] | None = field(default=None, compare=False)
    unmarked: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.columns is not None and len(self.columns) > MAX_COLUMNS:
            object.__setattr__(self, "columns", None)

    @property
    def event_time(self) -> tuple[Column, ...] | None:
        """The columns that carry a watermark, or None when the columns are unknown."""
        if self.columns is None:
            return None
        return tuple(column for column in self.columns if column.delay is not None)

    @property
    def watermarked(self) -> bool | None:
        """Whether some column carries a watermark."""
        if self.columns is None:
            return False if self.unmarked else None
        return any_of(column.watermarked for column in self.columns)

    @property
    def time(self) -> str | None:
        """The name of the only column that is certain to carry a watermark."""
        certain = [column for column in self.columns or () if column.watermarked]
        return certain[0].name if len(certain) == 1 else None

    def column(self, name: str) -> Column | None:
        """The column of that name, as Spark finds it (case-insensitively), if it is known."""
        for column in self.columns or ():
            if column.name.lower() == name.lower():
                return column
        return None

    def with_columns(self, columns: Iterable[Column] | None) -> Facts:
        """The same rows with other columns, behind which Spark still finds the ones before (`hidden`).

        Args:
            columns: The columns; None makes them unknown.
        """
        made = self.with_all_columns(columns)
        if made.columns is None or self.hidden is None or self.columns is None:
            return replace(made, hidden=None)
        left_out = {column.name.lower() for column in self.columns}
        hidden = (self.hidden | left_out) - {column.name.lower() for column in made.columns}
        return replace(made, hidden=hidden)

    def with_all_columns(self, columns: Iterable[Column] | None) -> Facts:
        """The same rows with other columns, behind which there are no more: of a join, a union, a table.

        Args:
            columns: The columns; None makes them unknown.
        """
        if columns is None:
            return replace(self, columns=None, hidden=frozenset(), unmarked=self.watermarked is False)
        if self.columns is None and self.unmarked:  # what is made of them may not be known, and isn't marked
            columns = [replace(c, delay=None) if c.delay == UNKNOWN_DELAY else c for c in columns]
        return replace(self, columns=tuple(columns), hidden=frozenset())

    def called(self, name: str) -> Facts:
        """The same rows as an input of that name, so that expressions may write ``name.column``."""
        called = frozenset({name.lower()})
        if self.columns is None:
            return replace(self, hidden=frozenset(), qualifiers=called)
        if self.qualifiers == called and self.hidden == frozenset():
            return self
        # Not by `replace`, which takes eight times as long: this is done for every input of every join.
        columns = tuple(
            Column(c.name, c.type, c.delay, c.session, name, c.marks, c.entered, c.unsteady)
            for c in self.columns
        )
        return replace(self, columns=columns, hidden=frozenset(), qualifiers=called)

    def unqualified(self) -> Facts:
        """The same rows where no name may stand before a column's any more, and a column left out is gone."""
        columns = None if self.columns is None else tuple(replace(c, qualifier=None) for c in self.columns)
        return replace(self, columns=columns, hidden=frozenset(), qualifiers=frozenset())

    def after(self, operator: Operator) -> Facts:
        """The facts behind one more operator.

        Args:
            operator: Its `inputs` and `streams` are set here, unless it has them already.
        """
        if not operator.inputs:
            operator = replace(operator, inputs=self.operators)
        if not operator.streams:
            operator = replace(operator, streams=(self.streaming,))
        unmarked = self.unmarked and operator.kind not in _MAY_MARK
        return replace(self, operators=(operator,), unmarked=unmarked)

    def all_operators(self) -> Iterator[Operator]:
        """All operators passed through, nearest first, each once."""
        return walk(self.operators)


def output_key(node: str, output: str | None) -> str:
    """By which the facts of an output are found among those of all nodes: ``routed``, ``routed.errors``.

    Args:
        node: The id of the node.
        output: The name of the output; None or empty for the ordinary one.
    """
    return f"{node}.{output}" if output else node


def merged(inputs: Iterable[Facts]) -> Facts:
    """What is certain about a node that combines several inputs: a stream if any of them is one.

    The columns are unknown; the operators are those of all inputs, in input order.
    """
    known = list(inputs)
    operators = {id(operator): operator for facts in known for operator in facts.operators}
    bounds = [facts.bounded for facts in known]
    bounded = False if False in bounds else (None if None in bounds else True)
    names = [facts.qualifiers for facts in known]
    qualifiers = frozenset[str]().union(*(found for found in names if found is not None))
    return Facts(
        streaming=any_of(facts.streaming for facts in known),
        bounded=bounded,
        operators=tuple(operators.values()),
        qualifiers=None if None in names else qualifiers,
        unmarked=bool(known) and all(facts.watermarked is False for facts in known),
    )


def combined(operator: Operator, inputs: Iterable[Facts]) -> Facts:
    """What is certain about an operator over several inputs, its columns unknown.

    Args:
        operator: Its `inputs` and `streams` are set here.
        inputs: The facts of its operands, in order.
    """
    known = list(inputs)
    facts = merged(known)
    streams = tuple(found.streaming for found in known)
    made = replace(operator, inputs=facts.operators, streams=streams)
    qualifiers = None if operator.kind == "unknown" else facts.qualifiers
    unmarked = facts.unmarked and operator.kind not in _MAY_MARK
    return replace(facts, operators=(made,), qualifiers=qualifiers, unmarked=unmarked)


def event_times(columns: Iterable[Column]) -> list[Column]:
    """The columns that are certain to carry a watermark, and to be different ones.

    One that was selected twice is one; with another name it is another one.
    """
    named: dict[str, dict[str | None, Column]] = {}
    for column in columns:
        if column.watermarked:
            named.setdefault(column.name.lower(), {}).setdefault(column.qualifier, column)
    # Where one has no qualifier it may be any of those that have one.
    return [
        column
        for same in named.values()
        for qualifier, column in same.items()
        if qualifier is not None or len(same) == 1
    ]


def entering(facts: Facts, needed: Callable[[Column], bool]) -> tuple[Facts, tuple[EventTime, ...]]:
    """The columns with a watermark that enter an operator with state, where a stream has several.

    Args:
        facts: What enters it.
        needed: Which columns the operator asks for itself.

    Returns:
        The facts, with columns that tell wherever they come that they are still needed here; and the
        event times, none where the stream doesn't have several.
    """
    found = event_times(facts.columns or ()) if facts.streaming else []
    if len(found) < 2:
        return facts, ()
    times = {
        (column.name.lower(), column.qualifier): EventTime(
            f"{column.qualifier}.{column.name}" if column.qualifier else column.name, needed(column)
        )
        for column in found
    }
    columns = []
    for column in facts.columns or ():
        time = times.get((column.name.lower(), column.qualifier))
        columns.append(column if time is None else replace(column, entered=(*column.entered, time)))
    return replace(facts, columns=tuple(columns)), tuple(times.values())
