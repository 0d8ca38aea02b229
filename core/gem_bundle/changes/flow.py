"""One side's transforms: what they make of what, keep and never give null, and what others read of it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, cast

from gem_bundle.changes.brought import brought, inputs_in
from gem_bundle.changes.left_out import LeftOut
from gem_bundle.changes.lineages import lineage_of
from gem_bundle.changes.parts import Parts
from gem_bundle.changes.passing import lets_go_at_once
from gem_bundle.changes.results import tell_of_rows
from gem_bundle.changes.sides import is_same_in
from gem_bundle.lineage import Lineage, Made, column_keys, uses_at
from gem_bundle.operators import (
    AggregateOperator,
    DeduplicateOperator,
    JoinOperator,
    LimitOperator,
    WatermarkOperator,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from gem_bundle.changes.parts import Values
    from gem_bundle.changes.record import InputRecord
    from gem_bundle.changes.sides import Side
    from gem_bundle.gem import Transform
    from gem_bundle.lineage import Kept

IS_NULL = re.compile(
    r"\(<class 'sqlglot\.expressions\.core\.Is'>, \(\('this', \('[^']*',\)\), "
    r"\('expression', \(<class 'sqlglot\.expressions\.core\.Null'>"
)
"""How the rule of a condition begins that asks whether a column is null: `is true` is written otherwise."""
_ASKS_FOR_NULLS = re.compile(
    rf"(?:\(<class 'sqlglot\.expressions\.core\.Not'>, \(\('this', )*{IS_NULL.pattern}"
)

_BY_ROW = frozenset({"filter", "union"})
ALL = "*"
"""Stands among columns for all of them."""
_HIDDEN = re.compile(r"= `?\w+`?\.`?(\w+)`?")

# By node: the columns that those behind it read, and what a condition on its rows leaves out besides, as
# `gem_bundle.lineage.Lineage.only_nulls` has it.
_Asked: TypeAlias = "dict[str, tuple[set[str], frozenset[frozenset[str]]]]"
_Left: TypeAlias = "frozenset[tuple[str, frozenset[str]]]"


class Flow:
    """One side's transforms with what they make of what.

    Args:
        side: The side.
        other: The other side's: what the same transform makes of the same columns is found out once.

    Attributes:
        joined: How Spark joins, of the joins of which that was asked.
        taken_apart: What `gem_bundle.changes.steps.in_steps` has made of it, once that was asked.
    """

    def __init__(self, side: Side, other: Flow | None = None) -> None:
        self.side = side
        self._other = other
        self._lineages: dict[tuple[str, str], Lineage | None] = {}
        self._never_null: dict[tuple[str, str], Mapping[str, bool | None]] = {}
        self._handed_on: dict[tuple[str, str], frozenset[str]] = {}
        self.joined: dict[JoinOperator, str] = {}
        self.taken_apart: tuple[Flow, Mapping[str, str]] | None = None
        self._for_rows: dict[tuple[_Left, str], dict[tuple[str, int], set[str]]] = {}

    def lineage(self, name: str, output: str = "") -> Lineage | None:
        """What a transform makes of what, in one of its outputs; None where that isn't known."""
        return self._brought[name] if name in self._brought and not output else self._told(name, output)

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
        return LeftOut(self.side, self.lineage, self.needed, self._functions)

    def _functions(self, name: str) -> list[str] | None:
        """The aggregate functions that are needed of a node that forms groups; None where not known."""
        lineage = self.lineage(name)
        kept = lineage.kept if lineage is not None else None
        if kept is None or kept.rows:
            return None
        made = values_for(kept, self.needed(name)).values()
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

    def _has_some_left(self, name: str) -> bool:
        """Whether anything of what a node keeps is there when the next micro-batch begins, or may be."""
        return self.keeps(name) and not lets_go_at_once(self.side, name, self.lineage)

    def _updated(self, name: str) -> Kept | None:
        """What is kept of groups where those come out that rows have come for; None for anything else."""
        lineage = self.lineage(name) if self.keeps(name) else None
        kept = lineage.kept if lineage is not None else None
        if kept is None or kept.rows or self.side.nodes[self.side.target].output_mode != "update":
            return None
        kinds = [operator.kind for operator in self.side.stateful if operator.node == name]
        return kept if kinds == ["aggregate"] else None

    def _read_results(self, name: str, kept: Kept) -> Set[str]:
        needed = self.needed(name) | kept.reads
        return kept.values.keys() if ALL in needed else kept.values.keys() & needed

    def never_null(self, name: str, output: str = "") -> Mapping[str, bool | None]:
        """Which columns behind a node Spark takes for never null, by its plan's form; None where unknown."""
        if (name, output) not in self._never_null:
            node = self.side.nodes[name]
            lineage = self.lineage(name, output) if node.kind == "transform" else None
            if node.kind == "source":
                # Of what it reads from outside, Spark takes all for what may be null.
                facts = None if output else self.side.facts.get(name)
                found: dict[str, bool | None] = dict.fromkeys(
                    column_keys(facts.columns if facts else None) or (), False
                )
            elif lineage is None:
                found = {}
            else:
                coming = self.never_null_before(name)
                found = {key: made.never_null(coming) for key, made in lineage.columns.items()}
            self._never_null[name, output] = found
        return self._never_null[name, output]

    def never_null_before(self, name: str) -> dict[str, bool | None]:
        """The same of what comes to a node, each column behind the position of its input."""
        return {
            f"{position}:{key}": never
            for position, edge in enumerate(self.side.nodes[name].inputs)
            for key, never in self.never_null(edge.node, edge.output).items()
        }

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

    def needed(self, name: str) -> set[str]:
        """The columns behind a node that somebody reads: Spark leaves out the others."""
        return self._needed[0].get(name, {ALL})

    def needed_on_paths(self, name: str) -> list[set[str]]:
        """The same on each way to the target: where there are several Spark plans the node for each."""
        paths = self.side.paths(name)
        return [self._needed_on(path) for path in paths] if len(paths) > 1 else [self.needed(name)]

    def _needed_on(self, path: list[tuple[str, int]]) -> set[str]:
        target, position = path[-1]
        wanted, output = self.needed_of(target, position), self.side.nodes[target].inputs[position].output
        asked: _Asked = {}
        for reader, at in reversed(path[:-1]):
            wanted = self.read_for(reader, at, wanted, output, asked)
            output = self.side.nodes[reader].inputs[at].output
        return wanted

    def read_for(
        self, name: str, position: int, wanted: set[str], output: str = "", asked: _Asked | None = None
    ) -> set[str]:
        """The columns of the input at a position that a node reads when some of its own are read.

        Args:
            name: The node.
            position: The position of the input.
            wanted: The columns of its output that are read.
            output: Which of its outputs.
            asked: What conditions ask of the rows of nodes before them, as `_read` has it.
        """
        facts = self.side.facts.get(self.side.nodes[name].inputs[position].key)
        every = set((facts and column_keys(facts.columns)) or {ALL})
        lineage = self.lineage(name, output)
        asked = {} if asked is None else asked
        return every if lineage is None else self._read(name, position, lineage, wanted, every, asked)

    def needed_of(self, name: str, position: int) -> set[str]:
        """The columns of the input at a position that a node reads, for itself or for those behind it."""
        return self._needed[1].get((name, position), {ALL})

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
        needed = self.needed_of(name, position)
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

    def folded(self, name: str, lineage: Lineage) -> set[str]:
        """The columns for which Spark reads nothing: whether one is null that never is."""
        asking = {key: made for key, made in lineage.columns.items() if _asks_for_nulls(made)}
        never = self.never_null_before(name) if asking else {}
        return {key for key, made in asking.items() if all(never.get(use) for use in made.uses or ())}

    def _read(
        self, name: str, position: int, lineage: Lineage, wanted: set[str], every: set[str], asked: _Asked
    ) -> set[str]:
        """The columns of an input that a node reads for those that are read behind it.

        Args:
            name: The node.
            position: The position of the input.
            lineage: What the node makes of what.
            wanted: The columns that are read behind it.
            every: All columns of the input.
            asked: What conditions ask of the rows of nodes before them; this one's is put there.
        """
        wanted = wanted - self.folded(name, lineage)
        lineage = self.narrowed(name, lineage)
        if lineage.only_nulls and not lineage.kept:
            left = self._without_what_is_there(name, lineage)
            given = read_of(replace(left, rows=Made()), position, wanted, every)
            asked[self.side.nodes[name].inputs[position].key] = given, left.only_nulls
            return read_of(left, position, wanted, every)
        if name in asked and _unites(lineage) and len(self.side.readers_of[name]) == 1:
            wanted = self._of_branch(name, lineage, position, *asked[name])
        return read_of(lineage, position, wanted, every)

    def _without_what_is_there(self, name: str, lineage: Lineage) -> Lineage:
        """A condition that leaves out nothing but nulls, without what it asks of what is never null."""
        left = lineage.nulls_left_out(self.never_null_before(name))
        if len(left) == len(lineage.only_nulls):
            return lineage
        return replace(lineage, rows=replace(lineage.rows, uses=frozenset().union(*left)), only_nulls=left)

    def _of_branch(
        self, name: str, union: Lineage, position: int, given: set[str], kinds: frozenset[frozenset[str]]
    ) -> set[str]:
        """The columns of a union that are read of one of its inputs, before which a condition is asked.

        Args:
            name: The union.
            union: What it makes of what.
            position: The position of the input.
            given: What is read of it but for the condition.
            kinds: What the condition leaves out, as `gem_bundle.lineage.Lineage.only_nulls` has it.
        """
        never = self.never_null_before(name)
        wanted = set(given)
        for kind in kinds:
            keys = of_input(kind, 0)
            uses = {use for key in keys & union.columns.keys() for use in union.columns[key].uses or ()}
            if not any(never.get(use) for use in uses if use.startswith(f"{position}:")):
                wanted |= keys
        return wanted

    def needed_for_rows(self, name: str, position: int, conditions: _Left) -> set[str]:
        """The columns of an input that a join keeps: without those that only conditions read before it.

        Args:
            name: The join.
            position: The position of the input.
            conditions: The nodes behind it of whose conditions parts are asked before it, each with the
                columns that are left for it to read.
        """
        lineage = self.lineage(name)
        pairs = lineage.kept.pairs if lineage is not None and lineage.kept is not None else None
        if not conditions and pairs is None:
            return self.needed_of(name, position)
        if (conditions, name) not in self._for_rows:
            self._for_rows[conditions, name] = self._needs(conditions, name)[1]
        return self._for_rows[conditions, name].get((name, position), {ALL})

    def narrowed(self, name: str, lineage: Lineage) -> Lineage:
        """What a node makes of what, without what nobody reads of what it puts together.

        Args:
            name: The node.
            lineage: What it makes of what.
        """
        return self._parts_of.narrowed(name, lineage)

    def without_unread(self, name: str, lineage: Lineage, values: dict[str, Values]) -> dict[str, Values]:
        """What groups keep for their columns, without what nobody reads of what they put together.

        Args:
            name: The node.
            lineage: What it makes of what.
            values: What it keeps for each column that is read.
        """
        return self._parts_of.results(name, lineage, values)

    @cached_property
    def _parts_of(self) -> Parts:
        transforms = [name for name, node in self.side.nodes.items() if node.kind == "transform"]
        return Parts(self.side, {n: [self.lineage(n, o) for o in self.outputs(n)] for n in transforms})

    @cached_property
    def _needed(self) -> tuple[dict[str, set[str]], dict[tuple[str, int], set[str]]]:
        return self._needs(frozenset(), "")

    def _needs(
        self, asked_before: _Left, join: str
    ) -> tuple[dict[str, set[str]], dict[tuple[str, int], set[str]]]:
        """The columns that are read behind each node, and of each input.

        Args:
            asked_before: The nodes of whose conditions parts are asked before a join, where they don't count,
                each with the columns that are left for it to read.
            join: That join, whose own condition counts only as far as it is asked of pairs.
        """
        side, left = self.side, dict(asked_before)
        by_edge: dict[tuple[str, int], set[str]] = {}
        every = {name: set(column_keys(side.facts[name].columns) or {ALL}) for name in side.facts}
        needed: dict[str, set[str]] = {name: set() for name in every}
        taken: dict[str, dict[str, set[str]]] = {}
        asked: _Asked = {}
        for name in reversed(side.order):
            node = side.nodes[name]
            if node.kind == "source":
                continue
            outputs = taken.get(name) or {"": needed.get(name, set())}
            lineages = {o: self.lineage(name, o) if node.kind == "transform" else None for o in outputs}
            if name == join or name in left:
                rest = left.get(name, frozenset())
                lineages = {o: made and _without_conditions(made, rest) for o, made in lineages.items()}
            for position, edge in enumerate(node.inputs):
                if edge.key not in every:
                    continue
                read: set[str] = set()
                for output, lineage in lineages.items():
                    if lineage is None:
                        read |= every[edge.key]
                        continue
                    read |= self._read(name, position, lineage, outputs[output], every[edge.key], asked)
                taken.setdefault(edge.node, {}).setdefault(edge.output, set()).update(read)
                if not edge.output:
                    needed[edge.node] |= read
                by_edge[name, position] = read
        return needed, by_edge


def _without_conditions(lineage: Lineage, left: frozenset[str]) -> Lineage:
    """The same without what its condition reads of rows, and not of pairs, but for some columns."""
    kept = lineage.kept
    if kept is None:
        return replace(lineage, rows=Made(uses=left), only_nulls=frozenset())
    if kept.pairs is None:
        return lineage
    pairs = Made(lineage.rows.rule, kept.pairs)
    return replace(lineage, rows=pairs, kept=replace(kept, keys=(pairs,)))


def _unites(lineage: Lineage) -> bool:
    """Whether a node does nothing but to put the rows of its inputs together."""
    return bool(lineage.columns) and all(made.rule == "union" for made in lineage.columns.values())


def _asks_for_nulls(made: Made) -> bool:
    """Whether something is nothing but whether a column is null, or isn't."""
    return made.uses is not None and _ASKS_FOR_NULLS.match(made.rule) is not None


def values_for(kept: Kept, needed: Set[str]) -> dict[str, Values]:
    """What is kept for the columns that are read, by those behind it or by the node itself.

    Args:
        kept: What the node keeps.
        needed: The columns that are read behind it.
    """
    read = needed | kept.reads
    return {name: made for name, made in kept.values.items() if not name or name in read or ALL in read}


def read_of(lineage: Lineage, position: int, wanted: Set[str], every: Iterable[str]) -> set[str]:
    """The columns of an input, of all that it has, that are read for some of those that are given.

    Args:
        lineage: What the node makes of what.
        position: The position of the input.
        wanted: The columns that are given.
        every: All columns of the input.
    """
    kept = lineage.kept
    made = [lineage.rows, Made(uses=lineage.reads), *(kept.keys if kept is not None else ())]
    for key, column in lineage.columns.items():
        if key in wanted or ALL in wanted or (kept is not None and key in kept.reads):
            made.append(column)
    return set().union(*(_of_input(found, position, every) for found in made))


def _of_input(made: Made, position: int, every: Iterable[str]) -> set[str]:
    if made.uses is None:
        # A name that only Spark knows is that of a column that a join was by, of its other side.
        hidden = _HIDDEN.fullmatch(made.rule)
        return {hidden[1]} if hidden is not None and hidden[1] in set(every) else set(every)
    return of_input(made.uses, position)


def of_input(uses: Iterable[str], position: int) -> set[str]:
    """The columns of the input at a position among those of several, as `Made.uses` tells them apart."""
    return set(uses_at(uses, position))
