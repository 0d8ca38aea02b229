"""The rules of targets' declared semantics: what they take, and what a restart does to their rows.

Guide: *Output Modes*, *Output Sinks*, *Fault Tolerance Semantics*.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from gem_bundle.check.report import at_key
from gem_bundle.pipeline.groups import ended_by, grouped_delivery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.gem import Target
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.semantics import TargetSemantics

_MODES = ("append", "update", "complete")


def check_targets(plan: Plan) -> Iterator[Diagnostic]:
    """A target gets what its sink takes, and keeps what it gets."""
    for node in plan.definition.of_kind("target"):
        gem = plan.gems.get(node.id)
        if gem is None:
            continue
        target = cast("Target", gem)
        facts = plan.facts.get(node.inputs[0].key)
        streaming = facts.streaming if facts else None
        if plan.definition.mode == "batch":
            yield from _check_batch(plan, node, target)
        elif streaming is False:
            hint = (
                "Let a source be a stream (remove its `mode: batch`), or write `mode: batch` at the top "
                "of the file to run the whole pipeline as a batch."
            )
            message = f"no stream reaches it: everything behind `{node.inputs[0].node}` is static"
            yield at_key(plan, node, "GB313", message, "input", hint)
        else:
            yield from _check_stream(plan, node, target, streaming)
    if plan.definition.mode == "stream":
        yield from _check_delivery(plan)


def _check_batch(plan: Plan, node: Node, target: Target) -> Iterator[Diagnostic]:
    if not target.semantics.batch:
        message = f"`{node.gem}` takes streams only, and this is a batch pipeline"
        yield at_key(plan, node, "GB313", message, "gem", "Use another target.")
    if node.output_mode == "update":
        message = "a batch pipeline can `append` to a target or replace it (`complete`), not update it"
        yield at_key(plan, node, "GB310", message, "output_mode", "Remove `output_mode`.")
    elif target.semantics.batch and node.output_mode not in target.semantics.batch_modes:
        message = f"`{node.gem}` adds rows or changes some, and `{node.output_mode}` replaces all"
        yield at_key(plan, node, "GB310", message, "output_mode", "Remove `output_mode`.")


def _check_stream(plan: Plan, node: Node, target: Target, streaming: bool | None) -> Iterator[Diagnostic]:
    semantics = target.semantics
    if not semantics.streaming and streaming:
        message = f"`{node.gem}` takes static relations only, and `{node.inputs[0].node}` is a stream"
        hint = "Write `mode: batch` at the top of the file, or use another target."
        yield at_key(plan, node, "GB311", message, "input", hint)
    elif semantics.streaming and node.output_mode not in semantics.output_modes:
        modes = " or ".join(f"`{m}`" for m in _MODES if m in semantics.output_modes)
        message = f"`{node.gem}` can't take the output mode `{node.output_mode}`, only {modes}"
        hint = f"Use {modes}, or a target that takes `{node.output_mode}`."
        yield at_key(plan, node, "GB310", message, "output_mode", hint)


def _check_delivery(plan: Plan) -> Iterator[Diagnostic]:
    """What a restart does to the rows of each target."""
    targets = [
        (node, _semantics(plan, node)) for node in plan.definition.of_kind("target") if node.id in plan.gems
    ]
    # Who doesn't say when it holds has not thought about it: `at_least_once` is the default.
    keeping = [
        f"`{node.id}`"
        for node, semantics in targets
        if semantics.delivery == "exactly_once"
        or (semantics.delivery == "at_least_once" and semantics.condition)
    ]
    for node, semantics in targets:
        if semantics.delivery == "none" and keeping:
            others = keeping[0] if len(keeping) == 1 else f"{keeping[0]} and others"
            message = (
                f"`{node.gem}` is for looking at: after a failure its rows are lost or come again, while "
                f"{others} beside it must not lose any"
            )
            hint = "Remove it before the pipeline runs for good, or put it into a pipeline of its own."
            yield at_key(plan, node, "GB340", message, "gem", hint, "warning")
        elif semantics.delivery == "at_least_once" and semantics.condition:
            message = f"`{node.gem}` gets every row at least once: {_clause(semantics.condition)}"
            hint = "See to it that a row that comes twice does no harm to who reads it, by a key for example."
            ended = [] if node.group else ended_by(plan, [node.id])
            if ended and plan.streaming_sources(node.id):
                hint += (
                    f" A row for which `{ended[0]}` ends the query may come behind others, "
                    "which are written then: in a `group`, also by itself, all are looked at first."
                )
            yield at_key(plan, node, "GB341", message, "gem", hint, "note")


def _semantics(plan: Plan, node: Node) -> TargetSemantics:
    """What a target promises where it stands: in a group it may be less."""
    semantics = cast("Target", plan.gems[node.id]).semantics
    delivery = grouped_delivery(plan, node) if node.group else None
    if delivery is None or delivery == semantics.delivery:
        return semantics
    condition = "in a group a micro-batch that is run again after a failure is written again"
    return replace(semantics, delivery=delivery, condition=condition)


def _clause(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].removesuffix(".")
