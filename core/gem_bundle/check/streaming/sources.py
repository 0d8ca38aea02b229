"""The rules of sources' declared semantics: how they can be read, and what a first run or a restart reads.

Guide: *Input Sources*, *Triggers*, *Handling Late Data and Watermarking*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gem_bundle.check.report import at_key, at_option
from gem_bundle.operators import WatermarkOperator, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.gem import Source, Target
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan
    from gem_bundle.semantics import SourceSemantics

ENDING_TRIGGERS = frozenset({"available_now", "once"})
"""The triggers of runs that end by themselves."""


def check_sources(plan: Plan) -> Iterator[Diagnostic]:
    """A source is read in a way it can be read, and gives the rows that one expects of it."""
    streams: dict[str, tuple[Node, SourceSemantics]] = {}
    for node in plan.definition.of_kind("source"):
        gem = plan.gems.get(node.id)
        if gem is None:
            continue
        semantics = cast("Source", gem).semantics
        yield from _check_mode(plan, node, semantics)
        if node.mode == "stream" and semantics.streaming:
            streams[node.id] = node, semantics
    yield from _check_replay(plan, streams)
    yield from _check_first_run(plan, streams)
    yield from _check_order(plan, streams)


def _check_mode(plan: Plan, node: Node, semantics: SourceSemantics) -> Iterator[Diagnostic]:
    if node.mode == "stream" and not semantics.streaming:
        hint = "Add `mode: batch` to the source, and join or union it with a stream."
        yield at_key(plan, node, "GB312", f"`{node.gem}` can't be read as a stream", "gem", hint)
    elif node.mode == "batch" and not semantics.batch:
        hint = f"Use it in a streaming pipeline without `mode: batch`; {node.gem} has no end."
        key = "mode" if plan.definition.mode == "stream" else "gem"
        yield at_key(plan, node, "GB312", f"`{node.gem}` can't be read as a static relation", key, hint)


def _check_replay(plan: Plan, streams: dict[str, tuple[Node, SourceSemantics]]) -> Iterator[Diagnostic]:
    """A target gets each row exactly once only from a source that can give it again."""
    fleeting = {name for name, (_, semantics) in streams.items() if not semantics.replayable}
    if not fleeting:
        return
    spoilt: dict[str, str] = {}
    for target in plan.definition.of_kind("target"):
        gem = cast("Target | None", plan.gems.get(target.id))
        if gem is not None and gem.semantics.delivery == "exactly_once":
            for name in plan.streaming_sources(target.id) & fleeting:
                spoilt.setdefault(name, target.id)
    for name, target_id in spoilt.items():
        node, _ = streams[name]
        message = (
            f"`{node.gem}` can't be read again, so rows that were on their way to `{target_id}` are lost "
            "when a run fails, although that target writes each row exactly once"
        )
        hint = "Use a source that keeps its rows, such as `kafka` or `file`."
        yield at_key(plan, node, "GB350", message, "gem", hint, "warning")


def _check_first_run(plan: Plan, streams: dict[str, tuple[Node, SourceSemantics]]) -> Iterator[Diagnostic]:
    """A run that ends by itself reads nothing the first time where only new rows are read."""
    late = {name for name, (_, semantics) in streams.items() if semantics.only_new}
    reported: set[str] = set()
    for target in plan.definition.of_kind("target") if late else ():
        if target.trigger.kind not in ENDING_TRIGGERS:
            continue
        for name in sorted(plan.streaming_sources(target.id) & late - reported):
            node, semantics = streams[name]
            kind = target.trigger.kind
            run = f"the first run of `{target.id}` reads nothing and ends (`{kind}`)"
            if isinstance(semantics.only_new, str):
                reported.add(name)
                message = f"{run}: `{semantics.only_new}` lets it begin behind everything that is there"
                hint = f"Set `{semantics.only_new}`, or do without the trigger `{kind}`."
                yield at_option(plan, node, "GB351", message, semantics.only_new, hint, "warning")
            else:
                message = f"{run}: `{name}` (`{node.gem}`) has no rows before it is read"
                hint = "Use `processing_time`, or no trigger; what `gem-bundle run` started ends with Ctrl-C."
                yield at_key(plan, target, "GB351", message, "trigger", hint, "warning")


def _check_order(plan: Plan, streams: dict[str, tuple[Node, SourceSemantics]]) -> Iterator[Diagnostic]:
    """Newer rows before older ones move a watermark past the older ones."""
    reversed_ = {name for name, (_, semantics) in streams.items() if semantics.newest_first}
    if not reversed_:
        return
    nearest = (operator for facts in plan.facts.values() for operator in facts.operators)
    marks = {o.node for o in walk(nearest) if isinstance(o, WatermarkOperator) and o.node and o.streaming}
    for name in sorted(reversed_):
        mark = next((m for m in plan.order if m in marks and name in plan.streaming_sources(m)), None)
        if mark is not None:
            node, semantics = streams[name]
            option = semantics.newest_first or ""
            message = (
                f"`{option}` takes newer rows before older ones, and the newer ones move the watermark of "
                f"`{mark}`, so that the older ones are dropped as late"
            )
            hint = f"Remove `{option}`, or the watermark."
            yield at_option(plan, node, "GB352", message, option, hint, "warning")
