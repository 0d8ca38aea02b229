"""Rules of plugins: what they get to see of a pipeline, and what becomes of their findings.

A plugin implements the hook ``gem_bundle_check_pipeline`` (see `gem_bundle.hookspecs`).
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from gem_bundle.check.report import at_path, option_path
from gem_bundle.diagnostics import Diagnostic, Finding, Severity
from gem_bundle.errors import describe_error
from gem_bundle.pipeline.document import Unknown
from gem_bundle.pipeline.secrets import HIDDEN, Secret, hidden
from gem_bundle.views import NodeView, PipelineView

if TYPE_CHECKING:
    from gem_bundle.gem import Gem
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.plugins import Registry

_CODE = re.compile(r"(?!GB\d)[A-Z]+\d+")


def check_rules(plan: Plan, registry: Registry) -> list[Diagnostic]:
    """What the rules of the installed plugins find.

    A rule that raises, or says something that makes no sense, ends in a warning with its plugin's name.
    """
    found: list[Diagnostic] = []
    for rule in registry.rules:
        try:
            found += [_diagnostic(plan, finding) for finding in rule.findings(_view(plan))]
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a plugin's bug must not take the check down)
            origin = rule.origin
            message = f"the rules of the plugin `{origin.plugin}` of `{origin}` fail: {describe_error(error)}"
            hint = "This is a bug of the plugin; its part of the check is left out."
            place = plan.definition.locator.place(())
            found.append(Diagnostic("GB203", "warning", message, place=place, hint=hint))
    return found


def _view(plan: Plan) -> PipelineView:
    definition = plan.definition
    nodes = {name: _node(plan, node) for name, node in definition.nodes.items()}
    return PipelineView(
        definition.name,
        definition.version,
        definition.mode,
        definition.profile,
        MappingProxyType({key: hidden(value) for key, value in definition.spark.items()}),
        MappingProxyType(nodes),
    )


def _node(plan: Plan, node: Node) -> NodeView:
    gem = plan.gems.get(node.id)
    source, target = node.kind == "source", node.kind == "target"
    flows_from = node.inputs[0].key if target else node.id
    return NodeView(
        node.id,
        node.kind,
        node.gem,
        MappingProxyType(_options(node, gem)),
        tuple(edge.node for edge in node.inputs),
        mode=node.mode if source else None,
        output_mode=node.output_mode if target else None,
        trigger=node.trigger.kind if target else None,
        facts=plan.facts.get(flows_from),
    )


def _options(node: Node, gem: Gem | None) -> dict[str, Any]:
    if gem is None:
        return {key: _copy(value) for key, value in node.options.items()}
    secret = gem.options_type.secret_names()
    names = {key: gem.options_type.canonical(key) or key for key in node.options}
    return {name: HIDDEN if name in secret else _copy(node.options[key]) for key, name in names.items()}


def _copy(value: Any) -> Any:
    """A copy without secrets, so that a rule can neither see them nor change the pipeline."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    if isinstance(value, Secret | Unknown):
        return HIDDEN
    return str(hidden(value)) if isinstance(value, str) else value


def _diagnostic(plan: Plan, finding: Finding) -> Diagnostic:
    """A rule's finding at its node, with the place of the key that it is about.

    Raises:
        TypeError: When it isn't a finding.
        ValueError: When its code, severity or node can't be.
    """
    if not isinstance(finding, Finding):
        raise TypeError(f"a rule gives findings, not {finding!r}")
    if not _CODE.fullmatch(finding.code):
        raise ValueError(f"a code of a plugin's own is like ACME001, not {finding.code!r}")
    if finding.severity not in get_args(Severity):
        raise ValueError(f"a severity is error, warning or note, not {finding.severity!r}")
    if finding.node is None:
        place = plan.definition.locator.place(())
        return Diagnostic(finding.code, finding.severity, finding.message, place=place, hint=finding.hint)
    node = plan.definition.nodes.get(finding.node)
    if node is None:
        raise ValueError(f"the pipeline has no node {finding.node!r}")
    path = node.path
    if finding.option is not None:
        path = option_path(node, finding.option, plan.gems.get(node.id))
    elif finding.key is not None:
        path = (*path, finding.key)
    return at_path(plan.definition, node, path, finding.code, finding.message, finding.hint, finding.severity)
