"""What a node rejects, of which a test expects rows as of a target: by the name ``NODE.rejected``.

For the engine it is a target that the pipeline hasn't got. So it is there whether a target of the pipeline
takes these rows or not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_bundle.diagnostics import suggest
from gem_bundle.facts import REJECTED, output_key
from gem_bundle.pipeline.groups import rejects
from gem_bundle.pipeline.model import Input, Node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.pipeline.loader import Loaded
    from gem_bundle.pipeline.plan import Plan


class Misnamed(NamedTuple):
    """Why nothing can be expected of a name.

    Args:
        message: What is wrong with it.
        hint: What to write instead.
    """

    message: str
    hint: str


def misnamed(name: str, loaded: Loaded) -> Misnamed | None:
    """What is wrong with a name of an output, as far as the pipeline file tells.

    Args:
        name: The name, as the test has it.
        loaded: The pipeline.
    """
    node, _, output = name.partition(".")
    nodes = loaded.definition.nodes if loaded.definition is not None else {}
    known = [output_key(other, REJECTED) for other in nodes if nodes[other].kind != "target"]
    if node not in nodes:
        if node in loaded.broken:
            return None
        message = f"the pipeline has no node `{node}` that could reject rows"
        return Misnamed(message, suggest(name, known, what="outputs"))
    if nodes[node].kind == "target":
        message = f"`{node}` is a target, and a test delivers nothing that it could reject"
        return Misnamed(message, "Try what delivers by itself, and expect here what the target gets.")
    if output != REJECTED:
        message = f"`{name}` is no target, and of outputs rows are expected of `{REJECTED}` only"
        return Misnamed(message, suggest(name, [output_key(node, REJECTED)], what="outputs"))
    return None


def rejects_nothing(name: str, plan: Plan) -> Misnamed | None:
    """Why an output isn't there that could be, with the options that its node has.

    Args:
        name: Its name, with which nothing else is wrong.
        plan: The checked pipeline.
    """
    node = plan.node(name.partition(".")[0])
    if rejects(plan, node):
        return None
    known = [output_key(other, REJECTED) for other in plan.order if _rejects_here(plan, other)]
    near = suggest(name, known, what="outputs") if known else ""
    hint = f"`gem-bundle describe {node.gem}` tells whether it can, and by which options. {near}"
    return Misnamed(f"with its options `{node.id}` (`{node.gem}`) rejects no rows", hint.strip())


def _rejects_here(plan: Plan, name: str) -> bool:
    return plan.node(name).kind != "target" and rejects(plan, plan.node(name))


def with_outputs(plan: Plan, names: Iterable[str]) -> Plan:
    """The plan with a target for each of some outputs.

    Args:
        plan: The checked pipeline.
        names: The names of the outputs, each of which is there.
    """
    nodes, gems, order = dict(plan.definition.nodes), dict(plan.gems), list(plan.order)
    for name in names:
        node = plan.node(name.partition(".")[0])
        taken = Input(node.id, REJECTED, REJECTED, (*node.path, REJECTED))
        nodes[name] = Node(name, "target", node.gem, {}, (taken,), node.path, **_as_those_behind(plan, node))
        gems[name] = gems[node.id]
        order.append(name)
    return replace(
        plan, definition=replace(plan.definition, nodes=nodes), gems=gems, order=tuple(dict.fromkeys(order))
    )


def _as_those_behind(plan: Plan, node: Node) -> dict[str, Any]:
    """Output mode and group of a target behind the node: what lies before may be legal in no other."""
    behind = (target for target in plan.definition.of_kind("target") if node.id in plan.upstream([target.id]))
    target = next(behind, None)
    return {} if target is None else {"output_mode": target.output_mode, "group": target.group}
