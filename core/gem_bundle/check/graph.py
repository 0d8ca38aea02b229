"""The rules of the graph: inputs exist, nothing goes round in circles, nothing lies idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.diagnostics import Diagnostic, suggest

if TYPE_CHECKING:
    from collections.abc import Collection

    from gem_bundle.pipeline.model import Definition, Input, Node


def check_graph(
    definition: Definition, broken: Collection[str]
) -> tuple[list[str], list[Diagnostic]]:
    """Check the edges and find an order.

    Args:
        definition: The pipeline.
        broken: Ids that exist in the file but could not be read.

    Returns:
        The ids of all nodes that stand in no cycle, inputs first, and what is wrong.
    """
    found: list[Diagnostic] = []
    for node in definition.nodes.values():
        for edge in node.inputs:
            found.extend(_check_input(definition, node, edge, broken))
        found.extend(_check_names(definition, node))
    order, cycles = _sort(definition)
    found.extend(_describe_cycle(definition, cycle) for cycle in cycles)
    if not definition.of_kind("target") and not broken:
        place = definition.locator.place(("targets",), key=True)
        hint = "Add a node to `targets`; without one nothing is read."
        found.append(
            Diagnostic(
                "GB107", "error", "the pipeline has no target", None, ("targets",), place, hint
            )
        )
    elif not broken:
        found.extend(_unused(definition))
    return order, found


def _check_input(
    definition: Definition, node: Node, edge: Input, broken: Collection[str]
) -> list[Diagnostic]:
    source = definition.nodes.get(edge.node)
    place = definition.locator.place(edge.path)
    if source is None:
        if edge.node in broken:
            return []
        known = [n.id for n in definition.nodes.values() if n.kind != "target" and n.id != node.id]
        message = f"`{node.id}`: there is no node `{edge.node}` to read from"
        hint = suggest(edge.node, known, what="nodes")
        return [Diagnostic("GB101", "error", message, node.id, edge.path, place, hint)]
    if source.kind == "target":
        message = f"`{node.id}` can't read from `{edge.node}`: a target has no output"
        hint = "Read from the target's input instead."
        return [Diagnostic("GB101", "error", message, node.id, edge.path, place, hint)]
    return []


def _check_names(definition: Definition, node: Node) -> list[Diagnostic]:
    names = [edge.name for edge in node.inputs]
    for position, name in enumerate(names):
        if name in names[:position]:
            edge = node.inputs[position]
            return [
                Diagnostic(
                    "GB104",
                    "error",
                    f"`{node.id}` has two inputs called `{name}`",
                    node.id,
                    edge.path,
                    definition.locator.place(edge.path),
                    f"Name them: `inputs: {{left: {node.inputs[names.index(name)].node}, "
                    f"right: {edge.node}}}`.",
                )
            ]
    return []


def _sort(definition: Definition) -> tuple[list[str], list[list[str]]]:
    """Depth-first order without recursion, and one path for each cycle met."""
    nodes = definition.nodes
    order: list[str] = []
    done: set[str] = set()
    cycles: list[list[str]] = []
    in_cycle: set[str] = set()
    for start in nodes:
        if start in done:
            continue
        path = [start]
        on_path = {start}
        edges = [iter(nodes[start].inputs)]
        while path:
            edge = next(edges[-1], None)
            if edge is None:
                name = path.pop()
                on_path.discard(name)
                edges.pop()
                done.add(name)
                if name not in in_cycle:
                    order.append(name)
            elif edge.node in on_path:
                cycle = path[path.index(edge.node) :]
                cycles.append(cycle)
                in_cycle.update(cycle)
            elif edge.node in nodes and edge.node not in done:
                path.append(edge.node)
                on_path.add(edge.node)
                edges.append(iter(nodes[edge.node].inputs))
    return order, cycles


def _describe_cycle(definition: Definition, cycle: list[str]) -> Diagnostic:
    node = definition.nodes[cycle[0]]
    edge = next(i for i in node.inputs if i.node in cycle)
    way = " ← ".join(f"`{name}`" for name in [*cycle, cycle[0]])
    return Diagnostic(
        "GB102",
        "error",
        f"these nodes wait for each other: {way}",
        node.id,
        edge.path,
        definition.locator.place(edge.path),
        "Let one of them read from a source, or from a node before the cycle.",
    )


def _unused(definition: Definition) -> list[Diagnostic]:
    used: set[str] = set()
    waiting = [node.id for node in definition.of_kind("target")]
    while waiting:
        name = waiting.pop()
        if name in used or name not in definition.nodes:
            continue
        used.add(name)
        waiting.extend(edge.node for edge in definition.nodes[name].inputs)
    return [
        Diagnostic(
            "GB103",
            "warning",
            f"the {node.kind} `{node.id}` is not used by any target",
            node.id,
            node.path,
            definition.locator.place(node.path, key=True),
            "Remove it, or use it as an input.",
        )
        for node in definition.nodes.values()
        if node.id not in used
    ]
