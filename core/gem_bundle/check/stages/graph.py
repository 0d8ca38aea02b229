"""The rules of the graph: inputs exist, nothing goes round in circles, nothing lies idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.diagnostics import Diagnostic, nearest, suggest
from gem_bundle.facts import REJECTED
from gem_bundle.pipeline.problems import MAX_PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Collection

    from gem_bundle.pipeline.document import Path
    from gem_bundle.pipeline.model import Definition, Input, Node


def check_graph(definition: Definition, broken: Collection[str]) -> tuple[list[str], list[Diagnostic]]:
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
            if len(found) < MAX_PROBLEMS:
                found.extend(_check_input(definition, node, edge, broken))
        found.extend(_check_names(definition, node))
    order, cycles = _sort(definition)
    found.extend(_describe_cycle(definition, cycle) for cycle in cycles)
    if broken:
        return order, found  # what reads from what isn't known
    if not definition.of_kind("target"):
        path: Path = ("targets",)
        place = definition.locator.place(path, key=True)
        hint = "Add a node to `targets`; without one nothing is read."
        message = "the pipeline has no target"
        found.append(Diagnostic("GB107", "error", message, None, path, place, hint))
    else:
        found.extend(_unused(definition))
    return order, found


def _check_input(
    definition: Definition, node: Node, edge: Input, broken: Collection[str]
) -> list[Diagnostic]:
    source = definition.nodes.get(edge.node)
    if edge.node in broken or (source is not None and (source.kind != "target" or edge.output == REJECTED)):
        return []
    if source is None:
        known = [n.id for n in definition.nodes.values() if n.kind != "target" and n.id != node.id]
        message = f"`{node.id}`: there is no node `{edge.node}` to read from"
        hint = suggest(edge.node, known, what="nodes")
    else:
        message = f"`{node.id}` can't read from `{edge.node}`: a target has no output"
        hint = "Read from the target's input instead."
    place = definition.locator.place(edge.path)
    return [Diagnostic("GB101", "error", message, node.id, edge.path, place, hint)]


def _check_names(definition: Definition, node: Node) -> list[Diagnostic]:
    names: dict[str, Input] = {}
    found: list[Diagnostic] = []
    for edge in node.inputs:
        first = names.setdefault(edge.name, edge)
        if first is not edge:
            message = f"`{node.id}` has two inputs called `{edge.name}`"
            inputs = f"{{left: {_reference(first)}, right: {_reference(edge)}}}"
            hint = f"Name them: `inputs: {inputs}`."
            place = definition.locator.place(edge.path)
            found.append(Diagnostic("GB104", "error", message, node.id, edge.path, place, hint))
    return found


def _reference(edge: Input) -> str:
    return f"{edge.node}.{edge.output}" if edge.output else edge.node


def _sort(definition: Definition) -> tuple[list[str], list[list[str]]]:
    """Inputs before those who use them, and the groups of nodes that wait for each other.

    Tarjan's algorithm, without recursion: a pipeline may be deeper than Python's stack.
    """
    nodes = definition.nodes
    order: list[str] = []
    cycles: list[list[str]] = []
    number: dict[str, int] = {}  # when a node was first met
    lowest: dict[str, int] = {}  # the earliest open node it leads back to
    open_nodes: dict[str, None] = {}
    for start in nodes:
        if start in number:
            continue
        way = [(start, iter(nodes[start].inputs))]
        number[start] = lowest[start] = len(number)
        open_nodes[start] = None
        while way:
            name, edges = way[-1]
            edge = next(edges, None)
            if edge is not None:
                following = edge.node
                if following in open_nodes:
                    lowest[name] = min(lowest[name], number[following])
                elif following in nodes and following not in number:
                    number[following] = lowest[following] = len(number)
                    open_nodes[following] = None
                    way.append((following, iter(nodes[following].inputs)))
                continue
            way.pop()
            if way:
                lowest[way[-1][0]] = min(lowest[way[-1][0]], lowest[name])
            if lowest[name] == number[name]:
                group: list[str] = []
                while not group or group[-1] != name:
                    group.append(open_nodes.popitem()[0])
                if len(group) > 1 or any(edge.node == name for edge in nodes[name].inputs):
                    cycles.append(group)
                else:
                    order.append(name)
    return order, cycles


def _describe_cycle(definition: Definition, group: Collection[str]) -> Diagnostic:
    """The shortest way round from the first node of the group, in the order of the file."""
    members = set(group)
    start = next(name for name in definition.nodes if name in members)
    reader: dict[str, str] = {}
    waiting = [start]
    for name in waiting:  # breadth first: it grows while it is walked
        for edge in definition.nodes[name].inputs:
            if edge.node in members and edge.node not in reader:
                reader[edge.node] = name
                waiting.append(edge.node)
    way = [start, reader[start]]
    while way[-1] != start:
        way.append(reader[way[-1]])
    way.reverse()
    node = definition.nodes[start]
    edge = next(edge for edge in node.inputs if edge.node == way[1])
    round_trip = " ← ".join(f"`{name}`" for name in way)
    return Diagnostic(
        "GB102",
        "error",
        f"these nodes wait for each other: {round_trip}",
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
        if name not in definition.nodes:  # reported already; what was meant is not unused
            name = nearest(name, definition.nodes) or name
        if name not in used and name in definition.nodes:
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
