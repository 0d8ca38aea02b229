"""The rules of outputs: which a node has, and what becomes of the rows that it rejects."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gem_bundle.check.report import at_key, gem_failed
from gem_bundle.check.stages.inference import inputs_of
from gem_bundle.diagnostics import Diagnostic, listed_names
from gem_bundle.facts import REJECTED
from gem_bundle.operators import walk
from gem_bundle.rejected import places_told

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.facts import Facts
    from gem_bundle.gem import Transform
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

# Behind these a row is no longer one of the source's, or nobody knows whether it is.
_MAKES_OTHERS = frozenset({"aggregate", "custom", "except", "intersect", "python", "union", "unknown"})


def check_outputs(plan: Plan) -> list[Diagnostic]:
    """What is wrong with the outputs that inputs name, and with where rejected rows go."""
    definition = plan.definition
    found: list[Diagnostic] = []
    outputs: dict[str, tuple[str, ...]] = {}
    rejecting: dict[str, None] = {}
    for name, gem in plan.gems.items():
        method = "outputs"
        try:
            outputs[name] = cast("Transform", gem).outputs() if gem.kind == "transform" else ()
            method = "rejects"
            if cast("Transform", gem).rejects():
                rejecting[name] = None
        except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
            found.append(gem_failed(definition, definition.nodes[name], method, error))
    for node in definition.nodes.values():
        for edge in node.inputs:
            known = outputs.get(edge.node)
            if known is not None and plan.gems[edge.node].kind == "target" and edge.output != REJECTED:
                continue  # a target has no other, which is said already
            if known is None or edge.output in known or (edge.output is None and not known):
                continue
            if edge.output == REJECTED and edge.node in rejecting:
                continue
            names = ", ".join(f"`{edge.node}.{name}`" for name in known)
            if edge.output is None:
                message = f"`{node.id}`: `{edge.node}` has several outputs; name one"
            elif known:
                message = f"`{node.id}`: `{edge.node}` has no output `{edge.output}`"
            else:
                message = f"`{node.id}`: `{edge.node}` has one output without a name"
            hint = f"Write {names}." if known else f"Write `{edge.node}`."
            gem = plan.gems[edge.node]
            if edge.output == REJECTED and gem.kind == "target":
                message = f"`{node.id}`: target `{edge.node}` rejects no rows"
                hint = "Read from the target's input instead."
            if edge.output == REJECTED and cast("Transform", gem).can_reject():
                message = f"`{node.id}`: with these options `{edge.node}` rejects no rows"
                gem_name = definition.nodes[edge.node].gem
                hint = f"`gem-bundle describe {gem_name}` tells by which options it does."
            place = definition.locator.place(edge.path)
            found.append(Diagnostic("GB106", "error", message, node.id, edge.path, place, hint))
    found += _check_untaken(plan, rejecting)
    return found + [told for name in rejecting for told in _check_untold(plan, definition.nodes[name])]


def _check_untaken(plan: Plan, rejecting: Iterable[str]) -> list[Diagnostic]:
    """Rows that a node rejects go somewhere."""
    definition = plan.definition
    edges = [edge for node in definition.nodes.values() for edge in node.inputs]
    read = {edge.node for edge in edges}
    taken = definition.with_rejected_taken()
    targets = {node.id for node in definition.of_kind("target")}
    found = []
    for name in rejecting:
        if name in (read | targets) - taken:
            node = definition.nodes[name]
            message = f"the rows that `{name}` rejects go nowhere: no node takes `{name}.{REJECTED}`"
            hint = f"Write them somewhere, by a target with `input: {name}.{REJECTED}`."
            place = definition.locator.place(node.path, key=True)
            found.append(Diagnostic("GB109", "warning", message, name, node.path, place, hint))
    return found


def _check_untold(plan: Plan, node: Node) -> Iterator[Diagnostic]:
    """A rejected row that somebody keeps tells where it came from, where a node before would let it."""
    if not node.inputs or node.id not in plan.definition.with_rejected_taken():
        return
    found = _left_out(plan, node)
    if found is None:
        return
    before, columns = found
    named = listed_names(columns)
    message = f"what it rejects won't tell where it came from: `{before.id}` before it leaves out {named}"
    hint = f"Keep these columns in `{before.id}`; `gem-bundle describe {before.gem}` tells by which option."
    yield at_key(plan, node, "GB110", message, "gem", hint, "note")


def _left_out(plan: Plan, node: Node) -> tuple[Node, list[str]] | None:
    """The node before that leaves out the columns which tell where its rows came from, and these."""
    while len(node.inputs) == 1 and node.inputs[0].output != REJECTED:
        (facts,) = inputs_of(node, plan.facts)
        if facts.columns is None or _told(facts):
            return None
        if any(operator.kind in _MAKES_OTHERS for operator in walk(facts.operators)):
            return None
        node = plan.node(node.inputs[0].node)
        coming = inputs_of(node, plan.facts)
        if len(coming) == 1 and (columns := _told(coming[0])):
            return node, columns
    return None


def _told(facts: Facts) -> list[str]:
    return list(places_told((column.name, column.type) for column in facts.columns or ()).values())
