"""Which column of a target an interval is on, and how it is made of the sources'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gem_bundle.changes.flow import Flow
from gem_bundle.changes.ways import KINDS_OF_TIME
from gem_bundle.check.stages.inference import inputs_of
from gem_bundle.diagnostics import listed_names

if TYPE_CHECKING:
    from gem_bundle.changes.sides import Side
    from gem_bundle.facts import Column, Facts
    from gem_bundle.pipeline.plan import Plan

_PLAIN = frozenset({"=", ".start", ".end"})
Origin = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """The column that an interval is on.

    Args:
        path: Its name, with the field of a struct behind it where it is one.
        kind: ``timestamp``, ``timestamp_ntz`` or ``date``; None where that isn't known yet.
    """

    path: tuple[str, ...]
    kind: str | None

    def __str__(self) -> str:
        return ".".join(self.path)


def time_column(facts: Facts, wanted: str | None) -> TimeColumn | str:
    """The column that an interval is on, or why there is none.

    Args:
        facts: What is known of the rows that get to the target.
        wanted: The column that somebody named; None for the one with the event time.
    """
    if wanted is not None:
        name, _, inner = wanted.partition(".")
        if facts.columns is None:
            return TimeColumn((name, inner) if inner else (name,), None)
        column = facts.column(name)
        if column is None:
            known = listed_names(c.name for c in facts.columns)
            return f"it has no column `{name}`, only {known}"
        return _of(column, inner)
    if facts.columns is None:
        return "its columns aren't known before it runs"
    marked = [column for column in facts.columns if column.watermarked]
    if len(marked) > 1:
        names = " and ".join(f"`{column.name}`" for column in marked)
        return f"it has several columns with event time: {names}"
    if not marked:
        return "no column of it is known to be event time"
    return _of(marked[0], "")


def _of(column: Column, inner: str) -> TimeColumn | str:
    kind = (column.type or "").lower()
    if kind.startswith("struct<start: timestamp"):
        field = inner or "start"
        if field not in {"start", "end"}:
            return f"`{column.name}` has `start` and `end`, and no `{field}`"
        return TimeColumn((column.name, field), "timestamp_ntz" if "timestamp_ntz" in kind else "timestamp")
    if inner:
        return f"`{column.name}.{inner}` isn't the start or the end of a window"
    if column.type is None:
        return TimeColumn((column.name,), None)
    if kind not in KINDS_OF_TIME:
        return f"`{column.name}` is of type {column.type}, and neither a time nor a date"
    return TimeColumn((column.name,), kind)


@dataclass(frozen=True, slots=True)
class Trace:
    """How a column is made.

    Args:
        origin: What it is made of and by which rules; the same for two versions of a pipeline that make it in
            the same way. None where that isn't known.
        beyond: Rows are made of what is later than the column says: it is a window, or its start.
        loose: Behind an aggregation it isn't what that groups by, as it is, but something made of it.
        unkeyed: The transforms that drop duplicates and don't go by it.
    """

    origin: Origin | None
    beyond: bool = False
    loose: bool = False
    unkeyed: tuple[str, ...] = ()


def trace(side: Side, column: TimeColumn) -> Trace:
    """How a column of a target's rows is made of those of its sources.

    Args:
        side: One version of the part of a pipeline that leads to the target.
        column: The column.
    """
    follower = _Follower(side)
    field = f".{column.path[1]}" if len(column.path) > 1 else ""
    above = (field,) if field else ()
    origin = follower.origin(side.nodes[side.target].inputs[0].node, column.path[0].lower(), above)
    if origin is None:
        return Trace(None, beyond=True, loose=True)
    return Trace((field, *origin), follower.beyond, follower.loose, tuple(sorted(follower.unkeyed)))


class _Follower:
    """Follows a column upwards, from node to node."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._flow = Flow(side)
        self.beyond = False
        self.loose = False
        self.unkeyed: set[str] = set()

    def origin(self, node: str, key: str, above: tuple[str, ...] = ()) -> Origin | None:
        """What a column behind a node is made of and how; None where that isn't known.

        Args:
            node: The node.
            key: The column, by `gem_bundle.lineage.column_keys`.
            above: The rules by which the target's column is made of it.
        """
        known = self._side.nodes.get(node)
        if known is None:
            return None
        if known.kind == "source":
            return (known.was[-1] if known.was else known.id, key)
        lineage = self._flow.lineage(node)
        made = lineage.columns.get(key) if lineage is not None else None
        if lineage is None or made is None or made.uses is None:
            return None
        rules = (*above, made.rule)
        if lineage.kept is not None and lineage.kept.values:
            window = made.rule.startswith(("window ", "session "))
            self.beyond = self.beyond or (window and ".end" not in above)
            plain = all(rule in _PLAIN for rule in above) and (window or made.rule == "=")
            self.loose = self.loose or key in lineage.kept.values or not plain
        elif lineage.kept is not None and not lineage.kept.rows:
            by = [kept.uses for kept in lineage.kept.keys if kept.rule == "="]
            if made.rule != "=" or made.uses not in by:
                self.unkeyed.add(node)
        inner: list[str] = []
        for use in sorted(made.uses):
            position, _, name = use.partition(":")
            if int(position) >= len(known.inputs):
                return None
            found = self.origin(known.inputs[int(position)].node, name, rules)
            if found is None:
                return None
            inner += found
        # A column that only goes through is the same one wherever it goes through.
        return tuple(inner) if made.rule == "=" and len(made.uses) == 1 else (made.rule, *inner)


def target_facts(plan: Plan, target: str) -> Facts:
    """What is known of the rows that get to a target."""
    return inputs_of(plan.node(target), plan.facts)[0]


def keys(side: Side) -> tuple[str, ...]:
    """The columns of a target that tell its rows apart: what an aggregation groups by.

    Args:
        side: One version of the part of a pipeline that leads to the target.

    Returns:
        None of them where no aggregation is in front of it, or a group of it isn't among the columns.
    """
    flow = Flow(side)
    (edge,) = side.nodes[side.target].inputs
    name = edge.node
    facts = side.facts.get(edge.key)
    # What each column of the target is called at the node.
    called = {column.name.lower(): column.name.lower() for column in (facts.columns or () if facts else ())}
    while not edge.output and name in side.nodes and side.nodes[name].kind == "transform":
        lineage = flow.lineage(name)
        if lineage is None:
            return ()
        if lineage.kept is not None and lineage.kept.values:
            groups = set(lineage.columns) - set(lineage.kept.values)
            found = {at_target: here for at_target, here in called.items() if here in groups}
            return tuple(found) if set(found.values()) == groups else ()
        before: dict[str, str] = {}
        for at_target, here in called.items():
            made = lineage.columns.get(here)
            if made is not None and made.rule in _PLAIN and made.uses is not None and len(made.uses) == 1:
                before[at_target] = next(iter(made.uses)).partition(":")[2]
        called = before
        if len(side.nodes[name].inputs) != 1:
            return ()
        (edge,) = side.nodes[name].inputs
        name = edge.node
    return ()
