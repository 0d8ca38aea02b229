"""``check --connect``: every gem's own preflight, at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from gem_bundle.check.checker import from_finding
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError
from gem_bundle.plugins import describe_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gem_bundle.pipeline.plan import Plan

_AT_ONCE = 8


def check_connect(plan: Plan, nodes: Iterable[str] | None = None) -> list[Diagnostic]:
    """Try what the nodes need from the outside: brokers, topics, paths. Nothing is changed there.

    Args:
        plan: The pipeline, its secrets resolved.
        nodes: The nodes to try; None for all.
    """
    names = list(plan.order if nodes is None else nodes)
    if not names:
        return []
    with ThreadPoolExecutor(max_workers=min(_AT_ONCE, len(names))) as pool:
        results = list(pool.map(lambda name: _connect(plan, name), names))
    return [diagnostic for found in results for diagnostic in found]


def _connect(plan: Plan, name: str) -> list[Diagnostic]:
    node, gem = plan.node(name), plan.gems[name]
    try:
        return [from_finding(plan.definition, node, f, gem) for f in gem.connect()]
    except GemError as error:
        from gem_bundle.run.failures import gem_error

        return [gem_error(plan, node, error)]
    except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
        place = plan.definition.locator.place((*node.path, "gem"))
        message = f"{node.kind} `{name}`: the gem `{node.gem}` fails in `connect`: {describe_error(error)}"
        hint = "This is a bug of the gem; the run goes on without its preflight."
        return [Diagnostic("GB203", "warning", message, name, (*node.path, "gem"), place, hint)]
