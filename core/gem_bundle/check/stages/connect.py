"""``check --connect``: every gem's own preflight, and what sources find there, all at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gem_bundle.check.report import from_finding, from_gem_error, gem_failed
from gem_bundle.diagnostics import Diagnostic
from gem_bundle.errors import GemError, describe_error
from gem_bundle.facts import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gem_bundle.gem import Gem, Source, Target, Transform
    from gem_bundle.pipeline.model import Definition
    from gem_bundle.pipeline.plan import Plan

_T = TypeVar("_T")
_AT_ONCE = 8


def check_connect(plan: Plan, nodes: Iterable[str] | None = None) -> list[Diagnostic]:
    """Try what the nodes need from the outside: brokers, topics, paths. Nothing is changed there.

    Args:
        plan: The pipeline, its secrets resolved.
        nodes: The nodes to try; None for all.
    """
    names = list(plan.order if nodes is None else nodes)
    results = _at_once(lambda name: _connect(plan, name), names)
    return [diagnostic for found in results for diagnostic in found]


def discover_columns(
    definition: Definition, gems: Mapping[str, Gem], names: Iterable[str]
) -> tuple[dict[str, tuple[Column, ...]], list[Diagnostic]]:
    """Ask sources for the columns of what is there, and let the others look for what they need to know.

    Args:
        definition: The pipeline, its secrets resolved.
        gems: A gem with validated options for each of the nodes.
        names: The sources whose columns aren't known, and the transforms and targets.

    Returns:
        The columns of those that can tell, and what was found on the way.
    """
    asked = list(names)
    results = _at_once(lambda name: _discover(definition, name, gems[name]), asked)
    columns = {name: known for name, (known, _) in zip(asked, results, strict=True) if known is not None}
    return columns, [diagnostic for _, found in results for diagnostic in found]


def _at_once(ask: Callable[[str], _T], names: list[str]) -> list[_T]:
    if not names:
        return []
    with ThreadPoolExecutor(max_workers=min(_AT_ONCE, len(names))) as pool:
        return list(pool.map(ask, names))


def _discover(
    definition: Definition, name: str, gem: Gem
) -> tuple[tuple[Column, ...] | None, list[Diagnostic]]:
    node = definition.nodes[name]
    try:
        answer: Any = cast("Source | Transform | Target", gem).discover()
        if answer is None:
            return None, []
        columns = tuple(answer)
        if not all(isinstance(column, Column) for column in columns):
            raise TypeError(f"columns are needed, not {answer!r}")
    except GemError as error:
        return None, [from_gem_error(definition, node, error, gem)]
    except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
        return None, [gem_failed(definition, node, "discover", error)]
    return columns, []


def _connect(plan: Plan, name: str) -> list[Diagnostic]:
    node, gem = plan.node(name), plan.gems[name]
    try:
        return [from_finding(plan.definition, node, f, gem) for f in gem.connect()]
    except GemError as error:
        return [from_gem_error(plan.definition, node, error, gem)]
    except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
        place = plan.definition.locator.place((*node.path, "gem"))
        message = f"{node.kind} `{name}`: the gem `{node.gem}` fails in `connect`: {describe_error(error)}"
        hint = "This is a bug of the gem; the run goes on without its preflight."
        return [Diagnostic("GB203", "warning", message, name, (*node.path, "gem"), place, hint)]
