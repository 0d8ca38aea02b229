"""The rules of output modes: which queries give out rows that can be appended, updated, replaced.

Guide: *Output Modes*, *Unsupported Operations*; Spark: `UnsupportedOperationChecker`. Where Spark
looks only at the operator nearest to the sink and fails later at another one, these rules look at all.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from gem_bundle.check.report import at_key, at_operator
from gem_bundle.operators import (
    AggregateOperator,
    DeduplicateOperator,
    JoinOperator,
    LimitOperator,
    WatermarkOperator,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gem_bundle.diagnostics import Diagnostic, Severity
    from gem_bundle.facts import Facts
    from gem_bundle.operators import Ancestry, Operator
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

FEW = 10
CORRECTNESS = "spark.sql.streaming.statefulOperator.checkCorrectness.enabled"
_SEEN_THROUGH = frozenset({"except", "filter", "limit", "current_time", "cte", "with"})
_JOINS = {
    "inner": "an inner join",
    "cross": "a cross join",
    "left": "a left outer join",
    "right": "a right outer join",
    "full": "a full outer join",
    "left_semi": "a left semi join",
}


def check_output_mode(plan: Plan, target: Node, facts: Facts, ancestry: Ancestry) -> Iterator[Diagnostic]:
    """What is wrong between the output mode of a target and the query that leads to it.

    Args:
        plan: The pipeline.
        target: The target, into which a stream flows.
        facts: What is known of that stream.
        ancestry: The operators of all queries.
    """
    operators = list(facts.all_operators())
    aggregates = [o for o in operators if isinstance(o, AggregateOperator) and o.streaming]
    if target.output_mode == "append":
        yield from _few(_append(plan, target, aggregates, operators, ancestry))
    elif target.output_mode == "update":
        yield from _few(_update(plan, target, aggregates, operators))
    elif not any(
        o.kind == "unknown" or (o.kind == "aggregate" and o.streaming is not False) for o in operators
    ):
        message = (
            "`complete` writes the whole result again with every micro-batch, and without an "
            "aggregation Spark doesn't keep one"
        )
        hint = "Use `append`, or put an `aggregate` before the target."
        yield at_key(plan, target, "GB302", message, "output_mode", hint)
    yield from _few(_sorted(plan, target, operators, ancestry))
    if target.output_mode != "append":
        yield from _few(_joins(plan, target, operators))
        yield from _few(_chains(plan, target, operators, ancestry))


def _few(found: Iterator[Diagnostic]) -> Iterator[Diagnostic]:
    """The first of many of one kind at one target: the others have the same cause and remedy."""
    return islice(found, FEW)


def _append(
    plan: Plan,
    target: Node,
    aggregates: list[AggregateOperator],
    operators: list[Operator],
    ancestry: Ancestry,
) -> Iterator[Diagnostic]:
    marks = [o for o in operators if isinstance(o, WatermarkOperator)]
    for aggregate in aggregates:
        refused = aggregate.kind == "except" and aggregate.streams[1:] == (True,)
        folded = aggregate.folds and aggregate is not aggregates[0]
        if aggregate.event_time is False and not refused and not folded and not _is_cut(aggregate, operators):
            what = f"the aggregation `{aggregate.node}`, whose result may still change"
            if aggregate.rows:
                what = f"the distinct rows of `{aggregate.node}`"
            reason, hint = _why_not_final(aggregate, marks, ancestry)
            message = f"append can't emit {what}: {reason}"
            yield at_key(plan, target, "GB301", message, "output_mode", hint)


def _is_cut(operator: Operator, operators: list[Operator]) -> bool:
    """Whether Spark's optimizer leaves `except`'s aggregation out: of at most one row none is equal to it.

    It does so where all its rows get to a limit of one row, or of none, and at most filters, projections
    and further limits lie between. (`distinct` and groups are refused before the optimizer sees them.)
    """
    if isinstance(operator, LimitOperator) and operator.rows in {0, 1}:
        return True
    if operator.kind not in _SEEN_THROUGH:
        return False
    behind = [found for found in operators if operator in found.inputs]
    return bool(behind) and all(_is_cut(found, operators) for found in behind)


def _why_not_final(
    aggregate: AggregateOperator, marks: list[WatermarkOperator], ancestry: Ancestry
) -> tuple[str, str]:
    """Why no group of it is ever final, and what would make it so."""
    later = [mark for mark in marks if not ancestry.is_before(mark, aggregate)]
    marks = ancestry.before(aggregate, marks)
    what, group = "a group has got all its rows", "group by it or by a `window` over it"
    if aggregate.rows:
        what, group = "all rows that are equal have come", "keep it among the columns"
    instead = "or use `complete`" if aggregate.sessions else "or use `update` or `complete`"
    if marks:
        mark = marks[0]
        lacking = "its columns don't include" if aggregate.rows else "it doesn't group by"
        window = "" if aggregate.rows else ", or by a window over it"
        return (
            f"{lacking} `{mark.column}`, which carries the watermark of `{mark.node}`, as it is{window}",
            f"Pass `{mark.column}` on as it is, and {group}; {instead}.",
        )
    if later:
        mark = later[-1]
        return (
            f"the watermark of `{mark.node}` comes only after it",
            f"Put `{mark.node}` before `{aggregate.node}`, and {group}; {instead}.",
        )
    return (
        f"no watermark says when {what}",
        f"Put a `watermark` on the event time before `{aggregate.node}`, and {group}; {instead}.",
    )


def _update(
    plan: Plan, target: Node, aggregates: list[AggregateOperator], operators: list[Operator]
) -> Iterator[Diagnostic]:
    for aggregate in aggregates:
        if aggregate.sessions:
            message = (
                f"update can't emit the session windows of `{aggregate.node}`: a session that grows "
                "takes the place of others, and a sink can't be told"
            )
            yield at_key(plan, target, "GB303", message, "output_mode", "Use `append` or `complete`.")
    for operator in operators:
        if operator.kind == "limit" and operator.streaming:
            message = (
                f"update can't emit the rows of `{operator.node}`: those that a limit lets through may "
                "change later"
            )
            hint = "Use `append`, or leave the limit out."
            yield at_key(plan, target, "GB305", message, "output_mode", hint)


def _sorted(plan: Plan, target: Node, operators: list[Operator], ancestry: Ancestry) -> Iterator[Diagnostic]:
    sorts = [operator for operator in operators if operator.kind == "sort" and operator.streaming]
    seen = ancestry.nearest(_may_be_whole, _is_cte) if sorts else {}
    whole = [operator for operator in operators if _may_be_whole(operator)]
    for operator in sorts:
        below = seen.get(id(operator))
        if target.output_mode == "complete" and below:
            continue
        reason = "that takes all rows, and there are always more to come"
        hint = f"Remove `{operator.node}`: only results of an aggregation can be sorted, in `complete` mode."
        if below:
            reason = f"in the output mode `{target.output_mode}` a micro-batch has a part of the result only"
            hint = f"Remove `{operator.node}`, or use `complete`."
        elif target.output_mode == "complete" and ancestry.before(operator, whole):
            reason = "Spark doesn't see the aggregation before it, which stands in a `with`"
            hint = "Write the `with` as a subquery, or sort in a node of its own."
        if below or target.output_mode == "complete":
            message = f"`{operator.node}` can't sort a stream: {reason}"
            yield at_key(plan, target, "GB304", message, "output_mode", hint)
        else:
            yield at_operator(plan, operator, "GB304", f"a stream can't be sorted: {reason}", hint)


def _joins(plan: Plan, target: Node, operators: list[Operator]) -> Iterator[Diagnostic]:
    mode = target.output_mode
    for operator in operators:
        if not (isinstance(operator, JoinOperator) and operator.stateful) or operator.how == "left_anti":
            continue
        outer = operator.how in {"left", "right", "full"}
        if mode == "update" and not outer:
            continue
        takes = "`append`" if outer else "`append` or `update`"
        reason = "Spark doesn't keep its whole result, to write it again"
        if mode == "update":
            reason = "a row without a partner comes once, and what an update of it would be isn't defined"
        message = f"{mode} can't emit {_JOINS[operator.how]} of two streams (`{operator.node}`): {reason}"
        yield at_key(plan, target, "GB303", message, "output_mode", f"Use {takes}.")


def _chains(plan: Plan, target: Node, operators: list[Operator], ancestry: Ancestry) -> Iterator[Diagnostic]:
    """Two operators with state, the lower one an aggregation that emits what may change."""
    if plan.definition.spark.get(CORRECTNESS, "true").lower() == "false":
        return
    waiting = [operator for operator in operators if _waits_for_the_watermark(operator)]
    if not any(map(_is_aggregate, operators)):
        return
    seen = ancestry.nearest(_is_aggregate, _is_cte)
    hidden = ancestry.nearest(_is_aggregate)
    reported: set[tuple[str, str]] = set()
    for operator, way in [(behind, way) for behind in waiting for way in behind.inputs]:
        visible = way if _is_aggregate(way) else None if _is_cte(way) else seen.get(id(way))
        before = visible or hidden.get(id(way))
        # Spark's check doesn't look through common table expressions; the rows are lost all the same.
        severity: Severity = "error" if visible else "warning"
        if before is not None and (before.node, operator.node) not in reported:
            reported.add((before.node, operator.node))
            which = f"the aggregation `{before.node}` emits"
            second = f"`{operator.node}` behind it"
            if before.node == operator.node:
                which = f"`{operator.node}` aggregates twice: its first aggregation emits"
                second = "the second one"
            message = (
                f"in the output mode `{target.output_mode}` {which} results that change later, and "
                f"{second} would drop those as late rows"
            )
            hint = (
                f"Use `append`, with a watermark before `{before.node}`; or write what comes out of "
                f"`{before.node}` into a table, and read that in a second pipeline."
            )
            yield at_key(plan, target, "GB308", message, "output_mode", hint, severity)


def _is_cte(operator: Operator) -> bool:
    """Whether Spark's checks end there: what stands in a `with` is another query to them."""
    return operator.kind == "cte"


def _is_aggregate(operator: Operator) -> bool:
    return operator.kind == "aggregate" and bool(operator.streaming)


def _may_be_whole(operator: Operator) -> bool:
    """Whether in complete mode the result may be sorted behind it; Spark doesn't behind `select distinct`."""
    rows = isinstance(operator, AggregateOperator) and operator.rows
    return operator.kind == "unknown" or (_is_aggregate(operator) and not rows)


def _waits_for_the_watermark(operator: Operator) -> bool:
    """Whether Spark counts it among the stateful operators that a late row would be lost in."""
    if isinstance(operator, DeduplicateOperator):
        return bool(operator.streaming) and (operator.within_watermark or operator.event_time is True)
    if isinstance(operator, JoinOperator):
        return operator.stateful is True
    return operator.kind in {"aggregate", "custom"} and bool(operator.streaming)
