"""The rules of operations that streams don't have, whatever the output mode.

Guide: *Unsupported Operations*; Spark: `UnsupportedOperationChecker`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gem_bundle.check.report import at_operator
from gem_bundle.diagnostics import listed_names
from gem_bundle.operators import AggregateOperator, JoinOperator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.operators import Operator
    from gem_bundle.pipeline.plan import Plan


def check_operations(plan: Plan, operators: Iterable[Operator]) -> Iterator[Diagnostic]:
    """What no stream can do.

    Args:
        plan: The pipeline.
        operators: The operators of its queries.
    """
    for operator in operators:
        if isinstance(operator, AggregateOperator) and operator.streaming and operator.distinct:
            yield _distinct(plan, operator)
        if isinstance(operator, AggregateOperator) and operator.streaming and operator.alone:
            message = "sessions of a stream can't be the only group: Spark fails when the query is started"
            hint = "Group by a column too, in `group_by`."
            yield at_operator(plan, operator, "GB336", message, hint)
        yield from _clock(plan, operator)
        rule = _RULES.get(operator.kind)
        if rule is not None and _applies(operator):
            yield at_operator(plan, operator, *rule)


def _distinct(plan: Plan, aggregate: AggregateOperator) -> Diagnostic:
    listed = listed_names(dict.fromkeys(aggregate.distinct))
    message = f"a stream has no distinct aggregates ({listed}): Spark would have to keep every value for ever"
    hint = "Use `approx_count_distinct(…)`, or a `deduplicate` with a watermark before it."
    where = replace(aggregate, option=aggregate.distinct_option)
    return at_operator(plan, where, "GB306", message, hint)


def _clock(plan: Plan, operator: Operator) -> Iterator[Diagnostic]:
    """The current time where Spark takes deterministic expressions only, also in static parts of a query."""
    if isinstance(operator, AggregateOperator) and operator.clock:
        message = (
            f"`{operator.clock}` has the current time among the arguments of an aggregate function: in a "
            "streaming query it is that of the micro-batch, and Spark fails when the query is started"
        )
        hint = "Compute it in a `with_columns` before, and aggregate that column."
        yield at_operator(plan, replace(operator, option=operator.clock_option), "GB338", message, hint)
    elif isinstance(operator, JoinOperator) and operator.clock:
        message = (
            "the condition asks for the current time: in a streaming query it is that of the micro-batch, "
            "and Spark fails when the query is started"
        )
        hint = "Use a `filter` before the join or behind it, or compute the time as a column before."
        yield at_operator(plan, operator, "GB338", message, hint)


def _applies(operator: Operator) -> bool:
    # Spark refuses these even where they are over static relations beside a stream.
    if operator.kind in {"offset", "row_ids"}:
        return True
    if operator.kind == "except":
        return operator.streams[1:] == (True,)
    return bool(operator.streaming)


_RULES: dict[str, tuple[str, str, str]] = {
    "offset": (
        "GB305",
        "an offset can't be used in a query with a stream: which rows come first is never settled",
        "Leave it out, or filter by a column.",
    ),
    "analytic_window": (
        "GB307",
        "a window function (`over (…)`) needs all rows of its partition, and a stream never has them",
        "Use an `aggregate` with a time window, or `foreach_batch` for each micro-batch by itself.",
    ),
    "intersect": (
        "GB309",
        "`intersect` can't be used with a stream: Spark doesn't remember all rows of both sides",
        "Use a `join` with `how: left_semi`.",
    ),
    "except": (
        "GB309",
        "`except` can't have a stream on the right: which rows will never come through it is never certain",
        "Read the right side with `mode: batch`, or use a left outer `join` with a range of time and keep "
        "the rows without a partner.",
    ),
    "sample": (
        "GB309",
        "a stream can't be sampled: a micro-batch that is run again must give the same rows",
        "Filter by a hash of a column, for example `pmod(hash(id), 100) < 10`.",
    ),
    "row_ids": (
        "GB309",
        "`monotonically_increasing_id()` can't be used in a query with a stream: it begins anew with "
        "every micro-batch",
        "Use `uuid()`, or a column that identifies the row.",
    ),
}
