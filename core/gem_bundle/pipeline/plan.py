"""A checked pipeline: its gems with their options, its graph in order, the facts of every node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
        facts: What is known of the rows that flow out of each source and transform.
    """

    definition: Definition
    gems: Mapping[str, Gem]
    order: tuple[str, ...]
    facts: Mapping[str, Facts]

    def node(self, name: str) -> Node:
        """The node of that id."""
        return self.definition.nodes[name]

    def upstream(self, names: Iterable[str]) -> list[str]:
        """The nodes that these need, themselves included, in graph order."""
        needed: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                waiting.extend(i.node for i in self.definition.nodes[name].inputs)
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
