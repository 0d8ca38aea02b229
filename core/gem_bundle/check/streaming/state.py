"""The rules of state and watermarks: what grows for ever, and watermarks that don't do what they seem to.

Guide: *Handling Late Data and Watermarking*, *Streaming Deduplication*, *Policy for handling multiple
watermarks*.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.check.report import at_key, at_operator
from gem_bundle.diagnostics import listed_names
from gem_bundle.facts import UNKNOWN_DELAY
from gem_bundle.operators import (
    AggregateOperator,
    DeduplicateOperator,
    JoinOperator,
    StatefulOperator,
    WatermarkOperator,
)
from gem_bundle.types import interval_length

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.facts import Facts
    from gem_bundle.operators import Ancestry, Operator
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
MULTIPLE = "spark.sql.streaming.statefulOperator.allowMultiple"
MANY_WINDOWS = 60


def check_state(plan: Plan, ancestry: Ancestry) -> Iterator[Diagnostic]:
    """What is wrong with deduplications and watermarks, whatever the target.

    Args:
        plan: The pipeline.
        ancestry: The operators of its queries.
    """
    streaming = [operator for operator in ancestry.operators if operator.streaming]
    marks = [operator for operator in streaming if isinstance(operator, WatermarkOperator)]
    earlier = ancestry.nearest(_is_watermark)
    goes_by = [operator for operator in streaming if _goes_by_event_time(operator)]
    stateful = [o for o in streaming if o.stateful and o.kind != "limit"]
    used = {id(mark) for operator in goes_by for mark in ancestry.before(operator, marks)} if marks else set()
    for operator in streaming:
        if isinstance(operator, DeduplicateOperator):
            yield from _check_duplicates(plan, operator)
        elif isinstance(operator, WatermarkOperator):
            yield from _check_watermark(plan, operator, earlier.get(id(operator)))
            if id(operator) not in used:
                behind = [found for found in stateful if ancestry.is_before(operator, found)]
                yield from _unused_watermark(plan, operator, behind)
        elif isinstance(operator, AggregateOperator):
            yield from _check_delay(plan, operator, ancestry.before(operator, marks))


def check_target_state(plan: Plan, target: Node, facts: Facts, ancestry: Ancestry) -> Iterator[Diagnostic]:
    """What is wrong with the state of the query that leads to a target, and with its watermarks.

    Args:
        plan: The pipeline.
        target: The target, into which a stream flows.
        facts: What is known of that stream.
        ancestry: The operators of all queries.
    """
    operators = list(facts.all_operators())
    for operator in operators:
        if isinstance(operator, AggregateOperator) and operator.streaming and operator.windowed:
            yield from _check_windows(plan, target, operator, facts, ancestry)
    marks = [o for o in operators if isinstance(o, WatermarkOperator) and o.streaming]
    # Of two on one way the second is reported for itself.
    covered = {id(before) for before in ancestry.before_any(marks, marks)}
    marks = [mark for mark in marks if id(mark) not in covered]
    if len({mark.node for mark in marks}) > 1:
        yield _several_watermarks(plan, target, marks)


def _check_duplicates(plan: Plan, operator: DeduplicateOperator) -> Iterator[Diagnostic]:
    if operator.within_watermark:
        if operator.watermarked is False:
            message = "`within_watermark` needs a watermark, and no column carries one"
            hint = "Put a `watermark` on the event time before it."
            yield at_operator(plan, operator, "GB327", message, hint)
        return
    if operator.event_time is not False:
        return
    if operator.watermarked:
        reason = "the columns it compares don't include the event time that carries the watermark"
        hint = (
            "Set `within_watermark: true`, or add the event time to `columns` if equal rows have equal times."
        )
    else:
        reason = "no column carries a watermark"
        hint = "Put a `watermark` on the event time before it, and set `within_watermark: true`."
    message = f"what it has seen is kept for ever, because {reason}"
    yield at_operator(plan, operator, "GB328", message, hint, "warning")


def _check_watermark(
    plan: Plan, operator: WatermarkOperator, before: Operator | None
) -> Iterator[Diagnostic]:
    if not any(interval_length(operator.delay)):
        message = (
            f"the delay is zero: a row whose `{operator.column}` is older than the newest one of an earlier "
            "micro-batch is late, and operators with state drop it"
        )
        hint = "Give the time that rows may be late, for example `10 minutes`, if they may come out of order."
        yield at_operator(plan, operator, "GB333", message, hint, "note")
    if plan.definition.spark.get(MULTIPLE, "true").lower() == "false":
        return
    if before is not None:
        message = (
            f"the stream already has the watermark of `{before.node}`, and a second one makes the query "
            "fail as soon as the first one advances, or wait for ever"
        )
        hint = f"Remove one of them; to change the event time, let `{before.node}` name the right column."
        yield at_operator(plan, operator, "GB329", message, hint)


def _is_watermark(operator: Operator) -> bool:
    return isinstance(operator, WatermarkOperator) and bool(operator.streaming)


def _goes_by_event_time(operator: Operator) -> bool:
    if isinstance(operator, AggregateOperator):
        return operator.event_time is not False
    if isinstance(operator, DeduplicateOperator):
        return operator.within_watermark or operator.event_time is not False
    if isinstance(operator, JoinOperator):
        facts = (operator.event_time_key, *operator.bounded)
        return operator.stateful is not False and any(fact is not False for fact in facts)
    if isinstance(operator, StatefulOperator):
        return operator.time == "event" or operator.event_time
    return operator.kind in {"custom", "python", "unknown"}


def _unused_watermark(plan: Plan, mark: WatermarkOperator, behind: list[Operator]) -> Iterator[Diagnostic]:
    if behind and all(operator.kind == "deduplicate" for operator in behind):
        return  # GB328 says it
    if not behind:
        message = "the watermark has no effect, because nothing behind it keeps state"
        hint = "Remove it, or put it before what keeps state."
        yield at_operator(plan, mark, "GB335", message, hint, "note")
        return
    names = listed_names(dict.fromkeys(o.node for o in behind))
    message = (
        f"the watermark has no effect, because what keeps state behind it ({names}) doesn't group, compare "
        f"or join by `{mark.column}`"
    )
    hint = (
        f"Pass `{mark.column}` on as it is (any expression over it loses the watermark), and group, compare "
        "or join by it."
    )
    yield at_operator(plan, mark, "GB335", message, hint, "warning")


def _check_delay(
    plan: Plan, aggregate: AggregateOperator, marks: list[WatermarkOperator]
) -> Iterator[Diagnostic]:
    """A delay of very many windows is mostly a slip: minutes and seconds, days and hours."""
    if aggregate.duration is None or aggregate.delay in {None, UNKNOWN_DELAY}:
        return
    mark = next((mark for mark in marks if mark.delay == aggregate.delay), None)
    if mark is None:
        return
    months, microseconds = interval_length(mark.delay)
    _, window = interval_length(aggregate.duration)
    if months or microseconds > MANY_WINDOWS * window:
        message = (
            f"rows may be {mark.delay} late, and a window of `{aggregate.node}` is {aggregate.duration} "
            "long: in append mode its result comes that much later, and so many windows stay in the state"
        )
        hint = "Give the delay that rows really have, if it is less."
        yield at_operator(plan, replace(mark, option="delay"), "GB334", message, hint, "note")


def _check_windows(
    plan: Plan, target: Node, aggregate: AggregateOperator, facts: Facts, ancestry: Ancestry
) -> Iterator[Diagnostic]:
    if target.output_mode == "complete":
        message = (
            f"`complete` keeps every window of `{aggregate.node}` for ever and writes all of them with "
            "every micro-batch: state and result grow without end"
        )
        modes = "`append`" if aggregate.sessions else "`append` or `update`"
        hint = f"Use {modes} with a watermark, or group by something of which there are only so many."
        yield at_key(plan, target, "GB331", message, "output_mode", hint, "warning")
    elif target.output_mode == "update" and aggregate.event_time is False:
        marks = [o for o in facts.all_operators() if isinstance(o, WatermarkOperator)]
        hint = f"Put a `watermark` on the event time of the windows before `{aggregate.node}`."
        mark = next(iter(ancestry.before(aggregate, marks)), None)
        if mark is not None:
            reason = f"they are not over `{mark.column}`, which carries the watermark of `{mark.node}`"
            hint = f"Make the windows over `{mark.column}` as it is, or let `{mark.node}` name their column."
        elif marks:
            reason = f"the watermark of `{marks[-1].node}` comes only after them"
            hint = f"Put `{marks[-1].node}` before `{aggregate.node}`."
        else:
            reason = "no watermark says when one is over"
        message = f"the windows of `{aggregate.node}` are kept for ever, because {reason}"
        yield at_operator(plan, aggregate, "GB331", message, hint, "warning")


def _several_watermarks(plan: Plan, target: Node, marks: list[WatermarkOperator]) -> Diagnostic:
    *others, last = sorted({mark.node for mark in marks})
    names = listed_names(others) + f" and `{last}`"
    fastest = plan.definition.spark.get(POLICY, "min").lower() == "max"
    message = f"the watermarks of {names} become one for the whole query: " + (
        "it goes with the fastest stream, and rows of slower ones are dropped as late"
        if fastest
        else "it goes with the slowest stream, and while that has no rows, nothing is emitted or forgotten"
    )
    hint = (
        f"Remove `{POLICY}: max` if those rows matter."
        if fastest
        else f"If that takes too long, set `{POLICY}: max` under `spark`, at the price of dropped rows."
    )
    return at_key(plan, target, "GB332", message, "input", hint, "note")
