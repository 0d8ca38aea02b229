"""Which columns somebody reads behind a node, and of each input: Spark leaves out the others."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from gem_bundle.changes.forms import form_of, tree_of
from gem_bundle.lineage import Made, column_keys, uses_at, uses_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Set

    from gem_bundle.changes.parts import Parts, Values
    from gem_bundle.changes.sides import Side
    from gem_bundle.changes.standing import Standing
    from gem_bundle.lineage import Kept, Lineage

ALL = "*"
"""Stands among columns for all of them."""
_HIDDEN = re.compile(r"= `?\w+`?\.`?(\w+)`?")

# By node: the columns that those behind it read, and what a condition on its rows leaves out besides, as
# `gem_bundle.lineage.Lineage.only_nulls` has it.
_Asked: TypeAlias = "dict[str, tuple[set[str], frozenset[frozenset[str]]]]"
_Left: TypeAlias = "frozenset[tuple[str, frozenset[str]]]"


class Needed:
    """The columns that are read.

    Args:
        side: The version.
        lineage: What a node makes of what in one of its outputs, by its id; None where that isn't known.
        standing: What Spark leaves there of what nodes make of what.
        parts: What is read there of what is put together.
    """

    def __init__(
        self, side: Side, lineage: Callable[[str, str], Lineage | None], standing: Standing, parts: Parts
    ) -> None:
        self._side, self._lineage, self._standing, self._parts = side, lineage, standing, parts
        self._for_rows: dict[tuple[_Left, str], dict[tuple[str, int], set[str]]] = {}

    def behind(self, name: str) -> set[str]:
        """The columns behind a node that somebody reads: Spark leaves out the others."""
        return self._all[0].get(name, {ALL})

    def on_paths(self, name: str) -> list[set[str]]:
        """The same on each way to the target: where there are several Spark plans the node for each."""
        ways = self._side.ways(name)
        return [self._on(way) for way in ways] if len(ways) > 1 else [self.behind(name)]

    def _on(self, way: list[tuple[str, int, int]]) -> set[str]:
        target, position, _ = way[-1]
        wanted, output = self.of_input(target, position), self._side.nodes[target].inputs[position].output
        asked: _Asked = {}
        for reader, at, table in reversed(way[:-1]):
            read = self.read_for(reader, at, wanted, output, asked)
            lineage = self._lineage(reader, output)
            kept = lineage.kept if lineage is not None else None
            if lineage is not None and kept is not None and kept.tables_read:
                of_table = table_reads(lineage, at, table, wanted, kept.tables_read[table])
                read = read_in_both(read, of_table)
            wanted, output = read, self._side.nodes[reader].inputs[at].output
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
        facts = self._side.facts.get(self._side.nodes[name].inputs[position].key)
        every = set((facts and column_keys(facts.columns)) or {ALL})
        lineage = self._lineage(name, output)
        asked = {} if asked is None else asked
        return every if lineage is None else self._read(name, position, lineage, wanted, every, asked)

    def of_input(self, name: str, position: int) -> set[str]:
        """The columns of the input at a position that a node reads, for itself or for those behind it."""
        return self._all[1].get((name, position), {ALL})

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
        lineage = self._parts.narrowed(name, lineage)
        known = name in self._filters
        if name in self._unread if known else self._standing.lets_nothing_through(name, lineage):
            return read_of(replace(lineage, rows=Made()), position, wanted, every)
        if lineage.only_nulls and not lineage.kept:
            left = self._without_what_is_there(name, lineage)
            given = read_of(replace(left, rows=Made()), position, wanted, every)
            asked[self._side.nodes[name].inputs[position].key] = given, left.only_nulls
            return read_of(left, position, wanted, every)
        if name in asked and _unites(lineage) and len(self._side.readers_of[name]) == 1:
            wanted = self._of_branch(name, lineage, position, *asked[name])
        return read_of(lineage, position, wanted, every)

    @cached_property
    def _unread(self) -> set[str]:
        """The nodes whose conditions nobody reads: Spark makes one of them and of another, which never holds.

        Those are its rules `CombineFilters` and `BooleanSimplification`.
        """
        found: set[str] = set()
        for name in self._filters:
            lineage = self._lineage(name, "")
            if lineage is None or not self._never_holds(name, lineage):
                continue
            waiting = [name]
            while waiting:
                here = waiting.pop()
                found.add(here)
                before = self._side.nodes[here].inputs[0].node
                alone = len(self._side.readers_of.get(before, ())) == 1
                near = [*self._side.readers_of.get(here, ()), *([before] if alone else [])]
                waiting += [other for other in near if other in self._filters and other not in found]
        return found

    @cached_property
    def _filters(self) -> frozenset[str]:
        return frozenset(name for name in self._side.order if self._is_filter(name))

    def _is_filter(self, name: str) -> bool:
        """Whether a node computes columns of each row, or leaves rows out, and nothing else."""
        node = self._side.nodes[name]
        if node.kind != "transform" or len(node.inputs) != 1 or node.functions:
            return False
        lineage = self._lineage(name, "")
        plain = lineage is not None and lineage.kept is None and not lineage.expands
        return plain and self._side.kinds_at(name) <= {"filter"} and not node.inputs[0].output

    def _never_holds(self, name: str, lineage: Lineage) -> bool:
        form = form_of(lineage.rows.rule) if lineage.rows.uses == frozenset() else None
        tree = None if form is None else tree_of(form)
        if tree is None:
            return self._standing.lets_nothing_through(name, lineage)
        from gem_bundle.expressions.constants import value_of

        return value_of(tree) in (None, False)

    def _without_what_is_there(self, name: str, lineage: Lineage) -> Lineage:
        """A condition that leaves out nothing but nulls, without what it asks of what is never null."""
        left = lineage.nulls_left_out(self._standing.nulls.before(name))
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
        never = self._standing.nulls.before(name)
        wanted = set(given)
        for kind in kinds:
            keys = of_input(kind, 0)
            uses = {use for key in keys & union.columns.keys() for use in union.columns[key].uses or ()}
            if not any(never.get(use) for use in uses if use.startswith(f"{position}:")):
                wanted |= keys
        return wanted

    def for_rows(self, name: str, position: int, conditions: _Left) -> set[str]:
        """The columns of an input that a join keeps: without those that only conditions read before it.

        Args:
            name: The join.
            position: The position of the input.
            conditions: The nodes behind it of whose conditions parts are asked before it, each with the
                columns that are left for it to read.
        """
        lineage = self._lineage(name, "")
        pairs = lineage.kept.pairs if lineage is not None and lineage.kept is not None else None
        if not conditions and pairs is None:
            return self.of_input(name, position)
        if (conditions, name) not in self._for_rows:
            self._for_rows[conditions, name] = self._needs(conditions, name)[1]
        return self._for_rows[conditions, name].get((name, position), {ALL})

    @cached_property
    def _all(self) -> tuple[dict[str, set[str]], dict[tuple[str, int], set[str]]]:
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
        side, left = self._side, dict(asked_before)
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
            lineages = {o: self._lineage(name, o) if node.kind == "transform" else None for o in outputs}
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
    if kept.taken_by:
        return replace(lineage, rows=Made(uses=left))  # what groups are formed by is read in any case
    if kept.pairs is None:
        return lineage
    pairs = Made(lineage.rows.rule, kept.pairs)
    return replace(lineage, rows=pairs, kept=replace(kept, keys=(pairs,)))


def _unites(lineage: Lineage) -> bool:
    """Whether a node does nothing but to put the rows of its inputs together."""
    return bool(lineage.columns) and all(made.rule == "union" for made in lineage.columns.values())


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


def read_in_both(one: set[str], other: set[str]) -> set[str]:
    """The columns that are among some and among others, of which either may be all.

    Args:
        one: Some columns.
        other: Others.
    """
    return other if ALL in one else one if ALL in other else one & other


def table_reads(joined: Lineage, position: int, table: int, wanted: Set[str], asked: Set[str]) -> set[str]:
    """The columns that are read of one of the two tables of an input that is joined with itself.

    Args:
        joined: What the join makes of what.
        position: The position of the input.
        table: Which table.
        wanted: The columns behind the join that are read.
        asked: The columns of the table that the join asks for itself.
    """
    of = joined.kept.tables if joined.kept is not None else {}
    behind = {key for key, tables in of.items() if table in tables}
    uses = uses_of(joined.columns[key] for key in (behind if ALL in wanted else behind & wanted))
    return {ALL} if uses is None else of_input(uses, position) | asked


def _of_input(made: Made, position: int, every: Iterable[str]) -> set[str]:
    if made.uses is None:
        # A name that only Spark knows is that of a column that a join was by, of its other side.
        hidden = _HIDDEN.fullmatch(made.rule)
        return {hidden[1]} if hidden is not None and hidden[1] in set(every) else set(every)
    return of_input(made.uses, position)


def of_input(uses: Iterable[str], position: int) -> set[str]:
    """The columns of the input at a position among those of several, as `Made.uses` tells them apart."""
    return set(uses_at(uses, position))
