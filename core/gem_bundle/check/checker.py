"""One check from end to end: file, graph, gems and options, semantics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from gem_bundle.check.gems import make_gems
from gem_bundle.check.graph import check_graph
from gem_bundle.check.places import check_places
from gem_bundle.check.report import at_path, gem_failed, option_path
from gem_bundle.check.rules import check_rules
from gem_bundle.check.sections import check_sections
from gem_bundle.check.silence import Silence, read_silence
from gem_bundle.check.sources import check_sources
from gem_bundle.check.streaming import check_streaming
from gem_bundle.check.targets import check_targets
from gem_bundle.check.triggers import check_triggers
from gem_bundle.check.versions import check_versions
from gem_bundle.diagnostics import Diagnostic, in_order
from gem_bundle.errors import PipelineError
from gem_bundle.expressions import limited
from gem_bundle.facts import UNKNOWN_OPERATOR, Facts, combined
from gem_bundle.pipeline.loader import LoadOptions, load_file
from gem_bundle.pipeline.plan import Plan
from gem_bundle.pipeline.secrets import hidden
from gem_bundle.plugins import load_registry
from gem_bundle.settings import Settings, load_settings

MAX_EXPRESSIONS = 4_000
"""Of more expressions in one pipeline nothing is known: reading them would take too long."""

MAX_FINDINGS = 200
"""What else a gem finds in one node has the same cause."""

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from gem_bundle.diagnostics import Finding
    from gem_bundle.gem import Gem, Source, Transform
    from gem_bundle.operators import Operator
    from gem_bundle.pipeline.loader import Loaded
    from gem_bundle.pipeline.model import Definition, Node
    from gem_bundle.plugins import Registry


@dataclass(frozen=True)
class Checked:
    """The verdict on a pipeline.

    Args:
        plan: What can be run; None when there are errors, or a gem whose options depend on a secret
            that a check doesn't look up.
        diagnostics: What was found, in the order of the file.
        definition: The pipeline as far as it could be read.
        silence: What the project and the file silence. The diagnostics are without it, and what else is
            found about the pipeline should be.
    """

    plan: Plan | None
    diagnostics: list[Diagnostic]
    definition: Definition | None = None
    silence: Silence = field(default_factory=Silence, compare=False)

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not any(d.is_error for d in self.diagnostics)


def check_file(
    path: str | os.PathLike[str],
    options: LoadOptions | None = None,
    registry: Registry | None = None,
    *,
    discover: bool = False,
) -> Checked:
    """Check a pipeline file without a JVM, without a network, and without running anything in it.

    Args:
        path: The pipeline file.
        options: Parameters, profile, environment.
        registry: The gems to use; by default the installed ones.
        discover: Let sources look at what is there for the columns that nobody declares. That takes
            the network, and secrets that are resolved.
    """
    return check_definition(load_file(path, options), registry, discover=discover)


def check_definition(loaded: Loaded, registry: Registry | None = None, *, discover: bool = False) -> Checked:
    """Check a pipeline that was read.

    Args:
        loaded: What the loader made of it.
        registry: The gems to use; by default the installed ones.
        discover: As `check_file` takes it.
    """
    found = list(loaded.diagnostics)
    definition = loaded.definition
    if definition is None:
        return Checked(None, in_order(found))
    registry = load_registry() if registry is None else registry
    order, wrong = check_graph(definition, loaded.broken)
    found += wrong
    gems, wrong = make_gems(definition, registry)
    found += wrong
    settings, wrong = _settings(definition)
    found += wrong
    found += check_sections(definition, registry)
    with limited(MAX_EXPRESSIONS):
        facts, wrong = _infer(definition, gems, order, discover=discover)
        found += wrong
        plan = Plan(definition, gems, tuple(order), facts)
        found += _check_outputs(plan)
        found += check_sources(plan)
        found += check_targets(plan)
        found += check_places(plan)
        found += check_triggers(plan)
        found += check_versions(plan, settings.spark_version)
        found += check_streaming(plan)
        found += _gem_rules(plan)
        found += check_rules(plan, registry)
    complete = gems.keys() == definition.nodes.keys() and not loaded.broken
    runs = complete and not any(d.is_error for d in found)
    text = getattr(definition.locator, "source", "")
    silence = read_silence(text, definition.locator, definition, settings.disabled)
    kept = silence.kept(diagnostic.rewritten(hidden) for diagnostic in found)
    kept += silence.kept(silence.useless(complete=runs))
    return Checked(plan if runs else None, in_order(kept), definition, silence)


def _settings(definition: Definition) -> tuple[Settings, list[Diagnostic]]:
    """The settings of the pipeline's project, and what is wrong with them."""
    try:
        return load_settings(definition.folder), []
    except PipelineError as error:
        return Settings(), list(error.diagnostics)


def _infer(
    definition: Definition, gems: dict[str, Gem], order: Iterable[str], *, discover: bool
) -> tuple[dict[str, Facts], list[Diagnostic]]:
    """The facts of each node, from its inputs' facts and its gem's declaration."""
    sources, found = _infer_sources(definition, gems, order, discover=discover)
    facts: dict[str, Facts] = {}
    for name in order:
        node = definition.nodes[name]
        if node.kind == "target":
            continue
        if node.kind == "source":
            streaming = node.mode == "stream"
            declared = replace(sources[name], streaming=streaming, bounded=not streaming)
        else:
            inputs = inputs_of(node, facts)
            declared, wrong = declared_facts(definition, node, gems.get(name), inputs)
            found += wrong
        facts[name] = replace(declared, operators=_of_node(declared.operators, name))
    return facts, found


def _infer_sources(
    definition: Definition, gems: dict[str, Gem], order: Iterable[str], *, discover: bool
) -> tuple[dict[str, Facts], list[Diagnostic]]:
    """What the sources declare, and on request what they find."""
    facts: dict[str, Facts] = {}
    found: list[Diagnostic] = []
    for name in order:
        node = definition.nodes[name]
        if node.kind == "source":
            facts[name], wrong = declared_facts(definition, node, gems.get(name), [])
            found += wrong
    if discover:
        from gem_bundle.check.connect import discover_columns

        unknown = [name for name, declared in facts.items() if declared.columns is None and name in gems]
        discovered, wrong = discover_columns(definition, gems, unknown)
        found += wrong
        for name, columns in discovered.items():
            facts[name] = facts[name].with_columns(columns)
    return facts, found


def declared_facts(
    definition: Definition, node: Node, gem: Gem | None, inputs: list[Facts]
) -> tuple[Facts, list[Diagnostic]]:
    """What a gem declares of its rows, and what is wrong with it.

    Args:
        definition: The pipeline.
        node: A source or a transform.
        gem: Its gem; without one, and where the gem fails, nothing is known.
        inputs: The facts of its inputs.
    """
    unknown = Facts() if node.kind == "source" else combined(UNKNOWN_OPERATOR, inputs)
    if gem is None:
        return unknown, []
    try:
        declared: Any = cast("Source | Transform", gem).infer(*inputs)
        if not isinstance(declared, Facts):
            raise TypeError(f"Facts are needed, not {declared!r}")
    except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
        return unknown, [gem_failed(definition, node, "infer", error)]
    return declared, []


def inputs_of(node: Node, facts: Mapping[str, Facts]) -> list[Facts]:
    """The facts of a node's inputs, in order; what can't be known of one is unknown."""
    unknown = Facts(operators=(UNKNOWN_OPERATOR,))
    found = [facts.get(edge.node, unknown) for edge in node.inputs]
    # Of one of several outputs the columns aren't known: those are of all of them.
    return [
        known if edge.output is None else known.with_columns(None)
        for edge, known in zip(node.inputs, found, strict=True)
    ]


def _of_node(operators: tuple[Operator, ...], node: str) -> tuple[Operator, ...]:
    """The same operators, those that are new marked as this node's."""
    marked: dict[int, Operator] = {}

    def mark(operator: Operator) -> Operator:
        if operator.node:
            return operator
        if id(operator) not in marked:
            inputs = tuple(mark(before) for before in operator.inputs)
            marked[id(operator)] = replace(operator, node=node, inputs=inputs)
        return marked[id(operator)]

    return tuple(mark(operator) for operator in operators)


def _check_outputs(plan: Plan) -> list[Diagnostic]:
    """An input names an output that its node has."""
    definition = plan.definition
    found: list[Diagnostic] = []
    outputs: dict[str, tuple[str, ...]] = {}
    for name, gem in plan.gems.items():
        try:
            outputs[name] = cast("Transform", gem).outputs() if gem.kind == "transform" else ()
        except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
            found.append(gem_failed(definition, definition.nodes[name], "outputs", error))
    for node in definition.nodes.values():
        for edge in node.inputs:
            known = outputs.get(edge.node)
            if known is None or edge.output in known or (edge.output is None and not known):
                continue
            names = ", ".join(f"`{edge.node}.{name}`" for name in known)
            if edge.output is None:
                message = f"`{node.id}`: `{edge.node}` has several outputs; name one"
            elif known:
                message = f"`{node.id}`: `{edge.node}` has no output `{edge.output}`"
            else:
                message = f"`{node.id}`: `{edge.node}` has one output without a name"
            hint = f"Write {names}." if known else f"Write `{edge.node}`."
            place = definition.locator.place(edge.path)
            found.append(Diagnostic("GB106", "error", message, node.id, edge.path, place, hint))
    return found


def _gem_rules(plan: Plan) -> list[Diagnostic]:
    """What the gems themselves have to say."""
    found: list[Diagnostic] = []
    for name, gem in plan.gems.items():
        node = plan.node(name)
        names = [edge.name for edge in node.inputs]
        if len(set(names)) < len(names):
            continue  # which of them an expression means can't be said, and that is reported
        inputs = inputs_of(node, plan.facts)
        try:
            found += [
                from_finding(plan.definition, node, f, gem) for f in islice(gem.check(*inputs), MAX_FINDINGS)
            ]
        except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
            found.append(gem_failed(plan.definition, node, "check", error))
    return found


def from_finding(definition: Definition, node: Node, finding: Finding, gem: Gem | None = None) -> Diagnostic:
    """A gem's finding with the node's name and the place of the option it is about.

    Args:
        definition: The pipeline.
        node: The node whose gem says it.
        finding: What it says.
        gem: The gem, so that an option is found in whichever spelling the file has it.
    """
    path = node.path if finding.option is None else option_path(node, finding.option, gem)
    return at_path(definition, node, path, finding.code, finding.message, finding.hint, finding.severity)
