"""How far an edit reaches: which state was made by the old rule, and which rows behind it are different."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gem_bundle.changes.below import states_below
from gem_bundle.changes.conditions import IS_TRUE
from gem_bundle.changes.needed import ALL, values_for
from gem_bundle.changes.results import tell_of_rows
from gem_bundle.expressions import meaning_of
from gem_bundle.lineage import UNCHANGED, Kept, Lineage, Made, uses_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from gem_bundle.changes.flow import Flow
    from gem_bundle.changes.record import InputRecord

_BY_ROW = frozenset({"filter", "generate", "repartition", "union", "watermark"})


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


def reach_from(
    flow: Flow,
    name: str,
    taint: Taint,
    outputs: Mapping[str, Taint] | None = None,
    *,
    own_state: bool = False,
    judged: Set[str] = frozenset(),
) -> Reach:
    """How far a difference in the rows behind a node reaches.

    Args:
        flow: The version.
        name: The node.
        taint: What is different about the rows that it gives.
        outputs: The same of its named outputs, as far as it is known.
        own_state: The node's own state is different too.
        judged: The nodes that are in one version only, of which it is told by themselves what they ask.
    """
    named = {(name, output): found for output, found in (outputs or {}).items()}
    reach = Reach(taints={name: taint}, outputs=named)
    if own_state and flow.recalls(name):
        reach.states.add(name)
    order = flow.side.order
    for other in order[order.index(name) + 1 :] if name in order else ():
        node = flow.side.nodes[other]
        coming = [_coming(flow, edge, name, reach) for edge in node.inputs]
        if not any(coming):
            continue
        if node.kind == "target":
            for found in coming:
                reach.target.add(found)
            continue
        reach.taints[other] = _through(flow, other, coming, reach)
        asks = flow.side.nodes[name].kind == "transform" and other not in judged
        if asks and _asks_otherwise(flow, other, coming):
            for output in flow.outputs(other):
                reach.states |= states_below(flow, other, output)
        if flow.watermarks(other) and any(_moves(taint, flow.marked(other)) for taint in coming):
            reach.states |= {state for state in flow.by_event_time if flow.recalls(state)}
    return reach


def _asks_otherwise(flow: Flow, name: str, coming: list[Taint]) -> bool:
    """Whether what a node asks of rows is different for what is about its inputs.

    Of a table Spark carries the conditions over what a join wants to be equal.
    """
    for position, (edge, taint) in enumerate(zip(flow.side.nodes[name].inputs, coming, strict=True)):
        if not taint:
            continue
        if not flow.side.is_streaming(edge.node):
            return True
        lineages = [flow.lineage(name, output) for output in flow.outputs(name)]
        if taint.columns and any(one is None or taint.touches(_asking(one), position) for one in lineages):
            return True
    return False


def _asking(lineage: Lineage) -> Made:
    """What decides which rows come out: of what is taken apart its elements do too."""
    computed = [made for made in lineage.columns.values() if made.rule not in UNCHANGED]
    made = [lineage.rows, *(computed if lineage.expands else ())]
    return Made(uses=uses_of(made))


def _moves(taint: Taint, marked: set[str]) -> bool:
    """Whether the watermark of some columns is another one for what is different about rows."""
    return taint.rows or bool(taint.nulls) or bool(taint.columns & (marked | {ALL}))


def _coming(flow: Flow, edge: InputRecord, first: str, reach: Reach) -> Taint:
    """What is different about an input.

    Where a named output has no lineage it is made of all that comes to its node. That of the node doesn't
    tell of it: another name of a rule is another reason, and no other row.
    """
    if not edge.output:
        return reach.taints.get(edge.node, Taint())
    before = flow.side.nodes[edge.node].inputs
    lineage = flow.lineage(edge.node, edge.output)
    if edge.node == first and (edge.node, edge.output) in reach.outputs:
        return reach.outputs[edge.node, edge.output]
    if edge.node != first and lineage is not None:
        coming = [_coming(flow, other, first, reach) for other in before]
        return _made_of(lineage, coming, by_row=_is_by_row(flow, edge.node))
    tainted = any(reach.taints.get(name) for name in (edge.node, *(other.node for other in before)))
    return Taint(rows=True, columns={ALL}) if tainted or edge.node == first else Taint()


def _through(flow: Flow, name: str, coming: list[Taint], reach: Reach) -> Taint:
    """What is different behind a transform when something is about its inputs."""
    lineage = flow.lineage(name)
    if lineage is None:
        if flow.keeps(name):
            reach.states.add(name)
        return Taint(rows=True, columns={ALL})
    found = _made_of(lineage, coming, by_row=_is_by_row(flow, name))
    rows, columns = found.rows, found.columns
    kept = lineage.kept if flow.keeps(name) else None
    if kept is not None:
        by = any(taint.touches(made, p) for made in kept.keys for p, taint in enumerate(coming))
        if _is_kept(flow, name, kept, rows=rows or by, columns=columns) and flow.recalls_rows(name):
            reach.states.add(name)
        if rows or by:
            columns |= {key for key in kept.values if by or tell_of_rows(kept, [key])}
    return Taint(rows, columns, found.nulls)


def tells_all(flow: Flow, name: str) -> bool:
    """Whether a node only drops rows that equal one that came out, as far as anybody reads them."""
    return flow.drops_duplicates(name) and flow.needed.behind(name) <= flow.kept_by(name)


def _is_by_row(flow: Flow, name: str) -> bool:
    """Whether a node lets each row through, or not, whatever others there are."""
    return all(operator.kind in _BY_ROW for operator in flow.side.operators_at(name))


def _is_kept(flow: Flow, name: str, kept: Kept, *, rows: bool, columns: set[str]) -> bool:
    """Whether what is different gets into what is kept, and from there into what anybody reads."""
    if rows:
        return True
    if kept.rows:
        return bool(columns & flow.needed.behind(name)) or ALL in columns
    if kept.values:
        return bool(columns & set(kept.values) & flow.needed.behind(name)) or ALL in columns
    return False  # of what goes through, nothing but its keys is kept


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
    each = {_passed(lineage, uses) for uses in lineage.nulls_left_out(never_null)}
    return Taint(rows=not all(each), nulls=each - {frozenset()})


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
    return not same_results(old, new, needed_before, needed_after)


def same_results(old: Lineage, new: Lineage, needed_before: Set[str], needed_after: Set[str]) -> bool:
    """Whether what is kept of each group is computed as it was.

    Args:
        old: What a node made of what.
        new: What it makes of what.
        needed_before: The columns behind it that somebody read.
        needed_after: Those that somebody reads.
    """
    if old.kept is None or new.kept is None:
        return False
    return _functions(old, old.kept, needed_before) == _functions(new, new.kept, needed_after)


def _functions(lineage: Lineage, kept: Kept, needed: Set[str]) -> set[str | Made]:
    """What is kept of each group, whatever the columns are called that it ends up in.

    Where it isn't known what is kept for one, it is told by how the column is made.
    """
    found: set[str | Made] = set()
    for name, functions in values_for(kept, needed).items():
        if functions is None:
            found.add(lineage.columns.get(name, lineage.rows))
        else:
            found |= set(map(meaning_of, functions))
    return found
