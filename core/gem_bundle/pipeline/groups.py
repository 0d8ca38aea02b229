"""Groups: targets that one streaming query writes, and the output through which all of their rows come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, cast

from gem_bundle.facts import REJECTED
from gem_bundle.gem import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from gem_bundle.gem import Transform
    from gem_bundle.operators import Operator
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.semantics import DeliveryGuarantee


UNDIVIDED = "__gem_bundle_undivided"
"""All rows of a node, as an output that no pipeline can name: its others are made of it.

A source that rejects has it, and a transform that remembers rows of earlier micro-batches.
"""


class Output(NamedTuple):
    """An output of a node.

    Args:
        node: The id of the node.
        name: The name of the output; None for the ordinary one.
    """

    node: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Targets that are written from the same micro-batches.

    Args:
        name: Its name, by which it has its checkpoint.
        targets: The targets, in the order of the file.
        fork: The last output through which the rows of all of them come: what lies before it is computed
            once. None when there is none.
    """

    name: str
    targets: tuple[Node, ...]
    fork: Output | None


def with_rejected(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """The nodes, those targets in the group of others too that take what a node of these rejects.

    Where all targets of a node's ordinary rows are in one group, one that takes its rejected rows and names
    no group joins that: so a row is in exactly one of both places.

    Args:
        nodes: The nodes of a pipeline by id, in the order of the file.
    """
    found = _with_rejecting_targets(nodes)
    if not any(node.group for node in found.values()):
        return found
    behind: dict[Output, set[str]] = {}
    targets = [node for node in found.values() if node.kind == "target"]
    for target in targets:
        for output in _outputs_before(found, target):
            behind.setdefault(output, set()).add(target.id)
    rejecting = {
        target.id: sorted({o.node for o in _outputs_before(found, target) if o.name == REJECTED})
        for target in targets
        if not target.group
    }
    joining = True
    while joining:  # one that joins may be what another one waits for
        joining = False
        for name in [name for name in rejecting if not found[name].group]:
            groups = {
                found[other].group
                for output, others in behind.items()
                if output.node in rejecting[name] and output.name != REJECTED
                for other in others
            }
            if len(groups) == 1 and (group := groups.pop()):
                found[name] = replace(found[name], group=group, joins=rejecting[name][0])
                joining = True
    return found


def _with_rejecting_targets(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """The nodes, those targets in one group of which one takes what another one rejects.

    The query of a target writes what that rejects. Where none of them names a group, it has the name of the
    first that rejects, so that this one goes on from the checkpoint that it has.
    """
    found = dict(nodes)
    for target in [node for node in nodes.values() if node.kind == "target"]:
        before = rejecting_before(nodes, target)
        if not before:
            continue
        together = [found[target.id], *(found[name] for name in before)]
        named = {node.group for node in together if node.group}
        group = named.pop() if len(named) == 1 else found[before[0]].group or found[before[0]].identity
        for node in together:
            if not node.group:
                joins = before[0] if node.id == target.id else ""
                found[node.id] = replace(node, group=group, joins=joins)
    return found


def rejecting_before(nodes: Mapping[str, Node], target: Node) -> list[str]:
    """The ids of the targets whose rejected rows a target takes, in the order of the file.

    Args:
        nodes: The nodes of a pipeline by id.
        target: The target.
    """
    before = {output.node for output in _outputs_before(nodes, target) if output.name == REJECTED}
    return [name for name, node in nodes.items() if name in before and node.kind == "target"]


def parted_targets(plan: Plan, name: str) -> tuple[list[Node], list[Node]]:
    """The targets of a node's ordinary rows and those of its rejected ones, where no query has both.

    Args:
        plan: The pipeline.
        name: The id of the node.
    """
    good: list[Node] = []
    bad: list[Node] = []
    for target in plan.definition.of_kind("target"):
        outputs = {
            output.name for output in _outputs_before(plan.definition.nodes, target) if output.node == name
        }
        if REJECTED in outputs:
            bad.append(target)
        if outputs - {REJECTED}:
            good.append(target)
    queries = [{query_group(plan, target) or target.identity for target in found} for found in (good, bad)]
    return ([], []) if not good or not bad or queries[0] & queries[1] else (good, bad)


def in_turn(nodes: Mapping[str, Node], targets: Iterable[Node]) -> list[list[Node]]:
    """Targets in the order in which they are written: each behind those whose rejected rows it takes.

    Args:
        nodes: The nodes of a pipeline by id.
        targets: Some of its targets.

    Returns:
        One list after the other; those in one can be written side by side.
    """
    waiting = {node.id: node for node in targets}
    before = {name: set(rejecting_before(nodes, node)) & waiting.keys() for name, node in waiting.items()}
    turns = []
    while waiting:
        turn = [node for name, node in waiting.items() if not before[name] & waiting.keys()]
        turns.append(turn)
        for node in turn:
            del waiting[node.id]
    return turns


def _outputs_before(nodes: Mapping[str, Node], target: Node) -> set[Output]:
    seen: set[Output] = set()
    waiting = [target]
    while waiting:
        for edge in waiting.pop().inputs:
            output = Output(edge.node, edge.output)
            if output not in seen and edge.node in nodes:
                seen.add(output)
                waiting.append(nodes[edge.node])
    return seen


def groups_of(plan: Plan, targets: Iterable[Node] | None = None) -> list[Group]:
    """The groups of a stream, in the order in which the file first names them; a batch has none.

    Args:
        plan: The pipeline.
        targets: The targets to look at, as this run has them; by default all.
    """
    if plan.definition.mode != "stream":
        return []
    members: dict[str, list[Node]] = {}
    for node in plan.definition.of_kind("target") if targets is None else targets:
        if name := query_group(plan, node):
            members.setdefault(name, []).append(node)
    return [Group(name, tuple(found), _fork(plan, found)) for name, found in members.items()]


def query_group(plan: Plan, node: Node) -> str:
    """The name of the group whose query writes a target of a stream, or nothing where that is its own.

    Args:
        plan: The pipeline.
        node: The target.
    """
    return node.group or (node.identity if rejects(plan, node) else "")


def rejects(plan: Plan, node: Node) -> bool:
    """Whether a node may reject rows. A target that does is a group, with others or alone."""
    return node.id in plan.gems and cast("Target", plan.gems[node.id]).rejects()


def rejecting_nodes(plan: Plan, target: str) -> list[str]:
    """The nodes on the way to a target, itself among them, that may reject rows.

    Args:
        plan: The pipeline.
        target: The target's id.
    """
    return [name for name in plan.upstream([target]) if rejects(plan, plan.node(name))]


def _fork(plan: Plan, targets: Iterable[Node]) -> Output | None:
    """The last of the outputs that are on every way from a stream to each of some targets."""
    position = {name: number for number, name in enumerate(plan.order)}
    shared = frozenset.intersection(*outputs_on_every_way(plan, targets).values())
    behind = {*limited_nodes(plan), *comparing_nodes(plan), *settled_nodes(plan)}
    if behind:  # such a node looks at a micro-batch that is there, and isn't written yet
        shared = frozenset(output for output in shared if not behind & set(_before(plan, output)))
    # All rows of a source have to be read where two of its outputs are taken only.
    return max(shared, key=lambda output: (position[output.node], output.name != UNDIVIDED), default=None)


def _before(plan: Plan, output: Output) -> list[str]:
    """The nodes that have made of rows what they are in an output."""
    names = plan.upstream([output.node])
    return [name for name in names if name != output.node] if output.name == UNDIVIDED else names


def remembering(plan: Plan, fork: Output) -> Transform | None:
    """The transform at which a query forks that remembers rows of earlier micro-batches.

    Args:
        plan: The pipeline.
        fork: Where the query forks.
    """
    if fork.name != UNDIVIDED or plan.node(fork.node).kind != "transform":
        return None
    return cast("Transform", plan.gems[fork.node])


def copies(plan: Plan, fork: Output | None) -> int:
    """How many rows come to the last operator with state of a query for each row that does.

    Args:
        plan: The pipeline.
        fork: Where the query forks.
    """
    gem = remembering(plan, fork) if fork is not None else None
    return 1 if gem is None else gem.remembers()


def limited_nodes(plan: Plan, targets: Iterable[str] | None = None) -> list[str]:
    """The nodes that may reject so many rows of a micro-batch, and no more.

    Args:
        plan: The pipeline.
        targets: The ids of the targets whose rows come through them; by default of any.
    """
    names = plan.order if targets is None else plan.upstream(targets)
    return _transforms(plan, lambda gem: gem.most_rejected() is not None, names)


def ending_nodes(plan: Plan, targets: Collection[str], fork: Output | None = None) -> list[str]:
    """The nodes of which a row may end the query when some of its rows are written already.

    That is so of several targets, and of one that doesn't write its rows as a whole.

    Args:
        plan: The pipeline.
        targets: The ids of the targets that are written of the same rows.
        fork: Where their query forks: what lies before it is computed before any is written.
    """
    if len(targets) < 2 and not writes_row_by_row(plan, targets):
        return []
    before = set(plan.upstream([fork.node])) if fork is not None else set()
    return [name for name in ended_by(plan, targets) if name not in before]


def ended_by(plan: Plan, names: Iterable[str]) -> list[str]:
    """The nodes on the way to some of which a row may end the query.

    Args:
        plan: The pipeline.
        names: The ids of the nodes.
    """
    return _transforms(plan, lambda gem: gem.ends(), plan.upstream(names))


def writes_row_by_row(plan: Plan, targets: Iterable[str]) -> bool:
    """Whether a target may have some rows of a micro-batch that ends before it is whole.

    Args:
        plan: The pipeline.
        targets: The ids of the targets.
    """
    gems = [cast("Target", plan.gems[name]) for name in targets if name in plan.gems]
    return any(gem.semantics.delivery == "at_least_once" for gem in gems)


def comparing_nodes(plan: Plan) -> list[str]:
    """The nodes that compare the rows of a micro-batch with each other.

    Args:
        plan: The pipeline.
    """
    return _transforms(plan, lambda gem: gem.compares_rows(), plan.order)


def _remembering_nodes(plan: Plan) -> list[str]:
    """The nodes that remember rows of a stream's earlier micro-batches."""
    found = _transforms(plan, lambda gem: gem.remembers() > 0, plan.order)
    return [name for name in found if plan.streaming_sources(name)]


def settled_nodes(plan: Plan) -> list[str]:
    """The nodes that ask outside which rows they reject, so that it has to be kept.

    Args:
        plan: The pipeline.
    """
    return _transforms(plan, lambda gem: gem.settles(), plan.order)


def _transforms(plan: Plan, wanted: Callable[[Transform], bool], names: Iterable[str]) -> list[str]:
    """Those of some nodes that are transforms whose gem says so."""
    return [
        name
        for name in names
        if plan.node(name).kind == "transform"
        and name in plan.gems
        and wanted(cast("Transform", plan.gems[name]))
    ]


def outputs_on_every_way(
    plan: Plan, targets: Iterable[Node], without: Collection[Output] = ()
) -> dict[str, frozenset[Output]]:
    """The outputs through which all rows of streams come that get to each of some targets, by its id.

    Args:
        plan: The pipeline.
        targets: The targets.
        without: Outputs that have no rows.
    """
    passed: dict[Output, frozenset[Output]] = {}
    known = frozenset(plan.order)
    undivided = frozenset(_remembering_nodes(plan))
    taken: dict[str, set[str | None]] = {}
    for node in plan.definition.nodes.values():
        for edge in node.inputs:
            taken.setdefault(edge.node, set()).add(edge.output)

    def on_every_way(node: Node) -> frozenset[Output]:
        ways = [
            passed[Output(edge.node, edge.output)] if edge.node in known else frozenset()
            for edge in node.inputs
            if plan.streaming_sources(edge.node) and (edge.node, edge.output) not in without
        ]
        return frozenset.intersection(*ways) if ways else frozenset()

    for name in plan.order:
        before = on_every_way(plan.node(name))
        if name in undivided or (plan.node(name).kind == "source" and rejects(plan, plan.node(name))):
            before |= {Output(name, UNDIVIDED)}
        for output in taken.get(name, ()):
            passed[Output(name, output)] = before | {Output(name, output)}
    return {node.id: on_every_way(node) for node in targets}


def shared_outputs(plan: Plan, fork: Output, targets: Iterable[str]) -> frozenset[Output]:
    """The outputs behind a fork of which more than one thing is made: kept, each is computed once.

    Of outputs one behind the other that lead to the same targets it is the last one. What a stream doesn't
    come through isn't among them, nor what of its rows the fork itself tells apart.

    Args:
        plan: The pipeline.
        fork: Where the query forks.
        targets: The ids of the targets that are written.
    """
    names = set(plan.upstream(targets)) - set(plan.upstream([fork.node]))
    # Who asks for an output's rows: the next outputs on the way that are kept, and targets.
    asking: dict[Output, set[Output]] = {}
    for name in targets:
        for edge in plan.node(name).inputs:
            asking.setdefault(Output(edge.node, edge.output), set()).add(Output(name))
    shared: set[Output] = set()
    for name in (name for name in reversed(plan.order) if name in names):
        if plan.node(name).kind != "transform" or not plan.streaming_sources(name):
            continue
        through: set[Output] = set()
        for output in [output for output in asking if output.node == name]:
            if len(asking[output]) > 1:
                shared.add(output)
                through.add(output)
            else:
                through |= asking[output]
        for edge in plan.node(name).inputs:
            asking.setdefault(Output(edge.node, edge.output), set()).update(through)
    return frozenset(shared)


def operators_behind(plan: Plan, group: Group, target: Node) -> list[Operator]:
    """What lies between the fork of a group and one of its targets, and would be computed for each target.

    Args:
        plan: The pipeline, with the facts of its nodes.
        group: A group that has a fork.
        target: One of its targets.
    """
    assert group.fork is not None
    before = set(plan.upstream([group.fork.node]))
    facts = plan.facts.get(target.inputs[0].key)
    return [o for o in facts.all_operators() if o.node not in before] if facts is not None else []


def delivery_in_group(target: Target) -> DeliveryGuarantee | None:
    """What a restart does to the rows of a target in a group; None when it can't be in one."""
    semantics = target.semantics
    if semantics.grouped is None and type(target).write_stream is Target.write_stream:
        return semantics.delivery
    return semantics.grouped


def grouped_delivery(plan: Plan, node: Node) -> DeliveryGuarantee | None:
    """`delivery_in_group` of a node."""
    return delivery_in_group(cast("Target", plan.gems[node.id]))
