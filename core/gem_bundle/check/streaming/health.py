"""Limits of health that can't be measured where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gem_bundle.check.report import at_path
from gem_bundle.facts import REJECTED
from gem_bundle.operators import any_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.facts import Facts
    from gem_bundle.gem import Source, Target, Transform
    from gem_bundle.pipeline.document import Path
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

_HINT = "Remove it here: an empty value takes back what the pipeline says for all."


def check_health(plan: Plan) -> Iterator[Diagnostic]:
    """Each limit can be measured, and what is to be done about it can be done.

    A limit that the pipeline sets for all targets is fine where one of them can be measured by it.
    """
    definition = plan.definition
    useless: dict[str, list[tuple[Node, str]]] = {}
    useful: set[str] = set()
    for node in definition.of_kind("target"):
        facts = plan.facts.get(node.inputs[0].key)
        for limit in node.health.limits:
            why = _why_not(plan, node, facts, limit.name)
            own = _place(plan, node, limit.name)
            if why and own is not None:
                yield _useless(plan, node, own, limit.name, why)
            elif why:
                useless.setdefault(limit.name, []).append((node, why))
            else:
                useful.add(limit.name)
    for name, found in useless.items():
        if name not in useful:
            yield _useless(plan, found[0][0], ("health", *name.split(".")), name, found[0][1])
    if definition.mode == "batch":
        for node in definition.of_kind("target"):
            if node.restarts is not None:
                path = (*node.path, "restarts")
                there = definition.locator.place(path) != definition.locator.place(node.path)
                message = "`restarts` has no effect: a batch pipeline has no queries that go on"
                yield at_path(
                    definition,
                    node,
                    path if there else ("restarts",),
                    "GB390",
                    message,
                    "Remove it.",
                    "warning",
                )


def _place(plan: Plan, node: Node, name: str) -> Path | None:
    """The path of a limit in the node; None where the limit is the pipeline's."""
    path = (*node.path, "health", *name.split("."))
    locator = plan.definition.locator
    here, parent = locator.place(path, key=True), locator.place(path[:-1], key=True)
    return path if here != parent else None


def _useless(plan: Plan, node: Node, path: Path, name: str, why: str) -> Diagnostic:
    message = f"the limit `{name}` can't be measured: {why}"
    return at_path(plan.definition, node, path, "GB390", message, _HINT, "warning")


def _why_not(plan: Plan, node: Node, facts: Facts | None, name: str) -> str:
    """Why a limit says nothing about a target; empty where it does, or where that isn't known."""
    if plan.definition.mode == "batch":
        return "a batch pipeline has no micro-batches"
    if facts is None or facts.streaming is None:
        return ""
    what = name.partition(".")[2]
    if what:
        sources = [cast("Source | None", plan.gems.get(found)) for found in plan.streaming_sources(node.id)]
        if None not in sources and not any(s is not None and what in s.semantics.lag for s in sources):
            gems = ", ".join(sorted(f"`{plan.node(s).gem}`" for s in plan.streaming_sources(node.id)))
            return f"{gems} can't tell it of a stream"
    operators = list(facts.all_operators())
    if name == "watermark_behind":
        known = all(operator.kind not in {"unknown", "custom"} for operator in operators)
        if known and not any(operator.kind == "watermark" for operator in operators):
            return "no watermark is declared on the way"
    if name == "state_rows" and any_of(operator.stateful for operator in operators) is False:
        return "nothing on the way keeps state"
    if name == "batch_time" and node.trigger.kind == "continuous":
        return "continuous processing has no micro-batches"
    if name == "rejected":
        made = [cast("Transform | Target | None", plan.gems.get(n)) for n in plan.upstream([node.id])]
        if None not in made and not any(gem is not None and _rejects(gem) for gem in made):
            return f"no node on the way has an output `{REJECTED}`"
    return ""


def _rejects(gem: Transform | Target) -> bool:
    try:
        return bool(gem.rejects())
    except Exception:  # noqa: BLE001 (a gem's bug, which is reported elsewhere)
        return True
