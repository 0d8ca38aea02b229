"""One check from end to end: file, graph, gems and options, semantics."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from gem_bundle.check.report import from_finding, gem_failed
from gem_bundle.check.stages.called import check_called
from gem_bundle.check.stages.gems import make_gems
from gem_bundle.check.stages.graph import check_graph
from gem_bundle.check.stages.inference import infer, inputs_of, steady_for
from gem_bundle.check.stages.outputs import check_outputs
from gem_bundle.check.stages.places import check_places
from gem_bundle.check.stages.session_settings import check_settings
from gem_bundle.check.stages.silence import Silence, read_silence
from gem_bundle.check.stages.versions import TargetSpark, check_versions
from gem_bundle.check.streaming import check_streaming
from gem_bundle.check.streaming.groups import check_groups
from gem_bundle.check.streaming.sources import check_sources
from gem_bundle.check.streaming.targets import check_targets
from gem_bundle.check.streaming.triggers import check_triggers
from gem_bundle.diagnostics import Diagnostic, in_order
from gem_bundle.errors import PipelineError
from gem_bundle.expressions import limited
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

    from gem_bundle.pipeline.loader import Loaded
    from gem_bundle.pipeline.model import Definition
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
        known: The plan as far as it is known, for those who only show it; it may have errors.
    """

    plan: Plan | None
    diagnostics: list[Diagnostic]
    definition: Definition | None = None
    silence: Silence = field(default_factory=Silence, compare=False)
    known: Plan | None = field(default=None, compare=False)

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
    target = TargetSpark(settings.spark_version)
    if definition.sections:
        from gem_bundle.check.stages.sections import read_sections

        sections, wrong = read_sections(definition, registry)
        found += wrong
        target = target.of_sections(sections, definition.profile)
    with limited(MAX_EXPRESSIONS):
        facts, wrong = infer(definition, gems, order, discover=discover)
        found += wrong
        origins = {
            name: (found.origin.distribution, found.origin.version)
            for name, found in (
                (node, registry.get(gem.kind, definition.nodes[node].gem)) for node, gem in gems.items()
            )
        }
        plan = Plan(definition, gems, tuple(order), facts, origins)
        found += check_outputs(plan)
        found += check_sources(plan)
        found += check_targets(plan)
        found += check_groups(plan)
        if any(node.health.limits or node.restarts is not None for node in definition.nodes.values()):
            from gem_bundle.check.streaming.health import check_health

            found += check_health(plan)
        found += check_places(plan)
        found += check_triggers(plan)
        found += check_versions(plan, target)
        found += check_settings(plan)
        found += check_streaming(plan)
        found += _gem_rules(plan, target)
        found += check_called(plan)
        if registry.rules:
            from gem_bundle.check.stages.plugin_rules import check_rules

            found += check_rules(plan, registry)
    complete = gems.keys() == definition.nodes.keys() and not loaded.broken
    runs = complete and not any(d.is_error for d in found)
    text = getattr(definition.locator, "source", "")
    silence = read_silence(text, definition.locator, definition, settings.disabled)
    kept = silence.kept(diagnostic.rewritten(hidden) for diagnostic in found)
    kept += silence.kept(silence.useless(complete=runs))
    return Checked(plan if runs else None, in_order(kept), definition, silence, plan)


def _settings(definition: Definition) -> tuple[Settings, list[Diagnostic]]:
    """The settings of the pipeline's project, and what is wrong with them."""
    try:
        return load_settings(definition.settings_folder), []
    except PipelineError as error:
        return Settings(), list(error.diagnostics)


def _gem_rules(plan: Plan, spark: TargetSpark) -> list[Diagnostic]:
    """What the gems themselves have to say."""
    found: list[Diagnostic] = []
    for name, gem in plan.gems.items():
        node = plan.node(name)
        names = [edge.name for edge in node.inputs]
        if len(set(names)) < len(names):
            continue  # which of them an expression means can't be said, and that is reported
        inputs = steady_for(node, inputs_of(node, plan.facts), plan.definition)
        try:
            found += [
                from_finding(plan.definition, node, spark.told(f), gem)
                for f in islice(gem.check(*inputs), MAX_FINDINGS)
                if spark.is_told(f)
            ]
        except Exception as error:  # noqa: BLE001 (a gem's bug must not take the check down)
            found.append(gem_failed(plan.definition, node, "check", error))
    return found
