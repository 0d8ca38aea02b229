"""The transform `filter`: the rows that meet a condition."""

from typing import TYPE_CHECKING

from gem_bundle import Facts, Field, Finding, Lineage, Operator, Options, Transform
from gem_bundle.expressions import (
    analyse,
    asked_by,
    check_expression,
    equalities,
    made_of,
    nulls_left_out,
    terms_of,
)
from gem_bundle.lineage import passed
from gem_bundle.types import Expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame


class FilterOptions(Options):
    """Options of the transform `filter`."""

    condition: Expression = Field(
        description="A boolean expression; rows for which it is false or null are left out.",
        examples=["amount > 0 and country is not null"],
        change="from_now_on",
    )


class Filter(Transform[FilterOptions]):
    """Keep the rows that meet a condition.

    In visual tools: Filter.
    """

    example = {"condition": "amount > 0"}

    def apply(self, *inputs: "DataFrame") -> "DataFrame":
        """The rows for which the condition is true."""
        return inputs[0].filter(self.options.condition)

    def infer(self, *inputs: Facts) -> Facts:
        """What was known before: columns and event time stay."""
        (facts,) = inputs
        found = analyse(self.options.condition, facts.columns)
        facts = facts.after(Operator("filter", "condition"))
        if found.row_ids:
            facts = facts.after(Operator("row_ids", "condition"))
        return facts.after(Operator("current_time", "condition")) if found.current_time else facts

    def lineage(self, *inputs: Facts) -> Lineage | None:
        """All columns as they are; the condition decides which rows stay."""
        columns = inputs[0].columns
        through = passed(columns)
        if through is None:
            return None
        condition = self.options.condition
        return Lineage(
            through,
            made_of(condition, columns),
            asks=asked_by(condition, [columns]),
            only_nulls=nulls_left_out(condition, [columns]),
            equals=equalities(condition, columns),
            terms=terms_of(condition, columns),
        )

    def check(self, *inputs: Facts) -> "Iterator[Finding]":
        """The condition is one, over columns that exist."""
        (facts,) = inputs
        yield from check_expression(
            self.options.condition,
            facts,
            "condition",
            dropped=facts.hidden,
            # Spark moves what it finds right behind an aggregation into that.
            aggregates="allowed" if any(o.kind == "aggregate" for o in facts.operators) else "no",
            wants="boolean",
            analytic=False,
            generators=False,
        )
