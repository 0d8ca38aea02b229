"""The rules of several columns with a watermark where an operator with state goes by one of them.

Spark's check of unsupported operations lets them pass; the query fails when it is started. Spark:
`WatermarkSupport.findEventTimeColumn`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from gem_bundle.check.report import at_key, at_operator
from gem_bundle.check.streaming.state import MULTIPLE
from gem_bundle.diagnostics import listed_names
from gem_bundle.operators import AggregateOperator, DeduplicateOperator, JoinOperator
from gem_bundle.types import ColumnExpressions, Expression, ExpressionList

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gem_bundle.diagnostics import Diagnostic
    from gem_bundle.facts import Facts
    from gem_bundle.operators import Ancestry, EventTime, Operator, Option
    from gem_bundle.pipeline.model import Node
    from gem_bundle.pipeline.plan import Plan

_EXPRESSIONS = [get_args(kind)[1] for kind in (Expression, ExpressionList, ColumnExpressions)]


def check_event_times(plan: Plan, queries: Mapping[str, Facts], ancestry: Ancestry) -> Iterator[Diagnostic]:
    """Operators with state that get more than one column with a watermark.

    It is said at the operator, or at the targets whose queries fail where others don't: one of them may
    leave a column out, and then Spark's optimizer does so too.

    Args:
        plan: The pipeline.
        queries: What flows into each target into which a stream flows.
        ancestry: The operators of these queries.
    """
    suspects = [operator for operator in ancestry.operators if _may_have_several(operator)]
    if not suspects:
        return
    all_queries = [_Query(plan, plan.node(name), facts, ancestry) for name, facts in queries.items()]
    for operator in suspects:
        behind = [query for query in all_queries if query.has(operator)]
        failing = [(query, names) for query in behind if (names := query.several(operator))]
        if failing and len(failing) == len(behind):
            names = failing[0][1]
            where = replace(operator, option=_option(operator))
            yield at_operator(plan, where, "GB337", _message(operator, names), _hint(operator, names))
            continue
        for query, names in failing:
            message = f"at `{operator.node}` {_message(operator, names)}"
            yield at_key(plan, query.target, "GB337", message, "input", _hint(operator, names))


def _may_have_several(operator: Operator) -> bool:
    if isinstance(operator, AggregateOperator):
        return bool(operator.streaming) and len(operator.event_times) > 1
    if isinstance(operator, DeduplicateOperator):
        return bool(operator.streaming and operator.event_times)
    return isinstance(operator, JoinOperator) and operator.stateful is True and any(operator.event_times)


class _Query:
    """The query that leads to a target."""

    def __init__(self, plan: Plan, target: Node, facts: Facts, ancestry: Ancestry) -> None:
        self.target = target
        self._ancestry = ancestry
        self._nearest = facts.operators
        self._one = plan.definition.spark.get(MULTIPLE, "true").lower() != "false"
        columns = facts.columns if _takes_every_column(plan, target) else None
        self._there = {time for column in columns or () for time in column.entered}
        operators = list(facts.all_operators())
        self._withs = [found for found in operators if found.kind == "with"]
        self._aggregates = [found for found in operators if found.kind in {"aggregate", "except", "unknown"}]

    def has(self, operator: Operator) -> bool:
        """Whether the operator is one of this query's."""
        return operator in self._nearest or bool(self._ancestry.before_any(self._nearest, [operator]))

    def several(self, operator: Operator) -> list[str]:
        """The columns of which the operator gets more than one in this query; none if that isn't certain."""
        if self._may_be_left_out(operator):
            return []
        if isinstance(operator, DeduplicateOperator):
            return self._left(operator.event_times) if self._one or operator.within_watermark else []
        if not self._one:
            return []
        if isinstance(operator, AggregateOperator):
            whole = self.target.output_mode == "complete" and not operator.sessions
            return [] if whole or self._other_aggregates(operator) else list(operator.event_times)
        if not isinstance(operator, JoinOperator) or operator.equality is False:
            return []
        if operator.how in {"left", "right"} and self._other_aggregates(operator):
            return []  # Spark may find that the outer join changes nothing
        return next((names for side in operator.event_times if (names := self._left(side))), [])

    def _left(self, times: Sequence[EventTime]) -> list[str]:
        """Those that Spark's optimizer can't leave out, if they are more than one."""
        names = [time.name for time in times if time.needed or time in self._there]
        return names if len(names) > 1 else []

    def _may_be_left_out(self, operator: Operator) -> bool:
        """Whether it stands in a `with`, which may have a table that isn't used."""
        return any(self._ancestry.is_before(operator, found) for found in self._withs)

    def _other_aggregates(self, operator: Operator) -> bool:
        """Whether there may be other aggregations on its way: of two Spark may find one to be superfluous."""
        before = self._ancestry.is_before
        return any(before(found, operator) or before(operator, found) for found in self._aggregates)


def _takes_every_column(plan: Plan, target: Node) -> bool:
    """Whether the target writes all columns: one that is given expressions may compute from a few of them."""
    gem = plan.gems.get(target.id)
    if gem is None:
        return False
    fields = gem.options_type.model_fields
    given = [fields[name] for name in gem.options.model_fields_set]
    return not any(_has_expressions(part) for field in given for part in (field.annotation, *field.metadata))


def _has_expressions(part: Any) -> bool:
    """Whether a part of an option's type says that it takes expressions."""
    return part in _EXPRESSIONS or any(map(_has_expressions, get_args(part)))


def _option(operator: Operator) -> Option | None:
    """What must change: of a window and other groups these."""
    return "group_by" if operator.option in {"window", "session"} else operator.option


def _message(operator: Operator, names: list[str]) -> str:
    what = "groups" if isinstance(operator, AggregateOperator) else "columns of its input"
    if isinstance(operator, JoinOperator):
        what = "columns of one of its inputs"
    listed = listed_names(names[:-1]) + f" and `{names[-1]}`"
    return (
        f"several {what} carry a watermark ({listed}), and Spark goes by one: "
        "the query fails as soon as it is started"
    )


def _hint(operator: Operator, names: list[str]) -> str:
    last = names[-1]
    if isinstance(operator, AggregateOperator):
        if operator.rows:
            return f"Leave all but one out, or take the watermark off: `{last} + interval 0 seconds`."
        return f"Group by one of them only, or take the watermark off: `{last} + interval 0 seconds`."
    return (
        "Leave all but one out in a `select` before it, or take the watermark off the others there: "
        f"`{last} + interval 0 seconds`. A cast isn't enough."
    )
