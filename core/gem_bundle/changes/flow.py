"""One side's transforms: what they make of what, what they keep, and what they hand on."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from gem_bundle.changes.brought import brought, inputs_in
from gem_bundle.changes.left_out import LeftOut
from gem_bundle.changes.lineages import lineage_of
from gem_bundle.changes.needed import ALL, Needed, values_for
from gem_bundle.changes.nulls import Nulls
from gem_bundle.changes.parts import Parts
from gem_bundle.changes.passing import lets_go_at_once
from gem_bundle.changes.results import tell_of_rows
from gem_bundle.changes.sides import is_same_in
from gem_bundle.changes.standing import Standing
from gem_bundle.lineage import column_keys
from gem_bundle.operators import (
    AggregateOperator,
    DeduplicateOperator,
    JoinOperator,
    LimitOperator,
    WatermarkOperator,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from gem_bundle.changes.record import InputRecord
    from gem_bundle.changes.sides import Side
    from gem_bundle.gem import Transform
    from gem_bundle.lineage import Kept, Lineage

_BY_ROW = frozenset({"filter", "union"})


class Flow:
    """One side's transforms with what they make of what.

    Args:
        side: The side.
        other: The other side's: what the same transform makes of the same columns is found out once.
        output_mode: That by which its results come out from now on; its own if there is none.

    Attributes:
        output_mode: That by which results come out from now on.
        joined: How Spark joins, of the joins of which that was asked.
        taken_apart: What `gem_bundle.changes.steps.in_steps` has made of it, once that was asked.
    """

    def __init__(self, side: Side, other: Flow | None = None, output_mode: str = "") -> None:
        self.side = side
        self.output_mode = output_mode or side.nodes[side.target].output_mode
        self._other = other
        self._lineages: dict[tuple[str, str], Lineage | None] = {}
        self._left: dict[tuple[str, str], Lineage | None] = {}
        self._handed_on: dict[tuple[str, str], frozenset[str]] = {}
        self.joined: dict[JoinOperator, str] = {}
        self.taken_apart: tuple[Flow, Mapping[str, str]] | None = None

    def lineage(self, name: str, output: str = "") -> Lineage | None:
        """What a transform makes of what, in one of its outputs; None where that isn't known."""
        key = (name, output)
        if key not in self._left:
            told = self._as_told(name, output)
            self._left[key] = None if told is None else self.standing.of(name, told)
        return self._left[key]

    def _as_told(self, name: str, output: str = "") -> Lineage | None:
        """The same with what Spark leaves out by what it knows of columns."""
        return self._brought[name] if name in self._brought and not output else self._told(name, output)

    @property
    def updates(self) -> bool:
        """Whether of groups nothing comes out but of those that rows have come for."""
        return self.output_mode == "update"

    @cached_property
    def nulls(self) -> Nulls:
        """What is never null."""
        return Nulls(self.side, self._as_told)

    @cached_property
    def standing(self) -> Standing:
        """What Spark leaves of what nodes make of what."""
        return Standing(self.side, self._as_told, self.nulls)

    @cached_property
    def parts(self) -> Parts:
        """What is read of what is put together."""
        transforms = [name for name, node in self.side.nodes.items() if node.kind == "transform"]
        return Parts(self.side, {n: [self.lineage(n, o) for o in self.outputs(n)] for n in transforms})

    @cached_property
    def needed(self) -> Needed:
        """Which columns are read."""
        return Needed(self.side, self.lineage, self.standing, self.parts)

    def outputs(self, name: str) -> list[str]:
        """The outputs of a node that others take; the ordinary one is an empty text."""
        edges = (edge for node in self.side.nodes.values() for edge in node.inputs if edge.node == name)
        return sorted({edge.output for edge in edges})

    def _told(self, name: str, output: str = "") -> Lineage | None:
        """What the gem of a transform says that it makes of what."""
        gem = self.side.gems.get(name)
        if gem is None or gem.kind != "transform":
            return None
        key = (name, output)
        if key not in self._lineages:
            if self._other is not None and self._is_the_same_in(self._other.side, name):
                self._lineages[key] = self._other._told(name, output)
            else:
                inputs = inputs_in(self.side, name)
                self._lineages[key] = lineage_of(cast("Transform", gem), inputs, output)
        return self._lineages[key]

    @cached_property
    def _brought(self) -> dict[str, Lineage | None]:
        """What those nodes make of what by which columns go on to a filter though they were left out."""
        return brought(self.side, self._told)

    def _is_the_same_in(self, other: Side, name: str) -> bool:
        """Whether a node of that name does the same there, with inputs of which the same is known."""
        if not is_same_in(other, self.side.nodes[name]):
            return False
        ours, theirs = (inputs_in(side, name) for side in (self.side, other))
        return ours == theirs and all(
            one.qualifiers == two.qualifiers for one, two in zip(ours, theirs, strict=True)
        )

    def keeps(self, name: str) -> bool:
        """Whether a node keeps state, or may."""
        return bool(self.kinds_of_state(name))

    def kinds_of_state(self, name: str) -> list[str]:
        """The kinds of the operators by which a node keeps state, or may."""
        kept = [str(o.kind) for o in self.side.operators_at(name) if self.side.may_keep(o)]
        return kept if kept and not self.leaves_out(name) else []

    def leaves_out(self, name: str) -> bool:
        """Whether Spark leaves a node out, since nobody would know of it."""
        return name in self._left_out

    @cached_property
    def _left_out(self) -> LeftOut:
        return LeftOut(self.side, self.lineage, self.needed.behind, self._functions)

    def _functions(self, name: str) -> list[str] | None:
        """The aggregate functions that are needed of a node that forms groups; None where not known."""
        lineage = self.lineage(name)
        kept = lineage.kept if lineage is not None else None
        if kept is None or kept.rows:
            return None
        made = values_for(kept, self.needed.behind(name)).values()
        if None in made:
            return None
        return [function for functions in made for function in functions or ()]

    def keeps_rows(self, name: str) -> bool:
        """Whether a node that keeps state keeps rows, as a join does, or may."""
        lineage = self.lineage(name)
        return lineage is None or lineage.kept is None or lineage.kept.rows

    def recalls(self, name: str) -> bool:
        """Whether anything of what a node keeps gets into results, or may.

        Where only which groups there are is read, `update` gives those that rows have just come for.
        """
        kept = self._updated(name)
        return self._has_some_left(name) if kept is None else bool(self._read_results(name, kept))

    def recalls_rows(self, name: str) -> bool:
        """Whether it gets into results which rows a node has had, or may: not only which groups there are."""
        kept = self._updated(name)
        if kept is None:
            return self._has_some_left(name)
        return tell_of_rows(kept, self._read_results(name, kept))

    def is_one_group(self, name: str) -> bool:
        """Whether a node aggregates all rows into one: with `update` that comes out with each micro-batch."""
        lineage = self.lineage(name)
        kinds = {operator.kind for operator in self.side.stateful if operator.node == name}
        kept = lineage.kept if lineage is not None else None
        return kinds == {"aggregate"} and kept is not None and not kept.keys

    def _has_some_left(self, name: str) -> bool:
        """Whether anything of what a node keeps is there when the next micro-batch begins, or may be."""
        return self.keeps(name) and not lets_go_at_once(self.side, name, self.lineage)

    def _updated(self, name: str) -> Kept | None:
        """What is kept of groups where those come out that rows have come for; None for anything else."""
        lineage = self.lineage(name) if self.keeps(name) else None
        kept = lineage.kept if lineage is not None else None
        if kept is None or kept.rows or not self.updates:
            return None
        kinds = [operator.kind for operator in self.side.stateful if operator.node == name]
        return kept if kinds == ["aggregate"] else None

    def _read_results(self, name: str, kept: Kept) -> Set[str]:
        needed = self.needed.behind(name) | kept.reads
        return kept.values.keys() if ALL in needed else kept.values.keys() & needed

    def constant(self, name: str, output: str, key: str) -> str | None:
        """How a column is made that is the same in each row; None where it is made of what comes in."""
        lineage = self.lineage(name, output) if self.side.nodes[name].kind == "transform" else None
        made = lineage.columns.get(key) if lineage is not None else None
        if made is None or made.uses is None:
            return None
        texts = [made.rule]
        for use in sorted(made.uses):
            position, _, column = use.partition(":")
            edge = self.side.nodes[name].inputs[int(position)]
            text = self.constant(edge.node, edge.output, column)
            if text is None:
                return None
            texts.append(text)
        return " ".join(text for text in texts if text != "=")

    @cached_property
    def by_event_time(self) -> frozenset[str]:
        """The nodes that keep state by the watermark, or may: a query has one, of all that are set."""
        marking = [name for name in self.side.order if self.watermarks(name)]
        behind = {other for name in marking for other in self.side.behind(name)}
        return frozenset(name for name in behind if self.keeps(name) and not self._is_timeless(name))

    def _is_timeless(self, name: str) -> bool:
        """Whether it is known that a node lets nothing go, and takes nothing for late."""
        operators = [operator for operator in self.side.stateful if operator.node == name]
        return bool(operators) and all(
            (isinstance(o, AggregateOperator) and o.event_time is False)
            or (isinstance(o, DeduplicateOperator) and not self.drops_late_rows(o))
            or isinstance(o, LimitOperator)
            for o in operators
        )

    def watermarks(self, name: str) -> bool:
        """Whether a node sets a watermark, by which those behind it tell what is late."""
        return any(operator.node == name and operator.kind == "watermark" for operator in self.side.operators)

    def marked(self, name: str) -> set[str]:
        """The columns that a node puts a watermark on: Spark puts no condition on one of them before it."""
        found = (o for o in self.side.operators_at(name) if isinstance(o, WatermarkOperator))
        return {operator.column.strip("`").lower() for operator in found}

    @cached_property
    def behind_operators(self) -> frozenset[str]:
        """The nodes with anything before them that streams restrict, but conditions and unions."""
        found: set[str] = set()
        more = {operator.node for operator in self.side.operators if operator.kind not in _BY_ROW}
        for name in self.side.order:
            if any(edge.node in more or edge.node in found for edge in self.side.nodes[name].inputs):
                found.add(name)
        return frozenset(found)

    def passed_over(self, edge: InputRecord, columns: Set[str]) -> InputRecord:
        """Where some columns come from that get to an input as they are, called as they are.

        Args:
            edge: The input.
            columns: The columns.
        """
        while columns and columns <= self._as_they_are(edge):
            (edge,) = self.side.nodes[edge.node].inputs
        return edge

    def _as_they_are(self, edge: InputRecord) -> frozenset[str]:
        """The columns that a node hands on, if it does nothing but that, to compute others and to ask."""
        key = (edge.node, edge.output)
        if key not in self._handed_on:
            self._handed_on[key] = frozenset(self._hands_on(*key))
        return self._handed_on[key]

    def _hands_on(self, name: str, output: str) -> Iterable[str]:
        node = self.side.nodes[name]
        made = self.lineage(name, output) if node.kind == "transform" else None
        kinds = self.side.kinds_at(name)
        if (
            made is None
            or made.kept is not None
            or made.expands
            or len(node.inputs) != 1
            or kinds - {"filter"}
        ):
            return ()
        return (k for k, m in made.columns.items() if m.rule == "=" and m.uses == frozenset({f"0:{k}"}))

    def states_behind(self, name: str) -> set[str]:
        """The nodes behind a node that keep state, or may."""
        return {other for other in self.side.behind(name) if self.keeps(other)}

    def states_by_watermark(self, name: str) -> set[str]:
        """The nodes that keep state and get the watermark of a node, behind it or as the query's."""
        return self.states_behind(name) | self.by_event_time

    def drops_late_rows(self, duplicates: DeduplicateOperator) -> bool:
        """Whether a removal of duplicates tells by event time which rows are late, or may.

        For that it needn't go by event time: the watermark only has to come to it, with its column.

        Args:
            duplicates: The removal.
        """
        return duplicates.by_event_time or self.reads_event_time(duplicates.node, 0)

    def reads_event_time(self, name: str, position: int) -> bool:
        """Whether what a node reads of an input carries a watermark, or may.

        Spark leaves out what nobody reads, and with its column the watermark.

        Args:
            name: The node.
            position: The position of the input.
        """
        facts = self.side.facts.get(self.side.nodes[name].inputs[position].key)
        keys = column_keys(facts.columns) if facts is not None else None
        if facts is None or keys is None:
            return True
        needed = self.needed.of_input(name, position)
        return any(
            column.watermarked is not False and (key in needed or ALL in needed)
            for key, column in zip(keys, facts.columns or (), strict=True)
        )

    def kept_by(self, name: str) -> set[str]:
        """The columns that go into what a node with one input keeps its state by."""
        lineage = self.lineage(name)
        keys = lineage.kept.keys if lineage is not None and lineage.kept is not None else ()
        return {use.partition(":")[2] for key in keys for use in key.uses or ()}

    def drops_duplicates(self, name: str) -> bool:
        """Whether a node is nothing but a removal of duplicates that keeps state."""
        kinds = self.side.kinds_at(name)
        return kinds == {"deduplicate"} and self.keeps(name)
