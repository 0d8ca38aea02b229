"""Versions in which transforms that do several things at once are taken apart, as Spark's plan has them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from gem_bundle.changes.brought import inputs_in
from gem_bundle.changes.flow import Flow
from gem_bundle.changes.lineages import steps_of
from gem_bundle.changes.sides import with_nodes
from gem_bundle.changes.taken import is_taken_out
from gem_bundle.gem import Transform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gem_bundle.changes.record import InputRecord, NodeRecord
    from gem_bundle.gem import Gem
    from gem_bundle.lineage import Lineage, Step


def in_steps(flow: Flow) -> tuple[Flow, Mapping[str, str]]:
    """A version in which those transforms are taken apart of which it isn't known what they make of what.

    Args:
        flow: The version.

    Returns:
        It, and the ids of the transforms whose steps are its nodes, by the ids of those; the same version and
        nothing where there is none to take apart.
    """
    if flow.taken_apart is None:
        flow.taken_apart = _in_steps(flow)
    return flow.taken_apart


def _in_steps(flow: Flow) -> tuple[Flow, Mapping[str, str]]:
    side = flow.side
    taken_apart = {name: steps for name in side.order if (steps := _steps(flow, name))}
    if not taken_apart:
        return flow, {}
    nodes: list[NodeRecord] = []
    gems: dict[str, Gem] = dict(side.gems)
    origins: dict[str, str] = {}
    for node in side.version.nodes:
        if node.id not in taken_apart:
            nodes.append(node)
            continue
        for made, step in _nodes(node, taken_apart[node.id]):
            gems[made.id], origins[made.id] = _gem(side.gems[node.id], made, step), node.id
            nodes.append(made)
    return Flow(with_nodes(side, nodes, gems), flow, flow.output_mode), origins


def _steps(flow: Flow, name: str) -> Sequence[Step]:
    gem, lineage = flow.side.gems.get(name), flow.lineage(name)
    if not isinstance(gem, Transform) or (lineage is not None and _is_known(lineage)):
        return ()
    if flow.outputs(name) != [""]:
        return ()  # what others take of it beside its rows is no step's
    return steps_of(gem, inputs_in(flow.side, name))


def _is_known(lineage: Lineage) -> bool:
    """Whether all is known of a transform that decides what Spark keeps for it.

    Of what it puts together, and takes apart again, only its steps tell what is read.
    """
    if lineage.kept is not None and any(map(is_taken_out, lineage.columns.values())):
        return False
    return lineage.rows.uses is not None


def _nodes(node: NodeRecord, steps: Sequence[Step]) -> list[tuple[NodeRecord, Step]]:
    """The nodes that stand for one: the last one has its id."""
    ids = [*(f"{node.id}/{number}" for number in range(1, len(steps))), node.id]
    inputs = {edge.name.lower(): edge for edge in node.inputs}

    def edge_to(name: str, of: str | int) -> InputRecord:
        edge = inputs[of] if isinstance(of, str) else replace(node.inputs[0], node=ids[of], output="")
        return replace(edge, name=name)

    found: list[tuple[NodeRecord, Step]] = []
    for name, step in zip(ids, steps, strict=True):
        edges = tuple(edge_to(called, of) for called, of in step.inputs.items())
        found.append((replace(node, id=name, inputs=edges, columns=None), step))
    return found


def _gem(gem: Gem, node: NodeRecord, step: Step) -> Gem:
    made = cast("Transform", type(gem)(step.options))
    made.input_names, made.node = tuple(edge.name for edge in node.inputs), node.id
    return made
