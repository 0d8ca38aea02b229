"""The rules of sources' and targets' declared semantics: streams, output modes, triggers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gem_bundle.diagnostics import Diagnostic

if TYPE_CHECKING:
    from gem_bundle.gem import Source, Target
    from gem_bundle.pipeline.model import Definition, Node
    from gem_bundle.pipeline.plan import Plan


def check_sources(plan: Plan) -> list[Diagnostic]:
    """A source is read in a way it can be read (guide: *Input sources*)."""
    found: list[Diagnostic] = []
    for node in plan.definition.of_kind("source"):
        gem = plan.gems.get(node.id)
        if gem is None:
            continue
        semantics = cast("Source", gem).semantics
        if node.mode == "stream" and not semantics.streaming:
            hint = "Add `mode: batch` to the source, and join or union it with a stream."
            found.append(_at(plan, node, "GB312", f"`{node.gem}` can't be read as a stream", "gem", hint))
        elif node.mode == "batch" and not semantics.batch:
            hint = f"Use it in a streaming pipeline without `mode: batch`; {node.gem} has no end."
            key = "mode" if plan.definition.mode == "stream" else "gem"
            found.append(
                _at(
                    plan,
                    node,
                    "GB312",
                    f"`{node.gem}` can't be read as a static relation",
                    key,
                    hint,
                )
            )
    return found


def check_targets(plan: Plan) -> list[Diagnostic]:
    """A target gets what its sink takes (guide: *Output sinks*, *Output modes*, *Triggers*)."""
    found: list[Diagnostic] = []
    for node in plan.definition.of_kind("target"):
        gem = plan.gems.get(node.id)
        if gem is None:
            continue
        target = cast("Target", gem)
        facts = plan.facts.get(node.inputs[0].node)
        streaming = facts.streaming if facts else None
        if plan.definition.mode == "batch":
            found.extend(_check_batch(plan, node, target))
        elif streaming is False:
            hint = (
                "Let a source be a stream (remove its `mode: batch`), or write `mode: batch` at the top "
                "of the file to run the whole pipeline as a batch."
            )
            message = f"no stream reaches it: everything behind `{node.inputs[0].node}` is static"
            found.append(_at(plan, node, "GB313", message, "input", hint))
        else:
            found.extend(_check_stream(plan, node, target, streaming))
    return found


def _check_batch(plan: Plan, node: Node, target: Target) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    if not target.semantics.batch:
        message = f"`{node.gem}` takes streams only, and this is a batch pipeline"
        found.append(_at(plan, node, "GB313", message, "gem", "Use another target."))
    if node.trigger.kind != "default":
        message = "a batch pipeline has no micro-batches, so no trigger"
        found.append(_at(plan, node, "GB314", message, "trigger", "Remove `trigger`."))
    if node.output_mode == "update":
        message = "a batch pipeline can `append` to a target or replace it (`complete`), not update it"
        found.append(_at(plan, node, "GB310", message, "output_mode", "Remove `output_mode`."))
    return found


def _check_stream(plan: Plan, node: Node, target: Target, streaming: bool | None) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    semantics = target.semantics
    if not semantics.streaming and streaming:
        message = f"`{node.gem}` takes static relations only, and `{node.inputs[0].node}` is a stream"
        hint = "Write `mode: batch` at the top of the file, or use another target."
        found.append(_at(plan, node, "GB311", message, "input", hint))
    elif semantics.streaming and node.output_mode not in semantics.output_modes:
        modes = " or ".join(f"`{m}`" for m in _MODES if m in semantics.output_modes)
        message = f"`{node.gem}` can't take the output mode `{node.output_mode}`, only {modes}"
        hint = f"Use {modes}, or a target that takes `{node.output_mode}`."
        found.append(_at(plan, node, "GB310", message, "output_mode", hint))
    found.extend(_check_trigger(plan, node, target))
    return found


def _check_trigger(plan: Plan, node: Node, target: Target) -> list[Diagnostic]:
    kind = node.trigger.kind
    if target.semantics.streaming and kind not in target.semantics.triggers:
        message = f"`{node.gem}` can't be run with the trigger `{kind}`"
        takes = ", ".join(f"`{t}`" for t in sorted(target.semantics.triggers - {"default"}))
        return [_at(plan, node, "GB314", message, "trigger", f"It takes {takes}, or no trigger.")]
    found: list[Diagnostic] = []
    for name in sorted(plan.streaming_sources(node.id)):
        source = cast("Source | None", plan.gems.get(name))
        if source is not None and source.semantics.streaming and kind not in source.semantics.triggers:
            message = f"the source `{name}` (`{plan.node(name).gem}`) can't be run with the trigger `{kind}`"
            takes = ", ".join(f"`{t}`" for t in sorted(source.semantics.triggers - {"default"}))
            found.append(_at(plan, node, "GB314", message, "trigger", f"It takes {takes}, or none."))
    return found


_MODES = ("append", "update", "complete")


def _at(plan: Plan, node: Node, code: str, message: str, key: str, hint: str) -> Diagnostic:
    definition: Definition = plan.definition
    path = (*node.path, key)
    message = f"{node.kind} `{node.id}`: {message}"
    return Diagnostic(code, "error", message, node.id, path, definition.locator.place(path), hint)
