"""The rules of triggers: when micro-batches run, and which queries can do without them.

Guide: *Triggers*, *Continuous Processing*, *Asynchronous Progress Tracking*; Spark:
`UnsupportedOperationChecker.checkForContinuous`, `RealTimeModeAllowlist`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gem_bundle.check.report import at_key, at_operator, at_option
from gem_bundle.diagnostics import Diagnostic, listed_names
from gem_bundle.operators import JoinOperator
from gem_bundle.types import interval_length

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.diagnostics import Severity
    from gem_bundle.facts import Facts
    from gem_bundle.gem import Source, Target
    from gem_bundle.operators import Operator
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

ALLOWLIST = "spark.sql.streaming.realTimeMode.allowlistCheck"
MINIMUM = "spark.sql.streaming.realTimeMode.minBatchDuration"
_MINIMUM_MS = 5000
# An empty micro-batch of the simplest query takes 90 to 140 ms in a warm session, which is also what the
# guide (*Continuous Processing*) says of micro-batches at best.
_PACE_MS = 100
_CONTINUOUS = frozenset({"filter", "unknown"})
_REAL_TIME = frozenset(
    {"cte", "current_time", "filter", "generate", "row_ids", "union", "unknown", "watermark", "with"}
)
_WORDS = {
    "aggregate": "an aggregation",
    "analytic_window": "a window function",
    "cte": "`with …` in SQL",
    "current_time": "the current time, which is that of a micro-batch",
    "custom": "an operator with state",
    "deduplicate": "a removal of duplicates",
    "except": "`except`",
    "generate": "`explode` and its like",
    "intersect": "`intersect`",
    "join": "a join",
    "limit": "a limit",
    "offset": "an offset",
    "python": "Python code that gets rows",
    "repartition": "another partitioning",
    "row_ids": "a numbering of rows",
    "sample": "a sample",
    "sort": "a sort",
    "union": "a union",
    "watermark": "a watermark",
    "with": "`with …` in SQL",
}


def check_triggers(plan: Plan) -> Iterator[Diagnostic]:
    """Each target's trigger fits its sink, its sources and the query between them."""
    for node in plan.definition.of_kind("target"):
        if plan.definition.mode == "batch":
            if node.trigger.kind != "default":
                message = "a batch pipeline has no micro-batches, so no trigger"
                yield at_key(plan, node, "GB314", message, "trigger", "Remove `trigger`.")
            continue
        facts = plan.facts.get(node.inputs[0].key)
        yield from _check_pace(plan, node)
        if node.id in plan.gems and (facts is None or facts.streaming is not False):
            yield from _check_declared(plan, node, cast("Target", plan.gems[node.id]))
        if facts is not None and facts.streaming:
            yield from _check_query(plan, node, facts)


def _check_declared(plan: Plan, node: Node, target: Target) -> Iterator[Diagnostic]:
    """Sink and sources say which triggers they can be run with."""
    kind = node.trigger.kind
    if target.semantics.streaming and kind not in target.semantics.triggers:
        message = f"`{node.gem}` can't be run with the trigger `{kind}`"
        takes = listed_names(sorted(target.semantics.triggers - {"default"}))
        yield at_key(plan, node, "GB314", message, "trigger", f"It takes {takes}, or no trigger.")
        return
    for name in sorted(plan.streaming_sources(node.id)):
        source = cast("Source | None", plan.gems.get(name))
        if source is not None and source.semantics.streaming and kind not in source.semantics.triggers:
            message = f"the source `{name}` (`{plan.node(name).gem}`) can't be run with the trigger `{kind}`"
            takes = listed_names(sorted(source.semantics.triggers - {"default"}))
            yield at_key(plan, node, "GB314", message, "trigger", f"It takes {takes}, or none.")


def _check_pace(plan: Plan, node: Node) -> Iterator[Diagnostic]:
    kind, interval = node.trigger
    if kind == "once":
        message = (
            "`once` puts everything that is there into one micro-batch, whatever the sources' limits "
            "say; Spark has deprecated it"
        )
        hint = "Use `available_now: true`: it ends too, after as many micro-batches as the limits ask for."
        yield at_key(plan, node, "GB362", message, "trigger", hint, "warning")
    if interval is None:
        return
    length = _length(interval)
    if length is None:
        return
    if kind == "processing_time" and 0 < length < _PACE_MS:
        message = (
            f"`{interval}` is shorter than any micro-batch, of which the shortest take about {_PACE_MS} "
            "milliseconds: each starts when the one before it ends"
        )
        hint = "Remove `trigger`, which does the same, or write a longer interval to save work."
        yield _at_interval(plan, node, "GB364", message, hint, "note")
    least = _milliseconds(plan.definition.spark.get(MINIMUM))
    if kind == "real_time" and least is not None and length < least:
        message = (
            f"`{interval}` is too short: it says how often real-time mode writes a checkpoint, not how "
            f"long rows wait, and Spark asks for at least {least:g} milliseconds"
        )
        hint = "Write `real_time: 5 minutes`, as Spark does itself."
        yield _at_interval(plan, node, "GB363", message, hint, "error")


def _at_interval(
    plan: Plan, node: Node, code: str, message: str, hint: str, severity: Severity
) -> Diagnostic:
    path = (*node.path, "trigger", node.trigger.kind)
    place = plan.definition.locator.place(path)
    return Diagnostic(code, severity, f"{node.kind} `{node.id}`: {message}", node.id, path, place, hint)


def _check_query(plan: Plan, node: Node, facts: Facts) -> Iterator[Diagnostic]:
    """The operators between sources and sink are those that the trigger allows."""
    if node.trigger.kind == "continuous":
        yield from _check_continuous(plan, node, facts)
    elif node.trigger.kind == "real_time":
        yield from _check_real_time(plan, node, facts)
    target = cast("Target | None", plan.gems.get(node.id))
    if target is not None and target.semantics.async_progress is not None:
        yield from _check_async_progress(plan, node, facts, target.semantics.async_progress)


def _check_continuous(plan: Plan, node: Node, facts: Facts) -> Iterator[Diagnostic]:
    for name in sorted(plan.streaming_sources(node.id)):
        source = cast("Source | None", plan.gems.get(name))
        for option in source.semantics.not_continuous if source is not None else ():
            if source is not None and option in source.options.model_fields_set:
                message = f"continuous processing (`{node.id}`) ignores `{option}`"
                hint = f"Remove it, or use another trigger for `{node.id}`."
                yield at_option(plan, plan.node(name), "GB360", message, option, hint, "warning")
    hint = f"Use `processing_time`, or remove `trigger` from `{node.id}`."
    for operator in facts.all_operators():
        if operator.kind in _CONTINUOUS or operator.streaming is not True:
            continue
        message = (
            f"continuous processing (`{node.id}`) takes each row by itself, as `select` and `filter` do, "
            f"and doesn't have {_words(operator)}"
        )
        yield at_operator(plan, operator, "GB360", message, hint)


def _check_real_time(plan: Plan, node: Node, facts: Facts) -> Iterator[Diagnostic]:
    if node.output_mode != "update":
        message = f"real-time mode takes the output mode `update` only, not `{node.output_mode}`"
        hint = "Write `output_mode: update`; where rows never change it is the same as `append`."
        yield at_key(plan, node, "GB361", message, "output_mode", hint)
    if plan.definition.spark.get(ALLOWLIST, "true").lower() == "false":
        return
    hint = f"Use another trigger for `{node.id}`, or do it behind its target."
    for operator in facts.all_operators():
        if operator.streaming is True and not _runs_in_real_time(operator):
            message = (
                f"real-time mode (`{node.id}`) hands rows on at once: it keeps no state and moves no rows "
                f"between tasks, and doesn't have {_words(operator)}"
            )
            yield at_operator(plan, operator, "GB361", message, hint)


def _runs_in_real_time(operator: Operator) -> bool:
    # A join with a static relation runs when Spark can broadcast that, which a check can't know.
    if isinstance(operator, JoinOperator):
        return operator.stateful is not True
    return operator.kind in _REAL_TIME


def _check_async_progress(plan: Plan, node: Node, facts: Facts, option: str) -> Iterator[Diagnostic]:
    hint = f"Remove `{option}`."
    kind = node.trigger.kind
    if kind in {"available_now", "once", "real_time"}:
        message = f"asynchronous progress tracking can't be used with the trigger `{kind}`"
        yield at_option(plan, node, "GB365", message, option, f"Remove `{option}`, or use `processing_time`.")
    stateful = next((found for found in facts.all_operators() if found.stateful), None)
    if stateful is not None:
        message = (
            "asynchronous progress tracking is for queries without state, and "
            f"{_words(stateful)} (`{stateful.node}`) has state"
        )
        yield at_option(plan, node, "GB365", message, option, hint)


def _words(operator: Operator) -> str:
    return _WORDS.get(operator.kind, f"`{operator.kind}`")


def _length(interval: str) -> float | None:
    """The length of a trigger's interval in milliseconds; None when it isn't known yet."""
    try:
        return interval_length(interval)[1] / 1000
    except ValueError:
        return None


def _milliseconds(setting: str | None) -> float | None:
    """A duration of Spark's settings in milliseconds; None when it can't be told."""
    if setting is None:
        return _MINIMUM_MS
    if setting.strip().isdigit():
        return float(setting)
    from pydantic import TypeAdapter, ValidationError

    from gem_bundle.types import FixedDuration

    try:
        return float(TypeAdapter(FixedDuration).validate_python(setting).removesuffix("ms"))
    except ValidationError:
        return None
