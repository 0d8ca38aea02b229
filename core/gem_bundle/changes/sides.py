"""The two sides of a comparison: what ran, rebuilt from its record, and what is going to run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from gem_bundle.changes.withheld import stood_in_for
from gem_bundle.check.stages.graph import check_graph
from gem_bundle.check.stages.inference import infer
from gem_bundle.errors import PluginError
from gem_bundle.facts import Column, Facts
from gem_bundle.gem import Source, Transform
from gem_bundle.operators import AggregateOperator, JoinOperator, LimitOperator, Operator, walk
from gem_bundle.options import NoOptions
from gem_bundle.pipeline.document import Document
from gem_bundle.pipeline.model import Definition, Input, Node, Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gem_bundle.changes.record import NodeRecord, VersionRecord
    from gem_bundle.gem import Gem
    from gem_bundle.options import Options
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.plugins import Registry

_SECTIONS = {"source": "sources", "transform": "transforms", "target": "targets"}
# A chain of forks has paths without number.
_MOST_PATHS = 1000
_LET_THROUGH = frozenset({"filter", "repartition"})


@dataclass(frozen=True)
class Side:
    """One version of the part of a pipeline that leads to a target.

    Args:
        version: Its record.
        target: The id of its target.
        gems: The gems by node, with the options of the version; those that can't be made are missing.
        facts: What is known of the rows behind each source and transform.
        order: The ids of its nodes, inputs first.
        stateless: The ids of the nodes that keep no state, though their gems can't tell.
    """

    version: VersionRecord
    target: str
    gems: Mapping[str, Gem]
    facts: Mapping[str, Facts]
    order: tuple[str, ...] = field(default=())
    stateless: frozenset[str] = frozenset()

    @cached_property
    def nodes(self) -> dict[str, NodeRecord]:
        """The nodes by id."""
        return {node.id: node for node in self.version.nodes}

    @cached_property
    def by_identity(self) -> dict[str, NodeRecord]:
        """The nodes by what checkpoints know them by."""
        return {node.identity: node for node in self.version.nodes}

    @cached_property
    def readers_of(self) -> dict[str, list[str]]:
        """For each node the ids of those that read it."""
        found: dict[str, list[str]] = {name: [] for name in self.nodes}
        for node in self.version.nodes:
            for edge in node.inputs:
                found.setdefault(edge.node, []).append(node.id)
        return found

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        """The operators of the target's query, inputs first: to Spark a cross join is an inner one."""
        return tuple(
            replace(operator, how="inner")
            if isinstance(operator, JoinOperator) and operator.how == "cross"
            else operator
            for operator in reversed(list(walk(self._nearest)))
        )

    @cached_property
    def _nearest(self) -> list[Operator]:
        """The operators nearest to the target."""
        edges = [edge for edge in self.nodes[self.target].inputs if edge.key in self.facts]
        return [operator for edge in edges for operator in self.facts[edge.key].operators]

    @cached_property
    def _operators_of(self) -> dict[str, list[Operator]]:
        found: dict[str, list[Operator]] = {}
        for operator in self.operators:
            found.setdefault(operator.node, []).append(operator)
        return found

    def operators_at(self, name: str) -> list[Operator]:
        """The operators of a node, in Spark's order; don't change it."""
        return self._operators_of.get(name, [])

    def kinds_at(self, name: str) -> set[str]:
        """The kinds of the operators of a node."""
        return {operator.kind for operator in self.operators_at(name)}

    @cached_property
    def stateful(self) -> tuple[Operator, ...]:
        """The operators that keep state, or may, in Spark's order."""
        return tuple(operator for operator in self.operators if self.may_keep(operator))

    @cached_property
    def kept_on_paths(self) -> tuple[Operator, ...]:
        """The same, each as often as Spark has it: once for each path that leads from it to the target."""
        if all(len(self.paths(name)) == 1 for name in {operator.node for operator in self.stateful}):
            return self.stateful
        of: dict[str, list[Operator]] = {}
        for operator in reversed(self.stateful):
            of.setdefault(operator.node, []).append(operator)
        leading = {name for kept in of for name in (kept, *self.behind(kept))}
        found: list[Operator] = []
        waiting = [self.target]
        while waiting:
            name = waiting.pop()
            found += of.get(name, ())
            edges = [self.nodes[name].inputs[position] for position in self._planned(name)]
            waiting += [edge.node for edge in edges[::-1] if edge.node in leading]
            if len(found) > _MOST_PATHS:
                return self.stateful
        return tuple(reversed(found))

    def paths(self, name: str) -> list[list[tuple[str, int]]]:
        """The ways from a node to the target, in the order of `kept_on_paths`.

        Returns:
            For each the readers on it, nearest first, with the positions of the inputs that they read by.
        """
        return [[(reader, position) for reader, position, _ in way] for way in self.ways(name)]

    def ways(self, name: str) -> list[list[tuple[str, int, int]]]:
        """The same with which of a reader's tables each is, of which several may be one input."""
        # Ways that don't lead there are without number where there are forks.
        leading = {name, *self.behind(name)}
        found: list[list[tuple[str, int, int]]] = []
        waiting: list[list[tuple[str, int, int]]] = [[]]
        while waiting and len(found) < _MOST_PATHS:
            way = waiting.pop()
            here = self.nodes[way[0][0]].inputs[way[0][1]].node if way else self.target
            if here == name:
                found.append(way)
                continue
            inputs = self.nodes[here].inputs
            planned = ((position, table) for table, position in enumerate(self._planned(here)))
            waiting += [[(here, at, table), *way] for at, table in planned if inputs[at].node in leading]
        return found

    def _planned(self, name: str) -> Sequence[int]:
        """The positions of a node's inputs as Spark's plan has them; as they stand where that is unknown."""
        node = self.nodes[name]
        gem = self.gems.get(name)
        found = _positions(node, gem.inputs_as_planned if isinstance(gem, Transform) else None)
        return found or range(len(node.inputs))

    def may_keep(self, operator: Operator) -> bool:
        """Whether an operator keeps state, or may."""
        if operator.kind == "limit" and self.nodes[self.target].output_mode == "complete":
            # Of what an aggregation gives anew each time the first rows are taken anew too.
            aggregated = any(before.kind == "aggregate" for before in walk(operator.inputs))
            return operator.streaming is not False and not aggregated
        if isinstance(operator, AggregateOperator) and operator.rows and _is_one_row(operator.inputs):
            return False  # of one row Spark drops no duplicates: its rule `OptimizeOneRowPlan`
        if operator.kind == "except":
            # Spark's checks don't count it; it is run as an aggregation of all columns.
            return operator.streaming is not False
        if operator.stateful is None:
            return operator.node not in self.stateless
        return operator.stateful

    def is_streaming(self, node: str) -> bool:
        """Whether the rows behind a node are a stream, or may be one."""
        found = self.nodes[node]
        if found.kind == "source":
            return found.mode != "batch"
        return any(self.is_streaming(edge.node) for edge in found.inputs if edge.node in self.nodes)

    def before(self, node: str) -> set[str]:
        """The nodes from which rows get to a node, directly or not."""
        found: set[str] = set()
        waiting = [node]
        while waiting:
            nearer = {edge.node for edge in self.nodes[waiting.pop()].inputs} - found
            found |= nearer
            waiting += nearer
        return found

    def behind(self, node: str) -> list[str]:
        """The nodes that get rows from a node, directly or not, nearest first."""
        found: dict[str, None] = {}
        waiting = list(self.readers_of.get(node, ()))
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name] = None
                waiting += self.readers_of.get(name, ())
        return list(found)


def in_order(node: NodeRecord, gem: Gem | None) -> Sequence[int] | None:
    """The positions of a node's inputs as Spark comes to its sources, from left to right; None where unknown.

    Args:
        node: The node.
        gem: Its gem; None when it can't be made.
    """
    return _positions(node, gem.order_of_inputs if isinstance(gem, Transform) else None)


def _positions(node: NodeRecord, told: Callable[[], Sequence[int] | None] | None) -> Sequence[int] | None:
    """The positions of a node's inputs in an order that its gem tells; None where unknown."""
    try:
        order = told() if told is not None else None
        if order is not None and all(0 <= position < len(node.inputs) for position in order):
            return list(order)
    except Exception:  # noqa: BLE001 (a gem's bug must not take the comparison down)
        return None
    return None


def _is_one_row(inputs: tuple[Operator, ...]) -> bool:
    """Whether no more than one row ever comes from some operators, by a limit."""
    while len(inputs) == 1 and inputs[0].kind in _LET_THROUGH:
        inputs = inputs[0].inputs
    if len(inputs) != 1 or not isinstance(inputs[0], LimitOperator):
        return False
    return inputs[0].rows is not None and inputs[0].rows <= 1


def new_side(version: VersionRecord, plan: Plan, target: str) -> Side:
    """The side of a pipeline as it is now."""
    names = {node.id for node in version.nodes}
    order = tuple(name for name in plan.order if name in names)
    return Side(version, target, plan.gems, plan.facts, order)


def old_side(
    version: VersionRecord,
    registry: Registry,
    columns: Mapping[str, Sequence[Column]] | None = None,
    now: Side | None = None,
) -> Side:
    """The side of a version that ran, its gems made anew of its options.

    Args:
        version: What ran.
        registry: The gems that are installed now.
        columns: The columns of sources for which the record has none, by what checkpoints know them by.
        now: What is going to run: nodes that are the same in it have their gems already.
    """
    target = next(node.id for node in reversed(version.nodes) if node.kind == "target")
    definition = _definition(version)
    order, _ = check_graph(definition, ())
    gems = gems_of(version, registry, now)
    with_columns: dict[str, Gem] = {}
    for node in version.nodes:
        if node.kind == "source" and node.columns is not None:
            with_columns[node.id] = _Known(Column(name, kind) for name, kind in node.columns)
        elif node.kind == "source" and node.identity in (columns or {}):
            with_columns[node.id] = _Known((columns or {})[node.identity])
    facts, _ = infer(definition, gems | with_columns, order, discover=False)
    return Side(version, target, gems, facts, tuple(order))


def with_nodes(side: Side, nodes: Sequence[NodeRecord], gems: Mapping[str, Gem]) -> Side:
    """A side with other transforms.

    Args:
        side: The side.
        nodes: All nodes, each behind those that it reads.
        gems: The gems by node; those that can't be made are missing.
    """
    version = replace(side.version, nodes=tuple(nodes))
    definition = _definition(version)
    order, _ = check_graph(definition, ())
    # What stands in for a source has its rows and no other outputs.
    with_outputs = {edge.node for node in nodes for edge in node.inputs if edge.output}
    sources = {node.id for node in nodes if node.kind == "source"} - with_outputs
    columns = {name: side.facts[name].columns for name in sources}
    known = {name: _Known(found) for name, found in columns.items() if found is not None}
    facts, _ = infer(definition, {**gems, **known}, order, discover=False)
    return Side(version, side.target, gems, facts, tuple(order), side.stateless)


def gems_of(version: VersionRecord, registry: Registry, now: Side | None = None) -> dict[str, Gem]:
    """The gems of a version that ran, made anew of its options; those that can't be are missing.

    Args:
        version: What ran.
        registry: The gems that are installed now.
        now: What is going to run: nodes that are the same in it have their gems already.
    """
    made = {
        node.id: now.gems[node.id] if now is not None and is_same_in(now, node) else _gem(node, registry)
        for node in version.nodes
    }
    return {name: gem for name, gem in made.items() if gem is not None}


def is_same_in(side: Side, node: NodeRecord) -> bool:
    """Whether a node of that name is the same in a side, which has its gem.

    Args:
        side: The side.
        node: The node, of another version.
    """
    there = side.nodes.get(node.id)
    return node.id in side.gems and there is not None and there.is_same(node)


class _Known(Source):
    """Stands in for a source whose columns are recorded, whether its gem can still be made or not."""

    def __init__(self, columns: Iterable[Column]) -> None:
        super().__init__(NoOptions())
        self._columns = list(columns)

    def infer(self) -> Facts:
        """The columns that it had."""
        return Facts(columns=tuple(self._columns), qualifiers=frozenset())


def _gem(node: NodeRecord, registry: Registry) -> Gem | None:
    """The gem of a node that ran; None where it is no more, or doesn't take these options any more."""
    kind: Any = node.kind
    if not registry.has(kind, node.gem):
        return None
    try:
        gem_class = registry.get(kind, node.gem).load()
        options = gem_class.options_type
        gem = gem_class(options.model_validate(_given(options, node.options)))
    except (PluginError, ValidationError):
        return None
    except Exception:  # noqa: BLE001 (a gem's bug must not take the comparison down)
        return None
    if node.kind == "transform":
        cast("Transform", gem).input_names = tuple(edge.name for edge in node.inputs)
        cast("Transform", gem).node = node.id
    elif node.kind == "source":
        cast("Source", gem).streaming = node.mode != "batch"
    return gem


def _given(kind: type[Options], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given: some mustn't be, even as their defaults, where others are."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        info = kind.model_fields.get(name)
        default = None if info is None or info.is_required() else info.get_default(call_default_factory=True)
        if value is not None and value != default:
            found[name] = stood_in_for(value)
    return found


def _definition(version: VersionRecord) -> Definition:
    nodes = {node.id: _node(node) for node in version.nodes}
    return Definition(
        name=version.pipeline,
        version=version.pipeline_version,
        description="",
        mode="stream",
        folder=Path(version.folder),
        file="",
        nodes=nodes,
        spark=dict(version.settings),
        checkpoints="",
        locator=Document(""),
        parameters={},
        values={},
        secrets=frozenset(),
    )


def _node(node: NodeRecord) -> Node:
    path = (_SECTIONS[node.kind], node.id)
    kind: Any = node.kind
    mode: Any = node.mode or "stream"
    output_mode: Any = node.output_mode or "append"
    return Node(
        id=node.id,
        kind=kind,
        gem=node.gem,
        options=dict(node.options),
        inputs=tuple(
            Input(edge.node, edge.output or None, edge.name, (*path, "inputs", position))
            for position, edge in enumerate(node.inputs)
        ),
        path=path,
        mode=mode,
        output_mode=output_mode,
        trigger=trigger_of(node.trigger),
        was=node.was,
    )


def trigger_of(text: str) -> Trigger:
    """The trigger that a record names."""
    kind, _, interval = text.partition(": ")
    found: Any = kind or "default"
    return Trigger(found, interval or None)
