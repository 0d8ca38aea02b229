"""What a check says of a stream with certain facts: the runtime's own rules, over a pipeline of stand-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_bundle.gem import Source, Target
from gem_bundle.semantics import SourceSemantics, TargetSemantics

if TYPE_CHECKING:
    from gem_bundle.facts import Facts
    from gem_bundle.semantics import OutputMode


class _Known(Source):
    """Stands for all that comes before the target."""

    semantics = SourceSemantics()


class _Any(Target):
    """Takes every output mode."""

    semantics = TargetSemantics()


def refusals(facts: Facts, mode: OutputMode) -> list[str]:
    """Why a check refuses a stream in an output mode; empty where it accepts it.

    Args:
        facts: What is known of the stream.
        mode: The output mode of the target.
    """
    from dataclasses import replace

    from gem_bundle.builder import Pipeline
    from gem_bundle.check.stages.versions import TargetSpark, check_versions
    from gem_bundle.check.streaming import check_streaming
    from gem_bundle.options import NoOptions
    from gem_bundle.pipeline.loader import LoadOptions
    from gem_bundle.pipeline.plan import Plan

    pipeline = Pipeline("conformance").source("gem", "known").target("target", "any", "gem", output_mode=mode)
    definition = pipeline._load(LoadOptions()).definition
    assert definition is not None
    stream = replace(facts, streaming=True, bounded=False)
    gems = {"gem": _Known(NoOptions()), "target": _Any(NoOptions())}
    plan = Plan(definition, gems, ("gem", "target"), {"gem": stream})
    found = [*check_streaming(plan), *check_versions(plan, TargetSpark(None))]
    return [str(diagnostic.message) for diagnostic in found if diagnostic.is_error]
