"""A checked pipeline: its gems with their options, its graph in order, the facts of every node."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gem_bundle.facts import Facts
    from gem_bundle.gem import Gem
    from gem_bundle.pipeline.model import Definition, Node


@dataclass(frozen=True)
class Plan:
    """What a run is made of.

    Args:
        definition: The pipeline as it was read.
        gems: A gem with validated options for each node.
        order: The ids of all nodes, inputs before those who use them.
        facts: What is known of the rows that flow out of each source and transform, and out of each of the
            named outputs that it has (`gem_bundle.facts.output_key`).
        origins: The distribution of each node's gem, and its version.
    """

    definition: Definition
    gems: Mapping[str, Gem]
    order: tuple[str, ...]
    facts: Mapping[str, Facts]
    origins: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def node(self, name: str) -> Node:
        """The node of that id."""
        return self.definition.nodes[name]

    def restartable(self, targets: Iterable[Node]) -> list[Node]:
        """Those of some targets whose queries continue from a checkpoint; in a batch pipeline none does."""
        if self.definition.mode != "stream":
            return []
        return [
            node
            for node in targets
            if self.gems[node.id].semantics.restartable  # type: ignore[attr-defined]
        ]

    def checkpoints(self, targets: Iterable[Node]) -> dict[str, str]:
        """The checkpoints that queries into some targets continue from; a group's is its first target's.

        Args:
            targets: The targets.
        """
        found: dict[str, str] = {}
        for node in self.restartable(targets):
            location = self.definition.checkpoint(node.id)
            if location not in found.values():
                found[node.id] = location
        return found

    def upstream(self, names: Iterable[str]) -> list[str]:
        """The nodes that these need, themselves included, in graph order; what isn't there is passed over."""
        nodes = self.definition.nodes
        needed: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in nodes and name not in needed:
                needed.add(name)
                waiting.extend(edge.node for edge in nodes[name].inputs)
        return [name for name in self.order if name in needed]

    def streaming_sources(self, name: str) -> frozenset[str]:
        """The ids of the streaming sources whose rows reach a node."""
        return self._streaming_sources.get(name, frozenset())

    @cached_property
    def _streaming_sources(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for name in self.order:
            node = self.definition.nodes[name]
            if node.kind == "source":
                found[name] = frozenset({name} if node.mode == "stream" else ())
            else:
                found[name] = frozenset().union(*(found.get(i.node, frozenset()) for i in node.inputs))
        return found


Path = tuple[str, frozenset[tuple[str, str]]]
"""A node, and the suffixes that readers' names have behind it, by source: two paths need two readers."""


def paths_into(plan: Plan, path: Path) -> list[Path]:
    """What a node is built of on one of the paths through it, one for each of its inputs."""
    name, suffixes = path
    edges = plan.node(name).inputs
    if not edges:
        return []
    # A list has positions and a mapping has keys; both stay when transforms are put between.
    labels = [str(step + 1) if isinstance(step := e.path[-1], int) else str(step) for e in edges]
    behind = [plan.streaming_sources(edge.node) for edge in edges]
    by_input = reader_suffixes(behind, plan.node(name).identity, dict(suffixes), labels)
    return [
        (edge.node, frozenset((s, suffix) for s, suffix in found.items() if suffix))
        for edge, found in zip(edges, by_input, strict=True)
    ]


def paths_behind(plan: Plan, name: str, until: Collection[str] = ()) -> list[Path]:
    """What has to be built for a node, itself included, inputs first.

    Args:
        plan: The pipeline.
        name: The id of the node.
        until: The ids of nodes whose output is there already: neither they nor what lies before is needed.
    """
    wanted: set[Path] = set()
    waiting: list[Path] = [(name, frozenset())]
    while waiting:
        found = waiting.pop()
        if found not in wanted and found[0] not in until:
            wanted.add(found)
            waiting.extend(paths_into(plan, found))
    position = {node: index for index, node in enumerate(plan.order)}
    return sorted(wanted, key=lambda path: (position[path[0]], sorted(path[1])))


def reader_name(plan: Plan, path: Path) -> str:
    """The name of the reader of a source on a path; it stays when the source is renamed by `was`."""
    name, suffixes = path
    return plan.node(name).identity + dict(suffixes).get(name, "")


def reader_suffixes(
    sources_of_inputs: list[frozenset[str]],
    node: str,
    suffixes: Mapping[str, str],
    names: Iterable[str],
) -> list[dict[str, str]]:
    """The suffixes of readers' names behind each input of a node.

    Spark refuses two readers of one name in a query, so a source that reaches a node through a
    second input gets a reader of its own there. Its name comes from the node and the input where
    the paths meet, and not from what lies between, so that inserting, renaming or removing
    transforms on the way keeps the offsets of a checkpoint.

    Args:
        sources_of_inputs: The streaming sources behind each input.
        node: The id of the node where the inputs meet.
        suffixes: The suffixes that the node itself was asked for, by source.
        names: The names of the inputs where the file gives them, else their positions.
    """
    seen: set[str] = set()
    found: list[dict[str, str]] = []
    for sources, name in zip(sources_of_inputs, names, strict=True):
        here = {source: suffixes.get(source, "") for source in sources}
        for source in sources & seen:
            here[source] += f"__{node}_{name}"
        seen |= sources
        found.append(here)
    return found
