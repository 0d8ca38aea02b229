"""How far an edit reaches: which state was made by the old rule, and which rows behind it are different."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

from gem_bundle.check.stages.inference import inputs_of
from gem_bundle.expressions import meaning_of
from gem_bundle.lineage import NEVER_TRUE, Kept, Lineage, Made, column_keys, same
from gem_bundle.operators import JoinOperator, WatermarkOperator

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from gem_bundle.changes.record import InputRecord
    from gem_bundle.changes.sides import Side
    from gem_bundle.gem import Transform

_CONJUNCTION = "(<class 'sqlglot.expressions.core.And'>"
_TRUE = "(<class 'sqlglot.expressions.core.Boolean'>, (('this', True)"
IS_TRUE = f"{_TRUE},))"
"""The rule of a condition that is `true` and nothing else."""
UNCHANGED = frozenset({"=", "union"})
"""The rules of columns that are columns of inputs as they are."""
_BY_ROW = frozenset({"filter", "generate", "repartition", "union", "watermark"})
# Which inputs of an outer join have nulls where a row of the other one has no partner.
_LACKING = {"left": frozenset("1"), "right": frozenset("0"), "full": frozenset("01")}
_SEMI = frozenset({"left_semi", "left_anti"})
# `is true` is written in the same form.
_IS_NULL = re.compile(
    r"\(<class 'sqlglot\.expressions\.core\.Is'>, \(\('this', \('[^']*',\)\), "
    r"\('expression', \(<class 'sqlglot\.expressions\.core\.Null'>"
)
_ASKS_FOR_NULLS = re.compile(
    rf"(?:\(<class 'sqlglot\.expressions\.core\.Not'>, \(\('this', )*{_IS_NULL.pattern}"
)
_EQUALITY = "sqlglot.expressions.core.EQ'"
ALL = "*"
"""Stands among columns for all of them."""


@dataclass
class Taint:
    """What is different about rows.

    Args:
        rows: Other rows come, or more or fewer of them.
        columns: The columns, by `gem_bundle.lineage.column_keys`, that have other values; `ALL` is any.
        nulls: More or fewer rows come, but each of them has nulls in all columns of one of these.
    """

    rows: bool = False
    columns: set[str] = field(default_factory=set)
    nulls: set[frozenset[str]] = field(default_factory=set)

    def __bool__(self) -> bool:
        return self.rows or bool(self.columns) or bool(self.nulls)

    def touches(self, made: Made, position: int) -> bool:
        """Whether what is made of an input is different for it."""
        if not self:
            return False
        if made.uses is None or ALL in self.columns:
            return bool(self.columns)
        return any(f"{position}:{name}" in made.uses for name in self.columns)

    def add(self, other: Taint) -> bool:
        """Take in another one; whether that was news."""
        before = (self.rows, len(self.columns), len(self.nulls))
        self.rows = self.rows or other.rows
        self.columns |= other.columns
        self.nulls |= other.nulls
        return before != (self.rows, len(self.columns), len(self.nulls))


@dataclass
class Reach:
    """How far an edit reaches.

    Args:
        states: The ids of the nodes whose state was made by the old rule.
        taints: What is different behind each node.
        outputs: The same behind named outputs, by node and output, where that is known.
        target: What is different about the rows that get to the target.
    """

    states: set[str] = field(default_factory=set)
    taints: dict[str, Taint] = field(default_factory=dict)
    outputs: dict[tuple[str, str], Taint] = field(default_factory=dict)
    target: Taint = field(default_factory=Taint)

    def join(self, other: Reach, now: Mapping[str, str]) -> Reach:
        """How far both reach.

        Args:
            other: How far the same edit reaches in what ran.
            now: The ids that its nodes have now.
        """
        states = self.states | {now[name] for name in other.states if name in now}
        target = Taint(self.target.rows, set(self.target.columns), set(self.target.nulls))
        target.add(other.target)
        return Reach(states, self.taints, self.outputs, target)


class Flow:
    """One side's transforms with what they make of what.

    Args:
        side: The side.
    """

    def __init__(self, side: Side) -> None:
        self.side = side
        self._lineages: dict[tuple[str, str], Lineage | None] = {}
        self._never_null: dict[tuple[str, str], Mapping[str, bool | None]] = {}

    def lineage(self, name: str, output: str = "") -> Lineage | None:
        """What a transform makes of what, in one of its outputs; None where that isn't known."""
        if (name, output) not in self._lineages:
            self._lineages[name, output] = self._lineage(name, output)
        return self._lineages[name, output]

    def outputs(self, name: str) -> list[str]:
        """The outputs of a node that others take; the ordinary one is an empty text."""
        edges = (edge for node in self.side.nodes.values() for edge in node.inputs if edge.node == name)
        return sorted({edge.output for edge in edges})

    def _lineage(self, name: str, output: str) -> Lineage | None:
        gem = self.side.gems.get(name)
        if gem is None or gem.kind != "transform":
            return None
        node = self.side.nodes[name]
        # Only the keys of its inputs are asked for, and a recorded node has them too.
        inputs = inputs_of(node, self.side.facts)  # type: ignore[arg-type]
        try:
            transform = cast("Transform", gem)
            return transform.lineage_output(output, *inputs) if output else transform.lineage(*inputs)
        except Exception:  # noqa: BLE001 (a gem's bug must not take the comparison down)
            return None

    def keeps(self, name: str) -> bool:
        """Whether a node keeps state, or may."""
        return any(operator.node == name and self.side.may_keep(operator) for operator in self.side.operators)

    def recalls(self, name: str) -> bool:
        """Whether anything of what a node keeps gets into results, or may.

        Where only which groups there are is read, `update` gives those that rows have just come for.
        """
        if not self.keeps(name):
            return False
        lineage = self.lineage(name)
        kept = lineage.kept if lineage is not None else None
        if kept is None or kept.rows or self.side.nodes[self.side.target].output_mode != "update":
            return True
        if [operator.kind for operator in self.side.stateful if operator.node == name] != ["aggregate"]:
            return True
        needed = self.needed(name) | kept.reads
        return bool(kept.values if ALL in needed else kept.values.keys() & needed)

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

    @cached_property
    def let_nothing_through(self) -> tuple[str, ...]:
        """The nodes whose condition on a row is never true, as Spark finds it by its form."""
        return tuple(
            name
            for name in self.side.order
            if self.side.nodes[name].kind == "transform"
            and any(self._is_never_true(name, output) for output in self.outputs(name))
        )

    def _is_never_true(self, name: str, output: str) -> bool:
        lineage = self.lineage(name, output)
        # What is the same for all rows isn't put before what keeps state.
        if lineage is None or not lineage.rows.uses:
            return False
        if NEVER_TRUE in (lineage.asks or ()):
            return True
        never = self.never_null_before(name) if _IS_NULL.match(lineage.rows.rule) else {}
        return all(never.get(use) for use in lineage.rows.uses)

    def watermarks(self, name: str) -> bool:
        """Whether a node sets a watermark, by which those behind it tell what is late."""
        return any(operator.node == name and operator.kind == "watermark" for operator in self.side.operators)

    def states_behind(self, name: str) -> set[str]:
        """The nodes behind a node that keep state, or may."""
        return {other for other in self.side.behind(name) if self.keeps(other)}

    def pushed_below(self, name: str, output: str = "") -> set[str]:
        """The aggregations and joins that Spark puts a filter before, though it stands behind.

        It does so with conditions over what is grouped by, or over one side of a join, in branches of unions
        too. State that was made without the filter, or with it, is then not what the query takes it for.

        Args:
            name: A transform.
            output: The one of its outputs that is the filter.
        """
        lineage = self.lineage(name, output)
        if lineage is None or lineage.kept is not None or lineage.expands or lineage.rows.uses is None:
            return set()
        # What is the same for all rows is asked of the first input of a join, and isn't moved elsewhere.
        constant = not lineage.rows.uses
        if constant and (not lineage.rows.rule.startswith("(") or lineage.rows.rule.startswith(_TRUE)):
            return set()
        if lineage.only_nulls:
            never = self.never_lacking_before(name)
            if all(any(never.get(use) for use in uses) for uses in lineage.only_nulls):
                return set()  # it leaves out nothing
        inputs = self.side.nodes[name].inputs
        semi = self._is_semi_join(name)
        if len(inputs) > 1 and not semi:
            return set()
        wanted = {use.partition(":")[2] for use in lineage.rows.uses if use.startswith("0:")}
        return self._below(inputs[0], wanted, lineage.rows, semi=semi) if wanted or not semi else set()

    def never_lacking_before(self, name: str) -> dict[str, bool | None]:
        """Which columns of its inputs no row lacks, whatever Spark takes them for: they are asked for."""
        inputs = self.side.nodes[name].inputs

        def is_asked_for(use: str) -> bool:
            position, _, key = use.partition(":")
            return self.is_always_there(inputs[int(position)], key)

        return {use: never or is_asked_for(use) for use, never in self.never_null_before(name).items()}

    def is_always_there(self, edge: InputRecord, key: str) -> bool:
        """Whether no row of an input lacks a value of a column, because a condition before asks for it."""
        while True:
            node = self.side.nodes[edge.node]
            lineage = self.lineage(node.id, edge.output)
            joins = [o.how for o in self.side.operators if o.node == node.id and isinstance(o, JoinOperator)]
            made = lineage.columns.get(key) if node.kind == "transform" and lineage is not None else None
            if lineage is None or made is None or made.rule != "=" or len(made.uses or ()) != 1:
                return False
            use = next(iter(made.uses or ()))
            position, _, key = use.partition(":")
            if any(how != "inner" and (how != "left_semi" or position != "0") for how in joins):
                return False
            if use in (lineage.asks or ()):
                return True
            edge = node.inputs[int(position)]

    def _is_semi_join(self, name: str) -> bool:
        """Whether a node is a join that only decides which rows of its first input stay, like a filter."""
        joins = [o for o in self.side.operators if o.node == name and isinstance(o, JoinOperator)]
        return bool(joins) and all(join.how in _SEMI for join in joins)

    def _below(self, edge: InputRecord, wanted: set[str], rows: Made, *, semi: bool = False) -> set[str]:
        """Those among the nodes from an input on, for a condition over some of its columns.

        Args:
            edge: The input.
            wanted: The columns.
            rows: The condition.
            semi: It is one of a semi join, which goes before an aggregation as a whole, and only with an
                equality: Spark's rule `PushDownLeftSemiAntiJoin`.
        """
        before, made = edge.node, self.lineage(edge.node, edge.output)
        if made is None or (made.kept is not None and made.rows.uses is None):
            # By what it keeps isn't known, so that the condition may be about that.
            return {before} if self.keeps(before) else set()
        several = not semi and rows.rule.startswith(_CONJUNCTION)
        if made.kept is not None and made.kept.rows:
            sides = {
                use.partition(":")[0]
                for column in wanted & set(made.columns)
                for use in made.columns[column].uses or ("?:",)
            }
            # With both sides' columns it becomes a part of the join's condition, and what is equal a key.
            key = rows.rule.startswith(f"(<class '{_EQUALITY}") or _CONJUNCTION in rows.rule
            gets_before = not rows.uses or several or len(sides) == 1 or key
            return {before} if gets_before else set()
        if made.kept is not None:
            keys = set(made.columns) - set(made.kept.values)
            gets_before = bool(rows.uses) and (bool(wanted & keys) if several else wanted <= keys)
            groups = bool(made.kept.values) and not self._drops_duplicates(before)
            gets_before = gets_before and (groups or self._is_distinct(before))
            # Of columns of one name it is known that they are to be equal, and there is no condition.
            equal = _EQUALITY in rows.rule or "sqlglot" not in rows.rule
            gets_before = gets_before and (not semi or equal)
            return {before} if gets_before else set()
        if not semi and not several and wanted & self._marked(before):
            return set()
        steps = [made.columns.get(column) for column in wanted]
        if any(step is None or step.uses is None for step in steps):
            return set()
        if made.expands and any(step is not None and step.rule not in UNCHANGED for step in steps):
            return set()
        uses = {use for step in steps if step is not None for use in step.uses or ()}
        inputs = self.side.nodes[before].inputs
        if len(inputs) > 1 and any(step is not None and step.rule == "=" for step in steps):
            inputs = inputs if len({use.partition(":")[0] for use in uses}) == 1 else ()
        found: set[str] = set()
        for position, other in enumerate(inputs):
            moved = {use.partition(":")[2] for use in uses if use.startswith(f"{position}:")}
            if moved or not wanted:
                found |= self._below(other, moved, rows, semi=semi)
        return found

    def _marked(self, name: str) -> set[str]:
        """The columns that a node puts a watermark on: Spark puts no condition on one of them before it."""
        found = (o for o in self.side.operators if o.node == name and isinstance(o, WatermarkOperator))
        return {operator.column.strip("`").lower() for operator in found}

    def _is_distinct(self, name: str) -> bool:
        """Whether a node keeps by an aggregation which rows there are, and they come out of its state."""
        if self.side.nodes[self.side.target].output_mode == "update":
            return False  # then those come out that rows have just come for
        kinds = {operator.kind for operator in self.side.operators if operator.node == name}
        return bool(kinds & {"aggregate", "except"})

    def behind(
        self, name: str, taint: Taint, outputs: Mapping[str, Taint] | None = None, *, own_state: bool = False
    ) -> Reach:
        """How far a difference in the rows behind a node reaches.

        Args:
            name: The node.
            taint: What is different about the rows that it gives.
            outputs: The same of its named outputs, as far as it is known.
            own_state: The node's own state is different too.
        """
        named = {(name, output): found for output, found in (outputs or {}).items()}
        reach = Reach(taints={name: taint}, outputs=named)
        if own_state and self.recalls(name):
            reach.states.add(name)
        order = self.side.order
        for other in order[order.index(name) + 1 :] if name in order else ():
            node = self.side.nodes[other]
            coming = [self._coming(edge, name, reach) for edge in node.inputs]
            if not any(coming):
                continue
            if node.kind == "target":
                for found in coming:
                    reach.target.add(found)
                continue
            reach.taints[other] = self._through(other, coming, reach)
        return reach

    def _coming(self, edge: InputRecord, first: str, reach: Reach) -> Taint:
        """What is different about an input.

        Where a named output has no lineage it is made of all that comes to its node. That of the node doesn't
        tell of it: another name of a rule is another reason, and no other row.
        """
        if not edge.output:
            return reach.taints.get(edge.node, Taint())
        before = self.side.nodes[edge.node].inputs
        lineage = self.lineage(edge.node, edge.output)
        if edge.node == first and (edge.node, edge.output) in reach.outputs:
            return reach.outputs[edge.node, edge.output]
        if edge.node != first and lineage is not None:
            coming = [self._coming(other, first, reach) for other in before]
            return _made_of(lineage, coming, by_row=self._is_by_row(edge.node))
        tainted = any(reach.taints.get(name) for name in (edge.node, *(other.node for other in before)))
        return Taint(rows=True, columns={ALL}) if tainted or edge.node == first else Taint()

    def _through(self, name: str, coming: list[Taint], reach: Reach) -> Taint:
        """What is different behind a transform when something is about its inputs."""
        lineage = self.lineage(name)
        if lineage is None:
            if self.keeps(name):
                reach.states.add(name)
            return Taint(rows=True, columns={ALL})
        found = _made_of(lineage, coming, by_row=self._is_by_row(name))
        rows, columns = found.rows, found.columns
        kept = lineage.kept if self.keeps(name) else None
        if kept is not None:
            by = any(taint.touches(made, p) for made in kept.keys for p, taint in enumerate(coming))
            other_rows = rows and not self.tells_all(name)
            if self._is_kept(name, kept, rows=other_rows or by, columns=columns) and self.recalls(name):
                reach.states.add(name)
            if (rows or by) and kept.values:
                columns |= set(kept.values)
        return Taint(rows, columns, found.nulls)

    def tells_all(self, name: str) -> bool:
        """Whether a node only drops rows that equal one that came out, as far as anybody reads them."""
        return self._drops_duplicates(name) and self.needed(name) <= self.kept_by(name)

    def _is_by_row(self, name: str) -> bool:
        """Whether a node lets each row through, or not, whatever others there are."""
        return all(operator.kind in _BY_ROW for operator in self.side.operators if operator.node == name)

    def _is_kept(self, name: str, kept: Kept, *, rows: bool, columns: set[str]) -> bool:
        """Whether what is different gets into what is kept, and from there into what anybody reads."""
        if rows:
            return True
        if kept.rows:
            return bool(columns & self.needed(name)) or ALL in columns
        if kept.values:
            return bool(columns & set(kept.values) & self.needed(name)) or ALL in columns
        return False  # of what goes through, nothing but its keys is kept

    def needed(self, name: str) -> set[str]:
        """The columns behind a node that somebody reads: Spark leaves out the others."""
        return self._needed[0].get(name, {ALL})

    def needed_of(self, name: str, position: int) -> set[str]:
        """The columns of the input at a position that a node reads, for itself or for those behind it."""
        return self._needed[1].get((name, position), {ALL})

    def kept_of(self, name: str, position: int) -> tuple[InputRecord, set[str]]:
        """Where a join takes the rows of an input from, and those of their columns that it keeps.

        Spark puts a semi join before what makes several rows of each, where it asks for none of what is made.
        """
        edge, wanted = self.side.nodes[name].inputs[position], self.needed_of(name, position)
        joins = (o for o in self.side.stateful if o.node == name and isinstance(o, JoinOperator))
        lineage = self.lineage(name)
        if position or [o.how for o in joins] != ["left_semi"]:
            return edge, wanted
        if lineage is None or lineage.rows.uses is None:
            return edge, wanted
        asked = {use.partition(":")[2] for use in lineage.rows.uses if use.startswith("0:")}
        while True:
            before = self.lineage(edge.node, edge.output)
            if before is None or not before.expands or before.rows.uses or not _passes(before, asked):
                return edge, wanted
            wanted = self._read_for(edge.node, before, 0, wanted)
            (edge,) = self.side.nodes[edge.node].inputs

    def asked_just_before(self, name: str, position: int, key: str, *, asked: bool) -> bool:
        """Whether Spark asks for a column that isn't null so near to a node that it still knows it there.

        It asks as early as it can: at the source, or behind what a condition can't be put before. What
        computes or leaves out columns on the way from there makes it forget that again.

        Args:
            name: The node.
            position: The position of its input.
            key: The column.
            asked: The node itself asks for it; a condition before it may too.
        """
        edge, wanted = self.kept_of(name, position)
        first = wanted
        tested: set[str] = set()
        ever = True
        while True:
            node = self.side.nodes[edge.node]
            lineage = self.lineage(node.id, edge.output)
            if node.kind != "transform" or lineage is None:
                return False
            if any(o.kind == "limit" for o in self.side.operators if o.node == node.id):
                return asked  # no condition is put before it
            if self.watermarks(node.id):
                # A condition is put before it, but for one about event time.
                if self._is_event_time(node.id, key):
                    return asked
            elif self._drops_duplicates(node.id):
                # What it compares, and what is tested behind it, is left out where nobody reads it.
                tested |= {use.partition(":")[2] for use in lineage.rows.uses or ()}
                return asked and ever and (tested <= first or ALL in first)
            made = [found for column, found in lineage.columns.items() if column in wanted or ALL in wanted]
            passed = {use for found in made if found.rule == "=" for use in found.uses or ()}
            given = {int(use.partition(":")[0]) for m in lineage.columns.values() for use in m.uses or ()}
            read = {f"{p}:{c}" for p in given for c in self._read_for(node.id, lineage, p, wanted)}
            filters = (
                not lineage.kept and len(node.inputs) == 1 and f"0:{key}" not in (lineage.rows.uses or ())
            )
            if len(passed) < len(made) or (read - passed and not filters):
                return False
            streams = [place for place, other in enumerate(node.inputs) if self.side.is_streaming(other.node)]
            if len(streams) != 1:
                return False
            (place,) = streams
            if len(node.inputs) == 1 and not lineage.kept:
                tested |= {use.partition(":")[2] for use in lineage.rows.uses or ()}
                asked = asked or f"0:{key}" in (lineage.asks or ())
                ever = ever and NEVER_TRUE not in (lineage.asks or ())
            wanted = self._read_for(node.id, lineage, place, wanted)
            edge = node.inputs[place]

    def asked_behind(self, name: str, *, tried: bool = False) -> set[str]:
        """The columns of a node's inputs that conditions behind it ask for, and that Spark puts before it.

        Each is behind the position of its input, as in `gem_bundle.lineage.Made.uses`.

        Args:
            name: The node.
            tried: Those count too without which a condition is null, as Spark finds out by trying nulls.
        """
        found: set[str] = set()
        waiting = [(name, "", {key: set(made.uses or ()) for key, made in self._passed(name).items()})]
        while waiting:
            before, read, known = waiting.pop()
            for other in self.side.readers_of.get(before, ()):
                inputs = self.side.nodes[other].inputs
                if len(inputs) != 1 or inputs[0].output != read:
                    continue
                for output in self.outputs(other):
                    lineage = self.lineage(other, output)
                    if lineage is None or lineage.kept:
                        continue
                    nulls = (lineage.rows.nulls or frozenset()) if tried else frozenset()
                    asks = {use.partition(":")[2] for use in (lineage.asks or frozenset()) | nulls}
                    if name in self.pushed_below(other, output):
                        found |= {use for key in asks & known.keys() for use in known[key]}
                    passed = {
                        key: set().union(*(known.get(use.partition(":")[2], ()) for use in made.uses or ()))
                        for key, made in self._passed(other, output).items()
                    }
                    waiting.append((other, output, passed))
        return found

    def joined_how(self, join: JoinOperator) -> str:
        """How Spark joins: where a condition behind asks for a column of the side that may lack, none lacks.

        It is Spark's rule `EliminateOuterJoin`.

        Args:
            join: The join.
        """
        lineage = self.lineage(join.node)
        kept = lineage.kept if lineage is not None else None
        if join.how not in _LACKING or kept is None or tuple(kept.sides or (0, 1)) != (0, 1):
            return join.how
        asked = {use.partition(":")[0] for use in self.asked_behind(join.node, tried=True)}
        lacking = _LACKING[join.how] - asked
        return next(how for how, sides in _LACKING.items() if sides == lacking) if lacking else "inner"

    def _passed(self, name: str, output: str = "") -> dict[str, Made]:
        """The columns of a node that are columns of its inputs as they are."""
        lineage = self.lineage(name, output)
        columns = lineage.columns.items() if lineage is not None else ()
        return {key: made for key, made in columns if made.rule == "="}

    def _read_for(self, name: str, lineage: Lineage, position: int, wanted: Set[str]) -> set[str]:
        """The columns of an input that a node reads for some of those that it gives."""
        edge = self.side.nodes[name].inputs[position]
        facts = self.side.facts.get(edge.key)
        return _read_of(lineage, position, wanted, column_keys(facts.columns if facts else None) or [ALL])

    def _is_event_time(self, name: str, key: str) -> bool:
        """Whether a column behind a node carries a watermark."""
        facts = self.side.facts[name]
        keys = column_keys(facts.columns) or ()
        return any(c.watermarked and key == k for k, c in zip(keys, facts.columns or (), strict=False))

    def kept_by(self, name: str) -> set[str]:
        """The columns that go into what a node with one input keeps its state by."""
        lineage = self.lineage(name)
        keys = lineage.kept.keys if lineage is not None and lineage.kept is not None else ()
        return {use.partition(":")[2] for key in keys for use in key.uses or ()}

    def _drops_duplicates(self, name: str) -> bool:
        """Whether a node is nothing but a removal of duplicates that keeps state."""
        kinds = {operator.kind for operator in self.side.operators if operator.node == name}
        return kinds == {"deduplicate"} and self.keeps(name)

    def _folded(self, name: str, lineage: Lineage) -> set[str]:
        """The columns for which Spark reads nothing: whether one is null that never is."""
        asking = {key: made for key, made in lineage.columns.items() if _asks_for_nulls(made)}
        never = self.never_null_before(name) if asking else {}
        return {key for key, made in asking.items() if all(never.get(use) for use in made.uses or ())}

    @cached_property
    def _needed(self) -> tuple[dict[str, set[str]], dict[tuple[str, int], set[str]]]:
        side = self.side
        by_edge: dict[tuple[str, int], set[str]] = {}
        every = {name: set(column_keys(side.facts[name].columns) or {ALL}) for name in side.facts}
        needed: dict[str, set[str]] = {name: set() for name in every}
        taken: dict[str, dict[str, set[str]]] = {}
        for name in reversed(side.order):
            node = side.nodes[name]
            if node.kind == "source":
                continue
            outputs = taken.get(name) or {"": needed.get(name, set())}
            lineages = {o: self.lineage(name, o) if node.kind == "transform" else None for o in outputs}
            for position, edge in enumerate(node.inputs):
                if edge.key not in every:
                    continue
                read: set[str] = set()
                for output, lineage in lineages.items():
                    if lineage is None:
                        read |= every[edge.key]
                        continue
                    folded = self._folded(name, lineage)
                    read |= _read_of(lineage, position, outputs[output] - folded, every[edge.key])
                taken.setdefault(edge.node, {}).setdefault(edge.output, set()).update(read)
                if not edge.output:
                    needed[edge.node] |= read
                by_edge[name, position] = read
        return needed, by_edge


def _asks_for_nulls(made: Made) -> bool:
    """Whether something is nothing but whether a column is null, or isn't."""
    return made.uses is not None and _ASKS_FOR_NULLS.match(made.rule) is not None


def _made_of(lineage: Lineage, coming: list[Taint], *, by_row: bool) -> Taint:
    """What is different about rows that are made of inputs."""
    rows = any(taint.rows or taint.touches(lineage.rows, position) for position, taint in enumerate(coming))
    nulls: set[frozenset[str]] = set()
    for position, taint in enumerate(coming):
        for names in taint.nulls:
            uses = {f"{position}:{name}" for name in names}
            if len(coming) == 1 and uses & (lineage.asks or frozenset()):
                continue  # it leaves them out itself
            passed = _passed(lineage, uses) if by_row else frozenset()
            nulls |= {passed} if passed else set()
            rows = rows or not passed
    columns = {
        key
        for key, made in lineage.columns.items()
        if any(taint.touches(made, position) for position, taint in enumerate(coming))
    }
    return Taint(rows, columns, nulls)


def _passes(lineage: Lineage, keys: Set[str]) -> bool:
    """Whether some columns that come out are those of the only input as they are, under the same names."""
    return all(key in lineage.columns and lineage.columns[key] == same(key) for key in keys)


def _passed(lineage: Lineage, uses: Iterable[str]) -> frozenset[str]:
    """The columns that come out and are some columns of an input as they are, at least in its rows."""
    wanted = frozenset(uses)
    known = lineage.columns.items()
    return frozenset(
        key for key, made in known if made.rule in UNCHANGED and wanted & (made.uses or frozenset())
    )


def asked_nulls(lineage: Lineage, never_null: Mapping[str, bool | None]) -> Taint:
    """What is different about rows for a condition that is there in one version only.

    Args:
        lineage: What the node with the condition makes of what.
        never_null: Which columns of its inputs are never null.
    """
    if lineage.rows.rule.strip() in {"", "=", IS_TRUE} and lineage.rows.uses == frozenset():
        return Taint()
    if (
        lineage.several
        or not lineage.only_nulls
        or len({use.partition(":")[0] for use in lineage.rows.uses or ()}) != 1
    ):
        return Taint(rows=True)
    left_out = [uses for uses in lineage.only_nulls if not any(never_null.get(use) for use in uses)]
    each = {_passed(lineage, uses) for uses in left_out}
    return Taint(rows=not all(each), nulls=each - {frozenset()})


def _read_of(lineage: Lineage, position: int, wanted: Set[str], every: Iterable[str]) -> set[str]:
    """The columns of an input, of all that it has, that are read for some of those that are given."""
    kept = lineage.kept
    made = [lineage.rows, Made(uses=lineage.reads), *(kept.keys if kept is not None else ())]
    for key, column in lineage.columns.items():
        if key in wanted or ALL in wanted or (kept is not None and key in kept.reads):
            made.append(column)
    return set().union(*(_of_input(found, position, every) for found in made))


def _of_input(made: Made, position: int, every: Iterable[str]) -> set[str]:
    if made.uses is None:
        return set(every)
    return {use.partition(":")[2] for use in made.uses if use.partition(":")[0] == str(position)}


def local_taint(
    old: Lineage | None, new: Lineage | None, never_null: Mapping[str, bool | None] | None = None
) -> Taint:
    """What is different about the rows of one node whose options have changed.

    Args:
        old: What it made of what.
        new: What it makes of what.
        never_null: Which columns of its inputs are never null, before and now.
    """
    if old is None or new is None:
        return Taint(rows=True, columns={ALL})
    changed = {
        key
        for key in {*old.columns, *new.columns}
        if old.columns.get(key, Made("-")) != new.columns.get(key, Made("-"))
    }
    if old.rows == new.rows:
        return Taint(rows=False, columns=changed)
    rows = asked_nulls(old, never_null or {})
    rows.add(asked_nulls(new, never_null or {}))
    return Taint(rows.rows, changed, rows.nulls)


def other_state(
    old: Lineage | None,
    new: Lineage | None,
    needed_before: Set[str] = frozenset({ALL}),
    needed_after: Set[str] = frozenset({ALL}),
) -> bool:
    """Whether what a node keeps is made by another rule than before, or that can't be told.

    Args:
        old: What it made of what.
        new: What it makes of what.
        needed_before: The columns behind it that somebody read; by default all.
        needed_after: Those that somebody reads; by default all.
    """
    if old is None or new is None or old.kept is None or new.kept is None:
        return True
    if old.kept.taken != new.kept.taken or old.kept.keys != new.kept.keys:
        return True
    return _functions(old.kept, needed_before) != _functions(new.kept, needed_after)


def _functions(kept: Kept, needed: Set[str]) -> set[str | None]:
    """What is kept of each group, whatever the columns are called that it ends up in."""
    found: set[str | None] = set()
    for column, functions in kept.values.items():
        if not column or ALL in needed or column in needed | kept.reads:
            found |= {None} if functions is None else set(map(meaning_of, functions))
    return found
