"""A pipeline as the rules of plugins see it: what the hook ``gem_bundle_check_pipeline`` is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from gem_bundle.facts import Facts
    from gem_bundle.semantics import Kind, OutputMode, TriggerKind


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as the rules of plugins see it.

    Args:
        id: Its id.
        kind: ``source``, ``transform`` or ``target``.
        gem: The name of its gem.
        options: The options that the file sets, by the names of `gem-bundle describe` in whichever
            spelling they are written, references filled in. A secret is ten asterisks.
        inputs: The ids of the nodes that it gets rows from.
        mode: Of a source: whether it is read as a ``stream`` or as a static relation (``batch``).
        output_mode: Of a target.
        trigger: The kind of a target's trigger; ``default`` where the file has none.
        facts: What is known of the rows that flow out of it, into it for a target; None where nothing is.
    """

    id: str
    kind: Kind
    gem: str
    options: Mapping[str, Any]
    inputs: tuple[str, ...] = ()
    mode: Literal["stream", "batch"] | None = None
    output_mode: OutputMode | None = None
    trigger: TriggerKind | None = None
    facts: Facts | None = None


@dataclass(frozen=True, slots=True)
class PipelineView:
    """A pipeline as the rules of plugins see it; nothing in it can be changed.

    Args:
        name: Its name.
        version: Its version.
        mode: ``stream`` or ``batch``.
        profile: The profile that it is checked with, or None.
        spark: The Spark settings of the file.
        nodes: Its nodes by id, in the order of the file. With errors in the pipeline some may be missing.
    """

    name: str
    version: str
    mode: Literal["stream", "batch"]
    profile: str | None
    spark: Mapping[str, str]
    nodes: Mapping[str, NodeView]

    def of_kind(self, kind: Kind, gem: str | None = None) -> list[NodeView]:
        """The nodes of a kind, and of one gem if that is given."""
        return [
            node for node in self.nodes.values() if node.kind == kind and (gem is None or node.gem == gem)
        ]
