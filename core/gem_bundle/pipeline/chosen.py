"""Nodes and targets that somebody asks for by name: which are meant, and which aren't there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.diagnostics import Diagnostic, listed_names, suggest
from gem_bundle.errors import PipelineError
from gem_bundle.pipeline.groups import rejecting_before

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gem_bundle.pipeline.model import Definition, Node


def chosen_target_ids(definition: Definition, wanted: Sequence[str]) -> list[str]:
    """The ids of the targets that are meant: those wanted, or all.

    Args:
        definition: The pipeline.
        wanted: The ids that somebody gave.

    Raises:
        PipelineError: GB108 for each id that is no target.
    """
    known = [node.id for node in definition.of_kind("target")]
    wrong = [unknown_node(definition, name, known, "target") for name in wanted if name not in known]
    if wrong:
        raise PipelineError(wrong)
    return [name for name in known if not wanted or name in wanted]


def split_from_group(definition: Definition, node: Node, chosen: Collection[str]) -> list[Diagnostic]:
    """GB384: what is said of a target whose group isn't meant as a whole.

    Args:
        definition: The pipeline.
        node: A target that is meant.
        chosen: The ids of all targets that are.
    """
    if definition.mode != "stream":
        return _without_rejecting(definition, node, chosen)
    if not node.group:
        return []
    others = [o.id for o in definition.of_kind("target") if o.group == node.group and o.id not in chosen]
    if not others:
        return []
    named = listed_names(others)
    message = f"target `{node.id}` is in the group `{node.group}`, which is one query, with {named}"
    place = definition.locator.place(node.path, key=True)
    hint = "Name all targets of the group, or none."
    return [Diagnostic("GB384", "error", message, node.id, node.path, place, hint)]


def _without_rejecting(definition: Definition, node: Node, chosen: Collection[str]) -> list[Diagnostic]:
    """In a batch: what a target rejects is there when that has been written."""
    place = definition.locator.place(node.path, key=True)
    return [
        Diagnostic(
            "GB384",
            "error",
            f"target `{node.id}` takes what target `{name}` rejects, and that isn't written",
            node.id,
            node.path,
            place,
            "Name both targets, or none.",
        )
        for name in rejecting_before(definition.nodes, node)
        if name not in chosen
    ]


def unknown_node(definition: Definition, name: str, known: Sequence[str], what: str = "node") -> Diagnostic:
    """GB108: what is said of an id that there isn't.

    Args:
        definition: The pipeline.
        name: The id.
        known: The ids that it could have been.
        what: What it was to be: a ``node``, or a ``target``.
    """
    place = definition.locator.place(())
    hint = suggest(name, known, what=f"{what}s")
    return Diagnostic("GB108", "error", f"the pipeline has no {what} `{name}`", place=place, hint=hint)
